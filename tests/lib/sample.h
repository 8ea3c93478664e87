/* SPDX-License-Identifier: MIT */
/*
 * Events for tests: made from numbers, so that a reader in another process, or
 * of another file, can make them again and compare. No state but the caller's.
 */
#ifndef LIB_SAMPLE_H
#define LIB_SAMPLE_H

#include "model/codec.h"
#include "model/event.h"
#include "model/schema.h"
#include "trace/reader.h"

/* Numbers that look random and come again for the same seed. */
struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n);
void rng_fill(struct rng *r, uint8_t *p, size_t len);

/* A store that keeps nothing but the hash. */
extern struct blob_sink sample_sink;

/* Any values that the row can hold: all forms of data, pointers that lead nowhere, gaps. */
void sample_args(const struct schema *s, unsigned int row_id, struct rng *r, struct arena *a,
		 struct value *args);

/*
 * The n-th event of a thread: calls with small, large, repeated, cut and missing
 * data, structs, lists, errors. Times rise with n; threads interleave.
 */
void sample_event(struct arena *a, uint32_t tid, uint64_t n, struct event *ret);

/* Same in all that a trace keeps; data by content or hash. */
bool sample_equal(const struct event *a, const struct event *b);

/*
 * A hash over all of an event or record, the bytes of its data included, each
 * piece of which is loaded. -errno when one cannot be.
 */
MUST_CHECK int sample_digest_event(struct trace *t, const struct event *ev, struct hash128 *ret,
				   struct err *err);
MUST_CHECK int sample_digest_item(struct trace *t, const struct item *item, struct hash128 *ret,
				  struct err *err);

#endif
