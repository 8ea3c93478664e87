/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/strings.h"
#include "base/varint.h"

/* err */

static void test_err_set(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(err_set(&err, -ENOENT, "cannot open %s", "x"), -ENOENT);
	assert_string_equal(err.text, "cannot open x: No such file or directory");
	assert_int_equal(err_set(&err, -EBADMSG, "bad %d", 7), -EBADMSG);
	assert_string_equal(err.text, "bad 7");
	assert_int_equal(err_set(NULL, -EIO, "nobody asks"), -EIO);
	assert_int_equal(err_wrap(NULL, -EIO, "nobody asks"), -EIO);
}

static void test_err_wrap(void **state)
{
	struct err err;

	(void)state;
	/* What was there before must not show through. */
	memset(&err, 'X', sizeof(err));
	(void)err_set(&err, -EBADMSG, "a rather long description of what is wrong");
	assert_int_equal(err_wrap(&err, -EBADMSG, "f"), -EBADMSG);
	assert_string_equal(err.text, "f: a rather long description of what is wrong");
	(void)err_wrap(&err, -EBADMSG, "the outermost place, with a long name of its own %d", 1);
	assert_string_equal(err.text, "the outermost place, with a long name of its own 1: "
				      "f: a rather long description of what is wrong");
}

static void test_err_is_cut(void **state)
{
	char longest[2 * ERR_TEXT_SIZE];
	struct err err;

	(void)state;
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	(void)err_set(&err, -ENOENT, "%s", longest);
	assert_int_equal(strlen(err.text), ERR_TEXT_SIZE - 1);
	(void)err_wrap(&err, -ENOENT, "where");
	assert_int_equal(strlen(err.text), ERR_TEXT_SIZE - 1);
	assert_memory_equal(err.text, "where: aaa", 10);
	(void)err_wrap(&err, -ENOENT, "%s", longest);
	assert_true(strlen(err.text) < ERR_TEXT_SIZE);
}

/* arena */

static void test_arena(void **state)
{
	struct arena a;
	uint8_t *kept, *p;
	size_t i;

	(void)state;
	arena_init(&a);
	p = arena_alloc(&a, 1);
	assert_true(a.end - p <= 4096); /* thousands of threads have one each */
	for (i = 1; i < 1000; i++) {
		p = arena_alloc(&a, i);
		assert_int_equal((uintptr_t)p % 8, 0);
		memset(p, (int)i, i);
	}
	p = arena_alloc(&a, 1 << 20);
	memset(p, 0xee, 1 << 20);
	assert_string_equal(arena_memdup0(&a, "abcdef", 3), "abc");
	arena_reset(&a);
	kept = arena_alloc(&a, 1);
	assert_int_equal(a.end - kept, 64 << 10);
	(void)arena_alloc(&a, 64 << 10);
	arena_reset(&a);
	/* From now on there is enough, and always the same. */
	for (i = 0; i < 3; i++) {
		p = arena_alloc(&a, 1);
		(void)arena_alloc(&a, 60 << 10);
		arena_reset(&a);
		assert_ptr_equal(arena_alloc(&a, 1), p);
		arena_reset(&a);
	}
	arena_release(&a);
	arena_release(&a);
	arena_reset(&a);
}

/* buf */

static void test_buf(void **state)
{
	struct buf b = { 0 };
	char expected[300];
	int i;

	(void)state;
	assert_string_equal(buf_str(&b), "");
	buf_put(&b, NULL, 0);
	buf_puts(&b, "ab");
	buf_putc(&b, 'c');
	buf_printf(&b, "%d", 17);
	assert_string_equal(buf_str(&b), "abc17");
	assert_int_equal(b.len, 5);

	/*
	 * Around the room that is tried first, and around the first capacity.
	 */
	for (i = 60; i < 300; i++) {
		buf_clear(&b);
		buf_printf(&b, "%*d", i, 7);
		assert_int_equal(b.len, i);
		snprintf(expected, sizeof(expected), "%*d", i, 7);
		assert_string_equal(buf_str(&b), expected);
	}
	buf_clear(&b);
	for (i = 0; i < 100000; i++)
		buf_putc(&b, (char)i);
	for (i = 0; i < 100000; i++)
		assert_int_equal(b.data[i], (uint8_t)i);
	buf_release(&b);
	buf_release(&b);
	assert_null(b.data);
}

/* varint */

static void test_little_endian(void **state)
{
	uint8_t p[8];

	(void)state;
	put_le16(p, 0x8182);
	assert_memory_equal(p, "\x82\x81", 2);
	assert_int_equal(get_le16(p), 0x8182);
	put_le32(p, 0x81828384);
	assert_memory_equal(p, "\x84\x83\x82\x81", 4);
	assert_int_equal(get_le32(p), 0x81828384);
	put_le64(p, UINT64_C(0x8182838485868788));
	assert_memory_equal(p, "\x88\x87\x86\x85\x84\x83\x82\x81", 8);
	assert_true(get_le64(p) == UINT64_C(0x8182838485868788));
}

static void check_uvarint(uint64_t v, size_t len)
{
	uint8_t bytes[VARINT_MAX];
	uint8_t *end = put_uvarint(bytes, v);
	struct cursor c = { bytes, end };
	uint64_t back;
	size_t cut;

	assert_int_equal(end - bytes, len);
	assert_true(cursor_get_uvarint(&c, &back));
	assert_true(back == v);
	assert_int_equal(cursor_left(&c), 0);
	for (cut = 0; cut < len; cut++) {
		c = (struct cursor){ bytes, bytes + cut };
		assert_false(cursor_get_uvarint(&c, &back));
		assert_ptr_equal(c.pos, bytes);
	}
}

static void check_svarint(int64_t v)
{
	uint8_t bytes[VARINT_MAX];
	struct cursor c = { bytes, put_svarint(bytes, v) };
	int64_t back;

	assert_true(cursor_get_svarint(&c, &back));
	assert_true(back == v);
	assert_false(cursor_get_svarint(&c, &back));
}

static void test_varint(void **state)
{
	unsigned int bits;

	(void)state;
	check_uvarint(0, 1);
	for (bits = 1; bits <= 64; bits++) {
		uint64_t top = UINT64_C(1) << (bits - 1);

		check_uvarint(top, (bits + 6) / 7);
		check_uvarint(top | (top - 1), (bits + 6) / 7);
		check_svarint((int64_t)top);
		check_svarint(-(int64_t)(top / 2) - 1);
	}
	check_svarint(0);
	check_svarint(-1);
	check_svarint(INT64_MAX);
	check_svarint(INT64_MIN);
	assert_int_equal(zigzag(-1), 1);
	assert_int_equal(zigzag(1), 2);
	assert_true(zigzag(INT64_MIN) == UINT64_MAX);
}

static void test_varint_of_foreign_origin(void **state)
{
	static const uint8_t too_large[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
	static const uint8_t too_long[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01";
	static const uint8_t padded[] = "\x81\x80\x00";
	struct cursor c = { too_large, too_large + sizeof(too_large) - 1 };
	const uint8_t *bytes = NULL;
	uint64_t v = 99;

	(void)state;
	assert_false(cursor_get_uvarint(&c, &v));
	assert_ptr_equal(c.pos, too_large);
	c = (struct cursor){ too_long, too_long + sizeof(too_long) - 1 };
	assert_false(cursor_get_uvarint(&c, &v));
	assert_int_equal(v, 99);
	c = (struct cursor){ padded, padded + sizeof(padded) - 1 };
	assert_true(cursor_get_uvarint(&c, &v));
	assert_int_equal(v, 1);

	c = (struct cursor){ padded, padded + 2 };
	assert_false(cursor_get_bytes(&c, 3, &bytes));
	assert_false(cursor_get_bytes(&c, UINT64_MAX, &bytes));
	assert_null(bytes);
	assert_true(cursor_get_bytes(&c, 2, &bytes));
	assert_ptr_equal(bytes, padded);
	assert_true(cursor_get_bytes(&c, 0, &bytes));
}

/* clock */

static void test_clock(void **state)
{
	uint64_t a = clock_monotonic_ns(), ns = 7;
	struct timespec ts = clock_timespec_from_ns(UINT64_MAX);

	(void)state;
	assert_true(clock_monotonic_ns() >= a);
	assert_true(clock_realtime_ns() > UINT64_C(1600000000) * NS_PER_S);

	assert_int_equal(ts.tv_sec, 18446744073);
	assert_int_equal(ts.tv_nsec, 709551615);
	assert_int_equal(clock_ns_from_timespec(&ts, &ns), 0);
	assert_true(ns == UINT64_MAX);
	ns = 7;
	ts.tv_nsec++;
	assert_int_equal(clock_ns_from_timespec(&ts, &ns), -ERANGE);
	ts = (struct timespec){ .tv_sec = LONG_MAX };
	assert_int_equal(clock_ns_from_timespec(&ts, &ns), -ERANGE);
	ts = (struct timespec){ .tv_sec = -1 };
	assert_int_equal(clock_ns_from_timespec(&ts, &ns), -ERANGE);
	ts = (struct timespec){ .tv_nsec = 1000000000 };
	assert_int_equal(clock_ns_from_timespec(&ts, &ns), -ERANGE);
	ts = (struct timespec){ .tv_nsec = -1 };
	assert_int_equal(clock_ns_from_timespec(&ts, &ns), -ERANGE);
	assert_int_equal(ns, 7);

	assert_int_equal(clock_add_ns(1, 2), 3);
	assert_true(clock_add_ns(UINT64_MAX - 1, 2) == UINT64_MAX);
	assert_int_equal(clock_sub_ns(3, 2), 1);
	assert_int_equal(clock_sub_ns(2, 3), 0);
}

/* strings */

static void check_put(void (*put)(struct buf *, uint64_t), uint64_t v, const char *wanted)
{
	struct buf b = { 0 };

	put(&b, v);
	assert_string_equal(buf_str(&b), wanted);
	buf_release(&b);
}

static void test_put_bytes(void **state)
{
	(void)state;
	check_put(strings_put_bytes, 0, "0 B");
	check_put(strings_put_bytes, 1023, "1023 B");
	check_put(strings_put_bytes, 1024, "1.00 KiB");
	check_put(strings_put_bytes, 1290000, "1.23 MiB");
	check_put(strings_put_bytes, 45 << 20, "45.0 MiB");
	check_put(strings_put_bytes, 1000 << 10, "1000 KiB");
	check_put(strings_put_bytes, (1 << 20) - 1, "1.00 MiB");
	check_put(strings_put_bytes, UINT64_MAX, "16.0 EiB");
}

static void test_put_count(void **state)
{
	(void)state;
	check_put(strings_put_count, 0, "0");
	check_put(strings_put_count, 9999, "9999");
	check_put(strings_put_count, 10000, "10.0 k");
	check_put(strings_put_count, 99949, "99.9 k");
	check_put(strings_put_count, 99950, "100 k");
	check_put(strings_put_count, 999499, "999 k");
	check_put(strings_put_count, 999500, "1.00 M");
	check_put(strings_put_count, 4560000, "4.56 M");
	check_put(strings_put_count, UINT64_MAX, "18.4 E");
}

static void test_put_duration(void **state)
{
	(void)state;
	check_put(strings_put_duration, 0, "0 ns");
	check_put(strings_put_duration, 999, "999 ns");
	check_put(strings_put_duration, 1000, "1.00 us");
	check_put(strings_put_duration, 45600, "45.6 us");
	check_put(strings_put_duration, 999499, "999 us");
	check_put(strings_put_duration, 999999, "1.00 ms");
	check_put(strings_put_duration, 1230000000, "1.23 s");
	check_put(strings_put_duration, 59940000000, "59.9 s");
	check_put(strings_put_duration, 59960000000, "1m00s");
	check_put(strings_put_duration, 125 * NS_PER_S, "2m05s");
	check_put(strings_put_duration, 3600 * NS_PER_S - 1, "1h00m");
	check_put(strings_put_duration, 11220 * NS_PER_S, "3h07m");
	check_put(strings_put_duration, UINT64_MAX, "5124095h34m");
}

static void check_parse(int (*parse)(const char *, uint64_t *), const char *s, uint64_t wanted)
{
	uint64_t v;

	assert_int_equal(parse(s, &v), 0);
	assert_true(v == wanted);
}

static void check_refused(int (*parse)(const char *, uint64_t *), const char *s, int status)
{
	uint64_t v = 7;

	assert_int_equal(parse(s, &v), status);
	assert_int_equal(v, 7);
}

static void test_parse_u64(void **state)
{
	(void)state;
	check_parse(strings_parse_u64, "0", 0);
	check_parse(strings_parse_u64, "010", 10);
	check_parse(strings_parse_u64, "18446744073709551615", UINT64_MAX);
	check_parse(strings_parse_u64, "0xFFffffffffffffff", UINT64_MAX);
	check_refused(strings_parse_u64, "18446744073709551616", -ERANGE);
	check_refused(strings_parse_u64, "0x10000000000000000", -ERANGE);
	check_refused(strings_parse_u64, "99999999999999999999999x", -EINVAL);
	check_refused(strings_parse_u64, "", -EINVAL);
	check_refused(strings_parse_u64, "0x", -EINVAL);
	check_refused(strings_parse_u64, "-1", -EINVAL);
	check_refused(strings_parse_u64, "+1", -EINVAL);
	check_refused(strings_parse_u64, " 1", -EINVAL);
	check_refused(strings_parse_u64, "1 ", -EINVAL);
	check_refused(strings_parse_u64, "1a", -EINVAL);
}

static void test_parse_size(void **state)
{
	(void)state;
	check_parse(strings_parse_size, "4096", 4096);
	check_parse(strings_parse_size, "4096B", 4096);
	check_parse(strings_parse_size, "64K", 65536);
	check_parse(strings_parse_size, "64k", 65536);
	check_parse(strings_parse_size, "2MiB", 2 << 20);
	check_parse(strings_parse_size, "1.5G", UINT64_C(3) << 29);
	check_parse(strings_parse_size, "0.5T", UINT64_C(1) << 39);
	check_parse(strings_parse_size, "16777215T", UINT64_C(16777215) << 40);
	check_refused(strings_parse_size, "16777216T", -ERANGE);
	check_refused(strings_parse_size, "K", -EINVAL);
	check_refused(strings_parse_size, "1KB", -EINVAL);
	check_refused(strings_parse_size, "1.K", -EINVAL);
	check_refused(strings_parse_size, ".5K", -EINVAL);
	check_refused(strings_parse_size, "1 K", -EINVAL);
}

static void test_parse_duration(void **state)
{
	(void)state;
	check_parse(strings_parse_duration, "3", 3 * NS_PER_S);
	check_parse(strings_parse_duration, "0.1", 100 * NS_PER_MS);
	check_parse(strings_parse_duration, "7ns", 7);
	check_parse(strings_parse_duration, "10us", 10000);
	check_parse(strings_parse_duration, "5ms", 5000000);
	check_parse(strings_parse_duration, "1.5s", 1500000000);
	check_parse(strings_parse_duration, "2m", 120 * NS_PER_S);
	check_parse(strings_parse_duration, "1.5h", 5400 * NS_PER_S);
	check_parse(strings_parse_duration, "0.1234567899999", 123456789);
	check_parse(strings_parse_duration, "18446744073.709551615", UINT64_MAX);
	check_refused(strings_parse_duration, "18446744073.709551616", -ERANGE);
	check_refused(strings_parse_duration, "99999999999999999999999ns", -ERANGE);
	check_refused(strings_parse_duration, "1x", -EINVAL);
	check_refused(strings_parse_duration, "s", -EINVAL);
	check_refused(strings_parse_duration, "-1s", -EINVAL);
}

static void test_edit_distance(void **state)
{
	char longest[100];

	(void)state;
	assert_int_equal(strings_edit_distance("", ""), 0);
	assert_int_equal(strings_edit_distance("", "abc"), 3);
	assert_int_equal(strings_edit_distance("abc", ""), 3);
	assert_int_equal(strings_edit_distance("show", "show"), 0);
	assert_int_equal(strings_edit_distance("shwo", "show"), 1);
	assert_int_equal(strings_edit_distance("sho", "show"), 1);
	assert_int_equal(strings_edit_distance("shoow", "show"), 1);
	assert_int_equal(strings_edit_distance("shaw", "show"), 1);
	assert_int_equal(strings_edit_distance("kitten", "sitting"), 3);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_true(strings_edit_distance(longest, longest) == UINT_MAX);
	longest[63] = 0;
	assert_int_equal(strings_edit_distance(longest, longest), 0);
}

static const char *nearest_of(const char *typed)
{
	static const char *const words[] = { "show", "slice", "stat", "check", "anonymize" };
	struct nearest n = { .typed = typed };
	size_t i;

	for (i = 0; i < ARRAY_LEN(words); i++)
		nearest_offer(&n, words[i]);
	return n.word;
}

static void test_nearest(void **state)
{
	(void)state;
	assert_string_equal(nearest_of("shwo"), "show");
	assert_string_equal(nearest_of("start"), "stat");
	assert_string_equal(nearest_of("anon"), "anonymize");
	assert_string_equal(nearest_of("anonimise"), "anonymize");
	assert_null(nearest_of(""));
	assert_null(nearest_of("s"));
	assert_null(nearest_of("rm"));
	assert_null(nearest_of("replay"));
}

/* io */

static void test_io(void **state)
{
	char path[] = "/tmp/test_base.XXXXXX";
	int fd = mkstemp(path);
	struct buf b = { 0 };
	struct err err;
	char text[8];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, "abcdef", 6), 0);
	assert_int_equal(pwrite_full(fd, "XY", 2, 2), 0);
	assert_int_equal(pread_full(fd, text, 3, 1), 3);
	assert_memory_equal(text, "bXY", 3);
	assert_int_equal(pread_full(fd, text, 8, 4), 2);
	assert_int_equal(pread_full(fd, text, 8, UINT64_MAX), -EOVERFLOW);
	assert_int_equal(pwrite_full(fd, text, 8, INT64_MAX), -EFBIG);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(read_full(fd, text, 8), 6);
	assert_int_equal(read_full(fd, text, 8), 0);
	assert_int_equal(read_full(-1, text, 8), -EBADF);
	assert_int_equal(write_full(-1, text, 8), -EBADF);

	buf_puts(&b, ">");
	assert_int_equal(io_read_file(path, 6, &b, &err), 0);
	assert_string_equal(buf_str(&b), ">abXYef");
	assert_int_equal(io_read_file(path, 5, &b, &err), -E2BIG);
	assert_int_equal(b.len, 7);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(io_read_file(path, 5, &b, &err), -ENOENT);
	assert_int_equal(io_read_file("/proc/self/status", 1 << 20, &b, &err), 0);
	assert_true(b.len > 100);
	buf_release(&b);
	close(fd);
}

/* A pipe that takes and gives less than was asked for, and does not wait. */
static void test_io_non_blocking(void **state)
{
	static char sent[300000], got[300000];
	int fds[2];
	pid_t pid;

	(void)state;
	memset(sent, 'p', sizeof(sent));
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(write_full(fds[1], sent, sizeof(sent)) == 0 ? 0 : 1);
	close(fds[1]);
	assert_int_equal(read_full(fds[0], got, sizeof(got)), sizeof(got));
	assert_memory_equal(sent, got, sizeof(got));
	assert_int_equal(read_full(fds[0], got, 1), 0);
	close(fds[0]);
}

/* log */

static void test_log_areas(void **state)
{
	struct err err;
	bool evaluated = false;

	(void)state;
	assert_int_equal(log_set_areas(NULL, &err), 0);
	assert_int_equal(log_mask, 0);
	log_debug(LOG_TRACE, "%d", evaluated = true);
	assert_false(evaluated);
	assert_int_equal(log_set_areas("trace,,order", &err), 0);
	assert_int_equal(log_mask, 1u << LOG_TRACE | 1u << LOG_ORDER);
	assert_int_equal(log_set_areas("trace,ordre", &err), -EINVAL);
	assert_string_equal(err.text, "unknown area 'ordre'; did you mean 'order'?");
	assert_int_equal(log_mask, 1u << LOG_TRACE | 1u << LOG_ORDER);
	assert_int_equal(log_set_areas("all", &err), 0);
	assert_int_equal(log_mask, (1u << LOG_AREA_MAX) - 1);
	assert_int_equal(log_set_areas("", &err), 0);
	assert_int_equal(log_mask, 0);
}

/* progress */

struct fake {
	uint64_t now_ns;
	unsigned int nr_clock, nr_writes;
	struct buf written;
	struct progress_sink sink;
	struct progress progress;
};

static uint64_t fake_now_ns(void *arg)
{
	struct fake *f = arg;

	f->nr_clock++;
	return f->now_ns;
}

static void fake_write(void *arg, const void *p, size_t len)
{
	struct fake *f = arg;

	f->nr_writes++;
	buf_clear(&f->written);
	buf_put(&f->written, p, len);
}

static void fake_begin(struct fake *f, const char *unit)
{
	*f = (struct fake){ .now_ns = 5000 * NS_PER_S };
	f->sink = (struct progress_sink){ fake_now_ns, fake_write, f, 80 };
	progress_begin(&f->progress, &f->sink, "import", unit);
}

static void fake_end(struct fake *f)
{
	progress_end(&f->progress);
	buf_release(&f->written);
}

static void expect_written(struct fake *f, const char *wanted)
{
	assert_string_equal(buf_str(&f->written), wanted);
}

static void test_progress_line(void **state)
{
	struct fake f;

	(void)state;
	fake_begin(&f, "events");
	progress_set_total(&f.progress, 100000);
	progress_add(&f.progress, 1000);
	assert_int_equal(f.nr_writes, 0);
	f.now_ns += NS_PER_S - 1;
	progress_check(&f.progress);
	assert_int_equal(f.nr_writes, 0);
	f.now_ns += 1;
	progress_check(&f.progress);
	expect_written(&f, "import: 1000/100 k events, 1000/s, 1m39s left\r");
	/* Not again at once, but after a tenth of a second. */
	progress_check(&f.progress);
	assert_int_equal(f.nr_writes, 1);
	f.now_ns += 100 * NS_PER_MS;
	f.progress.done = 99000;
	progress_check(&f.progress);
	/* As long as the line before, so that nothing of it stays. */
	expect_written(&f, "import: 99.0 k/100 k events, 90.0 k/s, 11.1 ms left\r");
	f.now_ns += NS_PER_S;
	f.progress.done = 100000;
	progress_check(&f.progress);
	expect_written(&f, "import: 100 k/100 k events, 47.6 k/s               \r");
	progress_end(&f.progress);
	expect_written(&f, "                                    \r");
	assert_int_equal(f.nr_writes, 4);
	/* The end has come; nothing is drawn again. */
	progress_end(&f.progress);
	progress_add(&f.progress, 1);
	f.now_ns += 10 * NS_PER_S;
	progress_check(&f.progress);
	assert_int_equal(f.nr_writes, 4);
	fake_end(&f);
}

static void test_progress_of_bytes(void **state)
{
	struct fake f;

	(void)state;
	fake_begin(&f, NULL);
	f.progress.done = 3 << 20;
	f.now_ns += 2 * NS_PER_S;
	progress_check(&f.progress);
	expect_written(&f, "import: 3.00 MiB, 1.50 MiB/s\r");
	/* More than was announced: the total is not shown. */
	progress_set_total(&f.progress, 1);
	f.now_ns += NS_PER_S;
	progress_check(&f.progress);
	expect_written(&f, "import: 3.00 MiB, 1.00 MiB/s\r");
	progress_set_total(&f.progress, UINT64_MAX);
	f.progress.done = 1;
	f.now_ns += NS_PER_S;
	progress_check(&f.progress);
	expect_written(&f, "import: 1 B/16.0 EiB, 0 B/s, days left\r");
	fake_end(&f);
}

static void test_progress_is_cut(void **state)
{
	struct fake f;

	(void)state;
	fake_begin(&f, "events");
	f.sink.columns = 10;
	f.now_ns += 2 * NS_PER_S;
	progress_check(&f.progress);
	expect_written(&f, "import: 0\r");
	fake_end(&f);
}

static void test_progress_short_task(void **state)
{
	struct fake f;

	(void)state;
	progress_set_total(NULL, 1);
	progress_add(NULL, 1);
	progress_end(NULL);
	fake_begin(&f, "events");
	progress_add(&f.progress, 1);
	progress_end(&f.progress);
	assert_int_equal(f.nr_writes, 0);
	fake_end(&f);
}

/* A million quick calls read the clock rarely; slow ones every time. */
static void test_progress_cost(void **state)
{
	struct fake f;
	unsigned int i;

	(void)state;
	fake_begin(&f, "events");
	for (i = 0; i < 1000000; i++) {
		f.now_ns += 100;
		progress_add(&f.progress, 1);
	}
	assert_true(f.nr_clock < 50);
	for (i = 0; i < 200000; i++) {
		f.now_ns += 1000;
		progress_add(&f.progress, 1);
	}
	f.nr_clock = 0;
	f.nr_writes = 0;
	/* The interval suits the pace before, and must come down soon. */
	for (i = 0; i < 500000; i++) {
		f.now_ns += NS_PER_MS;
		progress_add(&f.progress, 1);
	}
	assert_in_range(f.nr_writes, 4000, 5000);
	assert_in_range(f.nr_clock, 10000, 70000);
	fake_end(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_err_set),
		cmocka_unit_test(test_err_wrap),
		cmocka_unit_test(test_err_is_cut),
		cmocka_unit_test(test_arena),
		cmocka_unit_test(test_buf),
		cmocka_unit_test(test_little_endian),
		cmocka_unit_test(test_varint),
		cmocka_unit_test(test_varint_of_foreign_origin),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_put_bytes),
		cmocka_unit_test(test_put_count),
		cmocka_unit_test(test_put_duration),
		cmocka_unit_test(test_parse_u64),
		cmocka_unit_test(test_parse_size),
		cmocka_unit_test(test_parse_duration),
		cmocka_unit_test(test_edit_distance),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_io),
		cmocka_unit_test(test_io_non_blocking),
		cmocka_unit_test(test_log_areas),
		cmocka_unit_test(test_progress_line),
		cmocka_unit_test(test_progress_of_bytes),
		cmocka_unit_test(test_progress_is_cut),
		cmocka_unit_test(test_progress_short_task),
		cmocka_unit_test(test_progress_cost),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
