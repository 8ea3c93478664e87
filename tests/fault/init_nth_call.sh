#!/bin/sh
# SPDX-License-Identifier: MIT
# The n-th system call of a kind fails, for every n: init makes the tree all the same and exits with
# 0, or it exits with 2 and one line on standard error, and the next init makes it good. The same for
# a repair. verify says what is so, or exits with 2.
if [ "${SANITIZE:-none}" != none ]; then
	echo "1..0 # SKIP a sanitizer and strace do not go together"
	exit 0
fi
if ! command -v strace >/dev/null; then
	echo "1..0 # SKIP no strace here"
	exit 0
fi
if ! strace -o /dev/null -e inject=getpid:error=EIO true 2>/dev/null; then
	echo "1..0 # SKIP ptrace is not allowed"
	exit 0
fi
. "$TOP/tests/cli/memory.sh"
. "$TOP/tests/cli/tap.sh"
umask 022

cat >t.txt <<'END'
tree_entry(tree=initial, path="/d", stat={type=dir, mode=0750, mtime_ns=1000, atime_ns=2000, dev=8:1, ino=5}, flags=LISTED)
tree_entry(tree=initial, path="/d/kept", stat={type=file, mode=0640, size=5, mtime_ns=1000, atime_ns=2000, dev=8:1, ino=11, nlink=2}, content="hello")
tree_entry(tree=initial, path="/d/link", stat={type=file, mode=0640, size=5, mtime_ns=1000, atime_ns=2000, dev=8:1, ino=11, nlink=2})
tree_entry(tree=initial, path="/d/filler", stat={type=file, mode=0444, size=3000, mtime_ns=1000, atime_ns=2000})
tree_entry(tree=initial, path="/d/sym", stat={type=symlink, mtime_ns=1000, atime_ns=2000}, target="kept")
tree_entry(tree=initial, path="/d/fifo", stat={type=fifo, mode=0622, mtime_ns=1000, atime_ns=2000})
tree_entry(tree=final, path="/d", stat={type=dir, mode=0750, dev=8:1, ino=5})
tree_entry(tree=final, path="/d/kept", stat={type=file, mode=0640, size=5}, xattrs=[])
END
make t

spoil() {
	rm -f D/d/sym D/d/link && mkdir -p D/d/sym/below D/d/extra/more && printf HELLO >D/d/kept && echo more >>D/d/filler
}
do_init() {
	rm -rf D
	$tracer "$REPRISE" init -q -J 1 t.trace D
}
do_repair() {
	rm -rf D
	"$REPRISE" init -q -J 1 t.trace D >/dev/null && spoil && $tracer "$REPRISE" init -q -J 1 t.trace D
}
do_verify() {
	$tracer "$REPRISE" verify -q -J 1 t.trace D
}

dump() {
	(cd D && find . -mindepth 1 -path ./.reprise -prune -o -printf '%p %y %m %n %s %T@ %l\n' | sort && cat d/kept d/filler)
}

# judge STATUS: is this how the command at hand may end, and what it left?
judge() {
	case "$command $1" in
	'verify 0') prints "$verified" ;;
	*' 0') dump >dump.now && cmp -s dump.now dump.wanted ;;
	*' 2')
		[ "$(wc -l <err)" -eq 1 ] && grep -q '^reprise: ' err || return 1
		[ "$command" = verify ] && return 0
		"$REPRISE" init -q t.trace D >/dev/null 2>>err && dump >dump.now && cmp -s dump.now dump.wanted
		;;
	*' 127') grep -q 'error while loading shared libraries' err ;;
	*' 134') grep -q '^reprise: out of memory' err ;;
	*) false ;;
	esac
}

# try COMMAND CALL: makes the first, second ... fail until there is none left
try() {
	command=$1
	call=$2
	n=0
	[ "$call" != mmap ] || n=$nr_loader_mmaps
	while :; do
		n=$((n + 1))
		tracer="timeout 10 strace -f --seccomp-bpf -qq -o log -e trace=$call -e inject=$call:error=EIO:when=$n"
		"do_$command" >out 2>err
		status=$?
		grep -q INJECTED log || break
		if ! judge $status; then
			echo "# $command: $call number $n fails: exit status $status" >>err
			grep INJECTED log >>err
			return 1
		fi
	done
	n=$((n - 1))
}

strace -o log -e trace=mmap,munmap "$REPRISE" --version >out 2>err
nr_loader_mmaps=$(sed '/munmap/,$d' log | wc -l)
tracer=
do_init >out 2>err && dump >dump.wanted && do_repair >out 2>err && dump >dump.now && cmp dump.now dump.wanted >>err && do_verify >out 2>err || {
	echo "Bail out! init or verify fails by itself: $(cat err)"
	exit 1
}
verified=$(cat out)
for command in init repair verify; do
	calls='openat openat2 newfstatat pread64 read close mmap clone3'
	[ $command = verify ] ||
		calls="$calls mkdir mkdirat fstatfs flock getdents64 unlinkat linkat symlinkat mknodat pwrite64 write fchmod chmod utimensat renameat syncfs fsync ftruncate flistxattr"
	for call in $calls; do
		try $command $call
		r=$?
		[ $n -eq 0 ] || ok $r "$command: any of $n calls of $call"
	done
done
echo "1..$nr"
