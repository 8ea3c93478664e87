#!/bin/sh
# SPDX-License-Identifier: MIT
# The n-th system call of a kind fails, for every n: the command does what it should
# all the same and exits with 0, or it exits with 2 and one line on standard error.
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
. "$TOP/tests/cli/tap.sh"

commands='import slice exact show check stat'
calls='openat read pread64 write writev ftruncate close fstat newfstatat mmap lseek unlink pipe2 clone3'

# do_COMMAND runs it; result_COMMAND prints what it must have brought about.
do_import() {
	$tracer "$REPRISE" import -q --format=exact --force -o new.trace a.txt
}
result_import() {
	"$REPRISE" show --exact new.trace
}
do_slice() {
	$tracer "$REPRISE" slice -q --force -o new.trace a.trace
}
result_slice() {
	"$REPRISE" show --exact new.trace
}
do_exact() {
	$tracer "$REPRISE" show --exact a.trace
}
result_exact() {
	cat out
}
do_show() {
	$tracer "$REPRISE" show --strings=100 --data a.trace
}
do_check() {
	$tracer "$REPRISE" check -q a.trace
}
do_stat() {
	$tracer "$REPRISE" stat -q a.trace
}
result_show() {
	cat out
}
result_check() {
	cat out
}
result_stat() {
	cat out
}

# judge STATUS: is this how the command at hand may end?
judge() {
	case $1 in
	0) "result_$command" >result 2>&1 && cmp -s result "$command.wanted" ;;
	2) [ "$(wc -l <err)" -eq 1 ] && grep -q '^reprise: ' err ;;
	# Before main() it is the loader that fails.
	127) grep -q 'error while loading shared libraries' err ;;
	# Without memory there is nothing but to say so and stop.
	134) [ "$call" = mmap ] && grep -q '^reprise: out of memory' err ;;
	*) false ;;
	esac
}

# try COMMAND CALL: makes the first, second ... fail until there is none left
try() {
	command=$1
	call=$2
	n=0
	# Without memory the loader crashes; its work ends with the first munmap.
	[ "$call" != mmap ] || n=$nr_loader_mmaps
	while :; do
		n=$((n + 1))
		tracer="timeout 10 strace -f --seccomp-bpf -qq -o log -e trace=$call -e inject=$call:error=EIO:when=$n"
		rm -f new.trace
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

for command in $commands; do
	tracer=
	"do_$command" >out 2>err && "result_$command" >"$command.wanted" || {
		echo "Bail out! $command fails by itself: $(cat err)"
		exit 1
	}
done
for command in $commands; do
	for call in $calls; do
		try $command $call
		ok $? "$command: any of $n calls of $call"
	done
done
echo "1..$nr"
