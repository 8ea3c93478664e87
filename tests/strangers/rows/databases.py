# SPDX-License-Identifier: MIT
"""Databases: servers, and libraries that several processes share."""

from rows import Row

ROWS = [
    Row(
        "sqlite-wal", "sqlite3", quick=True,
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
]
