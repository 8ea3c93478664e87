#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise import, and that what `show --exact` prints becomes the same trace.
. "$TOP/tests/cli/tap.sh"

# The example at the head of the document.
sed -n '/^    # reprise exact/,/^$/s/^    //p' "$TOP/doc/trace-text.md" >a.txt

run 0 import a.txt
ok $? 'the example of doc/trace-text.md is understood'
[ "$(cat out)" = 'import: 9 lines, 5 events, 0 not understood -> a.txt.trace' ]
ok $? 'counts'
run 0 show --exact a.txt.trace && cmp -s out a.txt
ok $? 'it is printed as it was'
"$REPRISE" show --exact a.txt.trace | "$REPRISE" import --format=exact -o b.trace - >out 2>err
ok $? 'from standard input'
run 0 diff a.txt.trace b.trace
ok $? 'both traces are equal'
run 0 check b.trace
ok $? 'and whole'

run 2 import a.txt && grep -q 'a.txt.trace is there already' err
ok $? 'an existing trace is not replaced'
run 2 import - <a.txt && grep -q 'name the output' err
ok $? 'standard input gives no name'

printf 'marker(text="good")\nmarker(text=bad)\n' >c.txt
run 2 import c.txt && grep -q 'c.txt:2: column 13: expected a string' err &&
	[ "$(cat out)" = 'import: 2 lines, 1 events, 1 not understood -> c.txt.trace' ]
ok $? 'a line that is not understood is told, counted, and passed over'
run 2 import --strict -o d.trace c.txt && [ ! -e d.trace ] && [ ! -s out ]
ok $? 'with --strict it ends the import, and there is no trace'
run 2 import -f --json c.txt &&
	[ "$(cat out)" = '{"lines":2,"events":1,"not_understood":1,"values_not_understood":0,"output":"c.txt.trace"}' ]
ok $? 'counts as JSON'
echo 'hello' >e.txt
run 2 import e.txt && grep -q 'no known format' err
ok $? 'an unknown format is said to be unknown'


cp a.txt p.txt
gzip -k p.txt && zstd -q p.txt && xz -k p.txt
for pack in gz zst xz; do
	run 0 import -o "p.$pack.trace" "p.txt.$pack" && run 0 diff a.txt.trace "p.$pack.trace"
	ok $? "packed: $pack"
	"$REPRISE" import -f -o "p.$pack.trace" - <"p.txt.$pack" >out 2>err && run 0 diff a.txt.trace "p.$pack.trace"
	ok $? "packed, from standard input: $pack"
	(head -n 6 a.txt >p1 && tail -n +7 a.txt >p2 && for p in p1 p2; do case $pack in
	gz) gzip -c $p ;;
	zst) zstd -qc $p ;;
	xz) xz -c $p ;;
	esac; done; head -c 8 /dev/zero) >two
	run 0 import -f -o two.trace two && run 0 diff a.txt.trace two.trace
	ok $? "two packed streams in one file, and zeros: $pack"
	head -c -5 "p.txt.$pack" >cut
	run 2 import -o cut.trace cut && says 'ends too early' && [ ! -e cut.trace ]
	ok $? "packed and cut: $pack"
	(head -c 30 "p.txt.$pack"; echo 'these bytes are not what was packed') >bad
	run 2 import -o bad.trace bad && grep -q 'bad: the .* data' err && [ ! -e bad.trace ]
	ok $? "packed and damaged: $pack"
done
# More than the buffers hold, and packed to almost nothing.
(echo '# reprise exact 1'; yes 'marker(text="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")' | head -n 60000) | xz -1 >big.xz
run 0 import -o big.trace big.xz && grep -q ' 60001 lines, 60000 events' out
ok $? 'a large input that packs well'

run 2 import --format=exact --init=a.txt -f -o i.trace a.txt && says 'takes no listing'
ok $? 'a listing for a format that has no use for one'

# What is no log is not gone through to its end.
head -c 2000000 /dev/zero | tr '\0' '\n' >blank
yes 'no line of any log' | head -n 200000 >nonsense
for format in exact strace; do
	run 2 import --format=$format -o blank.trace blank && says 'blank:1000001: more than 1000000 empty lines in a row: this is no log' && [ ! -e blank.trace ]
	ok $? "$format: nothing but empty lines"
	run 2 import --format=$format -o nonsense.trace nonsense && grep -q 'hardly any of its first 100000 lines means anything' err && [ ! -e nonsense.trace ]
	ok $? "$format: nothing but nonsense"
done
run 2 import --format=exact -o - a.txt && says 'a trace or plan cannot be written to standard output' && [ ! -e - ] && [ ! -s out ]
ok $? 'a trace is not written to standard output'
run 0 import --format=exact -f -o ./- a.txt && [ -s ./- ] && rm ./-
ok $? 'a file named -'

echo "1..$nr"
