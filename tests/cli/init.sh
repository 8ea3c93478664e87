#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise init
. "$TOP/tests/cli/memory.sh"
. "$TOP/tests/cli/tap.sh"
umask 022

dump() {
	python3 "$TOP/tests/lib/dump_tree.py" "$1"
}

# same DIR DIR: all that can be told of both is the same
same() {
	dump "$1" >dump.a && dump "$2" >dump.b && cmp -s dump.a dump.b || {
		diff dump.a dump.b | head -n 10 >>err
		false
	}
}

# A tree with all that there is. Contents beyond 64 bytes are kept as blobs by the import.
long=$(printf '%0200d' 7)
cat >t.txt <<END
tree_entry(tree=initial, path="/", stat={type=dir, mode=0755}, flags=0)
tree_entry(tree=initial, path="/d", stat={type=dir, mode=0750, mtime_ns=1600000000000000001, atime_ns=1600000000500000000}, flags=0)
tree_entry(tree=initial, path="/d/kept", stat={type=file, mode=0640, size=5, mtime_ns=1500000000000000001, atime_ns=1500000000000000002, dev=8:1, ino=11, nlink=2}, xattrs=[{name="user.colour", value="red"}], content="hello", flags=CONTENT_KEPT)
tree_entry(tree=initial, path="/d/long", stat={type=file, mode=0600, size=200, mtime_ns=1500000000000000003, atime_ns=1500000000000000004}, content="$long", flags=CONTENT_KEPT)
tree_entry(tree=initial, path="/d/filler", stat={type=file, mode=0444, size=3000000, mtime_ns=1500000000000000005, atime_ns=1500000000000000006})
tree_entry(tree=initial, path="/d/empty", stat={type=file, mode=0644, size=0, mtime_ns=-5000000000, atime_ns=-1})
tree_entry(tree=initial, path="/d/link", stat={type=file, mode=0640, size=5, dev=8:1, ino=11, nlink=2})
tree_entry(tree=initial, path="/d/one", stat={type=file, mode=0644, size=1, dev=8:1, ino=12, nlink=1}, content="1")
tree_entry(tree=initial, path="/d/two", stat={type=file, mode=0644, size=1, dev=8:1, ino=12, nlink=1}, content="2")
tree_entry(tree=initial, path="/d/up", stat={type=symlink, mtime_ns=1500000000000000007, atime_ns=1500000000000000008}, target="../../../etc/passwd")
tree_entry(tree=initial, path="/d/away", stat={type=symlink}, target="/")
tree_entry(tree=initial, path="/d/fifo", stat={type=fifo, mode=0622})
tree_entry(tree=initial, path="/d/socket", stat={type=socket, mode=0755})
tree_entry(tree=initial, path="/d/setuid", stat={type=file, mode=04755, size=0})
tree_entry(tree=initial, path="/d/gone", flags=MISSING)
tree_entry(tree=initial, path="/d/closed", stat={type=dir, mode=0000, mtime_ns=1600000000000000002, atime_ns=1600000000500000003})
tree_entry(tree=initial, path="/d/closed/in", stat={type=file, mode=0000, size=2}, content="in")
tree_entry(tree=initial, path="/proc", stat={type=dir, mode=0555}, flags=SPECIAL)
tree_entry(tree=initial, path="/proc/meminfo", stat={type=file, mode=0444, size=0}, flags=SPECIAL)
tree_entry(tree=initial, path="/dev", stat={type=dir, mode=0755})
tree_entry(tree=initial, path="/dev/disk", stat={type=blockdev, mode=0660, rdev=8:0}, flags=SPECIAL)
tree_entry(tree=initial, path="/d", flags=LISTED)
tree_entry(tree=final, path="/d/never", stat={type=file, size=1})
END
# All times are known, so that two trees can be the same.
sed -i '/mtime_ns/!s/stat={/stat={mtime_ns=1400000000000000001, atime_ns=1400000000000000002, /' t.txt
make t

run 0 init --json t.trace D && json 'd["entries"] == d["made"] == 19 and not d["delta"] and d["filler_files"] == 1
	and d["filler_bytes"] == 3000000 and d["sparse_files"] == 0 and d["device_stand_ins"] == 1 and d["setid_not_applied"] == 1'
ok $? 'a tree is made'
dump D >first && run 0 init t.trace D2 && same D D2
ok $? 'a second directory is the same'
[ "$(cat D/d/kept)" = hello ] && [ "$(cat D/d/long)" = "$long" ] && [ "$(wc -c <D/d/filler)" = 3000000 ] && [ ! -s D/d/empty ]
ok $? 'contents'
[ D/d/kept -ef D/d/link ] && [ ! D/d/one -ef D/d/two ] && [ "$(cat D/d/one D/d/two)" = 12 ]
ok $? 'links'
[ "$(readlink D/d/up)" = ../../../etc/passwd ] && [ "$(readlink D/d/away)" = / ] && [ -p D/d/fifo ] && [ -S D/d/socket ]
ok $? 'symlinks, fifos, sockets'
[ "$(stat -c %a D/d D/d/kept D/d/filler D/d/fifo D/d/setuid D/d/closed | tr '\n' ' ')" = '750 640 444 622 755 0 ' ]
ok $? 'modes, without set-id bits'
grep -qF "b'/d/kept' 100640" first && grep -F "b'/d/kept'" first | grep -qF 'mtime=1500000000000000001 atime=1500000000000000002'  &&
	grep -F "b'/d' " first | grep -qF 'mtime=1600000000000000001' && grep -F "b'/d/empty'" first | grep -qF 'mtime=-5000000000 atime=-1 ' &&
	grep -F "b'/d/up'" first | grep -qF mtime=1500000000000000007
ok $? 'times'
if setfattr -n user.try -v x t.txt 2>/dev/null || python3 -c 'import os; os.setxattr("t.txt", "user.try", b"x")' 2>/dev/null; then
	grep -F "b'/d/kept'" first | grep -qF "user.colour=b'red'"
	ok $? 'attributes'
else
	nr=$((nr + 1))
	echo "ok $nr - attributes # SKIP no attributes in this file system"
fi
[ -f D/dev/disk ] && [ ! -s D/dev/disk ] && [ -f D/proc/meminfo ] && [ ! -e D/d/gone ] && [ ! -e D/d/never ]
ok $? 'what is not made: devices, the missing, the final tree'

cat >implied.txt <<'END'
tree_entry(tree=initial, path="/implied/by/this", stat={type=file}, flags=INFERRED)
tree_entry(tree=initial, path="/listed", flags=LISTED)
tree_entry(tree=initial, path="/content", content="c")
tree_entry(tree=initial, path="/what", flags=UNREADABLE)
tree_entry(tree=initial, path="/what", flags=0)
tree_entry(tree=initial, path="/closed", flags=UNREADABLE)
tree_entry(tree=initial, path="/closed/not", flags=MISSING)
tree_entry(tree=initial, path="/closed/yes/", stat={type=fifo})
tree_entry(tree=initial, path="//twice//as/./many", stat={size=4})
tree_entry(tree=initial, path="/twice/as/many", stat={type=file})
END
make implied
run 0 init implied.trace I && says '1 paths are left out' && says '(the first: /what)' && [ -f I/implied/by/this ] && [ "$(stat -c %a I/implied/by)" = 755 ] &&
	[ -d I/listed ] && [ "$(cat I/content)" = c ] && [ ! -e I/what ] && [ -p I/closed/yes ] && [ "$(stat -c %s I/twice/as/many)" = 4 ]
ok $? 'what no entry says, and entries that add up'

# Who is not root opens what is closed to look at it, and closes it again: a repair.
opened=0
[ "$(id -u)" -eq 0 ] || opened=5

# Repair. A moment later, so that inodes are known by their times.
sleep 0.05
run 0 init t.trace D && sleep 0.05
run 0 init --json t.trace D && json 'd["delta"] and d["made"] == d["removed"] == d["bytes_written"] == 0 and d["trusted"] >= 18 - '$opened && same D D2
ok $? 'nothing to repair'
spoil() {
	chmod 755 D/d/closed
	printf HELLO >D/d/link
	touch -d @1500000000.000000001 D/d/kept
	chmod 600 D/d/filler
	printf x | dd of=D/d/filler bs=1 seek=2000000 conv=notrunc 2>/dev/null
	rm D/d/long D/d/two D/d/up D/d/fifo
	ln D/d/one D/d/two
	ln -s kept D/d/up
	mkdir -p D/d/fifo/with/some/more
	echo new >D/d/gone
	mkdir -p D/extra/deep D/d/closed/extra
	ln -s / D/extra/root
	mv D/proc D/moved
	echo longer >>D/d/empty
	rm D/d/socket
	chmod 711 D/d/closed/in
	python3 -c 'import os; os.setxattr("D/d/kept", "user.more", b"x")' 2>/dev/null
}
spoil
run 0 init --json t.trace D && json 'd["made"] > 0 and d["repaired"] > 0 and d["removed"] == 4' && same D D2
ok $? 'what was changed, removed and added is repaired'
[ ! D/d/one -ef D/d/two ] && [ D/d/kept -ef D/d/link ]
ok $? 'links too'
chmod 600 D/d/filler
printf x | dd of=D/d/filler bs=1 seek=2999999 conv=notrunc 2>/dev/null
chmod 444 D/d/filler
touch -d @1500000000.000000005 D/d/filler
run 0 init --json t.trace D && json 'd["bytes_written"] == 3000000 % 1048576' && same D D2
ok $? 'a change that hides behind its times is found, and only that piece is written'
# Two directories change places: their files keep their times of change.
cat >swap.txt <<'END'
tree_entry(tree=initial, path="/a/x", stat={type=file, size=1, mtime_ns=5000000000, atime_ns=5000000000}, content="a")
tree_entry(tree=initial, path="/b/x", stat={type=file, size=1, mtime_ns=5000000000, atime_ns=5000000000}, content="b")
END
make swap
run 0 init swap.trace S && sleep 0.05 && run 0 init swap.trace S && mv S/a S/c && mv S/b S/a && mv S/c S/b &&
	run 0 init swap.trace S && [ "$(cat S/a/x S/b/x)" = ab ]
ok $? 'directories that changed places'
run 0 init --whole --json t.trace D && json 'd["trusted"] == d["bytes_written"] == 0 and d["repaired"] <= '$opened && same D D2
ok $? 'all is compared on request'
run 0 init --jobs 1 t.trace D3 && run 0 init --jobs 64 t.trace D4 && same D3 D4
ok $? 'by one thread or many'

# The notes.
head -n 1 D/.reprise/state | grep -qx 'reprise init 1' && grep -qx 'complete yes' D/.reprise/state && [ "$(ls D/.reprise | tr '\n' ' ')" = 'inodes state ' ]
ok $? 'the state'
sed -i 's/^complete.*/complete no/' D/.reprise/state && : >D/.reprise/inodes && run 0 init --json t.trace D && json 'd["trusted"] == 0' && same D D2
ok $? 'without inodes all is compared'
run 0 init swap.trace D && [ ! -e D/d ] && [ "$(cat D/a/x)" = a ] && run 0 init t.trace D && same D D2
ok $? 'the tree of another trace takes its place'

# Directories that are not ours.
mkdir busy && echo mine >busy/file && mkdir busy/d && echo old >busy/d/gone && echo stays >busy/d/other
run 2 init t.trace busy && says 'busy is neither empty nor made by a former init' && [ ! -e busy/.reprise ] && [ "$(cat busy/file)" = mine ]
ok $? 'a directory that is not empty is refused'
run 2 init --delta t.trace none && says 'holds no former init'
ok $? '--delta wants a former init'
run 0 init --force --json t.trace busy && json 'd["foreign"] == 2' && [ "$(cat busy/file busy/d/other)" = "mine
stays" ] && [ ! -e busy/d/gone ] && [ "$(cat busy/d/kept)" = hello ]
ok $? 'unless told to; other names stay'
echo again >busy/d/gone && run 0 init t.trace busy && [ ! -e busy/d/gone ] && [ -e busy/d/other ]
ok $? 'also when it is repaired'
mkdir -p new/lost+found && run 0 init t.trace new && [ -d new/lost+found ] && run 0 init t.trace new && [ -d new/lost+found ]
ok $? 'a new file system counts as empty'
run 2 init --force t.trace / && says '/ is the root of this machine'
ok $? 'the root of the machine is refused'
run 2 init t.trace no/such/dir && says 'cannot make no/such/dir: No such file or directory'
ok $? 'what leads to it is not made'
run 2 init t.trace t.txt && says 'cannot open t.txt: Not a directory'
ok $? 'a file is no directory'
run 2 init missing.trace D && says 'cannot open missing.trace'
ok $? 'no trace'
echo 'meta(key="a", value="b")' >bare.txt && make bare
run 0 init bare.trace bare && says 'there is no initial tree in the trace'
ok $? 'no tree'

# Several traces.
cat >b.txt <<'END'
tree_entry(tree=initial, path="/d/kept", stat={type=file, size=5, mode=0600})
tree_entry(tree=initial, path="/b", stat={type=dir, mode=0700, mtime_ns=1000000000, atime_ns=2000000000})
tree_entry(tree=initial, path="/b/own", stat={type=file, size=3, mtime_ns=1000000000, atime_ns=2000000000}, content="own")
END
make b
run 0 init t.trace b.trace O && [ "$(cat O/b/own)" = own ] && [ "$(cat O/d/kept)" = hello ] && [ "$(grep -c ^trace O/.reprise/state)" = 2 ]
ok $? 'two trees in one'
run 0 init t.trace b.trace O && run 0 init --overlay b.trace D && same D O && [ "$(cat D/b/own D/d/kept)" = ownhello ]
ok $? 'one after the other'
cat >c.txt <<'END'
tree_entry(tree=initial, path="/d/kept", stat={type=dir})
END
make c
run 2 init t.trace c.trace O2 && says 't.trace and c.trace cannot share a tree: /d/kept differs: its type' && [ ! -e O2 ]
ok $? 'a conflict is an error that names both'
run 0 init --on-conflict=first t.trace c.trace O2 && [ -f O2/d/kept ]
ok $? 'or the first is right'
echo 'tree_entry(tree=initial, path="/d/gone", stat={type=file, size=1})' >c.txt && make c
run 2 init t.trace c.trace O3 && says 'it is there, and it is not'
ok $? 'there and not there'

# Memory.
run 0 init --cache=warm t.trace D2 && run 0 init --cache=keep t.trace D2
ok $? 'warm and kept caches'

# Interrupted.
cat >many.py <<'END'
for i in range(3000):
    print('tree_entry(tree=initial, path="/m/%03d/%05d", stat={type=file, size=3000, mtime_ns=%d000, atime_ns=7000})' % (i % 100, i, i))
END
python3 many.py >many.txt && make many
run 0 init many.trace M
ok $? 'many files'
"$REPRISE" init many.trace M1 >out 2>err &
pid=$!
while [ ! -d M1/m/050 ]; do sleep 0.01; done
kill -INT $pid
wait $pid
status=$?
# It may have been faster than the signal.
{ [ $status -eq 2 ] && says 'stopped by a signal: M1 is unfinished' && grep -qx 'complete no' M1/.reprise/state; } || [ $status -eq 0 ]
ok $? 'a signal stops it'
run 0 init many.trace M1 && grep -qx 'complete yes' M1/.reprise/state && dump M >dump.a && dump M1 >dump.b &&
	grep -v "b'/m[^']*' 4" dump.a >x.a && grep -v "b'/m[^']*' 4" dump.b >x.b && cmp x.a x.b
ok $? 'and the next one finishes it'
for delay in 0.02 0.05 0.1; do
	rm -rf M2
	"$REPRISE" init many.trace M2 >out 2>err &
	pid=$!
	sleep $delay
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	run 0 init many.trace M2 && dump M2 >dump.b && grep -v "b'/m[^']*' 4" dump.b >x.b && cmp x.a x.b
	ok $? "killed after $delay s, and repaired"
done
python3 - <<'END'
import fcntl, os, subprocess
fd = os.open("M/.reprise", os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
r = subprocess.run([os.environ["REPRISE"], "init", "many.trace", "M"], capture_output=True, text=True)
open("out", "w").write(r.stdout)
open("err", "w").write(r.stderr)
os._exit(0 if r.returncode == 2 else 1)
END
[ $? -eq 0 ] && says 'another init or replay is at work there'
ok $? 'one at a time'

echo "1..$nr"
