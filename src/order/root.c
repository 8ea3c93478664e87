/* SPDX-License-Identifier: MIT */
/*
 * Resource-oriented order: an action waits for those before it that it has
 * something to do with, by the rules chosen (doc/ordering.md).
 *
 *   event --> threads   what its thread did last and must wait for
 *         --> sync      waits, wakes, ends: what other threads must wait for
 *         --> touches   resources: stage, sequence, conflicts
 */
#include <stdlib.h>

#include "order/sync.h"
#include "order/touches.h"

struct root {
	struct touches touches;
	struct threads threads;
	struct sync sync;
	struct rw program;
};

static void *root_open(const struct order_options *options)
{
	struct root *r = xcalloc(1, sizeof(*r));

	r->touches.rules = options ? options->rules : rules_default;
	range_budget_init(&r->touches.budget, options ? options->max_range_bytes : 0);
	threads_init(&r->threads);
	sync_init(&r->sync, &r->threads);
	rw_init(&r->program);
	return r;
}

static void root_close(void *state)
{
	struct root *r = state;

	touches_release(&r->touches);
	sync_release(&r->sync);
	threads_release(&r->threads);
	free(r);
}

static void root_event(void *state, const struct order_input *in, struct edges *out)
{
	struct root *r = state;
	struct thread *th = threads_of(&r->threads, in);
	struct sink sink = { .out = in->action ? out : NULL, .thread = th, .lane = in->self.lane };
	bool sync = has_rule(&r->touches, RULE_sync_wake);
	struct users before;
	struct user self;

	threads_begin(&r->threads, th, in);
	if (sync)
		sync_event(&r->sync, th, in);
	if (in->action) {
		threads_act(th, in, &sink);
		futexes_act(th);
		touches_act(&r->touches, in, &sink);
		if (has_rule(&r->touches, RULE_program_seq)) {
			self = user_from_ref(&in->self);
			rw_next(&r->program, &self, &sink, RULE_program_seq);
		}
	} else if (sync && in->facts->touches.len) {
		thread_before(th, in, &before);
		touches_watch(&r->touches, in, &before, &sink);
		users_release(&before);
	}
}

static void root_ahead(void *state, const struct event *ev)
{
	struct root *r = state;

	if (has_rule(&r->touches, RULE_sync_wake))
		sync_ahead(&r->sync, ev);
}

static void root_forget(void *state, struct res *res, struct res *heir)
{
	struct root *r = state;

	touches_forget(&r->touches, res, heir);
}

static void root_thread_end(void *state, uint32_t tid)
{
	struct root *r = state;
	struct thread *th = threads_find(&r->threads, tid);

	if (!th)
		return;
	sync_thread_end(&r->sync, th);
	threads_end(&r->threads, th);
}

static void root_totals(const void *state, struct order_totals *totals)
{
	const struct root *r = state;

	totals->wakes_unknown = r->sync.futexes.nr_unknown + r->sync.nr_unknown;
	totals->nr_meetings = r->sync.futexes.nr_meetings;
	totals->nr_forgotten = r->touches.budget.nr_forgotten;
}

const struct order_policy order_root = {
	.name = "root",
	.summary = "by the resources that actions share, and by waits and wakes",
	.open = root_open,
	.close = root_close,
	.event = root_event,
	.ahead = root_ahead,
	.forget = root_forget,
	.thread_end = root_thread_end,
	.totals = root_totals,
};
