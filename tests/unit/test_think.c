/* SPDX-License-Identifier: MIT */
/*
 * The order of block requests: what is computed while the requests stream by
 * against the definition, pair by pair; and against the analyser of hfplayer.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "order/think.h"

#define NR_MAX 64

struct request {
	uint64_t issue_ns, complete_ns;
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* Whether b depends on a, by the definition. */
static bool depends(const struct request *rq, size_t a, size_t b, uint64_t m)
{
	return a < b && rq[a].complete_ns + m <= rq[b].issue_ns;
}

/* Whether a is a parent of b: nobody else is between them. */
static bool is_parent(const struct request *rq, size_t a, size_t b, uint64_t m)
{
	if (!depends(rq, a, b, m))
		return false;
	for (size_t i = a + 1; i < b; i++) {
		if (depends(rq, a, i, m) && depends(rq, i, b, m))
			return false;
	}
	return true;
}

static size_t in_flight_max(const struct request *rq, size_t nr, uint64_t m)
{
	size_t max = 0;

	for (size_t i = 0; i < nr; i++) {
		size_t n = 0;

		for (size_t k = 0; k <= i; k++)
			n += rq[k].complete_ns + m > rq[i].issue_ns || k == i;
		max = n > max ? n : max;
	}
	return max;
}

static void compare(const struct request *rq, size_t nr, uint64_t m)
{
	struct think_graph *g = think_graph_new(m);
	size_t held, limit = in_flight_max(rq, nr, m);

	for (size_t i = 0; i < nr; i++) {
		const struct think_parents *p = think_graph_issue(g, rq[i].issue_ns);
		struct action_ref ref = {
			.lane = 0, .nr = i, .enter_ns = rq[i].issue_ns, .exit_ns = rq[i].complete_ns
		};
		bool found[NR_MAX] = { false };

		/* A chain more than were in flight would be more depth than the trace had. */
		assert_true(p->list.len <= limit);
		for (size_t k = 0; k < p->list.len; k++) {
			assert_true(p->list.items[k].nr < i);
			assert_false(found[p->list.items[k].nr]);
			found[p->list.items[k].nr] = true;
		}
		for (size_t k = 0; k < i; k++)
			assert_int_equal(found[k], is_parent(rq, k, i, m));
		think_graph_add(g, &ref);
	}
	(void)think_graph_held(g, &held);
	assert_true(held <= 2 * limit + 1);
	think_graph_free(g);
}

/* Ten thousand small traces: dense, sparse, with ties, with requests that take no time. */
static void test_random(void **state)
{
	uint64_t seed = 20170227;

	(void)state;
	for (unsigned int n = 0; n < 10000; n++) {
		struct request rq[NR_MAX];
		size_t nr = 1 + next_random(&seed) % (n % 10 ? 24 : NR_MAX);
		uint64_t gap = 1 + next_random(&seed) % 20, length = 1 + next_random(&seed) % 100;
		uint64_t m = next_random(&seed) % 3 ? next_random(&seed) % 15 : 0, now = 0;

		for (size_t i = 0; i < nr; i++) {
			now += next_random(&seed) % gap;
			rq[i] = (struct request){ now, now + next_random(&seed) % length };
		}
		compare(rq, nr, m);
	}
}

/* The figure of the paper: A and B overlap, C begins right behind B, E waits for A through D. */
static void test_figure(void **state)
{
	const struct request rq[] = {
		{ 0, 50 }, { 20, 70 }, { 75, 100 }, { 90, 120 }, { 140, 160 }
	};

	(void)state;
	assert_true(is_parent(rq, 0, 2, 10));
	assert_false(is_parent(rq, 1, 2, 10));
	assert_true(is_parent(rq, 3, 4, 10));
	assert_false(is_parent(rq, 0, 4, 10));
	compare(rq, 5, 10);
}

static void test_going_back(void **state)
{
	struct think_graph *g = think_graph_new(0);
	struct action_ref a = { .nr = 0, .enter_ns = 100, .exit_ns = 90 };
	const struct think_parents *p;

	(void)state;
	assert_int_equal(think_graph_issue(g, 100)->list.len, 0);
	think_graph_add(g, &a);
	p = think_graph_issue(g, 50); /* as if at 100 */
	assert_int_equal(p->list.len, 1);
	think_graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_figure),
		cmocka_unit_test(test_going_back),
	};

	return cmocka_run_group_tests_name("think", tests, NULL, NULL);
}
