/* SPDX-License-Identifier: MIT */
/*
 * Text of strace, of one file or, when a NUL byte divides it, of two as -ff
 * makes them. Lines that are not understood are counted, and whatever was
 * understood makes a trace that reads.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "import/import.h"
#include "scratch.h"
#include "trace/reader.h"

static void read_back(const char *path, uint64_t nr_wanted)
{
	const struct trace_query q = { 0 };
	struct trace_iter *it;
	struct event *ev;
	struct trace *t;
	uint64_t nr = 0;

	if (trace_open(path, 0, &t, NULL) < 0 || trace_iter_open(t, &q, &it, NULL) < 0)
		abort();
	while (trace_iter_next(it, &ev, NULL) == 1)
		nr++;
	if (nr != nr_wanted)
		abort();
	trace_iter_close(it);
	trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	size_t first = nul ? (size_t)(nul - data) : size;
	const char *inputs[] = { scratch_path("input.7"), scratch_path("input.8") };
	struct import_request rq = { .format = "strace",
				     .paths = inputs,
				     .nr_paths = nul ? 2 : 1,
				     .output = scratch_path("output"),
				     .replace = true };
	struct import_counts counts = { 0 };
	struct err err = { 0 };

	scratch_write(inputs[0], data, first);
	if (nul)
		scratch_write(inputs[1], nul + 1, size - first - 1);
	if (import_files(&rq, &counts, &err) < 0) {
		/*
		 * What begins like packed data is packed, and most likely damaged; and two
		 * files with relative times cannot be merged.
		 */
		if (strstr(err.text, " data ") || (nul && strstr(err.text, "(-r)")))
			return 0;
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	read_back(rq.output, counts.nr_events);
	return 0;
}
