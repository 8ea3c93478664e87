/* SPDX-License-Identifier: MIT */
/* What traces of macOS need beyond their rows: paths, fields in brackets, swaps, errors nobody wrote down. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/mem.h"
#include "fsmodel/fsmodel.h"
#include "import/brackets.h"
#include "import/ibench_calls.h"
#include "import/mac_path.h"
#include "model/vocab.h"
#include "replay/calls.h"
#include "scratch.h"

static const char *find_inode(const void *ctx, uint64_t inode)
{
	(void)ctx;
	return inode == 77 ? "/a/b" : NULL;
}

static void test_paths(void **state)
{
	static const char *const pairs[][2] = {
		{ "/a/b", "/a/b" },
		{ "", "" },
		{ "rel", "rel" },
		{ "/a/b/..namedfork/rsrc", "/a/._b" },
		{ "b/..namedfork/rsrc", "._b" },
		{ "/..namedfork/rsrc", "/..namedfork/rsrc" },
		{ "/b/..namedfork/rsrc/..namedfork/rsrc", "/b/..namedfork/._rsrc" },
		{ "/.vol/1/77", "/a/b" },
		{ "/.vol/1/77/x/y", "/a/b/x/y" },
		{ "/.vol/1/77/..namedfork/rsrc", "/a/._b" },
		{ "/.vol/1/2", "/" },
		{ "/.vol/1/2/x", "/x" },
		{ "/.vol/1/78", "/" },
		{ "/.vol/1/78/x", "/" },
		{ "/.vol/", "/" },
		{ "/.vol/1", "/" },
		{ "/.vol/1/x", "/" },
		{ "/.vol/1/99999999999999999999999", "/" },
		{ "/.volume", "/.volume" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(pairs); i++) {
		struct buf out = { 0 };

		mac_path_put(&out, pairs[i][0], strlen(pairs[i][0]), find_inode, NULL);
		assert_string_equal(buf_str(&out), pairs[i][1]);
		buf_release(&out);
	}
}

static int split(const char *line, struct scan_word *fields)
{
	return brackets_split(line, strlen(line), fields, 3, NULL);
}

static void test_brackets(void **state)
{
	struct scan_word f[3];

	(void)state;
	assert_int_equal(split("[a]; [b c]; []; ", f), 3);
	assert_true(scan_word_is(f[0], "a") && scan_word_is(f[1], "b c") && !f[2].len);
	assert_int_equal(split("[x[1];y]; [z]", f), 2);
	assert_true(scan_word_is(f[0], "x[1];y") && scan_word_is(f[1], "z"));
	assert_int_equal(split("[]", f), 1);
	assert_int_equal(split("[a]; [b]; [c]; [d]; ", f), -EBADMSG);
	assert_int_equal(split("", f), -EBADMSG);
	assert_int_equal(split("[", f), -EBADMSG);
	assert_int_equal(split("a]", f), -EBADMSG);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		bool good;
		int64_t value;
	} cases[] = {
		{ "0", true, 0 },
		{ "-1", true, -1 },
		{ "0x10", true, 16 },
		{ "18446744073709551615", true, -1 },
		{ "18446744073709551616", false, 0 },
		{ "-9223372036854775808", false, 0 },
		{ "", false, 0 },
		{ "-", false, 0 },
		{ "0x", false, 0 },
		{ "12a", false, 0 },
		{ " 1", false, 0 },
	};
	int64_t n = 0;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct scan_word w = { cases[i].text, strlen(cases[i].text) };

		assert_int_equal(ibench_number(w, &n), cases[i].good);
		if (cases[i].good)
			assert_int_equal(n, cases[i].value);
	}
}

/* Attributes go to arguments by name: a row that lost one would crash an import. */
static void test_table(void **state)
{
	struct map calls = { 0 };
	unsigned int n;

	(void)state;
	ibench_calls_fill(&calls);
	MAP_EACH (&calls, e) {
		const struct ibench_call *c = e->value;
		const struct row *row = row_by_id(c->row_id);
		struct event ev = { .row = row };

		assert_non_null(row);
		for (n = 0; n < c->nr_attrs; n++)
			if (*c->attrs[n] != 'X')
				assert_non_null(args_find(row, ev.args, c->attrs[n] + 1));
	}
	assert_non_null(ibench_call_find(&calls, (struct scan_word){ "read_nocancel", 13 }));
	assert_null(ibench_call_find(&calls, (struct scan_word){ "_nocancel", 9 }));
	map_release(&calls);
}

static void test_exchange(void **state)
{
	const char *one = scratch_path("one"), *two = scratch_path("two");
	struct stat before, after;

	(void)state;
	scratch_write(one, "1", 1);
	scratch_write(two, "22", 2);
	assert_int_equal(stat(one, &before), 0);
	assert_int_equal(call_exchange_by_link(one, two), 0);
	assert_int_equal(stat(two, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(after.st_nlink, 1);
	assert_int_equal(scratch_size(one), 2);
	assert_int_equal(scratch_size(two), 1);

	errno = 0;
	assert_int_equal(call_exchange_by_link(one, scratch_path("none")), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(stat(one, &after), 0);
	assert_int_equal(after.st_nlink, 1);
}

static void test_unknown_error(void **state)
{
	struct fsmodel_options options = { 0 };
	struct fsmodel *m = fsmodel_new(&options);
	struct event ev = { .row = row_by_id(SC_mac_open), .pid = 1, .tid = 1 };
	struct arena a;

	(void)state;
	assert_string_equal(errno_name(ERRNO_UNKNOWN), "EUNKNOWN");
	arena_init(&a);
	ev.args[0] = value_str(&a, "/nowhere/file");
	ev.args[1] = value_uint(0);
	ev.outcome = (struct outcome){ -1, ERRNO_UNKNOWN };
	assert_non_null(fsmodel_step(m, &ev));
	assert_int_equal(ev.outcome.err, ERRNO_UNKNOWN);

	/* Made now, and so it had not been there: the guess was right. */
	ev.args[0] = value_str(&a, "/file");
	assert_non_null(fsmodel_step(m, &ev));
	ev.args[1] = value_uint(0x200 | 0x800); /* O_CREAT|O_EXCL */
	ev.outcome = (struct outcome){ 3, 0 };
	assert_int_equal(fsmodel_step(m, &ev)->contradiction, CONTRADICTION_NONE);
	/* Now it is there, and no error is foretold: something else went wrong. */
	ev.args[1] = value_uint(0);
	ev.outcome = (struct outcome){ -1, ERRNO_UNKNOWN };
	assert_int_equal(fsmodel_step(m, &ev)->contradiction, CONTRADICTION_NONE);
	fsmodel_free(m);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),	 cmocka_unit_test(test_brackets),
		cmocka_unit_test(test_numbers),	 cmocka_unit_test(test_table),
		cmocka_unit_test(test_exchange), cmocka_unit_test(test_unknown_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
