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
# Not in strace's text; or random, when a signal comes and what the handler returns to (numbers of processes); an
# address that the table has as a number; how often the heap grows.
LEFT_OUT = ("found_fd", "found_state", "continued", "getrandom", "signal", "rt_sigreturn", "arch_prctl", "brk")
STRACE = ["strace", "-f", "-ttt", "-T", "-yy", "-xx", "-s", "1000000", "-v"]

TREE = r"""
mkdir -p tree/a/b tree/c
for i in 1 2 3 4 5 6 7 8 9; do echo $i >tree/a/$i; head -c ${i}0000 /dev/zero >tree/a/b/z$i; done
ln -s ../a/1 tree/c/link; ln tree/a/2 tree/c/hard; chmod 600 tree/a/3
touch -h -d @1700000000 tree/c/*; touch -d @1700000000 tree/a/* tree/a/b/* tree/a tree/a/b tree/c tree
"""
# name: (what it needs, how its directory is made, what is run, calls that depend on chance, what is ignored)
PROGRAMS = {
    "sh": ((), "", "for i in 1 2 3; do echo $i >>out; done; x=$(cat out); test \"$x\"; (cd / && ls >/dev/null)",
           (), ()),
    "pipe": ((), TREE, "cat tree/a/1 tree/a/2 | wc -c >n", ("wait4",), ()),
    "cp": ((), TREE, "cp -r tree copy", ("statfs", "fstatfs"), ()),
    "mv": ((), TREE, "mv tree other; ln -s other tree; mkdir -p x/y; rmdir x/y", (), ()),
    "rm": ((), TREE, "rm -r tree", ("statfs", "fstatfs"), ()),
    "tar": (("tar",), TREE, "tar cf t.tar tree; mkdir out; tar xf t.tar -C out", (), ("data",)),
    "find": (("find",), TREE, "find tree -type f -size +50k -exec ls -l {} +", ("statfs", "fstatfs"), ()),
    "python3": (("python3",), TREE, """python3 -I -c 'import os
open("x", "w").write("y" * 1000); os.rename("x", "y"); os.truncate("y", 10); os.setxattr("y", "user.a", b"v"); os.getxattr("y", "user.a")
with open("y", "r+b") as f: os.pwritev(f.fileno(), [b"ab", b"c"], 100); os.preadv(f.fileno(), [bytearray(2), bytearray(70)], 99); os.fsync(f.fileno())
for d, _, fs in os.walk("tree"): [open(os.path.join(d, f), "rb").read() for f in fs]'""", ("sysinfo",), ()),
    "sqlite3": (("sqlite3",), "", "sqlite3 db 'create table t (a, b); insert into t values (1, hex(zeroblob(999))); vacuum;'",
                (), ("data",)),
    "git": (("git",), "git init -q -b main repo; cd repo; echo 1 >f; git add f; touch -d @1700000000 f; git status --short",
            "cd repo; git ls-files -s; git cat-file blob :f; git config core.bare", (), ("data",)),
    "sort": ((), "seq 1 2000 | sed 's/$/ some words/' >in", "sort -r --parallel=1 in >out", ("sysinfo",), ()),
    "sed": (("sed", "grep"), TREE, "sed s/1/2/ tree/a/1 >o; dd if=tree/a/b/z3 of=z bs=512 seek=3 count=9 conv=notrunc status=none",
            ("statfs", "fstatfs"), ("data",)),
}


class Failed(Exception):
    pass


def run(argv, cwd=None):
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": cwd or "/", "LC_ALL": "C", "TZ": "UTC",
           "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_NOSYSTEM": "1"}
    p = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=120, check=False)
    return p.returncode, p.stdout.decode(errors="replace")


def must(argv, cwd=None):
    status, out = run(argv, cwd)
    if status:
        raise Failed(f"{' '.join(argv[:4])}: status {status}: {out[-1500:]}")
    return out


def make_work(scratch, prepare):
    work = os.path.join(scratch, "work")
    shutil.rmtree(work, ignore_errors=True)
    os.mkdir(work)
    must(["sh", "-ec", prepare], work)
    return work


def traced(scratch, prepare, script):
    """The two traces of two runs."""
    text, imported, recorded = (os.path.join(scratch, n) for n in ("text", "imported", "recorded"))
    must(STRACE + ["-o", text, "sh", "-ec", script], make_work(scratch, prepare))
    must([REPRISE, "record", "-q", "-f", "-o", recorded, "--", "sh", "-ec", script], make_work(scratch, prepare))
    must([REPRISE, "import", "--strict", "-f", "-o", imported, text])
    return recorded, imported


def slice_of(trace, left_out):
    calls = ",".join("!" + call for call in left_out)
    must([REPRISE, "slice", "-f", "-c", calls, "-o", trace + ".slice", trace])
    return trace + ".slice"


def compare(scratch, name):
    _, prepare, script, by_chance, ignored = PROGRAMS[name]
    ignore = ["--ignore", ",".join(("unknown", "inodes") + ignored)]
    words = ""
    for _ in range(ATTEMPTS):
        recorded, imported = traced(scratch, prepare, script)
        left_out = LEFT_OUT + by_chance
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
        missing = [need for need in PROGRAMS[name][0] if not shutil.which(need)]
        try:
            if missing:
                print(f"ok {number} - {name} # SKIP {', '.join(missing)} not installed")
                continue
            words = compare(scratch, name)
            print(f"ok {number} - {name}: {words.strip().splitlines()[-1] if words.strip() else 'equal'}")
        except Failed as why:
            failed += 1
            print(f"not ok {number} - {name}")
            print("\n".join("# " + line[:300] for line in str(why).split("\n")[:24]))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return 1 if failed else 0


sys.exit(main())
