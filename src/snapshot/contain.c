/* SPDX-License-Identifier: MIT */
#include "snapshot/contain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"

/* Far more than any machine has mounts. */
#define MOUNTINFO_MAX_BYTES (64u << 20)

/* Linux 5.8 says so; before that contain_check_mounts() alone guards. */
static bool is_mount(const struct statx *stx)
{
	return stx->stx_attributes & stx->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT;
}

static bool is_mount_fd(int fd)
{
	struct statx stx;

	return !statx(fd, "", AT_EMPTY_PATH, 0, &stx) && is_mount(&stx);
}

/* For kernels before 5.6, and filters that do not know the call: a part at a time. */
static int open_by_parts(int dir_fd, const char *path, int flags, bool cross)
{
	char name[256];
	int at = dir_fd, fd;

	for (;;) {
		size_t len = strcspn(path, "/");

		if (len >= sizeof(name)) {
			fd = -ENAMETOOLONG;
			break;
		}
		memcpy(name, path, len);
		name[len] = 0;
		if (!strcmp(name, "..")) {
			fd = -EXDEV;
			break;
		}
		fd = openat(at, name,
			    path[len] ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags);
		if (fd < 0)
			fd = -errno;
		if (fd >= 0 && !cross && strcmp(name, ".") != 0 && is_mount_fd(fd)) {
			(void)close(fd); /* nothing was written */
			fd = -EXDEV;
		}
		if (fd < 0 || !path[len])
			break;
		if (at != dir_fd)
			(void)close(at); /* O_PATH: nothing to fail */
		at = fd;
		path += len + 1;
	}
	if (at != dir_fd)
		(void)close(at); /* likewise */
	return fd;
}

int contain_open(int dir_fd, const char *path, int flags, bool cross)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   (cross ? 0 : RESOLVE_NO_XDEV),
	};
	long fd;

	if (!*path)
		path = ".";
	fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	if (fd >= 0)
		return (int)fd;
	if (errno == ENOSYS || errno == EPERM)
		return open_by_parts(dir_fd, path, (int)how.flags, cross);
	return -errno;
}

int contain_stat(int dir_fd, const char *name, bool cross, struct stat *ret)
{
	struct statx stx;

	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &stx))
		return -errno;
	if (!cross && is_mount(&stx))
		return -EXDEV;
	*ret = (struct stat){
		.st_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
		.st_ino = stx.stx_ino,
		.st_mode = stx.stx_mode,
		.st_nlink = stx.stx_nlink,
		.st_uid = stx.stx_uid,
		.st_gid = stx.stx_gid,
		.st_rdev = makedev(stx.stx_rdev_major, stx.stx_rdev_minor),
		.st_size = (off_t)stx.stx_size,
		.st_blksize = (blksize_t)stx.stx_blksize,
		.st_blocks = (blkcnt_t)stx.stx_blocks,
		.st_atim = { .tv_sec = stx.stx_atime.tv_sec, .tv_nsec = stx.stx_atime.tv_nsec },
		.st_mtim = { .tv_sec = stx.stx_mtime.tv_sec, .tv_nsec = stx.stx_mtime.tv_nsec },
		.st_ctim = { .tv_sec = stx.stx_ctime.tv_sec, .tv_nsec = stx.stx_ctime.tv_nsec },
	};
	return 0;
}

int contain_chmod(int dir_fd, const char *name, mode_t mode, bool cross)
{
	AUTO_CLOSE int fd = contain_open(dir_fd, name, O_PATH, cross);
	char path[64];
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	/* A descriptor of O_PATH cannot be changed itself; this leads to the very same object. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, mode) ? -errno : 0;
}

int contain_open_dir(int dir_fd, const char *name, bool cross)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
	int fd = contain_open(dir_fd, name, flags | O_NOATIME, cross), r;

	if (fd == -EPERM)
		fd = contain_open(dir_fd, name, flags, cross);
	if (fd == -EACCES) {
		r = contain_chmod(dir_fd, name, 0700, cross);
		if (r < 0)
			return r;
		fd = contain_open(dir_fd, name, flags, cross);
	}
	return fd;
}

/* Mounts. */

/* The mount point of a line of mountinfo, its fifth field, without escapes; NULL if it has none. */
static char *mount_point(char *line)
{
	char *at = line, *to, *from;
	int i;

	for (i = 0; i < 4 && at; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return NULL;
	at[strcspn(at, " ")] = 0;
	for (to = from = at; *from; to++) {
		unsigned int c;

		if (*from == '\\' && sscanf(from + 1, "%3o", &c) == 1) {
			*to = (char)c;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = 0;
	return at;
}

int contain_check_mounts(int dir_fd, struct err *err)
{
	char link[64], dir[PATH_MAX], *line, *next, *point;
	struct buf text = { 0 };
	ssize_t len;
	int fd, r;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	len = readlink(link, dir, sizeof(dir));
	if (len < 0 || (size_t)len >= sizeof(dir))
		return err_set(err, len < 0 ? -errno : -ENAMETOOLONG,
			       "cannot tell what is mounted below it (%s)", link);
	if (len == 1)
		len = 0; /* "/": every other path is below it */
	r = io_read_file("/proc/self/mountinfo", MOUNTINFO_MAX_BYTES, &text, err);
	if (r < 0)
		return err_wrap(err, r, "cannot tell what is mounted below it");
	(void)buf_str(&text);
	for (line = (char *)text.data; !r && *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = 0;
		point = mount_point(line);
		if (!point || strncmp(point, dir, (size_t)len) != 0 || point[len] != '/' ||
		    !point[len + 1])
			continue;
		/* It counts unless another mount hides it. */
		fd = contain_open(dir_fd, point + len + 1, O_PATH, false);
		if (fd >= 0)
			(void)close(fd); /* O_PATH: nothing to fail */
		if (fd >= 0 || fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR)
			continue;
		r = err_set(
			err, -EINVAL,
			"%s is a mount point: unmount it, or use what is mounted there too (--one-device=no)",
			point);
	}
	buf_release(&text);
	return r;
}
