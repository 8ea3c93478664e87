/* SPDX-License-Identifier: MIT */
/*
 * Who gets the agent, and when. To enter a program costs as much as some
 * hundred stops, and most programs make no more calls than that. So a process
 * begins with ptrace alone, and with hope: as soon as it has made so many calls, the
 * agent enters at the end of one; or before that, at the entry of the call that
 * makes its second thread, since with more than one nobody could be kept out of the
 * places that are changed. That call is not made then, but put back, and made again
 * when the agent is there: the tracer sees it once.
 *
 * What an agent that was there from the beginning would know, the hope keeps: where
 * the loader is, what it has mapped, and whether a signal handler may be running.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "record/agent/inside.h"

#define SYSCALL_BYTES 2u

static void drop_hope(struct tracee *t)
{
	free(t->hope);
	t->hope = NULL;
}

void agent_enter_image(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	drop_hope(t);
	if (!tr->agent || tr->silent || t->own_filter)
		return;
	if (!tr->agent->after_calls) {
		(void)agent_enter_process(tr, t, 0); /* or it is recorded by the tracer alone */
		return;
	}
	t->hope = xcalloc(1, sizeof(*t->hope));
	t->hope->first_ip = ip;
}

void agent_hope_copy(const struct tracee *parent, struct tracee *t)
{
	if (!parent->hope || t->hope || t->space == parent->space)
		return;
	t->hope = xmalloc(sizeof(*t->hope));
	memcpy(t->hope, parent->hope, sizeof(*t->hope));
	t->hope->nr_calls = 0;
}

void agent_hope_map(struct tracee *t, uint64_t start, uint64_t len, uint64_t ip)
{
	struct agent_hope *h = t->hope;
	unsigned int i = 0;

	/* What was there before is gone. */
	while (i < h->nr_maps) {
		if (h->maps[i].start < start + len && start < h->maps[i].start + h->maps[i].len)
			h->maps[i] = h->maps[--h->nr_maps];
		else
			i++;
	}
	if (h->nr_maps < HOPE_MAPS_MAX) /* calls from more of them are seen by the tracer */
		h->maps[h->nr_maps++] = (struct hope_map){ start, len, ip };
}

void agent_hope_end(struct tracee *t)
{
	drop_hope(t);
}

/* Nobody else runs in its memory. */
static bool is_alone(struct tracer *tr, const struct tracee *t)
{
	MAP_EACH (&tr->all.by_tid, e) {
		const struct tracee *other = e->value;

		if (other != t && other->space == t->space)
			return false;
	}
	return true;
}

static bool may_enter(struct tracer *tr, const struct tracee *t)
{
	return t->hope && !tr->silent && !t->own_filter && !t->kept.call;
}

void agent_after_call(struct tracer *tr, struct tracee *t, const struct outcome *o, uint64_t ip)
{
	if (!t->hope || ++t->hope->nr_calls < tr->agent->after_calls || !may_enter(tr, t) ||
	    interrupts_is_restart(o->err) || !remote_is_syscall(t, ip - SYSCALL_BYTES))
		return; /* at another call */
	if (is_alone(tr, t))
		(void)agent_enter_process(tr, t, ip - SYSCALL_BYTES); /* or it goes on as it is */
	drop_hope(t);
}

bool agent_before_first_thread(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	bool put_back = false;

	if (may_enter(tr, t) && is_alone(tr, t) && remote_is_syscall(t, ip - SYSCALL_BYTES)) {
		put_back = remote_put_back(t, ip - SYSCALL_BYTES);
		if (put_back)
			(void)agent_enter_process(tr, t,
						  ip - SYSCALL_BYTES); /* or it goes on as it is */
	}
	drop_hope(t);
	return put_back;
}
