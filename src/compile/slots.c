/* SPDX-License-Identifier: MIT */
/*
 * A slot that was given up may be taken again only by an action that cannot
 * start before the one that gave it up is done; else two lanes would use it at
 * the same time. What a lane itself gave up is always free for it; of other
 * lanes the oldest is the most likely.
 */
#include <stdlib.h>

#include "base/banned.h"
#include "compile/inside.h"

#define SLOTS_SEARCH 64

static int32_t take_own(struct slots *s, uint32_t lane)
{
	struct free_list *f;

	if (lane >= s->lanes.len)
		return -1;
	f = &s->lanes.items[lane];
	return f->list.len > f->head ? f->list.items[--f->list.len].slot : -1;
}

static int32_t take_oldest(struct free_list *f, const struct order *order, uint32_t lane)
{
	if (f->head >= f->list.len || !order_implied(order, lane, &f->list.items[f->head].freed))
		return -1;
	return f->list.items[f->head++].slot;
}

int32_t slots_take(struct slots *s, const struct order *order, uint32_t lane)
{
	int32_t slot = take_own(s, lane);

	for (size_t i = 0; slot < 0 && i < s->lanes.len && i < SLOTS_SEARCH; i++)
		slot = take_oldest(&s->lanes.items[(lane + i) % s->lanes.len], order, lane);
	return slot < 0 ? (int32_t)s->nr++ : slot;
}

/* The part before head is used again, so that the list stays as long as the slots that are free. */
static void compact(struct free_list *f)
{
	if (f->head < 64 || f->head * 2 < f->list.len)
		return;
	f->list.len -= f->head;
	memmove(f->list.items, f->list.items + f->head, f->list.len * sizeof(*f->list.items));
	f->head = 0;
}

void slots_give_back(struct slots *s, int32_t slot, const struct action_ref *freed)
{
	struct free_list *f;

	while (freed->lane >= s->lanes.len)
		VEC_PUSH(&s->lanes, (struct free_list){ 0 });
	f = &s->lanes.items[freed->lane];
	compact(f);
	VEC_PUSH(&f->list, ((struct free_slot){ .slot = slot, .freed = *freed }));
}

void slots_release(struct slots *s)
{
	for (size_t i = 0; i < s->lanes.len; i++)
		VEC_RELEASE(&s->lanes.items[i].list);
	VEC_RELEASE(&s->lanes);
}
