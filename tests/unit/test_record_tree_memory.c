/* SPDX-License-Identifier: MIT */
/* The trees of a recording with so many names that they do not fit memory. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "model/blobmap.h"
#include "record/tree_inside.h"
#include "tree_rig.h"

#define NR_NAMES 30000u
#define NAME_BYTES 200
#define MEMORY_BYTES (64 << 10)
/* Of these, that are there at the start and at the end: one of so many. */
#define FIRST_STEP 100
#define LAST_STEP 70

static void begin_tree(uint64_t memory_bytes, const char *dir)
{
	struct tree_options options = { .content_max_bytes = 1000,
					.memory_bytes = memory_bytes,
					.scratch_dir = dir };

	tree_free(tree);
	tree = tree_new(feed, &options);
}

static const char *name_of(unsigned int i)
{
	static char name[NAME_BYTES + 1];

	(void)snprintf(name, sizeof(name), "d/%0*u", NAME_BYTES - 2, i);
	return name;
}

/* How many entries of the tree, of distinct names, say what they should. */
static unsigned int count_right(int which, unsigned int step)
{
	struct blob_map names = { 0 };
	unsigned int nr = 0, number;
	size_t i;
	bool is_new;

	for (number = 0; number < NR_NAMES; number++) {
		const char *name = below(name_of(number));

		blob_map_add(&names, hash_bytes(name, strlen(name)), &is_new)->place = number;
	}
	for (i = 0; i < items.len; i++) {
		const struct item *item = &items.items[i];
		struct blob_slot *slot;

		if (item->row->id != REC_tree_entry || item->args[TREE].i != which)
			continue;
		slot = item->args[PATH].data->refs
			       ? blob_map_find(&names, item->args[PATH].data->refs[0].hash)
			       : NULL;
		if (slot && !slot->len_bytes++)
			nr += !(item->args[FLAGS].u & MISSING) == (slot->place % step == 0);
	}
	blob_map_release(&names);
	return nr;
}

/* All of them are in both trees, and what is remembered of them is in the file. */
static void test_many_names(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(mkdir("d", 0755), 0);
	for (i = 0; i < NR_NAMES; i += FIRST_STEP)
		write_file(name_of(i), "");
	begin_tree(MEMORY_BYTES, top);
	for (i = 0; i < NR_NAMES; i++) {
		arena_reset(&arena);
		touch(name_of(i));
		if (i % FIRST_STEP == 0 && i % LAST_STEP)
			assert_int_equal(unlink(name_of(i)), 0);
		else if (i % FIRST_STEP && i % LAST_STEP == 0)
			write_file(name_of(i), "");
	}
	for (i = 0; i < NR_NAMES; i += NR_NAMES / 10)
		touch(name_of(i)); /* known */
	if (tree->spill.fd >= 0) { /* else no file can be had there */
		assert_true(tree->spill.memory_bytes <= MEMORY_BYTES);
		assert_true(tree->spill.file_bytes > (uint64_t)NR_NAMES * NAME_BYTES);
	}
	finish();
	assert_int_equal(trace_footer(trace)->nr_losses, 0);
	assert_int_equal(count_right(INITIAL, FIRST_STEP), NR_NAMES);
	assert_int_equal(count_right(FINAL, LAST_STEP), NR_NAMES);
}

static const char *last_loss(uint64_t *ret_count)
{
	static char note[256];
	struct trace_items *it;
	struct item *item;

	note[0] = 0;
	OK(trace_items_open(trace, BLOCK_LEDGER, &it, &err));
	while (trace_items_next(it, &item, &err) > 0) {
		*ret_count = item->args[3].u;
		(void)snprintf(note, sizeof(note), "%.*s", (int)item->args[7].data->len_bytes,
			       (const char *)item->args[7].data->bytes);
	}
	trace_items_close(it);
	return note;
}

/* Without a file there is a limit. What is beyond it is not noted, and the ledger says so. */
static void test_no_room(void **state)
{
	uint64_t count = 0;
	unsigned int i;

	(void)state;
	assert_int_equal(mkdir("d", 0755), 0);
	begin_tree(MEMORY_BYTES, NULL);
	for (i = 0; i < 5000; i++)
		touch(name_of(i));
	/* Neither its name nor the directory is remembered. */
	assert_int_equal(mkdir("e", 0755), 0);
	write_file("e/f", "content");
	touch("e/f");
	touch("e/f");
	finish();
	assert_non_null(strstr(last_loss(&count), "no room"));
	assert_in_range(count, 1000, 2 * 5010); /* two for a call */
	assert_int_equal(count_entries(INITIAL, below(name_of(0))), 1);
	assert_int_equal(count_entries(FINAL, below(name_of(0))), 1);
	assert_int_equal(count_entries(INITIAL, below(name_of(4999))), 0);
	assert_int_equal(count_entries(INITIAL, below("e/f")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_many_names),
		TREE_TEST(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
