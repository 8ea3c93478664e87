/* SPDX-License-Identifier: MIT */
/*
 * Think time of one thread that is another's. A thread that begins waits for its
 * maker's last action: what the maker computed since then has passed, too, when it
 * begins. Who waits for the end of a process waits for its last action: what that did
 * from there on, up to its end, is time that the waiter spends after the edge. And
 * what the first process does after all else is in the exit that ends it (compile.c).
 */
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "compile/emit.h"
#include "order/args.h"

/* Processes that nobody has waited for yet; the oldest are forgotten. */
#define ENDED_MAX 4096

/* What the maker did before it waited for others passed while these acted. */
static void inherit(struct thread *child, const struct think *maker)
{
	child->think.after_ns += maker->after_ns;
	child->inherited = true;
}

/* Whether it has begun already or not; 0: none. */
static uint32_t child_of(const struct event *ev)
{
	switch ((int)ev->row->id) {
	case SC_fork:
	case SC_vfork:
	case SC_clone:
	case SC_clone_backwards:
	case SC_clone3:
		return !ev->outcome.err && ev->outcome.ret > 0 && ev->outcome.ret <= INT32_MAX
			       ? (uint32_t)ev->outcome.ret
			       : 0;
	}
	return 0;
}

/* In the middle of the call that makes it; what the maker was held before that is told with it. */
void passing_at_start(struct compiler *c, struct thread *t, const struct event *ev)
{
	uint32_t maker = ev->row->id == EV_thread_start && event_number(ev, "how") == START_CLONE
				 ? (uint32_t)event_number(ev, "parent")
				 : 0;

	for (size_t i = 0; maker && i < c->alive.len; i++) {
		const struct thread *other = &c->threads[c->alive.items[i]];
		struct think think = other->think;

		if (other->tid != maker || other == t || t->inherited)
			continue;
		think_arrive(&think, ev);
		inherit(t, &think);
	}
}

void passing_to_child(struct compiler *c, const struct thread *maker, const struct event *ev)
{
	struct think think = maker->think;
	uint32_t tid = child_of(ev);

	if (!tid)
		return;
	think_arrive(&think, ev);
	for (size_t i = 0; i < c->begun.len; i++) {
		if (c->begun.items[i].tid == tid)
			c->begun.items[i].inherited_ns = think.after_ns;
	}
	for (size_t i = 0; i < c->alive.len; i++) {
		struct thread *t = &c->threads[c->alive.items[i]];

		/* Once it has acted, it is too late. */
		if (t->tid == tid && t != maker && !t->inherited && !t->has_last)
			inherit(t, &think);
	}
}

static struct ended *ended_of(struct compiler *c, uint32_t pid)
{
	for (size_t i = 0; i < c->ended.len; i++) {
		if (c->ended.items[i].pid == pid)
			return &c->ended.items[i];
	}
	return NULL;
}

static struct ended *add_ended(struct compiler *c, uint32_t pid)
{
	struct ended e = { .pid = pid };

	if (c->ended.len == ENDED_MAX) {
		c->ended.len /= 2;
		memmove(c->ended.items, c->ended.items + c->ended.len,
			c->ended.len * sizeof(*c->ended.items));
	}
	VEC_PUSH(&c->ended, e);
	return &c->ended.items[c->ended.len - 1];
}

void passing_note_end(struct compiler *c, const struct thread *t)
{
	struct ended *e = ended_of(c, t->pid);

	if (!e)
		e = add_ended(c, t->pid);
	if (t->has_last && t->last.exit_ns > e->last_ns)
		e->last_ns = t->last.exit_ns;
	if (t->tid != t->pid)
		return;
	e->end_ns = t->think.since_ns;
	e->computed_ns = t->think.after_ns; /* as in inherit() */
}

/* Since the last action of any of its threads, as far as the first of them did not wait. */
static uint64_t tail_ns(const struct ended *e)
{
	uint64_t ns = clock_sub_ns(e->end_ns, e->last_ns);

	return ns < e->computed_ns ? ns : e->computed_ns;
}

void passing_to_waiter(struct compiler *c, struct thread *t, const struct event *ev)
{
	uint64_t waited_ns = clock_sub_ns(ev->exit_ns, ev->enter_ns), ns;
	struct ended *e = NULL;

	if (ev->row->id == SC_wait4 || ev->row->id == SC_waitid || ev->row->id == SC_waitpid)
		e = ended_of(c, event_ended_pid(ev));
	if (!e)
		return;
	ns = tail_ns(e);
	*e = c->ended.items[--c->ended.len];
	/* Who came later has waited for less of it. */
	if (!(ev->flags & (EVENT_NO_TIME | EVENT_NO_DURATION)))
		t->think.after_ns += ns < waited_ns ? ns : waited_ns;
}
