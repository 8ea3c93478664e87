/* SPDX-License-Identifier: MIT */
/*
 * From a trace of block requests to a plan: in the order of issue, once.
 *
 * A lane is a chain: a request goes to a lane whose last one was complete (and
 * the threshold past) when it was issued, of these the one that was complete
 * last. That is a parent if any lane has one, and never an order that the graph
 * does not have. So there are as many lanes as requests were in flight at a time.
 */
#include "compile/block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/map.h"
#include "model/blk.h"
#include "order/arrivals.h"
#include "order/think.h"

#define MAX_LANES_DEFAULT 4096

struct chain {
	struct action_ref last;
	uint64_t nr_actions;
	/* While edges are collected: the one to this lane, if `asked_by` is the request. */
	uint64_t asked_by; /* its number + 1 */
	size_t edge;
};

struct block_compiler {
	struct trace *trace;
	const struct compile_options *options;
	struct plan_writer *writer;
	struct compile_observer *observer;
	struct compile_totals *totals;
	struct think_graph *graph;
	struct arrivals arrivals;
	VEC(struct chain) lanes;
	VEC(uint32_t) free; /* lanes; the one on top was free last */
	VEC(uint64_t) ends; /* of the last request to each device, in bytes */
	struct edges edges;
	VEC(struct action_edge) edges_out;
	uint64_t last_ns, max_length;
	uint32_t max_lanes;
};

bool compile_is_block(struct trace *t)
{
	struct buf text = { 0 };
	const char *level = trace_meta(t, "level", &text);
	bool block = level && !strcmp(level, BLK_LEVEL);

	buf_release(&text);
	return block;
}

/* Lanes. */

static void free_lanes(struct block_compiler *c)
{
	const struct think_parents *freed = think_graph_freed(c->graph);

	for (size_t i = 0; i < freed->list.len; i++) {
		const struct action_ref *ref = &freed->list.items[i];

		/* Another may stand behind it, where there are no more lanes. */
		if (c->lanes.items[ref->lane].last.nr == ref->nr)
			VEC_PUSH(&c->free, ref->lane);
	}
}

/* The lane for a request that is issued now. */
static uint32_t choose_lane(struct block_compiler *c)
{
	uint32_t lane;

	if (c->free.len)
		return c->free.items[--c->free.len];
	if (c->lanes.len < c->max_lanes) {
		VEC_PUSH(&c->lanes, (struct chain){ 0 });
		lane = (uint32_t)c->lanes.len - 1;
		if (c->writer)
			(void)plan_writer_add_lane(c->writer); /* numbered as ours are */
		return lane;
	}
	/* More in flight than lanes: behind what will be complete first, though it overlaps. */
	c->totals->block.nr_crowded++;
	return think_graph_first_in_flight(c->graph)->lane;
}

/* One request. */

/*
 * Of a lane the last parent implies the others. There is more than one only where more were in
 * flight than there are lanes. All of them are complete by then, so the think time counts from the
 * last completion.
 */
static void add_edge(struct block_compiler *c, const struct action_ref *parent)
{
	struct chain *chain = &c->lanes.items[parent->lane];
	struct edge e = { .from = *parent, .rule = RULE_think };

	if (chain->asked_by == c->totals->nr_events) {
		struct action_ref *known = &c->edges.list.items[chain->edge].from;

		if (known->exit_ns > e.from.exit_ns)
			e.from.exit_ns = known->exit_ns;
		if (known->nr > e.from.nr)
			e.from.nr = known->nr;
		*known = e.from;
		return;
	}
	chain->asked_by = c->totals->nr_events;
	chain->edge = c->edges.list.len;
	VEC_PUSH(&c->edges.list, e);
}

/* Edges to all parents; returns whether the one before it in its lane is among them. */
static bool collect_edges(struct block_compiler *c, const struct think_parents *parents,
			  uint32_t lane)
{
	const struct chain *chain = &c->lanes.items[lane];
	bool follows = false;
	size_t nr;

	c->edges.list.len = 0;
	for (size_t i = 0; i < parents->list.len; i++) {
		const struct action_ref *parent = &parents->list.items[i];

		/* An earlier one of its own lane is implied by that. */
		if (parent->lane == lane && parent->nr != chain->last.nr)
			continue;
		follows |= parent->lane == lane;
		add_edge(c, parent);
	}
	nr = c->edges.list.len - follows;
	c->totals->order.nr_asked += parents->list.len;
	c->totals->order.nr_edges += nr;
	c->totals->order.by_rule[RULE_think] += nr;
	return follows;
}

static int write_action(struct block_compiler *c, const struct event *ev, uint32_t lane,
			uint64_t think_ns, struct err *err)
{
	struct action a = { .row = ev->row,
			    .pid = ev->pid,
			    .tid = ev->tid,
			    .seq = ev->seq,
			    .origin = ev->origin,
			    .enter_ns = ev->enter_ns,
			    .exit_ns = ev->exit_ns,
			    .compute_before_ns = think_ns,
			    .outcome = ev->outcome };

	c->edges_out.len = 0;
	for (size_t i = 0; i < c->edges.list.len; i++) {
		const struct edge *e = &c->edges.list.items[i];
		struct action_edge out = { .lane = e->from.lane,
					   .nr = e->from.nr,
					   .rule = e->rule,
					   .think_ns = ev->enter_ns > e->from.exit_ns
							       ? ev->enter_ns - e->from.exit_ns
							       : 0 };

		if (e->from.lane != lane)
			VEC_PUSH(&c->edges_out, out);
	}
	a.flags = c->edges_out.len ? ACTION_EDGE_THINK : 0;
	a.flags |= ev->flags & (EVENT_NO_DURATION | EVENT_UNFINISHED) ? ACTION_ANY_OUTCOME : 0;
	a.edges = c->edges_out.items;
	a.nr_edges = (uint32_t)c->edges_out.len;
	memcpy(a.args, ev->args, sizeof(a.args));
	return plan_writer_action(c->writer, lane, &a, err);
}

static void note_totals(struct block_compiler *c, const struct event *ev,
			const struct blk_request *rq)
{
	struct compile_totals *t = c->totals;
	uint64_t end = rq->offset_bytes + rq->length_bytes;

	if (!t->plan.nr_actions)
		t->plan.first_ns = ev->enter_ns;
	t->plan.nr_actions++;
	t->call_ns += ev->exit_ns - ev->enter_ns;
	if (ev->flags & (EVENT_NO_DURATION | EVENT_UNFINISHED | EVENT_NO_TIME)) {
		t->block.nr_without_completion++;
		arrivals_add_unknown(&c->arrivals);
	} else {
		arrivals_add(&c->arrivals, ev->enter_ns, ev->exit_ns);
	}
	if (ev->exit_ns > c->last_ns)
		c->last_ns = ev->exit_ns;
	if (blk_ops[rq->op].moves != BLK_MOVES_NONE && rq->length_bytes > c->max_length)
		c->max_length = rq->length_bytes;
	while (c->ends.len <= rq->device_no)
		VEC_PUSH(&c->ends, 0);
	if (end > c->ends.items[rq->device_no])
		c->ends.items[rq->device_no] = end;
}

static int compile_request(struct block_compiler *c, const struct event *ev,
			   const struct blk_request *rq, struct err *err)
{
	static const struct facts no_facts;
	struct compiled view = { .ev = ev, .facts = &no_facts, .action = true };
	const struct think_parents *parents = think_graph_issue(c->graph, ev->enter_ns);
	struct chain *chain;
	uint64_t think_ns = 0;
	uint32_t lane;
	int r = 0;

	free_lanes(c);
	lane = choose_lane(c);
	chain = &c->lanes.items[lane];
	if (c->options->policy->block) {
		if (collect_edges(c, parents, lane) && ev->enter_ns > chain->last.exit_ns)
			think_ns = ev->enter_ns - chain->last.exit_ns;
	}
	view.self = (struct action_ref){ .lane = lane,
					 .nr = chain->nr_actions,
					 .enter_ns = ev->enter_ns,
					 .exit_ns = ev->exit_ns };
	view.number = c->totals->nr_events;
	view.edges = &c->edges;
	if (c->observer)
		c->observer->event(c->observer, &view);
	if (c->writer)
		r = write_action(c, ev, lane, think_ns, err);
	chain->last = view.self;
	chain->nr_actions++;
	think_graph_add(c->graph, &view.self);
	note_totals(c, ev, rq);
	return r;
}

static bool is_before(const struct event *ev, const struct compile_bound *b)
{
	return (b->is_event ? ev->seq : ev->enter_ns) < b->at;
}

/* Requests need no state to be made ready: what is not in the part is left out. */
static bool is_wanted(const struct block_compiler *c, const struct event *ev)
{
	return !is_before(ev, &c->options->from) &&
	       (!c->options->to.at || is_before(ev, &c->options->to));
}

static int compile_requests(struct block_compiler *c, struct err *err)
{
	struct trace_query q = { .order = TRACE_BY_ENTER, .progress = c->options->progress };
	struct blk_request rq;
	struct trace_iter *it;
	struct event *ev;
	int r = trace_iter_open(c->trace, &q, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_iter_next(it, &ev, err)) > 0) {
		c->totals->nr_events++;
		if (!blk_request_get(ev->row, ev->args, &rq))
			c->totals->nr_unsupported++;
		else if (is_wanted(c, ev))
			r = compile_request(c, ev, &rq, err);
		if (r < 0)
			break;
	}
	trace_iter_close(it);
	return r;
}

/* Records. */

static int copy_section(struct block_compiler *c, enum block_type section, struct err *err)
{
	struct trace_items *it;
	struct item *item;
	int r = trace_items_open(c->trace, section, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_items_next(it, &item, err)) > 0) {
		r = plan_writer_item(c->writer, item, err);
		if (r < 0)
			break;
	}
	trace_items_close(it);
	return r;
}

static int note_order(struct block_compiler *c)
{
	char key[32], value[32];
	int r = plan_writer_meta(c->writer, "order", c->options->policy->name);

	for (size_t i = 0; i < c->ends.len && !r; i++) {
		(void)snprintf(key, sizeof(key), "block.end.%zu", i);
		(void)snprintf(value, sizeof(value), "%llu", (unsigned long long)c->ends.items[i]);
		r = plan_writer_meta(c->writer, key, value);
	}
	(void)snprintf(value, sizeof(value), "%llu", (unsigned long long)c->max_length);
	if (!r)
		r = plan_writer_meta(c->writer, "block.max_length", value);
	return r ? r
		 : plan_writer_meta(c->writer, "block.arrivals",
				    arrivals_names[c->totals->block.arrivals.kind]);
}

static void close_totals(struct block_compiler *c)
{
	struct compile_totals *t = c->totals;
	size_t max;

	(void)think_graph_held(c->graph, &max);
	t->block.nr_held_max = max;
	arrivals_judge(&c->arrivals, &t->block.arrivals);
	t->plan.nr_lanes = (uint32_t)c->lanes.len;
	t->plan.nr_edges = t->order.nr_edges;
	if (t->plan.nr_actions)
		t->plan.elapsed_ns = c->last_ns - t->plan.first_ns;
}

int compile_block(struct trace *t, const struct compile_options *options, struct plan_writer *w,
		  struct compile_observer *observer, struct compile_totals *ret, struct err *err)
{
	struct block_compiler c = { .trace = t,
				    .options = options,
				    .writer = w,
				    .observer = observer,
				    .totals = ret,
				    .max_lanes = options->max_lanes };
	int r = 0;

	*ret = (struct compile_totals){ 0 };
	if (!c.max_lanes || c.max_lanes > PLAN_LANES_MAX)
		c.max_lanes = c.max_lanes ? PLAN_LANES_MAX : MAX_LANES_DEFAULT;
	c.graph = think_graph_new(options->think_ns);
	if (w)
		r = copy_section(&c, BLOCK_META, err);
	if (r >= 0 && w)
		r = copy_section(&c, BLOCK_LEDGER, err);
	if (r >= 0)
		r = compile_requests(&c, err);
	if (r >= 0)
		close_totals(&c);
	if (r >= 0 && w)
		r = note_order(&c);
	think_graph_free(c.graph);
	arrivals_release(&c.arrivals);
	VEC_RELEASE(&c.lanes);
	VEC_RELEASE(&c.free);
	VEC_RELEASE(&c.ends);
	VEC_RELEASE(&c.edges.list);
	VEC_RELEASE(&c.edges_out);
	return r < 0 ? r : 0;
}
