/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <assert.h>
#include <errno.h>

#include "base/banned.h"

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;
	int r = clock_gettime(clock, &ts);

	/* Both clocks exist on every Linux, and the pointer is good. */
	assert(r == 0);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return now_ns(CLOCK_REALTIME);
}

int clock_ns_from_timespec(const struct timespec *ts, uint64_t *ret_ns)
{
	uint64_t ns;

	if (ts->tv_sec < 0 || ts->tv_nsec < 0 || (uint64_t)ts->tv_nsec >= NS_PER_S)
		return -ERANGE;
	if (__builtin_mul_overflow((uint64_t)ts->tv_sec, NS_PER_S, &ns) ||
	    __builtin_add_overflow(ns, (uint64_t)ts->tv_nsec, &ns))
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}

struct timespec clock_timespec_from_ns(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};
}
