/* SPDX-License-Identifier: MIT */
/*
 * A trace as text that loses nothing (doc/trace-text.md): metadata, ledger,
 * trees, then the events, and every blob on a line of its own before its first
 * use. `reprise import --format=exact` makes the same trace of it again.
 *
 * All that grows with the trace is the table of printed blobs: see
 * model/blobmap.h.
 */
#ifndef REPORT_EXACT_H
#define REPORT_EXACT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "trace/reader.h"

/* The first line: what an importer knows the format by. */
#define EXACT_HEADER "# reprise exact 1"

struct exact_filter {
	bool (*keep)(void *ctx, struct event *ev); /* NULL: all events */
	void *ctx;
	uint64_t nr_events_max; /* ends after so many; 0: does not end */
};

/*
 * Prints what the query asks for and the filter keeps; NULL for either means
 * everything. Data that the file has lost is printed as its hash with a comment,
 * the rest follows, and in the end the loss is returned as -ENODATA. Whether
 * out could be written to is for its owner to ask it; when it fails, printing
 * ends early.
 */
MUST_CHECK int exact_print_trace(struct trace *t, const struct trace_query *q,
				 const struct exact_filter *filter, FILE *out, struct err *err);

#endif
