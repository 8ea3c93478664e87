/* SPDX-License-Identifier: MIT */
/*
 * From a trace to a plan: events in effect order through the model and an order
 * policy, once, in memory bounded by what is alive at a time.
 *
 *   trace --> window --> model --> order --> lanes, slots, think time --> plan
 *             (swaps     (facts)   (edges)
 *              overlapping
 *              calls)
 *
 * An event becomes no action (waits, simulated calls), or one, or a run of
 * several in its lane: what its process's cwd, root and umask need first, the
 * call itself, then descriptors that went without a call. The edges stand at the
 * first of them, and others wait for the last.
 */
#ifndef COMPILE_COMPILE_H
#define COMPILE_COMPILE_H

#include "base/progress.h"
#include "fsmodel/fsmodel.h"
#include "model/tree_stat.h"
#include "order/arrivals.h"
#include "order/order.h"
#include "plan/plan.h"
#include "trace/reader.h"

/* A place in a trace: a time since its beginning, or an event by its number. Zeroed: none. */
struct compile_bound {
	bool is_event;
	uint64_t at; /* ns, or the number */
};

struct compile_options {
	const struct order_policy *policy;
	rule_set rules;
	uint32_t
		max_lanes; /* beyond it, lanes of ended threads are shared at any price; 0: the default */
	size_t max_absent; /* as in fsmodel_options; 0: the default */
	uint64_t max_range_bytes; /* as in order_options; 0: the default */
	/* Only this part of the trace is acted, what came before is made ready (part.h). */
	struct compile_bound from, to;
	uint64_t think_ns; /* of block requests: shorter think times mean no dependency */
	/* Writes whose places the kernel chose keep the order of their ends: contest.h. */
	bool as_they_ended;
	struct progress *progress;
};

/* One event as it was compiled. Borrowed. */
struct compiled {
	uint64_t number; /* of the event, from 1, in the order of the compilation */
	const struct event *ev; /* as in the trace: descriptors are still numbers */
	const struct facts *facts;
	bool action;
	bool enforced; /* the action is not made, since its failure would not come again */
	struct action_ref self;
	const struct edges *edges;
	const struct fsmodel *model;
};

/* Who looks on: graph.h, series.h. */
struct compile_observer {
	void (*event)(struct compile_observer *o, const struct compiled *c);
	/* A resource is about to go, and: this was the last event. Both may be NULL. */
	void (*forget)(struct compile_observer *o, const struct res *res);
	void (*end)(struct compile_observer *o, const struct fsmodel *m);
};

/* What is only known of block requests. */
struct block_totals {
	uint64_t nr_without_completion; /* requests of which the end is not known */
	uint64_t nr_crowded; /* put behind one that they overlapped: there were no more lanes */
	uint64_t nr_held_max; /* requests that were held in memory at a time */
	struct arrivals_view arrivals;
};

struct compile_totals {
	struct plan_totals plan;
	struct order_totals order;
	struct fsmodel_totals model;
	uint64_t nr_events;
	uint64_t nr_simulated; /* calls whose outcome stands without being made */
	uint64_t nr_enforced; /* actions that only the original's environment made fail: not made */
	uint64_t nr_enforced_requests; /* of io_uring and io_submit, likewise */
	uint64_t nr_waiting; /* calls that edges and think time stand for */
	uint64_t nr_unsupported; /* calls that should be made and cannot */
	uint64_t nr_swapped; /* overlapping calls that changed places */
	uint64_t nr_unordered; /* overlapping writes of which no one can tell which came first */
	uint64_t nr_cache_misses; /* events that tell of one; 0: the trace does not know */
	uint64_t nr_unknown_copies; /* calls that copy such bytes from file to file */
	uint64_t nr_unverifiable; /* actions that read bytes which the trace does not tell */
	uint64_t nr_setup; /* actions that only make the state before a part */
	struct tree_count inferred; /* of the initial tree: what the events need, and it lacks */
	struct block_totals block;
	uint64_t call_ns; /* spent in the calls of all actions, in the trace */
};

/* Whether the trace or plan is one of block requests. */
bool compile_is_block(struct trace *t);

/* w and observer may be NULL. What the trace's ledger lacks is for the caller to say. */
MUST_CHECK int compile_trace(struct trace *t, const struct compile_options *options,
			     struct plan_writer *w, struct compile_observer *observer,
			     struct compile_totals *ret, struct err *err);

#endif
