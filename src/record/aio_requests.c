/* SPDX-License-Identifier: MIT */
/* Open addressing with linear probing; a removal closes its gap, so that no probe ends early. */
#include "record/aio_requests.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/banned.h"
#include "base/clock.h"
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
	return XXH3_64bits_withSeed(key, 3 * sizeof(*key), r->seed) & (r->nr_slots - 1);
}

static size_t next_slot(const struct requests *r, size_t i)
{
	return (i + 1) & (r->nr_slots - 1);
}

/* Its place; how far from its home it is. */
static size_t find_place(const struct requests *r, const uint64_t key[3], size_t *ret_far)
{
	size_t i = home_of(r, key);

	for (*ret_far = 0; r->slots[i].taken; ++*ret_far)
		i = next_slot(r, i);
	return i;
}

static void put(struct requests *r, const struct request *req, size_t at)
{
	r->slots[at] = *req;
	r->slots[at].taken = true;
}

static void grow(struct requests *r)
{
	struct requests bigger = { .nr_slots = r->nr_slots ? 2 * r->nr_slots : 64,
				   .seed = r->seed };
	size_t i, far;

	if (!r->nr_slots && getrandom(&bigger.seed, sizeof(bigger.seed), GRND_NONBLOCK) < 0)
		bigger.seed = clock_monotonic_ns();
	bigger.slots = xcalloc(bigger.nr_slots, sizeof(*bigger.slots));
	bigger.nr_taken = r->nr_taken;
	bigger.nr_iovs = r->nr_iovs;
	for (i = 0; i < r->nr_slots; i++) {
		if (r->slots[i].taken)
			put(&bigger, &r->slots[i], find_place(&bigger, r->slots[i].key, &far));
	}
	free(r->slots);
	*r = bigger;
}

bool requests_add(struct requests *r, const struct request *req)
{
	size_t at, far;

	if (r->nr_taken >= REQUESTS_MAX || req->nr_iov > REQUESTS_IOVS_MAX - r->nr_iovs)
		return false;
	if (r->nr_taken * 2 >= r->nr_slots)
		grow(r);
	at = find_place(r, req->key, &far);
	if (far >= REQUESTS_RUN_MAX)
		return false;
	put(r, req, at);
	r->nr_taken++;
	r->nr_iovs += req->nr_iov;
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
	r->nr_iovs -= req->nr_iov;
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
