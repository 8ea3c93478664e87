/* SPDX-License-Identifier: MIT */
/*
 * Events that no kernel ever gave: every row with random arguments, in a name
 * space so small that they meet, in every mode of the model. Nothing may crash,
 * hang or leak (with a sanitizer), and what stays is bounded.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "fsmodel/fsmodel.h"
#include "random_event.h"

#define NR_EVENTS 200000

static const char *random_path(struct random *r)
{
	static const char *const names[] = { "a", "b",	  "c",	  ".",	"..",
					     "l", "proc", "self", "fd", "3" };
	static char path[64];
	unsigned int nr = 1 + (unsigned int)random_below(r, 4), n;

	path[0] = 0;
	for (n = 0; n < nr; n++) {
		if (n || random_below(r, 2))
			strncat(path, "/", sizeof(path) - strlen(path) - 1);
		strncat(path, names[random_below(r, 10)], sizeof(path) - strlen(path) - 1);
	}
	return path;
}

/* Mostly something that leads somewhere. */
static void tame(struct random *r, struct event *ev)
{
	unsigned int n;

	for (n = 0; n < ev->row->nr_args; n++) {
		const struct arg *arg = &ev->row->args[n];
		const char *path;

		if (arg->kind == KIND_PATH && random_below(r, 8)) {
			path = random_path(r);
			ev->args[n] =
				value_str(r->arena, arena_memdup0(r->arena, path, strlen(path)));
		}
		if ((arg->kind == KIND_FD || arg->kind == KIND_DIRFD) && random_below(r, 8))
			ev->args[n] = value_int((int64_t)random_below(r, 8) - 1);
		if (arg->kind == KIND_DIRFD && random_below(r, 3))
			ev->args[n] = value_int(-100);
	}
	if (random_below(r, 3))
		ev->outcome = (struct outcome){ .ret = (int64_t)random_below(r, 10) };
	else if (random_below(r, 2))
		ev->outcome = (struct outcome){ .ret = -1, .err = 1 + (int)random_below(r, 40) };
	ev->pid = 1 + (uint32_t)random_below(r, 3);
	ev->tid = ev->pid + 10 * (uint32_t)random_below(r, 2);
}

static int count_item(void *arg, const struct item *item)
{
	(void)item;
	++*(unsigned int *)arg;
	return 0;
}

static void run(struct fsmodel_options options, uint64_t seed)
{
	struct random r = { .state = seed };
	struct fsmodel *m;
	struct arena a;
	struct buf name = { 0 };
	unsigned int n, nr_items = 0;
	size_t at;

	arena_init(&a);
	r.arena = &a;
	options.max_absent = 1000;
	m = fsmodel_new(&options);
	for (n = 0; n < NR_EVENTS; n++) {
		const struct row *row = NULL;
		const struct facts *facts;
		struct event ev;

		arena_reset(&a);
		while (!row)
			row = row_by_id((unsigned int)random_below(&r, 2200));
		random_event(&r, row, &ev);
		tame(&r, &ev);
		(void)fsmodel_fits(m, &ev);
		facts = fsmodel_step(m, &ev);
		for (at = 0; at < facts->touches.len; at++) {
			buf_clear(&name);
			fsmodel_res_name(m, facts->touches.items[at].res, &name);
			assert_true(facts->touches.items[at].how & TOUCH_USE);
		}
	}
	assert_int_equal(fsmodel_initial_tree(m, count_item, &nr_items), 0);
	assert_true(fsmodel_totals(m).nr_absent <= 1001);
	fsmodel_free(m);
	arena_release(&a);
	buf_release(&name);
}

static void test_known(void **state)
{
	(void)state;
	run((struct fsmodel_options){ .tree_known = true }, 1);
}

static void test_unknown(void **state)
{
	(void)state;
	run((struct fsmodel_options){ .uid = 1000, .gid = 1000 }, 2);
}

static void test_execute(void **state)
{
	(void)state;
	run((struct fsmodel_options){ .tree_known = true, .execute = true }, 3);
}

/* Trees from a file that lies. */
static void test_trees(void **state)
{
	struct fsmodel_options options = { .tree_known = true };
	struct random r = { .state = 4 };
	struct fsmodel *m = fsmodel_new(&options);
	struct arena a;
	unsigned int n;

	(void)state;
	arena_init(&a);
	r.arena = &a;
	for (n = 0; n < NR_EVENTS; n++) {
		const struct row *row =
			row_by_id(random_below(&r, 8) ? REC_tree_entry : REC_tree_mount);
		struct event ev;
		struct item item = { .row = row };

		arena_reset(&a);
		random_event(&r, row, &ev);
		tame(&r, &ev);
		memcpy(item.args, ev.args, sizeof(item.args));
		fsmodel_add_tree(m, &item);
	}
	fsmodel_free(m);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_execute),
		cmocka_unit_test(test_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
