/* SPDX-License-Identifier: MIT */
#include "replay/spread.h"

#include "base/banned.h"

static unsigned int step_of(uint64_t v)
{
	unsigned int octave;

	if (v < SPREAD_STEPS)
		return (unsigned int)v;
	octave = 64 - SPREAD_STEP_BITS - (unsigned int)__builtin_clzll(v);
	return octave * SPREAD_STEPS + ((v >> (octave - 1)) & (SPREAD_STEPS - 1));
}

static uint64_t step_middle(unsigned int step)
{
	unsigned int octave = step / SPREAD_STEPS;
	uint64_t low = step % SPREAD_STEPS;

	if (!octave)
		return low;
	low = (low + SPREAD_STEPS) << (octave - 1);
	return low + ((UINT64_C(1) << (octave - 1)) >> 1);
}

void spread_add(struct spread *s, uint64_t v)
{
	uint32_t *step = &s->steps[step_of(v)];

	if (*step != UINT32_MAX)
		(*step)++;
	if (v > s->max)
		s->max = v;
	if (v < s->min || !s->count)
		s->min = v;
	s->count++;
	if (__builtin_add_overflow(s->sum, v, &s->sum))
		s->sum = UINT64_MAX;
}

void spread_merge(struct spread *s, const struct spread *from)
{
	unsigned int i;

	if (!from->count)
		return;
	for (i = 0; i < SPREAD_OCTAVES * SPREAD_STEPS; i++)
		if (__builtin_add_overflow(s->steps[i], from->steps[i], &s->steps[i]))
			s->steps[i] = UINT32_MAX;
	if (from->max > s->max)
		s->max = from->max;
	if (from->min < s->min || !s->count)
		s->min = from->min;
	s->count += from->count;
	if (__builtin_add_overflow(s->sum, from->sum, &s->sum))
		s->sum = UINT64_MAX;
}

uint64_t spread_percentile(const struct spread *s, double percent)
{
	uint64_t rank = (uint64_t)(percent / 100 * (double)s->count + 0.999999), seen = 0;
	unsigned int i;

	if (!s->count)
		return 0;
	if (rank >= s->count)
		return s->max;
	for (i = 0; i < SPREAD_OCTAVES * SPREAD_STEPS; i++) {
		seen += s->steps[i];
		if (seen >= rank && seen) {
			uint64_t v = step_middle(i);

			return v < s->min ? s->min : v > s->max ? s->max : v;
		}
	}
	return s->max;
}
