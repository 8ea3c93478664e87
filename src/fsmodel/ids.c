/* SPDX-License-Identifier: MIT */
#include "fsmodel/ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static size_t home(const struct ids *ids, uint64_t key)
{
	key = (key ^ (key >> 33)) * 0xff51afd7ed558ccdull;
	key = (key ^ (key >> 33)) * 0xc4ceb9fe1a85ec53ull;
	return (size_t)(key ^ (key >> 33)) & (ids->nr_slots - 1);
}

void ids_release(struct ids *ids)
{
	free(ids->slots);
	*ids = (struct ids){ 0 };
}

void ids_copy(struct ids *to, const struct ids *from)
{
	*to = *from;
	if (!from->nr_slots)
		return;
	to->slots = xmalloc(from->nr_slots * sizeof(*to->slots));
	memcpy(to->slots, from->slots, from->nr_slots * sizeof(*to->slots));
}

/* The slot of the key, or the free one where it belongs. */
static struct id_slot *find(const struct ids *ids, uint64_t key)
{
	size_t i = home(ids, key);

	while (ids->slots[i].value && ids->slots[i].key != key)
		i = (i + 1) & (ids->nr_slots - 1);
	return &ids->slots[i];
}

void *ids_get(const struct ids *ids, uint64_t key)
{
	return ids->nr_used ? find(ids, key)->value : NULL;
}

static void grow(struct ids *ids)
{
	struct ids bigger = { .nr_slots = ids->nr_slots ? ids->nr_slots * 2 : 8,
			      .nr_used = ids->nr_used };

	bigger.slots = xcalloc(bigger.nr_slots, sizeof(*bigger.slots));
	IDS_EACH (ids, s)
		*find(&bigger, s->key) = *s;
	free(ids->slots);
	*ids = bigger;
}

void ids_set(struct ids *ids, uint64_t key, void *value)
{
	struct id_slot *s;

	if ((ids->nr_used + 1) * 2 > ids->nr_slots)
		grow(ids);
	s = find(ids, key);
	if (!s->value)
		ids->nr_used++;
	*s = (struct id_slot){ key, value };
}

void *ids_remove(struct ids *ids, uint64_t key)
{
	size_t mask = ids->nr_slots - 1, hole, i;
	struct id_slot *s;
	void *value;

	if (!ids->nr_used)
		return NULL;
	s = find(ids, key);
	value = s->value;
	if (!value)
		return NULL;
	/* Closes the gap, so that what was pushed on by the removed one is still found. */
	hole = (size_t)(s - ids->slots);
	for (i = (hole + 1) & mask; ids->slots[i].value; i = (i + 1) & mask) {
		size_t want = home(ids, ids->slots[i].key);

		if (((i - want) & mask) >= ((i - hole) & mask)) {
			ids->slots[hole] = ids->slots[i];
			hole = i;
		}
	}
	ids->slots[hole].value = NULL;
	ids->nr_used--;
	return value;
}
