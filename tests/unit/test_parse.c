/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/parse.h"
#include "model/print.h"
#include "model/words.h"
#include "random_event.h"

#define ROUNDS 60

static struct parser *parser;
static struct arena arena, parsed;
static struct buf text, again;
static struct line line;
static struct err err;
static char *copy; /* of the line that was parsed last */

static int setup(void **state)
{
	(void)state;
	parser = parser_new();
	arena_init(&arena);
	arena_init(&parsed);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	parser_free(parser);
	arena_release(&arena);
	arena_release(&parsed);
	buf_release(&text);
	buf_release(&again);
	free(copy);
	copy = NULL;
	return 0;
}

/* The text is moved to memory of exactly its size, for a sanitizer to watch. */
static int parse(const void *p, size_t len)
{
	free(copy);
	copy = malloc(len ? len : 1);
	assert_non_null(copy);
	memcpy(copy, p, len);
	arena_reset(&parsed);
	err.text[0] = 0;
	return parse_line(parser, copy, len, &parsed, &line, &err);
}

static int parse_text(const char *s)
{
	return parse(s, strlen(s));
}

static void parse_printed(void)
{
	if (parse(text.data, text.len) < 0)
		fail_msg("%s in: %s", err.text, buf_str(&text));
}

static void assert_same_text(void)
{
	assert_string_equal(buf_str(&again), buf_str(&text));
	buf_clear(&again);
	buf_clear(&text);
}

static void assert_same_args(const struct row *row, const struct value *a, const struct value *b)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (!value_equal(&a[i], &b[i]))
			fail_msg("%s of %s", row->args[i].name, buf_str(&text));
	}
}

static void round_trip_event(struct random *r, const struct row *row)
{
	struct event ev = { .pid = (uint32_t)random_number(r), .tid = (uint32_t)random_number(r) };
	uint32_t generation = (uint32_t)random_below(r, 3);

	random_event(r, row, &ev);
	ev.seq = random_number(r);
	ev.enter_ns = random_number(r);
	ev.exit_ns = random_number(r);
	print_event_line(&text, &ev, generation);
	parse_printed();
	assert_int_equal(line.type, LINE_EVENT);
	assert_true(line.has_thread && line.has_seq && line.has_time);
	assert_ptr_equal(line.event.row, row);
	assert_int_equal(line.thread.generation, generation);
	assert_same_args(row, ev.args, line.event.args);
	/* All that the arguments are not. */
	memcpy(line.event.args, ev.args, sizeof(ev.args));
	assert_memory_equal(&line.event.outcome.ret, &ev.outcome.ret, sizeof(ev.outcome.ret));
	assert_int_equal(line.event.outcome.err, ev.outcome.err);
	assert_int_equal(line.event.flags, ev.flags);
	assert_true(line.event.exit_ns == ev.exit_ns && line.event.enter_ns == ev.enter_ns);
	parse_printed();
	print_event_line(&again, &line.event, line.thread.generation);
	assert_same_text();
}

static void round_trip_item(struct random *r, const struct row *row)
{
	struct item item = { .row = row };

	random_args(r, row, item.args);
	print_item_line(&text, &item);
	parse_printed();
	assert_int_equal(line.type, LINE_ITEM);
	assert_ptr_equal(line.item.row, row);
	assert_same_args(row, item.args, line.item.args);
	print_item_line(&again, &line.item);
	assert_same_text();
}

/* Of rows with one name the text can mean only one; records stand apart. */
static bool has_own_name(const struct row *row)
{
	unsigned int id;

	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *other = row_by_id(id);

		if (other && other != row && !strcmp(other->name, row->name) &&
		    (other->sort == ROW_RECORD) == (row->sort == ROW_RECORD))
			return false;
	}
	return true;
}

static void test_names(void **state)
{
	unsigned int id;

	(void)state;
	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		if (row && !has_own_name(row))
			fail_msg("two rows are called %s", row->name);
	}
}

static void test_every_row(void **state)
{
	struct random r = { .state = 88172645463325252u, .arena = &arena };
	unsigned int id, round;

	(void)state;
	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		if (!row || !has_own_name(row))
			continue;
		for (round = 0; round < ROUNDS; round++) {
			arena_reset(&arena);
			if (row->sort == ROW_RECORD)
				round_trip_item(&r, row);
			else
				round_trip_event(&r, row);
		}
	}
}

static void round_trip_value(const struct arg *a, struct value v)
{
	struct value ret;

	print_value(&text, a, &v, &print_exact);
	if (parse_value(parser, a, buf_str(&text), text.len, &arena, &ret, &err) < 0)
		fail_msg("%s in: %s", err.text, buf_str(&text));
	if (!value_equal(&v, &ret))
		fail_msg("%s", buf_str(&text));
	print_value(&again, a, &ret, &print_exact);
	assert_same_text();
}

static void test_every_vocabulary(void **state)
{
	unsigned int set;
	size_t i, j;

	(void)state;
	for (set = 0; set < SET_MAX; set++) {
		const struct set_desc *d = &set_descs[set];
		struct arg flags = { .name = "x", .kind = KIND_FLAGS, .set = (uint16_t)set };
		struct arg number = { .name = "x", .kind = KIND_ENUM, .set = (uint16_t)set };

		for (i = 0; i < d->nr_entries; i++) {
			arena_reset(&arena);
			round_trip_value(&number, value_uint(d->entries[i].value));
			for (j = i; j < d->nr_entries; j++)
				round_trip_value(&flags, value_uint(d->entries[i].value |
								    d->entries[j].value));
		}
	}
}

static void test_every_bit(void **state)
{
	static const uint8_t kinds[] = { KIND_FLAGS,   KIND_MODE, KIND_DEV, KIND_UID, KIND_HEX,
					 KIND_SIGMASK, KIND_ENUM, KIND_FD,  KIND_PID, KIND_ERRNO,
					 KIND_SIGNO,   KIND_LONG, KIND_ADDR };
	unsigned int i, bit;

	(void)state;
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		struct arg a = { .name = "x", .kind = kinds[i], .set = SET_open_flags };

		for (bit = 0; bit < 64; bit++) {
			round_trip_value(&a, value_uint(UINT64_C(1) << bit));
			round_trip_value(&a, value_uint(~(UINT64_C(1) << bit)));
		}
		round_trip_value(&a, value_uint(0));
		round_trip_value(&a, value_uint(UINT64_MAX));
	}
}

static void test_every_byte(void **state)
{
	static const struct arg a = BUF_IN(x, LEN_NONE);
	uint8_t bytes[256];
	unsigned int i;

	(void)state;
	for (i = 0; i < 256; i++) {
		bytes[i] = (uint8_t)i;
		round_trip_value(&a, value_bytes(&arena, &bytes[i], 1));
	}
	round_trip_value(&a, value_bytes(&arena, bytes, sizeof(bytes)));
	round_trip_value(&a, value_bytes(&arena, bytes, 0));
}

static void test_blobs_and_streams(void **state)
{
	uint8_t bytes[256];
	unsigned int i;

	(void)state;
	for (i = 0; i < 256; i++)
		bytes[i] = (uint8_t)i;
	print_blob_line(&text, hash_bytes(bytes, 256), bytes, 256);
	parse_printed();
	assert_int_equal(line.type, LINE_BLOB);
	assert_int_equal(line.blob.len, 256);
	assert_memory_equal(line.blob.bytes, bytes, 256);
	assert_true(hash_equal(line.blob.hash, hash_bytes(bytes, 256)));
	buf_clear(&text);
	print_stream_line(&text, 1, UINT32_MAX, 3, UINT64_MAX);
	parse_printed();
	assert_int_equal(line.type, LINE_STREAM);
	assert_true(line.thread.pid == 1 && line.thread.tid == UINT32_MAX);
	assert_true(line.thread.generation == 3 && line.nr_events == UINT64_MAX);
}

static void test_written_by_hand(void **state)
{
	(void)state;
	assert_int_equal(parse_text(""), 0);
	assert_int_equal(line.type, LINE_EMPTY);
	assert_int_equal(parse_text("  # 5/5 read() = 0\r"), 0);
	assert_int_equal(line.type, LINE_EMPTY);

	assert_int_equal(parse_text("read ( count = 0x10 ,fd=3 ) = 5\r"), 0);
	assert_false(line.has_thread || line.has_seq || line.has_time);
	assert_int_equal(line.event.args[0].i, 3);
	assert_int_equal(line.event.args[1].type, VALUE_NONE);
	assert_int_equal(line.event.args[2].u, 16);
	assert_int_equal(line.event.outcome.ret, 5);

	assert_int_equal(parse_text("12 read() = -1 ENOENT"), 0);
	assert_true(line.has_thread && !line.has_seq && !line.has_time);
	assert_true(line.thread.pid == 12 && line.thread.tid == 12);
	assert_int_equal(line.event.outcome.err, 2);

	assert_int_equal(parse_text("12/13 50+7 read(fd=?, buf=\"\xc3\xa4\") = ?"), 0);
	assert_true(line.has_time && line.event.enter_ns == 50 && line.event.exit_ns == 57);
	assert_int_equal(line.event.args[0].type, VALUE_NONE);
	assert_int_equal(line.event.args[1].data->len_bytes, 2);
	assert_int_equal(line.event.flags, EVENT_UNFINISHED);

	assert_int_equal(parse_text("50+7 marker(text=NULL) {cpu=5}"), 0);
	assert_true(line.has_time && !line.has_thread && line.event.cpu_ns == 5);
	assert_int_equal(line.event.args[0].type, VALUE_NULL);
	assert_int_equal(parse_text("1 #9 marker()"), 0);
	assert_true(line.has_seq && line.event.seq == 9);
}

static void test_numbers_for_names(void **state)
{
	static const struct {
		uint8_t kind;
		const char *text;
		uint64_t wanted;
	} cases[] = {
		{ KIND_FLAGS, "O_RDWR|0x1000000", 0x1000002 },
		{ KIND_FLAGS, "2", 2 },
		{ KIND_DIRFD, "-100", (uint64_t)-100 },
		{ KIND_DIRFD, "AT_FDCWD", (uint64_t)-100 },
		{ KIND_MODE, "33188", 0100644 },
		{ KIND_MODE, "0644|S_IFREG", 0100644 },
		{ KIND_DEV, "makedev(0x8, 0x1)", 0x801 },
		{ KIND_DEV, "2049", 0x801 },
		{ KIND_SIGMASK, "[SIGINT, 17]", 0x10002 },
		{ KIND_SIGMASK, "0x10002", 0x10002 },
		{ KIND_ERRNO, "2", 2 },
		{ KIND_SIGNO, "2", 2 },
		{ KIND_UID, "-1", UINT32_MAX },
		{ KIND_ADDR, "NULL", 0 },
		{ KIND_LONG, "-0", 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct arg a = { .name = "x", .kind = cases[i].kind, .set = SET_open_flags };
		struct value v = { 0 };

		if (parse_value(parser, &a, cases[i].text, strlen(cases[i].text), &arena, &v, &err))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_int_equal(v.type, VALUE_INT);
		assert_true(v.u == cases[i].wanted);
	}
}

static void test_bad_lines(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{ "nosuchcall() = 0", "column 1: unknown call 'nosuchcall'" },
		{ "read(fd=3", "column 10: expected ',' or ')', found the end of the line" },
		{ "read(fd=3) 5", "column 12: expected '=' and the outcome, found '5'" },
		{ "read(fd=3)",
		  "column 11: expected '=' and the outcome, found the end of the line" },
		{ "read(fd=3) = ", "column 14: expected a value, found the end of the line" },
		{ "read(fd=3) = 5 EFOO", "column 16: unknown error 'EFOO'" },
		{ "read(fd=3) = 0 {x=1}", "column 17: unknown detail 'x'" },
		{ "read(fd=3) = 0 {cpu=1",
		  "column 22: expected ',' or '}', found the end of the line" },
		{ "read(fd=3) = 0 {flags=0x10000}", "column 23: number out of range" },
		{ "read(fd=3) = 0 x", "column 16: unknown error 'x'" },
		{ "read(fd=3) = 0 {cpu=1} x",
		  "column 24: expected the end of the line, found 'x'" },
		{ "read(df=3) = 0", "column 6: unknown argument 'df'" },
		{ "read(fd=3, fd=3) = 0", "column 12: argument 'fd' given twice" },
		{ "read(fd 3) = 0", "column 9: expected '=', found '3'" },
		{ "read(fd=3 4) = 0", "column 11: expected ',' or ')', found '4'" },
		{ "read(fd=3,) = 0", "column 11: expected argument, found ')'" },
		{ "read(fd=O_X) = 0", "column 9: unknown descriptor 'O_X'" },
		{ "read(count=x) = 0", "column 12: expected a number, found 'x'" },
		{ "read(count=-1) = 0", "column 12: number out of range" },
		{ "read(count=18446744073709551616) = 0",
		  "column 12: malformed number, or beyond 64 bits" },
		{ "read(count=08) = 0", "column 12: malformed number, or beyond 64 bits" },
		{ "read(count=0x) = 0", "column 12: malformed number, or beyond 64 bits" },
		{ "read(fd=9223372036854775808) = 0", "column 9: number out of range" },
		{ "read(fd=-9223372036854775809) = 0", "column 9: number out of range" },
		{ "read(buf=\"abc) = 0", "column 10: string without an end" },
		{ "read(buf=\"abc\\\") = 0", "column 10: string without an end" },
		{ "read(buf=\"\\q\") = 0", "column 11: unknown escape" },
		{ "read(buf=\"\\x4\") = 0", "column 11: unknown escape" },
		{ "read(buf=\"abc\"/2) = 0", "column 16: length is less than what is there" },
		{ "read(buf=abc) = 0", "column 10: expected a string, found 'a'" },
		{ "read(buf=@12/5) = 0", "column 11: expected a hash of 32 hex digits" },
		{ "read(buf=@00000000000000010000000000000002) = 0",
		  "column 43: expected '/' and a length, found ')'" },
		{ "read(buf=@00000000000000010000000000000002/1048577) = 0",
		  "column 44: length does not fit 1 pieces" },
		{ "read(buf=%00000000000000010000000000000002/0) = 0",
		  "column 44: length does not fit 1 pieces" },
		{ "read(buf=@00000000000000010000000000000002/5/6) = 0",
		  "column 46: more is kept than there was" },
		{ "4294967296 read() = 0", "column 1: number out of range" },
		{ "1/4294967296 read() = 0", "column 3: number out of range" },
		{ "1/1 #x read() = 0", "column 6: expected a number, found 'x'" },
		{ "1/1 5 read() = 0", "column 6: expected '+' and a duration, found ' '" },
		{ "1/1 5+ read() = 0", "column 7: expected a number, found ' '" },
		{ "1/1 5+18446744073709551615 read() = 0", "column 6: number out of range" },
		{ "1/1 meta(key=\"a\")", "column 5: unknown call 'meta'" },
		{ "meta(key=\"a\") = 0", "column 15: expected the end of the line, found '='" },
		{ "meta(key=\x01)", "column 10: expected a string, found byte 0x01" },
		{ "blob 12 \"a\"", "column 6: expected a hash of 32 hex digits" },
		{ "blob 00000000000000010000000000000002 \"\"",
		  "column 39: a blob has 1 to 1048576 bytes" },
		{ "blob 00000000000000010000000000000002 a",
		  "column 39: expected a string, found 'a'" },
		{ "stream 1/2", "column 11: expected a number, found the end of the line" },
		{ "(", "column 1: expected the name of a call, found '('" },
		{ "\xff", "column 1: expected the name of a call, found byte 0xff" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		if (parse_text(cases[i].text) != -EBADMSG)
			fail_msg("understood: %s", cases[i].text);
		assert_string_equal(err.text, cases[i].wanted);
	}
}

static void test_bad_values(void **state)
{
	static const struct arg st = STRUCT_IN(x, timespec), fds = VEC_IN(x, FD, 4, LEN_NONE);
	static const struct arg flags = FLAGS(x, open_flags), dev = DEV(x);
	static const struct arg mask = { .name = "x", .kind = KIND_SIGMASK };
	static const struct {
		const struct arg *a;
		const char *text, *wanted;
	} cases[] = {
		{ &st, "{tv_sec=1", "column 10: expected ',' or '}', found the end of the line" },
		{ &st, "{tv_sec=1, tv_sec=2}", "column 12: field 'tv_sec' given twice" },
		{ &st, "{x=1}", "column 2: unknown field 'x'" },
		{ &st, "{tv_sec=?}", "column 9: expected a value, found '?'" },
		{ &st, "5", "column 1: expected '{', found '5'" },
		{ &fds, "[1, 2", "column 6: expected ',' or ']', found the end of the line" },
		{ &fds, "[1 2]", "column 4: expected ',' or ']', found '2'" },
		{ &fds, "[,]", "column 2: expected a value, found ','" },
		{ &flags, "O_RDWR|O_FOO", "column 8: unknown flag 'O_FOO'" },
		{ &flags, "O_RDWR|", "column 8: expected a value, found the end of the line" },
		{ &flags, "-1", "column 1: number out of range" },
		{ &dev, "4294967296:1", "column 12: major number out of range" },
		{ &dev, "1:4294967296", "column 3: number out of range" },
		{ &mask, "[65]", "column 2: number out of range" },
		{ &mask, "[0]", "column 2: number out of range" },
		{ &mask, "[FOO]", "column 2: unknown signal 'FOO'" },
	};
	struct value v;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		const char *s = cases[i].text;

		if (parse_value(parser, cases[i].a, s, strlen(s), &arena, &v, &err) != -EBADMSG)
			fail_msg("understood: %s", s);
		assert_string_equal(err.text, cases[i].wanted);
	}
}

/* Long inputs that a careless parser would take forever for, or recurse on. */
static void test_hostile_lines(void **state)
{
	const size_t len = 1 << 20;
	static const char *const fronts[] = { "read(buf=@", "read(buf=\"", "read(", "marker(text=[",
					      "meta(key=?, value={" };
	static const char fill[] = "[{(+|\"\\@a0";
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_LEN(fronts); i++) {
		for (j = 0; fill[j]; j++) {
			buf_clear(&text);
			buf_puts(&text, fronts[i]);
			memset(buf_reserve(&text, len), fill[j], len);
			text.len += len;
			assert_int_equal(parse(text.data, text.len), -EBADMSG);
		}
	}
	buf_clear(&text);
}

/* Every beginning of a good line, and every single-byte change of it, is survived. */
static void test_damaged_lines(void **state)
{
	static const char good[] =
		"7/8@1 #5 100+3 read(fd=3, buf=@00000000000000010000000000000002/100, count=100) = "
		"100 {flags=RESTARTED, cpu=5}";
	char changed[sizeof(good)];
	size_t i, c;

	(void)state;
	assert_int_equal(parse_text(good), 0);
	for (i = 0; i < sizeof(good) - 1; i++) {
		(void)!parse(good, i);
		for (c = 0; c < 256; c++) {
			memcpy(changed, good, sizeof(good));
			changed[i] = (char)c;
			(void)!parse(changed, sizeof(good) - 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_every_row, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_vocabulary, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_bit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(test_blobs_and_streams, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written_by_hand, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_for_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged_lines, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
