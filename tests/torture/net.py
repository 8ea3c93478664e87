#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: net.py TORTURE TORTURE_STATIC TORTURE_NARROW [PATTERN]...

The net under the agent: what comes from places that the agent did not take over is
recorded all the same, and an audit tells from where. No call passes unseen: every trace that is
whole has to stand the audit (lib/audit.py), and has as many calls as the program itself has counted. Without the net these are missing
that an audit finds to come from places that cannot be changed, and the ledger says so.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

TORTURE = os.path.abspath(sys.argv[1])
STATIC = os.path.abspath(sys.argv[2])
AUDIT = ["--recorder=inproc", "--net=audit", "--force"]
OFF = ["--recorder=inproc", "--net=off", "--force"]


def places():
    """(calls, file, offset, why) of all that the net has caught."""
    return audit.places(Trace().meta())


def must_be_inside():
    """No process is without the agent: only the execve that has begun it all was seen by the tracer alone."""
    equal((Trace().meta()["net"], Trace().meta()["net_outside"]), ("audit", "1"), "net, calls of processes without agent")


@case("calls from code that is made at run time are caught, and told apart")
def made_code():
    record(TORTURE, "made-code", "500", options=AUDIT)
    Trace().must_be_complete()
    must_be_inside()
    made = sum(done for name, (done, _) in counts().items())
    anonymous = [p for p in places() if p[1] == "[anonymous]"]
    equal([p[0] for p in anonymous], [made], "calls from memory that is of no file")
    equal(anonymous[0][3], "code that no loader has mapped", "why")


@case("every call of many kinds of programs is seen on one of the three ways")
def adds_up():
    for words in (["calls", "2000"], ["threads", "16", "300"], ["processes", "150"], ["vfork", "50"],
                  ["timer", "300"]):
        record(TORTURE, *words, options=AUDIT)
        Trace().must_be_complete()
        must_be_inside()
        os.unlink("counts")
    record("sh", "-c", "for i in 1 2 3 4 5; do echo $i | cat >f$i; done; ls | sort", options=AUDIT)
    Trace().must_be_whole()
    must_be_inside()


@case("a program that its loader was told to run is as one that is run itself")
def by_loader():
    loader = "/lib64/ld-linux-x86-64.so.2"
    if not os.path.exists(loader):
        raise Skipped(f"there is no {loader}")
    caught = []
    for words in ([TORTURE], [loader, TORTURE]):
        record(*words, "calls", "2000", options=AUDIT)
        Trace().must_be_complete()
        must_be_inside()
        caught.append(int(Trace().meta()["net_caught"]))
        os.unlink("counts")
    expect(caught[1] < caught[0] + 20, f"calls that the net has caught: {caught}")


@case("the same of a static program")
def static():
    if not os.path.exists(STATIC):
        raise Skipped("there is no static C library")
    record(STATIC, "calls", "2000", options=AUDIT)
    Trace().must_be_complete()
    must_be_inside()


@case("the audit is in the summary, with the places that have most calls")
def summary():
    argv = [REPRISE, "record", "-o", "trace", *AUDIT, "--", TORTURE, "made-code", "50"]
    status, _, err = run(*argv)
    equal(status, 0, "exit status")
    lines = err.decode().splitlines()
    expect("the net has caught" in lines[1], f"summary: {lines}")
    expect(re.fullmatch(r"  \d+ from \[anonymous\]\+0x[0-9a-f]+: .*", lines[2]), f"summary: {lines}")


@case("whatever clock the agent reads, time does not go back")
def clocks():
    for clock in ("auto", "vdso", "kernel"):
        for words in (["threads", "4", "300"], ["timer", "300"]):
            began = time.monotonic_ns()
            record(TORTURE, *words, options=[*AUDIT, "--clock=" + clock])
            took = time.monotonic_ns() - began
            Trace().must_be_complete()
            must_be_inside()
            os.unlink("counts")
            must_go_on(took)
        # Each may be all that there is.
        known = {"auto": ("counter", "vdso", "kernel"), "vdso": ("vdso", "kernel"), "kernel": ("kernel",)}
        expect(Trace().meta()["agent_clock"] in known[clock], f"{clock}: {Trace().meta()['agent_clock']}")


def must_go_on(took):
    """A thread's calls begin one after the other, and end before the recording did."""
    status, out, err = run(REPRISE, "show", "--json", "trace")
    equal(status, 0, err.decode())
    last = {}
    for line in out.splitlines():
        event = json.loads(line)
        enter, leave = event["enter_ns"], event["exit_ns"]
        expect(last.get(event["tid"], 0) <= enter <= leave <= took, f"after {last}: {line[:300]!r}")
        last[event["tid"]] = enter


def look_through(cache):
    """What is kept after a recording."""
    record(TORTURE, "calls", "50", options=[*AUDIT, "--cache=" + cache])
    Trace().must_be_complete()
    must_be_inside()
    os.unlink("counts")
    return when_kept()


def when_kept():
    return {e.name: e.stat().st_ctime_ns for e in os.scandir("c/sites")}


@case("what one recording has found in files, the next one knows, if it can be believed")
def cache():
    first = look_through("c")
    expect(len(first) >= 2, f"of loader and library is kept: {first}")
    equal(look_through("c"), first, "what is kept after a recording that has found nothing new")
    for name in first:
        with open("c/sites/" + name, "r+b") as f:
            f.seek(40)
            f.write(b"\xff")
    damaged = when_kept()
    again = look_through("c")
    equal(again.keys(), first.keys(), "what is kept")
    expect(all(again[name] > damaged[name] for name in again), f"damaged, and believed: {damaged}, {again}")
    os.chmod("c/sites", 0o777)
    for cache_dir in ("c", "", "/proc/none"):
        equal(look_through(cache_dir), again, f"what is kept after --cache={cache_dir}")


@case("without an audit nothing is counted")
def no_audit():
    record(TORTURE, "made-code", "50", options=["--recorder=inproc"])
    Trace().must_be_complete()
    about = Trace().meta()
    equal((about["net"], "net_caught" in about), ("on", False), "metadata")


def must_say_off():
    """The trace is whole, and its ledger says that there was no net, and nothing else."""
    trace = Trace()
    status, check = trace.check()
    equal((status, check["closed"], check["intact"], check["lost"]), (1, True, True, 0),
          "check: status, closed, intact, lost")
    ledger = trace.ledger()
    expect(len(ledger) == 1 and "CALL_UNSEEN" in ledger[0] and "the net was off" in ledger[0],
           f"ledger: {ledger}")
    stat = trace.stat()
    equal((stat["complete"], stat["lost"], trace.meta()["net"]), (False, 0, "off"), "complete, lost, net")
    return stat


# Why a place is not changed, and calls from there are not seen without a net.
LOST = ("code that no loader has mapped", "cannot be changed")


def nr_sure_calls(stat):
    """Whether a thread has to wait for another differs from run to run."""
    return audit.nr_calls({"calls": {name: c for name, c in stat["calls"].items()
                               if not name.startswith("futex")}})


def audit_and_off(*words, **more):
    """What the audit says would be lost is what is lost; returns the statistics without a net."""
    if os.path.exists("counts"):
        os.unlink("counts")
    record(*words, options=AUDIT, **more)
    there = nr_sure_calls(Trace().must_be_whole())
    lost = sum(p[0] for p in places() if p[3] in LOST)
    if os.path.exists("counts"):
        os.unlink("counts")
    record(*words, options=OFF, **more)
    stat = must_say_off()
    equal(nr_sure_calls(stat), there - lost, f"calls without a net, of {there}")
    expect(lost > 0, "nothing was lost")
    return stat


@case("without a net what comes from places that cannot be changed is lost, as foretold by an audit")
def off():
    audit_and_off(TORTURE, "made-code", "500")
    equal(Trace().nr_of("pwrite64"), 0, "calls from code that was made")
    stat = audit_and_off(TORTURE, "calls", "2000")
    Trace().must_have_counts(stat)


@case("the same of sqlite3")
def off_sqlite():
    if not shutil.which("sqlite3"):
        raise Skipped("sqlite3 is not installed")
    script = "create table t (a); insert into t values (1), (2); select count(*) from t;"
    # A file that is not there before: so both runs do the same.
    stat = audit_and_off("sh", "-c", 'rm -f db; exec sqlite3 db "$1"', "sh", script)
    expect(stat["calls"]["pwrite64"]["count"] > 0, "no writes")


@case("transactions of sqlite3, whose journal comes and goes, are made without the tracer")
def no_stops():
    if not shutil.which("sqlite3"):
        raise Skipped("sqlite3 is not installed")
    script = "create table t (a);" + "insert into t values (1);" * 300
    record("sqlite3", "db", script, options=AUDIT)
    Trace().must_be_whole()
    must_be_inside()
    about = Trace().meta()
    seen = int(about["net_left"]) + int(about["net_caught"])
    expect(seen < 150, f"{seen} calls were left to the tracer, or caught")


@case("without a net all of what threads, processes, handlers and execve do is seen from changed places")
def off_all():
    for words in (["threads", "16", "300"], ["processes", "150"], ["vfork", "50"], ["timer", "300"],
                  ["exec-other", "5"], ["seccomp", "errno"]):
        record(TORTURE, *words, options=OFF)
        Trace().must_have_counts(must_say_off())
        os.unlink("counts")


@case("without a net the agent may have to leave: no call of threads that run then is lost")
def off_leaves():
    for _ in range(3):
        record(TORTURE, "threads", "3", "60", TORTURE, options=OFF)
        Trace().must_have_counts(must_say_off())
        os.unlink("counts")


@case("a static program without a net: it cannot be looked through, and is recorded by ptrace")
def off_static():
    if not os.path.exists(STATIC):
        raise Skipped("there is no static C library")
    record(STATIC, "calls", "500", options=OFF)
    Trace().must_have_counts(must_say_off())


sys.exit(run_cases(sys.argv[4:]))
