/* SPDX-License-Identifier: MIT */
#include "order/threads.h"

#include <stdlib.h>

#include "order/args.h"

void threads_init(struct threads *ts)
{
	*ts = (struct threads){ 0 };
}

static void free_thread(struct thread *th)
{
	users_release(&th->pending);
	users_release(&th->at_let_go);
	free(th);
}

static void free_process(struct process *p)
{
	users_release(&p->ended);
	free(p);
}

void threads_release(struct threads *ts)
{
	MAP_EACH (&ts->by_tid, e)
		free_thread(e->value);
	MAP_EACH (&ts->by_pid, e)
		free_process(e->value);
	map_release(&ts->by_tid);
	map_release(&ts->by_pid);
	threads_init(ts);
}

struct thread *threads_find(struct threads *ts, uint32_t tid)
{
	struct thread **cached = &ts->cache[tid % THREADS_CACHED], *th = *cached;

	if (th && th->tid == tid)
		return th;
	th = map_get(&ts->by_tid, &tid, sizeof(tid));
	if (th)
		*cached = th;
	return th;
}

struct process *threads_find_process(struct threads *ts, uint32_t pid)
{
	return map_get(&ts->by_pid, &pid, sizeof(pid));
}

static void unlist_process(struct threads *ts, struct process *p)
{
	if (!p->listed)
		return;
	*(p->older ? &p->older->newer : &ts->oldest) = p->newer;
	*(p->newer ? &p->newer->older : &ts->newest) = p->older;
	p->older = p->newer = NULL;
	p->listed = false;
	ts->nr_ended--;
}

static void list_process(struct threads *ts, struct process *p)
{
	p->older = ts->newest;
	*(ts->newest ? &ts->newest->newer : &ts->oldest) = p;
	ts->newest = p;
	p->listed = true;
	if (++ts->nr_ended <= PROCESSES_ENDED_MAX)
		return;
	p = ts->oldest;
	unlist_process(ts, p);
	map_remove(&ts->by_pid, &p->pid, sizeof(p->pid));
	free_process(p);
}

static void leave_process(struct threads *ts, struct thread *th)
{
	struct process *p = th->process;

	if (!p)
		return;
	*th->prev_sibling = th->next_sibling;
	if (th->next_sibling)
		th->next_sibling->prev_sibling = th->prev_sibling;
	th->process = NULL;
	if (!p->threads)
		list_process(ts, p);
}

static void join_process(struct threads *ts, struct thread *th, uint32_t pid)
{
	struct process *p, **slot;

	leave_process(ts, th);
	slot = (struct process **)map_slot(&ts->by_pid, &pid, sizeof(pid));
	if (!*slot) {
		*slot = xcalloc(1, sizeof(**slot));
		(*slot)->pid = pid;
	}
	p = *slot;
	/* The number belongs to another process now. */
	if (p->listed)
		users_clear(&p->ended);
	unlist_process(ts, p);
	th->process = p;
	th->next_sibling = p->threads;
	th->prev_sibling = &p->threads;
	if (p->threads)
		p->threads->prev_sibling = &th->next_sibling;
	p->threads = th;
}

static struct thread *get_thread(struct threads *ts, uint32_t tid)
{
	struct thread *th = threads_find(ts, tid);

	if (th)
		return th;
	th = xcalloc(1, sizeof(*th));
	th->tid = tid;
	th->last = th->maker = user_nobody();
	th->waiting.thread = th;
	*map_slot(&ts->by_tid, &tid, sizeof(tid)) = th;
	ts->cache[tid % THREADS_CACHED] = th;
	return th;
}

struct thread *threads_of(struct threads *ts, const struct order_input *in)
{
	struct thread *th = get_thread(ts, in->ev->tid);

	if (in->ev->pid && (!th->process || th->process->pid != in->ev->pid))
		join_process(ts, th, in->ev->pid);
	th->last = in->has_last ? user_from_ref(&in->last) : user_nobody();
	return th;
}

void thread_done(const struct thread *th, struct users *ret)
{
	users_copy(ret, &th->pending);
	users_add(ret, &th->maker);
	users_add(ret, &th->last);
}

void thread_before(const struct thread *th, const struct order_input *in, struct users *ret)
{
	struct user self;

	if (!in->action) {
		thread_done(th, ret);
		return;
	}
	self = user_from_ref(&in->self);
	*ret = (struct users){ 0 };
	users_add(ret, &self);
}

static void inherit(struct thread *child, const struct thread *maker, const struct order_input *in)
{
	child->begun = true;
	if (in && in->action) {
		child->maker = user_from_ref(&in->self);
		return;
	}
	child->maker = user_is(&maker->last) ? maker->last : maker->maker;
	users_add_all(&child->pending, &maker->pending);
	/* The maker is itself new: what made it made this one too. */
	if (user_is(&maker->last))
		users_add(&child->pending, &maker->maker);
}

void threads_begin(struct threads *ts, struct thread *th, const struct order_input *in)
{
	uint32_t child_tid = in->facts->child_tid;
	struct thread *other;

	if (in->ev->row->id == EV_thread_start) {
		other = threads_find(ts, (uint32_t)event_number(in->ev, "parent"));
		if (other && other != th && !th->begun &&
		    event_number(in->ev, "how") == START_CLONE)
			inherit(th, other, NULL);
	} else if (in->ev->row->id == EV_exec) {
		/* The leader goes on where another thread has been. */
		other = threads_find(ts, (uint32_t)event_number(in->ev, "former_tid"));
		if (other && other != th)
			inherit(th, other, NULL);
	} else if (child_tid && child_tid != th->tid) {
		other = get_thread(ts, child_tid);
		if (!other->begun)
			inherit(other, th, in);
	}
}

void threads_act(struct thread *th, const struct order_input *in, const struct sink *sink)
{
	sink_ask(sink, &th->maker, RULE_thread);
	th->maker = user_nobody();
	if (th->pending.nr) {
		sink_ask_all(sink, &th->pending, RULE_sync_wake);
		users_clear(&th->pending);
	}
	th->last = user_from_ref(&in->self);
	th->last_seq = in->ev->seq;
}

void threads_end(struct threads *ts, struct thread *th)
{
	struct users done;

	if (th->process) {
		thread_done(th, &done);
		users_add_all(&th->process->ended, &done);
		users_release(&done);
	}
	leave_process(ts, th);
	if (ts->cache[th->tid % THREADS_CACHED] == th)
		ts->cache[th->tid % THREADS_CACHED] = NULL;
	map_remove(&ts->by_tid, &th->tid, sizeof(th->tid));
	free_thread(th);
}
