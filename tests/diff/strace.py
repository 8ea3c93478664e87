#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: strace.py [--long] [PROGRAM]...

Sets our recording of real programs beside strace's. Each program runs twice in
the same directory, made anew: once under each. Then every thread of the one run
must have made the same calls with the same outcomes as its counterpart in the
other, but for what a rule below explains:

1. Numbers of processes and addresses differ: they are compared as such, not by
   value. A child is known by its parent and by being its n-th child. Parts of
   names that are made up differ too (MADE_UP), and it is chance how often they
   are drawn: getrandom is left out.
2. Calls that wait, and what a signal interrupted or restarted, depend on timing
   and are left out (LEFT_OUT).
3. How often the heap grows depends on where it begins, so brk is left out. In
   programs with threads all calls of the memory allocator depend on chance and
   are left out (MEMORY), and so do the numbers of new descriptors.
4. How a pipe's bytes are cut into reads and writes depends on timing: successive
   ones are joined, or all of a thread added up, in programs that use pipes so.
5. Programs may start their children in any order: those are then compared as
   sequences in any order, and their parents in sum. Or they may take the files
   of a directory by their numbers, which differ, or what has ended as they find
   it: then each thread's calls are compared in sum (in_sum).
6. Threads may share work by chance: the named calls are then compared in sum.
7. A run may be unlike another of the same kind (a look at the clock, a race): up
   to ATTEMPTS pairs of runs are compared, and one pair must agree. What our
   recorder lost would be missing from every pair.

Compared are names of calls, outcomes, the first path of each call and, where
data is not said to depend on time, the first bytes of what is read and written.

With --long also what takes long or needs large packages.
"""

import collections
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from plain_signals import plain_signals  # pylint: disable=wrong-import-position

REPRISE = os.environ.get("REPRISE", "reprise")
ATTEMPTS = 4
TIMEOUT_S = 300
DATA_MAX = 256

# Rules 1 to 3.
LEFT_OUT = {
    "futex", "nanosleep", "clock_nanosleep", "poll", "ppoll", "select", "pselect6", "epoll_wait",
    "epoll_pwait", "epoll_pwait2", "restart_syscall", "sched_yield", "pause", "rt_sigsuspend",
    "rt_sigtimedwait", "rt_sigreturn", "wait4", "waitid", "membarrier", "brk",
    "getrandom",
}
# Rule 3.
MEMORY = {"brk", "mmap", "munmap", "mremap", "madvise", "mprotect"}
# Rule 1.
ADDRESSES = {"brk", "mmap", "mremap", "shmat"}
PROCESSES = {
    "clone", "clone3", "fork", "vfork", "getpid", "gettid", "getppid", "getpgrp", "getpgid",
    "setsid", "getsid", "set_tid_address", "wait4", "waitid", "pidfd_open", "fcntl_getown",
}
NEW_THREAD = {"clone", "clone3", "fork", "vfork"}
# Rule 3.
DESCRIPTORS = {
    "open", "openat", "openat2", "creat", "dup", "socket", "accept", "accept4", "eventfd2",
    "epoll_create", "epoll_create1", "timerfd_create", "signalfd4", "memfd_create", "inotify_init1",
    "io_uring_setup",
}
# Rule 1.
MADE_UP = [(re.compile(pattern), word) for pattern, word in (
    (r"/(proc|task)/\d+", r"/\1/N"),
    (r"/tmp/ompi\.\S+", "/tmp/ompi"),
    (r"/vader_segment\.\S+\.", "/vader_segment."),
    (r"\d{10,}", "N"),
    (r"/cc[A-Za-z0-9]{6}\b", "/ccX"),
    (r"\btmp_(obj|pack|idx|rev|\w+_pack|\w+_idx|\w+_rev)_[A-Za-z0-9]{6}\b", "tmp_X"),
    (r"/\.tmp-\d+-", "/.tmp-N-"),
    (r"/(refs|packs)_[A-Za-z0-9]{6}$", r"/\1_X"),
    (r"/\.git/t[A-Za-z0-9]{6}$", "/.git/tX"),
    (r"\.[A-Za-z0-9]{6}$", ".X"),
)]
MOVES_DATA = {"read", "write", "pread64", "pwrite64"}
# Results that are a time, a measure of the machine, or a number that the system counts up.
MEASURES = {"shmget", "semget", "msgget", "time", "times", "alarm", "getrusage", "sched_getaffinity", "rt_sigreturn"}
VARIANTS = ("fcntl_", "ioctl_", "prctl_", "futex_op_", "seccomp_", "arch_prctl_", "keyctl_")

Call = collections.namedtuple("Call", "name ret errno detail")


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


# Reading what the two have recorded: {tid: [Call]} and the first tid.

LINE = re.compile(r"^(\w+)\((.*?)\)\s+= (\?|-?(?:0x)?[0-9a-f]+)(?: ([A-Z0-9]+)\b)?", re.S)
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')


def strace_call(line):
    # A call that the end of its thread cut off, or that does not return.
    if line.endswith("<unfinished ...>"):
        return Call(line.split("(", 1)[0], None, None, None)
    end = line.rfind(") ")
    match = LINE.match(line) if end >= 0 else None
    if not match:
        raise Failed(f"strace printed what is not understood: {line[:200]}")
    name, args, ret, errno = match.groups()
    strings = STRING.search(args)
    detail = bytes.fromhex(strings.group(1).replace("\\x", "")) if strings else None
    if ret == "?":
        return Call(name, None, errno, detail)
    # umask returns a mode, which strace prints as one.
    value = int(ret, 8) if re.fullmatch("0[0-7]+", ret) else int(ret, 0)
    return Call(name, value, errno if ret == "-1" else None, detail)


def read_strace(prefix):
    threads = {}
    directory = os.path.dirname(prefix)
    for name in os.listdir(directory):
        base, _, tid = name.rpartition(".")
        if base != os.path.basename(prefix):
            continue
        calls = threads[int(tid)] = []
        with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as f:
            for line in f:
                if line[0] not in "-+":
                    calls.append(strace_call(line.rstrip("\n")))
    return threads


def text_arguments():
    """Of each call the first argument that strace prints as text: (name, is it a path)."""
    p = subprocess.run([REPRISE, "calls", "--json"], stdout=subprocess.PIPE, check=True)
    found = {}
    for call in json.loads(p.stdout):
        for arg in call["args"]:
            if arg["kind"] in ("PATH", "BUF", "STR"):
                found[call["name"]] = arg["name"], arg["kind"] == "PATH"
                break
    return found


def in_bytes(container, key):
    text = container[key]
    is_latin = container.get(key + "_encoding") == "latin-1"
    return text.encode("latin-1" if is_latin else "utf-8")


def our_detail(event, texts, blobs):
    """The path, or the data, that the call is about; None when it is about neither."""
    name, is_path = texts.get(event["call"], (None, None))
    value = event["args"].get(name)
    if is_path and isinstance(value, str):
        return in_bytes(event["args"], name)
    if event["call"] in MOVES_DATA and isinstance(value, dict) and event["ret"]:
        if "hash" in value:
            return blobs.get(value["hash"])
        return in_bytes(value, "data") if "data" in value else None
    return None


UNESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"\\": b"\\", b'"': b'"'}
ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|[^x])")


def read_blobs(trace):
    p = subprocess.run([REPRISE, "show", "--exact", trace], stdout=subprocess.PIPE, check=True)
    blobs = {}
    for line in p.stdout.split(b"\n"):
        if line.startswith(b"blob "):
            _, name, text = line.split(b" ", 2)
            blobs[name.decode()] = ESCAPE.sub(
                lambda m: UNESCAPED.get(m.group(1)) or bytes([int(m.group(1)[1:], 16)]),
                text[1:5 * DATA_MAX])[:DATA_MAX]
    return blobs


def base_name(name):
    for prefix in VARIANTS:
        if name.startswith(prefix):
            return prefix[:-4] if prefix == "futex_op_" else prefix[:-1]
    return name


def read_reprise(trace, texts):
    """Threads that bear a tid one after the other (execve by another thread) count as one."""
    p = subprocess.run([REPRISE, "show", "--json", "--no-paths", "--order=enter", trace],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if p.returncode:
        raise Failed(f"reprise show: {p.stderr.decode()}")
    blobs = read_blobs(trace)
    events = {"thread_start", "thread_exit", "exec", "signal", "stopped", "continued", "marker", "found_state", "found_fd"}
    threads = {}
    for line in p.stdout.splitlines():
        e = json.loads(line)
        calls = threads.setdefault(e["tid"], [])
        if e["call"] in events:
            continue
        unfinished = "UNFINISHED" in e["flags"]
        calls.append(Call(base_name(e["call"]), None if unfinished else e["ret"], e["errno"],
                          our_detail(e, texts, blobs)))
    return threads


# Making them comparable.

def signed(ret):
    """strace prints some results as unsigned."""
    return ret - (1 << 64) if ret is not None and ret >= 1 << 63 else ret


def normal(call, program):
    """The call as (name, outcome, detail), or None when a rule leaves it out."""
    outcome = normal_outcome(call, program)
    return outcome and (call.name, outcome, normal_detail(call, program))


def normal_detail(call, program):
    if call.detail is None or call.name not in program.path_calls | MOVES_DATA:
        return None
    if call.name in MOVES_DATA:
        if not call.ret or call.ret < 0 or call.name in program.joined or not program.data:
            return None
        return call.detail[:min(call.ret, DATA_MAX)]
    text = call.detail.decode("latin-1")
    for pattern, word in MADE_UP:
        text = pattern.sub(word, text)
    return text


def normal_outcome(call, program):
    name = call.name
    if name in LEFT_OUT | program.left_out or (program.threads and name in MEMORY):
        return None
    # Broken off by a signal: strace shows the kernel's own error, we what the program saw.
    if (name, call.ret) in program.left_out or (call.errno or "").startswith(("ERESTART", "EINTR")):
        return None
    if call.errno:
        return call.errno
    if call.ret is None:
        return "never returned"
    if name in ADDRESSES:
        return "address"
    if name in PROCESSES:
        return "process" if call.ret else "0"
    if program.threads and name in DESCRIPTORS:
        return "descriptor"
    if name in MEASURES | program.measures:
        return "measure"
    return str(signed(call.ret))


def family(threads, first):
    """The threads by their place in the family: () the first, (0,) its first child, (0, 2) ..."""
    places, todo = {(): first}, [((), first)]
    while todo:
        place, tid = todo.pop()
        children = [c.ret for c in threads.get(tid, ()) if c.name in NEW_THREAD and c.ret
                    and c.ret > 0]
        for number, child in enumerate(children):
            if child in threads and child not in places.values():
                places[place + (number,)] = child
                todo.append((place + (number,), child))
    return places


def first_thread(threads):
    """The one that nobody made."""
    made = {c.ret for calls in threads.values() for c in calls if c.name in NEW_THREAD}
    first = [tid for tid in threads if tid not in made]
    if len(first) != 1:
        raise Failed(f"{len(first)} threads have no parent")
    return first[0]


def join_pipe_calls(calls, names):
    """Rule 4: what successive reads, or writes, moved, as one."""
    out = []
    for call in calls:
        last = out[-1] if out else None
        if last and call[0] in names and last[0] == call[0] and last[1].isdigit() \
                and call[1].isdigit():
            out[-1] = (call[0], str(int(last[1]) + int(call[1])), None)
        else:
            out.append(call)
    return out


def add_up(calls, names):
    """Rule 4: what all calls of these names moved, behind the others."""
    out = [call for call in calls if call[0] not in names]
    for name in sorted(names):
        out.append((name, sum(int(c[1]) for c in calls if c[0] == name and c[1].isdigit()), None))
    return out


def comparable(threads, program):
    result, parents = {}, []
    places = family(threads, first_thread(threads))
    for place, tid in places.items():
        calls = [c for c in (normal(call, program) for call in threads[tid]) if c]
        result[place] = add_up(join_pipe_calls(calls, program.joined), program.added_up)
    # As text, so that all of them can be sorted.
    if program.shared_work:
        total = sorted(str(c) for calls in result.values() for c in calls
                       if c[0] in program.shared_work)
        result = {place: [c for c in calls if c[0] not in program.shared_work]
                  for place, calls in result.items()}
        result["in sum"] = total
    if program.in_sum:
        result = {place: sorted(map(str, calls)) for place, calls in result.items()}
    if program.any_order:
        has_children = {place[:-1] for place in places if place}
        parents = sorted(str(c) for place in has_children for c in result[place])
        leaves = sorted([str(c) for c in result[place]] for place in places
                        if place not in has_children)
        result = {"parents": parents, **{f"child {i}": calls for i, calls in enumerate(leaves)}}
    return result


def differences(ours, theirs):
    """Words for what differs, at most a few."""
    words = []
    for place in sorted(set(ours) | set(theirs), key=str):
        a, b = theirs.get(place), ours.get(place)
        if a == b:
            continue
        if a is None or b is None:
            words.append(f"thread {place}: only in {'ours' if a is None else 'strace'}: "
                         f"{(a or b)[:6]}")
            continue
        matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag != "equal":
                words.append(f"thread {place} at {i1}/{j1}: strace {a[i1:i2][:5]}, "
                             f"ours {b[j1:j2][:5]}")
    return words


# Running.

class Program:
    """A program of the table below.

    needs: commands that must be installed. prepare: makes the directory. script: what is run, by
    sh. The rest are the rules above.
    """

    def __init__(self, name, script, needs=(), prepare="", is_long=False, **rules):
        self.name, self.script, self.needs, self.prepare = name, script, needs, prepare
        self.is_long = is_long
        self.threads = rules.pop("threads", False)
        self.any_order = rules.pop("any_order", False)
        self.in_sum = rules.pop("in_sum", False)
        self.data = rules.pop("data", False)
        self.path_calls = set()
        for rule in ("left_out", "measures", "joined", "added_up", "shared_work"):
            setattr(self, rule, set(rules.pop(rule, ())))
        assert not rules


def environment(scratch):
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/games",
        "HOME": scratch, "LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1", "USER": "nobody",
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b",
        "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000",
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def run_in(work, scratch, argv):
    p = subprocess.run(argv, cwd=work, env=environment(scratch), stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S,
                       check=False)
    return p.returncode, p.stdout.decode(errors="replace")


def make_work(program, scratch):
    work = os.path.join(scratch, "work")
    shutil.rmtree(work, ignore_errors=True)
    os.mkdir(work)
    status, out = run_in(work, scratch, ["sh", "-ec", program.prepare])
    if status:
        raise Failed(f"cannot prepare: {out}")
    return work


def compare_once(program, scratch):
    work = make_work(program, scratch)
    log = os.path.join(scratch, "log")
    shutil.rmtree(log, ignore_errors=True)
    os.mkdir(log)
    command = ["sh", "-ec", program.script]
    status, out = run_in(work, scratch, ["strace", "-f", "-ff", "-qq", "-xx", "-s",
                                         str(DATA_MAX), "-o",
                                         log + "/t", "--", *command])
    if status:
        raise Failed(f"under strace: status {status}: {out[-2000:]}")
    work = make_work(program, scratch)
    trace = os.path.join(scratch, "trace")
    status, out = run_in(work, scratch, [REPRISE, "record", "-q", "-f", "-o", trace, "--", *command])
    if status:
        raise Failed(f"recorded: status {status}: {out[-2000:]}")
    check = subprocess.run([REPRISE, "check", trace], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, check=False)
    if check.returncode:
        raise Failed(f"reprise check: {check.stdout.decode()}")
    texts = text_arguments()
    program.path_calls = {base_name(name) for name, (_, is_path) in texts.items() if is_path}
    theirs = comparable(read_strace(log + "/t"), program)
    ours = comparable(read_reprise(trace, texts), program)
    return differences(ours, theirs), sum(map(len, ours.values())), len(ours)


def compare(program):
    missing = [need for need in program.needs
               if not shutil.which(need, path=environment("")["PATH"])]
    if missing:
        raise Skipped(f"{', '.join(missing)} not installed")
    scratch = tempfile.mkdtemp(prefix="diff.")
    keep = os.environ.get("DIFF_KEEP")
    try:
        for attempt in range(1, ATTEMPTS + 1):
            words, nr_calls, nr_threads = compare_once(program, scratch)
            if not words:
                return f"{nr_calls} calls of {nr_threads} threads, pair {attempt}"
            if keep:
                break
            print(f"# {program.name}: pair {attempt} differs: {words[0][:300]}")
        raise Failed(f"{len(words)} differences in {nr_calls} calls\n" + "\n".join(words[:12]))
    finally:
        if not keep:
            shutil.rmtree(scratch, ignore_errors=True)
        else:
            print(f"# kept {scratch}")


SOURCES = r"""
for i in 1 2 3 4 5 6; do
    printf '#include <stdio.h>\nint f%d(int x) { printf("%%d", x); return x * %d; }\n' $i $i >f$i.c
done
printf 'int main(void) { return 0; }\n' >main.c
printf 'all: prog\nprog: main.o f1.o f2.o f3.o f4.o f5.o f6.o\n\tgcc -o $@ $^\n' >Makefile
"""
TREE = r"""
mkdir -p tree/a/b tree/c
for i in 1 2 3 4 5 6 7 8 9; do echo $i >tree/a/$i; head -c ${i}0000 /dev/zero >tree/a/b/z$i; done
ln -s ../a/1 tree/c/link; ln tree/a/2 tree/c/hard; chmod 600 tree/a/3
touch -h -d @1700000000 tree/c/*; touch -d @1700000000 tree/a/* tree/a/b/* tree/a tree/a/b tree/c tree
"""
REPOSITORY = r"""
git init -q -b main repo
cd repo; for i in 1 2 3 4 5; do echo $i >f$i; touch -d @1700000000 f$i; git add f$i; git commit -q -m $i; done; cd ..
"""
MPI_HELLO = r"""
cat >hello.c <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	char text[64];
	int rank, size, sum;
	MPI_File f;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	snprintf(text, sizeof(text), "hello from %d of %d, sum %d", rank, size, sum);
	MPI_File_open(MPI_COMM_WORLD, "out", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f);
	MPI_File_write_at(f, 64 * rank, text, sizeof(text), MPI_CHAR, MPI_STATUS_IGNORE);
	MPI_File_close(&f);
	puts(text);
	MPI_Finalize();
	return 0;
}
END
mpicc -o hello hello.c
"""
PROGRAMS = [
    Program("sh", """for i in 1 2 3; do echo $i >>out; done; x=$(cat out); test "$x"
                     (cd / && ls >/dev/null); cat out | wc -l >n; exec true""", data=True),
    Program("cp", "cp -a tree copy; rm -r tree; mv copy tree; ln -s tree link; cat link/a/1 >/dev/null",
            prepare=TREE, data=True, in_sum=True),
    Program("tar", "tar cf t.tar tree; rm -r tree; tar xf t.tar; tar czf t.tgz tree",
            needs=["tar", "gzip"], prepare=TREE, joined=["read", "write"]),
    Program("find", "find tree -type f -newer tree/a -o -size +50k -exec ls -l {} +; find / -maxdepth 1",
            needs=["find"], prepare=TREE),
    Program("python3", """python3 -I -c 'import os, json, tempfile
open("x", "w").write(json.dumps(list(range(1000)))); os.rename("x", "y"); os.stat("y")
for d, _, fs in os.walk("tree"): [open(os.path.join(d, f), "rb").read() for f in fs]'""",
            needs=["python3"], prepare=TREE, data=True),
    Program("sqlite3", """for i in 1 2 3 4 5 6 7 8 9 10; do
                          echo "insert into t values ($i, hex(zeroblob(1000)));"; done >q
                          sqlite3 db 'create table t (a, b)'; sqlite3 db <q
                          sqlite3 db 'select sum(a) from t; delete from t where a > 5; vacuum;'""",
            needs=["sqlite3"]),
    Program("git", """cd repo; echo more >>f1; touch -d @1700000001 f1; git commit -q -a -m more; git status --short
                      git log --oneline; git gc -q; cd ..; git clone -q repo second""",
            needs=["git"], prepare=REPOSITORY, joined=["read", "write"]),
    # Which of the jobs that run at once has the standard input is chance, and how often a token (a
    # byte) is taken and given back, and a limit asked for.
    Program("make", "make -s -j2 prog; ./prog", needs=["make", "gcc"], prepare=SOURCES,
            any_order=True, left_out=["dup2", "prlimit64", ("read", 1), ("write", 1)]),
    Program("rsync", """rsync -a tree/ copy; echo new >tree/a/1; touch -d @1700000001 tree/a/1
                        rsync -a --checksum tree/ copy""",
            needs=["rsync"], prepare=TREE, added_up=["read", "write"]),
    # A thread that ticks, looks for a file, and reports.
    Program("fio", """fio --name=x --directory=. --size=1m --bs=4k --rw=randrw --numjobs=2 --thread \
                      --randrepeat=1 --ioengine=psync --disk_util=0 --eta=never --output=out""", needs=["fio"],
            threads=True, is_long=True, measures=["write"], left_out=["read", "ioctl", "timerfd_settime", "newfstatat"]),
    Program("postmark", r"printf 'set number 50\nset transactions 200\nset seed 7\nrun\nquit\n' | postmark",
            needs=["postmark"]),
    # Which thread removes old logs, and who is asked for its number then, is chance.
    Program("db_bench fillseq", "db_bench --benchmarks=fillseq --num=20000 --db=db --seed=1",
            needs=["db_bench"], threads=True, is_long=True, measures=["write"],
            left_out=["getpid", "gettid"], shared_work=["unlink"]),
    Program("db_bench readrandom", "db_bench --benchmarks=readrandom --num=20000 --reads=2000 "
            "--use_existing_db=1 --db=db --threads=2 --seed=1 --cache_size=0",
            prepare="db_bench --benchmarks=fillseq --num=20000 --db=db --seed=1 >/dev/null",
            needs=["db_bench"], threads=True, is_long=True, measures=["write"]),
    # Its threads wake each other by messages.
    Program("mpirun", "mpirun --oversubscribe -np 2 echo hello", needs=["mpirun"], threads=True,
            is_long=True, left_out=["read", "write", "sendmsg", "recvmsg"], any_order=True),
    Program("MPI hello", "mpirun --oversubscribe -np 2 ./hello", needs=["mpirun", "mpicc"],
            prepare=MPI_HELLO, threads=True, is_long=True, any_order=True, in_sum=True,
            left_out=["read", "write", "writev", "sendmsg", "recvmsg", "epoll_ctl"]),
]


def main():
    plain_signals()
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    programs = [p for p in PROGRAMS if p.name in names] if names else \
        [p for p in PROGRAMS if p.is_long == ("--long" in sys.argv)]
    sys.stdout.reconfigure(line_buffering=True)
    if not shutil.which("strace"):
        print("1..0 # SKIP strace is not installed")
        return 0
    print(f"1..{len(programs)}")
    failed = 0
    for number, program in enumerate(programs, 1):
        try:
            words = compare(program)
            print(f"ok {number} - {program.name}\n# {words}")
        except Skipped as why:
            print(f"ok {number} - {program.name} # SKIP {why}")
        except Exception as why:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {program.name}")
            text = str(why) if isinstance(why, Failed) else traceback.format_exc()
            print("\n".join("# " + line for line in text.split("\n")))
    return 1 if failed else 0


sys.exit(main())
