/* SPDX-License-Identifier: MIT */
/*
 * Opening below a directory without ever leaving it. Paths are relative, have no
 * "..", and no part of them may be a symlink, nor, unless `cross` says so, a
 * mount point: that is -EXDEV. Any thread may call these.
 */
#ifndef SNAPSHOT_CONTAIN_H
#define SNAPSHOT_CONTAIN_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/attrs.h"
#include "base/err.h"

/* A descriptor, or -errno. "" is the directory itself. flags get O_CLOEXEC and O_NOFOLLOW. */
MUST_CHECK int contain_open(int dir_fd, const char *path, int flags, bool cross);
/* A name of an open directory. */
MUST_CHECK int contain_stat(int dir_fd, const char *name, bool cross, struct stat *ret);
/* Changes the mode of a name that is no symlink; works without the right to open it. */
MUST_CHECK int contain_chmod(int dir_fd, const char *name, mode_t mode, bool cross);
/*
 * A directory to be read: is given the rights of its owner if need be. Its time
 * of access is left alone where we may.
 */
MUST_CHECK int contain_open_dir(int dir_fd, const char *name, bool cross);
/* -EINVAL and words that name it if something is mounted below an open directory. */
MUST_CHECK int contain_check_mounts(int dir_fd, struct err *err);

#endif
