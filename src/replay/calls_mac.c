/* SPDX-License-Identifier: MIT */
/* Calls of macOS, by what comes nearest to them here. */
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/calls.h"

/* Bits of open and of extended attributes, as macOS numbers them. */
static const struct {
	uint32_t mac;
	int ours;
} open_bits[] = {
	{ 0x4, O_NONBLOCK },   { 0x8, O_APPEND },	  { 0x80, O_SYNC },
	{ 0x100, O_NOFOLLOW }, { 0x200, O_CREAT },	  { 0x400, O_TRUNC },
	{ 0x800, O_EXCL },     { 0x100000, O_DIRECTORY }, { 0x200000, O_PATH | O_NOFOLLOW },
	{ 0x400000, O_DSYNC },
};
#define MAC_EVTONLY 0x8000
#define MAC_XATTR_NOFOLLOW 1
#define MAC_XATTR_CREATE 2
#define MAC_XATTR_REPLACE 4
#define MAC_ATTR_NOFOLLOW 1

void replay_mac_open(struct lane *l, struct ready *a, struct outcome *out)
{
	int flags = (int)a->regs[1] & O_ACCMODE;
	size_t i;

	for (i = 0; i < ARRAY_LEN(open_bits); i++)
		if (a->regs[1] & open_bits[i].mac)
			flags |= open_bits[i].ours;
	if (a->regs[1] & MAC_EVTONLY)
		flags = O_PATH;
	call_set_fd(l, a, 0,
		    open((char *)a->regs[0], flags | O_CLOEXEC | O_NOCTTY, (mode_t)a->regs[2]),
		    out);
}

void replay_mac_stat64(struct lane *l, struct ready *a, struct outcome *out)
{
	struct stat st;

	(void)l;
	call_set(out, stat((char *)a->regs[0], &st));
}

void replay_mac_lstat64(struct lane *l, struct ready *a, struct outcome *out)
{
	struct stat st;

	(void)l;
	call_set(out, lstat((char *)a->regs[0], &st));
}

void replay_mac_fstat64(struct lane *l, struct ready *a, struct outcome *out)
{
	struct stat st;

	(void)l;
	call_set(out, fstat((int)a->regs[0], &st));
}

void replay_mac_statfs64(struct lane *l, struct ready *a, struct outcome *out)
{
	struct statfs st;

	(void)l;
	call_set(out, statfs((char *)a->regs[0], &st));
}

void replay_mac_fstatfs64(struct lane *l, struct ready *a, struct outcome *out)
{
	struct statfs st;

	(void)l;
	call_set(out, fstatfs((int)a->regs[0], &st));
}

void replay_getattrlist(struct lane *l, struct ready *a, struct outcome *out)
{
	if (a->regs[1] & MAC_ATTR_NOFOLLOW)
		replay_mac_lstat64(l, a, out);
	else
		replay_mac_stat64(l, a, out);
}

/* Which attributes were set is not known: the times are a small change of the same kind. */
void replay_setattrlist(struct lane *l, struct ready *a, struct outcome *out)
{
	int flags = a->regs[1] & MAC_ATTR_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;

	(void)l;
	call_set(out, utimensat(AT_FDCWD, (char *)a->regs[0], NULL, flags));
}

void replay_fgetattrlist(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_mac_fstat64(l, a, out);
}

void replay_fsetattrlist(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, futimens((int)a->regs[0], NULL));
}

/* Linux has no such flags that everybody may set: the inode is written with the mode that it has. */
void replay_chflags(struct lane *l, struct ready *a, struct outcome *out)
{
	struct stat st;

	(void)l;
	call_set(out, stat((char *)a->regs[0], &st));
	if (!out->err)
		call_set(out, chmod((char *)a->regs[0], st.st_mode & 07777));
}

void replay_fchflags(struct lane *l, struct ready *a, struct outcome *out)
{
	struct stat st;

	(void)l;
	call_set(out, fstat((int)a->regs[0], &st));
	if (!out->err)
		call_set(out, fchmod((int)a->regs[0], st.st_mode & 07777));
}

/*
 * Calls that nobody has documented, or that have no counterpart, and that only
 * look something up: a small access to metadata. What it gave is not comparable.
 */
static void small_access(struct ready *a, int ret, struct outcome *out)
{
	call_set(out, ret);
	if (!out->err)
		call_stands(a, out);
}

void replay_fsctl(struct lane *l, struct ready *a, struct outcome *out)
{
	struct stat st;

	(void)l;
	small_access(a, stat((char *)a->regs[0], &st), out);
}

void replay_searchfs(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_fsctl(l, a, out);
}

void replay_ffsctl(struct lane *l, struct ready *a, struct outcome *out)
{
	struct stat st;

	(void)l;
	small_access(a, fstat((int)a->regs[0], &st), out);
}

/* Commands without a row. */
void replay_mac_fcntl(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_ffsctl(l, a, out);
}

void replay_fsgetpath(struct lane *l, struct ready *a, struct outcome *out)
{
	struct stat st;

	(void)l;
	small_access(a, stat("/", &st), out);
}

void replay_getfsstat64(struct lane *l, struct ready *a, struct outcome *out)
{
	struct statfs st;

	(void)l;
	small_access(a, statfs("/", &st), out);
}

void replay_stat64_extended(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_mac_stat64(l, a, out);
}

void replay_lstat64_extended(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_mac_lstat64(l, a, out);
}

void replay_fstat64_extended(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_mac_fstat64(l, a, out);
}

void replay_delete(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, unlink((char *)a->regs[0]));
}

/*
 * Swaps two names where the file system cannot do it at once: the first gets a
 * third name by link(), then two renames. The third name is beside the first,
 * so that it is on the same file system, and no plan has it.
 */
int call_exchange_by_link(const char *one, const char *two)
{
	const char *slash = strrchr(one, '/');
	char third[PATH_MAX];
	int r, saved;

	r = snprintf(third, sizeof(third), "%.*s.reprise-exchange-%d",
		     slash ? (int)(slash - one) + 1 : 0, one, (int)gettid());
	if (r >= (int)sizeof(third)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (link(one, third) < 0)
		return -1;
	if (!rename(two, one) && !rename(third, two))
		return 0;
	saved = errno;
	(void)unlink(third); /* it failed already, and that is told */
	errno = saved;
	return -1;
}

void replay_exchangedata(struct lane *l, struct ready *a, struct outcome *out)
{
	const char *one = (char *)a->regs[0], *two = (char *)a->regs[1];
	int r = renameat2(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE);

	(void)l;
	if (r < 0 && (errno == EINVAL || errno == ENOSYS))
		r = call_exchange_by_link(one, two);
	call_set(out, r);
}

void replay_getdirentries64(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, syscall(SYS_getdents64, (int)a->regs[0], a->regs[1], a->regs[2]));
}

void replay_getdirentriesattr(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_getdirentries64(l, a, out);
	if (!out->err)
		call_stands(a, out); /* it counts otherwise */
}

void replay_getattrlistbulk(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_getdirentriesattr(l, a, out);
}

/* Without a namespace a name would be refused. */
struct xattr_name {
	char text[XATTR_NAME_MAX + 8];
};

static const char *user_name(const char *name, struct xattr_name *room)
{
	size_t len = name ? strlen(name) : 0;

	if (!name || len > XATTR_NAME_MAX - 5)
		return name;
	memcpy(room->text, "user.", 5);
	memcpy(room->text + 5, name, len + 1);
	return room->text;
}

/*
 * Lengths are not comparable: names have a namespace here, and which attributes
 * files had is not told.
 */
static void look_at_xattrs(struct ready *a, int64_t ret, struct outcome *out)
{
	call_set(out, ret);
	if (!out->err)
		call_stands(a, out);
}

/*
 * The attribute that a call asks for. Where the trace has no name (iBench), the
 * list of all is what comes nearest to one that was found, and NULL says so; one
 * that was not found is any that no file has.
 */
static const char *wanted_name(const struct ready *a, struct xattr_name *room)
{
	const char *name = (char *)a->regs[1];

	if (!name && a->expected.err)
		name = "reprise.none";
	return user_name(name, room);
}

void replay_mac_getxattr(struct lane *l, struct ready *a, struct outcome *out)
{
	const char *path = (char *)a->regs[0];
	bool nofollow = a->regs[5] & MAC_XATTR_NOFOLLOW;
	struct xattr_name room;
	const char *name = wanted_name(a, &room);
	void *value = (void *)a->regs[2];
	int64_t ret;

	(void)l;
	if (name)
		ret = nofollow ? lgetxattr(path, name, value, a->regs[3])
			       : getxattr(path, name, value, a->regs[3]);
	else
		ret = nofollow ? llistxattr(path, NULL, 0) : listxattr(path, NULL, 0);
	look_at_xattrs(a, ret, out);
}

void replay_mac_fgetxattr(struct lane *l, struct ready *a, struct outcome *out)
{
	struct xattr_name room;
	const char *name = wanted_name(a, &room);
	int fd = (int)a->regs[0];

	(void)l;
	look_at_xattrs(a,
		       name ? fgetxattr(fd, name, (void *)a->regs[2], a->regs[3])
			    : flistxattr(fd, NULL, 0),
		       out);
}

static int xattr_flags(uint64_t options)
{
	return (options & MAC_XATTR_CREATE ? XATTR_CREATE : 0) |
	       (options & MAC_XATTR_REPLACE ? XATTR_REPLACE : 0);
}

void replay_mac_setxattr(struct lane *l, struct ready *a, struct outcome *out)
{
	const char *path = (char *)a->regs[0];
	struct xattr_name room;
	const char *name = user_name((char *)a->regs[1], &room);
	const void *value = (void *)a->regs[2];
	int flags = xattr_flags(a->regs[5]);

	(void)l;
	call_set(out, a->regs[5] & MAC_XATTR_NOFOLLOW
			      ? lsetxattr(path, name, value, a->regs[3], flags)
			      : setxattr(path, name, value, a->regs[3], flags));
}

void replay_mac_fsetxattr(struct lane *l, struct ready *a, struct outcome *out)
{
	struct xattr_name room;

	(void)l;
	call_set(out, fsetxattr((int)a->regs[0], user_name((char *)a->regs[1], &room),
				(void *)a->regs[2], a->regs[3], xattr_flags(a->regs[5])));
}

void replay_mac_listxattr(struct lane *l, struct ready *a, struct outcome *out)
{
	const char *path = (char *)a->regs[0];
	char *list = (char *)a->regs[1];

	(void)l;
	look_at_xattrs(a,
		       a->regs[3] & MAC_XATTR_NOFOLLOW ? llistxattr(path, list, a->regs[2])
						       : listxattr(path, list, a->regs[2]),
		       out);
}

void replay_mac_flistxattr(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	look_at_xattrs(a, flistxattr((int)a->regs[0], (char *)a->regs[1], a->regs[2]), out);
}

void replay_mac_removexattr(struct lane *l, struct ready *a, struct outcome *out)
{
	struct xattr_name room;
	const char *name = user_name((char *)a->regs[1], &room);

	(void)l;
	call_set(out, a->regs[2] & MAC_XATTR_NOFOLLOW ? lremovexattr((char *)a->regs[0], name)
						      : removexattr((char *)a->regs[0], name));
}

void replay_mac_fremovexattr(struct lane *l, struct ready *a, struct outcome *out)
{
	struct xattr_name room;

	(void)l;
	call_set(out, fremovexattr((int)a->regs[0], user_name((char *)a->regs[1], &room)));
}

void replay_mac_futimes(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, futimens((int)a->regs[0], (struct timespec *)a->regs[1]));
}

void replay_mac_fcntl_fullfsync(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, fsync((int)a->regs[0]));
}

/* On macOS what was written reaches the device, but need not leave its cache for good. */
void replay_mac_fsync(struct lane *l, struct ready *a, struct outcome *out)
{
	static const unsigned int to_device =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
	int fd = (int)a->regs[0];
	bool device = l->run->o->mac_fsync == RUN_MAC_FSYNC_DEVICE;

	call_set(out, device ? sync_file_range(fd, 0, 0, to_device) : fsync(fd));
}

/* What came before is durable before what follows; the nearest that promises it. */
void replay_mac_fcntl_barrierfsync(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, fdatasync((int)a->regs[0]));
}

static void advise(struct ready *a, off_t offset, off_t len, int advice, struct outcome *out)
{
	int r = posix_fadvise((int)a->regs[0], offset, len, advice);

	out->ret = r ? -1 : 0;
	out->err = r;
}

void replay_mac_fcntl_nocache(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	advise(a, 0, 0, a->regs[1] ? POSIX_FADV_DONTNEED : POSIX_FADV_NORMAL, out);
}

void replay_mac_fcntl_preallocate(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	if (a->regs[3]) /* else the trace does not tell how much */
		call_set(out, fallocate((int)a->regs[0], FALLOC_FL_KEEP_SIZE, (off_t)a->regs[2],
					(off_t)a->regs[3]));
	else
		call_stands(a, out);
}

void replay_mac_fcntl_rdadvise(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	if ((int32_t)a->regs[2] > 0) /* else the trace does not tell what */
		advise(a, (off_t)a->regs[1], (int32_t)a->regs[2], POSIX_FADV_WILLNEED, out);
	else
		call_stands(a, out);
}

void replay_mac_fcntl_rdahead(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	advise(a, 0, 0, a->regs[1] ? POSIX_FADV_NORMAL : POSIX_FADV_RANDOM, out);
}

void replay_mac_fcntl_getpath(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_mac_fstat64(l, a, out);
}

/* Made at once; what asks for it later finds it done. */
void replay_aio_read(struct lane *l, struct ready *a, struct outcome *out)
{
	uint64_t len = a->regs[3] < l->memory.out_bytes ? a->regs[3] : l->memory.out_bytes;
	ssize_t n = pread((int)a->regs[1], l->memory.out, len, (off_t)a->regs[2]);

	call_set(out, n < 0 ? -1 : 0);
}

void replay_aio_write(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, pwrite((int)a->regs[1], (void *)a->regs[4], a->regs[3], (off_t)a->regs[2]) < 0
			      ? -1
			      : 0);
}

void replay_aio_error(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_stands(a, out);
}

void replay_aio_return(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_stands(a, out);
}

void replay_aio_suspend(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_stands(a, out);
}
