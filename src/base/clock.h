/* SPDX-License-Identifier: MIT */
/*
 * Times are unsigned 64-bit nanoseconds (584 years); this is the only place
 * that converts them. Any thread may call these.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/attrs.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

/* Since some fixed moment of this boot; never steps back. */
uint64_t clock_monotonic_ns(void);
/* Since 1970; follows the wall clock and may step. */
uint64_t clock_realtime_ns(void);

/*
 * For values of foreign origin. -ERANGE when the time is negative, is later
 * than 64 bits can say, or its nanoseconds are not below one second.
 */
MUST_CHECK int clock_ns_from_timespec(const struct timespec *ts, uint64_t *ret_ns);
struct timespec clock_timespec_from_ns(uint64_t ns);

/* Stop at the ends instead of wrapping around. */
static inline uint64_t clock_add_ns(uint64_t a_ns, uint64_t b_ns)
{
	return b_ns > UINT64_MAX - a_ns ? UINT64_MAX : a_ns + b_ns;
}

static inline uint64_t clock_sub_ns(uint64_t a_ns, uint64_t b_ns)
{
	return b_ns > a_ns ? 0 : a_ns - b_ns;
}

#endif
