/* SPDX-License-Identifier: MIT */
/*
 * statx, and what stands for it where it is not to be had: kernels before 4.11 lack it, and
 * sandboxes that are older than the call deny it. Then the time of birth and the number of
 * the mount are not known.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "record/tree_inside.h"

static struct statx_timestamp timestamp_of(const struct timespec *ts)
{
	return (struct statx_timestamp){ .tv_sec = ts->tv_sec, .tv_nsec = (uint32_t)ts->tv_nsec };
}

static struct statx statx_of(const struct stat *st)
{
	return (struct statx){
		.stx_mask = STATX_BASIC_STATS,
		.stx_blksize = (uint32_t)st->st_blksize,
		.stx_nlink = (uint32_t)st->st_nlink,
		.stx_uid = st->st_uid,
		.stx_gid = st->st_gid,
		.stx_mode = (uint16_t)st->st_mode,
		.stx_ino = st->st_ino,
		.stx_size = (uint64_t)st->st_size,
		.stx_blocks = (uint64_t)st->st_blocks,
		.stx_atime = timestamp_of(&st->st_atim),
		.stx_mtime = timestamp_of(&st->st_mtim),
		.stx_ctime = timestamp_of(&st->st_ctim),
		.stx_dev_major = major(st->st_dev),
		.stx_dev_minor = minor(st->st_dev),
		.stx_rdev_major = major(st->st_rdev),
		.stx_rdev_minor = minor(st->st_rdev),
	};
}

bool tree_stat(int fd, const char *path, int flags, struct statx *ret)
{
	struct stat st;

	if (!statx(fd, path, flags, STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID, ret))
		return true;
	/*
	 * Whatever it says, for a sandbox can say anything, and where the call is not there the C
	 * library says that its flags are wrong. What is so of the file, the other call says too.
	 */
	if (fstatat(fd, path, &st, flags))
		return false;
	*ret = statx_of(&st);
	return true;
}
