# SPDX-License-Identifier: MIT
# usage: record_real.sh [--long]
# Real programs, alone and recorded: they must do the same, and the trace must be whole.
# With --long those that need large packages.
# shellcheck disable=SC2016 # the scripts are for another shell
. "$TOP/tests/apps/same.sh"

tree='mkdir -p t/a/b; for i in 1 2 3 4 5; do echo $i >t/a/$i; head -c ${i}0000 /dev/zero >t/a/b/$i; done
      ln -s a/1 t/l; ln t/a/2 t/h; touch -h -d @1700000000 t/l t/a/* t/a/b/* t/a/b t/a t'

if [ "${1-}" = --long ]; then
	same fio 'fio --name=x --size=2m --bs=4k --rw=randwrite --numjobs=3 --thread --randrepeat=1 --ioengine=psync \
	      --verify=pattern --verify_pattern=%o --verify_fatal=1 --eta=never --output=/dev/null; cksum x.*' fio
	same fio-async 'fio --name=x --size=2m --bs=4k --rw=randwrite --iodepth=8 --ioengine=libaio --randrepeat=1 \
	      --verify=pattern --verify_pattern=%o --eta=never --output=/dev/null; cksum x.*' fio
	same fio-uring 'fio --name=x --size=2m --bs=4k --rw=randwrite --iodepth=8 --ioengine=io_uring --randrepeat=1 \
	      --verify=pattern --verify_pattern=%o --eta=never --output=/dev/null; cksum x.*' fio
	same db_bench 'b="db_bench --db=$PWD/db --num=20000 --seed=1"; $b --benchmarks=fillrandom >/dev/null 2>&1
	      $b --benchmarks=readrandom --threads=2 --reads=2000 --use_existing_db=1 2>/dev/null | grep -o "[0-9]* of [0-9]* found"
	      rm -r db' db_bench
	same mpi 'export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=/tmp
	      echo "#include <mpi.h>
	#include <stdio.h>
	int main(int n, char **v) { int r, s; MPI_Init(&n, &v); MPI_Comm_rank(MPI_COMM_WORLD, &r);
	MPI_Allreduce(&r, &s, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); printf(\"hello from %d, sum %d\\n\", r, s);
	MPI_Finalize(); return 0; }" >h.c
	      mpicc -o h h.c; mpirun --oversubscribe -np 2 ./h | sort' mpirun mpicc
	echo "1..$nr"
	exit 0
fi

same sh 'for i in 1 2 3; do echo $i; done | sort -r | tee x; (exit 3) || echo $?; exit 5'
same coreutils "$tree; cp -a t u; rm -r t; mv u t; wc -c t/a/b/*; split -b 100 t/a/b/1; cat x* | cksum"
same tar "$tree; tar --sort=name -cf x.tar t; tar -tf x.tar; mkdir y; tar -xf x.tar -C y" tar
same find "$tree; find t | sort; find t -type f -exec cksum {} +" find
same python3 'python3 -I -c "import os, threading
def f(n):
    for i in range(100): open(f\"f{n}\", \"a\").write(str(i))
ts = [threading.Thread(target=f, args=(n,)) for n in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]; print(sorted(os.listdir()))"' python3
same sqlite3 'i=0; while [ $i -lt 50 ]; do echo "insert into t values ($i);"; i=$((i + 1)); done >q
      sqlite3 db "create table t (a)"; sqlite3 db <q; sqlite3 db "select sum(a), count(*) from t"
      sqlite3 db .dump >dump; rm db' sqlite3
same git 'git init -q -b main r; cd r; for i in 1 2 3; do echo $i >f$i; git add f$i; git commit -q -m $i; done
      git log --format=%H; git clone -q . ../s; git -C ../s fsck; cd ..; rm -rf r/.git s/.git' git
same gcc 'echo "#include <stdio.h>
int main(void) { puts(\"built\"); return 0; }" >m.c; gcc -c m.c; gcc -o m m.o; ./m' gcc
same postmark 'printf "set number 50\nset transactions 200\nset seed 7\nrun\nquit\n" | postmark | grep -o "[0-9]* \(created\|deleted\|read\|appended\)"' postmark
same rsync "$tree; rsync -a t/ u; echo more >>t/a/1; rsync -a t/ u; rm t/a/2; rsync -a --delete t/ u; find u | sort" rsync
echo "1..$nr"
