/* SPDX-License-Identifier: MIT */
/*
 * Mode think: a request is ready a think time after its parents were complete, or
 * after as many were as had been. Whoever completes the last of them puts the request into
 * the heap of its submitter.
 */
#include <stdlib.h>

#include "base/banned.h"
#include "base/heap.h"
#include "base/mem.h"
#include "replay/blk_inside.h"

void blk_graph_lock(struct blk_run *run)
{
	if (run->nr_submitters > 1)
		(void)pthread_mutex_lock(&run->shared.graph);
}

void blk_graph_unlock(struct blk_run *run)
{
	if (run->nr_submitters > 1)
		(void)pthread_mutex_unlock(&run->shared.graph);
}

/* What is ready. */

static bool ready_is_before(const struct blk_ready *a, const struct blk_ready *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->index < b->index;
}

static void push_ready(struct blk_run *run, uint64_t index)
{
	const struct blk_slot *s = blk_slot(&run->window, index);
	struct blk_submitter *sub = &run->submitters[s->submitter];

	HEAP_PUSH(&sub->heap, ((struct blk_ready){ s->ready_ns, index }), ready_is_before);
}

void blk_graph_pop(struct blk_submitter *sub)
{
	HEAP_POP(&sub->heap, ready_is_before);
}

/* Parents and children. */

static double scaled_think(const struct blk_run *run, uint64_t think_ns)
{
	return (double)think_ns * run->o->scale_server * run->o->scale;
}

/* What is left of a think time after a completion that was seen so late. */
static double think_left(const struct blk_run *run, uint64_t think_ns, uint32_t late_ns)
{
	double left = scaled_think(run, think_ns) - (double)late_ns;

	return left > 0 ? left : 0;
}

/* When it would be complete on a device that is slower or faster by the factor asked for. */
static double scaled_end(const struct blk_run *run, const struct blk_slot *s)
{
	return (double)s->start_ns + (double)(s->end_ns - s->start_ns) * run->o->scale_storage;
}

/* When the child may start by this parent: never before that is complete. */
static uint64_t child_due(const struct blk_run *run, const struct blk_slot *parent,
			  uint64_t think_ns)
{
	uint64_t due_ns =
		blk_ns(scaled_end(run, parent) + think_left(run, think_ns, parent->seen_late_ns));

	return due_ns > parent->end_ns ? due_ns : parent->end_ns;
}

static void admit_one(struct blk_run *run, uint64_t index)
{
	struct blk_window *w = &run->window;
	struct blk_slot *s = blk_slot(w, index);

	/* Who waits for nobody starts at its own time: there is nothing else to go by. */
	s->ready_ns = run->start_ns;
	if (!s->nr_edges)
		s->ready_ns += blk_ns(scaled_think(run, s->issue_ns));
	for (uint64_t i = s->first_edge; i < s->first_edge + s->nr_edges; i++) {
		struct blk_edge *e = &w->edges[i & (BLK_EDGES - 1)];
		struct blk_slot *parent = blk_slot(w, e->parent);

		/* Set under the same lock: the order is the lock's. */
		if (atomic_load_explicit(&parent->done, memory_order_relaxed)) {
			uint64_t due = child_due(run, parent, e->think_ns);

			s->ready_ns = due > s->ready_ns ? due : s->ready_ns;
		} else {
			e->next = parent->first_child;
			parent->first_child = (i & (BLK_EDGES - 1)) + 1;
			s->parents_left++;
		}
	}
	if (!s->parents_left)
		push_ready(run, index);
}

static void release_children(struct blk_run *run, struct blk_slot *s)
{
	while (s->first_child) {
		const struct blk_edge *e = &run->window.edges[s->first_child - 1];
		struct blk_slot *child = blk_slot(&run->window, e->child);
		uint64_t due = child_due(run, s, e->think_ns);

		child->ready_ns = due > child->ready_ns ? due : child->ready_ns;
		s->first_child = e->next;
		if (!--child->parents_left)
			push_ready(run, e->child);
	}
}

/* By number: in the order of the trace, for each needs all that those before it need. */

static bool take_all(struct blk_run *run, struct blk_tally *t, uint64_t first, uint32_t nr)
{
	for (uint64_t i = first; i < first + nr; i++) {
		if (!blk_tally_take(t, &run->window.edges[i & (BLK_EDGES - 1)].need))
			return false;
	}
	return true;
}

/* What it follows is among what it needs. */
static bool has_enough(struct blk_run *run, struct blk_slot *s)
{
	return take_all(run, &run->shared.tally, s->first_edge, s->nr_edges) &&
	       take_all(run, &run->shared.followed, s->first_edge + s->nr_edges, s->nr_follows);
}

static uint64_t number_due(const struct blk_run *run, const struct blk_slot *s)
{
	uint64_t needed_ns = run->shared.tally.reached_ns;
	uint64_t reached_ns = run->shared.followed.reached_ns, due_ns;

	if (s->think_ns == BLK_NO_THINK)
		return run->start_ns + blk_ns(scaled_think(run, s->issue_ns));
	if (reached_ns < run->start_ns)
		reached_ns = run->start_ns;
	due_ns =
		blk_ns((double)reached_ns + think_left(run, s->think_ns, run->shared.last_late_ns));
	return due_ns > needed_ns ? due_ns : needed_ns;
}

static void admit_by_number(struct blk_run *run, uint64_t loaded)
{
	for (; run->shared.admitted < loaded; run->shared.admitted++) {
		struct blk_slot *s = blk_slot(&run->window, run->shared.admitted);

		if (!has_enough(run, s))
			return;
		s->ready_ns = number_due(run, s);
		push_ready(run, run->shared.admitted);
	}
}

/* The whole. */

void blk_graph_admit(struct blk_run *run)
{
	/* Pairs with the loader's. */
	uint64_t loaded = atomic_load_explicit(&run->window.loaded, memory_order_acquire);

	if (run->o->wait == BLK_WAIT_NUMBER) {
		admit_by_number(run, loaded);
		return;
	}
	for (; run->shared.admitted < loaded; run->shared.admitted++)
		admit_one(run, run->shared.admitted);
}

void blk_graph_complete(struct blk_run *run, struct blk_slot *s)
{
	uint64_t end_ns;

	if (run->o->wait == BLK_WAIT_PARENTS) {
		release_children(run, s);
		return;
	}
	end_ns = blk_ns(scaled_end(run, s));
	run->shared.last_late_ns = s->seen_late_ns;
	if (end_ns < s->end_ns)
		end_ns = s->end_ns;
	blk_tally_add(&run->shared.tally, blk_slot_kind(s), end_ns);
	blk_tally_add(&run->shared.followed, blk_slot_kind(s), end_ns);
	blk_graph_admit(run);
}
