# SPDX-License-Identifier: MIT
"""Version control."""

from rows import Row

ROWS = [
    Row(
        "git", "git", quick=True,
        shows="objects, packs, an index replaced by rename, a clone and a merge",
        run=r"""git init -q -b main r; cd r; for i in 1 2 3; do seq $i 100 >f$i; git add f$i; git commit -q -m $i; done
git checkout -q -b side HEAD~; echo x >g; git add g; git commit -q -m g; git checkout -q main
git merge -q -m m side; git gc -q; git clone -q . ../s; git -C ../s fsck --no-progress""",
    ),
]
