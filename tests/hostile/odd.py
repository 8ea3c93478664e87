#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: odd.py HOSTILE STILL [PATTERN]...

Programs that make calls in unusual ways, or that damage the agent in their own process. The trace has
the files that they create, or its ledger says that it is incomplete.
"""

import functools
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ways import *  # pylint: disable=wildcard-import,wrong-import-position


# These take away what the agent needs; the program may crash before it makes its call.
BREAKS = ("unmap", "unmap-ring", "protect", "wipe", "no-gs", "fake-gs", "middle")
LISTED = subprocess.run([HOSTILE, "odd"], check=False, stdout=subprocess.PIPE, text=True).stdout.split()


def can_do(which):
    """Whether this machine supports the way of making calls."""
    os.mkdir("unrecorded")
    run(HOSTILE, "odd", which, cwd="unrecorded")
    return os.listdir("unrecorded") != []


def odd(which, way, user):
    run_recorded(way, HOSTILE, "odd", which, user=user)
    must_be_sound()
    if not made():
        if not can_do(which):
            raise Skipped("not supported by this machine")
        expect(which in BREAKS and way not in WITHOUT_AGENT, "the program created no file")
    # An unprivileged recorder cannot read the memory of a process that is not dumpable.
    must_have_made(may_confess=way not in WITHOUT_AGENT or which == "no-dump")


for one in LISTED:
    each(f"unusual calls: {one}", users=("user", ))(functools.partial(odd, one))

sys.exit(run_cases(sys.argv[3:]))
