#!/bin/sh
# SPDX-License-Identifier: MIT
# Real programs find all that they need in a tree that init made: they are run with it as their
# root directory, and leave there what they left when they were recorded.
. "$TOP/tests/cli/tap.sh"

if [ "$(id -u)" -ne 0 ] || ! unshare -m chroot / true 2>/dev/null; then
	echo "1..0 # SKIP it takes root to change the root directory"
	exit 0
fi
mkdir home
export LC_ALL=C HOME="$dir/home"

# again NAME SCRIPT COMMAND...: recorded, then done again in its own tree; it needs the commands
again() {
	name=$1 script=$2
	shift 2
	for need in "$@"; do
		command -v "$need" >/dev/null && continue
		nr=$((nr + 1))
		echo "ok $nr - $name # SKIP no $need here"
		return
	done
	rm -rf work D && mkdir work
	# What standard output is must not be a file of the tree.
	(cd work && { "$REPRISE" record -q -f -o ../p.trace -- sh -e -c "$script" 2>../err || echo failed; } | cat >../out.1)
	run 0 init p.trace D && in_tree && run 0 verify p.trace D
	ok $? "$name"
	run 0 init p.trace D && run 1 verify p.trace D && in_tree && run 0 verify p.trace D
	ok $? "$name: again after a repair"
}

# in_tree: the script does below D what it did when it was recorded
in_tree() {
	# The kernel reads the loader by itself: no program asks for it. /proc is the kernel's too.
	loader=$(python3 -c 'import re; print(re.search(rb"/lib[^\0]*/ld-[^\0]*", open("/bin/sh", "rb").read()).group().decode())')
	mkdir -p D/proc "D${loader%/*}" && cp -L "$loader" "D$loader" &&
		unshare -m sh -c 'mount -t proc proc D/proc && chroot D sh -e -c "cd $0 && $1"' "$dir/work" "$script" 2>err | cat >out.2
	cmp out.1 out.2 >>err 2>&1
}

again shell 'mkdir a; for i in 1 2 3; do echo $i >a/$i; done; ln a/1 a/4; ls a; mv a b; rm b/2; sort -r b/*' sort
again gcc 'echo "int f(void) { return 7; }" >m.c; gcc -O2 -c m.c -o m.o; wc -c <m.o' gcc
again python3 '/usr/bin/python3 -B -c "import json, sqlite3; print(json.dumps([1, 2])); open(\"x\", \"w\").write(\"y\")"' /usr/bin/python3
again sqlite3 'sqlite3 a.db "create table t(a); insert into t values (1), (2); select sum(a) from t; delete from t where a = 1;"' sqlite3

echo "1..$nr"
