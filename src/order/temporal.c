/* SPDX-License-Identifier: MIT */
/*
 * Actions start in the order in which they started in the trace, and only those
 * that overlapped there may overlap: an action waits until all that had ended
 * when it began are done, and until the one that began last before it has been
 * started.
 *
 * Events come in effect order, which for most is that of their ends; an edge can
 * only lead to what has come. So an action that lies wholly within another one
 * does not wait for that one's start: it came first. It waits for what came
 * before the other in its lane, so that both may start at the same moment.
 */
#include <stdlib.h>

#include "order/history.h"
#include "order/threads.h"

struct temporal {
	struct threads threads;
	struct history history;
};

static void *temporal_open(const struct order_options *options)
{
	(void)options;
	return xcalloc(1, sizeof(struct temporal));
}

static void temporal_close(void *state)
{
	struct temporal *t = state;

	threads_release(&t->threads);
	history_release(&t->history);
	free(t);
}

static void temporal_event(void *state, const struct order_input *in, struct edges *out)
{
	struct temporal *t = state;
	struct thread *th = threads_of(&t->threads, in);
	struct sink sink = { .out = out, .lane = in->self.lane };
	struct edge e = { .rule = RULE_temporal, .started = true };

	threads_begin(&t->threads, th, in);
	if (!in->action)
		return;
	threads_act(th, in, &sink);
	history_ask_ended(&t->history, in, &sink, RULE_temporal);
	if (history_last_begun(&t->history, in, &e.from))
		VEC_PUSH(&out->list, e);
	history_add(&t->history, in);
}

static void temporal_thread_end(void *state, uint32_t tid)
{
	struct temporal *t = state;
	struct thread *th = threads_find(&t->threads, tid);

	if (th)
		threads_end(&t->threads, th);
}

const struct order_policy order_temporal = {
	.name = "temporal",
	.summary = "actions start in the order of the trace",
	.open = temporal_open,
	.close = temporal_close,
	.event = temporal_event,
	.thread_end = temporal_thread_end,
};
