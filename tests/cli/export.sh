#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise export
. "$TOP/tests/cli/tap.sh"

run 0 show --exact a.trace && cp out exact
run 0 export --format=exact a.trace && cmp -s out exact
ok $? 'exact: what show --exact prints'
run 0 export --format=exact -o a.exact a.trace && cmp -s a.exact exact && [ ! -s out ]
ok $? 'to a file'
run 2 export --format=exact -o a.exact a.trace && says 'a.exact is there already' && cmp -s a.exact exact
ok $? 'an existing file is not replaced'
echo longer >>a.exact
run 0 export --format=exact -f -o a.exact a.trace && cmp -s a.exact exact
ok $? 'unless that is asked for'
run 2 export a.trace && says 'name the format'
ok $? 'a format must be named'
run 2 export --format=exact -o none/a.exact a.trace && says 'cannot create none/a.exact'
ok $? 'a file that cannot be made'
if [ -w /dev/full ]; then
	run 2 export --format=exact -f -o /dev/full a.trace && says 'cannot write /dev/full'
	ok $? 'a full disk'
else
	nr=$((nr + 1))
	echo "ok $nr - a full disk # SKIP no /dev/full"
fi

# Listings of the initial tree.
cat >t.txt <<'END'
# reprise exact 1
tree_entry(tree=initial, path="/b/f", stat={type=file, mode=0644, size=70})
tree_entry(tree=initial, path="/a", stat={type=dir, mode=0755})
tree_entry(tree=initial, path="/a-b", stat={type=file, size=1})
tree_entry(tree=initial, path="/a/l", stat={type=symlink}, target="../b/f")
tree_entry(tree=initial, path="/a/hash#", stat={type=file, size=1})
tree_entry(tree=initial, path="/a/line\n", stat={type=file, size=1})
tree_entry(tree=initial, path="/a/to", stat={type=symlink}, target="x#y")
tree_entry(tree=initial, path="/a/pipe", stat={type=fifo})
tree_entry(tree=initial, path="/a/none", flags=MISSING)
tree_entry(tree=initial, path="/proc/cpuinfo", stat={type=file, size=0})
tree_entry(tree=initial, path="/process", stat={type=dir})
tree_entry(tree=final, path="/later", stat={type=dir})
END
make t
run 0 export --format=artc-init t.trace && prints 'dir#/
dir#/a
dir#/b
dir#/process
file#/a-b#1
file#/b/f#70
symlink#/a/l#../b/f' && says '6 things that the format cannot say were left out, 7 written'
ok $? 'artc-init: what it can say, sorted, with all parents'
cp out t.init
run 0 import -o u.trace t.init && run 0 export --format=artc-init u.trace && cmp -s out t.init
ok $? 'and it is read back'
run 0 import -o v.trace "$TOP/tests/samples/artc/strace-artc-accepted.init" &&
	run 0 export --format=artc-init v.trace && cmp -s out "$TOP/tests/samples/artc/strace-artc-accepted.init"
ok $? 'a listing that the original accepts is written as it was'

cat >e.txt <<'END'
# reprise exact 1
100/100 #1 1000+800 openat(dirfd=AT_FDCWD, path="in.txt", flags=O_RDONLY|O_CREAT, mode=0644) = 3
100/100 #2 2000+100 fcntl_getfl(fd=3) = 0x8000
100/100 #4 3000+100 clone(flags=CLONE_VM|SIGCHLD, stack=0x10, child_tid=0x20) = 200
200/200 #3 3100+0 thread_start(parent=100, clone_flags=CLONE_VM|SIGCHLD, how=clone) {ppid=100}
200/200 #5 3200+10 read(fd=3, buf=&0x10, count=9) = -1 ERESTARTSYS {flags=RESTARTED, ppid=100}
200/200 #6 3300+0 signal(signal=SIGCHLD, code=1, sender=7, uid=0) {ppid=100}
200/200 #7 3400+10 read(fd=3, buf="a\"\x00b", count=9) = 4 {ppid=100}
200/200 #8 3500+0 exit_group(status=3) = ? {ppid=100}
200/200 #9 3600+0 thread_exit(status=3) {ppid=100}
100/100 #10 4000+10 writev(fd=1, iov=[{iov_base="ab", iov_len=2}], iovcnt=1) = -1 EPIPE
100/100 #11 5000+0 thread_exit(signal=SIGPIPE, core_dumped=0)
END
make e
run 0 export --format=strace -f -o e.strace e.trace && [ ! -s err ] &&
	grep -q '^100   1000000000.000001000 openat(AT_FDCWD, "in.txt", O_RDONLY|O_CREAT, 0644) = 3 <0.000000800>$' e.strace &&
	grep -q 'clone(child_stack=0x10, flags=CLONE_VM|SIGCHLD, child_tidptr=0x20) = 200' e.strace &&
	grep -q 'fcntl(3, F_GETFL) = 0x8000 (flags O_RDONLY|O_LARGEFILE)' e.strace && grep -q '+++ killed by SIGPIPE +++' e.strace
ok $? 'strace: lines as it prints them'
run 0 import --strict -o e2.trace e.strace && "$REPRISE" slice -f -c '!thread_start' -o e3.trace e2.trace >out 2>err &&
	"$REPRISE" slice -f -c '!thread_start' -o e4.trace e.trace >out 2>err && run 0 diff --ignore=unknown e4.trace e3.trace
ok $? 'strace: and back'
run 0 export --format=strace -f -o e5.strace e2.trace && sed 's/[0-9]*\.[0-9]*//' e.strace >e1 && sed 's/[0-9]*\.[0-9]*//' e5.strace | cmp -s - e1
ok $? 'strace: there again, the same text'

cat >x.txt <<'END'
# reprise exact 1
100/100 #1 1000+100 getsockname(sockfd=3, addr={family=AF_UNIX, path="/s"}, addrlen=[128], addrlen_after=[5]) = 0
100/100 #2 2000+100 sendfile(out_fd=4, in_fd=3, offset=[5], count=10, offset_after=[15]) = 10
100/100 #3 3000+100 poll(fds=[{fd=3, events=POLLIN, revents=0}, {fd=4, events=POLLIN, revents=POLLHUP}], nfds=2, timeout=9) = 1
100/100 #4 4000+100 ppoll(fds=[{fd=3, events=POLLIN, revents=0}], nfds=1, tmo_p={tv_sec=0, tv_nsec=5}, sigmask=NULL, sigsetsize=8, tmo_p_after={tv_sec=0, tv_nsec=0}) = 0
100/100 #5 5000+100 select(nfds=6, readfds=[3, 5], writefds=[4], exceptfds=NULL, timeout={tv_sec=1, tv_usec=0}, readfds_after=[5], writefds_after=[], exceptfds_after=NULL, timeout_after={tv_sec=0, tv_usec=7}) = 1
100/100 #6 6000+100 connect(sockfd=3, addr={family=AF_INET, port=80, address="127.0.0.1"}, addrlen=16) = 0
100/100 #7 7000+100 connect(sockfd=3, addr={family=AF_INET6, port=80, address="::1"}, addrlen=28) = -1 EPERM {flags=INJECTED}
100/100 #8 8000+100 clone(flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 101
100/101 #9 8100+0 thread_start(parent=100, clone_flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, how=clone)
100/101 #10 9000+500 execve(path="/bin/true", argv=["true"], envp=[]) = 0
100/100 #11 9100+0 thread_exit(status=0)
100/100 #12 9500+0 thread_start(parent=101, clone_flags=0, how=clone)
100/100 #13 9500+0 exec(former_tid=101)
100/100 #14 9900+10 close(fd=3) = 0
END
make x
run 0 export --format=strace -o x.strace x.trace && grep -q '{sa_family=AF_UNIX, sun_path="/s"}, \[128 => 5\]) = 0 <' x.strace &&
	grep -q '\[5\] => \[15\], 10) = 10' x.strace && grep -q 'events=POLLIN}\], 2, 9) = 1 (\[{fd=4, revents=POLLHUP}\]) <' x.strace &&
	grep -q ' = 0 (Timeout) <' x.strace && grep -q ' = 1 (in \[5\], left {tv_sec=0, tv_usec=7}) <' x.strace &&
	grep -q 'sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}' x.strace && grep -q '(INJECTED) <' x.strace
ok $? 'strace: what came back, as it prints it'
grep -q '^101 .* execve("/bin/true", \["true"\], \[\] <unfinished ...>$' x.strace && grep -q '^100 .* +++ superseded by execve in pid 101 +++$' x.strace &&
	grep -q '^100 .* <... execve resumed>) = 0 <0.000000500>$' x.strace && ! grep -q exited x.strace
ok $? 'strace: an execve that goes on in the leader'
run 0 import --strict -o x2.trace x.strace && "$REPRISE" slice -f -c '!thread_start,!exec,!close' -o x3.trace x2.trace >out 2>err &&
	"$REPRISE" slice -f -c '!thread_start,!exec,!close' -o x4.trace x.trace >out 2>err && run 0 diff --ignore=unknown x4.trace x3.trace &&
	run 0 show --exact x2.trace && grep -q 'thread_start(parent=101,' out && grep -q ' exec(former_tid=101)' out
ok $? 'strace: all of it comes back'

run 0 show --exact a.trace && cp out exact
run 0 export --format=exact -o - a.trace && cmp -s out exact && [ ! -e - ]
ok $? 'to standard output by name'
for command in 'compile' 'slice' 'check --salvage'; do
	run 2 $command -o - a.trace && says 'cannot be written to standard output' && [ ! -e - ]
	ok $? "$command: not to standard output"
done

echo "1..$nr"
