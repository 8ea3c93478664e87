# SPDX-License-Identifier: MIT
"""Prints the events of a trace as `artc -A thread_logs` does: thread_logs.py < JSON lines of `reprise show`."""
import json
import re
import sys

RENAMED = {"pread64": "pread", "pwrite64": "pwrite"}
NO_CALLS = ("thread_start", "thread_exit", "found_state", "found_fd")

logs, first = {}, None
for line in sys.stdin:
    event = json.loads(line)
    if event["call"] in NO_CALLS:
        continue
    name = re.sub(r"^mac_", "", event["call"])
    name = "fcntl" if name.startswith("fcntl_") else RENAMED.get(name, name)
    first = event["enter_ns"] if first is None else first
    begin, took = event["enter_ns"] - first, event["exit_ns"] - event["enter_ns"]
    logs.setdefault(event["tid"], []).append(f"{name}:{begin}:{took}")
for tid in sorted(logs):
    print(f"thread_log({tid}):", *logs[tid])
