/* SPDX-License-Identifier: MIT */
/*
 * Where the events of a recording come from. A source is a `const struct
 * source` at the foot of its main file and a line in sources.def.
 *
 * One source runs the program: it has run(), in the session's thread. The
 * others record beside it: they have poll(), which the session calls in a
 * thread of their own, and which writes by a feed of their own. A source that
 * does not need a function leaves it NULL.
 *
 *   open ... describe ... run, or poll until run has returned ... account ... close
 *
 * open() comes before anything is written, so that a failure costs nothing.
 */
#ifndef RECORD_SOURCE_H
#define RECORD_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct session;
struct record_options;

struct source {
	const char *name;
	const uint16_t *events; /* ids of the events beside calls that it writes, 0 at the end */
	/* Of a source that records beside others: whether the options ask for it. */
	bool (*is_wanted)(const struct record_options *o);

	/* These are called in the session's thread. */

	MUST_CHECK int (*open)(struct session *s, void **ret, struct err *err);
	/* Adds metadata at the beginning. */
	MUST_CHECK int (*describe)(void *of);
	/* Runs the program, or follows it, to its end. -errno: nothing was recorded. */
	MUST_CHECK int (*run)(void *of, struct err *err);
	/* See session_begin_process(). Its thread may be in poll() meanwhile. */
	void (*begin_process)(void *of, pid_t pid);
	void (*end_process)(void *of, pid_t pid);
	/* Adds metadata and ledger entries at the end, when its thread has ended. */
	MUST_CHECK int (*account)(void *of);
	void (*close)(void *of);

	/*
	 * Called in the thread of the source: takes in what there is, and says when to call again at the latest, on the
	 * monotonic clock. -errno: it is not called any more.
	 */
	MUST_CHECK int (*poll)(void *of, uint64_t *ret_next_ns);
	/* A descriptor whose readiness to be read calls poll() sooner. */
	int (*fd)(const void *of);
};

#define SOURCE(name) extern const struct source source_##name;
#include "record/sources.def"
#undef SOURCE

/* All sources, NULL at the end. */
extern const struct source *const sources[];

#endif
