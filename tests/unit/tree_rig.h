/* SPDX-License-Identifier: MIT */
/*
 * What the tests of recorded trees share: files of the test, calls that touch them,
 * and what is then in the trace. Included behind cmocka.h, once in a program.
 */
#ifndef UNIT_TREE_RIG_H
#define UNIT_TREE_RIG_H

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/varint.h"
#include "model/print.h"
#include "record/tree.h"
#include "trace_rig.h"

enum {
	INITIAL,
	FINAL,

	LISTED = 1,
	SPECIAL = 2,
	MISSING = 4,
	CONTENT_KEPT = 16,
	UNREADABLE = 32,
};

/* Arguments of tree_entry, fields of tree_stat. */
enum {
	TREE,
	PATH,
	STAT,
	TARGET,
	XATTRS,
	CONTENT,
	HASH,
	FLAGS,

	TYPE = 0,
	MODE = 1,
	SIZE = 4,
	NLINK = 7,
};

static struct tree *tree;
static char top[PATH_MAX]; /* of the test's files */
static VEC(struct item) items;

static int remove_one(const char *p, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(p);
}

static int tree_setup(void **state)
{
	static const struct tree_options options = { .content_max_bytes = 1000 };
	char name[] = "/tmp/reprise-tree-XXXXXX";

	(void)rig_setup(state);
	assert_non_null(mkdtemp(name));
	assert_non_null(realpath(name, top));
	assert_int_equal(chdir(top), 0);
	begin();
	tree = tree_new(feed, &options);
	return 0;
}

static int tree_teardown(void **state)
{
	tree_free(tree);
	VEC_RELEASE(&items);
	assert_int_equal(chdir("/"), 0);
	(void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return rig_teardown(state);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

/* Doing. */

static void write_file(const char *name, const char *content)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	(void)close(fd);
}

static const char *below(const char *name)
{
	static char paths[8][2 * PATH_MAX];
	static unsigned int next_path;
	char *p = paths[next_path++ % 8];

	(void)snprintf(p, sizeof(paths[0]), "%s/%s", top, name);
	return p;
}

/* The call that was touched last has this outcome. */
static void leave(int failed)
{
	tree_leave(tree, getpid(), failed);
}

/* openat(dirfd, path, flags), which succeeds; but what it does to the file comes later. */
static void touch_at(int dirfd, const char *name, int flags)
{
	const struct row *row = row_by_id(SC_openat);
	struct value args[ROW_ARGS_MAX] = { value_int(dirfd), value_str(&arena, name),
					    value_uint((uint64_t)flags), value_uint(0) };

	leave(0);
	OK(tree_touch(tree, getpid(), row, args, 5));
	leave(0);
}

static void touch(const char *name)
{
	touch_at(AT_FDCWD, name, 0);
}

/* Calls with one or two paths in front; they are under way until the next one, or leave(). */
static inline void touch_call(enum row_id id, const char *a, const char *b)
{
	struct value args[ROW_ARGS_MAX] = { value_str(&arena, a),
					    b ? value_str(&arena, b) : value_int(0) };

	leave(0);
	OK(tree_touch(tree, getpid(), row_by_id((unsigned int)id), args, 5));
}

/* Any call of the thread: the one before is over. */
static inline void settle(void)
{
	struct value args[ROW_ARGS_MAX] = { value_int(0) };

	leave(0);
	OK(tree_touch(tree, getpid(), row_by_id(SC_close), args, 5));
}

/* Reading back. */

static struct data *copy_data(const struct data *given)
{
	struct data *d = arena_alloc(&arena, sizeof(*d));
	size_t len = data_nr_pieces(given) * sizeof(*d->refs);

	*d = *given;
	if (d->bytes)
		d->bytes = (uint8_t *)arena_memdup0(&arena, d->bytes, d->kept_bytes);
	if (d->refs)
		d->refs = memcpy(arena_alloc(&arena, len), d->refs, len);
	return d;
}

/* Values are valid only until the next record: what the tests ask for is kept. */
static void keep(const struct item *item)
{
	struct item copy = *item;
	unsigned int i;

	for (i = 0; i < ROW_ARGS_MAX; i++) {
		struct value *v = &copy.args[i];

		if (v->type == VALUE_DATA) {
			v->data = copy_data(v->data);
		} else if (v->type == VALUE_STRUCT) {
			size_t len = sizeof(struct fields) + v->count * sizeof(*v);

			v->fields = memcpy(arena_alloc(&arena, len), v->fields, len);
		} else if (v->type == VALUE_LIST) {
			v->items = NULL; /* only counted */
		}
	}
	VEC_PUSH(&items, copy);
}

static void finish(void)
{
	struct trace_items *it;
	struct item *item;

	leave(0);
	OK(tree_finish(tree, 9, true));
	end();
	assert_whole();
	reopen();
	OK(trace_items_open(trace, BLOCK_TREE, &it, &err));
	while (trace_items_next(it, &item, &err) > 0)
		keep(item);
	trace_items_close(it);
}

static bool is_text(const struct value *v, const char *s)
{
	return v->type == VALUE_DATA && v->data->len_bytes == strlen(s) &&
	       ((v->data->bytes && !memcmp(v->data->bytes, s, strlen(s))) ||
		(!v->data->bytes && hash_equal(v->data->refs[0].hash, hash_bytes(s, strlen(s)))));
}

static unsigned int count_entries(int which, const char *name)
{
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < items.len; i++)
		nr += items.items[i].row->id == REC_tree_entry &&
		      items.items[i].args[TREE].i == which &&
		      is_text(&items.items[i].args[PATH], name);
	return nr;
}

/* All that is said of the path: what is said later adds to it. */
static const struct item *entry(int which, const char *name)
{
	struct item *all = NULL;
	unsigned int k;
	size_t i;

	for (i = 0; i < items.len; i++) {
		const struct item *item = &items.items[i];

		if (item->row->id != REC_tree_entry || item->args[TREE].i != which ||
		    !is_text(&item->args[PATH], name))
			continue;
		if (!all) {
			all = arena_alloc(&arena, sizeof(*all));
			*all = *item;
			continue;
		}
		for (k = 0; k < FLAGS; k++) {
			if (item->args[k].type != VALUE_NONE)
				all->args[k] = item->args[k];
		}
		all->args[FLAGS].u |= item->args[FLAGS].u;
	}
	if (!all)
		fail_msg("no entry for %s", name);
	return all;
}

static inline uint64_t flags_of(int which, const char *name)
{
	return entry(which, name)->args[FLAGS].u;
}

static inline int64_t stat_of(int which, const char *name, unsigned int field)
{
	const struct value *v = value_field(&entry(which, name)->args[STAT], field);

	assert_non_null(v);
	return v->i;
}

static inline bool has_hash(const struct item *item, const char *content)
{
	XXH128_hash_t h = XXH3_128bits(content, strlen(content));
	uint8_t expected[16];

	put_le64(expected, h.low64);
	put_le64(expected + 8, h.high64);
	return item->args[HASH].type == VALUE_DATA &&
	       !memcmp(item->args[HASH].data->bytes, expected, 16);
}

#endif
