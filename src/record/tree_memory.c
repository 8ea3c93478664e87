/* SPDX-License-Identifier: MIT */
/*
 * What the tree remembers for as long as it lives. There may be more of it than fits memory, so
 * all of it is in a spill: what is known of paths in chunks, one behind the other, and tables to find it.
 *
 *   t->paths: | 16 bits of a hash, address | ... |      t->noted -> noted -> noted -> ...
 *                                |                                    ^
 *                                +------------------------------------+
 *
 * That table is small, as every path is in it: 11 to 21 bytes for each. The others, of fewer things, have
 * whole hashes and nothing to compare.
 */
#include <string.h>

#include "base/hash.h"
#include "record/tree_inside.h"

#define FIRST_BITS 10
#define FIRST_SLOTS ((size_t)1 << FIRST_BITS)
#define CHUNK_MIN_BYTES ((size_t)64 << 10)
#define CHUNK_MAX_BYTES ((size_t)16 << 20)
/* Slots that are moved before pages are let go. */
#define MOVED_AT_ONCE 256

struct table_slot {
	struct hash128 hash;
	uint64_t value; /* 0: it is free */
};

/* With our own rights: a file may be made for it. */
static void *take(struct tree *t, size_t len_bytes, bool is_hot)
{
	unsigned int as = creds_current(t->creds);
	void *p;

	creds_return(t->creds, CREDS_OWN);
	p = spill_take(&t->spill, len_bytes, is_hot);
	creds_return(t->creds, as);
	return p;
}

void *tree_keep(struct tree *t, size_t len_bytes)
{
	struct tree_chunk *c = &t->chunk;
	uint8_t *p;

	len_bytes = (len_bytes + 7) & ~(size_t)7;
	if (len_bytes > c->left_bytes) {
		/* In proportion, so that there are few of them. */
		size_t next =
			c->len_bytes < CHUNK_MAX_BYTES / 2 ? c->len_bytes * 2 : CHUNK_MAX_BYTES;

		next = next < CHUNK_MIN_BYTES ? CHUNK_MIN_BYTES : next;
		p = take(t, next, false);
		if (!p)
			return NULL;
		*c = (struct tree_chunk){ .pos = p, .left_bytes = next, .len_bytes = next };
	}
	p = c->pos;
	c->pos += len_bytes;
	c->left_bytes -= len_bytes;
	return p;
}

/* Paths. */

#define ADDRESS_BITS 48

static uint64_t tag_of(uint64_t hash)
{
	return hash >> ADDRESS_BITS;
}

static struct noted *noted_in(uint64_t slot)
{
	return tree_noted(slot & ((UINT64_C(1) << ADDRESS_BITS) - 1));
}

/* The slot of the path, or the free one where it belongs. */
static uint64_t *find_path(const struct tree_paths *p, const char *path, size_t len, uint64_t hash)
{
	size_t mask = p->nr_slots - 1, i = (size_t)hash & mask;

	for (; p->slots[i]; i = (i + 1) & mask) {
		const struct noted *n = noted_in(p->slots[i]);

		if (tag_of(p->slots[i]) == tag_of(hash) && !strncmp(n->path, path, len) &&
		    !n->path[len])
			break;
	}
	return &p->slots[i];
}

static void put_path(struct tree_paths *p, uint64_t *slot, const struct noted *n, uint64_t hash)
{
	*slot = (uint64_t)(uintptr_t)n | tag_of(hash) << ADDRESS_BITS;
	p->nr_taken++;
}

static bool grow_paths(struct tree *t)
{
	struct tree_paths larger = { .nr_slots = t->paths.nr_slots ? t->paths.nr_slots * 2
								   : FIRST_SLOTS };
	const struct noted *n;

	larger.slots = take(t, larger.nr_slots * sizeof(*larger.slots), true);
	if (!larger.slots)
		return false;
	for (n = t->noted; n; n = n->next) {
		size_t len = strlen(n->path);
		uint64_t hash = XXH3_64bits(n->path, len);

		put_path(&larger, find_path(&larger, n->path, len, hash), n, hash);
		spill_relax(&t->spill);
	}
	spill_give_back(&t->spill, t->paths.slots);
	t->paths = larger;
	return true;
}

struct noted *tree_find(const struct tree *t, const struct tree_name *name)
{
	uint64_t hash = XXH3_64bits(name->text, name->len);

	if (!t->paths.nr_slots)
		return NULL;
	return noted_in(*find_path(&t->paths, name->text, name->len, hash));
}

struct noted *tree_get(struct tree *t, const struct tree_name *name)
{
	struct tree_paths *p = &t->paths;
	uint64_t hash = XXH3_64bits(name->text, name->len);
	uint64_t *slot = p->nr_slots ? find_path(p, name->text, name->len, hash) : NULL;
	struct noted *n;

	if (slot && *slot)
		return noted_in(*slot);
	if (p->nr_taken >= p->nr_slots / 4 * 3)
		slot = grow_paths(t) ? find_path(p, name->text, name->len, hash) : NULL;
	n = slot ? tree_keep(t, sizeof(*n) + name->len + 1) : NULL;
	if (!n) {
		t->nr_unnoted++;
		*t->unnoted = (struct noted){ .flags = NOTED_MISSING };
		return t->unnoted;
	}
	memcpy(n->path, name->text, name->len);
	*t->noted_end = n;
	t->noted_end = &n->next;
	put_path(p, slot, n, hash);
	return n;
}

/* Tables of hashes. A slot's place is given by the first bits, so that a larger one has the same order. */

/* The slot that has the hash, or the free one where it belongs. */
static struct table_slot *find_slot(const struct tree_table *table, struct hash128 hash)
{
	size_t mask = ((size_t)1 << table->bits) - 1;
	size_t i = (size_t)(hash.high >> (64 - table->bits));

	while (table->slots[i].value && !hash_equal(table->slots[i].hash, hash))
		i = (i + 1) & mask;
	return &table->slots[i];
}

uint64_t tree_table_get(const struct tree_table *table, struct hash128 hash)
{
	return table->slots ? find_slot(table, hash)->value : 0;
}

static bool grow(struct tree *t, struct tree_table *table)
{
	struct tree_table larger = { .bits = table->slots ? table->bits + 1 : FIRST_BITS,
				     .nr_taken = table->nr_taken };
	size_t nr = table->slots ? (size_t)1 << table->bits : 0, i;

	larger.slots = take(t, sizeof(*larger.slots) << larger.bits, true);
	if (!larger.slots)
		return false;
	for (i = 0; i < nr; i++) {
		const struct table_slot *slot = &table->slots[i];

		if (slot->value)
			*find_slot(&larger, slot->hash) = *slot;
		if (i % MOVED_AT_ONCE == 0)
			spill_relax(&t->spill);
	}
	spill_give_back(&t->spill, table->slots);
	*table = larger;
	return true;
}

bool tree_table_put(struct tree *t, struct tree_table *table, struct hash128 hash, uint64_t value)
{
	size_t nr = table->slots ? (size_t)1 << table->bits : 0;
	struct table_slot *slot;

	/* What is there already has its place, however full it is. */
	if (table->nr_taken >= nr / 4 * 3 && !tree_table_get(table, hash) && !grow(t, table))
		return false;
	slot = find_slot(table, hash);
	table->nr_taken += !slot->value;
	*slot = (struct table_slot){ .hash = hash, .value = value };
	return true;
}

bool tree_table_add(struct tree *t, struct tree_table *table, struct hash128 hash)
{
	if (tree_table_get(table, hash))
		return false;
	if (tree_table_put(t, table, hash, 1))
		return true;
	t->nr_unnoted++;
	return false;
}
