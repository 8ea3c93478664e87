#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise replay of calls that failed for a reason that the target does not have: they must change nothing.
. "$TOP/tests/cli/tap.sh"
umask 022
# No program is looked for where an ordinary user may not look.
PATH=/usr/bin:/bin:$PATH
trap clean EXIT

clean() {
	umount small 2>/dev/null
	empty
	rm -rf "$dir"
}

# empty: no directory D, whatever permissions there are in it
empty() {
	[ ! -e D ] || chmod -R u+rwX D
	rm -rf D
}

skip() {
	nr=$((nr + 1))
	echo "ok $nr - $1 # SKIP $2"
}

# replayed TRACE: in a new directory without a mismatch, and the final tree is the recorded one
replayed() {
	empty
	run 0 replay -f --json -o run.trace "$1" D && json 'd["mismatches"] == 0 and d["end"] == "complete"' &&
		cp out report && run 0 verify "$1" D && mv report out
}

# The hash of "hello", as a recorder writes it.
printf hello >h
"$REPRISE" record -q -o h.trace -- cat h >out 2>err
hello=$("$REPRISE" show --exact h.trace | sed -n "s,^tree_entry(tree=final.*path=\"$dir/h\".* hash=\([0-9a-f]*\).*,\1,p")

# tree WHEN: what is there before and after, in two file systems
tree() {
	echo "tree_entry(tree=$1, path=\"/\", stat={type=dir, mode=0755, dev=8:1, ino=2}, flags=LISTED)"
	echo "tree_entry(tree=$1, path=\"/d\", stat={type=dir, mode=0755, dev=8:1, ino=3}, flags=LISTED)"
	echo "tree_entry(tree=$1, path=\"/d/a\", stat={type=file, mode=0644, size=5, dev=8:1, ino=4, nlink=1}, xattrs=[], content=\"hello\", hash=$hello)"
	echo "tree_entry(tree=$1, path=\"/d/e\", stat={type=dir, mode=0755, dev=8:1, ino=5}, flags=LISTED)"
	echo "tree_entry(tree=$1, path=\"/m\", stat={type=dir, mode=0755, dev=8:2, ino=2}, flags=LISTED)"
	echo "tree_entry(tree=$1, path=\"/m/b\", stat={type=file, mode=0644, size=5, dev=8:2, ino=4, nlink=1}, xattrs=[], content=\"hello\", hash=$hello)"
}

# events: a call per line of the input becomes one of a process that has /d/a open as 3 and /m/b as 4, and reads them at its end
events() {
	printf '%s\n' 'open(path="/d/a", flags=O_RDWR, mode=0) = 3' 'open(path="/m/b", flags=O_RDWR, mode=0) = 4'
	cat
	printf '%s\n' 'read(fd=3, buf="hello", count=10) = 5' 'read(fd=4, buf="hello", count=10) = 5' 'stat(path="/d/a", statbuf={st_mode=S_IFREG|0644, st_size=5}) = 0'
}

# trace NAME [RECORD...]: NAME.trace of these records and the calls in the input
trace() {
	name=$1
	shift
	{
		echo '# reprise exact 1'
		echo 'meta(key="cwd", value="/")'
		for record; do echo "$record"; done
		tree initial
		tree final | sed 's/, content="hello"//'
		events | sed 's,^,100/100 0+0 ,' | awk '{ $2 = "#" NR " " 1000 * NR "+100"; print }'
	} >"$name.txt"
	make "$name"
}

# enforced ERROR: none of the calls in the file is made, as all failed with this error
enforced() {
	grep -c . >count <calls
	trace "$1" <calls
	replayed "$1.trace" && json "d[\"enforced\"] == $(cat count) and d[\"enforced_by_error\"] == {\"$1\": $(cat count)}
		and d[\"made\"] + d[\"enforced\"] + d[\"simulated\"] == d[\"actions\"]"
	ok $? "$1"
}

cat >calls <<'END'
ioctl_ficlone(fd=4, src_fd=3) = -1 EXDEV
copy_file_range(fd_in=3, off_in=NULL, fd_out=4, off_out=NULL, len=100, flags=0) = -1 EXDEV
rename(oldpath="/d/a", newpath="/m/new") = -1 EXDEV
rename(oldpath="/d/a", newpath="/m/b") = -1 EXDEV
renameat2(olddirfd=AT_FDCWD, oldpath="/d/a", newdirfd=AT_FDCWD, newpath="/m/b", flags=RENAME_EXCHANGE) = -1 EXDEV
link(oldpath="/d/a", newpath="/m/new") = -1 EXDEV
END
enforced EXDEV
for err in EMFILE ENFILE; do
	cat >calls <<END
open(path="/d/new", flags=O_WRONLY|O_CREAT, mode=0644) = -1 $err
open(path="/d/a", flags=O_WRONLY|O_TRUNC, mode=0) = -1 $err
open(path="/d/a", flags=O_RDONLY, mode=0) = -1 $err
dup(oldfd=3) = -1 $err
pipe2(pipefd=NULL, flags=0) = -1 $err
memfd_create(name="m", flags=0) = -1 $err
END
	enforced $err
done
for err in EFBIG ENOSPC EDQUOT EIO; do
	cat >calls <<END
write(fd=3, buf="damage", count=6) = -1 $err
pwrite64(fd=3, buf="damage", count=6, offset=2) = -1 $err
writev(fd=3, iov=[{iov_base="damage", iov_len=6}], iovcnt=1) = -1 $err
ftruncate(fd=3, length=100000) = -1 $err
truncate(path="/d/a", length=0) = -1 $err
fallocate(fd=3, mode=0, offset=0, len=100000) = -1 $err
sendfile(out_fd=4, in_fd=3, offset=NULL, count=5) = -1 $err
copy_file_range(fd_in=3, off_in=NULL, fd_out=4, off_out=NULL, len=100, flags=0) = -1 $err
END
	enforced $err
done
for err in ENOSPC EDQUOT EROFS EACCES EPERM; do
	cat >calls <<END
open(path="/d/new", flags=O_WRONLY|O_CREAT, mode=0644) = -1 $err
creat(path="/d/a", mode=0644) = -1 $err
mkdir(path="/d/new", mode=0755) = -1 $err
symlink(target="a", linkpath="/d/new") = -1 $err
mknod(path="/d/new", mode=S_IFIFO|0644, dev=0) = -1 $err
link(oldpath="/d/a", newpath="/d/new") = -1 $err
rename(oldpath="/d/a", newpath="/d/new") = -1 $err
unlink(path="/d/a") = -1 $err
rmdir(path="/d/e") = -1 $err
chmod(path="/d/a", mode=0600) = -1 $err
fchmod(fd=3, mode=0600) = -1 $err
setxattr(path="/d/a", name="user.x", value="1", size=1, flags=0) = -1 $err
chdir(path="/d") = -1 $err
END
	enforced $err
done
cat >calls <<'END'
open(path="/d/a", flags=O_WRONLY|O_TRUNC, mode=0) = -1 ETXTBSY
truncate(path="/d/a", length=1) = -1 ETXTBSY
END
enforced ETXTBSY
cat >calls <<'END'
rmdir(path="/d/e") = -1 EBUSY
rename(oldpath="/d/e", newpath="/d/new") = -1 EBUSY
END
enforced EBUSY
cat >calls <<'END'
link(oldpath="/d/a", newpath="/d/new") = -1 EMLINK
mkdir(path="/d/new", mode=0755) = -1 EMLINK
END
enforced EMLINK
cat >calls <<'END'
write(fd=3, buf="abc", count=3) = -1 EINVAL
pwrite64(fd=3, buf="abc", count=3, offset=1) = -1 EINVAL
read(fd=3, buf="", count=3) = -1 EINVAL
END
enforced EINVAL
cat >calls <<'END'
ioctl_ficlone(fd=4, src_fd=3) = -1 EOPNOTSUPP
ioctl_ficlonerange(fd=4, arg={src_fd=3, src_offset=0, src_length=0, dest_offset=0}) = -1 EOPNOTSUPP
ioctl_fideduperange(fd=3, arg={src_offset=0, src_length=5, dest_count=1, info=[{dest_fd=4, dest_offset=0}]}) = -1 EOPNOTSUPP
fallocate(fd=3, mode=FALLOC_FL_ZERO_RANGE, offset=0, len=5) = -1 EOPNOTSUPP
setxattr(path="/d/a", name="user.x", value="1", size=1, flags=0) = -1 EOPNOTSUPP
END
enforced EOPNOTSUPP
cat >calls <<'END'
fcntl_setlk(fd=3, arg={l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = -1 EAGAIN
flock(fd=3, op=LOCK_EX|LOCK_NB) = -1 EAGAIN
END
enforced EAGAIN
cat >calls <<'END'
write(fd=3, buf="damage", count=6) = -1 EUNKNOWN
open(path="/d/a", flags=O_WRONLY|O_TRUNC, mode=0) = -1 EUNKNOWN
END
enforced EUNKNOWN

# What another user may not do, which the tree itself tells; a replay is its root.
cat >calls <<'END'
open(path="/d/a", flags=O_WRONLY|O_TRUNC, mode=0) = -1 EACCES
open(path="/d/nope", flags=O_WRONLY|O_CREAT, mode=0644) = -1 EACCES
unlink(path="/d/a") = -1 EACCES
chmod(path="/d/a", mode=0777) = -1 EPERM
END
trace user 'meta(key="uid", value="1000")' <calls
replayed user.trace && json 'd["enforced"] == 4 and d["enforced_by_error"] == {"EACCES": 3, "EPERM": 1}'
ok $? 'by the rights of another user'

# What the state explains is made, and fails; what only looks is made, whatever it is.
cat >calls <<'END'
open(path="/d/a", flags=O_WRONLY|O_CREAT|O_EXCL, mode=0644) = -1 EEXIST
mkdir(path="/d", mode=0755) = -1 EEXIST
unlink(path="/d/none") = -1 ENOENT
rmdir(path="/d") = -1 ENOTEMPTY
unlink(path="/d/e") = -1 EISDIR
rename(oldpath="/d/none", newpath="/d/new") = -1 ENOENT
write(fd=9, buf="damage", count=6) = -1 EBADF
mkdir(path="/d/a/x", mode=0755) = -1 ENOTDIR
lseek(fd=3, offset=-1, whence=SEEK_SET) = -1 EINVAL
rename(oldpath="/d", newpath="/d/e/x") = -1 EINVAL
link(oldpath="/d", newpath="/l") = -1 EPERM
removexattr(path="/d/a", name="user.none") = -1 ENODATA
END
trace explained <calls
replayed explained.trace && json 'd["enforced"] == 0 and d["enforced_by_error"] == {} and d["simulated"] == 0 and d["made"] == d["actions"]'
ok $? 'what the files explain is made'

# Short writes: as much as there was room for.
cat >calls <<'END'
open(path="/d/s", flags=O_WRONLY|O_CREAT, mode=0644) = 5
write(fd=5, buf="hello world", count=11) = 2
writev(fd=5, iov=[{iov_base="l", iov_len=1}, {iov_base="lo world", iov_len=8}, {iov_base="!", iov_len=1}], iovcnt=3) = 3
write(fd=5, buf=" world", count=6) = -1 ENOSPC
pwrite64(fd=5, buf="helium", count=6, offset=0) = 3
open(path="/d/t", flags=O_WRONLY|O_CREAT, mode=0644) = 6
sendfile(out_fd=6, in_fd=3, offset=NULL, count=5) = 2
pread64(fd=3, buf="hello", count=9, offset=0) = 5
lseek(fd=3, offset=0, whence=SEEK_SET) = 0
unlink(path="/d/t") = 0
rename(oldpath="/d/s", newpath="/d/a") = 0
END
trace short <calls
empty
run 0 replay --json short.trace D && json 'd["enforced_by_error"] == {"ENOSPC": 1} and d["mismatches"] == 0' && run 0 verify short.trace D
ok $? 'writes that were cut short are short'

# Requests of an io_uring that the call which submits them sees fail; and those that were cancelled with them.
enter() {
	echo "io_uring_enter(fd=5, to_submit=$1, min_complete=$1, flags=IORING_ENTER_GETEVENTS, argp=NULL, argsz=0, sqes=[$2], cqes=[$3]) = $1"
}
{
	echo 'io_uring_setup(entries=8, params=NULL) = 5'
	enter 2 '{opcode=IORING_OP_RENAMEAT, fd=-100, len=4294967196, request=1, path="/d/a", path2="/m/new"}, {opcode=IORING_OP_OPENAT, fd=-100, len=0644, op_flags=0x41, request=2, path="/d/new"}' \
		'{res=-18, opcode=IORING_OP_RENAMEAT, request=1}, {res=-24, opcode=IORING_OP_OPENAT, request=2}'
	enter 2 '{opcode=IORING_OP_WRITE, flags=IOSQE_IO_LINK, fd=3, off=0, len=6, request=3, buf="damage"}, {opcode=IORING_OP_UNLINKAT, fd=-100, request=4, path="/d/a"}' \
		'{res=-28, opcode=IORING_OP_WRITE, request=3}, {res=-125, opcode=IORING_OP_UNLINKAT, request=4}'
	enter 1 '{opcode=IORING_OP_MKDIRAT, fd=-100, len=0755, request=5, path="/d"}' '{res=-17, opcode=IORING_OP_MKDIRAT, request=5}'
} | trace uring
replayed uring.trace && json 'd["enforced"] == 0 and d["enforced_requests"] == 4 and d["async_requests"]["made"] == 1' &&
	run 0 replay uring.trace D && grep -q '^async requests .*; 4 failures enforced$' out
ok $? 'requests of an io_uring'

# ... and those whose completion a later call sees.
submit() {
	echo "io_uring_enter(fd=5, to_submit=$1, min_complete=0, flags=0, argp=NULL, argsz=0, sqes=[$2], cqes=[]) = $1"
}
harvest() {
	echo "io_uring_enter(fd=5, to_submit=0, min_complete=$1, flags=IORING_ENTER_GETEVENTS, argp=NULL, argsz=0, sqes=[], cqes=[$2]) = 0"
}
{
	echo 'io_uring_setup(entries=8, params=NULL) = 5'
	submit 3 '{opcode=IORING_OP_RENAMEAT, fd=-100, len=4294967196, request=1, path="/d/a", path2="/m/new"}, {opcode=IORING_OP_WRITE, fd=3, off=0, len=6, request=2, buf="damage"}, {opcode=IORING_OP_READ, fd=4, off=0, len=5, request=3}'
	submit 2 '{opcode=IORING_OP_MKDIRAT, fd=-100, len=0755, request=4, path="/d"}, {opcode=IORING_OP_WRITEV, fd=4, off=0, len=2, request=5, iov=[{iov_base="he", iov_len=2}, {iov_base="damage", iov_len=6}]}'
	harvest 3 '{res=-28, opcode=IORING_OP_WRITE, request=2}, {res=-125, opcode=IORING_OP_READ, request=3}, {res=-18, opcode=IORING_OP_RENAMEAT, request=1}'
	harvest 2 '{res=-17, opcode=IORING_OP_MKDIRAT, request=4}, {res=2, opcode=IORING_OP_WRITEV, request=5}'
} | trace later
replayed later.trace && json 'd["enforced_requests"] == 3 and d["async_requests"]["made"] == 2' && run 0 compile -f later.trace && run 0 check later.plan &&
	empty && run 0 replay --json later.plan D && json 'd["enforced_requests"] == 3 and d["mismatches"] == 0' && run 0 verify later.trace D
ok $? 'requests of an io_uring that later calls see fail, or cut short'

# Asynchronous I/O: failed requests, one that was cut short, blocks that the kernel did not take.
block() {
	echo "{aio_lio_opcode=$1, aio_fildes=$2, aio_nbytes=$3, aio_offset=0, obj=0x$4, buf=\"$5\", aio_resfd=77777777}"
}
{
	echo 'io_setup(nr_events=8, ctx_idp=[0x7000]) = 0'
	echo "io_submit(ctx_id=0x7000, nr=4, iocbpp=[$(block IOCB_CMD_PWRITE 3 6 1000 damage), $(block IOCB_CMD_PWRITE 4 7 2000 hexdump), $(block IOCB_CMD_PWRITE 3 6 3000 damage), $(block 99 3 6 4000 damage)]) = 2"
	echo "io_submit(ctx_id=0x7000, nr=1, iocbpp=[$(block IOCB_CMD_PWRITE 3 6 3000 damage)]) = -1 EAGAIN"
	echo "io_submit(ctx_id=0x7000, nr=1, iocbpp=[$(block IOCB_CMD_PREAD 3 5 5000 '')]) = 1"
	echo 'io_getevents(ctx_id=0x7000, min_nr=3, nr=8, events=[{obj=0x2000, res=2}, {obj=0x1000, res=-27}, {obj=0x5000, res=-14}], timeout=NULL) = 3'
	echo 'io_destroy(ctx_id=0x7000) = 0'
} | trace aio
replayed aio.trace && json 'd["enforced_requests"] == 2 and d["enforced_by_error"] == {"EAGAIN": 1} and d["async_requests"]["made"] == 1'
ok $? 'requests of asynchronous I/O'

# Visible everywhere, and never a mismatch.
trace show <<'END'
rename(oldpath="/d/a", newpath="/m/new") = -1 EXDEV
open(path="/d/new", flags=O_WRONLY|O_CREAT, mode=0644) = -1 EMFILE
link(oldpath="/d/a", newpath="/m/new") = -1 EXDEV
END
replayed show.trace && run 0 replay show.trace D &&
	grep -q '^actions  *9 of 9, 6 made; complete$' out && grep -q '^enforced  *3 (EXDEV 2, EMFILE 1)' out
ok $? 'the report counts them by error'
run 0 show run.trace && [ "$(grep -c '{SIMULATED|ENFORCED}' out)" -eq 3 ] && grep -q 'EMFILE.*ENFORCED' out
ok $? 'the trace of the run marks them'
run 0 compare --json show.trace run.trace && json 'd["comparisons"][0]["enforced"] == 3 and d["comparisons"][0]["simulated"] == 3 and d["comparisons"][0]["mismatched"] == 0' &&
	run 0 compare show.trace run.trace && grep -q '3 of B were not made again, 3 of these enforced failures' out
ok $? 'compare counts them'
run 0 graph --json show.trace && json 'd["enforced"] == 3' && run 0 graph show.trace && grep -q '^3 of the actions are failures that are enforced' out &&
	run 0 graph --dot show.trace && [ "$(grep -c 'enforced", style=dashed' out)" -eq 3 ]
ok $? 'graph shows them'
run 0 compile -f --json show.trace && json 'd["enforced"] == 3' && run 0 compile -f show.trace && grep -q ', 3 failures enforced' out &&
	run 0 check show.plan && replayed show.trace && empty && run 0 replay --json show.plan D && json 'd["enforced"] == 3'
ok $? 'a plan has them'
empty
run 0 replay --json --speed=timed --engine=null show.trace D && json 'd["enforced"] == 3'
ok $? 'no engine makes them'

# Real programs.
shm=$(mktemp -d /dev/shm/reprise-test-XXXXXX 2>/dev/null)
if [ -n "$shm" ] && [ "$(stat -c %d "$shm")" != "$(stat -c %d .)" ]; then
	head -c 300000 /dev/zero | tr '\0' x >big
	"$REPRISE" record -q -f -o cp.trace -- sh -c "cp big $shm/x && mv $shm/x moved" >out 2>err
	replayed cp.trace && json 'd["enforced_by_error"]["EXDEV"] >= 1' &&
		[ "$(wc -c <"D$dir/moved")" -eq 300000 ]
	ok $? 'cp and mv between file systems'
else
	skip 'cp and mv between file systems' 'no second file system'
fi
[ -n "$shm" ] && rm -rf "$shm"

cat >limits.py <<'END'
import errno, os, resource, signal

def fails(err, f, *args):
    try:
        f(*args)
    except OSError as e:
        assert e.errno == err, e
        return
    raise SystemExit("no failure")

os.mkdir("w")
os.chdir("w")
for name in "ab":
    with open(name, "w") as f:
        f.write("x" * 10000)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (12000, 12000))
fd = os.open("a", os.O_WRONLY | os.O_APPEND)
assert os.write(fd, b"y" * 5000) == 2000
fails(errno.EFBIG, os.write, fd, b"z")
fails(errno.EFBIG, os.ftruncate, fd, 20000)
resource.setrlimit(resource.RLIMIT_NOFILE, (fd + 1, fd + 1))
fails(errno.EMFILE, os.open, "new", os.O_WRONLY | os.O_CREAT)
fails(errno.EMFILE, os.open, "b", os.O_WRONLY | os.O_TRUNC)
fails(errno.EMFILE, os.dup, fd)
fails(errno.EMFILE, os.pipe)
END
"$REPRISE" record -q -o limits.trace -- python3 limits.py >out 2>err && replayed limits.trace &&
	json 'd["enforced_by_error"]["EFBIG"] == 2 and d["enforced_by_error"]["EMFILE"] == 4' &&
	[ "$(wc -c <"D$dir/w/a")" -eq 12000 ] && [ ! -e "D$dir/w/new" ]
ok $? 'limits of a process'

mkdir small
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=64k none small 2>/dev/null; then
	"$REPRISE" record -q -o full.trace -- sh -c 'head -c 100000 /dev/zero >small/f; mkdir small/d; echo more >small/g; ls -l small' >out 2>err
	replayed full.trace && json 'd["enforced_by_error"]["ENOSPC"] >= 1'
	ok $? 'a full file system'
	rm -f small/f && echo kept >small/kept && mount -o remount,ro small
	"$REPRISE" record -q -o ro.trace -- sh -c 'echo x >small/kept; mkdir small/new; rm small/kept; mv small/kept small/moved; chmod 600 small/kept' >out 2>err
	replayed ro.trace && json 'd["enforced_by_error"]["EROFS"] >= 5' && [ -e "D$dir/small/kept" ] && [ ! -e "D$dir/small/new" ]
	ok $? 'a read-only file system'
	umount small
else
	skip 'a full file system' 'cannot mount one'
	skip 'a read-only file system' 'cannot mount one'
fi

if [ "$(id -u)" -eq 0 ]; then
	chmod 755 .
	mkdir theirs && echo kept >theirs/kept
	"$REPRISE" record -q -o rights.trace -- setpriv --reuid=65534 --regid=65534 --clear-groups \
		sh -c 'echo x >theirs/nope; echo x >theirs/kept; rm theirs/kept; mkdir theirs/d; chmod 777 theirs; mv theirs/kept theirs/b; ln theirs/kept theirs/b' >out 2>err
	replayed rights.trace && json 'd["enforced_by_error"]["EACCES"] >= 4 and d["enforced_by_error"]["EPERM"] >= 1' && [ ! -e "D$dir/theirs/nope" ]
	ok $? 'a user without rights'
else
	skip 'a user without rights' 'needs root to be another user'
fi

echo "1..$nr"
