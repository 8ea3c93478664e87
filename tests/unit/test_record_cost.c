/* SPDX-License-Identifier: MIT */
/* The estimate of how much slower a recorded program was, from invented times. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <sys/resource.h>

#include "base/clock.h"
#include "record/ptrace/cost.h"

#define MS NS_PER_MS

/* A program that ran from 1 s on, whose stops cost nothing. */
static struct cost begun(void)
{
	struct cost c = { .begun_ns = NS_PER_S, .idle_from_ns = NS_PER_S };

	return c;
}

static void end(struct cost *c, unsigned int cpu_ms, long nr_switches, unsigned int after_ms)
{
	struct rusage usage = { .ru_utime = { .tv_usec = cpu_ms * 1000 }, .ru_nvcsw = nr_switches };

	cost_end(c, &usage, NS_PER_S + after_ms * MS);
}

static void nothing_known(void **state)
{
	struct cost c = begun();

	(void)state;
	assert_int_equal(cost_slowdown_percent(&c), 0);
	cost_enter_active(&c, NS_PER_S);
	cost_leave_active(&c, NS_PER_S, NS_PER_S + 10 * MS);
	assert_int_equal(cost_slowdown_percent(&c), 0); /* not ended */
}

/* 100 ms active, of which 25 are the program's own. */
static void processor_time(void **state)
{
	struct cost c = begun();

	(void)state;
	cost_enter_active(&c, NS_PER_S);
	cost_leave_active(&c, NS_PER_S, NS_PER_S + 100 * MS);
	end(&c, 25, 0, 100);
	assert_int_equal(cost_slowdown_percent(&c), 400);
}

/* What the kernel spends on the stops is not the program's. */
static void stops(void **state)
{
	struct cost c = begun();

	(void)state;
	c.nr_stops = 1000;
	c.stop_cpu_ns = 15000;
	c.cpu_before_ns = 10 * MS;
	cost_enter_active(&c, NS_PER_S);
	cost_leave_active(&c, NS_PER_S, NS_PER_S + 100 * MS);
	end(&c, 50, 1000, 100);
	assert_int_equal(cost_slowdown_percent(&c), 400); /* 50 - 10 - 15 */
}

/* 900 ms of sleep pass alike: 1000 / (900 + 25). */
static void idle(void **state)
{
	struct cost c = begun();

	(void)state;
	cost_enter_active(&c, NS_PER_S);
	cost_leave_active(&c, NS_PER_S, NS_PER_S + 50 * MS);
	cost_enter_active(&c, NS_PER_S + 950 * MS);
	cost_leave_active(&c, NS_PER_S + 950 * MS, NS_PER_S + 1000 * MS);
	end(&c, 25, 1, 1000);
	assert_int_equal(cost_slowdown_percent(&c), 108);
}

/* A thread that waits for another does not make the program idle: 100 / (100 * 20 / 150). */
static void two_threads(void **state)
{
	struct cost c = begun();

	(void)state;
	cost_enter_active(&c, NS_PER_S);
	cost_enter_active(&c, NS_PER_S);
	cost_leave_active(&c, NS_PER_S, NS_PER_S + 50 * MS);
	cost_leave_active(&c, NS_PER_S, NS_PER_S + 100 * MS);
	end(&c, 20, 0, 100);
	assert_int_equal(cost_slowdown_percent(&c), 750);
}

/* As often as the processor was given up beside our stops, so many calls blocked: the longest. */
static void blocked(void **state)
{
	struct cost c = begun();
	unsigned int i;

	(void)state;
	c.nr_stops = 40;
	cost_enter_active(&c, NS_PER_S);
	for (i = 0; i < 10; i++) {
		cost_add_call(&c, 10000);
		cost_add_call(&c, 4 * MS);
	}
	cost_leave_active(&c, NS_PER_S, NS_PER_S + 100 * MS);
	end(&c, 10, 51, 100); /* its beginning counts for one */
	assert_int_equal(cost_slowdown_percent(&c), 200); /* 100 / (10 + 40) */
}

/* Never faster. */
static void bounds(void **state)
{
	struct cost c = begun();

	(void)state;
	cost_enter_active(&c, NS_PER_S);
	cost_leave_active(&c, NS_PER_S, NS_PER_S + 10 * MS);
	end(&c, 500, 1000, 10);
	assert_int_equal(cost_slowdown_percent(&c), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_known), cmocka_unit_test(processor_time),
		cmocka_unit_test(stops),	 cmocka_unit_test(idle),
		cmocka_unit_test(two_threads),	 cmocka_unit_test(blocked),
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
