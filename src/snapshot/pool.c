/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "snapshot/contain.h"
#include "snapshot/inside.h"

/* Fewer are not worth a thread. */
#define NR_PER_THREAD 16
#define POLL_NS (50 * NS_PER_MS)

struct pool {
	const struct pool_work *work;
	atomic_size_t next, nr_done;
	atomic_bool failed;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t ended;
	unsigned int nr_running;
	int r;
	struct err err;
	struct snapshot_result counts;
};

static unsigned int pool_jobs(unsigned int asked)
{
	cpu_set_t set;
	int nr = 1;

	if (!asked && !sched_getaffinity(0, sizeof(set), &set))
		nr = CPU_COUNT(&set);
	if (asked)
		nr = asked > SNAPSHOT_JOBS_MAX ? SNAPSHOT_JOBS_MAX : (int)asked;
	return nr > SNAPSHOT_JOBS_MAX ? SNAPSHOT_JOBS_MAX : (unsigned int)nr;
}

void worker_init(struct worker *w, struct creation *c)
{
	*w = (struct worker){ .c = c, .parent_fd = -1 };
	w->want = xmalloc(BLOB_MAX_BYTES);
	w->have = xmalloc(BLOB_MAX_BYTES);
}

void worker_release(struct worker *w)
{
	if (w->parent_fd >= 0)
		(void)close(w->parent_fd); /* O_PATH: nothing to fail */
	free(w->want);
	free(w->have);
}

int worker_check_stop(struct worker *w)
{
	const volatile sig_atomic_t *stop = w->c->o->stop;

	if (stop && *stop)
		return err_set(&w->err, -EINTR, "stopped before the end");
	if (w->failed && atomic_load_explicit(w->failed, memory_order_relaxed))
		return err_set(&w->err, -ECANCELED, "another thread has failed");
	return 0;
}

int worker_fail(struct worker *w, const struct snapshot_entry *e, int r, const char *what)
{
	return err_set(&w->err, r, "cannot %s %s/%s", what, w->c->dir, e->path);
}

int worker_parent(struct worker *w, const struct snapshot_entry *e)
{
	const struct snapshot_entry *parent = &w->c->entries[e->parent];
	int fd;

	if (w->parent_fd >= 0 && w->parent == e->parent)
		return w->parent_fd;
	fd = contain_open(w->c->dir_fd, parent->path, O_PATH | O_DIRECTORY, w->c->o->cross_mounts);
	if (fd < 0)
		return worker_fail(w, parent, fd, "open");
	if (w->parent_fd >= 0)
		(void)close(w->parent_fd); /* O_PATH: nothing to fail */
	w->parent_fd = fd;
	w->parent = e->parent;
	return fd;
}

static void add_counts(struct snapshot_result *to, const struct snapshot_result *c)
{
	to->nr_made += c->nr_made;
	to->nr_repaired += c->nr_repaired;
	to->nr_same += c->nr_same;
	to->nr_removed += c->nr_removed;
	to->nr_trusted += c->nr_trusted;
	to->bytes_written += c->bytes_written;
	to->nr_lost += c->nr_lost;
	to->nr_too_large += c->nr_too_large;
	to->nr_stand_ins += c->nr_stand_ins;
	to->nr_owners += c->nr_owners;
	to->nr_setid += c->nr_setid;
	to->nr_xattrs += c->nr_xattrs;
	to->nr_foreign += c->nr_foreign;
}

static int run_all(struct pool *p, struct worker *w)
{
	const struct pool_work *work = p->work;
	int r = 0;

	w->failed = &p->failed;
	while (!r) {
		size_t nr = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);

		if (nr >= work->nr)
			return 0;
		r = worker_check_stop(w);
		if (!r)
			r = work->run(w, work->order ? work->order[nr] : (uint32_t)nr);
		atomic_fetch_add_explicit(&p->nr_done, 1, memory_order_relaxed);
	}
	return r;
}

static void *thread_main(void *arg)
{
	struct pool *p = arg;
	struct worker w;
	int r;

	worker_init(&w, p->work->c);
	r = run_all(p, &w);
	(void)pthread_mutex_lock(&p->lock); /* never held by its own thread */
	add_counts(&p->counts, &w.counts);
	/* Those that only stopped because another had failed have nothing to tell. */
	if (r < 0 && (!p->r || p->r == -ECANCELED)) {
		p->r = r;
		p->err = w.err;
	}
	if (r < 0)
		atomic_store(&p->failed, true);
	p->nr_running--;
	(void)pthread_cond_signal(&p->ended); /* cannot fail */
	(void)pthread_mutex_unlock(&p->lock); /* ours */
	worker_release(&w);
	return NULL;
}

/* Shows how far they are until the last one ends. */
static void watch(struct pool *p, struct progress *progress)
{
	size_t shown = 0, done;
	struct timespec until;

	(void)pthread_mutex_lock(&p->lock); /* never held by its own thread */
	while (p->nr_running) {
		until = clock_timespec_from_ns(clock_add_ns(clock_realtime_ns(), POLL_NS));
		(void)pthread_cond_timedwait(&p->ended, &p->lock,
					     &until); /* or it is time to look */
		done = atomic_load_explicit(&p->nr_done, memory_order_relaxed);
		progress_add(progress, done - shown);
		shown = done;
	}
	(void)pthread_mutex_unlock(&p->lock); /* ours */
}

static void run_threads(struct pool *p, unsigned int nr)
{
	pthread_t threads[SNAPSHOT_JOBS_MAX];
	sigset_t all, old;
	unsigned int i, nr_started = 0;

	/* Signals are for the thread that called. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old); /* with these words it cannot fail */
	for (i = 0; i < nr; i++) {
		(void)pthread_mutex_lock(&p->lock); /* never held by its own thread */
		p->nr_running++;
		(void)pthread_mutex_unlock(&p->lock); /* ours */
		if (!pthread_create(&threads[nr_started], NULL, thread_main, p)) {
			nr_started++;
			continue;
		}
		/* Fewer do as well; but one must. */
		if (!i) {
			(void)thread_main(p);
			break;
		}
		(void)pthread_mutex_lock(&p->lock); /* as above */
		p->nr_running--;
		(void)pthread_mutex_unlock(&p->lock); /* ours */
		break;
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* as above */
	watch(p, p->work->shown ? p->work->c->o->progress : NULL);
	for (i = 0; i < nr_started; i++)
		(void)pthread_join(threads[i], NULL); /* a thread of ours, joined once */
}

int pool_run(const struct pool_work *work, struct err *err)
{
	struct pool p = { .work = work };
	size_t nr = work->nr / NR_PER_THREAD + 1;
	unsigned int jobs = pool_jobs(work->c->o->jobs);

	if (!work->nr)
		return 0;
	(void)pthread_mutex_init(&p.lock, NULL); /* cannot fail on Linux */
	(void)pthread_cond_init(&p.ended, NULL); /* likewise */
	run_threads(&p, nr < jobs ? (unsigned int)nr : jobs);
	(void)pthread_cond_destroy(&p.ended); /* nobody waits */
	(void)pthread_mutex_destroy(&p.lock); /* nobody holds it */
	if (work->counts)
		add_counts(work->counts, &p.counts);
	if (p.r < 0 && err)
		*err = p.err;
	return p.r;
}

int pool_run_in_order(const struct pool_work *work, struct err *err)
{
	struct worker w;
	size_t i;
	int r = 0;

	worker_init(&w, work->c);
	for (i = 0; i < work->nr && !r; i++) {
		r = worker_check_stop(&w);
		if (!r)
			r = work->run(&w, work->order ? work->order[i] : (uint32_t)i);
		progress_add(work->shown ? work->c->o->progress : NULL, 1);
	}
	if (work->counts)
		add_counts(work->counts, &w.counts);
	if (r < 0 && err)
		*err = w.err;
	worker_release(&w);
	return r;
}
