/* SPDX-License-Identifier: MIT */
/*
 * The mismatches of a run beside the events that they repeat: what differs, on
 * which file. Found after the run by one pass over each trace, as far as the
 * last event in question. Owned by one thread.
 */
#ifndef CLI_REPLAY_MISMATCH_H
#define CLI_REPLAY_MISMATCH_H

#include "replay/run.h"
#include "report/details.h"

struct mismatch_views;

struct mismatch_view {
	bool has_event; /* else the trace is not at hand, and only what came back is known */
	uint64_t enter_ns; /* of the event */
	const char *line; /* of the event, with the paths of its descriptors; NULL: not known */
	const char *path; /* of its first descriptor, or else of its first name; likewise */
	struct details details;
	const char *note; /* why there are no details; NULL: there are some, or none are needed */
};

/* Of the first `top` mismatches. What cannot be read is left out: a report must come in any case. */
struct mismatch_views *mismatch_views_new(const char *const *plans, unsigned int nr_plans,
					  const struct run_result *res, uint64_t top);
void mismatch_views_free(struct mismatch_views *v);
/* NULL: there is none of this number. v may be NULL. */
const struct mismatch_view *mismatch_view(const struct mismatch_views *v, uint64_t i);

#endif
