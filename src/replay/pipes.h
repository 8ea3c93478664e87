/* SPDX-License-Identifier: MIT */
/*
 * Pipes of a run: what the slots of their ends have in common. A pipe that comes
 * to a standstill is broken: from then on the recorded outcomes of calls on it
 * stand. Its descriptors never block; who waits for it waits here (calls_pipe.c).
 *
 * There is one for each slot, made before the run, so that a lane allocates
 * nothing. Any thread may call.
 */
#ifndef REPLAY_PIPES_H
#define REPLAY_PIPES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct run;
struct slot;

struct pipe {
	_Atomic uint32_t nr_slots; /* that hold an end of it */
	_Atomic bool broken;
	_Atomic uint64_t taken_bytes; /* from the budget, for what it can hold */
	struct pipe *next_free;
};

struct pipes {
	pthread_mutex_t mutex; /* of the next three */
	struct pipe *items;
	uint32_t nr_used; /* of items: the others were never used */
	struct pipe *first_free;
	_Atomic uint32_t nr_broken;
};

void pipes_prepare(struct run *run);
void pipes_release(struct run *run);
/* NULL: there are more pipes than slots. The first slot that holds it owns it. */
struct pipe *pipes_new(struct run *run);
/* The slot's descriptor is an end of the pipe. NULL: of none. */
void pipes_hold(struct slot *s, struct pipe *p);
/* The slot's descriptor goes. */
void pipes_drop(struct run *run, struct slot *s);
/* Counted once. */
void pipes_break(struct run *run, struct pipe *p);

static inline bool pipe_is_broken(const struct pipe *p)
{
	return p &&
	       atomic_load_explicit(&((struct pipe *)(uintptr_t)p)->broken, memory_order_relaxed);
}

#endif
