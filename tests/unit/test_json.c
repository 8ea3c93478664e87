/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"

static struct buf text;
static struct json w;

static int setup(void **state)
{
	(void)state;
	json_init_buf(&w, &text, JSON_COMPACT);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	json_release(&w);
	buf_release(&text);
	return 0;
}

static void expect(const char *wanted)
{
	assert_string_equal(buf_str(&text), wanted);
	buf_clear(&text);
}

static void test_scalars(void **state)
{
	(void)state;
	json_u64(&w, UINT64_MAX);
	expect("18446744073709551615\n");
	json_i64(&w, INT64_MIN);
	expect("-9223372036854775808\n");
	json_bool(&w, true);
	json_bool(&w, false);
	json_null(&w);
	expect("true\nfalse\nnull\n");
}

static void test_doubles(void **state)
{
	(void)state;
	json_double(&w, 0.1);
	expect("0.1\n");
	json_double(&w, 1);
	expect("1\n");
	json_double(&w, 1.0 / 3);
	assert_true(strtod(buf_str(&text), NULL) == 1.0 / 3);
	expect("0.3333333333333333\n");
	json_double(&w, 1e300);
	expect("1e+300\n");
	json_double(&w, -2.5);
	expect("-2.5\n");
	json_double(&w, NAN);
	json_double(&w, INFINITY);
	json_double(&w, -INFINITY);
	expect("null\nnull\nnull\n");
}

static void test_nesting_compact(void **state)
{
	(void)state;
	json_object_begin(&w);
	json_kv_u64(&w, "a", 1);
	json_key(&w, "list");
	json_array_begin(&w);
	json_u64(&w, 1);
	json_array_begin(&w);
	json_array_end(&w);
	json_object_begin(&w);
	json_object_end(&w);
	json_array_end(&w);
	json_kv_i64(&w, "b", -1);
	json_kv_bool(&w, "c", true);
	json_kv_double(&w, "d", 0.5);
	json_kv_str(&w, "e", NULL);
	json_object_end(&w);
	expect("{\"a\":1,\"list\":[1,[],{}],\"b\":-1,\"c\":true,\"d\":0.5,\"e\":null}\n");
}

static void test_lines(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		json_object_begin(&w);
		json_kv_i64(&w, "i", i);
		json_object_end(&w);
	}
	expect("{\"i\":0}\n{\"i\":1}\n");
}

static void test_pretty(void **state)
{
	(void)state;
	json_init_buf(&w, &text, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_u64(&w, "a", 1);
	json_key(&w, "empty");
	json_array_begin(&w);
	json_array_end(&w);
	json_key(&w, "list");
	json_array_begin(&w);
	json_u64(&w, 1);
	json_u64(&w, 2);
	json_array_end(&w);
	json_object_end(&w);
	expect("{\n  \"a\": 1,\n  \"empty\": [],\n  \"list\": [\n    1,\n    2\n  ]\n}\n");
}

static void test_deepest(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < JSON_DEPTH_MAX; i++)
		json_array_begin(&w);
	json_u64(&w, 1);
	json_u64(&w, 2);
	for (i = 0; i < JSON_DEPTH_MAX; i++)
		json_array_end(&w);
	assert_int_equal(text.len, 2 * JSON_DEPTH_MAX + strlen("1,2\n"));
	buf_clear(&text);
}

static void expect_str(const char *bytes, size_t len, const char *wanted)
{
	json_str(&w, bytes, len);
	expect(wanted);
}

#define EXPECT_STR(bytes, wanted) expect_str(bytes, sizeof(bytes) - 1, wanted)

static void test_escapes(void **state)
{
	(void)state;
	EXPECT_STR("", "\"\"\n");
	EXPECT_STR("plain / text'\x7f\xc2\x9b", "\"plain / text'\\u007f\\u009b\"\n");
	EXPECT_STR("a\"b\\c", "\"a\\\"b\\\\c\"\n");
	EXPECT_STR("\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\"\n");
	EXPECT_STR("\0\x01\x1f\v", "\"\\u0000\\u0001\\u001f\\u000b\"\n");
	json_str(&w, NULL, 0);
	expect("\"\"\n");
}

#define FFFD "\xef\xbf\xbd"

static void test_utf8_text(void **state)
{
	(void)state;
	EXPECT_STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82",
		   "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\"\n");
	EXPECT_STR("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf",
		   "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"\n");
	EXPECT_STR("a\xff"
		   "b",
		   "\"a" FFFD "b\"\n");
	EXPECT_STR("\xc3", "\"" FFFD "\"\n"); /* cut short */
	EXPECT_STR("\xe2\x82", "\"" FFFD FFFD "\"\n");
	EXPECT_STR("\xc0\xaf", "\"" FFFD FFFD "\"\n"); /* overlong */
	EXPECT_STR("\xe0\x9f\xbf", "\"" FFFD FFFD FFFD "\"\n");
	EXPECT_STR("\xf0\x8f\xbf\xbf", "\"" FFFD FFFD FFFD FFFD "\"\n");
	EXPECT_STR("\xed\xa0\x80", "\"" FFFD FFFD FFFD "\"\n"); /* a surrogate */
	EXPECT_STR("\xf4\x90\x80\x80", "\"" FFFD FFFD FFFD FFFD "\"\n"); /* U+110000 */
	EXPECT_STR("\xe2\x82\"", "\"" FFFD FFFD "\\\"\"\n");
}

static void test_bytes(void **state)
{
	(void)state;
	assert_true(json_bytes(&w, "\xc3\xa9\n", 3));
	expect("\"\xc3\xa9\\n\"\n");
	/* One wrong byte, and all are code points of their own. */
	assert_false(json_bytes(&w, "\xc3\xa9\xff\n", 4));
	expect("\"\xc3\x83\xc2\xa9\xc3\xbf\\n\"\n");
	assert_true(json_bytes(&w, NULL, 0));
	expect("\"\"\n");
}

static void test_bytes_as_member(void **state)
{
	(void)state;
	json_object_begin(&w);
	json_kv_bytes(&w, "path", "/a", 2);
	json_kv_bytes(&w, "other", "/\xff", 2);
	json_kv_u64(&w, "n", 1);
	json_object_end(&w);
	expect("{\"path\":\"/a\",\"other\":\"/\xc3\xbf\",\"other_encoding\":\"latin-1\",\"n\":1}\n");
}

static void test_every_byte_is_kept(void **state)
{
	uint8_t bytes[256];
	size_t i;

	(void)state;
	for (i = 0; i < 256; i++)
		bytes[i] = (uint8_t)i;
	assert_false(json_bytes(&w, bytes, sizeof(bytes)));
	/*
	 * 7 short escapes, 60 long ones (C0, DEL, C1), 93 plain, 96 in two bytes,
	 * quotes and newline.
	 */
	assert_int_equal(text.len, 7 * 2 + 60 * 6 + 93 + 96 * 2 + 3);
	buf_clear(&text);
}

static void test_stream(void **state)
{
	char *memory = NULL;
	size_t size = 0, i;
	FILE *f = open_memstream(&memory, &size);
	struct json to_file;

	(void)state;
	json_init_file(&to_file, f, JSON_COMPACT);
	json_u64(&to_file, 7);
	fflush(f);
	assert_string_equal(memory, "7\n");
	/* Long enough to be handed over in several pieces. */
	json_array_begin(&to_file);
	for (i = 0; i < 50000; i++)
		json_u64(&to_file, 1);
	json_array_end(&to_file);
	json_release(&to_file);
	fclose(f);
	assert_int_equal(size, strlen("7\n") + strlen("[]\n") + 50000 * 2 - 1);
	free(memory);
}

static void key_in_array(void)
{
	json_array_begin(&w);
	json_key(&w, "k");
}

static void value_without_key(void)
{
	json_object_begin(&w);
	json_u64(&w, 1);
}

static void wrong_end(void)
{
	json_array_begin(&w);
	json_object_end(&w);
}

static void end_after_key(void)
{
	json_object_begin(&w);
	json_key(&w, "k");
	json_object_end(&w);
}

static void end_without_begin(void)
{
	json_array_end(&w);
}

static void release_while_open(void)
{
	json_array_begin(&w);
	json_release(&w);
}

static void too_deep(void)
{
	int i;

	for (i = 0; i <= JSON_DEPTH_MAX; i++)
		json_array_begin(&w);
}

static bool aborts(void (*misuse)(void))
{
	static const struct rlimit no_core = { 0 };
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)signal(SIGABRT, SIG_DFL);
		(void)setrlimit(RLIMIT_CORE, &no_core);
		(void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		misuse();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_misuse(void **state)
{
	(void)state;
	assert_true(aborts(key_in_array));
	assert_true(aborts(value_without_key));
	assert_true(aborts(wrong_end));
	assert_true(aborts(end_after_key));
	assert_true(aborts(end_without_begin));
	assert_true(aborts(release_while_open));
	assert_true(aborts(too_deep));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(test_scalars),
		TEST(test_doubles),
		TEST(test_nesting_compact),
		TEST(test_lines),
		TEST(test_pretty),
		TEST(test_deepest),
		TEST(test_escapes),
		TEST(test_utf8_text),
		TEST(test_bytes),
		TEST(test_bytes_as_member),
		TEST(test_every_byte_is_kept),
		TEST(test_stream),
		TEST(test_misuse),
	};
#undef TEST

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
