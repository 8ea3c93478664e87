/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/codec.h"
#include "sample.h"

static struct schema *schema;
static struct arena arena, decoded;
static struct buf bytes;

/* Keeps nothing of a blob but its hash. */
struct counting_sink {
	struct blob_sink sink;
	unsigned int nr_blobs;
	size_t longest;
	int fail;
};

static int count_blob(struct blob_sink *sink, const uint8_t *p, size_t len, struct blob_ref *ret)
{
	struct counting_sink *c = (struct counting_sink *)sink;

	if (c->fail)
		return c->fail;
	*ret = (struct blob_ref){ .hash = hash_bytes(p, len), .blob = ++c->nr_blobs };
	c->longest = len > c->longest ? len : c->longest;
	return 0;
}

static struct counting_sink sink = { .sink = { count_blob } };

static int setup(void **state)
{
	(void)state;
	schema = schema_new();
	arena_init(&arena);
	arena_init(&decoded);
	sink.nr_blobs = 0;
	sink.longest = 0;
	sink.fail = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	schema_free(schema);
	arena_release(&arena);
	arena_release(&decoded);
	buf_release(&bytes);
	return 0;
}

static int encode(unsigned int id, const struct value *args)
{
	buf_clear(&bytes);
	return codec_put_args(&schema->rows[id], schema, args, &sink.sink, &bytes);
}

/* From a copy of exactly this length, so that a read past its end is seen. */
static bool decode(unsigned int id, size_t len, struct value *args, size_t *ret_left)
{
	uint8_t *copy = xmalloc(len);
	struct cursor in = { copy, copy + len };
	bool ok;

	memcpy(copy, bytes.data, len);
	arena_reset(&decoded);
	ok = codec_get_args(&schema->rows[id], schema, &in, &decoded, args);
	*ret_left = cursor_left(&in);
	free(copy);
	return ok;
}

static bool decode_all(unsigned int id, struct value *args)
{
	struct cursor in = { bytes.data, bytes.data + bytes.len };

	arena_reset(&decoded);
	return codec_get_args(&schema->rows[id], schema, &in, &decoded, args) && !cursor_left(&in);
}

static void assert_args_equal(const struct row *row, const struct value *a, const struct value *b)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (!value_equal(&a[i], &b[i]))
			fail_msg("%s: argument %s differs", row->name, row->args[i].name);
	}
}

static void test_any_values_come_back(void **state)
{
	struct value args[ROW_ARGS_MAX], back[ROW_ARGS_MAX];
	struct rng rng = { 1 };
	unsigned int id, round;

	(void)state;
	for (id = 0; id < ROW_ID_MAX; id++) {
		if (!row_by_id(id))
			continue;
		for (round = 0; round < 40; round++) {
			arena_reset(&arena);
			sample_args(schema, id, &rng, &arena, args);
			assert_int_equal(encode(id, args), 0);
			memset(back, 0xff, sizeof(back));
			assert_true(decode_all(id, back));
			assert_args_equal(row_by_id(id), args, back);
		}
	}
}

static void test_short_input_is_refused(void **state)
{
	struct value args[ROW_ARGS_MAX], back[ROW_ARGS_MAX];
	struct rng rng = { 2 };
	unsigned int id;
	size_t len, left;

	(void)state;
	for (id = 0; id < ROW_ID_MAX; id++) {
		if (!row_by_id(id))
			continue;
		do {
			arena_reset(&arena);
			sample_args(schema, id, &rng, &arena, args);
			assert_int_equal(encode(id, args), 0);
		} while (bytes.len > 2000);
		for (len = 0; len < bytes.len; len++)
			assert_false(decode(id, len, back, &left));
		assert_true(decode(id, bytes.len, back, &left));
		assert_int_equal(left, 0);
	}
}

/* A changed byte gives other values or a refusal, never a read past the end. */
static void test_changed_input_is_safe(void **state)
{
	struct value args[ROW_ARGS_MAX], back[ROW_ARGS_MAX];
	struct rng rng = { 3 };
	unsigned int id, round;
	size_t left;

	(void)state;
	for (id = 0; id < ROW_ID_MAX; id++) {
		if (!row_by_id(id))
			continue;
		for (round = 0; round < 100; round++) {
			arena_reset(&arena);
			sample_args(schema, id, &rng, &arena, args);
			assert_int_equal(encode(id, args), 0);
			bytes.data[rng_below(&rng, bytes.len)] ^= (uint8_t)(1u << (round % 8));
			if (decode(id, bytes.len, back, &left))
				assert_true(left <= bytes.len);
		}
	}
}

static struct value data_value(const void *p, uint64_t len, uint64_t kept)
{
	struct value v = value_bytes(&arena, p, (size_t)kept);

	v.data->len_bytes = len;
	return v;
}

static struct data *round_trip_data(struct value v)
{
	struct value args[ROW_ARGS_MAX] = { value_int(1), v, value_uint(2) };
	static struct value back[ROW_ARGS_MAX];

	assert_int_equal(encode(SC_write, args), 0);
	assert_true(decode_all(SC_write, back));
	assert_true(value_equal(&back[1], &v));
	return back[1].data;
}

static void test_inline_limit(void **state)
{
	static const uint8_t zeros[DATA_INLINE_MAX + 1];
	const struct data *d;

	(void)state;
	d = round_trip_data(data_value(zeros, DATA_INLINE_MAX, DATA_INLINE_MAX));
	assert_null(d->refs);
	assert_int_equal(sink.nr_blobs, 0);
	d = round_trip_data(data_value(zeros, DATA_INLINE_MAX + 1, DATA_INLINE_MAX + 1));
	assert_non_null(d->refs);
	assert_null(d->bytes);
	assert_int_equal(sink.nr_blobs, 1);
	/* What is kept counts, not what there was. */
	d = round_trip_data(data_value(zeros, 1 << 20, DATA_INLINE_MAX));
	assert_int_equal(sink.nr_blobs, 1);
	assert_int_equal(d->len_bytes, 1 << 20);
	assert_int_equal(d->kept_bytes, DATA_INLINE_MAX);
}

static void test_pieces(void **state)
{
	static const struct {
		uint64_t len;
		unsigned int nr_pieces;
		size_t longest;
	} cases[] = {
		{ BLOB_MAX_BYTES - 1, 1, BLOB_MAX_BYTES - 1 },
		{ BLOB_MAX_BYTES, 1, BLOB_MAX_BYTES },
		{ BLOB_MAX_BYTES + 1, 2, BLOB_MAX_BYTES },
		{ 3 * BLOB_MAX_BYTES, 3, BLOB_MAX_BYTES },
	};
	uint8_t *p = xcalloc(3, BLOB_MAX_BYTES);
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		sink.nr_blobs = 0;
		sink.longest = 0;
		(void)round_trip_data(data_value(p, cases[i].len, cases[i].len));
		assert_int_equal(sink.nr_blobs, cases[i].nr_pieces);
		assert_int_equal(sink.longest, cases[i].longest);
	}
	free(p);
}

static void test_nothing_kept(void **state)
{
	const struct data *d;

	(void)state;
	d = round_trip_data(data_value(NULL, UINT64_MAX, 0));
	assert_true(d->len_bytes == UINT64_MAX);
	assert_int_equal(d->kept_bytes, 0);
	assert_null(d->refs);
	d = round_trip_data(data_value(NULL, 0, 0));
	assert_int_equal(d->len_bytes, 0);
}

static void test_refs_go_through(void **state)
{
	struct blob_ref refs[2] = { { { 1, 2 }, 0 }, { { 3, UINT64_MAX }, UINT64_MAX } };
	struct data d = { .len_bytes = BLOB_MAX_BYTES + 9,
			  .kept_bytes = BLOB_MAX_BYTES + 5,
			  .refs = refs };
	const struct data *back;

	(void)state;
	back = round_trip_data((struct value){ .type = VALUE_DATA, .data = &d });
	assert_int_equal(sink.nr_blobs, 0);
	assert_memory_equal(back->refs, refs, sizeof(refs));
}

static void test_numbers_at_their_ends(void **state)
{
	struct value args[ROW_ARGS_MAX], back[ROW_ARGS_MAX];

	(void)state;
	args[0] = value_int(INT64_MIN);
	args[1] = value_int(INT64_MAX);
	args[2] = value_int(-1);
	assert_int_equal(encode(SC_lseek, args), 0);
	assert_true(decode_all(SC_lseek, back));
	assert_args_equal(row_by_id(SC_lseek), args, back);
	args[0] = value_addr(UINT64_MAX);
	args[0].type = VALUE_INT;
	args[1] = value_uint(UINT64_MAX);
	args[2] = args[3] = args[4] = args[5] = args[6] = (struct value){ .type = VALUE_NONE };
	assert_int_equal(encode(SC_mmap, args), 0);
	assert_true(decode_all(SC_mmap, back));
	assert_args_equal(row_by_id(SC_mmap), args, back);
}

static void test_sink_failure_is_passed_on(void **state)
{
	static const uint8_t zeros[100];
	struct value args[ROW_ARGS_MAX] = { value_int(1), data_value(zeros, 100, 100),
					    value_uint(100) };

	(void)state;
	sink.fail = -ENOSPC;
	assert_int_equal(encode(SC_write, args), -ENOSPC);
}

static void put(const char *p, size_t len)
{
	buf_clear(&bytes);
	buf_put(&bytes, p, len);
}

#define REFUSED(id, text)                                                                          \
	do {                                                                                       \
		put(text, sizeof(text) - 1);                                                       \
		assert_false(decode_all(id, back));                                                \
	} while (0)

/* write: missing, svarint fd, data, uvarint count. */
static void test_lies_are_refused(void **state)
{
	struct value back[ROW_ARGS_MAX];

	(void)state;
	put("\0\2\0\5", 4);
	assert_true(decode_all(SC_write, back));
	assert_int_equal(back[1].type, VALUE_NULL);
	REFUSED(SC_write, "\0\2\10\5"); /* no such form */
	REFUSED(SC_write, "\0\2\2\5abcd"); /* longer than the input */
	REFUSED(SC_write, "\0\2\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1ab");
	REFUSED(SC_write, "\0\2\3\2\3abc\5"); /* kept more than there was */
	REFUSED(SC_write, "\0\2\4\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"
			  "0123456789abcdef\1"); /* 2^44 pieces */
	REFUSED(SC_write, "\0\2\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\2"); /* 65 bits */
	REFUSED(SC_write, "\0\2\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\0"); /* 11 bytes */
	/* writev: a list of as many iovecs as there are numbers. */
	REFUSED(SC_writev, "\0\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\3\3\0\1\5");
	/* fstat: fields that the schema does not have; a struct of many items. */
	REFUSED(SC_fstat, "\0\2\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\1\1\1\1\1\1\1\1\1\1\1");
	REFUSED(SC_fstat, "\0\2\4\1\1");
}

/* What the table promises to the codec and to files. */
static void test_table_fits_the_format(void **state)
{
	unsigned int i, n;

	(void)state;
	for (i = 0; i < ROW_ID_MAX; i++) {
		const struct row *row = row_by_id(i);

		if (row)
			assert_true(row->nr_args <= ROW_ARGS_MAX);
	}
	for (i = 1; i < STRUCT_MAX; i++) {
		assert_true(struct_descs[i].nr_fields <= STRUCT_FIELDS_MAX);
		for (n = 0; n < struct_descs[i].nr_fields; n++)
			assert_int_not_equal(struct_descs[i].fields[n].kind, KIND_HOLE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_any_values_come_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short_input_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changed_input_is_safe, setup, teardown),
		cmocka_unit_test_setup_teardown(test_inline_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refs_go_through, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_at_their_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sink_failure_is_passed_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lies_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_fits_the_format, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
