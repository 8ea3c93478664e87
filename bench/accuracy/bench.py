# SPDX-License-Identifier: MIT
"""Runs, traces and replays programs on the storages of a bench, and takes their times."""
import json
import math
import os
import shutil
import statistics
import subprocess
import time

import programs

MODES = {  # options of compile, options of replay
    "default": ([], []),
    "afap": ([], ["--speed=afap"]),
    "artc": (["--rules=artc"], ["--speed=afap"]),
    "artc-natural": (["--rules=artc"], []),
    "temporal": (["--order=temporal"], ["--speed=afap"]),
    "overlap": (["--order=overlap"], ["--speed=afap"]),
    "single": (["--order=single"], ["--speed=afap"]),
    "none": (["--order=none"], ["--speed=afap"]),
}
MISMATCHES = 1  # exit status of a replay with other outcomes
UNSUPPORTED = "unsupported"  # the kind of outcomes that differ because the two file systems do


class Failed(Exception):
    pass


def call(argv, accept=(0,), **keywords):
    done = subprocess.run(argv, capture_output=True, text=True, **keywords)
    if done.returncode not in accept:
        raise Failed(f"{' '.join(argv)}: exit status {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def cold():
    """Nothing dirty, nothing cached."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3")


def variation(values):
    return statistics.stdev(values) / statistics.mean(values) if len(values) > 1 else 0.0


class Bench:
    """build: the build directory; work: where traces and plans go; group: the memory group, or None."""

    def __init__(self, build, work, group, recorder):
        self.reprise, self.own = f"{build}/reprise", f"{build}/bench/programs"
        self.work, self.group, self.recorder = work, group, recorder

    def command(self, name, what, directory):
        return programs.command(name, what, self.own, directory)

    def prepare(self, name, directory):
        os.makedirs(directory)
        call(self.command(name, "prepare", directory))

    def run(self, name, storage, directory):
        """Seconds of the program alone, from its start to its end."""
        if not storage.cache_bytes:
            return self.time(self.command(name, "run", directory))
        self.group.set_limit(storage.cache_bytes)
        with self.group:
            return self.time(self.command(name, "run", directory))

    def time(self, argv):
        # As little as possible lies between the clock and the program, which may be short.
        log = f"{self.work}/output"
        to_log = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                  (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), (os.POSIX_SPAWN_DUP2, 1, 2)]
        cold()
        start = time.monotonic()
        status = os.waitpid(os.posix_spawn(argv[0], argv, os.environ, file_actions=to_log), 0)[1]
        seconds = time.monotonic() - start
        if status:
            with open(log, errors="replace") as f:
                raise Failed(f"{' '.join(argv)}: wait status {status}: {f.read().strip()[-400:]}")
        return seconds

    def record(self, name, storage):
        """The traced run on a storage: where the trace is, where the data was, how long it took."""
        data = f"{storage.directory}/{name}"
        trace = f"{self.work}/{name}.{storage.text}.trace"
        self.prepare(name, data)
        argv = self.command(name, "run", data)
        if storage.cache_bytes:
            self.group.set_limit(storage.cache_bytes)
            argv = self.group.wrap(argv)
        cold()
        start = time.monotonic()
        # Real programs read what is in their files, so the replay's tree must have it.
        contents = "--contents=" + ("64M" if name in programs.REAL else "0")
        # What is not chosen by path has what the program loads, too.
        paths = ["--path", storage.directory + "/**"] if name not in programs.TALKING else []
        call([self.reprise, "record", "-f", "--data=none", contents, "--recorder=" + self.recorder, *paths, "-o", trace, "--"] + argv)
        seconds = time.monotonic() - start
        shutil.rmtree(data)
        return {"program": name, "a": storage.text, "trace": trace, "data": data, "traced_s": seconds}

    def compile(self, recorded, mode):
        plan = f"{recorded['trace']}.{mode}.plan"
        call([self.reprise, "compile", "-q", "-f", "-o", plan] + MODES[mode][0] + [recorded["trace"]])
        return plan

    def forget(self, recorded):
        """Traces and plans are in memory."""
        for entry in os.scandir(self.work):
            if entry.path.startswith(recorded["trace"]):
                os.unlink(entry.path)

    def init(self, recorded, root):
        call([self.reprise, "init", "-q", "--sparse-over=1T", recorded["trace"], root])

    def replay(self, plan, storage, root, mode, options=()):
        argv = [self.reprise, "replay", "-q", "--json", "--no-init", "--stall-timeout=60s"] + MODES[mode][1] + list(options) + [plan, root]
        if not storage.cache_bytes:
            cold()
            return json.loads(call(argv, accept=(0, MISMATCHES)))
        # The replay's own memory is no less cache than the program would have.
        idle = json.loads(call(argv[:2] + ["--engine=null"] + argv[2:], accept=(0, MISMATCHES)))
        self.group.set_limit(storage.cache_bytes + idle["peak_memory_bytes"])
        cold()
        with self.group:
            return json.loads(call(argv, accept=(0, MISMATCHES)))


def add_mismatches(into, report):
    """By kind; operations that only one of the two file systems has are no fault of a replay, and counted apart."""
    for kind, nr in report["mismatches_by_kind"].items():
        into[UNSUPPORTED if kind == UNSUPPORTED else "mismatches"] += nr
        if nr:
            into["kinds"][kind] = into["kinds"].get(kind, 0) + nr
    for m in report["first_mismatches"]:
        if m["call"] not in into["calls"]:
            into["calls"].append(m["call"])


def _one_round(bench, cell, recorded, storage, root, modes):
    bench.init(recorded, root)
    cell["program_s"].append(bench.run(recorded["program"], storage, root + recorded["data"]))
    for mode in modes:
        bench.init(recorded, root)
        report = bench.replay(f"{recorded['trace']}.{mode}.plan", storage, root, mode)
        into = cell["modes"].setdefault(mode, {"replay_s": [], "concurrency": [], "mismatches": 0, UNSUPPORTED: 0, "kinds": {}, "calls": []})
        into["replay_s"].append(report["elapsed_ns"] / 1e9)
        into["concurrency"].append(report["concurrency"]["run"])
        add_mismatches(into, report)


class Limits:
    """How often and how long: times are of the monotonic clock."""

    def __init__(self, rounds, batches, max_variation, repeat_until=math.inf, end=math.inf):
        self.rounds, self.batches, self.max_variation, self.repeat_until, self.end = rounds, batches, max_variation, repeat_until, end

    def may_repeat(self, nr_done):
        return nr_done < self.batches and (not nr_done or time.monotonic() < self.repeat_until)

    def is_over(self):
        return time.monotonic() >= self.end


def measure(bench, recorded, storage, modes, limits):
    """A cell: the program and its replays on a storage, in turn; a batch that is too noisy is repeated."""
    root = f"{storage.directory}/replay"
    cell = {"program": recorded["program"], "a": recorded["a"], "b": storage.text, "batches": 0}
    while limits.may_repeat(cell["batches"]):
        cell["batches"] += 1
        cell["program_s"], cell["modes"] = [], {}
        for _ in range(limits.rounds):
            _one_round(bench, cell, recorded, storage, root, modes)
        for mode in cell["modes"].values():
            mode["variation"] = variation(mode["replay_s"])
        # Of the other modes some vary by their nature.
        cell["variation"] = max(variation(cell["program_s"]), cell["modes"][modes[0]]["variation"])
        if cell["variation"] <= limits.max_variation:
            break
    cell["noisy"] = cell["variation"] > limits.max_variation
    for mode in cell["modes"].values():
        mode["error"] = statistics.median(r / p for r, p in zip(mode["replay_s"], cell["program_s"])) - 1
    shutil.rmtree(root)
    return cell
