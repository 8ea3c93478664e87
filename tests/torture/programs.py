#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: programs.py TORTURE TORTURE_STATIC TORTURE_NARROW [PATTERN]...

Records programs that are hard to record. Each counts some of its own calls, and
the trace must have exactly these. Cases can be chosen by a part of their names.
"""

import json
import os
import shutil
import stat as stat_module
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

TORTURE = os.path.abspath(sys.argv[1])
STATIC = os.path.abspath(sys.argv[2])
NARROW = os.path.abspath(sys.argv[3])


# Threads.

@case("64 threads do I/O for a second: every call, and every byte")
def threads():
    record(TORTURE, "threads", "64", "1000", options=["--contents=0"])
    trace = Trace()
    stat = trace.must_be_complete()
    equal((stat["threads"], stat["processes"]), (65, 1), "threads and processes")
    files = rebuild(trace)
    equal(len(files), 64, "files")
    for path, content in files.items():
        with open(path, "rb") as f:
            expect(f.read() == content, f"{path} is not what the trace makes of it")


@case("a thread that is not the first makes execve, others are in calls")
def exec_other():
    for _ in range(5):
        record(TORTURE, "exec-other", "24", options=["--force"])
        trace = Trace()
        stat = trace.must_be_complete(KILLED)
        equal((stat["threads"] >= 26, stat["processes"]), (True, 1), "threads, processes")
        os.unlink("counts")


@case("threads wake each other all the time, and another makes execve")
def exec_wakers():
    for _ in range(5):
        record(TORTURE, "exec-wakers", "4", options=["--force"])
        trace = Trace()
        stat = trace.must_be_complete(KILLED)
        equal((stat["threads"] >= 6, stat["processes"]), (True, 1), "threads, processes")
        os.unlink("counts")


@case("a process among younger ones that make calls all the time")
def crowd():
    for nr in ("6", "24"):
        record(TORTURE, "crowd", nr, options=["--force", "--contents=0"])
        trace = Trace()
        trace.must_be_complete(KILLED)
        trace.must_have_counts()
        os.unlink("counts")


@case("an execve with a hundred thousand arguments")
def many_arguments():
    record("sh", "-c", "exec true $(seq 100000)")
    trace = Trace()
    trace.must_be_whole()
    last = trace.events("--call=execve", "--ok")[-1]
    equal([last["args"]["argv"][i] for i in (0, 1, 65536, -1)], ["true", "1", "65536", "100000"], "arguments")
    equal(len(last["args"]["argv"]), 100001, "arguments")


@case("threads begin and end during execve, twenty times over")
def exec_race():
    record(TORTURE, "exec-race", "20")
    trace = Trace()
    stat = trace.must_be_complete(KILLED)
    equal(stat["processes"], 1, "processes")
    execs = trace.events("--call=execve", "--ok")
    equal(len(execs), 21, "execve")


APPEARING = """
import mmap, os, signal
tries = mmap.mmap(-1, 8)
os.symlink('/bin/true', 'here')
mover = os.fork()
while not mover:
    os.rename('here', 'gone')
    os.rename('gone', 'here')
for _ in range(40):
    child = os.fork()
    while not child:
        tries[:] = (int.from_bytes(tries[:], 'little') + 1).to_bytes(8, 'little')
        try:
            os.execv('./here', ['here'])
        except FileNotFoundError:
            pass
    os.waitpid(child, 0)
os.kill(mover, signal.SIGKILL)
with open('tries', 'w') as f:
    f.write(str(int.from_bytes(tries[:], 'little')))
"""


@case("programs that come and go while others try to execute them")
def appearing():
    record(sys.executable, "-S", "-c", APPEARING)
    trace = Trace()
    _, check = trace.check()
    equal((check["intact"], check["closed"]), (True, True), "intact, closed")
    with open("tries", encoding="ascii") as f:
        equal(len(trace.events("--call=execve")), int(f.read()) + 1, "execve")
    equal(len(trace.events("--call=execve", "--ok")), 41, "execve that succeeded")
    equal(len(trace.events("--call=exec")), 41, "images")


@case("the first thread ends before the others; their exit status is passed on")
def leader_exits():
    record(TORTURE, "leader-exits", status=7)
    stat = Trace().must_be_complete()
    equal(stat["threads"], 2, "threads")


# Processes.

@case("2,000 short-lived processes")
def processes():
    record(TORTURE, "processes", "2000")
    stat = Trace().must_be_complete()
    equal((stat["processes"], stat["threads"]), (2001, 2001), "processes and threads")


KILLED_PARENTS = """
import os, random, signal, time
for _ in range(200):
    parent = os.fork()
    while not parent:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    time.sleep(random.random() / 200)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
"""


@case("parents that are killed while they make children: nobody waits for ever")
def killed_parents():
    record(sys.executable, "-S", "-c", KILLED_PARENTS)
    _, check = Trace().check()
    equal((check["intact"], check["closed"]), (True, True), "intact, closed")


@case("a fork bomb of bounded depth: 511 processes")
def bomb():
    record(TORTURE, "bomb", "8")
    stat = Trace().must_be_complete()
    equal(stat["processes"], 511, "processes")


@case("four threads vfork and execve 50 times each")
def vfork():
    record(TORTURE, "vfork", "4", "50")
    trace = Trace()
    stat = trace.must_be_complete()
    equal(stat["processes"], 201, "processes")
    equal(len(trace.events("--call=execve", "--ok")), 201, "execve")


@case("a daemon outlives the command and is recorded to its end")
def daemon():
    record(TORTURE, "daemon", "300", status=3)
    trace = Trace()
    stat = trace.must_be_complete()
    equal(stat["processes"], 3, "processes")
    ends = [e["args"].get("status") for e in trace.events("--call=thread_exit")]
    equal(sorted(ends), [3, 4, 5], "exit statuses")


# Changed worlds.

@case("a program closes all descriptors")
def close_all():
    record(TORTURE, "close-all")
    Trace().must_be_complete()


@case("a program changes its root")
def chroot():
    os.mkdir("root")
    record(TORTURE, "chroot", "root")
    Trace().must_be_complete()


@case("a program drops its rights")
def drop_rights():
    record(TORTURE, "drop-rights", options=["--contents=0"])
    trace = Trace()
    trace.must_be_complete()
    expect(len(writes_of(trace)) == 100, "the data of the writes is not in the trace")


def must_have_agent(*prefix, options=(), has_agent=True):
    """A shell that is run so makes calls which the agent takes, where there is one (or must not be one)."""
    alone = run(*prefix, "true")
    if alone[0] != 0:
        raise Skipped(f"{prefix[0]}: {alone[2].decode(errors='replace').strip()}")
    script = "i=0; while [ $i -lt 300 ]; do read x </etc/passwd; i=$((i + 1)); done"
    record(*prefix, "sh", "-c", script, options=["--contents=0", "--force", *options])
    trace = Trace()
    stat = trace.must_be_whole(allowed=("TREE_INCOMPLETE",))
    expect(stat["calls"]["read"]["count"] >= 300, "reads are missing")
    if RECORDER != "ptrace":
        by_agent = int(trace.meta()["agent_events"])
        # What stands before it is the recorder's own.
        expect(by_agent > 600 if has_agent else by_agent < 600, f"{by_agent} calls by the agent")


@case("programs of another user than the recorder's")
def other_user():
    if os.geteuid() != 0:
        raise Skipped("only root can become somebody else")
    if not shutil.which("setpriv"):
        raise Skipped("setpriv is not installed")
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    must_have_agent(*prefix, options=["--agent-for=all"])
    must_have_agent(*prefix, has_agent=False)


@case("programs for which processes have other numbers")
def other_numbers():
    if not shutil.which("unshare"):
        raise Skipped("unshare is not installed")
    must_have_agent("unshare", "--user", "--map-root-user", "--pid", "--fork")


@case("a program forbids looking into its memory: what is not seen is in the ledger")
def no_dump():
    record(TORTURE, "no-dump", options=["--contents=0"])
    trace = Trace()
    trace.must_have_counts()
    _, check = trace.check()
    if os.geteuid() == 0:
        trace.must_be_whole()
        equal(len(writes_of(trace)), 100, "writes with data")
    else:
        expect(check["intact"] and check["closed"], "the trace is damaged")
        expect(check["ledger"] > 0, "the data is not there, and the ledger does not say so")


@case("a program that may not map more memory")
def limit_memory():
    record(TORTURE, "limit-memory")
    Trace().must_be_complete()


@case("a program with a filter of its own: refused by an error")
def seccomp_errno():
    record(TORTURE, "seccomp", "errno")
    trace = Trace()
    trace.must_be_complete()
    equal(len(trace.events("--call=mkdirat", "--errno=EOPNOTSUPP")), 22, "refused calls")


@case("a filter for all threads meets no call that the program has not made")
def seccomp_all():
    for _ in range(5):
        record(TORTURE, "seccomp-all", options=["--contents=0", "--force"])
        Trace().must_be_complete()
        os.unlink("counts")


@case("a program with a filter of its own: refused by a signal that is handled")
def seccomp_trap():
    record(TORTURE, "seccomp", "trap")
    trace = Trace()
    trace.must_be_complete()
    signals = [e for e in trace.events("--call=signal") if e["args"].get("signal") == "SIGSYS"]
    equal(len(signals), counts()["signal"][0], "SIGSYS")


@case("a program with a filter of its own: killed by it")
def seccomp_kill():
    record(TORTURE, "seccomp", "kill", status=killed_by(signal.SIGSYS))
    Trace().must_be_complete()


@case("a program in strict seccomp mode")
def seccomp_strict():
    needs_ptrace("the kernel allows no strict mode behind a filter")
    out, _ = record(TORTURE, "seccomp", "strict", status=8)
    equal(out, b"strict\n", "output")
    Trace().must_be_complete()


@case("a program with a filter of its own, and only some calls recorded")
def seccomp_and_ours():
    record(TORTURE, "seccomp", "errno", options=["--calls=pwrite64,mkdirat"])
    trace = Trace()
    equal(trace.nr_of("pwrite64"), counts()["pwrite64"][0], "pwrite64")
    equal(trace.nr_of("preadv"), 0, "preadv")
    equal(trace.nr_of("mkdirat"), counts()["mkdirat"][0], "mkdirat")


@case("only some calls recorded: what else there is of processes and execs keeps its place")
def some_calls_and_execs():
    script = "setsid sh -c 'head -c 5 /dev/zero >out; exit 3'"
    record("/bin/sh", "-c", script, options=["--calls=read"], status=3)
    events = Trace().events()
    names = [e["call"] for e in events]
    expect(set(names) <= {"read", "thread_start", "thread_exit", "exec", "signal", "found_state", "found_fd"}, f"events: {sorted(set(names))}")
    by_tid = {}
    for e in events:
        by_tid.setdefault(e["tid"], []).append(e)
    for tid, own in by_tid.items():
        starts = [i for i, e in enumerate(own) if e["call"] in ("thread_start", "exec")]
        expect(own[0]["call"] == "thread_start", f"thread {tid} begins with {own[0]['call']}")
        # A new image reads its libraries: its first read comes after it.
        expect(own[starts[-1] + 1]["call"] == "read", f"thread {tid}: {[e['call'] for e in own]}")
    leaders = {e["pgid"] for e in events if e["call"] == "read"}
    equal(len(leaders), 2, "process groups")


SPIN = """
import os, threading, time
def spin():
    while time.thread_time() < 0.2:
        pass
    os.getppid()
threads = [threading.Thread(target=spin) for _ in range(2)] if %d else []
for t in threads:
    t.start()
for t in threads:
    t.join()
threads or spin()
"""


@case("processor time of threads")
def processor_time():
    for nr_threads, several in ((1, 0), (2, 1)):
        record(sys.executable, "-c", SPIN % several, options=["--force", "--contents=0"])
        events = Trace().events()
        calls = [e for e in events if e["call"] == "getppid"]
        equal(len(calls), nr_threads, "getppid")
        for e in calls:
            got, least = e["cpu_ns"], 200e6
            if RECORDER != "ptrace" and not got:
                # Asked for once in a millisecond: of that much it may be short.
                got = max(o["cpu_ns"] for o in events if o["tid"] == e["tid"] and
                          o["exit_ns"] <= e["exit_ns"])
                least = 190e6
            expect(least <= got <= e["exit_ns"], f"processor time {got} of {e['exit_ns']}")


PATH_SCRIPT = """
cd d
cat data/x other/y
cat link/x ./other/../data/x
echo new >link/new
mv data/new other/new
exec 5<data/x; cat /dev/fd/5; exec 5<&-
ls other
cat missing/z data/missing
mkdir other/sub
"""


def record_paths(*options):
    shutil.rmtree("d", ignore_errors=True)
    for name in ("data", "other"):
        os.makedirs("d/" + name)
    os.symlink("data", "d/link")
    for name in ("data/x", "other/y"):
        with open("d/" + name, "w", encoding="ascii") as f:
            f.write(name)
    record("/bin/sh", "-c", PATH_SCRIPT, options=["--force", *options])
    return Trace().events()


def names_in(events):
    """Of files, that the calls about names and data were given."""
    found = set()
    for e in events:
        if e["class"] not in ("proc", "cwd", "wait", "event"):
            found.update(v for k, v in e["args"].items() if k in ("path", "oldpath", "newpath"))
    return found


@case("only what touches a path: by name, by link, by descriptor")
def only_path():
    events = record_paths("--path=" + os.path.abspath("d/data"))
    events = [e for e in events if e["call"] != "found_fd"]  # what the program was given is always kept
    equal(names_in(events) - {""}, {"data/x", "link/x", "./other/../data/x", "link/new", "data/new", "other/new",
                                    "/dev/fd/5", "data/missing"}, "names")
    reads = [e for e in events if e["call"] in ("read", "copy_file_range") and e["ret"]]
    equal(len(reads), 4, "reads that moved something")
    equal(len([e for e in events if e["call"] == "write"]), 1, "writes")
    equal(len([e for e in events if e["call"] == "chdir"]), 1, "chdir, which is no part of it but is needed")
    calls = [e for e in events if e["class"] == "other"]
    equal(calls, [], "calls that touch nothing")
    lines = [line for line in Trace().ledger() if "FILTERED" in line]
    equal(len(lines), 1, "entries of the ledger")
    equal(Trace().check()[0], 0, "what was left out on request is not missing: status of check")


BROKEN_PIPE = """
import os, sys
r, w = os.pipe()
os.close(r)
for _ in range(int(sys.argv[1])):
    try:
        os.write(w, b"x")
    except BrokenPipeError:
        pass
"""


@case("calls that are left out, and that a signal comes into, are counted")
def left_out_with_signals():
    counts = []
    for nr in ("0", "1000"):
        record("python3", "-Sc", BROKEN_PIPE, nr, options=["--force", "--path=/nope"])
        counts.append(int(re.search(r"FILTERED.* count=(\d+)", Trace().ledger()[0])[1]))
    expect(counts[1] - counts[0] > 900, f"of 1000 more calls {counts[1] - counts[0]} more were left out")


@case("a glob, and all but a path")
def glob_path():
    events = record_paths("--path=d/*a")
    expect("data/x" in names_in(events) and "other/y" not in names_in(events), "a glob of the end of a path")
    events = record_paths("--exclude-path=" + os.path.abspath("d/other"), "--exclude-path=/usr", "--exclude-path=/etc")
    names = names_in(events)
    expect("data/x" in names and "data/new" in names, f"what is not excluded: {names}")
    expect(not names & {"other/y", "other", "other/sub"}, f"what is excluded: {names}")
    expect([e for e in events if e["call"] == "brk"], "what touches no path is kept")
    events = record_paths("--path=d", "--exclude-path=d/other")
    expect("data/x" in names_in(events) and "other/y" not in names_in(events), "both")


@case("calls of the 32-bit kind from a 64-bit program")
def int80():
    out, _ = record(TORTURE, "int80")
    equal(out, b"through the old door\n" * 10, "output")
    trace = Trace()
    equal(trace.check()[0], 0, "status of check")
    trace.must_have_counts()
    lines = trace.ledger()
    expect(len(lines) == 1 and "count=1," in lines[0] and "structures of 32-bit calls" in lines[0],
           f"one call with a struct that was not read: {lines}")
    compat = [e for e in trace.events("--call=write") if "COMPAT" in e["flags"]]
    equal(len(compat), 10, "writes of the 32-bit kind")
    for event in compat:
        equal((event["ret"], event["args"]["buf"]["data"]), (21, "through the old door\n"), "write")


def texts(vectors):
    return [v["iov_base"]["data"] for v in vectors]


@case("a 32-bit program: its vectors, structs and words, and a ledger entry for the rest")
def narrow_program():
    if not os.path.exists(NARROW):
        raise Skipped("there is no 32-bit libc to link with")
    out, _ = record(NARROW, status=7, options=["--contents=0"])
    trace = Trace()
    equal(trace.check()[0], 0, "status of check")
    got = {}
    for event in trace.events("--no-paths"):
        if "COMPAT" in event.get("flags", ()):
            got.setdefault(event["call"], []).append(event)

    def args(name):
        expect(name in got, f"there is no {name}: {sorted(got)}")
        return got[name][-1]["args"]

    equal(texts(args("writev")["iov"]), ["one", "", "three"], "writev")
    equal((texts(args("pwritev")["iov"]), args("pwritev")["offset"]),
          (["one", "", "three"], (1 << 32) + 5), "pwritev")
    equal(args("preadv")["iov"][0]["iov_base"]["data"], "oneth", "preadv")
    equal(args("pwrite64")["offset"], 16, "pwrite64")
    dev, ino, size = map(int, out.split())
    stat = args("fstat")["statbuf"]
    equal((stat["st_dev"], stat["st_ino"], stat["st_size"]), (dev, ino, size), "fstat64")
    equal(args("nanosleep")["duration"], {"tv_sec": 0, "tv_nsec": 1000}, "nanosleep")
    equal(args("clock_nanosleep")["t"], {"tv_sec": 0, "tv_nsec": 2000}, "clock_nanosleep_time64")
    equal(len(args("poll")["fds"]), 1, "poll")
    expect("file" in [d["d_name"] for d in args("getdents64")["dirp"]], "getdents64")
    equal(args("connect")["addr"]["path"], "no-such-socket", "connect")
    equal(got["execve"][-1]["args"]["argv"][1:], ["a word", ""], "argv")
    equal(got["execve"][-1]["args"]["envp"], ["NAME=value"], "envp")
    lines = trace.ledger()
    expect(not lines or (len(lines) == 1 and "structures of 32-bit calls" in lines[0]),
           f"the ledger has something else: {lines}")


@case("a static program")
def static_program():
    if not os.path.exists(STATIC):
        raise Skipped("there is no static libc to link with")
    record(STATIC, "calls", "100", options=["--contents=0"])
    trace = Trace()
    trace.must_be_complete()
    equal(len(writes_of(trace)), 100, "writes with data")


def must_state_conflict(trace):
    """Whole, but for what another tracer would have seen."""
    _, check = trace.check()
    equal((check["intact"], check["closed"], check["lost"]), (True, True, 0),
          "intact, closed, lost")
    expect(check["ledger"] > 0, "the ledger does not state the conflict")
    expect(trace.events("--call=ptrace", "--failed"), "its ptrace is not in the trace")


IMPORTS = """
for name in ("sqlite3", "ssl", "ctypes", "json", "zlib", "bz2", "lzma", "hashlib", "socket", "array",
             "math", "decimal", "mmap", "resource", "termios", "curses", "multiprocessing", "csv"):
    try:
        __import__(name)
    except ImportError:
        pass
"""


@case("few descriptors are enough for a program of many texts")
def few_descriptors():
    limited = ["sh", "-c", 'ulimit -n 32; exec "$@"', "sh"]
    status, _, err = run(*limited, *record_argv(sys.executable, "-c", IMPORTS, options=["--cache="]))
    equal(status, 0, f"exit status\n{err.decode()}")
    Trace().must_be_whole()


@case("32 MiB in one write, read into 1024 pieces, and memory that is not there")
def huge():
    record(TORTURE, "huge", "32", options=["--contents=0"])
    trace = Trace()
    trace.must_be_complete()
    equal(trace.events("--call=pwrite64")[0]["ret"], 32 << 20, "length of the write")
    # The data is in pieces of 1 MiB, of which each is in the trace, whole.
    status, out, _ = run(REPRISE, "check", "--json", "trace")
    check = json.loads(out)
    equal((status, check["dangling"], check["bad_blobs"]), (0, 0, 0), "status, dangling, bad blobs")
    expect(check["blob_bytes"] >= 32 << 20, f"{check['blob_bytes']} bytes of data are kept")
    equal(len(trace.events("--call=mkdirat", "--errno=EFAULT")), 1, "EFAULT")


@case("writes of all sizes, whatever room there is for them, have their data")
def sizes():
    record(TORTURE, "sizes", "8", options=["--contents=0"])
    trace = Trace()
    trace.must_be_complete()
    for path, content in rebuild(trace).items():
        with open(path, "rb") as f:
            expect(f.read() == content, f"{path} is not what the trace makes of it")
    if NET == "audit":
        # A size for which there was no room is left to the tracer once, not each of 56 times.
        expect(int(trace.meta()["net_left"]) < 40, f"the rings do not grow: {trace.meta()}")


@case("arguments of a megabyte, names that are no text")
def long_arguments():
    words = ["x" * 100000] * 10
    name = b"\xff\xfe\x01 '\"\\n"
    script = "for w; do :; done; echo $#; echo >\"$NAME\"; rm \"$NAME\""
    out, _ = record("sh", "-c", script, "sh", *words, options=["--contents=0"],
                    env={"NAME": os.fsdecode(name)})
    equal(out, b"10\n", "output")
    trace = Trace()
    trace.must_be_whole()
    execve = trace.events("--call=execve", "--ok")[0]
    equal(execve["args"]["argv"], ["sh", "-c", script, "sh", *words], "argv")
    expect(any(unescape(PATH.search(args).group(1)) == name
               for _, _, args, _, _ in exact_lines(trace, "openat")), "the name is not in the trace")


@case("a program that must not read the processor's counter")
def no_counter():
    for clock in ("auto", "kernel"):
        record(TORTURE, "no-counter", "200", options=["--clock=" + clock, "--force"])
        Trace().must_be_complete()
        os.unlink("counts")


@case("a recording that does not begin leaves the trace that it was to replace")
def not_replaced():
    record("true")
    with open("trace", "rb") as f:
        before = f.read()
    with open("no-program", "w", encoding="utf-8") as f:
        os.fchmod(f.fileno(), 0o755)
        f.write("garbage\n")
    names = sorted(os.listdir("."))
    for words in (["--", "./no-program"], ["--attach=999999999"]):
        argv = record_argv(options=["--force"])
        status, _, err = run(*argv[:argv.index("--")], *words)
        equal(status, 2, err.decode())
        with open("trace", "rb") as f:
            expect(f.read() == before, f"another trace after {words}")
    equal(sorted(os.listdir(".")), names, "files")
    record("true", options=["--force"])
    with open("trace", "rb") as f:
        expect(f.read() != before, "the same trace after a recording")
    equal(sorted(os.listdir(".")), names, "files")


@case("a program that has clocks of its own")
def own_clocks():
    own = ["unshare", "--time", "--monotonic", "100000", "--fork"]
    if not shutil.which("unshare") or run(*own, "true")[0]:
        raise Skipped("clocks are the same for all here")
    record(*own, sys.executable, "-c", "import os; [os.getppid() for _ in range(300)]", options=["--clock=vdso"])
    Trace().must_be_whole()
    status, out, err = run(REPRISE, "show", "--call=getppid", "trace")
    equal(status, 0, err.decode())
    equal((out.count(b"getppid"), out.count(b"<0.000000000>")), (300, 0), "calls, and those without a duration")


@case("a program that looks at which CPUs it may use, and chooses one")
def cpus():
    many = str(len(os.sched_getaffinity(0)))
    record(TORTURE, "cpus", "40", many)
    Trace().must_be_complete()
    os.unlink("counts")
    record(TORTURE, "cpus-exec", TORTURE, "cpus", "3", many, options=["--force"])
    Trace().must_be_complete(KILLED)


@case("a program that wants to be traced by its parent is told that it cannot")
def trace_me():
    record(TORTURE, "trace-me", status=10)
    trace = Trace()
    trace.must_have_counts()
    must_state_conflict(trace)


@case("a program that is a tracer itself is recorded, the conflict and all")
def is_tracer():
    strace = shutil.which("strace")
    if not strace:
        raise Skipped("strace is not installed")
    p = start(record_argv(strace, "-o", "log", TORTURE, "calls", "10"), stdout=subprocess.PIPE,
              stderr=subprocess.PIPE)
    status, _, _ = finish(p)
    expect(status > 0, "strace has not failed, though two tracers are not possible")
    must_state_conflict(Trace())


# Signals inside.

@case("I/O in signal handlers, every millisecond")
def timer():
    record(TORTURE, "timer", "500")
    trace = Trace()
    stat = trace.must_be_complete()
    signals = [e for e in trace.events("--call=signal") if e["args"].get("signal") == "SIGALRM"]
    handled = counts()["signal"][0]
    expect(handled <= len(signals) <= handled + 1, f"{len(signals)} signals, {handled} handled")
    # What the handler calls stands between the call that it interrupted and rt_sigreturn.
    equal(stat["calls"]["rt_sigreturn"]["count"], handled, "rt_sigreturn")


@case("programs that are not there are searched for, while signals come")
def searches():
    out, _ = record(TORTURE, "searches", "300", options=["--contents=0"])
    trace = Trace()
    trace.must_be_complete()
    events = trace.events("--call=execve", "--failed")
    equal(len(events), int(out), "execves that failed")
    errors = {"none": "ENOENT", "none/program": "ENOENT", "": "ENOENT", "dangling": "ENOENT", "/none/at/all": "ENOENT",
              "plain": "EACCES", "plain/program": "ENOTDIR"}
    for event in events:
        args = event["args"]
        equal((event["errno"], args["argv"], args["envp"]),
              (errors.get(args["path"], "ENAMETOOLONG"), ["a word", ""], ["NAME=value"]), f"of {args['path'][:20]}")


@case("an agent records a search without a stop")
def cheap_searches():
    if RECORDER != "inproc":
        raise Skipped("without the agent, or before it enters, each call stops")
    record(TORTURE, "searches", "300", "0", options=["--contents=0"])
    trace = Trace()
    calls = sum(call["count"] for call in trace.must_be_complete()["calls"].values())
    stopped = calls - int(trace.meta()["agent_events"])
    others = [e for e in trace.events("--call=execve") if e["errno"] != "ENOENT"]
    expect(stopped < len(others) + 150, f"{stopped} of {calls} calls have stopped, {len(others)} of them must")


# What root does before a search: then it fails for another reason than a name that is not there.
SEARCHES = {
    "rights": "os.mkdir('closed', 0o700); os.setegid(65534); os.seteuid(65534)",
    "limit": "child(); resource.setrlimit(resource.RLIMIT_NPROC, (0, 0)); os.setuid(65534)",
    "by-exec": "os.mkdir('closed', 0o700); os.setregid(0, 65534); os.setreuid(0, 65534); search(sys.argv[1], 'search', 'closed/none')",
}


@case("an execve fails for the same reason with and without a recorder")
def reasons():
    if os.geteuid() != 0:
        raise Skipped("only root can become somebody else")
    os.chmod(".", 0o777)
    search = """
import os, resource, sys, time
def search(*words):
    try:
        os.execv(words[0], words)
    except OSError as e:
        print(e.errno, flush=True)
def child():
    r, w = os.pipe()
    if not os.fork():
        os.setuid(65534)
        os.write(w, b'x')
        time.sleep(0.5)
        os._exit(0)
    os.read(r, 1)
for i in range(200):
    os.getppid()
"""
    for what, first in SEARCHES.items():
        argv = [sys.executable, "-c", search + first + "; search('closed/none', 'x')", TORTURE]
        status, plain, err = run(*argv)
        shutil.rmtree("closed", ignore_errors=True)
        if status != 0 or plain not in (b"11\n", b"13\n"):
            raise Skipped(f"{what}: {plain} {err.decode()[-200:]}")
        out, _ = record(*argv, options=["--contents=0", "--force"] + ["--agent-for=all"] * (RECORDER != "ptrace"))
        shutil.rmtree("closed", ignore_errors=True)
        equal(out, plain, f"error number ({what})")


@case("a program that blocks all signals")
def block_signals():
    p = start(record_argv(TORTURE, "block-signals", "700"), stderr=subprocess.PIPE)
    wait_until(nr_done, "the program has begun")
    p.send_signal(signal.SIGTERM)
    p.send_signal(signal.SIGHUP)
    status, _, err = finish(p)
    equal(status, 9, "exit status\n" + err.decode())
    Trace().must_be_complete()


# What is recorded is chosen.

@case("only some calls: nothing else stops the program, all processes are covered")
def some_calls():
    record(TORTURE, "processes", "200", options=["--calls=pwrite64,fchmod"])
    trace = Trace()
    stat = trace.must_be_whole(["FILTERED"])
    expect(trace.ledger(), "the ledger does not say that calls were left out")
    for name in ("pwrite64", "fchmod"):
        equal(stat["calls"][name]["count"], counts()[name][0], name)
    expect("preadv" not in stat["calls"], "a call that was not asked for is in the trace")


@case("all but some calls, with threads and execve")
def exclude_calls():
    record(TORTURE, "exec-other", "12", options=["--exclude=preadv"])
    trace = Trace()
    stat = trace.must_be_whole(["FILTERED", *KILLED])
    expect("preadv" not in stat["calls"], "a call that was excluded is in the trace")
    done, begun = counts()["pwrite64"]
    expect(done <= stat["calls"]["pwrite64"]["count"] <= begun, "pwrite64")


@case("each --data keeps what it says")
def data_policies():
    sizes = {}
    for policy in ("all", "writes", "hash", "none"):
        record(TORTURE, "calls", "200", data=policy, options=["--force", "--contents=0"])
        trace = Trace()
        trace.must_be_complete()
        # All of it packed, which a recorder does when it has the time.
        status, _, err = run(REPRISE, "slice", "--force", "-o", "packed", "trace")
        equal(status, 0, err.decode())
        sizes[policy] = os.stat("packed").st_size
        if policy in ("all", "writes"):
            with open("calls", "rb") as f:
                content = f.read()
            equal(writes_of(trace)[-1], content[199 * 256:], "the last write")
        os.unlink("counts")
        os.unlink("calls")
    expect(sizes["all"] > sizes["writes"] > sizes["hash"] > sizes["none"], f"sizes: {sizes}")


@case("a set-user-id program runs as it would alone")
def set_user_id():
    if os.geteuid() != 0:
        raise Skipped("only root can make one")
    shutil.copy("/usr/bin/id", "id")
    os.chmod("id", 0o755 | stat_module.S_ISUID | stat_module.S_ISGID)
    os.chown("id", 65534, 65534)
    os.chmod("id", 0o755 | stat_module.S_ISUID | stat_module.S_ISGID)
    alone = subprocess.run(["./id", "-u"], check=True, stdout=subprocess.PIPE).stdout
    if alone != b"65534\n":
        raise Skipped("set-user-id programs are not allowed on this file system")
    out, _ = record("./id", "-u")
    equal(out, alone, "user")
    Trace().must_be_whole()


sys.exit(run_cases(sys.argv[4:]))
