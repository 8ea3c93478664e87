/* SPDX-License-Identifier: MIT */
/*
 * A heap in a VEC: items[0] is before all others. before(a, b) is a function, or a
 * macro, of pointers to two items; which of two comes first that are neither is not said.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "base/mem.h"

#define HEAP_PUSH(v, item, before)                                                                 \
	do {                                                                                       \
		__typeof__(*(v)->items) heap_item = (item);                                        \
		size_t heap_at = (v)->len;                                                         \
                                                                                                   \
		VEC_PUSH(v, heap_item);                                                            \
		while (heap_at && before(&heap_item, &(v)->items[(heap_at - 1) / 2])) {            \
			(v)->items[heap_at] = (v)->items[(heap_at - 1) / 2];                       \
			heap_at = (heap_at - 1) / 2;                                               \
		}                                                                                  \
		(v)->items[heap_at] = heap_item;                                                   \
	} while (0)

/* Takes items[0] away; there must be one. */
#define HEAP_POP(v, before)                                                                        \
	do {                                                                                       \
		__typeof__(*(v)->items) *heap_items = (v)->items,                                  \
					heap_last = heap_items[--(v)->len];                        \
		size_t heap_at = 0, heap_child;                                                    \
                                                                                                   \
		while ((heap_child = 2 * heap_at + 1) < (v)->len) {                                \
			if (heap_child + 1 < (v)->len &&                                           \
			    before(&heap_items[heap_child + 1], &heap_items[heap_child]))          \
				heap_child++;                                                      \
			if (!before(&heap_items[heap_child], &heap_last))                          \
				break;                                                             \
			heap_items[heap_at] = heap_items[heap_child];                              \
			heap_at = heap_child;                                                      \
		}                                                                                  \
		if ((v)->len)                                                                      \
			heap_items[heap_at] = heap_last;                                           \
	} while (0)

/* For a heap of numbers, the smallest first. */
#define HEAP_LESS(a, b) (*(a) < *(b))

#endif
