#!/bin/sh
# SPDX-License-Identifier: MIT
# The permissions of files that commands write: 600, or --file-mode.
. "$TOP/tests/cli/tap.sh"

# writes FILE WORDS...: the file that the command writes has mode 600, also if it replaces one of
# another mode, and with --file-mode exactly that one, whatever the umask is
writes() {
	file=$1
	shift
	for mask in 000 077; do
		umask $mask
		rm -f "$file"
		run 0 "$@" && [ "$(stat -c %a "$file")" = 600 ] || return 1
		chmod 666 "$file"
		run 0 "$@" -f && [ "$(stat -c %a "$file")" = 600 ] || return 1
		run 0 "$@" -f --file-mode=640 && [ "$(stat -c %a "$file")" = 640 ] || return 1
		rm -f "$file"
		run 0 "$@" --file-mode 0644 && [ "$(stat -c %a "$file")" = 644 ] || return 1
	done
	umask 022
}

writes b.trace import --format=exact -o b.trace a.txt
ok $? 'import'
# The options of record end at the command, so more of them come before it.
recorder() {
	run 0 record -q -o r.trace "$@" true
}
records() {
	for mask in 000 077; do
		umask $mask
		rm -f r.trace
		recorder && [ "$(stat -c %a r.trace)" = 600 ] || return 1
		chmod 666 r.trace
		recorder -f && [ "$(stat -c %a r.trace)" = 600 ] || return 1
		recorder -f --file-mode=640 && [ "$(stat -c %a r.trace)" = 640 ] || return 1
	done
	umask 022
}
records
ok $? 'record'
writes s.trace slice -o s.trace a.trace
ok $? 'slice'
unclose a.trace
writes saved.trace check --salvage -o saved.trace a.trace.open
ok $? 'check --salvage'
writes a.plan compile -o a.plan a.trace
ok $? 'compile'
writes a.out export --format=exact -o a.out a.trace
ok $? 'export'

cat >files.txt <<'END'
# reprise exact 1
meta(key="cwd", value="/w")
tree_entry(tree=initial, path="/w", stat={type=dir, mode=0755}, flags=LISTED)
1/1 #1 1000+10 openat(dirfd=AT_FDCWD, path="f", flags=O_WRONLY|O_CREAT, mode=0644) = 3
1/1 #2 2000+10 write(fd=3, buf="hello", count=5) = 5
1/1 #3 3000+10 close(fd=3) = 0
END
make files
writes a.run replay -q -o a.run files.trace target
ok $? 'replay: the trace of the run'
[ "$(stat -c %a target/w/f)" = 644 ]
ok $? 'files of the target have the modes of the trace'

printf 'time_ns,latency_ns,device,op,flags,offset,length\n1000,10,a,write,,0,4096\n' >w.csv
run 0 import --format=blockcsv -o w.trace w.csv &&
	writes w.run replay -q --device=a=w.img --create --destroy-data -o w.run w.trace
ok $? 'replay --device: the trace of the run'
[ "$(stat -c %a w.img)" = 600 ]
ok $? 'and the file that --create makes'

ln -s a.out link
run 0 export --format=exact -o link -f a.trace && [ -L link ] && run 0 export --format=exact -o /dev/null -f a.trace &&
	[ -c /dev/null ]
ok $? 'export -f writes through symlinks and to devices'

bad=0
for mode in 8 0 644x 0x1ff 1777 -1 '' 00000600 rw; do
	run 2 slice -o bad.trace --file-mode=$mode a.trace && says 'not a mode in octal' && [ ! -e bad.trace ] || bad=1
done
ok $bad 'wrong modes are refused'

echo "1..$nr"
