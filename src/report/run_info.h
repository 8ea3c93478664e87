/* SPDX-License-Identifier: MIT */
/* What a trace says of itself as a run: which traces it repeats (doc/trace-format.md, "Runs"). */
#ifndef REPORT_RUN_INFO_H
#define REPORT_RUN_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

bool run_info_is_run(struct trace *t);

struct run_source {
	uint32_t number; /* in the upper bits of origins */
	uint64_t first_stream, nr_streams; /* of the run: those that repeat streams of the source */
};

/*
 * The source that `original` is: the one of its name, else the one with as many
 * events. False: none is, or t is no run that tells.
 */
bool run_info_find_source(struct trace *t, struct trace *original, struct run_source *ret);

#endif
