#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: fuzz_inside.py FUZZ_INSIDE LIBRARY SECONDS [PATTERN]...

Programs that write into the memory which they share with their recorder, and into files and rings that it
reads, while they make calls, fork and exec. The recorder ends as it should, within its time, without a
word of a sanitizer, and its trace is intact. What it has found damaged is in the ledger.
FUZZ_SEED chooses the first seed; it is printed.
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "torture"))
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

FUZZ, LIBRARY = (os.path.abspath(word) for word in sys.argv[1:3])
SECONDS = float(sys.argv[3])
SEED = int(os.environ.get("FUZZ_SEED", random.randrange(1 << 30)))
DAMAGED = "the program has overwritten records of its calls"
WAYS = {
    "inproc": ["--recorder=inproc"],
    "auto": ["--recorder=auto"],
    "chosen paths": ["--recorder=inproc", "--path=/tmp/*"],
    "no net": ["--recorder=inproc", "--net=off"],
}
KINDS = ["size", "long", "call", "left-out", "skip", "copies", "bytes", "far", "back", "phase", "begun"]


def record_hostile(options, *words, seconds=PATIENCE_S):
    p = start([REPRISE, "record", "-q", "-f", "-o", os.path.abspath("trace"), "--cache=" + os.path.abspath("cache"),
               *options, "--", FUZZ, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
              env={"REPRISE_AGENT_AFTER": "10"})
    status, _, err = finish(p, seconds)
    err = err.decode(errors="replace")
    for word in ("Sanitizer", "runtime error"):
        expect(word not in err, f"seed {SEED}: {err[:20000]}")
    if status == 77:
        raise Skipped("the program has no agent")
    equal(status, 0, f"seed {SEED}: exit status\n{err[:20000]}")


def must_be_intact():
    status, check = Trace().check()
    expect(status in (0, 1) and check["closed"] and not check["first_fault"], f"seed {SEED}: {status} {check}")


def fuzz(name):
    def function():
        os.mkdir("cache", 0o700)
        share = SECONDS / len(WAYS)
        record_hostile(WAYS[name], str(SEED), str(int(1000 * share)), LIBRARY, seconds=2 * share + PATIENCE_S)
        must_be_intact()
    case(f"any memory and files of a program: {name}")(function)


for way in WAYS:
    fuzz(way)


@case("whatever is found damaged is in the ledger")
def ledger():
    os.mkdir("cache", 0o700)
    for kind in KINDS:
        record_hostile(WAYS["inproc"], "forge", kind)
        must_be_intact()
        expect(any(DAMAGED in line for line in Trace().ledger()), f"{kind}: the ledger does not have it")


if __name__ == "__main__":
    print(f"# FUZZ_SEED={SEED}")
    sys.exit(run_cases(sys.argv[4:]))
