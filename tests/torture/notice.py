#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: notice.py TORTURE TORTURE_STATIC TORTURE_NARROW [PATTERN]...

Programs that would notice if a recorder changed something in them, and what limits of theirs
mean for it. Cases can be chosen by a part of their names.
"""

import os
import re
import resource
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

TORTURE = os.path.abspath(sys.argv[1])
LIBRARY = os.path.join(os.path.dirname(TORTURE), "torture-library.so")
NOBODY = 65534


def unnoticed(*words, ledger=(), options=()):
    """The program checks itself; without a recorder it must be content too.

    Nothing is known of it, so that an agent comes late if it may: when the loader has done.
    The ledger must say what is given, if anything, and nothing else.
    """
    status, _, err = run(TORTURE, *words, env=dict(os.environ, TORTURE_COUNTS="alone"))
    if status == 77:
        raise Skipped("not to be had here")
    equal(status, 0, f"exit status alone\n{err.decode()}")
    record(TORTURE, *words, options=["--force", "--cache=", *options], env={"REPRISE_AGENT_AFTER": "70"})
    trace = Trace()
    trace.must_be_whole(ledger)
    for kind in ledger:
        expect(any(kind in line for line in trace.ledger()), f"the ledger does not tell of {kind}")


@case("the register gs is the program's, and its threads' and children's, when it uses it")
def own_gs():
    unnoticed("own-gs")


@case("a program with next to no stack left")
def little_stack():
    unnoticed("little-stack")


@case("calls are made where the program makes them when that makes a difference to it")
def dispatch():
    unnoticed("dispatch")


@case("a wait with a mask of its own ends by the signal that it lets through")
def masked_waits():
    for nr in range(0, 20, 2):  # with an agent that comes late: at one of these calls
        unnoticed("masked-waits", str(nr))


@case("a signal that is ignored ends no wait, and other signals and timeouts do")
def ignored():
    rounds = 5
    unnoticed("ignored", str(rounds))
    calls = Trace().stat()["calls"]
    waits = {"epoll_wait": 3, "epoll_pwait": 1, "rt_sigtimedwait": 1, "semtimedop": 1}
    equal({name: calls[name]["count"] for name in waits},
          {name: nr * rounds for name, nr in waits.items()}, "calls")


@case("signals find the program in its own code, whatever an agent has put there")
def interrupted():
    unnoticed("interrupted", "1500")
    record(TORTURE, "interrupted", "1500", options=["--force"])  # known from its beginning
    Trace().must_be_whole()


@case("a program that steps through its own calls comes to their end")
def step():
    unnoticed("step")
    record(TORTURE, "step", options=["--force"])  # known from its beginning


VSYSCALLS = """
import ctypes, os, sys, time
if "[vsyscall]" not in open("/proc/self/maps").read():
    sys.exit(77)
ask = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(0xffffffffff600400)
for _ in range(100):
    assert abs(ask(None) - time.time()) < 3
    os.getppid()
"""


@case("what the kernel does at an address for all is no call, and those after it are what they are")
def vsyscalls():
    for options in ([], ["--calls=getppid,time,write"]):
        record(sys.executable, "-c", VSYSCALLS, options=["--force", *options])
        status, out, err = run(REPRISE, "show", "--call=getppid,time", "trace")
        equal(status, 0, err.decode())
        lines = out.decode().splitlines()
        equal((len(lines), sum("ENOSYS" in line for line in lines)), (100, 0), "calls, and with ENOSYS")


@case("a file is as it is where a library was before")
def reused_text():
    unnoticed("reused-text", LIBRARY)


@case("a limit for the memory that is enough for the program alone, and memory that is locked")
def limit_later():
    unnoticed("limit-later")


@case("a stack grows where the program found room for it")
def growing_stack():
    for nr in (0, 100):  # an agent that comes late comes for the thread, or before it
        unnoticed("growing-stack", str(nr))


@case("a file system that the program serves itself is left alone")
def served():
    for name in ("f", "m/f"):
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "w", encoding="utf-8") as f:
            f.write("hello")
    unnoticed("served", ledger=["TREE_INCOMPLETE"])


@case("files that the program has to allow to be opened are not opened")
def guarded():
    os.mkdir("guarded")
    with open("guarded/f", "w", encoding="utf-8") as f:
        f.write("hello")
    unnoticed("guarded", ledger=["TREE_INCOMPLETE"])
    unnoticed("guarded", ledger=["TREE_INCOMPLETE", "FILTERED"], options=["--calls=openat,getdents64,read,poll"])


@case("memory that the program fills when it is used is not waited for")
def filled():
    unnoticed("filled", "1", ledger=["DATA_TRUNCATED"])
    unnoticed("filled", "700", ledger=["DATA_TRUNCATED"])


@case("descriptors that another process has too are not touched")
def shared_files():
    for _ in range(20):
        unnoticed("shared-files")


@case("memory that nobody fills is not touched")
def unfilled():
    unnoticed("unfilled", "call", ledger=["DATA_TRUNCATED"])


@case("memory that nobody fills is not touched: by the device, of which nothing is recorded")
def unfilled_device():
    unnoticed("unfilled", "device", options=["--exclude=ioctl"], ledger=["FILTERED", "DATA_TRUNCATED"])


@case("more threads than there was room for at first: an agent records them all")
def many_threads():
    record(TORTURE, "threads", "40", "200", options=["--contents=0"])
    trace = Trace()
    trace.must_be_complete()
    trace.must_have_counts()
    if RECORDER == "inproc":
        by_agent = int(trace.meta()["agent_events"])
        status, out, err = run(REPRISE, "stat", "--json", "trace")
        equal(status, 0, err.decode())
        nr_events = json.loads(out)["events"]
        expect(by_agent > nr_events * 0.8, f"{by_agent} of {nr_events} events by the agent")


@case("a program without rights that forbids looking into its memory goes on")
def no_dump_of_nobody():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skipped("cannot become another user")
    os.chmod(".", 0o777)
    for calls in ("calls", "no-dump"):
        argv = record_argv(TORTURE, calls, options=["--force", "--contents=0", "--cache="])
        status, _, err = run("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *argv,
                             env=dict(os.environ, TORTURE_COUNTS=os.path.abspath(calls)))
        if calls == "calls" and status != 0:
            raise Skipped(f"as another user nothing can be recorded here: {err.decode()[-200:]}")
        equal(status, 0, f"exit status\n{err.decode()}")
        _, check = Trace().check()
        expect(check["intact"] and check["closed"], "the trace is damaged")


@case("a trace that may not grow is told of, and kills nobody")
def file_size():
    def limit(kib):
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kib << 10, kib << 10))
    for kib in (1, 10, 200):
        p = start(record_argv("true", options=["--force"]), stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, preexec_fn=limit(kib))
        status, _, err = finish(p)
        expect(status in (0, 2), f"{kib} KiB: status {status}")
        expect(b"File too large" in err, f"{kib} KiB: no reason: {err!r}")


sys.exit(run_cases(sys.argv[4:]))
