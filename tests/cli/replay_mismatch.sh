#!/bin/sh
# SPDX-License-Identifier: MIT
# A mismatch says what differs: in the report, in JSON, in the trace of the run and beside its original.
. "$TOP/tests/cli/tap.sh"
chmod 755 "$dir"
unset TSAN_OPTIONS

# has TEXT...: the last run printed lines with these texts
has() {
	for text; do
		grep -qF -e "$text" out || {
			echo "# no: $text"
			return 1
		}
	done
}

# An event of each kind that is compared. Names and data longer than 64 bytes stand outside of the events.
digits=$(printf '%0150d' 7)
long=$(printf 'n%0100d' 1)
entries='{d_type=DT_DIR, d_name="."}, {d_type=DT_DIR, d_name=".."}'
cat >m.txt <<END
# reprise exact 1
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/f", stat={type=file, mode=S_IFREG|0644, size=150}, content="$digits")
tree_entry(tree=initial, path="/l", stat={type=symlink}, target="old")
tree_entry(tree=initial, path="/d", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/d/gone", stat={type=file, mode=S_IFREG|0644, size=0}, content="")
tree_entry(tree=initial, path="/d/kept", stat={type=file, mode=S_IFREG|0644, size=0}, content="")
tree_entry(tree=initial, path="/d/$long", stat={type=file, mode=S_IFREG|0644, size=0}, content="")
100/100 #1 1000+500 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDONLY, mode=0) = 3
100/100 #2 2000+500 read(fd=3, buf="${digits%?????0000000007}", count=135) = 135
100/100 #3 3000+500 pread64(fd=3, buf="${digits#????????????????????}", count=200, offset=20) = 130
100/100 #4 4000+500 preadv(fd=3, iov=[{iov_base="0000", iov_len=4}, {iov_base="00000000", iov_len=8}], iovcnt=2, offset=90) = 12
100/100 #5 5000+500 fstat(fd=3, statbuf={st_dev=5, st_ino=77, st_mode=S_IFREG|0644, st_nlink=1, st_uid=0, st_gid=0, st_rdev=0, st_size=150, st_blksize=4096, st_blocks=8}) = 0
100/100 #6 6000+500 statx(dirfd=AT_FDCWD, path="/d/kept", flags=0, mask=STATX_BASIC_STATS, statxbuf={stx_mask=STATX_BASIC_STATS, stx_mode=S_IFREG|0644, stx_size=0, stx_rdev_major=0, stx_rdev_minor=0}) = 0
100/100 #7 7000+500 readlink(path="/l", buf="old", bufsiz=100) = 3
100/100 #8 8000+500 openat(dirfd=AT_FDCWD, path="/d", flags=O_RDONLY|O_DIRECTORY, mode=0) = 4
100/100 #9 9000+500 getdents64(fd=4, dirp=[$entries, {d_type=DT_REG, d_name="gone"}], count=32768) = 72
100/100 #10 10000+500 getdents64(fd=4, dirp=[{d_type=DT_REG, d_name="kept"}, {d_type=DT_REG, d_name="$long"}], count=32768) = 152
100/100 #11 11000+500 getdents64(fd=4, dirp=[], count=32768) = 0
100/100 #12 12000+500 close(fd=4) = 0
100/100 #13 13000+500 mkdir(path="/new", mode=0755) = 0
100/100 #14 14000+500 stat(path="/absent", statbuf=&0x7000) = -1 ENOENT
END
make m
run 0 init -q m.trace T && run 0 replay -q --no-init m.trace T && grep -q '^mismatches *0 of' out
ok $? 'nothing differs where nothing was changed'

rm -rf T
run 0 init -q m.trace T && python3 - <<'END' && mkdir T/new && echo abc >T/absent && rm T/l T/d/gone &&
data = bytearray(open("T/f", "rb").read())
data[100:104] = b"\x1b[2J"
open("T/f", "wb").write(data[:149])
END
	ln -s newer T/l && chmod 600 T/d/kept && mkdir T/d/added && echo >T/d/z &&
	run 1 replay -q --no-init --show-mismatches=20 -f -o m.run m.trace T
ok $? 'a changed tree gives mismatches'
has '#2 read of 100/100 gave back other data; at 0.000002000 s; action' \
	'100/100 #2 read(3</f>, "' \
	'buf: byte 100 (100 of the file): expected 30 30 30 30 30 30 30 30 30 30 30 30 30 30 30 30 "0000000000000000", got 1b 5b 32 4a 30 30 30 30 30 30 30 30 30 30 30 30 "\x1b[2J000000000000"'
ok $? 'data: the first byte that differs, in the buffer and in the file'
has '#3 pread64 of 100/100 moved fewer bytes: expected 130, got 129' 'buf: byte 80 (100 of the file): expected 30 30'
ok $? 'a read that moved fewer bytes says so, and what they are'
has 'iov[1].iov_base: byte 6 (100 of the file): expected 30 30 "00", got 1b 5b "\x1b["'
ok $? 'data in several buffers'
has 'statbuf.st_size: expected 150, got 149' 'statxbuf.stx_mode: expected S_IFREG|0644, got S_IFREG|0600' &&
	! grep -q 'st_ino\|st_nlink\|st_blocks' out && ! grep -q 'st_mode: expected S' out
ok $? 'attributes: the fields that are compared and differ, and no others'
has 'returned another value: expected 3, got 5' 'buf: byte 0: expected 6f 6c 64 "old", got 6e 65 77 65 72 "newer"'
ok $? 'the target of a symlink'
has '#11 getdents64 of 100/100 gave back other data' 'getdents64(4</d>, [], 32768) = 0' \
	'dirp: missing "gone" DT_REG; added "added" DT_DIR, "z" DT_REG'
ok $? 'listings: the names that are missing and those that were added, over all parts'
has '#13 mkdir of 100/100 failed instead of succeeding: expected 0, got -1 EEXIST' \
	'#14 stat of 100/100 succeeded instead of failing: expected -1 ENOENT, got 0' 'statbuf.st_size: expected ?, got 4'
ok $? 'results with their errors, and what came back where nothing should'
! grep -q "$(printf '\033')" out
ok $? 'no byte of the target reaches the terminal as it is'

run 0 show m.run && has 'read(3</f>, "00000000000000000000000000000000"..., 135) = 135 {MISMATCHED}' \
	'{st_mode=S_IFREG|0644, st_size=149}) = 0 {MISMATCHED}' '"newer", 100) = 5 {MISMATCHED}' \
	'iov_base="000000\x1b[", iov_len=8}' "[$entries], 32768) = 72" \
	"[{d_type=DT_REG, d_name=\"kept\"}, {d_type=DT_REG, d_name=\"$(printf '%.32s' "$long")\"...}], 32768) = 152" \
	'[{d_type=DT_DIR, d_name="added"}, {d_type=DT_REG, d_name="z"}], 32768) = 0 {MISMATCHED}' \
	'stat("/absent", {st_mode=S_IFREG|0644, st_size=4}) = 0' && ! grep -q '?' out && run 0 check m.run
ok $? 'the trace of the run has what came back'
run 0 show --data m.run && has '1b 5b 32 4a'
ok $? 'and its bytes'
run 1 diff m.trace m.run && has '@ data: buf' 'buf: byte 100: first 30 30' '@ outcome: statbuf' \
	'statbuf.st_size: first 150, second 149' 'dirp: missing "gone" DT_REG' 'dirp: added "added" DT_DIR, "z" DT_REG' \
	'result: first 0, second -1 EEXIST (File exists)'
ok $? 'diff shows what differs'

rm -rf T/new
run 1 replay -q --json --no-init --show-mismatches=20 m.trace T && json '[m["seq"] for m in d["first_mismatches"]] == [2, 3, 4, 5, 6, 7, 11, 14]
	and d["first_mismatches"][0]["details"] == [{"where": "buf", "offset": 100, "file_offset": 100,
		"expected": {"length": 135, "hex": "30" * 16, "text": "0" * 16},
		"got": {"length": 135, "hex": "1b5b324a" + "30" * 12, "text": "\x1b[2J" + "0" * 12}}]
	and [(m["path"], m["enter_ns"]) for m in d["first_mismatches"]][3:5] == [("/f", 5000), ("/d/kept", 6000)]
	and d["first_mismatches"][3]["details"] == [{"where": "statbuf.st_size", "expected": "150", "got": "149"}]
	and d["first_mismatches"][6]["details"] == [{"where": "dirp", "missing": [{"name": "gone", "type": "DT_REG"}],
		"added": [{"name": "added", "type": "DT_DIR"}, {"name": "z", "type": "DT_REG"}]}]
	and all(m["note"] is None for m in d["first_mismatches"])'
ok $? 'JSON'

# A plan that stands alone knows what came back.
run 0 compile -q -f -o m.plan m.trace && mv m.trace kept && rm -rf T/new &&
	run 1 replay -q --no-init --show-mismatches=20 m.plan T && has 'statbuf.st_size: expected ?, got 149' 'buf: expected ?, got 30 30'
ok $? 'without the trace: what came back'
mv kept m.trace

# Many names; the target's own at its top, which is no difference.
{
	echo 'tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})'
	for i in 1 2 3 4 5 6 7 8; do
		echo "tree_entry(tree=initial, path=\"/n$i\", stat={type=file, mode=S_IFREG|0644, size=0}, content=\"\")"
	done
	echo '1/1 #1 1000+500 open(path="/", flags=O_RDONLY|O_DIRECTORY, mode=0) = 3'
	echo "1/1 #2 2000+500 getdents64(fd=3, dirp=[$entries$(for i in 1 2 3 4 5 6 7 8; do printf ', {d_type=DT_REG, d_name="n%d"}' $i; done)], count=32768) = 240"
	echo '1/1 #3 3000+500 getdents64(fd=3, dirp=[], count=32768) = 0'
} >n.txt
make n
rm -rf T
run 0 init -q n.trace T && rm T/n? && run 1 replay -q --no-init -f -o n.run n.trace T &&
	has 'dirp: missing "n1" DT_REG, "n2" DT_REG, "n3" DT_REG, "n4" DT_REG, "n5" DT_REG and 3 more' && ! grep -q added out &&
	run 0 show n.run && ! grep -q .reprise out
ok $? 'of many names the first are shown'

# A listing that is given up says nothing of the next one with that descriptor.
cat >h.txt <<END
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/d", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/d/a", stat={type=file, mode=S_IFREG|0644, size=0}, content="")
tree_entry(tree=initial, path="/e", stat={type=dir, mode=S_IFDIR|0755})
1/1 #1 1000+500 open(path="/d", flags=O_RDONLY|O_DIRECTORY, mode=0) = 3
1/1 #2 2000+500 getdents64(fd=3, dirp=[{d_type=DT_DIR, d_name="."}], count=32768) = 24
1/1 #3 3000+500 close(fd=3) = 0
1/1 #4 4000+500 open(path="/e", flags=O_RDONLY|O_DIRECTORY, mode=0) = 3
1/1 #5 5000+500 getdents64(fd=3, dirp=[$entries], count=32768) = 48
1/1 #6 6000+500 getdents64(fd=3, dirp=[], count=32768) = 0
END
make h
rm -rf T
run 0 init -q h.trace T && run 0 replay -q --no-init h.trace T
ok $? 'a listing that was not read to its end is no mismatch of the next'

# A real program: reads larger than what is kept of one, and more mismatches than the report shows.
mkdir w
python3 -c 'open("w/big", "wb").write(bytes(4 << 20))'
i=0
while [ $i -lt 30 ]; do
	echo $i >w/s$i
	i=$((i + 1))
done
run 0 record -q -o r.trace sh -c 'cd w && dd if=big of=copy bs=2M count=1 2>/dev/null; md5sum s* >sums'
rm -rf T
run 0 init -q r.trace T && python3 - "T$(pwd -P)/w" <<'END'
import sys
with open(sys.argv[1] + "/big", "r+b") as f:
    f.seek(3 << 19)
    f.write(b"x")
for i in range(30):
    open(sys.argv[1] + "/s%d" % i, "w").write("x%s" % str(i)[1:] + "\n")
END
run 1 replay -q --no-init -f -o r.run r.trace T && has 'what differs comes after what was kept of the data' &&
	[ "$(grep -c 'buf: byte 0.*expected' out)" -eq 9 ]
ok $? 'where a difference cannot be found the report says so'
run 1 diff -n 100 r.trace r.run && [ "$(grep -c 'buf: byte 0.*first' out)" -eq 30 ]
ok $? 'the run has more of them than the report'
echo "1..$nr"
