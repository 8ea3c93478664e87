/* SPDX-License-Identifier: MIT */
/* The time of the agent's records, by the processor's counter or the kernel's clock. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>
#include <x86intrin.h>

#include "base/clock.h"
#include "record/agent/ticks.h"

/* The same answer whenever and in whichever order it is asked, and close to the clock. */
static void count_time(bool by_kernel)
{
	enum { NR = 20000 };
	uint64_t start_ns = clock_monotonic_ns(), now_ns, before = 0, i;
	uint64_t *tsc = calloc(NR, sizeof(*tsc)), *ns = calloc(NR, sizeof(*ns));
	struct ticks c;
	size_t nr_stretches;

	ticks_init(&c, start_ns, by_kernel);
	for (i = 0; i < NR; i++) {
		do
			tsc[i] = by_kernel ? clock_monotonic_ns() : __rdtsc();
		while (clock_monotonic_ns() - start_ns < i * 2000); /* 40 ms: several stretches */
		ns[i] = ticks_to_ns(&c, tsc[i]);
		assert_true(ns[i] >= before);
		before = ns[i];
	}
	for (i = NR; i-- > 0;)
		assert_int_equal(ticks_to_ns(&c, tsc[i]), ns[i]);
	now_ns = clock_monotonic_ns() - start_ns;
	assert_in_range(ticks_to_ns(&c, tsc[NR - 1]), now_ns / 100, 2 * now_ns);
	/* A program that lies makes us neither believe it nor remember it. */
	(void)ticks_to_ns(&c, UINT64_MAX);
	nr_stretches = c.stretches.len;
	for (i = 0; i < 100; i++)
		assert_true(ticks_to_ns(&c, UINT64_MAX - i) <= clock_monotonic_ns());
	assert_true(c.stretches.len <= nr_stretches + 1);
	ticks_release(&c);
	free(tsc);
	free(ns);
}

static void counts_time_by_the_counter(void **state)
{
	(void)state;
	count_time(false);
}

static void counts_time_by_the_kernel(void **state)
{
	(void)state;
	count_time(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_time_by_the_counter),
		cmocka_unit_test(counts_time_by_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
