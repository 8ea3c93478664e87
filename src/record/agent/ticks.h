/* SPDX-License-Identifier: MIT */
/*
 * The processor's counter as time of the trace; or the kernel's clock, where the
 * counter is not steady, whose ns are the ticks then. One mapping for all threads,
 * continuous and growing, whenever and in whichever order it is asked: so what was
 * before something else by the counter is so in the trace. It is made of straight
 * stretches; each is laid when the one before it has lasted long enough, begins where
 * that ends, and is so steep that it meets the clock at its own end.
 */
#ifndef RECORD_AGENT_TICKS_H
#define RECORD_AGENT_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

/* A moment on both clocks. */
struct ticks_moment {
	uint64_t tsc, ns;
};

#define TICKS_SLOPE_SHIFT 32

struct ticks_stretch {
	struct ticks_moment from;
	uint64_t slope; /* ns per tick, times 2^TICKS_SLOPE_SHIFT */
};

struct ticks {
	uint64_t start_ns; /* of the trace, by the monotonic clock */
	bool by_kernel; /* the ticks are those of that clock, too */
	struct ticks_moment first, last; /* at which both clocks were read */
	uint64_t span_ticks; /* of the last stretch */
	VEC(struct ticks_stretch) stretches;
};

/* Early: the longer before the first question, the better is the answer. */
void ticks_init(struct ticks *c, uint64_t start_ns, bool by_kernel);
void ticks_release(struct ticks *c);
/* About how many ticks that takes. */
uint64_t ticks_in_ns(const struct ticks *c, uint64_t ns);
uint64_t ticks_to_ns_slow(struct ticks *c, uint64_t tsc);

static inline uint64_t ticks_along(const struct ticks_stretch *s, uint64_t tsc)
{
	if (tsc <= s->from.tsc)
		return s->from.ns;
	return s->from.ns +
	       (uint64_t)((unsigned __int128)(tsc - s->from.tsc) * s->slope >> TICKS_SLOPE_SHIFT);
}

/* What is not yet, and can come only from a program that lies, is now. */
static inline uint64_t ticks_to_ns(struct ticks *c, uint64_t tsc)
{
	const struct ticks_stretch *s;

	if (UNLIKELY(!c->stretches.len))
		return ticks_to_ns_slow(c, tsc);
	s = &c->stretches.items[c->stretches.len - 1];
	if (LIKELY(tsc >= s->from.tsc && tsc <= c->last.tsc + c->span_ticks))
		return ticks_along(s, tsc);
	return ticks_to_ns_slow(c, tsc);
}

#endif
