/* SPDX-License-Identifier: MIT */
/*
 * Two traces, event by event. A thread of one is set beside the thread of the
 * other that appeared as the same one in its process, and that process as the
 * same one in the trace (or that has the same tid). Where they part, a bounded
 * look ahead finds the place where they meet again, so that a missing event is
 * one difference and not as many as events follow.
 *
 * Memory is bounded by the look-ahead, and by the number of tree entries when
 * trees are compared.
 */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/progress.h"
#include "report/compare_event.h"
#include "trace/reader.h"

/* How many events of each thread are looked at to find where they meet again. */
#define COMPARE_WINDOW 64

struct compare_options {
	unsigned int ignore; /* enum compare_ignore */
	bool by_tid;
	bool sections; /* ledger and trees too */
	struct progress *progress;
	void *ctx;
	/* A difference in an event; a or b is NULL when only the other trace has it. May be NULL. */
	void (*found)(void *ctx, enum difference how, const char *what, const struct event *a,
		      const struct event *b);
	/* One in words: threads without a counterpart, ledger, trees. May be NULL. */
	void (*noted)(void *ctx, const char *text);
};

struct compare_result {
	uint64_t nr_events_a, nr_events_b;
	uint64_t by_kind[DIFFERENCE_MAX];
	uint64_t nr_threads_a_only, nr_threads_b_only;
	uint64_t nr_ledger, nr_trees; /* differing entries */
};

/* The number of differing events and, if they were compared, of other entries. */
uint64_t compare_nr_differences(const struct compare_result *c);

/* On failure ret holds what was found until then. */
MUST_CHECK int compare_traces(struct trace *a, struct trace *b, const struct compare_options *o,
			      struct compare_result *ret, struct err *err);

#endif
