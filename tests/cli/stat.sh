#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise stat
. "$TOP/tests/cli/tap.sh"

run 0 stat --json a.trace && [ ! -s err ]
ok $? 'JSON'
json 'd["events"] == 14 and d["threads"] == 2 and d["processes"] == 2 and d["lost"] == 0'
ok $? 'counts'
json 'd["bytes_read"] == 5 and d["bytes_written"] == 70'
ok $? 'bytes'
json 'd["calls"]["read"]["count"] == 3 and d["calls"]["read"]["errors"] == 1
	and d["calls"]["read"]["bytes"] == 5
	and d["calls"]["read"]["latency_ns"] == {"p50": 10, "p90": 100, "p99": 100, "max": 100}'
ok $? 'calls'
json 'd["classes"]["data"]["count"] == 4 and d["errors"] == {"ENOENT": 1, "EBADF": 1}'
ok $? 'classes and errors'
json 'd["first_ns"] == 1000 and d["last_ns"] == 111010 and d["duration_ns"] == 110010'
ok $? 'times'
json '[t["tid"] for t in d["per_thread"]] == [100, 200] and d["per_thread"][0]["wait_ns"] == 100000
	and d["per_thread"][1]["io_ns"] == 30 and d["per_thread"][1]["compute_ns"] == 280'
ok $? 'threads'
json 'd["files"]["by_bytes"][0]["path"] == "pipe:" and d["files"]["by_bytes"][0]["bytes_written"] == 70
	and d["files"]["by_bytes"][1] == {"path": "/home/u/in.txt", "opens": 1, "reads": 2, "writes": 0,
	"bytes_read": 5, "bytes_written": 0, "time_ns": 1510}'
ok $? 'files'
json 'd["read_sizes"]["max"] == 5 and d["write_sizes"]["powers_of_two"] == [{"from": 64, "count": 1}]'
ok $? 'sizes'
json 'd["trees"] == {"initial": 3, "final": 1, "inferred": 1} and d["complete"] is True and d["ledger"] == []'
ok $? 'trees and ledger'

run 0 stat a.trace && grep -q '^events  *14 of 2 threads in 2 processes$' out &&
	grep -q '^complete  *yes$' out && grep -q '/home/u/in.txt$' out
ok $? 'text'
run 0 stat --json --no-files a.trace && json 'd["files"] is None and d["events"] == 14'
ok $? '--no-files'
run 0 stat --json --top=1 a.trace && json 'len(d["files"]["by_time"]) == 1 and d["files"]["distinct"] == 3'
ok $? '--top'
run 0 stat --json --pid=200 a.trace && json 'd["events"] == 3 and d["threads"] == 1
	and d["files"]["by_time"][0]["path"] == "/home/u/in.txt"'
ok $? 'a filter'
run 0 stat --json --call=fsync a.trace && json 'd["events"] == 0 and d["first_ns"] == 0 and d["calls"] == {}'
ok $? 'nothing'

cat >tree.txt <<'END'
1/1 #1 10+1 openat(dirfd=AT_FDCWD, path="/d/in", flags=O_RDONLY, mode=0) = 3
1/1 #2 20+1 read(fd=3, count=5000) = 5000
1/1 #3 30+1 readlink(path="/l", buf="d", bufsiz=10) = 1
1/1 #4 40+1 openat(dirfd=AT_FDCWD, path="/d/out", flags=O_RDWR|O_CREAT|O_EXCL, mode=0644) = 4
END
make tree
run 0 stat --json tree.trace && json 'd["trees"]["initial"] == 0 and
	d["inferred_tree"] == {"files": 1, "directories": 1, "symlinks": 1, "others": 0, "file_bytes": 5000}'
ok $? 'what of the tree a compilation will infer'
run 0 stat tree.trace && grep -q '^inferred tree  *1 files of at least 4.88 KiB, 1 directories, 1 symlinks, 0 others$' out
ok $? 'in text'
run 0 compile --json -o tree.plan tree.trace && json 'd["inferred"] == 3'
ok $? 'a compilation says the same'
run 0 stat --json a.trace && json 'd["inferred_tree"]["files"] + d["inferred_tree"]["directories"] <= 1'
ok $? 'of a tree that is there only what it says itself'

cat >b.txt <<'END'
loss(kind=EVENTS_LOST, pid=1, tid=2, count=7, note="ring full")
loss(kind=EVENTS_LOST, count=3)
loss(kind=FILTERED, count=100)
1/1 #1 10+1 marker(text="x")
1/1 #2 20+1 read(fd=3, count=10) = 10
END
make b
run 0 stat --json b.trace && json 'd["lost"] == 10 and d["left_out"] == 100 and d["complete"] is False
	and d["ledger"][0]["kind"] == "EVENTS_LOST" and d["ledger"][0]["note"] == "ring full"'
ok $? 'losses'
json 'list(d["calls"]) == ["read"] and list(d["other_events"]) == ["marker"] and d["events"] == 2'
ok $? 'events that are no calls stand apart'
run 0 stat b.trace && grep -q 'complete  *no' out && grep -q 'lost  *10 events' out &&
	grep -q 'left out  *100 events' out
ok $? 'losses in text'

shorten a.trace 300
run 2 stat --json a.trace.cut && says 'a.trace.cut: offset ' && json 'd["complete"] is False'
ok $? 'a cut file: what there is, then a failure'
unclose a.trace
run 0 stat --json a.trace.open && says 'warning: ' && json 'd["events"] == 14 and d["complete"] is False'
ok $? 'a trace that was not closed: a warning'
run 2 stat nothing.trace && says 'cannot open nothing.trace'
ok $? 'no file'
echo "1..$nr"
