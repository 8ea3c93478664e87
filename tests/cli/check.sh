#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise check
. "$TOP/tests/cli/tap.sh"

run 0 check a.trace && grep -q '^a.trace: intact and complete$' out && [ ! -s err ]
ok $? 'a trace that is whole'
run 0 check --json a.trace && json 'd["ok"] and d["intact"] and d["closed"] and d["bad_blocks"] == 0
	and d["lost"] == 0 and d["events"] == 14 and d["threads"] == 2 and d["first_fault"] is None'
ok $? 'as JSON'

echo '100 read(3, "abc"..., 100) = 50' >cut.txt
run 0 import -o cut.trace cut.txt && run 0 check cut.trace && grep -q '^cut.trace: intact, with all events; ' out
ok $? 'a trace without some data'
run 0 check --json cut.trace && json 'd["ok"] and d["intact"] and not d["complete"] and d["ledger"] == 1' &&
	run 0 stat --json cut.trace && json 'not d["complete"]' && run 0 check --json a.trace && json 'd["complete"]'
ok $? 'is not complete, and stat says so too'

shorten a.trace 7
run 2 check --json a.trace.cut && says 'a.trace.cut: offset' && json 'not d["ok"] and not d["closed"] and d["bad_blocks"] == 1'
ok $? 'cut within its last block'
unclose a.trace
run 2 check --json a.trace.open && says 'offset' && json 'not d["ok"] and not d["closed"] and d["bad_blocks"] == 0 and d["events"] == 14'
ok $? 'not closed'

# A byte in the middle of the first event block.
python3 - <<'END'
import struct
data = bytearray(open("a.trace", "rb").read())
at = 0
while data[at + 4] != 4:  # BLOCK_EVENTS
    at += 40 + struct.unpack_from("<I", data, at + 8)[0]
data[at + 60] ^= 4
open("flip.trace", "wb").write(data)
open("where", "w").write(str(at))
END
run 2 check --json flip.trace && says "flip.trace: offset $(cat where): " && json 'd["bad_blocks"] == 1 and not d["ok"]'
ok $? 'a flipped bit is found, with its offset'
run 2 show flip.trace && says "flip.trace: offset $(cat where): "
ok $? 'and stops other commands'

run 0 check --salvage -o saved.trace flip.trace && run 1 check --json saved.trace &&
	json 'd["intact"] and not d["ok"] and d["events"] == 3 and d["ledger"] > 0'
ok $? 'what is left is saved, and the ledger says what is not'
run 0 show saved.trace && lines 3
ok $? 'and can be read'
run 0 check --salvage --json -o open.trace a.trace.open && json 'd["events"] == 14 and d["lost"] == 0' &&
	run 0 diff --strict a.trace open.trace
ok $? 'an unclosed trace loses no event'
run 2 check --salvage -o open.trace a.trace.open && says 'open.trace'
ok $? 'an existing file is not replaced'
run 0 check --salvage --force -o open.trace a.trace.open
ok $? 'unless told to'
run 2 check --salvage a.trace && says '--salvage and --output go together'
ok $? 'salvage needs a name'

: >empty
run 2 check empty && says 'empty: offset 0: the file is empty'
ok $? 'an empty file'
echo 'strace output' >foreign
run 2 check foreign && says 'foreign: offset 0: not a trace of reprise'
ok $? 'a foreign file'
run 2 check missing && says 'cannot open missing: No such file or directory'
ok $? 'no file'
run 2 check . && says 'not a regular file'
ok $? 'a directory'

cat >lossy.txt <<'END'
loss(kind=EVENTS_LOST, pid=1, tid=1, count=3, bytes=0, from_ns=0, to_ns=5)
1/1 0+1 getpid() = 1
END
make lossy
run 1 check --json lossy.trace && json 'd["lost"] == 3 and d["intact"] and not d["ok"]'
ok $? 'lost events that the ledger states'

echo "1..$nr"
