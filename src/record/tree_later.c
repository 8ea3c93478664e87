/* SPDX-License-Identifier: MIT */
/*
 * What a file holds has to be read before the program changes it, not before the
 * program reads it. So large files that are opened to be read, or run, are put into a
 * queue, and a call after which one of them may change waits for that one.
 *
 *   tracer: add --> queue --> thread: read, hash, keep --> done --> tracer: record
 *
 * The thread has a feed of its own. What it has kept is handed over before the tracer
 * learns of it, so the record follows it in the file. Small files are read at once:
 * they take no time that counts, and what the program reads of them is known then.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "record/tree_inside.h"

#define LATER_MIN_BYTES ((uint64_t)64 << 10)
/* Each has a descriptor open, of which there may be few. */
#define LATER_MAX 32u
#define LATER_SHARE 8

struct later_file {
	struct later_file *next;
	struct tree_file file;
	bool is_read; /* or could not be */
	struct tree_content content;
	struct arena arena; /* of the content */
	int r;
};

struct tree_later {
	struct trace_writer *writer;
	bool runs; /* the thread, and with it all below */
	pthread_t thread;
	struct trace_feed *feed; /* the thread's */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t added, ended;
	struct later_file *queue, **queue_end;
	struct later_file *current; /* is being read */
	struct later_file *done, **done_end;
	bool stop;

	unsigned int nr_left, nr_most; /* in any of these; the tracer's */
	atomic_bool has_done; /* a hint: there are some, or will be seen to be soon */
};

static void free_file(struct later_file *f)
{
	if (f->file.fd >= 0)
		(void)close(f->file.fd); /* only read from */
	arena_release(&f->arena);
	free(f);
}

static struct later_file *take_first(struct later_file **list, struct later_file ***end)
{
	struct later_file *f = *list;

	if (f)
		*list = f->next;
	if (!*list)
		*end = list;
	return f;
}

static void put_last(struct later_file ***end, struct later_file *f)
{
	f->next = NULL;
	**end = f;
	*end = &f->next;
}

/* By the thread, or by the tracer in its stead. */
static void read_file(struct later_file *f, struct trace_feed *feed)
{
	struct tree_keeper k = { .feed = feed, .arena = &f->arena };

	f->is_read = tree_keep_content(&k, &f->file, &f->content);
	f->r = k.r;
	(void)close(f->file.fd); /* only read from */
	f->file.fd = -1;
}

static void *later_main(void *arg)
{
	struct tree_later *l = arg;

	creds_give_up_all();
	pthread_mutex_lock(&l->lock);
	for (;;) {
		while (!l->queue && !l->stop)
			pthread_cond_wait(&l->added, &l->lock);
		l->current = take_first(&l->queue, &l->queue_end);
		if (!l->current)
			break;
		pthread_mutex_unlock(&l->lock);

		read_file(l->current, l->feed);
		if (!l->current->r)
			l->current->r = trace_feed_flush(l->feed);

		pthread_mutex_lock(&l->lock);
		put_last(&l->done_end, l->current);
		l->current = NULL;
		atomic_store_explicit(&l->has_done, true, memory_order_relaxed);
		pthread_cond_broadcast(&l->ended);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

struct tree_later *tree_later_new(struct trace_writer *writer)
{
	struct tree_later *l = xcalloc(1, sizeof(*l));
	struct rlimit limit;

	l->writer = writer;
	l->nr_most = LATER_MAX;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / LATER_SHARE < LATER_MAX)
		l->nr_most = (unsigned int)(limit.rlim_cur / LATER_SHARE);
	l->queue_end = &l->queue;
	l->done_end = &l->done;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->added, NULL);
	pthread_cond_init(&l->ended, NULL);
	return l;
}

/* Signals are for the tracer's thread. False: there is no thread. */
static bool start(struct tree_later *l)
{
	sigset_t all, old;

	if (l->runs)
		return true;
	if (!l->feed)
		l->feed = trace_writer_add_feed(l->writer);
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	l->runs = !pthread_create(&l->thread, NULL, later_main, l);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return l->runs;
}

void tree_later_free(struct tree_later *l)
{
	struct later_file *f;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	while ((f = take_first(&l->queue, &l->queue_end)))
		free_file(f);
	pthread_cond_signal(&l->added);
	pthread_mutex_unlock(&l->lock);
	if (l->runs)
		pthread_join(l->thread, NULL);
	while ((f = take_first(&l->done, &l->done_end)))
		free_file(f);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->added);
	pthread_cond_destroy(&l->ended);
	free(l);
}

bool tree_later_add(struct tree *t, const struct tree_file *file)
{
	struct tree_later *l = t->later;
	struct later_file *f;

	if (!l || file->st.stx_size < LATER_MIN_BYTES || l->nr_left >= l->nr_most || !start(l))
		return false;
	f = xcalloc(1, sizeof(*f));
	f->file = *file;
	arena_init(&f->arena);
	l->nr_left++;
	pthread_mutex_lock(&l->lock);
	put_last(&l->queue_end, f);
	pthread_cond_signal(&l->added);
	pthread_mutex_unlock(&l->lock);
	return true;
}

bool tree_later_is_busy(const struct tree *t)
{
	return t->later && t->later->nr_left;
}

static void write_file(struct tree *t, struct later_file *f)
{
	t->later->nr_left--;
	t->r = t->r ? t->r : f->r;
	tree_write_content(t, f->file.noted, &f->file.st, &f->content, f->is_read);
	free_file(f);
}

void tree_later_collect(struct tree *t)
{
	struct tree_later *l = t->later;
	struct later_file *f;

	if (!l || !atomic_load_explicit(&l->has_done, memory_order_relaxed))
		return;
	do {
		pthread_mutex_lock(&l->lock);
		f = take_first(&l->done, &l->done_end);
		if (!f)
			atomic_store_explicit(&l->has_done, false, memory_order_relaxed);
		pthread_mutex_unlock(&l->lock);
		if (f)
			write_file(t, f);
	} while (f);
}

static bool is_of(const struct later_file *f, const struct statx *st)
{
	return tree_same_object(&f->file.st, st);
}

/* Out of the queue; NULL: it is not there. */
static struct later_file *take_of(struct tree_later *l, const struct statx *st)
{
	struct later_file **at, *f;

	for (at = &l->queue; (f = *at); at = &f->next) {
		if (!is_of(f, st))
			continue;
		*at = f->next;
		if (!f->next)
			l->queue_end = at;
		return f;
	}
	return NULL;
}

bool tree_later_has(const struct tree *t, const struct statx *st)
{
	struct tree_later *l = t->later;
	const struct later_file *f;
	bool has;

	if (!tree_later_is_busy(t))
		return false;
	pthread_mutex_lock(&l->lock);
	has = l->current && is_of(l->current, st);
	for (f = l->queue; f && !has; f = f->next)
		has = is_of(f, st);
	pthread_mutex_unlock(&l->lock);
	return has;
}

void tree_later_need(struct tree *t, const struct statx *st)
{
	struct tree_later *l = t->later;
	struct later_file *f;

	if (!tree_later_is_busy(t))
		return;
	pthread_mutex_lock(&l->lock);
	f = take_of(l, st);
	while (l->current && is_of(l->current, st))
		pthread_cond_wait(&l->ended, &l->lock);
	pthread_mutex_unlock(&l->lock);
	if (f) {
		read_file(f, t->feed);
		write_file(t, f);
	}
}

void tree_later_need_all(struct tree *t)
{
	struct tree_later *l = t->later;
	struct later_file *f;

	if (!tree_later_is_busy(t))
		return;
	do {
		pthread_mutex_lock(&l->lock);
		f = take_first(&l->queue, &l->queue_end);
		while (!f && l->current)
			pthread_cond_wait(&l->ended, &l->lock);
		pthread_mutex_unlock(&l->lock);
		if (f) {
			read_file(f, t->feed);
			write_file(t, f);
		}
	} while (f);
	tree_later_collect(t);
}

void tree_read_at_once(struct tree *t)
{
	tree_later_need_all(t);
	tree_later_free(t->later);
	t->later = NULL;
}
