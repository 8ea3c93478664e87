/* SPDX-License-Identifier: MIT */
/*
 * Memory for what grows without bound, stays where it is, and is rarely used again. The first
 * pieces are ordinary memory. Further ones lie in an unlinked file, and the kernel may
 * write them out; this process lets go of their pages again and again, so that
 * what is resident stays bounded however much there is. Owned by one thread.
 */
#ifndef BASE_SPILL_H
#define BASE_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct spill_piece {
	uint8_t *at;
	size_t len_bytes;
	uint64_t offset; /* in the file */
	bool is_in_file; /* else it is ordinary memory */
};

struct spill {
	char *dir; /* of the file; NULL: there can be none */
	int fd; /* -1: there is none yet */
	uint64_t file_bytes;
	uint64_t memory_bytes, memory_max_bytes; /* outside of the file */
	VEC(struct spill_piece) pieces;
	unsigned int nr_asked; /* how often it was asked to let go of pages */
	long nr_faults; /* when pages were let go last */
};

/* Without a file this many times memory_max_bytes is the most there is. */
#define SPILL_WITHOUT_FILE 8

/* dir: where the file is made when it is needed; NULL: nowhere. */
void spill_init(struct spill *s, const char *dir, uint64_t memory_max_bytes);
/* And all that was taken. */
void spill_release(struct spill *s);
/*
 * Zeroed; NULL: there is no room for more. Room on the disk is reserved, so that
 * what was taken can be used. is_hot: used all over, and kept out of the file while
 * there is memory for it; others get a quarter of that.
 */
void *spill_take(struct spill *s, size_t len_bytes, bool is_hot);
/* What was taken. NULL is fine. */
void spill_give_back(struct spill *s, void *p);
/* To be called again and again while it is used: lets go of pages if there may be many. */
void spill_relax(struct spill *s);

#endif
