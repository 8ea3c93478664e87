# SPDX-License-Identifier: MIT
"""What a block device sees, by the kernel's tracepoints; for bench/block and bench/scaled."""
import os
import re
import signal
import subprocess
import sys

TRACING = "/sys/kernel/tracing"
EVENTS = ("block_bio_queue", "block_rq_issue", "block_rq_complete")
LINE = re.compile(r"^\s*\S.*?\s+\[\d+\]\s+\S*\s+(\d+\.\d+): (block_\w+): (\d+),(\d+) (\S+) (.*)$")
PLACE = re.compile(r"(\d+) \+ (\d+)")
HEAD = "time_ns,latency_ns,device,op,flags,offset,length\n"


def say(text):
    print(text, file=sys.stderr, flush=True)


def put(path, text):
    with open(path, "w") as f:
        f.write(text)


def end_in_order():
    """Whoever is told to end puts away what it has made."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def can_observe():
    return not os.geteuid() and os.path.isdir(f"{TRACING}/instances")


class Observer:
    """The block tracepoints of one device, in an instance of their own."""

    def __init__(self, device):
        st = os.stat(device)
        self.dev = os.major(st.st_rdev), os.minor(st.st_rdev)
        self.dir = f"{TRACING}/instances/reprise-bench-{os.getpid()}-{self.dev[1]}"
        os.mkdir(self.dir)
        put(f"{self.dir}/tracing_on", "0")
        put(f"{self.dir}/buffer_size_kb", "65536")
        put(f"{self.dir}/trace_clock", "mono")
        number = self.dev[0] << 20 | self.dev[1]
        for event in EVENTS:
            put(f"{self.dir}/events/block/{event}/filter", f"dev == {number}")
            put(f"{self.dir}/events/block/{event}/enable", "1")

    def close(self):
        put(f"{self.dir}/tracing_on", "0")
        for event in EVENTS:
            put(f"{self.dir}/events/block/{event}/enable", "0")
        os.rmdir(self.dir)

    def start(self):
        put(f"{self.dir}/trace", "")
        put(f"{self.dir}/tracing_on", "1")

    def stop(self):
        """[(name, time in ns, rwbs, sector, sectors)]"""
        put(f"{self.dir}/tracing_on", "0")
        events = []
        with open(f"{self.dir}/trace") as f:
            for line in f:
                m = LINE.match(line)
                if not m:
                    continue
                place = PLACE.search(m[6])
                seconds, part = m[1].split(".")
                events.append((m[2], int(seconds) * 10**9 + int(part.ljust(9, "0")), m[5], int(place[1]) if place else 0,
                               int(place[2]) if place else 0))
        return events


def operation(rwbs, sectors):
    if not sectors:
        return "FLUSH" if "F" in rwbs else None
    return "DISCARD" if "D" in rwbs else "W" if "W" in rwbs else "R"


def requests_of(events, flushes=False):
    """Requests in the order of issue: [issue, complete, op, sector, sectors]; and the queue's order."""
    flying, out, queue = {}, [], []
    for name, ns, rwbs, sector, sectors in events:
        op = operation(rwbs, sectors)
        if not op or op == "FLUSH" and not flushes:
            continue
        if op == "FLUSH":
            sector = 0
        if name == "block_bio_queue":
            queue.append((op, sector, sectors))
        elif name == "block_rq_issue":
            rq = [ns, None, op, sector, sectors]
            flying.setdefault((sector, sectors), []).append(rq)
            out.append(rq)
        else:
            waiting = flying.get((sector, sectors))
            if waiting:
                waiting.pop(0)[1] = ns
    return [rq for rq in out if rq[1]], queue


def write_csv(path, device, requests):
    with open(path, "w") as f:
        f.write(HEAD)
        for a, b, op, sector, sectors in requests:
            f.write(f"{a},{b - a},{os.path.basename(device)},{op},0,{sector * 512},{sectors * 512}\n")


def run(command, timeout):
    """Some tools do not end by themselves; None then, else the standard output."""
    try:
        r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None
    if r.returncode not in (0, 1):
        say(f"{command[0]}: {r.stderr.strip()[:300]}")
    return r.stdout
