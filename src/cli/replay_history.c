/* SPDX-License-Identifier: MIT */
#include "cli/replay_history.h"

#include <stdlib.h>

#include "base/banned.h"
#include "base/map.h"
#include "base/mem.h"
#include "cli/event_line.h"
#include "plan/plan.h"

struct place {
	uint32_t lane, zero; /* of the run; no padding: it is a key */
	uint64_t nr;
};

struct entry {
	struct history_action action;
	struct place place;
	unsigned int step;
	char *line;
};

struct history {
	struct map entries; /* by place */
};

static struct place place_of(uint32_t lane, uint64_t nr)
{
	return (struct place){ .lane = lane, .nr = nr };
}

static void want(struct history *h, uint32_t lane, uint64_t nr, unsigned int step)
{
	struct place place = place_of(lane, nr);
	void **slot = map_slot(&h->entries, &place, sizeof(place));
	struct entry *e;

	if (*slot)
		return;
	e = *slot = xcalloc(1, sizeof(*e));
	e->place = place;
	e->step = step;
}

/* One plan, while it is read. */
struct reading {
	struct history *h;
	struct plan *plan;
	uint32_t lane_base;
	unsigned int step;
};

static char *find_line(struct plan *p, const struct action *a)
{
	struct trace *t = plan_data_source(p);
	struct trace_query q = { .pids = &a->pid,
				 .tids = &a->tid,
				 .nr_pids = 1,
				 .nr_tids = 1,
				 .from_ns = a->enter_ns,
				 .to_ns = a->exit_ns + 1 };
	struct trace_iter *it;
	struct event *ev;
	struct err err;
	struct buf b = { 0 };
	char *line = NULL;

	if (t == plan_container(p) || !a->seq || trace_iter_open(t, &q, &it, &err) < 0)
		return NULL;
	while (!line && trace_iter_next(it, &ev, &err) > 0) {
		if (ev->seq != a->seq)
			continue;
		event_line_put(t, ev, &b);
		line = xstrdup(buf_str(&b));
	}
	trace_iter_close(it);
	buf_release(&b);
	return line;
}

static void take_action(struct reading *r, struct entry *e, const struct action *a)
{
	uint32_t i;

	e->action.found = true;
	e->action.line = e->line = find_line(r->plan, a);
	e->action.nr_edges = a->nr_edges;
	for (i = 0; i < a->nr_edges && i < HISTORY_EDGES; i++)
		e->action.edges[i] = (struct run_edge){ .lane = r->lane_base + a->edges[i].lane,
							.nr = a->edges[i].nr,
							.rule = a->edges[i].rule,
							.started = a->edges[i].started };
}

static bool is_wanted(const struct reading *r, const struct entry *e, uint32_t lane)
{
	return e->step == r->step && !e->action.found && e->place.lane == r->lane_base + lane;
}

static uint64_t last_wanted(const struct reading *r, uint32_t lane, bool *ret_any)
{
	uint64_t last = 0;

	*ret_any = false;
	MAP_EACH (&r->h->entries, m) {
		const struct entry *e = m->value;

		if (!is_wanted(r, e, lane))
			continue;
		*ret_any = true;
		last = e->place.nr > last ? e->place.nr : last;
	}
	return last;
}

static void read_lane(struct reading *r, uint32_t lane)
{
	struct plan_lane *reader;
	const struct action *a;
	struct err err;
	bool any;
	uint64_t nr, last = last_wanted(r, lane, &any);

	if (!any || plan_lane_open(r->plan, lane, &reader, &err) < 0)
		return;
	for (nr = 0; nr <= last && plan_lane_next(reader, &a, &err) > 0; nr++) {
		struct place place = place_of(r->lane_base + lane, nr);
		struct entry *e = map_get(&r->h->entries, &place, sizeof(place));

		if (e && is_wanted(r, e, lane))
			take_action(r, e, a);
	}
	plan_lane_close(reader);
}

static void want_edges(struct history *h, unsigned int step)
{
	/* The map grows at its end while it is gone through: by index. */
	size_t i, nr = h->entries.nr_entries;

	for (i = 0; i < nr; i++) {
		const struct entry *e = h->entries.entries[i].value;
		struct history_action a;
		uint32_t k;

		if (!e || e->step != step)
			continue;
		a = e->action;
		for (k = 0; k < a.nr_edges && k < HISTORY_EDGES; k++)
			want(h, a.edges[k].lane, a.edges[k].nr, step + 1);
	}
}

static void read_plans(struct history *h, const char *const *plans, unsigned int nr_plans,
		       unsigned int step)
{
	struct reading r = { .h = h, .step = step };
	struct err err;
	unsigned int i;
	uint32_t lane;

	for (i = 0; i < nr_plans && plan_open(plans[i], &r.plan, &err) >= 0; i++) {
		for (lane = 0; lane < plan_totals(r.plan)->nr_lanes; lane++)
			read_lane(&r, lane);
		r.lane_base += plan_totals(r.plan)->nr_lanes;
		plan_close(r.plan);
	}
}

struct history *history_new(const char *const *plans, unsigned int nr_plans,
			    const struct run_result *res, uint64_t top)
{
	uint64_t i, nr = atomic_load(&res->nr_mismatches);
	struct history *h = xcalloc(1, sizeof(*h));
	unsigned int step;

	for (i = 0; i < nr && i < top && i < RUN_MISMATCHES_KEPT; i++) {
		if (atomic_load(&res->mismatches[i].whole))
			want(h, res->mismatches[i].lane, res->mismatches[i].nr, 0);
	}
	for (i = 0; i < res->nr_waits && i < RUN_WAITS_KEPT; i++) {
		want(h, res->waits[i].lane, res->waits[i].nr, 0);
		if (res->waits[i].phase == RUN_LANE_EDGE)
			want(h, res->waits[i].edge_lane, res->waits[i].edge_nr, 0);
	}
	for (step = 0; step <= HISTORY_STEPS && h->entries.nr_live; step++) {
		read_plans(h, plans, nr_plans, step);
		if (step < HISTORY_STEPS)
			want_edges(h, step);
	}
	return h;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	MAP_EACH (&h->entries, m) {
		struct entry *e = m->value;

		free(e->line);
		free(e);
	}
	map_release(&h->entries);
	free(h);
}

const struct history_action *history_find(const struct history *h, uint32_t lane, uint64_t nr)
{
	struct place place = place_of(lane, nr);
	const struct entry *e = h ? map_get(&h->entries, &place, sizeof(place)) : NULL;

	return e && e->action.found ? &e->action : NULL;
}
