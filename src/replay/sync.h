/* SPDX-License-Identifier: MIT */
/*
 * How lanes wait for each other. Each lane has a counter of the actions that it
 * has completed; "action k of lane u is complete" is done > k.
 *
 *   completer (owner of the lane)          waiter
 *   done = k + 1          (seq_cst)        e = epoch
 *   done >= wake_at ?     (seq_cst)        wake_at = min(wake_at, wanted)   (seq_cst)
 *     wake_at = none                       done >= wanted ? go on           (seq_cst)
 *     epoch++, wake all                    sleep while epoch == e
 *
 * Either the completer sees the waiter's wish, or the waiter sees the new count:
 * both store before they load, and all four are sequentially consistent. A wish
 * that is taken away with a smaller one of another waiter changes the epoch,
 * which the waiter read before it wished.
 *
 * Before it sleeps a waiter spins a little and yields a little, as long as that
 * used to pay: a hand-over between lanes that fit the cores takes 40 ns that way
 * and 5 to 25 us through the kernel; with more lanes than cores it is the other
 * way round.
 */
#ifndef REPLAY_SYNC_H
#define REPLAY_SYNC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"

#define SYNC_NONE UINT64_MAX

struct sync_counter {
	_Alignas(64) _Atomic uint64_t value; /* written by its owner alone */
	_Alignas(64) _Atomic uint64_t wake_at; /* smallest value that somebody sleeps for */
	_Atomic uint32_t epoch; /* the futex */
};

/* What all waiters of a run share. */
struct sync_hub {
	_Alignas(64) _Atomic uint32_t nr_runnable; /* lanes that neither sleep nor have ended */
	_Atomic uint32_t nr_yielders;
	uint32_t nr_cpus;
	const _Atomic uint32_t *stop; /* not 0: all waits end */
};

/* A waiter's own memory of what paid. Zeroed: nothing known. */
struct sync_waiter {
	uint32_t budget; /* of yields */
	uint64_t nr_waits, retry_at;
	uint32_t pause; /* waits between two tries */
};

void sync_hub_init(struct sync_hub *h, uint32_t nr_lanes, const _Atomic uint32_t *stop);
void sync_counter_init(struct sync_counter *c);
void sync_wake_sleepers(struct sync_counter *c);

/* By the owner. */
static inline void sync_set(struct sync_counter *c, uint64_t value)
{
	atomic_exchange(&c->value,
			value); /* seq_cst, see above; an exchange is the cheapest on x86 */
	if (UNLIKELY(value >= atomic_load(&c->wake_at)))
		sync_wake_sleepers(c);
}

static inline uint64_t sync_get(const struct sync_counter *c)
{
	return atomic_load_explicit(&c->value, memory_order_acquire);
}

/* Returns when the counter is at least `wanted`: true; or when the run is stopped: false. */
bool sync_wait(struct sync_counter *c, uint64_t wanted, struct sync_waiter *w, struct sync_hub *h);

/* A sleep of any other kind: the lane does not count as runnable for so long. */
void sync_sleep_begin(struct sync_hub *h);
void sync_sleep_end(struct sync_hub *h);

/* The calls themselves. They look at the value of a word that only this process shares... */
void sync_futex_wait(const _Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void sync_futex_wake(_Atomic uint32_t *word);

#endif
