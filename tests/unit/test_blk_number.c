/* SPDX-License-Identifier: MIT */
/*
 * Mode think by number, in a world with a clock of its own: a trace is replayed on a device
 * whose requests take what the test says.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "replay/blk_number.h"

#define NR_MAX 256
#define NR_KINDS 3
#define NO_TIME UINT64_MAX

struct request {
	uint64_t issue_ns, took_ns;
	uint32_t kind;
};

struct world {
	struct request rq[NR_MAX];
	size_t nr;
	uint64_t threshold_ns;
	/* What the loader says of each. */
	uint64_t think_ns[NR_MAX];
	struct blk_need needs[NR_MAX][NR_KINDS];
	size_t nr_needs[NR_MAX];
	/* The run. */
	uint64_t takes_ns[NR_MAX];
	uint64_t start_ns[NR_MAX];
	size_t in_flight_max;
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* By the definition: since the last of those that were complete a threshold before. */
static uint64_t think_of(const struct world *w, size_t i)
{
	uint64_t think = NO_TIME, now = w->rq[i].issue_ns;

	for (size_t k = 0; k < i; k++) {
		uint64_t end = w->rq[k].issue_ns + w->rq[k].took_ns;

		if (end + w->threshold_ns <= now && now - end < think)
			think = now - end;
	}
	return think;
}

static void load(struct world *w)
{
	struct blk_needs needs;

	blk_needs_init(&needs, NR_KINDS);
	for (size_t i = 0; i < w->nr; i++) {
		const struct request *rq = &w->rq[i];

		w->think_ns[i] = think_of(w, i);
		needs.list.len = 0;
		if (w->think_ns[i] != NO_TIME)
			blk_needs_up_to(&needs, rq->issue_ns - w->think_ns[i], NR_KINDS);
		w->nr_needs[i] = needs.list.len;
		if (needs.list.len)
			memcpy(w->needs[i], needs.list.items,
			       needs.list.len * sizeof(w->needs[i][0]));
		blk_needs_add(&needs, rq->kind, rq->issue_ns + rq->took_ns);
	}
	blk_needs_release(&needs);
}

/* When the next is due, or NO_TIME while it waits for others. */
static uint64_t due_of(struct world *w, struct blk_tally *t, size_t i)
{
	for (size_t k = 0; k < w->nr_needs[i]; k++) {
		if (!blk_tally_take(t, &w->needs[i][k]))
			return NO_TIME;
	}
	return w->think_ns[i] == NO_TIME ? w->rq[i].issue_ns : t->reached_ns + w->think_ns[i];
}

/* The first of those in flight to be complete; NR_MAX: nothing is in flight. */
static size_t first_end(const struct world *w, const bool *flying, uint64_t *ret_end)
{
	size_t first = NR_MAX;

	for (size_t i = 0; i < w->nr; i++) {
		uint64_t end = w->start_ns[i] + w->takes_ns[i];

		if (flying[i] && (first == NR_MAX || end < *ret_end)) {
			first = i;
			*ret_end = end;
		}
	}
	return first;
}

/* Who is admitted starts when it is due, and not before those before it. */
static void replay(struct world *w)
{
	bool flying[NR_MAX] = { false };
	size_t next = 0, in_flight = 0;
	uint64_t now = 0, due = NO_TIME;
	struct blk_tally t;

	w->in_flight_max = 0;
	blk_tally_init(&t, NR_KINDS);
	for (;;) {
		uint64_t end = NO_TIME;
		size_t first = first_end(w, flying, &end);

		if (due == NO_TIME && next < w->nr)
			due = due_of(w, &t, next);
		if (next == w->nr && first == NR_MAX)
			break;
		if (first < NR_MAX && end <= due) {
			flying[first] = false;
			in_flight--;
			now = end > now ? end : now;
			blk_tally_add(&t, w->rq[first].kind, end);
			continue;
		}
		assert_true(next < w->nr && due != NO_TIME); /* else it would wait for ever */
		now = due > now ? due : now;
		w->start_ns[next] = now;
		flying[next++] = true;
		due = NO_TIME;
		if (++in_flight > w->in_flight_max)
			w->in_flight_max = in_flight;
	}
	blk_tally_release(&t);
}

static size_t traced_in_flight_max(const struct world *w)
{
	size_t max = 0;

	for (size_t i = 0; i < w->nr; i++) {
		size_t n = 0;

		for (size_t k = 0; k <= i; k++)
			n += k == i || w->rq[k].issue_ns + w->rq[k].took_ns + w->threshold_ns >
					       w->rq[i].issue_ns;
		max = n > max ? n : max;
	}
	return max;
}

static void make_random(struct world *w, uint64_t *seed, unsigned int n)
{
	uint64_t gap = 1 + next_random(seed) % 20, length = 1 + next_random(seed) % 100, now = 0;

	w->nr = 1 + next_random(seed) % (n % 10 ? 24 : 64);
	w->threshold_ns = next_random(seed) % 3 ? next_random(seed) % 15 : 0;
	for (size_t i = 0; i < w->nr; i++) {
		now += next_random(seed) % gap;
		w->rq[i] = (struct request){ now, next_random(seed) % length,
					     (uint32_t)(next_random(seed) % NR_KINDS) };
	}
}

/* Where requests take what they took, they are issued when they were. */
static void test_same_device(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	uint64_t seed = 20170301;

	(void)state;
	for (unsigned int n = 0; n < 10000; n++) {
		make_random(w, &seed, n);
		load(w);
		for (size_t i = 0; i < w->nr; i++)
			w->takes_ns[i] = w->rq[i].took_ns;
		replay(w);
		for (size_t i = 0; i < w->nr; i++)
			assert_int_equal(w->start_ns[i], w->rq[i].issue_ns);
	}
	free(w);
}

/* On whatever device: all are issued, and no more are in flight than in the trace. */
static void test_other_device(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	uint64_t seed = 20170302;

	(void)state;
	for (unsigned int n = 0; n < 10000; n++) {
		uint64_t length;

		make_random(w, &seed, n);
		load(w);
		length = 1 + next_random(&seed) % 300;
		for (size_t i = 0; i < w->nr; i++)
			w->takes_ns[i] = next_random(&seed) % length;
		replay(w);
		assert_true(w->in_flight_max <= traced_in_flight_max(w));
	}
	free(w);
}

/* A split write, and the next when all parts of it were complete: the wait for the parts is no think time. */
static void test_parts(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	(void)state;
	w->nr = 8;
	for (size_t i = 0; i < 4; i++) {
		w->rq[i] = (struct request){ 0, 1000 * (i + 1), 0 };
		w->rq[i + 4] = (struct request){ 4100, 1000 * (i + 1), 0 };
		w->takes_ns[i] = w->takes_ns[i + 4] = 100 * (i + 1);
	}
	load(w);
	replay(w);
	for (size_t i = 4; i < 8; i++)
		assert_int_equal(w->start_ns[i], 400 + 100);
	free(w);
}

/*
 * Four threads, each with one request in flight and 10 ns until the next; the disk left
 * one of them waiting for 5000 ns. Where it does not, all four stay at work: of the
 * requests in between none waits for more than one to be complete.
 */
static void test_starved(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	uint64_t ready[4] = { 0, 0, 0, 0 }, end = 0;

	(void)state;
	for (w->nr = 0; w->nr < 200; w->nr++) {
		size_t thread = 0;

		for (size_t i = 1; i < 4; i++)
			thread = ready[i] < ready[thread] ? i : thread;
		w->rq[w->nr] =
			(struct request){ ready[thread], w->nr == 20 ? 5000 : 100 + w->nr % 7, 0 };
		ready[thread] += w->rq[w->nr].took_ns + 10;
		w->takes_ns[w->nr] = 50;
	}
	load(w);
	replay(w);
	for (size_t i = 0; i < w->nr; i++)
		end = w->start_ns[i] + 50 > end ? w->start_ns[i] + 50 : end;
	assert_int_equal(w->in_flight_max, 4);
	/* 50 each, 60 apart, and some time in which the four fall into step. */
	assert_in_range(end, 50 * 60 - 10, 60 * 60);
	free(w);
}

/* One flush for long, and a thread that reads: that the flush takes no time makes no second reader. */
static void test_kinds(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	(void)state;
	w->nr = 50;
	w->rq[0] = (struct request){ 0, 5000, 1 };
	for (size_t i = 1; i < w->nr; i++) {
		w->rq[i] = (struct request){ i * 100, 90, 0 };
		w->takes_ns[i] = 40;
	}
	load(w);
	replay(w);
	for (size_t i = 2; i < w->nr; i++)
		assert_int_equal(w->start_ns[i] - w->start_ns[i - 1], 50);
	free(w);
}

/* More at once than the list may have entries: the rest is left to the next request. */
static void test_limit(void **state)
{
	struct blk_needs needs;

	(void)state;
	blk_needs_init(&needs, 3);
	for (uint32_t i = 0; i < 3; i++)
		blk_needs_add(&needs, i, 10);
	blk_needs_up_to(&needs, 10, 2);
	assert_int_equal(needs.list.len, 2);
	blk_needs_up_to(&needs, 10, 2);
	assert_int_equal(needs.list.len, 1);
	assert_int_equal(needs.list.items[0].nr, 1);
	blk_needs_release(&needs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_device), cmocka_unit_test(test_other_device),
		cmocka_unit_test(test_parts),	    cmocka_unit_test(test_starved),
		cmocka_unit_test(test_kinds),	    cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests_name("blk_number", tests, NULL, NULL);
}
