#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Are the values in src/model/flags.def those of the system's headers?

usage: check_flags.py CC [flags.def]

A name that no header of this machine knows (it may be older than the kernel
that has it) is counted, not blamed. Speaks TAP.
"""
import os
import re
import subprocess
import sys
import tempfile

# Headers that do not bear each other's company are in groups of their own.
GROUPS = [
    """fcntl.h sys/stat.h sys/mman.h sys/socket.h sys/un.h netinet/in.h netinet/tcp.h sched.h signal.h
    poll.h sys/epoll.h sys/eventfd.h sys/timerfd.h sys/signalfd.h sys/inotify.h sys/fanotify.h
    sys/xattr.h sys/mount.h sys/file.h sys/wait.h sys/resource.h sys/prctl.h sys/ptrace.h sys/shm.h
    sys/sem.h sys/msg.h sys/random.h sys/reboot.h sys/swap.h sys/personality.h sys/statvfs.h
    sys/vfs.h sys/time.h sys/timex.h time.h unistd.h errno.h dirent.h sys/ioctl.h termios.h
    sys/klog.h mqueue.h stdio.h""",
    """linux/types.h linux/fs.h linux/fiemap.h linux/falloc.h linux/io_uring.h linux/aio_abi.h linux/openat2.h
    linux/close_range.h linux/memfd.h linux/magic.h linux/stat.h linux/fcntl.h linux/futex.h
    linux/sched.h linux/eventpoll.h linux/dqblk_xfs.h linux/pidfd.h""",
    "linux/types.h linux/mount.h",
    """linux/types.h linux/prctl.h asm/prctl.h linux/seccomp.h linux/kcmp.h linux/capability.h linux/mempolicy.h
    linux/membarrier.h linux/bpf.h linux/landlock.h linux/rseq.h linux/userfaultfd.h
    linux/perf_event.h linux/module.h linux/ioprio.h linux/personality.h linux/ptrace.h
    linux/fanotify.h linux/inotify.h linux/xattr.h linux/timerfd.h linux/getrandom.h linux/random.h""",
    "linux/mman.h asm/mman.h linux/sched.h linux/msg.h linux/sem.h linux/shm.h linux/timex.h linux/time.h",
    """linux/types.h asm/ioctls.h linux/sockios.h linux/loop.h linux/btrfs.h linux/f2fs.h linux/fscrypt.h
    linux/fsverity.h linux/fs.h linux/blkzoned.h linux/nsfs.h linux/vt.h linux/kd.h linux/tty.h""",
    "linux/signal.h asm/signal.h linux/wait.h linux/resource.h",
    "linux/types.h linux/net.h linux/socket.h linux/in.h linux/errno.h linux/in6.h",
    "linux/types.h linux/dnotify.h asm/ptrace-abi.h asm/siginfo.h",
    "linux/types.h linux/fs.h linux/blkpg.h linux/hdreg.h linux/msdos_fs.h linux/ext4.h",
    "linux/types.h linux/oom.h linux/taskstats.h linux/quota.h",
    "linux/types.h linux/sched/types.h linux/sched.h",
]
# Names that libc gives another value than the kernel on x86_64, or that stand for a shifted value.
EXEMPT = {
    "__O_LARGEFILE", "F_GETLK64", "F_SETLK64", "F_SETLKW64",
    "IOPRIO_CLASS_RT", "IOPRIO_CLASS_BE", "IOPRIO_CLASS_IDLE",
}
# Vocabularies of our own, and those of macOS.
OURS = {
    "start_how", "fault_flags", "block_ops", "block_flags", "wake_why", "loss_kinds", "tree_which",
    "tree_flags", "file_types", "event_flags",
}
ENTRY = re.compile(r"^\s*(?:(SET)\((\w+)\)|F\((\w+), ([^,()]+)\)|M\((\w+), ([^,()]+), ([^,()]+)\))")


def parse(path):
    """[(set, name, value)], with values as C would read them."""
    found, current = [], None
    for number, line in enumerate(open(path), 1):
        m = ENTRY.match(line)
        if not m:
            if re.match(r"\s*[FM]\(", line):
                sys.exit(f"{path}:{number}: cannot read {line.strip()}")
            continue
        if m[1]:
            current = m[2]
        elif current not in OURS:
            name, text = (m[3], m[4]) if m[3] else (m[5], m[6])
            base = 8 if re.fullmatch(r"0[0-7]+", text) else 0
            found.append((current, name, int(text, base) & (2**64 - 1)))
    return found


def all_errors(cc):
    version = subprocess.run([cc, "--version"], text=True, capture_output=True, check=True).stdout
    return "-ferror-limit=0" if "clang" in version else "-fmax-errors=0"


def values_of(cc, group, names):
    """{name: value} of those names that the headers of the group define."""
    head = "#define _GNU_SOURCE\n#include <stddef.h>\n" + "".join(
        f"#if __has_include(<{h}>)\n#include <{h}>\n#endif\n" for h in group.split())
    seen = subprocess.run([cc, "-E", "-dD", "-x", "c", "-"], input=head, text=True, capture_output=True)
    if seen.returncode:
        sys.exit(f"headers {group} do not compile:\n{seen.stderr[:2000]}")
    # What is mentioned need not be defined: what the compiler does not know is left out.
    names = sorted(set(names) & set(re.findall(r"\w+", seen.stdout)))
    with tempfile.TemporaryDirectory() as tmp:
        source, binary = os.path.join(tmp, "v.c"), os.path.join(tmp, "v")
        while names:
            with open(source, "w") as f:
                f.write(head + "int printf(const char *, ...);\nint main(void)\n{\n")
                # Two lines for each, so that what is wrong with one is not blamed on the next.
                f.writelines(
                    f"#line {2 * i + 2} \"names\"\n"
                    f"printf(\"{n} %llu\\n\", (unsigned long long)({n})); {{\n}}\n"
                    for i, n in enumerate(names))
                f.write("return 0;\n}\n")
            r = subprocess.run([cc, "-w", all_errors(cc), "-o", binary, source], text=True, capture_output=True)
            if r.returncode == 0:
                out = subprocess.run([binary], text=True, capture_output=True, check=True).stdout
                return {n: int(v) for n, v in (line.split() for line in out.splitlines())}
            bad = {int(n) // 2 - 1 for n in re.findall(r"^names:(\d+):\d+: error", r.stderr, re.M)}
            if not bad:
                sys.exit(f"headers {group} do not compile:\n{r.stderr[:2000]}")
            names = [n for i, n in enumerate(names) if i not in bad]
    return {}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    cc = sys.argv[1]
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = sys.argv[2] if len(sys.argv) > 2 else os.path.join(root, "src/model/flags.def")
    entries = [e for e in parse(path) if not e[0].startswith("mac_")]
    known = {}
    for group in GROUPS:
        for name, value in values_of(cc, group, {e[1] for e in entries}).items():
            known.setdefault(name, set()).add(value)

    wrong, unknown = [], []
    for set_name, name, value in entries:
        values = None if name in EXEMPT else known.get(name)
        if not values:
            unknown.append(name)
        elif not any((v ^ value) & 0xffffffff == 0 and (v == value or v >> 32 in (0, 0xffffffff))
                     for v in values):
            wrong.append(f"{set_name}: {name} is {value:#x}, headers say "
                         + " or ".join(f"{v:#x}" for v in sorted(values)))
    print("1..1")
    for line in wrong:
        print("#", line)
    print(f"# {len(entries)} names, {len(entries) - len(unknown)} checked, unknown to the headers: "
          + " ".join(unknown))
    print("not ok" if wrong else "ok", "1 - values of flags.def")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
