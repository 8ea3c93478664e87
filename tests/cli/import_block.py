#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Imports of block traces against what is known of the samples (tests/data/block). Speaks TAP."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

REPRISE, TOP = os.environ["REPRISE"], os.environ["TOP"]
DATA = os.path.join(TOP, "tests/data/block")
nr = 0
failed = False


def ok(good, name, why=""):
    global nr, failed
    nr += 1
    print(f"{'ok' if good else 'not ok'} {nr} - {name}")
    if not good:
        failed = True
        print(f"# {why}")


def tool(*args):
    return subprocess.run([REPRISE, *args], text=True, capture_output=True)


def load(paths, *options):
    """(events, names of devices, message) of an import."""
    with tempfile.TemporaryDirectory() as tmp:
        trace = os.path.join(tmp, "t.trace")
        r = tool("import", "-o", trace, *options, *paths)
        if not os.path.exists(trace):
            return None, {}, r.stderr
        shown = tool("show", "--json", trace)
        events = [json.loads(line) for line in shown.stdout.splitlines()]
        devices = {}
        for line in tool("show", "--exact", trace).stdout.splitlines():
            if line.startswith('meta(key="block.device.'):
                number, name = line[len('meta(key="block.device.'):].split('", value="')
                devices[int(number)] = name[:-2]
        return events, devices, r.stderr


def sample(name):
    return os.path.join(DATA, name)


def table(name):
    with open(sample(name)) as f:
        head = f.readline().rstrip("\n").split("\t")
        return [dict(zip(head, line.rstrip("\n").split("\t"))) for line in f]


def same(name, got, want):
    ok(got == want, name, next((f"{g} != {w}" for g, w in zip(got, want) if g != w), f"{len(got)} != {len(want)}"))


def check_csv():
    rows = {}
    for row in table("expected.tsv"):
        rows.setdefault(row["file"], []).append(row)
    for name, wanted in rows.items():
        events, devices, message = load([sample(name)])
        if events is None:
            ok(False, name, message)
            continue
        want = [(w["volume"], w["op"].replace("unknown", "other").upper(), int(w["offset_bytes"]), int(w["length_bytes"]),
                 int(w["time_ns_from_first_record"]), w["latency_ns"], int(w["line"])) for w in wanted]
        got = [(devices.get(e["args"]["device_no"], "-"), e["args"]["op"], place(e), e["args"]["length"], e["enter_ns"],
                "-" if "no_duration" in e["flags"] or "NO_DURATION" in e["flags"] else str(e["duration_ns"]), e["origin"]) for e in events]
        same(name, got, want)


def check_vscsi():
    events, _, message = load([sample("vscsi-v1.bin")])
    rows = table("vscsi-v1.expected.tsv")
    first = int(rows[0]["ts_us"])
    same("vscsi-v1.bin", [(e["args"]["op"].lower(), place(e), e["args"]["length"], e["enter_ns"]) for e in events],
         [(w["op"], int(w["lbn"]) * 512, int(w["bytes"]), (int(w["ts_us"]) - first) * 1000) for w in rows])


def check_fio():
    for w in table("fio.expected.tsv"):
        events, _, message = load([sample(w["file"])])
        ops = [e["args"]["op"] for e in events]
        got = [ops.count("READ"), ops.count("WRITE"), ops.count("DISCARD"), ops.count("FLUSH"),
               sum(e["args"]["length"] for e in events if e["args"]["op"] == "READ"),
               sum(e["args"]["length"] for e in events if e["args"]["op"] == "WRITE")]
        same("fio " + w["file"], got,
             [int(w["read"]), int(w["write"]), int(w["trim"]), int(w["sync"]) + int(w["datasync"]), int(w["bytes_read"]),
              int(w["bytes_written"])])
    events, _, _ = load([sample("v2-handwritten-with-wait.log")])
    ok(all("NO_TIME" in [f.upper() for f in e["flags"]] for e in events), "version 2 has no times")


# From the table of all records to requests, by the rules of the formats' description.
def requests_of_layer(begin):
    rows = [w for w in table("loop0.expected.tsv") if w["action"] in ("Q", "D", "C")]
    waiting, out = {}, []
    for w in rows:
        key = (int(w["sector"]), int(w["bytes"]) == 0)
        if w["action"] == begin:
            rq = [int(w["time_ns"]), None, int(w["bytes"]), key[0] * 512 if int(w["bytes"]) else 0,
                  w["rwbs"] if int(w["bytes"]) else w["rwbs"].replace("FW", "FN")]
            out.append(rq)
            waiting.setdefault(key, []).append(rq)
        elif w["action"] == "C":
            at, left = key[0], int(w["bytes"])
            while True:
                found = waiting.get((at, key[1]))
                if not found:
                    break
                rq = found.pop(0)
                rq[1] = int(w["time_ns"])
                at += rq[2] // 512
                left -= rq[2]
                if begin == "D" or left <= 0:
                    break
    return out


def place(e):
    return e["args"]["sector"] * 512 + e["args"].get("within", 0)


def rwbs(e):
    op, flags = e["args"]["op"], e["args"]["flags"].split("|")
    out = "F" if "FLUSH" in flags or op == "FLUSH" else ""
    out += {"READ": "R", "WRITE": "W", "DISCARD": "D", "FLUSH": "N"}.get(op, "N")
    return out + ("F" if "FUA" in flags else "") + ("A" if "RAHEAD" in flags else "") + ("S" if "SYNC" in flags else "") + (
        "M" if "META" in flags else "")


def seen(events):
    return [(e["enter_ns"], None if "UNFINISHED" in [f.upper() for f in e["flags"]] else e["exit_ns"], e["args"]["length"],
             place(e), rwbs(e)) for e in events]


def check_blktrace():
    for begin, option in (("D", "issue"), ("Q", "queue")):
        want = requests_of_layer(begin)
        zero = want[0][0]
        want = [(a - zero, None if b is None else b - zero, n, at, flags) for a, b, n, at, flags in want]
        files = [sample("loop0.blktrace.0"), sample("loop0.blktrace.1")]
        for name, paths in (("per-CPU files", files), ("in another order", files[::-1]), ("merged", [sample("loop0.merged.bin")]),
                            ("ftrace", [sample("loop0.ftrace-blk-tracer.bin")]), ("blkparse", [sample("loop0.blkparse.txt")])):
            events, _, message = load(paths, f"--events={option}")
            same(f"{option}: {name}", seen(events or []), want)
    queued, _, _ = load(files, "--events=queue")
    ok((len(queued), sum(e["args"]["length"] for e in queued if e["args"]["op"] == "READ"),
        sum(e["args"]["length"] for e in queued if e["args"]["op"] == "WRITE")) == (69, 77824, 4677632), "sums of the queue")
    events, _, _ = load(files, "--device=7:0")
    ok(len(events) == 55, "a device by number")
    events, _, message = load(files, "--device=8:0")
    ok(events is None and "no request is to device '8:0'; they are to 7,0" in message, "another device")


def convert(data, version, order):
    """Records of version 7, little-endian, as another version and byte order."""
    out, at = b"", 0
    while at < len(data):
        (magic, seq, time, sector, nbytes, action, pid, dev, cpu, error, pdu) = struct.unpack_from("<IIQQIIIIIHH", data, at)
        payload = data[at + 48:at + 48 + pdu]
        if action >> 16 & 1 << 10 and pdu == 8 and action & 0xff == 1:
            payload = struct.pack(order + "II", *struct.unpack("<II", payload))
        if version == 7:
            out += struct.pack(order + "IIQQIIIIIHH", magic, seq, time, sector, nbytes, action, pid, dev, cpu, error, pdu)
        else:
            out += struct.pack(order + "IIQQIIQIIHH12x", magic & ~0xff | 8, seq, time, sector, nbytes, pid, action, dev, cpu, error, pdu)
        out += payload
        at += 48 + pdu
    return out


def check_versions():
    with open(sample("loop0.merged.bin"), "rb") as f:
        data = f.read()
    want = seen(load([sample("loop0.merged.bin")])[0])
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "x")
        for version, order, name in ((7, ">", "version 7, big-endian"), (8, "<", "version 8"), (8, ">", "version 8, big-endian")):
            with open(path, "wb") as f:
                f.write(convert(data, version, order))
            same(name, seen(load([path])[0] or []), want)
        with open(path, "wb") as f:
            f.write(data[:48 * 40 + 5])
        events, _, message = load([path])
        ok(events and "cut short" in message, "a file that is cut short", message)
        # A version that nobody knows.
        with open(path, "wb") as f:
            f.write(struct.pack("<I", 0x65617409) + bytes(60))
        events, _, message = load([path], "--format=blktrace")
        ok("version" in message, "another version", message)
        # A gap in the numbers of a CPU.
        records, at = [], 0
        while at < len(data):
            size = 48 + struct.unpack_from("<H", data, at + 46)[0]
            records.append(data[at:at + size])
            at += size
        with open(path, "wb") as f:
            f.write(b"".join(records[:100] + records[110:]))
        trace = os.path.join(tmp, "lost.trace")
        tool("import", "-o", trace, path)
        ok("EVENTS_LOST" in tool("show", "--exact", trace).stdout, "a gap is a loss")


def check_btrecord():
    events, _, _ = load([sample("loop0.replay.0"), sample("loop0.replay.1")])
    got = sorted((e["args"]["op"], place(e), e["args"]["length"]) for e in events)
    want = sorted(("READ" if "R" in rq[4] else "WRITE" if rq[2] else "FLUSH", rq[3], rq[2]) for rq in requests_of_layer("Q"))
    same("btrecord", got, want)


def check_think():
    """hfplayer's own analyser and ours, with the same threshold."""
    for name in ("tpch98.csv", "sampleDepTrace.csv"):
        with tempfile.TemporaryDirectory() as tmp:
            trace = os.path.join(tmp, "t.trace")
            tool("import", "-o", trace, sample(name))
            dot = tool("graph", "--dot", "--think-threshold=0", trace).stdout
        with open(sample(name + ".annot")) as f:
            head = [c.split(".")[0] for c in f.readline().lstrip("#").rstrip("\n").split(",")]
            rows = [dict(zip(head, line.rstrip("\n").split(","))) for line in f]
        place = {row["DUMP_OFFSET"]: i + 1 for i, row in enumerate(rows)}
        want = sorted((place[p], i + 1) for i, row in enumerate(rows) if row["DEP_PARENT_LIST"] != "NA"
                      for p in row["DEP_PARENT_LIST"].split("-"))
        number, got = {}, []
        for line in dot.splitlines():
            words = line.split('"')
            if "[label=" in line and "->" not in line:
                number[words[1]] = int(words[3].split()[0].lstrip("#"))
        for line in dot.splitlines():
            if "->" in line and "think" in line:
                words = line.split('"')
                got.append((number[words[1]], number[words[3]]))
        same(f"parents of {name} as hfplayer's analyser has them", sorted(got), want)


def check_plans():
    """Plans of random traces: sound, no more lanes than requests were in flight, and the edges of the definition."""
    rng = random.Random(11)
    good, why = True, ""
    for n in range(12):
        threshold = rng.choice((0, 10, 100))
        now, rows = 0, []
        for i in range(rng.randrange(1, 120)):
            now += rng.randrange(0, 60)
            rows.append((now, rng.randrange(0, rng.choice((5, 50, 1000)))))
        with tempfile.TemporaryDirectory() as tmp:
            csv, trace, plan = (os.path.join(tmp, name) for name in ("x.csv", "x.trace", "x.plan"))
            with open(csv, "w") as f:
                f.write("time_ns,latency_ns,device,op,offset,length\n")
                f.writelines(f"{a},{b},{'ab'[a % 2]},R,0,512\n" for a, b in rows)
            tool("import", "-o", trace, csv)
            r = tool("compile", "-j", f"--think-threshold={threshold}ns", "-o", plan, trace)
            done = tool("check", plan)
        made = json.loads(r.stdout)
        flying = max(sum(1 for c, d in rows[:i] if c + d + threshold > a) + 1 for i, (a, b) in enumerate(rows))
        follows = lambda x, y: rows[x][0] + rows[x][1] + threshold <= rows[y][0]
        parents = sum(1 for y in range(len(rows)) for x in range(y)
                      if follows(x, y) and not any(follows(x, z) and follows(z, y) for z in range(x + 1, y)))
        if done.returncode or made["actions"] != len(rows) or made["lanes"] > flying or made["edges"] > parents:
            good, why = False, f"{n}: {made} {flying} {parents} {done.stderr}"
    ok(good, "plans of random traces", why)


def check_columns():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "x")
        with open(path, "w") as f:
            f.write("sda 12.5 W 8 1024 7\nsdb 13.5 R 16 512 9\n")
        events, devices, message = load([path], "--format=csv", "--columns=device,time:ms,op,offset:sectors,length,latency:us")
        same("columns of one's own", [(e["enter_ns"], e["duration_ns"], place(e), e["args"]["length"]) for e in events or []],
             [(0, 7000, 4096, 1024), (1000000, 9000, 8192, 512)])
        events, devices, message = load([path], "--format=csv", "--columns=device,time:ms,op,offset:sectors,length", "--device=sdb")
        ok(len(events) == 1 and devices == {0: "sdb"}, "one device of several", devices)
        events, _, message = load([path], "--format=csv", "--columns=device,when")
        ok(events is None and "when" in message, "a column that is none", message)
        # Out of order, CRLF, a bad line, the largest numbers.
        with open(path, "w") as f:
            f.write("0,R,4096,512,2000000000000002\r\n0,W,0,512,2000000000000000\r\nnothing\r\n0,R,18446744073709551615,512,2000000000000003\r\n")
        events, _, message = load([path], "--format=alibaba")
        same("out of order, and worse", [(e["enter_ns"], e["args"]["op"]) for e in events], [(0, "WRITE"), (2000, "READ")])
        ok("columns" in message and "offset" in message, "what is wrong is told", message)
        with open(path, "w") as f:
            f.write("4851.5 1 524288 16 0\n4852.5 1 524304 16 1\n")
        events, _, _ = load([path])
        same("DiskSim has ms, writes are 0", [(e["enter_ns"], e["args"]["op"]) for e in events], [(0, "WRITE"), (1000000, "READ")])
        events, _, _ = load([path], "--time-unit=s", "--format=disksim")
        ok(events[1]["enter_ns"] == 10**9, "the unit that was asked for")


def check_exports():
    """What is written for others reads as what it was made of."""
    with tempfile.TemporaryDirectory() as tmp:
        trace, out = os.path.join(tmp, "t.trace"), os.path.join(tmp, "x")
        for source, option in (("loop0.merged.bin", "issue"), ("loop0.merged.bin", "queue")):
            tool("import", "-f", "-o", trace, f"--events={option}", sample(source))
            want = [json.loads(line) for line in tool("show", "--json", trace).stdout.splitlines()]
            for form in ("blockcsv", "blkparse", "blktrace", "fio", "btrecord"):
                r = tool("export", "-f", f"--format={form}", "-o", out, trace)
                got, _, message = load([out])
                wanted = want
                if form in ("blkparse", "blktrace"):
                    same(f"{option}: {form} again", seen(got or []), seen(want))
                elif form == "blockcsv":
                    keep = lambda e: (e["enter_ns"], e["exit_ns"], e["args"].get("pid"), rwbs(e), place(e), e["args"]["length"])
                    same(f"{option}: {form} again", [keep(e) for e in got or []], [keep(e) for e in want])
                elif form == "fio":
                    first = want[0]["enter_ns"] // 1000
                    pairs = [(e["enter_ns"] // 1000 - first, e["args"]["op"], place(e), e["args"]["length"]) for e in want]
                    same(f"{option}: {form} again",
                         [(e["enter_ns"] // 1000, e["args"]["op"], place(e), e["args"]["length"]) for e in got or []
                          if e["args"]["op"] != "FLUSH"], [p for p in pairs if p[1] != "FLUSH"])
                else:
                    keep = lambda e: (e["enter_ns"], e["args"]["op"], place(e), e["args"]["length"])
                    same(f"{option}: {form} again", [keep(e) for e in got or []],
                         [keep(e) for e in want if e["args"]["op"] in ("READ", "WRITE")])


check_csv()
check_vscsi()
check_fio()
check_blktrace()
check_versions()
check_btrecord()
check_think()
check_plans()
check_columns()
check_exports()
print(f"1..{nr}")
sys.exit(failed)
