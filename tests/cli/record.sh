#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise record: where something is denied to it, and what it says of a recording.
. "$TOP/tests/cli/tap.sh"

deny=$TOP/tests/cli/deny.py

# denied CALLS WORDS...: records the words where the calls fail
denied() {
	calls=$1
	shift
	rm -f r.trace
	"$deny" "$calls" "$REPRISE" record -o r.trace "$@" >out 2>err
}

# entries FILE: what its trees have below d
entries() {
	"$REPRISE" show --exact "$1" | grep -o '^tree_entry(tree=[a-z]*, path="[^"]*/d[/"].*size=[0-9]*\|^tree_entry(.*/d/.*type=symlink' | sort -u
}

mkdir d && echo hello >d/f && ln -s f d/link && echo old >d/changed
for recorder in ptrace auto; do
	for error in EPERM ENOSYS EACCES; do
		echo old >d/changed
		rm -f s.trace
		run 0 record --recorder=$recorder -o s.trace sh -c 'read a <d/link; read a <d/f; echo d/*; echo new >d/changed'
		echo old >d/changed
		denied statx:$error --recorder=$recorder sh -c 'read a <d/link; read a <d/f; echo d/*; echo new >d/changed' &&
			entries s.trace >with &&
			entries r.trace >without &&
			[ "$(wc -l <with)" -ge 8 ] && cmp with without >>out && run 0 check r.trace &&
			grep -q complete out && rm -rf again && run 0 replay -q --speed=afap r.trace again &&
			run 0 verify r.trace again
		ok $? "$recorder: statx fails with $error"
	done
done
# A filter cannot be had: calls are recorded all the same, by ptrace, and the summary says why.
if [ "$(uname -m)" = x86_64 ]; then # else there is no agent
	for calls in seccomp:ENOSYS,prctl seccomp,prctl; do
		denied $calls --summary=s -f sh -c 'echo hello; exit 3'
		[ $? -eq 3 ] && grep -q hello out && grep -q 'no agent: it needs a seccomp filter, which is refused' err &&
			run 0 check r.trace && run 0 show --json -c write r.trace && jsonl 'len(d) == 1'
		ok $? "auto: $calls"
		denied $calls --calls=write -f sh -c 'echo hello; exit 3'
		[ $? -eq 3 ] && run 0 show --json r.trace && jsonl '[e["call"] for e in d if e["call"] in ("write", "read", "openat")] == ["write"]'
		ok $? "auto, chosen calls: $calls"
		denied $calls --recorder=inproc sh -c 'echo hello; exit 3'
		[ $? -eq 2 ] && says 'it needs a seccomp filter, which is refused' && [ ! -e r.trace ]
		ok $? "inproc: $calls"
	done
	denied seccomp --recorder=inproc sh -c 'echo hello; exit 3'
	[ $? -eq 3 ] && run 0 check r.trace && run 0 show --json -c write r.trace && jsonl 'len(d) == 1'
	ok $? 'inproc: seccomp is denied, but prctl is not'
fi

# summary EXPRESSION: true of the JSON document d in the file s
summary() {
	cp s out && json "$1"
}

# What the program exits with, or dies by, counts; but --strict comes first.
lost='--max-size=100k'
run 3 record -q -f --strict --summary=s -o r.trace sh -c 'exit 3' &&
	summary 'd["complete"] and d["exit_status"] == 3 and d["signal"] is None and d["trace"] == "r.trace" and d["threads"] == 1' &&
	summary 'd["events"] > 10 and d["elapsed_ns"] > 0 and not any(d["ledger"].values()) and d["ended_early"] is None' &&
	summary "d['bytes'] == $(stat -c %s r.trace)" && [ "$(stat -c %a s)" = 600 ]
ok $? 'a complete recording'
run 3 record -q -f --summary=s $lost -o r.trace sh -c 'exit 3' && says 'the trace ends before the program' &&
	summary 'not d["complete"] and d["exit_status"] == 3 and d["ended_early"] and sum(d["ledger"].values()) > 0'
ok $? 'an incomplete one keeps the exit status'
run 1 check r.trace && grep -q 'its ledger says that something is missing' out
ok $? 'and check says what it is'
run 2 record -q -f --strict --summary=s $lost -o r.trace sh -c 'exit 3' && grep -q 'r.trace is incomplete' err &&
	summary 'not d["complete"] and d["exit_status"] == 3'
ok $? 'with --strict it exits with 2'
run 137 record -q -f --summary=s -o r.trace sh -c 'kill -9 $$' && summary 'd["complete"] and d["exit_status"] is None and d["signal"] == 9'
ok $? 'a program that a signal kills'
run 2 record -q -f --strict $lost -o r.trace sh -c 'kill -9 $$'
ok $? 'with --strict, in an incomplete recording'
run 0 record -q -f --strict --summary=s --calls=openat -o r.trace true && summary 'd["complete"] and d["ledger"]["FILTERED"] == 1'
ok $? 'what is left out on request is not missing'
run 2 record -q -f --strict --summary=s --file-mode=640 -o r.trace sh -c 'rm r.trace' && summary 'not d["complete"] and d["trace_gone"]' && [ "$(stat -c %a s)" = 640 ]
ok $? 'a trace that was removed'

echo mine >s
run 2 record -q --summary=s -o new.trace true && says '-f replaces it' && [ "$(cat s)" = mine ] && [ ! -e new.trace ]
ok $? 'a summary that is there already stays'
run 2 record -q --summary=none/s -o new.trace touch made && says 'none/s' && [ ! -e made ] && [ ! -e new.trace ]
ok $? 'a summary that cannot be created: the program does not run'
run 2 record -q --summary=new -o new.trace ./none && [ ! -e new ]
ok $? 'a program that cannot run leaves none'
if [ -c /dev/full ] && ln -s /dev/full full 2>/dev/null; then
	run 2 record -q -f --summary=full -o r.trace true && says 'full is not a regular file'
	ok $? 'a summary is a regular file'
fi

run 2 record -q -f --attach=1 --attach=2 -o r.trace && says '--attach may be given once only'
ok $? 'two processes are not attached to at once'

echo "1..$nr"
