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
]
