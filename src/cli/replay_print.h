/* SPDX-License-Identifier: MIT */
/* The report of a run, as text and as JSON. */
#ifndef CLI_REPLAY_PRINT_H
#define CLI_REPLAY_PRINT_H

#include <stdio.h>

#include "base/json.h"
#include "cli/replay_history.h"
#include "cli/replay_mismatch.h"
#include "replay/run.h"

struct replay_print_options {
	bool no_copy_reads; /* some reads were made without a copy: the report says so */
	uint64_t top; /* mismatches that are shown */
	const struct history *history; /* of these; NULL: not known */
	const struct mismatch_views *views; /* likewise */
};

void replay_print_text(const struct run_result *res, const struct replay_print_options *o,
		       FILE *out);
void replay_print_json(const struct run_result *res, const struct replay_print_options *o,
		       struct json *w);
/* One mismatch with its edges, as a line; view: NULL where it is not known yet. */
void replay_put_mismatch(const struct run_mismatch *m, const struct mismatch_view *view,
			 struct buf *b);
/* What each lane is at, a line for each, at most `max` of them. */
void replay_put_lanes(const struct run_result *res, uint32_t max, struct buf *b);

extern const char *const replay_end_words[];
extern const char *const replay_phase_words[]; /* of enum run_lane_phase */

#endif
