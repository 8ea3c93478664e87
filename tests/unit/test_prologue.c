/* SPDX-License-Identifier: MIT */
/* Prologues: what calls of thread 0 amount to. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/buf.h"
#include "import/prologue.h"
#include "model/parse.h"
#include "model/print.h"

static struct prologue p;
static struct arena arena;
static struct parser *parser;

static int take(const char *call)
{
	struct line line;

	assert_int_equal(parse_line(parser, call, strlen(call), &arena, &line, NULL), 0);
	return prologue_take(&p, &line.event, NULL);
}

static void expect(const char *const *lines, size_t nr)
{
	struct print_style style = print_human;
	size_t i;

	assert_int_equal(prologue_nr_events(&p), nr);
	for (i = 0; i < nr; i++) {
		struct buf out = { 0 };
		struct event ev;

		prologue_event(&p, i, &arena, &ev);
		print_call(&out, &ev, &style);
		assert_string_equal(buf_str(&out), lines[i]);
		buf_release(&out);
	}
}

static int set_up(void **state)
{
	(void)state;
	prologue_init(&p);
	arena_init(&arena);
	parser = parser_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	parser_free(parser);
	arena_release(&arena);
	prologue_release(&p);
	return 0;
}

static void test_all(void **state)
{
	static const char *const want[] = {
		"found_state(cwd=\"/home/u\")",
		"found_fd(fd=3, path=\"/a\", flags=O_RDWR, offset=77)",
		"found_fd(fd=4, path=\"/home/u/b\", flags=O_RDONLY, offset=0)",
		"found_fd(fd=5, path=\"/tmp/t (deleted)\", flags=O_RDWR|O_APPEND, offset=0)",
		"found_fd(fd=6, flags=O_RDWR, offset=0, mode=S_IFSOCK|0777)",
	};

	(void)state;
	assert_int_equal(take("chdir(path=\"/home/u\") = 0"), 0);
	assert_int_equal(take("open(path=\"/a\", flags=O_RDWR, mode=0) = 3"), 0);
	assert_int_equal(take("lseek(fd=3, offset=77, whence=SEEK_SET) = 77"), 0);
	assert_int_equal(take("openat(dirfd=AT_FDCWD, path=\"b\", flags=O_RDONLY, mode=0) = 4"), 0);
	assert_int_equal(
		take("open(path=\"/tmp/t\", flags=O_RDWR|O_CREAT|O_APPEND, mode=0600) = 5"), 0);
	assert_int_equal(take("unlink(path=\"/tmp/t\") = 0"), 0);
	assert_int_equal(take("socket(domain=AF_UNIX, type=SOCK_STREAM, protocol=0) = 6"), 0);
	expect(want, 5);
	prologue_clear(&p);
	assert_int_equal(prologue_nr_events(&p), 0);
}

static void test_again(void **state)
{
	static const char *const want[] = {
		"found_fd(fd=3, path=\"/b\", flags=O_RDONLY, offset=0)"
	};

	(void)state;
	assert_int_equal(take("open(path=\"/a\", flags=O_RDWR, mode=0) = 3"), 0);
	assert_int_equal(take("open(path=\"/b\", flags=O_RDONLY, mode=0) = 3"), 0);
	expect(want, 1);
}

static void test_nonsense(void **state)
{
	static const char *const bad[] = {
		"chdir(path=\"/x\") = -1 ENOENT",
		"chdir(path=NULL) = 0",
		"chdir(path=\"\") = 0",
		"open(path=NULL, flags=O_RDWR, mode=0) = 3",
		"open(path=\"/a\", flags=O_RDWR, mode=0) = -1 ENOENT",
		"openat(dirfd=7, path=\"b\", flags=O_RDONLY, mode=0) = 4",
		"lseek(fd=3, offset=77, whence=SEEK_SET) = 77",
		"unlink(path=\"/tmp/t\") = 0",
		"read(fd=3, count=4) = 4",
		"close(fd=3) = ?",
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(take(bad[i]), -EBADMSG);
	assert_int_equal(prologue_nr_events(&p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nonsense, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
