/* SPDX-License-Identifier: MIT */
/*
 * Pipes and FIFOs of a run: what the slots of their ends have in common. One that
 * comes to a standstill is broken: from then on the recorded outcomes of calls on it
 * stand. Its descriptors never block; who waits for it waits here (pipe_wait.h).
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
#include <sys/types.h>

struct run;
struct slot;

struct pipe {
	_Atomic uint32_t nr_slots; /* that hold an end of it */
	_Atomic bool broken;
	_Atomic uint64_t taken_bytes; /* from the budget, for what it can hold */
	struct pipe *next_free;
	/* Of a FIFO, which may be opened again and again; all are in a list. */
	bool is_fifo;
	dev_t dev;
	ino_t ino;
	struct pipe *next_fifo;
	_Atomic uint32_t nr_ends[2], nr_came[2]; /* readers, writers: there now, and ever */
};

/* Ends of a FIFO that a descriptor is. */
enum pipe_ends { PIPE_READS = 1, PIPE_WRITES = 2 };

struct pipes {
	pthread_mutex_t mutex; /* of the next four */
	struct pipe *items;
	uint32_t nr_used; /* of items: the others were never used */
	struct pipe *first_free;
	struct pipe *fifos;
	_Atomic uint32_t nr_broken;
};

void pipes_prepare(struct run *run);
void pipes_release(struct run *run);
/* NULL: there are more pipes than slots. The first slot that holds it owns it. */
struct pipe *pipes_new(struct run *run);
/* The slot's descriptor is an end of the pipe. NULL: of none. ends: of a FIFO, else 0. */
void pipes_hold(struct slot *s, struct pipe *p, unsigned int ends);
/* The slot's descriptor goes. */
void pipes_drop(struct run *run, struct slot *s);
/* The FIFO with this inode, to be released again. NULL: more pipes and FIFOs than slots are in use. */
struct pipe *pipes_take_fifo(struct run *run, dev_t dev, ino_t ino);
void pipes_release_fifo(struct run *run, struct pipe *p);
/* Somebody opens ends of it, and does so no longer: a slot may hold them then. */
void pipes_come(struct pipe *p, unsigned int ends);
void pipes_go(struct pipe *p, unsigned int ends);
/* Counted once. */
void pipes_break(struct run *run, struct pipe *p);

/* Of one of enum pipe_ends. */
static inline _Atomic uint32_t *pipe_nr_ends(struct pipe *p, unsigned int end)
{
	return &p->nr_ends[end == PIPE_WRITES];
}

static inline _Atomic uint32_t *pipe_nr_came(struct pipe *p, unsigned int end)
{
	return &p->nr_came[end == PIPE_WRITES];
}

static inline bool pipe_is_broken(const struct pipe *p)
{
	return p &&
	       atomic_load_explicit(&((struct pipe *)(uintptr_t)p)->broken, memory_order_relaxed);
}

#endif
