/* SPDX-License-Identifier: MIT */
/*
 * The clock of a run. A lane reads it twice per action, so it must be cheap:
 * where the kernel itself keeps time by the processor's counter, so do we (12 ns
 * instead of 31 through the C library, on the machine where this was measured);
 * elsewhere it is CLOCK_MONOTONIC. Times are ns since the ticker was made. Sleeps
 * are translated to CLOCK_MONOTONIC at the moment of sleeping, so that an error
 * of the calibration cannot add up.
 *
 * Constant once made: all threads share it.
 */
#ifndef REPLAY_TICKER_H
#define REPLAY_TICKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

struct ticker {
	bool counter; /* the processor's counter is used */
	uint64_t base_ticks, base_ns;
	uint64_t mult; /* ns per tick, 32.32 */
	uint64_t spin_ns; /* how long before a deadline a sleep must end: measured */
	uint64_t wakeup_ns; /* how late a sleep ends, as a rule: measured */
};

/* Takes some ms to measure the counter and the latency of wake-ups. */
void ticker_init(struct ticker *t);

static inline uint64_t ticker_now_ns(const struct ticker *t)
{
#if defined(__x86_64__)
	if (t->counter)
		return (uint64_t)(((unsigned __int128)(__rdtsc() - t->base_ticks) * t->mult) >> 32);
#endif
	return clock_monotonic_ns() - t->base_ns;
}

/* Returns at the deadline or shortly after it; sleeps as long as a sleep is surely over in time. */
void ticker_wait_until(const struct ticker *t, uint64_t deadline_ns);

static inline void ticker_relax(void)
{
#if defined(__x86_64__)
	_mm_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
