/* SPDX-License-Identifier: MIT */
/* What is stored through maps: found where it is, once, by whatever map, and never lost between two of them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "record/page_marks.h"
#include "record/stores.h"

#define PAGE 4096u
#define NR_PAGES 32u
#define BASE UINT64_C(0x10000000) /* maps are told of: they need not be there */

static struct stores *stores;
static int fd;
static struct stat file;
static char text[4096]; /* what was found: "addr:pages " */

static int put(void *of, const struct stored *found)
{
	size_t len = strlen(text);

	(void)of;
	assert_int_equal(found->dev, file.st_dev);
	assert_int_equal(found->ino, file.st_ino);
	assert_int_equal(found->pid, getpid());
	(void)snprintf(text + len, sizeof(text) - len, "%llu@%llu+%zu ",
		       (unsigned long long)found->offset / PAGE,
		       (unsigned long long)(found->addr - BASE) / PAGE,
		       (found->len_bytes + PAGE - 1) / PAGE);
	return 0;
}

static const struct stores_sink sink = { put, NULL };

static int set_up(void **state)
{
	(void)state;
	stores = stores_new();
	fd = memfd_create("stored", MFD_CLOEXEC);
	assert_true(fd >= 0 && !ftruncate(fd, (off_t)NR_PAGES * PAGE) && !fstat(fd, &file));
	text[0] = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	stores_free(stores);
	assert_int_equal(close(fd), 0);
	return 0;
}

/* As a store does. */
static void store(unsigned int page, char c)
{
	assert_int_equal(pwrite(fd, &c, 1, (off_t)page * PAGE + 7), 1);
}

static struct stores_range pages(uint64_t space, unsigned int first, unsigned int nr)
{
	return (struct stores_range){ space, BASE + (uint64_t)first * PAGE,
				      BASE + (uint64_t)(first + nr) * PAGE };
}

/* Pages of the file from `offset` on are mapped at page `first`. */
static void map_pages(uint64_t space, unsigned int first, unsigned int nr, unsigned int offset)
{
	struct stores_range at = pages(space, first, nr);

	assert_int_equal(stores_map(stores, &at, getpid(), fd, (uint64_t)offset * PAGE, true), 1);
}

static void expect_found(const char *wanted)
{
	text[0] = 0;
	assert_int_equal(stores_look_all(stores, &sink), 0);
	assert_string_equal(text, wanted);
}

static void finds_what_changed(void **state)
{
	(void)state;
	store(3, 'a'); /* before there is a map */
	map_pages(1, 0, NR_PAGES, 0);
	expect_found("");
	store(3, 'b');
	store(4, 'c');
	store(9, 'd');
	expect_found("3@3+2 9@9+1 ");
	expect_found("");
	store(4, 0); /* all zeros again */
	expect_found("4@4+1 ");
	/* Cut, and longer again: what was there is gone. */
	assert_int_equal(ftruncate(fd, 3 * PAGE), 0);
	expect_found("");
	assert_int_equal(ftruncate(fd, 20 * PAGE + 5), 0);
	expect_found("");
	store(20, 0);
	assert_int_equal(pwrite(fd, "x", 1, 20 * PAGE + 2), 1);
	expect_found("20@20+1 ");
}

static void finds_it_in_maps_alone(void **state)
{
	(void)state;
	map_pages(1, 100, 4, 10);
	store(9, 'a');
	store(10, 'b');
	store(13, 'c');
	store(14, 'd');
	expect_found("10@100+1 13@103+1 ");
}

static void follows_maps(void **state)
{
	struct stores_range from, to;

	(void)state;
	map_pages(1, 0, 16, 0);
	from = pages(1, 4, 4); /* a hole in it */
	stores_unmap(stores, &from);
	store(3, 'a');
	store(5, 'b');
	store(8, 'c');
	expect_found("3@3+1 8@8+1 ");
	from = pages(1, 8, 8);
	to = pages(1, 200, 10);
	stores_move(stores, &from, &to, false);
	store(8, 'd');
	store(17, 'e'); /* it is longer there */
	expect_found("8@200+1 17@209+1 ");
	stores_drop(stores, 1);
	assert_false(stores_has_maps(stores));
}

/* What is stored through one map while another comes and goes. */
static void loses_nothing_between_maps(void **state)
{
	(void)state;
	map_pages(1, 0, 4, 4);
	store(5, 'a');
	store(20, 'b');
	map_pages(2, 100, NR_PAGES, 0); /* what was stored to page 5 is not known yet */
	expect_found("5@1+1 ");
	store(5, 'c');
	store(20, 'd');
	stores_drop(stores, 1);
	expect_found("5@105+1 20@120+1 ");
}

static void follows_forks(void **state)
{
	struct stores_range at = pages(2, 0, NR_PAGES);

	(void)state;
	map_pages(1, 0, NR_PAGES, 0);
	stores_fork(stores, 1, 2, getpid());
	stores_drop(stores, 1);
	store(1, 'a');
	text[0] = 0;
	assert_int_equal(stores_look_at(stores, &at, &sink), 0);
	assert_string_equal(text, "1@1+1 ");
	assert_true(stores_has_file(stores, file.st_dev, file.st_ino));
	stores_drop(stores, 2);
	assert_false(stores_has_file(stores, file.st_dev, file.st_ino));
}

/* A map for reading counts as soon as it may be written to. */
static void waits_for_permission(void **state)
{
	struct stores_range at = pages(1, 0, NR_PAGES);

	(void)state;
	assert_int_equal(stores_map(stores, &at, getpid(), fd, 0, false), 1);
	store(1, 'a');
	expect_found("");
	stores_allow(stores, &at);
	expect_found("");
	store(2, 'b');
	expect_found("2@2+1 ");
}

static void leaves_others_alone(void **state)
{
	struct stores_range at = pages(1, 0, 1);
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(stores_map(stores, &at, getpid(), ends[0], 0, true), 0);
	assert_true(stores_map(stores, &at, getpid(), 12345, 0, true) < 0);
	assert_false(stores_has_maps(stores));
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static int refuse(void *of, const struct stored *found)
{
	(void)of;
	(void)found;
	return -ENOSPC;
}

static void ends_with_its_sink(void **state)
{
	const struct stores_sink full = { refuse, NULL };

	(void)state;
	map_pages(1, 0, NR_PAGES, 0);
	store(1, 'a');
	store(5, 'b');
	assert_int_equal(stores_look_all(stores, &full), -ENOSPC);
}

/* So large that it is marked, mapped for real. */
#define NR_LARGE (33u << 8)

static char *map_large(void)
{
	struct stores_range at = pages(1, 0, NR_LARGE);
	char *p;

	assert_int_equal(ftruncate(fd, (off_t)NR_LARGE * PAGE), 0);
	assert_int_equal(fallocate(fd, 0, 0, (off_t)NR_LARGE * PAGE), 0);
	p = mmap((void *)BASE, (size_t)NR_LARGE * PAGE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	assert_ptr_equal(p, (void *)BASE);
	assert_int_equal(stores_map(stores, &at, getpid(), fd, 0, true), 1);
	assert_true(stores_awaits_marks(stores, 1));
	return p;
}

static bool is_lost(void)
{
	uint64_t bytes;

	return stores_take_lost(stores, &bytes);
}

static void finds_marks(void **state)
{
	char *p = map_large();
	int uffd = (int)syscall(SYS_userfaultfd, PAGE_MARKS_FLAGS);

	(void)state;
	if (!stores_give_marks(stores, 1, getpid(), uffd)) {
		assert_int_equal(munmap(p, (size_t)NR_LARGE * PAGE), 0);
		skip(); /* an old kernel, or one that does not allow it */
	}
	expect_found("");
	p[3 * PAGE] = 'a';
	p[5 * PAGE + 9] = 'b';
	p[4 * PAGE] = 'c';
	p[(NR_LARGE - 1) * PAGE] = 'd';
	store(9, 'e'); /* by a call: it would differ, but is not marked */
	expect_found("3@3+3 8447@8447+1 ");
	expect_found("");
	p[3 * PAGE] = 'a'; /* the same again */
	expect_found("3@3+1 ");
	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	p[2 * PAGE] = 'f';
	expect_found("2@2+1 ");
	text[0] = 0;
	p[1 * PAGE] = 'g';
	assert_int_equal(stores_look_last(stores, 1, &sink), 0);
	assert_string_equal(text, "1@1+1 ");
	assert_int_equal(stores_look_ended(stores, 1, &sink), 0);
	assert_false(is_lost());
	stores_goes_on(stores, 1);
	assert_int_equal(stores_look_ended(stores, 1, &sink), 0);
	assert_true(is_lost()); /* it ended without a last look */
	assert_int_equal(munmap(p, (size_t)NR_LARGE * PAGE), 0);
}

/* Before they are given up, and after. */
static void goes_on_without_marks(void **state)
{
	char *p = map_large();
	int uffd = (int)syscall(SYS_userfaultfd, PAGE_MARKS_FLAGS);
	bool has_marks = stores_give_marks(stores, 1, getpid(), uffd);

	(void)state;
	p[PAGE] = 'a';
	text[0] = 0;
	assert_int_equal(stores_refuse_marks(stores, 1, &sink), 0);
	if (!has_marks)
		assert_int_equal(stores_look_all(stores, &sink), 0);
	assert_string_equal(text, "1@1+1 ");
	assert_false(stores_has_marks(stores, 1));
	expect_found("");
	p[7 * PAGE] = 'b';
	expect_found("7@7+1 ");
	assert_false(stores_awaits_marks(stores, 1));
	assert_int_equal(munmap(p, (size_t)NR_LARGE * PAGE), 0);
}

/* Of something else than a userfaultfd no marks are expected. */
static void refuses_other_descriptors(void **state)
{
	char *p = map_large();

	(void)state;
	assert_false(stores_give_marks(stores, 1, getpid(), dup(fd)));
	p[7 * PAGE] = 'b';
	expect_found("7@7+1 ");
	assert_int_equal(munmap(p, (size_t)NR_LARGE * PAGE), 0);
}

int main(void)
{
#define STORES_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		STORES_TEST(finds_what_changed),
		STORES_TEST(finds_it_in_maps_alone),
		STORES_TEST(follows_maps),
		STORES_TEST(loses_nothing_between_maps),
		STORES_TEST(follows_forks),
		STORES_TEST(waits_for_permission),
		STORES_TEST(leaves_others_alone),
		STORES_TEST(ends_with_its_sink),
		STORES_TEST(finds_marks),
		STORES_TEST(goes_on_without_marks),
		STORES_TEST(refuses_other_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
