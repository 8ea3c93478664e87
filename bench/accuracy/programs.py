# SPDX-License-Identifier: MIT
"""The programs that are traced and replayed: those of programs.c, and real ones."""
import shutil

# What they are for is told by programs.c, and by README.md.
OWN = ["own1", "own2", "own8", "cache", "queue", "mutex", "barrier", "compute", "pipe", "socket", "rename", "fsync", "commit", "sequential"]

_DB = "--num={num} --threads={threads} --compression_type=none --db=$1/db >/dev/null 2>&1"
_FILL = "db_bench --benchmarks=fillseq,compact " + _DB.format(num=100000, threads=1)
_READ = "db_bench --use_existing_db=1 --benchmarks=readrandom --reads={reads} --use_direct_reads=1 --readonly " + _DB
_SYNC = "db_bench --benchmarks=fillrandom --sync=1 --writes={writes} " + _DB


def _read(threads, reads):
    return _READ.format(reads=reads, num=100000, threads=threads)


def _sync(threads, writes):
    return _SYNC.format(writes=writes, num=1000, threads=threads)


# Name: what it needs; how the directory $1 is prepared; what then runs in it.
REAL = {
    "readrandom4": ("db_bench", _FILL, _read(4, 250)),
    "readrandom8": ("db_bench", _FILL, _read(8, 125)),
    "fillsync4": ("db_bench", ":", _sync(4, 100)),
    "fillsync8": ("db_bench", ":", _sync(8, 100)),
    "sqlite": ("sqlite3", "sqlite3 $1/db 'create table t(a, b)'",
               "i=0; while [ $i -lt 40 ]; do echo \"insert into t values($i, hex(randomblob(50)));\"; i=$((i+1)); done | sqlite3 $1/db"),
    "postmark": ("postmark", ":",
                 "printf 'set location %s\\nset number 200\\nset transactions 500\\nset size 500 20000\\nrun\\nquit\\n' $1 | postmark >/dev/null"),
    "gcc": ("gcc", "i=0; while [ $i -lt 6 ]; do echo \"#include <stdio.h>\nint f$i(void) { return printf(\\\"%d\\\", $i); }\" >$1/f$i.c; i=$((i+1)); done",
            "cd $1 && for f in f*.c; do gcc -O1 -c $f; done && ar rc lib.a f*.o"),
    "git": ("git", "git -C $1 init -q . && cd $1 && seq 1 200 | split -l 1 - part- && git add . && git -c user.name=a -c user.email=a@b commit -qm a && rm part-*",
            "cd $1 && git checkout -q -f HEAD"),
}
ALL = OWN + list(REAL)
# Their processes wait for each other in calls that touch no path.
TALKING = ("pipe", "socket")


def missing(name):
    """What has to be installed for a program, or None."""
    return REAL[name][0] if name in REAL and not shutil.which(REAL[name][0]) else None


def command(name, what, own, directory):
    """How it is prepared or run in a directory; own is the path of the built programs.c."""
    if name in REAL:
        return ["/bin/sh", "-c", REAL[name][1 if what == "prepare" else 2], "sh", directory]
    return [own, name, what, directory]
