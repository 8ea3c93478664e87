# SPDX-License-Identifier: MIT
"""For tests of the recorder: cases that speak TAP, programs that count their calls, traces.

A case is a function with the decorator @case("what must hold"). It runs in an
empty directory of its own, and passes by returning, fails by Failed (or any
exception), and is skipped by Skipped.
"""

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
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import audit  # pylint: disable=wrong-import-position
from plain_signals import plain_signals  # pylint: disable=wrong-import-position

REPRISE = os.environ.get("REPRISE", "reprise")
# How programs are recorded that are started by us.
RECORDER = os.environ.get("RECORDER", "ptrace")
# With the agent always in them, the net is audited; else it is as users have it.
NET = "audit" if RECORDER == "inproc" else "on"
SANITIZED = os.environ.get("SANITIZE", "none") != "none"
# Sanitizers and a loaded machine: waits are for what must come, so they may be long.
PATIENCE_S = 60
COUNT = struct.Struct("16sQQ")
# Programs count in a map of a file. With stores followed, the agent would leave calls to the tracer that are its own
# otherwise; the ledger has the map then.
STORES = [] if RECORDER == "ptrace" else ["--stores=off"]
STORES_NOTE = "stored through a shared map"

cases = []


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def case(name):
    def add(function):
        cases.append((name, function))
        return function
    return add


def needs_ptrace(why):
    """The rest of the case does not hold when an agent is in the program."""
    if RECORDER != "ptrace":
        raise Skipped(why)


def expect(condition, words):
    if not condition:
        raise Failed(words)


def equal(got, wanted, what):
    expect(got == wanted, f"{what}: got {got!r}, not {wanted!r}")


def run_cases(patterns):
    """Runs the cases whose names have one of these in them; returns the exit status."""
    wanted = [c for c in cases if not patterns or any(p in c[0] for p in patterns)]
    if not os.access(REPRISE, os.X_OK):
        print(f"Bail out! $REPRISE is {REPRISE}, which cannot be run")
        return 1
    plain_signals()
    # What a program prints must not get between the lines of the results.
    sys.stdout.reconfigure(line_buffering=True)
    print(f"1..{len(wanted)}")
    failed = 0
    for number, (name, function) in enumerate(wanted, 1):
        begin = time.monotonic()
        scratch = tempfile.mkdtemp(prefix="torture.")
        os.chmod(scratch, 0o777)
        os.chdir(scratch)
        try:
            function()
            print(f"ok {number} - {name}\n# {time.monotonic() - begin:.1f} s")
        except Skipped as why:
            print(f"ok {number} - {name} # SKIP {why}")
        except Exception as why:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {name}")
            text = str(why) if isinstance(why, Failed) else traceback.format_exc()
            print("\n".join("# " + line for line in text.split("\n")))
        finally:
            end_started()
            os.chdir("/")
            shutil.rmtree(scratch, ignore_errors=True)
    return 1 if failed else 0


# Processes.

started = []


def start(argv, **options):
    """A process in the background; it is killed at the end of the case if it still runs."""
    env = dict(os.environ, TORTURE_COUNTS=os.path.abspath("counts"))
    env.update(options.pop("env", {}))
    p = subprocess.Popen(argv, env=env, **options)
    started.append(p)
    return p


def end_started():
    while started:
        p = started.pop()
        if p.poll() is None:
            p.kill()
        try:
            p.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            print(f"# process {p.pid} cannot be killed")
        for stream in (p.stdin, p.stdout, p.stderr):
            if stream:
                stream.close()


def finish(p, seconds=PATIENCE_S):
    """(status, stdout, stderr) of a started process; the status is negative for a signal."""
    try:
        out, err = p.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(p.args)}\nhas not ended after {seconds} s\n"
                     + describe(p.pid)) from None
    return p.returncode, out, err


def describe(pid):
    """The states of a process and of what it started, for a test that hangs."""
    text = subprocess.run(["ps", "-eLo", "ppid,pid,tid,stat,wchan:20,args"], check=False,
                          stdout=subprocess.PIPE, text=True).stdout.split("\n")
    family, lines = {pid}, []
    for _ in range(8):
        for line in text[1:]:
            words = line.split()
            if len(words) > 2 and int(words[0]) in family:
                family.add(int(words[1]))
    for line in text[1:]:
        words = line.split()
        if len(words) > 2 and int(words[1]) in family:
            lines.append(line)
    return "\n".join(lines[:40])


def run(*argv, **options):
    p = start(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    return finish(p)


def wait_until(condition, what, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, f"{what}: not after {seconds} s")
        time.sleep(0.01)


def is_alive(pid):
    """Whether there is a process of this number that is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0]


def wait_for_calls(more):
    """Until the program has made so many more calls."""
    goal = nr_done() + more
    wait_until(lambda: nr_done() >= goal, f"the program makes {more} more calls")


def tracer_of(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return int(next(line for line in f if line.startswith("TracerPid:")).split()[1])
    except OSError:
        return 0


# Counts.

def counts(file="counts"):
    """Of each counted call (done, begun)."""
    try:
        with open(file, "rb") as f:
            data = f.read()
    except FileNotFoundError:
        return {}
    return {name.rstrip(b"\0").decode(): (done, begun)
            for name, begun, done in COUNT.iter_unpack(data) if name[0]}


def nr_done():
    return sum(done for done, _ in counts().values())


# Traces.

def record_argv(*words, data="all", options=(), trace="trace"):
    return [REPRISE, "record", "-q", "-o", os.path.abspath(trace), "--data=" + data,
            "--recorder=" + RECORDER, "--net=" + NET, *STORES, *options, "--", *words]


def record(*words, data="all", options=(), status=0, **more):
    """Records a program that must end with this status; returns (stdout, stderr)."""
    p = start(record_argv(*words, data=data, options=options), stdout=subprocess.PIPE,
              stderr=subprocess.PIPE, **more)
    got, out, err = finish(p)
    if got == 77 and status != 77:
        raise Skipped("not allowed here")
    equal(got, status, "exit status\n" + err.decode(errors="replace"))
    return out, err


# The memory of a program that was killed in a call may have been gone before it could be read.
KILLED = ("DATA_TRUNCATED",)


class Trace:
    """What the reading commands say of a trace."""

    def __init__(self, file="trace"):
        self.file = file

    def check(self):
        status, out, err = run(REPRISE, "check", "--json", self.file)
        expect(out, f"check says nothing: {err.decode()}")
        return status, json.loads(out)

    def stat(self):
        status, out, err = run(REPRISE, "stat", "--json", self.file)
        equal(status, 0, f"reprise stat: {err.decode()}")
        return json.loads(out)

    def events(self, *options):
        status, out, err = run(REPRISE, "show", "--json", *options, self.file)
        equal(status, 0, f"reprise show: {err.decode()}")
        return [json.loads(line) for line in out.splitlines()]

    def meta(self):
        return audit.metadata(REPRISE, self.file)

    def nr_of(self, name):
        return self.stat()["calls"].get(name, {}).get("count", 0)

    def ledger(self):
        """The entries of the ledger, as text."""
        status, out, err = run(REPRISE, "show", "--ledger", self.file)
        equal(status, 0, f"reprise show: {err.decode()}")
        return [line for line in out.decode().splitlines() if "FILTERED" not in line or STORES_NOTE not in line]

    def must_be_whole(self, allowed=()):
        """Intact, closed, and nothing lost; the ledger has at most entries of the allowed kinds."""
        status, check = self.check()
        equal((status, check["ok"], check["closed"], check["lost"]), (0, True, True, 0),
              f"reprise check: {check['first_fault']}: status, ok, closed, lost")
        ledger = self.ledger()
        equal([line for line in ledger if not any(kind in line for kind in allowed)], [], "ledger")
        cut = [line for line in ledger if "FILTERED" not in line]  # not left out on request
        stat = self.stat()
        equal((stat["complete"], stat["lost"], stat["left_out"]), (not cut, 0, 0),
              "reprise stat: complete, lost, left_out")
        equal(audit.differences(REPRISE, self.file), [], "audit of the net")
        return stat

    def must_have_counts(self, stat=None):
        """As many events as the program says; returns how many that are."""
        calls = (stat or self.stat())["calls"]
        total = 0
        for name, (done, begun) in counts().items():
            # Signals are counted where a handler ran; others may have come too.
            if name == "signal":
                continue
            got = calls.get(name, {}).get("count", 0)
            expect(done <= got <= begun,
                   f"{name}: recorded {got}, made {done}" + (f"..{begun}" if begun > done else ""))
            total += got
        expect(total > 0, "the program made no calls")
        return total

    def must_be_complete(self, allowed=()):
        stat = self.must_be_whole(allowed)
        self.must_have_counts(stat)
        return stat


STRING = re.compile(rb"\\(x..|.)", re.S)
ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"\\": b"\\", b'"': b'"'}
LINE = re.compile(rb"^\d+/(\d+)(?:@\d+)? #\d+ \S+ (\w+)\((.*)\) = (-?\d+)")
DATA = re.compile(rb'buf=(?:"((?:[^"\\]|\\.)*)"|@([0-9a-f]+)/(\d+))')
NUMBER = re.compile(rb"\b(fd|count|offset|length)=(\d+)")
PATH = re.compile(rb'path="((?:[^"\\]|\\.)*)"')


def unescape(text):
    return STRING.sub(lambda m: ESCAPES.get(m.group(1)) or bytes.fromhex(m.group(1)[1:].decode()),
                      text)


def exact_lines(trace, calls):
    """(tid, call, arguments, result, data) of these calls, in the order of the trace."""
    status, out, err = run(REPRISE, "show", "--exact", "--call=" + calls, trace.file)
    equal(status, 0, f"reprise show --exact: {err.decode()}")
    blobs = {}
    for line in out.split(b"\n"):
        if line.startswith(b"blob "):
            _, name, text = line.split(b" ", 2)
            blobs[name] = unescape(text[1:-1])
        match = LINE.match(line)
        if match:
            tid, call, args, ret = match.groups()
            data = DATA.search(args)
            if data:
                text, blob, _ = data.groups()
                data = blobs[blob] if blob else unescape(text)
            yield int(tid), call.decode(), args, int(ret), data


def writes_of(trace):
    """The data of every pwrite64."""
    found = []
    for _, _, args, ret, data in exact_lines(trace, "pwrite64"):
        expect(data is not None and len(data) == ret, f"no data: {args[:200]!r}")
        found.append(data)
    return found


def rebuild(trace):
    """What the writes in the trace make of the files, by path; a descriptor belongs to one thread."""
    files, open_fds = {}, {}
    for tid, call, args, ret, data in exact_lines(trace, "openat,pwrite64,ftruncate"):
        numbers = {k.decode(): int(v) for k, v in NUMBER.findall(args)}
        if call == "openat":
            path = unescape(PATH.search(args).group(1)).decode()
            if b"O_CREAT" in args and path != os.path.abspath("counts"):
                open_fds[tid, ret] = files.setdefault(path, bytearray())
            continue
        content = open_fds[tid, numbers["fd"]]
        if call == "ftruncate":
            del content[numbers["length"]:]
            content.extend(bytes(numbers["length"] - len(content)))
        else:
            offset = numbers["offset"]
            content.extend(bytes(max(0, offset - len(content))))
            content[offset:offset + ret] = data
    return files


def killed_by(signo):
    """The status of a process that this signal ended."""
    return -int(signo)


__all__ = [name for name in dir() if not name.startswith("_")]

signal.signal(signal.SIGALRM, signal.SIG_DFL)
