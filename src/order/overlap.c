/* SPDX-License-Identifier: MIT */
/* Actions that did not overlap keep their order; those that did are free. */
#include <stdlib.h>

#include "order/history.h"
#include "order/threads.h"

struct overlap {
	struct threads threads;
	struct history history;
};

static void *overlap_open(const struct order_options *options)
{
	(void)options;
	return xcalloc(1, sizeof(struct overlap));
}

static void overlap_close(void *state)
{
	struct overlap *o = state;

	threads_release(&o->threads);
	history_release(&o->history);
	free(o);
}

static void overlap_event(void *state, const struct order_input *in, struct edges *out)
{
	struct overlap *o = state;
	struct thread *th = threads_of(&o->threads, in);
	struct sink sink = { .out = out, .lane = in->self.lane };

	threads_begin(&o->threads, th, in);
	if (!in->action)
		return;
	threads_act(th, in, &sink);
	history_ask_ended(&o->history, in, &sink, RULE_overlap);
	history_add(&o->history, in);
}

static void overlap_thread_end(void *state, uint32_t tid)
{
	struct overlap *o = state;
	struct thread *th = threads_find(&o->threads, tid);

	if (th)
		threads_end(&o->threads, th);
}

const struct order_policy order_overlap = {
	.name = "overlap",
	.summary = "actions that did not overlap in the trace keep their order",
	.open = overlap_open,
	.close = overlap_close,
	.event = overlap_event,
	.thread_end = overlap_thread_end,
};
