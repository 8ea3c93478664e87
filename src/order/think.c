/* SPDX-License-Identifier: MIT */
#include "order/think.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"

struct held {
	struct action_ref ref;
	uint64_t free_ns; /* completion and threshold: from then on others may depend on it */
	uint64_t index; /* in the order of issue */
};

struct think_graph {
	uint64_t threshold_ns;
	uint64_t now_ns;
	uint64_t nr_added;
	/* Not yet to be depended on: a heap by free_ns, then index. */
	VEC(struct held) flying;
	/* To be depended on and not implied, by free_ns: a queue whose first is at `from`. */
	VEC(struct held) landed;
	size_t from;
	struct held latest; /* issued last of all that landed */
	bool has_latest;
	bool latest_apart; /* it has left the queue */
	struct think_parents parents, freed;
	size_t held_max;
};

struct think_graph *think_graph_new(uint64_t threshold_ns)
{
	struct think_graph *g = xcalloc(1, sizeof(*g));

	g->threshold_ns = threshold_ns;
	return g;
}

void think_graph_free(struct think_graph *g)
{
	if (!g)
		return;
	VEC_RELEASE(&g->flying);
	VEC_RELEASE(&g->landed);
	VEC_RELEASE(&g->parents.list);
	VEC_RELEASE(&g->freed.list);
	free(g);
}

/* The heap. */

static bool is_before(const struct held *a, const struct held *b)
{
	return a->free_ns != b->free_ns ? a->free_ns < b->free_ns : a->index < b->index;
}

static struct held take_first(struct think_graph *g)
{
	struct held first = g->flying.items[0];

	HEAP_POP(&g->flying, is_before);
	return first;
}

/* The queue. */

static void land(struct think_graph *g, const struct held *h)
{
	/* Moved when at least as many have left it, else it grows: each is moved once, on the average. */
	if (g->from > g->landed.len / 2 && g->landed.len == g->landed.cap) {
		g->landed.len -= g->from;
		memmove(g->landed.items, g->landed.items + g->from,
			g->landed.len * sizeof(*g->landed.items));
		g->from = 0;
	}
	VEC_PUSH(&g->landed, *h);
	VEC_PUSH(&g->freed.list, h->ref);
	if (!g->has_latest || h->index > g->latest.index) {
		g->latest = *h;
		g->has_latest = true;
		g->latest_apart = false;
	}
}

/* Those that the latest implies are implied for ever. */
static void drop_implied(struct think_graph *g)
{
	while (g->from < g->landed.len) {
		const struct held *h = &g->landed.items[g->from];

		if (h->free_ns > g->latest.ref.enter_ns)
			return;
		if (h->index == g->latest.index)
			g->latest_apart = true;
		g->from++;
	}
}

const struct think_parents *think_graph_issue(struct think_graph *g, uint64_t issue_ns)
{
	size_t i;

	if (issue_ns > g->now_ns)
		g->now_ns = issue_ns;
	g->freed.list.len = 0;
	while (g->flying.len && g->flying.items[0].free_ns <= g->now_ns) {
		struct held h = take_first(g);

		land(g, &h);
	}
	g->parents.list.len = 0;
	if (!g->has_latest)
		return &g->parents;
	drop_implied(g);
	if (g->latest_apart)
		VEC_PUSH(&g->parents.list, g->latest.ref);
	for (i = g->from; i < g->landed.len; i++)
		VEC_PUSH(&g->parents.list, g->landed.items[i].ref);
	return &g->parents;
}

void think_graph_add(struct think_graph *g, const struct action_ref *request)
{
	struct held h = { .ref = *request, .index = g->nr_added++ };
	size_t held;

	/* As the graph saw it, so that "earlier" and "issued before" mean the same. */
	h.ref.enter_ns = g->now_ns;
	if (h.ref.exit_ns < h.ref.enter_ns)
		h.ref.exit_ns = h.ref.enter_ns;
	h.free_ns = clock_add_ns(h.ref.exit_ns, g->threshold_ns);
	HEAP_PUSH(&g->flying, h, is_before);
	held = g->flying.len + g->landed.len - g->from;
	if (held > g->held_max)
		g->held_max = held;
}

const struct think_parents *think_graph_freed(const struct think_graph *g)
{
	return &g->freed;
}

const struct action_ref *think_graph_first_in_flight(const struct think_graph *g)
{
	return g->flying.len ? &g->flying.items[0].ref : NULL;
}

size_t think_graph_held(const struct think_graph *g, size_t *ret_max)
{
	*ret_max = g->held_max;
	return g->flying.len + g->landed.len - g->from;
}

const struct order_policy order_think = {
	.name = "think",
	.summary = "block requests: by overlap and think time",
	.block = true,
};
