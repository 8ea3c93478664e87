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
#include <unistd.h>

#include "event_text.h"
#include "report/compare.h"

#define DEFAULT COMPARE_IGNORE_DEFAULT

static char dir[64], path_a[80], path_b[80];

static int setup(void **state)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/reprise-compare-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path_a, sizeof(path_a), "%s/a.trace", dir);
	(void)snprintf(path_b, sizeof(path_b), "%s/b.trace", dir);
	return event_text_setup(state);
}

static int teardown(void **state)
{
	(void)unlink(path_a);
	(void)unlink(path_b);
	(void)rmdir(dir);
	return event_text_teardown(state);
}

/* Two events. */

static void expect(const char *a, const char *b, unsigned int ignore, enum difference how)
{
	struct event x = event_from_text(a), y = event_from_text(b);
	enum difference got = DIFFERENCE_MAX;
	const char *what;
	bool differ = compare_events(&x, &y, ignore, &got, &what);

	if (differ != (how != DIFFERENCE_MAX) || got != how)
		fail_msg("%s and %s: %s", a, b, differ ? difference_names[got] : "equal");
	/* Fingerprints tell the same. */
	assert_true((compare_fingerprint(&x, ignore) == compare_fingerprint(&y, ignore)) ==
		    !differ);
}

#define SAME DIFFERENCE_MAX

static void test_equal_but_for_time(void **state)
{
	(void)state;
	expect("1/1 #1 10+5 read(fd=3, buf=\"x\", count=1) = 1 {cpu=5, held=6, origin=7}",
	       "8/9 #2 90+9 read(fd=3, buf=\"x\", count=1) = 1", 0, SAME);
	expect("1/1 #1 10+5 read(fd=3, buf=\"x\", count=1) = 1 {flags=NO_DURATION}",
	       "1/1 #1 10+5 read(fd=3, buf=\"x\", count=1) = 1", 0, SAME);
}

static void test_kinds_of_differences(void **state)
{
	(void)state;
	expect("read(fd=3, buf=\"x\", count=1) = 1", "write(fd=3, buf=\"x\", count=1) = 1", 0,
	       DIFFERENCE_CALL);
	expect("read(fd=3, buf=\"x\", count=1) = 1", "read(fd=4, buf=\"x\", count=1) = 1", 0,
	       DIFFERENCE_ARGUMENT);
	expect("read(fd=3, buf=\"x\", count=9) = 1", "read(fd=3, buf=\"xy\", count=9) = 2", 0,
	       DIFFERENCE_OUTCOME);
	expect("read(fd=3, buf=\"x\", count=9) = 1", "read(fd=3, count=9) = -1 EIO", 0,
	       DIFFERENCE_OUTCOME);
	expect("read(fd=3, buf=\"x\", count=9) = 1", "read(fd=3, buf=\"y\", count=9) = 1", 0,
	       DIFFERENCE_DATA);
	expect("writev(fd=3, iov=[{iov_base=\"x\", iov_len=1}], iovcnt=1) = 1",
	       "writev(fd=3, iov=[{iov_base=\"y\", iov_len=1}], iovcnt=1) = 1", 0, DIFFERENCE_DATA);
	/* Several at once count as the first of them. */
	expect("read(fd=3, buf=\"x\", count=9) = 1", "read(fd=4, buf=\"yy\", count=9) = 2", 0,
	       DIFFERENCE_ARGUMENT);
	expect("stat(path=\"/a\", statbuf={st_size=1}) = 0",
	       "stat(path=\"/a\", statbuf={st_size=2}) = 0", DEFAULT, DIFFERENCE_OUTCOME);
	expect("read(fd=3, count=9) = ?", "read(fd=3, count=9) = 0", 0, DIFFERENCE_OUTCOME);
}

static void test_ignored(void **state)
{
	(void)state;
	expect("fork() = 5", "fork() = 6", DEFAULT, SAME);
	expect("fork() = 5", "fork() = 6", 0, DIFFERENCE_OUTCOME);
	expect("fork() = 5", "fork() = -1 EAGAIN", DEFAULT, DIFFERENCE_OUTCOME);
	expect("kill(pid=5, sig=SIGINT) = 0", "kill(pid=6, sig=SIGINT) = 0", DEFAULT, SAME);
	expect("rt_sigreturn() = 5", "rt_sigreturn() = 6", DEFAULT, SAME);
	expect("rt_sigreturn() = 5", "rt_sigreturn() = 6", 0, DIFFERENCE_OUTCOME);
	expect("kill(pid=5, sig=SIGINT) = 0", "kill(pid=6, sig=SIGINT) = 0", 0,
	       DIFFERENCE_ARGUMENT);
	expect("brk(addr=0x1000) = 4096", "brk(addr=0x2000) = 4096", DEFAULT, SAME);
	expect("stat(path=\"/a\", statbuf={st_mtime=1}) = 0",
	       "stat(path=\"/a\", statbuf={st_mtime=2}) = 0", DEFAULT, SAME);
	expect("stat(path=\"/a\", statbuf={st_mtime=1}) = 0",
	       "stat(path=\"/a\", statbuf={st_mtime=2}) = 0", 0, DIFFERENCE_OUTCOME);
	expect("stat(path=\"/a\", statbuf={st_ino=1}) = 0",
	       "stat(path=\"/a\", statbuf={st_ino=2}) = 0", DEFAULT, DIFFERENCE_OUTCOME);
	expect("stat(path=\"/a\", statbuf={st_ino=1}) = 0",
	       "stat(path=\"/a\", statbuf={st_ino=2}) = 0", IGNORE_INODES, SAME);
	expect("stat(path=\"/a\", statbuf={st_uid=1}) = 0",
	       "stat(path=\"/a\", statbuf={st_uid=2}) = 0", IGNORE_OWNERS, SAME);
	expect("dup(oldfd=3) = 4", "dup(oldfd=5) = 6", IGNORE_FDS, SAME);
	expect("read(fd=3, buf=\"x\", count=9) = 1", "read(fd=3, buf=\"y\", count=9) = 1",
	       IGNORE_DATA, SAME);
	/* Times that the program asks for are no accident. */
	expect("utimensat(dirfd=3, path=\"a\", times=[{tv_sec=1, tv_nsec=0}], flags=0) = 0",
	       "utimensat(dirfd=3, path=\"a\", times=[{tv_sec=2, tv_nsec=0}], flags=0) = 0",
	       DEFAULT, DIFFERENCE_ARGUMENT);
}

static void test_words_for_ignore(void **state)
{
	struct err err = { "" };
	unsigned int bits = 0;

	(void)state;
	assert_int_equal(compare_parse_ignore("pids,data", &bits, &err), 0);
	assert_int_equal(bits, IGNORE_PIDS | IGNORE_DATA);
	assert_int_equal(compare_parse_ignore("inodez", &bits, &err), -EINVAL);
	assert_non_null(strstr(err.text, "inodes"));
	assert_int_equal(bits, IGNORE_PIDS | IGNORE_DATA);
}

static void test_data_that_one_trace_did_not_keep(void **state)
{
	struct event x = event_from_text("read(fd=3, buf=\"abc\", count=9) = 3");
	struct event y = event_from_text("read(fd=3, buf=?/3, count=9) = 3");
	struct event z = event_from_text("read(fd=3, buf=\"ax\"/3, count=9) = 3");
	enum difference how;
	const char *what;

	(void)state;
	assert_false(compare_events(&x, &y, 0, &how, &what));
	assert_true(compare_events(&x, &z, 0, &how, &what));
	assert_int_equal(how, DIFFERENCE_DATA);
}

/* Two traces. */

static struct compare_result compare_with(const char *const *a, const char *const *b,
					  struct compare_options o)
{
	struct compare_result result;
	struct trace *x, *y;
	struct err err = { "" };

	trace_from_text(path_a, a);
	trace_from_text(path_b, b);
	assert_int_equal(trace_open(path_a, 0, &x, &err), 0);
	assert_int_equal(trace_open(path_b, 0, &y, &err), 0);
	assert_int_equal(compare_traces(x, y, &o, &result, &err), 0);
	trace_close(x);
	trace_close(y);
	return result;
}

static struct compare_result compare(const char *const *a, const char *const *b)
{
	return compare_with(a, b, (struct compare_options){ .ignore = DEFAULT });
}

static void expect_kinds(const struct compare_result *r, uint64_t missing, uint64_t extra,
			 uint64_t changed)
{
	assert_int_equal(r->by_kind[DIFFERENCE_MISSING], missing);
	assert_int_equal(r->by_kind[DIFFERENCE_EXTRA], extra);
	assert_int_equal(compare_nr_differences(r), missing + extra + changed);
}

#define LINE(n) "1/1 #" #n " " #n "0+1 read(fd=" #n ", buf=\"x\", count=1) = 1"

static const char *const ten[] = { LINE(1), LINE(2), LINE(3), LINE(4), LINE(5),
				   LINE(6), LINE(7), LINE(8), LINE(9), NULL };

static void test_equal_traces(void **state)
{
	struct compare_result r = compare(ten, ten);

	(void)state;
	expect_kinds(&r, 0, 0, 0);
	assert_int_equal(r.nr_events_a, 9);
	assert_int_equal(r.nr_events_b, 9);
}

static void test_gaps(void **state)
{
	static const char *const gap[] = { LINE(1), LINE(2), LINE(3), LINE(6),
					   LINE(7), LINE(8), LINE(9), NULL };
	static const char *const first[] = { LINE(4), LINE(5), LINE(6), LINE(7),
					     LINE(8), LINE(9), NULL };
	static const char *const last[] = { LINE(1), LINE(2), NULL };
	static const char *const none[] = { "2/2 #1 1+1 getpid() = 2", NULL };
	struct compare_result r;

	(void)state;
	r = compare(ten, gap);
	expect_kinds(&r, 2, 0, 0);
	r = compare(gap, ten);
	expect_kinds(&r, 0, 2, 0);
	r = compare(ten, first);
	expect_kinds(&r, 3, 0, 0);
	r = compare(ten, last);
	expect_kinds(&r, 7, 0, 0);
	r = compare(ten, none);
	expect_kinds(&r, 8, 0, 1);
}

static void test_changes(void **state)
{
	static const char *const changed[] = {
		LINE(1), "1/1 #2 20+1 read(fd=2, buf=\"y\", count=1) = 1",
		LINE(3), LINE(4),
		LINE(5), "1/1 #6 60+1 fsync(fd=6) = 0",
		LINE(7), LINE(8),
		LINE(9), NULL
	};
	static const char *const with_gap[] = {
		LINE(1), LINE(2), "1/1 #4 40+1 read(fd=4, buf=\"y\", count=1) = 1",
		LINE(5), LINE(6), LINE(7),
		LINE(8), LINE(9), NULL
	};
	struct compare_result r;

	(void)state;
	r = compare(ten, changed);
	expect_kinds(&r, 0, 0, 2);
	assert_int_equal(r.by_kind[DIFFERENCE_DATA], 1);
	assert_int_equal(r.by_kind[DIFFERENCE_CALL], 1);
	r = compare(ten, with_gap);
	assert_int_equal(compare_nr_differences(&r), 2);
	assert_int_equal(r.by_kind[DIFFERENCE_MISSING], 1);
}

/* Longer than the look-ahead: wrong pairs at first, but they meet again. */
static void test_a_long_gap(void **state)
{
	enum { NR = 400, GAP = 150 };
	static char lines[NR][80];
	const char *a[NR + 1], *b[NR + 1];
	struct compare_result r;
	size_t i, nr_b = 0;

	(void)state;
	for (i = 0; i < NR; i++) {
		(void)snprintf(lines[i], sizeof(lines[i]),
			       "1/1 #%zu %zu+1 read(fd=%zu, count=1) = 0", i + 1, 10 * i + 10, i);
		a[i] = lines[i];
		if (i < 100 || i >= 100 + GAP)
			b[nr_b++] = lines[i];
	}
	a[NR] = b[nr_b] = NULL;
	r = compare(a, b);
	assert_int_equal(r.by_kind[DIFFERENCE_MISSING] - r.by_kind[DIFFERENCE_EXTRA], GAP);
	assert_true(compare_nr_differences(&r) <= NR - 100);
	r = compare(a, a);
	expect_kinds(&r, 0, 0, 0);
}

static void test_threads_by_order(void **state)
{
	static const char *const a[] = { "1/1 #1 10+1 getpid() = 1", "1/2 #2 20+1 fsync(fd=1) = 0",
					 "5/5 #3 30+1 fsync(fd=2) = 0", NULL };
	static const char *const b[] = { "7/7 #1 10+1 getpid() = 7", "7/9 #2 20+1 fsync(fd=1) = 0",
					 "8/8 #3 30+1 fsync(fd=2) = 0", NULL };
	static const char *const fewer[] = { "7/7 #1 10+1 getpid() = 7",
					     "8/8 #3 30+1 fsync(fd=2) = 0", NULL };
	struct compare_result r = compare(a, b);

	(void)state;
	expect_kinds(&r, 0, 0, 0);
	r = compare_with(a, b, (struct compare_options){ .ignore = DEFAULT, .by_tid = true });
	expect_kinds(&r, 3, 3, 0);
	assert_int_equal(r.nr_threads_a_only, 3);
	assert_int_equal(r.nr_threads_b_only, 3);
	r = compare(a, fewer);
	expect_kinds(&r, 1, 0, 0);
	assert_int_equal(r.nr_threads_a_only, 1);
}

static void test_sections(void **state)
{
	static const char *const a[] = {
		"tree_entry(tree=initial, path=\"/a\", stat={size=1, mtime_ns=5}, seen_ns=3)",
		"tree_entry(tree=initial, path=\"/b\", stat={size=1})",
		"tree_entry(tree=final, path=\"/a\", stat={size=1})",
		"loss(kind=EVENTS_LOST, count=1)",
		LINE(1),
		NULL
	};
	static const char *const b[] = {
		"tree_entry(tree=final, path=\"/a\", stat={size=2})",
		"tree_entry(tree=initial, path=\"/a\", stat={size=1, mtime_ns=6}, seen_ns=4)",
		"tree_entry(tree=initial, path=\"/c\", stat={size=1})",
		"loss(kind=EVENTS_LOST, count=2)",
		LINE(1),
		NULL
	};
	struct compare_options o = { .ignore = DEFAULT, .sections = true };
	struct compare_result r = compare_with(a, b, o);

	(void)state;
	assert_int_equal(r.nr_trees, 3);
	assert_int_equal(r.nr_ledger, 2);
	assert_int_equal(compare_nr_differences(&r), 5);
	r = compare_with(a, a, o);
	assert_int_equal(compare_nr_differences(&r), 0);
	r = compare(a, b);
	assert_int_equal(compare_nr_differences(&r), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_equal_but_for_time),
		TEST(test_kinds_of_differences),
		TEST(test_ignored),
		TEST(test_words_for_ignore),
		TEST(test_data_that_one_trace_did_not_keep),
		TEST(test_equal_traces),
		TEST(test_gaps),
		TEST(test_changes),
		TEST(test_a_long_gap),
		TEST(test_threads_by_order),
		TEST(test_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
