/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "event_text.h"
#include "report/stats.h"

static struct fdpaths *paths;
static struct stats *stats;

static int setup(void **state)
{
	paths = fdpaths_new(NULL);
	stats = stats_new();
	return event_text_setup(state);
}

static int teardown(void **state)
{
	stats_free(stats);
	fdpaths_free(paths);
	return event_text_teardown(state);
}

static void add(const char *text)
{
	struct event ev = event_from_text(text);

	stats_add(stats, &ev, paths);
}

static const struct stats_file *file(const char *path)
{
	const struct stats_file *f = map_get(&stats->files.by_path, path, strlen(path));

	if (!f)
		fail_msg("%s was not counted", path);
	return f;
}

static void test_sums(void **state)
{
	const struct stats_call *reads;

	(void)state;
	add("1/1 #1 1000+100 open(path=\"/a\", flags=O_RDONLY, mode=0) = 3");
	add("1/1 #2 2000+200 read(fd=3, buf=\"abc\", count=4096) = 3");
	add("1/1 #3 3000+400 read(fd=7, count=4096) = -1 EBADF");
	add("2/2 #4 3500+10 write(fd=3, buf=\"ab\", count=2) = 2");
	assert_int_equal(stats->nr_events, 4);
	assert_int_equal(stats->nr_threads, 2);
	assert_int_equal(stats->nr_processes, 2);
	assert_int_equal(stats->bytes_read, 3);
	assert_int_equal(stats->bytes_written, 2);
	assert_int_equal(stats->first_ns, 1000);
	assert_int_equal(stats->last_ns, 3510);
	assert_int_equal(stats->errors[EBADF], 1);
	reads = stats->calls[SC_read];
	assert_int_equal(reads->count, 2);
	assert_int_equal(reads->errors, 1);
	assert_int_equal(reads->bytes, 3);
	assert_int_equal(reads->time_ns, 600);
	assert_int_equal(reads->latency_ns.max, 400);
	assert_int_equal(stats->classes[C_DATA].count, 3);
	/* A failed read has no size. */
	assert_int_equal(stats->read_sizes.count, 1);
	assert_int_equal(stats->gaps_ns.count, 3);
	assert_int_equal(stats->gaps_ns.min, 500);
}

static void test_time_of_a_thread(void **state)
{
	const struct stats_thread *t;

	(void)state;
	add("1/1 #1 1000+100 read(fd=3, buf=\"\", count=1) = 0 {cpu=50}");
	add("1/1 #2 2000+1000 poll(fds=[], nfds=0, timeout=1) = 0 {held=300, cpu=60}");
	/* What happens while it computes is no call. */
	add("1/1 #3 3200+50 page_fault(addr=0x1000)");
	add("1/1 #4 3500+500 read(fd=3, buf=\"\", count=1) = 0 {held=900, cpu=70}");
	t = stats->threads[0];
	assert_int_equal(t->nr_events, 4);
	assert_int_equal(t->io_ns, 600);
	assert_int_equal(t->wait_ns, 1000);
	/* 900 - 300 before the poll; 500 before the last read, which was held longer than that. */
	assert_int_equal(t->compute_ns, 600);
	assert_int_equal(t->held_ns, 1200);
	assert_int_equal(t->cpu_ns, 70);
}

static void test_unknown_durations(void **state)
{
	(void)state;
	add("1/1 #1 1000+100 read(fd=3, buf=\"\", count=1) = 0 {flags=NO_DURATION}");
	add("1/1 #2 2000+100 read(fd=3, count=1) = ?");
	assert_int_equal(stats->calls[SC_read]->count, 2);
	assert_int_equal(stats->calls[SC_read]->time_ns, 0);
	assert_int_equal(stats->calls[SC_read]->latency_ns.count, 0);
}

static void test_files(void **state)
{
	(void)state;
	add("1/1 #1 1000+10 open(path=\"/a\", flags=O_RDONLY, mode=0) = 3");
	add("1/1 #2 2000+10 open(path=\"/a\", flags=O_RDONLY, mode=0) = 4");
	add("1/1 #3 3000+10 open(path=\"/b\", flags=O_WRONLY, mode=0) = 5");
	add("1/1 #4 4000+10 read(fd=3, buf=\"abc\", count=3) = 3");
	add("1/1 #5 5000+10 read(fd=4, buf=\"de\", count=3) = 2");
	add("1/1 #6 6000+10 sendfile(out_fd=5, in_fd=3, offset=NULL, count=100) = 7");
	add("1/1 #7 7000+10 close(fd=3) = 0");
	add("1/1 #8 8000+10 flock(fd=4, op=LOCK_EX) = 0");
	assert_int_equal(file("/a")->opens, 2);
	assert_int_equal(file("/a")->reads, 3);
	assert_int_equal(file("/a")->bytes_read, 12);
	assert_int_equal(file("/a")->bytes_written, 0);
	assert_int_equal(file("/b")->writes, 1);
	assert_int_equal(file("/b")->bytes_written, 7);
	assert_int_equal(file("/b")->bytes_read, 0);
	/* Two opens, two reads, the copy and the close; a lock is waited for. */
	assert_int_equal(file("/a")->time_ns, 60);
	assert_int_equal(file("/b")->time_ns, 20);
}

static void test_many_files_are_one_sum(void **state)
{
	struct event open =
		event_from_text("1/1 #1 1000+10 open(path=\"/x\", flags=O_RDONLY, mode=0) = 3");
	struct event read = event_from_text("1/1 #2 1000+10 read(fd=3, buf=\"abc\", count=3) = 3");
	char path[32];
	struct data data = { .bytes = (const uint8_t *)path };
	unsigned int i;

	(void)state;
	open.args[0].data = &data;
	for (i = 0; i < STATS_FILES_MAX + 5; i++) {
		data.len_bytes = data.kept_bytes =
			(uint64_t)snprintf(path, sizeof(path), "/f%u", i);
		open.enter_ns = read.enter_ns = 1000 + i;
		open.exit_ns = read.exit_ns = 1000 + i;
		stats_add(stats, &open, paths);
		stats_add(stats, &read, paths);
	}
	assert_int_equal(stats->files.by_path.nr_live, STATS_FILES_MAX);
	assert_int_equal(stats->files.nr_others, 5);
	assert_int_equal(stats->files.others.reads, 5);
	assert_int_equal(stats->files.others.bytes_read, 15);
	assert_int_equal(stats->bytes_read, 3 * (STATS_FILES_MAX + 5));
}

static void test_streams_of_any_number(void **state)
{
	struct event ev = event_from_text("1/1 #1 1000+10 read(fd=3, buf=\"\", count=3) = 0");

	(void)state;
	ev.stream = 5000;
	stats_add(stats, &ev, NULL);
	ev.stream = 3;
	stats_add(stats, &ev, NULL);
	assert_int_equal(stats->nr_threads, 2);
	assert_int_equal(stats->nr_processes, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sums),
		TEST(test_time_of_a_thread),
		TEST(test_unknown_durations),
		TEST(test_files),
		TEST(test_many_files_are_one_sum),
		TEST(test_streams_of_any_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
