/* SPDX-License-Identifier: MIT */
/* What a file says of itself, and what a program makes it say. */
#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

#include "lib.h"

static const struct t_bit statx_masks[] = {
	BIT(STATX_ALL),
	BIT(STATX_BASIC_STATS),
	BIT(STATX_TYPE),
	BIT(STATX_MODE),
	BIT(STATX_NLINK),
	BIT(STATX_UID),
	BIT(STATX_GID),
	BIT(STATX_ATIME),
	BIT(STATX_MTIME),
	BIT(STATX_CTIME),
	BIT(STATX_INO),
	BIT(STATX_SIZE),
	BIT(STATX_BLOCKS),
	BIT(STATX_BTIME),
	BIT(STATX_MNT_ID),
	{ "STATX_DIOALIGN", 0x2000 },
	{ "STATX_MNT_ID_UNIQUE", 0x4000 },
	{ "STATX_SUBVOL", 0x8000 },
	{ "STATX_WRITE_ATOMIC", 0x10000 },
	{ "STATX_DIO_READ_ALIGN", 0x20000 },
};

static const struct t_bit statx_attrs[] = {
	BIT(STATX_ATTR_COMPRESSED), BIT(STATX_ATTR_IMMUTABLE),
	BIT(STATX_ATTR_APPEND),	    BIT(STATX_ATTR_NODUMP),
	BIT(STATX_ATTR_ENCRYPTED),  BIT(STATX_ATTR_AUTOMOUNT),
	BIT(STATX_ATTR_MOUNT_ROOT), BIT(STATX_ATTR_VERITY),
	BIT(STATX_ATTR_DAX),	    { "STATX_ATTR_WRITE_ATOMIC", 0x400000 },
};

static const struct t_bit statfs_flags[] = {
	{ "ST_RDONLY", 0x1 },	   { "ST_NOSUID", 0x2 },	 { "ST_NODEV", 0x4 },
	{ "ST_NOEXEC", 0x8 },	   { "ST_SYNCHRONOUS", 0x10 },	 { "ST_VALID", 0x20 },
	{ "ST_MANDLOCK", 0x40 },   { "ST_NOATIME", 0x400 },	 { "ST_NODIRATIME", 0x800 },
	{ "ST_RELATIME", 0x1000 }, { "ST_NOSYMFOLLOW", 0x2000 },
};

static void stats(int fd, int dir)
{
	struct stat st;

	t_ok(sys(stat, "f", &st));
	expect("stat(path=\"f\", statbuf=%s) = 0", stat_text(&st));
	t_ok(sys(stat, "l", &st));
	expect("stat(path=\"l\", statbuf=%s) = 0", stat_text(&st));
	t_ok(sys(lstat, "l", &st));
	expect("lstat(path=\"l\", statbuf=%s) = 0", stat_text(&st));
	t_ok(sys(fstat, fd, &st));
	expect("fstat(fd=%d, statbuf=%s) = 0", fd, stat_text(&st));
	t_ok(sys(stat, "/dev/null", &st));
	expect("stat(path=\"/dev/null\", statbuf=%s) = 0", stat_text(&st));
	t_ok(sys(newfstatat, dir, "l", &st, AT_SYMLINK_NOFOLLOW));
	expect("newfstatat(dirfd=%d, path=\"l\", statbuf=%s, flags=AT_SYMLINK_NOFOLLOW) = 0", dir,
	       stat_text(&st));
	t_ok(sys(newfstatat, fd, "", &st, AT_EMPTY_PATH | AT_NO_AUTOMOUNT));
	expect("newfstatat(dirfd=%d, path=\"\", statbuf=%s, flags=AT_NO_AUTOMOUNT|AT_EMPTY_PATH) = 0",
	       fd, stat_text(&st));
	expect("stat(path=\"none\", statbuf=%s) = -1 ENOENT", pointer(&st));
	t_fails(sys(stat, "none", &st), ENOENT);
	expect("lstat(path=\"f/x\", statbuf=%s) = -1 ENOTDIR", pointer(&st));
	t_fails(sys(lstat, "f/x", &st), ENOTDIR);
	expect("fstat(fd=-1, statbuf=%s) = -1 EBADF", pointer(&st));
	t_fails(sys(fstat, -1, &st), EBADF);
	expect("fstat(fd=%d, statbuf=&0x8) = -1 EFAULT", fd);
	t_fails(sys(fstat, fd, 8), EFAULT);
	expect("newfstatat(dirfd=%d, path=\"l\", statbuf=%s, flags=0x1) = -1 EINVAL", dir,
	       pointer(&st));
	t_fails(sys(newfstatat, dir, "l", &st, 1), EINVAL);
}

static char *statx_time(const struct statx_timestamp *t)
{
	return text("{tv_sec=%lld, tv_nsec=%u}", t->tv_sec, t->tv_nsec);
}

static char *statx_text(const struct statx *x)
{
	return text("{stx_mask=%s, stx_blksize=%u, stx_attributes=%s, stx_nlink=%u, stx_uid=%u, "
		    "stx_gid=%u, stx_mode=%s, stx_ino=%llu, stx_size=%llu, stx_blocks=%llu, "
		    "stx_attributes_mask=%s, stx_atime=%s, stx_btime=%s, stx_ctime=%s, "
		    "stx_mtime=%s, stx_rdev_major=%u, stx_rdev_minor=%u, stx_dev_major=%u, "
		    "stx_dev_minor=%u}",
		    bits(x->stx_mask, statx_masks), x->stx_blksize,
		    bits(x->stx_attributes, statx_attrs), x->stx_nlink, x->stx_uid, x->stx_gid,
		    mode_text(x->stx_mode), x->stx_ino, x->stx_size, x->stx_blocks,
		    bits(x->stx_attributes_mask, statx_attrs), statx_time(&x->stx_atime),
		    statx_time(&x->stx_btime), statx_time(&x->stx_ctime), statx_time(&x->stx_mtime),
		    x->stx_rdev_major, x->stx_rdev_minor, x->stx_dev_major, x->stx_dev_minor);
}

static void statxs(int dir)
{
	struct statx x;

	t_ok(sys(statx, dir, "f", AT_STATX_SYNC_AS_STAT, STATX_ALL, &x));
	expect("statx(dirfd=%d, path=\"f\", flags=AT_STATX_SYNC_AS_STAT, mask=STATX_ALL, statxbuf=%s) = 0",
	       dir, statx_text(&x));
	t_ok(sys(statx, AT_FDCWD, "l", AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC,
		 STATX_SIZE | STATX_MTIME | 0x2000, &x));
	expect("statx(dirfd=AT_FDCWD, path=\"l\", flags=AT_STATX_DONT_SYNC|AT_SYMLINK_NOFOLLOW, mask=STATX_MTIME|STATX_SIZE|STATX_DIOALIGN, statxbuf=%s) = 0",
	       statx_text(&x));
	t_ok(sys(statx, AT_FDCWD, "/dev/null", AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &x));
	expect("statx(dirfd=AT_FDCWD, path=\"/dev/null\", flags=AT_STATX_FORCE_SYNC, mask=STATX_BASIC_STATS, statxbuf=%s) = 0",
	       statx_text(&x));
	expect("statx(dirfd=%d, path=\"none\", flags=AT_STATX_SYNC_AS_STAT, mask=STATX_MODE, statxbuf=%s) = -1 ENOENT",
	       dir, pointer(&x));
	t_fails(sys(statx, dir, "none", 0, STATX_MODE, &x), ENOENT);
	expect("statx(dirfd=%d, path=\"f\", mask=0x80000000, statxbuf=%s) = -1 EINVAL", dir,
	       pointer(&x));
	t_fails(sys(statx, dir, "f", 0, 0x80000000u, &x), EINVAL);
}

static void accesses(int dir)
{
	expect("access(path=\"f\", mode=F_OK) = 0");
	t_ok(sys(access, "f", F_OK));
	expect("access(path=\"f\", mode=R_OK|W_OK) = 0");
	t_ok(sys(access, "f", R_OK | W_OK));
	expect("access(path=\"f\", mode=X_OK) = -1 EACCES");
	t_fails(sys(access, "f", X_OK), EACCES);
	expect("access(path=\"f\", mode=0x8) = -1 EINVAL");
	t_fails(sys(access, "f", 8), EINVAL);
	expect("faccessat(dirfd=%d, path=\"f\", mode=R_OK) = 0", dir);
	t_ok(sys(faccessat, dir, "f", R_OK));
	expect("faccessat(dirfd=AT_FDCWD, path=\"none\", mode=R_OK) = -1 ENOENT");
	t_fails(sys(faccessat, AT_FDCWD, "none", R_OK), ENOENT);
	expect("faccessat2(dirfd=%d, path=\"l\", mode=F_OK, flags=AT_SYMLINK_NOFOLLOW|AT_EACCESS) = 0",
	       dir);
	t_ok(sys(faccessat2, dir, "l", F_OK, AT_SYMLINK_NOFOLLOW | AT_EACCESS));
	expect("faccessat2(dirfd=%d, path=\"\", mode=R_OK|X_OK, flags=AT_EMPTY_PATH) = 0", dir);
	t_ok(sys(faccessat2, dir, "", R_OK | X_OK, AT_EMPTY_PATH));
	expect("faccessat2(dirfd=%d, path=\"f\", mode=R_OK, flags=0x10000000) = -1 EINVAL", dir);
	t_fails(sys(faccessat2, dir, "f", R_OK, 0x10000000), EINVAL);
}

static void modes(int fd, int dir)
{
	long r;

	expect("chmod(path=\"f\", mode=0600) = 0");
	t_ok(sys(chmod, "f", 0600));
	expect("chmod(path=\"none\", mode=04755) = -1 ENOENT");
	t_fails(sys(chmod, "none", 04755), ENOENT);
	expect("fchmod(fd=%d, mode=0644) = 0", fd);
	t_ok(sys(fchmod, fd, 0644));
	expect("fchmod(fd=-1, mode=0) = -1 EBADF");
	t_fails(sys(fchmod, -1, 0), EBADF);
	expect("fchmodat(dirfd=%d, path=\"f\", mode=0600) = 0", dir);
	t_ok(sys(fchmodat, dir, "f", 0600));
	expect("fchmodat(dirfd=-1, path=\"f\", mode=0600) = -1 EBADF");
	t_fails(sys(fchmodat, -1, "f", 0600), EBADF);
	r = sys(fchmodat2, dir, "f", 0640, 0);
	expect("fchmodat2(dirfd=%d, path=\"f\", mode=0640, flags=0) = %s", dir, outcome(r));
	r = sys(fchmodat2, dir, "l", 0640, AT_SYMLINK_NOFOLLOW);
	expect("fchmodat2(dirfd=%d, path=\"l\", mode=0640, flags=AT_SYMLINK_NOFOLLOW) = %s", dir,
	       outcome(r));
}

static void owners(int fd, int dir)
{
	uid_t uid = getuid();
	gid_t gid = getgid();

	t_begin();
	expect("chown(path=\"l\", owner=%u, group=-1) = 0", uid);
	t_ok(sys(chown, "l", uid, -1));
	expect("chown(path=\"none\", owner=1, group=2) = -1 ENOENT");
	t_fails(sys(chown, "none", 1, 2), ENOENT);
	expect("lchown(path=\"l\", owner=-1, group=%u) = 0", gid);
	t_ok(sys(lchown, "l", -1, gid));
	expect("lchown(path=\"none\", owner=-1, group=-1) = -1 ENOENT");
	t_fails(sys(lchown, "none", -1, -1), ENOENT);
	expect("fchown(fd=%d, owner=%u, group=%u) = 0", fd, uid, gid);
	t_ok(sys(fchown, fd, uid, gid));
	expect("fchown(fd=-1, owner=4294967294, group=2147483648) = -1 EBADF");
	t_fails(sys(fchown, -1, 4294967294u, 2147483648u), EBADF);
	expect("fchownat(dirfd=%d, path=\"l\", owner=-1, group=-1, flags=AT_SYMLINK_NOFOLLOW) = 0",
	       dir);
	t_ok(sys(fchownat, dir, "l", -1, -1, AT_SYMLINK_NOFOLLOW));
	expect("fchownat(dirfd=%d, path=\"\", owner=-1, group=-1, flags=AT_EMPTY_PATH) = 0", dir);
	t_ok(sys(fchownat, dir, "", -1, -1, AT_EMPTY_PATH));
	expect("fchownat(dirfd=%d, path=\"\", owner=-1, group=-1, flags=0) = -1 ENOENT", dir);
	t_fails(sys(fchownat, dir, "", -1, -1, 0), ENOENT);
	t_end();
}

static void times(int fd, int dir)
{
	const struct timespec ts[2] = { { 1, 999999999 }, { -2, 0 } };
	const struct timespec omit[2] = { { 0, UTIME_OMIT }, { 0, UTIME_NOW } };
	const struct timeval tv[2] = { { 1000000000, 5 }, { 3, 999999 } };
	const struct utimbuf old = { .actime = 5, .modtime = -6 };

	expect("utime(path=\"f\", times={actime=5, modtime=-6}) = 0");
	t_ok(sys(utime, "f", &old));
	expect("utime(path=\"f\", times=NULL) = 0");
	t_ok(sys(utime, "f", NULL));
	expect("utime(path=\"none\", times=NULL) = -1 ENOENT");
	t_fails(sys(utime, "none", NULL), ENOENT);
	expect("utimes(path=\"f\", times=[{tv_sec=1000000000, tv_usec=5}, {tv_sec=3, tv_usec=999999}]) = 0");
	t_ok(sys(utimes, "f", tv));
	expect("utimes(path=\"none\", times=NULL) = -1 ENOENT");
	t_fails(sys(utimes, "none", NULL), ENOENT);
	expect("futimesat(dirfd=%d, path=\"f\", times=[{tv_sec=1000000000, tv_usec=5}, {tv_sec=3, tv_usec=999999}]) = 0",
	       dir);
	t_ok(sys(futimesat, dir, "f", tv));
	expect("futimesat(dirfd=%d, path=NULL, times=NULL) = 0", fd);
	t_ok(sys(futimesat, fd, NULL, NULL));
	expect("futimesat(dirfd=%d, path=\"f\", times=&0x8) = -1 EFAULT", dir);
	t_fails(sys(futimesat, dir, "f", 8), EFAULT);
	expect("utimensat(dirfd=%d, path=\"l\", times=[{tv_sec=1, tv_nsec=999999999}, {tv_sec=-2, tv_nsec=0}], flags=AT_SYMLINK_NOFOLLOW) = 0",
	       dir);
	t_ok(sys(utimensat, dir, "l", ts, AT_SYMLINK_NOFOLLOW));
	expect("utimensat(dirfd=%d, path=NULL, times=[{tv_sec=0, tv_nsec=1073741822}, {tv_sec=0, tv_nsec=1073741823}], flags=0) = 0",
	       fd);
	t_ok(sys(utimensat, fd, NULL, omit, 0));
	expect("utimensat(dirfd=AT_FDCWD, path=\"none\", times=NULL, flags=0) = -1 ENOENT");
	t_fails(sys(utimensat, AT_FDCWD, "none", NULL, 0), ENOENT);
}

static const char *fs_name(long magic)
{
	static const struct t_bit known[] = {
		{ "EXT4_SUPER_MAGIC", 0xef53 },		 { "TMPFS_MAGIC", 0x1021994 },
		{ "BTRFS_SUPER_MAGIC", 0x9123683e },	 { "XFS_SUPER_MAGIC", 0x58465342 },
		{ "OVERLAYFS_SUPER_MAGIC", 0x794c7630 }, { "PROC_SUPER_MAGIC", 0x9fa0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].value == (unsigned long)magic)
			return known[i].name;
	return "*";
}

static char *statfs_text(const struct statfs *s)
{
	return text(
		"{f_type=%s, f_bsize=%ld, f_blocks=%lu, f_bfree=%lu, f_bavail=%lu, f_files=%lu, "
		"f_ffree=%lu, f_fsid={val=[%s, %s]}, f_namelen=%ld, f_frsize=%ld, f_flags=%s}",
		fs_name(s->f_type), s->f_bsize, s->f_blocks, s->f_bfree, s->f_bavail, s->f_files,
		s->f_ffree, hex((unsigned int)s->f_fsid.__val[0]),
		hex((unsigned int)s->f_fsid.__val[1]), s->f_namelen, s->f_frsize,
		bits((unsigned long)s->f_flags, statfs_flags));
}

static void file_systems(int fd, dev_t dev)
{
	struct {
		int tfree;
		unsigned long tinode;
		char names[12];
	} u;
	struct statfs s;
	long r;

	t_ok(sys(statfs, "f", &s));
	expect("statfs(path=\"f\", buf=%s) = 0", statfs_text(&s));
	t_ok(sys(statfs, "/proc", &s));
	expect("statfs(path=\"/proc\", buf=%s) = 0", statfs_text(&s));
	expect("statfs(path=\"none\", buf=%s) = -1 ENOENT", pointer(&s));
	t_fails(sys(statfs, "none", &s), ENOENT);
	t_ok(sys(fstatfs, fd, &s));
	expect("fstatfs(fd=%d, buf=%s) = 0", fd, statfs_text(&s));
	expect("fstatfs(fd=-1, buf=%s) = -1 EBADF", pointer(&s));
	t_fails(sys(fstatfs, -1, &s), EBADF);
	r = sys(ustat, dev, &u);
	if (!r)
		expect("ustat(dev=%u:%u, ubuf={f_tfree=%d, f_tinode=%lu}) = 0", major(dev),
		       minor(dev), u.tfree, u.tinode);
	else
		expect("ustat(dev=%u:%u, ubuf=%s) = %s", major(dev), minor(dev), pointer(&u),
		       outcome(r));
	expect("ustat(dev=3000:70000, ubuf=%s) = -1 EINVAL", pointer(&u));
	t_fails(sys(ustat, makedev(3000, 70000), &u), EINVAL);
}

struct file_attr_v0 {
	uint64_t xflags;
	uint32_t extsize, nextents, projid, cowextsize;
};

static const struct t_bit xflags[] = {
	{ "FS_XFLAG_REALTIME", 0x1 },  { "FS_XFLAG_PREALLOC", 0x2 },
	{ "FS_XFLAG_IMMUTABLE", 0x8 }, { "FS_XFLAG_APPEND", 0x10 },
	{ "FS_XFLAG_SYNC", 0x20 },     { "FS_XFLAG_NOATIME", 0x40 },
	{ "FS_XFLAG_NODUMP", 0x80 },   { "FS_XFLAG_PROJINHERIT", 0x200 },
	{ "FS_XFLAG_DAX", 0x8000 },    { "FS_XFLAG_HASATTR", 0x80000000 },
};

static void attributes(int dir)
{
	struct file_attr_v0 a = { .xflags = 1 };
	char *out;
	long r;

	r = sys(file_getattr, dir, "f", &a, sizeof(a), 0);
	out = text("{fa_xflags=%s, fa_extsize=%u, fa_nextents=%u, fa_projid=%u, fa_cowextsize=%u}",
		   bits(a.xflags, xflags), a.extsize, a.nextents, a.projid, a.cowextsize);
	expect("file_getattr(dirfd=%d, path=\"f\", attr=%s, size=24, at_flags=0) = %s", dir,
	       r < 0 ? pointer(&a) : out, outcome(r));
	r = sys(file_setattr, dir, "f", &a, sizeof(a), AT_SYMLINK_NOFOLLOW);
	expect("file_setattr(dirfd=%d, path=\"f\", attr=%s, size=24, at_flags=AT_SYMLINK_NOFOLLOW) = %s",
	       dir, out, outcome(r));
	r = sys(file_setattr, AT_FDCWD, "none", &a, 8, 0);
	expect("file_setattr(dirfd=AT_FDCWD, path=\"none\", attr={fa_xflags=%s, fa_extsize=?}, size=8, at_flags=0) = %s",
	       bits(a.xflags, xflags), outcome(r));
}

int main(void)
{
	struct stat st;
	int fd, dir;

	t_init();
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0644));
	dir = (int)t_ok(open(".", O_RDONLY | O_DIRECTORY));
	t_is(write(fd, "1234567", 7), 7);
	t_ok(symlink("f", "l"));
	t_ok(fstat(fd, &st));
	t_begin();
	stats(fd, dir);
	statxs(dir);
	accesses(dir);
	modes(fd, dir);
	t_end();
	owners(fd, dir);
	t_begin();
	times(fd, dir);
	file_systems(fd, st.st_dev);
	attributes(dir);
	t_end();
	return 0;
}
