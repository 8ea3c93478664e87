#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: deny.py CALL[:ERROR][,CALL[:ERROR]]... COMMAND [ARGUMENT]...

Runs the command in a world where these system calls fail, with EPERM if no error is given.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
RET_ERRNO, RET_ALLOW = 0x00050000, 0x7FFF0000
# On x86_64, and on machines with the generic table.
NUMBERS = {"kcmp": (312, 272), "seccomp": (317, 277), "statx": (332, 291), "newfstatat": (262, 79), "prctl": (157, 167)}


def instruction(code, true, false, k):
    return struct.pack("HBBI", code, true, false, k)


program = instruction(0x20, 0, 0, 0)  # the number of the call
for word in sys.argv[1].split(","):
    name, _, error = word.partition(":")
    number = NUMBERS[name][platform.machine() != "x86_64"]
    program += instruction(0x15, 0, 1, number)
    program += instruction(0x06, 0, 0, RET_ERRNO | getattr(errno, error or "EPERM"))
program += instruction(0x06, 0, 0, RET_ALLOW)
code = ctypes.create_string_buffer(program, len(program))
header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, header):
    sys.exit("deny.py: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
