/* SPDX-License-Identifier: MIT */
/*
 * How alike the performances of two traces are: elapsed time, time in calls,
 * latencies by class and their distributions, concurrency, order. On the common
 * event: calls, page faults and block requests alike.
 *
 * Where B is a run of A, only what the run made again is looked at, on both
 * sides; else all of both. Two passes, bounded memory. Owned by one thread.
 */
#ifndef REPORT_FIDELITY_H
#define REPORT_FIDELITY_H

#include <stdbool.h>

#include "base/err.h"
#include "base/histogram.h"
#include "base/progress.h"
#include "report/match.h"
#include "report/reorder.h"
#include "trace/reader.h"

/* Of one class, or of all that do not wait, on one side. */
struct fidelity_sums {
	uint64_t count;
	uint64_t time_ns; /* in these calls, of all threads */
	struct histogram latency_ns; /* of those whose duration is known */
};

struct fidelity_side {
	uint64_t nr_events; /* calls, page faults and block requests of the trace */
	uint64_t nr_timed; /* those of them that are compared and whose times are known */
	uint64_t first_ns, last_ns; /* earliest entry, latest exit of these */
	struct fidelity_sums all; /* but for what waits */
	struct fidelity_sums classes[C_MAX];
};

struct fidelity {
	enum match_way way;
	bool paired; /* the sides hold matched events only */
	uint64_t nr_matched, nr_simulated, nr_mismatched;
	uint64_t nr_enforced; /* of the simulated */
	struct fidelity_side a, b;
	uint64_t abs_error_ns; /* of all pairs whose durations are known: sum of differences */
	uint64_t nr_pairs_timed;
	struct reorder reorder;
};

struct fidelity_options {
	enum match_way way;
	struct progress *progress;
};

/* On failure ret holds what was read until then; it is to be released in any case. */
MUST_CHECK int fidelity_compare(struct trace *a, struct trace *b, const struct fidelity_options *o,
				struct fidelity *ret, struct err *err);
void fidelity_release(struct fidelity *f);

uint64_t fidelity_elapsed_ns(const struct fidelity_side *s);
/* How many calls were under way on average. */
double fidelity_concurrency(const struct fidelity_side *s);
/* (b - a) / a; NaN when a is 0. */
double fidelity_error(double a, double b);

#endif
