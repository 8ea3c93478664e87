/* SPDX-License-Identifier: MIT */
/*
 * Threads and processes: who shares which tables, who copies them, when they
 * go. A thread is made by the call of its maker or by its own first event,
 * whichever comes first in effect order: a vfork returns only when the child
 * has ended or become another program.
 */
#include <sched.h>
#include <stdlib.h>

#include "base/banned.h"
#include "fsmodel/process.h"

struct process *process_by_pid(const struct fsmodel *m, uint32_t pid)
{
	return ids_get(&m->tables->processes, pid);
}

static struct process *process_new(struct fsmodel *m, uint32_t pid, struct space *space)
{
	struct process *p = xcalloc(1, sizeof(*p));

	p->pid = pid;
	p->space = space;
	ids_set(&m->tables->processes, pid, p);
	if (pid >= m->tables->next_pid && pid < INT32_MAX)
		m->tables->next_pid = pid + 1;
	return p;
}

static struct thread *thread_new(struct fsmodel *m, struct process *p, uint32_t tid)
{
	struct thread *t = xcalloc(1, sizeof(*t));

	t->tid = tid;
	t->proc = p;
	t->next = p->threads;
	p->threads = t;
	p->nr_threads++;
	ids_set(&m->tables->threads, tid, t);
	if (tid >= m->tables->next_pid && tid < INT32_MAX)
		m->tables->next_pid = tid + 1;
	return t;
}

static void process_unlink(struct call *c, struct fsmodel *m, struct process *p)
{
	space_drop(c, m, p->space);
	if (process_by_pid(m, p->pid) == p)
		ids_remove(&m->tables->processes, p->pid);
	free(p);
}

void thread_free(struct fsmodel *m, struct thread *t)
{
	if (ids_get(&m->tables->threads, t->tid) == t)
		ids_remove(&m->tables->threads, t->tid);
	if (m->tables->last == t)
		m->tables->last = NULL;
	free(t);
}

/*
 * The thread gives up all that it holds; with the last thread the process goes.
 * It is still known by its tid when its maker's call has not been seen.
 */
void thread_end(struct call *c, struct fsmodel *m, struct thread *t, bool keep)
{
	struct process *p = t->proc;
	struct thread **at = &p->threads;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	p->nr_threads--;
	fd_table_drop(c, m, t->files);
	fs_drop(c, m, t->fs);
	if (!p->nr_threads) {
		if (c && c->proc == p)
			c->proc = NULL;
		process_unlink(c, m, p);
	}
	if (c && c->thread == t)
		c->thread = NULL;
	t->proc = NULL;
	t->files = NULL;
	t->fs = NULL;
	t->ended = true;
	if (!keep)
		thread_free(m, t);
}

void process_end(struct call *c, struct process *p)
{
	uint32_t left = p->nr_threads;

	while (left--)
		thread_end(c, c->m, p->threads, false);
}

/* From before the trace, or from nowhere: nothing is known of its descriptors. */
struct thread *thread_from_nowhere(struct fsmodel *m, uint32_t pid, uint32_t tid)
{
	struct process *p = process_by_pid(m, pid);
	struct thread *t;

	if (p && p->threads) {
		struct thread *other = p->threads;

		t = thread_new(m, p, tid);
		t->files = other->files;
		t->files->refs++;
		t->fs = other->fs;
		t->fs->refs++;
		t->cred = other->cred;
		return t;
	}
	t = thread_new(m, process_new(m, pid, space_new()), tid);
	t->files = fd_table_new(true);
	t->fs = xcalloc(1, sizeof(*t->fs));
	t->fs->refs = 1;
	t->fs->umask = 022;
	t->fs->cwd = t->fs->root = m->tables->root;
	m->tables->root->refs += 2;
	t->cred = (struct credentials){ .uid = m->options.uid,
					.gid = m->options.gid,
					.all_powerful = !m->options.uid };
	return t;
}

/* What clone with these flags makes of its caller. */
struct thread *thread_clone(struct call *c, struct thread *maker, uint32_t pid, uint32_t tid,
			    uint64_t flags)
{
	struct fsmodel *m = c->m;
	struct process *p = maker->proc;
	struct thread *t;

	if (!(flags & CLONE_THREAD) && pid != p->pid)
		p = process_new(m, pid,
				flags & CLONE_VM ? space_ref(p->space) : space_fork(p->space));
	t = thread_new(m, p, tid);
	if (flags & CLONE_FILES) {
		t->files = maker->files;
		t->files->refs++;
	} else {
		t->files = fd_table_copy(c, maker->files);
	}
	if (flags & CLONE_FS) {
		t->fs = maker->fs;
		t->fs->refs++;
	} else {
		t->fs = fs_copy(maker->fs);
	}
	t->cred = maker->cred;
	return t;
}

/* Whoever had the tid before has ended without a word. */
void clear_tid(struct call *c, uint32_t tid)
{
	struct thread *old = ids_get(&c->m->tables->threads, tid);

	if (!old)
		return;
	if (old->ended) {
		thread_free(c->m, old);
		return;
	}
	contradict(c, CONTRADICTION_PROCESS, true,
		   "thread %u begins while one of that number lives", tid);
	thread_end(c, c->m, old, false);
}

/* Whoever had the pid before, likewise. */
void clear_pid(struct call *c, uint32_t pid)
{
	struct process *old = process_by_pid(c->m, pid);

	if (!old)
		return;
	contradict(c, CONTRADICTION_PROCESS, true,
		   "process %u begins while one of that number lives", pid);
	process_end(c, old);
}

uint32_t event_pid(const struct event *ev)
{
	return ev->pid ? ev->pid : ev->tid;
}

struct thread *thread_of(struct call *c)
{
	struct tables *tables = c->m->tables;
	const struct event *ev = c->ev;
	struct thread *t = tables->last;
	struct process *parent;

	if (LIKELY(t && t->tid == ev->tid && !t->ended))
		return t;
	t = ids_get(&tables->threads, ev->tid);
	if (t && !t->ended) {
		tables->last = t;
		return t;
	}
	/* A trace that tells no beginnings has threads that just are there. */
	if (t || tables->tells_starts)
		contradict(c, CONTRADICTION_PROCESS, true, "of thread %u, which %s", ev->tid,
			   t ? "has ended" : "nobody made");
	if (t)
		thread_free(c->m, t);
	parent = ev->ppid ? process_by_pid(c->m, ev->ppid) : NULL;
	if (parent && parent->threads && !process_by_pid(c->m, event_pid(ev)))
		t = thread_clone(c, parent->threads, event_pid(ev), ev->tid, 0);
	else
		t = thread_from_nowhere(c->m, event_pid(ev), ev->tid);
	t->started = t->cloned = true;
	tables->last = t;
	return t;
}

/* The whole. */

void tables_init(struct fsmodel *m)
{
	m->tables->next_pid = 1;
	m->tables->root = handle_new(m, tree_root(m));
	rows_init(m->tables->rows);
}

void tables_release(struct fsmodel *m)
{
	struct tables *tables = m->tables;
	VEC(struct thread *) all = { 0 };
	size_t i;

	IDS_EACH (&tables->threads, s)
		VEC_PUSH(&all, (struct thread *)s->value);
	for (i = 0; i < all.len; i++) {
		if (all.items[i]->ended)
			thread_free(m, all.items[i]);
		else
			thread_end(NULL, m, all.items[i], false);
	}
	VEC_RELEASE(&all);
	streams_drop_passed(m);
	handle_unref(NULL, m, tables->root);
	ids_release(&tables->threads);
	ids_release(&tables->processes);
	map_release(&tables->listeners);
	ids_release(&tables->found_opens);
}
