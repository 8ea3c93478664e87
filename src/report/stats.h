/* SPDX-License-Identifier: MIT */
/*
 * What a trace adds up to: counts, bytes, times and their distributions; by
 * call, by class, by thread and by file. Work per event does not depend on how
 * many there are: rows, streams and files are reached by index or pointer.
 *
 * Memory is bounded: of the files the first STATS_FILES_MAX are kept apart, the
 * others are one sum. Owned by one thread.
 */
#ifndef REPORT_STATS_H
#define REPORT_STATS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/histogram.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/progress.h"
#include "model/tree_stat.h"
#include "report/fdpaths.h"
#include "report/filter.h"
#include "trace/reader.h"

#define STATS_FILES_MAX 100000
#define STATS_ERRNO_MAX 4096

struct stats_call {
	const struct row *row;
	uint64_t count, errors, bytes, time_ns;
	struct histogram latency_ns; /* of those whose duration is known */
};

struct stats_class {
	uint64_t count, errors, bytes, time_ns;
};

/*
 * A thread's time: in calls that wait, in other calls, and between calls without
 * what the recorder took.
 */
struct stats_thread {
	uint32_t pid, tid;
	uint64_t nr_events;
	uint64_t compute_ns, wait_ns, io_ns, held_ns, cpu_ns;
	uint64_t first_ns, last_ns;
	uint64_t last_exit_ns; /* of its last call */
	bool has_call;
};

struct stats_file {
	const char *path;
	uint64_t opens, reads, writes, bytes_read, bytes_written;
	uint64_t time_ns; /* in calls on its descriptors that do not wait, and in opening it */
};

/* What the other sections of the trace say. */
struct stats_loss {
	int kind;
	uint32_t pid, tid;
	uint64_t count, bytes, from_ns, to_ns;
	char *note; /* NULL: none */
};

struct stats_sections {
	VEC(struct stats_loss) ledger; /* at most STATS_LEDGER_MAX; the sums are of all */
	uint64_t nr_ledger, lost, filtered;
	bool has_losses; /* anything but what was left out on request */
	bool closed;
	uint64_t nr_initial, nr_final, nr_inferred;
	/*
	 * Entries of the initial tree that are not in the file as seen: those that it
	 * has as inferred, or those that stats_set_inferred() said.
	 */
	struct tree_count inferred;
};
#define STATS_LEDGER_MAX 1000

struct stats_files {
	bool followed;
	struct map by_path;
	struct stats_file others; /* beyond STATS_FILES_MAX */
	uint64_t nr_others; /* how often a file was opened that went there */
	uint64_t nr_forgotten; /* descriptors that were not followed */
};

struct stats_row;

struct stats {
	uint64_t nr_events, nr_processes, bytes_read, bytes_written;
	uint64_t first_ns, last_ns; /* earliest entry, latest exit */
	uint64_t last_enter_ns;
	struct stats_call *calls[ROW_ID_MAX];
	struct stats_class classes[C_MAX];
	uint64_t errors[STATS_ERRNO_MAX]; /* [0]: numbers beyond */
	struct histogram read_sizes, write_sizes, gaps_ns;
	struct stats_thread **threads; /* in order of appearance */
	size_t nr_threads, cap_threads;
	struct stats_thread **by_stream;
	size_t nr_streams;
	struct map pids;
	struct stats_files files;
	struct stats_sections sections;
	struct stats_row *rows; /* by row id */
};

struct stats_options {
	struct filter *filter;
	bool no_files; /* do not follow descriptors */
	struct progress *progress;
};

struct stats *stats_new(void);
void stats_free(struct stats *s);

/* One event, which is then applied to `paths` (may be NULL). */
void stats_add(struct stats *s, const struct event *ev, struct fdpaths *paths);

/*
 * Reads a trace. On failure s holds what was read until then, and may be
 * printed.
 */
MUST_CHECK int stats_collect(struct stats *s, struct trace *t, const struct stats_options *o,
			     struct err *err);

/* Whether the trace has no initial tree, or not all of it. */
bool stats_lacks_tree(const struct stats *s, struct trace *t);
/* ... then what its events need beyond that. */
void stats_set_inferred(struct stats *s, const struct tree_count *inferred);

/* No loss, no cut, no unfinished end. */
bool stats_is_complete(const struct stats *s);

struct stats_print_options {
	const char *trace_path;
	size_t top; /* how many files and threads */
};

void stats_print_text(const struct stats *s, const struct stats_print_options *o, FILE *out);
void stats_print_json(const struct stats *s, const struct stats_print_options *o, struct json *w);

#endif
