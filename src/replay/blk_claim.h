/* SPDX-License-Identifier: MIT */
/*
 * Mode think, by number: since when the program thought before a request. Only times are known,
 * and the last completion before the request may be that of another thread:
 *
 *     A |-----|             C was complete last, but threads that have all about the same to
 *     B   |------|          compute go on in the order in which they were let go: D follows A,
 *     C      |------|       E follows B. Counted from C the think time of D would be too short,
 *     D             |---    and on a faster device, where more threads think at a time, more
 *     E              |---   would be in flight than the program has. (All of A, B and C are
 *                           waited for in any case: blk_number.h.)
 *
 * So each completion lets one request go on, the oldest first. That is a guess, and it is made
 * only where it can be right:
 * - Where a program waits for several requests, only the last of them lets it go on. Requests that are
 *   issued together tell of such a program; while there are many of these, and where fewer are in flight
 *   than threads would think, the last completion counts, as it does when none is left.
 * - A completion after which nobody went on stays over. What stays over for long is dropped.
 * - A request that found none, though one was complete so shortly before that it cannot be a parent,
 *   takes that.
 *
 * Of one thread. Memory follows what is in flight.
 */
#ifndef REPLAY_BLK_CLAIM_H
#define REPLAY_BLK_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

#define BLK_NO_THINK UINT64_MAX

struct blk_end {
	uint64_t end_ns;
	bool lets_go; /* one request goes on after it */
};

struct blk_claims {
	VEC(struct blk_end) flying; /* a heap by end_ns: what no request can follow yet */
	VEC(struct blk_end) landed; /* by end_ns, a queue: what none has followed */
	size_t from; /* where it begins */
	size_t nr_free; /* of it, those that let one go on */
	size_t nr_over; /* at least so many were left by each of the last requests */
	size_t nr_promised; /* to requests that came a little early */
	uint64_t nr, first_ns, last_ns; /* requests */
	uint32_t nr_together; /* at the end: issued together with the one before */
	uint32_t share_together; /* of the last requests, about */
};

/*
 * A request is issued, think_ns after the last that it can follow was complete (BLK_NO_THINK: it
 * follows none). Returns the time since the completion that it does follow.
 */
uint64_t blk_claims_issue(struct blk_claims *c, uint64_t issue_ns, uint64_t think_ns);
/* The same request: when it was complete. */
void blk_claims_add(struct blk_claims *c, uint64_t end_ns);
void blk_claims_release(struct blk_claims *c);

#endif
