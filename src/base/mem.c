/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static NORETURN void out_of_memory(size_t size)
{
	fprintf(stderr, "reprise: out of memory (%zu bytes)\n", size);
	abort();
}

void *xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		out_of_memory(size);
	return p;
}

void *xcalloc(size_t nr, size_t size)
{
	void *p = calloc(nr ? nr : 1, size ? size : 1);

	if (!p)
		out_of_memory(size);
	return p;
}

void *xrealloc(void *p, size_t size)
{
	p = realloc(p, size ? size : 1);
	if (!p)
		out_of_memory(size);
	return p;
}

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static size_t huge_round(size_t size)
{
	return (size + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
}

void *huge_alloc(size_t size)
{
	size_t want = huge_round(size), slack = HUGE_PAGE_BYTES;
	uint8_t *p = mmap(NULL, want + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	size_t before;

	if (p == MAP_FAILED)
		out_of_memory(size);
	/* Only an aligned range can be huge: what stands over on both sides goes back. */
	before = huge_round((uintptr_t)p) - (uintptr_t)p;
	if (before)
		(void)munmap(p, before);
	if (slack - before)
		(void)munmap(p + before + want, slack - before);
	(void)madvise(p + before, want, MADV_HUGEPAGE); /* a wish: small pages work too */
	return p + before;
}

void huge_free(void *p, size_t size)
{
	if (p)
		(void)munmap(p, huge_round(size));
}

char *xstrdup(const char *s)
{
	return xmemdup0(s, strlen(s));
}

char *xmemdup0(const void *p, size_t len)
{
	char *copy = xmalloc(len + 1);

	if (len)
		memcpy(copy, p, len);
	copy[len] = 0;
	return copy;
}

void *vec_grow(void *items, size_t *cap, size_t item_size)
{
	size_t want = *cap ? *cap * 2 : 8;

	if (want > SIZE_MAX / item_size)
		out_of_memory(SIZE_MAX);
	*cap = want;
	return xrealloc(items, want * item_size);
}

void attrs_free_ptr(void *pp)
{
	free(*(void **)pp);
}

void attrs_close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* only ever a descriptor that was read, or is given up */
}
