# SPDX-License-Identifier: MIT
# For scripts that record real programs: sourced, in an empty directory of its own afterwards.
# $RECORDER is the recorder; each of the programs must do the same alone and recorded.
set -u

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
chmod 711 "$dir" && cd "$dir" || exit 1 # others may run in it
nr=0
: "${RECORDER:=ptrace}"
net=on
[ "$RECORDER" != inproc ] || net=audit
read_back=yes # whether traces are written as text and read again, too
must_succeed=no # a script that fails alone is not tried: the program does not work here

export LC_ALL=C HOME="$dir" GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'

# run_in DIR WORDS...: runs them there; leaves out, err and status in the parent directory
run_in()
{
	mkdir "$1" || exit 1
	(
		cd "$1" || exit 99
		shift
		"$@" >../out 2>../err </dev/null
	)
	echo $? >status
}

# fails NAME WHY: says so, and shows what the last run printed
fails()
{
	echo "not ok $nr - $1: $2"
	head -n 20 out err 2>/dev/null | sed 's/^/# /'
}

# same NAME SCRIPT COMMAND...: the script does the same alone and recorded; it needs the commands
same()
{
	name=$1 script=$2
	shift 2
	nr=$((nr + 1))
	for need in "$@"; do
		command -v "$need" >/dev/null || {
			echo "ok $nr - $name # SKIP $need is not installed"
			return
		}
	done
	rm -rf work alone recorded trace
	run_in work sh -ec "$script"
	[ $must_succeed = no ] || [ "$(cat status)" = 0 ] || {
		echo "ok $nr - $name # SKIP alone it ends with status $(cat status): $(tail -n 1 err)"
		return
	}
	mv work alone && mv out out.alone && mv err err.alone && mv status status.alone
	run_in work "$REPRISE" record -q --recorder="$RECORDER" --net=$net -o "$dir/trace" -- sh -ec "$script"
	mv work recorded
	cmp -s status status.alone || { fails "$name" "status $(cat status), not $(cat status.alone)"; return; }
	cmp -s out out.alone || { fails "$name" "another output"; return; }
	cmp -s err err.alone || { fails "$name" "another error output"; return; }
	diff -r --no-dereference alone recorded >out 2>&1 || { fails "$name" "other files"; return; }
	"$REPRISE" check trace >out 2>err || { fails "$name" "the trace is not whole"; return; }
	"$TOP/tests/lib/audit.py" "$REPRISE" trace >out 2>err || { fails "$name" "a call may have passed unseen"; return; }
	[ $read_back = no ] || is_read_back "$name" || return
	echo "ok $nr - $name"
}

# is_read_back NAME: the trace as text, read again, is the same
is_read_back()
{
	"$REPRISE" show --exact trace >trace.txt 2>err || { fails "$1" "cannot be shown"; return 1; }
	"$REPRISE" import --format=exact --force -o again trace.txt >out 2>err ||
		{ fails "$1" "cannot be read back"; return 1; }
	"$REPRISE" diff trace again >out 2>err || { fails "$1" "not the same when read back"; return 1; }
}
