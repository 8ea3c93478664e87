#!/bin/sh
# SPDX-License-Identifier: MIT
# bench/storage: a device is there, does what a disk does, and nothing of it is left.
. "$TOP/tests/cli/tap.sh"
models=$TOP/bench/storage

[ "$(id -u)" -eq 0 ] || { echo '1..0 # SKIP needs root'; exit 0; }
[ -c /dev/fuse ] && [ -c /dev/loop-control ] || { echo '1..0 # SKIP no FUSE or no loop devices here'; exit 0; }
# The leak checker gives up in a child that serves the file, and makes its exit status a failure.
ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export ASAN_OPTIONS
"$STORAGE" --fs=none --size=16M "$models/ssd.model" true 2>err || {
	echo "1..0 # SKIP $(grep -v STORAGE: err | head -n 1)"
	exit 0
}
echo 1..8

# Nothing is left: the daemon, its mounts and its loop device go a moment after the last user.
gone() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(losetup -n -O BACK-FILE 2>/dev/null | grep -c "/$1/disk")" -eq 0 ] && ! pgrep -f "name=$1 " >/dev/null && return 0
		sleep 0.2
	done
	losetup -a >err
	false
}

"$STORAGE" --name=T1 --size=64M -o report "$models/ssd.model" sh -c '
	set -e
	dd if=/dev/urandom of=in bs=4096 count=500 2>/dev/null
	cp in "$T1_DIR/file"
	sync
	echo 3 >/proc/sys/vm/drop_caches
	cmp in "$T1_DIR/file"
	[ -b "$T1_DEV" ]' >out 2>err
ok $? 'what is written is read again'
python3 -c 'import json; d = json.load(open("report")); assert d["reads"] and d["writes"] and d["timed_requests"] and d["busy_ns"] and d["late_ns"]["p99"]' 2>err
ok $? 'it tells how late it was'
gone T1
ok $? 'nothing is left'

"$STORAGE" --name=T2 --size=64M --quiet "$models/hdd.model" sh -c 'echo "$*"; exit 7' sh one two >out 2>err
[ $? -eq 7 ] && [ ! -s err ] && [ "$(cat out)" = 'one two' ]
ok $? 'words and exit status are the command'"'"'s'

"$STORAGE" --name=T3 --size=64M "$models/hdd-queue.model" sh -c '(sleep 1000 >"$T3_DIR/open") & touch ready; sleep 1000' 2>err &
pid=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e ready ] || sleep 0.3; done
kill -9 $pid
wait $pid 2>/dev/null
gone T3
ok $? 'killed, nothing is left'

"$STORAGE" --name=A --size=64M "$models/raid0.model" "$STORAGE" --name=B --size=64M "$models/hdd.model" sh -c '
	echo a >"$A_DIR/f" && cp "$A_DIR/f" "$B_DIR/f" && [ "$A_DEV" != "$B_DEV" ]' >out 2>err && gone A && gone B
ok $? 'one within the other'

"$STORAGE" --name=T4 --fs=none --size=64M --scheduler=mq-deadline "$models/ssd.model" sh -c '
	grep -q "\[mq-deadline\]" "/sys/block/${T4_DEV#/dev/}/queue/scheduler" && echo "$T4_DEV"' >out 2>err && gone T4 &&
	grep -q '\[none\]' "/sys/block/$(basename "$(cat out)")/queue/scheduler"
ok $? 'settings are put back'

! "$STORAGE" "$models/none.model" true 2>err && grep -q 'none.model' err && ! "$STORAGE" --fs=nosuch --size=64M "$models/hdd.model" true 2>err && grep -q mkfs.nosuch err
ok $? 'errors are told'
