#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: death.py TORTURE TORTURE_STATIC TORTURE_NARROW [PATTERN]...

The recorder is killed, at any moment. The program ends with it or runs on, as
the option says; it is never left stopped, and none of its calls fails for that.
"""

import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

TORTURE = os.path.abspath(sys.argv[1])


def group_of(pid):
    """(process group, state) of a process; zombies have none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            words = f.read().rpartition(")")[2].split()
    except OSError:
        return 0, ""
    return (0, "") if words[0] in "ZX" else (int(words[2]), words[0])


def left_of(group):
    """Processes of the group that are still there: (pid, state)."""
    found = ((int(e), group_of(int(e))) for e in os.listdir("/proc") if e.isdigit())
    return [(pid, state) for pid, (of, state) in found if of == group]


def kill_after(seconds, words, options=()):
    """Records, kills the recorder after a time; returns the process group that both were in."""
    with open("errors", "ab") as errors:
        p = start(record_argv(*words, options=["--force", *options]), preexec_fn=os.setpgrp,
                  stdout=subprocess.DEVNULL, stderr=errors)
    time.sleep(seconds)
    expect(p.poll() is None, f"it has ended by itself: {p.returncode}")
    p.kill()
    p.wait(PATIENCE_S)
    return p.pid


def must_have_no_errors():
    with open("errors", encoding="utf-8", errors="replace") as f:
        equal(f.read(), "", "what the program says")


def end_group(group):
    for pid, _ in left_of(group):
        os.kill(pid, signal.SIGKILL)


ENDLESS = (["calls", "100000000"], ["processes", "1000000"], ["threads", "16", "600000"],
           ["family", "5"], ["timer", "600000"], ["vfork", "1000000"])


@case("kill -9 of the recorder at any moment: all of the program ends with it")
def die_too():
    moments = random.Random(8)
    for number in range(18):
        words = ENDLESS[number % len(ENDLESS)]
        group = kill_after(moments.choice((0, 0.01, 0.1, 0.4)) * moments.random(),
                           [TORTURE, *words])
        try:
            wait_until(lambda g=group: not left_of(g), f"{words}: all processes have ended")
        finally:
            end_group(group)
        must_have_no_errors()


@case("the same while a shell runs one program after the other")
def die_too_execs():
    moments = random.Random(9)
    for _ in range(6):
        group = kill_after(moments.random() * 0.5,
                           ["sh", "-c", "while /bin/true; do echo x | cat; done"])
        try:
            wait_until(lambda g=group: not left_of(g), "all processes have ended")
        finally:
            end_group(group)
        must_have_no_errors()


# What ends by itself, later than the recorder, and how much it does then.
NR_CALLS = 20000 if RECORDER == "ptrace" else 80000
ENDING = ((["calls", str(NR_CALLS), "5"], 5, NR_CALLS), (["processes", "3000"], 0, None),
          (["threads", "16", "800"], 0, None), (["timer", "800"], 0, None))


def outlive(moment, words, status, nr_writes, options):
    for file in ("status", "counts"):
        if os.path.exists(file):
            os.unlink(file)
    # The shell is recorded too: it tells how the program has ended when nobody else can.
    group = kill_after(moment, ["sh", "-c", '"$@"; echo $? >status.new; mv status.new status', "sh",
                                TORTURE, *words], ["--on-death=continue", *options])
    try:
        if not left_of(group) and not os.path.exists("status"):
            return False  # killed before the program has begun: then it does not begin
        wait_until(lambda: os.path.exists("status"), f"{words}: it ends; left: {left_of(group)}")
    finally:
        end_group(group)
    with open("status", encoding="utf-8") as f:
        ended = int(f.read())
    if RECORDER != "ptrace" and ended == 128 + signal.SIGKILL:
        return False  # the agent was just being put into it: then it ends with the recorder
    equal(ended, status, f"{words}: exit status")
    if nr_writes:
        equal(counts()["pwrite64"], (nr_writes, nr_writes), "calls made")
    must_have_no_errors()
    return True


@case("--on-death=continue: the program runs on to its own end")
def run_on():
    moments = random.Random(10)
    nr_outlived = 0
    for number in range(8):
        words, status, nr_writes = ENDING[number % len(ENDING)]
        options = ["--calls=%file,pwrite64"] if number % 3 == 2 else []
        if RECORDER != "ptrace":
            options.append("--net=off")
        nr_outlived += outlive(moments.random() * 0.4, words, status, nr_writes, options)
    expect(nr_outlived, "no program had begun")


@case("--on-death=continue is refused where it cannot be had")
def refused():
    status, _, err = run(REPRISE, "record", "-o", "trace", "--recorder=inproc",
                         "--on-death=continue", "true")
    equal(status, 2, "exit status")
    expect(b"--on-death=continue" in err and b"--net=off" in err and err.count(b"\n") == 1,
           f"error {err!r}")
    expect(not os.path.exists("trace"), "a trace was begun")
    # Where the recorder may be chosen, it is one that can.
    equal(run(REPRISE, "record", "-q", "-o", "trace", "--recorder=auto", "--on-death=continue",
              "true")[0], 0, "exit status")
    equal(Trace().meta()["recorder"], "ptrace", "recorder")


@case("--attach and --on-death=stop: the program ends with the recorder")
def attached():
    server = start([TORTURE, "serve", "4"])
    wait_until(lambda: nr_done() > 200, "the program makes calls")
    p = start([REPRISE, "record", "-q", "-o", "trace", "--attach", str(server.pid),
               "--on-death=stop"])
    wait_until(lambda: tracer_of(server.pid) == p.pid, "the recorder attaches")
    p.kill()
    p.wait(PATIENCE_S)
    equal(server.wait(PATIENCE_S), killed_by(signal.SIGKILL), "how the program has ended")


sys.exit(run_cases(sys.argv[4:]))
