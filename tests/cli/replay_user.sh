#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise replay of what a user recorded who may not look everywhere, by himself and by root.
. "$TOP/tests/cli/tap.sh"
umask 022
trap 'chmod -R u+rwX "$dir"; rm -rf "$dir"' EXIT

if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
	echo '1..0 # SKIP needs root and setpriv'
	exit 0
fi
chmod 755 .
cp "$REPRISE" reprise || exit 1
mkdir -m 700 secret
mkdir own
chown nobody own
REPRISE=$dir/reprise

# as_user COMMAND...: in his own directory; what it prints goes where he may not look
as_user() {
	(cd own && setpriv --reuid=nobody --clear-groups env HOME="$dir/own" PATH="$dir/secret/bin:/usr/bin:/bin" "$@") \
		>secret/out 2>secret/err </dev/null
	status=$?
	cp secret/out out
	cp secret/err err
	return $status
}

# A search along PATH is denied, what was to be printed lies in no tree.
as_user "$REPRISE" record -q -o trace -- sh -c 'echo a >f1; cp f1 f2; sync f2; echo done; cat f1; test -w /etc/passwd; ls ../secret' ||
	[ "$(wc -l <out)" -eq 2 ]
ok $? 'a user records in a directory of his own'

as_user mkdir D
as_user "$REPRISE" replay --json trace D && json 'd["mismatches"] == 0 and d["end"] == "complete"'
ok $? 'he replays it without a mismatch'
as_user "$REPRISE" verify trace D
ok $? 'and gets the final tree'

run 0 replay --json own/trace E && json 'd["mismatches"] == 0 and d["end"] == "complete"'
ok $? 'root, to whom nothing is denied, replays it without a mismatch'
json 'd["enforced_by_error"]["EACCES"] > 0'
ok $? 'what was denied is counted as enforced'
run 0 verify own/trace E
ok $? 'and gets the final tree as root'

echo "1..$nr"
