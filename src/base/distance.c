/* SPDX-License-Identifier: MIT */
#include "base/distance.h"

#include <math.h>

#include "base/banned.h"

struct gap {
	const struct histogram *a, *b;
	uint64_t seen_a, seen_b; /* numbers up to here */
};

static uint64_t count_at(const struct histogram *h, unsigned int octave, unsigned int step)
{
	return h->octaves[octave] ? h->octaves[octave][step] : 0;
}

static double step_width(unsigned int octave)
{
	return octave ? (double)(UINT64_C(1) << (octave - 1)) : 1;
}

/* |F_a - F_b| after a step. */
static double advance(struct gap *g, unsigned int octave, unsigned int step)
{
	g->seen_a += count_at(g->a, octave, step);
	g->seen_b += count_at(g->b, octave, step);
	return fabs((double)g->seen_a / (double)g->a->count -
		    (double)g->seen_b / (double)g->b->count);
}

double distance_ks(const struct histogram *a, const struct histogram *b)
{
	struct gap g = { .a = a, .b = b };
	unsigned int octave, step;
	double gap, most = 0;

	if (!a->count || !b->count)
		return NAN;
	for (octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
		for (step = 0; step < HISTOGRAM_STEPS; step++) {
			gap = advance(&g, octave, step);
			most = gap > most ? gap : most;
		}
	}
	return most;
}

double distance_emd(const struct histogram *a, const struct histogram *b)
{
	struct gap g = { .a = a, .b = b };
	unsigned int octave, step;
	double area = 0;

	if (!a->count || !b->count)
		return NAN;
	for (octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
		for (step = 0; step < HISTOGRAM_STEPS; step++)
			area += advance(&g, octave, step) * step_width(octave);
	return area;
}
