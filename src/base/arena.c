/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CHUNK_BYTES ((size_t)64 << 10)

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
	if (!a->first)
		return;
	free_chunks(a->first->next);
	a->first->next = NULL;
	a->current = a->first;
	a->pos = a->first->bytes;
	a->end = a->pos + a->first->size_bytes;
}

void *arena_alloc_slow(struct arena *a, size_t size)
{
	size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
	struct arena_chunk *c = xmalloc(sizeof(*c) + room);

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
