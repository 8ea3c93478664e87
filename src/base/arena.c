/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A chunk is four times as large as the one before, so that arenas which hold little are small. */
#define CHUNK_FIRST_BYTES ((size_t)4 << 10)
#define CHUNK_MAX_BYTES ((size_t)64 << 10)

struct arena_chunk {
	struct arena_chunk *next;
	size_t size_bytes;
	uint8_t bytes[];
};

void arena_init(struct arena *a)
{
	*a = (struct arena){ 0 };
}

static void free_chunks(struct arena_chunk *c)
{
	while (c) {
		struct arena_chunk *next = c->next;

		free(c);
		c = next;
	}
}

void arena_release(struct arena *a)
{
	free_chunks(a->first);
	arena_init(a);
}

void arena_reset(struct arena *a)
{
	struct arena_chunk *c = a->first, *next, *kept = NULL;

	/* The largest of the usual size; what one large piece needed is given back. */
	for (; c; c = next) {
		next = c->next;
		if (c->size_bytes > CHUNK_MAX_BYTES) {
			free(c);
			continue;
		}
		free(kept); /* they grow */
		kept = c;
	}
	arena_init(a);
	if (!kept)
		return;
	kept->next = NULL;
	a->first = a->current = kept;
	a->pos = kept->bytes;
	a->end = a->pos + kept->size_bytes;
}

void *arena_alloc_slow(struct arena *a, size_t size)
{
	size_t room = a->current ? a->current->size_bytes : CHUNK_FIRST_BYTES / 4;
	struct arena_chunk *c;

	room = room < CHUNK_MAX_BYTES / 4 ? room * 4 : CHUNK_MAX_BYTES;
	if (size > room)
		room = size;
	c = xmalloc(sizeof(*c) + room);
	c->next = NULL;
	c->size_bytes = room;
	if (a->current)
		a->current->next = c;
	else
		a->first = c;
	a->current = c;
	a->pos = c->bytes + size;
	a->end = c->bytes + room;
	return c->bytes;
}

char *arena_memdup0(struct arena *a, const void *p, size_t len)
{
	char *copy = arena_alloc(a, len + 1);

	if (len)
		memcpy(copy, p, len);
	copy[len] = 0;
	return copy;
}
