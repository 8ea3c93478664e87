/* SPDX-License-Identifier: MIT */
/*
 * A bump allocator, freed or emptied whole. The common case (everything fits
 * the chunk) costs an addition and a compare; chunks grow from 4 to 64 KiB, and
 * arena_reset() keeps the last, so a loop over events allocates nothing in the end.
 * Owned by one thread.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/attrs.h"

struct arena_chunk;

struct arena {
	uint8_t *pos, *end;
	struct arena_chunk *first, *current;
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);
/* Keeps the largest chunk of at most 64 KiB; whatever there is beside it is given back. */
void arena_reset(struct arena *a);
void *arena_alloc_slow(struct arena *a, size_t size);

/* Aligned to 8, not zeroed. */
static inline void *arena_alloc(struct arena *a, size_t size)
{
	uint8_t *p = a->pos;

	size = (size + 7) & ~(size_t)7;
	if (UNLIKELY(!p || size > (size_t)(a->end - p)))
		return arena_alloc_slow(a, size);
	a->pos = p + size;
	return p;
}

/* Copies len bytes and adds a NUL. */
char *arena_memdup0(struct arena *a, const void *p, size_t len);

#endif
