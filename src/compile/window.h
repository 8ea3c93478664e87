/* SPDX-License-Identifier: MIT */
/*
 * Events in effect order, with a look ahead: who finds that an event does not
 * fit may take those first that overlapped it.
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
/* The event that window_next() went to. It may move when somebody peeks. */
struct event *window_present(const struct window *w);
/*
 * The n-th event (from 0) behind the present one that overlaps
 * it in time and whose thread has no earlier event waiting. 1 and the event,
 * valid until window_take() or the next window_next(); 0: there is none.
 */
MUST_CHECK int window_peek(struct window *w, size_t n, struct event **ret, struct err *err);
/*
 * The event that follows in the same stream, if it is of this class (C_x): 1; 0: it is
 * not, or there is none. To be asked when an event of the stream is done with: that
 * and what was peeked are not valid any more, but for the present event if it is
 * of another stream.
 */
MUST_CHECK int window_ahead(struct window *w, uint32_t stream, unsigned int class,
			    struct event **ret, struct err *err);
/* The event that was peeked is done: it will not come again. */
void window_take(struct window *w, const struct event *ev);

#endif
