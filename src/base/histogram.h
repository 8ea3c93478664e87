/* SPDX-License-Identifier: MIT */
/*
 * A distribution of numbers from 0 to 2^64 - 1 in bounded memory, with a
 * relative error below 1 %.
 *
 *   octave 0    0 1 2 ... 127             exact
 *   octave 1    128 129 ... 255           exact
 *   octave 2    256 258 ... 510           steps of 2
 *   octave n    2^(n+6) ... 2^(n+7) - 1   steps of 2^(n-1), 128 of them
 *
 * Memory for an octave is made when the first number falls into it. A zeroed
 * histogram is an empty one. Owned by one thread.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

#include "base/attrs.h"

#define HISTOGRAM_STEPS 128
#define HISTOGRAM_STEP_BITS 7
#define HISTOGRAM_OCTAVES (64 - HISTOGRAM_STEP_BITS + 1)

struct histogram {
	uint64_t count;
	uint64_t sum; /* stays at its maximum when it would overflow */
	uint64_t min, max; /* exact; of an empty one 0 */
	uint64_t *octaves[HISTOGRAM_OCTAVES];
};

void histogram_release(struct histogram *h);
uint64_t *histogram_make_octave(struct histogram *h, unsigned int octave);

static inline unsigned int histogram_octave(uint64_t v)
{
	return v < HISTOGRAM_STEPS ? 0
				   : 64 - HISTOGRAM_STEP_BITS - (unsigned int)__builtin_clzll(v);
}

static inline void histogram_add(struct histogram *h, uint64_t v)
{
	unsigned int octave = histogram_octave(v);
	unsigned int shift = octave ? octave - 1 : 0;
	uint64_t *steps = h->octaves[octave];

	if (UNLIKELY(!steps))
		steps = histogram_make_octave(h, octave);
	steps[(v >> shift) & (HISTOGRAM_STEPS - 1)]++;
	if (v > h->max)
		h->max = v;
	if (v < h->min || !h->count)
		h->min = v;
	h->count++;
	if (__builtin_add_overflow(h->sum, v, &h->sum))
		h->sum = UINT64_MAX;
}

/*
 * The number that `percent` of all are not above: 50 is the median, 100 the
 * maximum. 0 when the histogram is empty.
 */
uint64_t histogram_percentile(const struct histogram *h, double percent);

/*
 * How many numbers are in [2^power, 2^(power+1)). 0 is not in any of these:
 * histogram_zeros() counts it.
 */
uint64_t histogram_power(const struct histogram *h, unsigned int power);
uint64_t histogram_zeros(const struct histogram *h);

static inline double histogram_mean(const struct histogram *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}

#endif
