/* SPDX-License-Identifier: MIT */
/*
 * For each event of trace B, in the order of B, the event of trace A that it
 * repeats. Each thread of A is read along with the thread of B that is the same
 * one:
 *
 *   by origin  B is a run of A: its events say which ones they repeat. Those of a
 *              stream of block requests may have changed places, by up to
 *              MATCH_WINDOW
 *   by order   the next event of the thread in A that is the same call, at most
 *              MATCH_AHEAD ahead
 *
 * Memory is bounded by the threads of B that are alive at a time. Owned by one
 * thread.
 */
#ifndef REPORT_MATCH_H
#define REPORT_MATCH_H

#include <stdbool.h>

#include "base/err.h"
#include "trace/reader.h"

#define MATCH_WINDOW 256
#define MATCH_AHEAD 64

enum match_way { MATCH_AUTO, MATCH_ORIGIN, MATCH_ORDER, MATCH_NONE };

extern const char *const match_way_names[];

struct matcher;

/* MATCH_AUTO: by origin when b is a run of a, else by order. */
struct matcher *matcher_new(struct trace *a, struct trace *b, enum match_way way);
void matcher_free(struct matcher *m);
enum match_way matcher_way(const struct matcher *m);

/* Of an event in A: all but its arguments. */
struct match_event {
	const struct row *row;
	uint16_t flags;
	uint64_t seq, enter_ns, exit_ns;
};

/* 1 and the event in A of an event in B; 0: there is none; -errno. */
MUST_CHECK int matcher_find(struct matcher *m, const struct event *b, struct match_event *ret,
			    struct err *err);

#endif
