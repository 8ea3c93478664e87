/* SPDX-License-Identifier: MIT */
/*
 * Computing between calls: what of the gaps in a trace is the program's own.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>
#include <sys/mman.h>

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

/* The first call was held after it as well as before it, the second in the middle of it, too. */
static void test_known_sides(void **state)
{
	struct event first = { .row = row_by_id(SC_pread64),
			       .exit_ns = 10 * US,
			       .held_ns = 50 * US,
			       .held_before_ns = 40 * US };
	struct event second = { .row = row_by_id(SC_clone3),
				.enter_ns = 110 * US,
				.exit_ns = 510 * US,
				.held_ns = 65 * US,
				.held_before_ns = 60 * US,
				.held_inside_ns = 380 * US };
	struct facts facts = { 0 };
	struct think t = { 0 };

	(void)state;
	think_arrive(&t, &first);
	think_leave(&t, &first);
	think_pass(&t, &second, &facts);
	assert_int_equal(t.after_ns, 100 * US - 70 * US + 20 * US);
	/* What makes no sense is no more than there is. */
	second.held_before_ns = UINT64_MAX;
	second.held_inside_ns = UINT64_MAX;
	think_leave(&t, &first);
	think_pass(&t, &second, &facts);
	assert_int_equal(t.after_ns, 100 * US - 75 * US);
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

/* What gaps of 5 ms, 1 ms of it on a processor, count behind a map of a file. */
static void behind_map(uint64_t length, uint64_t prot, uint64_t flags, uint64_t after_ns[2])
{
	struct event map = { .row = row_by_id(SC_mmap), .enter_ns = 10 * US, .exit_ns = 20 * US };
	struct think t = { 0 };
	int i;

	*args_find(map.row, map.args, "length") = value_uint(length);
	*args_find(map.row, map.args, "prot") = value_uint(prot);
	*args_find(map.row, map.args, "flags") = value_uint(flags);
	*args_find(map.row, map.args, "fd") = value_int(3);
	think_arrive(&t, &map);
	think_leave(&t, &map);
	for (i = 0; i < 2; i++) {
		uint64_t at_ns = t.since_ns + 5000 * US;
		struct event next = { .row = row_by_id(SC_close),
				      .enter_ns = at_ns,
				      .exit_ns = at_ns + US,
				      .gap_cpu_ns = 1000 * US };

		think_arrive(&t, &next);
		after_ns[i] = t.after_ns;
		think_leave(&t, &next);
	}
}

static void test_faults(void **state)
{
	uint64_t after_ns[2];

	(void)state;
	/* A replay waits for the page itself; one, as there is no more. */
	behind_map(98, PROT_READ, MAP_PRIVATE, after_ns);
	assert_int_equal(after_ns[0], 1000 * US);
	assert_true(after_ns[1] > 3000 * US);
	behind_map(1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, after_ns);
	assert_int_equal(after_ns[0], 1000 * US);
	assert_int_equal(after_ns[1], 1000 * US);
	behind_map(UINT64_MAX, PROT_READ, MAP_SHARED, after_ns);
	assert_int_equal(after_ns[1], 1000 * US);
	/* Nothing of these comes from a file, or is read. */
	behind_map(98, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, after_ns);
	assert_true(after_ns[0] > 3000 * US);
	behind_map(98, PROT_NONE, MAP_PRIVATE, after_ns);
	assert_true(after_ns[0] > 3000 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_cpu), cmocka_unit_test(test_known_sides),
		cmocka_unit_test(test_with_cpu),    cmocka_unit_test(test_other_waiting),
		cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
