/* SPDX-License-Identifier: MIT */
/*
 * Actions to bytes and back (doc/plan-format.md, "ACTIONS"). Within a block an
 * action is stored as its difference to the one before it in the same lane.
 * Private to this directory.
 */
#ifndef PLAN_ACTION_CODEC_H
#define PLAN_ACTION_CODEC_H

#include "base/mem.h"
#include "model/codec.h"
#include "plan/plan.h"
#include "trace/block.h"

#define EDGE_CLASSES 64

/* What the next action of a block refers to. */
struct action_state {
	uint64_t exit_ns, seq;
	uint32_t pid, tid;
	uint64_t edge_nr[EDGE_CLASSES]; /* of the last edge to a lane of this class */
};

/* At the start of a block: what its prefix says, else zero. */
void action_state_begin(struct action_state *state, const struct events_prefix *prefix);

/*
 * Appends; data given as bytes stands in the action. On failure out is as it
 * was: -E2BIG too long, -EOPNOTSUPP a row that the schema lacks.
 */
MUST_CHECK int action_put(const struct schema *s, const struct action *a,
			  struct action_state *state, struct buf *out);

struct action_edges {
	VEC(struct action_edge) list;
};

/*
 * Reads the next action: its values go to the arena, its edges to `edges`, bytes
 * are borrowed from the input. Only the form is checked here. False when the
 * bytes are malformed or the schema has no such row.
 */
MUST_CHECK bool action_get(const struct schema *s, struct cursor *in, struct action_state *state,
			   struct arena *arena, struct action_edges *edges, struct action *ret);

#endif
