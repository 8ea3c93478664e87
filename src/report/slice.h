/* SPDX-License-Identifier: MIT */
/*
 * A part of a trace as a new trace: the events that a filter keeps with their
 * data, the metadata, the trees, and the ledger with an entry for what was left
 * out. When paths were asked for, the trees are cut to those that the kept
 * events touch, directly or through links, and what is above and below them.
 */
#ifndef REPORT_SLICE_H
#define REPORT_SLICE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/progress.h"
#include "report/filter.h"
#include "trace/reader.h"

struct slice_options {
	struct filter *filter;
	const char *output;
	bool replace; /* an existing file */
	unsigned int file_mode; /* of the output; 0: IO_FILE_MODE */
	struct progress *progress;
};

struct slice_result {
	uint64_t nr_kept, nr_left_out;
	uint64_t nr_lost; /* of rows that this program cannot write */
	uint64_t nr_missing_data; /* events whose data is gone from the source */
	uint64_t nr_tree_entries;
};

/* On failure no output is left behind. */
MUST_CHECK int slice_trace(struct trace *t, const struct slice_options *o, struct slice_result *ret,
			   struct err *err);

#endif
