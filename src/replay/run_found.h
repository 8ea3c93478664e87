/* SPDX-License-Identifier: MIT */
/*
 * What mismatches gave back, on its way into the trace of a run (run_trace.h).
 *
 * A listing is compared as a whole, so its parts in the run are those of the
 * original: a part lacks the names that were not found, and the call that ended
 * the listing has the names that were added. Owned by one thread.
 */
#ifndef REPLAY_RUN_FOUND_H
#define REPLAY_RUN_FOUND_H

#include "base/arena.h"
#include "base/err.h"
#include "replay/run.h"
#include "trace/reader.h"

struct run_founds;

/* Borrows res. */
struct run_founds *run_founds_new(const struct run_result *res);
void run_founds_free(struct run_founds *f);

/* To be called before the events of a thread: of what listings it made mismatches. */
MUST_CHECK int run_founds_begin_thread(struct run_founds *f, struct trace *t, uint32_t stream,
				       uint32_t plan, struct err *err);

/* Where an argument is to be changed once the others are reduced. */
struct run_found_arg {
	const struct run_mismatch *m; /* NULL: no result of it is known */
	bool is_listing;
	unsigned int arg;
	struct value entries;
};

/* ev has all its arguments, and the flags of the run, which may be changed. */
void run_founds_look(struct run_founds *f, struct trace *t, uint32_t plan, struct event *ev,
		     struct arena *arena, struct run_found_arg *ret);
/* The arguments of ev are reduced (run_args.h). */
void run_founds_put(struct run_founds *f, const struct run_found_arg *a, struct event *ev,
		    struct arena *arena);

#endif
