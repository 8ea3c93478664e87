/* SPDX-License-Identifier: MIT */
/*
 * One recording, from the check of its options to the finished trace: the
 * output, its metadata and ledger, the limits, the initial and the final tree.
 * What happens in the program comes from sources (source.h): one that runs the
 * program, and any number beside it, each with a thread and a feed of its own.
 *
 *   source that runs the program --feed--\
 *   sources beside it -------------feed---+--> session: writer --> trace
 *   tree, metadata, ledger --------feed--/
 *
 * The session belongs to the thread that calls session_run(), which is also the
 * thread of the source that runs the program. Sources beside it may read what
 * is marked so, and nothing else.
 */
#ifndef RECORD_SESSION_H
#define RECORD_SESSION_H

#include <signal.h>
#include <sys/types.h>

#include "record/recorder.h"
#include "record/tree.h"
#include "trace/writer.h"

struct source;
struct session_sources;

struct session {
	const struct record_options *o; /* any thread may read it */
	struct record_result *res;
	uint64_t start_ns; /* of the monotonic clock; any thread may read it */

	struct trace_writer *writer; /* any thread may add a feed to it */
	struct trace_feed *feed; /* of the session's thread */
	uint64_t own_dev, own_ino; /* of the trace */
	struct tree *tree;
	char *aside; /* where the trace is that this one will replace; NULL: none */
	struct sigaction file_size; /* what the caller had set for SIGXFSZ */
	struct session_sources *sources;

	/* Set by the open() of a source: files may change without a call that is seen. */
	bool misses_changes;
	bool is_launched; /* the program is ours, and has ended with res->wait_status */
	bool is_over; /* nothing more is recorded, though the program may go on */
	uint64_t cut_ns; /* when that was */
};

/* Records by the source that runs the program, and by those beside it that the options ask for. */
MUST_CHECK int session_run(const struct source *runs, const struct record_options *o,
			   struct record_result *ret, struct err *err);

/* For sources. */

/* Time since the recording began; any thread may ask. */
uint64_t session_now(const struct session *s);
PRINTF_LIKE(3, 4)
MUST_CHECK int session_put_meta(struct session *s, const char *key, const char *fmt, ...);
/* There is something to record: the trace that had this name before is removed. */
void session_drop_old(struct session *s);
/* The recording ends before the program does, as it was meant to. */
void session_end(struct session *s);
/* Likewise, too early: r and why say for what reason. */
void session_cut_short(struct session *s, int r, const char *why);
/*
 * A process is recorded from now on, and exists as long as this call lasts; it is gone. Only the source that runs the
 * program says so. Nothing happens if the process is known, or not known.
 */
void session_begin_process(struct session *s, pid_t pid);
void session_end_process(struct session *s, pid_t pid);

#endif
