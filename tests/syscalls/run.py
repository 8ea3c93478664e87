#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record each test program with each recorder and compare what was recorded with
what the program says must be.

A program writes its expectations (lib.h) to a file of its own. Here the trace is
printed in its exact form (doc/trace-text.md), and the events of each thread are
laid against the expectations of that thread. Speaks TAP, one case per program and
recorder; ends with the rows of the table that were met by a checked expectation.
"""

import argparse
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import audit  # pylint: disable=wrong-import-position
from plain_signals import plain_signals  # pylint: disable=wrong-import-position

CLOCKS_DIFFER_NS = 1000000


class Way:
    """A way to record: options, and what follows from them for what must be in the trace."""

    def __init__(self, *options, classes=(), data=True, attach=False, after=None, unseen=()):
        self.options = list(options)
        self.unseen = set(unseen)  # calls from places that cannot be changed, if there are any: not looked at
        self.after = after  # so many calls a process gets the agent; None: when the recorder likes
        self.attach = attach  # to the program, which waits for it
        self.classes = classes  # of calls that are left out: not looked for, and must not be there
        self.data = data  # or of the bytes of buffers only how many there were
        self.left_out = set()  # the names of these calls, when the table is known


# With anything left out a seccomp filter chooses the calls, which so stop in another way. No
# program makes calls of macOS: then all calls are chosen.
RECORDERS = {
    "ptrace": Way("--recorder=ptrace"),
    "ptrace-filter": Way("--recorder=ptrace", "--contents=0", "--exclude=mac_*"),
    "ptrace-some": Way("--recorder=ptrace", "--contents=0", classes=["data", "lock", "xattr", "net", "pipe", "signal", "map"]),
    "ptrace-no-data": Way("--recorder=ptrace", "--data=none", data=False),
    # The log is in a map of a file: the agent is to take all calls that it would take without it.
    "inproc": Way("--recorder=inproc", "--net=audit", "--stores=off"),
    "inproc-off": Way("--recorder=inproc", "--net=off", "--stores=off", unseen=["rt_sigreturn", "exit_group", "exit"]),
    "auto": Way(),
    # The agent enters at every call of the loader and of the program's beginning, in one run or another: an
    # audit tells whether all calls were seen, before it and after.
    "auto-0": Way("--recorder=auto", "--net=audit", "--stores=off", after=0),
    "auto-1": Way("--recorder=auto", "--net=audit", "--stores=off", after=1),
    "auto-5": Way("--recorder=auto", "--net=audit", "--stores=off", after=5),
    "auto-25": Way("--recorder=auto", "--net=audit", "--stores=off", after=25),
    "auto-40": Way("--recorder=auto", "--net=audit", "--stores=off", after=40),
    # Only when a second thread would make it too late.
    "auto-never": Way("--recorder=auto", "--net=audit", "--stores=off", after=1 << 60),
    "ptrace-attach": Way("--contents=0", attach=True),
}
# Programs about attaching, which have nothing to say otherwise.
ATTACHED = ("attached",)
# Buffers of these classes hold names and are always kept.
NAME_CLASSES = ("name", "cwd")
EXPECT_BYTES = 64 << 20
CASE_SECONDS = 120
MARK_BEGIN, MARK_END = b"/t-begin", b"/t-end"
OWN_STATX_BIT = 0x40000000
# Entries of the ledger that do not make a trace incomplete (src/trace/check.c).
HARMLESS = {"DATA_TRUNCATED", "TREE_INCOMPLETE", "FILTERED"}


# Values: a struct is a dict, a list a list, a string bytes (or Data), all else text.


class Data:
    """Bytes with more said about them: '"abc"/1000', '"ab"*500'."""

    def __init__(self, kept, suffix):
        self.kept, self.suffix = kept, suffix

    def __eq__(self, other):
        return isinstance(other, Data) and (self.kept, self.suffix) == (other.kept, other.suffix)

    def __repr__(self):
        return repr(self.kept) + self.suffix


class BadText(Exception):
    pass


QUOTED = re.compile(r'"((?:[^"\\]+|\\.)*)"')
ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|.)", re.S)
ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
SCALAR = re.compile(r"~\[[^\]]*\]|[^,\]})]*")
NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def unescape(text):
    def one(match):
        c = match[1]
        return bytes([int(c[1:], 16)]) if c[:1] == b"x" and len(c) == 3 else ESCAPES.get(c, c)

    raw = text.encode("latin-1")
    return ESCAPE.sub(one, raw) if b"\\" in raw else raw


class Scanner:
    def __init__(self, text, at=0):
        self.text, self.at = text, at

    def peek(self, word):
        return self.text.startswith(word, self.at)

    def take(self, word):
        if not self.peek(word):
            raise BadText(f"column {self.at}: {word!r} expected: {self.text[self.at:self.at + 40]!r}")
        self.at += len(word)

    def match(self, pattern):
        m = pattern.match(self.text, self.at)
        if not m:
            raise BadText(f"column {self.at}: {self.text[self.at:self.at + 40]!r}")
        self.at = m.end()
        return m

    def value(self):
        if self.peek("{"):
            self.take("{")
            return self.named("}")
        if self.peek("["):
            self.take("[")
            return self.items()
        if self.peek('"'):
            data = unescape(self.match(QUOTED)[1])
            suffix = self.match(SCALAR)[0]
            if suffix.startswith("*"):
                times, slash, total = suffix[1:].partition("/")
                data, suffix = data * int(times), slash + total
            return Data(data, suffix) if suffix else data
        return self.match(SCALAR)[0]

    def named(self, end):
        found = {}
        while not self.peek(end):
            if found:
                self.take(", ")
            name = self.match(NAME)[0]
            self.take("=")
            found[name] = self.value()
        self.take(end)
        return found

    def items(self):
        found = []
        while not self.peek("]"):
            if found:
                self.take(", ")
            found.append(self.value())
        self.take("]")
        return found


DETAILS = re.compile(r"(.*?)(?: \{(.*)\})?$", re.S)


class Event:
    """NAME(ARGUMENTS) = RESULT {DETAILS}, of a trace or of an expectation."""

    def __init__(self, line, at=0):
        s = Scanner(line, at)
        self.text = line[at:]
        self.name = s.match(NAME)[0]
        s.take("(")
        self.args = s.named(")")
        rest = DETAILS.match(line, s.at)
        self.outcome = rest[1]
        self.details = Scanner("{" + rest[2] + "}").value() if rest[2] is not None else {}
        self.thread, self.seq, self.enter, self.leave = "", 0, 0, 0
        self.met_by = None  # of an expectation: the event of the trace

    def is_mark(self, path):
        return self.name == "faccessat" and self.args.get("path") == path

    def is_own(self):
        """What the library does: stores of its log, a call made to learn what an expectation needs."""
        if self.name == "map_store":
            return True
        if self.name != "statx":
            return False
        return any(is_number(w) and int(w, 0) & OWN_STATX_BIT for w in self.args["mask"].split("|"))

    def is_noise(self):
        """What libc may do for itself at any time."""
        return self.name == "brk" or (
            self.name == "mmap" and "MAP_ANONYMOUS" in self.args.get("flags", "") and self.args.get("fd") == "-1"
        )


def is_number(word):
    return word[:1].isdigit()


# The table of calls.


class Table:
    """The calls that this machine has and `reprise` can record."""

    def __init__(self, reprise):
        self.reprise = reprise
        out = subprocess.run([reprise, "calls", "--json"], stdout=subprocess.PIPE, check=True).stdout
        self.rows = [row for row in json.loads(out) if row["record"] != "imported"]
        self.classes = {row["name"]: row["class"] for row in self.rows}
        self.kinds = {(row["name"], a["name"]): a["kind"] for row in self.rows for a in row["args"]}

    def of_classes(self, classes):
        return {name for name, found in self.classes.items() if found in classes}

    def may_be(self, name, arg, value):
        """Can an argument have this value, when no data are kept?"""
        if self.kinds.get((name, arg)) == "BUF" and self.classes[name] not in NAME_CLASSES:
            return isinstance(value, str) or value == b""
        return not isinstance(value, str) or not value.startswith("?/")

    def sum_up(self, cases, scratch):
        met = set().union(*(case.met for case in cases))
        missing = [row["name"] for row in self.rows if row["name"] not in met]
        path = os.path.join(scratch, "rows-not-exercised")
        with open(path, "w") as f:
            f.writelines(name + "\n" for name in missing)
        print(f"# rows exercised: {len(self.rows) - len(missing)} of {len(self.rows)}")
        if missing:
            print(f"# the others: {path}")


# A trace.


class Trace:
    EVENT = re.compile(r"(\d+/(\d+)(?:@\d+)?) #(\d+) (\d+)([+-]\d+) ")

    def __init__(self, text, table, has_data):
        self.table, self.has_data = table, has_data
        self.blobs, self.records, self.streams = {}, [], {}
        self.by_tid = {}
        self.bound, self.binding = {}, {}  # names of values, of all events that were met and of the last
        for line in text.split("\n"):
            if line[:1].isdigit():
                self.add_event(line)
            elif line.startswith("blob "):
                self.blobs[line[5:37]] = line[38:]
            elif line.startswith("stream "):
                thread, nr = line[7:].split()
                self.streams[thread] = int(nr)
            elif line.startswith("# lost"):
                self.records.append(line)
            elif line and line[0] != "#":
                self.records.append(line)

    def add_event(self, line):
        m = self.EVENT.match(line)
        if not m:
            raise BadText(line[:200])
        ev = Event(line, m.end())
        ev.thread, ev.seq, ev.enter = m[1], int(m[3]), int(m[4])
        ev.leave = ev.enter + int(m[5])
        self.by_tid.setdefault(int(m[2]), []).append(ev)

    def data(self, value):
        """A reference with the bytes that it stands for; what is not all there stays text."""
        if not isinstance(value, str) or value[:1] != "@" or "%" in value:
            return value
        refs, _, rest = value[1:].partition("/")
        blobs = []
        for name in refs.split("+"):
            if name not in self.blobs:
                return f"{value} (blob {name} is not there)"
            if isinstance(self.blobs[name], str):
                self.blobs[name] = Scanner(self.blobs[name]).value()
            blobs.append(self.blobs[name])
        kept = b"".join(blobs)
        total, _, part = rest.partition("/")
        if len(kept) != int(part or total):
            return f"{value} (the blobs have {len(kept)} bytes)"
        return Data(kept, "/" + total) if part else kept

    def names(self):
        return {ev.name for events in self.by_tid.values() for ev in events}

    def losses(self):
        """The kinds of the ledger's entries."""
        return {Event(line).args["kind"] for line in self.records if line.startswith("loss(")}

    def problems(self, losses):
        """What must hold of any trace of these programs."""
        allowed = losses | {"TREE_INCOMPLETE", "FILTERED"}
        for kind in losses - self.losses():
            yield f"the ledger does not say: {kind}"
        for line in self.records:
            if line.startswith("# lost") or (line.startswith("loss(") and Event(line).args["kind"] not in allowed):
                yield f"something was lost: {line}"
        for tid, events in self.by_tid.items():
            yield from self.thread_problems(events)
        if not any("gap_cpu" in ev.details for events in self.by_tid.values() for ev in events):
            yield "no processor time between calls is known"
        seen = {}
        for events in self.by_tid.values():
            for ev in events:
                seen[ev.thread] = seen.get(ev.thread, 0) + 1
        for thread, nr in self.streams.items():
            if seen.get(thread, 0) != nr:
                yield f"stream {thread} says {nr} events, but has {seen.get(thread, 0)}"

    @staticmethod
    def thread_problems(events):
        first, last, before, cpu = {}, {}, {}, {}
        for ev in events:
            first.setdefault(ev.thread, ev)
            last[ev.thread] = ev
            b = before.get(ev.thread)
            if ev.leave < ev.enter:
                yield f"{ev.thread} #{ev.seq} ends before it begins: {ev.text[:100]}"
            if b and (ev.enter < b.leave or ev.seq <= b.seq):
                yield f"{ev.thread} #{ev.seq} begins before #{b.seq} ended: {b.text[:100]} / {ev.text[:100]}"
            used, gap = int(ev.details.get("cpu", 0)), int(ev.details.get("gap_cpu", 0))
            if used and b and "cpu" in b.details and gap > max(1, used - cpu[ev.thread]):
                yield f"{ev.thread} #{ev.seq}: {gap} ns of processor time before it, {used - cpu[ev.thread]} with it: {ev.text[:100]}"
            held, held_before, inside = (int(ev.details.get(name, 0)) for name in ("held", "held_before", "held_inside"))
            if held_before > held or inside > ev.leave - ev.enter:
                yield f"{ev.thread} #{ev.seq}: held for longer than there was time: {ev.text[:100]}"
            # Times of the agent are of another clock.
            if b and held_before > ev.enter - b.leave + CLOCKS_DIFFER_NS:
                yield f"{ev.thread} #{ev.seq}: held for {held_before} ns of {ev.enter - b.leave} before it: {ev.text[:100]}"
            # Its end is a stop of its own, and what follows it until the thread goes on is another.
            if ev.name == "exec" and b.name == "execve" and not (held_before and int(b.details.get("held_inside", 0))):
                yield f"{ev.thread} #{ev.seq}: not held: {b.text[:100]} / {ev.text[:100]}"
            before[ev.thread] = ev
            if used and used < cpu.get(ev.thread, 0):
                yield f"{ev.thread} #{ev.seq}: processor time goes back: {ev.text[:100]}"
            cpu[ev.thread] = used or cpu.get(ev.thread, 0)
        for thread, ev in first.items():
            if ev.name != "thread_start":
                yield f"{thread} begins with {ev.text[:100]}"
        for thread, ev in last.items():
            if ev.name not in ("thread_exit", "execve", "execveat"):
                yield f"{thread} ends with {ev.text[:100]}"


# Comparing.


def same_scalar(want, got):
    if want == got:
        return True
    return "|" in want and sorted(want.split("|")) == sorted(got.split("|"))


def same_named(trace, name, want, got):
    """What is not there is not known: "?" asks for just that."""
    return same(trace, want, got[name]) if name in got else want in ("?", "*")


def same(trace, want, got):
    got = trace.data(got)
    if want == "*":
        return True
    if isinstance(want, str) and want.startswith("$"):
        return trace.bound.get(want, got) == trace.binding.setdefault(want, got) == got
    if isinstance(want, dict):
        if not isinstance(got, dict):
            return False
        return all(same_named(trace, k, v, got) for k, v in want.items())
    if isinstance(want, list):
        if not isinstance(got, list):
            return False
        if want[-1:] == ["..."]:
            got = got[: len(want) - 1]
            want = want[:-1]
        return len(want) == len(got) and all(same(trace, w, g) for w, g in zip(want, got))
    if not trace.has_data and isinstance(got, str) and got.startswith("?/"):
        return same_length(want, got[1:])
    if isinstance(want, str) and isinstance(got, str):
        return same_scalar(want, got)
    return want == got


def same_length(want, length):
    """Data of which only the length is there. Whether its memory was, nobody has looked."""
    if isinstance(want, bytes):
        return want and length == f"/{len(want)}"
    return want.suffix == length if isinstance(want, Data) else want.startswith("&")


# Details that say something about times; all others are compared.
RELATIONS = ("flags", "least_ns", "label", "after")


def same_event(trace, want, got):
    trace.binding = {}
    if want.name != got.name or not same(trace, want.args, got.args):
        return False
    if not trace.has_data and any(not trace.table.may_be(got.name, k, v) for k, v in got.args.items()):
        return False
    if not same_scalar(want.outcome, got.outcome) and not want.outcome.endswith("= *"):
        return False
    if got.details.get("flags", "") != want.details.get("flags", "") and want.details.get("flags") != "*":
        return False
    if got.leave - got.enter < int(want.details.get("least_ns", 0)):
        return False
    return same(trace, {k: v for k, v in want.details.items() if k not in RELATIONS}, got.details)


def difference(trace, want, got):
    """In words, where an event that should be this one differs."""
    if want.name != got.name:
        return "another call"
    for k, v in want.args.items():
        if not same_named(trace, k, v, got.args):
            shown = trace.data(got.args[k]) if k in got.args else "missing"
            return f"{k}: expected {str(v)[:300]}, got {str(shown)[:300]}"
    for k, v in got.args.items():
        if not trace.has_data and not trace.table.may_be(got.name, k, v):
            return f"{k}: of data the bytes are there, or of something else they are not"
    if not same_scalar(want.outcome, got.outcome):
        return f"outcome: expected{want.outcome}, got{got.outcome}"
    return f"details: expected {want.details}, got {got.details} and {got.leave - got.enter} ns"


def compare_thread(trace, tid, wanted, events, strict, met):
    """Yields what differs; met gets the names of rows."""
    always = strict
    at = 0
    for ev in events:
        if ev.is_own():
            continue
        want = wanted[at] if at < len(wanted) else None
        if want and same_event(trace, want, ev):
            want.met_by = ev
            trace.bound.update(trace.binding)
            at += 1
            if ev.is_mark(MARK_BEGIN):
                strict = True
            elif ev.is_mark(MARK_END):
                strict = always
            else:
                met.add(ev.name)
            continue
        if not strict or ev.is_noise():
            continue
        yield f"thread {tid}, event #{ev.seq}: " + (difference(trace, want, ev) if want else "nothing was expected")
        yield f"  expected: {want.text[:1500] if want else 'nothing'}"
        yield f"  recorded: {ev.text[:1500]}"
        # Go on where both agree again, so that one error does not hide the next.
        later = [i for i in range(at, len(wanted)) if same_event(trace, wanted[i], ev)]
        if later:
            for missing in wanted[at : later[0]]:
                yield f"  not recorded: {missing.text[:500]}"
            at = later[0] + 1
        elif want and want.name == ev.name:
            at += 1
    for missing in wanted[at:]:
        yield f"thread {tid}: not recorded: {missing.text[:1500]}"


def compare_times(wanted):
    """What came of something did not end before that began."""
    labels = {w.details["label"]: w.met_by for w in wanted if "label" in w.details}
    for w in wanted:
        cause = labels.get(w.details.get("after"))
        if cause and w.met_by and w.met_by.leave < cause.enter:
            yield f"#{w.met_by.seq} ended at {w.met_by.leave}, before #{cause.seq} began at {cause.enter}"
            yield f"  {w.met_by.text[:200]}"
            yield f"  {cause.text[:200]}"


class Expectations:
    def __init__(self, path):
        with open(path, "rb") as f:
            (used,) = struct.unpack("<Q", f.read(8))
            text = f.read(used).decode("latin-1")
        self.by_tid, self.strict, self.losses, self.skipped = {}, set(), set(), []
        for line in text.split("\n")[:-1]:
            tid, _, rest = line.partition(" ")
            if tid != "0":
                self.by_tid.setdefault(int(tid), []).append(self.parse(rest))
            elif rest.startswith("strict "):
                self.strict.add(int(rest[7:]))
            elif rest.startswith("loses "):
                self.losses.add(rest[6:])
            else:
                self.skipped.append(rest[5:])

    @staticmethod
    def parse(line):
        try:
            return Event(line)
        except BadText as e:
            raise BadText(f"expectation {line[:300]!r}: {e}") from None


# Running.


def status_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def nr_sleeps(pid):
    """How often the program gave up the processor, if it sleeps now."""
    status = status_of(pid)
    return int(status["voluntary_ctxt_switches"]) if status["State"].startswith("S") else 0


def is_recorded(pid, nr_before):
    """The recorder has stopped it, and let it go to sleep again: from now on calls are seen."""
    return status_of(pid)["TracerPid"] != "0" and nr_sleeps(pid) >= nr_before + 2


class Case:
    def __init__(self, program, recorder, options, table):
        self.program, self.recorder, self.table = program, recorder, table
        self.way = RECORDERS[recorder]
        self.name = os.path.basename(program)
        self.dir = os.path.join(options.scratch, f"{self.name}.{recorder}")
        self.problems, self.skipped, self.met, self.nr_expected = [], [], set(), 0

    def file(self, name):
        return os.path.join(self.dir, name)

    def run(self):
        try:
            self.run_steps()
        except BadText as e:
            self.problems.append(f"not understood: {e}")
        except subprocess.TimeoutExpired as e:
            self.problems.append(f"not done after {CASE_SECONDS} s: {e.cmd[1]}")
        return self

    def run_steps(self):
        os.makedirs(self.file("cwd"))
        with open(self.file("expect"), "wb") as f:
            f.truncate(EXPECT_BYTES)
        record = ["record", "--quiet", "-o", self.file("trace"), *self.way.options]
        if self.way.left_out:
            record.append("--exclude=" + ",".join("%" + name for name in self.way.classes))
        if self.way.attach:
            self.record_attached(record)
        else:
            self.record_started(record)
        if os.path.exists(self.file("trace")):
            self.check_trace()
        elif not self.problems:
            self.problems.append("there is no trace")

    def record_started(self, words):
        status = self.command([*words, "--", self.program], "record", cwd=self.file("cwd"), env=self.environment())
        if status != 0:
            self.problems.append(f"the program, or its recording, ended with {status}")
            self.problems += self.tail("record.err")

    def record_attached(self, words):
        with open(self.file("program.err"), "wb") as err:
            program = subprocess.Popen(
                [self.program],
                cwd=self.file("cwd"),
                env={**self.environment(), "T_WAIT": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=err,
            )
        nr_before = 0
        while program.poll() is None and not nr_before:
            nr_before = nr_sleeps(program.pid)
        with ThreadPoolExecutor(1) as one:
            recording = one.submit(self.command, [*words, f"--attach={program.pid}"], "record")
            while not recording.done() and not is_recorded(program.pid, nr_before):
                time.sleep(0.01)
            program.stdin.close()
            ended = [program.wait(), recording.result()]
        if ended != [0, 0]:
            self.problems.append(f"the program ended with {ended[0]}, its recording with {ended[1]}")
            self.problems += self.tail("program.err") + self.tail("record.err")

    def check_trace(self):
        if self.command(["show", "--exact", self.file("trace")], "show") != 0:
            self.problems += ["the trace cannot be shown"] + self.tail("show.err")
        with open(self.file("show.out"), encoding="latin-1") as f:
            trace = Trace(f.read(), self.table, self.way.data)
        wanted = Expectations(self.file("expect"))
        if self.command(["check", self.file("trace")], "check") != (1 if trace.losses() - HARMLESS else 0):
            self.problems += ["the check of the trace failed"] + self.tail("check.out") + self.tail("check.err")
        self.problems += audit.differences(self.table.reprise, self.file("trace"))
        self.skipped = wanted.skipped
        self.problems += trace.problems(wanted.losses | ({"CALL_UNSEEN"} if self.way.unseen else set()))
        self.problems += [f"left out, but there: {name}" for name in trace.names() & self.way.left_out]
        met = []
        for tid in sorted(set(wanted.by_tid) | wanted.strict):
            skipped = self.way.left_out | self.way.unseen
            lines = [ev for ev in wanted.by_tid.get(tid, []) if ev.name not in skipped]
            events = [ev for ev in trace.by_tid.get(tid, []) if ev.name not in self.way.unseen]
            self.nr_expected += len(lines)
            self.problems += compare_thread(trace, tid, lines, events, tid in wanted.strict, self.met)
            met += lines
        self.problems += compare_times(met)
        if len(set(trace.bound.values())) < len(trace.bound):
            self.problems.append(f"two names for one value: {trace.bound}")

    def command(self, words, name, **kwargs):
        with open(self.file(name + ".out"), "wb") as out, open(self.file(name + ".err"), "wb") as err:
            p = subprocess.Popen(
                [self.table.reprise, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, **kwargs
            )
            try:
                return p.wait(CASE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
                raise

    def environment(self):
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "T_EXPECT": self.file("expect")}
        if self.way.after is not None:
            env["REPRISE_AGENT_AFTER"] = str(self.way.after)
        return env

    def tail(self, name):
        with open(self.file(name), errors="replace") as f:
            return f.read().splitlines()[-10:]

    def report(self, nr, most):
        name = f"{self.name} {self.recorder}"
        if self.problems:
            print(f"not ok {nr} - {name}")
            for line in self.problems[:most]:
                print("# " + line)
            if len(self.problems) > most:
                print(f"# and {len(self.problems) - most} lines more")
        elif not self.nr_expected:
            print(f"ok {nr} - {name} # SKIP " + ("; ".join(self.skipped) or "the program expects nothing"))
        else:
            print(f"ok {nr} - {name}")
            for reason in self.skipped:
                print(f"# {name}: left out: {reason}")


def own_directory(path):
    """An empty directory, there if it can be."""
    try:
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path, exist_ok=True)
        return path
    except OSError:
        return tempfile.mkdtemp(prefix="reprise-syscalls-")


def has_agent(reprise):
    """Whether programs can be recorded from within on this machine; says why not."""
    with tempfile.TemporaryDirectory(prefix="reprise-syscalls-") as scratch:
        command = [reprise, "record", "-q", "--recorder=inproc", "-o", scratch + "/t.trace", "--", "/bin/true"]
        p = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=CASE_SECONDS)
    if p.returncode == 2:
        print("# inproc: left out: " + p.stderr.strip())
    return p.returncode != 2


def parse_options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--reprise", default=os.environ.get("REPRISE", "reprise"))
    p.add_argument("--scratch", required=True, help="is emptied")
    p.add_argument("--recorder", action="append", choices=RECORDERS)
    p.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1))
    p.add_argument("--most", type=int, default=40, help="lines about one case")
    p.add_argument("programs", nargs="+")
    return p.parse_args()


def main():
    plain_signals()
    options = parse_options()
    options.scratch = os.path.abspath(own_directory(options.scratch))
    table = Table(os.path.abspath(options.reprise))
    for way in RECORDERS.values():
        way.left_out = table.of_classes(way.classes)
    ways = [name for name in options.recorder or RECORDERS if name != "inproc" or has_agent(table.reprise)]
    cases = [
        Case(os.path.abspath(program), recorder, options, table)
        for program in options.programs
        for recorder in ways
        if RECORDERS[recorder].attach or os.path.basename(program) not in ATTACHED
    ]
    print(f"1..{len(cases)}")
    with ThreadPoolExecutor(options.jobs) as pool:
        for nr, case in enumerate(pool.map(Case.run, cases), 1):
            case.report(nr, options.most)
            sys.stdout.flush()
    table.sum_up(cases, options.scratch)
    return 1 if any(case.problems for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
