/* SPDX-License-Identifier: MIT */
/*
 * Who gets the agent, and when. To enter the first program costs as much as some
 * hundred stops, and most programs make no more calls than that. So a process
 * begins with ptrace alone, and with hope: as soon as it has made so many calls, the
 * agent enters at the end of one; or before that, at the entry of the call that
 * makes its second thread, since with more than one nobody could be kept out of the
 * places that are changed. That call is not made then, but put back, and made again
 * when the agent is there: the tracer sees it once.
 *
 * When one process has it, or one of an earlier recording had, the texts that most
 * others have too are known, and to enter costs less than the stops of their loaders
 * alone: they get the agent at their beginning. Processes of one program do about
 * the same: if they made few calls so far, the next one begins with hope again.
 *
 * All that also when the recording has ended before the program, which cannot be let go
 * because of the filter: with the agent it makes its calls without stops at least.
 *
 * What an agent that was there from the beginning would know, the hope keeps: where
 * the loader is, what it has mapped, and whether a signal handler may be running.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "record/agent/inside.h"

/*
 * Programs whose processes make fewer calls gain nothing by an agent that is there from the
 * beginning: before any process has had it, and after that.
 */
#define MANY_CALLS_FIRST 30u
#define MANY_CALLS 12u

/* Programs. */

struct program_key {
	uint64_t dev, ino;
};

static struct agent_program *program_of(struct agent *a, const struct tracee *t)
{
	struct program_key key;
	char name[64];
	struct stat st;
	void **slot;

	(void)snprintf(name, sizeof(name), "/proc/%d/exe", (int)t->pid);
	if (fstatat(AT_FDCWD, name, &st, AT_STATX_DONT_SYNC) < 0)
		return NULL;
	key = (struct program_key){ st.st_dev, st.st_ino };
	slot = map_slot(&a->programs, &key, sizeof(key));
	if (!*slot)
		*slot = xcalloc(1, sizeof(struct agent_program));
	return *slot;
}

void agent_program_note(struct agent_program *p, uint64_t nr_calls)
{
	if (!p)
		return;
	p->nr_calls = p->is_known ? (p->nr_calls + nr_calls) / 2 : nr_calls;
	p->is_known = true;
}

void agent_programs_release(struct agent *a)
{
	MAP_EACH (&a->programs, e)
		free(e->value);
	map_release(&a->programs);
}

static bool knows_places(const struct agent *a)
{
	return a->nr_images || (a->store && !site_store_is_empty(a->store));
}

static bool gains_at_once(const struct agent *a, const struct agent_program *p)
{
	if (!p)
		return false;
	if (!knows_places(a))
		return p->nr_calls >= MANY_CALLS_FIRST;
	return !p->is_known || p->nr_calls >= MANY_CALLS;
}

bool agent_will_enter(const struct tracer *tr)
{
	return tr->agent && (!tr->agent->after_calls || knows_places(tr->agent));
}

/* Hopes. */

static void drop_hope(struct tracee *t)
{
	free(t->hope);
	t->hope = NULL;
}

void agent_hope_end(struct tracee *t)
{
	if (t->hope)
		agent_program_note(t->hope->program, t->hope->nr_calls);
	drop_hope(t);
}

void agent_enter_image(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	struct agent_program *program;

	drop_hope(t);
	if (!tr->agent || t->own_filter)
		return;
	program = tr->agent->after_calls ? program_of(tr->agent, t) : NULL;
	if (!tr->agent->after_calls || gains_at_once(tr->agent, program)) {
		if (agent_enter_process(tr, t, 0))
			t->agent->space->program = program;
		else
			agent_program_note(program, 0); /* recorded by the tracer alone */
		return;
	}
	t->hope = xcalloc(1, sizeof(*t->hope));
	t->hope->program = program;
	t->hope->first_ip = ip;
}

void agent_hope_copy(struct tracee *parent, struct tracee *t)
{
	if (!parent->hope || t->hope)
		return;
	/* To enter one is to open files there, and the other one would find their numbers taken. */
	if (t->pid != parent->pid && parent->clone_flags & CLONE_FILES) {
		agent_hope_end(parent);
		return;
	}
	if (t->space == parent->space)
		return;
	t->hope = xmalloc(sizeof(*t->hope));
	memcpy(t->hope, parent->hope, sizeof(*t->hope));
	t->hope->nr_calls = 0;
	t->hope->program = NULL;
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

static bool may_enter(const struct tracee *t)
{
	return t->hope && !t->own_filter && !t->kept.call;
}

/* Its hope ends either way. */
static void enter_late(struct tracer *tr, struct tracee *t, uint64_t syscall)
{
	if (agent_enter_process(tr, t, syscall)) {
		t->agent->space->program = t->hope->program;
		t->agent->space->nr_calls = t->hope->nr_calls;
		drop_hope(t);
	}
	agent_hope_end(t);
}

void agent_after_call(struct tracer *tr, struct tracee *t, const struct outcome *o, uint64_t ip)
{
	if (t->agent)
		t->agent->space->nr_calls++;
	if (!t->hope || ++t->hope->nr_calls < tr->agent->after_calls || !may_enter(t) ||
	    interrupts_is_restart(o->err) || o->err == EINTR ||
	    !remote_is_syscall(t, ip - SITE_SYSCALL_BYTES))
		return; /* at another call: not between a wait and its signal, which has a mask of its own */
	if (is_alone(tr, t))
		enter_late(tr, t, ip - SITE_SYSCALL_BYTES);
	agent_hope_end(t);
}

bool agent_before_first_thread(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	bool put_back = false;

	if (may_enter(t) && is_alone(tr, t) && remote_is_syscall(t, ip - SITE_SYSCALL_BYTES)) {
		outlive_guard(tr, t, true);
		put_back = remote_put_back(t, ip - SITE_SYSCALL_BYTES);
		outlive_guard(tr, t, false);
		if (put_back)
			enter_late(tr, t, ip - SITE_SYSCALL_BYTES);
	}
	agent_hope_end(t);
	return put_back;
}
