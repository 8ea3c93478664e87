# SPDX-License-Identifier: MIT
# A recorded program whose threads meet at a barrier and take turns under a lock: what came one
# after the other for a reason must do so in its plan. What a thread finds done without a call,
# the recorder cannot see: a lock that was free, and seldom a barrier that had just opened.
set -u

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

echo 1..3
if "$REPRISE" record -q -o trace -- "$MEETINGS" >err 2>&1 && "$MEETINGS_ORDER" trace >out 2>>err; then
	echo "ok 1 - record and compile"
else
	echo "not ok 1 - record and compile"
fi
sed 's/^/# /' out err

# says NUMBER NAME CONDITION: in terms of n[policy, what] pairs, of which u[policy, what] have no order
says()
{
	if awk '{ for (i = 2; i < NF; i += 3) { n[$1, $i] = $(i + 1); u[$1, $i] = $(i + 2) } }
		END { exit !('"$3"') }' out; then
		echo "ok $1 - $2"
	else
		echo "not ok $1 - $2"
	fi
}

says 2 'all pairs are there' 'n["ahead", "meetings"] == 99 * 30'
says 3 'meetings hold' 'NR == 2 && u["ahead", "meetings"] * 25 <= n["ahead", "meetings"]'
