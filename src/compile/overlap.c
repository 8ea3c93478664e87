/* SPDX-License-Identifier: MIT */
/*
 * Calls that overlapped in time took effect in an order that no clock tells: what they
 * returned tells. Two things betray that the order of the exits was not it.
 *
 * The present call does not fit, but does after another that returned later.
 *
 * The present call fits and would undo what another, that returned later, must have seen:
 * that one goes first. Of a call that changes nothing it suffices that it fits now. One that
 * changes something goes first only if it needs what the present call takes away, and
 * nothing that ended in between may have given that back.
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

static bool row_moves_offset(const struct row *row)
{
	return row_class(row) == C_DATA &&
	       (row->result == RESULT_BYTES_READ || row->result == RESULT_OFFSET);
}

/* What is seen of a file that grows is seen once: who sees it now does not see it later. */
static bool grows_only(const struct event *ev)
{
	return ev->row->result == RESULT_BYTES_WRITTEN;
}

/* As far as one can tell without the model's answer to it. */
static bool may_pass(struct compiler *c, struct event *present, struct event *const *pending,
		     size_t n)
{
	struct event *ev = pending[n];

	if (!may_overlap(present, ev) || ev->enter_ns == present->exit_ns)
		return false;
	if (fsmodel_only_looks(c->model, ev) || row_moves_offset(ev->row))
		return window_load(c->window, ev) &&
		       (fsmodel_only_looks(c->model, ev) || fsmodel_moves_offset(c->model, ev)) &&
		       fsmodel_may_affect(c->model, present, ev) &&
		       (grows_only(present) || !is_owed_to_others(c, pending, n));
	return fsmodel_takes_away(present) && window_load(c->window, ev) &&
	       fsmodel_takes_from(c->model, present, ev) &&
	       !fsmodel_takes_from(c->model, ev, present) && !is_owed_to_others(c, pending, n);
}

bool overlap_in_place(struct compiler *c, struct event *ev)
{
	struct placed p;
	uint64_t place;

	if (!c->contests.places.nr_live || ev->row->result != RESULT_BYTES_WRITTEN)
		return true;
	place = contests_place(&c->contests, ev->stream, c->nr_seen[ev->stream]);
	return place == CONTEST_ANYWHERE || !fsmodel_placed(c->model, ev, &p) || p.at == place;
}

const struct facts *overlap_try(struct compiler *c, struct event *ev)
{
	return overlap_in_place(c, ev) ? fsmodel_try(c->model, ev) : NULL;
}

/* Whether another write wants the place that this one would get. */
static int is_contested(struct compiler *c, struct event *present, bool *ret, struct err *err)
{
	struct event *const *pending;
	struct placed p, other;
	size_t nr = 0;
	int r = 0;

	*ret = false;
	if (present->row->result == RESULT_BYTES_WRITTEN && fsmodel_placed(c->model, present, &p))
		r = window_pending(c->window, &pending, &nr, err);
	for (size_t n = 0; r >= 0 && n < nr && !*ret; n++) {
		struct event *ev = pending[n];

		*ret = ev->row->result == RESULT_BYTES_WRITTEN && may_overlap(present, ev) &&
		       window_load(c->window, ev) && fsmodel_placed(c->model, ev, &other) &&
		       other.line == p.line;
	}
	return r;
}

static int know_contests(struct compiler *c, struct event *ev, struct err *err)
{
	bool contested;
	int r;

	if (c->knows_contests || c->options->as_they_ended)
		return 0;
	r = is_contested(c, ev, &contested, err);
	if (r < 0 || !contested)
		return r;
	c->knows_contests = true;
	return contests_find(c->trace, &c->contests, err);
}

int overlap_know_contests(struct compiler *c, struct err *err)
{
	if (c->nr_streams < 2 || !window_overlaps(c->window))
		return 0;
	return know_contests(c, window_present(c->window), err);
}

/* The next one that goes before `ev`, in the model already; NULL: none. */
static int next_to_pass(struct compiler *c, struct event *before, struct event **ret,
			const struct facts **facts, struct err *err)
{
	const struct event *present = window_present(c->window);
	struct event *const *pending;
	size_t nr;
	int r = window_pending(c->window, &pending, &nr, err);

	*ret = NULL;
	for (size_t n = 0; r >= 0 && n < nr && n < TRIES_MAX; n++) {
		if (pending[n] == before || pending[n]->stream == present->stream ||
		    !may_pass(c, before, pending, n) || !fsmodel_fits(c->model, before))
			continue;
		*facts = overlap_try(c, pending[n]);
		if (!*facts)
			continue;
		*ret = pending[n];
		break;
	}
	return r;
}

static int let_pass(struct compiler *c, struct event *before, struct err *err)
{
	const struct facts *facts;
	struct event *ev;
	int r;

	if (!fsmodel_changes_names(c->model, before) &&
	    !fsmodel_changes_attributes(c->model, before))
		return 0;
	for (unsigned int tries = 0; tries < TRIES_MAX; tries++) {
		r = next_to_pass(c, before, &ev, &facts, err);
		if (r < 0 || !ev)
			return r;
		r = compile_early(c, ev, facts, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int overlap_let_pass(struct compiler *c, struct err *err)
{
	if (c->nr_streams < 2 || !window_overlaps(c->window))
		return 0;
	return let_pass(c, window_present(c->window), err);
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
		if (!fsmodel_may_affect(c->model, ev, present))
			continue;
		r = know_contests(c, ev, err);
		if (r < 0)
			return r;
		if (!overlap_in_place(c, ev) || !fsmodel_fits(c->model, ev))
			continue;
		r = let_pass(c, ev, err);
		if (r < 0)
			return r;
		/* Those that passed change nothing that it depends on. A try is made for the present event's sake. */
		facts = fsmodel_try(c->model, ev);
		if (!facts)
			facts = fsmodel_step(c->model, ev);
		r = compile_early(c, ev, facts, err);
		return r < 0 ? r : 1;
	}
	return r < 0 ? r : 0;
}

/* One that only looks goes first, so that what its thread did next may: 1; 0: there is none. */
static int uncover_one(struct compiler *c, unsigned int *tries, struct err *err)
{
	struct event *present = window_present(c->window);
	const struct facts *facts;
	struct event *const *pending;
	size_t nr;
	int r = window_pending(c->window, &pending, &nr, err);

	for (size_t n = 0; r >= 0 && n < nr && *tries < TRIES_MAX; n++) {
		struct event *ev = pending[n];

		if (!may_overlap(present, ev) || ev->row->sort == ROW_EVENT ||
		    !window_load(c->window, ev) ||
		    !(fsmodel_only_looks(c->model, ev) || fsmodel_moves_offset(c->model, ev)))
			continue;
		++*tries;
		facts = fsmodel_try(c->model, ev);
		if (!facts)
			continue;
		r = compile_early(c, ev, facts, err);
		return r < 0 ? r : 1;
	}
	return r < 0 ? r : 0;
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
		if (!r)
			r = uncover_one(c, &tries, err);
		if (r <= 0)
			return r;
		r = overlap_let_pass(c, err);
		if (r < 0)
			return r;
		*ret = overlap_try(c, window_present(c->window));
	}
	return 0;
}
