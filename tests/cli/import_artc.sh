#!/bin/sh
# SPDX-License-Identifier: MIT
# ARTC's dialect of strace's text: against what the original compiler says of it, prologues, and replayed.
. "$TOP/tests/cli/tap.sh"
samples=$TOP/tests/samples/artc

run 0 import --init="$samples/strace-artc-accepted.init" -o s.trace "$samples/strace-artc-accepted.strace"
ok $? 'a trace and its listing'
"$REPRISE" show --json s.trace | python3 "$TOP/tests/cli/thread_logs.py" >logs
sort "$samples/strace-artc-accepted.thread_logs.txt" | diff - logs >err
ok $? 'calls, begins and durations are those of the original'
run 0 show --json s.trace && jsonl 'len({e["pid"] for e in d}) == 1 and {e["tid"] for e in d} == {100, 101}'
ok $? 'all threads are of one process'
run 0 show -c found_state s.trace && grep -q 'found_state(cwd="/tmp/x")' out
ok $? 'the prologue tells the working directory'
run 0 export --format=artc-init s.trace && cmp -s out "$samples/strace-artc-accepted.init"
ok $? 'the listing is the initial tree'
mkdir d
run 0 replay --speed=afap --json s.trace d && json 'd["mismatches"] == 0'
ok $? 'replayed without a mismatch, a descriptor that nobody opened too'
[ -f d/tmp/x/c ] && [ ! -e d/tmp/x/a ] && [ "$(wc -c <d/tmp/x/c)" -eq 6 ]
ok $? 'and the directory is as it should be'

cat >p.txt <<'END'
0 0.000000 chdir("/home/u") = 0 <0.000000>
0 0.000000 open("/etc/motd", O_RDONLY) = 3 <0.000000>
0 0.000000 lseek(3, 100, SEEK_SET) = 100 <0.000000>
0 0.000000 open("/tmp/gone", O_RDWR|O_CREAT) = 4 <0.000000>
0 0.000000 unlink("/tmp/gone") = 0 <0.000000>
0 0.000000 socket(PF_FILE, SOCK_STREAM, 0) = 5 <0.000000>
7 1700000000.000100 read(3, "x"..., 50) = 50 <0.000010>
8 1700000000.000200 write(4, "abc", 3) = 3 <0.000010>
8 1700000000.000300 read(5, "y", 1) = 1 <0.000010>
END
run 0 import -o p.trace p.txt && run 0 show --exact p.trace && grep -o 'found_.*)' out >found
diff - found >err <<'END'
found_state(cwd="/home/u")
found_fd(fd=3, path="/etc/motd", flags=O_RDONLY, offset=100)
found_fd(fd=4, path="/tmp/gone (deleted)", flags=O_RDWR, offset=0)
found_fd(fd=5, flags=O_RDWR, offset=0, mode=S_IFSOCK|0777)
END
ok $? 'a prologue of a process that was attached to'
mkdir e
run 0 replay --speed=afap --json p.trace e && json 'd["mismatches"] == 0' && [ "$(wc -c <e/etc/motd)" -eq 150 ]
ok $? 'is what the replay begins with'
printf '%s\n' '0 0.000000 chdir("/x") = 0 <0.000000>' '0 0.000000 frobnicate(1) = 0' '0 0.000000 read(3, "", 1) = 0' \
	'9 1.000000 close(3) = 0 <0.000001>' >q.txt
run 2 import -o q.trace q.txt && grep -q 'read in a prologue' err && grep -q ' 2 not understood' out
ok $? 'what a prologue cannot say is counted'

echo "1..$nr"
