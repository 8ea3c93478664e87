#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise show
. "$TOP/tests/cli/tap.sh"

# Lines.
run 0 show a.trace && lines 14 && [ ! -s err ]
ok $? 'a line for each event'
sed -n 1p out >line
[ "$(cat line)" = '100/100 0.000001000 openat(AT_FDCWD, "in.txt", O_RDONLY|O_CLOEXEC, 0) = 3</home/u/in.txt> <0.000000800>' ]
ok $? 'the form of a line'
grep -qF 'read(9</home/u/in.txt>, "", 10) = 0' out &&
	grep -qF 'close(3</home/u/in.txt>) = 0' out &&
	grep -qF 'pipe2([4<pipe:>, 5<pipe:>]' out &&
	grep -qF '= 3</home/u/link/x>' out
ok $? 'descriptors are followed to their files'
grep -qF '200/200 0.000007900 read(3, ' out && grep -qF 'EBADF (Bad file descriptor)' out
ok $? 'but not beyond an exec, and errors are explained'
run 0 show --no-paths a.trace && ! grep -q '</' out
ok $? '--no-paths'
run 0 show -c write a.trace && grep -qF '"01234567890123456789012345678901"..., 70)' out &&
	run 0 show -c write -s 4 a.trace && grep -qF '"0123"..., 70)' out &&
	run 0 show -c write --strings=1000 a.trace && grep -qF '56789", 70)' out
ok $? '--strings'
run 0 show -c write --data a.trace && lines 7 &&
	grep -qF '    00000040  34 35 36 37 38 39 ' out && grep -qF '|456789|' out
ok $? '--data'

# Times and order.
run 0 show -n 2 --time=delta a.trace && sed -n 2p out | grep -q '^100/100 0.000001000 read'
ok $? '--time=delta'
run 0 show -n 1 --time=absolute a.trace && grep -q '^100/100 2023-11-14T22:13:20.000001000Z openat' out
ok $? '--time=absolute'
run 0 show -n 1 --time=none a.trace && prints '100/100 openat(AT_FDCWD, "in.txt", O_RDONLY|O_CLOEXEC, 0) = 3</home/u/in.txt>'
ok $? '--time=none'
printf '%s\n' '1/1 #1 10+100 open(path="/new", flags=0, mode=0) = 3' '1/2 #2 50+100 close(fd=3) = 0' \
	'1/2 #3 200+1 fsync(fd=3) = 0' >b.txt
make b
run 0 show --no-paths --time=none --order=enter b.trace && sed -n 1p out | grep -q open &&
	run 0 show --no-paths --time=none --order=effect b.trace && sed -n 1p out | grep -q close &&
	run 0 show --no-paths --time=none --order=exit b.trace && sed -n 1p out | grep -q open
ok $? '--order'
for order in enter exit effect; do
	run 0 show --order=$order b.trace && grep -qF 'fsync(3</new>)' out || break
done
ok $? 'what overlaps is told apart in every order'

# Filters; more of them in the unit test.
run 0 show --pid 200 a.trace && lines 3 && grep -qF 'read(9</home/u/in.txt>' out
ok $? '--pid, and inherited descriptors are known all the same'
run 0 show --call=fcntl --time=none a.trace && lines 1 && grep -q 'fcntl(3' out
ok $? '--call, with a variant'
run 0 show --path=/home/u/in.txt a.trace && lines 5
ok $? '--path'
run 0 show --failed a.trace && lines 2 && run 0 show -e ENOENT a.trace && lines 1
ok $? '--failed, --errno'
run 0 show --min-duration=1us a.trace && lines 1 && grep -q poll out
ok $? '--min-duration'
run 0 show --from=8us --to=9us a.trace && lines 1 && grep -q close out
ok $? '--from, --to'
run 0 show -n 3 a.trace && lines 3
ok $? '--limit'
run 0 show --call=fsync a.trace && [ ! -s out ]
ok $? 'no match is no failure'

# JSON.
run 0 show --json a.trace && jsonl 'len(d) == 14 and set(d[0]) == {
	"seq", "pid", "tid", "ppid", "pgid", "enter_ns", "exit_ns", "duration_ns", "call", "class",
	"args", "ret", "errno", "flags", "cpu_ns", "held_ns", "held_before_ns", "held_inside_ns", "gap_cpu_ns", "origin", "paths"}'
ok $? 'JSON: keys'
jsonl 'd[0]["args"] == {"dirfd": -100, "path": "in.txt", "flags": "O_RDONLY|O_CLOEXEC", "mode": 0}
	and d[0]["paths"] == {"ret": "/home/u/in.txt"} and d[0]["ret"] == 3 and d[0]["errno"] is None'
ok $? 'JSON: arguments and paths'
jsonl 'd[1]["args"]["buf"] == {"length": 5, "data": "hello"} and d[2]["errno"] == "ENOENT"
	and set(d[10]["args"]["buf"]) == {"length", "hash"}'
ok $? 'JSON: data and errors'
run 0 show --json --data -c write a.trace && jsonl 'd[0]["args"]["buf"]["data"] == "0123456789" * 7'
ok $? 'JSON: all data with --data'
printf '%s\n' '1/1 #1 1+1 open(path="/\xff", flags=0, mode=0) = 3' >b.txt
make b
run 0 show --json b.trace && jsonl 'd[0]["args"]["path"] == "/\u00ff" and d[0]["args"]["path_encoding"] == "latin-1"'
ok $? 'JSON: names that are not UTF-8'

# Other sections.
run 0 show --threads a.trace && prints '100/100 11 events from 0.000001000 to 0.000111010
200/200 3 events from 0.000007600 to 0.000007910'
ok $? '--threads'
run 0 show --threads --json a.trace && jsonl 'd[1]["tid"] == 200 and d[1]["events"] == 3'
ok $? '--threads as JSON'
run 0 show --meta a.trace && prints 'cwd: "/home/u"
start_realtime_ns: "1700000000000000000"'
ok $? '--meta'
run 0 show --tree=initial a.trace && lines 3 && run 0 show --tree=final --json a.trace &&
	jsonl 'len(d) == 1 and d[0]["path"] == "/home/u/in.txt" and d[0]["stat"]["size"] == 5'
ok $? '--tree'
run 0 show --ledger a.trace && [ ! -s out ]
ok $? '--ledger, empty'

# The exact form.
run 0 show --exact a.trace && cp out again.txt && make again && run 0 diff --strict --all a.trace again.trace
ok $? '--exact loses nothing'
run 0 show --exact --path=/home/u/in.txt a.trace && [ "$(grep -c '^[0-9]*/' out)" -eq 5 ]
ok $? '--exact with a filter'

# Files that are not whole.
shorten a.trace 300
run 2 show a.trace.cut && says 'a.trace.cut: offset ' && [ -s out ]
ok $? 'a file that is cut within a block: what there is, then a failure'
unclose a.trace
run 0 show a.trace.open && says 'warning: a.trace.open: offset ' && lines 14
ok $? 'a trace that was not closed: a warning'
head -c 10 a.trace >b.trace
run 2 show b.trace && [ "$(wc -l <err)" -eq 1 ]
ok $? 'a file that is cut in its first block'
: >b.trace
run 2 show b.trace && says 'reprise: show: b.trace: offset 0'
ok $? 'an empty file'
run 2 show a.txt && says 'a.txt'
ok $? 'no trace'
run 2 show nothing.trace && says 'cannot open nothing.trace: No such file'
ok $? 'no file'

# Misuse.
run 2 show --call=opne a.trace && says "did you mean 'open'?"
ok $? 'a call that there is not'
run 2 show --meta --ledger a.trace && says 'exclude each other'
ok $? 'two sections'
run 2 show && [ -s err ]
ok $? 'no operand'
run 0 show -h && grep -q -- --min-duration out
ok $? '-h'
echo "1..$nr"
