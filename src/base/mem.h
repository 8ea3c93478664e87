/* SPDX-License-Identifier: MIT */
/*
 * Memory that either is there or ends the program: exhaustion aborts with a
 * line on stderr. Sizes that come from outside are bounded before they get
 * here. VEC is a growing array for the places where an arena does not fit.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

#include "base/attrs.h"

void *xmalloc(size_t size);
void *xcalloc(size_t nr, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
/*
 * Zeroed memory in huge pages where the system gives them: for what is touched
 * all over by a hot path, where small pages cost a walk of the page tables for
 * each access. Freed by huge_free() with the same size.
 */
void *huge_alloc(size_t size);
void huge_free(void *p, size_t size);
/* Copies len bytes and adds a NUL. */
char *xmemdup0(const void *p, size_t len);

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t len, cap;                                                                   \
	}

void *vec_grow(void *items, size_t *cap, size_t item_size);

#define VEC_PUSH(v, item)                                                                          \
	do {                                                                                       \
		if ((v)->len == (v)->cap)                                                          \
			(v)->items = vec_grow((v)->items, &(v)->cap, sizeof(*(v)->items));         \
		(v)->items[(v)->len++] = (item);                                                   \
	} while (0)

#define VEC_RELEASE(v)                                                                             \
	do {                                                                                       \
		free((v)->items);                                                                  \
		(v)->items = NULL;                                                                 \
		(v)->len = (v)->cap = 0;                                                           \
	} while (0)

#endif
