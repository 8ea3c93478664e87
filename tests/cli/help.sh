#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise help, and what all commands have in common
. "$TOP/tests/cli/tap.sh"

run 0 help && grep -q '^usage: reprise' out
ok $? 'an overview'
run 2 && grep -q '^usage: reprise' err
ok $? 'without a command the overview is an error'
run 0 --version && grep -Eq '^reprise [0-9]+\.[0-9]+\.[0-9]+$' out
ok $? 'version'
run 2 shwo && says "unknown command 'shwo'; did you mean 'show'?"
ok $? 'a mistyped command'
run 2 show --jsno a.trace && says "unknown option '--jsno'; did you mean '--json'?"
ok $? 'a mistyped option'
run 2 show && says 'show: '
ok $? 'a missing operand'

commands=$(sed -n 's/^COMMAND(\(.*\))$/\1/p' "$TOP/src/cli/commands.def")
for c in $commands; do
	run 0 "$c" -h && cp out dash_h && run 0 help "$c" && cmp -s out dash_h && [ ! -s err ]
	ok $? "$c -h equals help $c"
	grep -q "^.BR reprise\\\\-$c (1)" "$TOP/doc/man/reprise.1.in"
	ok $? "the man page of reprise names $c"
	# The man page's synopsis without its fonts is the usage that -h prints.
	"$REPRISE" help --man-synopsis "$c" | sed 's/\\f[BIR]//g; s/\\-/-/g; /^\./d' >synopsis
	sed -n '1,/^$/s/^\(usage:\|      \) //p' dash_h | cmp -s - synopsis
	ok $? "$c -h equals the synopsis of its man page"
	grep -q '^@SYNOPSIS@$' "$TOP/doc/man/reprise-$c.1.in" && grep -q '^@OPTIONS@$' "$TOP/doc/man/reprise-$c.1.in"
	ok $? "$c has a man page made from its table"
done

"$REPRISE" help --completion bash >completion
bash -n completion 2>err && for c in $commands; do grep -q "$c" completion || exit 1; done
ok $? 'bash completion knows every command'

if [ -w /dev/full ]; then
	"$REPRISE" show a.trace >/dev/full 2>err
	[ $? -eq 2 ] && says 'cannot write to standard output: No space left on device'
	ok $? 'a full disk at standard output'
else
	nr=$((nr + 1))
	echo "ok $nr - a full disk at standard output # SKIP no /dev/full"
fi
"$REPRISE" show a.trace 2>err | head -n 1 >out
lines 1 && [ ! -s err ]
ok $? 'a reader that goes away'

REPRISE_PROGRESS=1 "$REPRISE" check a.trace >out 2>err && [ "$(head -n 1 out)" = 'a.trace: intact and complete' ]
ok $? 'progress does not get into the result'

echo "1..$nr"
