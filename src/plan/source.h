/* SPDX-License-Identifier: MIT */
/* The trace in which a plan's data has stayed: named by path, known by an id. Private to this directory. */
#ifndef PLAN_SOURCE_H
#define PLAN_SOURCE_H

#include "base/buf.h"
#include "base/err.h"
#include "trace/reader.h"

/* Keys of metadata. */
#define SOURCE_KEY_PATH "data_file"
#define SOURCE_KEY_ID "data_file_id"

/* The file's absolute path, and its id (doc/plan-format.md, "Data"), as text. */
MUST_CHECK int source_path(const char *path, struct buf *ret, struct err *err);
MUST_CHECK int source_id(const char *path, struct buf *ret, struct err *err);

/*
 * Opens the trace of that id, under its path or beside the plan. The words in
 * err name all three files that may be to blame.
 */
MUST_CHECK int source_open(const char *plan_path, const char *path, const char *id,
			   struct trace **ret, struct err *err);

#endif
