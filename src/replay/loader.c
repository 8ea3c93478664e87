/* SPDX-License-Identifier: MIT */
/*
 * Reads the plans ahead of the lanes.
 *
 * 1. A lane's ring holds what the lane does next; a large action has its parts
 *    in a block of its own, of which all lanes together may have BIG_BUDGET.
 * 2. No lane can starve another: every lane has its ring. When the budget is
 *    used up, a lane whose ring is empty and whose next action has nothing to
 *    wait for gets one block beyond it (the reserve). The earliest action that is
 *    not done is always such a one, and it gives its block back, so a run ends.
 * 3. A ring is filled when half of it is empty, so that the lane and the loader
 *    seldom have to wake each other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/banned.h"
#include "replay/flight.h"
#include "replay/inside.h"
#include "replay/ring_files.h"

#define RINGS_BYTES ((uint64_t)24 << 20) /* of all lanes */
#define RING_MIN_BYTES ((uint64_t)64 << 10)
#define BIG_BUDGET ((uint64_t)64 << 20)
#define READY_ALIGN ((uint64_t)64)
#define ACTION_GUESS_BYTES 448
#define ALOFT_IN_RING_MAX 2048
#define TURN_ACTIONS 256 /* of a lane, before the next one's turn */
#define SLEEP_NS (200 * NS_PER_MS)
#define SLEEP_BLOCKED_NS NS_PER_MS

void bell_ring(struct bell *b)
{
	atomic_fetch_add(&b->rings, 1);
	if (atomic_load(&b->asleep))
		sync_futex_wake(&b->rings);
}

void bell_wait(struct bell *b, uint32_t seen, uint64_t timeout_ns)
{
	/* Either the ringer sees that we sleep, or we see its ring. */
	atomic_store(&b->asleep, 1);
	if (atomic_load(&b->rings) == seen)
		sync_futex_wait(&b->rings, seen, timeout_ns);
	atomic_store(&b->asleep, 0);
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Where `bytes` in one piece can be written, NULL when there is no room yet. */
static uint8_t *reserve(struct ring *ring, uint64_t bytes)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	uint64_t room = ring->size - (ring->write_pos - tail);
	uint64_t at = ring->write_pos % ring->size, to_end = ring->size - at;

	if (bytes <= to_end)
		return bytes <= room ? ring->base + at : NULL;
	if (bytes > ring->size || to_end + bytes > room)
		return NULL;
	*(struct ready *)(void *)(ring->base + at) =
		(struct ready){ .size = (uint32_t)to_end, .flags = READY_WRAP };
	ring->write_pos += to_end;
	return ring->base;
}

static void publish(struct lane *l)
{
	struct ring *ring = &l->ring;

	/* Pairs with the lane's store of `hungry` and its look at `head`. */
	atomic_store(&ring->head, ring->write_pos);
	if (l->at_end)
		atomic_store(&ring->ended, 1);
	if (atomic_load(&ring->hungry)) {
		atomic_store(&ring->hungry, 0);
		sync_futex_wake(&ring->hungry);
	}
}

static void free_blocks(struct run *run, struct lane *l)
{
	uint64_t tail = atomic_load_explicit(&l->ring.tail, memory_order_acquire);

	while (l->first_big < l->bigs.len && l->bigs.items[l->first_big].pos < tail) {
		struct big_block *big = &l->bigs.items[l->first_big++];

		run->big_bytes -= big->size;
		if (big->reserve)
			run->reserve_busy = false;
		free(big->p);
	}
	if (l->first_big == l->bigs.len)
		l->first_big = l->bigs.len = 0;
}

static bool edges_are_done(const struct run *run, const struct lane *l, const struct action *act)
{
	uint32_t i;

	for (i = 0; i < act->nr_edges; i++) {
		const struct action_edge *e = &act->edges[i];
		const struct lane *other = &run->lanes[l->plan->lane_base + e->lane];

		if (sync_get(e->started ? &other->started : &other->done) <= e->nr)
			return false;
	}
	return true;
}

/* Whether the action may have a block of its own now, and whether that is the reserve. */
static bool may_have_block(struct run *run, struct lane *l, uint64_t bytes, bool *ret_reserve)
{
	*ret_reserve = false;
	if (!run->big_bytes || run->big_bytes + bytes <= BIG_BUDGET)
		return true;
	l->wants_reserve = true;
	if (run->reserve_busy ||
	    atomic_load_explicit(&l->ring.tail, memory_order_acquire) != l->ring.write_pos ||
	    !edges_are_done(run, l, l->pending))
		return false;
	*ret_reserve = true;
	return true;
}

/* 1: in the ring; 0: no room; -errno. */
static int place_big(struct run *run, struct lane *l, uint64_t bound, struct err *err)
{
	uint64_t used, size = round_up(sizeof(struct ready), READY_ALIGN);
	struct ready *a = (struct ready *)(void *)reserve(&l->ring, size);
	struct big_block big = { .size = round_up(bound, 4096) };
	int r;

	if (!a || !may_have_block(run, l, bound, &big.reserve))
		return 0;
	big.p = aligned_alloc(4096, big.size);
	if (!big.p)
		return err_set(err, -ENOMEM, "cannot hold an action of %llu bytes",
			       (unsigned long long)bound);
	r = build_action(run, l, l->pending, a, big.p, big.size, &used, err);
	if (r < 0) {
		free(big.p);
		return r;
	}
	a->size = (uint32_t)size;
	a->flags |= READY_BIG;
	/* It must come back whatever the lane waits for next. */
	if (big.reserve)
		a->flags |= READY_AT_ONCE;
	big.pos = l->ring.write_pos;
	l->ring.write_pos += size;
	run->big_bytes += big.size;
	run->reserve_busy |= big.reserve;
	VEC_PUSH(&l->bigs, big);
	return 1;
}

static int place(struct run *run, struct lane *l, struct err *err)
{
	uint64_t used, bound = build_bound(run, l->pending);
	uint64_t size = round_up(sizeof(struct ready) + bound, READY_ALIGN);
	struct ready *a;
	int r;

	/* Requests may hold their memory for long: not that of the ring, if it is much. */
	if (size > l->ring.size / 4 ||
	    (bound > ALOFT_IN_RING_MAX && build_may_be_aloft(l->pending)))
		return place_big(run, l, bound, err);
	a = (struct ready *)(void *)reserve(&l->ring, size);
	if (!a)
		return 0;
	r = build_action(run, l, l->pending, a, (uint8_t *)(a + 1), size - sizeof(*a), &used, err);
	if (r < 0)
		return r;
	a->size = (uint32_t)round_up(sizeof(*a) + used, READY_ALIGN);
	l->ring.write_pos += a->size;
	return 1;
}

/* Some actions into the ring of a lane. 1: there is more to do at once; 0: not now; -errno. */
static int fill(struct run *run, struct lane *l, struct err *err)
{
	int i, r = 1;

	free_blocks(run, l);
	l->wants_reserve = false;
	if (l->at_end)
		return 0;
	for (i = 0; i < TURN_ACTIONS && r > 0; i++) {
		if (!l->pending) {
			r = plan_lane_next(l->reader, &l->pending, err);
			if (r < 0)
				return err_wrap(err, r, "lane %u", (unsigned int)l->plan_lane);
			if (!r) {
				l->pending = NULL;
				l->at_end = true;
				break;
			}
		}
		r = place(run, l, err);
		if (r > 0) {
			l->pending = NULL;
			l->nr_loaded++;
		}
	}
	if (r < 0)
		return r;
	/* What will make the lane tell: half of what is there now is done. */
	atomic_store_explicit(&l->ring.low,
			      l->at_end || r > 0 ? UINT64_MAX
						 : l->ring.write_pos - l->ring.size / 2,
			      memory_order_relaxed);
	publish(l);
	return r > 0 && !l->at_end;
}

static bool is_half_empty(const struct lane *l)
{
	uint64_t tail = atomic_load_explicit(&((struct lane *)(uintptr_t)l)->ring.tail,
					     memory_order_acquire);

	return l->ring.write_pos - tail <= l->ring.size / 2;
}

static bool has_blocks(const struct lane *l)
{
	return l->first_big < l->bigs.len;
}

void *loader_main(void *arg)
{
	struct run *run = arg;
	struct err err = { "" };
	bool left = true;

	while (left && !run_is_stopped(run)) {
		uint32_t i, seen = bell_look(&run->loader_bell);
		bool more = false, blocked = false;

		left = false;
		for (i = 0; i < run->nr_lanes; i++) {
			struct lane *l = &run->lanes[i];
			int r = 0;

			if (!l->at_end ? is_half_empty(l) || l->wants_reserve : has_blocks(l))
				r = fill(run, l, &err);
			if (r < 0) {
				run_fail(run, r, "%s", err.text);
				return NULL;
			}
			more |= r > 0;
			blocked |= l->wants_reserve;
			left |= !l->at_end;
		}
		if (left && !more)
			bell_wait(&run->loader_bell, seen, blocked ? SLEEP_BLOCKED_NS : SLEEP_NS);
	}
	return NULL;
}

/* As much as the lane's share, or as its actions will need. */
static uint64_t ring_bytes(const struct run *run, const struct lane *l)
{
	uint64_t share = RINGS_BYTES / (run->nr_lanes ? run->nr_lanes : 1);
	uint64_t need = plan_lane_nr_actions(l->plan->plan, l->plan_lane) * ACTION_GUESS_BYTES;

	if (need < share)
		share = need;
	if (share < RING_MIN_BYTES)
		share = RING_MIN_BYTES;
	return round_up(share, 4096);
}

int loader_prepare(struct run *run, struct err *err)
{
	uint32_t i;
	int r;

	run->patch_room = xcalloc(RUN_PATCHES_MAX, sizeof(*run->patch_room));
	for (i = 0; i < run->nr_lanes; i++) {
		struct lane *l = &run->lanes[i];

		l->ring.size = ring_bytes(run, l);
		l->ring.base = mmap(NULL, l->ring.size, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (l->ring.base == MAP_FAILED) {
			l->ring.base = NULL;
			return err_set(err, -errno, "cannot get memory for lane %u",
				       (unsigned int)i);
		}
		atomic_init(&l->ring.low, UINT64_MAX);
		r = plan_lane_open(l->plan->plan, l->plan_lane, &l->reader, err);
		if (r < 0)
			return r;
		do {
			r = fill(run, l, err);
		} while (r > 0);
		if (r < 0)
			return r;
	}
	return 0;
}

void loader_release(struct run *run)
{
	uint32_t i;

	flight_free_all(run); /* first: what is in flight works in the memory of actions */
	for (i = 0; i < run->nr_lanes; i++) {
		struct lane *l = &run->lanes[i];

		for (; l->first_big < l->bigs.len; l->first_big++)
			free(l->bigs.items[l->first_big].p);
		VEC_RELEASE(&l->bigs);
		free(l->aloft);
		plan_lane_close(l->reader);
		if (l->ring.base)
			(void)munmap(l->ring.base, l->ring.size);
	}
	ring_files_free_all(run);
	free(run->patch_room);
}
