/* SPDX-License-Identifier: MIT */
/*
 * Is an action one that a replay can trust? The same test for what is written
 * and for what is read. Private to this directory.
 */
#ifndef PLAN_ACTION_CHECK_H
#define PLAN_ACTION_CHECK_H

#include "plan/plan.h"

struct action_limits {
	uint32_t nr_lanes, nr_slots;
	uint64_t max_data_bytes;
	bool started_edges; /* there may be some */
	const uint64_t *lane_actions; /* of each lane; NULL: not known yet */
};

/* What the action needs. */
struct action_needs {
	uint32_t nr_slots; /* the highest that it names, and one */
	uint64_t data_bytes;
};

/*
 * err gets words without file and place. -EBADMSG: the plan is wrong; -E2BIG: more data than
 * allowed; -EOPNOTSUPP: of a later version.
 */
MUST_CHECK int action_check(const struct action *a, uint32_t lane, const struct action_limits *l,
			    struct action_needs *ret, struct err *err);

/* Pathnames and strings, which stand in the action up to PLAN_TEXT_MAX bytes. */
#define PLAN_TEXT_MAX 4096

static inline bool kind_is_text(uint8_t kind)
{
	return kind == KIND_PATH || kind == KIND_STR;
}

#endif
