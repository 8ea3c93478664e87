/* SPDX-License-Identifier: MIT */
/*
 * Memory of 32-bit programs (i386): what is laid out as 64-bit programs have it,
 * what is laid out in another way that is known here, and what is not read.
 *
 * Most newer interfaces were made to be the same for both. In the older ones
 * words and pointers have four bytes, and what has eight stands at any multiple of
 * four. Calls that came with 64-bit times have the numbers from NR_TIME64 on.
 */
#include <assert.h>
#include <stddef.h>

#include "record/capture_inside.h"

#define NR_STAT64 195u /* and larger: struct stat64, before it two older ones */
#define NR_TIME64 403u

struct n_timespec {
	int32_t tv_sec, tv_nsec;
};

struct n_timeval {
	int32_t tv_sec, tv_usec;
};

struct n_itimerspec {
	struct n_timespec it_interval, it_value;
};

struct n_itimerval {
	struct n_timeval it_interval, it_value;
};

struct n_utimbuf {
	int32_t actime, modtime;
};

struct n_iovec {
	uint32_t iov_base, iov_len;
};

struct n_stat {
	uint64_t dev;
	uint32_t pad0, ino_low, mode, nlink, uid, gid;
	uint64_t rdev;
	uint32_t pad1;
	int64_t size;
	uint32_t blksize;
	int64_t blocks;
	struct n_timespec atime, mtime, ctime;
	uint64_t ino;
} __attribute__((packed, aligned(4)));
static_assert(sizeof(struct n_stat) == 96, "as the kernel has it");

#define PLACE(type, member)                                                                        \
	{                                                                                          \
		offsetof(type, member), sizeof(((type *)NULL)->member)                             \
	}
#define LAYOUT(type, ...)                                                                          \
	{                                                                                          \
		.size_bytes = sizeof(type), .places = (const struct field_place[])                 \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/* Fields in the order of structs.def. */
static const struct capture_layout narrow[STRUCT_MAX] = {
	[STRUCT_timespec] = LAYOUT(struct n_timespec, PLACE(struct n_timespec, tv_sec),
				   PLACE(struct n_timespec, tv_nsec)),
	[STRUCT_timeval] = LAYOUT(struct n_timeval, PLACE(struct n_timeval, tv_sec),
				  PLACE(struct n_timeval, tv_usec)),
	[STRUCT_itimerspec] = LAYOUT(struct n_itimerspec, PLACE(struct n_itimerspec, it_interval),
				     PLACE(struct n_itimerspec, it_value)),
	[STRUCT_itimerval] = LAYOUT(struct n_itimerval, PLACE(struct n_itimerval, it_interval),
				    PLACE(struct n_itimerval, it_value)),
	[STRUCT_utimbuf] = LAYOUT(struct n_utimbuf, PLACE(struct n_utimbuf, actime),
				  PLACE(struct n_utimbuf, modtime)),
	[STRUCT_iovec] = LAYOUT(struct n_iovec, PLACE(struct n_iovec, iov_base),
				PLACE(struct n_iovec, iov_len)),
	[STRUCT_remote_iovec] = LAYOUT(struct n_iovec, PLACE(struct n_iovec, iov_base),
				       PLACE(struct n_iovec, iov_len)),
	[STRUCT_stat] = LAYOUT(
		struct n_stat, PLACE(struct n_stat, dev), PLACE(struct n_stat, ino),
		PLACE(struct n_stat, mode), PLACE(struct n_stat, nlink), PLACE(struct n_stat, uid),
		PLACE(struct n_stat, gid), PLACE(struct n_stat, rdev), PLACE(struct n_stat, size),
		PLACE(struct n_stat, blksize), PLACE(struct n_stat, blocks),
		PLACE(struct n_stat, atime.tv_sec), PLACE(struct n_stat, atime.tv_nsec),
		PLACE(struct n_stat, mtime.tv_sec), PLACE(struct n_stat, mtime.tv_nsec),
		PLACE(struct n_stat, ctime.tv_sec), PLACE(struct n_stat, ctime.tv_nsec)),
};

/* Numbers of fixed width only, and those of eight bytes at multiples of eight (or packed). */
static bool is_same_for_both(unsigned int id)
{
	switch (id) {
	case STRUCT_timezone:
	case STRUCT_statx_timestamp:
	case STRUCT_statx:
	case STRUCT_fsid:
	case STRUCT_file_attr:
	case STRUCT_cachestat_range:
	case STRUCT_cachestat:
	case STRUCT_dirent64: /* but for what is behind its last field */
	case STRUCT_file_handle:
	case STRUCT_open_how:
	case STRUCT_f_owner_ex:
	case STRUCT_pollfd:
	case STRUCT_epoll_data:
	case STRUCT_epoll_event:
	case STRUCT_clone_args:
	case STRUCT_sched_attr:
	case STRUCT_cap_header:
	case STRUCT_cap_data:
	case STRUCT_sembuf:
	case STRUCT_utsname:
	case STRUCT_mount_attr:
	case STRUCT_file_clone_range:
	case STRUCT_file_dedupe_range_info:
	case STRUCT_file_dedupe_range:
	case STRUCT_fsxattr:
	case STRUCT_fiemap_extent:
	case STRUCT_fiemap:
	case STRUCT_fstrim_range:
	case STRUCT_termios:
	case STRUCT_winsize:
		return true;
	}
	return false;
}

struct capture_layout capture_layout(const struct capture *c, unsigned int id)
{
	const struct struct_desc *desc = &struct_descs[id];
	const struct capture_layout wide = { desc->size_bytes,
					     desc->places ? desc->places() : NULL };

	if (!c->narrow || is_same_for_both(id))
		return wide;
	if ((id == STRUCT_timespec || id == STRUCT_itimerspec) && c->narrow_nr >= NR_TIME64)
		return wide;
	if (id == STRUCT_stat && c->narrow_nr < NR_STAT64)
		return (struct capture_layout){ 0 };
	return narrow[id];
}

bool capture_can_read(const struct capture *c, const struct arg *a)
{
	if (!c->narrow)
		return true;
	switch ((enum kind)a->kind) {
	case KIND_PATH:
	case KIND_STR:
	case KIND_BUF:
	case KIND_STRV:
	case KIND_SOCKADDR:
		return true;
	case KIND_FDSET:
		return true; /* a multiple of four bytes, but bit by bit the same */
	case KIND_PTR:
	case KIND_VEC:
		return capture_elem_width(a) <= 4 || a->elem == KIND_SIGMASK;
	case KIND_STRUCT:
	case KIND_ARRAY:
	case KIND_DIRENTS:
		return capture_layout(c, a->struct_id).size_bytes != 0;
	default:
		return false;
	}
}
