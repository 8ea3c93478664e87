/* SPDX-License-Identifier: MIT */
/*
 * The short way of capturing a call against the long one: for every row that has
 * a short way, with registers and outcomes of all sorts, both have to come to the
 * same bytes of the trace.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "capture_rig.h"
#include "model/codec.h"

#define NR_ROUNDS 400u

static struct rng rng = { 1 };
static struct schema *schema;

/* What is not in the room is not at hand. */
static const uint8_t *lend_own(struct memory *m, uint64_t addr, size_t len)
{
	(void)m;
	if (addr < U(room) || addr - U(room) > ROOM || len > ROOM - (addr - U(room)))
		return NULL;
	return (const uint8_t *)(uintptr_t)addr;
}

static int plain_setup(void **state)
{
	(void)capture_setup(state);
	memory.borrow = lend_own;
	schema = schema_new();
	rng_fill(&rng, room, ROOM);
	return 0;
}

static int plain_teardown(void **state)
{
	memory.borrow = NULL;
	schema_free(schema);
	return capture_teardown(state);
}

#define PLAIN_TEST(name) cmocka_unit_test_setup_teardown(name, plain_setup, plain_teardown)

/* Lengths at all the limits, offsets, descriptors, errors, addresses that lead somewhere and not. */
static uint64_t any_number(void)
{
	static const uint64_t numbers[] = { 0,
					    1,
					    DATA_INLINE_MAX,
					    DATA_INLINE_MAX + 1,
					    PAGE,
					    BLOB_MAX_BYTES,
					    BLOB_MAX_BYTES + 1,
					    ROOM,
					    (uint64_t)-1,
					    (uint64_t)-EINTR,
					    INT64_MAX,
					    (uint64_t)INT64_MAX + 1,
					    UINT32_MAX,
					    (uint64_t)INT32_MAX + 1 };

	switch (rng_below(&rng, 4)) {
	case 0:
		return numbers[rng_below(&rng, ARRAY_LEN(numbers))];
	case 1:
		return U(room) + rng_below(&rng, ROOM);
	case 2:
		return rng_below(&rng, 2 * PAGE);
	}
	return rng_next(&rng) >> rng_below(&rng, 64);
}

static struct outcome any_outcome(void)
{
	int64_t ret = (int64_t)any_number();

	if (ret < 0 && ret > -4096)
		return (struct outcome){ .ret = -1, .err = (int32_t)-ret };
	return (struct outcome){ .ret = ret };
}

static int capture_short(const struct outcome *o, struct buf *ret)
{
	struct capture_seen seen = {
		.regs = regs, .outcome = o, .before = &memory, .after = &memory
	};
	struct value values[ROW_ARGS_MAX];
	int r;

	memset(values, 0xee, sizeof(values));
	r = capture_plain(&capture, row, &seen, values);
	OK(r);
	if (r)
		OK(codec_put_args(&schema->rows[row->id], schema, values, NULL, ret));
	return r;
}

static void capture_long(const struct outcome *o, struct buf *ret)
{
	capture.truncated_bytes = 0;
	OK(capture_entry(&capture, row, regs, args));
	OK(capture_exit(&capture, row, regs, o, args));
	OK(codec_put_args(&schema->rows[row->id], schema, args, NULL, ret));
}

/* 1 when there was a short way. */
static int check_call(void)
{
	struct buf expected = { 0 }, got = { 0 };
	struct outcome o = any_outcome();
	int r = capture_short(&o, &got);

	if (r) {
		capture_long(&o, &expected);
		assert_int_equal(capture.truncated_bytes, 0);
		if (got.len != expected.len || memcmp(got.data, expected.data, got.len) != 0)
			fail_msg("%s = %lld, policy %d: %zu and %zu bytes differ", printed(),
				 (long long)o.ret, (int)capture.policy, got.len, expected.len);
	}
	buf_release(&expected);
	buf_release(&got);
	arena_reset(&arena);
	return r;
}

static unsigned int check_row(const struct row *of)
{
	unsigned int nr = 0, i, n;

	row = of;
	for (i = 0; i < NR_ROUNDS; i++) {
		capture.policy = i % 4;
		for (n = 0; n < ARRAY_LEN(regs); n++)
			regs[n] = any_number();
		nr += (unsigned int)check_call();
	}
	return nr;
}

static void test_every_row(void **state)
{
	unsigned int id, nr_rows = 0;

	(void)state;
	for (id = 1; id < ROW_ID_MAX; id++) {
		const struct row *of = row_by_id(id);

		if (of && of->sort == ROW_CALL)
			nr_rows += check_row(of) != 0;
	}
	assert_true(nr_rows > 50);
}

static void test_which_rows(void **state)
{
	static const enum row_id plain[] = { SC_read,  SC_write,   SC_pread64, SC_pwrite64,
					     SC_lseek, SC_getppid, SC_fsync };
	static const enum row_id others[] = { SC_openat, SC_readv, SC_fstat, SC_mmap, SC_readlink };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(plain); i++)
		assert_true(check_row(row_by_id(plain[i])) > NR_ROUNDS / 8);
	for (i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(check_row(row_by_id(others[i])), 0);
}

/* Nothing is stored by a way that is not taken. */
static void test_not_at_hand(void **state)
{
	struct outcome o = { .ret = 2 * PAGE };
	struct buf got = { 0 };

	(void)state;
	row = row_by_id(SC_pread64);
	regs[0] = 3;
	regs[1] = U(room) + ROOM - PAGE;
	regs[2] = 2 * PAGE;
	capture.policy = DATA_ALL;
	assert_int_equal(capture_short(&o, &got), 0);
	capture.narrow = true;
	regs[1] = U(room);
	assert_int_equal(capture_short(&o, &got), 0);
	end();
	reopen();
	assert_int_equal(trace_footer(trace)->nr_blobs, 0);
	buf_release(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAIN_TEST(test_every_row),
		PLAIN_TEST(test_which_rows),
		PLAIN_TEST(test_not_at_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
