# SPDX-License-Identifier: MIT
"""Databases: servers, and libraries that several processes share."""

from rows import RACE, Row

ROWS = [
    Row(
        "sqlite-wal", "sqlite3", quick=True,
        explained={"mismatches": RACE}, racy=True,
        shows="three processes at once in one database in WAL mode: a mapped index, record locks",
        run=r"""
sqlite3 db "pragma journal_mode=wal; create table t (a integer primary key, b, c)" >/dev/null
for p in 1 2 3; do
	{ echo ".timeout 20000"; for i in 1 2 3 4 5 6 7 8; do echo "begin immediate; insert into t (b, c) values ($p, hex(zeroblob($i * 100))); commit; select count(*) >= 0 from t;"; done; } |
		sqlite3 db >out$p &
done
wait
sqlite3 db "select count(*) from t; pragma integrity_check; pragma wal_checkpoint(truncate)" >end""",
    ),
    Row(
        "lmdb", "mdb_load=lmdb-utils mdb_dump=lmdb-utils", quick=True,
        shows="a copy-on-write B+ tree in a map, and a lock file that all processes map",
        run=r"""mkdir d; seq 1 300 | sed 's/.*/k&\nvalue &/' | mdb_load -T d; seq 100 400 | sed 's/.*/k&\nother &/' | mdb_load -T d
mdb_dump -p d >dump; mdb_stat -e d >stat; mkdir e; mdb_copy -c d e""",
    ),
    Row(
        "gdbm", "gdbmtool", quick=True,
        shows="a hash file in a map, with locks, reorganized into a new file",
        run=r"""seq 1 200 | sed 's/.*/store k& v&/' | gdbmtool -n db >/dev/null; { seq 1 150 | sed 's/.*/delete k&/'; echo reorganize; echo sync; echo "store k1 new"; echo list; } | gdbmtool db >list""",
    ),
    Row(
        "sqlite-journal", "sqlite3",
        shows="a rollback journal made, synced and deleted around each transaction, and a vacuum",
        run=r"""
for m in delete truncate persist; do
	sqlite3 db "pragma journal_mode=$m; create table t_$m (a integer primary key, b)" >/dev/null
	for i in 1 2 3 4 5 6 7 8; do echo "begin; insert into t_$m values ($i, hex(randomblob(500))); update t_$m set b = 1 where a = $i / 2; commit;"; done | sqlite3 db
done
sqlite3 db "begin; delete from t_delete; rollback; vacuum; pragma integrity_check" >end""",
    ),
    Row(
        "lmdb-processes", "py:lmdb=python3-lmdb",
        shows="four processes that write and read one map in turn, by robust mutexes in a mapped lock file",
        run=r"""cat >m.py <<'END'
import lmdb, os
def work(n):
    env = lmdb.open("d", map_size=1 << 22)
    for i in range(30):
        with env.begin(write=True) as t: t.put(b"%d-%d" % (n, i), b"v" * (i * 20))
        with env.begin() as t: t.get(b"0-0")
        if i % 10 == 9: env.sync(True)
os.mkdir("d")
for n in range(4):
    pid = os.fork()
    if pid == 0:
        work(n); os._exit(0)
for n in range(4): assert os.wait()[1] == 0
env = lmdb.open("d", map_size=1 << 22)
open("count", "w").write(str(env.stat()["entries"]))
END
python3 -I m.py""",
    ),
    Row(
        "berkeley-db", "db5.3_load=db5.3-util py:bsddb3=python3-bsddb3",
        shows="an environment of mapped regions that three processes share: log, transactions, checkpoint, backup, recovery",
        run=r"""cat >m.py <<'END'
import os
from bsddb3 import db
def work(n):
    env = db.DBEnv(); env.open("env", db.DB_CREATE | db.DB_INIT_MPOOL | db.DB_INIT_LOG | db.DB_INIT_TXN | db.DB_INIT_LOCK)
    d = db.DB(env); d.open("a.db", dbtype=db.DB_BTREE, flags=db.DB_CREATE | db.DB_AUTO_COMMIT)
    for i in range(10):
        t = env.txn_begin(); d.put(b"%d-%d" % (n, i), b"v" * (i * 50), txn=t); t.commit()
    d.close(); env.txn_checkpoint(); env.close()
os.mkdir("env"); work(0)
for n in (1, 2):
    if os.fork() == 0: work(n); os._exit(0)
for n in (1, 2): assert os.wait()[1] == 0
END
python3 m.py; mkdir bak; db5.3_hotbackup -h env -b bak; db5.3_recover -h bak; db5.3_dump -p -h env a.db >dump; db5.3_load -T -t hash b.db <<END
$(seq 1 200)
END
db5.3_verify b.db; db5.3_recover -h env""",
    ),
    Row(
        "leveldb", "py:plyvel=python3-plyvel",
        shows="a log-structured merge tree with a thread that compacts, and a lock file",
        run=r"""cat >m.py <<'END'
import plyvel
db = plyvel.DB("d", create_if_missing=True, write_buffer_size=65536, max_file_size=65536)
for i in range(3000): db.put(b"%06d" % (i * 7919 % 3000), b"x" * (i % 200))
for i in range(0, 3000, 3): db.delete(b"%06d" % i)
db.compact_range(); n = sum(1 for _ in db); db.close()
db = plyvel.DB("d"); assert n == sum(1 for _ in db); db.close()
END
python3 m.py""",
    ),
    Row(
        "rocksdb", "db_bench=rocksdb-tools",
        shows="four threads that fill, overwrite and read, with flush and compaction threads",
        run="""b="db_bench --db=$PWD/db --num=3000 --threads=4 --seed=1 --write_buffer_size=200000"
$b --benchmarks=fillrandom,overwrite,compact,readrandom >/dev/null 2>&1; $b --benchmarks=readseq --use_existing_db=1 >/dev/null 2>&1""",
    ),
    Row(
        "tdb", "tdbtool=tdb-tools tdbbackup=tdb-tools",
        shows="a trivial database: a map, byte-range locks, a transaction with recovery area",
        run=r"""{ echo "create x.tdb"; seq 1 100 | sed 's/.*/insert k& v&/'; seq 1 50 | sed 's/.*/delete k&/'; echo "insert k1 new"; echo repack; echo check; } | tdbtool >/dev/null
tdbdump x.tdb >dump; tdbbackup x.tdb; tdbrestore y.tdb <dump""",
    ),
    Row(
        "kyoto-hash", "kchashtest=kyotocabinet-utils",
        shows="four threads in one hash database, partly mapped, with transactions",
        run="kchashtest order -th 4 -rnd -tran -bnum 1000 casket.kch 300 >out; kchashtest tran -th 2 -it 2 -hard t.kch 100 >>out",
    ),
    Row(
        "kyoto-tree", "kctreetest=kyotocabinet-utils kcdirtest=kyotocabinet-utils",
        shows="a B+ tree with a write-ahead log, and a database that is a directory of files",
        run="kctreetest tran -th 2 -it 2 -hard casket.kct 100 >out; kcdirtest order -th 3 -set -tran casket.kcd 60 >>out",
    ),
    Row(
        "tokyo-hash", "tchmttest=tokyocabinet-bin",
        shows="threads that share a map of a file's head and pread and pwrite the rest",
        run="tchmttest typical casket.tch 4 300 >out; tchmttest wicked w.tch 2 200 >>out",
    ),
    Row(
        "tokyo-tree", "tcbtest=tokyocabinet-bin tcttest=tokyocabinet-bin",
        shows="a B+ tree and a table database with their own transactions",
        run="tcbtest write casket.tcb 500 >out; tcbtest misc m.tcb 100 >>out; tcttest write -is casket.tct 100 >>out",
    ),
    Row(
        "rrdtool", "rrdtool",
        shows="round-robin archives, updated in place through a map under a lock",
        run=r"""rrdtool create x.rrd --start 1600000000 --step 60 DS:a:GAUGE:120:U:U RRA:AVERAGE:0.5:1:500 RRA:MAX:0.5:10:50
for i in $(seq 1 30); do rrdtool update x.rrd $((1600000000 + i * 60)):$i; done
rrdtool dump x.rrd x.xml; rrdtool restore x.xml y.rrd; rrdtool tune y.rrd --heartbeat a:300; rrdtool resize y.rrd 0 GROW 10; rrdtool fetch x.rrd AVERAGE -s 1600000000 -e 1600001800 >out""",
    ),
    Row(
        "redis", "redis-cli=redis-tools redis-check-rdb=redis-tools redis-benchmark=redis-tools",
        shows="a server on a local socket with an append-only file synced per command, which a child rewrites",
        # The server itself is the program that the tool links to; its own package would start it at boot.
        prepare="ln -s /usr/bin/redis-check-rdb redis-server",
        run=r"""./redis-server --port 0 --unixsocket $PWD/s --dir $PWD --appendonly yes --appendfsync always --save "" --logfile $PWD/log &
until redis-cli -s s ping >/dev/null 2>&1; do sleep 0.1; done
redis-benchmark -s s -c 5 -n 300 -r 50 -t set,incr,lpush -d 100 -q >/dev/null
redis-cli -s s bgrewriteaof >/dev/null; redis-cli -s s set k v >/dev/null
while redis-cli -s s info persistence | grep -q 'aof_rewrite_in_progress:1\|aof_rewrite_scheduled:1'; do sleep 0.1; done
redis-cli -s s save >/dev/null; redis-cli -s s shutdown; wait""",
    ),
    Row(
        "memcached", "memcached python3",
        shows="a server that keeps its items in a shared map of a file, stops, and starts again with it",
        run=r"""cat >m.py <<'END'
import os, signal, socket, subprocess, time
def start(port):
    p = subprocess.Popen(["memcached", "-u", "nobody" if os.getuid() == 0 else "", "-s", os.path.abspath("sock"), "-m", "64", "-t", "2", "-e", os.path.abspath("items")])
    for i in range(200):
        try:
            s = socket.socket(socket.AF_UNIX); s.connect("sock"); return p, s.makefile("rwb")
        except OSError: time.sleep(0.05)
def ask(s, text, lines):
    s.write(text); s.flush(); return [s.readline() for i in range(lines)]
p, s = start(1)
for i in range(200): assert ask(s, b"set k%d 0 0 500\r\n%s\r\n" % (i, b"x" * 500), 1) == [b"STORED\r\n"]
p.send_signal(signal.SIGUSR1); p.wait()
p, s = start(2)
ask(s, b"get k1\r\n", 1); s.write(b"quit\r\n"); s.flush()
p.terminate(); p.wait()
END
chmod 777 .; python3 -I m.py""",
    ),
    Row(
        "postgresql", "/usr/lib/postgresql/15/bin/postgres=postgresql-15 setpriv=util-linux",
        timeout=120,
        shows="initdb and a server with its background processes, four clients, a write-ahead log, a vacuum",
        run=r"""PATH=/usr/lib/postgresql/15/bin:$PATH; export PGHOST=$PWD PGUSER=p PGDATABASE=postgres
as=; [ "$(id -u)" != 0 ] || { as="setpriv --reuid=65534 --regid=65534 --clear-groups"; chown 65534 . tmp; }
$as initdb -D d -U p >/dev/null 2>&1
$as pg_ctl -D d -w -l log -o "-k $PWD -c listen_addresses= -c max_connections=20 -c shared_buffers=4MB" start >/dev/null
$as pgbench -i -q -s 1 >/dev/null 2>&1; $as pgbench -c 4 -j 2 -t 25 >/dev/null 2>&1
$as psql -q -c "create table t as select g, repeat('x', 300) from generate_series(1, 2000) g" -c "create index on t (g)" -c "delete from t where g % 3 = 0" -c "vacuum full t" -c checkpoint
$as pg_dump -f dump; $as pg_ctl -D d -w -m fast stop >/dev/null""",
    ),
    Row(
        "mariadb", "mariadbd=mariadb-server-core mariadb-install-db=mariadb-server-core mariadb=mariadb-client-core setpriv=util-linux",
        timeout=120,
        shows="InnoDB and Aria: native asynchronous I/O, O_DIRECT, a redo log, temporary tables",
        run=r"""as=; user=; [ "$(id -u)" != 0 ] || { as="setpriv --reuid=65534 --regid=65534 --clear-groups"; chown 65534 . tmp; }
o="--no-defaults --datadir=$PWD/d --innodb-buffer-pool-size=8M --innodb-log-file-size=4M --innodb-fast-shutdown=0 --lc-messages-dir=/usr/share/mysql"
$as mariadb-install-db $o --auth-root-authentication-method=normal --skip-test-db >install 2>&1
$as mariadbd $o --skip-networking --socket=$PWD/s --pid-file=$PWD/pid >log 2>&1 &
c="mariadb --no-defaults -S $PWD/s -u root"; i=0
until $c -e 'select 1' >/dev/null 2>&1; do sleep 0.2; i=$((i + 1)); [ $i -lt 200 ]; done
$c -e "create database x; use x; create table t (a int primary key auto_increment, b text) engine=innodb; create table u (a int, b text) engine=aria;
insert into t (b) select repeat('y', 200) from seq_1_to_500; insert into u select * from t; start transaction; delete from t where a % 2 = 0; rollback; alter table t add c int, force; optimize table u" >/dev/null
$c -e shutdown; wait""",
    ),
]
