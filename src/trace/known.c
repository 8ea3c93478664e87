/* SPDX-License-Identifier: MIT */
#include "trace/known.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

#define NR_DEFAULT ((size_t)1 << 17)
#define WAYS 4
/*
 * As many sets at first, as a short recording would pay for more; then some more, and all of them
 * before these are full. Only all of them are worth huge pages.
 */
#define SETS_FIRST ((size_t)512)
#define SETS_NEXT ((size_t)4096)

struct known_blob {
	struct hash128 hash;
	uint64_t blob; /* 0: empty */
	uint64_t age;
};

static_assert(sizeof(struct known_blob) * WAYS == 128, "a set is two cache lines");

static struct known_blob *set_of(const struct known *k, struct hash128 hash)
{
	return &k->items[(hash.low & k->mask) * WAYS];
}

static void make(struct known *k, size_t sets)
{
	size_t size = sets * WAYS * sizeof(*k->items);

	k->items = sets > SETS_NEXT ? huge_alloc(size) : xcalloc(1, size);
	k->mask = sets - 1;
	k->nr_put = 0;
}

static void unmake(struct known_blob *items, size_t sets)
{
	if (sets > SETS_NEXT)
		huge_free(items, sets * WAYS * sizeof(*items));
	else
		free(items);
}

void known_init(struct known *k, size_t nr_max)
{
	*k = (struct known){ .sets_max = 1 };
	while (k->sets_max * WAYS < (nr_max ? nr_max : NR_DEFAULT))
		k->sets_max *= 2;
	make(k, k->sets_max < SETS_FIRST ? k->sets_max : SETS_FIRST);
}

void known_release(struct known *k)
{
	unmake(k->items, k->mask + 1);
}

bool known_find(struct known *k, struct blob_ref *ref)
{
	struct known_blob *set = set_of(k, ref->hash);
	unsigned int i;

	for (i = 0; i < WAYS; i++) {
		if (set[i].blob && hash_equal(set[i].hash, ref->hash)) {
			set[i].age = ++k->age;
			ref->blob = set[i].blob;
			return true;
		}
	}
	return false;
}

/* Forgets the one of the set that was of no use for the longest time. */
static void put(struct known *k, const struct known_blob *b)
{
	struct known_blob *set = set_of(k, b->hash), *oldest = set;
	unsigned int i;

	for (i = 1; i < WAYS; i++) {
		if (set[i].age < oldest->age)
			oldest = &set[i];
	}
	*oldest = *b;
	k->nr_put++;
}

static void grow(struct known *k)
{
	struct known_blob *old = k->items;
	size_t nr = k->mask + 1, i;

	make(k, nr < SETS_NEXT && SETS_NEXT < k->sets_max ? SETS_NEXT : k->sets_max);
	for (i = 0; i < nr * WAYS; i++) {
		if (old[i].blob)
			put(k, &old[i]);
	}
	unmake(old, nr);
}

void known_add(struct known *k, const struct blob_ref *ref)
{
	struct known_blob b = { .hash = ref->hash, .blob = ref->blob, .age = ++k->age };

	/* With so few there is hardly a set that is full. */
	if (k->nr_put > k->mask / 2 && k->mask + 1 < k->sets_max)
		grow(k);
	put(k, &b);
}
