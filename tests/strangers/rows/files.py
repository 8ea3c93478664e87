# SPDX-License-Identifier: MIT
"""Everyday tools on files and directories, packages, indexes."""

from rows import Row

TREE = r"""
mkdir -p t/a/b t/c
for i in 1 2 3 4 5 6 7 8; do seq 1 ${i}00 >t/a/$i; seq 1 ${i}0 >t/a/b/$i; done
ln -s a/1 t/link; ln t/a/2 t/hard; touch -d @1600000000 t/a/3; chmod 600 t/a/4; : >t/c/empty
"""

ROWS = [
    Row(
        "coreutils", "find=findutils xargs=findutils cp=coreutils dd=coreutils", quick=True,
        shows="find, xargs, cp -a, mv, dd, install, truncate, shuf and rm -r on one tree",
        prepare=TREE,
        run=r"""
cp -a t u; cp -al t v; mv u/a u/moved; mv u/moved/1 u/c/
find u -type f -name '[2-4]' -print0 | xargs -0 -n 2 -P 2 sha256sum >sums
find t -type f | sort | xargs cat | dd of=d bs=700 conv=notrunc 2>/dev/null
dd if=d of=e bs=1k seek=3 count=5 conv=notrunc 2>/dev/null; dd if=d of=e bs=4k oflag=append conv=notrunc 2>/dev/null
truncate -s 100k e; install -m 640 d f; shuf --random-source=d d >g; split -b 1000 -a 3 d part.
tee h i <d >/dev/null; ln -sfn u link; rm -r v; find t -depth -delete; mktemp -d ./x.XXXX >name; rmdir "$(cat name)"
""",
    ),
    Row(
        "dpkg-deb", "dpkg-deb=dpkg ar=binutils", quick=True,
        shows="builds a package, lists and unpacks it: tar, compressor and pipes between processes",
        prepare=TREE + "mkdir -p p/DEBIAN; cp -a t p/; printf 'Package: x\nVersion: 1\nArchitecture: all\nMaintainer: A <a@b>\nDescription: x\n' >p/DEBIAN/control",
        run="dpkg-deb --root-owner-group -b p x.deb >/dev/null; dpkg-deb -c x.deb >list; dpkg-deb -x x.deb out; dpkg-deb -e x.deb control; ar t x.deb >members",
    ),
    Row(
        "python-mmap", "python3", quick=True,
        shows="stores through shared maps of two processes, with msync, resize and file calls between them",
        run=r"""cat >m.py <<'END'
import mmap, os
with open("f", "wb") as f: f.truncate(1 << 16)
for child in range(2):
    if os.fork() == 0:
        with open("f", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
            for i in range(child, 16, 2):
                m[i * 4096:i * 4096 + 100] = bytes([65 + i]) * 100
                if i % 4 == 0: m.flush()
        os._exit(0)
for child in range(2): os.wait()
with open("f", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m.resize(1 << 17); m[70000:70005] = b"hello"; m.flush()
    m.move(200, 0, 64); open("g", "wb").write(m[:1000])
END
python3 -I m.py""",
    ),
    Row(
        "postmark", "postmark", quick=True,
        shows="many small files, made, read, appended to and deleted",
        run=r'printf "set number 50\nset transactions 200\nset seed 7\nrun\nquit\n" | postmark >report',
    ),
    Row(
        "busybox", "busybox=busybox-static", quick=True,
        shows="a static program that is its own shell and its own tools",
        prepare=TREE,
        run=r"""b=$(command -v busybox); $b sh -c "for i in 1 2 3; do echo \$i | $b tee f\$i; done >out; $b gzip -k f1; $b zcat f1.gz |
$b md5sum >sum; $b tar -cf t.tar t; $b mkdir u; $b tar -xf t.tar -C u; $b find u | $b sort >list; $b sed -i s/1/x/ t/a/1; $b rm -r t" """,
    ),
    Row(
        "apt-ftparchive", "apt-ftparchive=apt-utils dpkg-deb=dpkg",
        shows="an index of packages, with a database that remembers them",
        prepare=TREE + r"""for i in 1 2 3; do mkdir -p p$i/DEBIAN; cp -a t p$i/; printf 'Package: x%s\nVersion: 1\nArchitecture: all\nMaintainer: A <a@b>\nDescription: x\n' $i >p$i/DEBIAN/control; dpkg-deb --root-owner-group -b p$i pool$i.deb >/dev/null; done; mkdir pool; mv pool*.deb pool""",
        run="for i in 1 2; do apt-ftparchive --db c.db packages pool >Packages 2>/dev/null; done; apt-ftparchive contents pool >Contents 2>/dev/null; apt-ftparchive release pool >Release; gzip -k Packages",
    ),
    Row(
        "mandb", "mandb=man-db",
        shows="an index of manual pages, by pipelines of decompressors and formatters",
        prepare=r"""mkdir -p man/man1 cache; for i in 1 2 3 4 5 6; do printf '.TH X%s 1\n.SH NAME\nx%s \\- page number %s\n.SH DESCRIPTION\ntext\n' $i $i $i | gzip >man/man1/x$i.1.gz; done; printf '.so man1/x1.1\n' >man/man1/y.1
printf 'MANDB_MAP %s/man %s/cache\nMANDATORY_MANPATH %s/man\n' "$PWD" "$PWD" "$PWD" >conf""",
        run="mandb -q -C conf -c $PWD/man; rm man/man1/x3.1.gz; mandb -q -C conf $PWD/man; man -C conf -M $PWD/man x1 >out; whatis -C conf -M $PWD/man x2 >>out",
    ),
    Row(
        "updatedb", "updatedb.plocate=plocate plocate",
        shows="a database of names, built by threads and io_uring, replaced by a rename",
        prepare=TREE,
        run="o='-U t -l no --prunepaths= -o db'; updatedb.plocate $o; rm -r t/a/b; mkdir t/new; updatedb.plocate $o; plocate -d db new >out; plocate -d db -c t >>out",
    ),
    Row(
        "procmail", "procmail formail=procmail",
        shows="delivery into an mbox with locks and into a maildir by links, several at once",
        prepare=r"""mkdir box; printf 'MAILDIR=%s\nLOGFILE=log\n:0:\n* ^Subject: odd\nmbox\n:0\nmaildir/\n' "$PWD" >rc
for i in 1 2 3 4 5 6 7 8; do printf 'From a@b Mon Jan  1 00:00:00 2024\nFrom: a@b\nSubject: %s\n\ntext %s\n' $([ $((i % 2)) = 0 ] && echo even || echo odd) $i; done >in""",
        run="formail -s procmail -m $PWD/rc <in; for i in 1 2 3; do formail -s procmail -m $PWD/rc <in & done; wait; lockfile -1 l; rm -f l",
    ),
    Row(
        "maildrop", "maildrop maildirmake=maildrop",
        shows="delivery by a filter, with a quota file and dot locks",
        prepare=r"""maildirmake m; printf 'if (/^Subject: odd/)\n{\nto "mbox"\n}\nto "m"\n' >filter; chmod 600 filter""",
        run=r"""for i in 1 2 3 4 5 6; do printf 'From: a@b\nSubject: %s\n\ntext\n' $([ $((i % 2)) = 0 ] && echo even || echo odd) | maildrop $PWD/filter & done; wait; printf 'From: a@b\n\nx\n' | reformail -A 'X: y' >f""",
    ),
    Row(
        "vim", "vim.tiny=vim-tiny",
        shows="an editor's swap file, backup and undo file, written by a rename or in place",
        prepare="seq 1 500 >f; seq 1 10 >g",
        run=r"""vim.tiny -u NONE -es -c 'set backup backupcopy=no' -c '%s/1/one/g' -c 'w' -c 'e g' -c 'g/3/d' -c 'set backupcopy=yes' -c 'w' -c 'w! h' -c 'qa!' f""",
    ),
    Row(
        "sed-sort", "sed sort=coreutils awk=mawk patch diff=diffutils",
        shows="files edited in place, sorted through temporary files, and patched with backups",
        prepare="seq 1 20000 >f; seq 1 300 >g; cp g h; sed -i s/77/x/ h; diff -u g h >p || true",
        run="sed -i.bak s/7/seven/ f; sort -S 50k -r f -o f; awk '{ print > (\"part\" NR % 5) }' f; patch -s -b g p; sort -m part0 part1 | uniq -c | tail -n 5 >end; csplit -s g 50 '{2}'",
    ),
    Row(
        "perl", "perl",
        shows="five children with their own files, flock on a common one, in-place editing, tied DBM files",
        run=r"""cat >m.pl <<'END'
use Fcntl qw(:flock :DEFAULT); use SDBM_File;
for my $i (1..4) { next if fork; for (1..10) { open my $f, ">>", "all"; flock $f, LOCK_EX; print $f "$i $_\n"; close $f; open $f, ">", "own$i"; print $f $_ x 1000; close $f }; exit $i }
1 while wait > 0;
tie my %h, "SDBM_File", "dbm", O_RDWR | O_CREAT, 0644; $h{$_} = $_ x 5 for 1..200; delete $h{$_} for 1..50; untie %h;
rename "own1", "own9"; @ARGV = ("own2"); $^I = ".bak"; while (<>) { s/1/x/; print }
END
perl m.pl""",
    ),
    Row(
        "bash", "bash",
        shows="process substitution, a coprocess, here-documents and traps",
        run=r"""cat >m.bash <<'END'
set -o pipefail; for i in {1..20}; do echo $((i * i)); done | while read n; do echo $n >f$n; done
cat <(cat f1 f4) <<<word >a; diff <(sort a) <(sort -r a) >b || true; coproc cat; echo through >&${COPROC[1]}; read line <&${COPROC[0]}; echo $line >c
exec {fd}<>d; echo one >&$fd; read x <a; printf %s, f* >e; mapfile -t m <e; (trap 'echo bye >g' EXIT); shopt -s nullglob; set -C; echo no >a || true; echo yes >|a
END
bash m.bash 2>/dev/null""",
    ),
    Row(
        "ruby", "ruby",
        shows="threads under one lock, atomic writes, PStore with flock",
        run=r"""cat >m.rb <<'END'
require "fileutils"; require "tempfile"; require "pstore"
ts = 4.times.map { |n| Thread.new { 10.times { |i| File.write("f#{n}", "x" * i * 100); File.rename("f#{n}", "g#{n}") } } }
ts.each(&:join); FileUtils.mkdir_p "a/b/c"; FileUtils.cp_r "a", "d"; Tempfile.create("t", ".") { |t| t.write "x"; t.flush }
s = PStore.new("store"); 5.times { |i| s.transaction { s[i] = "v" * i } }; FileUtils.rm_rf "d"; IO.copy_stream("g3", "h")
END
ruby m.rb""",
    ),
    Row(
        "node", "node=nodejs",
        shows="a pool of threads (by calls or io_uring), a worker, streams, a watcher",
        run=r"""cat >m.js <<'END'
const fs = require("fs"), { Worker } = require("worker_threads");
(async () => {
  await Promise.all([...Array(30).keys()].map(i => fs.promises.writeFile("f" + i, "x".repeat(i * 1000))));
  await Promise.all([...Array(10).keys()].map(i => fs.promises.copyFile("f" + i, "g" + i)));
  await new Promise(r => fs.createReadStream("f29").pipe(fs.createWriteStream("h")).on("close", r));
  const w = fs.watch("."); fs.renameSync("g1", "g99"); await new Promise(r => setTimeout(r, 50)); w.close();
  await new Promise(r => new Worker('require("fs").writeFileSync("w", "of a worker")', { eval: true }).on("exit", r));
  fs.rmSync("g2"); fs.appendFileSync("h", "end"); fs.truncateSync("f5", 10); fs.mkdirSync("d/e", { recursive: true });
})();
END
node m.js""",
    ),
    Row(
        "inotifywait", "inotifywait=inotify-tools",
        shows="a watcher that writes down what another process does",
        run=r"""mkdir d; inotifywait -q -m -e create,delete,close_write --format '%e %f' -o log d & p=$!; i=0
until [ -s log ]; do : >d/start; sleep 0.05; i=$((i + 1)); [ $i -lt 100 ]; done
for i in 1 2 3; do echo $i >d/$i; done; mv d/1 d/4; rm d/2; sleep 0.2; kill $p; wait $p || true; wc -l <log >nr""",
    ),
    Row(
        "imagemagick", "convert=imagemagick",
        shows="images through a cache of pixels in a file, several outputs",
        prepare="",
        run="export MAGICK_MEMORY_LIMIT=100KB MAGICK_MAP_LIMIT=200KB MAGICK_THREAD_LIMIT=1; convert -size 64x64 plasma:red-blue a.png; convert a.png -rotate 30 -resize 50% b.jpg; mogrify -negate b.jpg; montage a.png b.jpg -geometry 64x64 m.gif; identify a.png b.jpg m.gif >out",
    ),
    Row(
        "sox", "sox",
        shows="sound written with a header that is put right at the end",
        run="sox -n -r 8000 a.wav synth 2 sine 440; sox a.wav b.flac reverse; sox a.wav b.flac c.ogg; sox -m a.wav b.flac d.wav; soxi d.wav >out",
    ),
    Row(
        "ffmpeg", "ffmpeg",
        shows="several threads encode and multiplex; an index is moved to the front of the file",
        run="""ffmpeg -v error -f lavfi -i testsrc=duration=1:size=160x120:rate=10 -f lavfi -i sine=duration=1 -c:v mpeg4 -c:a aac -threads 2 -movflags +faststart o.mp4
ffmpeg -v error -i o.mp4 -c copy -f segment -segment_time 0.3 s%d.mkv; ffmpeg -v error -i o.mp4 -f framemd5 sums; ffmpeg -v error -i o.mp4 -r 5 f%02d.png""",
    ),
]
