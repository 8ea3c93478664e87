# SPDX-License-Identifier: MIT
# usage: random_real.sh [--long]
# Random programs of several threads and processes (tests/model), performed for real, recorded for real, and
# replayed for real five times with lanes held up at random: every call must have the outcome that it had, and the
# tree must end as it did. Their calls do not overlap, but nothing in the trace says who waited for whom: the
# order that is needed must be found in what they touch.
# A seed that fails can be had again by REPRISE_SEEDS="SEED...".
set -u

dir=$(mktemp -d) || exit 1
trap 'chmod -R u+rwx "$dir" 2>/dev/null; rm -rf "$dir"' EXIT
chmod 755 "$dir"
cd "$dir" || exit 1
export LC_ALL=C
nr=0 last=24 calls=200
[ "${1-}" = --long ] && last=400 calls=400

fails()
{
	echo "not ok $nr - seed $seed: $1"
	head -n 20 out 2>/dev/null | cut -c 1-300 | sed 's/^/# /'
}

# replays SEED: once more from the start
replays()
{
	chmod -R u+rwx tree 2>/dev/null
	rm -rf tree
	mkdir tree || exit 1
	"$REPRISE" replay -q --speed=afap --perturb="$1" --stall-timeout=60s plan tree >out 2>&1 || {
		fails "perturbed by $1: status $?"
		return 1
	}
	"$REPRISE" verify -q trace tree >out 2>&1 || {
		fails "perturbed by $1: another tree"
		return 1
	}
}

# performs: the program of the seed
performs()
{
	chmod -R u+rwx root 2>/dev/null
	rm -rf root trace
	mkdir -p root/t/a || exit 1
	head -c 100 /dev/zero >root/t/b
	"$RANDOM_SCRIPT" "$seed" $((2 + seed % 6)) "$calls" >script || exit 1
	"$REPRISE" record -q -o trace -- "$REAL_PROGRAM" script "$dir/root" >out 2>&1 </dev/null
	status=$?
	if [ $status -eq 77 ]; then
		echo "1..0 # SKIP the root directory cannot be changed here"
		exit 0
	fi
	[ $status -eq 0 ] || {
		fails "recorded with status $status"
		return 1
	}
	"$REPRISE" compile -q -f -o plan trace >out 2>&1 || {
		fails 'cannot be compiled'
		return 1
	}
}

mkdir tree
seed=1
performs
"$REPRISE" replay -q --speed=afap plan tree >out 2>&1
if [ $? -eq 2 ] && grep -q 'namespace' out; then
	echo "1..0 # SKIP $(head -n 1 out)"
	exit 0
fi
for seed in ${REPRISE_SEEDS-$(seq 1 $last)}; do
	nr=$((nr + 1))
	performs || continue
	for perturbed in 1 2 3 4 5; do
		replays $perturbed || continue 2
	done
	echo "ok $nr - seed $seed"
done
echo "1..$nr"
