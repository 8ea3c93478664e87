#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise diff
. "$TOP/tests/cli/tap.sh"

run 0 diff --strict --all a.trace a.trace && prints 'equal: 14 events'
ok $? 'a trace equals itself'

# Another run of the same program: other times and pids.
sed -e 's/200\/200/300\/300/; s/= 200$/= 300/; s/ppid=100/ppid=77/; s/100\/100/77\/77/' \
	-e 's/ \([0-9]*\)+/ 5\1+3/; s/#\([0-9]*\) /#5\1 /' a.txt >b.txt
make b
run 0 diff a.trace b.trace
ok $? 'times and pids are no difference'
run 1 diff --strict a.trace b.trace
ok $? 'pids are, with --strict'
run 0 diff --strict --ignore=pids a.trace b.trace
ok $? '--strict and --ignore'
run 1 diff --by=tid --json a.trace b.trace &&
	json 'd["threads_a_only"] == 2 and d["by_kind"]["missing"] == 14 and d["by_kind"]["extra"] == 14'
ok $? '--by=tid'

sed -e 's/hello/hallo/; /#10 /d; s/= 70$/= 69/; s/arg=9/arg=8/' a.txt >b.txt
make b
run 1 diff a.trace b.trace && prints '@ data: buf
- 100/100 #2 read(3, "hello", 4096) = 5
+ 100/100 #2 read(3, "hallo", 4096) = 5
  buf: byte 1: first 65 6c 6c 6f "ello", second 61 6c 6c 6f "allo"
@ argument: arg
- 100/100 #5 fcntl(3, F_DUPFD, 9) = 9
+ 100/100 #5 fcntl(3, F_DUPFD, 8) = 9
  arg: first 9, second 8
@ missing
- 100/100 #10 close(3) = 0
@ outcome: result
- 100/100 #11 write(5, "01234567890123456789012345678901"..., 70) = 70
+ 100/100 #11 write(5, "01234567890123456789012345678901"..., 70) = 69
  result: first 70, second 69
4 differences (missing 1, argument 1, outcome 1, data 1) between 14 and 13 events'
ok $? 'the form of differences'
run 1 diff --json a.trace b.trace && json 'd["equal"] is False and d["events_a"] == 14 and d["events_b"] == 13
	and d["differences"] == 4 and d["by_kind"] == {"missing": 1, "extra": 0, "call": 0, "argument": 1,
	"outcome": 1, "data": 1}'
ok $? 'JSON'
run 1 diff b.trace a.trace && grep -q '^@ extra$' out && grep -q '^+ .*close(3)' out
ok $? 'the other way around'
run 1 diff -n 1 a.trace b.trace && lines 6 && grep -q '^\.\.\. and 3 more$' out
ok $? '--limit shows fewer and counts all'
run 1 diff -q a.trace b.trace && [ ! -s out ] && [ ! -s err ]
ok $? '-q prints nothing'
run 1 diff --ignore=data a.trace b.trace && ! grep -q hallo out
ok $? '--ignore=data'

# Data that is too long to stand in the event.
sed -e 's/"0123456789/"x123456789/' a.txt >b.txt
make b
run 1 diff --json a.trace b.trace && json 'd["by_kind"]["data"] == 1 and d["differences"] == 1'
ok $? 'long data is compared by its hash'

sed -e 's/in.txt", stat={type=file, mode=0644, size=5/in.txt", stat={type=file, mode=0644, size=6/' a.txt >b.txt
make b
run 0 diff a.trace b.trace && run 1 diff --all a.trace b.trace &&
	grep -q '^@ tree: initial "/home/u/in.txt" differs$' out
ok $? 'trees, with --all'

shorten a.trace 300
run 2 diff a.trace a.trace.cut && says 'a.trace.cut: offset '
ok $? 'a cut file is a failure, whatever differs'
unclose a.trace
run 0 diff a.trace a.trace.open && says 'warning: a.trace.open'
ok $? 'a trace that was not closed: a warning'
run 2 diff --ignore=pidz a.trace b.trace && says "did you mean 'pids'?"
ok $? 'a word that cannot be ignored'
run 2 diff a.trace && run 2 diff a.trace nothing.trace && says 'cannot open nothing.trace'
ok $? 'no second trace'
echo "1..$nr"
