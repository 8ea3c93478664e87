#!/bin/sh
# SPDX-License-Identifier: MIT
# The trace that a replay writes of itself: an equal of its original, with times and outcomes of its own.
. "$TOP/tests/cli/tap.sh"
chmod 755 "$dir"
unset TSAN_OPTIONS

fresh() {
	rm -rf tree
	mkdir tree
}

# A long name and long data, which stand outside of the events; a call that is not made; what is not compared.
long=$(printf '%0150d' 7)
cat >a.txt <<END
100/100 #1 1000+500 mkdir(path="/d", mode=0755) = 0
100/100 #2 2000+500 openat(dirfd=AT_FDCWD, path="/d/$long", flags=O_RDWR|O_CREAT, mode=0644) = 3
100/100 #3 3000+500 write(fd=3, buf="$long", count=150) = 150
100/100 #4 4000+500 getpid() = 100
100/101 #5 5000+500 pread64(fd=3, buf="$long", count=200, offset=0) = 150
100/101 #6 6000+500 fstat(fd=3, statbuf={st_dev=5, st_ino=77, st_mode=S_IFREG|0644, st_nlink=1, st_uid=0, st_gid=0, st_rdev=0, st_size=150, st_blksize=4096, st_blocks=8}) = 0
100/101 #7 7000+500 socket(domain=AF_INET, type=SOCK_STREAM, protocol=0) = 4
100/100 #8 8000+500 unlink(path="/d/absent") = -1 ENOENT
100/100 #9 9000+500 close(fd=3) = 0
END
make a
fresh
run 0 replay -q -o a.run a.trace tree && run 0 diff a.trace a.run && prints 'equal: 9 events'
ok $? 'a faithful run is equal to its original'
run 1 diff --strict a.trace a.run && grep -q 'outcome: statbuf' out
ok $? 'but for what nobody compared'
run 0 show a.run && grep -q "openat(AT_FDCWD, \"/d/$long\"" out && grep -q 'st_size=150' out && ! grep -q st_ino out &&
	grep -q 'getpid() = 100 {SIMULATED}' out && grep -q 'pread64(.*{VERIFIED} <' out && lines 9
ok $? 'it tells names, what was verified and what was not made'
run 0 show --exact a.run && grep -q '^100/101 #5 .*origin=5' out && run 0 check a.run && [ ! -e a.run.part ]
ok $? 'and which event it repeats'
run 0 stat --json a.run && json 'd["events"] == 9 and d["bytes_written"] == 150 and d["complete"]'
ok $? 'stat reads it'

# The target has the name already: two calls come out otherwise.
fresh
mkdir tree/d && echo x >tree/d/absent
run 1 replay -q --no-init -f -o a.run a.trace tree && run 1 diff --json a.trace a.run &&
	json 'd["differences"] == 2 and d["by_kind"]["outcome"] == 2' &&
	run 0 show a.run && grep -q 'mkdir("/d", 0755) = -1 EEXIST .*{MISMATCHED}' out &&
	grep -q 'unlink("/d/absent") = 0 {MISMATCHED}' out
ok $? 'what came out otherwise is marked, and is all that differs'
run 1 replay -q --no-init --on-mismatch=stop -f -o a.run a.trace tree && run 0 stat --json a.run &&
	json 'not d["complete"] and 0 < d["events"] < 9'
ok $? 'a run that ended early says so'
run 0 replay -q --verify=off --no-init -f -o a.run a.trace tree && run 1 diff a.trace a.run && grep -q '= -1 EEXIST' out &&
	run 0 show a.run && ! grep -q VERIFIED out
ok $? 'without verification the outcomes are there too'

# A mismatch is shown with its line, what it had waited for, and what that had waited for.
cat >h.txt <<'END'
100/100 #1 1000+500 mkdir(path="/d", mode=0755) = 0
100/101 #2 2000+500 rename(oldpath="/d", newpath="/e") = 0
100/102 #3 3000+500 rmdir(path="/e") = 0
END
make h
fresh
mkdir tree/d && echo x >tree/d/f
run 1 replay -q --no-init h.trace tree && grep -q '^  #3 rmdir of 100/102 failed' out &&
	grep -q '^    100/102 #3 rmdir("/e") = 0$' out &&
	grep -q '^      after 100/101 #2 rename("/d", "/e") = 0 (.*)$' out &&
	grep -q '^        after 100/100 #1 mkdir("/d", 0755) = 0 (.*)$' out
ok $? 'mismatches are shown with the edges that led there'
fresh
mkdir tree/d && echo x >tree/d/f
run 1 replay -q --json --no-init h.trace tree && json 'd["first_mismatches"][-1]["event"] == "100/102 #3 rmdir(\"/e\") = 0"
	and d["first_mismatches"][-1]["edges"][0]["event"].startswith("100/101 #2 rename")
	and d["first_mismatches"][-1]["edges"][0]["edges"][0]["event"].startswith("100/100 #1 mkdir")
	and d["first_mismatches"][-1]["edges"][0]["rule_name"] and d["thread_time_ns"]["run"] > 0
	and "p90" in d["classes"]["name"]["run_latency_ns"]'
ok $? 'in JSON too'

# A plan that stands alone knows the actions.
run 0 compile -q -f -o a.plan a.trace && mv a.trace kept && fresh && run 0 replay -q -f -o p.run a.plan tree &&
	mv kept a.trace && run 0 show p.run && grep -q "write([0-9]*.*150) = 150" out && grep -q 'unlink("/d/absent") = -1 ENOENT' out
ok $? 'a plan without its trace has names and outcomes'

# Two traces at once, with threads of the same numbers.
sed 's,"/d,"/e,' a.txt >b.txt
make b
fresh
run 0 replay -q -f -o ab.run a.trace b.trace tree && run 0 show ab.run && lines 18 &&
	grep -q 'mkdir("/d"' out && grep -q 'mkdir("/e"' out && run 0 check ab.run
ok $? 'a run of two traces has the events of both'
echo "1..$nr"
