/* SPDX-License-Identifier: MIT */
/*
 * Which descriptors share an open file, and so an offset and flags, when a
 * recording begins. The kernel is asked by kcmp(2), whose answers are an order, so a
 * binary search finds the one that is equal. Where kcmp is denied, a flag tells:
 * O_NONBLOCK, which means nothing to a regular file, is turned over for a moment in the
 * descriptor of the recorder from which the program has inherited its own. Owned by
 * the recorder's thread.
 */
#ifndef RECORD_OPEN_IDS_H
#define RECORD_OPEN_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/mem.h"

struct open_id {
	pid_t pid;
	int fd;
	uint64_t dev, ino, offset;
	uint32_t flags;
	bool is_own; /* the recorder has the same open file under the same number */
	uint64_t id;
};

struct open_ids {
	VEC(struct open_id) items; /* by device, inode and kcmp's order */
	uint64_t nr_unknown; /* descriptors that may share one with another: nothing could tell */
};

void open_ids_release(struct open_ids *ids);
/*
 * The number of the open file of a descriptor, from 1: the same for all that share it.
 * pid, fd, flags, offset and is_own of `of` are given. 0: not known.
 */
uint64_t open_ids_get(struct open_ids *ids, struct open_id of, const struct stat *st);

#endif
