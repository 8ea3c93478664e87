# SPDX-License-Identifier: MIT
# Real programs, recorded and stepped through with the file-system model: what the trace tells
# and what the model foretells must agree, with the initial tree of the trace and without it.
# shellcheck disable=SC2016 # the scripts are for another shell
set -u

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
nr=0

export LC_ALL=C HOME="$dir" GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b

# agrees NAME OPTION KIND: what is counted as KIND must be 0; shows the first that is not
agrees()
{
	nr=$((nr + 1))
	if "$MODEL_TRACE" ${2:+"$2"} trace >out 2>err && grep -qx "$3 0" out; then
		echo "ok $nr - $1${2:+ $2}"
	else
		echo "not ok $nr - $1${2:+ $2}"
		head -n 20 out err | cut -c 1-300 | sed 's/^/# /'
	fi
}

# skips NAME WHY
skips()
{
	nr=$((nr + 2))
	echo "ok $((nr - 1)) - $1 # SKIP $2"
	echo "ok $nr - $1 -i # SKIP $2"
}

# model NAME SCRIPT COMMAND...: records the script, which needs the commands
model()
{
	name=$1 script=$2
	shift 2
	for need in "$@"; do
		command -v "$need" >/dev/null || {
			skips "$name" "$need is not installed"
			return
		}
	done
	rm -rf work trace
	mkdir work
	if ! (cd work && "$REPRISE" record -q -o ../trace -- sh -ec "$script" >../out 2>../err </dev/null); then
		nr=$((nr + 2))
		echo "not ok $((nr - 1)) - $name"
		echo "not ok $nr - $name -i"
		head -n 20 out err | sed 's/^/# /'
		return
	fi
	agrees "$name" '' contradictions
	# What is guessed may be wrong until it is mended.
	agrees "$name" -i unrepaired
}

tree='mkdir -p t/a/b; for i in 1 2 3 4 5; do echo $i >t/a/$i; head -c ${i}0000 /dev/zero >t/a/b/$i; done
      ln -s a/1 t/l; ln t/a/2 t/h'

model sh 'for i in 1 2 3; do echo $i; done | sort -r | tee x; (exit 3) || echo $?'
model coreutils "$tree; cp -a t u; rm -r t; mv u t; wc -c t/a/b/*; split -b 100 t/a/b/1; cat x* | cksum"
model tar "$tree; tar --sort=name -cf x.tar t; mkdir y; tar -xf x.tar -C y; tar -czf x.tgz t" tar
model find "$tree; find t | sort; find t -type f -exec cksum {} +" find
model python3 'python3 -I -c "import os, threading
def f(n):
    for i in range(100): open(f\"f{n}\", \"a\").write(str(i))
ts = [threading.Thread(target=f, args=(n,)) for n in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]"' python3
model sqlite3 'i=0; while [ $i -lt 50 ]; do echo "insert into t values ($i);"; i=$((i + 1)); done >q
      sqlite3 db "create table t (a)"; sqlite3 db <q; sqlite3 db "pragma journal_mode=wal"; sqlite3 db <q
      sqlite3 db .dump >dump; rm db' sqlite3
model git 'git init -q -b main r; cd r; for i in 1 2 3; do echo $i >f$i; git add f$i; git commit -q -m $i; done
      git clone -q . ../s; git -C ../s fsck; git gc -q; cd ..; rm -rf r/.git s/.git' git
model gcc 'echo "#include <stdio.h>
int main(void) { puts(\"built\"); return 0; }" >m.c; gcc -pipe -c m.c; gcc -o m m.o; ./m' gcc
model rsync "$tree; rsync -a t/ u; echo more >>t/a/1; rsync -a t/ u; rm t/a/2; rsync -a --delete t/ u" rsync
model postmark 'printf "set number 50\nset transactions 200\nset seed 7\nrun\nquit\n" | postmark' postmark
model db_bench 'b="db_bench --db=$PWD/db --num=2000 --threads=4"
      $b --benchmarks=fillseq,readrandom,overwrite,compact >/dev/null 2>&1; rm -r db' db_bench
echo "1..$nr"
