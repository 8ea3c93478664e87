/* SPDX-License-Identifier: MIT */
/*
 * A table from the hash of a blob to what is known of it, for whoever must
 * remember all blobs that it has seen: 32 bytes a slot, at most three of four
 * slots taken, so 43 to 86 bytes for each distinct blob. Owned by one thread.
 */
#ifndef MODEL_BLOBMAP_H
#define MODEL_BLOBMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/value.h"

struct blob_slot {
	struct hash128 hash;
	uint64_t place; /* these two are the user's */
	uint32_t len_bytes;
	bool taken;
};

struct blob_map {
	struct blob_slot *slots;
	size_t nr_slots, nr_taken;
};

/* A zeroed map is an empty map. */
void blob_map_release(struct blob_map *m);
/* NULL when the hash was never added. Valid until the next add. */
struct blob_slot *blob_map_find(const struct blob_map *m, struct hash128 hash);
/* The slot of the hash, added with place 0 when it is new. */
struct blob_slot *blob_map_add(struct blob_map *m, struct hash128 hash, bool *ret_new);

#endif
