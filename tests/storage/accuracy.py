#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench/accuracy: what it makes of its cells; and with root that a small measurement comes to its end, and nothing is left of one that is ended."""
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.dom.minidom

TOP = os.environ["TOP"]
BUILD = os.path.dirname(os.environ["REPRISE"])
ACCURACY = f"{TOP}/bench/accuracy/accuracy"
sys.dont_write_bytecode = True
sys.path.insert(0, f"{TOP}/bench/accuracy")

import bench
import experiments
import parts
import plots
import programs
import results
from storages import Storage, short_name

nr_tests = 0


def ok(good, name, why=""):
    global nr_tests
    nr_tests += 1
    print(f"{'ok' if good else 'not ok'} {nr_tests} - {name}", flush=True)
    if not good and why:
        print("# " + str(why).replace("\n", "\n# "))


def cell(name, a, b, noisy=False, **errors):
    return {"program": name, "a": a, "b": b, "batches": 1, "program_s": [1.0, 1.0], "variation": 0.0, "noisy": noisy,
            "modes": {m: {"error": e, "mismatches": 0, "replay_s": [1 + e] * 2} for m, e in errors.items()}}


CELLS = [cell("p", "H", "S", default=0.01, artc=0.5, temporal=0.2), cell("p", "S", "H", default=-0.03, artc=-0.1, temporal=0.0, noisy=True),
         {"program": "q", "a": "H", "failed": "why"}, {"program": "r", "a": "S", "left_out": True}]


def test_results():
    s = results.summary(CELLS, "default")
    ok(s["cells"] == 2 and abs(s["mean"] - 0.02) < 1e-9 and s["worst"] == 0.03 and s["within_5"] == 2, "errors are summed up by their size", s)
    ok([c["b"] for c in results.behind_others(CELLS)] == ["H"], "cells behind the better of artc and temporal are found")
    out = io.StringIO()
    results.put_part("x", {"purpose": "y", "cells": CELLS}, out)
    text = out.getvalue()
    ok(all(w in text for w in ("-3.0", "+50.0", "too noisy", "failed: q H: why", "p S->H", "the time was up: r S")), "a table shows bad, noisy and failed cells", text)
    out = io.StringIO()
    results.put_markdown(CELLS, out)
    ok("| p | +1.0 (+50.0, +20.0) | -3.0 (-10.0, +0.0) *noisy* |" in out.getvalue() and "| `artc` | 30.0 |" in out.getvalue()
       and "- more than 2 points behind artc or temporal: p S->H" in out.getvalue(), "a table for the document",
       out.getvalue())
    with open("doc.md", "w") as f:
        f.write("a\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nb\n")
    with open("r.json", "w") as f:
        json.dump({"machine": {"cpus": 2, "kernel": "6", "load": 0.0}, "parts": {"x": {"purpose": "y", "cells": CELLS, "experiment": None}}}, f)
    done = subprocess.run([sys.executable, ACCURACY, "--tell", "r.json", "--into", "doc.md", "--output", "again"], capture_output=True, text=True)
    with open("doc.md") as f:
        doc = f.read()
    ok(done.returncode == 0 and "old" not in doc and "### x" in doc and doc.startswith("a\n<!--") and doc.endswith("-->\nb\n") and os.path.exists("again.x.svg"),
       "a result is told again, into a document", done.stderr + doc)


def test_limits():
    now = time.monotonic()
    endless, late, over = bench.Limits(1, 2, 0.05), bench.Limits(1, 2, 0.05, now - 1, now + 1000), bench.Limits(1, 2, 0.05, now - 2, now - 1)
    ok([endless.may_repeat(n) for n in range(3)] == [True, True, False] and [late.may_repeat(n) for n in range(3)] == [True, False, False]
       and (endless.is_over(), late.is_over(), over.is_over()) == (False, False, True), "late, batches are not repeated; then all is left out")


def test_other_outcomes():
    into = {"mismatches": 0, "unsupported": 0, "kinds": {}, "calls": []}
    for _ in range(2):
        bench.add_mismatches(into, {"mismatches_by_kind": {"failed": 1, "short": 0, "unsupported": 3}, "first_mismatches": [{"call": "fallocate"}, {"call": "mkdir"}]})
    one = cell("p", "H", "S", default=0.0)
    one["modes"]["default"].update(into)
    s = results.summary([one], "default")
    ok(s["mismatches"] == 2 and s["unsupported"] == 6 and list(results.other_outcomes([one])) == ["p H->S, default: 2 failed, 6 unsupported (fallocate, mkdir)"],
       "what only one file system knows is counted apart", (s, into))


def test_plots():
    good = results.good(CELLS)
    slices = {"program_s": {"1": [1.0], "100": [0.5]}, "replay_s": {"a": {"1": [1.0], "100": [0.6]}}}
    edges = {"root": {"actions": 2, "edges": 1, "edge_length_ns": {"mean": 1e6, "p50": 1e6, "p99": 2e6}, "parallelism": {"plan": 1.5}}}
    picture = {"concurrency": 2.0, "threads": 2, "drawn": [[(0.0, 0.01)], [(0.01, 0.04)]]}
    texts = [experiments.slices_tell(slices, "slices"), experiments.edges_tell(edges, "edges"),
             experiments.concurrency_tell({"trace": picture, "modes": {"default": [{**picture, "concurrency": 1.0}]}}, "concurrency")]
    plots.errors(good, ["default", "artc"], "errors.svg")
    plots.distribution(good, ["default", "artc"], "distribution.svg")
    plots.bars([("<&", [("x", 1, "1"), ("y", 0, "0")])], "bars.svg", "t", "u")
    for name in ("errors", "distribution", "bars", "slices", "edges", "concurrency"):
        xml.dom.minidom.parse(name + ".svg")
    ok(any("+20.0%" in line for line in texts[0]) and any("50 %" in line for line in texts[2]), "experiments are told and drawn", texts)


def test_parts():
    s = Storage("S:fs=xfs:cache=24M:read-ahead=0:scheduler=bfq:timeout_sync=3")
    ok((s.model, s.fs, s.cache_bytes, s.read_ahead_kib, s.scheduler, s.queue_settings) == ("ssd", "xfs", 24 << 20, 0, "bfq", {"timeout_sync": 3}),
       "a storage is told by one word")
    s, done = Storage("D:scheduler=bfq:timeout_sync=3:rotational=1"), []
    s.set_queue = lambda key, value: done.append(key)
    s.apply()
    ok(done.index("rotational") < done.index("scheduler", 1) < done.index("timeout_sync"), "a scheduler begins on a queue that has its settings", done)
    ok([short_name(t) for t in ("S:fs=xfs", "D:timeout_sync=1:name=a b")] == ["S:fs=xfs", "D a b"] and Storage("D:timeout_sync=1:name=a b").queue_settings == {"timeout_sync": 1},
       "tables call it by its name")
    wrong = 0
    for text in ("X", "S:cache=0M", "S:cache=12", "S:read-ahead=x", "S:fs", "S:../x=1"):
        try:
            Storage(text)
        except ValueError:
            wrong += 1
    ok(wrong == 6, "what is none is refused")
    known = parts.all_parts()
    used = {name for part in known.values() for name in part["programs"]}
    ok(used == set(programs.ALL), "every program has its part", used.symmetric_difference(programs.ALL))
    own = subprocess.run([f"{BUILD}/bench/programs"], capture_output=True, text=True).stdout if os.path.exists(f"{BUILD}/bench/programs") else None
    ok(own is None or {line.split("\t")[0] for line in own.splitlines()} == set(programs.OWN), "own programs are those that were built", own)
    for part in known.values():
        for name in part["programs"]:
            for pair in parts.pairs_of(part, name):
                assert set(pair) <= set(part["storages"]) and pair[0] != pair[1], (name, pair)


def left():
    """What a measurement could leave behind."""
    groups = [f"{top}/{name}" for top in ("/dev/shm", "/sys/fs/cgroup/memory", "/sys/fs/cgroup") if os.path.isdir(top)
              for name in os.listdir(top) if name.startswith("accuracy.")]
    running = [int(p) for p in os.listdir("/proc") if p.isdigit() and ours(p)]
    return groups + running


def ours(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().split(b"\0")[0] == f"{BUILD}/bench/storage/storage".encode()
    except OSError:
        return False


def wait_until(what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.1)
    return what()


def measure(*options):
    return [sys.executable, ACCURACY, "--build", BUILD, "--output", "m", "--rounds=1", "--batches=1", "--modes=default", *options]


def why_not():
    if os.geteuid():
        return "needs root"
    if not os.path.exists("/dev/fuse") or not os.path.exists("/dev/loop-control"):
        return "no FUSE or no loop devices here"
    if not os.path.exists(f"{BUILD}/bench/programs"):
        return "the benchmarks are not built"
    done = subprocess.run([f"{BUILD}/bench/storage/storage", "--fs=none", "--size=16M", "--quiet", f"{TOP}/bench/storage/ssd.model", "true"],
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    return None if wait_until(lambda: not left()) else "others measure here"


def test_run():
    done = subprocess.run(measure("--programs=fsync", "--storages=S,T"), capture_output=True, text=True)
    why = done.stderr + done.stdout
    try:
        with open("m.json") as f:
            result = json.load(f)["parts"]["matrix"]
        good = [(c["a"], c["b"], c["modes"]["default"]["mismatches"]) for c in result["cells"]] == [("S", "T", 0), ("T", "S", 0)]
        good = good and result["devices"]["S"]["timed_requests"] > 0 and os.path.exists("m.txt") and os.path.exists("m.matrix.svg")
    except (OSError, KeyError) as e:
        good, why = False, f"{e!r}\n{why}"
    ok(done.returncode == 0 and good, "a small measurement comes to its end", why)
    ok(wait_until(lambda: not left()), "nothing is left of it", left())


def test_ended(number):
    child = subprocess.Popen(measure("--programs=cache", "--storages=H,S:cache=20M"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_until(left)
    time.sleep(1)
    child.send_signal(number)
    out = child.communicate()[0].decode()
    ended = -number if number == signal.SIGKILL else 130
    ok(child.returncode == ended and wait_until(lambda: not left()), f"nothing is left after {signal.Signals(number).name}", (child.returncode, left(), out))


def main():
    os.chdir(tempfile.mkdtemp())
    try:
        why = why_not()
        print("1..19")
        test_results()
        test_other_outcomes()
        test_limits()
        test_plots()
        test_parts()
        for name, test in (("comes to its end", test_run), ("SIGINT", lambda: test_ended(signal.SIGINT)), ("SIGTERM", lambda: test_ended(signal.SIGTERM)),
                           ("SIGKILL", lambda: test_ended(signal.SIGKILL))):
            if why:
                global nr_tests
                for _ in range(2 if test == test_run else 1):
                    nr_tests += 1
                    print(f"ok {nr_tests} - {name} # SKIP {why}")
            else:
                test()
    finally:
        subprocess.run(["rm", "-rf", os.getcwd()])


if __name__ == "__main__":
    main()
