#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise compile, graph, resources: what they print, and what they make of odd traces.
. "$TOP/tests/cli/tap.sh"

# make NAME: NAME.trace from the text on standard input
make() {
	{ echo '# reprise exact 1'; cat; } >"$1.txt" && "$REPRISE" import --format=exact -f -o "$1.trace" "$1.txt" >/dev/null 2>err || {
		cat err
		echo "Bail out! cannot make $1.trace"
		exit 1
	}
}

# The example of Figure 2 of the ROOT paper: the trace, and its action series.
make figure <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/a", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/x", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/x/y", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/x/y/z", stat={type=file, mode=S_IFREG|0644, size=10})
7/1 #1 1000+100 mkdir(path="/a/b", mode=0755) = 0
7/1 #2 2000+100 open(path="/a/b/c", flags=O_WRONLY|O_CREAT, mode=0644) = 3
7/1 #3 3000+100 write(fd=3, buf="12345678", count=8) = 8
7/1 #4 4000+100 close(fd=3) = 0
7/1 #5 5000+100 rename(oldpath="/a/b", newpath="/a/old") = 0
7/2 #6 6000+100 open(path="/x/y/z", flags=O_RDONLY, mode=0) = 3
7/2 #7 7000+100 open(path="/a/b", flags=O_WRONLY|O_CREAT, mode=0644) = 4
END
tab=$(printf '\t')
run 0 resources figure.trace && grep -vE '^(dir|open)\(' out | sort >series && sort >wanted <<END && cmp series wanted
fd3@1${tab}2,3,4
fd3@2${tab}6
fd4@1${tab}7
file(/a)${tab}1,5,7
file(/a/b)${tab}1,2,5
file(/a/b)${tab}7
file(/a/b/c)${tab}2,3,4
file(/x/y)${tab}6
file(/x/y/z)${tab}6
path(/a/b)@1${tab}1,5
path(/a/b)@2${tab}7
path(/a/b/c)@1${tab}2,5
path(/a/old)@1${tab}5
path(/a/old/c)@1${tab}5
path(/x/y/z)@1${tab}6
thread(1)${tab}1,2,3,4,5
thread(2)${tab}6,7
END
ok $? 'the action series of Figure 2'
run 0 resources --only 'path(/a/b)' --json figure.trace &&
	json 'd == [{"resource": "path(/a/b)@1", "events": [1, 5]}, {"resource": "path(/a/b)@2", "events": [7]}]'
ok $? 'some of them, as JSON'

run 0 compile figure.trace && grep -q '^figure.plan: 9 actions of 7 events in 3 lanes, 1 edges' out && run 0 check figure.plan
ok $? 'a plan, beside the trace'
run 2 compile figure.trace && says 'figure.plan'
ok $? 'which is not replaced unasked'
cp figure.plan first.plan
run 0 compile -f figure.trace && cmp figure.plan first.plan
ok $? 'and is the same every time'
run 2 compile -f figure.plan && says 'is a plan'
ok $? 'a plan is not compiled again'
run 0 compile -f --reference -o ref.plan --json figure.trace && json 'd["actions"] == 9 and d["edges"] == 1 and d["contradictions"] == {}' &&
	run 0 check ref.plan && mv figure.trace gone.trace && run 2 check ref.plan && mv gone.trace figure.trace
ok $? 'a plan that leaves its data in the trace needs it'

run 0 graph --json figure.trace && json 'd["actions"] == 9 and d["lanes"] == 3 and d["edges"] == 1
	and d["edges_by_rule"] == {"path_stage": 1} and set(d["edge_length_ns"]) == {"mean", "p50", "p99"}
	and d["edge_length_ns"]["p50"] == 1900 and set(d["parallelism"]) == {"trace", "plan"} and d["contradictions"] == {}'
ok $? 'the graph in numbers'
run 0 graph --dot figure.trace && grep -q '"1.5" -> "2.2" \[style=bold, label="path_stage"\];' out && grep -q '^}$' out
ok $? 'the graph as a drawing'
run 0 graph --dot --from 6us figure.trace && ! grep -q path_stage out && grep -q 'open' out
ok $? 'a part of it'
for order in temporal overlap single none root; do
	run 0 graph --order=$order figure.trace && run 0 compile -f --order=$order figure.trace && run 0 check figure.plan
	ok $? "order $order"
done
run 0 graph --rules=-path_stage figure.trace && grep -q ' 0 edges' out
ok $? 'without the rule there is no edge'
run 0 graph --rules=artc figure.trace
ok $? 'the rules of the paper'
run 2 graph --rules=+nonsense figure.trace && says 'nonsense'
ok $? 'a rule that there is not'
run 2 compile -f --order=nonsense figure.trace && says 'there are'
ok $? 'an order that there is not'

# Without a tree: what must have been there is found out.
make blind <<'END'
7/1 #1 1000+100 openat(dirfd=AT_FDCWD, path="/d/f", flags=O_RDONLY, mode=0) = 3
7/1 #2 2000+100 pread64(fd=3, buf="x", count=1, offset=999) = 1
7/1 #3 3000+100 openat(dirfd=AT_FDCWD, path="/d/g", flags=O_RDONLY, mode=0) = -1 ENOENT
END
run 0 compile -fv blind.trace && ! grep -q contradiction out && run 0 init blind.plan tree && [ "$(stat -c %s tree/d/f)" -ge 1000 ] && [ ! -e tree/d/g ]
ok $? 'a tree that nobody recorded'

# What cannot have been.
make odd <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/f", stat={type=file, mode=S_IFREG|0644, size=4})
7/1 #1 1000+100 unlink(path="/f") = 0
7/1 #2 2000+100 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDONLY, mode=0) = 2147483647
7/1 #3 3000+100 close(fd=2147483647) = 0
7/1 #4 4000+100 pread64(fd=-5, count=18446744073709551615, offset=-9223372036854775808) = 9223372036854775807
7/1 #5 5000+100 mkdir(path="/f", mode=0755) = 0
7/1 #6 6000+100 rename(oldpath="/f", newpath="/f/g/h") = 0
7/1 #7 7000+100 dup2(oldfd=3, newfd=-1) = 2147483646
8/9 #8 8000+100 close_range(first=0, last=4294967295, flags=0) = 0
END
run 0 compile -fv odd.trace && grep -q 'contradiction' out && grep -q 'event 2,' out && run 0 check odd.plan
ok $? 'contradictions are counted and told, never fatal'
run 0 graph --json odd.trace && json 'sum(d["contradictions"].values()) >= 2'
ok $? 'also in the graph'
run 0 compile -fv --json odd.trace && json 'sum(d["contradictions"].values()) >= 2'
ok $? 'nothing but JSON when that is wanted'

# Devices are not the replay's to change.
make devices <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/dev", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/dev/null", stat={type=chardev, mode=0666, rdev=1:3}, flags=SPECIAL)
tree_entry(tree=initial, path="/f", stat={type=file, mode=S_IFREG|0644, size=4})
7/7 #1 1000+100 openat(dirfd=AT_FDCWD, path="/dev/null", flags=O_RDWR, mode=0) = 3
7/7 #2 2000+100 write(fd=3, count=4) = 4
7/7 #3 3000+100 fchmod(fd=3, mode=0600) = 0
7/7 #4 4000+100 fchown(fd=3, owner=1, group=1) = -1 EPERM
7/7 #5 5000+100 chmod(path="/dev/null", mode=0600) = 0
7/7 #6 6000+100 utimensat(dirfd=3, path=NULL, times=NULL, flags=0) = 0
7/7 #7 7000+100 chmod(path="/f", mode=0600) = 0
7/7 #8 8000+100 mkdir(path="/d", mode=0755) = -1 EDQUOT
END
run 0 compile -fv --json devices.trace && json 'd["simulated"] == 4 and d["contradictions"] == {} and d["failures_outside"] == 2'
ok $? 'what would change a device is simulated; failures for reasons outside the model are counted'

# Calls that overlapped: the look-up saw what the create was still making.
make overlap <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
7/1 #1 1000+9000 mkdir(path="/d", mode=0755) = 0
7/2 #2 2000+1000 access(path="/d", mode=F_OK) = 0
END
run 0 compile -fv --json overlap.trace && json 'd["swapped"] == 1 and d["contradictions"] == {} and d["edges"] == 1'
ok $? 'overlapping calls are swapped when that makes both true'

# The other way round: what returned later saw what was before.
make before <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
7/1 #1 1000+5000 mkdir(path="/d", mode=0755) = 0
7/2 #2 2000+5000 mkdir(path="/d/e", mode=0755) = -1 ENOENT
END
run 0 compile -fv --json before.trace && json 'd["swapped"] == 1 and d["contradictions"] == {} and d["edges"] == 1'
ok $? 'a call that failed for want of what an overlapping one made goes first'
make innocent <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/d", stat={type=dir, mode=S_IFDIR|0755})
7/1 #1 1000+1000 chmod(path="/d", mode=0700) = -1 ENOENT
7/2 #2 1000+5000 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 3
7/3 #3 1000+6000 rmdir(path="/d") = 0
7/1 #4 2500+1000 chmod(path="/f", mode=0700) = -1 ENOENT
END
run 0 compile -fv --json innocent.trace && json 'd["swapped"] == 1 and d["contradictions"] == {}'
ok $? 'only what can explain an outcome goes first for it'
make removed <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/f", stat={type=file, mode=S_IFREG|0644, size=4})
7/1 #1 1000+5000 unlink(path="/f") = 0
7/2 #2 2000+5000 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDONLY, mode=0) = 3
7/1 #3 10000+5000 close(fd=3) = 0
7/2 #4 9500+9000 fstat(fd=3) = 0
END
run 0 compile -fv --json removed.trace && json 'd["swapped"] == 2 and d["contradictions"] == {}'
ok $? 'a call that used what an overlapping one removed goes first'
make again <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/f", stat={type=file, mode=S_IFREG|0644, size=4})
7/1 #1 1000+1000 unlink(path="/f") = 0
7/1 #2 2100+1000 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDWR|O_CREAT, mode=0600) = 3
7/2 #3 1500+5000 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDONLY, mode=0) = 4
END
run 0 compile -fv --json again.trace && json 'd["swapped"] == 0 and d["contradictions"] == {}'
ok $? 'one that what came between explains stays where it is'

# Who read which bytes of a pipe: what returned first is not what was read first.
make readers <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
7/7 #1 500+0 thread_start(parent=0, clone_flags=0, comm="a", how=launch)
7/8 #2 600+0 thread_start(parent=7, clone_flags=CLONE_VM|CLONE_FILES|CLONE_FS|CLONE_THREAD, comm="a", how=clone)
7/7 #3 1000+100 pipe2(pipefd=[3, 4], flags=0) = 0
7/7 #4 2000+100 write(fd=4, buf="one", count=3) = 3
7/7 #5 3000+100 write(fd=4, buf="two", count=3) = 3
7/7 #6 4000+100 read(fd=3, buf="two", count=3) = 3
7/8 #7 3500+900 read(fd=3, buf="one", count=3) = 3
END
run 0 compile -fv --json readers.trace && json 'd["swapped"] == 1 and d["contradictions"] == {} and d["unverifiable"] == 0'
ok $? 'of readers of a pipe the one goes first whose bytes are next'
sed '1d; /read/s/"two"/"six"/' readers.txt | make strange
run 0 compile -fv --json strange.trace && json 'd["swapped"] == 1 and d["unverifiable"] == 1'
ok $? 'a reader whose bytes are nowhere next is not verified, and counted'

# Both ends of a FIFO are opened at the same time; then one whose other end nobody in the trace opened.
make fifo <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
7/7 #0 100+100 mknod(path="/p", mode=S_IFIFO|0644, dev=0) = 0
7/7 #1 1000+9000 openat(dirfd=AT_FDCWD, path="/p", flags=O_RDONLY, mode=0, file={dev=5, ino=9, mode=S_IFIFO|0644}) = 3
8/8 #2 2000+9000 openat(dirfd=AT_FDCWD, path="/p", flags=O_WRONLY, mode=0, file={dev=5, ino=9, mode=S_IFIFO|0644}) = 3
8/8 #3 12000+100 write(fd=3, buf="x", count=1) = 1
7/7 #4 13000+100 read(fd=3, buf="x", count=9) = 1
END
run 0 compile -fv --json fifo.trace && json 'd["swapped"] == 1 and d["simulated"] == 0 and d["contradictions"] == {}'
ok $? 'who opens the ends of a FIFO waits for the other'
sed '1d; /O_WRONLY/d; /write/d' fifo.txt | make outside
run 0 compile -fv --json outside.trace && json 'd["swapped"] == 0 and d["simulated"] == 2 and d["contradictions"] == {}'
ok $? 'a FIFO whose other end is not in the trace is simulated'

# One process makes another and waits for it: 100 ms, mkdir, 200 ms, fork; 100 ms, mkdir, 500 ms, end; 50 ms.
make family <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
1/1 #1 1000000000+0 thread_start(parent=0, clone_flags=0, comm="sh", how=launch)
1/1 #2 1100000000+0 mkdir(path="/a", mode=0755) = 0
1/1 #3 1300000000+1000 fork() = 2
2/2 #4 1300000000+0 thread_start(parent=1, clone_flags=SIGCHLD, comm="sh", how=clone)
2/2 #5 1400000000+0 mkdir(path="/b", mode=0755) = 0
2/2 #6 1900000000+0 exit_group(status=0) = ?
2/2 #7 1900000000+0 thread_exit(status=0)
1/1 #8 1310000000+590000000 wait4(pid=-1, wstatus=[0], options=0, rusage=NULL) = 2
1/1 #9 1900000000+0 wait4(pid=-1, wstatus=NULL, options=WNOHANG, rusage=NULL) = -1 ECHILD
1/1 #10 1950000000+0 exit_group(status=0) = ?
1/1 #11 1950000000+0 thread_exit(status=0)
END
mkdir family
run 0 compile -f family.trace && run 0 replay --json --speed=afap family.plan family &&
	json '950000000 <= d["predicted_elapsed_ns"] < 950000000 + d["elapsed_ns"] and d["mismatches"] == 0'
ok $? 'what processes compute passes to their children, to who waits for them, and to the end'
# It comes for what has ended, which takes no time: 100 ms, mkdir, 200 ms, fork, 700 ms, end. Meanwhile: 100 ms, mkdir, 500 ms.
sed 's/1310000000+590000000 wait4/1990000000+10000000 wait4/; s/1900000000+0 wait4/2000000000+0 wait4/; s/1950000000/2000000000/' family.txt >late.txt
rm -rf family && mkdir family
run 0 import --format=exact -f -o late.trace late.txt && run 0 compile -f late.trace && run 0 replay --json --speed=afap late.plan family &&
	json '990000000 <= d["predicted_elapsed_ns"] < 1000000000 + d["elapsed_ns"]'
ok $? 'but for what it did while who waits did something else'

# Names in requests begin where the process is, and what they make has its mask; here in the lane of another one.
make requests <<'END'
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/d", stat={type=dir, mode=S_IFDIR|0755})
1/1 #1 1000+0 thread_start(parent=0, clone_flags=0, comm="sh", how=launch)
1/1 #2 2000+100 chdir(path="/d") = 0
1/1 #3 3000+100 umask(mask=027) = 022
1/1 #4 4000+100 fork() = 2
2/2 #5 4000+0 thread_start(parent=1, clone_flags=SIGCHLD, comm="sh", how=clone)
2/2 #6 5000+100 io_uring_setup(entries=4, params={flags=0}) = 3
2/2 #7 6000+100 io_uring_enter(fd=3, to_submit=1, min_complete=1, flags=IORING_ENTER_GETEVENTS, argp=0, argsz=8, sqes=[{opcode=IORING_OP_MKDIRAT, fd=-100, len=0777, request=0, path="made"}], cqes=[{res=0, opcode=IORING_OP_MKDIRAT, request=0}]) = 1
END
mkdir requests
run 0 replay --json --speed=afap requests.trace requests && json 'd["mismatches"] == 0' &&
	[ "$(stat -c %a requests/d/made)" = 750 ]
ok $? 'relative names in requests of an io_uring'

# A request that a replay cannot perform counts as a call that it cannot perform.
make splice <<'END'
1/1 #1 1000+100 io_uring_setup(entries=4, params={flags=0}) = 3
1/1 #2 2000+100 io_uring_enter(fd=3, to_submit=1, min_complete=1, flags=IORING_ENTER_GETEVENTS, argp=0, argsz=8, sqes=[{opcode=IORING_OP_SPLICE, fd=900, len=5, splice_fd_in=901, request=0}], cqes=[{res=5, opcode=IORING_OP_SPLICE, request=0}]) = 1
END
run 0 compile -f --json splice.trace && json 'd["unsupported"] == 1'
ok $? 'requests that cannot be replayed are counted'

# hostile NAME: what NAME makes, compiled in little time and memory; its contradictions are in out.
hostile() {
	python3 "$TOP/tests/cli/hostile.py" "$1" >"$1.txt" && "$REPRISE" import -q --format=exact -f -o "$1.trace" "$1.txt" >/dev/null 2>err &&
		(ulimit -t 60; run 0 compile -fv --json "$1.trace") && mv out told && run 0 check -q "$1.plan" && mv told out
}
hostile deep && json 'd["contradictions"] == {}'
ok $? 'deep trees'
hostile loops && json 'd["contradictions"] == {"type": 100}'
ok $? 'circles of symlinks, and links that double with each step'
hostile numbers && json 'd["contradictions"]["fd"] == 2 and d["contradictions"]["process"] > 0'
ok $? 'descriptors near 2^31, more of them than can be copied to each process'
hostile names && json 'd["contradictions"] == {"error": 300}'
ok $? 'names of 64 KiB'
hostile impossible && json 'd["contradictions"]["error"] > 1000'
ok $? 'impossible arguments'
hostile maps && json 'd["contradictions"] == {"argument": 10}'
ok $? 'more maps than a process can have are counted'

echo "1..$nr"
