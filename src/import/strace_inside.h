/* SPDX-License-Identifier: MIT */
/*
 * Inside of the strace importer, private to strace.c (inputs, what the trace says
 * of itself) and strace_put.c (a line becomes events).
 */
#ifndef IMPORT_STRACE_INSIDE_H
#define IMPORT_STRACE_INSIDE_H

#include "import/prologue.h"
#include "import/strace_dump.h"
#include "import/strace_line.h"
#include "import/strace_order.h"
#include "import/strace_threads.h"
#include "import/strace_value.h"

struct strace {
	struct import *im;
	struct import_input *in; /* of the current line */
	struct strace_threads threads;
	struct prologue prologue; /* until a thread has taken it over */
	struct strace_text text;
	struct arena arena;
	const struct strace_dump *dump; /* what stands below the current line */
	struct strace_order order;
	struct buf joined; /* both parts of a call */
	struct buf plain; /* a line without its colours */

	/* Time. */
	enum strace_clock clock; /* of the first line that has one */
	bool begun;
	uint64_t first_ns, now_ns; /* as the lines have it; since the first */
	uint64_t last_ns; /* the latest, as the lines have it */
	uint64_t shift_ns; /* added to what lines say: midnights, clocks that were set */

	/* Threads. */
	uint32_t lone_tid; /* whose lines say nothing */
	uint32_t split_tid; /* whose line was split by a remark; 0: nobody's */
	uint32_t former_tid; /* another thread's execve goes on in its leader */

	struct buf cwd; /* of the first process at its start; empty: not told */
	uint64_t nr_cut, cut_bytes;
	bool has_times, has_coarse_times;
};

/* Takes a line; what is not understood is counted. 0 or -errno. */
MUST_CHECK int strace_put_line(struct strace *s, const struct strace_next *next, struct err *err);
/* All lines were taken: what is unfinished ends. */
MUST_CHECK int strace_put_end(struct strace *s, struct err *err);

#endif
