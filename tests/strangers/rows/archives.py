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
]
