# SPDX-License-Identifier: MIT
# Calls that overlapped in time, and what shows in which order they took effect: sizes, listings,
# offsets, bytes that were read, what a file held at the end. Written by hand, so that the order of the ends is wrong.
. "$TOP/tests/cli/tap.sh"

root='tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755}, flags=LISTED)'

# traces NAME: the root directory, and the events from standard input
traces()
{
	{ echo "$root" && cat; } >"$1.txt" && make "$1"
}

# compiles NAME EXPRESSION: true of the JSON of the plan
compiles()
{
	run 0 compile -f --json "$1.trace" && json "$2"
}

# replays NAME OPTION...: without a mismatch
replays()
{
	name=$1
	shift
	rm -rf tree
	mkdir tree && run 0 replay "$@" "$name.plan" tree
}

# leaves NAME CONTENT: no replay has a mismatch, and /f holds this after each of them
leaves()
{
	for perturbed in 1 2 3; do
		replays "$1" -q --speed=afap --perturb=$perturbed && [ "$(cat tree/f)" = "$2" ] || return 1
	done
}

traces probe <<'END'
7/1 #1 1000+100 mkdir(path="/d", mode=0755) = 0
END
mkdir tree
run 0 compile -f probe.trace
"$REPRISE" replay -q probe.plan tree >out 2>err
if [ $? -eq 2 ] && grep -q namespace err; then
	echo "1..0 # SKIP $(head -n 1 err)"
	exit 0
fi

# Sizes.
traces size <<'END'
7/1 #1 1000+100 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDWR|O_CREAT|O_APPEND, mode=0644) = 3
7/1 #2 2000+9000 write(fd=3, buf="abc", count=3) = 3
7/2 #3 3000+1000 stat(path="/f", statbuf={st_mode=S_IFREG|0644, st_size=3}) = 0
7/1 #4 20000+2000 write(fd=3, buf="def", count=3) = 3
7/2 #5 21000+5000 fstat(fd=3, statbuf={st_mode=S_IFREG|0644, st_size=3}) = 0
END
compiles size 'd["swapped"] == 2 and d["contradictions"] == {}' && leaves size abcdef
ok $? 'a stat is put where the file has the size that it saw'
traces never <<'END'
7/1 #1 1000+100 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDWR|O_CREAT|O_APPEND, mode=0644) = 3
7/1 #2 2000+9000 write(fd=3, buf="abc", count=3) = 3
7/2 #3 3000+1000 stat(path="/f", statbuf={st_mode=S_IFREG|0644, st_size=7}) = 0
END
compiles never 'd["contradictions"] == {"size": 1}'
ok $? 'a size that the file never had is a contradiction'
traces seek <<'END'
7/1 #1 1000+100 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDWR|O_CREAT|O_APPEND, mode=0644) = 3
7/2 #2 1200+100 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDONLY, mode=0) = 4
7/1 #3 2000+1000 write(fd=3, buf="abc", count=3) = 3
7/2 #4 2500+2000 read(fd=4, buf="", count=10) = 0
7/2 #5 5000+100 read(fd=4, buf="abc", count=10) = 3
7/1 #6 6000+100 ftruncate(fd=3, length=1) = 0
7/2 #7 6050+2000 lseek(fd=4, offset=0, whence=SEEK_END) = 3
END
compiles seek 'd["swapped"] == 2 and d["contradictions"] == {}' && leaves seek a
ok $? 'and so are a read and a seek to the end'

# Listings.
traces listing <<'END'
7/1 #1 1000+100 openat(dirfd=AT_FDCWD, path="/", flags=O_RDONLY|O_DIRECTORY, mode=0) = 3
7/2 #2 2000+1000 mkdir(path="/d", mode=0755) = 0
7/1 #3 2500+1000 getdents64(fd=3, dirp=[{d_name="."}, {d_name=".."}], count=32768) = 48
7/1 #4 4000+100 lseek(fd=3, offset=0, whence=SEEK_SET) = 0
7/2 #5 5000+9000 rmdir(path="/d") = 0
7/1 #6 6000+100 getdents64(fd=3, dirp=[{d_name="."}, {d_name=".."}], count=32768) = 48
7/3 #7 20000+100 mkdir(path="/e", mode=0755) = 0
7/1 #8 20050+100 openat(dirfd=AT_FDCWD, path="/", flags=O_RDONLY|O_DIRECTORY, mode=0) = 4
7/1 #9 20500+100 getdents64(fd=4, dirp=[{d_name="."}, {d_name=".."}, {d_name="e"}], count=32768) = 72
END
compiles listing 'd["swapped"] == 2 and d["contradictions"] == {}'
ok $? 'a listing is put where the directory has the names that it shows'

# Appends: nothing that they return tells who was first.
opens='7/1 #1 1000+100 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDWR|O_CREAT|O_APPEND, mode=0644) = 3
7/2 #2 1200+100 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDWR|O_APPEND, mode=0) = 4'
both='7/1 #3 2000+1000 write(fd=3, buf="first", count=5) = 5
7/2 #4 2100+1100 write(fd=4, buf="other", count=5) = 5'

# ends CONTENT: the final tree has /f with it
ends()
{
	echo "tree_entry(tree=final, path=\"/f\", stat={type=file, mode=S_IFREG|0644, size=${#1}}, content=\"$1\", flags=CONTENT_KEPT)"
}

{ ends otherfirst && echo "$opens" && echo "$both"; } | traces final
compiles final 'd["swapped"] == 1 and d["contradictions"] == {} and d["unordered_writes"] == 0' &&
	leaves final otherfirst
ok $? 'what the file held at the end tells the order of appends'
{ ends firstother && echo "$opens" && echo "$both"; } | traces right
compiles right 'd["swapped"] == 0 and d["unordered_writes"] == 0' && leaves right firstother
ok $? 'also when they ended in that order'
{ ends firstXther && echo "$opens" && echo "$both"; } | traces wrong
compiles wrong 'd["unordered_writes"] == 2' &&
	replays wrong --json && json 'd["unordered_writes"] == 2'
ok $? 'what cannot be is counted, by compile and by replay'
{ echo 'tree_entry(tree=final, path="/f", stat={type=file, mode=S_IFREG|0644, size=10}, hash=00112233445566778899aabbccddeeff)' &&
	echo "$opens" && echo "$both"; } | traces untold
compiles untold 'd["unordered_writes"] == 2'
ok $? 'and that of a file of which the end has only the hash'
{ echo "$opens" && echo "$both" && echo '7/1 #5 9000+100 unlink(path="/f") = 0'; } | traces gone
compiles gone 'd["unordered_writes"] == 0 and d["contradictions"] == {}'
ok $? 'in a file that is removed before anybody reads it either order is right'
{ echo "$opens" && echo "$both" &&
	echo '7/1 #5 9000+100 pread64(fd=3, buf="otherf", count=6, offset=0) = 6' &&
	echo '7/1 #6 9500+100 unlink(path="/f") = 0'; } | traces read
compiles read 'd["swapped"] == 1 and d["unordered_writes"] == 0' && replays read -q
ok $? 'bytes that were read tell it'
{ echo "$opens" && echo "$both" &&
	echo '7/1 #5 9000+100 lseek(fd=3, offset=0, whence=SEEK_CUR) = 10' &&
	echo '7/1 #6 9500+100 unlink(path="/f") = 0'; } | traces offset
compiles offset 'd["swapped"] == 1 and d["unordered_writes"] == 0' && replays offset -q
ok $? 'and the offset behind one of them'
{ echo "$opens" && echo '7/1 #3 2000+1000 write(fd=3, buf="first", count=5) = 5
7/2 #4 2100+1100 write(fd=4, buf="six...", count=6) = 6
7/3 #5 2050+1500 stat(path="/f", statbuf={st_mode=S_IFREG|0644, st_size=6}) = 0
7/1 #6 9500+100 unlink(path="/f") = 0'; } | traces seen
compiles seen 'd["contradictions"] == {} and d["unordered_writes"] == 0' && replays seen -q
ok $? 'and the size between them'

{ ends otherfirst && echo "$opens" && echo '7/1 #3 2000+5000 write(fd=3, buf="first", count=5) = 5
7/2 #4 2100+6000 write(fd=4, buf="other", count=5) = 5
7/3 #5 2200+100 stat(path="/f", statbuf={st_mode=S_IFREG|0644, st_size=5}) = 0'; } | traces early
compiles early 'd["contradictions"] == {} and d["unordered_writes"] == 0' && leaves early otherfirst
ok $? 'also when a call that ended before them saw one of them'

# A chain: the long write overlaps all others, and is behind the first of them.
{ ends 1L234 && echo "$opens" && echo '7/1 #3 2000+100 write(fd=3, buf="1", count=1) = 1
7/1 #4 2200+100 write(fd=3, buf="2", count=1) = 1
7/1 #5 2400+100 write(fd=3, buf="3", count=1) = 1
7/1 #6 2600+100 write(fd=3, buf="4", count=1) = 1
7/2 #7 2050+9000 write(fd=4, buf="L", count=1) = 1'; } | traces chain
compiles chain 'd["swapped"] == 1 and d["unordered_writes"] == 0' && leaves chain 1L234
ok $? 'a write that lasted long is put where its bytes are'

# One open file, and so one offset.
{ ends otherfirst && echo '7/1 #1 1000+100 openat(dirfd=AT_FDCWD, path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 3
7/2 #2 1500+10 access(path="/f", mode=F_OK) = 0
7/1 #3 2000+1000 write(fd=3, buf="first", count=5) = 5
7/2 #4 2100+1100 write(fd=3, buf="other", count=5) = 5'; } | traces shared
compiles shared 'd["swapped"] == 1 and d["unordered_writes"] == 0' && leaves shared otherfirst
ok $? 'the same for writes at an offset that threads share'

echo "1..$nr"
