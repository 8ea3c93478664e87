/* SPDX-License-Identifier: MIT */
/*
 * One line that shows how far a long task is, rewritten in place:
 *
 *     import: 12.3 M/45.6 M events, 2.10 M/s, 15.9 s left
 *
 * Library code gets a `struct progress *`, NULL when nobody watches, and calls
 * progress_set_total() and progress_add(). Those are cheap: the clock is read
 * only now and then, as often as keeps the line lively. The line appears after
 * a second, changes at most ten times a second, and is gone after
 * progress_end(). Where it is drawn is up to the sink. Owned by one thread.
 */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/buf.h"

struct progress_sink {
	uint64_t (*now_ns)(void *arg);
	void (*write)(void *arg, const void *p, size_t len);
	void *arg;
	unsigned int columns; /* of the terminal */
};

struct progress {
	const struct progress_sink *sink; /* NULL: ended, or never begun */
	const char *label;
	const char *unit; /* "events"; NULL: bytes */
	uint64_t done, total; /* total 0: not known */
	uint64_t start_ns, next_draw_ns, last_check_ns;
	uint32_t countdown, interval; /* in calls, until the clock is read again */
	unsigned int drawn_columns; /* what the line covers now */
	struct buf line;
};

/* Borrows sink, label and unit until progress_end(). */
void progress_begin(struct progress *p, const struct progress_sink *sink, const char *label,
		    const char *unit);
/*
 * Clears the line and releases what p holds. Accepts NULL, a zeroed one, and
 * one that has ended.
 */
void progress_end(struct progress *p);

void progress_check(struct progress *p);

static inline void progress_set_total(struct progress *p, uint64_t total)
{
	if (p)
		p->total = total;
}

static inline void progress_add(struct progress *p, uint64_t n)
{
	if (!p)
		return;
	p->done += n;
	if (UNLIKELY(--p->countdown == 0))
		progress_check(p);
}

#endif
