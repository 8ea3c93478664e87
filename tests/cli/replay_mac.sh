#!/bin/sh
# SPDX-License-Identifier: MIT
# Calls of macOS, as they are made on Linux: the replay is recorded, and that is the proof.
. "$TOP/tests/cli/tap.sh"

# A line of the trace, then what must be seen of it, as patterns of one call each; '-': no call.
cat >calls <<'END'
mac_open(path="/a", flags=O_RDWR|O_NONBLOCK|O_EXLOCK, mode=0) = 3
open(at)?\([^ ]*, ?"/a", O_RDWR\|.*O_NONBLOCK.* = [0-9]
mac_open(path="/new", flags=O_WRONLY|O_CREAT|O_EXCL, mode=0600) = 4
open(at)?\(.*"/new", O_WRONLY\|O_CREAT\|O_EXCL\|.*, 0600\) = [0-9]
mac_open(path="/new", flags=O_WRONLY|O_CREAT|O_EXCL, mode=0600) = -1 EUNKNOWN
open(at)?\(.*"/new".* = -1 EEXIST
mac_open(path="/d", flags=O_RDONLY|O_EVTONLY, mode=0) = 5
open(at)?\(.*"/d", .*O_PATH.* = [0-9]
mac_stat64(path="/ln") = 0
(stat|newfstatat)\(.*"/ln".* = 0
mac_lstat64(path="/ln") = 0
(lstat\("/ln"|newfstatat\(.*"/ln".*AT_SYMLINK_NOFOLLOW).* = 0
mac_fstat64(fd=3) = 0
(fstat|newfstatat)\(.* = 0
stat64_extended(path="/ln") = 0
(stat|newfstatat)\(.*"/ln".* = 0
lstat64_extended(path="/ln") = 0
(lstat\("/ln"|newfstatat\(.*"/ln".*AT_SYMLINK_NOFOLLOW).* = 0
fstat64_extended(fd=3) = 0
(fstat|newfstatat)\(.* = 0
mac_statfs64(path="/") = 0
statfs\("/", .* = 0
mac_fstatfs64(fd=3) = 0
fstatfs\(.* = 0
getfsstat64() = 3
statfs\("/", .* = 0
getattrlist(path="/a") = 0
(stat|newfstatat)\(.*"/a".* = 0
getattrlist(path="/none") = -1 EUNKNOWN
(stat|newfstatat)\(.*"/none".* = -1 ENOENT
getattrlist(path="/ln", options=1) = 0
(lstat\("/ln"|newfstatat\(.*"/ln".*AT_SYMLINK_NOFOLLOW).* = 0
setattrlist(path="/a") = 0
utimensat\(AT_FDCWD, "/a", NULL, 0\) = 0
fgetattrlist(fd=3) = 0
(fstat|newfstatat)\(.* = 0
fsetattrlist(fd=3) = 0
utimensat\(.*, NULL, NULL, 0\) = 0
chflags(path="/a", flags=UF_HIDDEN) = 0
(stat|newfstatat)\(.*"/a".* = 0
chmod\("/a", 0644\) = 0
fchflags(fd=3, flags=UF_HIDDEN) = 0
(fstat|newfstatat)\(.* = 0
fchmod\(.*, 0644\) = 0
fsgetpath(objid=1234) = 10
(stat|newfstatat)\(.*"/".* = 0
fsctl(path="/a", cmd=1) = 0
(stat|newfstatat)\(.*"/a".* = 0
ffsctl(fd=3, cmd=1) = 0
(fstat|newfstatat)\(.* = 0
searchfs(path="/") = 0
(stat|newfstatat)\(.*"/".* = 0
mac_setxattr(path="/a", name="com.apple.FinderInfo", value="abc", size=3) = 0
setxattr\("/a", "user.com.apple.FinderInfo", "abc", 3, 0\) = 0
mac_setxattr(path="/ln", name="com.apple.FinderInfo", value="x", size=1, options=XATTR_CREATE) = -1 EUNKNOWN
-
mac_setxattr(path="/ln", name="com.apple.new", value="x", size=1, options=XATTR_CREATE) = 0
setxattr\("/ln", "user.com.apple.new", "x", 1, XATTR_CREATE\) = 0
mac_getxattr(path="/a", name="com.apple.FinderInfo", value="abc", size=3) = 3
getxattr\("/a", "user.com.apple.FinderInfo", "abc", 3\) = 3
mac_getxattr(path="/a", name="com.apple.none") = -1 EUNKNOWN
getxattr\("/a", "user.com.apple.none", .* = -1 ENODATA
mac_getxattr(path="/a") = 32
listxattr\("/a", NULL, 0\) = [0-9]
mac_getxattr(path="/a") = -1 EUNKNOWN
getxattr\("/a", "user.reprise.none", .* = -1 ENODATA
mac_fgetxattr(fd=3) = -1 EUNKNOWN
fgetxattr\(.*, "user.reprise.none", .* = -1 ENODATA
mac_fsetxattr(fd=3, name="com.apple.two") = 0
fsetxattr\(.*, "user.com.apple.two", "", 0, 0\) = 0
mac_fgetxattr(fd=3, name="com.apple.two") = 0
fgetxattr\(.*, "user.com.apple.two", .* = 0
mac_fgetxattr(fd=3) = 7
flistxattr\(.*, NULL, 0\) = [0-9]
mac_listxattr(path="/a") = 35
listxattr\("/a", .* = [0-9]
mac_flistxattr(fd=3) = 35
flistxattr\(.* = [0-9]
mac_removexattr(path="/a", name="com.apple.two") = 0
removexattr\("/a", "user.com.apple.two"\) = 0
mac_fremovexattr(fd=3, name="com.apple.two") = -1 EUNKNOWN
-
mac_fremovexattr(fd=3, name="com.apple.new") = 0
fremovexattr\(.*, "user.com.apple.new"\) = 0
mac_futimes(fd=3, times=[{tv_sec=1000, tv_usec=5}, {tv_sec=2000, tv_usec=7}]) = 0
utimensat\(.*, NULL, \[\{tv_sec=1000, tv_nsec=5000\}, \{tv_sec=2000, tv_nsec=7000\}\], 0\) = 0
mac_futimes(fd=4) = 0
utimensat\(.*, NULL, NULL, 0\) = 0
mac_fcntl_rdadvise(fd=3, offset=4096, count=4096) = 0
fadvise64\(.*, 4096, 4096, POSIX_FADV_WILLNEED\) = 0
mac_fcntl_rdadvise(fd=3) = 0
-
mac_fcntl_nocache(fd=3, arg=1) = 0
fadvise64\(.*, 0, 0, POSIX_FADV_DONTNEED\) = 0
mac_fcntl_nocache(fd=3, arg=0) = 0
fadvise64\(.*, 0, 0, POSIX_FADV_NORMAL\) = 0
mac_fcntl_rdahead(fd=3, arg=0) = 0
fadvise64\(.*, 0, 0, POSIX_FADV_RANDOM\) = 0
mac_fcntl_preallocate(fd=4, arg={fst_offset=0, fst_length=65536}) = 0
fallocate\(.*, FALLOC_FL_KEEP_SIZE, 0, 65536\) = 0
mac_fcntl_preallocate(fd=4) = 0
-
mac_fcntl_getpath(fd=3) = 0
(fstat|newfstatat)\(.* = 0
mac_fcntl(fd=3, cmd=F_LOG2PHYS, arg=0) = 0
(fstat|newfstatat)\(.* = 0
mac_fsync(fd=3) = 0
fsync\(.* = 0
mac_fcntl_fullfsync(fd=3) = 0
fsync\(.* = 0
mac_fcntl_barrierfsync(fd=3) = 0
fdatasync\(.* = 0
mac_open(path="/d", flags=O_RDONLY|O_DIRECTORY, mode=0) = 6
open(at)?\(.*"/d", .*O_DIRECTORY.* = [0-9]
getdirentries64(fd=6) = 120
getdents64\(.* = [1-9]
getdirentries64(fd=6) = 0
getdents64\(.* = 0
getdirentriesattr(fd=6) = 1
getdents64\(.* = 0
getattrlistbulk(fd=6) = 0
getdents64\(.* = 0
aio_read(aiocb=0x1000, fd=3, offset=4096, nbytes=100) = 0
pread64\(.*, 100, 4096\) = 100
aio_error(aiocb=0x1000) = 36
-
aio_suspend(nent=1) = 0
-
aio_return(aiocb=0x1000) = 100
-
aio_write(aiocb=0x2000, fd=4, offset=0, nbytes=5, buf="hello") = 0
pwrite64\(.*, "hello", 5, 0\) = 5
delete(path="/gone") = 0
unlink\("/gone"\) = 0
exchangedata(path1="/a", path2="/b", options=0) = 0
renameat2\(AT_FDCWD, "/a", AT_FDCWD, "/b", RENAME_EXCHANGE\) = 0
END

{
	cat <<'END'
# reprise exact 1
tree_entry(tree=initial, path="/a", stat={type=file, mode=0644, size=8192})
tree_entry(tree=initial, path="/b", stat={type=file, mode=0644, size=100})
tree_entry(tree=initial, path="/gone", stat={type=file, mode=0644, size=1})
tree_entry(tree=initial, path="/ln", stat={type=symlink}, target="a")
tree_entry(tree=initial, path="/d", stat={type=dir, mode=0755})
tree_entry(tree=initial, path="/d/x", stat={type=file, mode=0644, size=1})
END
	grep -E '^[a-z0-9_]+\([^\\]*\) = (-1 EUNKNOWN|[0-9]+)$' calls | sed 's/^/1\/1 /'
	echo 'marker(text="end")'
} >m.txt
make m
mkdir d
run 0 compile -o m.plan m.trace
ok $? 'calls of macOS in a plan'
python3 -c 'import os, sys
os.setxattr("d", "user.test", b"x")
os.removexattr("d", "user.test")' 2>/dev/null || {
	echo "1..$nr # SKIP the file system has no extended attributes for users"
	exit 0
}
run 0 replay --speed=afap --json m.plan d && json 'd["mismatches"] == 0 and d["unbuilt"] == 0'
ok $? 'they are replayed, and nothing differs'
[ "$(wc -c <d/b)" -eq 8192 ] && [ "$(wc -c <d/a)" -eq 100 ] && [ "$(cat d/new)" = hello ] && [ ! -e d/gone ]
ok $? 'exchangedata, aio_write and delete have done it'

# What the replay did: the calls of the one thread that made the xattr calls.
rm -rf d && mkdir d
"$REPRISE" record --contents=0 -o r.trace "$REPRISE" replay --speed=afap -q m.plan d >out 2>err
if ! "$REPRISE" show --no-paths -c setxattr r.trace >made 2>err || [ ! -s made ]; then
	echo "ok $((nr = nr + 1)) - which calls are made # SKIP the replay could not be recorded"
	echo "1..$nr"
	exit 0
fi
tid=$(sed -n '1s/^[0-9]*\/\([0-9]*\) .*/\1/p' made)
"$REPRISE" show --no-paths --time=none --tid="$tid" r.trace | sed 's/^[0-9]*\/[0-9]* //; s/ <[0-9.]*>$//' >made

# Each pattern is found behind the one before, in the order of the trace.
python3 - calls made >found 2>err <<'END'
import re, sys
calls = [line.rstrip("\n") for line in open(sys.argv[1])]
made = [line.rstrip("\n") for line in open(sys.argv[2], errors="replace")]
at = 0
title = None
for line in calls:
    if re.search(r"^[a-z0-9_]+\([^\\]*\) = (-1 EUNKNOWN|[0-9]+)$", line):
        title = line
        continue
    hit = line == "-"
    for i in range(at, len(made)) if not hit else ():
        if re.match(line, made[i]):
            hit, at = True, i + 1
            break
    print("ok" if hit else "not", title, "->", line)
END
[ -s found ] && [ ! -s err ]
ok $? 'the recorded replay could be read'
while read -r how title; do
	[ "$how" = ok ]
	ok $? "$title"
done <found

run 0 calls --json
python3 - calls <<'END' >missing
import json, re, sys
tested = set(re.findall(r"^([a-z0-9_]+)\(", open(sys.argv[1]).read(), re.M))
rows = [r for r in json.load(open("out")) if r["id"] >= 1000 and r["record"] == "imported" and r["replay"] == "special"]
print(*[r["name"] for r in rows if r["name"] not in tested])
END
[ "$(cat missing)" = '' ]
ok $? "every emulation is tested $(cat missing)"

rm -rf d && mkdir d
"$REPRISE" record --contents=0 -f -o r.trace "$REPRISE" replay --mac-fsync=device --speed=afap -q m.plan d >out 2>err
"$REPRISE" show --no-paths --time=none -c sync_file_range r.trace >out 2>err &&
	[ "$(grep -c 'SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE|SYNC_FILE_RANGE_WAIT_AFTER' out)" -eq 1 ]
ok $? 'fsync of macOS hands data to the device only, if so wanted'

echo "1..$nr"
