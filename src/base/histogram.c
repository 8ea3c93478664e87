/* SPDX-License-Identifier: MIT */
#include "base/histogram.h"

#include <stdlib.h>

#include "base/banned.h"
#include "base/mem.h"

void histogram_release(struct histogram *h)
{
	unsigned int i;

	for (i = 0; i < HISTOGRAM_OCTAVES; i++)
		free(h->octaves[i]);
	*h = (struct histogram){ 0 };
}

uint64_t *histogram_make_octave(struct histogram *h, unsigned int octave)
{
	h->octaves[octave] = xcalloc(HISTOGRAM_STEPS, sizeof(uint64_t));
	return h->octaves[octave];
}

/* The middle of a step: half a step is the most that any of its numbers is away. */
static uint64_t step_middle(unsigned int octave, unsigned int step)
{
	unsigned int shift = octave ? octave - 1 : 0;
	uint64_t low = ((octave ? (uint64_t)HISTOGRAM_STEPS : 0) + step) << shift;

	return low + (shift ? (UINT64_C(1) << shift) / 2 : 0);
}

static uint64_t within(uint64_t v, uint64_t low, uint64_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* Which of the numbers, in order and counted from 1, the percentile is: never none, never beyond. */
static uint64_t percentile_rank(uint64_t count, double percent)
{
	double exact = percent / 100 * (double)count;
	uint64_t rank = (uint64_t)exact;

	if ((double)rank < exact)
		rank++;
	return within(rank, 1, count);
}

uint64_t histogram_percentile(const struct histogram *h, double percent)
{
	uint64_t rank, seen = 0;
	unsigned int octave, step;

	if (!h->count)
		return 0;
	rank = percentile_rank(h->count, percent);
	if (rank == h->count)
		return h->max;
	for (octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
		if (!h->octaves[octave])
			continue;
		for (step = 0; step < HISTOGRAM_STEPS; step++) {
			seen += h->octaves[octave][step];
			if (seen >= rank)
				return within(step_middle(octave, step), h->min, h->max);
		}
	}
	return h->max;
}

static uint64_t sum_steps(const struct histogram *h, unsigned int octave, unsigned int from,
			  unsigned int to)
{
	uint64_t sum = 0;
	unsigned int i;

	if (!h->octaves[octave])
		return 0;
	for (i = from; i < to; i++)
		sum += h->octaves[octave][i];
	return sum;
}

uint64_t histogram_power(const struct histogram *h, unsigned int power)
{
	if (power >= 64)
		return 0;
	if (power < HISTOGRAM_STEP_BITS)
		return sum_steps(h, 0, 1u << power, 2u << power);
	return sum_steps(h, power - HISTOGRAM_STEP_BITS + 1, 0, HISTOGRAM_STEPS);
}

uint64_t histogram_zeros(const struct histogram *h)
{
	return sum_steps(h, 0, 0, 1);
}
