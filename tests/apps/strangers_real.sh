# SPDX-License-Identifier: MIT
# usage: strangers_real.sh [--long] [NAME]...
# Programs that nobody made to be recorded: interpreters, compilers at run time, servers, static
# ones. Each must do the same alone and recorded, and end as it does alone.
# With --long those that need large packages, or long.
# shellcheck disable=SC2016 # the scripts are for another shell
. "$TOP/tests/apps/same.sh"

read_back=no must_succeed=yes
long=no
if [ "${1-}" = --long ]; then
	long=yes
	shift
fi
chosen=" $* "

# stranger NAME SCRIPT COMMAND...: as `same`, if it was chosen; alone its status must be 0
stranger()
{
	case $chosen in
	'  ' | *" $1 "*) same "$@" ;;
	esac
}

if [ $long = no ]; then
	stranger perl 'perl -e "for \$i (1..5) { if (!fork) { open F, q(>), qq(f\$i); print F \$i x 5000 for 1..50; close F; exit \$i } }
	      \$n += \$? >> 8 while wait > 0; print qq(\$n\n); opendir D, q(.); print sort grep /f/, readdir D"' perl
	stranger bash 'bash -c "set -o pipefail; for i in {1..20}; do echo \$((i * i)); done | while read n; do echo \$n >f\$n; done
	      cat <(cat f1 f4) <<<word; trap \"echo trapped\" USR1; kill -USR1 \$\$; coproc cat; echo through >&\${COPROC[1]}
	      read line <&\${COPROC[0]}; echo \$line; printf %s, f*; exit 7" || echo $?' bash
	stranger make 'for i in 1 2 3 4 5 6 7 8; do echo "int f$i(void) { return $i; }" >f$i.c; done
	      echo "int main(void) { return 0; }" >m.c
	      printf "all: m\nm: m.o f1.o f2.o f3.o f4.o f5.o f6.o f7.o f8.o\n\tcc -o \$@ \$^\n" >Makefile
	      make -s -j4; ./m; nm m | grep -c " f[1-8]$"' make cc nm
	stranger busybox 'b=$(command -v busybox); $b sh -c "for i in 1 2 3; do echo \$i | $b tee f\$i; done; $b seq 1 2000 >s; $b gzip -k s; $b zcat s.gz |
	      $b md5sum; $b tar -cf t.tar f1 f2 f3; $b tar -tf t.tar; $b find . -name \"f*\" | $b sort; $b rm -r s.gz t.tar"' busybox
	stranger tar-gzip 'mkdir t; for i in 1 2 3 4 5 6 7 8 9; do seq 1 ${i}000 >t/$i; done; tar -czf t.tgz t; tar -tzf t.tgz | wc -l
	      rm -r t; tar -xzf t.tgz; cat t/* | cksum; rm t.tgz' tar gzip seq
	echo "1..$nr"
	exit 0
fi

# Tools that look after all of a program's memory and calls.
checked='cat >m.c <<\END
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *fill(void *fd) { for (int i = 0; i < 200; i++) if (pwrite(*(int *)fd, "abcd", 4, i * 4) != 4) return fd; return NULL; }
int main(void) { pthread_t t[2]; int fd[2]; char b[4] = "";
for (int i = 0; i < 2; i++) { fd[i] = open(i ? "g" : "f", O_RDWR | O_CREAT, 0600); pthread_create(&t[i], NULL, fill, &fd[i]); }
for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
printf("%d\n", (int)pread(fd[1], b, 4, 796)); printf("%.4s\n", b); return 0; }
END
cc -g -pthread'
stranger valgrind "$checked -o m m.c; valgrind -q --error-exitcode=9 ./m; rm m" valgrind cc
for what in address thread undefined; do
	# Leaks are looked for by a tracer, and who is traced cannot have another.
	stranger $what-sanitizer "$checked -fsanitize=$what -o m m.c; ASAN_OPTIONS=detect_leaks=0 ./m; rm m" cc
done
stranger node 'node -e "
const fs = require(\"fs\"), { Worker } = require(\"worker_threads\"), cp = require(\"child_process\");
let n = 0; for (let i = 0; i < 3e6; i++) n = (n * 31 + i) | 0;
console.log(n, cp.execFileSync(\"echo\", [\"child\"]).toString());
Promise.all([...Array(50).keys()].map(i => fs.promises.writeFile(\"f\" + i, \"x\".repeat(i * 1000)))).then(async () => {
  const all = await Promise.all([...Array(50).keys()].map(i => fs.promises.readFile(\"f\" + i)));
  console.log(all.reduce((a, b) => a + b.length, 0));
  new Worker(\"require(\\\"fs\\\").writeFileSync(\\\"w\\\", \\\"of a worker\\\")\", { eval: true }).on(\"exit\", c => console.log(c));
});"' node
stranger java 'echo "import java.nio.file.*; import java.util.concurrent.*;
public class M { public static void main(String[] a) throws Exception {
ExecutorService e = Executors.newFixedThreadPool(8); long h = 0;
for (int n = 0; n < 8; n++) { final int k = n; e.submit(() -> { for (int i = 0; i < 100; i++) Files.write(Path.of(\"f\" + k + \"_\" + i % 10), new byte[i * 10]); return 0; }); }
e.shutdown(); e.awaitTermination(60, TimeUnit.SECONDS);
for (int i = 0; i < 20000000; i++) h = h * 31 + i; System.gc();
try (var s = Files.list(Path.of(\".\"))) { System.out.println(h + \" \" + s.count()); } System.exit(4); } }" >M.java
      javac M.java; rm M.java; java -Xmx128m -cp . M || echo $?; rm M.class' java javac
stranger go 'export GOCACHE=$PWD/cache GOFLAGS=-mod=mod GO111MODULE=off GOPATH=$PWD/path CGO_ENABLED=0
      echo "package main; import (\"fmt\"; \"os\"; \"os/exec\"; \"sync\")
      func main() { var w sync.WaitGroup
      for n := 0; n < 20; n++ { w.Add(1); go func(n int) { defer w.Done()
      for i := 0; i < 20; i++ { os.WriteFile(fmt.Sprint(\"f\", n), make([]byte, i*100), 0o644); os.ReadFile(fmt.Sprint(\"f\", n)) } }(n) }
      w.Wait(); o, e := exec.Command(\"echo\", \"child\").Output(); d, _ := os.ReadDir(\".\"); fmt.Println(len(d), string(o), e); os.Exit(9) }" >m.go
      go build -o m m.go; ./m || echo $?; rm -rf m cache path' go
stranger postgres 'b=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1); PATH=$b:$PATH; export PGHOST=$PWD PGUSER=p PGDATABASE=postgres
      as=; [ "$(id -u)" != 0 ] || { as="setpriv --reuid=65534 --clear-groups"; chown 65534 .; }
      $as initdb -D d -U p --no-sync >/dev/null 2>&1
      $as pg_ctl -D d -w -l log -o "-k $PWD -c listen_addresses= -c max_connections=20" start >/dev/null
      $as pgbench -i -q -s 1 >/dev/null 2>&1
      $as pgbench -c 4 -j 2 -t 100 2>/dev/null | grep "actually processed"
      $as psql -At -c "select count(*) from pgbench_history; select sum(abalance) = (select sum(delta) from pgbench_history) from pgbench_accounts"
      $as pg_ctl -D d -w -m fast stop >/dev/null; grep -c "database system is shut down" log; rm -r d log' pgbench setpriv
stranger redis 'redis-server --port 0 --unixsocket $PWD/s --dir $PWD --appendonly yes --appendfsync always --save "" --daemonize yes --logfile log >/dev/null
      until redis-cli -s s ping >/dev/null 2>&1; do sleep 0.1; done
      redis-benchmark -s s -c 10 -n 3000 -r 50 -t set,get,incr,lpush -d 100 -q >/dev/null
      redis-cli -s s llen mylist; redis-cli -s s bgrewriteaof >/dev/null; redis-cli -s s set k v; redis-cli -s s get k; redis-cli -s s shutdown
      grep -c "ready to exit" log; rm -rf appendonlydir log' redis-server redis-benchmark
stranger db_bench-8 'b="db_bench --db=$PWD/db --num=5000 --seed=1"; $b --benchmarks=fillrandom --threads=8 >/dev/null 2>&1
      $b --benchmarks=readrandom --threads=8 --reads=2000 --use_existing_db=1 2>/dev/null | grep -o "[0-9]* of [0-9]* found" | cut -d" " -f3-
      rm -r db' db_bench
stranger ffmpeg 'ffmpeg -v error -f lavfi -i testsrc=duration=2:size=320x240:rate=25 -f lavfi -i sine=duration=2 -c:v mpeg4 -c:a aac -threads 4 \
      -fflags +bitexact -flags +bitexact o.mkv; ffmpeg -v error -i o.mkv -f framemd5 - | cksum; rm o.mkv' ffmpeg
stranger chromium 'echo "<p id=p>static</p><script>let n=0;for(let i=0;i<1e6;i++)n=(n*31+i)|0;document.getElementById(\"p\").textContent=\"made \"+n</script>" >p.html
      s=; [ "$(id -u)" != 0 ] || s=--no-sandbox
      chromium --headless $s --disable-gpu --no-first-run --user-data-dir=$PWD/u --dump-dom file://$PWD/p.html 2>/dev/null | grep -o "made [-0-9][0-9]*"; rm -rf u .cache .config .pki .local' chromium
echo "1..$nr"
