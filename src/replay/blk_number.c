/* SPDX-License-Identifier: MIT */
#include "replay/blk_number.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/heap.h"

/* The trace. */

void blk_needs_init(struct blk_needs *n, uint32_t nr_kinds)
{
	*n = (struct blk_needs){ .nr = xcalloc((size_t)nr_kinds + 1, sizeof(*n->nr)) };
}

void blk_needs_release(struct blk_needs *n)
{
	VEC_RELEASE(&n->flying);
	VEC_RELEASE(&n->list);
	free(n->nr);
	n->nr = NULL;
}

static bool ends_before(const struct blk_flying *a, const struct blk_flying *b)
{
	return a->end_ns < b->end_ns;
}

void blk_needs_add(struct blk_needs *n, uint32_t kind, uint64_t end_ns)
{
	HEAP_PUSH(&n->flying, ((struct blk_flying){ end_ns, kind }), ends_before);
}

void blk_needs_up_to(struct blk_needs *n, uint64_t end_ns, size_t max)
{
	n->list.len = 0;
	while (n->flying.len && n->flying.items[0].end_ns <= end_ns) {
		uint32_t kind = n->flying.items[0].kind;

		if (!n->nr[kind]) {
			if (n->list.len == max)
				break;
			VEC_PUSH(&n->list, (struct blk_need){ .kind = kind });
		}
		n->nr[kind]++;
		HEAP_POP(&n->flying, ends_before);
	}
	for (size_t i = 0; i < n->list.len; i++) {
		struct blk_need *need = &n->list.items[i];

		need->nr = n->nr[need->kind];
		n->nr[need->kind] = 0;
	}
}

/* The run. */

void blk_tally_init(struct blk_tally *t, uint32_t nr_kinds)
{
	*t = (struct blk_tally){ .ends = xcalloc((size_t)nr_kinds + 1, sizeof(*t->ends)),
				 .from = xcalloc((size_t)nr_kinds + 1, sizeof(*t->from)),
				 .nr_kinds = nr_kinds };
}

void blk_tally_release(struct blk_tally *t)
{
	for (uint32_t i = 0; i < t->nr_kinds; i++)
		VEC_RELEASE(&t->ends[i]);
	free(t->ends);
	free(t->from);
	*t = (struct blk_tally){ 0 };
}

void blk_tally_add(struct blk_tally *t, uint32_t kind, uint64_t end_ns)
{
	size_t *from = &t->from[kind];

	/* The queue is as long as what runs ahead. It is moved when at least as many have left it, else it grows. */
	if (*from > t->ends[kind].len / 2 && t->ends[kind].len == t->ends[kind].cap) {
		t->ends[kind].len -= *from;
		memmove(t->ends[kind].items, t->ends[kind].items + *from,
			t->ends[kind].len * sizeof(end_ns));
		*from = 0;
	}
	VEC_PUSH(&t->ends[kind], end_ns);
}

bool blk_tally_take(struct blk_tally *t, struct blk_need *need)
{
	size_t *from = &t->from[need->kind];

	for (; need->nr && *from < t->ends[need->kind].len; need->nr--) {
		uint64_t end_ns = t->ends[need->kind].items[(*from)++];

		if (end_ns > t->reached_ns)
			t->reached_ns = end_ns;
	}
	return !need->nr;
}
