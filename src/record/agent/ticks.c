/* SPDX-License-Identifier: MIT */
#include "record/agent/ticks.h"

#include <x86intrin.h>

#include "base/clock.h"

/* A reading of both clocks is as good as the two are close: the best of so many. */
#define NR_READINGS 5
#define SPAN_FIRST_NS UINT64_C(10000000)
#define SPAN_LAST_NS UINT64_C(1000000000)

static uint64_t read_counter(const struct ticks *c)
{
	return c->by_kernel ? clock_monotonic_ns() : __rdtsc();
}

static struct ticks_moment read_clocks(const struct ticks *c)
{
	struct ticks_moment m = { 0, 0 };
	uint64_t best = UINT64_MAX;
	unsigned int i;

	for (i = 0; i < NR_READINGS; i++) {
		uint64_t before = read_counter(c), ns = clock_monotonic_ns();
		uint64_t took = read_counter(c) - before;

		if (took < best) {
			best = took;
			m = (struct ticks_moment){ before + took / 2, ns - c->start_ns };
		}
	}
	return m;
}

void ticks_init(struct ticks *c, uint64_t start_ns, bool by_kernel)
{
	*c = (struct ticks){ .start_ns = start_ns, .by_kernel = by_kernel };
	c->first = c->last = read_clocks(c);
}

void ticks_release(struct ticks *c)
{
	VEC_RELEASE(&c->stretches);
}

static uint64_t slope_of(uint64_t ns, uint64_t nr_ticks)
{
	return nr_ticks ? (uint64_t)(((unsigned __int128)ns << TICKS_SLOPE_SHIFT) / nr_ticks) : 0;
}

/* The next stretch, from now on; the first one is for all that was. */
static void lay_stretch(struct ticks *c, struct ticks_moment now)
{
	uint64_t rate = slope_of(now.ns - c->last.ns, now.tsc - c->last.tsc), span_ns, target_ns;
	struct ticks_stretch s = { .from = c->first, .slope = rate };

	if (c->stretches.len) {
		s.from.tsc = now.tsc;
		s.from.ns = ticks_along(&c->stretches.items[c->stretches.len - 1], now.tsc);
	}
	span_ns = SPAN_FIRST_NS << (c->stretches.len < 7 ? c->stretches.len : 7);
	span_ns = span_ns < SPAN_LAST_NS ? span_ns : SPAN_LAST_NS;
	c->span_ticks =
		rate ? (uint64_t)(((unsigned __int128)span_ns << TICKS_SLOPE_SHIFT) / rate) : 0;
	target_ns = now.ns + span_ns;
	/* However wrong it was: time never goes back, nor does it stand still. */
	if (c->stretches.len)
		s.slope = target_ns > s.from.ns + span_ns / 2
				  ? slope_of(target_ns - s.from.ns, c->span_ticks)
				  : rate / 2;
	c->last = now;
	VEC_PUSH(&c->stretches, s);
}

uint64_t ticks_in_ns(const struct ticks *c, uint64_t ns)
{
	struct ticks_moment now = read_clocks(c);
	uint64_t passed_ns = now.ns - c->first.ns;

	/* One of a GHz until there is something to go by. */
	return passed_ns ? (uint64_t)((unsigned __int128)ns * (now.tsc - c->first.tsc) / passed_ns)
			 : ns;
}

uint64_t ticks_to_ns_slow(struct ticks *c, uint64_t tsc)
{
	size_t i;

	if (!c->stretches.len || tsc > c->last.tsc + c->span_ticks) {
		struct ticks_moment now = read_clocks(c);

		if (!c->stretches.len || now.tsc > c->last.tsc + c->span_ticks)
			lay_stretch(c, now);
		if (tsc > now.tsc)
			tsc = now.tsc;
	}
	for (i = c->stretches.len - 1; i && tsc < c->stretches.items[i].from.tsc; i--)
		;
	return ticks_along(&c->stretches.items[i], tsc);
}
