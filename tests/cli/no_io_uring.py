#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: no_io_uring.py COMMAND [ARGUMENT]...

Runs the command in a world where io_uring_setup fails with EPERM.
"""
import ctypes
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
IO_URING_SETUP = 425  # on all machines
RET_EPERM, RET_ALLOW = 0x00050001, 0x7FFF0000


def instruction(code, true, false, k):
    return struct.pack("HBBI", code, true, false, k)


program = (
    instruction(0x20, 0, 0, 0)  # the number of the call
    + instruction(0x15, 0, 1, IO_URING_SETUP)
    + instruction(0x06, 0, 0, RET_EPERM)
    + instruction(0x06, 0, 0, RET_ALLOW)
)
code = ctypes.create_string_buffer(program, len(program))
header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, header):
    sys.exit("no_io_uring.py: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
