/* SPDX-License-Identifier: MIT */
#include "order/history.h"

#include <stdlib.h>

void history_release(struct history *h)
{
	size_t i;

	for (i = 0; i < h->nr_lanes; i++)
		VEC_RELEASE(&h->lanes[i].past);
	free(h->lanes);
	*h = (struct history){ 0 };
}

/* How many had ended, or only begun, by then. */
static size_t count_past(const struct lane_history *l, uint64_t by_ns, bool ended)
{
	size_t low = 0, high = l->past.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct past *p = &l->past.items[middle];

		if ((ended ? p->exit_ns : p->enter_ns) <= by_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct user user_of(uint32_t lane, const struct past *p)
{
	struct action_ref ref = { lane, p->nr, p->enter_ns, p->exit_ns };

	return user_from_ref(&ref);
}

static uint64_t last_exit_ns(const struct lane_history *l)
{
	return l->past.len ? l->past.items[l->past.len - 1].exit_ns : 0;
}

void history_ask_ended(struct history *h, const struct order_input *in, const struct sink *sink,
		       enum rule rule)
{
	uint32_t self = in->self.lane, i;
	uint64_t known_ns = 0;
	bool has_previous = self < h->nr_lanes && h->lanes[self].past.len;

	/* What had ended when this lane's previous action began, that one has waited for. */
	if (has_previous)
		known_ns = h->lanes[self].past.items[h->lanes[self].past.len - 1].enter_ns;
	for (i = 0; i < h->nr_lanes; i++) {
		const struct lane_history *l = &h->lanes[i];
		struct user u;
		size_t nr;

		if (i == self || !l->past.len || (has_previous && last_exit_ns(l) <= known_ns))
			continue;
		nr = last_exit_ns(l) <= in->ev->enter_ns ? l->past.len
							 : count_past(l, in->ev->enter_ns, true);
		if (!nr)
			continue;
		u = user_of(i, &l->past.items[nr - 1]);
		sink_ask(sink, &u, rule);
	}
}

bool history_last_begun(struct history *h, const struct order_input *in, struct action_ref *ret)
{
	bool found = false;
	uint32_t i;

	for (i = 0; i < h->nr_lanes; i++) {
		const struct lane_history *l = &h->lanes[i];
		const struct past *p;
		size_t nr;

		if (i == in->self.lane || last_exit_ns(l) <= in->ev->enter_ns)
			continue;
		nr = count_past(l, in->ev->enter_ns, false);
		if (!nr)
			continue;
		p = &l->past.items[nr - 1];
		if (p->exit_ns <= in->ev->enter_ns || (found && p->enter_ns <= ret->enter_ns))
			continue;
		*ret = (struct action_ref){ i, p->nr, p->enter_ns, p->exit_ns };
		found = true;
	}
	return found;
}

static void thin_out(struct lane_history *l)
{
	size_t half = l->past.len / 2, kept = 0, i;

	for (i = 0; i < l->past.len; i++) {
		if (i >= half || i % 2 == 0)
			l->past.items[kept++] = l->past.items[i];
	}
	l->past.len = kept;
}

void history_add(struct history *h, const struct order_input *in)
{
	struct past p = { in->self.nr, in->ev->enter_ns, in->ev->exit_ns };
	struct lane_history *l;

	if (in->self.lane >= h->nr_lanes) {
		size_t nr = in->self.lane + (size_t)1;

		h->lanes = xrealloc(h->lanes, nr * sizeof(*h->lanes));
		while (h->nr_lanes < nr)
			h->lanes[h->nr_lanes++] = (struct lane_history){ 0 };
	}
	l = &h->lanes[in->self.lane];
	/* A clock that jumped must not upset the searches. */
	if (l->past.len) {
		const struct past *last = &l->past.items[l->past.len - 1];

		if (p.enter_ns < last->enter_ns)
			p.enter_ns = last->enter_ns;
		if (p.exit_ns < last->exit_ns)
			p.exit_ns = last->exit_ns;
	}
	if (l->past.len == HISTORY_MAX)
		thin_out(l);
	VEC_PUSH(&l->past, p);
}
