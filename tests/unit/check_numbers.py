#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Are the call numbers in src/model/nr_*.def those of the system's headers, and is none missing?

usage: check_numbers.py CC

Where a row's name is not the machine's own, a comment in the .def file gives
that. Numbers that the headers do not know yet are not blamed. Speaks TAP.
"""
import os
import re
import subprocess
import sys

# What Linux for aarch64 asks of the generic table.
AARCH64 = """#define __BITS_PER_LONG 64
#define __ARCH_WANT_RENAMEAT
#define __ARCH_WANT_NEW_STAT
#define __ARCH_WANT_SET_GET_RLIMIT
#define __ARCH_WANT_SYS_CLONE3
#define __ARCH_WANT_MEMFD_SECRET
#include <asm-generic/unistd.h>
"""
MACHINES = {
    "x86_64": "#include <asm/unistd_64.h>\n",
    "i386": "#include <asm/unistd_32.h>\n",
    "aarch64": AARCH64,
}
# Numbers that were given away but never served.
DEAD = {
    "i386": set("break stty gtty ftime prof lock mpx ulimit profil idle".split()),
    "aarch64": {"arch_specific_syscall", "syscalls"},
    "x86_64": set(),
}
# Rows whose name differs by more than a width.
OTHER_NAMES = {
    "clone": "clone_backwards", "_newselect": "select", "select": "old_select", "mmap": "old_mmap",
    "ugetrlimit": "getrlimit", "oldstat": "stat", "oldlstat": "lstat", "oldfstat": "fstat",
    "signal": "old_signal", "fstatat": "newfstatat", "fstatat64": "newfstatat", "fadvise64_64": "fadvise64",
}


def numbers_of_headers(cc, source):
    r = subprocess.run([cc, "-E", "-dM", "-x", "c", "-"], input=source, text=True, capture_output=True)
    if r.returncode:
        return None
    macros = dict(re.findall(r"^#define (__NR\w+) (\w+)$", r.stdout, re.M))
    found = {}
    for name, value in macros.items():
        while value in macros:
            value = macros[value]
        if name.startswith("__NR_") and value.isdigit():
            found.setdefault(int(value), set()).add(name[len("__NR_"):])
    return found


def read_def(path):
    """{number: (row, name on the machine)}"""
    found = {}
    for line in open(path):
        m = re.match(r"NR\w*\((\d+), (\w+)(?:, 0x\w+)?\)(?: /\* (\w+) \*/)?$", line)
        if m:
            if int(m[1]) in found:
                sys.exit(f"{path}: {m[1]} twice")
            found[int(m[1])] = (m[2], m[3] or m[2])
        elif line.startswith("NR"):
            sys.exit(f"{path}: cannot read {line.strip()}")
    return found


def row_fits(machine, row, name):
    if row == name:
        return True
    if machine == "x86_64":
        return False
    return row == OTHER_NAMES.get(name) or row == re.sub(r"(_time64|64|32)$", "", name)


def check(machine, headers, table, rows):
    wrong = []
    for number, names in sorted(headers.items()):
        names = names - DEAD[machine]
        if not names:
            continue
        row, name = table.get(number, (None, None))
        if row is None:
            wrong.append(f"{number} ({' '.join(names)}) has no row")
        elif row not in rows:
            wrong.append(f"{number}: no row {row}")
        elif not names & ({name} | ({"clone"} if row == "clone_backwards" else set())
                          | ({"fstatat"} if row == "newfstatat" else set())):
            wrong.append(f"{number} is {' '.join(names)}, not {name}")
        elif not any(row_fits(machine, row, n) for n in names):
            wrong.append(f"{number}: row {row} for {' '.join(names)}")
    return wrong


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    model = os.path.join(root, "src/model")
    rows = set(re.findall(r"^SYSCALL\( *\d+, (\w+),", open(os.path.join(model, "syscalls.def")).read(), re.M))
    failed = 0
    print(f"1..{len(MACHINES)}")
    for i, (machine, source) in enumerate(MACHINES.items(), 1):
        headers = numbers_of_headers(sys.argv[1], source)
        if not headers:
            print(f"ok {i} - {machine} # SKIP this machine has no headers for it")
            continue
        table = read_def(os.path.join(model, f"nr_{machine}.def"))
        wrong = check(machine, headers, table, rows)
        for line in wrong:
            print("#", line)
        failed += bool(wrong)
        print("not ok" if wrong else "ok", i, "-", machine, f"({len(headers)} numbers in the headers, {len(table)} in the table)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
