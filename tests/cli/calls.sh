#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise calls
. "$TOP/tests/cli/tap.sh"

run 0 calls && [ "$(grep -c '^ *[0-9]' out)" -gt 400 ] && [ ! -s err ]
ok $? 'the table'
grep -q '^ *11 openat  *desc .*(dirfd, path, flags, mode, file)$' out
ok $? 'the form of a row'
run 0 calls --json && json 'len(d) > 400 and all({"id", "name", "class", "args", "result", "record",
	"model", "replay"} <= set(row) for row in d)'
ok $? 'JSON'
json 'all(row["record"] in ("recorded", "imported", "unsupported") for row in d)
	and all(row[layer] in ("generic", "special", "nothing", "simulated", "waiting", "unsupported")
	for row in d for layer in ("model", "replay"))'
ok $? 'the words for what is done with a call'
json 'len({row["id"] for row in d}) == len(d) and len({row["name"] for row in d}) == len(d)'
ok $? 'ids and names are unique'
json '[row for row in d if row["name"] == "read"][0]["args"] == [
	{"name": "fd", "kind": "FD", "direction": "in"},
	{"name": "buf", "kind": "BUF", "direction": "out"},
	{"name": "count", "kind": "SIZE", "direction": "in"}]'
ok $? 'arguments'
json '[row for row in d if row["name"] == "mac_open"][0]["record"] == "imported"'
ok $? 'calls of another system are imported'
run 0 calls --json read 'open*' && json '{"read", "open", "openat"} <= {row["name"] for row in d} and len(d) < 20'
ok $? 'by name'
run 0 calls --json fcntl && json 'any(row["name"] == "fcntl_dupfd" for row in d)'
ok $? 'with variants'
run 0 calls --json --class=sync && json 'd and all(row["class"] == "sync" for row in d)'
ok $? 'by class'
run 0 calls --json --events && json 'any(row["name"] == "thread_start" for row in d) and not any(row["name"] == "read" for row in d)'
ok $? 'events'
run 2 calls opne && says "unknown call 'opne'; did you mean 'open'?" && [ ! -s out ]
ok $? 'a call that there is not'
run 2 calls --class=date && says "unknown class 'date'; did you mean 'data'?"
ok $? 'a class that there is not'
echo "1..$nr"
