#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise replay where something is scarce: space, files, descriptors, processes, cores, features of the target; and runs that are ended.
. "$TOP/tests/cli/tap.sh"
unset TSAN_OPTIONS

plan() {
	"$MAKE_PLAN" "$1.plan" "$2" || {
		echo "Bail out! cannot make $1.plan"
		exit 1
	}
}

skip() {
	nr=$((nr + 1))
	echo "ok $nr - $1 # SKIP $2"
}

# Many lanes on few cores, each waiting for the one before it.
i=0
while [ $i -lt 1000 ]; do
	if [ $i -gt 0 ]; then echo "$i <$((i - 1)):0 mkdir(path=\"/d$i\", mode=0755) = 0"; else echo '0 mkdir(path="/d0", mode=0755) = 0'; fi
	echo "$i rmdir(path=\"/d$i\") = 0"
	i=$((i + 1))
done | plan lanes 2
mkdir tree
run 0 replay --json lanes.plan tree && json 'd["end"] == "complete" and d["actions"] == 2000 and d["mismatches"] == 0
	and d["lanes"] == 1000 and d["peak_memory_bytes"] < 1 << 29'
ok $? 'a thousand lanes'
if [ "$(id -u)" -eq 0 ]; then
	chmod 777 tree "$dir"
	chmod 644 lanes.plan
	setpriv --reuid=65533 --regid=65533 --clear-groups prlimit --nproc=100:100 "$REPRISE" replay lanes.plan tree >out 2>err
	status=$?
	if [ $status -eq 2 ] && grep -q namespace err; then
		skip 'too few processes are explained' 'this system gives users no namespace'
	else
		[ $status -eq 2 ] && says 'cannot start 1000 threads'
		ok $? 'too few processes are explained'
	fi
else
	skip 'too few processes are explained' 'needs root'
fi

# Memory that a trace makes the run use.
run 2 replay --max-memory=16M lanes.plan tree && says '1000 lanes and 2 slots need ' && says 'of memory, and the run may use 16.0 MiB (--max-memory)'
ok $? 'more lanes than there is memory for are refused'
# hungry NAME LINE...: a trace of these calls, replayed with 64 MiB
hungry() {
	name=$1
	shift
	{
		echo '# reprise exact 1'
		echo 'tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})'
		i=0
		for line; do
			i=$((i + 1))
			echo "1/1 #$i ${i}000+10 $line"
		done
	} >"$name.txt"
	make "$name"
	rm -rf tree && mkdir tree
	"$REPRISE" replay --json --max-memory=64M --mmap=map "$name.trace" tree >out 2>err
}
open='open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 3'
large='ftruncate(fd=3, length=8589934592) = 0'
map='mmap(addr=NULL, length=8589934592, prot=PROT_READ|PROT_WRITE'
hungry populate "$open" "$large" "$map, flags=MAP_PRIVATE|MAP_POPULATE|MAP_NORESERVE, fd=3, offset=0) = 0x7f0000000000" \
	'munmap(addr=0x7f0000000000, length=8589934592) = 0' && json 'd["over_memory"] == 1 and d["mismatches"] == 0 and d["max_memory_bytes"] == 64 << 20
	and d["peak_memory_bytes"] < 128 << 20'
ok $? 'pages of a private map are not all loaded'
hungry advice "$open" "$large" "$map, flags=MAP_PRIVATE|MAP_NORESERVE, fd=3, offset=0) = 0x7f0000000000" \
	'madvise(addr=0x7f0000000000, length=8589934592, advice=23) = 0' && json 'd["over_memory"] == 1 and d["mismatches"] == 0 and d["peak_memory_bytes"] < 128 << 20'
ok $? 'nor by advice'
"$REPRISE" replay --max-memory=64M advice.trace tree >out 2>err
grep -q '^not made *1 times, or in part: it would take more memory than 64.0 MiB (--max-memory)$' out
ok $? 'and the report says so'
small='mmap(addr=NULL, length=33554432, prot=PROT_READ|PROT_WRITE, flags=MAP_PRIVATE|MAP_POPULATE, fd=3, offset=0) = 0x7f0000000000'
unmap='munmap(addr=0x7f0000000000, length=33554432) = 0'
hungry again "$open" "$large" "$small" "$unmap" "$small" "$unmap" "$small" "$unmap" && json 'd["over_memory"] == 0 and d["mismatches"] == 0'
ok $? 'what is unmapped may be used again'
hungry memfd 'memfd_create(name="x", flags=MFD_ALLOW_SEALING) = 3' 'ftruncate(fd=3, length=1048576) = 0' 'fcntl_add_seals(fd=3, arg=F_SEAL_SHRINK) = 0' \
	'fcntl_get_seals(fd=3) = 2' 'write(fd=3, buf="abc", count=3) = 3' 'pread64(fd=3, buf="abc", count=3, offset=0) = 3' 'fallocate(fd=3, mode=0, offset=0, len=33554432) = 0' &&
	json 'd["mismatches"] == 0'
ok $? 'memfds hold what they may'
if unshare -m true 2>/dev/null || unshare -Urm true 2>/dev/null; then
	hungry full 'memfd_create(name="x", flags=0) = 3' 'fallocate(fd=3, mode=0, offset=0, len=50331648) = 0' 'memfd_create(name="y", flags=0) = 4' \
		'fallocate(fd=4, mode=0, offset=0, len=50331648) = 0' 'ftruncate(fd=3, length=0) = 0' 'fallocate(fd=4, mode=0, offset=0, len=50331648) = 0'
	json 'd["mismatches"] == 1 and d["first_mismatches"][0]["seq"] == 4 and "ENOSPC" in str(d["first_mismatches"])'
	ok $? 'but not more'
else
	skip 'memfds are bounded' 'no namespaces'
fi
set --
i=3
while [ $i -lt 203 ]; do
	set -- "$@" "pipe(pipefd=[$i, $((i + 1))]) = 0" "fcntl_setpipe_sz(fd=$i, arg=1048576) = 1048576" "write(fd=$((i + 1)), buf=?/1000000, count=1000000) = 1000000"
	i=$((i + 2))
done
hungry pipes "$@"
json 'd["end"] == "complete" and d["over_memory"] > 0 and d["mismatches"] == 0'
ok $? 'pipes do not hold more than they may'

# A run that is interrupted reports what it has done.
plan long 2 <<'END'
0 mkdir(path="/begun", mode=0755) = 0
0 think=600000000000,0 mkdir(path="/never", mode=0755) = 0
END
rm -rf tree && mkdir tree
"$REPRISE" replay --json long.plan tree >out 2>err &
pid=$!
while [ ! -d tree/begun ]; do sleep 0.05; done
kill -INT $pid
wait $pid
[ $? -eq 2 ] && says interrupted && json 'd["end"] == "interrupted" and d["actions"] == 1 and d["planned_actions"] == 2
	and d["calls"]["mkdir"]["made"] == 1' && [ ! -e tree/never ]
ok $? 'an interrupted run reports what was done'

# Lanes that wait for each other: refused, or ended and explained.
plan dead 2 <<'END'
0 <1:1 mkdir(path="/a", mode=0755) = 0
0 mkdir(path="/b", mode=0755) = 0
1 <0:1 mkdir(path="/c", mode=0755) = 0
1 mkdir(path="/d", mode=0755) = 0
END
run 2 replay dead.plan tree && says 'wait for each other'
ok $? 'a plan that cannot end is refused'
run 2 replay --no-check --stall-timeout=500ms --json dead.plan tree && grep -q 'nothing moved any more' err && json 'd["end"] == "stalled"'
ok $? 'or ended when nothing moves'

if ! unshare -m true 2>/dev/null || ! unshare -m sh -c 'mkdir m && mount -t tmpfs none m' 2>/dev/null; then
	for what in 'a full target' 'the reserve' 'no files left' 'a read-only target' 'a target without attributes or direct reads' \
		'a target of unknown size'; do
		skip "$what" 'no file system can be mounted'
	done
	echo "1..$nr"
	exit 0
fi

# on OPTIONS COMMAND...: with m mounted as a tmpfs with these options, in a namespace that is gone afterwards
on() {
	options=$1
	shift
	unshare -m sh -c 'mount -t tmpfs -o "$1" none m && shift && exec "$@"' sh "$options" "$@" >out 2>err
}

{
	echo '0 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0'
	for i in 0 1 2 3 4 5 6 7 8 9; do echo "0 pwrite64(fd=0, count=1000000, offset=${i}000000) = 1000000"; done
	echo '0 think=30000000000,0 mkdir(path="/late", mode=0755) = 0'
} | plan fill 2
{
	echo '0 open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 0'
	for i in 0 1 2 3 4 5 6 7 8 9; do echo "0 pwrite64(fd=0, count=1000000, offset=${i}000000) = 1000000"; done
} | plan fill_fast 2
on size=4m "$REPRISE" replay --json --min-free=0 fill_fast.plan m
[ $? -eq 1 ] && json 'd["end"] == "complete" and d["mismatches"] >= 6 and d["mismatches_by_kind"]["failed"] >= 5'
ok $? 'a full target: every call that fails is told'
on size=20m "$REPRISE" replay --json --min-free=15M fill.plan m
[ $? -eq 2 ] && grep -q 'the target is nearly full' err && json 'd["end"] == "target full"'
ok $? 'the reserve is kept'
on size=11m "$REPRISE" replay --json --speed=afap fill_fast.plan m
[ $? -eq 0 ] && json 'd["end"] == "complete" and d["mismatches"] == 0'
ok $? 'and not more than that'
{
	i=0
	while [ $i -lt 300 ]; do
		echo "0 mkdir(path=\"/d$i\", mode=0755) = 0"
		i=$((i + 1))
	done
} | plan files 2
on nr_inodes=200 "$REPRISE" replay --json --min-free=0 files.plan m
[ $? -eq 1 ] && json 'd["end"] == "complete" and d["mismatches_by_kind"]["failed"] >= 100'
ok $? 'no files left'
plan some 2 <<'END'
0 mkdir(path="/d", mode=0755) = 0
0 open(path="/f", flags=O_RDWR|O_CREAT|O_DIRECT, mode=0644) = 0
0 flags=16 fsetxattr(fd=0, name="user.a", value="1", size=1, flags=0) = 0
0 pwrite64(fd=0, count=4096, offset=0) = 4096
0 pread64(fd=0, count=4096, offset=0) = 4096
0 close(fd=0) = 0
END
on ro "$REPRISE" replay --json some.plan m
[ $? -eq 1 ] && json 'd["end"] == "complete" and d["mismatches_by_kind"]["failed"] >= 2
	and ("EROFS" in str(d["first_mismatches"]) or ": 30" in str(d["first_mismatches"]))' || grep -q 'Read-only' err
ok $? 'a read-only target'
on size=4m "$REPRISE" replay --json some.plan m
[ $? -eq 0 ] && json 'd["end"] == "complete" and d["mismatches"] == 0'
ok $? 'a target without attributes or direct reads'

# One that does not tell how much room it has.
cat >sizes.txt <<'END'
# reprise exact 1
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/f", stat={type=file, mode=S_IFREG|0644, size=10})
7/1 #1 1000000+100000 open(path="/f", flags=O_RDONLY, mode=0) = 3
END
if unshare -m mount -t ramfs none m 2>/dev/null; then
	run 0 import --format=exact -f -o sizes.trace sizes.txt &&
		unshare -m sh -c 'mount -t ramfs none m && "$REPRISE" init --json sizes.trace m' >out 2>err &&
		json 'd["filler_files"] == 1 and d["sparse_files"] == 0' &&
		unshare -m sh -c 'mount -t ramfs none m && "$REPRISE" replay --json --min-free=1M sizes.trace m' >out 2>err &&
		json 'd["end"] == "complete"'
	ok $? 'a target of unknown size'
else
	skip 'a target of unknown size' 'no ramfs'
fi

echo "1..$nr"
