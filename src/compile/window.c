/* SPDX-License-Identifier: MIT */
#include "compile/window.h"

#include <stdlib.h>

#include "base/banned.h"
#include "base/mem.h"
#include "compile/texts.h"

struct window {
	struct trace *trace;
	struct trace_iter *iter;
	struct texts texts; /* of the present event and of those that were loaded meanwhile */
	struct event *present;
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
	*ret = w;
	return 0;
}

void window_close(struct window *w)
{
	if (!w)
		return;
	trace_iter_close(w->iter);
	texts_release(&w->texts);
	free(w);
}

int window_next(struct window *w, struct err *err)
{
	int r = trace_iter_next(w->iter, &w->present, err);

	if (r <= 0)
		return r;
	texts_trim(&w->texts);
	texts_load(&w->texts, w->trace, w->present->row, w->present->args);
	return 1;
}

struct event *window_present(const struct window *w)
{
	return w->present;
}

int window_pending(struct window *w, struct event *const **ret, size_t *ret_nr, struct err *err)
{
	return trace_iter_pending(w->iter, w->present->exit_ns, ret, ret_nr, err);
}

bool window_overlaps(const struct window *w)
{
	return trace_iter_overlaps(w->iter, w->present->exit_ns);
}

bool window_load(struct window *w, struct event *ev)
{
	if (!trace_iter_load(w->iter, ev))
		return false;
	texts_load(&w->texts, w->trace, ev->row, ev->args);
	return true;
}

int window_take(struct window *w, struct event *ev, struct err *err)
{
	return trace_iter_take(w->iter, ev, err);
}

int window_ahead(struct window *w, uint32_t stream, unsigned int class, struct event **ret,
		 struct err *err)
{
	return trace_iter_ahead(w->iter, stream, class, ret, err);
}
