/* SPDX-License-Identifier: MIT */
/*
 * The trace of a run, made whole. While a run goes on its keeper writes times
 * and outcomes only: nothing is read beside the lanes. Afterwards the events that
 * these repeat are gone through once more, thread by thread, and the run's file
 * is written anew with their arguments:
 *
 *   original  o--o--o--o--o--o    events of a thread (of a lane, of a plan without its trace)
 *   notes     |     n--n     n    of the run: the same order, fewer
 *   run       s  s  e  e  s  e    e: made again; s: not made, EVENT_SIMULATED
 *
 * Of what a call gave back the run knows what was compared and found equal
 * (EVENT_VERIFIED), numbers that the program was dealt out (descriptors,
 * addresses), which stay those of the original, and of the first mismatches what
 * came back (found.h); the rest is not known. Data that is equal is kept by hash. Memory is bounded by the number of threads.
 */
#ifndef REPLAY_RUN_TRACE_H
#define REPLAY_RUN_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/progress.h"
#include "model/event.h"
#include "replay/run.h"

/* Which event of which plan's trace an event of a run repeats. */
static inline uint64_t run_trace_origin(uint32_t plan, uint64_t seq)
{
	return (uint64_t)plan << EVENT_SOURCE_SHIFT |
	       (seq & ((UINT64_C(1) << EVENT_SOURCE_SHIFT) - 1));
}

struct run_trace_options {
	const char *const *plans; /* as they were performed */
	unsigned int nr_plans;
	bool complete; /* all actions were; else a thread ends with its last note */
	const struct run_result *res; /* whose mismatches tell what came back; may be NULL */
	const char *speed; /* for the metadata */
	unsigned int file_mode; /* of the file; 0: IO_FILE_MODE */
	struct progress *progress; /* of events; may be NULL */
};

/*
 * Replaces the file that a run has left at path. On failure that one stays as it
 * is, a trace of times and outcomes.
 */
MUST_CHECK int run_trace_complete(const char *path, const struct run_trace_options *o,
				  struct err *err);

#endif
