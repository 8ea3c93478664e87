/* SPDX-License-Identifier: MIT */
/*
 * A distribution of times in memory of a fixed size, so that it can stand in
 * memory that two processes share; the relative error is at most 1/32. A zeroed
 * one is empty. Owned by one thread.
 */
#ifndef REPLAY_SPREAD_H
#define REPLAY_SPREAD_H

#include <stdint.h>

#define SPREAD_STEP_BITS 4
#define SPREAD_STEPS (1u << SPREAD_STEP_BITS)
#define SPREAD_OCTAVES (64 - SPREAD_STEP_BITS + 1)

struct spread {
	uint64_t count, sum, min, max;
	uint32_t steps[SPREAD_OCTAVES * SPREAD_STEPS];
};

void spread_add(struct spread *s, uint64_t v);
/* Adds all of `from`. */
void spread_merge(struct spread *s, const struct spread *from);
/* The number that `percent` of all are not above; 0 when it is empty. */
uint64_t spread_percentile(const struct spread *s, double percent);

#endif
