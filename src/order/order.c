/* SPDX-License-Identifier: MIT */
#include "order/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "order/vectors.h"

#define ORDER(name) extern const struct order_policy order_##name;
#include "order/orders.def"
#undef ORDER

const struct order_policy *const order_policies[] = {
#define ORDER(name) &order_##name,
#include "order/orders.def"
#undef ORDER
	NULL,
};

#define NR_SORTED_PLAINLY 16
#define NR_LATEST 4

/* The candidate for an edge to a lane. */
struct best {
	uint64_t stamp; /* valid for this event */
	size_t at; /* in kept */
};

struct order {
	const struct order_policy *policy;
	void *state;
	struct edges asked, kept;
	struct vectors vectors;
	struct best *best;
	size_t best_cap;
	uint64_t stamp;
	struct order_totals totals;
};

const struct order_policy *order_find(const char *name)
{
	const struct order_policy *const *p;

	for (p = order_policies; *p; p++) {
		if (!strcmp((*p)->name, name))
			return *p;
	}
	return NULL;
}

struct order *order_new(const struct order_policy *policy, const struct order_options *options)
{
	struct order *o = xcalloc(1, sizeof(*o));

	o->policy = policy;
	if (policy->open)
		o->state = policy->open(options);
	return o;
}

void order_free(struct order *o)
{
	if (!o)
		return;
	if (o->policy->close)
		o->policy->close(o->state);
	VEC_RELEASE(&o->asked.list);
	VEC_RELEASE(&o->kept.list);
	vectors_release(&o->vectors);
	free(o->best);
	free(o);
}

/* Done edges: what is asked of one lane comes to the last of it. Started edges are put aside by the caller. */
static void note_candidate(struct order *o, const struct edge *e)
{
	struct best *b = &o->best[e->from.lane];

	if (b->stamp != o->stamp) {
		*b = (struct best){ .stamp = o->stamp, .at = o->kept.list.len };
		VEC_PUSH(&o->kept.list, *e);
	} else if (e->from.nr > o->kept.list.items[b->at].from.nr) {
		o->kept.list.items[b->at] = *e;
	}
}

static int later_first(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->started != y->started)
		return x->started ? 1 : -1;
	if (x->from.exit_ns != y->from.exit_ns)
		return x->from.exit_ns > y->from.exit_ns ? -1 : 1;
	return x->from.lane < y->from.lane ? -1 : x->from.lane > y->from.lane;
}

static void sort(struct edge *items, size_t nr)
{
	size_t i, j;

	if (nr > NR_SORTED_PLAINLY) {
		qsort(items, nr, sizeof(*items), later_first);
		return;
	}
	for (i = 1; i < nr; i++) {
		struct edge e = items[i];

		for (j = i; j > 0 && later_first(&e, &items[j - 1]) < 0; j--)
			items[j] = items[j - 1];
		items[j] = e;
	}
}

/* Of started edges to one lane likewise the last says it all; there are few. */
static void note_started(struct order *o, size_t first, const struct edge *e)
{
	size_t i;

	for (i = first; i < o->kept.list.len; i++) {
		struct edge *kept = &o->kept.list.items[i];

		if (kept->from.lane != e->from.lane)
			continue;
		if (e->from.nr > kept->from.nr)
			*kept = *e;
		return;
	}
	VEC_PUSH(&o->kept.list, *e);
}

static void gather(struct order *o, uint32_t lane)
{
	size_t i, nr_done;

	o->stamp++;
	for (i = 0; i < o->asked.list.len; i++) {
		const struct edge *e = &o->asked.list.items[i];

		/* An edge to what is yet to come could wait for ever. */
		assert(e->from.lane < o->vectors.lanes.len &&
		       e->from.nr < o->vectors.lanes.items[e->from.lane].nr_seen);
		if (!vector_covers(&o->vectors, lane, e->from.lane, e->from.nr + 1) && !e->started)
			note_candidate(o, e);
	}
	/* Behind the others, and only where none of those says more. */
	nr_done = o->kept.list.len;
	for (i = 0; i < o->asked.list.len; i++) {
		const struct edge *e = &o->asked.list.items[i];

		if (e->started && e->from.lane != lane)
			note_started(o, nr_done, e);
	}
}

/* Moves candidate i to its place among the kept, unless the vector covers it by now. */
static size_t keep(struct order *o, const struct action_ref *self, size_t nr_kept, size_t i)
{
	struct edge *items = o->kept.list.items, e = items[i];

	if (vector_covers(&o->vectors, self->lane, e.from.lane, e.from.nr + 1))
		return nr_kept;
	/* What has started has behind it all that came before it in its lane. */
	vector_learn(&o->vectors, self->lane, self->nr, e.from.lane, e.from.nr + !e.started,
		     e.from.nr);
	o->totals.by_rule[e.rule]++;
	items[nr_kept] = e;
	return nr_kept + 1;
}

/*
 * The last few tell most: they are picked out before the many that remain are
 * put in order.
 */
static size_t keep_latest(struct order *o, const struct action_ref *self)
{
	struct edge *items = o->kept.list.items;
	size_t nr_kept, latest, left, i;

	for (nr_kept = 0; nr_kept < NR_LATEST && nr_kept < o->kept.list.len;) {
		struct edge first;

		latest = nr_kept;
		for (i = nr_kept + 1; i < o->kept.list.len; i++) {
			if (later_first(&items[i], &items[latest]) < 0)
				latest = i;
		}
		first = items[nr_kept];
		items[nr_kept] = items[latest];
		items[latest] = first;
		nr_kept = keep(o, self, nr_kept, nr_kept);
		for (left = i = nr_kept; i < o->kept.list.len; i++) {
			if (!vector_covers(&o->vectors, self->lane, items[i].from.lane,
					   items[i].from.nr + 1))
				items[left++] = items[i];
		}
		o->kept.list.len = left;
	}
	return nr_kept;
}

static void reduce(struct order *o, const struct action_ref *self)
{
	size_t nr_kept = 0, i;

	vectors_begin(&o->vectors);
	if (o->kept.list.len > NR_SORTED_PLAINLY)
		nr_kept = keep_latest(o, self);
	/* Only a later action can know of an earlier one. */
	sort(o->kept.list.items + nr_kept, o->kept.list.len - nr_kept);
	for (i = nr_kept; i < o->kept.list.len; i++)
		nr_kept = keep(o, self, nr_kept, i);
	o->kept.list.len = nr_kept;
	o->totals.nr_edges += nr_kept;
}

const struct edges *order_event(struct order *o, const struct order_input *in)
{
	struct vector *lane = vectors_lane(&o->vectors, in->self.lane);

	o->asked.list.len = o->kept.list.len = 0;
	if (o->policy->event)
		o->policy->event(o->state, in, &o->asked);
	if (!in->action) {
		assert(!o->asked.list.len);
		return &o->kept;
	}
	assert(in->self.nr >= lane->nr_seen);
	if (o->vectors.lanes.cap > o->best_cap) {
		o->best = xrealloc(o->best, o->vectors.lanes.cap * sizeof(*o->best));
		memset(o->best + o->best_cap, 0,
		       (o->vectors.lanes.cap - o->best_cap) * sizeof(*o->best));
		o->best_cap = o->vectors.lanes.cap;
	}
	o->totals.nr_asked += o->asked.list.len;
	if (o->asked.list.len) {
		gather(o, in->self.lane);
		reduce(o, &in->self);
	}
	lane->nr_seen = in->self.nr + 1;
	return &o->kept;
}

void order_ahead(struct order *o, const struct event *ev)
{
	if (o->policy->ahead)
		o->policy->ahead(o->state, ev);
}

void order_forget(struct order *o, struct res *res, struct res *heir)
{
	if (o->policy->forget)
		o->policy->forget(o->state, res, heir);
}

void order_thread_end(struct order *o, uint32_t tid)
{
	if (o->policy->thread_end)
		o->policy->thread_end(o->state, tid);
}

bool order_implied(const struct order *o, uint32_t lane, const struct action_ref *ref)
{
	return vector_covers(&o->vectors, lane, ref->lane, ref->nr + 1);
}

struct order_totals order_totals(const struct order *o)
{
	struct order_totals t = o->totals;

	if (o->policy->totals)
		o->policy->totals(o->state, &t);
	return t;
}
