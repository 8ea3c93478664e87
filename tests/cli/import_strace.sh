#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise import --format=strace: what the samples (tests/import) do not have.
. "$TOP/tests/cli/tap.sh"

cat >s.txt <<'END'
100 1700000000.000001 execve("/bin/x", ["x"], 0x7ffe /* 3 vars */) = 0 <0.000100>
100 1700000000.000200 read(3, "abc"..., 100) = 50 <0.000010>
100 1700000000.000300 write(1, "h\1\0212\x41\"\\", 7) = 7 <0.000010>
END
run 0 import s.txt && prints 'import: 3 lines, 5 events, 0 not understood -> s.txt.trace'
ok $? 'the format is recognized'
run 0 show --exact s.txt.trace && grep -q 'buf="abc"/50, count=100' out && grep -q 'buf="h\\x01\\x112A\\"\\\\", count=7' out &&
	grep -q 'meta(key="start_realtime_ns", value="1700000000000001000")' out && grep -q 'loss(kind=DATA_TRUNCATED,.*count=1, bytes=47' out
ok $? 'cut data has its length, and a ledger entry'

cat >bad.txt <<'END'
100 read(3, "a", 1) = 1
some words of the program
100 frobnicate(3) = 0
100 open("x", O_FROB|O_RDWR) = 3
100 open("y", O_RDWR) = three
<... read resumed>"", 1) = 0
100 syscall_0x1ab(0x1, 0x2) = -1 ENOSYS (Function not implemented)
END
run 2 import bad.txt && grep -q "bad.txt:2: not a line of strace: 'some words" err && grep -q "bad.txt:3: unknown call 'frobnicate'" err &&
	grep -q "bad.txt:4: open: not understood: 'O_FROB|O_RDWR'" err && grep -q 'bad.txt:5: the result is no number' err &&
	grep -q 'bad.txt:6: the first part' err && grep -q '7 lines, 4 events, 4 not understood, 1 values' out
ok $? 'what is not understood is counted and shown'
run 0 show -c unknown_call --json bad.txt.trace && jsonl 'd[0]["args"]["nr"] == 427 and d[0]["args"]["a1"] == 2 and d[0]["errno"] == "ENOSYS"'
ok $? 'a call without a name keeps its number'
run 2 import --strict -f bad.txt && says 'bad.txt:2: not a line'
ok $? '--strict'

printf '\033[1m100 \033[33mread\033[0m(3, "a", 1) = 1\n100 close(3) = 0\n' >colour.txt
run 0 import --format=strace colour.txt && grep -q '2 lines, 3 events, 0 not' out
ok $? 'colours'
printf '100 openat(dfd=AT_FDCWD, filename="x", flags=O_RDONLY) = 3\n' >names.txt
run 0 import names.txt && run 0 show --exact names.txt.trace && grep -q 'openat(dirfd=AT_FDCWD, path="x", flags=O_RDONLY) = 3' out
ok $? 'names of arguments (-N)'
printf '100 23:59:59.900000 close(3) = 0\n100 00:00:00.100000 close(4) = 0\n' >night.txt
run 0 import night.txt && run 0 show --json night.txt.trace && jsonl 'd[-1]["enter_ns"] == 200000000'
ok $? 'midnight'
cat >clones.txt <<'END'
20 1700000000.0 close(9) = 0 <0.1>
10 1700000000.0 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
20 1700000000.1 clone(child_stack=0x1, flags=CLONE_VM|CLONE_THREAD|CLONE_SIGHAND <unfinished ...>
30 1700000000.2 close(1) = 0 <0.1>
31 1700000000.3 close(2) = 0 <0.1>
20 1700000000.5 <... clone resumed>) = 31 <0.4>
10 1700000000.6 <... clone resumed>) = 30 <0.6>
END
run 0 import clones.txt && run 0 show --exact clones.txt.trace && grep -q '^30/30 .* close(fd=1) = 0 {ppid=10' out && grep -q '^20/31 .* close(fd=2) = 0' out
ok $? 'whose child it is comes out when the clone ends'

printf '100 openat(AT_FDCWD</a/\\74b\\76>, "x", O_RDONLY) = 3</a/\\74b\\76/x>\n' >cwd.txt
run 0 import cwd.txt && run 0 show --exact cwd.txt.trace && grep -q 'found_state(cwd="/a/<b>")' out && grep -q 'meta(key="cwd", value="/a/<b>")' out
ok $? 'the directory at the start, where -y tells it'

cat >after.txt <<'END'
100 poll([{fd=3, events=POLLIN}, {fd=4, events=POLLOUT}, {fd=5, events=POLLIN}], 3, 9) = 2 ([{fd=4, revents=POLLOUT}, {fd=5, revents=POLLHUP}])
100 poll([{fd=3, events=POLLIN}], 1, 0) = 0 (Timeout)
100 poll([{fd=3, events=POLLIN}], 1, 0) = 1
100 ppoll([{fd=3, events=POLLIN}], 1, {tv_sec=1, tv_nsec=0}, NULL, 8) = 1 ([{fd=3, revents=POLLIN}], left {tv_sec=0, tv_nsec=7})
100 select(6, [3 5], [4], NULL, {tv_sec=1, tv_usec=0}) = 2 (in [5], out [4], left {tv_sec=0, tv_usec=6})
100 select(6, [3], NULL, [3], NULL) = 0 (Timeout)
100 copy_file_range(3, NULL, 4, [7], 9, 0) = 9
100 sendfile(4, 3, [5] => [15], 10) = 10
100 recvfrom(7, "x", 10, 0, {sa_family=AF_INET, sin_port=htons(4), sin_addr=inet_addr("127.0.0.1")}, [28 => 16]) = 1
100 recvfrom(7, "x", 10, 0, {sa_family=AF_INET, sin_port=htons(4), sin_addr=inet_addr("127.0.0.1")}, [12]) = 1
END
run 0 import --strict after.txt && run 0 show --exact after.txt.trace &&
	grep -q 'poll(fds=\[{fd=3, events=POLLIN, revents=0}, {fd=4, events=POLLOUT, revents=POLLOUT}, {fd=5, events=POLLIN, revents=POLLHUP}\]' out &&
	grep -q 'poll(fds=\[{fd=3, events=POLLIN, revents=0}\]' out && grep -q 'poll(fds=\[{fd=3, events=POLLIN}\]' out &&
	grep -q 'revents=POLLIN}\], .*tmo_p_after={tv_sec=0, tv_nsec=7}' out
ok $? 'what polling found'
grep -q 'readfds_after=\[5\], writefds_after=\[4\], exceptfds_after=NULL, timeout_after={tv_sec=0, tv_usec=6}' out &&
	grep -q 'readfds_after=\[\], writefds_after=NULL, exceptfds_after=\[\], timeout_after=NULL' out
ok $? 'what selecting found'
grep -q 'off_in_after=NULL, off_out_after=\[16\]' out && grep -q 'offset=\[5\], .*offset_after=\[15\]' out && grep -q 'addrlen_after=\[16\]' out && grep -q 'addrlen_after=\[12\]' out
ok $? 'numbers that the call changed'
cat >holes.txt <<'END'
100 pwritev2(3, [{iov_base="ab", iov_len=2}], 1, 100, RWF_DSYNC) = 2
100 futex(0x10, FUTEX_WAIT_BITSET_PRIVATE, 5, NULL, 0x7) = 0
100 futex(0x20, FUTEX_LOCK_PI, {tv_sec=3, tv_nsec=0}) = 0
100 pwritev2(0x3, 0x7f, 0x1, 0x64, 0, 0x2) = 0x2
END
run 0 import --strict holes.txt && run 0 show --exact holes.txt.trace && grep -q 'offset=100, flags=RWF_DSYNC) = 2' out &&
	grep -q 'val=5, timeout=NULL, val3=.*) = 0' out && grep -q 'timeout={tv_sec=3, tv_nsec=0}' out &&
	grep -q 'fd=3, iovcnt=1, offset=100, flags=RWF_DSYNC) = 2' out
ok $? 'registers without a meaning, which strace leaves out'

cat >found.txt <<'END'
100 read(3</in\x20a>, "abc", 3) = 3
100 read(3</in\x20a>, "def", 3) = 3
100 openat(AT_FDCWD</>, "/new", O_RDWR|O_CREAT|O_EXCL, 0644) = 4</new>
100 write(4</new>, "abc", 3) = 3
100 pipe([5<pipe:[1]>, 6<pipe:[1]>]) = 0
100 write(6<pipe:[1]>, "x", 1) = 1
100 write(1</dev/null<char 1:3>>, "x", 1) = 1
100 openat(7</d>, "f", O_RDONLY) = 8</d/f>
100 fork() = 101
101 read(5<pipe:[1]>, "x", 1) = 1
101 write(2<pipe:[9]>, "x", 1) = 1
101 fsync(9<TCP:[1->2]>) = -1 EINVAL (Invalid argument)
101 close(10<anon_inode:[eventfd]>) = 0
END
run 0 import --strict found.txt && run 0 show --exact -c found_fd found.txt.trace && sed 's/^\([0-9/]*\) .* \(found_fd(.*)\).*/\1 \2/' out | grep found_fd | sort >found &&
	printf '%s\n' '100/100 found_fd(fd=3, path="/in a", offset=0)' '100/100 found_fd(fd=1, path="/dev/null", mode=S_IFCHR|0666)' \
		'100/100 found_fd(fd=7, path="/d", flags=O_RDONLY|O_DIRECTORY, mode=S_IFDIR|0755)' \
		'101/101 found_fd(fd=2, path="pipe:[9]", mode=S_IFIFO|0666)' \
		'101/101 found_fd(fd=9, path="TCP:[1->2]", mode=S_IFSOCK|0666)' | sort | cmp -s - found
ok $? 'what was open before is told by -y, once, before it is used'
mkdir target2
run 0 replay --json found.txt.trace target2 && json 'd["mismatches"] == 0' && [ -s 'target2/in a' ] && [ -e target2/d/f ]
ok $? 'and stands for itself at replay'

printf '     0.000000 close(3) = 0\n     0.000010 close(4) = 0\n' >r.100
cp r.100 r.101
run 2 import --format=strace -o r.trace r.100 r.101 && says 'r.100: its times are those since the line before' && says 'trace with -ttt' && [ ! -e r.trace ] &&
	run 0 import --format=strace r.100
ok $? 'files of -r cannot be merged'

mkdir -p t/d && echo hello >t/d/f && ln -s d/f t/l && : >'t/#'
sh "$TOP/tools/list-tree" t >list 2>err
[ $? -eq 1 ] && grep -q 'left out: .*/t/#' err && grep -qx "file#$(pwd -P)/t/d/f#6" list && grep -qx "symlink#$(pwd -P)/t/l#d/f" list
ok $? 'list-tree lists a tree, and says what it cannot list'
run 0 import -f --init=list s.txt && run 0 show --tree=initial s.txt.trace && grep -q 'path="/.*/t/d/f", stat={type=file, size=6' out
ok $? 'a listing gives the initial tree'

# What was in /in is not known: what was read of it cannot be verified, until the trace has written it.
cat >unknown.txt <<'END'
100 openat(AT_FDCWD, "/in", O_RDWR) = 3
100 pread64(3, "what nobody knows", 17, 0) = 17
100 pread64(3, "what nobody knows", 17, 1000) = 17
100 pwrite64(3, "written", 7, 10) = 7
100 pread64(3, "written", 7, 10) = 7
100 pread64(3, "rittens", 7, 11) = 7
100 openat(AT_FDCWD, "/out", O_RDWR|O_CREAT|O_EXCL, 0644) = 4
100 copy_file_range(3, [0], 4, [0], 20, 0) = 20
100 pread64(4, "what", 4, 0) = 4
100 pread64(4, "writ", 4, 10) = 4
100 write(4, "0123456789", 10) = 10
100 pread64(4, "234", 3, 2) = 3
100 pwrite64(4, "cut"..., 10, 20) = 10
100 pread64(4, "t of", 4, 22) = 4
100 ftruncate(3, 0) = 0
100 write(3, "new", 3) = 3
100 pread64(3, "new", 9, 0) = 3
END
mkdir target
run 0 import --strict unknown.txt && run 0 compile --json unknown.txt.trace && json 'd["unverifiable"] == 6' &&
	run 0 replay --json unknown.txt.trace target && json 'd["mismatches"] == 0 and d["unverifiable_reads"] == 6 and d["verified_results"] == 3'
ok $? 'what was read of bytes that nobody knows is not verified, all else is'
run 0 replay unknown.txt.trace target && grep -q '^mismatches *0 of .* verified; 6 reads of bytes that the trace does not tell$' out
ok $? 'and the report says so'
sed 's/"234"/"567"/' unknown.txt >wrong.txt
run 0 import --strict wrong.txt && run 1 replay wrong.txt.trace target && grep -q '^mismatches *1 of .*; 1 gave back other data; 6 reads' out
ok $? 'bytes that the trace wrote are verified as before'

echo "1..$nr"
