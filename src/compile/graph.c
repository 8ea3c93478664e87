/* SPDX-License-Identifier: MIT */
#include "compile/graph.h"

#include <stdlib.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/strings.h"
#include "model/blk.h"

struct lane_done {
	/* By number of the action: when it could be done at the earliest if only calls took time. */
	VEC(uint64_t) at;
	uint64_t chain; /* actions on the longest chain that ends with the lane's last one */
};

struct graph {
	struct compile_observer observer;
	struct graph_options options;
	struct graph_totals totals;
	VEC(struct lane_done) lanes;
	uint64_t first_ns, last_ns;
	bool any;
	struct buf edges; /* of the drawing: behind the nodes */
};

static struct lane_done *lane_of(struct graph *g, uint32_t lane)
{
	while (lane >= g->lanes.len)
		VEC_PUSH(&g->lanes, (struct lane_done){ 0 });
	return &g->lanes.items[lane];
}

static uint64_t done_at(struct graph *g, const struct action_ref *ref)
{
	const struct lane_done *l = lane_of(g, ref->lane);

	return ref->nr < l->at.len ? l->at.items[ref->nr] : 0;
}

static void follow_chain(struct graph *g, const struct compiled *c)
{
	uint64_t call_ns = c->ev->exit_ns - c->ev->enter_ns, start_ns, chain;
	struct lane_done *l = lane_of(g, c->self.lane);

	start_ns = l->at.len ? l->at.items[l->at.len - 1] : 0;
	chain = l->chain;
	for (size_t i = 0; i < c->edges->list.len; i++) {
		const struct edge *e = &c->edges->list.items[i];
		uint64_t at_ns = done_at(g, &e->from);

		if (!e->started && at_ns > start_ns) {
			start_ns = at_ns;
			chain = lane_of(g, e->from.lane)->chain;
		}
	}
	l = lane_of(g, c->self.lane); /* the vector may have moved */
	while (l->at.len <= c->self.nr)
		VEC_PUSH(&l->at, start_ns + call_ns);
	l->chain = chain + 1;
	if (start_ns + call_ns >= g->totals.critical_ns) {
		g->totals.critical_ns = start_ns + call_ns;
		g->totals.critical_actions = l->chain;
	}
	g->totals.call_ns += call_ns;
}

static void measure_edges(struct graph *g, const struct compiled *c)
{
	for (size_t i = 0; i < c->edges->list.len; i++) {
		uint64_t from_ns = c->edges->list.items[i].from.exit_ns;

		histogram_add(&g->totals.edge_length_ns,
			      c->ev->enter_ns > from_ns ? c->ev->enter_ns - from_ns : 0);
	}
}

/* Drawing. */

static bool is_drawn(const struct graph *g, uint64_t enter_ns, uint64_t exit_ns)
{
	return exit_ns >= g->options.from_ns && (!g->options.to_ns || enter_ns < g->options.to_ns);
}

/* What distinguishes the call at a glance: the descriptor that it is made on, as in the paper's figure. */
static void put_label(struct buf *out, const struct event *ev)
{
	struct blk_request rq;
	char rwbs[BLK_RWBS_MAX];

	if (blk_request_get(ev->row, ev->args, &rq)) {
		blk_put_rwbs(rq.op, rq.flags, rwbs);
		buf_printf(out, "#%llu %s %llu+%llu", (unsigned long long)ev->seq, rwbs,
			   (unsigned long long)rq.offset_bytes,
			   (unsigned long long)rq.length_bytes);
		return;
	}
	buf_puts(out, ev->row->name);
	for (unsigned int i = 0; i < ev->row->nr_args; i++) {
		if (ev->row->args[i].kind == KIND_FD && ev->args[i].type == VALUE_INT) {
			buf_printf(out, " %lld", (long long)ev->args[i].i);
			return;
		}
	}
}

/* Of block requests: the one before it in its lane is a parent, or it is not. */
static bool has_own_edge(const struct compiled *c)
{
	for (size_t i = 0; i < c->edges->list.len; i++) {
		if (c->edges->list.items[i].from.lane == c->self.lane)
			return true;
	}
	return false;
}

static void draw(struct graph *g, const struct compiled *c)
{
	struct buf *out = g->options.dot;

	if (!g->totals.drawn++)
		buf_puts(out, "digraph plan {\n\trankdir=LR;\n\tnode [shape=box, fontsize=10];\n");
	buf_printf(out, "\t\"%u.%llu\" [label=\"", c->self.lane, (unsigned long long)c->self.nr);
	put_label(out, c->ev);
	buf_printf(out, "\", group=\"%u\", tooltip=\"%.6f s%s\"%s];\n", c->self.lane,
		   (double)c->ev->enter_ns / 1e9, c->enforced ? ", enforced" : "",
		   c->enforced ? ", style=dashed" : "");
	if (c->self.nr && !has_own_edge(c))
		buf_printf(&g->edges, "\t\"%u.%llu\" -> \"%u.%llu\" [color=grey];\n", c->self.lane,
			   (unsigned long long)c->self.nr - 1, c->self.lane,
			   (unsigned long long)c->self.nr);
	for (size_t i = 0; i < c->edges->list.len; i++) {
		const struct edge *e = &c->edges->list.items[i];

		if (!is_drawn(g, e->from.enter_ns, e->from.exit_ns))
			continue;
		buf_printf(&g->edges, "\t\"%u.%llu\" -> \"%u.%llu\" [style=%s, label=\"%s",
			   e->from.lane, (unsigned long long)e->from.nr, c->self.lane,
			   (unsigned long long)c->self.nr, e->started ? "dashed" : "bold",
			   rule_infos[e->rule].name);
		if (e->rule == RULE_think) {
			buf_putc(&g->edges, ' ');
			strings_put_duration(&g->edges,
					     clock_sub_ns(c->ev->enter_ns, e->from.exit_ns));
		}
		buf_puts(&g->edges, "\"];\n");
	}
}

static void see_event(struct compile_observer *o, const struct compiled *c)
{
	struct graph *g = (struct graph *)o;

	if (!c->action)
		return;
	if (!g->any || c->ev->enter_ns < g->first_ns)
		g->first_ns = c->ev->enter_ns;
	if (c->ev->exit_ns > g->last_ns)
		g->last_ns = c->ev->exit_ns;
	g->any = true;
	measure_edges(g, c);
	follow_chain(g, c);
	if (g->options.dot && is_drawn(g, c->ev->enter_ns, c->ev->exit_ns))
		draw(g, c);
}

struct graph *graph_new(const struct graph_options *options)
{
	struct graph *g = xcalloc(1, sizeof(*g));

	g->observer.event = see_event;
	g->options = *options;
	return g;
}

struct compile_observer *graph_observer(struct graph *g)
{
	return &g->observer;
}

const struct graph_totals *graph_finish(struct graph *g)
{
	g->totals.elapsed_ns = g->last_ns - g->first_ns;
	if (g->options.dot) {
		if (!g->totals.drawn)
			buf_puts(g->options.dot, "digraph plan {\n");
		buf_put(g->options.dot, g->edges.data, g->edges.len);
		buf_puts(g->options.dot, "}\n");
	}
	return &g->totals;
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->lanes.len; i++)
		VEC_RELEASE(&g->lanes.items[i].at);
	VEC_RELEASE(&g->lanes);
	histogram_release(&g->totals.edge_length_ns);
	buf_release(&g->edges);
	free(g);
}

double graph_parallelism(uint64_t call_ns, uint64_t span_ns)
{
	return span_ns ? (double)call_ns / (double)span_ns : 0;
}
