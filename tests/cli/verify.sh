#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise verify
. "$TOP/tests/cli/memory.sh"
. "$TOP/tests/cli/tap.sh"
umask 022

# The hash of "hello", as a recorder writes it.
printf hello >h
"$REPRISE" record -q -o h.trace -- cat h >out 2>err
hello=$("$REPRISE" show --exact h.trace | sed -n "s,^tree_entry(tree=final.*path=\"$dir/h\".* hash=\([0-9a-f]*\).*,\1,p")
cat >t.txt <<END
tree_entry(tree=initial, path="/", stat={type=dir, mode=0755}, flags=LISTED)
tree_entry(tree=initial, path="/d", stat={type=dir, mode=0750, dev=8:1, ino=2}, flags=LISTED)
tree_entry(tree=initial, path="/d/kept", stat={type=file, mode=0640, size=5, dev=8:1, ino=11, nlink=2}, xattrs=[{name="user.colour", value="red"}], content="hello", hash=$hello)
tree_entry(tree=initial, path="/d/link", stat={type=file, mode=0640, size=5, dev=8:1, ino=11, nlink=2})
tree_entry(tree=initial, path="/d/one", stat={type=file, mode=0644, size=1, dev=8:1, ino=12, nlink=1}, content="1")
tree_entry(tree=initial, path="/d/filler", stat={type=file, mode=0644, size=100, dev=8:1, ino=13, nlink=1})
tree_entry(tree=initial, path="/d/sym", stat={type=symlink}, target="one")
tree_entry(tree=initial, path="/d/old", stat={type=file, mode=0644, size=0})
tree_entry(tree=initial, path="/d/untouched", stat={type=file, mode=0644, size=5}, content="hello", hash=$hello)
tree_entry(tree=initial, path="/d/set", stat={type=file, mode=04755, size=0})
tree_entry(tree=initial, path="/moved", stat={type=dir, mode=0755, dev=8:1, ino=30}, flags=LISTED)
tree_entry(tree=initial, path="/moved/x", stat={type=file, mode=0644, size=0})
tree_entry(tree=initial, path="/d/new", flags=MISSING)
tree_entry(tree=initial, path="/to", flags=MISSING)
tree_entry(tree=initial, path="/dev", stat={type=dir, mode=0755})
tree_entry(tree=initial, path="/dev/disk", stat={type=blockdev, mode=0660, rdev=8:0}, flags=SPECIAL)
tree_entry(tree=final, path="/d", stat={type=dir, mode=0750, dev=8:1, ino=2})
tree_entry(tree=final, path="/d/kept", stat={type=file, mode=0640, size=5, dev=8:1, ino=11, nlink=2}, xattrs=[{name="user.colour", value="red"}], hash=$hello)
tree_entry(tree=final, path="/d/link", stat={type=file, mode=0640, size=5, dev=8:1, ino=11, nlink=2}, hash=$hello)
tree_entry(tree=final, path="/d/one", stat={type=file, mode=0644, size=1, dev=8:1, ino=12, nlink=1, uid=12345, mtime_ns=5})
tree_entry(tree=final, path="/d/filler", stat={type=file, mode=0644, size=100, dev=8:1, ino=13, nlink=1}, hash=$hello)
tree_entry(tree=final, path="/d/sym", stat={type=symlink}, target="one")
tree_entry(tree=final, path="/d/old", flags=MISSING)
tree_entry(tree=final, path="/d/new", stat={type=file, mode=0600, size=5, dev=8:1, ino=20, nlink=1}, xattrs=[], hash=$hello)
tree_entry(tree=final, path="/moved", flags=MISSING)
tree_entry(tree=final, path="/to", stat={type=dir, mode=0755, dev=8:1, ino=30})
tree_entry(tree=final, path="/dev/disk", stat={type=blockdev, mode=0660, rdev=8:0}, flags=SPECIAL)
tree_entry(tree=final, path="/what", flags=UNREADABLE)
END
make t

# perform DIR: what the program did
perform() {
	"$REPRISE" init -q t.trace "$1" >/dev/null 2>&1 && rm "$1/d/old" && mv "$1/moved" "$1/to" &&
		printf hello >"$1/d/new" && chmod 600 "$1/d/new"
}

perform D && run 0 verify --json t.trace D && json 'd["differences"] == 0 and d["list"] == [] and d["paths"] == 13
	and d["contents"] == 4 and d["contents_not_compared"] == 2 and d["paths_not_compared"] == 2 and d["listings"] == 2'
ok $? 'the same'
run 0 verify t.trace D && prints 'D: 13 paths and 4 contents compared, 0 differences; not comparable: 2 paths, 2 contents'
ok $? 'in words'
rm -rf I && "$REPRISE" init t.trace I >out 2>err
run 1 verify t.trace I && [ ! -s err ] && prints '/d/new: missing
/d/old: unexpected
/moved: unexpected
/to: missing
I: 13 paths and 3 contents compared, 4 differences; not comparable: 2 paths, 2 contents'
ok $? 'a program that did not run'

# differs LINE COMMAND...: after the command a line like this is printed, and no other
differs() {
	line=$1
	shift
	rm -rf D
	perform D && "$@" && run 1 verify t.trace D && head -n 1 out | grep -qx "$line" && lines 2
}
differs '/d/one: missing' rm D/d/one
ok $? 'a name is missing'
differs '/d/extra: unexpected' touch D/d/extra
ok $? 'a name too much, where all were known'
differs '/extra: unexpected' mkdir D/extra
ok $? 'also at the top'
rm -rf D && perform D && touch D/to/any && run 0 verify t.trace D
ok $? 'but not where names may have come from elsewhere'
differs '/d/sym: type: found file, recorded symlink' sh -c 'rm D/d/sym && touch D/d/sym'
ok $? 'a type'
differs '/d/one: size: found 2, recorded 1' sh -c 'printf 12 >D/d/one'
ok $? 'a size'
differs '/d/one: mode: found 0600, recorded 0644' chmod 600 D/d/one
ok $? 'a mode'
differs '/d/sym: target: found two, recorded one' ln -sfn two D/d/sym
ok $? 'a target'
differs '/d/link: link: recorded the same file as /d/kept' sh -c 'cp -p D/d/link x && rm D/d/link && cp -p x D/d/link'
ok $? 'two files instead of one'
rm -rf D && perform D && ln -f D/d/one D/d/new && run 1 verify t.trace D && grep -qx '/d/one: link: found the same file as /d/new' out
ok $? 'one file instead of two'
if python3 -c 'import os; os.setxattr("t.txt", "user.try", b"x")' 2>/dev/null; then
	differs '/d/kept: xattr: found another user.colour, recorded user.colour of 3 bytes' \
		python3 -c 'import os; os.setxattr("D/d/kept", "user.colour", b"blue")'
	ok $? 'an attribute'
	differs '/d/new: xattr: found user.more' python3 -c 'import os; os.setxattr("D/d/new", "user.more", b"x")'
	ok $? 'an attribute too much'
fi
differs "/d/new: content: found [0-9a-f]*, recorded $hello" sh -c 'printf world >D/d/new'
ok $? 'a content'
differs "/d/untouched: content: found [0-9a-f]*, recorded $hello" sh -c 'printf world >D/d/untouched'
ok $? 'also of what was not touched'
rm -rf D && perform D && run 1 verify --owners t.trace D && grep -q '^/d/one: owner: found .*, recorded 12345:' out && run 1 verify --times t.trace D &&
	grep -q '^/d/one: time: found .*, recorded 5$' out
ok $? 'owners and times on request'
rm -rf D/d && run 1 verify --json t.trace D && json 'd["differences"] == len(d["list"]) == d["differences_by_kind"]["missing"] == 9
	and all(x["what"] == "missing" for x in d["list"])'
ok $? 'a directory is missing, with all below it'
ln -s /etc D/d && run 1 verify --json t.trace D && json '[x for x in d["list"] if x["path"] == "/d"][0]["found"] == "symlink" and d["differences_by_kind"]["missing"] == 8'
ok $? 'a symlink is not followed'

python3 - >many.txt <<'END'
for i in range(30):
    print('tree_entry(tree=final, path="/%02d", stat={type=file})' % i)
END
make many && mkdir empty
run 1 verify many.trace empty && lines 22 && grep -qx '... and 10 more (-v lists them)' out && run 1 verify -v many.trace empty && lines 31
ok $? 'the first differences, or all'
run 2 verify t.trace none && says 'cannot open none: No such file or directory'
ok $? 'no directory'
run 2 verify none.trace D && says 'cannot open none.trace'
ok $? 'no trace'
printf 'tree_entry(tree=final, path="/a/../b", stat={type=file})\n' >bad.txt && make bad
run 2 verify bad.trace D && says 'leads upwards'
ok $? 'a path that leads upwards'

# A real program: what it left is what was recorded, also when it is done again below another directory.
mkdir work traces
cat >program.sh <<'END'
mkdir -p a/b && echo one >a/b/1 && ln a/b/1 a/b/2 && ln -s b/1 a/sym && mkfifo a/pipe && chmod 640 a/b/1
mv a/b a/c && rm a/sym && echo two >>in && cp in out && rm gone && ls . a a/c >/dev/null && mv dir/x dir/y && truncate -s 100 dir/z
END
prepare() {
	mkdir dir && echo in >in && echo gone >gone && echo x >dir/x && echo z >dir/z && echo w >dir/w
}
(cd work && prepare && "$REPRISE" record -q -o ../traces/p.trace -- sh ../program.sh >../out 2>../err)
ok $? 'a program is recorded'
run 0 verify --json traces/p.trace / && json 'd["differences"] == 0 and d["paths"] > 20'
ok $? 'it left what was recorded'
run 0 init traces/p.trace P && (cd "P$dir/work" && sh "$dir/program.sh") && run 0 verify --json traces/p.trace P &&
	json 'd["differences"] == 0 and d["contents"] > 5'
ok $? 'and leaves it again'
run 0 init traces/p.trace P && run 1 verify traces/p.trace P && (cd "P$dir/work" && sh "$dir/program.sh") && run 0 verify traces/p.trace P
ok $? 'and again after a repair'
run 0 verify --json traces/p.trace P && cp out trace.json
for how in '' --reference; do
	# shellcheck disable=SC2086 # none is no word
	run 0 compile -f $how -o traces/p.plan traces/p.trace && run 0 verify --json traces/p.plan P && sed 's/p\.plan/p.trace/' out | cmp - trace.json &&
		run 0 init --json traces/p.plan P && json 'd["delta"]' && run 0 init traces/p.plan "P2$how" && run 0 init traces/p.trace "P2$how" &&
		run 0 init --whole --json traces/p.trace "P2$how" && json 'd["made"] == d["bytes_written"] == 0 and (d["repaired"] == 0 or '"$(id -u)"')' && (cd "P$dir/work" && sh "$dir/program.sh")
	ok $? "a plan does as well as its trace $how"
done
(cd work && rm -rf ./* && prepare && "$REPRISE" record -q --data=none -o ../traces/n.trace -- sh ../program.sh >../out 2>../err)
run 0 init traces/n.trace N && (cd "N$dir/work" && sh "$dir/program.sh") && run 0 verify --json traces/n.trace N &&
	json 'd["differences"] == 0 and d["contents_not_compared"] > 5'
ok $? 'without contents, these are not compared'

echo "1..$nr"
