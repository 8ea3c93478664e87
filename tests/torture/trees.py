#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: trees.py TORTURE TORTURE_STATIC TORTURE_NARROW [PATTERN]...

Programs whose initial tree is hard to tell: they change what they use, move, or end, while
what they have done is still to be learned. Cases can be chosen by a part of their names.
"""

import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

TORTURE = os.path.abspath(sys.argv[1])


def init():
    """Makes the initial tree of the trace below `again`."""
    shutil.rmtree("again", ignore_errors=True)
    os.mkdir("again")
    status, _, err = run(REPRISE, "init", "trace", "again")
    equal(status, 0, err.decode())


# Opens files to be written, by names that are known by then, as another process has used them before.
NAMES = """
import os, sys
path, jail = sys.argv[1:3]

def change(name, text):
    with open(name, "r+") as f:
        f.write(text)

# What is known of names is forgotten when a process moves: so it is known again when it goes on.
def in_child(move, go_on, meanwhile):
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        move()
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        go_on()
        os._exit(0)
    os.read(ready[0], 1)
    for _ in range(3):
        meanwhile()
    os.write(go[1], b"x")
    assert os.waitpid(child, 0)[1] == 0

for _ in range(50):
    change(path, "X")
os.chdir("a")
in_child(lambda: os.chdir("../b"), lambda: change("f", "X"), lambda: change("f", "X"))
if os.geteuid() == 0:
    in_child(lambda: os.chroot(jail), lambda: change(path, "X"), lambda: change(path, "Y"))
"""


@case("names that are known in one process mean other files in another directory or root")
def names():
    here = os.path.realpath(".")
    files = ["abs", "a/f", "b/f", f"jail{here}/abs"]
    for name in files:
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "w", encoding="utf-8") as f:
            f.write(name)
    record(sys.executable, "-c", NAMES, here + "/abs", here + "/jail", options=["--contents=1M"])
    trace = Trace()
    trace.must_be_whole()
    init()
    for name in files[:None if os.geteuid() == 0 else 3]:
        with open(f"again{here}/{name}", encoding="utf-8") as f:
            equal(f.read(), name, f"{name} as it was at the start")
        with open(name, encoding="utf-8") as f:
            expect(f.read() != name, f"{name} was not changed")


# Two processes read half of the files each, and may change each right after, in one way or another.
LARGE_FILES = """
import os, sys
names = sorted(os.listdir("large"))
os.chdir("large")

def change(name, how):
    if how == 0:
        os.truncate(name, 100)
    elif how == 1:
        os.rename(name, name + ".moved")
    elif how == 2:
        os.unlink(name)
    elif how == 3:
        with open(name, "r+b") as f:
            f.seek(-1, os.SEEK_END)
            f.write(b"changed")
    elif how == 4:
        with open(name, "wb") as f:
            f.write(b"new")

child = os.fork()
for i, name in enumerate(names):
    if i % 2 == (child == 0):
        with open(name, "rb") as f:
            f.read(1)
        change(name, i // 2 % 6 if sys.argv[1] == "changed" else None)
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@case("large files are kept as they were, read while the program goes on, and changes them or not")
def large_files():
    contents = {f"f{i:02}": os.urandom((1 << 20) + i * 40000) for i in range(24)}
    for what in ("changed", "left"):
        shutil.rmtree("large", ignore_errors=True)
        os.mkdir("large")
        for name, content in contents.items():
            with open("large/" + name, "wb") as f:
                f.write(content)
        _, err = record(sys.executable, "-c", LARGE_FILES, what, options=["--force"])
        equal(err, b"", "what was said")
        Trace().must_be_whole()
        init()
        for name, content in contents.items():
            with open(f"again{os.path.realpath('large')}/{name}", "rb") as f:
                expect(f.read() == content, f"{name} is not as it was at the start")


CHANGE_READ_ONLY = """
import os
for name in sorted(os.listdir("files")):
    fd = os.open("files/" + name, os.O_RDONLY)
    os.fstat(fd)
    os.fchmod(fd, 0o600)
    try:
        os.setxattr(fd, "user.x", b"new")
        os.removexattr(fd, "user.x")
    except OSError:
        pass
    os.close(fd)
"""


@case("what a file was is noted before it is changed by a descriptor for reading")
def change_read_only():
    os.mkdir("files")
    has_xattrs = True
    for i in range(100):
        with open(f"files/{i}", "wb") as f:
            os.fchmod(f.fileno(), 0o640)
        try:
            os.setxattr(f"files/{i}", "user.x", b"old")
        except OSError:
            has_xattrs = False
    record(sys.executable, "-c", CHANGE_READ_ONLY)
    Trace().must_be_whole()
    init()
    for i in range(100):
        name = f"again{os.path.realpath('files')}/{i}"
        equal(os.stat(name).st_mode & 0o777, 0o640, f"mode of {i}")
        if has_xattrs:
            equal(os.getxattr(name, "user.x"), b"old", f"attribute of {i}")


@case("a file system that a program was run from can be unmounted")
def unmount():
    os.mkdir("mnt")
    mount = "mount -t tmpfs none mnt"
    if run("unshare", "-m", "sh", "-ec", mount)[0] != 0:
        raise Skipped("nothing can be mounted here")
    script = f"{mount}; cp {TORTURE} mnt/p; mnt/p calls 100; umount mnt"
    status, _, err = run("unshare", "-m", *record_argv("sh", "-ec", script))
    equal(status, 0, f"exit status\n{err.decode()}")
    Trace().must_be_complete()


# With an overlay at m: its directories have no time of birth, and numbers that are used again.
OVERLAY = """
mkdir lower upper work m
mount -t tmpfs none upper; mkdir upper/u upper/w
mount -t overlay overlay -o lowerdir=lower,upperdir=upper/u,workdir=upper/w m
mkdir m/empty m/full m/gone m/kept
echo old >m/full/f; echo old >m/kept/f
"""
OVERLAY_CHANGES = """
rmdir empty; mkdir new; echo new >new/f; mv new empty; cat empty/f
mv full moved; cat moved/f
rmdir gone; mkdir again; echo new >again/f; cat again/f
! rmdir kept 2>/dev/null; cat kept/f
"""


@case("directories of an overlay are told apart when they are moved, removed and made")
def overlay():
    prepare = "\n".join(["set -e", OVERLAY])
    if run("unshare", "-m", "sh", "-c", prepare)[0] != 0:
        raise Skipped("no overlay can be mounted here")
    for name in ("lower", "upper", "work", "m"):
        shutil.rmtree(name, ignore_errors=True)
    script = prepare + '\nexec "$@"'
    status, _, err = run("unshare", "-m", "sh", "-c", script, "sh",
                         *record_argv("sh", "-ec", "cd m\n" + OVERLAY_CHANGES))
    equal(status, 0, f"exit status\n{err.decode()}")
    Trace().must_be_whole()
    init()
    top = f"again{os.path.realpath('m')}"
    equal(sorted(os.listdir(top)), ["empty", "full", "gone", "kept"], "directories of the start")
    equal([os.listdir(f"{top}/{name}") for name in ("empty", "full", "gone", "kept")],
          [[], ["f"], [], ["f"]], "what was in them")


@case("a recorder to which /proc shows other processes says so, and records nothing")
def other_proc():
    if run("unshare", "-pf", "true")[0] != 0:
        raise Skipped("no other processes can be had here")
    status, _, err = run("unshare", "-pf", *record_argv("true"))
    equal(status, 2, f"exit status\n{err.decode()}")
    expect(b"/proc is that of other processes" in err, f"no reason: {err!r}")
    expect(not os.path.exists("trace"), "there is a trace")
    status, _, err = run("unshare", "-pf", "--mount-proc", *record_argv("true"))
    equal(status, 0, f"exit status\n{err.decode()}")
    Trace().must_be_whole()


MOVES = """
import os
os.chdir("a")
for _ in range(50):
    with open("f") as f:
        f.read()
child = os.fork()
if not child:
    os.chdir("../b")
    with open("g") as f:
        f.read()
    os.chdir("../c")
    with open("h") as f:
        f.read()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@case("only some calls, and none by which a process moves: names are of where it is")
def unseen_moves():
    for name in ("a/f", "b/g", "c/h"):
        os.mkdir(os.path.dirname(name))
        with open(name, "w", encoding="utf-8") as f:
            f.write(name)
    record(sys.executable, "-c", MOVES, options=["--calls=openat,open,read"])
    status, out, err = run(REPRISE, "show", "--tree=initial", "--json", "trace")
    equal(status, 0, err.decode())
    here = os.path.realpath(".")
    noted = [name for name in (f"{d}/{f}" for d in "abc" for f in "fgh")
             if f'"{here}/{name}"' in out.decode()]
    equal(noted, ["a/f", "b/g", "c/h"], "files in the initial tree")


# What a call that is not recorded does to files is not known when the records of others are taken in.
UNSEEN_CHANGES = """
import os
for _ in range(100):
    os.getppid()
for i in range(20):
    with open(f"files/{i}") as f:
        f.read()
    os.unlink(f"files/{i}") if i % 2 else os.chmod(f"files/{i}", 0o600)
"""


@case("only some calls, and none by which files are changed: they are noted before that")
def unseen_changes():
    for options in (["--exclude=%name,%meta"], ["--calls=%data,%desc"]):
        shutil.rmtree("files", ignore_errors=True)
        os.mkdir("files")
        for i in range(20):
            with open(f"files/{i}", "w", encoding="utf-8") as f:
                os.fchmod(f.fileno(), 0o640)
                f.write(str(i))
        record(sys.executable, "-c", UNSEEN_CHANGES, options=["--force", *options])
        init()
        for i in range(20):
            name = f"again{os.path.realpath('files')}/{i}"
            equal(os.stat(name).st_mode & 0o777, 0o640, f"mode of {i} with {options}")
            with open(name, encoding="utf-8") as f:
                equal(f.read(), str(i), f"content of {i} with {options}")


@case("a file is what it was by each of its names, also when others are gone before one is used")
def last_names():
    for command in ("sed -i s/1/x/ d/a", "cat d/a; rm d/a", "mv d/n d/a", "echo more >>d/a; rm d/a"):
        shutil.rmtree("d", ignore_errors=True)
        os.mkdir("d")
        for name, text in (("a", "1\n2\n"), ("n", "new\n")):
            with open("d/" + name, "w", encoding="utf-8") as f:
                f.write(text)
        os.link("d/a", "d/b")
        record("sh", "-c", command + "; ls d; cat d/b", options=["--force"])
        Trace().must_be_whole()
        init()
        again = "again" + os.path.realpath("d")
        with open(again + "/b", encoding="utf-8") as f:
            equal(f.read(), "1\n2\n", f"content with {command}")
        expect(os.path.samefile(again + "/a", again + "/b"), f"two files with {command}")


# A socket, a symlink by another name, a file by its handle.
ODD_NAMES = """
import ctypes, os, socket
for _ in range(100):
    os.getppid()
socket.socket(socket.AF_UNIX).bind("made")
os.stat("made")
for name in ("to/f", "to/f"):
    with open(name, "r+") as f:
        f.write("X")
    os.unlink("to")
    os.link("other", "to", follow_symlinks=False)
libc = ctypes.CDLL(None, use_errno=True)
handle = ctypes.create_string_buffer(b"\\x80" + bytes(3 + 4 + 128))
mount = ctypes.c_int()
if not libc.name_to_handle_at(-100, b"handled", handle, ctypes.byref(mount), 0):
    here = os.open(".", os.O_RDONLY)
    fd = libc.open_by_handle_at(here, handle, os.O_RDWR)
    if fd >= 0:
        os.write(fd, b"X")
        open("handled").read()
"""


@case("names that are made or found in odd ways")
def odd_names():
    for name in ("a/f", "b/f", "handled"):
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "w", encoding="utf-8") as f:
            f.write("old")
    os.symlink("a", "to")
    os.symlink("b", "other")
    record(sys.executable, "-c", ODD_NAMES)
    Trace().must_be_whole()
    init()
    here = "again" + os.path.realpath(".")
    expect(not os.path.lexists(here + "/made"), "the socket is in the initial tree")
    for name in ("to/f", "other/f", "handled"):
        if os.path.exists(f"{here}/{name}") or name != "handled":
            with open(f"{here}/{name}", encoding="utf-8") as f:
                equal(f.read(), "old", name)


@case("without data, names that calls return are kept")
def names_without_data():
    os.symlink("b", "to")
    record(sys.executable, "-c", "import os; [(os.readlink('to'), os.getcwd()) for _ in range(100)]", data="none")
    status, out, err = run(REPRISE, "show", "--call=readlink,getcwd", "trace")
    equal(status, 0, err.decode())
    equal(out.decode().count('readlink("to", "b", '), 100, "results of readlink")
    expect(out.decode().count('getcwd("/') >= 100, "results of getcwd")


PASSED = """
import os, socket
ours, theirs = socket.socketpair()
if not os.fork():
    socket.send_fds(theirs, [b"x"], [os.open("f", os.O_RDWR)])
    os._exit(0)
fd = socket.recv_fds(ours, 1, 1)[1][0]
os.wait()
os.write(fd, b"passed")
os.write(fd, b"!")
"""


@case("a file whose descriptor comes by a message is replayed from where it stood")
def passed_descriptor():
    with open("f", "w", encoding="utf-8") as f:
        f.write("content.")
    record(sys.executable, "-c", PASSED)
    os.mkdir("again")
    status, out, err = run(REPRISE, "replay", "--speed=afap", "trace", "again")
    equal(status, 0, (out + err).decode())
    with open("again" + os.path.realpath("f"), encoding="utf-8") as f:
        equal(f.read(), "passed!.", "content after the replay")


@case("all attributes of a file")
def many_attributes():
    with open("f", "wb"):
        pass
    nr = 0
    try:
        for nr in range(100):
            os.setxattr("f", f"user.a{nr}", b"v")
    except OSError:
        pass
    if nr < 2:
        raise Skipped("files have no attributes here")
    record(sys.executable, "-c", "import os; os.getxattr('f', 'user.a1')")
    Trace().must_be_whole()
    init()
    equal(sorted(os.listxattr("again" + os.path.realpath("f"))), sorted(os.listxattr("f")), "attributes")


def two_directories(nr):
    for directory in "ab":
        shutil.rmtree(directory, ignore_errors=True)
        os.mkdir(directory)
        for i in range(nr):
            with open(f"{directory}/old{i}", "w", encoding="utf-8") as f:
                f.write(f"{directory}{i}")


@case("names that are used while the working directory changes are noted where they lead")
def moving():
    nr = 300
    two_directories(nr)
    out, _ = record(TORTURE, "moving", str(nr))
    Trace().must_be_whole()
    used = out.decode().split()
    equal(len(used), 2 * nr, "number of files")
    init()
    final = run(REPRISE, "show", "--tree=final", "--json", "trace")[1].decode()
    for path in used:
        expect(f'"{path}"' in final, f"{path} is not in the final tree")
        old = "/old" in path
        expect(os.path.exists("again" + path) == old,
               f"{path} is {'not in' if old else 'in'} the initial tree")
        if old:
            with open(path, encoding="utf-8") as f, open("again" + path, encoding="utf-8") as g:
                equal(g.read(), f.read(), f"{path} as it was at the start")


@case("the same of a program that is killed meanwhile: the names are noted, or the ledger says so")
def moving_to_death():
    nr = 400
    two_directories(nr)
    paths = {os.stat(f"{d}/old{i}").st_ino: os.path.realpath(f"{d}/old{i}") for d in "ab" for i in range(nr)}
    for _ in range(20):
        with open("used", "wb") as f:
            f.write(bytes(8 * nr))
        record(TORTURE, "moving-die", str(nr), options=["--force"], status=-signal.SIGKILL)
        _, check = Trace().check()
        initial = run(REPRISE, "show", "--tree=initial", "--json", "trace")[1].decode()
        with open("used", "rb") as f:
            used = [paths[ino] for ino in struct.unpack(f"{nr}Q", f.read()) if ino]
        missing = [path for path in used if f'"{path}"' not in initial]
        expect(not missing or check["ledger"] > 0,
               f"{len(missing)} of {len(used)} are not in the initial tree")


sys.exit(run_cases(sys.argv[4:]))
