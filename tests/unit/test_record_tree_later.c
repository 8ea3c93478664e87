/* SPDX-License-Identifier: MIT */
/* Contents that are read while the program goes on: what is in the trace is what was there before. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "tree_rig.h"

#define LARGE_BYTES 300000u
/* Holes, so that they are on no disk, but have to be read: it takes much longer than the test. */
#define NR_BUSY 24u
#define BUSY_BYTES ((off_t)16 << 20)

static char large[LARGE_BYTES + 1], other[LARGE_BYTES + 1];

static int later_setup(void **state)
{
	struct tree_options options = { .content_max_bytes = (uint64_t)64 << 20 };

	(void)tree_setup(state);
	tree_free(tree);
	options.later = writer;
	tree = tree_new(feed, &options);
	memset(large, 'b', LARGE_BYTES);
	memset(other, 'x', LARGE_BYTES);
	return 0;
}

#define LATER_TEST(name) cmocka_unit_test_setup_teardown(name, later_setup, tree_teardown)

/* The thread has enough to do for a while. */
static void keep_busy(void)
{
	char name[32];
	unsigned int i;
	int fd;

	for (i = 0; i < NR_BUSY; i++) {
		(void)snprintf(name, sizeof(name), "busy%u", i);
		fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		assert_true(fd >= 0);
		OK(ftruncate(fd, BUSY_BYTES));
		(void)close(fd);
		touch(name);
	}
}

static bool is_plain(const char *name, int flags)
{
	struct value args[ROW_ARGS_MAX] = { value_int(AT_FDCWD), value_str(&arena, name),
					    value_uint((uint64_t)flags), value_uint(0) };

	return tree_is_plain(tree, getpid(), row_by_id(SC_openat), args) == TREE_PLAIN;
}

static void assert_first_content(const char *name)
{
	const struct item *e = entry(INITIAL, below(name));

	assert_int_equal(e->args[FLAGS].u, CONTENT_KEPT);
	assert_true(has_hash(e, large));
	assert_true(is_text(&e->args[CONTENT], large));
}

static void test_content_comes_later(void **state)
{
	(void)state;
	keep_busy();
	write_file("f", large);
	touch("f");
	finish();
	/* What it is, and then what it holds. */
	assert_int_equal(count_entries(INITIAL, below("f")), 2);
	assert_first_content("f");
	assert_true(has_hash(entry(FINAL, below("f")), large));
	assert_int_equal(stat_of(FINAL, below("f"), SIZE), LARGE_BYTES);
	assert_int_equal(flags_of(INITIAL, below("busy7")), CONTENT_KEPT);
	assert_int_equal(entry(INITIAL, below("busy7"))->args[CONTENT].data->len_bytes, BUSY_BYTES);
}

static void test_opened_to_be_written(void **state)
{
	(void)state;
	write_file("f", large);
	write_file("small", "s");
	keep_busy();
	touch("f");
	touch("small");
	/* The agent must not take it for known, but may what else there is. */
	assert_false(is_plain("f", O_RDONLY));
	assert_true(is_plain("small", O_RDONLY));
	assert_true(is_plain("none", O_RDWR | O_CREAT));
	touch_at(AT_FDCWD, "f", O_RDWR);
	write_file("f", other);
	finish();
	assert_first_content("f");
	assert_true(has_hash(entry(FINAL, below("f")), other));
}

static void test_opened_to_be_cut(void **state)
{
	(void)state;
	write_file("f", large);
	keep_busy();
	touch("f");
	touch_at(AT_FDCWD, "f", O_RDONLY | O_TRUNC);
	write_file("f", other);
	finish();
	assert_first_content("f");
}

static void test_cut_by_name(void **state)
{
	(void)state;
	write_file("f", large);
	keep_busy();
	touch("f");
	touch_call(SC_truncate, "f", NULL);
	write_file("f", other);
	finish();
	assert_first_content("f");
}

static void test_written_by_another_name(void **state)
{
	(void)state;
	write_file("f", large);
	OK(link("f", "g"));
	OK(symlink("g", "s"));
	keep_busy();
	touch("f");
	touch_at(AT_FDCWD, "s", O_WRONLY);
	write_file("s", other);
	finish();
	assert_first_content("f");
}

/* Its name is gone, so the text of the link does not say which file that is. */
static void test_written_by_descriptor(void **state)
{
	char name[64];
	int fd;

	(void)state;
	write_file("f", large);
	fd = open("f", O_RDONLY | O_CLOEXEC);
	keep_busy();
	touch("f");
	OK(unlink("f"));
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	touch_at(AT_FDCWD, name, O_RDWR);
	write_file(name, other);
	finish();
	(void)close(fd);
	assert_first_content("f");
}

/* It is read although no name leads there any more. */
static void test_removed(void **state)
{
	(void)state;
	write_file("f", large);
	keep_busy();
	touch("f");
	touch_call(SC_unlink, "f", NULL);
	OK(unlink("f"));
	settle();
	finish();
	/* That its number of links is another one does not count. */
	assert_first_content("f");
	assert_int_equal(flags_of(FINAL, below("f")), MISSING);
}

static void test_opened_to_be_written_first(void **state)
{
	(void)state;
	write_file("f", large);
	keep_busy();
	touch_at(AT_FDCWD, "f", O_RDWR);
	write_file("f", other);
	finish();
	assert_int_equal(count_entries(INITIAL, below("f")), 2);
	assert_first_content("f");
}

/* From a directory that is gone no walk begins, but the kernel finds the way up. */
static void test_written_from_nowhere(void **state)
{
	(void)state;
	write_file("f", large);
	OK(mkdir("gone", 0755));
	keep_busy();
	touch(below("f"));
	touch_call(SC_chdir, "gone", NULL);
	OK(chdir("gone"));
	touch_call(SC_rmdir, below("gone"), NULL);
	OK(rmdir(below("gone")));
	settle();
	touch_at(AT_FDCWD, "../f", O_WRONLY);
	write_file(below("f"), other);
	OK(chdir(top));
	finish();
	assert_first_content("f");
}

/* With that, the path begins at the descriptor. */
static void test_resolved_otherwise(void **state)
{
	struct value how = value_struct(&arena, 7);
	struct value args[ROW_ARGS_MAX] = { value_int(open(".", O_RDONLY | O_CLOEXEC)),
					    value_str(&arena, "/f"), how };

	(void)state;
	how.fields->items[0] = value_uint(O_WRONLY);
	how.fields->items[1] = value_uint(0);
	how.fields->items[2] = value_uint(RESOLVE_IN_ROOT);
	write_file("f", large);
	keep_busy();
	touch("f");
	OK(tree_touch(tree, getpid(), row_by_id(SC_openat2), args, 5));
	write_file("f", other);
	(void)close((int)args[0].i);
	finish();
	assert_first_content("f");
}

/* A thread is in a call by which the name will lead to the file. */
static void test_written_while_names_move(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_str(&arena, "f"), value_str(&arena, "s") };

	(void)state;
	write_file("f", large);
	keep_busy();
	touch("f");
	OK(tree_touch(tree, getppid(), row_by_id(SC_symlink), args, 5));
	touch_at(AT_FDCWD, "s", O_WRONLY);
	write_file("f", other);
	finish();
	assert_first_content("f");
}

/* Requests of io_uring are made at any time: from the first on, all is read at once. */
static void test_uring(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_uint(8) };

	(void)state;
	write_file("f", large);
	write_file("g", large);
	keep_busy();
	touch("f");
	OK(tree_touch(tree, getpid(), row_by_id(SC_io_uring_setup), args, 5));
	touch("g");
	write_file("f", other);
	write_file("g", other);
	finish();
	assert_first_content("f");
	assert_first_content("g");
	assert_int_equal(count_entries(INITIAL, below("g")), 2);
}

/* The recording ends, and the program goes on unseen. */
static void test_read_at_once(void **state)
{
	(void)state;
	write_file("f", large);
	keep_busy();
	touch("f");
	tree_read_at_once(tree);
	write_file("f", other);
	finish();
	assert_first_content("f");
}

/* A recording that is given up does not wait. */
static void test_given_up(void **state)
{
	(void)state;
	keep_busy();
	tree_free(tree);
	tree = NULL;
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LATER_TEST(test_content_comes_later),
		LATER_TEST(test_opened_to_be_written),
		LATER_TEST(test_opened_to_be_cut),
		LATER_TEST(test_cut_by_name),
		LATER_TEST(test_written_by_another_name),
		LATER_TEST(test_written_by_descriptor),
		LATER_TEST(test_removed),
		LATER_TEST(test_opened_to_be_written_first),
		LATER_TEST(test_written_from_nowhere),
		LATER_TEST(test_resolved_otherwise),
		LATER_TEST(test_written_while_names_move),
		LATER_TEST(test_uring),
		LATER_TEST(test_read_at_once),
		LATER_TEST(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
