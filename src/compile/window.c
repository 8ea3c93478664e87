/* SPDX-License-Identifier: MIT */
/*
 * In the common case events go straight through from the trace's iterator.
 * Only when somebody peeks is the present event copied, and those that follow
 * it, into nodes that are given out later and used again.
 */
#include "compile/window.h"

#include <stdlib.h>

#include "base/banned.h"
#include "base/mem.h"
#include "compile/texts.h"

/*
 * How far a call may look for one that overlapped it: beyond it, it stays where
 * it is. The search is quadratic in this, for each call that does not fit.
 */
#define AHEAD_MAX 128

struct node {
	struct node *next;
	struct event ev;
	struct arena arena;
};

struct window {
	struct trace *trace;
	struct trace_iter *iter;
	struct texts texts;
	struct node *first, **last; /* events that were read ahead, in effect order */
	size_t nr_ahead;
	struct node *now; /* a copy of the present event, when the iterator has gone on */
	struct event *present;
	struct node *spare;
	bool ended;
};

int window_open(struct trace *t, struct progress *progress, struct window **ret, struct err *err)
{
	struct trace_query q = { .order = TRACE_BY_EFFECT, .progress = progress };
	struct window *w = xcalloc(1, sizeof(*w));
	int r = trace_iter_open(t, &q, &w->iter, err);

	if (r < 0) {
		free(w);
		return r;
	}
	w->trace = t;
	w->last = &w->first;
	*ret = w;
	return 0;
}

static void free_nodes(struct node *n)
{
	while (n) {
		struct node *next = n->next;

		arena_release(&n->arena);
		free(n);
		n = next;
	}
}

void window_close(struct window *w)
{
	if (!w)
		return;
	trace_iter_close(w->iter);
	free_nodes(w->first);
	free_nodes(w->now);
	free_nodes(w->spare);
	texts_release(&w->texts);
	free(w);
}

static struct node *node_new(struct window *w, const struct event *ev)
{
	struct node *n = w->spare;

	if (n) {
		w->spare = n->next;
		arena_reset(&n->arena);
	} else {
		n = xcalloc(1, sizeof(*n));
		arena_init(&n->arena);
	}
	n->next = NULL;
	event_copy(ev, &n->arena, &n->ev);
	return n;
}

static void node_give_back(struct window *w, struct node *n)
{
	n->next = w->spare;
	w->spare = n;
}

static struct node *unlink_first(struct window *w)
{
	struct node *n = w->first;

	w->first = n->next;
	if (!w->first)
		w->last = &w->first;
	w->nr_ahead--;
	n->next = NULL;
	return n;
}

/* Its texts are valid as long as the event itself. */
static int next_of_trace(struct window *w, struct event **ret, struct err *err)
{
	int r = trace_iter_next(w->iter, ret, err);

	if (r > 0)
		texts_load(&w->texts, w->trace, (*ret)->row, (*ret)->args);
	return r;
}

int window_next(struct window *w, struct err *err)
{
	int r;

	if (w->now)
		node_give_back(w, w->now);
	w->now = NULL;
	w->present = NULL;
	if (w->first) {
		w->now = unlink_first(w);
		w->present = &w->now->ev;
	} else {
		r = w->ended ? 0 : next_of_trace(w, &w->present, err);
		if (r <= 0)
			return r;
	}
	return 1;
}

struct event *window_present(const struct window *w)
{
	return w->present;
}

/* Reads one more event ahead; 0 at the end of the trace or of the window. */
static int read_ahead(struct window *w, struct err *err)
{
	struct event *ev;
	struct node *n;
	int r;

	if (w->ended || w->nr_ahead >= AHEAD_MAX)
		return 0;
	if (!w->now) {
		w->now = node_new(w, w->present);
		w->present = &w->now->ev;
	}
	r = next_of_trace(w, &ev, err);
	if (r <= 0) {
		w->ended = r == 0;
		return r;
	}
	n = node_new(w, ev);
	*w->last = n;
	w->last = &n->next;
	w->nr_ahead++;
	return 1;
}

/* Whether the node is the first of its thread in the window, so that it may be taken. */
static bool is_first_of_thread(const struct window *w, const struct node *n)
{
	if (n->ev.stream == w->present->stream)
		return false;
	for (const struct node *i = w->first; i != n; i = i->next) {
		if (i->ev.stream == n->ev.stream)
			return false;
	}
	return true;
}

int window_peek(struct window *w, size_t n, struct event **ret, struct err *err)
{
	struct node *i = w->first;

	for (;;) {
		if (!i) {
			struct node **end = w->last;
			int r = read_ahead(w, err);

			if (r <= 0)
				return r;
			i = *end;
		}
		if (i->ev.enter_ns <= w->present->exit_ns && is_first_of_thread(w, i) && !n--) {
			*ret = &i->ev;
			return 1;
		}
		i = i->next;
	}
}

int window_ahead(struct window *w, uint32_t stream, unsigned int class, struct event **ret,
		 struct err *err)
{
	for (struct node *n = w->first; n; n = n->next) {
		if (n->ev.stream != stream)
			continue;
		*ret = &n->ev;
		return row_class(n->ev.row) == class;
	}
	return w->ended ? 0 : trace_iter_ahead(w->iter, stream, class, ret, err);
}

void window_take(struct window *w, const struct event *ev)
{
	for (struct node **p = &w->first; *p; p = &(*p)->next) {
		struct node *n = *p;

		if (&n->ev != ev)
			continue;
		*p = n->next;
		if (w->last == &n->next)
			w->last = p;
		w->nr_ahead--;
		node_give_back(w, n);
		return;
	}
}
