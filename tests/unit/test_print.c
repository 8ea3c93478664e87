/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "model/print.h"
#include "model/words.h"

static struct arena arena;
static struct buf text;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	buf_release(&text);
	return 0;
}

static void expect_text(const char *wanted)
{
	assert_string_equal(buf_str(&text), wanted);
	buf_clear(&text);
}

static void expect_both(const struct arg *a, struct value v, const char *human, const char *exact)
{
	print_value(&text, a, &v, &print_human);
	expect_text(human);
	print_value(&text, a, &v, &print_exact);
	expect_text(exact);
}

static void test_numbers(void **state)
{
	static const struct arg i = LONG(x), u = ULONG(x), h = HEX(x), addr = ADDR(x), uid = UID(x);

	(void)state;
	expect_both(&i, value_int(0), "0", "0");
	expect_both(&i, value_int(INT64_MIN), "-9223372036854775808", "-9223372036854775808");
	expect_both(&u, value_uint(UINT64_MAX), "18446744073709551615", "18446744073709551615");
	expect_both(&h, value_uint(0), "0", "0");
	expect_both(&h, value_uint(UINT64_MAX), "0xffffffffffffffff", "0xffffffffffffffff");
	expect_both(&h, value_uint(0x10), "0x10", "0x10");
	expect_both(&addr, value_uint(0), "NULL", "0");
	expect_both(&addr, value_uint(0x7f0000001000), "0x7f0000001000", "0x7f0000001000");
	expect_both(&uid, value_uint(UINT32_MAX), "-1", "-1");
	expect_both(&uid, value_uint(1000), "1000", "1000");
	expect_both(&uid, value_uint(UINT64_MAX), "18446744073709551615", "18446744073709551615");
}

static void test_named_numbers(void **state)
{
	static const struct arg mode = MODE(x), dev = DEV(x), dirfd = DIRFD(x), fd = FD(x);
	static const struct arg err = ERRNO(x), sig = SIGNO(x);

	(void)state;
	expect_both(&mode, value_uint(0), "0", "0");
	expect_both(&mode, value_uint(0644), "0644", "0644");
	expect_both(&mode, value_uint(0100644), "S_IFREG|0644", "S_IFREG|0644");
	expect_both(&mode, value_uint(0041777), "S_IFDIR|01777", "S_IFDIR|01777");
	expect_both(&mode, value_uint(0100000), "S_IFREG|0", "S_IFREG|0");
	expect_both(&mode, value_uint(01100644), "01100644", "01100644");
	expect_both(&dev, value_uint(0x801), "makedev(0x8, 0x1)", "8:1");
	expect_both(&dev, value_uint(UINT64_MAX), "makedev(0xffffffff, 0xffffffff)",
		    "4294967295:4294967295");
	expect_both(&dirfd, value_int(-100), "AT_FDCWD", "AT_FDCWD");
	expect_both(&fd, value_int(-100), "-100", "-100");
	expect_both(&err, value_int(2), "ENOENT", "ENOENT");
	expect_both(&err, value_int(100000), "100000", "100000");
	expect_both(&sig, value_int(2), "SIGINT", "SIGINT");
	expect_both(&sig, value_int(0), "0", "0");
}

static void test_sigmask(void **state)
{
	static const struct arg a = PTR_IN(x, SIGMASK, 8);
	struct value list = value_list(&arena, 1);

	(void)state;
	list.items[0] = value_uint(1 << 1 | 1 << 16);
	expect_both(&a, list, "[INT CHLD]", "[[INT CHLD]]");
	list.items[0] = value_uint(0);
	expect_both(&a, list, "[]", "[[]]");
	list.items[0] = value_uint(~(UINT64_C(1) << 8));
	expect_both(&a, list, "~[KILL]", "[~[KILL]]");
	list.items[0] = value_uint(UINT64_MAX);
	expect_both(&a, list, "~[]", "[~[]]");
}

static void test_strings(void **state)
{
	static const struct arg str = STR(x), path = PATH(x), hash = HASH(x);
	static const char longer[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
	struct value v = value_bytes(&arena, "a\n\t\r\\\"\0\xff~ ", 10);

	(void)state;
	expect_both(&str, v, "\"a\\n\\t\\r\\\\\\\"\\x00\\xff~ \"",
		    "\"a\\n\\t\\r\\\\\\\"\\x00\\xff~ \"");
	expect_both(&str, value_str(&arena, ""), "\"\"", "\"\"");
	expect_both(&str, value_str(&arena, longer), "\"abcdefghijklmnopqrstuvwxyzabcdef\"...",
		    "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\"");
	expect_both(&path, value_str(&arena, longer),
		    "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\"",
		    "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\"");
	v = value_bytes(&arena, "abc", 3);
	v.data->len_bytes = 1000;
	expect_both(&str, v, "\"abc\"...", "\"abc\"/1000");
	expect_both(&hash, value_bytes(&arena, "\x01\x23\x45\x67\x89\xab\xcd\xef@@@@@@@@", 16),
		    "0123456789abcdef4040404040404040", "0123456789abcdef4040404040404040");
	expect_both(&str, (struct value){ .type = VALUE_NULL }, "NULL", "NULL");
	expect_both(&str, value_addr(0x1000), "0x1000", "&0x1000");
	expect_both(&str, (struct value){ .type = VALUE_NONE }, "?", "?");
}

static void test_data_by_reference(void **state)
{
	static const struct arg a = BUF_IN(x, LEN_NONE);
	struct blob_ref refs[] = { { { 2, 1 }, 7 }, { { 4, 3 }, 8 }, { { 6, 5 }, 0 } };
	struct data d = { .len_bytes = 100, .kept_bytes = 100, .refs = refs };
	struct value v = { .type = VALUE_DATA, .data = &d };

	(void)state;
	expect_both(&a, v, "<100 bytes>", "@00000000000000010000000000000002/100");
	d.len_bytes = 1000;
	expect_both(&a, v, "<1000 bytes>", "@00000000000000010000000000000002/1000/100");
	d.len_bytes = d.kept_bytes = 2 * BLOB_MAX_BYTES + 1;
	expect_both(&a, v, "<2097153 bytes>",
		    "@00000000000000010000000000000002+00000000000000030000000000000004"
		    "+%00000000000000050000000000000006/2097153");
	d.kept_bytes = 0;
	expect_both(&a, v, "<2097153 bytes>", "?/2097153");
}

static size_t load_letters(void *ctx, const struct data *d, size_t max, const uint8_t **ret)
{
	(void)d;
	*ret = ctx;
	return max < 5 ? max : 5;
}

static const char *path_of_3(void *ctx, int fd)
{
	(void)ctx;
	return fd == 3 ? "/a\n/b" : NULL;
}

static void test_hooks(void **state)
{
	static const struct arg buf = BUF_IN(x, LEN_NONE), fd = FD(x);
	char letters[] = "abcde";
	struct print_style style = { .form = PRINT_HUMAN,
				     .string_max = 4,
				     .ctx = letters,
				     .load = load_letters,
				     .fd_path = path_of_3 };
	struct blob_ref ref = { { 2, 1 }, 7 };
	struct data d = { .len_bytes = 100, .kept_bytes = 100, .refs = &ref };
	struct value v = { .type = VALUE_DATA, .data = &d }, three = value_int(3),
		     four = value_int(4);

	(void)state;
	print_value(&text, &buf, &v, &style);
	expect_text("\"abcd\"...");
	print_value(&text, &fd, &three, &style);
	print_value(&text, &fd, &four, &style);
	expect_text("3</a\\n/b>4");
}

static void test_structs(void **state)
{
	static const struct arg a = STRUCT_IN(x, timespec), st = STRUCT_OUT(x, stat);
	struct value v = value_struct(&arena, 3), big;
	unsigned int i;

	(void)state;
	*value_field(&v, 0) = value_int(5);
	*value_field(&v, 1) = value_int(-1);
	expect_both(&a, v, "{tv_sec=5, tv_nsec=-1}", "{tv_sec=5, tv_nsec=-1}");
	v = value_struct(&arena, 2);
	*value_field(&v, 1) = value_int(7);
	expect_both(&a, v, "{tv_nsec=7}", "{tv_nsec=7}");
	expect_both(&a, value_struct(&arena, 0), "{}", "{}");

	big = value_struct(&arena, 0xffff);
	for (i = 0; i < 16; i++)
		*value_field(&big, i) = value_uint(0);
	*value_field(&big, 2) = value_uint(0100644); /* st_mode */
	*value_field(&big, 7) = value_int(10); /* st_size */
	print_value(&text, &st, &big, &print_human);
	expect_text("{st_mode=S_IFREG|0644, st_size=10, ...}");
}

static void test_lists(void **state)
{
	static const struct arg fds = VEC_IN(x, FD, 4, LEN_NONE), strv = STRV(x);
	struct print_style two = print_human;
	struct value v = value_list(&arena, 3);

	(void)state;
	v.items[0] = value_int(0);
	v.items[1] = value_int(1);
	v.items[2] = value_int(2);
	expect_both(&fds, v, "[0, 1, 2]", "[0, 1, 2]");
	two.items_max = 2;
	print_value(&text, &fds, &v, &two);
	expect_text("[0, 1, ...]");
	expect_both(&fds, value_list(&arena, 0), "[]", "[]");
	v.items[0] = value_str(&arena, "ls");
	v.items[1] = (struct value){ .type = VALUE_NONE };
	v.items[2] = (struct value){ .type = VALUE_NULL };
	expect_both(&strv, v, "[\"ls\", ?, NULL]", "[\"ls\", ?, NULL]");
}

/* A call that no table has: what matters is the kinds. */
static const struct arg open_args[] = { DIRFD(dirfd), PATH(path),   FLAGS(flags, open_flags),
					MODE(mode),   HOLE(unused), FOUND_FD(found) };
static const struct row open_row = { .id = 4000,
				     .sort = ROW_CALL,
				     .result = RESULT_NEW_FD,
				     .nr_args = 6,
				     .name = "open_it",
				     .args = open_args };

static struct event open_event(void)
{
	struct event ev = { .row = &open_row, .pid = 10, .tid = 11, .seq = 7, .outcome = { 3, 0 } };

	ev.args[0] = value_int(-100);
	ev.args[1] = value_str(&arena, "/x");
	ev.args[2] = value_uint(0);
	ev.args[5] = value_int(9);
	return ev;
}

static void test_calls(void **state)
{
	struct event ev = open_event();
	struct print_style extras = print_human;

	(void)state;
	extras.extras = true;
	print_call(&text, &ev, &print_human);
	expect_text("open_it(AT_FDCWD, \"/x\", O_RDONLY, ?) = 3");
	print_call(&text, &ev, &extras);
	expect_text("open_it(AT_FDCWD, \"/x\", O_RDONLY, ?) = 3 {found=9}");
	print_call(&text, &ev, &print_exact);
	expect_text("open_it(dirfd=AT_FDCWD, path=\"/x\", flags=O_RDONLY, found=9) = 3");
	ev.outcome = (struct outcome){ -1, 2 };
	print_call(&text, &ev, &print_human);
	expect_text(
		"open_it(AT_FDCWD, \"/x\", O_RDONLY, ?) = -1 ENOENT (No such file or directory)");
	ev.outcome = (struct outcome){ 0, 0 };
	ev.flags = EVENT_UNFINISHED;
	print_call(&text, &ev, &print_human);
	expect_text("open_it(AT_FDCWD, \"/x\", O_RDONLY, ?) = ?");
}

static void test_variant(void **state)
{
	const struct row *row = row_by_name("fcntl_dupfd");
	struct event ev = { .row = row, .outcome = { 4, 0 } };

	(void)state;
	assert_non_null(row);
	ev.args[0] = value_int(3);
	ev.args[2] = value_int(10);
	print_call(&text, &ev, &print_human);
	expect_text("fcntl(3, F_DUPFD, 10) = 4");
	assert_string_equal(print_row_name(row, PRINT_EXACT), "fcntl_dupfd");
}

static void expect_outcome(enum row_result result, int64_t ret, const char *wanted)
{
	struct row row = open_row;
	struct event ev = { .row = &row, .outcome = { ret, 0 } };

	row.result = (uint8_t)result;
	print_outcome(&text, &ev, &print_human);
	expect_text(wanted);
	print_outcome(&text, &ev, &print_exact);
	expect_text(wanted);
}

static void test_outcomes(void **state)
{
	(void)state;
	expect_outcome(RESULT_ZERO, 0, " = 0");
	expect_outcome(RESULT_ADDRESS, 0x7f0000001000, " = 0x7f0000001000");
	expect_outcome(RESULT_ADDRESS, -1, " = -1");
	expect_outcome(RESULT_OPEN_FLAGS, 02, " = O_RDWR");
	expect_outcome(RESULT_MODE, 022, " = 022");
	expect_outcome(RESULT_BYTES_READ, INT64_MAX, " = 9223372036854775807");
}

static void test_event_line(void **state)
{
	struct event ev = open_event();

	(void)state;
	ev.enter_ns = 100;
	ev.exit_ns = 150;
	print_event_line(&text, &ev, 0);
	expect_text(
		"10/11 #7 100+50 open_it(dirfd=AT_FDCWD, path=\"/x\", flags=O_RDONLY, found=9) = 3");
	ev.exit_ns = 95;
	ev.flags = EVENT_RESTARTED | EVENT_NO_TIME | 0x8000;
	ev.cpu_ns = 1;
	ev.held_ns = 2;
	ev.gap_cpu_ns = 6;
	ev.held_before_ns = 7;
	ev.held_inside_ns = 8;
	ev.ppid = 3;
	ev.pgid = 4;
	ev.origin = 5;
	print_event_line(&text, &ev, 2);
	expect_text(
		"10/11@2 #7 100-5 open_it(dirfd=AT_FDCWD, path=\"/x\", flags=O_RDONLY, found=9) = 3"
		" {flags=RESTARTED|NO_TIME|0x8000, cpu=1, held=2, held_before=7, held_inside=8, gap_cpu=6, ppid=3, pgid=4, origin=5}");
}

static void test_other_lines(void **state)
{
	struct item item = { .row = row_by_id(REC_meta) };
	struct event marker = { .row = row_by_id(EV_marker), .pid = 1, .tid = 1, .seq = 1 };

	(void)state;
	item.args[0] = value_str(&arena, "a");
	item.args[1] = value_str(&arena, "b");
	print_item_line(&text, &item);
	expect_text("meta(key=\"a\", value=\"b\")");
	marker.args[0] = value_str(&arena, "here");
	print_event_line(&text, &marker, 0);
	expect_text("1/1 #1 0+0 marker(text=\"here\")");
	marker.flags = EVENT_UNFINISHED;
	print_event_line(&text, &marker, 0);
	expect_text("1/1 #1 0+0 marker(text=\"here\") = ?");
	marker.outcome.ret = 5;
	print_event_line(&text, &marker, 0);
	expect_text("1/1 #1 0+0 marker(text=\"here\") = 5 {flags=UNFINISHED}");
	print_blob_line(&text, (struct hash128){ 2, 1 }, "a\0", 2);
	expect_text("blob 00000000000000010000000000000002 \"a\\x00\"");
	print_stream_line(&text, 5, 6, 0, 7);
	expect_text("stream 5/6 7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sigmask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_data_by_reference, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hooks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_structs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_variant, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outcomes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_event_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_lines, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
