#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: audit.py REPRISE TRACE

Whether an audit of the net (`record --net=audit`) accounts for every call of a trace: each was
recorded by the agent, left by it to the tracer, caught by the net in a place that is named, or
made by a process without the agent. Prints what does not add up, and fails.
"""

import json
import re
import subprocess
import sys

PLACE = re.compile(r"(\d+) from (.+?)(?:\+0x([0-9a-f]+))?: (.+)")


def said_by(reprise, *words):
    return subprocess.run([reprise, *words], stdout=subprocess.PIPE, check=True).stdout


def metadata(reprise, trace):
    """The metadata of a trace, by name."""
    items = [json.loads(line) for line in said_by(reprise, "show", "--meta", "--json", trace).splitlines()]
    return {item["key"]: item["value"] for item in items}


def places(about):
    """(calls, file, offset, why) of all that the net has caught."""
    found = [PLACE.fullmatch(line) for line in about["net_places"].split("\n") if line]
    return [(int(m[1]), m[2], int(m[3] or "0", 16), m[4]) for m in found]


def nr_calls(stat):
    return sum(call["count"] for call in stat["calls"].values())


def differences(reprise, trace):
    """What does not add up, in words: nothing if all does, or no audit was asked for."""
    about = metadata(reprise, trace)
    stat = json.loads(said_by(reprise, "stat", "--json", trace))
    if about.get("net") != "audit" or any("FILTERED" in entry["kind"] and "stored through" not in entry["note"] for entry in stat["ledger"]):
        return []
    ways = {key: int(about[key]) for key in ("agent_events", "net_left", "net_caught", "net_outside")}
    named = sum(place[0] for place in places(about))
    wrong = []
    if sum(ways.values()) != nr_calls(stat):
        wrong.append(f"audit: {nr_calls(stat)} calls are recorded, seen were {sum(ways.values())}: {ways}")
    if named != ways["net_caught"]:
        wrong.append(f"audit: the net has caught {ways['net_caught']} calls, {named} of them in places that are named")
    return wrong


def main():
    wrong = differences(*sys.argv[1:3])
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
