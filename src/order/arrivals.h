/* SPDX-License-Identifier: MIT */
/*
 * Whether requests wait for each other, or come at times of their own (a closed or an open
 * load). Threads that issue, wait and go on bound what is in flight, and whoever of them issues
 * finds less in flight than there is on the average: itself is missing. Where arrivals know
 * nothing of completions, what they find is what there is on the average, and
 * that goes as far up, at times, as independent arrivals make it go. Both are looked at: of what
 * was in flight over time the upper half alone, for how a program begins, pauses and ends is
 * in the lower one. Requests that come together (within a tenth of the mean distance) are one
 * arrival, and where most come so nothing is said.
 *
 * Streams by, in the order of issue; memory follows what is in flight. Of one thread.
 */
#ifndef ORDER_ARRIVALS_H
#define ORDER_ARRIVALS_H

#include <stdint.h>

#include "base/mem.h"

enum arrivals_kind {
	ARRIVALS_UNKNOWN, /* too few, too sparse, or without completions */
	ARRIVALS_CLOSED,
	ARRIVALS_OPEN,
};

extern const char *const arrivals_names[];

struct arrivals_view {
	enum arrivals_kind kind;
	double in_flight; /* mean over time */
	double found; /* mean in flight that an arrival found */
	/*
	 * How far up what was in flight goes, as the variance over the mean of a normal distribution
	 * with the same median and 95th percentile: of independent arrivals at least about 1.
	 */
	double dispersion;
};

struct arrivals {
	VEC(uint64_t) ends; /* of what is in flight: a heap */
	uint64_t first_ns, now_ns, last_issue_ns;
	VEC(double) ns_with; /* for how long so many were in flight */
	double sum; /* of what was in flight, by time */
	double found;
	uint64_t nr, nr_apart, nr_unknown;
};

/* Times that go back count as the latest so far. */
void arrivals_add(struct arrivals *a, uint64_t issue_ns, uint64_t end_ns);
/* One of which the completion is not known. */
void arrivals_add_unknown(struct arrivals *a);
/* The end: nothing can be added any more. */
void arrivals_judge(struct arrivals *a, struct arrivals_view *ret);
void arrivals_release(struct arrivals *a);

#endif
