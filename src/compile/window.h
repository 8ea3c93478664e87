/* SPDX-License-Identifier: MIT */
/*
 * Events in effect order, with a look at those whose turn comes next: who finds that an
 * event does not fit may take those first that overlapped it. Their names have their bytes.
 */
#ifndef COMPILE_WINDOW_H
#define COMPILE_WINDOW_H

#include "base/err.h"
#include "model/event.h"
#include "trace/reader.h"

struct window;

MUST_CHECK int window_open(struct trace *t, struct progress *progress, struct window **ret,
			   struct err *err);
void window_close(struct window *w);
/* 1: there is a next event, see window_present(); 0 at the end. */
MUST_CHECK int window_next(struct window *w, struct err *err);
/* The event that window_next() went to. */
struct event *window_present(const struct window *w);
/*
 * The next event of each thread that has begun before the present event was over, in
 * effect order, without their arguments: for those see window_load(). Valid until
 * window_take() or window_next().
 */
MUST_CHECK int window_pending(struct window *w, struct event *const **ret, size_t *ret_nr,
			      struct err *err);
/* Whether one of another thread was entered before the present one was over: cheap. */
bool window_overlaps(const struct window *w);
/* False: its arguments are malformed. */
MUST_CHECK bool window_load(struct window *w, struct event *ev);
/* A pending event is done: it will not come again. */
MUST_CHECK int window_take(struct window *w, struct event *ev, struct err *err);
/* The event that follows in the stream, if it is of this class (C_x): 1; 0: it is not, or there is none. */
MUST_CHECK int window_ahead(struct window *w, uint32_t stream, unsigned int class,
			    struct event **ret, struct err *err);

#endif
