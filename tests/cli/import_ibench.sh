#!/bin/sh
# SPDX-License-Identifier: MIT
# Traces of iBench with their listings: against what the original compiler says of them, and replayed.
. "$TOP/tests/cli/tap.sh"
samples=$TOP/tests/samples/artc

run 0 import --init="$samples/ibench-synthetic.init" -o i.trace "$samples/ibench-synthetic.trace" &&
	prints 'import: 29 lines, 11 events, 0 not understood -> i.trace'
ok $? 'a trace and its listing, known by their first bytes'
"$REPRISE" show --json i.trace | python3 "$TOP/tests/cli/thread_logs.py" >logs
sort "$samples/ibench-synthetic.thread_logs.txt" | cmp -s - logs
ok $? 'calls, begins and durations are those of the original'
run 0 show --exact i.trace
grep '^tree_entry' out >tree
diff - tree >err <<'END'
tree_entry(tree=initial, path="/", stat={type=dir})
tree_entry(tree=initial, path="/Users", stat={type=dir})
tree_entry(tree=initial, path="/Users/u", stat={type=dir})
tree_entry(tree=initial, path="/Users/u/Library", stat={type=dir})
tree_entry(tree=initial, path="/Users/u/Library/a.plist", stat={type=file, size=8192})
tree_entry(tree=initial, path="/Users/u/Library/._a.plist", stat={type=file, size=10})
tree_entry(tree=initial, path="/Users/u/ln", stat={type=symlink}, target="Library/a.plist")
END
ok $? 'the listing is the initial tree'
run 0 check i.trace
ok $? 'the trace is whole'

mkdir d
run 0 replay --speed=afap --json i.trace d && json 'd["mismatches"] == 0 and d["made"] == d["actions"]'
ok $? 'replayed without a mismatch'
[ -d d/Users/u/newer ] && [ ! -e d/Users/u/new ] && [ "$(wc -c <d/Users/u/Library/a.plist)" -eq 8192 ] &&
	[ "$(wc -c <d/Users/u/Library/._a.plist)" -eq 10 ] && [ "$(readlink d/Users/u/ln)" = Library/a.plist ]
ok $? 'and the directory is as it should be'

# call NUMBER THREAD FIELDS RESULT: one call as two lines
now=1000
call() {
	printf '[%d]; [%d]; [entry]; %s [0]; \n' "$now" "$1" "$2"
	printf '[%d]; [%d]; [return]; %s [%s]; \n' "$((now + 500))" "$1" "$2" "$3"
	now=$((now + 1000))
}
# shows TEXT: the events of the last import, without times
shows() {
	"$REPRISE" show --no-paths --time=none j.trace | sed 's/ <0[^>]*>$//' >out
	printf '%s\n' "$1" | diff - out >err
}
try() {
	run 0 import -f -o j.trace j.txt || return 1
}

call 1 '[mmap]; [0x0]; [4096]; [1]; [4098]; [3]; [777]; [PROT_READ ]; [MAP_PRIVATE ];' 4294967296 >j.txt
try && shows '1/1 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, 3, 0) = 0x100000000'
ok $? 'mmap has the flags of Linux, and no offset that cannot be'

{
	call 1 '[fcntl]; [3]; [3]; [0]; [F_GETFL]; [X];' 10
	call 1 '[fcntl]; [3]; [4]; [12]; [F_SETFL]; [X];' 0
	call 1 '[fcntl]; [3]; [48]; [1]; [F_NOCACHE]; [X];' 0
	call 1 '[fcntl]; [3]; [42]; [140734]; [F_PREALLOCATE]; [X];' 0
	call 1 '[fcntl]; [3]; [49]; [7]; [F_LOG2PHYS]; [X];' -1
} >j.txt
try && shows '1/1 fcntl(3, F_GETFL) = O_RDWR|O_APPEND
1/1 fcntl(3, F_SETFL, O_RDONLY|O_APPEND|O_NONBLOCK) = 0
1/1 mac_fcntl_nocache(3, 1) = 0
1/1 mac_fcntl_preallocate(3, ?) = 0
1/1 mac_fcntl(3, F_LOG2PHYS, 7) = -1 EUNKNOWN'
ok $? 'fcntl, by command'

{
	call 1 '[open]; [/a/b.plist]; [0]; [O_RDWR O_CREAT ]; [420]; [77]; [_]; [_];' 3
	call 1 '[read_nocancel]; [3]; [10]; [0]; [X];' 4
	call 1 '[stat64]; [/.vol/16777218/77];' 0
	call 1 '[stat64]; [/.vol/16777218/2/Users];' 0
	call 1 '[stat64]; [/.vol/16777218/4711];' 0
	call 1 '[lstat64]; [/a/b.plist/..namedfork/rsrc];' 0
	call 1 '[socketpair]; [1]; [1]; [0]; [4]; [5];' 0
	call 1 '[kill]; [12]; [30];' 0
	call 1 '[readlink]; [/ln]; [100]; [a/b];' 3
} >j.txt
try && shows '1/1 mac_open("/a/b.plist", O_RDWR|O_CREAT, 0644) = 3
1/1 read(3, <4 bytes>, 10) = 4
1/1 mac_stat64("/a/b.plist") = 0
1/1 mac_stat64("/Users") = 0
1/1 mac_stat64("/") = 0
1/1 mac_lstat64("/a/._b.plist") = 0
1/1 socketpair(AF_UNIX, SOCK_STREAM, IPPROTO_IP, [4, 5]) = 0
1/1 kill(12, SIGUSR1) = 0
1/1 readlink("/ln", "a/b", 100) = 3'
ok $? 'files by number, resource forks, numbers of macOS'

{
	call 1 '[open]; [/a/b]; [0]; [O_RDWR O_CREAT O_EXLOCK ]; [420]; [77]; [_]; [_];' 3
	call 1 '[open]; [/a/c]; [0]; [O_RDONLY O_SHLOCK ]; [0]; [78]; [_]; [_];' 4
	call 1 '[open]; [/a/d]; [0]; [O_RDONLY O_EXLOCK ]; [0]; [79]; [_]; [_];' -1
	call 1 '[rename]; [/a]; [/n]; [_]; [_]; [_]; [_]; [_];' 0
	call 1 '[stat64]; [/.vol/16777218/77];' 0
	call 1 '[rename]; [/n/b]; [/n/bb]; [_]; [_]; [_]; [_]; [_];' 0
	call 1 '[rename]; [/n/bb]; [/nowhere/bb]; [_]; [_]; [_]; [_]; [_];' -1
	call 1 '[stat64]; [/.vol/16777218/77];' 0
	call 1 '[stat64]; [/.vol/16777218/78];' 0
} >j.txt
try && shows '1/1 mac_open("/a/b", O_RDWR|O_EXLOCK|O_CREAT, 0644) = 3
1/1 flock(3, LOCK_EX) = 0
1/1 mac_open("/a/c", O_RDONLY|O_SHLOCK, 0) = 4
1/1 flock(4, LOCK_SH) = 0
1/1 mac_open("/a/d", O_RDONLY|O_EXLOCK, 0) = -1 EUNKNOWN
1/1 rename("/a", "/n") = 0
1/1 mac_stat64("/n/b") = 0
1/1 rename("/n/b", "/n/bb") = 0
1/1 rename("/n/bb", "/nowhere/bb") = -1 EUNKNOWN
1/1 mac_stat64("/n/bb") = 0
1/1 mac_stat64("/n/c") = 0'
ok $? 'locks of open, and files by number that were renamed'
mkdir locks
run 0 replay --speed=afap --json j.trace locks && json 'd["mismatches"] == 0 and d["calls"]["flock"]["made"] == 2'
ok $? 'and the locks are taken at replay'

cat >j.txt <<'END'
[5]; [N/A]; [comment]; [syscall_map]; [something, maybe; with ]; 
[10]; [1]; [entry]; [read]; [3]; [10]; [0]; [X]; [0]; 
[15]; [1]; [entry]; [hfs_vnop_pagein]; [0]; [4096]; [1]; [name]; [4096]; [0]; 
[16]; [1]; [return]; [hfs_vnop_pagein]; [0]; [4096]; [1]; [name]; [4096]; [0]; 
[20]; [1]; [return]; [read]; [3]; [10]; [0]; [X]; [10]; 
[21]; [2]; [return]; [close]; [3]; [0]; 
[30]; [1]; [entry]; [fsync]; [3]; [X]; [0]; 
END
try && run 0 show --exact j.trace && grep '^1/' out >events
diff - events >err <<'END'
1/1 #1 0+10 read(fd=3, buf=?/10, count=10) = 10 {origin=5}
1/2 #2 11+0 close(fd=3) = 0 {flags=NO_DURATION, origin=6}
1/1 #3 20+0 mac_fsync(fd=3) = ? {origin=7}
END
ok $? 'a return without an entry, and an entry without a return'
grep -q '^loss(kind=FILTERED, .*count=3, ' out
ok $? 'comments and page-ins are in the ledger'

cat >j.txt <<'END'
[10]; [1]; [entry]; [stat]; [/a]; [0]; 
[20]; [1]; [return]; [stat]; [/a]; [0]; 
[30]; [1]; [entry]; [frobnicate]; [/a]; [0]; 
[40]; [1]; [return]; [stat]; [/a]; [/b]; [0]; 
[50]; [x]; [return]; [stat]; [/a]; [0]; 
[60]; [1]; [return]; [open]; [/a]; [0]; [O_WRONG ]; [0]; [1]; [_]; [_]; [3]; 
[70]; [1]; [return]; [read]; [99999999999]; [10]; [0]; [X]; [10]; 
[80]; [1]; [return]; [stat]; [/a]; [zero]; 
[90]; [1]; [leave]; [stat]; [/a]; [0]; 
not in brackets
END
run 2 import -f -o j.trace j.txt && prints 'import: 10 lines, 1 events, 8 not understood -> j.trace' &&
	grep -q "j.txt:3: unknown call 'frobnicate'" err && grep -q 'j.txt:6: unknown flag .O_WRONG' err
ok $? 'lines that make no sense are counted and named'
run 2 import -f --strict -o j.trace j.txt && says "j.txt:3: unknown call 'frobnicate'"
ok $? 'or end the import'

# Listings.
run 2 import -o l.trace "$samples/geninit-output.init" &&
	prints 'import: 14 lines, 0 events, 2 not understood -> l.trace' &&
	[ "$(grep -c 'a name has a newline' err)" -eq 2 ]
ok $? 'a listing alone; a name with a newline is told'
mkdir e
run 0 init l.trace e && [ "$(wc -c <e/tmp/x/d/b)" -eq 65536 ] && [ "$(readlink e/tmp/x/d/s)" = c ]
ok $? 'it can be made'
cat >t.init <<'END'
dir#/
dir#/a#b
file#/a#b/c#d#7
file#12#/n#8
file#13rsrc#/n#9
symlink#/s#12
END
run 0 import -o t.trace t.init && run 0 show --exact t.trace && grep '^tree' out >tree
diff - tree >err <<'END'
tree_entry(tree=initial, path="/", stat={type=dir})
tree_entry(tree=initial, path="/a#b", stat={type=dir})
tree_entry(tree=initial, path="/a#b/c#d", stat={type=file, size=7})
tree_entry(tree=initial, path="/n", stat={type=file, size=8})
tree_entry(tree=initial, path="/._n", stat={type=file, size=9})
tree_entry(tree=initial, path="/s", stat={type=symlink}, target="12")
END
ok $? 'both layouts of files, forks, targets of digits, names with a #'
printf '%s\n' 'dir#/' 'dir#relative' 'file#/x' 'file#x#/y#1' 'file#/z#-1' 'symlink#/a#b#c' 'fifo#/f' 'dir' '[dir]' \
	'[file]; [/a]; [x]; ' >u.init
run 2 import -o u.trace u.init && prints 'import: 10 lines, 0 events, 9 not understood -> u.trace'
ok $? 'lines of a listing that make no sense'
run 2 import -f --init=none.init -o j.trace "$samples/ibench-synthetic.trace" && says 'none.init: cannot open'
ok $? 'a listing that is not there'

# What neither trace nor listing names.
{
	call 1 '[fstat64]; [7];' 0
	call 1 '[pread]; [7]; [100]; [5000]; [X];' 100
	call 1 '[fstat64]; [8];' 0
	call 1 '[getdirentries64]; [8];' 64
	call 1 '[lseek]; [0]; [0]; [1];' 0
	call 1 '[open]; [/not/listed]; [0]; [O_RDONLY ]; [0]; [9]; [_]; [_];' 9
	call 1 '[read]; [9]; [10]; [0]; [X];' 10
	call 1 '[stat64]; [/nowhere];' -1
} >j.txt
printf '%s\n' 'dir#/' 'dir#/listed' >j.init
mkdir f
run 0 import -f --init=j.init -o j.trace j.txt && run 0 replay --speed=afap --json j.trace f && json 'd["mismatches"] == 0'
ok $? 'files that nobody named have something to stand for them'
[ -d f/listed ] && [ "$(wc -c <f/not/listed)" -eq 10 ] && [ ! -e f/nowhere ] &&
	[ "$(find f/.reprise-unnamed -type f -size 5100c | wc -l)" -eq 1 ] &&
	[ "$(find f/.reprise-unnamed -mindepth 1 -type d | wc -l)" -eq 1 ]
ok $? 'of the size and the type that they need'

echo "1..$nr"
