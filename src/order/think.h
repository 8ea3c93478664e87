/* SPDX-License-Identifier: MIT */
/*
 * The order of block requests, inferred from their times alone (hfplayer,
 * section 3 of the paper). A request is taken to depend on every earlier one that
 * was complete at least a threshold before it was issued: those that overlap it
 * cannot have caused it, nor can those whose completion was too recent to have
 * travelled up to the program and down again. Dependencies that others imply are
 * left out; what is left are a request's parents, each with the think time
 * from its completion to the issue of the child.
 *
 *   A |------|                       m: the threshold
 *   B    |-------|                   D: A, and B if B's end + m is before D
 *   C            .|------|           C: A; not B (think time below m)
 *   D                |------|
 *
 * Let q be the latest issued of those that a request depends on. Whoever was
 * complete m before q was issued is implied by q, and nobody else is implied by
 * anybody: so the parents are those that were complete after q's issue (less m),
 * and q. All of them were in flight when q was issued. What was once implied stays
 * implied, for q only moves forward: memory is bounded by the requests that are in
 * flight (or within m of it) at a time, and each request enters and leaves once.
 *
 * Belongs to one thread.
 */
#ifndef ORDER_THINK_H
#define ORDER_THINK_H

#include "order/order.h"

#define THINK_DEFAULT_NS 10000

struct think_graph;

struct think_parents {
	VEC(struct action_ref) list; /* by completion; valid until the next call */
};

struct think_graph *think_graph_new(uint64_t threshold_ns);
void think_graph_free(struct think_graph *g);
/*
 * What a request that is issued now waits for. Times do not go back: an earlier
 * one counts as the latest so far.
 */
const struct think_parents *think_graph_issue(struct think_graph *g, uint64_t issue_ns);
/* The request of which think_graph_issue() was asked, with its place in the plan. */
void think_graph_add(struct think_graph *g, const struct action_ref *request);
/*
 * Requests that others could come to wait for since think_graph_issue() was
 * called before: those whose lane is free again, by completion. Valid until the
 * next call.
 */
const struct think_parents *think_graph_freed(const struct think_graph *g);
/* The request that will be complete first of those that nobody can wait for yet; NULL: none. */
const struct action_ref *think_graph_first_in_flight(const struct think_graph *g);
/* How many requests are held at present, and at most so far. */
size_t think_graph_held(const struct think_graph *g, size_t *ret_max);

#endif
