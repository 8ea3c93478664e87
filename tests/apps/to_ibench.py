# SPDX-License-Identifier: MIT
"""A recorded trace as iBench would have traced it: to_ibench.py < `reprise show --json` > iBench.

Only calls that iBench has, of programs that use absolute paths, have one process and make none of the
others. As there, failures have no error, data is not kept, and a call is an entry and a return.
"""
import json
import sys

MAC_FLAGS = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_NONBLOCK", "O_APPEND", "O_SYNC", "O_NOFOLLOW", "O_CREAT",
             "O_TRUNC", "O_EXCL", "O_NOCTTY", "O_DIRECTORY", "O_DSYNC", "O_CLOEXEC"}
AT_FDCWD = ("AT_FDCWD", -100)


def absolute(args, dirfd, path):
    return args.get(dirfd, "AT_FDCWD") in AT_FDCWD and str(args.get(path, "")).startswith("/")


def opened(a):
    flags = [f for f in str(a["flags"]).split("|") if f in MAC_FLAGS]
    return "open", [a["path"], 0, "".join(f + " " for f in flags), a.get("mode", 0) or 0, 0, "_", "_"]


def stats(call, a):
    if call == "fstat" or (not a.get("path") and isinstance(a.get("dirfd"), int)):
        return "fstat64", [a.get("fd", a.get("dirfd"))]
    if not absolute(a, "dirfd", "path"):
        return None
    nofollow = call == "lstat" or "NOFOLLOW" in str(a.get("flags", a.get("flag", "")))
    return ("lstat64" if nofollow else "stat64"), [a["path"]]


def converted(call, a):
    """The name and the attributes of a call, None when iBench has no such call."""
    if call in ("open", "openat"):
        return opened(a) if absolute(a, "dirfd", "path") else None
    if call in ("stat", "lstat", "fstat", "newfstatat", "statx"):
        return stats(call, a)
    if call in ("read", "write"):
        return call, [a["fd"], a["count"], 0, "X"]
    if call in ("pread64", "pwrite64"):
        return call[:-2], [a["fd"], a["count"], a["offset"], "X"]
    if call == "lseek":
        return call, [a["fd"], a["offset"], ["SEEK_SET", "SEEK_CUR", "SEEK_END"].index(a["whence"])]
    if call in ("close", "fchdir"):
        return call, [a["fd"]]
    if call in ("fsync", "fdatasync"):
        return "fsync", [a["fd"], "X"]
    if call == "ftruncate":
        return call, [a["fd"], a["length"], "X"]
    if call == "fchmod":
        return call, [a["fd"], a["mode"]]
    if call == "getdents64":
        return "getdirentries64", [a["fd"]]
    if call in ("unlink", "rmdir") or (call == "unlinkat" and absolute(a, "dirfd", "path")):
        return ("rmdir" if call == "rmdir" or "REMOVEDIR" in str(a.get("flags")) else "unlink"), [a["path"]]
    if call in ("mkdir", "mkdirat") and absolute(a, "dirfd", "path"):
        return "mkdir", [a["path"], a["mode"]]
    if call in ("rename", "renameat", "renameat2") and absolute(a, "olddirfd", "oldpath"):
        return "rename", [a["oldpath"], a["newpath"], 1, 2, 3, 4, "X"]
    return None


def main():
    pid = None
    for line in sys.stdin:
        event = json.loads(line)
        if "ret" not in event or event["pid"] != (pid or event["pid"]):
            continue
        pid = event["pid"]
        there = converted(event["call"], event["args"])
        if not there:
            continue
        name, attrs = there
        fields = "".join(f"[{a}]; " for a in attrs)
        ret = -1 if event["errno"] else event["ret"]
        begin, end = event["enter_ns"], event["exit_ns"]
        yield begin, 0, f"[{begin}]; [{event['tid']}]; [entry]; [{name}]; {fields}[0]; "
        yield end, 1, f"[{end}]; [{event['tid']}]; [return]; [{name}]; {fields}[{ret}]; "


for _, _, text in sorted(main(), key=lambda x: x[:2]):
    print(text)
