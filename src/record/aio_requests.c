/* SPDX-License-Identifier: MIT */
/* Open addressing with linear probing; a removal closes its gap, so that no probe ends early. */
#include "record/aio_requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/hash.h"
#include "base/mem.h"

void requests_release(struct requests *r)
{
	size_t i;

	for (i = 0; i < r->nr_slots; i++) {
		if (r->slots[i].taken)
			free(r->slots[i].iov);
	}
	free(r->slots);
	*r = (struct requests){ 0 };
}

static size_t home_of(const struct requests *r, const uint64_t key[3])
{
	return XXH3_64bits(key, 3 * sizeof(*key)) & (r->nr_slots - 1);
}

static size_t next_slot(const struct requests *r, size_t i)
{
	return (i + 1) & (r->nr_slots - 1);
}

static void put(struct requests *r, const struct request *req)
{
	size_t i = home_of(r, req->key);

	while (r->slots[i].taken)
		i = next_slot(r, i);
	r->slots[i] = *req;
	r->slots[i].taken = true;
}

static void grow(struct requests *r)
{
	struct requests bigger = { .nr_slots = r->nr_slots ? 2 * r->nr_slots : 64 };
	size_t i;

	bigger.slots = xcalloc(bigger.nr_slots, sizeof(*bigger.slots));
	bigger.nr_taken = r->nr_taken;
	for (i = 0; i < r->nr_slots; i++) {
		if (r->slots[i].taken)
			put(&bigger, &r->slots[i]);
	}
	free(r->slots);
	*r = bigger;
}

bool requests_add(struct requests *r, const struct request *req)
{
	if (r->nr_taken >= REQUESTS_MAX)
		return false;
	if (r->nr_taken * 2 >= r->nr_slots)
		grow(r);
	put(r, req);
	r->nr_taken++;
	return true;
}

struct request *requests_find(const struct requests *r, const uint64_t key[3])
{
	struct request *best = NULL;
	size_t i;

	if (!r->nr_slots)
		return NULL;
	for (i = home_of(r, key); r->slots[i].taken; i = next_slot(r, i)) {
		struct request *req = &r->slots[i];

		if (!memcmp(req->key, key, sizeof(req->key)) &&
		    (!best || req->number < best->number))
			best = req;
	}
	return best;
}

struct request *requests_find_number(const struct requests *r, const uint64_t key[3],
				     uint64_t number)
{
	size_t i;

	if (!r->nr_slots)
		return NULL;
	for (i = home_of(r, key); r->slots[i].taken; i = next_slot(r, i)) {
		struct request *req = &r->slots[i];

		if (req->number == number && !memcmp(req->key, key, sizeof(req->key)))
			return req;
	}
	return NULL;
}

void requests_remove(struct requests *r, struct request *req)
{
	size_t gap = (size_t)(req - r->slots), i = gap;

	free(req->iov);
	r->nr_taken--;
	for (;;) {
		size_t home;

		r->slots[gap].taken = false;
		do {
			i = next_slot(r, i);
			if (!r->slots[i].taken)
				return;
			home = home_of(r, r->slots[i].key);
			/* It may move unless its home lies behind the gap, up to where it is. */
		} while (gap <= i ? gap < home && home <= i : gap < home || home <= i);
		r->slots[gap] = r->slots[i];
		gap = i;
	}
}

void requests_remove_all(struct requests *r, uint64_t first, const uint64_t *second)
{
	size_t i = 0;

	while (i < r->nr_slots) {
		struct request *req = &r->slots[i];

		/* A removal may bring another one to this place. */
		if (req->taken && req->key[0] == first && (!second || req->key[1] == *second))
			requests_remove(r, req);
		else
			i++;
	}
}
