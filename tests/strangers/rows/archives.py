# SPDX-License-Identifier: MIT
"""Archivers, compressors, backup."""

from rows import Row
from rows.files import TREE

ROWS = [
    Row(
        "tar", "tar gzip", quick=True,
        shows="packs and unpacks through pipes, updates an archive in place",
        prepare=TREE,
        run="""tar -cf x.tar t; tar -czf x.tgz t; echo more >>t/a/1; tar -uf x.tar t; tar --delete -f x.tar t/a/2
mkdir y z; tar -xzf x.tgz -C y; tar -cf - t | tar -xf - -C z; tar -xf x.tar -C z; tar -df x.tgz >diff || true""",
    ),
    Row(
        "rsync", "rsync", quick=True,
        shows="two processes and a socket pair; temporary files, renames, deletions",
        prepare=TREE,
        run="rsync -a t/ u; echo more >>t/a/1; rsync -a --no-whole-file t/ u; rm t/a/2; rsync -aH --delete --backup --suffix=.old t/ u; rsync -a --link-dest=$PWD/u t/ v",
    ),
    Row(
        "cpio", "cpio find=findutils", quick=True,
        shows="archives by names that come through a pipe, extracts, copies by links",
        prepare=TREE,
        run="find t -depth -print0 | cpio -0o -H newc --quiet >x.cpio; mkdir y z; (cd y && cpio -idm --quiet <../x.cpio); (cd t && find . | cpio -pdlm --quiet ../z)",
    ),
    Row(
        "zip", "zip unzip", quick=True,
        shows="an archive that is rewritten through a temporary file, and unpacked",
        prepare=TREE,
        run="zip -qr x.zip t; echo more >>t/a/1; zip -q x.zip t/a/1; zip -qd x.zip t/a/2; mkdir y; unzip -q x.zip -d y; unzip -tq x.zip >/dev/null",
    ),
    Row(
        "7z", "7zz=7zip",
        shows="a solid archive by several threads, updated and unpacked",
        prepare=TREE,
        run="7zz a -bso0 -bsp0 -mmt=2 x.7z t; echo more >>t/a/1; 7zz u -bso0 -bsp0 x.7z t; 7zz d -bso0 -bsp0 x.7z t/a/2; 7zz x -bso0 -bsp0 -oy x.7z; 7zz t -bso0 -bsp0 x.7z",
    ),
    Row(
        "bsdtar", "bsdtar=libarchive-tools",
        shows="another tar: pax headers, sparse files, mtree and zip formats",
        prepare=TREE + "truncate -s 200k t/sparse; echo end >>t/sparse",
        run="bsdtar -cf x.tar --format=pax t; bsdtar -caf x.zip t; bsdtar -cf x.mtree --format=mtree t; mkdir y z; bsdtar -xpSf x.tar -C y; bsdtar -xf x.zip -C z; find t | bsdcpio -o -H newc >n 2>/dev/null",
    ),
    Row(
        "pax", "pax",
        shows="archives, and copies a tree by links and by contents",
        prepare=TREE,
        run="pax -w -f x.pax t; mkdir y z; (cd y && pax -r -pe -f ../x.pax); pax -rw -l t z",
    ),
    Row(
        "compressors", "pigz pbzip2 xz=xz-utils zstd lrzip",
        shows="threads that compress pieces of a file and put them in order",
        prepare="seq 1 60000 >f",
        run="""pigz -k -p 3 -c f >f.gz; pbzip2 -k -q -p3 -b1 f; xz -k -T 2 --block-size=100KiB f; zstd -q -T2 -k f -o f.zst; lrzip -q f
for i in gz bz2 xz zst; do mkdir $i; mv f.$i $i; done; (cd gz; pigz -d f.gz); (cd bz2; pbzip2 -dq f.bz2); (cd xz; xz -d f.xz); (cd zst; zstd -dq --rm f.zst); lrzip -dq -o g f.lrz; cmp f g""",
    ),
    Row(
        "squashfs", "mksquashfs=squashfs-tools",
        shows="many threads that read, compress and write an image, and unpack it",
        prepare=TREE,
        run="mksquashfs t x.sqsh -quiet -no-progress -processors 2 >/dev/null; unsquashfs -quiet -no-progress -d y x.sqsh >/dev/null; mksquashfs t/a x.sqsh -quiet -no-progress >/dev/null; unsquashfs -l x.sqsh >list",
    ),
    Row(
        "borg", "borg=borgbackup",
        shows="a deduplicating repository with locks, a cache in HOME and segment compaction",
        prepare=TREE,
        run="""export BORG_BASE_DIR=$PWD/base BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes
borg init -e none r; borg create r::1 t; echo more >>t/a/1; borg create r::2 t; borg delete r::1; borg compact r; borg check r; mkdir y; cd y; borg extract ../r::2""",
    ),
    Row(
        "restic", "restic",
        shows="a program in Go with many threads; snapshots, a prune and a restore",
        prepare=TREE,
        run="""export RESTIC_PASSWORD=x GOMAXPROCS=2; restic -q init -r r; restic -q -r r backup t; echo more >>t/a/1; restic -q -r r backup t
restic -q -r r forget --keep-last 1 --prune; restic -q -r r check; restic -q -r r restore latest --target y""",
        timeout=120,
    ),
    Row(
        "bup", "bup",
        explained={"mismatches": "xfs has no FS_EXTENT_FL, which FS_IOC_SETFLAGS sets on ext4"},
        shows="packs of git written by Python, with mapped indexes and bloom filters",
        prepare=TREE,
        run="export BUP_DIR=$PWD/b; bup init 2>/dev/null; bup index t 2>/dev/null; bup save -q -n t t; echo more >>t/a/1; bup index t 2>/dev/null; bup save -q -n t t; bup restore -q -C y /t/latest/ 2>/dev/null; bup fsck -q 2>/dev/null || true",
    ),
    Row(
        "rdiff-backup", "rdiff-backup",
        shows="increments, hard links and metadata files, a restore of an older state",
        prepare=TREE,
        run="""rdiff-backup --current-time 1600000000 t b; echo more >>t/a/1; rm t/a/2; rdiff-backup --current-time 1600003600 t b
rdiff-backup -r 1600000000 b y; rdiff-backup --remove-older-than 1600003000 --force b >/dev/null""",
    ),
    Row(
        "duplicity", "duplicity",
        shows="volumes of signatures and differences, written through pipes and temporary files",
        prepare=TREE,
        run="export GNUPGHOME=$PWD; o='--no-encryption --archive-dir a -v0'; duplicity full $o t file://$PWD/b >/dev/null; echo more >>t/a/1; duplicity incremental $o t file://$PWD/b >/dev/null; duplicity restore $o file://$PWD/b y >/dev/null",
    ),
    Row(
        "casync", "casync",
        shows="chunks, an index with reflinks or copies, and an extraction that reuses what is there",
        prepare=TREE,
        run="casync make --store=s.castr x.caidx t >/dev/null; casync make x.catar t >/dev/null; casync extract --store=s.castr x.caidx y; echo more >>y/a/1; casync extract --store=s.castr x.caidx y; casync list x.catar >list",
    ),
    Row(
        "dump", "dump restore=dump mke2fs=e2fsprogs",
        shows="reads a file system's image by its blocks, in several processes, and unpacks what it wrote",
        prepare=TREE + "truncate -s 4M img; mke2fs -q -F -t ext2 -d t img",
        run="l=$(losetup -rf --show img); dump -0 -q -f x.dump $l >/dev/null 2>&1; losetup -d $l; restore -t -f x.dump >list 2>/dev/null; mkdir y; cd y; restore -r -f ../x.dump 2>/dev/null",
    ),
    Row(
        "e2fsprogs", "mke2fs=e2fsprogs debugfs=e2fsprogs",
        shows="makes, fills, checks and resizes a file system in an image",
        prepare=TREE,
        run="""truncate -s 8M img; mke2fs -q -F -t ext4 -d t img; e2fsck -fn img >/dev/null; printf 'mkdir x\nwrite t/a/3 x/y\nrm a/1\n' | debugfs -w img >/dev/null 2>&1
resize2fs -f img 16M >/dev/null 2>&1; tune2fs -L name img >/dev/null; e2fsck -fy img >/dev/null || true; dumpe2fs -h img >head 2>/dev/null; e2image -r img raw""",
    ),
    Row(
        "par2", "par2",
        shows="recovery blocks by threads, and a repair of a damaged file",
        prepare="seq 1 20000 >data",
        run="par2 create -q -q -s4000 -c6 data; printf XXXX | dd of=data bs=1 seek=5000 conv=notrunc 2>/dev/null; par2 repair -q -q data >/dev/null",
    ),
    Row(
        "zpaq", "zpaq",
        shows="a journaling archive that is only appended to",
        prepare=TREE,
        run="zpaq add x.zpaq t -t2 >/dev/null 2>&1; echo more >>t/a/1; zpaq add x.zpaq t -t2 >/dev/null 2>&1; zpaq extract x.zpaq -to y -t2 >/dev/null 2>&1",
    ),
    Row(
        "unison", "unison",
        shows="two replicas with an archive of their state, changed on both sides",
        prepare=TREE,
        run="export UNISON=$PWD/s; mkdir u; o='-batch -silent -ui text'; unison $o $PWD/t $PWD/u; echo a >>t/a/1; rm u/a/2; mkdir u/new; unison $o $PWD/t $PWD/u",
    ),
    Row(
        "rclone", "rclone",
        shows="a program in Go that copies and synchronizes by several workers",
        prepare=TREE,
        run="rclone copy -l t u 2>/dev/null; echo more >>t/a/1; rm t/a/2; rclone sync -l t u 2>/dev/null; rclone check t u 2>/dev/null || true; rclone move u v 2>/dev/null",
    ),
    Row(
        "jdupes", "jdupes",
        shows="finds equal files, and makes links of them through temporary names",
        prepare=TREE + "cp -a t u; cp -a t v",
        run="jdupes -qr -L t u >/dev/null; jdupes -qr -l v >/dev/null 2>&1 || true; jdupes -qrdN t/a >/dev/null",
    ),
]
