#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise compare
. "$TOP/tests/cli/tap.sh"

# Two threads of two calls each; what is not a call, and what waits.
cat >a.txt <<'END'
10/10 #1 1000+0 thread_start(parent=1)
10/10 #2 1000+1000 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDONLY) = 3
10/11 #3 2000+1000 pread64(fd=3, count=4096, offset=0) = 4096
10/10 #4 3000+2000 pread64(fd=3, count=4096, offset=4096) = 4096
10/11 #5 4000+7000 futex_wait(uaddr=0x1000, val=2) = 0
10/11 #6 9000+2000 close(fd=3) = 0
END
make a
run 0 compare --json a.trace a.trace && json 'd["comparisons"][0]["matched"] == 5
	and all(c["ks"] == 0 and c["emd_ns"] == 0 and c["error"]["time"] in (0, None) for c in d["comparisons"][0]["classes"].values())
	and d["comparisons"][0]["elapsed_ns"] == {"a": 10000, "b": 10000, "error": 0}
	and d["comparisons"][0]["reordering"]["reordered"] == 0 and d["comparisons"][0]["match"] == "order"'
ok $? 'a trace is like itself'
run 0 compare --json a.trace a.trace && json 'd["comparisons"][0]["concurrency"]["a"] == 0.6
	and d["comparisons"][0]["classes"]["all"]["a"]["count"] == 4 and d["comparisons"][0]["classes"]["wait"]["a"]["count"] == 1'
ok $? 'what waits is no concurrency'

# Twice as slow, and the second thread overtakes the open and the read of the first.
cat >b.txt <<'END'
20/20 #1 1000+0 thread_start(parent=1)
20/21 #3 2000+2000 pread64(fd=3, count=4096, offset=0) = 4096
20/21 #5 4000+7000 futex_wait(uaddr=0x1000, val=2) = 0
20/21 #6 11000+4000 close(fd=3) = 0
20/20 #2 12000+2000 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDONLY) = 3
20/20 #4 17000+4000 pread64(fd=3, count=4096, offset=4096) = 4096
END
make b
run 0 compare --json a.trace b.trace && json 'd["comparisons"][0]["matched"] == 5
	and d["comparisons"][0]["elapsed_ns"] == {"a": 10000, "b": 19000, "error": 0.9}
	and d["comparisons"][0]["reordering"]["reordered"] == 2 and d["comparisons"][0]["reordering"]["extent_max"] == 3
	and d["comparisons"][0]["reordering"]["ratio"] == 0.4 and d["comparisons"][0]["latency_error_ns"] == 1500
	and d["comparisons"][0]["classes"]["data"]["error"]["mean"] == 1 and d["comparisons"][0]["classes"]["data"]["ks"] == 0.5'
ok $? 'errors, distances and order changes'
run 0 compare a.trace b.trace && grep -q '^elapsed  *10.0 us  *19.0 us  *+90.0%$' out &&
	grep -q '^reordered  *2 of 5, 40.00%; extent [0-9]* p50, 3 max' out && grep -q '^data  *2  *2 ' out
ok $? 'as text'
run 0 compare --json --match=none a.trace b.trace && json 'd["comparisons"][0]["matched"] == 0
	and d["comparisons"][0]["classes"]["data"]["ks"] == 0.5 and d["comparisons"][0]["reordering"]["events"] == 0'
ok $? 'nothing is matched on demand'
run 1 compare --tolerance=50 a.trace b.trace && run 0 compare --tolerance=95% a.trace b.trace &&
	run 2 compare --tolerance=x a.trace b.trace && says "'x' is no percentage"
ok $? '--tolerance'
run 0 compare --json a.trace a.trace b.trace a.trace && json '[c["b"] for c in d["comparisons"]] == ["a.trace", "b.trace", "a.trace"]'
ok $? 'any number of traces'

# A thousand, and millions of times as slow: all lines of the table are of the same width.
sed 's/\(#[46] [0-9]*+\)[0-9]*/\11000000/; s/\(#2 [0-9]*+\)[0-9]*/\1100000000000/' a.txt >slow.txt
make slow
run 0 compare a.trace slow.trace && grep -q ' x999 ' out && grep -q ' x3e+07 ' out &&
	[ "$(sed -n '/^desc/,/^all/p' out | awk '{ print length($0) }' | sort -u | wc -l)" -eq 1 ]
ok $? 'huge errors are factors, and columns stay columns'

# Other threads, fewer events, no times at all.
sed -n '/#[246] /p' a.txt | sed 's/#\([0-9]*\) [0-9]*+[0-9]* /#\1 /' >c.txt
make c
run 0 compare a.trace c.trace && grep -q '^c.trace has no durations' out && run 0 compare --json a.trace c.trace &&
	json 'd["comparisons"][0]["timed_b"] == 0 and d["comparisons"][0]["classes"]["data"]["ks"] is None and d["comparisons"][0]["matched"] == 3'
ok $? 'a trace without times says so'
run 0 compare c.trace a.trace
ok $? 'also as the first'
: >d.txt
make d
run 0 compare --json a.trace d.trace && json 'd["comparisons"][0]["events_b"] == 0' && run 0 compare d.trace a.trace && run 0 compare d.trace d.trace
ok $? 'nor does one without events do harm'
run 2 compare --json a.trace absent.trace b.trace && says 'absent.trace' && json 'len(d["comparisons"]) == 1'
ok $? 'a trace that is not there does not keep the others away'
run 2 compare a.trace
ok $? 'two are needed'

# Block requests, whose run made them in another order.
cat >q.txt <<'END'
1/1 #1 1000+900 block_request(dev=8:0, op=READ, flags=0, sector=0, length=4096) = 4096
1/1 #2 2000+900 block_request(dev=8:0, op=WRITE, flags=0, sector=8, length=4096) = 4096
1/1 #3 3000+900 block_request(dev=8:0, op=WRITE, flags=0, sector=16, length=4096) = 4096
1/1 #4 4000+900 block_request(dev=8:0, op=READ, flags=0, sector=24, length=4096) = 4096
END
cat >r.txt <<'END'
meta(key="recorder", value="replay")
meta(key="run.sources", value="1")
meta(key="run.source.0.file", value="q")
meta(key="run.source.0.events", value="4")
meta(key="run.source.0.streams", value="0")
1/1 #1 1000+1800 block_request(dev=8:0, op=READ, flags=0, sector=0, length=4096) = 4096 {origin=1}
1/1 #2 2000+1800 block_request(dev=8:0, op=READ, flags=0, sector=24, length=4096) = 4096 {origin=4}
1/1 #3 3000+1800 block_request(dev=8:0, op=WRITE, flags=0, sector=16, length=4096) = 4096 {origin=3}
1/1 #4 4000+1800 block_request(dev=8:0, op=WRITE, flags=0, sector=8, length=4096) = 4096 {origin=2}
END
make q && make r
run 0 compare --json q.trace r.trace && json 'd["comparisons"][0]["match"] == "origin" and d["comparisons"][0]["matched"] == 4
	and d["comparisons"][0]["reordering"]["reordered"] == 2 and d["comparisons"][0]["reordering"]["extent_max"] == 2
	and d["comparisons"][0]["classes"]["block"]["error"]["mean"] == 1'
ok $? 'block requests that changed places'

sed 's/+1800/+900/' r.txt >r2.txt && make r2
run 0 compare q.trace r.trace r2.trace && [ "$(sed -n '/^side by side/,$p' out | wc -l)" = 4 ] &&
	sed -n '/^side by side/,$p' out | grep -q '^r.trace .*+100.0% *50.00%$' &&
	sed -n '/^side by side/,$p' out | grep -q '^r2.trace .* +0.0% *50.00%$'
ok $? 'several runs side by side'
run 0 compare q.trace r.trace && ! grep -q 'side by side' out
ok $? 'one run has no side'

# A run: only what was made again counts.
mkdir tree && head -c 8192 /dev/zero >tree/f
chmod 755 .
run 0 replay -q --no-init -o run.trace a.trace tree
if grep -q namespace err; then
	nr=$((nr + 1))
	echo "ok $nr - a run is matched by origin # SKIP no namespaces"
else
	run 0 compare --json a.trace run.trace && json 'd["comparisons"][0]["match"] == "origin" and d["comparisons"][0]["matched"] == 4
		and d["comparisons"][0]["simulated"] == 1 and d["comparisons"][0]["classes"]["all"]["a"]["count"] == 4
		and "wait" not in d["comparisons"][0]["classes"] and d["comparisons"][0]["mismatched"] == 0'
	ok $? 'a run is matched by origin'
fi
echo "1..$nr"
