# SPDX-License-Identifier: MIT
# usage: replay_real.sh [--long]
# Real programs, recorded and replayed in a directory of their own: every call must have the outcome it
# had, and the tree must end as it did; again after a repair of the tree, with lanes held up at random.
# With --long more of the latter, and programs that need large packages.
# shellcheck disable=SC2016 # the scripts are for another shell
set -u
recorder=

dir=$(mktemp -d) || exit 1
trap 'chmod -R u+rwx "$dir" 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir" || exit 1
nr=0
seeds='1 2'
[ "${1-}" = --long ] && seeds='1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20'

export LC_ALL=C HOME="$dir" GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b

# fails NAME WHY: says so, and shows what the last command printed
fails()
{
	echo "not ok $nr - $1: $2"
	head -n 30 out err 2>/dev/null | cut -c 1-300 | sed 's/^/# /'
}

# missing COMMAND...: sets need to the first that is not installed; false if all are
missing()
{
	for need in "$@"; do
		command -v "$need" >/dev/null || return 0
	done
	return 1
}

# records SCRIPT [OPTION]...: as trace and, compiled with the options, as plan
records()
{
	script=$1
	shift
	chmod -R u+rwx work 2>/dev/null
	rm -rf work trace
	mkdir work || exit 1
	(cd work && "$REPRISE" record -q ${recorder:+--recorder=$recorder} -o ../trace -- sh -ec "$script" >../out 2>../err </dev/null) || return 1
	"$REPRISE" compile -q -f -o plan "$@" trace >out 2>err
}

# number KEY: what out, a report as JSON, has for it at its top level
number()
{
	sed -n "s/^.*\"$1\": *\([0-9][0-9]*\).*$/\1/p" out | head -n 1
}

# replays [OPTION]...: the plan in tree; sets why and is false unless all went as recorded
replays()
{
	"$REPRISE" replay -q --speed=afap --stall-timeout=60s --json "$@" plan tree >out 2>err
	status=$?
	mismatches=$(number mismatches)
	why="${*:+$* }status $status, ${mismatches:-no} mismatches"
	[ "$status" -eq 0 ] && [ "$mismatches" = 0 ] && [ "$(number actions)" -gt 0 ] || return 1
	why="${*:+$* }$(number unbuilt) actions could not be made"
	[ "$(number unbuilt)" = 0 ] || return 1
	why="${*:+$* }$(number broken) pipes came to a standstill"
	[ "$(number broken)" = 0 ] || return 1
	why="${*:+$* }another tree"
	"$REPRISE" verify -q trace tree >out 2>err
}

# same NAME SCRIPT COMMAND...: the script is replayed as it was recorded; it needs the commands
same()
{
	name=$1 script=$2
	shift 2
	nr=$((nr + 1))
	if missing "$@"; then
		echo "ok $nr - $name # SKIP $need is not installed"
		return
	fi
	records "$script" || { fails "$name" "cannot be recorded and compiled"; return; }
	chmod -R u+rwx tree 2>/dev/null
	rm -rf tree
	mkdir tree || exit 1
	"$REPRISE" init -q trace tree >out 2>err || { fails "$name" "no initial tree"; return; }
	replays || { fails "$name" "$why"; return; }
	for seed in $seeds; do
		"$REPRISE" init -q --delta trace tree >out 2>err || { fails "$name" "the tree is not repaired"; return; }
		replays --perturb="$seed" || { fails "$name" "$why"; return; }
	done
	echo "ok $nr - $name"
}

# needs_order NAME: the script of the last same, which has threads, comes out otherwise without its edges
needs_order()
{
	nr=$((nr + 1))
	"$REPRISE" compile -q -f -o plan --order=none trace >out 2>err || { fails "$1" "cannot be compiled"; return; }
	for seed in $seeds; do
		"$REPRISE" init -q --delta trace tree >out 2>err || { fails "$1" "the tree is not repaired"; return; }
		if ! replays --perturb="$seed" && [ "${mismatches:-0}" -gt 0 ]; then
			echo "ok $nr - $1: $mismatches mismatches"
			return
		fi
	done
	fails "$1" "no mismatches"
}

# A run is shut into its directory; where the system allows no namespaces there is nothing to try.
mkdir tree
if ! records 'echo x >x' || ! "$REPRISE" init -q trace tree >out 2>err; then
	nr=1
	fails 'one file' 'cannot be recorded, compiled and made'
	echo '1..1'
	exit 1
fi
"$REPRISE" replay -q --speed=afap plan tree >out 2>err
if [ $? -eq 2 ] && grep -q 'namespace' err; then
	echo "1..0 # SKIP $(head -n 1 err)"
	exit 0
fi

tree='mkdir -p t/a/b; for i in 1 2 3 4 5; do echo $i >t/a/$i; head -c ${i}0000 /dev/zero >t/a/b/$i; done
      ln -s a/1 t/l; ln t/a/2 t/h'

same pipeline 'i=0; while [ $i -lt 500 ]; do echo $((i * 7 % 90)); i=$((i + 1)); done | sort -n | uniq -c | tee all | tail -n 3 >last
      mkfifo p; cat all >p & wc -l <p >lines; wait; rm p'
same pipes "$PIPES"
same locks "$LOCKS"
same threads-on-a-pipe "$SHARED_PIPES threads"
same processes-on-a-pipe "$SHARED_PIPES processes"
same threads-on-a-fifo "$SHARED_PIPES threads f"
same processes-on-a-fifo "$SHARED_PIPES processes f"
same fifos 'mkfifo p; cat p >out & seq 20000 >p; wait; (exec 3<>p; echo hi >&3; read x <&3; echo $x >y)
      for i in 1 2 3; do cat p >>z & echo $i >p; wait; done; (exec 3<p; cat <&3 >c) & exec 4>p; echo 4 >&4; dd bs=100000 count=5 </dev/zero >&4
      exec 4>&-; wait; ls p >l; chmod 600 p; rm p' seq
same 'names of sockets' "$SOCKETS names"
same 'descriptors in messages' "$SOCKETS messages"
same 'descriptors of other processes' "$SOCKETS pidfd"
same gpg 'mkdir -m 700 g; export GNUPGHOME=$PWD/g; echo data >f
      printf "%s\n" %no-protection "Key-Type: eddsa" "Key-Curve: ed25519" "Name-Real: A B" "Expire-Date: 0" %commit >key
      gpg -q --batch --gen-key key; gpg -q --batch -s f; gpg -q --batch -d f.gpg; gpgconf --kill all' gpg gpgconf
same pipe-of-tar "$tree; tar -cf - t | gzip -1 | cat >x.tgz; gzip -dc <x.tgz | (mkdir y; cd y; tar -xf -)
      seq 1 40000 >n; sort -r n | head -n 5 >top; yes | head -n 100000 >y1; sort <n | tee m | md5sum >sum" tar gzip seq md5sum
same substitution 'echo "while read -r a; do echo \"\$a\"; done < <(printf \"1\n2\n3\n\") >x
      echo \"\$(echo a; echo b | tr b c)\" >y; cat <(sort -r x) <(cat y) >z; diff <(cat x) <(cat x)" >s; bash s' bash
same tar "$tree; tar -cf x.tar t; mkdir y; tar -xf x.tar -C y; tar -czf x.tgz t; rm -r t; tar -xzf x.tgz" tar gzip
same find-rm "$tree; cp -a t u; find t -type f -name '[1-3]' -exec rm {} +; find u -depth -delete; rm -r t/a/b" find
same sqlite3 'for m in delete wal; do
	      echo "create table t_$m (a integer primary key, b);" >q
	      i=0; while [ $i -lt 20 ]; do echo "begin; insert into t_$m values ($i, hex(randomblob(500)));"
	      echo "update t_$m set b = 1 where a = $i / 2; commit;"; i=$((i + 1)); done >>q
	      echo "begin; delete from t_$m where a > 10; rollback; vacuum; select count(*) from t_$m;" >>q
	      sqlite3 db "pragma journal_mode=$m" >/dev/null; sqlite3 db <q >>counts
      done; sqlite3 db "pragma integrity_check"' sqlite3
same git 'git init -q -b main r; cd r; for i in 1 2 3; do echo $i >f$i; git add f$i; git commit -q -m $i; done
      git checkout -q -b side HEAD~; echo x >g; git add g; git commit -q -m g; git checkout -q main
      git merge -q -m m side; git gc -q; git clone -q . ../s; git -C ../s fsck --no-progress' git
same make 'for i in 1 2 3; do echo "int f$i(void); int f$i(void) { return $i; }" >f$i.c; done
      echo "int f1(void); int main(void) { return f1() - 1; }" >m.c
      printf "m: m.o f1.o f2.o f3.o\n\t\$(CC) -o m m.o f1.o f2.o f3.o\n" >Makefile
      make -s -j2 CC=gcc; ./m; touch -d @1700000000 f1.o; make -s -j2 CC=gcc' make gcc
threads='import os, threading
lock = threading.Lock()
def f(n):
    for i in range(30):
        with open(f"f{n}", "a") as file: file.write(str(i))
        with lock:
            with open("all", "a") as file: file.write(f"{n} {i}\n")
            os.rename("all", "all.new"); os.rename("all.new", "all")
            if i % 10 == 0: os.makedirs(f"d/{n}/{i}"); os.listdir("d"); os.stat("all").st_size
ts = [threading.Thread(target=f, args=(n,)) for n in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]'
same threads "$SLOTS"
needs_order 'threads without order'
same 'a directory that two threads read in turn' "$TURNS"
same python3 "python3 -I -c '$threads'" python3
through='import os
os.makedirs("d/e"); open("d/f", "w").write("hello")
fd = os.open("d", os.O_RDONLY)
d = f"/proc/self/fd/{fd}"
os.rename(d + "/f", "g"); os.link("g", d + "/h"); os.symlink("x", d + "/s"); os.rename("g", d + "/g")
os.chdir(d + "/e"); open("here", "w").write(os.readlink("../s")); os.listdir("/")'
for engine in libaio io_uring; do
	same "fio with $engine" "fio --name=x --size=128k --bs=4k --rw=randrw --iodepth=4 --ioengine=$engine \
	      --verify=crc32c --thread --eta=never --output=/dev/null" fio
done
# Files that requests alone open, write and close. Without io_uring there are none.
(mkdir probe && cd probe && "$URING_FILES") >out 2>err
if [ $? -eq 77 ]; then
	nr=$((nr + 1))
	echo "ok $nr - files opened by io_uring # SKIP $(head -n 1 err)"
else
	same 'files opened by io_uring' "$URING_FILES"
fi
rm -rf probe

# polled NAME NR SCRIPT: as same, by all recorders; the trace is complete and has NR writes of an io_uring
polled()
{
	for recorder in ptrace auto; do
		same "$1: $recorder" "$3"
		nr=$((nr + 1))
		seen=$("$REPRISE" show trace | grep -o 'opcode=IORING_OP_WRITE, f[dl]' | wc -l)
		if [ "$seen" -eq "$2" ] && "$REPRISE" check trace | grep -q 'intact and complete'; then
			echo "ok $nr - $1: $recorder: all requests"
		else
			echo "not ok $nr - $1: $recorder: $seen of $2 requests"
		fi
	done
	recorder=
}

# Requests that a kernel thread would take without a call, unless the recorder saw to it.
(mkdir probe && cd probe && "$URING_POLLED" follow 8) >out 2>err
if [ $? -eq 77 ]; then
	nr=$((nr + 1))
	echo "ok $nr - io_uring with a polling thread # SKIP $(head -n 1 err)"
else
	for how in follow queue ignore yield; do
		polled "polling thread: $how" 64 "$URING_POLLED $how 64"
	done
	if missing fio; then
		nr=$((nr + 1))
		echo "ok $nr - fio with a polling thread # SKIP no fio"
	else
		polled 'fio with a polling thread' 256 "fio --name=x --size=1m --bs=4k --rw=randwrite --iodepth=4 \
		      --ioengine=io_uring --sqthread_poll=1 --thread --eta=never --output=/dev/null"
	fi
	# A recording that ends before the program must not leave it waiting.
	for recorder in ptrace auto; do
		for how in queue ignore; do
			nr=$((nr + 1))
			rm -f trace
			if (cd probe && timeout 60 "$REPRISE" record -q --recorder=$recorder --max-time=50ms -o ../trace -- \
				"$URING_POLLED" $how 400) >out 2>err && [ "$(wc -c <probe/out)" -eq 204800 ]; then
				echo "ok $nr - polling thread: $how: $recorder: goes on after the recording"
			else
				fails "polling thread: $how: $recorder" 'does not go on after the recording'
			fi
		done
	done
	recorder=
	# Where the thread is needed the ledger has the number of requests that were not seen.
	nr=$((nr + 1))
	records "$URING_POLLED device 64"
	seen=$("$REPRISE" show trace | grep -c 'opcode=IORING_OP_NOP')
	lost=$("$REPRISE" stat trace | sed -n 's/^ledger .*CALL_UNSEEN: \([0-9]*\) events, .*polls were not seen$/\1/p')
	if [ $((seen + ${lost:-0})) -eq 64 ] && [ "${lost:-0}" -gt 0 ]; then
		echo "ok $nr - requests that were not seen are counted"
	else
		echo "not ok $nr - requests that were not seen are counted: $seen seen, ${lost:-none} lost"
	fi
fi
rm -rf probe
# Set-id bits and attributes of the system, which a run without --privileged-metadata does not apply.
rights='import os
open("f", "w").write("x"); os.chmod("f", 0o6755); os.stat("f")
os.mkdir("d"); os.chmod("d", 0o2775); os.mkdir("d/e"); os.stat("d/e"); os.listxattr("f")
try: os.setxattr("f", "trusted.x", b"1"); os.getxattr("f", "trusted.x"); os.listxattr("f")
except OSError: pass'
same 'metadata that gives rights' "python3 -I -c '$rights'" python3
same descriptors-as-names "python3 -I -c '$through'" python3
same rsync "$tree; rsync -a t/ u; echo more >>t/a/1; rsync -a t/ u; rm t/a/2; rsync -a --delete t/ u" rsync
if [ "${1-}" = --long ]; then
	same postmark 'printf "set number 50\nset transactions 200\nset seed 7\nrun\nquit\n" | postmark' postmark
	same fio 'fio --name=x --size=2m --bs=4k --rw=randwrite --numjobs=3 --thread --ioengine=psync \
	      --verify=pattern --verify_pattern=%o --verify_fatal=1 --eta=never --output=/dev/null' fio
	same libreoffice 'echo one >x.txt; soffice "-env:UserInstallation=file://$PWD/profile" --headless \
	      --convert-to odt x.txt >/dev/null' soffice
	same db_bench 'b="db_bench --db=$PWD/db --num=5000 --threads=4"
	      $b --benchmarks=fillseq,readrandom,overwrite >/dev/null 2>&1' db_bench
fi
echo "1..$nr"
