#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: strangers.py [--long] [--table=FILE] [--keep=DIR] [--jobs=N] [NAME]...
       strangers.py --needs [--long]

Programs that were not chosen for what reprise can do: each is run alone, recorded by the
default recorder, and replayed at natural speed, as fast as possible and perturbed. Clean is a
row with
    the exit status that the program has alone,        a complete trace,
    replays that end complete without a mismatch,      verify without a difference,
    the very tree that the program left (by a listing made without reprise: type, mode, size,
    hash of the contents, target of links), and less than 1 % of the actions enforced.
A row that is not clean passes only if the table explains it, and fails if it is clean and the
table still explains it (but for races). A listing that differs although no ledger entry, no mismatch and no
warning announced it is silent: that fails always.

  --long        all rows, in ext4 and in xfs (or btrfs, or tmpfs); else the quick ones, in tmpfs.
                Without the right to mount in a directory.
  --table=FILE  write the table of results (doc/strangers.md); with names, replace their lines
  --keep=DIR    keep the trace of each row that fails there, as NAME.trace
  --jobs=N      try N programs at a time (2)
  --needs       print what the rows need, for tools/setup
  NAME...       these rows only, quick or not

To add a program: a Row in one of rows/*.py, with the Debian package that has its command. The
run script ends in seconds, starts nothing that outlives it, uses no network but loopback, leaves
files that do not depend on what else the machine does, and at most some 100 MB. What its input
costs goes into prepare. `strangers.py NAME` tries it, tools/setup finds its package by itself.
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import targets
from rows import read_rows
from trial import KINDS, PATH, Trial, remove


def missing(row):
    """The first need of a row that is not met, or None."""
    for probe, package in row.pairs():
        if probe.startswith("py:"):
            found = subprocess.run(
                ["python3", "-c", "import " + probe[3:]], env={"PATH": PATH},
                stderr=subprocess.DEVNULL, check=False).returncode == 0
        else:
            found = shutil.which(probe, path=PATH)
        if not found:
            return "%s (%s) is not installed" % (probe, package)
    return None


def judge(row, trial):
    """What makes the row fail, a line each, and what is explained of it."""
    fails = ["silent: %s: %s" % (where, trial.wrong["listing"]) for where in trial.silent]
    for kind, why in trial.wrong.items():
        if kind not in row.explained:
            fails.append("%s: %s" % (KINDS[kind], why))
    for kind in row.explained:
        if kind not in trial.wrong and not row.racy:
            fails.append("the table explains why %s, but that is clean" % KINDS[kind])
    return fails


class Suite:
    """Tries rows, prints TAP, keeps the results."""

    def __init__(self, rows, reprise, scratch, is_long, keep=None):
        self.rows = rows
        self.reprise = reprise
        self.scratch = scratch
        self.is_long = is_long
        self.keep = keep
        self.results = {}  # name -> (trial, fails), or why it was skipped
        self.nr = 0
        self.failed = False

    def report(self, row, fails, skipped=None, explained=(), lines=()):
        self.nr += 1
        self.failed |= bool(fails)
        print("%s %d - %s%s%s" % (
            "not ok" if fails else "ok", self.nr, row.name,
            " (explained: %s)" % ", ".join(explained) if explained and not fails else "",
            " # SKIP " + skipped if skipped else ""))
        for line in list(fails) + list(lines):
            print("# " + line.replace("\n", " ")[:600])
        sys.stdout.flush()

    def skip(self, row, why):
        self.results[row.name] = why
        # What CI installed must not go missing without a word.
        must_run = row.quick and os.environ.get("CI") == "true"
        self.report(row, [why] if must_run else [], None if must_run else why)

    def attempt(self, row):
        place = os.path.join(self.scratch, row.name)
        os.mkdir(place)
        os.chmod(place, 0o755)
        trial = Trial(row, self.reprise, place, self.chosen)
        try:
            trial.run()
            if self.keep and judge(row, trial) and os.path.exists(trial.path("trace")):
                shutil.copy(trial.path("trace"), os.path.join(self.keep, row.name + ".trace"))
        finally:
            remove(place)
        return trial

    def run(self, jobs):
        print("1..%d" % len(self.rows), flush=True)
        self.chosen, remarks = targets.choose(self.is_long, self.scratch)
        for remark in remarks:
            print("# " + remark)
        ready = []
        for row in self.rows:
            why = missing(row)
            if why:
                self.skip(row, why)
            else:
                ready.append(row)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            started = {pool.submit(self.attempt, row): row for row in ready}
            for done in concurrent.futures.as_completed(started):
                row, trial = started[done], done.result()
                if "namespace" in trial.wrong.get("end", ""):  # nothing can be replayed here
                    self.skip(row, trial.wrong["end"])
                    continue
                fails = judge(row, trial)
                self.results[row.name] = (trial, fails)
                self.report(row, fails, explained=trial.wrong, lines=["warning: " + w for w in trial.warnings[:3]] if fails else [])


def cell(trial, of):
    """A figure of all replays: one number if they agree, else from - to."""
    values = sorted({of(replay) for replay in trial.replays if replay.report})
    if not values:
        return "-"
    return str(values[0]) if len(values) == 1 else "%s - %s" % (values[0], values[-1])


def version(row):
    """The version of the package that the first need names."""
    package = next(package for _, package in row.pairs())
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode() or "not a package"


def table_line(row, result):
    if isinstance(result, str):
        return "| %s | | | | | | | not run: %s |" % (row.name, result)
    trial, _ = result
    notes = [row.shows]
    for kind in trial.wrong:
        notes.append("**%s**: %s" % (kind, row.explained.get(kind, "*not explained*")))
    if trial.silent:
        notes.append("**silent**: *not explained*")
    return "| %s | %s | %s | %s | %s | %s | %s | %s |" % (
        row.name, version(row), trial.summary.get("events", "-"), cell(trial, lambda r: r.report["mismatches"]),
        cell(trial, lambda r: r.differences), cell(trial, lambda r: len(r.unlike)),
        cell(trial, lambda r: r.report["enforced"]), "; ".join(notes))


def former_lines(path):
    """The lines of a table that was written before, by name."""
    with open(path, encoding="utf-8") as f:
        return {line.split("|")[1].strip(): line.rstrip("\n") for line in f if line.startswith("| ")}


def write_table(suite, path, is_part):
    """All rows, or in a table that is there those that were tried; the text says which is which."""
    known = former_lines(path) if is_part and os.path.exists(path) else {}
    known.update({row.name: table_line(row, suite.results[row.name]) for row in suite.rows})
    lines = [known[row.name] for row in read_rows() if row.name in known]
    unclean = [line for line in lines if "**" in line]
    unexplained = [line for line in unclean if "*not explained*" in line]
    not_run = [line for line in lines if "| not run: " in line]
    with open(path, "w", encoding="utf-8") as out:
        out.write("""# Programs that reprise was not made for

`tests/strangers/strangers.py --long --table=doc/strangers.md` writes this table; with names of programs it replaces their lines. Each program was recorded by the default recorder and
replayed at natural speed, as fast as possible and perturbed, into %s. *Events* are those of the trace; *mismatches*, *differences* (what `reprise verify`
found), *listing* (paths that differ from a listing made without reprise) and *enforced* are of all replays, from the least to the most.
What is not clean is in bold in the notes, with its reason.

%d programs: %d clean, %d explained, %d not explained, %d not run.

| program | version | events | mismatches | differences | listing | enforced | notes |
|---|---|--:|--:|--:|--:|--:|---|
""" % (" and ".join(suite.chosen), len(lines), len(lines) - len(unclean) - len(not_run),
            len(unclean) - len(unexplained), len(unexplained), len(not_run)))
        out.write("".join(line + "\n" for line in lines))


def print_needs(rows):
    """As lines of tools/setup; a system that lacks a package of a row that is not quick goes without the row."""
    quick = {pair for row in rows if row.quick for pair in row.pairs()}
    for probe, package in sorted({pair for row in rows for pair in row.pairs()}):
        print("%s%s %s" % (
            "" if (probe, package) in quick else "?", probe if ":" in probe else "cmd:" + probe, package))


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[0][7:], add_help=True)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--needs", action="store_true")
    parser.add_argument("--table")
    parser.add_argument("--keep")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


def main():
    options = parse()
    rows = read_rows()
    chosen = [row for row in rows if (row.name in options.names if options.names else options.long or row.quick)]
    if options.needs:
        print_needs(chosen)
        return 0
    targets.enter_namespace()
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="strangers."))
    os.chmod(scratch, 0o755)
    suite = Suite(chosen, os.path.abspath(os.environ["REPRISE"]), scratch, options.long, options.keep)
    try:
        suite.run(options.jobs)
        if options.table:
            write_table(suite, options.table, bool(options.names))
    finally:
        subprocess.run(["umount", "-q"] + list(suite.chosen.values()), stderr=subprocess.DEVNULL, check=False)
        remove(scratch)
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
