/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define REMOVED UINT32_MAX

void map_release(struct map *m)
{
	MAP_EACH (m, e)
		free(e->key);
	free(m->entries);
	free(m->slots);
	*m = (struct map){ 0 };
}

/* The slot that holds the key, or the first that could take it. */
static uint32_t *find(const struct map *m, const void *key, size_t len, uint64_t hash)
{
	size_t mask = m->nr_slots - 1, i = hash & mask;
	uint32_t *reuse = NULL;

	for (;; i = (i + 1) & mask) {
		uint32_t *slot = &m->slots[i];
		const struct map_entry *e;

		if (!*slot)
			return reuse ? reuse : slot;
		if (*slot == REMOVED) {
			reuse = reuse ? reuse : slot;
			continue;
		}
		e = &m->entries[*slot - 1];
		if (e->hash == hash && e->key_len == len && !memcmp(e->key, key, len))
			return slot;
	}
}

/* Makes the slots anew and closes the gaps that removals left in the entries. */
static void rebuild(struct map *m)
{
	size_t kept = 0, i;

	for (i = 0; i < m->nr_entries; i++) {
		if (m->entries[i].key)
			m->entries[kept++] = m->entries[i];
	}
	m->nr_entries = kept;
	/* Room for as many again, or a map of steady size would be rebuilt all the time. */
	while (m->nr_slots < (kept + 1) * 4)
		m->nr_slots = m->nr_slots ? m->nr_slots * 2 : 16;
	free(m->slots);
	m->slots = xcalloc(m->nr_slots, sizeof(*m->slots));
	for (i = 0; i < kept; i++) {
		const struct map_entry *e = &m->entries[i];

		*find(m, e->key, e->key_len, e->hash) = (uint32_t)i + 1;
	}
}

void *map_get(const struct map *m, const void *key, size_t key_len)
{
	uint32_t slot;

	if (!m->nr_slots)
		return NULL;
	slot = *find(m, key, key_len, XXH3_64bits(key, key_len));
	return slot && slot != REMOVED ? m->entries[slot - 1].value : NULL;
}

void **map_slot(struct map *m, const void *key, size_t key_len)
{
	uint64_t hash = XXH3_64bits(key, key_len);
	struct map_entry *e;
	uint32_t *slot;

	/* Entries only ever grow between rebuilds, so half-full slots bound the probing. */
	if ((m->nr_entries + 1) * 2 > m->nr_slots)
		rebuild(m);
	slot = find(m, key, key_len, hash);
	if (*slot && *slot != REMOVED)
		return &m->entries[*slot - 1].value;
	if (m->nr_entries == m->cap_entries)
		m->entries = vec_grow(m->entries, &m->cap_entries, sizeof(*m->entries));
	e = &m->entries[m->nr_entries++];
	*e = (struct map_entry){ .key = xmemdup0(key, key_len), .key_len = key_len, .hash = hash };
	*slot = (uint32_t)m->nr_entries;
	m->nr_live++;
	return &e->value;
}

void *map_remove(struct map *m, const void *key, size_t key_len)
{
	struct map_entry *e;
	uint32_t *slot;
	void *value;

	if (!m->nr_slots)
		return NULL;
	slot = find(m, key, key_len, XXH3_64bits(key, key_len));
	if (!*slot || *slot == REMOVED)
		return NULL;
	e = &m->entries[*slot - 1];
	value = e->value;
	free(e->key);
	e->key = NULL;
	*slot = REMOVED;
	m->nr_live--;
	return value;
}
