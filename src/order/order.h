/* SPDX-License-Identifier: MIT */
/*
 * Order policies: events and the model's facts in, edges out. A policy is a
 * const struct at the foot of its own file and a line in orders.def.
 *
 * An edge is a pair (lane, number): this action may start only when the action
 * with that number in that lane is done. Lanes are sequential, so actions of one
 * lane never need edges among each other. Every edge points to an action that
 * came earlier in effect order; so no plan can deadlock. order_event() checks
 * this, whatever a policy says.
 *
 * Events that are no actions (waits and wakes, clones, exits) are shown to
 * policies too: what they order is attached to the next action of their lane.
 */
#ifndef ORDER_ORDER_H
#define ORDER_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "fsmodel/fsmodel.h"
#include "model/event.h"

/* Rules: why there is an edge. Names are those of --rules and of reports. */
enum rule {
#define RULE(name, summary) RULE_##name,
#include "order/rules.def"
#undef RULE
	RULE_MAX,
};

struct rule_info {
	const char *name, *summary;
};

extern const struct rule_info rule_infos[RULE_MAX];

/* Which rules `root` applies: bit 1 << RULE_x. */
typedef uint32_t rule_set;

extern const rule_set rules_default, rules_artc;

/*
 * "artc", "default", "none", or changes to the default: "+file_seq,-path_stage";
 * a list that begins with a name without sign starts from nothing.
 */
MUST_CHECK int rules_parse(const char *text, rule_set *ret, struct err *err);
void rules_print(rule_set rules, struct buf *out);

/* An action of the plan in the making. */
struct action_ref {
	uint32_t lane;
	uint64_t nr; /* from 0, in its lane */
	uint64_t enter_ns, exit_ns; /* of its event: for the lengths of edges */
};

struct edge {
	struct action_ref from;
	uint8_t rule; /* enum rule */
	bool started; /* it is enough that the other has been started (temporal, streams) */
};

struct edges {
	VEC(struct edge) list;
};

/* One event as a policy sees it. */
struct order_input {
	const struct event *ev;
	const struct facts *facts;
	/*
	 * Whose it is. `self.nr` is the action's number; when the event is no
	 * action, that of the lane's next one. has_last: the thread has done an
	 * action before; `last` is that.
	 */
	struct action_ref self, last;
	bool has_last;
	bool action;
	uint32_t lane_of_child; /* of facts->child_tid; UINT32_MAX: none */
};

struct order_options {
	rule_set rules; /* of root */
	uint64_t max_range_bytes; /* of root: for pieces of files, see range.h; 0: the default */
};

struct order;
struct order_totals;

/* Every function may be NULL: there is then nothing to do. */
struct order_policy {
	const char *name, *summary;
	bool one_lane; /* all threads share a lane */
	bool block; /* of block requests, by order/think.h; all else is NULL */
	void *(*open)(const struct order_options *options);
	void (*close)(void *state);
	/* Appends to out what the action must wait for; for an event that is no action out stays as it is. */
	void (*event)(void *state, const struct order_input *in, struct edges *out);
	/* See order_ahead(). */
	void (*ahead)(void *state, const struct event *ev);
	/* See fsmodel_options.forget. */
	void (*forget)(void *state, struct res *res, struct res *heir);
	/* A thread has ended and its lane may pass to another. */
	void (*thread_end)(void *state, uint32_t tid);
	/* Adds what the policy itself has counted. */
	void (*totals)(const void *state, struct order_totals *totals);
};

/* NULL when there is none of that name. */
const struct order_policy *order_find(const char *name);
/* All of them, for help texts; ends with NULL. */
extern const struct order_policy *const order_policies[];

/*
 * A policy at work, with the removal of edges that others imply.
 *
 * Each lane has a vector: up to which action of every other lane it knows all
 * to be done when its next action starts. An edge that the vector covers is
 * dropped; one that is kept raises the vector by itself and by what the other
 * lane's action knew.
 */
struct order *order_new(const struct order_policy *policy, const struct order_options *options);
void order_free(struct order *o);

/*
 * The edges of an action, at most one for each other lane, unless `started`
 * edges come on top; valid until the next call. An event that is no action
 * gives none.
 */
const struct edges *order_event(struct order *o, const struct order_input *in);
/*
 * The next event of a thread, shown before its turn: when the thread's previous
 * event has been given to order_event(). Only those of class C_WAIT matter. It is
 * better, not needed: a call is known to order_event() when it has ended, but
 * whoever wakes all that wait meets those who are still waiting then. Without it
 * an edge may come one action late.
 */
void order_ahead(struct order *o, const struct event *ev);
void order_forget(struct order *o, struct res *res, struct res *heir);
void order_thread_end(struct order *o, uint32_t tid);

/* Whether the lane's next action can only start when that one is done, by the edges so far. */
bool order_implied(const struct order *o, uint32_t lane, const struct action_ref *ref);

struct order_totals {
	uint64_t nr_asked; /* edges that the policy asked for */
	uint64_t nr_edges; /* that were kept */
	uint64_t by_rule[RULE_MAX]; /* of those kept */
	uint64_t wakes_unknown; /* waits that ended with no known waker */
	uint64_t nr_meetings;
	uint64_t nr_forgotten; /* pieces of files that are only known by and large: see range.h */
};

struct order_totals order_totals(const struct order *o);

#endif
