/* SPDX-License-Identifier: MIT */
/*
 * Calls that overlapped in time took effect in an order that no clock tells: what they
 * returned tells. Two things betray that the order of the exits was not it.
 *
 * The present call does not fit, but does after another that returned later.
 *
 * The present call fits and would undo what another, that returned later, must have seen:
 * that one goes first. Of a call that changes nothing it suffices that it fits now. One that
 * changes something goes first only if it is the very next and needs what the present call
 * takes away: of what comes between two others it may be that it gives that back.
 *
 * A thread that is killed ends at some time after its last call and before anybody is told:
 * whoever gets a lock that only it had comes after its end.
 */
#include "base/banned.h"
#include "compile/emit.h"

/* So many overlapping calls are tried for one event. */
#define TRIES_MAX 64

/* It has its turn later, so it does if it was entered before the present one was over; at a coarse clock's same tick perhaps. */
static bool may_overlap(const struct event *present, const struct event *ev)
{
	return ev->stream != present->stream && ev->enter_ns <= present->exit_ns;
}

/* Whether the outcome may be owed to another that is between the present event and this one. */
static bool is_owed_to_others(struct compiler *c, struct event *const *pending, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (fsmodel_only_looks(c->model, pending[i]) || !window_load(c->window, pending[i]))
			continue;
		if (fsmodel_may_affect(c->model, pending[i], pending[n]))
			return true;
	}
	return false;
}

/* As far as one can tell without the model's answer to it. */
static bool may_pass(struct compiler *c, struct event *present, struct event *const *pending,
		     size_t n)
{
	struct event *ev = pending[n];

	if (!may_overlap(present, ev) || ev->enter_ns == present->exit_ns)
		return false;
	if (fsmodel_only_looks(c->model, ev))
		return window_load(c->window, ev) && fsmodel_may_affect(c->model, present, ev) &&
		       !is_owed_to_others(c, pending, n);
	return n == 0 && fsmodel_takes_away(present) && window_load(c->window, ev) &&
	       fsmodel_takes_from(c->model, present, ev) &&
	       !fsmodel_takes_from(c->model, ev, present);
}

/* The next one that goes first, in the model already; NULL: none. */
static int next_to_pass(struct compiler *c, struct event **ret, const struct facts **facts,
			struct err *err)
{
	struct event *present = window_present(c->window);
	struct event *const *pending;
	size_t nr;
	int r = window_pending(c->window, &pending, &nr, err);

	*ret = NULL;
	for (size_t n = 0; r >= 0 && n < nr && n < TRIES_MAX; n++) {
		if (!may_pass(c, present, pending, n) || !fsmodel_fits(c->model, present))
			continue;
		*facts = fsmodel_try(c->model, pending[n]);
		if (!*facts)
			continue;
		*ret = pending[n];
		break;
	}
	return r;
}

int overlap_let_pass(struct compiler *c, struct err *err)
{
	struct event *present = window_present(c->window);
	const struct facts *facts;
	struct event *ev;
	int r;

	if (c->nr_streams < 2 || !window_overlaps(c->window) ||
	    !fsmodel_changes_names(c->model, present))
		return 0;
	for (unsigned int tries = 0; tries < TRIES_MAX; tries++) {
		r = next_to_pass(c, &ev, &facts, err);
		if (r < 0 || !ev)
			return r;
		r = compile_early(c, ev, facts, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* One that may change the answer to the present event goes first: 1; 0: there is none. */
static int swap_one(struct compiler *c, unsigned int *tries, struct err *err)
{
	struct event *present = window_present(c->window);
	const struct facts *facts;
	struct event *const *pending;
	size_t nr;
	int r = window_pending(c->window, &pending, &nr, err);

	for (size_t n = 0; r >= 0 && n < nr && *tries < TRIES_MAX; n++) {
		struct event *ev = pending[n];

		if (!may_overlap(present, ev) || fsmodel_only_looks(c->model, ev) ||
		    !window_load(c->window, ev))
			continue;
		++*tries;
		facts = fsmodel_may_affect(c->model, ev, present) ? fsmodel_try(c->model, ev)
								  : NULL;
		if (!facts)
			continue;
		r = compile_early(c, ev, facts, err);
		return r < 0 ? r : 1;
	}
	return r;
}

/* A thread that has done its last and stands in the way of a lock that the present call got ends first: 1; 0: there is none. */
static int let_end(struct compiler *c, struct err *err)
{
	struct event *present = window_present(c->window);
	const struct facts *facts;
	struct event *const *pending;
	size_t nr;
	int r;

	if (row_class(present->row) != C_LOCK)
		return 0;
	r = window_pending(c->window, &pending, &nr, err);
	if (r < 0)
		return r;
	for (size_t n = 0; n < nr; n++) {
		struct event *ev = pending[n];

		if ((ev->row->id != EV_thread_exit && !(ev->flags & EVENT_UNFINISHED)) ||
		    !fsmodel_locks_out(c->model, ev->tid, present) || !window_load(c->window, ev))
			continue;
		facts = fsmodel_try(c->model, ev);
		if (!facts)
			continue;
		r = compile_early(c, ev, facts, err);
		return r < 0 ? r : 1;
	}
	return 0;
}

int overlap_swap(struct compiler *c, const struct facts **ret, struct err *err)
{
	unsigned int tries = 0;
	int r;

	*ret = NULL;
	if (c->nr_streams < 2)
		return 0;
	while (!*ret) {
		r = let_end(c, err);
		if (!r)
			r = swap_one(c, &tries, err);
		if (r <= 0)
			return r;
		*ret = fsmodel_try(c->model, window_present(c->window));
	}
	return 0;
}
