/* SPDX-License-Identifier: MIT */
/* The data of events: where it is stored, once, in pieces, in part, or not at all. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/copy.h"
#include "trace_rig.h"

static struct trace_stream *stream;

static void begin_stream(size_t dedup_entries)
{
	begin_with(
		&(struct trace_writer_options){ .replace = true, .dedup_entries = dedup_entries });
	stream = trace_feed_open_stream(feed, 1, 1);
}

/* Closes the file, checks it and opens it for reading. */
static void end_and_reopen(void)
{
	end();
	assert_whole();
	reopen();
}

static void append(struct value buf)
{
	struct event ev = { .row = row_by_id(SC_write) };

	ev.args[1] = buf;
	OK(trace_feed_event(feed, stream, &ev));
}

static uint8_t *random_bytes(uint64_t seed, size_t len)
{
	struct rng r = { seed };
	uint8_t *p = arena_alloc(&arena, len);

	rng_fill(&r, p, len);
	return p;
}

static void append_bytes(const void *p, size_t len)
{
	append(value_bytes(&arena, p, len));
}

static struct trace_iter *iterate_all(void)
{
	return iterate(&(struct trace_query){ 0 });
}

static const struct value *next_buf(struct trace_iter *it)
{
	struct event *ev = next(it);

	return ev ? &ev->args[1] : NULL;
}

static void assert_holds(const struct data *d, const uint8_t *p, size_t len)
{
	const uint8_t *bytes = NULL;
	size_t done = 0, piece_len = 0;
	uint64_t i;

	assert_int_equal(d->kept_bytes, len);
	for (i = 0; i < data_nr_pieces(d); i++) {
		assert_int_equal(trace_load_piece(trace, d, i, &bytes, &piece_len, &err), 1);
		assert_true(piece_len <= BLOB_MAX_BYTES && piece_len <= len - done);
		assert_memory_equal(bytes, p + done, piece_len);
		done += piece_len;
	}
	assert_int_equal(done, len);
	assert_int_equal(trace_load_piece(trace, d, i, &bytes, &piece_len, &err), 0);
}

static void test_inline_or_blob(void **state)
{
	const uint8_t *p = random_bytes(1, DATA_INLINE_MAX + 1);
	struct trace_iter *it;
	const struct data *d;
	size_t len;

	(void)state;
	begin_stream(0);
	for (len = 0; len <= DATA_INLINE_MAX + 1; len++)
		append_bytes(p, len);
	end_and_reopen();
	assert_int_equal(trace_footer(trace)->nr_blobs, 1);
	assert_int_equal(trace_footer(trace)->blob_bytes, DATA_INLINE_MAX + 1);
	it = iterate_all();
	for (len = 0; len <= DATA_INLINE_MAX + 1; len++) {
		d = next_buf(it)->data;
		assert_true(!d->refs == (len <= DATA_INLINE_MAX));
		assert_holds(d, p, len);
	}
	trace_iter_close(it);
}

static void test_equal_data_is_stored_once(void **state)
{
	const uint8_t *p = random_bytes(1, 5000), *q = random_bytes(2, 5000);
	struct trace_iter *it;
	unsigned int i;

	(void)state;
	begin_stream(0);
	for (i = 0; i < 100; i++) {
		append_bytes(p, 5000);
		append_bytes(q, 5000);
		if (i == 50)
			OK(trace_feed_flush(feed)); /* also across blocks */
	}
	append_bytes(p, 4999);
	end_and_reopen();
	assert_int_equal(trace_footer(trace)->nr_blobs, 3);
	assert_true(scratch_size(path()) < 80000);
	it = iterate_all();
	for (i = 0; i < 100; i++) {
		assert_holds(next_buf(it)->data, p, 5000);
		assert_holds(next_buf(it)->data, q, 5000);
	}
	assert_holds(next_buf(it)->data, p, 4999);
	trace_iter_close(it);
}

/* What was forgotten is stored again, and what is remembered must be right. */
static void test_small_memory_for_hashes(void **state)
{
	struct trace_iter *it;
	unsigned int i, round;

	(void)state;
	begin_stream(8);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 100; i++)
			append_bytes(random_bytes(i, 100), 100);
	}
	for (i = 0; i < 100; i++)
		append_bytes(random_bytes(7, 100), 100);
	end_and_reopen();
	assert_in_range(trace_footer(trace)->nr_blobs, 100, 301);
	it = iterate_all();
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 100; i++)
			assert_holds(next_buf(it)->data, random_bytes(i, 100), 100);
	}
	for (i = 0; i < 100; i++)
		assert_holds(next_buf(it)->data, random_bytes(7, 100), 100);
	trace_iter_close(it);
}

/* The table of hashes is small at first; nothing is forgotten when it grows. */
static void test_memory_for_hashes_grows(void **state)
{
	unsigned int i, round;

	(void)state;
	begin_stream(0);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 5000; i++) {
			append_bytes(random_bytes(i, 100), 100);
			arena_reset(&arena);
		}
	}
	end_and_reopen();
	assert_in_range(trace_footer(trace)->nr_blobs, 5000,
			5020); /* a set may be full by chance */
}

static void test_pieces(void **state)
{
	static const size_t lengths[] = { BLOB_MAX_BYTES - 1,	  BLOB_MAX_BYTES,
					  BLOB_MAX_BYTES + 1,	  2 * BLOB_MAX_BYTES,
					  4 * BLOB_MAX_BYTES + 7, 20 * BLOB_MAX_BYTES };
	uint8_t *p = random_bytes(3, 20 * BLOB_MAX_BYTES);
	struct trace_iter *it;
	unsigned int i;

	(void)state;
	begin_stream(0);
	for (i = 0; i < ARRAY_LEN(lengths); i++)
		append_bytes(p, lengths[i]);
	end_and_reopen();
	/* 1 MiB - 1; the first piece; 1 byte; the second; 2 and 7 bytes; the other 16. */
	assert_int_equal(trace_footer(trace)->nr_blobs, 1 + 1 + 1 + 1 + 2 + 1 + 16);
	it = iterate_all();
	for (i = 0; i < ARRAY_LEN(lengths); i++)
		assert_holds(next_buf(it)->data, p, lengths[i]);
	trace_iter_close(it);
}

/* Blocks come and go in the reader's cache; going back and forth must not mix them up. */
static void test_pieces_in_any_order(void **state)
{
	size_t len = 40 * BLOB_MAX_BYTES;
	uint8_t *p = random_bytes(4, len);
	struct rng r = { 5 };
	struct trace_iter *it;
	const struct data *d;
	unsigned int i;

	(void)state;
	begin_stream(0);
	append_bytes(p, len);
	end_and_reopen();
	it = iterate_all();
	d = next_buf(it)->data;
	for (i = 0; i < 300; i++) {
		uint64_t piece = rng_below(&r, 40);
		const uint8_t *bytes;
		size_t piece_len;

		assert_int_equal(trace_load_piece(trace, d, piece, &bytes, &piece_len, &err), 1);
		assert_int_equal(piece_len, BLOB_MAX_BYTES);
		assert_memory_equal(bytes, p + piece * BLOB_MAX_BYTES, piece_len);
	}
	trace_iter_close(it);
}

static void test_data_in_part(void **state)
{
	static const size_t kept[] = { 1, 64, 65, 3000 };
	const uint8_t *p = random_bytes(6, 3000);
	struct trace_iter *it;
	const struct value *v;
	unsigned int i;

	(void)state;
	begin_stream(0);
	for (i = 0; i < ARRAY_LEN(kept); i++) {
		struct value cut = value_bytes(&arena, p, kept[i]);

		cut.data->len_bytes = (uint64_t)1 << 40;
		append(cut);
	}
	end_and_reopen();
	it = iterate_all();
	for (i = 0; i < ARRAY_LEN(kept); i++) {
		v = next_buf(it);
		assert_int_equal(v->data->len_bytes, (uint64_t)1 << 40);
		assert_holds(v->data, p, kept[i]);
	}
	trace_iter_close(it);
}

static void test_no_data(void **state)
{
	struct data nothing = { .len_bytes = 12345 };
	const uint8_t *bytes;
	const struct value *v;
	struct trace_iter *it;
	size_t len;

	(void)state;
	begin_stream(0);
	append((struct value){ .type = VALUE_DATA, .data = &nothing });
	append(value_addr(0));
	append(value_addr(0xdeadbeef));
	append((struct value){ .type = VALUE_NONE });
	end_and_reopen();
	it = iterate_all();
	v = next_buf(it);
	assert_int_equal(v->type, VALUE_DATA);
	assert_int_equal(v->data->len_bytes, 12345);
	assert_int_equal(v->data->kept_bytes, 0);
	assert_int_equal(trace_load_piece(trace, v->data, 0, &bytes, &len, &err), 0);
	assert_int_equal(next_buf(it)->type, VALUE_NULL);
	v = next_buf(it);
	assert_int_equal(v->type, VALUE_ADDR);
	assert_int_equal(v->u, 0xdeadbeef);
	assert_int_equal(next_buf(it)->type, VALUE_NONE);
	trace_iter_close(it);
}

static void test_hash_alone(void **state)
{
	const struct blob_ref refs[2] = { { { 1, 2 }, 0 }, { { 3, 4 }, 0 } };
	struct data d = { .len_bytes = BLOB_MAX_BYTES + 1,
			  .kept_bytes = BLOB_MAX_BYTES + 1,
			  .refs = refs };
	const uint8_t *bytes;
	const struct value *v;
	struct trace_iter *it;
	size_t len;

	(void)state;
	begin_stream(0);
	append((struct value){ .type = VALUE_DATA, .data = &d });
	end_and_reopen();
	assert_int_equal(trace_footer(trace)->nr_blobs, 0);
	it = iterate_all();
	v = next_buf(it);
	assert_true(data_equal(v->data, &d));
	assert_int_equal(trace_load_piece(trace, v->data, 0, &bytes, &len, &err), 0);
	assert_int_equal(trace_load_piece(trace, v->data, 1, &bytes, &len, &err), 0);
	trace_iter_close(it);
}

static void test_blob_ahead_of_its_event(void **state)
{
	const uint8_t *p = random_bytes(8, BLOB_MAX_BYTES);
	struct blob_ref ref;
	struct data d = { .len_bytes = 10, .kept_bytes = 10, .refs = &ref };
	struct trace_iter *it;

	(void)state;
	begin_stream(0);
	assert_int_equal(trace_feed_blob(feed, p, BLOB_MAX_BYTES + 1, &ref), -E2BIG);
	OK(trace_feed_blob(feed, p, BLOB_MAX_BYTES, &ref));
	OK(trace_feed_blob(feed, p, 10, &ref));
	append((struct value){ .type = VALUE_DATA, .data = &d });
	end_and_reopen();
	it = iterate_all();
	assert_holds(next_buf(it)->data, p, 10);
	trace_iter_close(it);
}

/* Bytes that are put where they are kept are as good as any others. */
static void test_blob_in_place(void **state)
{
	static const size_t lengths[] = { 100, BLOB_MAX_BYTES, BLOB_MAX_BYTES, 7, BLOB_MAX_BYTES };
	struct blob_ref refs[ARRAY_LEN(lengths)], again;
	struct trace_iter *it;
	uint8_t *room;
	size_t i;

	(void)state;
	begin_stream(0);
	assert_int_equal(trace_feed_blob_room(feed, BLOB_MAX_BYTES + 1, &room), -E2BIG);
	for (i = 0; i < ARRAY_LEN(lengths); i++) {
		struct data d = { .len_bytes = lengths[i],
				  .kept_bytes = lengths[i],
				  .refs = &refs[i] };

		/* Room that is not used, and more of it than is. */
		OK(trace_feed_blob_room(feed, 1000, &room));
		OK(trace_feed_blob_room(feed, BLOB_MAX_BYTES, &room));
		memcpy(room, random_bytes(i, lengths[i]), lengths[i]);
		OK(trace_feed_blob_filled(feed, room, lengths[i], &refs[i]));
		append((struct value){ .type = VALUE_DATA, .data = &d });
		OK(trace_feed_blob(feed, random_bytes(i, lengths[i]), lengths[i], &again));
		assert_int_equal(again.blob, refs[i].blob);
	}
	end_and_reopen();
	assert_int_equal(trace_footer(trace)->nr_blobs, ARRAY_LEN(lengths));
	it = iterate_all();
	for (i = 0; i < ARRAY_LEN(lengths); i++)
		assert_holds(next_buf(it)->data, random_bytes(i, lengths[i]), lengths[i]);
	trace_iter_close(it);
}

static void append_any(struct trace_feed *f, struct trace_stream *s, const struct schema *schema,
		       unsigned int id, struct rng *rng)
{
	struct item item = { .row = row_by_id(id) };
	struct event ev = { .row = row_by_id(id), .enter_ns = id, .exit_ns = id };

	arena_reset(&arena);
	if (item.row->sort == ROW_RECORD) {
		sample_args(schema, id, rng, &arena, item.args);
		OK(trace_feed_item(f, &item));
	} else {
		sample_args(schema, id, rng, &arena, ev.args);
		OK(trace_feed_event(f, s, &ev));
	}
}

#define NR_ROUNDS 3

static void write_any(const struct schema *schema)
{
	struct rng rng = { 9 };
	unsigned int id, round;

	begin_stream(0);
	for (round = 0; round < NR_ROUNDS; round++) {
		for (id = 0; id < ROW_ID_MAX; id++) {
			if (row_by_id(id))
				append_any(feed, stream, schema, id, &rng);
		}
	}
	end_and_reopen();
}

static void assert_args(const struct row *row, const struct value *got, const struct value *wanted)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (!value_equal(&got[i], &wanted[i]))
			fail_msg("%s: %s differs", row->name, row->args[i].name);
	}
}

/* Any value of every row: one iterator for each section, in step. */
static void test_every_row(void **state)
{
	static const enum block_type types[] = { BLOCK_META, BLOCK_LEDGER, BLOCK_TREE };
	struct schema *schema = schema_new();
	struct trace_items *items[3];
	unsigned int id, round, i;
	struct rng rng = { 9 };
	struct trace_iter *it;

	(void)state;
	write_any(schema);
	/* One thread: its order holds, though the times of each round begin anew. */
	OK(trace_iter_open(trace, &(struct trace_query){ 0 }, &it, &err));
	for (i = 0; i < 3; i++)
		OK(trace_items_open(trace, types[i], &items[i], &err));
	for (round = 0; round < NR_ROUNDS; round++) {
		for (id = 0; id < ROW_ID_MAX; id++) {
			const struct row *row = row_by_id(id);
			struct value wanted[ROW_ARGS_MAX];
			struct event *ev;
			struct item *item;
			struct hash128 hash;

			if (!row)
				continue;
			arena_reset(&arena);
			sample_args(schema, id, &rng, &arena, wanted);
			if (row->sort == ROW_RECORD) {
				i = id == REC_meta || id == REC_request_outcome ? 0
				    : id == REC_loss				? 1
										: 2;
				assert_int_equal(trace_items_next(items[i], &item, &err), 1);
				assert_ptr_equal(item->row, row);
				assert_args(row, item->args, wanted);
				OK(sample_digest_item(trace, item, &hash, &err));
				continue;
			}
			assert_int_equal(trace_iter_next(it, &ev, &err), 1);
			assert_ptr_equal(ev->row, row);
			assert_args(row, ev->args, wanted);
			OK(sample_digest_event(trace, ev, &hash, &err));
		}
	}
	trace_iter_close(it);
	for (i = 0; i < 3; i++)
		trace_items_close(items[i]);
	schema_free(schema);
}

static struct hash128 digest_next(struct trace *t, struct trace_iter *it, bool *ret_end)
{
	struct hash128 hash = { 0 };
	struct event *ev;

	*ret_end = trace_iter_next(it, &ev, &err) != 1;
	if (!*ret_end)
		OK(sample_digest_event(t, ev, &hash, &err));
	return hash;
}

static void assert_same_events(struct trace *a, struct trace *b)
{
	struct trace_iter *x, *y;
	bool x_end, y_end;

	OK(trace_iter_open(a, &(struct trace_query){ 0 }, &x, &err));
	OK(trace_iter_open(b, &(struct trace_query){ 0 }, &y, &err));
	do {
		assert_true(hash_equal(digest_next(a, x, &x_end), digest_next(b, y, &y_end)));
		assert_true(x_end == y_end);
	} while (!x_end);
	assert_string_equal(err.text, "");
	trace_iter_close(x);
	trace_iter_close(y);
}

static void test_copy(void **state)
{
	const struct trace_writer_options options = { .replace = true };
	struct schema *schema = schema_new();
	struct trace_writer *w;
	struct trace_stream *s;
	struct trace_feed *f;
	struct trace_iter *it;
	struct trace *copy;
	struct event *ev;

	(void)state;
	write_any(schema);
	OK(trace_writer_open(scratch_path("copy.trace"), &options, &w, &err));
	f = trace_writer_add_feed(w);
	s = trace_feed_open_stream(f, 1, 1);
	OK(trace_iter_open(trace, &(struct trace_query){ 0 }, &it, &err));
	while (trace_iter_next(it, &ev, &err) == 1) {
		arena_reset(&arena);
		assert_int_equal(trace_copy_event(trace, f, s, ev, &arena, &err), 0);
	}
	trace_iter_close(it);
	OK(trace_writer_close(w, &err));
	OK(trace_open(scratch_path("copy.trace"), 0, &copy, &err));
	assert_same_events(trace, copy);
	trace_close(copy);
	schema_free(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_inline_or_blob),
		TEST(test_equal_data_is_stored_once),
		TEST(test_small_memory_for_hashes),
		TEST(test_memory_for_hashes_grows),
		TEST(test_pieces),
		TEST(test_pieces_in_any_order),
		TEST(test_data_in_part),
		TEST(test_no_data),
		TEST(test_hash_alone),
		TEST(test_blob_ahead_of_its_event),
		TEST(test_blob_in_place),
		TEST(test_every_row),
		TEST(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
