#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record programs with the agent, with one that enters late, and by ptrace alone, and compare the traces.

The programs do the same in each run, so both traces must have the same events
with the same data, and the same trees: as sets, since processes that run at the
same time mix in any order. Left out of the comparison is what differs between
any two runs (times, numbers of processes and inodes, addresses), and what the
kernel or the machine draws anew (RANDOM).
"""

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

REPRISE = os.environ.get("REPRISE", "reprise")
TIMEOUT_S = 120

CHOSEN = ("cat > p <<'E'\n"
          "import os\n"
          "def look(fd, nr):\n"
          "    for i in range(nr): os.pread(fd, 1, i); os.fstat(fd)\n"
          "def use(fd, nr):\n"
          "    look(fd, nr); os.pwrite(fd, b'z', 3)\n"
          "os.chdir('before')\n"
          "d, f = os.open('d/a', os.O_RDWR), os.open('f/a', os.O_RDWR)\n"
          "use(d, 40); use(f, 41); os.dup2(d, f); use(f, 20); os.close(f)\n"
          "f = os.open('f/c', os.O_RDWR); use(f, 21); os.rename('f/c', 'd/new'); use(f, 22); os.rename('d/new', 'f/c'); use(f, 23)\n"
          "os.rename('d', 'g/d'); use(d, 24); os.rename('g/d', 'd'); use(d, 25); r, w = os.pipe(); os.write(w, b'x'); os.read(r, 1)\n"
          "if not os.fork():\n"
          "    use(d, 15); os.close(d); d = os.open('f/a', os.O_RDWR); use(d, 16); os._exit(0)\n"
          "os.wait(); use(d, 17); os.closerange(3, 9); d = os.open('f/a', os.O_RDONLY); look(d, 18); os.execl('/bin/cat', 'cat', 'd/b', 'f/a')\n"
          "E\n"
          "python3 -S p")

PROGRAMS = {
    "a shell and small tools": "cp /etc/passwd x; sort x > y; cat y > z; ln -s y l; mv z q; ls -a > out; rm x",
    "a loop of small writes": "i=0; while [ $i -lt 50 ]; do echo $i; i=$((i+1)); done > f; wc -l f",
    "dd with blocks of all sizes": "for b in 1 512 4k 64k 1M; do dd if=/etc/passwd of=d bs=$b status=none; dd if=d of=/dev/null bs=$b status=none; done",
    "perl": "PERL_HASH_SEED=1 perl -e 'open F, q(>z); print F $_ for 1..5000; close F; open F, q(<z); print -s F; rename q(z), q(y)'",
    "python": "python3 -S -c 'import os; f = open(\"a\", \"wb\"); f.write(bytes(300000)); f.close(); "
    "os.stat(\"a\"); os.path.exists(\"b\"); os.remove(\"a\"); os.mkdir(\"d\"); os.chdir(\"d\"); open(\"e\", \"w\").close()'",
    "sqlite": "sqlite3 d.db 'pragma journal_mode=off; create table t(a); insert into t values(1),(2); select sum(a) from t;'",
    # Names that are known, and then mean something else: what was there before must be noted all the same.
    "names": "cat > p <<'E'\n"
    "import os\n"
    "def put(path, text):\n"
    "    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644); os.write(fd, text); os.close(fd)\n"
    "def work(nr):\n"
    "    for i in range(nr):\n"
    "        put('a', b'x' * i); os.rename('a', 'z'); os.rename('z', 'b'); put('a', b'y'); os.unlink('b')\n"
    "        put('new', b'z'); os.unlink('new')\n"
    "os.chdir('before'); work(9); os.chdir('d'); work(9); os.chdir('..')\n"
    "for i in range(3): put('d/a', b'1'); put('l', b'2'); put('s', b'3')\n"
    "os.rename('d', 'e'); os.rename('f', 'd')\n"
    "for i in range(3): put('d/a', b'4'); put('e/a', b'5')\n"
    "os.unlink('s'); os.link('t', 's'); os.unlink('l'); os.symlink('c', 'l')\n"
    "for i in range(3): put('s', b'6'); put('l', b'7')\n"
    "if not os.fork(): os.chdir('e'); put('c', b'8'); put('c', b'9'); os._exit(0)\n"
    "os.wait(); put('c', b'10'); put('c', b'11'); os.rmdir('g'); os.mkdir('g'); put('g/a', b'12'); put('g/a', b'13')\n"
    "E\n"
    "python3 -S p",
    # Descriptors that lead to what is wanted, to what is not, and from one to the other.
    "chosen paths": CHOSEN,
    "all but some paths": CHOSEN,
    "tar": "tar cf t.tar --sort=name -C / etc/passwd etc/hosts && tar tf t.tar > list",
}

TOOLS = {"python": "python3", "names": "python3", "sqlite": "sqlite3", "chosen paths": "python3", "all but some paths": "python3"}

OPTIONS = {
    "chosen paths": ["--path=before/d"],
    "all but some paths": ["--exclude-path=before/f", "--exclude-path=/usr", "--exclude-path=/etc", "--exclude-path=/root"],
}

# With auto: the agent enters after so many calls, in the middle of what short programs do.
AFTER = "60"
# Of how many events in a hundred it must have made the record. Short programs mostly begin and end;
# what does not stop at all is what it is for.
SHARES = {"inproc": 40, "auto": 1}

# Who gets the agent when nobody says after how many calls: of how many events in a hundred it
# must, and may, have made the record.
CHOICES = {
    "short programs get no agent": ("/bin/true; /bin/true; /bin/true", 0, 0),
    "a long program gets one": ("exec dd if=/dev/zero of=/dev/null bs=1 count=3000 status=none", 90, 100),
    "programs that come after one with an agent get one at once":
        ("dd if=/dev/zero of=/dev/null bs=1 count=60 status=none; cat /dev/null; wc /dev/null; sort /dev/null; "
         "uniq /dev/null; cut -c1 /dev/null; tac /dev/null; nl /dev/null; fold /dev/null; join /dev/null /dev/null", 70, 100),
    "also those that make few calls, if not very few":
        ("dd if=/dev/zero of=/dev/null bs=1 count=60 status=none; for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done", 45, 100),
    "a program whose processes made many calls gets one at once":
        ("for i in 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=/dev/null bs=1 count=50 status=none; done", 40, 100),
}

# What can be had by ptrace alone.
BY_PTRACE = ("--on-death=continue",)

RANDOM = re.compile(r"^(loss\(kind=FILTERED|getrandom|sysinfo|read\(fd=3, buf=\".*\", count=4\)|getrusage|blob|stream|meta|tree_entry\(.*\"/((proc|dev|sys)\b|tmp\"))|"
                    r"^tree_entry\(tree=final, path=\"/(etc|usr|var|root)")
PATTERNS = [
    (re.compile(r"^\d+/\d+ #\d+ \d+\+\d+ "), ""),  # who, which and when
    (re.compile(r" \{[^{}]*\}$"), ""),  # what else is known of an event
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"\b(pipe|socket):\[\d+\]"), r"\1"),
    (re.compile(r"\b(\w*(?:pid|ino|_ns|time|sec|offset_after|nlink)|d_off|tid|parent|sender|stx_mnt_id|dio_\w+)=-?[\d.]+"), r"\1=N"),
    (re.compile(r"= \d{3,7}$"), "= NUMBER"),  # processes
    (re.compile(r"^rt_sigreturn.*"), "rt_sigreturn"),  # what it broke off
    (re.compile(r"((?:set_tid_address|gettid|getpid|getppid|clone|vfork|fork|wait4)\(.*\)) = \d+"), r"\1 = PID"),
    (re.compile(r"(wait4|kill|tgkill)\(pid=\S+"), r"\1("),
]


def lines_of(trace):
    text = subprocess.run([REPRISE, "show", "--exact", trace], check=True, timeout=TIMEOUT_S,
                          stdout=subprocess.PIPE).stdout.decode("latin-1")
    found = collections.Counter()
    for line in text.split("\n"):
        if line.startswith("blob "):
            continue  # events refer to it by its hash
        for pattern, new in PATTERNS:
            line = pattern.sub(new, line)
        if line and not RANDOM.match(line):
            found[line] += 1
    return found


def make_tree(top):
    """What is there before the program begins."""
    for directory in ("", "d", "f", "g"):
        os.mkdir(os.path.join(top, directory))
    for name in ("a", "b", "c", "d/a", "d/b", "d/c", "f/a", "f/c"):
        with open(os.path.join(top, name), "w", encoding="ascii") as f:
            f.write("before: " + name)
    os.symlink("b", os.path.join(top, "l"))
    os.symlink("c", os.path.join(top, "s"))
    os.symlink("d/c", os.path.join(top, "t"))


def record(recorder, script, scratch, after=AFTER, options=()):
    """(exit status and output, lines) of one run, in a directory of the same name each time."""
    work, trace = os.path.join(scratch, "work"), os.path.join(scratch, recorder + ".trace")
    shutil.rmtree(work, ignore_errors=True)
    os.mkdir(work)
    make_tree(os.path.join(work, "before"))
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", **({"REPRISE_AGENT_AFTER": after} if after else {})}
    p = subprocess.run([REPRISE, "record", "-q", "--contents=0", "--recorder=" + recorder, *options, "-o", trace,
                        "--", "/bin/sh", "-c", script],
                       cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       timeout=TIMEOUT_S, env=env, check=False)
    check = subprocess.run([REPRISE, "check", trace], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=TIMEOUT_S, check=False)
    return (p.returncode, p.stdout, check.returncode), lines_of(trace)


def share_of_agent(trace):
    """Of how many events in a hundred the agent made the record."""
    text = subprocess.run([REPRISE, "show", "--exact", trace], check=True, timeout=TIMEOUT_S,
                          stdout=subprocess.PIPE).stdout.decode("latin-1")
    by_agent = int(re.search(r'^meta\(key="agent_events", value="(\d+)"\)', text, re.M).group(1))
    return 100 * by_agent // len(re.findall(r"^\d+/\d+ #", text, re.M))


def compare(script, scratch, options):
    """What differs, as lines."""
    by_ptrace, wanted = record("ptrace", script, scratch, options=options)
    problems = []
    for recorder, least in SHARES.items():
        by_agent, got = record(recorder, script, scratch, options=options)
        if by_ptrace != by_agent:
            problems.append(f"{recorder}: status, output and check: {by_agent}, by ptrace {by_ptrace}")
        share = share_of_agent(os.path.join(scratch, recorder + ".trace"))
        if share < least:
            problems.append(f"{recorder}: of all events the agent recorded {share} %")
        problems += [f"{recorder}: missing: " + line[:300] for line in (wanted - got).elements()]
        problems += [f"{recorder}: only so: " + line[:300] for line in (got - wanted).elements()]
    return problems


def choose(script, least, most, scratch):
    """What is wrong about who got the agent."""
    (status, _, check), _ = record("auto", script, scratch, after=None)
    share = share_of_agent(os.path.join(scratch, "auto.trace"))
    os.remove(os.path.join(scratch, "auto.trace"))
    if status or check:
        return [f"the program ended with {status}, the check of the trace with {check}"]
    return [] if least <= share <= most else [f"of all events the agent recorded {share} %"]


def fall_back(option, scratch):
    """What is wrong when nobody chose a recorder, and this cannot be had with an agent."""
    trace = os.path.join(scratch, "t.trace")
    p = subprocess.run([REPRISE, "record", "-f", "-o", trace, option, "--", "/bin/sh", "-c", "exit 7"],
                       stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False)
    if p.returncode != 7 or "; no agent: " not in p.stderr:
        return [f"{p.returncode}: {p.stderr}"]
    return []


def report(number, name, problems):
    print(f"{'not ' if problems else ''}ok {number} - {name}")
    for line in problems[:30]:
        print("# " + line)
    return bool(problems)


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="reprise-recorders-") as scratch:
        p = subprocess.run([REPRISE, "record", "-q", "--recorder=inproc", "-o", scratch + "/t.trace", "--", "true"],
                           stderr=subprocess.PIPE, text=True, check=False)
        if p.returncode:
            print("1..0 # SKIP " + p.stderr.strip())
            return 0
        print(f"1..{len(PROGRAMS) + len(CHOICES) + len(BY_PTRACE)}")
        for number, (name, script) in enumerate(PROGRAMS.items(), 1):
            tool = name if name in ("perl", "tar") else TOOLS.get(name)
            if tool and not shutil.which(tool):
                print(f"ok {number} - {name} # SKIP there is no {tool}")
                continue
            problems = compare(script, scratch, OPTIONS.get(name, ()))
            failed += report(number, name, problems)
            for trace in ("ptrace", *SHARES):
                os.remove(os.path.join(scratch, trace + ".trace"))
        for number, (name, (script, least, most)) in enumerate(CHOICES.items(), len(PROGRAMS) + 1):
            failed += report(number, name, choose(script, least, most, scratch))
        for number, option in enumerate(BY_PTRACE, len(PROGRAMS) + len(CHOICES) + 1):
            failed += report(number, f"{option} without a word about the recorder", fall_back(option, scratch))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
