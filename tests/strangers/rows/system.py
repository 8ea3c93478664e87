# SPDX-License-Identifier: MIT
"""Programs that keep a system: its users, packages, logs, caches, directories and certificates."""

from rows import Row
from rows.files import TREE

# Ten messages in a maildir.
MAILDIR = r"""mkdir -p m/cur m/new m/tmp; for i in 0 1 2 3 4 5 6 7 8 9; do
printf 'From: a%s@b\nTo: c@d\nSubject: s%s\nMessage-ID: <%s@x>\nDate: Thu, 1 Jan 2015 00:00:0%s +0000\n\ntext %s and more\n' $i $i $i $i $i >m/cur/$i:2,S; done"""

ROWS = [
    Row(
        "zsh", "zsh",
        shows="a shell with its own globbing, compiled scripts, a locked history file and temporary files for =( )",
        run=r"""cat >s.zsh <<'END'
HISTFILE=$PWD/h SAVEHIST=50 HISTSIZE=50; setopt inc_append_history extended_glob hist_save_by_copy
for i in {1..30}; do print -s "echo $i"; print $i >f$i; done; fc -W; fc -R h; diff =(sort f1) <(sort f1)
print -l f<5-9>(.om) >list; zcompile s.zsh; print x >>| f1; cat <f{1,2} >{o,p}; rm f<20->
END
zsh -f s.zsh""",
    ),
    Row(
        "useradd", "useradd=passwd",
        shows="the password files of another root, locked by links and replaced by renames; owners are changed",
        prepare="mkdir -p r/etc r/home; printf 'root:x:0:0::/root:/bin/sh\\n' >r/etc/passwd; printf 'root:*:1:0:9:7:::\\n' >r/etc/shadow; printf 'root:x:0:\\n' >r/etc/group; : >r/etc/gshadow; cp /etc/login.defs r/etc/",
        run="useradd -P $PWD/r -m one; useradd -P $PWD/r -u 1500 two; usermod -P $PWD/r -aG one two; groupadd -P $PWD/r g; userdel -P $PWD/r one; pwck -r $PWD/r/etc/passwd $PWD/r/etc/shadow >out || true",
    ),
    Row(
        "logrotate", "logrotate",
        shows="logs that are renamed, copied and cut, compressed through pipes; a state file",
        prepare="""mkdir l; seq 20000 >l/a.log; seq 9000 >l/b.log; printf '%s/l/a.log {\\nrotate 3\\ncompress\\nsize 1\\n}\\n%s/l/b.log {\\nrotate 2\\ncopytruncate\\nsize 1\\npostrotate\\necho done >>%s/l/post\\nendscript\\n}\\n' $PWD $PWD $PWD >c; chmod 644 c""",
        run="for i in 1 2 3 4; do logrotate -f -s $PWD/state c; echo $i >>l/a.log; echo $i >>l/b.log; done",
    ),
    Row(
        "dpkg-root", "dpkg dpkg-deb=dpkg",
        shows="installs, replaces and purges packages in a root of its own: journals, renames, syncs, triggers",
        prepare="""for v in 1 2; do mkdir -p p$v/DEBIAN p$v/opt/x; printf 'Package: p\\nVersion: %s\\nArchitecture: all\\nMaintainer: A <a@b>\\nDescription: x\\n' $v >p$v/DEBIAN/control
echo /opt/x/conf >p$v/DEBIAN/conffiles; seq $v 3000 >p$v/opt/x/data; ln p$v/opt/x/data p$v/opt/x/link; echo c >p$v/opt/x/conf; seq 5 >p$v/opt/x/only$v; dpkg-deb -b p$v p$v.deb >/dev/null; done
mkdir -p r/var/lib/dpkg/info r/var/lib/dpkg/updates r/var/lib/dpkg/triggers; : >r/var/lib/dpkg/status; : >r/var/lib/dpkg/available""",
        run="o='--force-not-root --force-script-chrootless --log=/dev/null'; dpkg $o --root=$PWD/r -i p1.deb >out 2>&1; dpkg $o --root=$PWD/r -i p2.deb >>out 2>&1; dpkg $o --root=$PWD/r -V p; dpkg $o --root=$PWD/r -P p >>out 2>&1",
    ),
    Row(
        "systemd-tmpfiles", "systemd-tmpfiles=systemd",
        shows="makes, cleans and removes what rules say, below another root, by descriptors opened with O_PATH",
        prepare="mkdir -p r/etc r/old; for i in 1 2 3; do : >r/old/$i; touch -d @1000 r/old/$i; done; printf 'd /a/b 0750 - - -\\nf /a/b/f 0640 - - - text\\nL /a/l - - - - b/f\\np /a/p 0600 - - -\\nC /a/c - - - - \\nz /a/b 0700 - - -\\ne /old - - - 1d\\n' >c.conf; sed -i /^C/d c.conf",
        run="systemd-tmpfiles --root=$PWD/r --create --clean $PWD/c.conf; echo 'w+ /a/b/f - - - - more' >>c.conf; echo 'R /old' >>c.conf; systemd-tmpfiles --root=$PWD/r --create --remove $PWD/c.conf",
    ),
    Row(
        "notmuch", "notmuch",
        shows="an index of messages: Xapian's B-trees written in place by pwrite, a lock held by another process",
        prepare=MAILDIR,
        run="printf '[database]\\npath=%s/m\\n[user]\\nname=a\\nprimary_email=a@b\\n[new]\\ntags=n\\n' $PWD >c; export NOTMUCH_CONFIG=$PWD/c; notmuch new >/dev/null; notmuch tag +t subject:s3; rm m/cur/4*; notmuch new >/dev/null; notmuch search '*' | wc -l >out; notmuch dump >dump; notmuch compact >/dev/null",
    ),
    Row(
        "slapadd", "slapadd=slapd",
        shows="a directory of entries loaded into LMDB's map, indexed again and dumped",
        prepare="""mkdir d; printf 'include /etc/ldap/schema/core.schema\\nmodulepath /usr/lib/ldap\\nmoduleload back_mdb\\ndatabase mdb\\nmaxsize 4194304\\nsuffix dc=a\\ndirectory %s/d\\nindex objectClass,ou eq\\n' $PWD >c
{ printf 'dn: dc=a\\nobjectClass: dcObject\\nobjectClass: organization\\no: a\\ndc: a\\n\\n'; for i in $(seq 100); do printf 'dn: ou=u%s,dc=a\\nobjectClass: organizationalUnit\\nou: u%s\\n\\n' $i $i; done; } >in.ldif""",
        run="slapadd -f c -l in.ldif 2>log; slapindex -f c 2>>log; slapcat -f c >out.ldif 2>>log",
    ),
    Row(
        "git-lfs", "git git-lfs",
        shows="filter processes in Go that talk to git through pipes, and an object store with temporary files",
        prepare="git -c init.defaultBranch=m init -q r; cd r; head -c 300000 /dev/urandom >b.bin; seq 5000 >t",
        run="cd r; git lfs install --local >/dev/null; git lfs track '*.bin' >/dev/null; git add -A; git commit -qm 1; head -c 1000 b.bin >c.bin; git add c.bin; git commit -qm 2; rm b.bin; git checkout -q b.bin; git lfs prune >/dev/null; git lfs ls-files >../out",
    ),
    Row(
        "certutil", "certutil=libnss3-tools",
        shows="a store of keys and certificates in SQLite databases",
        run="mkdir d; echo >pw; head -c 2000 /dev/zero >noise; certutil -N -d sql:d -f pw; certutil -S -d sql:d -f pw -z noise -x -n c -s CN=a -t C,, -m 1 -k ec -q nistp256; certutil -L -d sql:d >out; certutil -M -d sql:d -f pw -n c -t P,,; certutil -D -d sql:d -n c",
    ),
    Row(
        "fc-cache", "fc-cache=fontconfig",
        shows="caches of fonts, mapped and replaced by renames under locks made by links",
        prepare="mkdir f; cp /usr/share/fonts/truetype/dejavu/DejaVuSans*.ttf f/; printf '<?xml version=\"1.0\"?><fontconfig><dir>%s/f</dir><cachedir>%s/c</cachedir></fontconfig>' $PWD $PWD >conf",
        run="export FONTCONFIG_FILE=$PWD/conf; fc-cache -f; rm f/DejaVuSans-Bold.ttf; fc-cache -r; fc-list | sort >out",
    ),
    Row(
        "xorriso", "xorriso",
        shows="an image of a disc, made by threads through a ring buffer, grown by a session, and extracted",
        prepare=TREE,
        run="xorriso -outdev i.iso -map t /t -commit >log 2>&1; echo new >n; xorriso -dev i.iso -map n /n -rm /t/a/1 -- -commit >>log 2>&1; xorriso -osirrox on -indev i.iso -extract / y >>log 2>&1; rm log",
    ),
    Row(
        "php", "php=php-cli",
        shows="sessions under flock, streams with filters, temporary files and a recursive iterator",
        run=r"""cat >s.php <<'END'
<?php session_save_path(getcwd()); session_id("abc"); ini_set("session.use_cookies", 0);
for ($i = 0; $i < 5; $i++) { session_start(); $_SESSION["n"] = $i; session_write_close(); }
mkdir("d/e/f", 0755, true); $f = fopen("d/x.gz", "wb"); stream_filter_append($f, "convert.base64-encode");
for ($i = 0; $i < 200; $i++) fwrite($f, str_repeat(chr(65 + $i % 26), 300)); fclose($f);
$t = tmpfile(); fwrite($t, "abc"); fseek($t, 0); file_put_contents("d/e/t", $t, LOCK_EX); copy("d/x.gz", "d/e/f/y");
file_put_contents("d/e/t", "more", FILE_APPEND | LOCK_EX); rename("d/e/t", "d/t"); ftruncate($h = fopen("d/t", "r+"), 2); fclose($h);
foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator("d")) as $p) $n[] = "$p"; sort($n); file_put_contents("list", implode("\n", $n));
END
php s.php""",
    ),
    Row(
        "ldb", "ldbadd=ldb-tools",
        shows="records in a trivial database, with transactions around each change",
        prepare="for i in $(seq 40); do printf 'dn: cn=u%s,dc=a\\nobjectClass: person\\ncn: u%s\\nsn: s\\n\\n' $i $i; done >in; printf 'dn: cn=u3,dc=a\\nchangetype: modify\\nreplace: sn\\nsn: t\\n' >change",
        run="ldbadd -H d.ldb in >out; ldbmodify -H d.ldb change >>out; ldbdel -H d.ldb cn=u5,dc=a >>out; ldbsearch -H d.ldb '(cn=*)' cn >list 2>/dev/null; cp d.ldb e.ldb",
    ),
    Row(
        "openssl-ca", "openssl",
        shows="an authority's text database and serial numbers, each replaced by renames of old and new files",
        prepare="mkdir ca; : >ca/index; echo 01 >ca/serial; printf '[ca]\\ndefault_ca=d\\n[d]\\ndir=ca\\ndatabase=ca/index\\nserial=ca/serial\\nnew_certs_dir=ca\\ncertificate=ca/c.pem\\nprivate_key=ca/k.pem\\ndefault_md=sha256\\ndefault_days=9\\npolicy=p\\n[p]\\ncommonName=supplied\\n[req]\\ndistinguished_name=n\\n[n]\\n' >c",
        run="export OPENSSL_CONF=$PWD/c; n='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'; openssl req -x509 $n -subj /CN=a -keyout ca/k.pem -out ca/c.pem 2>/dev/null; for i in 1 2 3; do openssl req $n -subj /CN=u$i -keyout u$i.k -out u$i.r 2>/dev/null; openssl ca -batch -in u$i.r -out u$i.c 2>/dev/null; done; openssl ca -revoke ca/02.pem 2>/dev/null; openssl ca -updatedb 2>/dev/null",
    ),
    Row(
        "sqlite-mmap", "py:sqlite3=python3",
        shows="two connections that read a database through a map of 64 MiB while one of them grows and cuts it",
        run=r"""python3 -c '
import sqlite3
a, b = (sqlite3.connect("d.db", isolation_level=None) for _ in range(2))
for c in (a, b): c.execute("pragma mmap_size=67108864")
a.execute("pragma auto_vacuum=full"); a.execute("create table t(i integer primary key, v)")
for n in range(6):
    a.execute("begin"); a.executemany("insert into t(v) values(?)", [("x" * (n * 300 + i),) for i in range(150)]); a.execute("commit")
    print(b.execute("select count(*), sum(length(v)) from t").fetchone()); b.execute("delete from t where i % 3 = ?", (n % 3,))
a.execute("vacuum"); print(b.execute("pragma integrity_check").fetchone())' >out""",
    ),
]
