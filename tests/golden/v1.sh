#!/bin/sh
# SPDX-License-Identifier: MIT
# A trace of format version 1 says what it always said, and today's writer still
# writes the same. usage: v1.sh MAKE_V1
#
# Until the first release, v1.trace and v1.txt follow the table:
#   make_v1 v1.trace && reprise show --exact v1.trace >v1.txt
golden=$TOP/tests/golden
. "$TOP/tests/cli/tap.sh"

run 0 check -q "$golden/v1.trace"
ok $? 'v1.trace is whole'
run 0 show --exact "$golden/v1.trace" && cmp out "$golden/v1.txt" 2>err
ok $? 'v1.trace reads as v1.txt'
python3 - "$golden/v1.trace" <<'END'
import struct, sys
data = open(sys.argv[1], "rb").read()
types = set()
at = 0
while at < len(data):
    types.add(data[at + 4])
    at += 40 + struct.unpack_from("<I", data, at + 8)[0]
sys.exit(types != set(range(1, 10)))
END
ok $? 'v1.trace has a block of every type'
"$1" new.trace >out 2>err && run 0 show --exact new.trace && cmp out "$golden/v1.txt" 2>err
ok $? 'a new trace of the same events reads as v1.txt'
run 0 import -q --format=exact -o again.trace "$golden/v1.txt" && run 0 show --exact again.trace &&
	cmp out "$golden/v1.txt" 2>err
ok $? 'v1.txt becomes a trace that reads the same'
echo "1..$nr"
