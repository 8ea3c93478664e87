#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise slice
. "$TOP/tests/cli/tap.sh"

run 0 slice -o b.trace a.trace && prints 'b.trace: 14 events kept, 0 left out' &&
	run 0 diff --strict --all a.trace b.trace
ok $? 'without filters all is kept'
run 0 check b.trace && run 0 stat --json b.trace && json 'd["complete"] is True and d["left_out"] == 0'
ok $? 'and nothing is said to be missing'

run 0 slice --pid=100 --json -o p.trace a.trace && json 'd["events"] == 11 and d["left_out"] == 3'
ok $? 'one process'
run 0 stat --json p.trace && json 'd["events"] == 11 and d["lost"] == 0 and d["left_out"] == 3
	and d["complete"] is True and d["ledger"][0]["kind"] == "FILTERED"
	and d["ledger"][0]["note"] == "cut from a.trace" and d["trees"]["initial"] == 3'
ok $? 'the ledger tells what was left out, and from what'
run 0 show --exact a.trace && grep '^100/' out >want && run 0 show --exact p.trace &&
	grep '^[0-9]*/' out | cmp -s - want
ok $? 'the events are as they were'
run 0 show --json --data -c write p.trace && jsonl 'd[0]["args"]["buf"]["data"] == "0123456789" * 7'
ok $? 'with their data'
run 0 show --meta p.trace && lines 2
ok $? 'and the metadata'

run 0 slice --path=/home/u/in.txt -f -o p.trace a.trace && prints 'p.trace: 9 events kept, 5 left out' &&
	run 0 show --tree=initial p.trace && lines 2 && grep -q in.txt out && ! grep -q real/x out
ok $? 'one path: the trees are cut to what is touched'
run 0 slice --path=/home/u/link -f -o p.trace a.trace && run 0 show --tree=initial p.trace && lines 2 &&
	grep -q '"/home/u/real/x"' out
ok $? 'also through a link'
# What the calls on a path depend on: the umask of the parent, and a name that a socket has.
mkdir here
(cd here && "$REPRISE" record -q -o ../u.trace -- python3 -I -c 'import os, socket
os.umask(0o77); os.mkdir("d")
if not os.fork():
    os.chdir("d"); open("f", "w").write("x"); os.stat("f"); socket.socket(socket.AF_UNIX).bind("s"); os.chmod("s", 0o700)
    os._exit(0)
os.wait()') >out 2>err
run 0 slice --path="$dir/here" -f -o p.trace u.trace && run 0 replay --speed=afap --json p.trace R && json 'd["mismatches"] == 0 and d["actions"] > 0' &&
	run 0 verify p.trace R
ok $? 'one path: it can be replayed'
run 0 slice --from=8us --to=9us -f -o p.trace a.trace && prints 'p.trace: 1 events kept, 13 left out'
ok $? 'a range of time'
run 0 slice --pid=100 -f -o p.trace a.trace && run 0 slice --call=read -o q.trace p.trace &&
	run 0 stat --json q.trace && json 'd["left_out"] == 13 and d["events"] == 1'
ok $? 'a slice of a slice'

# Data in several pieces, and data of which only the hash is known.
python3 - <<'END' >big.txt
print('1/1 #1 10+1 write(fd=3, buf="%s", count=2500000) = 2500000' % ('ab' * 1250000))
print('1/1 #2 20+1 write(fd=3, buf=%00112233445566778899aabbccddeeff/100, count=100) = 100')
print('1/1 #3 30+1 fsync(fd=3) = 0')
END
make big
run 0 slice --call=write -o p.trace -f big.trace && run 0 check -q p.trace && run 1 diff --json big.trace p.trace &&
	json 'd["differences"] == 1 and d["by_kind"]["missing"] == 1'
ok $? 'long data and hashes'

printf 'not empty\n' >there.trace
run 2 slice -o there.trace a.trace && [ "$(cat there.trace)" = 'not empty' ] && [ "$(wc -l <err)" -eq 1 ]
ok $? 'an existing file is not replaced'
run 0 slice --force -o there.trace a.trace && run 0 check there.trace
ok $? 'but with --force'
cp a.trace same.trace
ln same.trace other.trace
run 2 slice --force -o other.trace same.trace && says 'is the trace itself' && cmp -s a.trace same.trace
ok $? 'the trace itself never is'
run 2 slice -o nowhere/b.trace a.trace && says 'nowhere/b.trace'
ok $? 'an output that cannot be made'
run 2 slice a.trace && says '-o'
ok $? 'no output'

# What cannot be read is not passed off as whole.
shorten a.trace 300
run 2 slice -o cut.trace a.trace.cut && says 'a.trace.cut: offset ' && run 0 stat --json cut.trace &&
	json 'd["complete"] is False and any(l["kind"] == "NOT_CLOSED" for l in d["ledger"])'
ok $? 'of a cut file'
unclose a.trace
run 0 slice -f -o cut.trace a.trace.open && says 'warning: ' && run 0 stat --json cut.trace &&
	json 'd["events"] == 14 and d["complete"] is False'
ok $? 'of a trace that was not closed'
python3 - <<'END'
data = bytearray(open("a.trace", "rb").read())
at = data.index(b"in.txt") if b"in.txt" in data else len(data) // 2
data[at] ^= 1
open("bad.trace", "wb").write(data)
END
run 2 slice -o bad2.trace bad.trace && [ ! -e bad2.trace ] && [ "$(wc -l <err)" -eq 1 ]
ok $? 'of a damaged file: a failure leaves no output'
echo "1..$nr"
