#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: attacks.py HOSTILE STILL [PATTERN]...

Programs that attack the recorder through the agent and through the shared memory. They try to make
calls that are not recorded, to have the recorder read or write files for them, and to crash it.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ways import *  # pylint: disable=wildcard-import,wrong-import-position

INSTRUCTIONS = ("ask", "call")


def attack(way, user, *words, options=()):
    """Record an attack; it exits with NO_AGENT if the process has no agent."""
    status, out = run_recorded(way, *words, user=user, options=options)
    expect(status in (0, NO_AGENT), f"status {status} of {words}")
    expect(way != "inproc" or status != NO_AGENT, "the process has no agent")
    expect(way not in WITHOUT_AGENT or status == NO_AGENT, "the process has an agent")
    must_be_sound()
    return out


@each("processes and programs started through the agent's instructions are recorded")
def children(way, user):
    for insn in INSTRUCTIONS:
        prepare()
        attack(way, user, HOSTILE, "children", insn)
        expect("by-parent" in made_names(), "the program did not finish")
        must_have_made(may_confess=False)


@each("prctl, seccomp and ptrace through the agent's instructions are recorded")
def guarded(way, user):
    for insn in INSTRUCTIONS:
        attack(way, user, HOSTILE, "guarded", insn)
        events = [e for e in Trace().events("--call=prctl,seccomp,ptrace") if "4711" in str(e["args"])]
        equal(sorted(e["call"] for e in events), ["prctl", "ptrace", "seccomp"], "recorded")


def evade(way, user, call):
    for insn in INSTRUCTIONS:
        prepare()
        attack(way, user, HOSTILE, "evade", insn, call)
        nr = Trace().nr_of(call)
        if way in WITHOUT_AGENT:
            equal(nr, 3, f"recorded of 3 {call}")
        expect(nr == 3 or Trace().ledger(), f"recorded of 3 {call}: {nr}, and the ledger is empty")


@each("reads through the agent's instructions are recorded or counted in the ledger")
def evade_reads(way, user):
    evade(way, user, "preadv")


@each("writes through the agent's instructions are recorded or counted in the ledger")
def evade_writes(way, user):
    evade(way, user, "pwritev")


@each("an audit counts all calls through the agent's instructions", ways=("inproc", "auto"), users=("other", ))
def audit_counts(way, user):
    for insn in INSTRUCTIONS:
        prepare()
        attack(way, user, HOSTILE, "evade", insn, "readlinkat", options=["--net=audit"])
        if Trace().meta()["net_compared"] == "0":
            raise Skipped("the kernel does not count calls here")
        unseen = [e["count"] for e in Trace().stat()["ledger"] if e["kind"] == "CALL_UNSEEN"]
        equal(Trace().nr_of("readlinkat") + sum(unseen), 3, f"recorded or in the ledger of 3 readlinkat: {unseen}")


def still():
    if not os.path.exists(STILL):
        raise Skipped("there is no static C library")
    return STILL


# All processes of a recording have the agent at the same address, so one process finds it for
# another. "$1" is HOSTILE, "$2" STILL. Any offsets will do if there is no agent.
AFTER_PROBE = 'found=$("$1" probe) || found="70000000 262 114"; set -- "$@" $found; '
# After a few runs without calls the recorder no longer gives STILL the agent at its start.
SMALL_RUNS = '"$2"; ' * 7


@each("calls from a page that the program maps at the agent's address are recorded")
def own_page(way, user):
    script = AFTER_PROBE + SMALL_RUNS + '"$2" own "$3" "$4" "$5"'
    run_recorded(way, "sh", "-c", script, "sh", HOSTILE, still(), user=user)
    must_be_sound()
    equal(made_names(), ["own-1", "own-2"], "made")
    must_have_made(may_confess=way == "inproc")


@each("calls from pages that cover all possible addresses of the agent are recorded",
      ways=("auto", "untrusted"), users=("user", ))
def guess(way, user):
    status, out = run_recorded("inproc", HOSTILE, "probe", user=user)
    equal(status, 0, "exit status of the probe")
    prepare()
    run_recorded(way, still(), "guess", *out.split()[1:], user=user, options=["--data=none", "--force"])
    must_be_sound()
    equal(Trace().nr_of("pwrite64"), os.stat("made/guessed").st_size, "writes in the trace, and bytes in the file")


@each("a forged record of an open does not reveal a file")
def forge(way, user):
    attack(way, user, HOSTILE, "forge", os.path.abspath("."), "secret")
    if way in WITHOUT_AGENT:
        path = os.path.abspath("secret")
        equal([e for e in Trace().events("--call=openat") if path in str(e)], [], "opens of the file")


@each("a forged execve does not succeed in the trace, and hides nothing")
def answer(way, user):
    calling, after = "2", "3"
    for phase, result in (calling, "-2"), (calling, "0"), (after, "0"), (after, "-13"), (after, "-2"):
        prepare()
        attack(way, user, HOSTILE, "answer", phase, result)
        forged = [e["errno"] for e in Trace().events("--call=execve") if e["args"]["path"] == "/forged"]
        expect(forged in ([], ["ENOENT"]) and (result == "-2" or not forged), f"execves in phase {phase}: {forged}")
        if "hidden" in made_names():
            expect(Trace().ledger(), "writes are not recorded, and the ledger is empty")
            must_have_made(may_confess=True)


@each("data that changes in the ring is stored under its own hash")
def poison(way, user):
    attack(way, user, HOSTILE, "poison")


@each("a record whose size changes while it is read does not crash the recorder")
def sizes(way, user):
    attack(way, user, HOSTILE, "sizes", "1000")


@each("the recorder's memory cannot be truncated")
def truncate(way, user):
    attack(way, user, HOSTILE, "truncate")
    must_have_made(way not in WITHOUT_AGENT)


@each("a FIFO behind a descriptor that the recorder opens does not block it")
def fifo(way, user):
    attack(way, user, HOSTILE, "fifo", "300")


def adopt(way, user, mode):
    # The attack is a race against an agent that enters late: try it a few times.
    tries = "1 2 3 4 5" if way == "auto" and user == "other" else "1"
    script = AFTER_PROBE + f'for i in {tries}; do {SMALL_RUNS} "$2" {mode} ../victim "$3" "$4"; done'
    run_recorded(way, "sh", "-c", script, "sh", HOSTILE, still(), user=user)
    must_be_sound()


@each("memory that a program creates for the agent cannot be replaced by another file")
def adopt_file(way, user):
    adopt(way, user, "adopt")


@each("memory that a program creates for the agent cannot be truncated")
def adopt_cut(way, user):
    adopt(way, user, "cut")


@case("--untrusted allows no other recorder, and clone3 fails there as on a kernel without it")
def untrusted_alone():
    for option in "--recorder=auto", "--recorder=inproc", "--net=off":
        status, _, err = run(REPRISE, "record", "--untrusted", option, "-o", "none", "--", "true")
        equal((status, os.path.exists("none")), (2, False), f"status with {option}, a trace: {err.decode()}")
    # A C library with clone3 makes threads by it, and by clone when it is missing.
    status, _, err = run(REPRISE, "record", "-q", "--untrusted", "-o", "trace", "--", "/usr/bin/python3", "-c",
                         "import threading; t = threading.Thread(target=print); t.start(); t.join()")
    equal(status, 0, f"status: {err.decode()}")
    made = Trace().events("--call=clone3,clone")
    expect(all(e["call"] == "clone" or e["errno"] == "ENOSYS" for e in made), f"calls: {made}")
    expect(any(e["call"] == "clone" and not e["errno"] for e in made), "no thread was made")


sys.exit(run_cases(sys.argv[3:]))
