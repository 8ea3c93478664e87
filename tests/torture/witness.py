#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: witness.py TORTURE TORTURE_STATIC TORTURE_NARROW [PATTERN]...

What the recorder says is held against somebody who knows: the kernel's own tracing (the event
raw_syscalls:sys_enter) logs each call that a thread of the program makes, and from which
address. Without what the agent and the recorder ask for themselves, these must be as many as the
trace has, thread by thread: nothing has passed unseen, and nothing was made up. restart_syscall is left
out: by it the kernel goes on with a call that it has broken off, for a stop or a signal that another thread
has taken. That is one call to the agent, as it is to the program, and two to a tracer.
"""

import collections
import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

TORTURE = os.path.abspath(sys.argv[1])
STATIC = os.path.abspath(sys.argv[2])
TRACING = "/sys/kernel/tracing"
BUFFER_KB = 65536  # for each processor; what a test logs is a tenth of it
NR_MMAP, NR_RESTART_SYSCALL = 9, 219
AGENT = range(0x70000000, 0x7f100000)  # somewhere in there
ENTRY = re.compile(r".{16}-(\d+) +\[\d+\].*: sys_enter: NR (-?\d+) \((\w+),")
STACK = re.compile(r".{16}-(\d+) +\[\d+\].*: <user stack trace>")
ADDRESS = re.compile(r" => .*<([0-9a-f]+)>")

Call = collections.namedtuple("Call", "nr first ip")


def mount_tracing():
    """If nobody has mounted tracefs: for us and what we start, in a mount namespace of our own."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_ns, private = 0x20000, 0x4000 | 1 << 18  # CLONE_NEWNS; MS_REC | MS_PRIVATE
    if os.path.exists(f"{TRACING}/instances"):
        return
    if libc.unshare(new_ns) or libc.mount(None, b"/", None, private, None) or \
            libc.mount(b"tracefs", TRACING.encode(), b"tracefs", 0, None):
        print(f"# tracefs cannot be mounted: {os.strerror(ctypes.get_errno())}")


class KernelLog:
    """The calls of all that a recorder starts, from its first execve on, as the kernel sees them."""

    def __init__(self):
        self.dir = f"{TRACING}/instances/reprise-test-{os.getpid()}"
        try:
            os.mkdir(self.dir)
        except OSError as e:
            raise Skipped(f"the kernel's tracing cannot be used: {e.strerror}") from None

    def put(self, name, text):
        with open(f"{self.dir}/{name}", "w", encoding="ascii") as f:
            f.write(text)

    def __enter__(self):
        try:
            self.put("buffer_size_kb", str(BUFFER_KB))
            self.put("options/event-fork", "1")
            self.put("options/userstacktrace", "1")
            self.put("set_event_pid", "0")
            self.put("events/raw_syscalls/sys_enter/filter", 'comm != "reprise"')
            self.put("events/raw_syscalls/sys_enter/enable", "1")
        except OSError as e:
            os.rmdir(self.dir)
            raise Skipped(f"the kernel cannot trace calls: {e}") from None
        return self

    def begin_here(self):
        """In the process that becomes the recorder."""
        self.put("set_event_pid", str(os.getpid()))

    def __exit__(self, *_):
        self.put("events/raw_syscalls/sys_enter/enable", "0")
        os.rmdir(self.dir)

    def nr_lost(self):
        lost = 0
        for cpu in os.scandir(f"{self.dir}/per_cpu"):
            with open(f"{cpu.path}/stats", encoding="ascii") as f:
                lost += sum(int(line.split()[-1]) for line in f if "overrun" in line or "dropped" in line)
        return lost

    def calls(self):
        """Of each thread, in order."""
        found, entered, ours = {}, {}, None
        with open(f"{self.dir}/trace", encoding="ascii", errors="replace") as f:
            for line in f:
                if entry := ENTRY.match(line):
                    entered[int(entry[1])] = int(entry[2]), int(entry[3], 16)
                elif stack := STACK.match(line):
                    ours = int(stack[1])
                elif (address := ADDRESS.match(line)) and ours in entered:
                    found.setdefault(ours, []).append(Call(*entered.pop(ours), int(address[1], 16)))
        equal(entered, {}, "calls without an address")
        return found


def nr_in_kernel(log, trace, stat):
    """How many calls each thread of the program has made, as the kernel says."""
    logged = log.calls()
    calls = {thread["tid"]: logged.get(thread["tid"], []) for thread in stat["per_thread"]}
    # The first call instruction of the agent is that by which it makes those of the program.
    inside = {call.ip for tid in calls for call in calls[tid] if call.ip in AGENT}
    own = sorted(inside)[trace.meta()["agent_events"] != "0":]
    numbers = {tid: sum(1 for call in calls[tid] if not is_ours(call, own)) for tid in calls}
    first = min((thread["first_ns"], thread["tid"]) for thread in stat["per_thread"])[1]
    numbers[first] += 1  # the first execve
    return numbers


def is_ours(call, own):
    """Of the agent and of the recorder, the first of which makes a place for it; or of the kernel."""
    return call.ip in own or call.nr == NR_RESTART_SYSCALL or call.nr == NR_MMAP and call.first in AGENT


def must_have(trace, stat, known):
    """As many calls as the kernel knows of. One in which a thread was killed may not have begun there, and an execve
    of a file that is not there may have been answered by the agent."""
    names = stat["calls"].keys() - {"restart_syscall"}
    events = [event for event in trace.events() if event["call"] in names]
    recorded = collections.Counter(event["tid"] for event in events)
    unfinished = collections.Counter(event["tid"] for event in events if "UNFINISHED" in event["flags"])
    answered = collections.Counter(event["tid"] for event in events
                                   if event["call"] == "execve" and event["errno"] == "ENOENT")
    differ = {tid: (recorded[tid], nr) for tid, nr in known.items()
              if not recorded[tid] - min(1, unfinished[tid]) - answered[tid] <= nr <= recorded[tid]}
    equal(differ, {}, "threads whose calls were not all seen (recorded, made)")


def must_be_all(*words, options=(), cwd="."):
    """The kernel, an audit and the trace have the same calls of each thread."""
    trace = Trace()
    with KernelLog() as log:
        record(*words, options=["--net=audit", "--contents=0", "--force", *options], cwd=cwd, preexec_fn=log.begin_here)
        equal(log.nr_lost(), 0, "calls that the kernel has not logged")
        stat = trace.must_be_whole()
        known = nr_in_kernel(log, trace, stat)
    must_have(trace, stat, known)
    print(f"# {sum(known.values())} calls of {len(known)} threads: {' '.join(words)[:60]}")


# What they need, and what is recorded: interpreters with threads, forks and translated code, servers, rings of requests.
OTHERS = {
    "sh": "for i in 1 2 3; do echo $i | cat >f$i; done; ls | sort; sh -c 'kill -SEGV $$' || :",
    "bash": "for i in 1 2; do (ls | wc -l); done; trap 'echo x' USR1; kill -USR1 $$; cat <(echo 1)",
    "python3": "python3 -c 'import os, threading as t; a = [t.Thread(target=lambda: [os.stat(\".\") for i in range(200)]) for k in range(8)]; "
               "[x.start() for x in a]; [x.join() for x in a]'",
    "perl": "perl -e 'for (1 .. 20) { exit 0 if !fork } 1 while wait > 0'",
    "git": "git init -q r; cd r; echo 1 >1; git add .; git -c user.name=A -c user.email=a@b commit -qm 1; git gc -q; git status",
    "make": "printf 'a: %s\\n%%: ; @mkdir $@; rmdir $@\\n' '1 2 3 4 5 6 7 8' >m; make -j4 -f m a",
    "gcc": "echo 'int main(void) { return 0; }' >p.c; gcc -O1 -o p p.c; ./p",
    "sqlite3": "sqlite3 db 'create table t (a); insert into t values (1);'; sqlite3 db 'insert into t values (2);'",
    "tar": "tar czf t.tgz -C /etc hostname passwd; tar tzf t.tgz",
    "rsync": "mkdir s; cp /etc/passwd s; rsync -a s/ d/",
    "busybox": "busybox sh -c 'busybox ls; busybox true'",
    "fio": "for e in psync libaio io_uring; do fio --name=a --size=256k --bs=4k --rw=randrw --numjobs=2 --thread --ioengine=$e || :; done >/dev/null 2>&1",
    "db_bench": "db_bench --db=db --num=1000 --threads=4 --benchmarks=fillrandom,readrandom >/dev/null 2>&1",
    "node": "node -e 'for (let i = 0; i < 50; i++) require(\"fs\").writeFileSync(\"x\", \"\" + i)'",
    "valgrind": "valgrind -q true",
}

for which in ("inproc", "auto"):
    @case(f"the kernel has seen the same calls: programs of ours ({which})")
    def ours(recorder="--recorder=" + which):
        for words in (["calls", "2000"], ["threads", "8", "300"], ["processes", "60"], ["vfork", "5"], ["bomb", "5"],
                      ["made-code", "300"], ["timer", "300"], ["searches", "50"], ["interrupted"], ["masked-waits"], ["dispatch"]):
            must_be_all(TORTURE, *words, options=[recorder])

    @case(f"the kernel has seen the same calls: programs of others ({which})")
    def others(recorder="--recorder=" + which):
        for need, script in OTHERS.items():
            if not shutil.which(need):
                print(f"# {need} is not installed")
                continue
            with tempfile.TemporaryDirectory(dir=".") as scratch:
                must_be_all("bash", "-ec", script, options=[recorder], cwd=scratch)


@case("the kernel has seen the same calls: a program that was frozen in one")
def frozen():
    with open("/proc/mounts", encoding="ascii") as f:
        groups = [line.split()[1] for line in f if line.split()[2] == "cgroup2"]
    if not groups or not os.access(groups[0], os.W_OK):
        raise Skipped("there is no cgroup2 to freeze programs by")
    group = f"{groups[0]}/reprise-test-{os.getpid()}"
    os.mkdir(group)
    try:
        must_be_all("bash", "-ec", "sleep 1 & echo $! >$0/cgroup.procs; sleep 0.3; echo 1 >$0/cgroup.freeze; "
                    "sleep 0.2; echo 0 >$0/cgroup.freeze; wait", group, options=["--recorder=inproc"])
    finally:
        os.rmdir(group)


@case("the kernel has seen the same calls: a static program")
def static():
    if not os.path.exists(STATIC):
        raise Skipped("there is no static C library")
    must_be_all(STATIC, "calls", "500", options=["--recorder=inproc"])


mount_tracing()
sys.exit(run_cases(sys.argv[4:]))
