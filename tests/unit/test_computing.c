/* SPDX-License-Identifier: MIT */
/*
 * Computing between calls: what of the gaps in a trace is the program's own.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"
#include "compile/inside.h"

#define US NS_PER_US

/* What a gap of so much between two calls counts, as computing before the second. */
static uint64_t computing_ns(uint64_t gap_ns, uint64_t held_ns, uint64_t gap_cpu_ns)
{
	struct event first = { .row = row_by_id(SC_pread64),
			       .enter_ns = 10 * US,
			       .exit_ns = 20 * US,
			       .held_ns = held_ns };
	struct event second = { .row = row_by_id(SC_pread64),
				.enter_ns = 20 * US + gap_ns,
				.exit_ns = 30 * US + gap_ns,
				.held_ns = held_ns,
				.gap_cpu_ns = gap_cpu_ns };
	struct think t = { 0 };

	think_arrive(&t, &first);
	think_leave(&t, &first);
	think_arrive(&t, &second);
	assert_int_equal(t.before_ns + t.wait_ns, 0);
	return t.after_ns;
}

static void test_without_cpu(void **state)
{
	(void)state;
	assert_int_equal(computing_ns(100 * US, 0, 0), 100 * US);
	/* Half of what each call was held. */
	assert_int_equal(computing_ns(100 * US, 30 * US, 0), 70 * US);
	assert_int_equal(computing_ns(20 * US, 30 * US, 0), 0);
}

static void test_with_cpu(void **state)
{
	(void)state;
	/* What is no CPU time is what it took the recorder to notice. */
	assert_int_equal(computing_ns(100 * US, 30 * US, 25 * US), 25 * US);
	assert_int_equal(computing_ns(100 * US, 30 * US, 1), 1);
	/* No more than there was time for. */
	assert_int_equal(computing_ns(100 * US, 30 * US, 90 * US), 70 * US);
	assert_int_equal(computing_ns(20 * US, 30 * US, 15 * US), 0);
}

static void test_other_waiting(void **state)
{
	uint64_t a_ns = computing_ns(5000 * US, 0, 1000 * US);
	uint64_t b_ns = computing_ns(6000 * US, 0, 1000 * US);

	(void)state;
	/* Longer waiting was for something else, and is kept. */
	assert_true(a_ns > 3000 * US && a_ns < 5000 * US);
	assert_int_equal(b_ns - a_ns, 1000 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_cpu),
		cmocka_unit_test(test_with_cpu),
		cmocka_unit_test(test_other_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
