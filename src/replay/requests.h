/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous requests, as the loader prepares them: what an action submits,
 * and what the trace says of those that were seen to complete in it. How they
 * are performed: replay/flight.h.
 */
#ifndef REPLAY_REQUESTS_H
#define REPLAY_REQUESTS_H

#include <stdatomic.h>

#include "model/kernel_structs.h"
#include "model/value.h"
#include "replay/inside.h"

struct flight;

enum request_flag {
	REQUEST_OPENS = 1, /* its result is a descriptor, for the slot that its completion names */
	REQUEST_CLOSES = 2, /* done when it completes */
	REQUEST_CHANGES = 4, /* files or names: who looks at them waits for it */
	REQUEST_SWAPPED = 8, /* the descriptor goes to regs[1] */
	REQUEST_LINKED = 16, /* to the one before it */
	REQUEST_ABSENT =
		32, /* the plan has no descriptor for it: one that is simulated, or none at all */
	REQUEST_BY_CALL = 64, /* at its submission: what follows may use what it opens */
};

struct request {
	int32_t nr; /* of the call that does the same; -1: none */
	uint8_t opcode; /* of io_uring */
	uint8_t links; /* flags of an sqe that order it among others */
	uint8_t flags; /* enum request_flag */
	uint32_t op_flags;
	uint32_t fixed; /* 1 + the index of a registered file; 0: regs[0] is a descriptor */
	uint32_t slot; /* of its file; READY_NO_SLOT: none */
	uint32_t slot2; /* of the second directory, for regs[2]; READY_NO_SLOT: none */
	uint32_t
		direct; /* where it opens or closes in the ring's table: 1 + the index; 0: nowhere */
	struct ring_files *update; /* of that table, at regs[1]; NULL: none */
	uint64_t number; /* by which its completion names it; of aio: its slot */
	uint64_t regs[6];
	void *data; /* what it reads, in one piece; NULL: nobody wants to know */
	struct k_iocb *block; /* of aio */
};

/* What the trace says of one. */
struct completion {
	uint64_t number; /* of the request; of aio: its slot */
	int64_t res;
	uint32_t slot; /* that an open fills, or READY_NO_SLOT */
	bool is_verified;
	bool counts_bytes; /* res must be the same, not only its sign */
	bool has_hash;
	struct hash128 hash;
};

struct completions {
	uint32_t nr;
	struct completion *items;
};

struct requests {
	struct completions early; /* had come before the others were submitted */
	uint32_t nr;
	struct request *items;
	struct k_iocb **blocks; /* of aio: room for as many */
	struct completions done;
	/* Of the run: the action is aloft while any of them are in flight. */
	struct flight *flight;
	_Atomic uint32_t nr_flying;
};

static inline bool request_is_made(const struct request *q)
{
	return q->nr >= 0 || (q->flags & REQUEST_CLOSES);
}

/* What came of one. */
struct request_result {
	int64_t res;
	bool has_hash;
	struct hash128 hash; /* of what was read */
};

/* The result of a request that has ended, from the memory of its action. */
struct request_result request_result_of(const struct request *q, int64_t res);
/* Compares; the first that differs is left in l->odd. */
void request_compare(struct lane *l, const struct completion *want,
		     const struct request_result *got);

#endif
