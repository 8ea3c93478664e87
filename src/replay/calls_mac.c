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

void replay_setattrlist(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_getattrlist(l, a, out);
}

void replay_exchangedata(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, renameat2(AT_FDCWD, (char *)a->regs[0], AT_FDCWD, (char *)a->regs[1],
				RENAME_EXCHANGE));
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

void replay_mac_getxattr(struct lane *l, struct ready *a, struct outcome *out)
{
	const char *path = (char *)a->regs[0];
	struct xattr_name room;
	const char *name = user_name((char *)a->regs[1], &room);
	void *value = (void *)a->regs[2];

	(void)l;
	call_set(out, a->regs[5] & MAC_XATTR_NOFOLLOW ? lgetxattr(path, name, value, a->regs[3])
						      : getxattr(path, name, value, a->regs[3]));
}

void replay_mac_fgetxattr(struct lane *l, struct ready *a, struct outcome *out)
{
	struct xattr_name room;

	(void)l;
	call_set(out, fgetxattr((int)a->regs[0], user_name((char *)a->regs[1], &room),
				(void *)a->regs[2], a->regs[3]));
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
	call_set(out, a->regs[3] & MAC_XATTR_NOFOLLOW ? llistxattr(path, list, a->regs[2])
						      : listxattr(path, list, a->regs[2]));
}

void replay_mac_flistxattr(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, flistxattr((int)a->regs[0], (char *)a->regs[1], a->regs[2]));
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
	call_set(out, fallocate((int)a->regs[0], FALLOC_FL_KEEP_SIZE, (off_t)a->regs[2],
				(off_t)a->regs[3]));
}

void replay_mac_fcntl_rdadvise(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	advise(a, (off_t)a->regs[1], (off_t)a->regs[2], POSIX_FADV_WILLNEED, out);
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
