#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: strace_samples.py SAMPLES_DIR EXPECTED

What strace printed with many sets of options, imported. The programs are the
same in all samples of a kind, so that
1. every line of every sample is understood, and the trace is whole;
2. the calls of st1 are those that the program itself says it made (EXPECTED);
3. the traces of st1 are equal, but for what one of two samples does not tell;
4. numbers that were counted by hand in single samples are right.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile

REPRISE = os.environ["REPRISE"]
SAMPLES, EXPECTED = sys.argv[1], sys.argv[2]
# Calls of st1 that its list leaves out.
HELPERS = {"getpid", "setitimer", "clone", "wait4", "rt_sigreturn"}
VARIANTS = ("fcntl_",)
# Random bytes, and an address that the table has as a number, differ from run to run.
LEFT_OUT = "!getrandom,!arch_prctl,!found_state,!found_fd"

number = 0
failed = 0


def ok(good, name, words=""):
    global number, failed
    number += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
    if not good and words:
        print("\n".join("# " + line for line in str(words).split("\n")[:20]))


def run(*argv):
    p = subprocess.run([REPRISE, *argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return p.returncode, p.stdout.decode(errors="replace")


def sample(name):
    return os.path.join(SAMPLES, name)


def import_to(trace, *inputs):
    status, out = run("import", "--format=strace", "--strict", "-f", "-o", trace, *inputs)
    if not status:
        status, out2 = run("check", trace)
        out += out2
    return not status, out


def events(trace, *options):
    p = subprocess.run([REPRISE, "show", "--json", "--no-paths", *options, trace], stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in p.stdout.splitlines()]


def base_name(call):
    return "fcntl" if call.startswith(VARIANTS) else call


def calls_between_marks(trace):
    """What the first thread did between the two marks, as (name, result, error)."""
    all_events = events(trace)
    tid = all_events[0]["tid"]
    inside, calls = False, []
    for e in all_events:
        if e["tid"] != tid or "ret" not in e or e["call"] in ("thread_start", "exec", "signal", "thread_exit"):
            continue
        path = e["args"].get("path", "")
        if isinstance(path, str) and path.endswith("START-OF-OPS"):
            inside = True
        elif isinstance(path, str) and path.endswith("END-OF-OPS"):
            break
        elif inside and e["call"] not in HELPERS:
            calls.append((base_name(e["call"]), e["ret"], e["errno"]))
    return calls


def expected_calls():
    calls = []
    with open(EXPECTED, encoding="utf-8") as f:
        for line in f:
            _, name, _, ret, errno = line.rstrip("\n").split("\t")
            calls.append((name, ret, None if errno == "-" else errno))
    return calls


def outcome_fits(call, wanted):
    name, ret, errno = call
    if name != wanted[0]:
        return False
    if name == "mmap":
        return not errno
    # The call itself fails with an error; the library hands out its number.
    if name == "clock_nanosleep":
        return errno == "EINTR"
    return (str(ret), errno) == wanted[1:]


def check_st1(name, trace):
    wanted = expected_calls()
    calls = calls_between_marks(trace)
    if name.startswith("st1-inject"):
        wanted = [(n, "-1", "EIO") if n == "fsync" else (n, r, e) for n, r, e in wanted]
    wrong = [f"{c} for {w}" for c, w in zip(calls, wanted) if not outcome_fits(c, w)]
    ok(not wrong and len(calls) == len(wanted), f"{name}: the calls that the program made",
       f"{len(calls)} calls, {len(wanted)} expected\n" + "\n".join(wrong))


def check_equal(name, trace, full):
    status, out = run("slice", "-f", "-c", LEFT_OUT, "-o", trace + ".s", trace)
    assert not status, out
    status, out = run("diff", "--ignore=unknown,inodes", full, trace + ".s")
    ok(status == 0, f"{name}: equals the fullest sample, but for what it lacks", out)


def count(trace, **wanted):
    return sum(all(e.get(k) == v for k, v in wanted.items()) for e in events(trace))


def main():
    scratch = tempfile.mkdtemp()
    traces = {}
    inputs = {os.path.basename(f): [f] for f in glob.glob(sample("*.strace"))}
    for prefix in ("st1-ff", "st2-ff"):
        inputs[prefix] = sorted(glob.glob(sample(prefix + ".*")))
    for name, files in sorted(inputs.items()):
        traces[name] = os.path.join(scratch, name + ".trace")
        good, out = import_to(traces[name], *files)
        ok(good, f"{name}: all is understood", out)

    full = os.path.join(scratch, "full.trace")
    status, out = run("slice", "-f", "-c", LEFT_OUT, "-o", full, traces["st1-f-v-s400.strace"])
    ok(status == 0, "a sample to compare with", out)
    # Subsets of the calls, or other calls made to fail.
    parts = {"st1-dump.strace", "st1-artc.strace"}
    others = parts | {"st1-inject.strace", "st1-nofork-stderr.strace"}
    for name in sorted(traces):
        # Without paths the marks cannot be found.
        if name.startswith("st1") and name not in parts and "raw-all" not in name:
            check_st1(name, traces[name])
        if name.startswith("st1") and name not in others:
            check_equal(name, traces[name], full)

    t = traces["st2-f-ttt-T.strace"]
    reads = [e for e in events(t, "-c", "read") if e["args"].get("buf", {}).get("data") == "z"]
    ok(len(reads) == 15 and len({e["tid"] for e in reads}) == 3, "st2: 15 bytes read by 3 threads", reads)
    ok(len({e["pid"] for e in reads}) == 1, "st2: of one process")
    for name in ("st2-f-ttt-T.strace", "st2-f-yy.strace", "st2-ff", "st2-stderr-brackets.strace"):
        execs = [e for e in events(traces[name], "-c", "exec") if e["args"].get("former_tid")]
        ok(len(execs) == 1 and execs[0]["tid"] == execs[0]["pid"] != execs[0]["args"]["former_tid"],
           f"{name}: an execve by a thread that is not the leader", execs)
        ends = [e["args"] for e in events(traces[name], "-c", "thread_exit")]
        ok(any(e.get("signal") == "SIGKILL" for e in ends) and any(e.get("signal") == "SIGABRT" for e in ends)
           and any(e.get("status") == 7 for e in ends), f"{name}: ends by signals and by exit", ends)
        ok(count(traces[name], call="stopped") == 1, f"{name}: a stop")
    t = traces["st1-inject.strace"]
    ok(all("INJECTED" in e["flags"] for e in events(t, "-c", "fsync")), "an injected error says so")
    t = traces["st1-dump.strace"]
    data = [e["args"]["buf"] for e in events(t, "-c", "read,pread64,write", "--ok") if e["args"]["fd"] == 3]
    ok(len(data) > 8 and all("kept" not in d for d in data), "a dump has all data", data[:3])
    t = traces["st1-nots.strace"]
    ok(all("NO_TIME" in e["flags"] for e in events(t)), "without times the events say so")
    t = traces["st1-r.strace"]
    last = events(t)[-1]
    ok("NO_TIME" not in last["flags"] and last["enter_ns"] > 1000000, "relative times add up", last)
    print(f"1..{number}")
    return 1 if failed else 0


sys.exit(main())
