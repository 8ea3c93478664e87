/* SPDX-License-Identifier: MIT */
/*
 * What can still be read of a damaged or unfinished trace, as a new and valid
 * one whose ledger says what was lost.
 */
#ifndef TRACE_SALVAGE_H
#define TRACE_SALVAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/progress.h"
#include "trace/writer.h"

struct salvage_result {
	uint64_t nr_events, nr_lost_events, nr_missing_data;
};

/* On failure no output is left behind. The output must not be the damaged trace itself. */
MUST_CHECK int trace_salvage(const char *path, const char *output,
			     const struct trace_writer_options *options, struct progress *progress,
			     struct salvage_result *ret, struct err *err);

#endif
