/* SPDX-License-Identifier: MIT */
#include "model/blobmap.h"

#include <stdlib.h>

#include "base/banned.h"
#include "base/mem.h"

#define FIRST_SLOTS 1024

void blob_map_release(struct blob_map *m)
{
	free(m->slots);
	*m = (struct blob_map){ 0 };
}

/* The slot that has the hash, or the free one where it belongs. */
static struct blob_slot *find_slot(const struct blob_map *m, struct hash128 hash)
{
	size_t mask = m->nr_slots - 1, i = (size_t)(hash.low ^ hash.high) & mask;

	while (m->slots[i].taken && !hash_equal(m->slots[i].hash, hash))
		i = (i + 1) & mask;
	return &m->slots[i];
}

static void grow(struct blob_map *m)
{
	struct blob_map larger = { .nr_slots = m->nr_slots ? m->nr_slots * 2 : FIRST_SLOTS };
	size_t i;

	larger.slots = xcalloc(larger.nr_slots, sizeof(*larger.slots));
	for (i = 0; i < m->nr_slots; i++) {
		if (m->slots[i].taken)
			*find_slot(&larger, m->slots[i].hash) = m->slots[i];
	}
	larger.nr_taken = m->nr_taken;
	free(m->slots);
	*m = larger;
}

struct blob_slot *blob_map_find(const struct blob_map *m, struct hash128 hash)
{
	struct blob_slot *slot;

	if (!m->nr_slots)
		return NULL;
	slot = find_slot(m, hash);
	return slot->taken ? slot : NULL;
}

struct blob_slot *blob_map_add(struct blob_map *m, struct hash128 hash, bool *ret_new)
{
	struct blob_slot *slot;

	if (m->nr_taken >= m->nr_slots / 4 * 3)
		grow(m);
	slot = find_slot(m, hash);
	*ret_new = !slot->taken;
	if (!slot->taken) {
		*slot = (struct blob_slot){ .hash = hash, .taken = true };
		m->nr_taken++;
	}
	return slot;
}
