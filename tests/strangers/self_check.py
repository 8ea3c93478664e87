#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the suite of strangers takes for clean, explained, silent and skipped: it must be able to fail."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import strangers
from rows import Row, read_rows
from trial import KINDS, Trial, compare

FILE = ("file", "0o644", 1, "a")
OTHER = ("file", "0o644", 1, "b")
REAL = os.environ["REPRISE"]
nr_tests = 0


def ok(good, name, why=""):
    global nr_tests
    nr_tests += 1
    print(f"{'ok' if good else 'not ok'} {nr_tests} - {name}", flush=True)
    if not good:
        print("# " + str(why).replace("\n", "\n# "))


def row(**fields):
    return Row(name="x", needs="sh", shows="", run="echo a >f; mkdir d; echo b >d/g; ln -s f l", **fields)


def test_compare():
    ok(not compare({}, {"f": FILE}, {}, {"f": FILE}), "equal listings")
    ok(compare({}, {"f": FILE}, {}, {"f": OTHER}), "other contents differ")
    ok(compare({}, {"f": FILE}, {}, {}), "what is missing differs")
    ok(compare({"f": FILE}, {}, {"f": FILE}, {"f": FILE}), "what was not removed differs")
    ok(not compare({"f": FILE}, {"f": FILE}, {}, {}), "what the program did not touch may be absent")
    ok(not compare({"f": FILE}, {"f": FILE}, {"f": OTHER}, {"f": OTHER}), "what it left may be as the initial tree has it")
    ok(compare({"f": FILE}, {"f": FILE}, {}, {"f": OTHER}), "but nothing else")


def test_judge():
    trial = Trial(row(), REAL, "/", {})
    ok(not strangers.judge(row(), trial), "a clean row passes")
    ok(strangers.judge(row(explained={"verify": "why"}), trial), "a clean row with an explanation fails")
    ok(not strangers.judge(row(explained={"verify": "why"}, racy=True), trial), "unless that is a matter of a race")
    trial.wrong = {"verify": "found"}
    ok(strangers.judge(row(), trial), "an unclean row without an explanation fails")
    ok(not strangers.judge(row(explained={"verify": "why"}), trial), "an explained row passes")
    ok(strangers.judge(row(explained={"mismatches": "why"}), trial), "an explanation is for one thing only")
    trial.wrong, trial.silent = {"listing": "found"}, ["here"]
    ok(strangers.judge(row(explained={"listing": "why"}), trial), "a silent difference cannot be explained")


def test_skips():
    for ci, fails in (("true", True), ("false", False)):
        os.environ["CI"] = ci
        suite = strangers.Suite([], REAL, "/", False)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            suite.skip(row(quick=True), "missing")
        ok(suite.failed == fails and ("SKIP" in out.getvalue()) != fails, f"a skipped quick row with CI={ci}")


def trial_by(directory, after_replay):
    """A trial by a program that is reprise, but for what a script does to the tree after a replay."""
    program = os.path.join(directory, "reprise")
    with open(program, "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\n"{REAL}" "$@"\nr=$?\nfor last do :; done\n[ "$1" != replay ] || (cd "$last{directory}/x/box" && {after_replay})\nexit $r\n')
    os.chmod(program, 0o755)
    tree = os.path.join(directory, "trees")
    for made in (tree, os.path.join(directory, "x")):
        subprocess.run(["rm", "-rf", made], check=True)
        os.mkdir(made)
    trial = Trial(row(), program, os.path.join(directory, "x"), {"directory": tree})
    trial.run()
    return trial


def test_trials():
    with tempfile.TemporaryDirectory() as directory:
        directory = os.path.realpath(directory)
        trial = trial_by(directory, ":")
        if "namespace" in trial.wrong.get("end", ""):
            ok(True, "trials # SKIP " + trial.wrong["end"])
            return
        ok(not trial.wrong and len(trial.replays) == 3, "a program that is replayed as it was is clean", trial.wrong)
        for name, what in (("a byte", "echo c >f"), ("a mode", "chmod 600 d/g"), ("a link", "ln -sfn d l"), ("a file more", "echo >more")):
            trial = trial_by(directory, what)
            ok("listing" in trial.wrong and len(trial.silent) == 3, f"{name} that a replay spoils is silent", trial.wrong)


def test_table():
    rows = read_rows()
    bad = [r.name for r in rows if not r.shows or "|" in r.shows or set(r.explained) - set(KINDS)]
    ok(not bad, "each row says what it shows, and explains what there is", bad)
    ok(sum(r.quick for r in rows) >= 12, "a dozen quick rows")


test_compare()
test_judge()
test_skips()
test_trials()
test_table()
print(f"1..{nr_tests}")
