# SPDX-License-Identifier: MIT
# usage: maps_real.sh
# What programs store through shared maps of files is in the trace, and a replay stores it again: reads meet it in
# time, and all files end as they did, which an independent listing of hashes says, too. By each recorder; with maps in the replay and without.
set -u

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
# As it is when the paths of /proc say it.
dir=$(pwd -P)
export LC_ALL=C
nr=0

ok()
{
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $nr - $2"
	else
		echo "not ok $nr - $2"
		head -n 20 out err 2>/dev/null | cut -c 1-300 | sed 's/^/# /'
	fi
}

skip()
{
	nr=$((nr + 1))
	echo "ok $nr - $1 # SKIP $2"
}

hashes()
{
	(cd "$1" && find . -type f ! -name '*.sock' -exec sha256sum {} + | sort -k 2)
}

prepare()
{
	rm -rf work trace
	mkdir work || exit 1
}

# replays WAY: the tree of the replay has the same files as the program left.
replays()
{
	rm -rf tree
	mkdir tree || exit 1
	"$REPRISE" replay --mmap="$1" trace tree >out 2>err || return 1
	"$REPRISE" verify trace tree >out 2>err || return 1
	hashes work >made
	hashes "tree$dir/work" >found
	diff made found >out
}

# is_right RECORDER NAME COMMAND...
is_right()
{
	recorder=$1 name=$2
	shift 2
	prepare
	[ "$name" = old ] && seq 1 6000 >work/old
	(cd work && exec "$REPRISE" record -q --recorder="$recorder" -o ../trace -- "$@") >out 2>err </dev/null
	"$REPRISE" check trace >out 2>err && grep -q complete out && "$REPRISE" show --call=map_store trace | grep -q . &&
		{ [ "$ways" = one ] || { replays touch && replays skip; }; } && replays map
	ok $? "$name ($recorder)"
}

ways=all
recorders='ptrace auto'
[ "$(uname -m)" = x86_64 ] && recorders="$recorders inproc"
for recorder in $recorders; do
	for case in mixed forked moved allowed replaced killed threads twice memfd old; do
		is_right "$recorder" "$case" "$MAPS" "$case"
	done
done
# Files with too much in them to be compared, and one that takes too long: pages are marked.
ways=one
for case in mixed forked moved allowed replaced killed threads twice; do
	is_right auto "much data: $case" "$MAPS" "$case" 33
done
is_right ptrace 'much data: forked' "$MAPS" forked 33
is_right auto busy "$MAPS" busy
ways=all

# Real programs.
real()
{
	command -v "$1" >/dev/null 2>&1 || {
		skip "$2" "$1 is not installed"
		return
	}
	is_right auto "$2" sh -c "$3"
}
real python3 'a map of Python' 'head -c 10000 /dev/zero >f; exec python3 -c "
import mmap
f = open(\"f\", \"r+b\")
m = mmap.mmap(f.fileno(), 0)
m[5:8] = b\"xyz\"
m.flush()
m[9000] = 7"'
real ld.gold 'linking by gold' 'echo "int main(void) { return 7; }" >a.c; gcc -fuse-ld=gold -o a a.c && ./a; [ $? -eq 7 ]'
real fio 'fio with maps' 'fio --name=a --ioengine=mmap --size=1m --bs=4k --rw=randrw --fsync=16 >/dev/null'
real gdbmtool 'gdbm' 'echo "store a b" | gdbmtool x.db; echo "store c d" | gdbmtool x.db'
real mdb_load 'LMDB' 'mkdir db; printf "VERSION=3\nformat=print\ntype=btree\nHEADER=END\n a\n b\nDATA=END\n" | mdb_load db; mdb_stat db >/dev/null'
real sqlite3 'sqlite with a write-ahead log' \
	'sqlite3 x.db "pragma journal_mode=wal; create table t (a); insert into t values (1);" >/dev/null; sqlite3 x.db "insert into t values (2)"'

# A trace says what it has not seen.
"$REPRISE" record -q -f -o trace -- python3 -c '
import mmap, os, sys
f = open("big", "w+b")
f.truncate(2 << 30)
m = mmap.mmap(f.fileno(), 2 << 30)
m[1 << 30] = 1' 2>/dev/null &&
	"$REPRISE" check trace >out 2>err && grep -q complete out
ok $? 'a large file with little in it is followed'
rm -f big
prepare
cd work || exit 1
head -c 8192 /dev/zero >f
python3 -c '
import mmap, time
f = open("f", "r+b")
m = mmap.mmap(f.fileno(), 0)
open("ready", "w").close()
time.sleep(60)' &
pid=$!
while ! [ -e ready ]; do sleep 0.1; done
"$REPRISE" record -q --max-time=200ms --attach=$pid -o ../trace 2>../err
kill $pid
wait $pid 2>/dev/null
cd ..
"$REPRISE" stat --json trace >out 2>err && grep -q STORES_UNSEEN out
ok $? 'maps that were there before the recorder are in the ledger'
rm -rf tree
"$REPRISE" replay trace tree >out 2>err
grep -q 'stores through shared maps are missing' err
ok $? 'and a replay warns of them'
echo "1..$nr"
