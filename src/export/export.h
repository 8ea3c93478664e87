/* SPDX-License-Identifier: MIT */
/*
 * A trace in the format of another tool.
 *
 *   trace  -->  exporter  -->  bytes to a stdio stream
 *
 * An exporter is a `const struct exporter exporter_<id>` at the foot of its file
 * and one line in exporters.def. It reads the trace in whatever order it needs,
 * writes, and counts what the other format has no words for; it neither prints
 * elsewhere nor exits. All of this belongs to one thread.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/progress.h"
#include "trace/reader.h"

struct export_counts {
	uint64_t nr_written; /* events, or entries of a listing */
	uint64_t nr_left_out; /* what the format cannot say */
};

/* What an exporter works on. Whether out could be written to is for its owner to ask it. */
struct export
{
	struct trace *t;
	FILE *out;
	struct export_counts counts; /* the exporter counts */
	struct progress *progress; /* counts events; may be NULL */
};

struct exporter {
	const char *summary; /* one line, for help */
	/* Reads all that it needs and writes it all. 0 or -errno. */
	int (*run)(struct export *ex, struct err *err);
	bool raw; /* it cannot quote, or is binary: not for a terminal */
};

struct export_format {
	const char *name;
	const struct exporter *exporter;
};

extern const struct export_format export_formats[];
extern const size_t nr_export_formats;

/* NULL when there is none of that name. */
const struct exporter *exporter_find(const char *name);

#endif
