#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: strace_equal.py [PROGRAM]...

What strace printed of a run, imported, beside what our recorder recorded of
another run of the same program: `reprise diff` must find no difference but what
differs between any two runs. Programs whose runs differ by chance get ATTEMPTS
pairs of runs, of which one must agree.
"""

import os
import shutil
import subprocess
import sys
import tempfile

REPRISE = os.environ["REPRISE"]
ATTEMPTS = 4
# The command line that doc/import-strace.md recommends.
STRACE = ["strace", "-f", "-ttt", "-T", "-yy", "-xx", "-s", "65536", "-v"]
# What was there before the first line, and the end of a stop: not in strace's text.
UNTOLD = ("found_fd", "found_state", "continued")

TREE = r"""
mkdir -p tree/a/b tree/c
for i in 1 2 3 4 5 6 7 8 9; do echo $i >tree/a/$i; head -c ${i}0000 /dev/zero >tree/a/b/z$i; done
ln -s ../a/1 tree/c/link; ln tree/a/2 tree/c/hard; chmod 600 tree/a/3
touch -h -d @1700000000 tree/c/*; touch -d @1700000000 tree/a/* tree/a/b/* tree/a tree/a/b tree/c tree
"""
GIT = """git init -q -b main repo; cd repo; echo 1 >f; git add f; touch -d @1700000000 f; git status --short"""
CODE = """printf '#include <stdio.h>\nint main(void) { return puts("x") < 0; }\n' >x.c"""
PYTHON = r"""
import os, select, socket, signal
open("x", "w").write("y" * 1000)
os.rename("x", "y"); os.truncate("y", 10)
with open("y", "r+b") as f:
    os.pwritev(f.fileno(), [b"ab", b"c"], 100)
    os.preadv(f.fileno(), [bytearray(2), bytearray(70)], 99)
    os.fsync(f.fileno())
for d, _, fs in os.walk("tree"):
    for f in sorted(fs):
        open(os.path.join(d, f), "rb").read()
r, w = os.pipe()
p = select.poll(); p.register(r, select.POLLIN); p.register(w, select.POLLOUT | select.POLLIN)
p.poll(100); os.write(w, b"x"); p.poll(100)
select.select([r], [w], [], 1); select.select([r], [], [r]); os.read(r, 1); select.select([r], [], [], 0); p.unregister(w); p.poll(0)
a, b = socket.socketpair(); a.sendmsg([b"ab", b"c"]); b.recv(9); a.shutdown(socket.SHUT_WR); a.close()
"""
PERL = r"""
open(F, ">", "out") or die; print F $_ x 100, "\n" for 1..200; close F; open(F, "<", "out"); my @l = <F>; close F;
rename "out", "in"; utime 1, 2, "in"; chmod 0600, "in"; mkdir "d"; symlink "in", "l"; print -s "l", readlink "l"; unlink "l"; rmdir "d";
pipe R, W; my $v = ""; vec($v, fileno(R), 1) = 1; select(my $r = $v, undef, undef, 0.01); syswrite W, "x"; select($r = $v, undef, undef, 5);
"""


class Program:
    """What is run, in a directory that `prepare` makes; what it `needs`; what of it differs between any two runs: `chance`,
    calls whose outcome is left to chance, and `ignore`, words of reprise diff."""

    def __init__(self, script, prepare="", needs=(), chance=(), ignore=()):
        self.script, self.prepare, self.needs = script, prepare, needs
        self.chance, self.ignore = chance, ignore


# Random bytes, and how much room there is; when a child's end is noticed.
RANDOM, ROOM, CHILD = ("getrandom",), ("statfs", "fstatfs"), ("signal", "rt_sigreturn", "wait4")
PROGRAMS = {
    "sh": Program("for i in 1 2 3; do echo $i >>out; done; x=$(cat out); test \"$x\"; (cd / && ls >/dev/null); cat out | wc -c >n",
                  chance=RANDOM + ROOM + CHILD),
    "cp": Program("exec cp -a tree copy", TREE + "rm tree/c/link; touch -d @1700000000 tree/c", # whose time of access its own recording would change
                  chance=RANDOM + ROOM),
    "mv": Program("exec mv -v tree/a tree/c other", TREE + "mkdir other", chance=RANDOM + ROOM),
    "rm": Program("exec rm -r tree", TREE, chance=RANDOM + ROOM),
    "tar": Program("exec tar cf t.tar tree", TREE, ("tar",), RANDOM),
    "untar": Program("exec tar xf t.tar", TREE + "tar cf t.tar tree; rm -r tree", ("tar",), RANDOM),
    "find": Program("exec find tree -type f -size +50k -exec ls -l {} +", TREE, ("find",), RANDOM + ROOM),
    "gcc": Program("exec gcc -O -save-temps -c x.c", CODE, ("gcc",), RANDOM + ("sysinfo",)),
    "python3": Program("exec python3 -S -I program", TREE + "cat >program <<'end'" + PYTHON + "end\n", ("python3",), RANDOM + ("sysinfo",)),
    "perl": Program("exec perl program", "cat >program <<'end'" + PERL + "end\n", ("perl",), RANDOM, ("data",)), # of /dev/urandom
    "sqlite3": Program("exec sqlite3 db 'create table t (a, b); insert into t values (1, hex(zeroblob(999))); vacuum;'",
                       needs=("sqlite3",), chance=RANDOM, ignore=("data",)), # of /dev/urandom, in its journal
    "git": Program("cd repo; echo 2 >>f; git --no-pager diff; git ls-files -s; exec git cat-file blob :f", GIT, ("git",), RANDOM + CHILD),
    "sort": Program("exec sort -r --parallel=1 -o out in", "seq 1 2000 | sed 's/$/ some words/' >in", chance=RANDOM + ("sysinfo",)),
    "sed": Program("exec sed -n -e 's/1/2/w o' tree/a/1 tree/a/b/z1", TREE, ("sed",), RANDOM + ROOM),
    "gzip": Program("exec gzip -k -n tree/a/b/z1 tree/a/b/z2", TREE, ("gzip",), RANDOM),
    "dd": Program("exec dd if=tree/a/b/z3 of=z bs=512 seek=3 count=9 conv=notrunc,fsync status=none", TREE, chance=RANDOM),
}


class Failed(Exception):
    pass


def run(argv, cwd=None):
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": cwd or "/", "LC_ALL": "C", "TZ": "UTC",
           "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_NOSYSTEM": "1",
           "PERL_HASH_SEED": "0", "PERL_RAND_SEED": "0"}
    p = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=120, check=False)
    return p.returncode, p.stdout.decode(errors="replace")


def must(argv, cwd=None):
    status, out = run(argv, cwd)
    if status:
        raise Failed(f"{' '.join(argv[:4])}: status {status}: {out[-1500:]}")
    return out


def alike():
    """What deals out addresses alike in all runs, and what differs where that is forbidden."""
    command = ["setarch", "-R"]
    if shutil.which(command[0]) and not run(command + ["true"])[0]:
        return command, ()
    return [], ("brk", "arch_prctl")


def make_work(scratch, prepare):
    work = os.path.join(scratch, "work")
    shutil.rmtree(work, ignore_errors=True)
    os.mkdir(work)
    must(["sh", "-ec", prepare], work)
    return work


def traced(scratch, program, prefix):
    """The two traces of two runs."""
    text, imported, recorded = (os.path.join(scratch, n) for n in ("text", "imported", "recorded"))
    command = ["sh", "-ec", program.script]
    must(prefix + STRACE + ["-o", text, *command], make_work(scratch, program.prepare))
    must(prefix + [REPRISE, "record", "-q", "--recorder=ptrace", "-f", "-o", recorded, "--", *command],
         make_work(scratch, program.prepare))
    must([REPRISE, "import", "--strict", "-f", "-o", imported, text])
    return recorded, imported


def slice_of(trace, left_out):
    calls = ",".join("!" + call for call in left_out)
    must([REPRISE, "slice", "-f", "-c", calls, "-o", trace + ".slice", trace])
    return trace + ".slice"


def compare(scratch, program):
    ignore = ["--ignore", ",".join(("unknown", "inodes") + program.ignore)]
    prefix, differing = alike()
    left_out = UNTOLD + program.chance + differing
    words = ""
    for _ in range(ATTEMPTS):
        recorded, imported = traced(scratch, program, prefix)
        status, words = run([REPRISE, "diff", *ignore, slice_of(recorded, left_out), slice_of(imported, left_out)])
        if not status:
            return words
    raise Failed(words)


def main():
    names = sys.argv[1:] or list(PROGRAMS)
    if not shutil.which("strace") or "address" in os.environ.get("SANITIZE", ""):
        print("1..0 # SKIP strace is not installed, or its programs would be checked for leaks")
        return 0
    sys.stdout.reconfigure(line_buffering=True)
    print(f"1..{len(names)}")
    failed = 0
    for number, name in enumerate(names, 1):
        scratch = tempfile.mkdtemp()
        missing = [need for need in PROGRAMS[name].needs if not shutil.which(need)]
        try:
            if missing:
                print(f"ok {number} - {name} # SKIP {', '.join(missing)} not installed")
                continue
            words = compare(scratch, PROGRAMS[name])
            print(f"ok {number} - {name}: {words.strip().splitlines()[-1] if words.strip() else 'equal'}")
        except Failed as why:
            failed += 1
            print(f"not ok {number} - {name}")
            print("\n".join("# " + line[:300] for line in str(why).split("\n")[:24]))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return 1 if failed else 0


sys.exit(main())
