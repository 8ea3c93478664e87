/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/histogram.h"

#define NR 20000

static uint64_t state_of_random = 88172645463325252u;

/* Of all magnitudes alike. */
static uint64_t any_number(void)
{
	uint64_t x = state_of_random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	state_of_random = x;
	return x >> (x % 64);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void test_empty(void **state)
{
	struct histogram h = { 0 };

	(void)state;
	assert_int_equal(histogram_percentile(&h, 50), 0);
	assert_int_equal(histogram_percentile(&h, 100), 0);
	assert_int_equal(histogram_zeros(&h), 0);
	histogram_release(&h);
}

static void test_ends(void **state)
{
	struct histogram h = { 0 };

	(void)state;
	histogram_add(&h, UINT64_MAX);
	assert_true(h.min == UINT64_MAX && h.max == UINT64_MAX);
	assert_true(histogram_percentile(&h, 1) == UINT64_MAX);
	histogram_add(&h, 0);
	assert_true(h.min == 0);
	assert_true(histogram_percentile(&h, 50) == 0);
	assert_true(histogram_percentile(&h, 51) == UINT64_MAX);
	assert_true(h.sum == UINT64_MAX);
	/* The sum does not wrap. */
	histogram_add(&h, UINT64_MAX);
	assert_true(h.sum == UINT64_MAX);
	assert_int_equal(histogram_power(&h, 63), 2);
	assert_int_equal(histogram_power(&h, 64), 0);
	histogram_release(&h);
}

static void test_small_numbers_are_exact(void **state)
{
	struct histogram h = { 0 };
	uint64_t i;

	(void)state;
	for (i = 0; i < 256; i++)
		histogram_add(&h, i);
	for (i = 1; i <= 256; i++)
		assert_true(histogram_percentile(&h, (double)i / 256 * 100) == i - 1);
	histogram_release(&h);
}

static void expect_near(uint64_t got, uint64_t want)
{
	double error = want ? ((double)got - (double)want) / (double)want : (double)got;

	if (error > 0.01 || error < -0.01)
		fail_msg("%llu instead of %llu", (unsigned long long)got, (unsigned long long)want);
}

static void test_error_is_below_one_percent(void **state)
{
	static const double percents[] = { 0.1, 1, 10, 25, 50, 75, 90, 99, 99.9, 100 };
	uint64_t *all = calloc(NR, sizeof(*all));
	struct histogram h = { 0 };
	size_t i;

	(void)state;
	assert_non_null(all);
	for (i = 0; i < NR; i++) {
		all[i] = any_number();
		histogram_add(&h, all[i]);
	}
	qsort(all, NR, sizeof(*all), ascending);
	assert_true(h.count == NR && h.min == all[0] && h.max == all[NR - 1]);
	for (i = 0; i < ARRAY_LEN(percents); i++) {
		size_t rank = (size_t)(percents[i] / 100 * NR + 0.5);

		expect_near(histogram_percentile(&h, percents[i]), all[rank ? rank - 1 : 0]);
	}
	histogram_release(&h);
	free(all);
}

static void test_powers_of_two(void **state)
{
	uint64_t count[64] = { 0 }, zeros = 0, v;
	struct histogram h = { 0 };
	unsigned int power;
	size_t i;

	(void)state;
	for (i = 0; i < NR; i++) {
		v = any_number();
		histogram_add(&h, v);
		if (v)
			count[63 - __builtin_clzll(v)]++;
		else
			zeros++;
	}
	assert_true(histogram_zeros(&h) == zeros);
	for (power = 0; power < 64; power++)
		assert_true(histogram_power(&h, power) == count[power]);
	histogram_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_small_numbers_are_exact),
		cmocka_unit_test(test_error_is_below_one_percent),
		cmocka_unit_test(test_powers_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
