/* SPDX-License-Identifier: MIT */
/* Loads that are open or closed by their making, on devices of one or eight servers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/mem.h"
#include "order/arrivals.h"

#define NR 4000
#define SERVERS_MAX 8
#define THREADS_MAX 64
#define SERVICE_NS 1000000.0

struct world {
	uint64_t seed;
	double free_ns[SERVERS_MAX]; /* when each server is free */
	unsigned int nr_servers;
	struct arrivals arrivals;
};

static double next_random(struct world *w)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(w->seed >> 33) + 0.5) / (double)(UINT64_C(1) << 31);
}

/* By comparisons alone (von Neumann): a run of falling numbers of odd length gives its first. */
static double exponential(struct world *w, double mean)
{
	for (double whole = 0;; whole++) {
		double first = next_random(w), last = first, next;
		unsigned int nr = 1;

		for (; (next = next_random(w)) < last; last = next)
			nr++;
		if (nr % 2)
			return mean * (whole + first);
	}
}

/* When a request that comes now is complete. */
static double serve(struct world *w, double now_ns)
{
	unsigned int first = 0;

	for (unsigned int i = 1; i < w->nr_servers; i++)
		first = w->free_ns[i] < w->free_ns[first] ? i : first;
	if (w->free_ns[first] < now_ns)
		w->free_ns[first] = now_ns;
	return w->free_ns[first] += exponential(w, SERVICE_NS);
}

static enum arrivals_kind judge(struct world *w)
{
	struct arrivals_view v;

	arrivals_judge(&w->arrivals, &v);
	arrivals_release(&w->arrivals);
	return v.kind;
}

static enum arrivals_kind open_load(unsigned int nr_servers, double utilization)
{
	struct world w = { .seed = 11, .nr_servers = nr_servers };
	double now_ns = 0;

	for (unsigned int i = 0; i < NR; i++) {
		now_ns += exponential(&w, SERVICE_NS / nr_servers / utilization);
		arrivals_add(&w.arrivals, (uint64_t)now_ns, (uint64_t)serve(&w, now_ns));
	}
	return judge(&w);
}

/* Each thread: nr_at_once requests, waits for all of them, thinks. */
static enum arrivals_kind closed_load(unsigned int nr_servers, unsigned int nr_threads,
				      double think_ns, unsigned int nr_at_once)
{
	struct world w = { .seed = 12, .nr_servers = nr_servers };
	double ready_ns[THREADS_MAX] = { 0 };

	for (unsigned int i = 0; i < NR / nr_at_once; i++) {
		unsigned int next = 0;
		double now_ns;

		for (unsigned int k = 1; k < nr_threads; k++)
			next = ready_ns[k] < ready_ns[next] ? k : next;
		now_ns = ready_ns[next];
		for (unsigned int k = 0; k < nr_at_once; k++) {
			double end_ns = serve(&w, now_ns);

			arrivals_add(&w.arrivals, (uint64_t)now_ns, (uint64_t)end_ns);
			ready_ns[next] = end_ns > ready_ns[next] ? end_ns : ready_ns[next];
		}
		ready_ns[next] += exponential(&w, think_ns);
	}
	/* A pause, and a lonely thread at the end: the rest is as it was. */
	for (unsigned int i = 0; i < NR / 200; i++) {
		double now_ns = w.free_ns[0] + SERVICE_NS;

		arrivals_add(&w.arrivals, (uint64_t)now_ns, (uint64_t)serve(&w, now_ns));
	}
	return judge(&w);
}

static void test_open(void **state)
{
	(void)state;
	for (unsigned int nr_servers = 1; nr_servers <= SERVERS_MAX; nr_servers += 7) {
		assert_int_equal(open_load(nr_servers, 0.5), ARRIVALS_OPEN);
		assert_int_equal(open_load(nr_servers, 0.8), ARRIVALS_OPEN);
		assert_int_equal(open_load(nr_servers, 0.95), ARRIVALS_OPEN);
	}
}

static void test_closed(void **state)
{
	static const unsigned int threads[] = { 1, 2, 4, 16, 64 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		assert_int_equal(closed_load(1, threads[i], 5000, 1), ARRIVALS_CLOSED);
		assert_int_equal(closed_load(8, threads[i], 5000, 1), ARRIVALS_CLOSED);
		assert_int_equal(closed_load(8, threads[i], SERVICE_NS, 1), ARRIVALS_CLOSED);
	}
	assert_int_equal(closed_load(1, 1, 10 * SERVICE_NS, 1), ARRIVALS_CLOSED);
}

/* Of these it is not claimed that they are open. */
static void test_bursts(void **state)
{
	(void)state;
	for (unsigned int nr = 4; nr <= 256; nr *= 4) {
		assert_int_not_equal(closed_load(8, 1, 100000, nr), ARRIVALS_OPEN);
		assert_int_not_equal(closed_load(8, 4, 100000, nr), ARRIVALS_OPEN);
		assert_int_not_equal(closed_load(8, 4, 100 * SERVICE_NS, nr), ARRIVALS_OPEN);
	}
}

static void test_nothing_to_tell(void **state)
{
	struct world w = { 0 };

	(void)state;
	assert_int_equal(judge(&w), ARRIVALS_UNKNOWN);
	w = (struct world){ .seed = 1, .nr_servers = 1 };
	for (uint64_t i = 0; i < NR; i++) {
		arrivals_add(&w.arrivals, i * 1000, i * 1000 + 5000);
		arrivals_add_unknown(&w.arrivals);
	}
	assert_int_equal(judge(&w), ARRIVALS_UNKNOWN);
	/* Times from outside: back, at once, at the end of time. */
	w = (struct world){ .seed = 1 };
	arrivals_add(&w.arrivals, 1000, 0);
	arrivals_add(&w.arrivals, 0, UINT64_MAX);
	arrivals_add(&w.arrivals, UINT64_MAX, UINT64_MAX);
	arrivals_add(&w.arrivals, 5, 7);
	assert_int_equal(judge(&w), ARRIVALS_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_nothing_to_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
