/* SPDX-License-Identifier: MIT */
/*
 * A lane passes from a thread that has ended to one that begins. That orders
 * the second behind the first, so a lane is taken over only when that order
 * holds anyway; at the limit it is taken over at any price.
 */
#include "base/banned.h"
#include "compile/inside.h"

/* Idle lanes that are looked at, the latest first: a search must not grow with the trace. */
#define LANES_SEARCH 64
#define LANES_MAX_DEFAULT 1024

void lanes_init(struct lanes *l)
{
	VEC_PUSH(&l->list, ((struct lane){ .nr_threads = 1, .umask = NO_MASK })); /* the prologue */
}

static uint32_t new_lane(struct lanes *l)
{
	struct lane lane = { .nr_threads = 1, .umask = NO_MASK };

	VEC_PUSH(&l->list, lane);
	return (uint32_t)l->list.len - 1;
}

static uint32_t take_idle(struct lanes *l, size_t at)
{
	uint32_t lane = l->idle.items[at];

	l->idle.items[at] = l->idle.items[--l->idle.len];
	l->list.items[lane].nr_threads++;
	return lane;
}

static bool is_over_for(const struct lane *lane, const struct order *order, uint32_t parent)
{
	return !lane->has_last || (parent != NO_LANE && order_implied(order, parent, &lane->last));
}

uint32_t lanes_begin(struct lanes *l, const struct order *order, uint32_t parent)
{
	uint32_t max = l->max ? l->max : LANES_MAX_DEFAULT;

	if (l->one && l->list.len > PROLOGUE_LANE + 1) {
		l->list.items[PROLOGUE_LANE + 1].nr_threads++;
		return PROLOGUE_LANE + 1;
	}
	for (size_t i = l->idle.len, n = 0; i-- > 0 && n < LANES_SEARCH; n++) {
		if (is_over_for(&l->list.items[l->idle.items[i]], order, parent))
			return take_idle(l, i);
	}
	if (l->list.len >= max && l->idle.len)
		return take_idle(l, 0);
	return new_lane(l);
}

void lanes_end(struct lanes *l, uint32_t lane)
{
	if (!--l->list.items[lane].nr_threads && !l->one)
		VEC_PUSH(&l->idle, lane);
}
