/* SPDX-License-Identifier: MIT */
/*
 * Proof that a plan cannot come to a standstill. All lanes are walked at once:
 * a lane goes on while the edges of its next action are satisfied, else it waits
 * for one that is not, in a heap of the lane that must get there. What may go on
 * never becomes what may not, so the order of walking does not matter; and when
 * nobody can go on, those who are left wait in a circle.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "plan/plan.h"

struct waiter {
	uint64_t nr; /* the action that must be done */
	uint32_t lane;
};

struct walker {
	struct plan_lane *reader; /* NULL: at its end */
	const struct action *next; /* waits for its edges; NULL: not read yet */
	uint64_t done;
	VEC(struct waiter) waiters; /* a heap, the lowest nr first */
	uint32_t waits_for; /* while it waits */
	uint64_t waits_for_nr;
};

struct check {
	struct plan *p;
	struct progress *progress;
	struct walker *lanes;
	uint32_t nr_lanes;
	uint32_t *ready; /* a stack; a lane is in it once at most */
	uint32_t nr_ready;
	uint64_t nr_edges;
	struct err *err;
};

static void push_waiter(struct walker *to, struct waiter w)
{
	size_t i = to->waiters.len;

	VEC_PUSH(&to->waiters, w);
	while (i && to->waiters.items[(i - 1) / 2].nr > w.nr) {
		to->waiters.items[i] = to->waiters.items[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	to->waiters.items[i] = w;
}

static uint32_t pop_waiter(struct walker *from)
{
	struct waiter *heap = from->waiters.items, last = heap[--from->waiters.len];
	size_t i = 0, nr = from->waiters.len;
	uint32_t lane = heap[0].lane;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= nr)
			break;
		if (child + 1 < nr && heap[child + 1].nr < heap[child].nr)
			child++;
		if (heap[child].nr >= last.nr)
			break;
		heap[i] = heap[child];
		i = child;
	}
	if (nr)
		heap[i] = last;
	return lane;
}

/* Whether all edges are satisfied; if not, the lane waits for one that is not. */
static bool may_start(struct check *c, uint32_t lane, const struct action *a)
{
	uint32_t i;

	for (i = 0; i < a->nr_edges; i++) {
		const struct action_edge *e = &a->edges[i];

		/* An action that may start is done some time, so `started` makes no difference. */
		if (c->lanes[e->lane].done > e->nr)
			continue;
		push_waiter(&c->lanes[e->lane], (struct waiter){ .nr = e->nr, .lane = lane });
		c->lanes[lane].waits_for = e->lane;
		c->lanes[lane].waits_for_nr = e->nr;
		return false;
	}
	return true;
}

/* As far as it goes. */
static int walk_lane(struct check *c, uint32_t lane)
{
	struct walker *w = &c->lanes[lane];
	int r;

	while (w->reader) {
		if (!w->next) {
			r = plan_lane_next(w->reader, &w->next, c->err);
			if (r < 0)
				return r;
			if (!r) {
				plan_lane_close(w->reader);
				w->reader = NULL;
				break;
			}
			c->nr_edges += w->next->nr_edges;
			if (!w->done)
				c->nr_edges -= plan_lane_awaits_prologue(c->p, lane);
			progress_add(c->progress, 1);
		}
		if (!may_start(c, lane, w->next))
			break;
		w->next = NULL;
		w->done++;
		while (w->waiters.len && w->waiters.items[0].nr < w->done)
			c->ready[c->nr_ready++] = pop_waiter(w);
	}
	return 0;
}

#define CIRCLE_SHOWN 8

/* Somebody waits for ever: go on to whom it waits for until one comes twice. */
static int tell_circle(struct check *c, uint32_t lane)
{
	struct buf words = { 0 };
	unsigned int shown = 0;
	uint32_t i, first;

	for (i = 0; i < c->nr_lanes; i++)
		lane = c->lanes[lane].waits_for;
	/* In the circle now, once round it: the lowest is told first. */
	first = lane;
	for (i = c->lanes[lane].waits_for; i != lane; i = c->lanes[i].waits_for)
		first = i < first ? i : first;
	lane = first;
	do {
		const struct walker *w = &c->lanes[lane];

		if (shown < CIRCLE_SHOWN)
			buf_printf(
				&words,
				"%s action %llu of lane %u (%s) waits for action %llu of lane %u",
				shown ? "," : "", (unsigned long long)w->done, lane,
				w->next->row->name, (unsigned long long)w->waits_for_nr,
				w->waits_for);
		shown++;
		lane = w->waits_for;
	} while (lane != first);
	if (shown > CIRCLE_SHOWN)
		buf_printf(&words, " and so on, %u lanes in all", shown);
	err_set(c->err, -EBADMSG, "%s: actions wait for each other:%s",
		trace_path(plan_container(c->p)), buf_str(&words));
	buf_release(&words);
	return -EBADMSG;
}

static int walk_all(struct check *c)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < c->nr_lanes && !r; i++) {
		r = plan_lane_open(c->p, i, &c->lanes[i].reader, c->err);
		c->ready[c->nr_ready++] = i;
	}
	while (!r && c->nr_ready)
		r = walk_lane(c, c->ready[--c->nr_ready]);
	for (i = 0; i < c->nr_lanes && !r; i++) {
		if (c->lanes[i].reader)
			r = tell_circle(c, i);
	}
	if (!r && c->nr_edges != plan_totals(c->p)->nr_edges)
		r = err_set(c->err, -EBADMSG, "%s: has %llu edges, should have %llu",
			    trace_path(plan_container(c->p)), (unsigned long long)c->nr_edges,
			    (unsigned long long)plan_totals(c->p)->nr_edges);
	return r;
}

int plan_check(struct plan *p, struct progress *progress, struct err *err)
{
	struct check c = { .p = p, .progress = progress, .err = err };
	uint32_t i;
	int r;

	c.nr_lanes = plan_totals(p)->nr_lanes;
	c.lanes = xcalloc(c.nr_lanes, sizeof(*c.lanes));
	c.ready = xmalloc(c.nr_lanes * sizeof(*c.ready));
	r = walk_all(&c);
	for (i = 0; i < c.nr_lanes; i++) {
		plan_lane_close(c.lanes[i].reader);
		VEC_RELEASE(&c.lanes[i].waiters);
	}
	free(c.lanes);
	free(c.ready);
	return r;
}

/* Data. */

/* References that were followed already: one for each hash, the last one. */
#define SEEN_REFS ((size_t)1 << 16)

struct seen_ref {
	uint64_t mark;
};

struct data_check {
	struct plan *p;
	struct seen_ref *seen;
	struct err *err;
};

static bool was_seen(struct data_check *c, const struct blob_ref *ref, uint64_t len)
{
	const uint64_t parts[4] = { ref->hash.low, ref->hash.high, ref->blob, len };
	uint64_t mark = XXH3_64bits(parts, sizeof(parts)) | 1;
	struct seen_ref *s = &c->seen[mark / 2 % SEEN_REFS];
	bool seen = s->mark == mark;

	s->mark = mark;
	return seen;
}

static int follow_data(struct data_check *c, const struct data *d)
{
	uint64_t i, nr = d->refs ? data_nr_pieces(d) : 0;

	for (i = 0; i < nr; i++) {
		uint64_t left = d->kept_bytes - i * BLOB_MAX_BYTES;
		const uint8_t *bytes;
		size_t len;
		int r;

		if (!d->refs[i].blob || was_seen(c, &d->refs[i], left))
			continue;
		r = trace_load_piece(plan_data_source(c->p), d, i, &bytes, &len, c->err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int follow_values(struct data_check *c, const struct value *v, uint32_t nr)
{
	int r = 0;

	for (; nr && !r; nr--, v++) {
		if (v->type == VALUE_DATA)
			r = follow_data(c, v->data);
		else if (v->type == VALUE_STRUCT)
			r = follow_values(c, v->fields->items, v->count);
		else if (v->type == VALUE_LIST)
			r = follow_values(c, v->items, v->count);
	}
	return r;
}

static int check_lane_data(struct data_check *c, uint32_t lane, struct progress *progress)
{
	const struct action *a;
	struct plan_lane *l;
	int r = plan_lane_open(c->p, lane, &l, c->err);

	if (r < 0)
		return r;
	while ((r = plan_lane_next(l, &a, c->err)) == 1) {
		progress_add(progress, 1);
		r = follow_values(c, a->args, a->row->nr_args);
		if (r < 0)
			break;
	}
	plan_lane_close(l);
	return r;
}

int plan_check_data(struct plan *p, struct progress *progress, struct err *err)
{
	struct data_check c = { .p = p, .err = err };
	uint32_t lane;
	int r = 0;

	c.seen = xcalloc(SEEN_REFS, sizeof(*c.seen));
	for (lane = 0; lane < plan_totals(p)->nr_lanes && !r; lane++)
		r = check_lane_data(&c, lane, progress);
	free(c.seen);
	return r;
}
