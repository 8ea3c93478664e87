/* SPDX-License-Identifier: MIT */
/*
 * Think time (plan.h): the gaps between the calls of a thread and the calls that
 * are not made again, told apart into computing, sleeping by own timers (which
 * counts as computing: a replay must spend it too) and waiting for others.
 *
 * What a recorder holds a thread falls into the gaps on both sides of a call, or into
 * the call; where a trace knows only the sum of both gaps, each gets half. That is not
 * all that a recorder costs: from the stop until it notices, and from the release until the
 * thread runs, the thread does nothing. Where the trace tells how much CPU time
 * was used in a gap, what is left of it is taken for that, up to a limit; beyond
 * it the thread waited for something else. That may be a page of a file that it
 * has mapped, which a replay reads when it makes the map: such waiting is left out.
 * What it may be besides (a processor, a page of what is not replayed) is kept.
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/banned.h"
#include "base/clock.h"
#include "compile/inside.h"
#include "order/args.h"

/* Two stops, each seen and ended from another processor: 25 to 55 us each way where that is dear. */
#define HANDOVER_MAX_NS (200 * NS_PER_US)
#define FAULT_BYTES ((uint64_t)128 << 10)
#define FAULTS_MAX ((uint64_t)1 << 20)

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

static uint64_t computing_ns(struct think *t, uint64_t gap_ns, uint64_t cpu_ns)
{
	uint64_t idle_ns = clock_sub_ns(gap_ns, cpu_ns);

	if (!cpu_ns)
		return gap_ns;
	if (idle_ns <= HANDOVER_MAX_NS)
		return gap_ns - idle_ns;
	if (!t->nr_faults)
		return gap_ns - HANDOVER_MAX_NS;
	t->nr_faults--;
	return gap_ns - idle_ns;
}

/* One for as much as the kernel reads ahead: which pages are used is not known. */
static void expect_faults(struct think *t, const struct event *ev)
{
	uint64_t len = event_number(ev, "length"), nr;

	if (ev->row->id != SC_mmap && ev->row->id != SC_mmap2)
		return;
	if (ev->outcome.err || event_number(ev, "flags") & MAP_ANONYMOUS ||
	    !(event_number(ev, "prot") & PROT_READ))
		return;
	nr = len / FAULT_BYTES + 1;
	t->nr_faults = nr < FAULTS_MAX - t->nr_faults ? t->nr_faults + nr : FAULTS_MAX;
}

static uint64_t held_before_ns(const struct event *ev)
{
	uint64_t ns = ev->held_before_ns ? ev->held_before_ns : ev->held_ns / 2;

	return ns < ev->held_ns ? ns : ev->held_ns;
}

static void pass_gap(struct think *t, const struct event *ev)
{
	uint64_t gap_ns, held_ns = clock_add_ns(t->held_ns, held_before_ns(ev));

	if (!t->started) {
		t->started = true;
		t->since_ns = ev->enter_ns;
	}
	gap_ns = clock_sub_ns(ev->enter_ns, t->since_ns);
	if (!(ev->flags & EVENT_NO_TIME))
		compute(t, computing_ns(t, clock_sub_ns(gap_ns, held_ns), ev->gap_cpu_ns));
}

static void pass_end(struct think *t, const struct event *ev)
{
	t->since_ns = ev->exit_ns;
	t->held_ns = ev->held_ns - held_before_ns(ev);
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

/* A look whether a child has ended, and none has. */
static bool is_look(const struct event *ev)
{
	switch (ev->row->id) {
	case SC_wait4:
	case SC_waitid:
	case SC_waitpid:
		return ev->outcome.err != EINTR && !event_ended_pid(ev);
	default:
		return false;
	}
}

/* What came from outside the trace comes again no sooner: it is not for the edges to wait for. */
static bool is_from_outside(const struct facts *facts)
{
	return facts->stream && !facts->local_peer;
}

void think_pass(struct think *t, const struct event *ev, const struct facts *facts)
{
	uint64_t call_ns =
		clock_sub_ns(clock_sub_ns(ev->exit_ns, ev->enter_ns), ev->held_inside_ns);

	pass_gap(t, ev);
	if (ev->flags & (EVENT_NO_TIME | EVENT_NO_DURATION))
		call_ns = 0;
	if (facts->stream && facts->local_peer)
		wait_for_others(t, call_ns);
	else if (!(ev->row->class & A_WAITS) || is_sleep(ev) || is_look(ev) ||
		 is_from_outside(facts))
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
	expect_faults(t, ev);
}
