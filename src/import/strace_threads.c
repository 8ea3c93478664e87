/* SPDX-License-Identifier: MIT */
#include "import/strace_threads.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "model/fields.h"
#include "model/kernel_structs.h"

/* Newer than the headers of some systems. */
#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND UINT64_C(0x100000000)
#endif

void strace_threads_init(struct strace_threads *ts, struct import *im)
{
	*ts = (struct strace_threads){ .sink.im = im };
}

/* Processes. */

static struct strace_process *process_new(uint32_t pid)
{
	struct strace_process *p = xcalloc(1, sizeof(*p));

	p->pid = pid;
	p->nr_threads = 1;
	return p;
}

static void process_put(struct strace_process *p)
{
	if (p && !--p->nr_threads)
		free(p);
}

void strace_process_set_action(struct strace_process *p, const struct event *ev)
{
	const struct value *act = &ev->args[1], *handler, *flags;
	uint64_t bit;

	if (ev->args[0].type != VALUE_INT || ev->args[0].u < 1 || ev->args[0].u > 64 ||
	    act->type != VALUE_STRUCT)
		return;
	bit = (uint64_t)1 << (ev->args[0].u - 1);
	handler = value_field(act, FIELD_OF(sigaction, sa_handler));
	flags = value_field(act, FIELD_OF(sigaction, sa_flags));
	p->handled &= ~bit;
	p->restarts &= ~bit;
	if (handler && handler->u > 1) /* SIG_DFL, SIG_IGN */
		p->handled |= bit;
	if (flags && flags->u & SA_RESTART)
		p->restarts |= bit;
}

void strace_process_exec(struct strace_process *p)
{
	p->knows = true;
	p->handled = p->restarts = 0;
}

/* Threads. */

static void thread_clear(struct strace_thread *t)
{
	size_t i;

	process_put(t->proc);
	for (i = 0; i < t->waiting.len; i++)
		free(t->waiting.items[i].text);
	VEC_RELEASE(&t->waiting);
	VEC_RELEASE(&t->held);
	arena_release(&t->arena);
	buf_release(&t->text);
}

void strace_threads_release(struct strace_threads *ts)
{
	MAP_EACH (&ts->by_tid, e) {
		thread_clear(e->value);
		free(e->value);
	}
	map_release(&ts->by_tid);
	process_put(ts->shared);
}

struct strace_thread *strace_threads_find(struct strace_threads *ts, uint32_t tid)
{
	if (ts->last && ts->last->tid == tid)
		return ts->last;
	return map_get(&ts->by_tid, &tid, sizeof(tid));
}

static struct strace_thread *thread_add(struct strace_threads *ts, uint32_t tid)
{
	struct strace_thread *t = xcalloc(1, sizeof(*t));

	t->tid = tid;
	arena_init(&t->arena);
	*map_slot(&ts->by_tid, &tid, sizeof(tid)) = t;
	return t;
}

static int begin(struct strace_threads *ts, struct strace_thread *t, uint32_t parent,
		 uint64_t flags, enum start_how how, uint64_t now_ns, struct err *err)
{
	struct value args[4] = { value_uint(parent), value_uint(flags) };

	t->started = true;
	t->last_ns = now_ns;
	args[3] = value_int(how);
	return strace_threads_put_now(ts, t, EV_thread_start, args, 4, now_ns, err);
}

/* The thread is what a clone with these flags made of its maker. */
static int begin_cloned(struct strace_threads *ts, struct strace_thread *t,
			const struct strace_thread *maker, uint64_t flags, uint64_t now_ns,
			struct err *err)
{
	if (flags & CLONE_THREAD) {
		t->proc = maker->proc;
		t->proc->nr_threads++;
		t->ppid = maker->ppid;
	} else {
		t->proc = process_new(t->tid);
		t->proc->knows = maker->proc->knows;
		if (!(flags & CLONE_CLEAR_SIGHAND)) {
			t->proc->handled = maker->proc->handled;
			t->proc->restarts = maker->proc->restarts;
		}
		memcpy(t->proc->fds, maker->proc->fds, sizeof(t->proc->fds));
		t->ppid = flags & CLONE_PARENT ? maker->ppid : maker->proc->pid;
	}
	return begin(ts, t, maker->tid, flags, START_CLONE, now_ns, err);
}

/* Whether two clones would make something different of a new thread. */
static bool makers_differ(const struct strace_thread *a, const struct strace_thread *b)
{
	return a->proc != b->proc || a->clone_flags != b->clone_flags;
}

/* The clone that may have made a thread nobody announced. NULL: none, or (*ret_doubt) one of several. */
static struct strace_thread *find_maker(struct strace_threads *ts, bool *ret_doubt)
{
	struct strace_thread *maker = NULL;

	*ret_doubt = false;
	MAP_EACH (&ts->by_tid, e) {
		struct strace_thread *t = e->value;

		if (!t->unfinished || !t->makes_thread || t->made || !t->proc)
			continue;
		if (maker && makers_differ(maker, t)) {
			*ret_doubt = true;
			return NULL;
		}
		maker = maker ? maker : t;
	}
	return maker;
}

/* The process of a thread that nobody made. */
static struct strace_process *process_from_nowhere(struct strace_threads *ts, uint32_t tid)
{
	if (!ts->one_process)
		return process_new(tid);
	if (!ts->shared)
		ts->shared = process_new(tid);
	ts->shared->nr_threads++;
	return ts->shared;
}

struct strace_thread *strace_threads_get(struct strace_threads *ts, uint32_t tid, uint64_t now_ns,
					 enum start_how how, int *ret_r, struct err *err)
{
	struct strace_thread *t = strace_threads_find(ts, tid), *maker;
	bool doubt;

	*ret_r = 0;
	if (t) {
		ts->last = t;
		return t;
	}
	maker = find_maker(ts, &doubt);
	ts->last = t = thread_add(ts, tid);
	if (maker) {
		maker->made = tid;
		*ret_r = begin_cloned(ts, t, maker, maker->clone_flags, now_ns, err);
	} else if (!doubt) {
		t->proc = process_from_nowhere(ts, tid);
		t->proc->knows |= how == START_LAUNCH;
		*ret_r = begin(ts, t, 0, 0, how, now_ns, err);
	}
	return t;
}

int strace_threads_cloned(struct strace_threads *ts, struct strace_thread *maker, uint32_t child,
			  uint64_t flags, uint64_t now_ns, struct err *err)
{
	struct strace_thread *t = strace_threads_find(ts, child);
	bool waited = t && !t->proc;
	int r;

	/* It may have come, and gone, before the clone's end was told. */
	if ((t && t->proc) || maker->made == child || !ts->follows)
		return 0;
	if (!t)
		t = thread_add(ts, child);
	r = begin_cloned(ts, t, maker, flags, now_ns, err);
	return r < 0 ? r : waited;
}

int strace_threads_restart(struct strace_threads *ts, struct strace_thread *leader, uint32_t former,
			   uint64_t now_ns, struct err *err)
{
	int r = import_sink_end_thread(&ts->sink, leader->tid, err);

	return r ? r : begin(ts, leader, former, 0, START_CLONE, now_ns, err);
}

int strace_threads_settle(struct strace_threads *ts, struct strace_thread *t, uint64_t now_ns,
			  struct err *err)
{
	t->proc = process_new(t->tid);
	return begin(ts, t, 0, 0, START_ATTACH, now_ns, err);
}

/* Events. */

static int append(struct strace_threads *ts, struct strace_thread *t, struct event *ev,
		  struct err *err)
{
	ev->pid = t->proc->pid;
	ev->tid = t->tid;
	ev->ppid = t->ppid;
	if (ts->no_time)
		ev->flags |= EVENT_NO_TIME;
	/* A thread does one thing after the other, whatever the rounding of its times. */
	if (ev->enter_ns < t->last_ns)
		ev->enter_ns = t->last_ns;
	if (ev->exit_ns < ev->enter_ns)
		ev->exit_ns = ev->enter_ns;
	t->last_ns = ev->exit_ns;
	return import_sink_event(&ts->sink, ev, err);
}

void strace_threads_hold(struct strace_thread *t, const struct event *ev)
{
	struct event *copy = arena_alloc(&t->arena, sizeof(*copy));

	event_copy(ev, &t->arena, copy);
	VEC_PUSH(&t->held, copy);
}

int strace_threads_put(struct strace_threads *ts, struct strace_thread *t, struct event *ev,
		       struct err *err)
{
	if (!t->held.len)
		return append(ts, t, ev, err);
	strace_threads_hold(t, ev);
	return 0;
}

int strace_threads_put_now(struct strace_threads *ts, struct strace_thread *t, enum row_id id,
			   const struct value *args, unsigned int nr, uint64_t now_ns,
			   struct err *err)
{
	struct event ev = { .row = row_by_id(id), .enter_ns = now_ns, .exit_ns = now_ns };

	memcpy(ev.args, args, nr * sizeof(*args));
	return strace_threads_put(ts, t, &ev, err);
}

int strace_threads_release_held(struct strace_threads *ts, struct strace_thread *t,
				bool interrupted, struct err *err)
{
	size_t i;
	int r = 0;

	for (i = 0; i < t->held.len && !r; i++) {
		struct event *ev = t->held.items[i];

		if (!i && interrupted) {
			ev->outcome.err = EINTR;
			ev->flags |= EVENT_INTERRUPTED;
		} else if (!i) {
			ev->flags |= EVENT_RESTARTED;
		}
		r = append(ts, t, ev, err);
	}
	t->held.len = 0;
	arena_reset(&t->arena);
	return r;
}

int strace_threads_end(struct strace_threads *ts, struct strace_thread *t, struct err *err)
{
	uint32_t tid = t->tid;
	int r = import_sink_end_thread(&ts->sink, tid, err);

	if (ts->last == t)
		ts->last = NULL;
	(void)map_remove(&ts->by_tid, &tid, sizeof(tid));
	thread_clear(t);
	free(t);
	return r;
}
