#!/bin/sh
# SPDX-License-Identifier: MIT
# Trees that want to get out of their directory, or to take more than there is: init refuses them,
# or makes something harmless of them. As root, and as somebody else.
. "$TOP/tests/cli/memory.sh"
. "$TOP/tests/cli/tap.sh"
umask 022

# Everybody may look in, and what is outside is watched.
chmod 755 . && mkdir canary canary/sub && echo bird >canary/file && echo bird >canary/sub/file && chmod 777 canary canary/sub && chmod 666 canary/file
cp "$REPRISE" ./reprise && chmod 755 reprise
watch() {
	find canary -printf '%p %y %m %n %s %T@ %C@\n' | sort
	cat canary/file canary/sub/file
}
watch >canary.before

# unharmed: the canary is as it was
unharmed() {
	watch >canary.after
	cmp canary.before canary.after >>err 2>&1
}

# entry WORDS: a line of a tree
entry() {
	printf 'tree_entry(tree=initial, %s)\n' "$1"
}

# attempt STATUS DIR OPTION...: runs init of h.trace as $who
who=
attempt() {
	wanted=$1 into=$2
	shift 2
	if [ "$who" = nobody ]; then
		chmod 644 h.trace
		setpriv --reuid=65534 --regid=65534 --clear-groups ./reprise init "$@" h.trace "$into" >out 2>err
	else
		./reprise init "$@" h.trace "$into" >out 2>err
	fi
	[ $? -eq "$wanted" ]
}

# room: a directory in which $who may make others
room() {
	chmod -R u+rwx room 2>/dev/null
	rm -rf room && mkdir room && chmod 777 room
}

# refused NAME WORDS: h.txt is an error that says this, and leaves nothing
refused() {
	make h
	room
	attempt 2 room/D && says "$2" && unharmed && [ "$(find room -mindepth 2 | wc -l)" -eq 0 ]
	ok $? "$who: $1"
}

long=$(printf '%0300d' 0)

suite() {
	entry 'path="/a/../../canary/x", stat={type=file, size=1}' >h.txt
	refused 'a path that leads upwards' 'leads upwards'
	entry 'path="..", stat={type=file, size=1}' >h.txt
	refused 'a relative path' 'is not absolute'
	entry 'path="", stat={type=dir}' >h.txt
	refused 'an empty path' 'empty'
	entry 'stat={type=dir}' >h.txt
	refused 'no path' 'no path'
	entry 'path="/a\x00b", stat={type=dir}' >h.txt
	refused 'a zero byte in a path' 'cut by a zero byte'
	entry "path=\"/$long\", stat={type=file}" >h.txt
	refused 'a name of 300 bytes' 'longer than 255 bytes'
	entry "path=\"/$(printf '%04096d' 0)\", stat={type=file}" >h.txt
	refused 'a name of 4096 bytes' 'a path of 4097 bytes'
	entry "path=\"$(python3 -c 'print("/d" * 10000)')\", stat={type=dir}" >h.txt
	refused '10000 directories in one another' 'a path of 20000 bytes'
	entry 'path="/.reprise/state", stat={type=file, size=1}' >h.txt
	refused 'our own name' '/.reprise, which is kept for our own notes'
	entry "path=\"/l\", stat={type=symlink}, target=\"a\\x00b\"" >h.txt
	refused 'a zero byte in a symlink' 'cut by a zero byte'
	entry "path=\"/l\", stat={type=symlink}, target=\"$(printf '%05000d' 0)\"" >h.txt
	refused 'a symlink of 5000 bytes' 'a symlink of 5000 bytes'
	entry "path=\"/f\", stat={type=file}, xattrs=[{name=\"user.$long\", value=\"x\"}]" >h.txt
	refused 'an attribute with a name of 300 bytes' 'name of 305 bytes'

	# Symlinks out of DIR, and then something below or instead of them.
	{
		entry "path=\"/out\", stat={type=symlink}, target=\"$dir/canary\""
		entry 'path="/out/file", stat={type=file, size=4}, content="evil"'
		entry 'path="/out/new", stat={type=file, size=4}, content="evil"'
		entry 'path="/out/sub", stat={type=dir, mode=0000}'
		entry 'path="/up", stat={type=symlink}, target="../../canary/file"'
		entry 'path="/up", stat={mode=0600, mtime_ns=5, atime_ns=5}, content="evil"'
		entry 'path="/root", stat={type=symlink}, target="/"'
		entry 'path="/root/tmp/evil", stat={type=fifo}'
	} >h.txt
	make h
	room
	attempt 0 room/D && says '4 paths are left out' && says '(the first: /out/file)' && unharmed && [ -L room/D/out ] && [ "$(readlink room/D/root)" = / ] &&
		[ ! -e /tmp/evil ]
	ok $? "$who: symlinks are made, but not followed"

	# What is in DIR already leads out: a former run may have left that.
	{
		entry 'path="/d", stat={type=dir, mode=0711}'
		entry 'path="/d/sub", stat={type=dir, mode=0700}'
		entry 'path="/d/sub/file", stat={type=file, size=4, mode=0600, mtime_ns=5, atime_ns=5}, content="evil"'
		entry 'path="/f", stat={type=file, size=4, mode=0600, mtime_ns=5, atime_ns=5}, content="evil"'
		entry 'path="/g", stat={type=file, size=4, mode=0600, dev=8:1, ino=9}, content="evil"'
		entry 'path="/h", stat={type=file, size=4, mode=0600, dev=8:1, ino=9}'
		entry 'path="/gone", flags=MISSING'
	} >h.txt
	make h
	room
	attempt 0 room/D && rm -r room/D/d room/D/f room/D/g room/D/h && ln -s "$dir/canary" room/D/d && ln -s "$dir/canary/file" room/D/f &&
		ln -s "$dir/canary" room/D/gone && ln -s "$dir/canary" room/D/extra && attempt 0 room/D && unharmed && [ "$(cat room/D/f room/D/d/sub/file)" = evilevil ] &&
		[ ! -e room/D/extra ] && [ ! -L room/D/gone ]
	ok $? "$who: symlinks in the way are removed"
	if ln canary/file room/D/test 2>/dev/null; then
		# Links change the number of names and the time of change of what they lead to.
		rm room/D/f room/D/g room/D/h && ln canary/file room/D/f && ln canary/file room/D/g
		attempt 0 room/D && [ "$(cat canary/file)" = bird ] && [ "$(stat -c '%a %h' canary/file)" = '666 1' ] && [ "$(cat room/D/f room/D/h)" = evilevil ] &&
			[ ! room/D/f -ef room/D/g ] && [ room/D/g -ef room/D/h ]
		ok $? "$who: a hard link out of DIR is replaced, not written to"
		rm -f room/D/test
		watch >canary.before
	fi
	room
	mkdir room/D room/D/d && chmod 777 room/D room/D/d && ln -s "$dir/canary/sub" room/D/d/sub && ln -s "$dir/canary/file" room/D/f
	# Not all of it can be taken by somebody else.
	{ attempt 0 room/D --force || attempt 2 room/D --force; } && unharmed
	ok $? "$who: also when DIR is taken by force"
	room
	mkdir room/D && chmod 777 room/D && ln -s "$dir/canary" room/D/.reprise
	attempt 2 room/D && says 'cannot' && unharmed
	ok $? "$who: our own directory is a symlink"

	# Types.
	{
		entry 'path="/dev/null", stat={type=chardev, rdev=1:3, mode=0666}, flags=SPECIAL'
		entry 'path="/dev/mem", stat={type=chardev, rdev=1:1, mode=0666}, flags=SPECIAL'
		entry 'path="/dev/kmsg", stat={type=chardev, rdev=1:11, mode=0666}, flags=SPECIAL'
		entry 'path="/dev/sda", stat={type=blockdev, rdev=8:0, mode=0666}, flags=SPECIAL'
		entry 'path="/dev/b", stat={type=blockdev, rdev=1:3, mode=0666}'
		entry 'path="/dev/huge", stat={type=chardev, rdev=18446744073709551615, mode=0666}'
		entry 'path="/odd", stat={type=99, mode=0777777777777}'
		entry 'path="/su", stat={type=file, mode=07777, uid=0, gid=0, size=0}, xattrs=[{name="security.capability", value="\x01\x00\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"}]'
		entry 'path="/sd", stat={type=dir, mode=07777}'
	} >h.txt
	make h
	room
	attempt 0 room/D && unharmed && [ "$(find room/D -type b -o -type c ! -name null | wc -l)" -eq 0 ] && [ -f room/D/dev/sda ] && [ ! -s room/D/dev/sda ] &&
		[ "$(find room/D -perm /6000 | wc -l)" -eq 0 ] && [ "$(stat -c %a room/D/sd)" = 1777 ] && { [ ! -e room/D/odd ] || [ -f room/D/odd ]; }
	ok $? "$who: no devices, no set-id bits"
	if command -v getcap >/dev/null; then
		[ -z "$(getcap room/D/su)" ]
		ok $? "$who: no capabilities"
	fi
	{
		entry 'path="/x", stat={type=dir, mode=0755}'
		entry 'path="/x", stat={type=file, size=3}, content="abc"'
		entry 'path="/x", stat={type=symlink}, target="y"'
		entry 'path="/x/below", stat={type=file}'
		entry 'path="/y", stat={type=file, size=2}'
		entry 'path="/y/below/that", stat={type=file}'
		entry 'path="/z", flags=MISSING'
		entry 'path="/z", stat={type=file}'
		entry 'path="/z/a", stat={type=file}'
		entry 'path="/d1", stat={type=dir, dev=1:1, ino=1, nlink=2}'
		entry 'path="/d2", stat={type=dir, dev=1:1, ino=1, nlink=2}'
		entry 'path="/l1", stat={type=file, dev=1:1, ino=1, nlink=2}'
		entry 'path="/l2", stat={type=fifo, dev=1:1, ino=1, nlink=2}'
	} >h.txt
	make h
	room
	attempt 0 room/D && unharmed && says '2 paths are left out' && [ -L room/D/x ] && [ ! -e room/D/z ] && [ -p room/D/l2 ] && [ ! -s room/D/l1 ]
	ok $? "$who: entries that contradict one another"

	# Sizes.
	{
		entry 'path="/peta", stat={type=file, size=1125899906842624}'
		entry 'path="/most", stat={type=file, size=18446744073709551615}'
		entry 'path="/cut", content="abc"/1125899906842624'
		entry 'path="/none", content=?/9223372036854775807'
		entry 'path="/proc/kcore", stat={type=file, size=140737471590400}, flags=SPECIAL'
	} >h.txt
	make h
	room
	attempt 0 room/D --json && json 'd["sparse_files"] == 4 and d["bytes_written"] == 1048576' && unharmed &&
		[ "$(du -sk room/D | cut -f 1)" -lt 4096 ] && [ "$(head -c 3 room/D/cut)" = abc ] && grep -q 'are made as holes' err
	ok $? "$who: files that are larger than any disk are holes"
	attempt 0 room/D --json && json 'd["bytes_written"] == 0'
	ok $? "$who: and stay so"
	python3 - >h.txt <<'END'
for i in range(3000):
    print('tree_entry(tree=initial, path="/%d", stat={type=file, size=1000000000})' % i)
END
	make h
	room
	attempt 0 room/D --json && json 'd["sparse_files"] > 0 and d["sparse_over"] < 1 << 30' && [ "$(du -sk room/D | cut -f 1)" -lt 65536 ]
	ok $? "$who: many files that are larger than the disk together"
	entry "path=\"$(python3 -c 'print("/d" * 2047)')\", stat={type=dir}" >h.txt
	make h
	room
	attempt 0 room/D && attempt 0 room/D && unharmed
	ok $? "$who: 2047 directories in one another"
	python3 - room/D "$who" <<'END'
import os, sys
# Deeper than a path can be, and than there may be descriptors.
os.chdir(sys.argv[1])
for i in range(6000):
    os.mkdir("deep")
    if sys.argv[2] == "nobody":
        os.chown("deep", 65534, 65534)
    os.chdir("deep")
END
	attempt 0 room/D && unharmed && [ ! -e room/D/deep ]
	ok $? "$who: 6000 more are removed"
	python3 - >h.txt <<'END'
for i in range(200):
    print('tree_entry(tree=initial, path="/%s%d", stat={type=file, dev=1:1, ino=7, nlink=70000})' % ("x" * 200, i))
END
	make h
	room
	attempt 0 room/D && [ "$(stat -c %h room/D/x*0 | sort -u)" = 200 ]
	ok $? "$who: many links"
	entry "path=\"$(python3 -c 'print(("/" + "n" * 250) * 16)')\", stat={type=file, size=1}" >h.txt
	make h
	room
	attempt 0 room/D && attempt 0 room/D --json && json 'd["unchanged"] == 16'
	ok $? "$who: a path of 4016 bytes"
}

if [ "$(id -u)" -eq 0 ]; then
	who=root
	suite
	{
		entry 'path="/dev/null", stat={type=chardev, rdev=1:3, mode=0666}, flags=SPECIAL'
		entry 'path="/su", stat={type=file, mode=06755, uid=1234, gid=4321, size=0}'
		entry 'path="/l", stat={type=symlink, uid=1234, gid=4321}, target="su"'
	} >h.txt
	make h
	room
	attempt 0 room/D && [ "$(stat -c '%u %a' room/D/su)" = '0 755' ] && says '2 owners, 1 set-id bits' && attempt 0 room/D --privileged-metadata &&
		[ "$(stat -c '%u %g %a' room/D/su)" = '1234 4321 6755' ] && [ "$(stat -c %u room/D/l)" = 1234 ] && [ ! -s err ]
	ok $? 'root: owners and set-id bits on request'
	if [ "$(stat -c '%t:%T' room/D/dev/null)" != 0:0 ]; then
		[ "$(stat -c '%F %t:%T %a' room/D/dev/null)" = 'character special file 1:3 666' ]
		ok $? 'root: the null device'
	fi
	if ! command -v setpriv >/dev/null; then
		echo "1..$nr"
		exit 0
	fi
	who=nobody
fi
[ "$who" ] || who=user
suite
{
	entry 'path="/a", stat={type=dir, mode=0000, uid=0, gid=0}'
	entry 'path="/a/b", stat={type=dir, mode=0100, uid=0, gid=0}'
	entry 'path="/a/b/f", stat={type=file, mode=0000, uid=0, gid=0, size=3, mtime_ns=5, atime_ns=6}, content="abc"'
} >h.txt
make h
room
attempt 0 room/D && says 'owners' && attempt 0 room/D --json --whole && json 'd["entries"] == 3 and d["made"] == d["bytes_written"] == 0' &&
	[ "$(stat -c %a room/D/a)" = 0 ]
ok $? "$who: directories without rights for their owner"
room

# What is mounted below DIR, in a mount namespace of $who.
within() {
	if [ "$who" = root ]; then
		unshare -m "$@"
	elif [ "$who" = nobody ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm "$@"
	else
		unshare -Urm "$@"
	fi
}

# mounted STATUS WORDS COMMAND: with the canary mounted at D/m and its file upon D/f
mounted() {
	within sh -c 'mount --bind canary room/D/m && mount --bind canary/file room/D/f && eval "$1"' sh "$3" >out 2>err
	[ $? -eq "$1" ] && { [ ! "$2" ] || says "$2"; }
}

mounts() {
	{
		entry 'path="/d", stat={type=dir, mode=0755}'
		entry 'path="/f", stat={type=file, size=4, mode=0600, mtime_ns=5, atime_ns=5}, content="evil"'
		entry 'path="/m", stat={type=dir, mode=0700, mtime_ns=5}'
		entry 'path="/m/file", stat={type=file, size=4, mode=0600, mtime_ns=5, atime_ns=5}, content="evil"'
		entry 'path="/m/new", stat={type=file, size=4}, content="evil"'
		echo '7/1 #1 1000000+100000 unlink(path="/m/sub/file") = 0'
		echo '7/1 #2 2000000+100000 unlink(path="/m/file") = 0'
		echo '7/1 #3 3000000+100000 open(path="/f", flags=O_WRONLY|O_TRUNC, mode=0) = 3'
		echo '7/1 #4 4000000+100000 chmod(path="/m", mode=0) = 0'
	} >h.txt
	make h
	chmod 644 h.trace
	room
	attempt 0 room/D || return
	rm -r room/D/m/file room/D/m/new && chmod 666 room/D/f
	mounted 2 'is a mount point: unmount it' './reprise init h.trace room/D' && grep -q '/room/D/[mf] is' err && unharmed
	ok $? "$who: init refuses what is mounted below DIR"
	mounted 2 'is a mount point: unmount it' './reprise init --force h.trace room/D' && unharmed
	ok $? "$who: also by force"
	mounted 2 'is a mount point: unmount it' './reprise replay h.trace room/D' && unharmed
	ok $? "$who: replay refuses it"
	mounted 2 'is a mount point: unmount it' './reprise replay --no-init h.trace room/D' && unharmed
	ok $? "$who: also without an init"
	within sh -c 'mount --bind canary room/D/.reprise && ./reprise init h.trace room/D' >out 2>err
	[ $? -eq 2 ] && says '/room/D/.reprise is a mount point' && unharmed
	ok $? "$who: our own directory is mounted"
	within sh -c 'mount --bind room/D room/D && ./reprise init h.trace room/D && ./reprise replay --no-init h.trace room/D' >out 2>err
	[ $? -le 1 ] && [ ! -s err ] && unharmed
	ok $? "$who: DIR may be a mount point itself"
	attempt 0 room/D || return
	within sh -c 'mkdir "room/o ther" && mount --bind room/D/m "room/o ther" && mount -t tmpfs none room/D/m &&
		./reprise init --one-device=no h.trace room/D && cat room/D/m/file && ls "room/o ther" && ./reprise replay --one-device=no h.trace room/D; [ ! -e room/D/m/file ]' >out 2>err
	ok $? "$who: what is mounted is used on request"
	room
}

if within sh -c 'mount --bind canary canary' 2>/dev/null; then
	case $who in nobody) names='root nobody' ;; *) names=$who ;; esac
	for who in $names; do mounts; done
else
	echo '# skipped mounts below DIR: no namespaces for this user'
fi

# A full disk, where we may mount one.
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	{
		entry 'path="/big", stat={type=file, size=3000000}'
		entry 'path="/small", stat={type=file, size=100}'
	} >h.txt
	make h
	mkdir disk
	unshare -m sh -c 'mount -t tmpfs -o size=1M none disk && ./reprise init --json h.trace disk >out 2>err; s=$?; stat -c %b disk/big >blocks; exit $s'
	[ $? -eq 0 ] && json 'd["sparse_files"] == 1 and d["filler_files"] == 1' && [ "$(cat blocks)" = 0 ]
	ok $? 'a small disk: what does not fit is a hole'
	python3 - >h.txt <<'END'
print('tree_entry(tree=initial, path="/big", content="%s")' % ("x" * 3000000))
END
	make h
	unshare -m sh -c 'mount -t tmpfs -o size=1M none disk && ./reprise init h.trace disk >out 2>err'
	[ $? -eq 2 ] && says 'need 2.86 MiB, and disk has room for 1.00 MiB: No space left on device'
	ok $? 'a small disk: contents that do not fit'
	unshare -m sh -c 'mount -t tmpfs -o size=4M none disk && ./reprise init h.trace disk >out 2>err && rm disk/big && head -c 3000000 /dev/zero >disk/.reprise/ballast && ./reprise init h.trace disk >out 2>err'
	[ $? -eq 2 ] && says 'cannot write disk/big: No space left on device'
	ok $? 'a disk that fills up on the way'
	unshare -m sh -c 'mount -t tmpfs -o size=4M,nr_inodes=4 none disk && ./reprise init h.trace disk >out 2>err'
	[ $? -eq 2 ] && grep -q 'No space left on device' err && [ "$(wc -l <err)" -eq 1 ]
	ok $? 'a disk without inodes'
	unshare -m sh -c 'mount -t tmpfs -o ro none disk && ./reprise init h.trace disk >out 2>err'
	[ $? -eq 2 ] && says 'Read-only file system'
	ok $? 'a disk that is read-only'
	(ulimit -f 1000 && ./reprise init h.trace limited >out 2>err)
	[ $? -eq 2 ] && says 'cannot write limited/big: File too large'
	ok $? 'a limit for the size of files'
fi

echo "1..$nr"
