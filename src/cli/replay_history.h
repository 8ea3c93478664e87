/* SPDX-License-Identifier: MIT */
/*
 * What led to the mismatches of a run: for each that is shown, the line of its
 * event in the trace, the actions that it had waited for, and those that these
 * had waited for. Found after the run by reading the plans again, once for each
 * step back, as far as the actions in question, and of the trace only the
 * moments in question. Owned by one thread.
 */
#ifndef CLI_REPLAY_HISTORY_H
#define CLI_REPLAY_HISTORY_H

#include "base/buf.h"
#include "replay/run.h"

#define HISTORY_STEPS 2 /* back from a mismatch */
#define HISTORY_EDGES 4 /* of an action that are followed */

struct history;

struct history_action {
	bool found; /* in the plan; else nothing more is known */
	const char *line; /* of its event; NULL: the plan's own, or the trace is not at hand */
	uint32_t nr_edges; /* all; at most HISTORY_EDGES are here */
	struct run_edge edges[HISTORY_EDGES];
};

/* Of the first `top` mismatches, and of the lanes that waited in a run that stalled. What cannot be read is left out: a report must come in any case. */
struct history *history_new(const char *const *plans, unsigned int nr_plans,
			    const struct run_result *res, uint64_t top);
void history_free(struct history *h);
/* By lane of the run and number; NULL: not known. h may be NULL. */
const struct history_action *history_find(const struct history *h, uint32_t lane, uint64_t nr);

#endif
