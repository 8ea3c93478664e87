/* SPDX-License-Identifier: MIT */
/*
 * What of an original event's arguments the run vouches for. Of an event that was
 * made again: what went in; of what came back only that which was compared and
 * found equal, and the numbers of new descriptors. Of one that was not made: all.
 * Buffers are kept by hash. Owned by one thread.
 */
#ifndef REPLAY_RUN_ARGS_H
#define REPLAY_RUN_ARGS_H

#include "base/arena.h"
#include "model/event.h"
#include "plan/pick.h"

struct run_args {
	struct picker picker;
	uint64_t stable[STRUCT_MAX]; /* fields that results are compared by; 0: all */
	struct arena *arena; /* for what is not the same as before */
};

void run_args_init(struct run_args *ra, struct arena *arena);
/* Values are changed in place; ev has the flags of the run. */
void run_args_reduce(const struct run_args *ra, struct event *ev);

/* Only the compared fields of structs that the call filled; values are changed in place. */
void run_args_keep_compared(const struct run_args *ra, struct event *ev);

#endif
