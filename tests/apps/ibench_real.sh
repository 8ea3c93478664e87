# SPDX-License-Identifier: MIT
# Real programs as iBench would have traced them, with a listing of what was there: imported and replayed.
# What the converter drops (descriptors that it cannot name) is what such traces lack too.
set -u

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
nr=0
export LC_ALL=C

mkdir -p src/a/b
for i in 1 2 3 4 5; do
	head -c "${i}0000" /dev/urandom >"src/a/f$i"
	head -c "$i" /dev/urandom >"src/a/b/g$i"
done

# try NAME MISMATCHES MADE COMMAND...: at most so many mismatches, and MADE (a path) is there
try() {
	name=$1 allowed=$2 made=$3
	shift 3
	nr=$((nr + 1))
	rm -rf tree && mkdir tree || exit 1
	"$REPRISE" record -q -f -o t.trace -- "$@" >out 2>err </dev/null || {
		echo "ok $nr - $name # SKIP cannot record: $(head -n 1 err)"
		return
	}
	"$REPRISE" export -q -f --format=artc-init -o t.init t.trace >out 2>err &&
		"$REPRISE" show --json t.trace | python3 "$TOP/tests/apps/to_ibench.py" >t.ibench &&
		"$REPRISE" import -q -f --init=t.init -o i.trace t.ibench >out 2>err &&
		"$REPRISE" replay -q --speed=afap --json i.trace tree >out 2>err
	status=$?
	mismatches=$(sed -n 's/^.*"mismatches": *\([0-9][0-9]*\).*$/\1/p' out | head -n 1)
	if [ "$status" -eq 0 ] && [ "${mismatches:-999}" -le "$allowed" ] && [ "$(wc -l <t.ibench)" -gt 20 ] &&
		[ -e "tree/$made" ]; then
		echo "ok $nr - $name: $mismatches mismatches of $(($(wc -l <t.ibench) / 2)) calls"
	else
		echo "not ok $nr - $name: status $status, ${mismatches:-no} mismatches"
		head -n 40 out err | cut -c 1-300 | sed 's/^/# /'
	fi
}

try cp 0 "$dir/dst" cp "$dir/src/a/f5" "$dir/dst"
try 'cp -r' 0 "$dir/copy/a/f5" cp -r "$dir/src" "$dir/copy"
try sort 0 "$dir/sorted" sort -o "$dir/sorted" "$dir/src/a/f3"
try dd 0 "$dir/src/a/f1" dd "if=$dir/src/a/f1" "of=$dir/dd" bs=512 conv=fsync status=none
# Reads through directories' descriptors, which no path in the trace leads to.
try tar 0 "$dir/src/a/f1" tar cPf "$dir/x.tar" "$dir/src"
echo "1..$nr"
