/* SPDX-License-Identifier: MIT */
/*
 * Which events a user asked for. All conditions that were given must hold; of
 * several values for one of them, any. Owned by one thread.
 */
#ifndef REPORT_FILTER_H
#define REPORT_FILTER_H

#include <stdbool.h>

#include "base/err.h"
#include "base/options.h"
#include "model/event.h"
#include "report/fdpaths.h"
#include "trace/reader.h"

/* As options are parsed; the words may hold several values, separated by commas. */
struct filter_options {
	struct option_u64s pids, tids, fds;
	struct option_strings calls; /* names, globs; "!name": not these */
	struct option_strings classes; /* names of classes, %file, %desc */
	struct option_strings paths; /* names or globs, and all that is below */
	struct option_strings errnos;
	bool failed, ok;
	uint64_t min_duration_ns, max_duration_ns; /* max 0: no end */
	uint64_t from_ns, to_ns; /* events that overlap [from, to); to 0: no end */
};

struct filter;

/* -EINVAL with words when a value makes no sense. Borrows the options. */
MUST_CHECK int filter_new(const struct filter_options *o, struct filter **ret, struct err *err);
void filter_free(struct filter *f);

/* Nothing was asked for: every event matches. */
bool filter_is_empty(const struct filter *f);
/* Descriptors must be followed to decide: filter_matches() gets every event of the trace. */
bool filter_needs_paths(const struct filter *f);

/*
 * Narrows a query to what can match, so that the rest is not even read. Not
 * when descriptors are followed: then what came before, and what other
 * processes did, is needed too (`whole`).
 */
void filter_narrow_query(const struct filter *f, bool whole, struct trace_query *q);

/* `paths` as it is before the event is applied to it; NULL when filter_needs_paths() is false. */
bool filter_matches(struct filter *f, const struct event *ev, struct fdpaths *paths);
/* Not on the paths, but what is cannot be understood without it. */
bool filter_matches_context(struct filter *f, const struct event *ev);
/* By its name and class alone. */
bool filter_wants_row(struct filter *f, const struct row *row);
/* Is this path one of those that were asked for, or below one? */
bool filter_matches_path(const struct filter *f, const char *path);

#endif
