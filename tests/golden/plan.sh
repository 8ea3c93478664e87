#!/bin/sh
# SPDX-License-Identifier: MIT
# A plan of an older version says what it always said. usage: plan.sh NAME PRINT_PLAN
#
# Until the first release, NAME.plan and NAME.txt follow the format and the table:
#   reprise import --format=exact -o t NAME.src && reprise compile --order=temporal -o NAME.plan t
#   print_plan NAME.plan >NAME.txt
golden=$TOP/tests/golden
. "$TOP/tests/cli/tap.sh"

run 0 check -q "$golden/$1.plan"
ok $? "$1.plan is whole"
"$2" "$golden/$1.plan" >out 2>err && cmp out "$golden/$1.txt" 2>>err
ok $? "$1.plan reads as $1.txt"
for at in 0 40 300 900; do
	# One byte is another: it is refused, or the difference is seen.
	python3 - "$golden/$1.plan" "$at" >bent.plan <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[2]) % len(data)] ^= 0x55
sys.stdout.buffer.write(data)
END
	"$2" bent.plan >out 2>err && cmp -s out "$golden/$1.txt" && break
done
[ "$at" = 900 ] && ! { "$2" bent.plan >out 2>err && cmp -s out "$golden/$1.txt"; }
ok $? 'a bent one does not'
echo "1..$nr"
