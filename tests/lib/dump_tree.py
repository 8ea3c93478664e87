#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: dump_tree.py DIR

Prints all that can be told of the names below DIR, a line each, sorted: type, mode, owner, size, times,
target, attributes, content, and which names are one file. Two trees are the same when their
dumps are. DIR/.reprise is left out.
"""

import hashlib
import os
import stat
import sys

top = os.fsencode(sys.argv[1])
links = {}
lines = []


def told(what):
    """What can only be told with rights is told as closed without them."""
    try:
        return what()
    except PermissionError:
        return None


def content(path, size):
    if size > 1 << 28:
        return "large"
    with open(path, "rb", opener=lambda p, f: os.open(p, f | os.O_NOATIME)) as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


def describe(path, name):
    st = os.lstat(path)
    words = ["%r" % name, "%o" % st.st_mode, "%d:%d" % (st.st_uid, st.st_gid)]
    if not stat.S_ISDIR(st.st_mode):
        words += ["size=%d" % st.st_size, "links=%d" % st.st_nlink]
        words.append("same=%r" % links.setdefault((st.st_dev, st.st_ino), name))
        words.append("rdev=%d" % st.st_rdev)
    words.append("mtime=%d" % st.st_mtime_ns)
    if stat.S_ISLNK(st.st_mode):
        # Reading it changes its time of access.
        words.append("-> %r" % os.readlink(path))
    else:
        words.append("atime=%d" % st.st_atime_ns)
    if stat.S_ISREG(st.st_mode):
        words.append(told(lambda: content(path, st.st_size)) or "closed")
    for xattr in sorted(told(lambda: os.listxattr(path, follow_symlinks=False)) or ()):
        words.append("%s=%r" % (xattr, os.getxattr(path, xattr, follow_symlinks=False)))
    lines.append(" ".join(words))


def walk(path, name):
    fd = told(lambda: os.open(path, os.O_RDONLY | os.O_NOATIME))
    if fd is None:
        return
    entries = sorted(os.fsencode(entry) for entry in os.listdir(fd))
    os.close(fd)
    for entry in entries:
        if name == b"" and entry == b".reprise":
            continue
        child = os.path.join(path, entry)
        describe(child, name + b"/" + entry)
        if stat.S_ISDIR(os.lstat(child).st_mode):
            walk(child, name + b"/" + entry)


walk(top, b"")
print("\n".join(lines))
