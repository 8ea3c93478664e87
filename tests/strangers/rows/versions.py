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
    Row(
        "mercurial", "hg=mercurial",
        shows="append-only revision logs with their own transactions and locks that are links",
        run=r"""printf '[ui]\nusername = A <a@b>\n' >.hgrc; hg init r; cd r; for i in 1 2 3; do seq $i 200 >f$i; hg add -q f$i; hg commit -m $i -d '0 0'; done
hg update -q 1; echo x >g; hg add -q g; hg commit -q -m side -d '0 0'; hg merge -q; hg commit -m merge -d '0 0'; hg clone -q . ../s; cd ../s; hg verify -q; hg rollback -q || true; hg strip -q tip 2>/dev/null || true""",
    ),
    Row(
        "subversion", "svn=subversion svnadmin=subversion",
        shows="a repository of revision files and an SQLite database in the working copy",
        run=r"""svnadmin create r; u=file://$PWD/r; svn checkout -q $u w; cd w; for i in 1 2 3; do seq $i 200 >f$i; svn add -q f$i; svn commit -q -m $i; done
svn copy -q f1 g; svn mkdir -q d; svn move -q f2 d/; svn commit -q -m moved; svn update -q; svn revert -q -R .; svnadmin dump -q ../r >../dump; svnadmin pack -q ../r; svnadmin verify -q ../r""",
    ),
    Row(
        "fossil", "fossil",
        shows="a repository and a check-out that both are SQLite databases",
        run=r"""export USER=a; fossil init r.fossil >/dev/null; mkdir w; cd w; fossil open ../r.fossil >/dev/null
for i in 1 2 3; do seq $i 200 >f$i; fossil add f$i >/dev/null; fossil commit -m $i --no-warnings >/dev/null; done
fossil update root >/dev/null || true; fossil rebuild ../r.fossil >/dev/null; fossil clone ../r.fossil ../s.fossil >/dev/null; fossil close""",
    ),
    Row(
        "git-pack", "git",
        shows="a repository with deltas: repack by threads, bitmaps, bundle, worktree, fsmonitor off",
        run=r"""git init -q -b main r; cd r; seq 1 3000 >f; git add f; git commit -q -m 0
for i in 1 2 3 4 5 6 7 8; do seq $i 7 5000 >>f; seq $i 300 >g$i; git add .; git commit -q -m $i; done
git repack -q -adb --threads=2; git bundle create -q ../b --all; git worktree add -q ../w HEAD~2; git stash list; git clone -q ../b ../c; git -C ../w mv f h; git -C ../w commit -q -m h; git prune; git pack-refs --all; git archive -o ../a.tar.gz HEAD""",
    ),
]
