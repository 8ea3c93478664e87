#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise record: what it says and leaves where something is denied to it.
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
echo "1..$nr"
