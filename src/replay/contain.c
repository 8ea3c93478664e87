/* SPDX-License-Identifier: MIT */
#include "replay/contain.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"

static const struct {
	const char *name, *source;
} devices[] = {
	{ "dev/null", "/dev/null" },	  { "dev/zero", "/dev/zero" },
	{ "dev/full", "/dev/full" },	  { "dev/urandom", "/dev/urandom" },
	{ "dev/random", "/dev/urandom" }, { "dev/tty", "/dev/null" },
};

static int write_text(const char *path, const char *text, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return err_set(err, -errno, "cannot write %s", path);
	return 0;
}

/* The same ids inside as outside: owners of files keep their numbers. */
static int enter_user_namespace(struct err *err)
{
	unsigned int uid = geteuid(), gid = getegid();
	char map[64];
	int r;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return err_set(err, -errno, "the kernel gives this user no namespace");
	r = write_text("/proc/self/setgroups", "deny", err);
	if (r < 0)
		return r;
	(void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	r = write_text("/proc/self/uid_map", map, err);
	if (r < 0)
		return r;
	(void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return write_text("/proc/self/gid_map", map, err);
}

static int enter_namespaces(struct err *err)
{
	int r = 0;

	if (unshare(CLONE_NEWNS) < 0) {
		if (errno != EPERM)
			return err_set(err, -errno, "cannot get a mount namespace");
		r = enter_user_namespace(err);
	}
	if (r < 0)
		return r;
	/* Nothing that happens here is seen outside. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_set(err, -errno, "cannot make mounts private");
	return 0;
}

/* What a mount must keep when it is changed by somebody who did not make it. */
static unsigned long kept_flags(const struct statvfs *st)
{
	unsigned long flags = 0;

	flags |= st->f_flag & ST_RDONLY ? MS_RDONLY : 0;
	flags |= st->f_flag & ST_NOEXEC ? MS_NOEXEC : 0;
	flags |= st->f_flag & ST_NOATIME ? MS_NOATIME : 0;
	flags |= st->f_flag & ST_NODIRATIME ? MS_NODIRATIME : 0;
	flags |= st->f_flag & ST_RELATIME ? MS_RELATIME : 0;
	return flags;
}

/* What is mounted below it keeps its own flags, but gets these too. */
static int forbid_devices_below(const char *dir, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };

	if (syscall(SYS_mount_setattr, AT_FDCWD, ".", AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return err_set(err, -errno, "cannot forbid devices in what is mounted below %s",
			       dir);
	return 0;
}

static int mount_root(const char *dir, bool cross_mounts, struct err *err)
{
	struct statvfs st;

	if (mount(dir, dir, NULL, MS_BIND | (cross_mounts ? MS_REC : 0), NULL) < 0)
		return err_set(err, -errno, "cannot mount %s as a root directory", dir);
	/* The new mount lies upon the directory: it must be entered by name. */
	if (chdir(dir) < 0 || statvfs(".", &st) < 0)
		return err_set(err, -errno, "cannot enter %s", dir);
	if (cross_mounts)
		return forbid_devices_below(dir, err);
	if (mount(NULL, ".", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | kept_flags(&st),
		  NULL) < 0)
		return err_set(err, -errno, "cannot forbid devices in %s", dir);
	return 0;
}

static bool is_plain_entry(const char *name)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));
	struct stat st;
	bool plain = fd >= 0 && !fstat(fd, &st) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode);

	if (fd >= 0)
		(void)close(fd);
	return plain;
}

/* A device that can be used, but not be given other owners, modes or times. */
static int mount_device(const char *source, const char *name, struct err *err)
{
	struct statvfs st;

	if (mount(source, name, NULL, MS_BIND, NULL) < 0 || statvfs(name, &st) < 0 ||
	    mount(NULL, name, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | kept_flags(&st),
		  NULL) < 0)
		return err_set(err, -errno, "cannot provide %s", source);
	return 0;
}

static int open_null(int *ret_fd, struct err *err)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, -errno, "cannot open /dev/null");
	*ret_fd = fd;
	return 0;
}

static int mount_devices(struct err *err)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(devices); i++) {
		const char *name = devices[i].name;
		int r;

		if (!is_plain_entry(name) || access(devices[i].source, F_OK) < 0)
			continue;
		r = mount_device(devices[i].source, name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The old root goes on top of the new one, and away: nothing of it is left to be found. */
static int change_root(struct err *err)
{
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_set(err, -errno, "cannot change the root directory");
	if (umount2(".", MNT_DETACH) < 0)
		return err_set(err, -errno, "cannot leave the former root directory");
	if (chdir("/") < 0)
		return err_set(err, -errno, "cannot enter the root directory");
	return 0;
}

int contain_memory(uint64_t bytes)
{
	int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), fd = -1;
	char size[24];

	if (fs < 0)
		return -1;
	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	if (!syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", size, 0) &&
	    !syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
	(void)close(fs); /* nothing was written */
	return fd;
}

int contain_enter(const char *dir, bool cross_mounts, int *ret_null_fd, struct err *err)
{
	int r = enter_namespaces(err);

	/* Plans get descriptors of it: those must not reach the system's own. */
	if (!r)
		r = mount_device("/dev/null", "/dev/null", err);
	if (!r)
		r = open_null(ret_null_fd, err);
	if (!r)
		r = mount_root(dir, cross_mounts, err);
	if (!r)
		r = mount_devices(err);
	if (!r)
		r = change_root(err);
	if (!r && prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) < 0)
		r = err_set(err, -errno, "cannot give up new rights");
	return r;
}

int contain_chroot(const char *dir, int *ret_null_fd, struct err *err)
{
	int r = open_null(ret_null_fd, err);

	if (r < 0)
		return r;
	if (chroot(dir) < 0 || chdir("/") < 0)
		return err_set(err, -errno, "cannot make %s the root directory", dir);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) < 0)
		return err_set(err, -errno, "cannot give up new rights");
	return 0;
}
