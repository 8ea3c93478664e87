/* SPDX-License-Identifier: MIT */
/*
 * Mode think, by number. In the graph of the order think a request waits for all
 * that were complete a threshold before it was issued. On another device these very
 * requests need not be the first to be complete: a disk may have left one waiting for
 * long, for which the program had a thread that waits, while others went on. So
 * a request waits for as many as there were, of each kind (device and operation), and
 * not for the same ones:
 *
 *     A |----------------------|      D was issued when two were complete, B and C.
 *     B |---|                         Where A takes less, A and B will do.
 *     C      |---|
 *     D           |---|
 *
 * Kinds are kept apart: that a flush took long says nothing of a program that reads.
 * No more requests are in flight than in the trace, for each that is issued has as many
 * complete before it as it had there; and where times are those of the trace, so
 * are the issues.
 *
 * The think time is counted from the completion that the program followed, which need not be the last
 * (blk_claim.h). It is counted out in the same way, as one of so many of each kind. What passed
 * since the ones before is the storage's time, not the program's.
 */
#ifndef REPLAY_BLK_NUMBER_H
#define REPLAY_BLK_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

/* So many more of a kind must be complete than for the request before. */
struct blk_need {
	uint32_t kind;
	uint64_t nr;
};

/* What is still in flight in the trace, as the loader goes through it. */
struct blk_needs {
	VEC(struct blk_flying {
		uint64_t end_ns;
		uint32_t kind;
	})
	flying; /* a heap by end_ns */
	uint64_t *nr; /* of each kind; 0 but during a call */
	VEC(struct blk_need) list;
};

void blk_needs_init(struct blk_needs *n, uint32_t nr_kinds);
void blk_needs_release(struct blk_needs *n);
/*
 * What a request needs that is issued next: those with an end up to end_ns that nobody has
 * needed so far, in at most max entries (others are left to the next request). In n->list,
 * until the next call.
 */
void blk_needs_up_to(struct blk_needs *n, uint64_t end_ns, size_t max);
void blk_needs_add(struct blk_needs *n, uint32_t kind, uint64_t end_ns);

/* What is complete in the run. Of one thread at a time. */
struct blk_tally {
	VEC(uint64_t) * ends; /* of each kind, those that nobody has needed: queues */
	size_t *from; /* where they begin */
	uint32_t nr_kinds;
	uint64_t reached_ns; /* the last completion that was needed so far */
};

void blk_tally_init(struct blk_tally *t, uint32_t nr_kinds);
void blk_tally_release(struct blk_tally *t);
void blk_tally_add(struct blk_tally *t, uint32_t kind, uint64_t end_ns);
/* Whether there are so many; what there is counts as needed, need->nr is what is missing. */
bool blk_tally_take(struct blk_tally *t, struct blk_need *need);

#endif
