#!/bin/sh
# SPDX-License-Identifier: MIT
# The n-th system call of a kind that the recorder makes fails while its agent enters a
# program, for every n: the program does what it does alone, and the trace is intact.
if [ "${SANITIZE:-none}" != none ]; then
	echo "1..0 # SKIP a sanitizer and strace do not go together"
	exit 0
fi
if [ "$(uname -m)" != x86_64 ]; then
	echo "1..0 # SKIP there is no agent for this machine"
	exit 0
fi
if ! strace -o /dev/null -e inject=getpid:error=EIO true 2>/dev/null; then
	echo "1..0 # SKIP no strace here, or ptrace is not allowed"
	exit 0
fi
. "$TOP/tests/cli/tap.sh"

program='echo 1; read line <in; echo $line; exit 7'
echo hello >in
sh -c "$program" >alone

# enter CALL AFTER: fails each of the recorder's calls in turn; the agent enters after so many of the program's
enter() {
	n=0
	while n=$((n + 1)); do
		[ $n -le 400 ] || return 1
		REPRISE_AGENT_AFTER=$2 timeout 60 strace -o log -e trace="$1" -e inject="$1":error=EIO:when=$n \
			"$REPRISE" record -q -f --cache= -o new.trace sh -c "$program" >out 2>err
		status=$?
		grep -q INJECTED log || break
		# Before the program was started there may be a failure, and then it has not run.
		[ $status -eq 2 ] && [ ! -s out ] && [ "$(grep -c '^reprise: record: ' err)" -eq 1 ] && continue
		if [ $status -ne 7 ] || ! cmp -s out alone; then
			echo "# $1 number $n, of $(grep -o '^[a-z0-9_]*([^)]*' log | tail -n 1): status $status" && return 1
		fi
		"$REPRISE" check -q new.trace >out 2>err || [ $? -eq 1 ] || { echo "# $1 number $n" && return 1; }
	done
	[ $n -gt 3 ]
}

for call in pwrite64 process_vm_readv; do
	for after in 0 40; do
		enter $call $after
		ok $? "every $call of the recorder, the agent enters after $after calls of the program"
	done
done

echo "1..$nr"
