#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: many.py TORTURE [NUMBER_OF_CALLS]

Records very many calls in one run, 10^8 unless told otherwise, by $RECORDER, and proves that
they are all in the trace: as many as the program has counted, and as many bytes as they
wrote, in a file that is whole. That file is made below $TMPDIR, and has some 10 bytes for each call.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

TORTURE = os.path.abspath(sys.argv[1])
NR = int(sys.argv[2]) if len(sys.argv) > 2 else 10**8
# What a loaded machine needs for each call, and some more.
SECONDS = 120 + NR // 20000


def timed(argv):
    begin = time.monotonic()
    p = start(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    status, out, err = finish(p, SECONDS)
    print(f"# {argv[1]}: {time.monotonic() - begin:.1f} s")
    return status, out, err.decode()


@case(f"{NR} calls in one run are all recorded")
def many():
    status, _, err = timed(record_argv(TORTURE, "many", str(NR)))
    equal(status, 0, err)
    print(f"# {os.stat('trace').st_size} bytes")
    equal(counts()["pwrite64"], (NR, NR), "calls made")
    status, out, err = timed([REPRISE, "check", "--json", "trace"])
    check = json.loads(out)
    equal((status, check["ok"], check["closed"], check["lost"]), (0, True, True, 0), err)
    status, out, err = timed([REPRISE, "stat", "--json", "trace"])
    equal(status, 0, err)
    stat = json.loads(out)
    equal(stat["calls"]["pwrite64"]["count"], NR, "calls recorded")
    equal(stat["calls"]["pwrite64"]["bytes"], 8 * NR, "bytes written")
    equal((stat["complete"], stat["lost"]), (True, 0), "complete, lost")
    equal(audit.differences(REPRISE, "trace"), [], "audit of the net")
    if RECORDER != "ptrace":
        by_agent = int(Trace().meta()["agent_events"])
        expect(by_agent > NR // 2, f"only {by_agent} of them by the agent")
        print(f"# {by_agent} by the agent")


sys.exit(run_cases([]))
