/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "event_text.h"
#include "report/filter.h"

#define OPENS "1/2 #1 1000+500 openat(dirfd=AT_FDCWD, path=\"/a/b\", flags=O_RDONLY, mode=0) = 3"
#define READS "1/2 #2 2000+500 read(fd=3, buf=\"x\", count=1) = 1"
#define FAILS "1/2 #3 3000+500 read(fd=9, count=1) = -1 EBADF"
#define DUPS "1/2 #4 4000+500 fcntl_dupfd(fd=3, arg=10) = 10"

static struct fdpaths *paths;

static int setup(void **state)
{
	paths = fdpaths_new(NULL);
	return event_text_setup(state);
}

static int teardown(void **state)
{
	fdpaths_free(paths);
	return event_text_teardown(state);
}

static void expect(const struct filter_options *o, const char *text, bool matches)
{
	struct event ev = event_from_text(text);
	struct err err = { "" };
	struct filter *f;

	assert_int_equal(filter_new(o, &f, &err), 0);
	if (filter_matches(f, &ev, paths) != matches)
		fail_msg("%s: %s", text, matches ? "does not match" : "matches");
	filter_free(f);
}

static void expect_error(const struct filter_options *o, const char *words)
{
	struct err err = { "" };
	struct filter *f = NULL;

	assert_int_equal(filter_new(o, &f, &err), -EINVAL);
	assert_null(f);
	assert_non_null(strstr(err.text, words));
}

/* Lists as the options' parser makes them. */
#define STRINGS(...)                                                                               \
	{                                                                                          \
		.items = (const char *[]){ __VA_ARGS__ },                                          \
		.len = ARRAY_LEN(((const char *[]){ __VA_ARGS__ }))                                \
	}
#define NUMBERS(...)                                                                               \
	{                                                                                          \
		.items = (uint64_t[]){ __VA_ARGS__ },                                              \
		.len = ARRAY_LEN(((uint64_t[]){ __VA_ARGS__ }))                                    \
	}

static void test_nothing_asked_for(void **state)
{
	struct filter_options o = { 0 };
	struct filter *f;

	(void)state;
	expect(&o, READS, true);
	assert_int_equal(filter_new(&o, &f, NULL), 0);
	assert_true(filter_is_empty(f));
	assert_false(filter_needs_paths(f));
	filter_free(f);
}

static void test_threads(void **state)
{
	(void)state;
	expect(&(struct filter_options){ .pids = NUMBERS(7, 1) }, READS, true);
	expect(&(struct filter_options){ .pids = NUMBERS(2) }, READS, false);
	expect(&(struct filter_options){ .tids = NUMBERS(2) }, READS, true);
	expect(&(struct filter_options){ .pids = NUMBERS(1), .tids = NUMBERS(1) }, READS, false);
	expect_error(&(struct filter_options){ .pids = NUMBERS(UINT64_C(1) << 32) }, "process");
}

static void test_calls(void **state)
{
	struct filter_options read = { .calls = STRINGS("write,read") };
	struct filter_options glob = { .calls = STRINGS("open*", "re?d") };
	struct filter_options negated = { .calls = STRINGS("!read") };
	struct filter_options both = { .calls = STRINGS("r*,!read") };
	struct filter_options base = { .calls = STRINGS("fcntl") };

	(void)state;
	expect(&read, READS, true);
	expect(&read, OPENS, false);
	expect(&glob, READS, true);
	expect(&glob, OPENS, true);
	expect(&glob, DUPS, false);
	expect(&negated, READS, false);
	expect(&negated, OPENS, true);
	expect(&both, READS, false);
	expect(&both, OPENS, false);
	expect(&base, DUPS, true);
	expect(&(struct filter_options){ .calls = STRINGS("fcntl_dupfd") }, DUPS, true);
	expect_error(&(struct filter_options){ .calls = STRINGS("opne") }, "did you mean 'open'");
	expect_error(&(struct filter_options){ .calls = STRINGS("read,") }, "unknown call ''");
}

static void test_classes(void **state)
{
	(void)state;
	expect(&(struct filter_options){ .classes = STRINGS("data") }, READS, true);
	expect(&(struct filter_options){ .classes = STRINGS("desc,sync") }, READS, false);
	expect(&(struct filter_options){ .classes = STRINGS("%desc") }, READS, true);
	expect(&(struct filter_options){ .classes = STRINGS("%file") }, READS, false);
	expect(&(struct filter_options){ .classes = STRINGS("%file") }, OPENS, true);
	expect_error(&(struct filter_options){ .classes = STRINGS("date") }, "'data'");
}

static void test_outcomes(void **state)
{
	(void)state;
	expect(&(struct filter_options){ .failed = true }, FAILS, true);
	expect(&(struct filter_options){ .failed = true }, READS, false);
	expect(&(struct filter_options){ .ok = true }, READS, true);
	expect(&(struct filter_options){ .ok = true }, FAILS, false);
	expect(&(struct filter_options){ .ok = true }, "1/1 #1 0+0 read(fd=3, count=1) = ?", false);
	expect(&(struct filter_options){ .errnos = STRINGS("ENOENT,EBADF") }, FAILS, true);
	expect(&(struct filter_options){ .errnos = STRINGS("ENOENT") }, FAILS, false);
	expect_error(&(struct filter_options){ .errnos = STRINGS("EWHAT") }, "EWHAT");
	expect_error(&(struct filter_options){ .ok = true, .failed = true }, "both");
}

static void test_times(void **state)
{
	(void)state;
	expect(&(struct filter_options){ .min_duration_ns = 500 }, READS, true);
	expect(&(struct filter_options){ .min_duration_ns = 501 }, READS, false);
	expect(&(struct filter_options){ .max_duration_ns = 500 }, READS, true);
	expect(&(struct filter_options){ .max_duration_ns = 499 }, READS, false);
	expect(&(struct filter_options){ .from_ns = 2500 }, READS, true);
	expect(&(struct filter_options){ .from_ns = 2501 }, READS, false);
	expect(&(struct filter_options){ .to_ns = 2001 }, READS, true);
	expect(&(struct filter_options){ .to_ns = 2000 }, READS, false);
	expect_error(&(struct filter_options){ .from_ns = 2, .to_ns = 2 }, "time range");
	expect_error(&(struct filter_options){ .min_duration_ns = 2, .max_duration_ns = 1 },
		     "duration");
}

static void test_descriptors(void **state)
{
	(void)state;
	expect(&(struct filter_options){ .fds = NUMBERS(3) }, READS, true);
	expect(&(struct filter_options){ .fds = NUMBERS(4) }, READS, false);
	expect(&(struct filter_options){ .fds = NUMBERS(3) }, OPENS, true);
	expect(&(struct filter_options){ .fds = NUMBERS(10) }, DUPS, true);
	expect(&(struct filter_options){ .fds = NUMBERS(5) },
	       "1/1 #1 0+0 pipe2(pipefd=[4, 5], flags=0) = 0", true);
}

static void test_paths(void **state)
{
	static const char *const yes[] = { "/a/b", "/a",  "/a/",  "/",	"b",
					   "a/b",  "*/b", "/a/?", "/a*" };
	static const char *const no[] = { "/a/bc", "/b", "/a/b/c", "x", "/a/b*c" };
	struct event opens = event_from_text(OPENS);
	size_t i;

	(void)state;
	fdpaths_apply(paths, &opens);
	for (i = 0; i < ARRAY_LEN(yes); i++) {
		expect(&(struct filter_options){ .paths = STRINGS(yes[i]) }, OPENS, true);
		expect(&(struct filter_options){ .paths = STRINGS(yes[i]) }, READS, true);
	}
	for (i = 0; i < ARRAY_LEN(no); i++) {
		expect(&(struct filter_options){ .paths = STRINGS(no[i]) }, OPENS, false);
		expect(&(struct filter_options){ .paths = STRINGS(no[i]) }, READS, false);
	}
	expect(&(struct filter_options){ .paths = STRINGS("/a") }, FAILS, false);
	expect_error(&(struct filter_options){ .paths = STRINGS("") }, "empty path");
}

static void test_query(void **state)
{
	struct filter_options o = {
		.pids = NUMBERS(1), .tids = NUMBERS(2, 3), .from_ns = 5, .to_ns = 9
	};
	struct trace_query part = { 0 }, whole = { 0 };
	struct filter *f;

	(void)state;
	assert_int_equal(filter_new(&o, &f, NULL), 0);
	filter_narrow_query(f, false, &part);
	assert_int_equal(part.nr_pids, 1);
	assert_int_equal(part.nr_tids, 2);
	assert_int_equal(part.tids[1], 3);
	assert_int_equal(part.from_ns, 5);
	assert_int_equal(part.to_ns, 9);
	/* What descriptors are depends on what came before, in any process. */
	filter_narrow_query(f, true, &whole);
	assert_int_equal(whole.nr_pids + whole.nr_tids + whole.from_ns, 0);
	assert_int_equal(whole.to_ns, 9);
	filter_free(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_asked_for), TEST(test_threads),  TEST(test_calls),
		TEST(test_classes),	      TEST(test_outcomes), TEST(test_times),
		TEST(test_descriptors),	      TEST(test_paths),	   TEST(test_query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
