/* SPDX-License-Identifier: MIT */
/*
 * A hash map from a string of bytes to a pointer. Keys are copied and owned by
 * the map, values are the caller's. Iteration goes in order of insertion, so
 * that output made from a map is reproducible. Owned by one thread.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_entry {
	char *key; /* NUL-terminated for convenience; NULL once removed */
	size_t key_len;
	void *value;
	uint64_t hash;
};

struct map {
	struct map_entry *entries; /* in order of insertion, with gaps */
	size_t nr_entries, cap_entries, nr_live;
	uint32_t *slots; /* entry number + 1, open addressing */
	size_t nr_slots;
};

/* A zeroed map is an empty map. */
void map_release(struct map *m);
void *map_get(const struct map *m, const void *key, size_t key_len);
/* Where the value of the key lives, made (as NULL) when missing; valid until the next change. */
void **map_slot(struct map *m, const void *key, size_t key_len);
/* Returns the value that was there, or NULL. */
void *map_remove(struct map *m, const void *key, size_t key_len);

#define MAP_EACH(m, e)                                                                             \
	for (struct map_entry *e = (m)->entries; e && e < (m)->entries + (m)->nr_entries; e++)     \
		if (e->key)

#endif
