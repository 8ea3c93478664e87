#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise export
. "$TOP/tests/cli/tap.sh"

run 0 show --exact a.trace && cp out exact
run 0 export --format=exact a.trace && cmp -s out exact
ok $? 'exact: what show --exact prints'
run 0 export --format=exact -o a.exact a.trace && cmp -s a.exact exact && [ ! -s out ]
ok $? 'to a file'
run 2 export --format=exact -o a.exact a.trace && says 'a.exact is there already' && cmp -s a.exact exact
ok $? 'an existing file is not replaced'
echo longer >>a.exact
run 0 export --format=exact -f -o a.exact a.trace && cmp -s a.exact exact
ok $? 'unless that is asked for'
run 2 export a.trace && says 'name the format'
ok $? 'a format must be named'
run 2 export --format=exact -o none/a.exact a.trace && says 'cannot create none/a.exact'
ok $? 'a file that cannot be made'
if [ -w /dev/full ]; then
	run 2 export --format=exact -f -o /dev/full a.trace && says 'cannot write /dev/full'
	ok $? 'a full disk'
else
	nr=$((nr + 1))
	echo "ok $nr - a full disk # SKIP no /dev/full"
fi

# Listings of the initial tree.
cat >t.txt <<'END'
# reprise exact 1
tree_entry(tree=initial, path="/b/f", stat={type=file, mode=0644, size=70})
tree_entry(tree=initial, path="/a", stat={type=dir, mode=0755})
tree_entry(tree=initial, path="/a-b", stat={type=file, size=1})
tree_entry(tree=initial, path="/a/l", stat={type=symlink}, target="../b/f")
tree_entry(tree=initial, path="/a/hash#", stat={type=file, size=1})
tree_entry(tree=initial, path="/a/line\n", stat={type=file, size=1})
tree_entry(tree=initial, path="/a/to", stat={type=symlink}, target="x#y")
tree_entry(tree=initial, path="/a/pipe", stat={type=fifo})
tree_entry(tree=initial, path="/a/none", flags=MISSING)
tree_entry(tree=initial, path="/proc/cpuinfo", stat={type=file, size=0})
tree_entry(tree=initial, path="/process", stat={type=dir})
tree_entry(tree=final, path="/later", stat={type=dir})
END
make t
run 0 export --format=artc-init t.trace && prints 'dir#/
dir#/a
dir#/b
dir#/process
file#/a-b#1
file#/b/f#70
symlink#/a/l#../b/f' && says '6 things that the format cannot say were left out, 7 written'
ok $? 'artc-init: what it can say, sorted, with all parents'
cp out t.init
run 0 import -o u.trace t.init && run 0 export --format=artc-init u.trace && cmp -s out t.init
ok $? 'and it is read back'
run 0 import -o v.trace "$TOP/tests/samples/artc/strace-artc-accepted.init" &&
	run 0 export --format=artc-init v.trace && cmp -s out "$TOP/tests/samples/artc/strace-artc-accepted.init"
ok $? 'a listing that the original accepts is written as it was'

echo "1..$nr"
