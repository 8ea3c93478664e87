/* SPDX-License-Identifier: MIT */
#include "record/session_sources.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "record/creds.h"

const struct source *const sources[] = {
#define SOURCE(name) &source_##name,
#include "record/sources.def"
#undef SOURCE
	NULL
};

/* A source that is open. */
struct fed {
	const struct source *source;
	void *of;
	int stop_fd; /* borrowed: becomes readable when the thread is to end */
	pthread_t thread;
	bool has_thread;
};

#define FED_MAX ARRAY_LEN(sources)

struct session_sources {
	struct fed items[FED_MAX]; /* the first runs the program */
	unsigned int nr;
	int stop_fd;
};

static int open_one(struct session *s, const struct source *source, struct err *err)
{
	struct session_sources *all = s->sources;
	struct fed *f = &all->items[all->nr];
	int r;

	*f = (struct fed){ .source = source, .stop_fd = all->stop_fd };
	r = source->open(s, &f->of, err);
	if (!r)
		all->nr++;
	return r;
}

int session_sources_open(struct session *s, const struct source *runs, struct err *err)
{
	unsigned int i;
	int r;

	s->sources = xcalloc(1, sizeof(*s->sources));
	s->sources->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (s->sources->stop_fd < 0)
		return err_set(err, -errno, "cannot make an eventfd");
	r = open_one(s, runs, err);
	for (i = 0; sources[i] && !r; i++) {
		if (sources[i]->is_wanted && sources[i]->is_wanted(s->o))
			r = open_one(s, sources[i], err);
	}
	return r;
}

int session_sources_describe(struct session *s)
{
	unsigned int i;
	int r = 0;

	for (i = 0; i < s->sources->nr && !r; i++) {
		const struct fed *f = &s->sources->items[i];

		r = f->source->describe ? f->source->describe(f->of) : 0;
	}
	return r;
}

/* True: the thread is to end. */
static bool wait_until(const struct fed *f, uint64_t next_ns)
{
	struct pollfd fds[2] = { { .fd = f->stop_fd, .events = POLLIN },
				 { .fd = f->source->fd ? f->source->fd(f->of) : -1,
				   .events = POLLIN } };
	uint64_t left_ns = clock_sub_ns(next_ns, clock_monotonic_ns());
	struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_S),
				 .tv_nsec = (long)(left_ns % NS_PER_S) };

	(void)ppoll(fds, ARRAY_LEN(fds), &left, NULL); /* no signal comes here */
	return fds[0].revents;
}

static void *feed_beside(void *p)
{
	const struct fed *f = p;
	uint64_t next_ns = 0;

	creds_give_up();
	do {
		/* What cannot be written ends the recording where the program is run, by the same failure. */
		if (f->source->poll(f->of, &next_ns) < 0)
			break;
	} while (!wait_until(f, next_ns));
	return NULL;
}

static int start_threads(struct session *s, struct err *err)
{
	struct session_sources *all = s->sources;
	sigset_t every, old;
	unsigned int i;
	int r = 0;

	/* Signals are for the thread that runs the program. */
	sigfillset(&every);
	(void)pthread_sigmask(SIG_SETMASK, &every, &old);
	for (i = 1; i < all->nr && !r; i++) {
		struct fed *f = &all->items[i];

		r = -pthread_create(&f->thread, NULL, feed_beside, f);
		f->has_thread = !r;
		if (r)
			err_set(err, r, "cannot start the thread of %s", f->source->name);
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

static void end_threads(struct session *s)
{
	struct session_sources *all = s->sources;
	unsigned int i;

	(void)eventfd_write(all->stop_fd, 1); /* which has room for it */
	for (i = 1; i < all->nr; i++) {
		if (all->items[i].has_thread)
			(void)pthread_join(all->items[i].thread, NULL);
		all->items[i].has_thread = false;
	}
}

int session_sources_run(struct session *s, struct err *err)
{
	const struct fed *first = &s->sources->items[0];
	int r = start_threads(s, err);

	if (!r)
		r = first->source->run(first->of, err);
	end_threads(s);
	return r;
}

int session_sources_account(struct session *s)
{
	unsigned int i;
	int r = 0;

	for (i = 0; i < s->sources->nr && !r; i++) {
		const struct fed *f = &s->sources->items[i];

		r = f->source->account ? f->source->account(f->of) : 0;
	}
	return r;
}

void session_sources_close(struct session *s)
{
	struct session_sources *all = s->sources;

	if (!all)
		return;
	while (all->nr) {
		const struct fed *f = &all->items[--all->nr];

		if (f->source->close)
			f->source->close(f->of);
	}
	if (all->stop_fd >= 0)
		(void)close(all->stop_fd);
	free(all);
	s->sources = NULL;
}

void session_begin_process(struct session *s, pid_t pid)
{
	unsigned int i;

	for (i = 1; i < s->sources->nr; i++) {
		const struct fed *f = &s->sources->items[i];

		if (f->source->begin_process)
			f->source->begin_process(f->of, pid);
	}
}

void session_end_process(struct session *s, pid_t pid)
{
	unsigned int i;

	for (i = 1; i < s->sources->nr; i++) {
		const struct fed *f = &s->sources->items[i];

		if (f->source->end_process)
			f->source->end_process(f->of, pid);
	}
}
