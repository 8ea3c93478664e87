/* SPDX-License-Identifier: MIT */
/*
 * A hash map from a number to a pointer: threads by their tid, descriptors
 * beyond the dense part of a table, asynchronous requests by their address.
 * Keys are foreign numbers and are mixed before use. A value is never NULL.
 * Owned by one thread.
 */
#ifndef FSMODEL_IDS_H
#define FSMODEL_IDS_H

#include <stddef.h>
#include <stdint.h>

struct id_slot {
	uint64_t key;
	void *value; /* NULL: free */
};

/* Zeroed: empty. */
struct ids {
	struct id_slot *slots;
	size_t nr_slots, nr_used; /* slots: a power of two, or none */
};

void ids_release(struct ids *ids);
/* The same numbers and pointers; `to` is empty. */
void ids_copy(struct ids *to, const struct ids *from);
void *ids_get(const struct ids *ids, uint64_t key);
void ids_set(struct ids *ids, uint64_t key, void *value);
/* What was there, or NULL. */
void *ids_remove(struct ids *ids, uint64_t key);

/* Not while the map changes. */
#define IDS_EACH(ids, s)                                                                           \
	for (struct id_slot *s = (ids)->slots; s && s < (ids)->slots + (ids)->nr_slots; s++)       \
		if (s->value)

#endif
