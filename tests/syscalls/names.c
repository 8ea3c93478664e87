/* SPDX-License-Identifier: MIT */
/* Names made, moved, removed, read. */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib.h"

static void directories(int dir)
{
	expect("mkdir(path=\"a\", mode=0755) = 0");
	t_ok(sys(mkdir, "a", 0755));
	expect("mkdir(path=\"a\", mode=0755) = -1 EEXIST");
	t_fails(sys(mkdir, "a", 0755), EEXIST);
	expect("mkdir(path=\"s\", mode=01777) = 0");
	t_ok(sys(mkdir, "s", 01777));
	expect("mkdirat(dirfd=%d, path=\"b\", mode=0) = 0", dir);
	t_ok(sys(mkdirat, dir, "b", 0));
	expect("mkdirat(dirfd=AT_FDCWD, path=\"none/b\", mode=0700) = -1 ENOENT");
	t_fails(sys(mkdirat, AT_FDCWD, "none/b", 0700), ENOENT);
	expect("rmdir(path=\"b\") = 0");
	t_ok(sys(rmdir, "b"));
	expect("rmdir(path=\"b/\") = -1 ENOENT");
	t_fails(sys(rmdir, "b/"), ENOENT);
	expect("rmdir(path=\".\") = -1 EINVAL");
	t_fails(sys(rmdir, "."), EINVAL);
	expect("unlinkat(dirfd=%d, path=\"s\", flags=AT_REMOVEDIR) = 0", dir);
	t_ok(sys(unlinkat, dir, "s", AT_REMOVEDIR));
	expect("unlinkat(dirfd=%d, path=\"a\", flags=0) = -1 EISDIR", dir);
	t_fails(sys(unlinkat, dir, "a", 0), EISDIR);
	expect("unlinkat(dirfd=AT_FDCWD, path=\"a\", flags=0x1) = -1 EINVAL");
	t_fails(sys(unlinkat, AT_FDCWD, "a", 1), EINVAL);
}

static void links(int dir)
{
	expect("mknodat(dirfd=%d, path=\"f\", mode=S_IFREG|0644, dev=0:0) = 0", dir);
	t_ok(sys(mknodat, dir, "f", S_IFREG | 0644, 0));
	expect("link(oldpath=\"f\", newpath=\"g\") = 0");
	t_ok(sys(link, "f", "g"));
	expect("link(oldpath=\"f\", newpath=\"g\") = -1 EEXIST");
	t_fails(sys(link, "f", "g"), EEXIST);
	expect("link(oldpath=\"none\", newpath=\"h\") = -1 ENOENT");
	t_fails(sys(link, "none", "h"), ENOENT);
	expect("linkat(olddirfd=%d, oldpath=\"f\", newdirfd=AT_FDCWD, newpath=\"h\", flags=0) = 0",
	       dir);
	t_ok(sys(linkat, dir, "f", AT_FDCWD, "h", 0));
	expect("linkat(olddirfd=AT_FDCWD, oldpath=\"f\", newdirfd=%d, newpath=\"i\", flags=AT_SYMLINK_FOLLOW) = 0",
	       dir);
	t_ok(sys(linkat, AT_FDCWD, "f", dir, "i", AT_SYMLINK_FOLLOW));
	expect("linkat(olddirfd=%d, oldpath=\"\", newdirfd=%d, newpath=\"i\", flags=0) = -1 ENOENT",
	       dir, dir);
	t_fails(sys(linkat, dir, "", dir, "i", 0), ENOENT);
	expect("unlink(path=\"h\") = 0");
	t_ok(sys(unlink, "h"));
	expect("unlink(path=\"h\") = -1 ENOENT");
	t_fails(sys(unlink, "h"), ENOENT);
	expect("unlinkat(dirfd=%d, path=\"i\", flags=0) = 0", dir);
	t_ok(sys(unlinkat, dir, "i", 0));
}

static void symlinks(int dir)
{
	char buf[100];
	long r;

	expect("symlink(target=\"../to nowhere\", linkpath=\"l\") = 0");
	t_ok(sys(symlink, "../to nowhere", "l"));
	expect("symlink(target=\"x\", linkpath=\"l\") = -1 EEXIST");
	t_fails(sys(symlink, "x", "l"), EEXIST);
	expect("symlink(target=\"\", linkpath=\"m\") = -1 ENOENT");
	t_fails(sys(symlink, "", "m"), ENOENT);
	expect("symlinkat(target=\"f\", newdirfd=%d, linkpath=\"m\") = 0", dir);
	t_ok(sys(symlinkat, "f", dir, "m"));
	expect("symlinkat(target=\"f\", newdirfd=-5, linkpath=\"m\") = -1 EBADF");
	t_fails(sys(symlinkat, "f", -5, "m"), EBADF);
	expect("readlink(path=\"l\", buf=\"../to nowhere\", bufsiz=100) = 13");
	t_is(sys(readlink, "l", buf, sizeof(buf)), 13);
	expect("readlink(path=\"l\", buf=\"../to\", bufsiz=5) = 5");
	t_is(sys(readlink, "l", buf, 5), 5);
	expect("readlink(path=\"f\", buf=%s, bufsiz=100) = -1 EINVAL", pointer(buf));
	t_fails(sys(readlink, "f", buf, sizeof(buf)), EINVAL);
	expect("readlinkat(dirfd=%d, path=\"m\", buf=\"f\", bufsiz=100) = 1", dir);
	t_is(sys(readlinkat, dir, "m", buf, sizeof(buf)), 1);
	r = t_ok(sys(open, "m", O_PATH | O_NOFOLLOW));
	expect("open(path=\"m\", flags=O_RDONLY|O_PATH|O_NOFOLLOW, file=%s) = %ld",
	       file_text((int)r), r);
	expect("readlinkat(dirfd=%ld, path=\"\", buf=\"f\", bufsiz=100) = 1", r);
	t_is(sys(readlinkat, r, "", buf, sizeof(buf)), 1);
	expect("close(fd=%ld) = 0", r);
	t_ok(sys(close, r));
	expect("readlinkat(dirfd=AT_FDCWD, path=\"none\", buf=%s, bufsiz=100) = -1 ENOENT",
	       pointer(buf));
	t_fails(sys(readlinkat, AT_FDCWD, "none", buf, sizeof(buf)), ENOENT);
	expect("readlink(path=\"l\", buf=%s, bufsiz=-1) = -1 EINVAL", pointer(buf));
	t_fails(sys(readlink, "l", buf, -1), EINVAL);
}

static void renames(int dir)
{
	long r;

	expect("rename(oldpath=\"g\", newpath=\"a/g\") = 0");
	t_ok(sys(rename, "g", "a/g"));
	expect("rename(oldpath=\"g\", newpath=\"a/g\") = -1 ENOENT");
	t_fails(sys(rename, "g", "a/g"), ENOENT);
	expect("rename(oldpath=\"f\", newpath=\"a\") = -1 EISDIR");
	t_fails(sys(rename, "f", "a"), EISDIR);
	expect("renameat(olddirfd=%d, oldpath=\"f\", newdirfd=AT_FDCWD, newpath=\"k\") = 0", dir);
	t_ok(sys(renameat, dir, "f", AT_FDCWD, "k"));
	expect("renameat(olddirfd=%d, oldpath=\"f\", newdirfd=%d, newpath=\"k\") = -1 ENOENT", dir,
	       dir);
	t_fails(sys(renameat, dir, "f", dir, "k"), ENOENT);
	expect("renameat2(olddirfd=AT_FDCWD, oldpath=\"k\", newdirfd=%d, newpath=\"m\", flags=RENAME_EXCHANGE) = 0",
	       dir);
	t_ok(sys(renameat2, AT_FDCWD, "k", dir, "m", RENAME_EXCHANGE));
	expect("renameat2(olddirfd=%d, oldpath=\"k\", newdirfd=%d, newpath=\"m\", flags=RENAME_NOREPLACE) = -1 EEXIST",
	       dir, dir);
	t_fails(sys(renameat2, dir, "k", dir, "m", RENAME_NOREPLACE), EEXIST);
	expect("renameat2(olddirfd=%d, oldpath=\"k\", newdirfd=%d, newpath=\"m\", flags=RENAME_NOREPLACE|RENAME_EXCHANGE) = -1 EINVAL",
	       dir, dir);
	t_fails(sys(renameat2, dir, "k", dir, "m", RENAME_NOREPLACE | RENAME_EXCHANGE), EINVAL);
	expect("renameat2(olddirfd=%d, oldpath=\"k\", newdirfd=%d, newpath=\"m\", flags=0) = 0",
	       dir, dir);
	t_ok(sys(renameat2, dir, "k", dir, "m", 0));
	r = sys(renameat2, dir, "m", dir, "w", RENAME_WHITEOUT);
	expect("renameat2(olddirfd=%d, oldpath=\"m\", newdirfd=%d, newpath=\"w\", flags=RENAME_WHITEOUT) = %s",
	       dir, dir, outcome(r));
}

static void nodes(int dir)
{
	long r;

	expect("mknod(path=\"fifo\", mode=S_IFIFO|0600, dev=0:0) = 0");
	t_ok(sys(mknod, "fifo", S_IFIFO | 0600, 0));
	expect("mknod(path=\"fifo\", mode=S_IFIFO|0600, dev=0:0) = -1 EEXIST");
	t_fails(sys(mknod, "fifo", S_IFIFO | 0600, 0), EEXIST);
	expect("mknodat(dirfd=%d, path=\"sock\", mode=S_IFSOCK|0600, dev=0:0) = 0", dir);
	t_ok(sys(mknodat, dir, "sock", S_IFSOCK | 0600, 0));
	/* Devices need a right; the number is the same either way. */
	r = sys(mknod, "chr", S_IFCHR | 0600, makedev(1, 3));
	expect("mknod(path=\"chr\", mode=S_IFCHR|0600, dev=1:3) = %s", outcome(r));
	r = sys(mknodat, dir, "blk", S_IFBLK | 0600, makedev(300, 70000));
	expect("mknodat(dirfd=%d, path=\"blk\", mode=S_IFBLK|0600, dev=300:70000) = %s", dir,
	       outcome(r));
	expect("mknod(path=\"dir\", mode=S_IFDIR|0600, dev=0:0) = -1 EPERM");
	t_fails(sys(mknod, "dir", S_IFDIR | 0600, 0), EPERM);
	expect("mknod(path=\"plain\", mode=0640, dev=0:0) = 0");
	t_ok(sys(mknod, "plain", 0640, 0));
}

/* Names are bytes. */
static void odd_names(void)
{
	expect("mkdir(path=\"\\x01\\xff\\xc3\\xa9 \\\"\\\\\\n\", mode=0700) = 0");
	t_ok(sys(mkdir, "\x01\xff\xc3\xa9 \"\\\n", 0700));
	expect("rmdir(path=\"\\x01\\xff\\xc3\\xa9 \\\"\\\\\\n\") = 0");
	t_ok(sys(rmdir, "\x01\xff\xc3\xa9 \"\\\n"));
	expect("unlink(path=\"a//../a/./g\") = 0");
	t_ok(sys(unlink, "a//../a/./g"));
	expect("unlink(path=&0xdeadbeef000) = -1 EFAULT");
	t_fails(sys(unlink, 0xdeadbeef000), EFAULT);
	expect("rename(oldpath=\"a\", newpath=NULL) = -1 EFAULT");
	t_fails(sys(rename, "a", NULL), EFAULT);
}

int main(void)
{
	int dir;

	t_init();
	umask(0);
	dir = (int)t_ok(open(".", O_RDONLY | O_DIRECTORY));
	t_begin();
	directories(dir);
	links(dir);
	symlinks(dir);
	renames(dir);
	nodes(dir);
	odd_names();
	t_end();
	return 0;
}
