/* SPDX-License-Identifier: MIT */
/* What the parts of flight share. All functions want the mutex of the flight held. */
#ifndef REPLAY_FLIGHT_INSIDE_H
#define REPLAY_FLIGHT_INSIDE_H

#include <liburing.h>

#include "replay/flight.h"

#define EVENTS_AT_ONCE 64
#define PROBED_OPS 64

/* A request from its submission until it is taken. */
struct entry {
	uint64_t number;
	uint32_t next; /* 1 + the next one under the same head, or free; 0: none */
	uint32_t slot;
	bool used, flying;
	uint8_t flags; /* enum request_flag */
	struct request_result got; /* when landed */
	struct ring_files *files; /* what it opens goes there, when it is taken; NULL: elsewhere */
	int held_fd; /* of the ring's table, that it closes; -1: none */
	const struct request *q; /* while it flies */
	struct requests *of; /* likewise */
};

/* All but `next` and what is set before the flight is open is under the mutex. */
struct flight {
	struct flight *next; /* of the run */
	pthread_mutex_t mutex;
	pthread_cond_t landed;
	bool has_leader; /* somebody waits in the kernel */
	bool is_aio, is_open;
	bool has_ring; /* of io_uring; else calls stand in */
	uint64_t ops; /* that the ring knows: bits */
	struct io_uring ring;
	uint64_t context; /* of aio */
	struct k_io_event events[EVENTS_AT_ONCE];
	uint32_t nr_entries; /* a power of two */
	uint32_t *heads; /* by number: 1 + an entry; 0: none */
	struct entry *entries;
	uint32_t first_free, hand;
	uint32_t nr_flying, most_flying;
	uint64_t nr_requests, nr_by_calls;
};

/* NULL: the run was stopped, or the flight closed meanwhile. */
struct entry *flight_entry_new(const struct run *run, struct flight *f, const struct request *q,
			       struct requests *of);
void flight_entry_free(struct flight *f, struct entry *e);
void flight_land(struct flight *f, struct entry *e, int64_t res);
/* Something is in flight. False: the run was stopped. */
bool flight_wait_some(const struct run *run, struct flight *f);
/* What has landed becomes what the trace says that it was. Without the mutex. */
void flight_conclude(struct lane *l, const struct completion *want, uint8_t flags, uint32_t slot,
		     struct request_result *got);

#endif
