#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise replay --from and --to: the state before a part of a trace is made ready, and is right wherever the cut is.
. "$TOP/tests/cli/tap.sh"
unset TSAN_OPTIONS

cat >part.txt <<'END'
# reprise exact 1
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/w", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/w/old", stat={type=file, mode=S_IFREG|0644, size=10})
7/1 #1 1000000+100000 found_state(cwd="/w", root="/", umask=022)
7/1 #2 2000000+100000 open(path="old", flags=O_RDONLY, mode=0) = 3
7/1 #3 3000000+100000 read(fd=3, count=4) = 4
7/1 #4 4000000+100000 open(path="f", flags=O_RDWR|O_CREAT, mode=0644) = 4
7/1 #5 5000000+100000 write(fd=4, buf="12345678", count=8) = 8
7/1 #6 6000000+100000 stat(path="gone") = -1 ENOENT
7/1 #7 7000000+100000 mkdir(path="d", mode=0700) = 0
7/1 #8 8000000+100000 rename(oldpath="f", newpath="d/g") = 0
7/1 #9 9000000+100000 chdir(path="d") = 0
7/1 #10 10000000+100000 open(path="h", flags=O_RDWR|O_CREAT, mode=0666) = 5
7/1 #11 11000000+100000 unlink(path="h") = 0
7/1 #12 12000000+100000 write(fd=5, buf="ab", count=2) = 2
7/1 #13 13000000+100000 lseek(fd=3, offset=0, whence=SEEK_CUR) = 4
7/1 #14 14000000+100000 read(fd=3, count=100) = 6
7/1 #15 15000000+100000 write(fd=4, buf="9", count=1) = 1
7/1 #16 16000000+100000 pread64(fd=4, buf="123456789", count=20, offset=0) = 9
7/1 #17 17000000+100000 pread64(fd=5, buf="ab", count=9, offset=0) = 2
7/1 #18 18000000+100000 open(path="g", flags=O_RDONLY, mode=0) = 6
7/1 #19 19000000+100000 close(fd=4) = 0
7/1 #20 20000000+100000 unlink(path="/w/d/g") = 0
END
"$REPRISE" import --format=exact -f -o part.trace part.txt >out 2>err || {
	cat err
	echo "Bail out! cannot make part.trace"
	exit 1
}

right=0
for n in 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	rm -rf tree
	mkdir tree
	run 0 replay --json --speed=afap "--from=#$n" part.trace tree &&
		json 'd["mismatches"] == 0 and d["unbuilt"] == 0 and d["end"] == "complete"' &&
		[ ! -e tree/w/d/g ] && [ -d tree/w/d ] && [ -e tree/w/old ] || {
		echo "# from #$n"
		sed 's/^/# /' out err
		right=1
	}
done
ok $right 'whatever part is performed, it meets what it met'

rm -rf tree && mkdir tree
run 0 replay --json --from=12500us --to=16500us part.trace tree && json 'd["setup_actions"] > 0
	and d["calls"]["lseek"]["count"] == 1 and d["calls"]["read"]["count"] == 1
	and d["calls"]["write"]["count"] == 1 and d["calls"]["pread64"]["count"] == 1
	and d["original_elapsed_ns"] == 3100000 and d["mismatches"] == 0' &&
	[ "$(cat tree/w/d/g)" = 123456789 ]
ok $? 'a part in the middle, by time'
rm -rf tree && mkdir tree
run 0 replay --json '--to=#5' part.trace tree && json 'd["setup_actions"] == 0 and "write" not in d["calls"]' &&
	[ -e tree/w/f ] && [ ! -s tree/w/f ]
ok $? 'the beginning'
run 0 replay '--from=#13' -f -o part.run part.trace tree && run 0 show part.run && lines 8 && ! grep -q SIMULATED out
ok $? 'the run has the events of the part, and no others'
rm -rf tree && mkdir tree
run 0 compile -f '--from=#10' '--to=#15' part.trace && grep -q 'actions make the state before the part' out &&
	run 0 check part.plan && run 0 replay --json part.plan tree && json 'd["setup_actions"] >= 7 and d["mismatches"] == 0'
ok $? 'as a plan of its own'
run 2 replay '--from=#3' part.plan tree && says "give --from and --to to 'reprise compile'"
ok $? 'which has no parts'
run 2 replay --from=x part.trace tree && says 'neither a time such as 2.5s nor an event such as #120'
ok $? 'what is neither time nor event is refused'
run 2 replay --from=2s --to=1s part.trace tree && says 'nothing comes before it'
ok $? 'and a part that is none'
rm -rf tree && mkdir tree
run 0 replay --json --from=1h part.trace tree && json 'd["calls"].get("read", {"count": 0})["count"] == 0' &&
	[ ! -e tree/w/d/g ] && [ -d tree/w/d ]
ok $? 'behind the end there is only the state'

echo "1..$nr"
