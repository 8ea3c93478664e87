/* SPDX-License-Identifier: MIT */
/* Order changes and distances against what their definitions say, number by number. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/distance.h"
#include "report/reorder.h"

#define NR 300

static uint64_t state_of_random = 88172645463325252u;

static uint64_t any_number(void)
{
	uint64_t x = state_of_random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	state_of_random = x;
	return x;
}

/* Numbers 1 ... NR, of which some changed places with one at most `reach` away. */
static void shuffle(uint64_t *numbers, unsigned int reach)
{
	unsigned int i;

	for (i = 0; i < NR; i++)
		numbers[i] = i + 1;
	for (i = 0; reach && i < NR; i++) {
		unsigned int other = i + (unsigned int)(any_number() % reach);
		uint64_t n = numbers[i];

		if (other >= NR)
			continue;
		numbers[i] = numbers[other];
		numbers[other] = n;
	}
}

/* RFC 4737: reordered if not the greatest so far; the extent reaches to the first that is greater. */
static void check_order(const uint64_t *numbers)
{
	struct reorder r = { 0 };
	uint64_t reordered = 0, longest = 0, sum = 0;
	unsigned int i, j;

	for (i = 0; i < NR; i++)
		reorder_add(&r, (struct reorder_key){ numbers[i] / 3, numbers[i] }, i * 10);
	for (i = 0; i < NR; i++) {
		for (j = 0; j < i && numbers[j] < numbers[i]; j++)
			;
		if (j == i)
			continue;
		reordered++;
		sum += i - j;
		longest = i - j > longest ? i - j : longest;
	}
	assert_true(r.nr == NR);
	assert_true(r.nr_reordered == reordered);
	assert_true(r.extents.sum == sum && r.extents.max == longest);
	assert_true(r.late_ns.sum == sum * 10 && !r.nr_cut);
	reorder_release(&r);
}

static void test_reordering(void **state)
{
	uint64_t numbers[NR];
	unsigned int round;

	(void)state;
	shuffle(numbers, 0);
	check_order(numbers);
	for (round = 1; round < 200; round++) {
		shuffle(numbers, 1 + round);
		check_order(numbers);
	}
}

static void test_extents_are_cut(void **state)
{
	struct reorder r = { 0 };
	uint64_t i;

	(void)state;
	for (i = 1; i <= REORDER_RECORDS + 10; i++)
		reorder_add(&r, (struct reorder_key){ i, 0 }, i);
	reorder_add(&r, (struct reorder_key){ 5, 1 }, i);
	assert_true(r.nr_reordered == 1 && r.nr_cut == 1);
	assert_true(r.extents.max == REORDER_RECORDS);
	reorder_release(&r);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double share_up_to(const uint64_t *numbers, size_t nr, uint64_t x)
{
	size_t i;

	for (i = 0; i < nr && numbers[i] <= x; i++)
		;
	return (double)i / (double)nr;
}

/* Numbers below 256 are kept exactly. */
static void test_distances(void **state)
{
	unsigned int round;

	(void)state;
	for (round = 0; round < 50; round++) {
		struct histogram a = { 0 }, b = { 0 };
		uint64_t x[40], y[60], i;
		double ks = 0, emd = 0;

		for (i = 0; i < 40; i++)
			histogram_add(&a, x[i] = any_number() % 200);
		for (i = 0; i < 60; i++)
			histogram_add(&b, y[i] = any_number() % (56 + round) + 3 * round);
		qsort(x, 40, sizeof(*x), ascending);
		qsort(y, 60, sizeof(*y), ascending);
		for (i = 0; i < 256; i++) {
			double gap = fabs(share_up_to(x, 40, i) - share_up_to(y, 60, i));

			ks = gap > ks ? gap : ks;
			emd += gap;
		}
		assert_true(fabs(distance_ks(&a, &b) - ks) < 1e-9);
		assert_true(fabs(distance_emd(&a, &b) - emd) < 1e-9);
		assert_true(distance_ks(&a, &a) == 0 && distance_emd(&b, &b) == 0);
		histogram_release(&a);
		histogram_release(&b);
	}
}

static void test_distance_of_one_shift(void **state)
{
	struct histogram a = { 0 }, b = { 0 }, none = { 0 };
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		histogram_add(&a, 1000000);
		histogram_add(&b, 3000000);
	}
	assert_true(distance_ks(&a, &b) == 1);
	assert_true(fabs(distance_emd(&a, &b) - 2000000) < 40000);
	assert_true(isnan(distance_ks(&a, &none)) && isnan(distance_emd(&none, &b)));
	histogram_release(&a);
	histogram_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reordering),
		cmocka_unit_test(test_extents_are_cut),
		cmocka_unit_test(test_distances),
		cmocka_unit_test(test_distance_of_one_shift),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
