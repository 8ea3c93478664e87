/* SPDX-License-Identifier: MIT */
/*
 * Random programs of several threads and processes over a small name space:
 * they make, rename, link and remove names, open, dup, fork, read and write.
 * Each is run in the model, thread after thread in random turns, and what
 * happened is written as a trace, as if it had been recorded.
 */
#ifndef MODEL_PROGRAM_H
#define MODEL_PROGRAM_H

#include <stdint.h>
#include <stdio.h>

struct program_options {
	uint64_t seed;
	unsigned int nr_threads; /* at the beginning; forks add to them */
	unsigned int nr_calls; /* of all threads together */
};

/* Writes the trace to path; aborts on failure. */
void program_write_trace(const struct program_options *o, const char *path);

/* Writes it as a script, which real_program performs. */
void program_write_script(const struct program_options *o, FILE *out);

/* The same numbers for the same seed, everywhere. */
struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *r);
unsigned int rng_below(struct rng *r, unsigned int n);

#endif
