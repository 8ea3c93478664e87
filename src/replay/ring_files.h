/* SPDX-License-Identifier: MIT */
/*
 * The files that an io_uring has in its own table (registered ones, and those that
 * requests open there). Each is a descriptor of its own, as a program may close the
 * one that it has registered. The loader makes the tables, which belong to the run;
 * lanes use them, in the order that the plan's edges say.
 */
#ifndef REPLAY_RING_FILES_H
#define REPLAY_RING_FILES_H

#include "replay/inside.h"

/* In a list of slots: what is there stays. */
#define RING_FILE_SKIP (READY_NO_SLOT - 1)

struct ring_file {
	_Atomic uint32_t slot; /* of the descriptor that was registered, or READY_NO_SLOT */
	_Atomic int fd; /* owned; -1: none */
};

struct ring_files {
	struct ring_files *next; /* of the run */
	uint32_t nr;
	struct ring_file items[];
};

/* All empty. */
struct ring_files *ring_files_new(struct run *run, uint32_t nr);
void ring_files_free_all(struct run *run);

/* Empties the table. NULL: nothing. */
void ring_files_close(struct ring_files *f);
/* Hands the descriptor over to the caller; -1: there is none. */
int ring_files_take(struct ring_files *f, uint64_t index);
/* Takes the descriptor over; it is closed, and false, if the table has no such place. */
bool ring_files_put(struct ring_files *f, uint64_t index, uint32_t slot, int fd);
/* Puts duplicates of what the slots of `from` hold at `first` and behind it. */
void ring_files_update(const struct run *run, struct ring_files *f, uint64_t first,
		       const struct ring_files *from);

#endif
