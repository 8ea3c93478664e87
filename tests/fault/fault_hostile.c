/* SPDX-License-Identifier: MIT */
/*
 * Files that lie: checksums are right, numbers are not. Each is refused with
 * words that name the file and the place, in little time and memory.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/varint.h"
#include "forge.h"
#include "model/row.h"
#include "scratch.h"
#include "trace/check.h"
#include "trace/reader.h"

/*
 * What a file of some MB may cost at most. The reader's own limit for events is
 * 1 GiB; a sanitizer adds its share. Without any limit it would be 1.5 TiB.
 */
#define MEMORY_MAX_KIB (2500l << 10)

static struct forge forge;
static struct buf events;
static uint64_t start_ns;

static int setup(void **state)
{
	(void)state;
	forge_init_with_schema(&forge);
	start_ns = clock_monotonic_ns();
	return 0;
}

static int teardown(void **state)
{
	struct rusage u;

	(void)state;
	forge_release(&forge);
	buf_release(&events);
	(void)getrusage(RUSAGE_SELF, &u); /* cannot fail */
	if (u.ru_maxrss > MEMORY_MAX_KIB) {
		print_error("takes %ld MiB\n", u.ru_maxrss >> 10);
		return -1;
	}
	return 0;
}

static const char *path(void)
{
	return scratch_path("hostile.trace");
}

static void assert_words(const struct err *err, const char *words)
{
	if (!strstr(err->text, path()) || !strstr(err->text, "offset") || !strstr(err->text, words))
		fail_msg("'%s' should name file, offset and '%s'", err->text, words);
}

/* Reads all of it. The first failure, with words; or 0. */
static int read_file(int flags, struct err *err)
{
	static const enum block_type sections[] = { BLOCK_META, BLOCK_TREE, BLOCK_LEDGER };
	struct trace_iter *it = NULL;
	struct trace_items *items;
	struct event *ev;
	struct item *item;
	struct trace *t;
	unsigned int i;
	int r = trace_open(path(), flags, &t, err);

	if (r < 0)
		return r;
	r = trace_iter_open(t, &(struct trace_query){ 0 }, &it, err);
	while (!r && (r = trace_iter_next(it, &ev, err)) == 1)
		r = 0;
	trace_iter_close(it);
	for (i = 0; !r && i < ARRAY_LEN(sections); i++) {
		items = NULL;
		r = trace_items_open(t, sections[i], &items, err);
		while (!r && (r = trace_items_next(items, &item, err)) == 1)
			r = 0;
		trace_items_close(items);
	}
	if (!r)
		r = trace_tail(t, err);
	trace_close(t);
	return r;
}

/* The reader refuses it, a check finds it, and salvaging survives it. */
static void assert_refused(int wanted, const char *words)
{
	struct check_result c;
	struct err err = { "" };

	forge_save(&forge, path());
	assert_int_equal(read_file(0, &err), wanted);
	assert_words(&err, words);
	err.text[0] = 0;
	if (!trace_check(path(), NULL, &c, &err)) {
		assert_false(check_ok(&c));
		assert_words(&c.first_fault, "");
	}
	(void)read_file(TRACE_SALVAGE, &err); /* whatever comes of it */
}

static void put_header(struct block_header h, const void *payload, size_t len)
{
	h.version = 1;
	h.checksum = block_checksum(payload, len);
	block_header_put(buf_reserve(&forge.file, BLOCK_HEADER_BYTES), &h);
	forge.file.len += BLOCK_HEADER_BYTES;
	buf_put(&forge.file, payload, len);
}

static void write_text(const char *text, size_t len)
{
	struct check_result c;
	struct err err = { "" };

	scratch_write(path(), text, len);
	assert_int_equal(read_file(0, &err), -EBADMSG);
	assert_words(&err, len ? "not a trace" : "empty");
	assert_int_equal(trace_check(path(), NULL, &c, &err), -EBADMSG);
	assert_words(&err, len ? "not a trace" : "empty");
}

static void test_foreign_files(void **state)
{
	char *zeros = xcalloc(1, 100000);

	(void)state;
	write_text("", 0);
	write_text("#!/bin/sh\necho this is not a trace\n", 35);
	write_text("RPR", 3);
	write_text(zeros, 100000);
	free(zeros);
}

static void test_magic_alone(void **state)
{
	struct err err = { "" };

	(void)state;
	scratch_write(path(), "RPRB", 4);
	assert_int_equal(read_file(0, &err), -EBADMSG);
	assert_words(&err, "ends within a block");
}

static void test_other_first_block(void **state)
{
	struct err err = { "" };

	(void)state;
	forge.file.len = 0;
	put_header((struct block_header){ .type = BLOCK_META, .stored_bytes = 4, .plain_bytes = 4 },
		   "meta", 4);
	forge_save(&forge, path());
	assert_int_equal(read_file(0, &err), -EBADMSG);
	assert_words(&err, "not a trace");
}

static void test_huge_lengths(void **state)
{
	size_t len = forge.file.len;

	(void)state;
	put_header((struct block_header){ .type = BLOCK_META, .stored_bytes = UINT32_MAX }, "x", 1);
	assert_refused(-EBADMSG, "ends within a block");
	forge.file.len = len;
	put_header((struct block_header){ .type = BLOCK_META,
					  .stored_bytes = 1,
					  .plain_bytes = UINT32_MAX },
		   "x", 1);
	assert_refused(-EBADMSG, "");
	forge.file.len = len;
	put_header((struct block_header){ .type = BLOCK_META,
					  .flags = BLOCK_ZSTD,
					  .stored_bytes = 1,
					  .plain_bytes = BLOCK_PLAIN_MAX },
		   "x", 1);
	assert_refused(-EBADMSG, "");
	/* The same behind the index, which lists it as it should be. */
	forge.file.len = len;
	put_header((struct block_header){ .type = BLOCK_META,
					  .flags = BLOCK_ZSTD,
					  .stored_bytes = 1,
					  .plain_bytes = BLOCK_PLAIN_MAX + 1 },
		   "x", 1);
	VEC_PUSH(&forge.entries,
		 ((struct block_entry){ .type = BLOCK_META, .offset = len, .stored_bytes = 1 }));
	forge_close(&forge);
	assert_refused(-EBADMSG, "more than the format allows");
}

/* A block that is stored with more bytes than any may have. */
static void test_long_payload(void **state)
{
	size_t long_len = BLOCK_PLAIN_MAX + 1, at = forge.file.len;
	uint8_t *payload = xcalloc(1, long_len);

	(void)state;
	put_header((struct block_header){ .type = BLOCK_META,
					  .stored_bytes = (uint32_t)long_len,
					  .plain_bytes = (uint32_t)long_len },
		   payload, long_len);
	VEC_PUSH(&forge.entries,
		 ((struct block_entry){
			 .type = BLOCK_META, .offset = at, .stored_bytes = (uint32_t)long_len }));
	forge_close(&forge);
	assert_refused(-EBADMSG, "claims 16777217 bytes");
	free(payload);
}

static void put_event(uint64_t row)
{
	struct buf body = { 0 };

	forge_put_head(&body, (unsigned int)row, 0);
	forge_put_i(&body, 1);
	forge_put_body(&events, &body);
	buf_release(&body);
}

static void put_events(uint64_t stream, uint32_t nr)
{
	const struct events_prefix prefix = {
		.pid = 1, .tid = (uint32_t)stream, .nr_events = nr, .last_ns = UINT64_MAX
	};

	forge_events(&forge, stream, &prefix, &events);
}

static void test_wrong_plain_length(void **state)
{
	struct block_entry *e;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct block_header h;

		forge_release(&forge);
		forge_init_with_schema(&forge);
		e = &forge.entries.items[1];
		assert_int_equal(block_header_get(forge.file.data + e->offset, &h), 0);
		assert_true(h.flags & BLOCK_ZSTD);
		h.plain_bytes += i ? 1 : -1;
		block_header_put(forge.file.data + e->offset, &h);
		forge_close(&forge);
		assert_refused(-EBADMSG, "cannot be unpacked");
	}
}

/* 16 MiB of zeros in half a KB: not events, not records, not data. */
static void test_packed_zeros(void **state)
{
	static const enum block_type types[] = { BLOCK_EVENTS, BLOCK_META, BLOCK_BLOBS,
						 BLOCK_SCHEMA };
	uint8_t *zeros = xcalloc(1, BLOCK_PLAIN_MAX);
	struct check_result c;
	struct err err = { "" };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(types); i++) {
		forge_release(&forge);
		forge_init(&forge);
		forge_block(&forge, (uint8_t)types[i], 1, zeros, BLOCK_PLAIN_MAX, 1);
		forge_close(&forge);
		forge_save(&forge, path());
		(void)read_file(0, &err); /* zeros are a schema without lines, not wrong as such */
		if (!trace_check(path(), NULL, &c, &err) && types[i] != BLOCK_SCHEMA)
			assert_false(check_ok(&c));
	}
	free(zeros);
}

static void test_too_many_events_claimed(void **state)
{
	(void)state;
	put_event(SC_close);
	put_events(0, 2);
	forge_close(&forge);
	assert_refused(-EBADMSG, "malformed event");
	forge_release(&forge);
	forge_init_with_schema(&forge);
	put_events(0, UINT32_MAX);
	forge_close(&forge);
	assert_refused(-EBADMSG, "malformed event block");
}

/* Events that nobody would read are as good as lost. */
static void test_too_few_events_claimed(void **state)
{
	(void)state;
	put_event(SC_close);
	put_event(SC_close);
	put_events(0, 1);
	forge_close(&forge);
	assert_refused(-EBADMSG, "more than it says");
}

static void test_events_of_no_row(void **state)
{
	static const uint64_t ids[] = { 0, 9, ROW_ID_MAX - 1, ROW_ID_MAX, UINT32_MAX };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(ids); i++) {
		forge_release(&forge);
		forge_init_with_schema(&forge);
		buf_clear(&events);
		put_event(ids[i]);
		put_events(0, 1);
		forge_close(&forge);
		assert_refused(-EBADMSG, "malformed event");
	}
}

/* The index. */

/* With an index block whose payload starts with these two numbers, and a footer that names it. */
static void close_with_index(uint64_t prev, uint64_t nr_entries, uint64_t index_offset)
{
	struct footer f = { .nr_blocks = forge.counts.nr_blocks };
	uint8_t payload[FOOTER_PAYLOAD_BYTES];
	uint8_t index[INDEX_PREFIX_BYTES];

	put_le64(index, prev);
	put_le64(index + 8, nr_entries);
	f.index_offset = index_offset ? index_offset : forge.file.len;
	forge_block(&forge, BLOCK_INDEX, 0, index, sizeof(index), 0);
	f.own_offset = forge.file.len;
	footer_put(payload, &f);
	forge_block(&forge, BLOCK_FOOTER, 0, payload, sizeof(payload), 0);
}

/* The blocks are all good, so the file reads as one that has no index; a check finds it out. */
static void assert_index_useless(void)
{
	struct check_result c;
	struct err err = { "" };

	forge_save(&forge, path());
	assert_int_equal(read_file(0, &err), 1);
	assert_int_equal(trace_check(path(), NULL, &c, &err), 0);
	assert_false(c.closed);
	assert_false(check_ok(&c));
	assert_words(&c.first_fault, "");
}

static void test_index_chain(void **state)
{
	const uint64_t targets[] = { forge.file.len, forge.file.len + 1, UINT64_MAX, 1, 60 };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(targets); i++) {
		forge_release(&forge);
		forge_init_with_schema(&forge);
		close_with_index(targets[i], 0, 0); /* itself, forward, nowhere, another block */
		assert_index_useless();
	}
	for (i = 0; i < ARRAY_LEN(targets); i++) {
		forge_release(&forge);
		forge_init_with_schema(&forge);
		close_with_index(0, UINT64_MAX >> i, targets[i]);
		assert_index_useless();
	}
}

/* Two index blocks that name each other. */
static void test_index_circle(void **state)
{
	uint64_t first = forge.file.len;
	uint8_t index[INDEX_PREFIX_BYTES] = { 0 };

	(void)state;
	put_le64(index, first + BLOCK_HEADER_BYTES + INDEX_PREFIX_BYTES);
	forge_block(&forge, BLOCK_INDEX, 0, index, sizeof(index), 0);
	forge.entries.len--;
	close_with_index(first, 0, 0);
	assert_index_useless();
}

static void test_index_entries(void **state)
{
	static const struct block_entry lies[] = {
		{ .type = BLOCK_META, .offset = UINT64_MAX },
		{ .type = BLOCK_META, .offset = 0, .stored_bytes = UINT32_MAX },
		{ .type = BLOCK_META, .offset = 1 },
		{ .type = BLOCK_EVENTS, .offset = 0 },
	};
	unsigned int i, behind;

	(void)state;
	for (i = 0; i < 2 * ARRAY_LEN(lies); i++) {
		struct block_entry lie = lies[i / 2];

		behind = i % 2; /* the last entry, or the first */
		forge_release(&forge);
		forge_init_with_schema(&forge);
		put_event(SC_close);
		put_events(0, 1);
		if (behind) {
			VEC_PUSH(&forge.entries, lie);
		} else {
			forge.entries.items[0] = lie;
		}
		forge_close(&forge);
		buf_clear(&events);
		forge_save(&forge, path());
		if (!behind && lie.type == BLOCK_EVENTS)
			assert_refused(-EBADMSG, "malformed event block");
		else if (!behind && lie.offset == 1)
			assert_refused(-EBADMSG, "damaged block header");
		else
			assert_index_useless();
	}
}

/* The index gives an event block to another thread, or at another time. */
static void test_index_contradicts_block(void **state)
{
	struct check_result c;
	struct err err = { "" };

	(void)state;
	put_event(SC_close);
	put_events(0, 1);
	forge.entries.items[2].number = 7;
	forge_close(&forge);
	assert_refused(-EBADMSG, "malformed event block");
	forge_release(&forge);
	forge_init_with_schema(&forge);
	put_events(0, 1);
	forge.entries.items[2].tid = 7;
	forge_close(&forge);
	forge_save(&forge, path());
	assert_int_equal(trace_check(path(), NULL, &c, &err), 0);
	assert_false(c.closed);
	assert_words(&c.first_fault, "index");
}

/* Index blocks that are almost nothing when packed and list millions of blocks. */
static void test_packed_index(void **state)
{
	uint64_t nr = (BLOCK_PLAIN_MAX - INDEX_PREFIX_BYTES) / INDEX_ENTRY_BYTES;
	size_t len = INDEX_PREFIX_BYTES + nr * INDEX_ENTRY_BYTES;
	uint8_t *index = xcalloc(1, len);
	uint64_t prev = 0, at;
	unsigned int i;

	(void)state;
	put_le64(index + 8, nr);
	for (i = 0; i < 50; i++) {
		put_le64(index, prev);
		prev = at = forge.file.len;
		forge_block(&forge, BLOCK_INDEX, 0, index, len, 1);
		forge.entries.len--;
	}
	forge.counts.nr_blocks = 50 * nr;
	close_with_index(at, 0, 0);
	assert_index_useless();
	free(index);
}

/* Many threads that are all alive, each with a block of 16 MiB that is packed to nothing. */
static void put_many_streams(unsigned int nr)
{
	const struct events_prefix prefix = {
		.pid = 1, .tid = 1, .nr_events = 1, .last_ns = UINT64_MAX
	};
	size_t zeros = BLOCK_PLAIN_MAX - 200;
	uint8_t *payload = xcalloc(1, BLOCK_PLAIN_MAX);
	struct buf body = { 0 };
	struct block_entry e = { .type = BLOCK_EVENTS, .pid = 1, .tid = 1, .nr_events = 1 };
	struct block_header h;
	uint64_t first;
	unsigned int i;

	forge_put_head(&body, SC_write, 0);
	forge_put_i(&body, 1);
	forge_put_u(&body, 2); /* data in the event itself */
	forge_put_u(&body, zeros);
	buf_put(&body, payload, zeros);
	forge_put_u(&body, zeros);
	forge_put_body(&events, &body);
	events_prefix_put(payload, &prefix);
	memcpy(payload + EVENTS_PREFIX_BYTES, events.data, events.len);
	first = forge.file.len;
	forge_block(&forge, BLOCK_EVENTS, 0, payload, EVENTS_PREFIX_BYTES + events.len, 1);
	forge.entries.len--;
	buf_release(&body);
	assert_int_equal(block_header_get(forge.file.data + first, &h), 0);
	e.stored_bytes = h.stored_bytes;
	e.last_ns = UINT64_MAX;
	for (i = 0; i < nr; i++) {
		size_t len = BLOCK_HEADER_BYTES + h.stored_bytes;

		e.number = h.number = i;
		if (i) {
			e.offset = forge.file.len;
			(void)buf_reserve(&forge.file, len); /* which may move the source */
			buf_put(&forge.file, forge.file.data + first, len);
			block_header_put(forge.file.data + e.offset, &h);
		} else {
			e.offset = first;
		}
		VEC_PUSH(&forge.entries, e);
	}
	free(payload);
}

static void test_many_large_streams(void **state)
{
	struct err err = { "" };

	(void)state;
	put_many_streams(100000);
	forge_close(&forge);
	forge_save(&forge, path());
	assert_int_equal(read_file(0, &err), -E2BIG);
	assert_words(&err, "too many threads");
}

static void test_large_streams_without_index(void **state)
{
	struct err err = { "" };

	(void)state;
	put_many_streams(70);
	forge_save(&forge, path());
	assert_int_equal(read_file(0, &err), -E2BIG);
	assert_words(&err, "too many threads");
}

/* Every header promises the rest of the file: a scan must not read it all again for each. */
static void test_nested_promises(void **state)
{
	struct block_header h = { .type = BLOCK_META, .version = 1 };
	size_t nr = (4 << 20) / BLOCK_HEADER_BYTES, i;
	struct err err = { "" };

	(void)state;
	for (i = 0; i < nr; i++) {
		h.stored_bytes = h.plain_bytes = (uint32_t)((nr - i - 1) * BLOCK_HEADER_BYTES);
		block_header_put(buf_reserve(&forge.file, BLOCK_HEADER_BYTES), &h);
		forge.file.len += BLOCK_HEADER_BYTES;
	}
	forge_save(&forge, path());
	assert_int_equal(read_file(0, &err), -EBADMSG);
	(void)read_file(TRACE_SALVAGE, &err); /* finds nothing, but finds that soon */
	assert_true(clock_monotonic_ns() - start_ns < 20 * NS_PER_S);
}

/* As many structs and arguments as a schema may have, each of the last struct. */
static void test_large_schema(void **state)
{
	struct buf text = { 0 };
	struct err err = { "" };
	unsigned int i, n;

	(void)state;
	for (i = 0; i < 4096; i++) {
		buf_printf(&text, "struct z%u", i);
		for (n = 0; i && n < STRUCT_FIELDS_MAX; n++)
			buf_printf(&text, " s(z%u):a:X", i - 1);
		buf_putc(&text, '\n');
	}
	for (i = 1; i < ROW_ID_MAX; i++) {
		buf_printf(&text, "call %u z", i);
		for (n = 0; n < ROW_ARGS_MAX; n++)
			buf_puts(&text, " l(z4095):a:X");
		buf_putc(&text, '\n');
	}
	forge_release(&forge);
	forge_init(&forge);
	forge_block(&forge, BLOCK_SCHEMA, 0, text.data, text.len, 1);
	forge_close(&forge);
	forge_save(&forge, path());
	assert_int_equal(read_file(0, &err), 0);
	assert_true(clock_monotonic_ns() - start_ns < 10 * NS_PER_S);
	buf_release(&text);
}

/* Structs within structs, deeper than we go: refused, and not by running out of stack. */
static void test_deep_structs(void **state)
{
	struct buf text = { 0 }, body = { 0 };
	unsigned int i;

	(void)state;
	buf_puts(&text, "struct z0 u:a:X\n");
	for (i = 1; i < 4000; i++)
		buf_printf(&text, "struct z%u s(z%u):a:X\n", i, i - 1);
	buf_puts(&text, "call 4000 deep s(z3999):a:X\n");
	forge_release(&forge);
	forge_init(&forge);
	forge_block(&forge, BLOCK_SCHEMA, 0, text.data, text.len, 1);
	forge_put_head(&body, 4000, 0);
	for (i = 0; i < 4000; i++) {
		forge_put_u(&body, 3);
		forge_put_u(&body, 1);
	}
	forge_put_u(&body, 1);
	forge_put_body(&events, &body);
	put_events(0, 1);
	forge_close(&forge);
	assert_refused(-EBADMSG, "malformed arguments");
	buf_release(&text);
	buf_release(&body);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_foreign_files),
		TEST(test_magic_alone),
		TEST(test_other_first_block),
		TEST(test_huge_lengths),
		TEST(test_long_payload),
		TEST(test_wrong_plain_length),
		TEST(test_packed_zeros),
		TEST(test_too_many_events_claimed),
		TEST(test_too_few_events_claimed),
		TEST(test_events_of_no_row),
		TEST(test_index_chain),
		TEST(test_index_circle),
		TEST(test_index_entries),
		TEST(test_index_contradicts_block),
		TEST(test_packed_index),
		TEST(test_nested_promises),
		TEST(test_large_schema),
		TEST(test_deep_structs),
		TEST(test_large_streams_without_index),
		TEST(test_many_large_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
