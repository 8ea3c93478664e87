#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: rights.py HOSTILE STILL [PATTERN]...

Root records programs of other users. The recorder reads the files that a program names with the
program's own rights, so the trace has their contents if and only if the program may read them.
"""

import json
import os
import shutil
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ways import *  # pylint: disable=wildcard-import,wrong-import-position

OTHER = ("other", )
# Fields that a program can learn only if it may enter the file's directory.
KNOWN_BY_STAT = ("size", "mode", "uid", "mtime_ns", "ino")


def tree(which, path):
    """What the initial or final tree says of a path in all its entries together, or None."""
    status, out, err = run(REPRISE, "show", f"--tree={which}", "--json", "trace")
    equal(status, 0, f"reprise show: {err.decode()}")
    entries = [json.loads(line) for line in out.splitlines()]
    found = [e for e in entries if e.get("path") == path]
    if not found:
        return None
    together = {}
    for entry in found:
        together.update(entry)
    together["flags"] = "|".join(e["flags"] for e in found)
    return together


def must_not_know(path, enters=True):
    """Check that neither tree has the contents of a file, or their hash.

    enters: the program may enter the directory; if not, the result of stat() must be absent too"""
    for which in "initial", "final":
        entry = tree(which, path)
        if not entry:
            continue
        expect("content" not in entry and "hash" not in entry, f"{which}: {entry}")
        if not enters:
            known = [field for field in KNOWN_BY_STAT if field in (entry.get("stat") or {})]
            equal(known, [], f"{which} tree says of {path}")
        elif which == "initial":
            expect("UNREADABLE" in entry["flags"], f"not marked: {entry}")


def must_know(path):
    entry = tree("initial", path)
    expect(entry and MARKER in str(entry.get("content")), f"the contents are missing: {entry}")


def replace_secret(path, mode=0o600, owner=0, group=0):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(MARKER + "\n")
    os.chown(path, owner, group)
    os.chmod(path, mode)
    return os.path.abspath(path)


def opens(way, how, *names, answers=("EACCES", ), **more):
    """Record a program that opens these files, with these results."""
    _, out = run_recorded(way, HOSTILE, "open", how, *names, **more)
    equal(out.split(), list(answers) * (len(names) // len(answers)), f"opens of {names}")


@each("a file that the program may not read is marked unreadable", users=OTHER)
def unreadable(way, _):
    path = os.path.abspath("secret")
    for how in "read", "write", "both":
        opens(way, how, path)
        must_not_know(path)
    opens(way, "path", path, answers=("ok", ))
    must_not_know(path)
    run(REPRISE, "init", "trace", "tree")
    status, out, _ = run("grep", "-r", "-l", MARKER, "tree")
    equal((status, out), (1, b""), "files with the secret")


@each("nothing is known of a file below a directory that the program may not enter", users=OTHER)
def closed_directory(way, _):
    path = replace_secret("closed/secret", mode=0o644)
    replace_secret("closed/sibling", mode=0o644)
    os.chmod("closed", 0o700)
    opens(way, "read", path, os.path.join(os.path.dirname(path), "none"))
    must_not_know(path, enters=False)
    expect("sibling" not in text_of_trace(), "the trace has other names of the directory")


@each("symlinks and /proc do not reveal an unreadable file", users=OTHER)
def by_links(way, _):
    path = os.path.abspath("secret")
    os.symlink(path, "made/link")
    os.symlink("link", "made/to-link")
    opens(way, "read", "link", "to-link", "/proc/self/root" + path, "/proc/self/cwd/../secret", "/proc/self/cwd/link",
          "/proc/thread-self/root" + path)
    must_not_know(path)


@each("FIFOs and devices do not block the recorder", users=OTHER)
def special_files(way, _):
    os.mkfifo("made/closed", 0o600)
    os.mkfifo("made/open", 0o666)
    os.mknod("made/device", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    opens(way, "read", "closed", "device")
    opens(way, "nonblock", "open", "/dev/zero", answers=("ok", "ok"))
    for how in "read", "write":
        opens(way, how, "/dev/null", answers=("ok", ))


def swap(way, own, other, name):
    """Open a name while another process exchanges a file of the user with an unreadable one."""
    status, _ = run_recorded(way, HOSTILE, "swap", "700", name, own, other)
    equal(status, 0, "status")


@each("a name that changes while it is opened does not reveal an unreadable file", users=OTHER)
def swapped_file(way, _):
    with open("made/own", "w", encoding="utf-8") as f:
        f.write("own\n")
    os.chmod("made/own", 0o666)
    os.symlink(os.path.abspath("secret"), "made/other")
    swap(way, "own", "other", "own")


@each("nor does a directory that changes", users=OTHER)
def swapped_directory(way, _):
    path = replace_secret("closed/file", mode=0o644)
    os.chmod("closed", 0o700)
    os.mkdir("made/own", 0o755)
    with open("made/own/file", "w", encoding="utf-8") as f:
        f.write("own\n")
    os.symlink(os.path.dirname(path), "made/other")
    swap(way, "own", "other", "own/file")


@each("renaming or linking an unreadable file does not reveal it", users=OTHER)
def moved(way, _):
    for how, answers in (("rename", ("ok", )), ("link", ("ok", "EPERM"))):
        prepare()
        path = replace_secret("made/theirs")
        _, out = run_recorded(way, HOSTILE, "move", how, "theirs", "mine")
        expect(out.strip() in answers, f"{how}: {out}")
        must_not_know(path)
        entry = tree("final", os.path.abspath("made/mine"))
        expect(not entry or "hash" not in entry and "content" not in entry, f"final: {entry}")


@each("running an unreadable program does not reveal it", users=OTHER)
def run_only(way, _):
    shutil.copyfile(HOSTILE, "made/program")
    with open("made/program", "a", encoding="utf-8") as f:
        f.write(MARKER)
    os.chmod("made/program", 0o711)
    # By a shell: setpriv itself has all its capabilities up to the execve.
    status, _ = run_recorded(way, "sh", "-c", "./program mark it; exit $?", options=["--contents=64M"])
    equal((status, made_names()), (0, ["by-it", "program"]), "status, made")
    must_not_know(os.path.abspath("made/program"))


@each("a file readable through a supplementary group is kept", users=OTHER)
def by_group(way, _):
    group = 54321
    path = replace_secret("shared", mode=0o640, group=group)
    by = [*TO_NOBODY[:-1], f"--groups={group}"]
    _, out = run_recorded(way, HOSTILE, "open", "read", path, by=by, may_tell=True)
    equal(out.strip(), "ok", "open")
    must_know(path)


@each("a file readable through a capability is kept", users=OTHER)
def by_capability(way, _):
    by = [*TO_NOBODY, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    _, out = run_recorded(way, HOSTILE, "open", "read", os.path.abspath("secret"), by=by, may_tell=True)
    equal(out.strip(), "ok", "open")
    must_know(os.path.abspath("secret"))


@each("a readable file is kept", users=("self", ))
def allowed(way, _):
    _, out = run_recorded(way, HOSTILE, "open", "read", os.path.abspath("secret"), user="self", may_tell=True)
    equal(out.strip(), "ok", "open")
    must_know(os.path.abspath("secret"))


@each("a file that a sandbox denies is not revealed", users=("self", ))
def confined(way, _):
    path = os.path.abspath("secret")
    for how in "read", "both":
        _, out = run_recorded(way, HOSTILE, "confined", how, path, user="self")
        equal(out.strip(), "EACCES", "open")
        must_not_know(path)


@each("only the owner can read a trace", users=("self", ))
def mode_of_trace(way, _):
    for mask in 0o000, 0o077:
        old = os.umask(mask)
        try:
            run_recorded(way, "true", user="self")
        finally:
            os.umask(old)
        equal(oct(stat.S_IMODE(os.stat("trace").st_mode)), oct(0o600), "mode")


sys.exit(run_cases(sys.argv[3:]))
