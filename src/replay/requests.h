/* SPDX-License-Identifier: MIT */
/*
 * Results of asynchronous requests. A request is made when it is submitted, and
 * its result is kept until the completion that the trace has of it comes by,
 * perhaps in another lane: then both are compared.
 *
 *   io_uring   by the number of the request, in a table of the ring
 *   aio        in the slot of the request
 *
 * A result that nobody asks for, or whose place was needed by a later request,
 * goes unverified.
 */
#ifndef REPLAY_REQUESTS_H
#define REPLAY_REQUESTS_H

#include "model/value.h"
#include "replay/inside.h"

#define RING_RESULTS 4096

struct request_result {
	uint64_t number; /* 1 + that of the request; 0: none */
	int64_t res;
	bool has_hash;
	struct hash128 hash; /* of what was read */
};

struct ring_results {
	struct ring_results *next; /* of the run */
	struct request_result items[RING_RESULTS];
};

/* What the trace says of one. */
struct completion {
	uint64_t number; /* of the request; of aio: its slot */
	int64_t res;
	bool counts_bytes; /* res must be the same, not only its sign */
	bool has_hash;
	struct hash128 hash;
};

struct completions {
	uint32_t nr;
	struct completion *items;
};

/* Compares; the first that differs is left in l->odd. */
void requests_compare(struct lane *l, const struct completion *want,
		      const struct request_result *got);
/* The completion has come; s is the ring. */
void requests_complete(struct lane *l, struct slot *ring, const struct completions *all);
/* Likewise of aio. */
void requests_complete_aio(struct lane *l, const struct completions *all);

#endif
