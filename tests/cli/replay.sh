#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise replay: the command around a run; and that a plan cannot get out.
. "$TOP/tests/cli/tap.sh"
chmod 755 "$dir"
unset TSAN_OPTIONS

# plan NAME SLOTS: NAME.plan from the text on standard input
plan() {
	"$MAKE_PLAN" "$1.plan" "$2" || {
		echo "Bail out! cannot make $1.plan"
		exit 1
	}
}

fresh() {
	rm -rf tree
	mkdir tree
}

fresh
plan a 8 <<'END'
0 plan_handle(path="/", dir=0)
0 plan_cwd(dir=0)
0 100/100 #1 1000+500 mkdir(path="d", mode=0755) = 0
0 100/100 #2 2000+500 openat(dirfd=AT_FDCWD, path="d/f", flags=O_RDWR|O_CREAT, mode=0644) = 1
0 100/100 #3 3000+500 write(fd=1, buf="hello", count=5) = 5
1 <0:4 100/101 #4 4000+500 pread64(fd=1, buf="hello", count=10, offset=0) = 5
1 100/101 #5 5000+500 socket(domain=AF_INET, type=SOCK_STREAM, protocol=0) = 2
0 <1:0 100/100 #6 6000+500 close(fd=1) = 0
END
run 0 replay a.plan tree && grep -q '^actions *8 of 8, 7 made; complete$' out &&
	grep -q '^mismatches *0 of 7' out && [ "$(cat tree/d/f)" = hello ] && [ ! -s err ]
ok $? 'a plan is performed and reported'
run 1 replay a.plan tree && grep -q 'mkdir of 100/100 failed instead of succeeding: expected 0, got -1 EEXIST' out
ok $? 'mismatches are status 1 and shown'
run 1 replay --on-mismatch=warn a.plan tree && says 'warning: #1 mkdir'
ok $? 'and told as they happen'
run 1 replay --on-mismatch=stop a.plan tree && grep -q '; mismatch$' out
ok $? 'or they end the run'
run 0 replay --verify=off a.plan tree && grep -q '^mismatches *0 of 0' out
ok $? 'or nobody looks'
fresh
run 0 replay --json --speed=afap a.plan tree && json 'd["actions"] == 8 and d["mismatches"] == 0
	and set(d["mismatches_by_kind"]) >= {"failed", "succeeded", "other_error", "short", "long"}
	and d["elapsed_ns"] > 0 and d["original_elapsed_ns"] > 0 and d["predicted_elapsed_ns"] > 0
	and set(d["concurrency"]) == {"trace", "run"} and d["edge_wait_ns"] >= 0
	and set(d["lateness_ns"]) == {"count", "mean", "p50", "p90", "p99", "max"} and d["peak_memory_bytes"] > 0
	and d["classes"]["data"]["count"] == 2 and d["calls"]["socket"]["made"] == 0'
ok $? 'the report as JSON'
fresh
run 0 replay --json --speed=natural a.plan tree && json '0 < d["predicted_elapsed_ns"] <= d["elapsed_ns"]'
ok $? 'natural speed predicts: what the replay added does not count'
plan think 2 <<'END'
0 think=300000000,0 mkdir(path="/a", mode=0755) = 0
1 <0:0 think=0,400000000 mkdir(path="/b", mode=0755) = 0
1 think=200000000,0 mkdir(path="/c", mode=0755) = 0
2 think=100000000,0 mkdir(path="/d", mode=0755) = 0
END
for speed in afap timed natural; do
	fresh
	run 0 replay --json --speed=$speed think.plan tree && json '900000000 < d["predicted_elapsed_ns"] < 900000000 + d["elapsed_ns"]'
	ok $? "computing along edges is in what is predicted: $speed"
done
fresh
run 0 replay --json --speed=afap --scale-compute=0.01 think.plan tree && json '9000000 < d["predicted_elapsed_ns"] < 9000000 + d["elapsed_ns"]'
ok $? 'as much as is wanted'
fresh
run 0 replay -o a.run a.plan tree && run 0 show a.run && lines 6 && run 0 check a.run && run 0 stat --json a.run &&
	json 'd["events"] == 6'
ok $? 'the run is a trace'
run 2 replay -o a.run a.plan tree && says 'a.run'
ok $? 'which is not replaced unasked'
run 1 replay -f -o a.run a.plan tree
ok $? 'but with --force'
fresh
run 1 replay --loops=2 --json --verify=outcome a.plan tree && jsonl 'len(d) == 2 and d[0]["mismatches"] == 0 and d[1]["mismatches"] > 0'
ok $? 'several times'
plan b 4 <<'END'
0 mkdir(path="/b", mode=0755) = 0
END
fresh
run 0 replay --json a.plan b.plan tree && json 'd["actions"] == 9 and d["lanes"] == 3' && [ -d tree/b ] && [ -d tree/d ]
ok $? 'several plans at once'
fresh
run 0 replay --engine=null --json a.plan tree && json 'd["actions"] == 8' && [ ! -e tree/d ]
ok $? 'without calls'
run 0 replay --reads=none --json a.plan tree && json 'd["calls"]["pread64"]["made"] == 0'
ok $? 'without reads'

plan variants 4 <<'END'
0 mknod(path="/p", mode=S_IFIFO|0600, dev=0) = 0
0 open(path="/p", flags=O_RDWR, mode=0) = 0
0 fcntl_setfl(fd=0, arg=O_NONBLOCK) = 0
0 read(fd=0, count=1) = -1 EAGAIN
0 ioctl_fionbio(fd=0, arg=[1]) = 0
0 fcntl_add_seals(fd=0, arg=F_SEAL_WRITE) = -1 EINVAL
END
fresh
run 0 replay --json --stall-timeout=5s variants.plan tree && json 'd["mismatches"] == 0
	and all(c["made"] == c["count"] for c in d["calls"].values())'
ok $? 'variants of calls are made'

# Of what goes between a file and a pipe, which is not there, the file's half is made.
plan half 8 <<'END'
0 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0
0 flags=1 pipe2(pipefd=[1, 2], flags=0) = 0
0 write(fd=0, buf="abcdefgh", count=8) = 8
0 flags=16 splice(fd_in=1, off_in=NULL, fd_out=0, off_out=NULL, len=100, flags=0) = 5
0 flags=16 splice(fd_in=1, off_in=NULL, fd_out=0, off_out=[20], len=100, flags=0) = 10
0 lseek(fd=0, offset=0, whence=SEEK_SET) = 0
0 flags=16 splice(fd_in=0, off_in=NULL, fd_out=2, off_out=NULL, len=100, flags=0) = 12
0 flags=16 sendfile(out_fd=2, in_fd=0, offset=NULL, count=100) = 10
0 lseek(fd=0, offset=0, whence=SEEK_CUR) = 22
END
fresh
run 0 replay --json half.plan tree && json 'd["mismatches"] == 0 and d["calls"]["splice"]["made"] == 3
	and d["calls"]["pipe2"]["made"] == 0' && [ "$(wc -c <tree/f)" -eq 30 ]
ok $? 'half of a copy is made where the other half is simulated'

# A pathname that begins with a zero leads through the slot after it.
plan through 8 <<'END'
0 plan_handle(path="/", dir=0)
0 mkdir(path="/d", mode=0755) = 0
0 chdir(path="/d") = 5
0 openat(dirfd=AT_FDCWD, path="/d", flags=O_RDWR|O_TMPFILE, mode=0600) = 1
0 write(fd=1, buf="hello", count=5) = 5
0 linkat(olddirfd=1, oldpath="\x00\x01", newdirfd=AT_FDCWD, newpath="f", flags=AT_SYMLINK_FOLLOW) = 0
0 openat(dirfd=AT_FDCWD, path="f", flags=O_PATH, mode=0) = 2
0 chmod(path="\x00\x02", mode=0640) = 0
0 truncate(path="\x00\x02", length=4) = 0
0 mkdir(path="\x00\x00/e", mode=0755) = 0
0 openat(dirfd=AT_FDCWD, path="\x00\x00/d/f", flags=O_RDONLY, mode=0) = 3
0 read(fd=3, buf="hell", count=10) = 4
0 stat(path="\x00\x02/x") = -1 ENOTDIR
0 stat(path="\x00\x04") = -1 ENOENT
0 mkdir(path="g", mode=0755) = 0
END
fresh
run 0 replay --json through.plan tree && json 'd["mismatches"] == 0
	and all(c["made"] == c["count"] for c in d["calls"].values())' &&
	[ "$(cat tree/d/f)" = hell ] && [ "$(stat -c %a tree/d/f)" = 640 ] && [ -d tree/e ] && [ -d tree/d/g ]
ok $? 'pathnames lead through descriptors'

run 2 replay a.plan && says 'missing operand DIR'
ok $? 'a directory is needed'
run 2 replay a.trace tree && says 'neither empty nor made by a former init'
ok $? 'a trace brings its tree along, and not into a directory of others'
"$REPRISE" record -qf -o b.trace -- sh -c 'echo one >one; mkdir two; mv one two/three; cat two/three' >out 2>err
rm -rf made
run 0 replay b.trace made && grep -q '^mismatches *0 of' out && run 0 verify b.trace made
ok $? 'a trace is compiled, its tree made, and performed'
run 0 replay --loops=2 --order=single --cache=drop b.trace made && run 0 verify b.trace made
ok $? 'again, and again: the tree is repaired before each round'
run 2 replay --order=nonsense b.trace made && says 'there are'
ok $? 'an order that there is not'
run 2 replay a.plan nowhere && says 'nowhere'
ok $? 'the directory must be there'
run 2 replay --scale=x a.plan tree && says "'x' is no factor"
ok $? 'a factor is a number'
run 2 replay --engine=steam a.plan tree && says "no engine 'steam'"
ok $? 'engines have names'
plan loop 4 <<'END'
0 <1:0 sync() = 0
1 <0:0 sync() = 0
END
run 2 replay loop.plan tree && says 'loop.plan'
ok $? 'a plan that cannot end is refused'
run 2 replay --no-check --stall-timeout=200ms loop.plan tree && grep -q '^actions *0 of 2' out && says 'nothing moved'
ok $? 'or ended'
grep -q '^at a standstill *2 lanes' out && grep -q 'action 0 of lane 0' out && grep -q 'waits for action 0 of lane 1' out
ok $? 'and the report says who waits for whom'
run 2 replay --no-check --stall-timeout=200ms --json loop.plan tree && json 'd["end"] == "stalled" and d["waiting_lanes"] == 2
	and d["waits"][0]["for"] == {"lane": 1, "nr": 0, "event": None} and d["waits"][0]["call"]'
ok $? 'as JSON too'

# What is due later, and a call that waits for a lock which somebody outside has.
plan late 4 <<'END'
0 mkdir(path="/late", mode=0755) = 0
0 think=1000000000,0 rmdir(path="/late") = 0
END
fresh
run 0 replay --stall-timeout=100ms late.plan tree
ok $? 'a run that waits for its time does not stall'
plan locked 4 <<'END'
0 open(path="/locked", flags=O_RDWR|O_CREAT, mode=0644) = 0
0 flock(fd=0, op=LOCK_EX) = 0
END
fresh && : >tree/locked
exec 9<tree/locked && flock 9
run 2 replay --no-init --stall-timeout=500ms --json locked.plan tree && json 'd["end"] == "stalled" and d["waits"][0]["call"] == "flock"'
ok $? 'a run that waits for somebody outside stalls'
exec 9<&-

plan slow 4 <<'END'
0 mkdir(path="/slow", mode=0755) = 0
0 think=600000000000,0 rmdir(path="/slow") = 0
END
fresh
"$REPRISE" replay slow.plan tree >out 2>err &
pid=$!
n=0
while [ ! -d tree/slow ] && [ $n -lt 200 ]; do
	sleep 0.1
	n=$((n + 1))
done
kill -INT $pid
wait $pid
[ $? -eq 2 ] && grep -q '^actions *1 of 2, 1 made; interrupted$' out && says interrupted
ok $? 'an interrupted run has its report'

# Whatever it is doing when the signal comes: compiling, checking, making the tree, running.
"$REPRISE" record -q -f -o many.trace -- \
	dd if=/dev/zero of=zeros bs=1 count=60000 status=none 2>err && [ -s many.trace ]
good=$?
for delay in 0.01 0.05 0.1 0.2 0.4 0.8; do
	fresh
	"$REPRISE" replay many.trace tree >out 2>err &
	pid=$!
	sleep $delay
	kill -TERM $pid 2>/dev/null
	wait $pid
	status=$?
	[ $status -ne 0 ] || grep -q '^actions.*complete$' out || good=1
done
ok $good 'a replay that a signal ends never exits with 0'

# What was cut off must not count as performed, wherever that was.
good=0
for part in 10 30 50 70 90 99; do
	head -c $(($(wc -c <a.plan) * part / 100)) a.plan >cut.plan
	fresh
	"$REPRISE" replay cut.plan tree >out 2>err
	[ $? -eq 2 ] || good=1
done
ok $good 'a plan that was cut off is refused'

# Hostile plans. Outcomes do not matter, only what is outside.
mkdir canary
echo canary >canary/f
chmod 666 canary/f
chmod 777 canary
state() {
	find canary -printf '%p %y %m %s %T@ %C@ %l\n' && cat canary/f
	stat -c '%A %u %g %t %T %Z' /dev/null /dev/zero
}
state >before
hostile() {
	up=/../../../../../../../../../../../..
	cat <<END
0 plan_handle(path="/", dir=0)
0 flags=16 openat(dirfd=AT_FDCWD, path="$dir/canary/f", flags=O_WRONLY|O_TRUNC, mode=0) = 1
0 flags=16 openat(dirfd=AT_FDCWD, path="$up$dir/canary/g", flags=O_WRONLY|O_CREAT, mode=0666) = 1
0 flags=16 symlink(target="$dir/canary", linkpath="/abs") = 0
0 flags=16 symlink(target=".$up$dir/canary", linkpath="/rel") = 0
0 flags=16 openat(dirfd=AT_FDCWD, path="/abs/f", flags=O_WRONLY|O_TRUNC, mode=0) = 1
0 flags=16 openat(dirfd=AT_FDCWD, path="/rel/h", flags=O_WRONLY|O_CREAT, mode=0666) = 1
0 flags=16 truncate(path="/abs/f", length=0) = 0
0 flags=16 rename(oldpath="/abs/f", newpath="/stolen") = 0
0 flags=16 link(oldpath="$dir/canary/f", newpath="/linked") = 0
0 flags=16 unlink(path="/rel/f") = 0
0 flags=16 chmod(path="/abs/f", mode=0) = 0
0 flags=16 mkdir(path="/sub", mode=0755) = 0
0 flags=16 chroot(path="/sub") = 0
0 flags=16 fchdir(fd=0) = 0
0 flags=16 chdir(path=".$up") = 0
0 flags=16 chroot(path=".") = 0
0 flags=16 openat(dirfd=AT_FDCWD, path=".$dir/canary/f", flags=O_WRONLY|O_TRUNC, mode=0) = 1
0 flags=16 openat(dirfd=0, path="..$dir/canary/f", flags=O_WRONLY|O_TRUNC, mode=0) = 1
0 plan_root(dir=0)
0 plan_cwd(dir=0)
0 flags=16 openat(dirfd=AT_FDCWD, path="/proc/self/root$dir/canary/f", flags=O_WRONLY|O_TRUNC, mode=0) = 1
0 flags=16 openat(dirfd=AT_FDCWD, path="/proc/1/root$dir/canary/f", flags=O_WRONLY|O_TRUNC, mode=0) = 1
0 flags=16 mknod(path="/disk", mode=S_IFBLK|0666, dev=0x800) = 0
0 flags=16 mknod(path="/kmem", mode=S_IFCHR|0666, dev=0x101) = 0
0 openat(dirfd=AT_FDCWD, path="/kmem", flags=O_RDWR, mode=0) = -1 ENOENT
0 flags=16 openat(dirfd=AT_FDCWD, path="/dev/null", flags=O_RDWR|O_TRUNC, mode=0) = 2
0 flags=16 write(fd=2, buf="x", count=1) = 1
0 flags=16 chmod(path="/dev/null", mode=0) = 0
0 flags=16 fchmod(fd=2, mode=0) = 0
0 flags=16 unlink(path="/dev/null") = 0
0 flags=16 openat(dirfd=AT_FDCWD, path="/dev/mem", flags=O_RDWR, mode=0) = 3
0 flags=16 mount(source="$dir/canary", target="/sub", filesystemtype="none", mountflags=MS_BIND) = 0
0 flags=16 openat(dirfd=AT_FDCWD, path="/sub/f", flags=O_WRONLY|O_TRUNC, mode=0) = 4
0 openat(dirfd=AT_FDCWD, path="/huge", flags=O_RDWR|O_CREAT, mode=0666) = 5
0 flags=16 pread64(fd=5, count=1000000000000000000, offset=0) = 5
0 flags=16 ftruncate(fd=5, length=1000000000000) = 0
0 flags=16 fallocate(fd=5, mode=0, offset=0, len=1000000000000000000) = 0
0 chmod(path="/huge", mode=06755) = 0
0 flags=16 write(fd=6, buf="smuggled", count=8) = 8
0 flags=16 close(fd=7) = 0
0 flags=16 close_range(first=3, last=4294967295, flags=0) = 0
0 flags=16 openat(dirfd=AT_FDCWD, path="\\x00\\x00$up$dir/canary/f", flags=O_WRONLY|O_TRUNC, mode=0) = 1
0 flags=16 truncate(path="\\x00\\x00$up$dir/canary/f", length=0) = 0
0 flags=16 truncate(path="\\x00\\x07/../cwd$dir/canary/f", length=0) = 0
0 flags=16 truncate(path="\\x00\\x07/../root$dir/canary/f", length=0) = 0
0 flags=16 openat(dirfd=AT_FDCWD, path="\\x00\\x00", flags=O_PATH|O_NOFOLLOW, mode=0) = 7
0 flags=16 truncate(path="\\x00\\x07/../../../..$dir/canary/f", length=0) = 0
0 flags=16 openat(dirfd=7, path="../..$dir/canary/f", flags=O_WRONLY|O_TRUNC, mode=0) = 1
0 pidfd_getfd(pidfd=-1, targetfd=3, flags=0) = 6
0 flags=16 fchmod(fd=6, mode=0666) = 0
0 flags=16 chmod(path="\\x00\\x06", mode=0666) = 0
0 flags=16 utimensat(dirfd=6, flags=0) = 0
0 flags=16 execve(path="/abs/f", argv=["f"], envp=[]) = 0
0 flags=16 madvise(length=1000000, advice=100) = 0
0 flags=16 openat(dirfd=AT_FDCWD, path="$(printf '%040000d' 7)", flags=O_RDONLY, mode=0) = 1
END
}
hostile >hostile.txt

# Whether the last run, as somebody, did no harm.
harmless() {
	state >after
	cmp -s before after && [ ! -u tree/huge ] && [ ! -b tree/disk ] && [ ! -c tree/kmem ]
}

plan hostile 8 <hostile.txt
fresh
mkdir tree/dev
touch tree/dev/null
[ "$(id -u)" -ne 0 ] || mknod tree/dev/mem c 1 1
run 0 replay --json hostile.plan tree && json 'd["end"] == "complete" and d["mismatches"] == 0' && harmless
ok $? 'a hostile plan does no harm'
if [ "$(id -u)" -eq 0 ]; then
	fresh
	mkdir tree/dev
	touch tree/dev/null
	chown -R 65534:65534 tree
	chmod 644 hostile.plan
	setpriv --reuid=65534 --regid=65534 --clear-groups "$REPRISE" replay --json hostile.plan tree >out 2>err
	status=$?
	if [ $status -eq 2 ] && grep -q namespace err; then
		nr=$((nr + 1))
		echo "ok $nr - nor without rights # SKIP this system gives users no namespace"
	else
		[ $status -eq 0 ] && json 'd["end"] == "complete" and d["mismatches"] == 0' && harmless
		ok $? 'nor without rights'
	fi
	fresh
	run 0 replay --no-contain a.plan tree && [ "$(cat tree/d/f)" = hello ]
	ok $? 'root directory alone'
else
	nr=$((nr + 1))
	echo "ok $nr - nor without rights # SKIP there are none"
	nr=$((nr + 1))
	echo "ok $nr - root directory alone # SKIP needs root"
fi

plan limits 1000 <<'END'
0 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 1
0 pwrite64(fd=1, buf="x", count=1, offset=2000000) = -1 EFBIG
END
fresh
run 0 replay --max-file-size=1M limits.plan tree
ok $? 'files have a limit'
if [ "$(id -u)" -eq 0 ]; then
	as_user='setpriv --reuid=65534 --regid=65534 --clear-groups'
	chmod 644 limits.plan
else
	as_user=
fi
# few LIMIT PLAN: replays it with so few descriptors
few() {
	(
		ulimit -Sn "$1"
		ulimit -Hn "$1"
		exec $as_user "$REPRISE" replay --json --max-file-size=1M "$2" tree
	) >out 2>err
}
fresh
chmod 777 tree
few 400 limits.plan && json 'd["mismatches"] == 0 and d["over_files"] == 0'
ok $? 'descriptors that are not needed at once need not be there'
{
	echo '0 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0'
	i=0
	while [ $((i += 1)) -lt 600 ]; do
		echo "0 dup(oldfd=0) = $i"
	done
} >many
plan many 600 <many
chmod 644 many.plan
fresh
chmod 777 tree
few 400 many.plan
[ $? -eq 1 ] && json '200 <= d["over_files"] == d["mismatches"] < 300 and d["end"] == "complete"'
ok $? 'too few descriptors are counted'

# Names through descriptors in calls that have no dirfd.
plan names 8 <<'END'
0 mkdir(path="/d", mode=0755) = 0
0 mkdir(path="/d/e", mode=0755) = 0
0 open(path="/d", flags=O_RDONLY|O_DIRECTORY, mode=0) = 0
0 open(path="/d/f", flags=O_RDWR|O_CREAT, mode=0644) = 1
0 rename(oldpath="\x00\x00/f", newpath="/g") = 0
0 link(oldpath="/g", newpath="\x00\x00/h") = 0
0 symlink(target="h", linkpath="\x00\x00/s") = 0
0 rename(oldpath="\x00\x00/s", newpath="\x00\x00/e/s") = 0
0 chdir(path="\x00\x00/e") = 2
0 mkdir(path="here", mode=0755) = 0
0 chdir(path="\x00\x01") = -1 ENOTDIR
0 chdir(path="\x00\x05") = -1 ENOENT
0 chroot(path="\x00\x00") = 3
0 mkdir(path="/inside", mode=0755) = 0
0 mkdir(path="beside", mode=0755) = 0
END
fresh
run 0 replay --json names.plan tree && json 'd["mismatches"] == 0 and d["unbuilt"] == 0 and d["made"] == 15' &&
	[ -e tree/g ] && [ -e tree/d/h ] && [ -L tree/d/e/s ] && [ -d tree/d/e/here ] && [ -d tree/d/inside ] &&
	[ -d tree/d/e/beside ]
ok $? 'names through descriptors need no dirfd'

# Reads that are left out move the offset all the same.
plan offsets 4 <<'END'
0 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0
0 write(fd=0, buf="12345678", count=8) = 8
0 lseek(fd=0, offset=2, whence=SEEK_SET) = 2
0 flags=256 read(fd=0, buf="345", count=3) = 3
0 read(fd=0, buf="67", count=2) = 2
0 write(fd=0, buf="X", count=1) = 1
0 lseek(fd=0, offset=0, whence=SEEK_CUR) = 8
END
fresh
run 0 replay --reads=none --json offsets.plan tree && json 'd["mismatches"] == 0 and d["calls"]["read"]["made"] == 0' &&
	[ "$(cat tree/f)" = 1234567X ]
ok $? 'reads that are not made move the offset'
run 2 replay --reads=original-cache-misses offsets.plan tree && says 'nothing tells which reads missed the page cache'
ok $? 'what missed the cache must be known'
cat >misses.txt <<'END'
# reprise exact 1
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/f", stat={type=file, mode=S_IFREG|0644, size=10000})
7/1 #1 1000000+100000 open(path="/f", flags=O_RDONLY, mode=0) = 3
7/1 #2 2200000+100000 cache_miss(dev=1, ino=5, offset=0, length=4096)
7/1 #3 2000000+500000 read(fd=3, count=4096) = 4096
7/1 #4 3000000+100000 read(fd=3, count=4096) = 4096
7/1 #5 4000000+100000 lseek(fd=3, offset=0, whence=SEEK_CUR) = 8192
END
fresh
"$REPRISE" import --format=exact -f -o misses.trace misses.txt >out 2>err
run 0 replay --reads=original-cache-misses --json misses.trace tree &&
	json 'd["mismatches"] == 0 and d["calls"]["read"]["count"] == 2 and d["calls"]["read"]["made"] == 1'
ok $? 'and then those alone are made'

# Maps of files, also beyond their end.
plan maps 4 <<'END'
0 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0
0 ftruncate(fd=0, length=9000) = 0
0 mmap(addr=NULL, length=20000, prot=PROT_READ|PROT_WRITE, flags=MAP_SHARED, fd=0, offset=0) = 1
0 mmap(addr=NULL, length=4096, prot=PROT_READ, flags=MAP_PRIVATE, fd=0, offset=40960) = 2
0 mmap(addr=NULL, length=4096, prot=PROT_NONE, flags=MAP_PRIVATE, fd=0, offset=0) = 3
0 ftruncate(fd=0, length=0) = 0
END
for how in touch map populate skip; do
	fresh
	run 0 replay --mmap=$how --json maps.plan tree && json 'd["end"] == "complete" and d["mismatches"] == 0'
	ok $? "maps: $how"
done

# Reads at once: of several files, into a slot that is closed and used again, with a short one and a failing one.
{
	echo '0 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0'
	echo '0 open(path="/g", flags=O_RDWR|O_CREAT, mode=0644) = 1'
	echo '0 write(fd=0, buf="abcdefgh", count=8) = 8'
	echo '0 write(fd=1, buf="ABCDEFGH", count=8) = 8'
	for i in 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7; do
		echo "0 pread64(fd=0, buf=\"$(echo abcdefgh | cut -c $((i + 1)))\", count=1, offset=$i) = 1"
	done
	for i in 0 1 2 3 4 5; do
		echo "0 pread64(fd=1, buf=\"$(echo ABCDEFGH | cut -c $((i + 1))-)\", count=100, offset=$i) = $((8 - i))"
		echo "0 pread64(fd=2, count=1, offset=0) = -1 EBADF"
	done
	echo '0 close(fd=0) = 0'
	echo '0 open(path="/g", flags=O_RDONLY, mode=0) = 0'
	for i in 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7; do
		echo "0 pread64(fd=0, buf=\"$(echo ABCDEFGH | cut -c $((i + 1)))\", count=1, offset=$i) = 1"
	done
	echo '1 <0:40 pread64(fd=1, buf="AB", count=2, offset=0) = 2'
} | plan batch 4
fresh
"$REPRISE" replay --json --speed=afap --batch-reads batch.plan tree >out 2>err
status=$?
if [ $status -eq 2 ] && grep -q 'no io_uring' err; then
	nr=$((nr + 1))
	echo "ok $nr - reads at once # SKIP $(head -n 1 err)"
else
	[ $status -eq 0 ] && json 'd["mismatches"] == 0 and d["calls"]["pread64"]["made"] == 53 and d["batched_reads"] == 52
		and d["verified_results"] == 47'
	ok $? 'reads at once'
fi
fresh
printf '0 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0\n0 write(fd=0, buf="abcd", count=4) = 4\n' >odd.txt
for i in 0 1 2 3; do echo "0 pread64(fd=0, buf=\"X\", count=1, offset=$i) = 1"; done >>odd.txt
echo '0 pread64(fd=0, count=2, offset=3) = 2' >>odd.txt
plan odd 2 <odd.txt
for option in --pin --batch-reads; do
	fresh
	"$REPRISE" replay --json --speed=afap $option odd.plan tree >out 2>err
	json 'd["mismatches_by_kind"]["other_result"] == 4 and d["mismatches_by_kind"]["short"] == 1' || grep -q 'no io_uring' err
	ok $? "other data and short reads are found: $option"
done

# Requests: what they gave is compared when their completion comes, here or in a later call.
uring() {
	plan uring 4 <<END
0 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0
0 io_uring_setup(entries=8, params={flags=0}) = 1
0 flags=16 io_uring_enter(fd=1, to_submit=2, min_complete=1, flags=0, argp=NULL, argsz=0, sqes=[{opcode=IORING_OP_WRITE, flags=IOSQE_IO_LINK, fd=0, off=0, len=4, request=7, buf="abcd"}, {opcode=IORING_OP_READ, fd=0, off=1, len=9, request=8}], cqes=[{res=4, opcode=IORING_OP_WRITE, request=7}]) = 2
0 flags=16 io_uring_enter(fd=1, to_submit=0, min_complete=1, flags=0, argp=NULL, argsz=0, sqes=[], cqes=[{res=$1, opcode=IORING_OP_READ, request=8, buf="$2"}]) = 0
END
	fresh
	"$REPRISE" replay --json uring.plan tree >out 2>err
}
uring 3 bcd && json 'd["mismatches"] == 0 and d["verified_results"] == 1' && [ "$(cat tree/f)" = abcd ]
ok $? 'requests of an io_uring are verified'
uring 3 bcX
json 'd["mismatches_by_kind"]["other_result"] == 1'
ok $? 'by their data'
uring 4 bcde
json 'd["mismatches_by_kind"]["short"] == 1'
ok $? 'and their results'
uring -5 ''
json 'd["mismatches_by_kind"]["succeeded"] == 1'
ok $? 'and their errors'

# Eight reads by eight calls, none of which waits; their ends come later, in another lane, and in another order.
{
	echo '0 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0'
	echo '0 write(fd=0, buf="abcdefgh", count=8) = 8'
	echo '0 io_uring_setup(entries=8, params={flags=0}) = 1'
	for i in 0 1 2 3 4 5 6 7; do
		echo "0 flags=16 io_uring_enter(fd=1, to_submit=1, min_complete=0, flags=0, argp=NULL, argsz=0, sqes=[{opcode=IORING_OP_READ, fd=0, off=$i, len=1, request=$i}], cqes=[]) = 1"
	done
	echo '1 <0:10 flags=16 io_uring_enter(fd=1, to_submit=0, min_complete=8, flags=0, argp=NULL, argsz=0, sqes=[], cqes=['
	for i in 7 5 3 1 0 2 4; do
		echo "{res=1, opcode=IORING_OP_READ, request=$i, buf=\"$(echo abcdefgh | cut -c $((i + 1)))\"}, "
	done
	echo '{res=1, opcode=IORING_OP_READ, request=6, buf="X"}]) = 0'
	echo '1 close(fd=1) = 0'
} | awk '/cqes=\[$/ { held = $0; next } held != "" { held = held $0; if (/\) = /) { print held; held = "" } next } { print }' | plan deep 4
fresh
"$REPRISE" replay --json --speed=afap deep.plan tree >out 2>err
json 'd["mismatches"] == 1 and d["mismatches_by_kind"]["other_result"] == 1 and d["verified_results"] == 8
	and d["async_requests"]["made"] == 8 and (d["async_requests"]["most_in_flight"] == 8) == (d["async_requests"]["by_calls"] == 0)'
ok $? 'requests stay in flight until their completion in the trace'
json 'd["calls"]["io_uring_enter"]["made"] == 9 and d["unbuilt"] == 0'
ok $? 'and the calls are made'

# Without io_uring the calls that do the same stand in, and the report says so.
fresh
"$TOP/tests/cli/no_io_uring.py" "$REPRISE" replay --json --speed=afap deep.plan tree >out 2>err
json 'd["mismatches"] == 1 and d["mismatches_by_kind"]["other_result"] == 1 and d["verified_results"] == 8
	and d["async_requests"] == {"made": 8, "by_calls": 8, "left_out": 0, "most_in_flight": 1}'
ok $? 'without io_uring requests are made by calls'
fresh
"$TOP/tests/cli/no_io_uring.py" "$REPRISE" replay --speed=afap deep.plan tree >out 2>err
grep -q '^async requests *8 made, .*; 8 by calls that do the same' out
ok $? 'and the report says so'

# What a request opens goes to the slot that its completion names; what it closes is closed then; names that it
# changes are seen by calls that follow.
plan ringnames 6 <<'END'
0 io_uring_setup(entries=8, params={flags=0}) = 0
0 flags=16 io_uring_enter(fd=0, to_submit=2, min_complete=0, flags=0, argp=NULL, argsz=0, sqes=[{opcode=IORING_OP_OPENAT, fd=-100, len=420, op_flags=66, request=1, path="/o"}, {opcode=IORING_OP_MKDIRAT, fd=-100, len=493, request=2, path="/m"}], cqes=[]) = 2
0 rmdir(path="/m") = 0
0 flags=16 io_uring_enter(fd=0, to_submit=0, min_complete=2, flags=0, argp=NULL, argsz=0, sqes=[], cqes=[{res=1, opcode=IORING_OP_OPENAT, request=1}, {res=0, opcode=IORING_OP_MKDIRAT, request=2}]) = 0
0 flags=16 io_uring_enter(fd=0, to_submit=1, min_complete=0, flags=0, argp=NULL, argsz=0, sqes=[{opcode=IORING_OP_WRITE, fd=1, off=0, len=4, request=3, buf="made"}], cqes=[]) = 1
0 pread64(fd=1, buf="made", count=10, offset=0) = 4
0 flags=16 io_uring_enter(fd=0, to_submit=1, min_complete=1, flags=0, argp=NULL, argsz=0, sqes=[{opcode=IORING_OP_CLOSE, fd=1, request=4}], cqes=[{res=4, opcode=IORING_OP_WRITE, request=3, early=1}, {res=0, opcode=IORING_OP_CLOSE, request=4}]) = 1
0 flags=16 io_uring_enter(fd=0, to_submit=1, min_complete=1, flags=0, argp=NULL, argsz=0, sqes=[{opcode=IORING_OP_FSYNC, fd=-1, request=5}], cqes=[{res=-9, opcode=IORING_OP_FSYNC, request=5}]) = 1
0 flags=1 pipe2(pipefd=[2, 3], flags=0) = 0
0 flags=16 io_uring_enter(fd=0, to_submit=2, min_complete=2, flags=0, argp=NULL, argsz=0, sqes=[{opcode=IORING_OP_READ, fd=2, len=4, request=6}, {opcode=IORING_OP_CLOSE, fd=3, request=7}], cqes=[{res=4, opcode=IORING_OP_READ, request=6, buf="pipe"}, {res=0, opcode=IORING_OP_CLOSE, request=7}]) = 2
END
fresh
run 0 replay --json ringnames.plan tree && json 'd["mismatches"] == 0 and d["verified_results"] == 1' && [ "$(cat tree/o)" = made ] &&
	[ ! -e tree/m ] && json 'd["async_requests"]["made"] == 5'
ok $? 'requests open, close and change names, and leave out what is simulated'
fresh
"$TOP/tests/cli/no_io_uring.py" "$REPRISE" replay --json ringnames.plan tree >out 2>err &&
	json 'd["mismatches"] == 0 and d["verified_results"] == 1' && [ "$(cat tree/o)" = made ] && [ ! -e tree/m ]
ok $? 'also without io_uring'

# A ring that is for a file and for a pipe: what is about the file is made.
cat >mixed.txt <<'END'
# reprise exact 1
7/1 #1 1000000+1000 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 3
7/1 #2 2000000+1000 pipe2(pipefd=[4, 5], flags=0) = 0
7/1 #3 3000000+1000 io_uring_setup(entries=8, params={flags=0}) = 6
7/1 #4 4000000+1000 io_uring_enter(fd=6, to_submit=2, min_complete=2, flags=IORING_ENTER_GETEVENTS, argp=0, argsz=0, sqes=[{opcode=IORING_OP_WRITE, flags=IOSQE_IO_LINK, fd=5, off=0, len=4, user_data=1, request=1, buf="pipe"}, {opcode=IORING_OP_WRITE, fd=3, off=0, len=5, user_data=2, request=2, buf="hello"}], cqes=[{user_data=1, res=4, opcode=IORING_OP_WRITE, request=1}, {user_data=2, res=5, opcode=IORING_OP_WRITE, request=2}]) = 2
END
fresh
run 0 import --format=exact -f -o mixed.trace mixed.txt && run 0 replay --json mixed.trace tree && json 'd["mismatches"] == 0' &&
	[ "$(cat tree/f)" = hello ]
ok $? 'requests about a file are made beside those about a pipe'

# The older kind: what is read is compared, too.
older() {
	plan older 8 <<END
0 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0
0 write(fd=0, buf="abcdefgh", count=8) = 8
0 io_setup(nr_events=8, ctx_idp=[0x2]) = 0
0 io_submit(ctx_id=0x2, nr=2, iocbpp=[{obj=0x3, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=0, aio_nbytes=3, aio_offset=1}, {obj=0x4, aio_lio_opcode=IOCB_CMD_PREADV, aio_fildes=0, aio_nbytes=2, aio_offset=4, iov=[{iov_len=1}, {iov_len=9}]}]) = 2
0 io_getevents(ctx_id=0x2, min_nr=1, nr=1, events=[{obj=0x4, res=4, opcode=IOCB_CMD_PREADV, buf="$2"}], timeout=NULL) = 1
0 io_getevents(ctx_id=0x2, min_nr=1, nr=1, events=[{obj=0x3, res=3, opcode=IOCB_CMD_PREAD, buf="$1"}], timeout=NULL) = 1
0 io_destroy(ctx_id=0x2) = 0
END
	fresh
	"$REPRISE" replay --json older.plan tree >out 2>err
}
older bcd efgh && json 'd["mismatches"] == 0 and d["verified_results"] == 2 and d["async_requests"]["made"] == 2
	and d["async_requests"]["most_in_flight"] == 2'
ok $? 'requests of the older kind are verified'
older bcX efgX
json 'd["mismatches"] == 2 and d["mismatches_by_kind"]["other_result"] == 2'
ok $? 'by their data'

# A directory is for one at a time.
plan slow 2 <<'END'
0 mkdir(path="/a", mode=0755) = 0
0 think=2000000000,0 mkdir(path="/b", mode=0755) = 0
END
fresh
"$REPRISE" replay -q slow.plan tree >slow.out 2>&1 &
slow=$!
while [ ! -d tree/a ]; do sleep 0.05; done
run 2 replay -q b.plan tree && says 'another init or replay is at work there'
ok $? 'a directory is for one at a time'
wait $slow
ok $? 'who came first is not disturbed'

# Pathnames that begin like a reference to a descriptor of a plan.
cat >nul.txt <<'END'
# reprise exact 1
1/1 #1 1000+10 open(path="\x00\x05/evil", flags=O_RDWR|O_CREAT, mode=0600) = -1 ENOENT
1/1 #2 2000+10 open(path="\x00", flags=O_RDONLY, mode=0) = -1 ENOENT
1/1 #3 3000+10 renameat2(olddirfd=AT_FDCWD, oldpath="\x00\x00\x00", newdirfd=AT_FDCWD, newpath="\x00\x01x", flags=0) = -1 ENOENT
1/1 #4 4000+10 mkdir(path="/d", mode=0755) = 0
END
make nul
fresh
run 0 replay --json nul.trace tree && json 'd["mismatches"] == 0 and d["calls"]["open"]["made"] == 2' && [ "$(ls tree)" = d ]
ok $? 'a pathname that begins with NUL is empty'

run 2 replay -o - nul.trace tree && says 'cannot be written to standard output' && [ ! -e - ]
ok $? 'the trace of a run is not written to standard output'

# A plan that is made on the way has no name: nothing is left of it.
cat >long.txt <<'END'
# reprise exact 1
1/1 #1 1000+10 mkdir(path="/begun", mode=0755) = 0
1/1 #2 600000000000+10 mkdir(path="/never", mode=0755) = 0
END
make long
fresh
mkdir temporary
TMPDIR=$PWD/temporary "$REPRISE" replay --speed=timed long.trace tree >out 2>err &
pid=$!
while [ ! -d tree/begun ] && kill -0 $pid; do sleep 0.05; done
[ "$(ls -A temporary)" = '' ] && kill -KILL $pid
ok $? 'the temporary plan has no name'
wait $pid 2>/dev/null
[ "$(ls -A temporary)" = '' ]
ok $? 'and nothing is left when the replay is killed'

echo "1..$nr"
