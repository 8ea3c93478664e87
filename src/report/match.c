/* SPDX-License-Identifier: MIT */
#include "report/match.h"

#include <stdlib.h>

#include "base/banned.h"
#include "base/mem.h"
#include "report/run_info.h"
#include "report/thread_ids.h"

const char *const match_way_names[] = { "auto", "origin", "order", "none", NULL };

#define NO_STREAM UINT32_MAX

/* A thread of A, as far as its thread of B has come. */
struct cursor_a {
	struct trace_iter *it;
	struct match_event window[MATCH_WINDOW]; /* a ring */
	bool taken[MATCH_WINDOW];
	unsigned int first, nr;
	bool at_end;
};

/* A thread of B. */
struct thread_b {
	uint32_t stream_a; /* NO_STREAM: none is the same */
	uint64_t left; /* events that have not come yet */
	struct cursor_a *cursor; /* NULL: not begun, or ended */
};

struct matcher {
	struct trace *a;
	enum match_way way;
	struct run_source source;
	struct thread_b *threads; /* by stream of B */
	size_t nr_threads;
};

static void match_by_identity(struct matcher *m, struct trace *b, bool by_tid)
{
	struct thread_ids ta, tb;
	size_t i;

	thread_ids_init(&ta, m->a, by_tid);
	thread_ids_init(&tb, b, by_tid);
	for (i = 0; i < m->nr_threads; i++) {
		if (!thread_ids_find(&ta, &tb, (uint32_t)i, &m->threads[i].stream_a))
			m->threads[i].stream_a = NO_STREAM;
	}
	thread_ids_release(&ta);
	thread_ids_release(&tb);
}

/* The streams of a run that has all of its original's are in the same order. */
static void match_by_place(struct matcher *m)
{
	size_t i;

	for (i = 0; i < m->nr_threads; i++) {
		bool in = i >= m->source.first_stream &&
			  i - m->source.first_stream < m->source.nr_streams;

		m->threads[i].stream_a = in ? (uint32_t)(i - m->source.first_stream) : NO_STREAM;
	}
}

struct matcher *matcher_new(struct trace *a, struct trace *b, enum match_way way)
{
	struct matcher *m = xcalloc(1, sizeof(*m));
	const struct trace_stream_info *infos = trace_streams(b, &m->nr_threads);
	bool tells = run_info_find_source(b, a, &m->source);
	size_t i, nr_a;

	(void)trace_streams(a, &nr_a);
	m->a = a;
	m->way = way;
	if (way == MATCH_AUTO)
		m->way = tells ? MATCH_ORIGIN : MATCH_ORDER;
	m->threads = xcalloc(m->nr_threads + 1, sizeof(*m->threads));
	for (i = 0; i < m->nr_threads; i++)
		m->threads[i].left = infos[i].nr_events;
	if (m->way == MATCH_ORIGIN && tells && m->source.nr_streams == nr_a)
		match_by_place(m);
	else
		match_by_identity(m, b, m->way == MATCH_ORIGIN);
	return m;
}

static void end_cursor(struct thread_b *t)
{
	if (t->cursor)
		trace_iter_close(t->cursor->it);
	free(t->cursor);
	t->cursor = NULL;
}

void matcher_free(struct matcher *m)
{
	size_t i;

	if (!m)
		return;
	for (i = 0; i < m->nr_threads; i++)
		end_cursor(&m->threads[i]);
	free(m->threads);
	free(m);
}

enum match_way matcher_way(const struct matcher *m)
{
	return m->way;
}

static int begin_cursor(struct matcher *m, struct thread_b *t, struct err *err)
{
	struct trace_query q = { .streams = &t->stream_a, .nr_streams = 1, .no_args = true };

	t->cursor = xcalloc(1, sizeof(*t->cursor));
	return trace_iter_open(m->a, &q, &t->cursor->it, err);
}

/* Event n ahead: 1; 0: the thread ends before. */
static int look(struct cursor_a *c, unsigned int n, struct match_event **ret, struct err *err)
{
	while (c->nr <= n && !c->at_end) {
		struct event *ev;
		int r = trace_iter_next(c->it, &ev, err);

		if (r < 0)
			return r;
		c->at_end = !r;
		if (r) {
			unsigned int at = (c->first + c->nr++) % MATCH_WINDOW;

			c->taken[at] = false;
			c->window[at] = (struct match_event){ .row = ev->row,
							      .flags = ev->flags,
							      .seq = ev->seq,
							      .enter_ns = ev->enter_ns,
							      .exit_ns = ev->exit_ns };
		}
	}
	*ret = &c->window[(c->first + n) % MATCH_WINDOW];
	return c->nr > n;
}

static void drop(struct cursor_a *c, unsigned int nr)
{
	c->first = (c->first + nr) % MATCH_WINDOW;
	c->nr -= nr;
}

/* Event n was found: those that nothing can ask for any more are forgotten. */
static void take(struct cursor_a *c, unsigned int n)
{
	c->taken[(c->first + n) % MATCH_WINDOW] = true;
	while (c->nr && c->taken[c->first])
		drop(c, 1);
}

static int find_by_origin(struct matcher *m, struct cursor_a *c, const struct event *b,
			  struct match_event *ret, struct err *err)
{
	uint64_t mask = (UINT64_C(1) << EVENT_SOURCE_SHIFT) - 1;
	struct match_event *a;
	unsigned int n = 0;
	int r;

	if (!b->origin || b->origin >> EVENT_SOURCE_SHIFT != m->source.number)
		return 0;
	while ((r = look(c, n, &a, err)) > 0) {
		if ((a->seq & mask) == (b->origin & mask) &&
		    !c->taken[(c->first + n) % MATCH_WINDOW]) {
			*ret = *a;
			take(c, n);
			return ret->row->id == b->row->id;
		}
		if (++n < MATCH_WINDOW)
			continue;
		/* The older half is given up: a run may leave out what it does not make. */
		n = MATCH_WINDOW / 2;
		drop(c, n);
	}
	return r;
}

static int find_by_order(struct cursor_a *c, const struct event *b, struct match_event *ret,
			 struct err *err)
{
	struct match_event *a;
	unsigned int n;
	int r;

	for (n = 0; n < MATCH_AHEAD; n++) {
		r = look(c, n, &a, err);
		if (r <= 0)
			return r;
		if (a->row->id == b->row->id) {
			*ret = *a;
			drop(c, n + 1);
			return 1;
		}
	}
	return 0;
}

int matcher_find(struct matcher *m, const struct event *b, struct match_event *ret, struct err *err)
{
	struct thread_b *t = &m->threads[b->stream];
	int r = 0;

	if (m->way == MATCH_NONE || t->stream_a == NO_STREAM)
		return 0;
	if (!t->cursor) {
		r = begin_cursor(m, t, err);
		if (r < 0)
			return r;
	}
	r = m->way == MATCH_ORIGIN ? find_by_origin(m, t->cursor, b, ret, err)
				   : find_by_order(t->cursor, b, ret, err);
	if (t->left)
		t->left--;
	if (!t->left || r < 0)
		end_cursor(t);
	return r;
}
