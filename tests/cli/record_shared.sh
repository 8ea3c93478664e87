#!/bin/sh
# SPDX-License-Identifier: MIT
# Descriptors that share an open file when the recording begins share one in the replay, too.
. "$TOP/tests/cli/tap.sh"

both='echo one; echo two >&2; echo three; echo four >&2'

# same NAME: a replay of NAME.trace ends with the tree that the trace ended with
same() {
	rm -rf again
	run 0 replay -q --speed=afap --json "$1.trace" again && json 'd["mismatches"] == 0' || return 1
	run 0 verify "$1.trace" again && cmp -s log "again$dir/log"
}

# shared NAME: whether 1 and 2 are one open file in NAME.trace
shared() {
	run 0 show --json -c found_fd "$1.trace" &&
		jsonl '(lambda f: f[1] and f[1] == f[2] and f[0] != f[1])({e["args"]["fd"]: e["args"]["open_file"] for e in d})'
}

for recorder in ptrace auto; do
	"$REPRISE" record -q -f --recorder=$recorder -o r.trace sh -c "$both" </dev/null >log 2>&1
	shared r && same r
	ok $? "$recorder: 2>&1"
	echo zero >log
	"$REPRISE" record -q -f --recorder=$recorder -o r.trace sh -c "$both" </dev/null >>log 2>&1
	shared r && same r && [ "$(head -n 1 log)" = zero ]
	ok $? "$recorder: 2>&1, to be appended to"
	"$REPRISE" record -q -f --recorder=$recorder -o r.trace sh -c "$both" </dev/null >log 2>log
	! shared r && same r
	ok $? "$recorder: two open files of one name"
	"$REPRISE" record -q -f --recorder=$recorder -o r.trace sh -c "($both) & ($both); wait" </dev/null >log 2>&1
	shared r && same r
	ok $? "$recorder: 2>&1, in several processes"
	"$TOP/tests/cli/deny.py" kcmp "$REPRISE" record -q -f --recorder=$recorder -o r.trace sh -c "$both" </dev/null >log 2>&1
	shared r && same r && run 0 check r.trace
	ok $? "$recorder: 2>&1, without kcmp"
	"$TOP/tests/cli/deny.py" kcmp "$REPRISE" record -q -f --recorder=$recorder -o r.trace sh -c "$both" </dev/null >log 2>log
	! shared r && same r
	ok $? "$recorder: two open files, without kcmp"
done

# attach WORDS...: of a program that runs already, by a recorder that the words start
attach() {
	rm -f r.trace ready
	sh -c 'trap "go=1" USR1; : >ready; while [ -z "${go-}" ]; do sleep 0.05; done; echo one; echo two >&2; echo three' </dev/null >log 2>&1 &
	program=$!
	while ! [ -e ready ]; do sleep 0.05; done
	"$@" "$REPRISE" record -q -o r.trace --attach=$program 2>err &
	i=0
	while [ $i -lt 200 ] && grep -q '^TracerPid:	0$' /proc/$program/status; do
		sleep 0.05
		i=$((i + 1))
	done
	kill -USR1 $program
	wait
}
attach env
shared r && same r
ok $? 'attached'
attach "$TOP/tests/cli/deny.py" kcmp
! shared r && run 0 show --ledger r.trace && grep -q 'kcmp is denied' out
ok $? 'attached without kcmp: the ledger says what is not known'

echo "1..$nr"
