/* SPDX-License-Identifier: MIT */
/*
 * Blobs that were stored, by their hashes: a bounded table that forgets those which were of no
 * use for the longest time. Belongs to one thread.
 */
#ifndef TRACE_KNOWN_H
#define TRACE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/value.h"

struct known_blob;

struct known {
	struct known_blob *items; /* in sets */
	size_t mask; /* number of sets - 1 */
	size_t sets_max;
	size_t nr_put; /* into this table, which is small at first */
	uint64_t age;
};

/* For about so many; 0: the default. */
void known_init(struct known *k, size_t nr_max);
void known_release(struct known *k);
/* Whether there is one with that hash; where it is goes to the reference. */
bool known_find(struct known *k, struct blob_ref *ref);
void known_add(struct known *k, const struct blob_ref *ref);

#endif
