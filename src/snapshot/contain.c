/* SPDX-License-Identifier: MIT */
#include "snapshot/contain.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"

/* For kernels before 5.6, and filters that do not know the call: a part at a time. */
static int open_by_parts(int dir_fd, const char *path, int flags)
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

int contain_open(int dir_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (!*path)
		path = ".";
	fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	if (fd >= 0)
		return (int)fd;
	if (errno == ENOSYS || errno == EPERM)
		return open_by_parts(dir_fd, path, (int)how.flags);
	return -errno;
}

int contain_stat(int dir_fd, const char *name, struct stat *ret)
{
	return fstatat(dir_fd, name, ret, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

int contain_chmod(int dir_fd, const char *name, mode_t mode)
{
	AUTO_CLOSE int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char path[64];
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	/* A descriptor of O_PATH cannot be changed itself; this leads to the very same object. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, mode) ? -errno : 0;
}

int contain_open_dir(int dir_fd, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags | O_NOATIME), r;

	if (fd < 0 && errno == EPERM)
		fd = openat(dir_fd, name, flags);
	if (fd < 0 && errno == EACCES) {
		r = contain_chmod(dir_fd, name, 0700);
		if (r < 0)
			return r;
		fd = openat(dir_fd, name, flags);
	}
	return fd < 0 ? -errno : fd;
}
