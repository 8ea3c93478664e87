/* SPDX-License-Identifier: MIT */
/*
 * Think time (plan.h): the gaps between the calls of a thread and the calls that
 * are not made again, told apart into computing, sleeping by own timers (which
 * counts as computing: a replay must spend it too) and waiting for others.
 *
 * What a recorder holds a thread falls into the gaps on both sides of a call;
 * a trace knows the sum of both, and each gap gets half.
 */
#include <errno.h>

#include "base/banned.h"
#include "compile/inside.h"

static void compute(struct think *t, uint64_t ns)
{
	t->after_ns += ns;
}

static void wait_for_others(struct think *t, uint64_t ns)
{
	t->before_ns += t->after_ns;
	t->after_ns = 0;
	t->wait_ns += ns;
}

static void pass_gap(struct think *t, const struct event *ev)
{
	uint64_t gap_ns, held_ns = t->held_ns / 2 + ev->held_ns / 2;

	if (!t->started) {
		t->started = true;
		t->since_ns = ev->enter_ns;
	}
	gap_ns = ev->enter_ns > t->since_ns ? ev->enter_ns - t->since_ns : 0;
	if (!(ev->flags & EVENT_NO_TIME))
		compute(t, gap_ns > held_ns ? gap_ns - held_ns : 0);
}

static void pass_end(struct think *t, const struct event *ev)
{
	t->since_ns = ev->exit_ns;
	t->held_ns = ev->held_ns;
}

static bool is_sleep(const struct event *ev)
{
	switch (ev->row->id) {
	case SC_nanosleep:
	case SC_clock_nanosleep:
		return true;
	case SC_poll:
	case SC_ppoll:
	case SC_select:
	case SC_pselect6:
	case SC_epoll_wait:
	case SC_epoll_pwait:
	case SC_epoll_pwait2:
		return !ev->outcome.err && ev->outcome.ret == 0; /* its time-out ended it */
	default:
		return ev->outcome.err == ETIMEDOUT;
	}
}

/* What came from outside the trace comes again no sooner: it is not for the edges to wait for. */
static bool is_from_outside(const struct facts *facts)
{
	return facts->stream && !facts->local_peer;
}

void think_pass(struct think *t, const struct event *ev, const struct facts *facts)
{
	uint64_t call_ns = ev->exit_ns > ev->enter_ns ? ev->exit_ns - ev->enter_ns : 0;

	pass_gap(t, ev);
	if (ev->flags & (EVENT_NO_TIME | EVENT_NO_DURATION))
		call_ns = 0;
	if (facts->stream && facts->local_peer)
		wait_for_others(t, call_ns);
	else if (!(ev->row->class & A_WAITS) || is_sleep(ev) || is_from_outside(facts))
		compute(t, call_ns);
	else
		wait_for_others(t, call_ns);
	pass_end(t, ev);
}

void think_arrive(struct think *t, const struct event *ev)
{
	pass_gap(t, ev);
}

void think_leave(struct think *t, const struct event *ev)
{
	t->before_ns = t->after_ns = t->wait_ns = 0;
	pass_end(t, ev);
}
