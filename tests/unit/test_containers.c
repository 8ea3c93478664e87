/* SPDX-License-Identifier: MIT */
/* What holds things: maps, growing arrays, heaps. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/spill.h"
#include "scratch.h"

/* map */

static size_t key_of(char *key, size_t size, int i)
{
	return (size_t)snprintf(key, size, "key %d", i);
}

static void *value_of(int i)
{
	return (void *)(intptr_t)(i + 1);
}

static void test_map_grows(void **state)
{
	struct map m = { 0 };
	char key[32];
	int i, next = 0;

	(void)state;
	assert_null(map_get(&m, "x", 1));
	assert_null(map_remove(&m, "x", 1));
	for (i = 0; i < 10000; i++) {
		size_t len = key_of(key, sizeof(key), i);
		void **slot = map_slot(&m, key, len);

		assert_null(*slot);
		*slot = value_of(i);
		assert_ptr_equal(*map_slot(&m, key, len), value_of(i));
	}
	assert_int_equal(m.nr_live, 10000);
	for (i = 0; i < 10000; i++)
		assert_ptr_equal(map_get(&m, key, key_of(key, sizeof(key), i)), value_of(i));
	assert_null(map_get(&m, "key", 3));
	MAP_EACH (&m, e) {
		assert_int_equal(e->key_len, key_of(key, sizeof(key), next));
		assert_string_equal(e->key, key);
		assert_ptr_equal(e->value, value_of(next++));
	}
	assert_int_equal(next, 10000);
	map_release(&m);
	map_release(&m);
}

static void test_map_removes(void **state)
{
	struct map m = { 0 };
	char key[32];
	int i, nr = 0, last = -1;

	(void)state;
	for (i = 0; i < 1000; i++)
		*map_slot(&m, key, key_of(key, sizeof(key), i)) = value_of(i);
	for (i = 0; i < 1000; i++) {
		if (i % 3)
			assert_ptr_equal(map_remove(&m, key, key_of(key, sizeof(key), i)),
					 value_of(i));
	}
	assert_int_equal(m.nr_live, 334);
	for (i = 0; i < 1000; i++) {
		size_t len = key_of(key, sizeof(key), i);

		assert_ptr_equal(map_get(&m, key, len), i % 3 ? NULL : value_of(i));
		if (i % 3)
			assert_null(map_remove(&m, key, len));
	}
	MAP_EACH (&m, e) {
		int at = (int)(intptr_t)e->value - 1;

		assert_true(at > last);
		last = at;
		nr++;
	}
	assert_int_equal(nr, 334);
	map_release(&m);
}

/* Entries come and go for ever; the room that they take must not. */
static void test_map_churn(void **state)
{
	struct map m = { 0 };
	char key[32];
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		*map_slot(&m, key, key_of(key, sizeof(key), i)) = value_of(i);
		if (i >= 10)
			assert_ptr_equal(map_remove(&m, key, key_of(key, sizeof(key), i - 10)),
					 value_of(i - 10));
	}
	assert_int_equal(m.nr_live, 10);
	assert_true(m.nr_slots <= 256);
	map_release(&m);
}

static void test_map_keys_are_bytes(void **state)
{
	struct map m = { 0 };

	(void)state;
	*map_slot(&m, "a\0b", 3) = value_of(1);
	*map_slot(&m, "a\0c", 3) = value_of(2);
	*map_slot(&m, "", 0) = value_of(3);
	assert_ptr_equal(map_get(&m, "a\0b", 3), value_of(1));
	assert_ptr_equal(map_get(&m, "a\0c", 3), value_of(2));
	assert_ptr_equal(map_get(&m, "", 0), value_of(3));
	assert_null(map_get(&m, "a", 1));
	/* Removed and made again: a new one, in the last place. */
	(void)map_remove(&m, "a\0b", 3);
	assert_null(*map_slot(&m, "a\0b", 3));
	assert_int_equal(m.nr_live, 3);
	map_release(&m);
}

/* mem */

static void test_vec(void **state)
{
	VEC(int) v = { 0 };
	int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		VEC_PUSH(&v, i);
	for (i = 0; i < 1000; i++)
		assert_int_equal(v.items[i], i);
	VEC_RELEASE(&v);
	assert_int_equal(v.len, 0);
}

/* heap */

static void test_heap_sorts(void **state)
{
	VEC(uint64_t) heap = { 0 };
	uint64_t x = 1, last, i, round;

	(void)state;
	for (round = 1; round < 200; round++) {
		for (i = 0; i < round; i++) {
			x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
			HEAP_PUSH(&heap, (x >> 33) % round, HEAP_LESS); /* many are equal */
		}
		last = 0;
		/* Some stay for the next round. */
		for (i = 0; i < round - round % 3; i++) {
			assert_true(heap.items[0] >= last);
			last = heap.items[0];
			HEAP_POP(&heap, HEAP_LESS);
		}
	}
	for (last = 0; heap.len; last = i) {
		i = heap.items[0];
		assert_true(i >= last);
		HEAP_POP(&heap, HEAP_LESS);
	}
	VEC_RELEASE(&heap);
}

/* spill */

#define PIECE_BYTES ((size_t)64 << 10)
#define NR_PIECES 1024u

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %llu", &pages), 1);
	(void)fclose(f); /* only read from */
	return pages * 4096;
}

/* 64 MiB, of which 1 MiB is memory: all keep what is written there, and most are not resident. */
static void test_spill(void **state)
{
	static uint8_t *pieces[NR_PIECES];
	struct spill s;
	char *dir = xstrdup(scratch_path("spill"));
	uint64_t before;
	unsigned int i;

	(void)state;
	*strrchr(dir, '/') = 0;
	spill_init(&s, dir, 1 << 20);
	before = resident_bytes();
	for (i = 0; i < NR_PIECES; i++) {
		pieces[i] = spill_take(&s, PIECE_BYTES, true);
		if (i > NR_PIECES / 2 && s.fd < 0)
			skip(); /* no file can be had there */
		assert_non_null(pieces[i]);
		assert_true(!pieces[i][0] && !pieces[i][PIECE_BYTES - 1]);
		memset(pieces[i], (int)i, PIECE_BYTES);
		spill_relax(&s);
	}
	assert_true(s.memory_bytes <= 1 << 20);
	spill_give_back(&s, pieces[0]);
	spill_give_back(&s, pieces[NR_PIECES - 1]);
	spill_give_back(&s, NULL);
	for (i = 1; i < NR_PIECES - 1; i++) {
		assert_true(pieces[i][0] == (uint8_t)i && pieces[i][PIECE_BYTES - 1] == (uint8_t)i);
		spill_relax(&s);
	}
	assert_true(resident_bytes() < before + (40 << 20));
	spill_release(&s);
	free(dir);
}

static void test_spill_without_file(void **state)
{
	static const char *const dirs[] = { NULL, "/nowhere/at/all" };
	struct spill s;
	unsigned int i, nr;

	(void)state;
	for (i = 0; i < 2; i++) {
		spill_init(&s, dirs[i], PIECE_BYTES);
		for (nr = 0; spill_take(&s, PIECE_BYTES, false); nr++)
			;
		assert_int_equal(nr, SPILL_WITHOUT_FILE);
		spill_release(&s);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_grows), cmocka_unit_test(test_map_removes),
		cmocka_unit_test(test_map_churn), cmocka_unit_test(test_map_keys_are_bytes),
		cmocka_unit_test(test_vec),	  cmocka_unit_test(test_heap_sorts),
		cmocka_unit_test(test_spill),	  cmocka_unit_test(test_spill_without_file),
	};

	return cmocka_run_group_tests_name("containers", tests, NULL, NULL);
}
