/* SPDX-License-Identifier: MIT */
/* Which bytes are known: turns against one flag for every byte, and what is bounded. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "compile/bytes.h"
#include "event_text.h"

#define SIZE 200

static struct res stream = { .id = 7, .kind = RES_STREAM, .real = true };
static bool mixed; /* others can write at the same time */

/* One event that touches the stream. */
static bool step(struct bytes *b, const char *text, uint32_t how, uint64_t from, uint64_t to)
{
	struct touch touch = { .res = &stream, .how = how, .from = from, .to = to };
	struct facts facts = { .touches = { .items = &touch, .len = 1, .cap = 1 }, .mixed = mixed };
	struct event ev = event_from_text(text);

	return bytes_step(b, &ev, &facts);
}

static void write_at(struct bytes *b, uint64_t from, uint64_t to, bool known)
{
	uint32_t how = TOUCH_WRITE | TOUCH_SIZE_WRITE;

	(void)step(b,
		   known ? "write(fd=3, buf=\"x\", count=1) = 1"
			 : "write(fd=3, buf=\"x\"/9, count=9) = 9",
		   how, from, to);
}

static bool is_known(struct bytes *b, uint64_t from, uint64_t to)
{
	return !step(b, "lseek(fd=3, offset=0, whence=SEEK_DATA) = 0", TOUCH_READ, from, to);
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static void test_against_flags(void **state)
{
	uint64_t random = 1;
	unsigned int round, n;

	(void)state;
	for (round = 0; round < 50; round++) {
		bool known[SIZE + 1];
		struct bytes b = { 0 };

		memset(known, true, sizeof(known));
		for (n = 0; n < 100; n++) {
			uint64_t from = next_random(&random) % SIZE, to;
			bool now = next_random(&random) & 1, all = true;
			uint64_t i;

			to = from + 1 + next_random(&random) % 20;
			if (to > SIZE)
				to = TOUCH_TO_END;
			write_at(&b, from, to, now);
			for (i = from; i <= SIZE && i < to; i++)
				known[i] = now;
			from = next_random(&random) % SIZE;
			to = from + 1 + next_random(&random) % (SIZE - from);
			for (i = from; i < to; i++)
				all &= known[i];
			assert_int_equal(is_known(&b, from, to), all);
			assert_int_equal(is_known(&b, SIZE + 9, TOUCH_TO_END), known[SIZE]);
		}
		bytes_release(&b);
	}
}

static void test_bounded(void **state)
{
	struct bytes b = { 0 };
	uint64_t i;

	(void)state;
	for (i = 0; i < BYTES_TURNS_MAX / 2; i++)
		write_at(&b, 4 * i, 4 * i + 1, false);
	assert_true(is_known(&b, 1, 4));
	write_at(&b, 4 * i, 4 * i + 1, false);
	assert_false(is_known(&b, 1, 4));
	write_at(&b, 0, TOUCH_TO_END, true);
	assert_true(is_known(&b, 0, TOUCH_TO_END));
	bytes_release(&b);
}

static void test_forgotten(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	write_at(&b, 0, 9, false);
	assert_false(is_known(&b, 3, 4));
	bytes_forget(&b, &stream);
	assert_int_equal(b.by_res.nr_live, 0);
	assert_true(is_known(&b, 3, 4));
	bytes_release(&b);
}

/* What nobody puts into a replay's stream, and what is in nobody knows which order. */
static void test_streams(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	write_at(&b, 0, 8, true);
	assert_true(is_known(&b, 0, 4));
	mixed = true;
	assert_false(is_known(&b, 4, 8));
	mixed = false;
	assert_true(is_known(&b, 4, 8));
	stream.real = false;
	assert_false(is_known(&b, 0, 4));
	stream.real = true;
	assert_true(is_known(&b, 0, 4));
	bytes_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_flags),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_streams),
	};

	return cmocka_run_group_tests(tests, event_text_setup, event_text_teardown);
}
