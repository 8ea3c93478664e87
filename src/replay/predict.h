/* SPDX-License-Identifier: MIT */
/*
 * What the program itself would have taken on this target. Each lane keeps a
 * clock of its own that knows the calls as long as they took here, the computing
 * of the program, and the edges, but nothing of what the replay added (wake-ups,
 * dispatch, loading) or left out (computing, at other speeds than natural):
 *
 *   begin = max(end of the lane's last action + computing before, ends of all edges) + computing after
 *   end   = begin + time in the call
 *
 * An edge to a start lets go at the begin of the other. Edges
 * that point to actions far behind in their lane (PREDICT_KEPT) bind nobody any
 * more: their times are not kept.
 */
#ifndef REPLAY_PREDICT_H
#define REPLAY_PREDICT_H

#include <stdatomic.h>
#include <stdint.h>

#define PREDICT_KEPT 512 /* a power of two */

struct lane;
struct ready;

struct predict {
	uint64_t last_ns; /* end of the lane's last action, or its begin while it is in the call */
	/* Begins and ends of actions, by their number modulo PREDICT_KEPT; written by the lane alone. */
	_Atomic uint64_t *begins_ns, *ends_ns;
};

/* What each lane needs. */
#define PREDICT_BYTES (2 * PREDICT_KEPT * sizeof(uint64_t))

/* Action nr of the lane begins: its edges have let go. Before the others are told that it has started. */
void predict_begin(struct lane *l, const struct ready *a, uint64_t nr);
/* It took call_ns. Before the others are told that it is done. */
void predict_end(struct lane *l, uint64_t nr, uint64_t call_ns);

#endif
