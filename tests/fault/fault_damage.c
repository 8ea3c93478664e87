/* SPDX-License-Identifier: MIT */
/*
 * A small trace, cut at every byte and changed at every byte. Nothing of it may
 * crash or hang the reader, and nothing wrong may be read without an error.
 */
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
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "forge.h"
#include "sample.h"
#include "scratch.h"
#include "trace/check.h"
#include "trace/reader.h"
#include "trace/salvage.h"
#include "trace/writer.h"

#define NR_STREAMS 3
#define NR_ROUNDS 2 /* blocks of each stream */
#define NR_EACH 8 /* events of a stream in a block */
#define NR_EVENTS (NR_STREAMS * NR_ROUNDS * NR_EACH)
#define NR_SECTIONS 3

static const enum block_type sections[NR_SECTIONS] = { BLOCK_META, BLOCK_TREE, BLOCK_LEDGER };

/* What an undamaged file says. */
static struct buf original;
static struct hash128 events[NR_EVENTS];
static unsigned int streams[NR_EVENTS];
static struct hash128 items[NR_SECTIONS][8];
static unsigned int nr_items[NR_SECTIONS];
static bool boundary[1 << 20]; /* by offset: a block ends here */

/* The copy that is damaged: a file in memory. */
static int copy_fd;
static char copy_path[64];

#define OK(call)                                                                                   \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, err.text);                                       \
	} while (0)

static void append_items(struct trace_feed *f, struct arena *a)
{
	const struct loss loss = { .kind = LOSS_DATA_TRUNCATED, .bytes = 5, .note = "on purpose" };
	struct item entry = { .row = row_by_id(REC_tree_entry) };
	struct item mount = { .row = row_by_id(REC_tree_mount) };
	char *content = arena_alloc(a, 200);
	struct err err = { "" };

	memset(content, 'c', 200);
	OK(trace_feed_meta(f, "command", "cp"));
	OK(trace_feed_meta(f, "cwd", "/"));
	OK(trace_feed_loss(f, &loss));
	entry.args[0] = value_int(0);
	entry.args[1] = value_str(a, "/data");
	entry.args[5] = value_bytes(a, content, 200);
	OK(trace_feed_item(f, &entry));
	mount.args[1] = value_str(a, "/");
	OK(trace_feed_item(f, &mount));
}

static void write_original(const char *path)
{
	const struct trace_writer_options options = { .replace = true };
	struct trace_stream *s[NR_STREAMS];
	struct trace_writer *w;
	struct trace_feed *f;
	struct arena a;
	struct err err = { "" };
	unsigned int round, i, n;

	arena_init(&a);
	OK(trace_writer_open(path, &options, &w, &err));
	f = trace_writer_add_feed(w);
	append_items(f, &a);
	for (i = 0; i < NR_STREAMS; i++)
		s[i] = trace_feed_open_stream(f, 100, i + 1);
	for (round = 0; round < NR_ROUNDS; round++) {
		for (n = round * NR_EACH; n < (round + 1) * NR_EACH; n++) {
			for (i = 0; i < NR_STREAMS; i++) {
				struct event ev;

				sample_event(&a, i + 1, n, &ev);
				OK(trace_feed_event(f, s[i], &ev));
			}
		}
		OK(trace_feed_flush(f));
	}
	OK(trace_writer_close(w, &err));
	arena_release(&a);
}

/* Only the rows that this trace needs: a whole schema takes most of the time to open it. */
static void put_small_schema(struct forge *f)
{
	static const uint16_t rows[] = { SC_openat,	 SC_read,	SC_write, SC_writev,
					 SC_fstat,	 SC_close,	REC_meta, REC_loss,
					 REC_tree_mount, REC_tree_entry };

	forge_schema(f, rows, ARRAY_LEN(rows));
}

/* The same blocks as the writer made them, but for schema, index and footer. */
static void shrink(const char *path)
{
	const struct block_entry *e;
	struct forge f;
	struct trace *t;
	struct err err = { "" };
	size_t i, nr;

	OK(trace_open(path, 0, &t, &err));
	forge_init(&f);
	put_small_schema(&f);
	e = trace_blocks(t, &nr);
	for (i = 0; i < nr; i++) {
		if (e[i].type != BLOCK_FILE && e[i].type != BLOCK_SCHEMA)
			forge_copy(&f, &e[i], original.data);
	}
	f.counts = *trace_footer(t);
	forge_close(&f);
	forge_save(&f, path);
	forge_release(&f);
	trace_close(t);
}

static void note_boundaries(void)
{
	struct block_header h;
	size_t at = 0;

	assert_true(original.len < ARRAY_LEN(boundary));
	while (at < original.len) {
		assert_int_equal(block_header_get(original.data + at, &h), 0);
		at += BLOCK_HEADER_BYTES + h.stored_bytes;
		boundary[at] = true;
	}
}

static void note_events(struct trace *t)
{
	struct trace_iter *it;
	struct event *ev;
	struct err err = { "" };
	unsigned int n = 0;

	OK(trace_iter_open(t, &(struct trace_query){ 0 }, &it, &err));
	while (trace_iter_next(it, &ev, &err) == 1) {
		OK(sample_digest_event(t, ev, &events[n], &err));
		streams[n++] = ev->tid - 1;
	}
	assert_int_equal(n, NR_EVENTS);
	trace_iter_close(it);
}

static void note_items(struct trace *t, unsigned int section)
{
	struct trace_items *it;
	struct item *item;
	struct err err = { "" };

	OK(trace_items_open(t, sections[section], &it, &err));
	while (trace_items_next(it, &item, &err) == 1)
		OK(sample_digest_item(t, item, &items[section][nr_items[section]++], &err));
	assert_true(nr_items[section] > 0);
	trace_items_close(it);
}

static int setup(void **state)
{
	const char *path = scratch_path("original.trace");
	struct check_result c;
	struct trace *t;
	struct err err = { "" };
	unsigned int i;

	(void)state;
	write_original(path);
	scratch_read(path, &original);
	shrink(path);
	scratch_read(path, &original);
	note_boundaries();
	OK(trace_check(path, NULL, &c, &err));
	assert_true(check_ok(&c));
	OK(trace_open(path, 0, &t, &err));
	note_events(t);
	for (i = 0; i < NR_SECTIONS; i++)
		note_items(t, i);
	trace_close(t);
	copy_fd = memfd_create("damaged", MFD_CLOEXEC);
	assert_true(copy_fd >= 0);
	(void)snprintf(copy_path, sizeof(copy_path), "/proc/self/fd/%d", copy_fd);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)close(copy_fd);
	buf_release(&original);
	return 0;
}

static void restore_copy(void)
{
	assert_int_equal(ftruncate(copy_fd, 0), 0);
	assert_int_equal(pwrite_full(copy_fd, original.data, original.len, 0), 0);
}

static void set_byte(size_t at, uint8_t byte)
{
	assert_int_equal(pwrite_full(copy_fd, &byte, 1, at), 0);
}

/* An error must say what and where. */
static void assert_words(const struct err *err)
{
	if (!strstr(err->text, copy_path))
		fail_msg("'%s' does not name the file", err->text);
}

/* Which events may be read: */
enum reading {
	ALL_IN_ORDER, /* from the first on */
	FIRST_OF_EACH, /* of each thread from its first on */
	SOME_OF_EACH, /* of each thread with gaps */
};

/* The place of an event among those that are expected now, NR_EVENTS when it is none. */
static unsigned int find_event(enum reading how, unsigned int from, unsigned int stream,
			       struct hash128 hash)
{
	unsigned int i = from;

	if (how == ALL_IN_ORDER)
		return i < NR_EVENTS && hash_equal(hash, events[i]) ? i : NR_EVENTS;
	for (; i < NR_EVENTS; i++) {
		if (streams[i] != stream)
			continue;
		if (hash_equal(hash, events[i]))
			return i;
		if (how == FIRST_OF_EACH)
			break;
	}
	return NR_EVENTS;
}

/* Reads and compares all events. The status of the reading; *ret_nr: how many. */
static int read_events(struct trace *t, enum reading how, unsigned int *ret_nr)
{
	unsigned int at[NR_STREAMS] = { 0 }, nr = 0;
	struct trace_iter *it;
	struct event *ev;
	struct err err = { "" };
	int r;

	OK(trace_iter_open(t, &(struct trace_query){ 0 }, &it, &err));
	while ((r = trace_iter_next(it, &ev, &err)) == 1) {
		unsigned int stream = how == ALL_IN_ORDER ? 0 : ev->tid - 1;
		struct hash128 hash;

		r = sample_digest_event(t, ev, &hash, &err);
		if (r < 0)
			break;
		assert_in_range(stream, 0, NR_STREAMS - 1);
		at[stream] = 1 + find_event(how, at[stream], stream, hash);
		assert_in_range(at[stream], 1, NR_EVENTS);
		nr++;
	}
	if (r < 0)
		assert_words(&err);
	trace_iter_close(it);
	*ret_nr = nr;
	return r;
}

static int read_items(struct trace *t, unsigned int section, unsigned int *ret_nr)
{
	struct trace_items *it;
	struct item *item;
	struct err err = { "" };
	unsigned int nr = 0;
	int r;

	OK(trace_items_open(t, sections[section], &it, &err));
	while ((r = trace_items_next(it, &item, &err)) == 1) {
		struct hash128 hash;

		r = sample_digest_item(t, item, &hash, &err);
		if (r < 0)
			break;
		assert_true(nr < nr_items[section]);
		assert_true(hash_equal(hash, items[section][nr]));
		nr++;
	}
	if (r < 0)
		assert_words(&err);
	trace_items_close(it);
	*ret_nr = nr;
	return r;
}

/* The salvaged trace must be whole, and hold nothing that was not there. */
static void assert_salvages(unsigned int at_least)
{
	const char *path = scratch_path("salvaged.trace");
	struct salvage_result saved;
	struct check_result c;
	struct trace_iter *it;
	struct event *ev;
	struct trace *t;
	struct err err = { "" };
	unsigned int nr = 0;
	int r = trace_salvage(copy_path, path, &(struct trace_writer_options){ .replace = true },
			      NULL, &saved, &err);

	if (r < 0) {
		assert_int_equal(at_least, 0);
		assert_words(&err);
		return;
	}
	OK(trace_check(path, NULL, &c, &err));
	if (!c.closed || c.first_fault.text[0])
		fail_msg("salvaged: %s", c.first_fault.text);
	OK(trace_open(path, 0, &t, &err));
	OK(trace_iter_open(t, &(struct trace_query){ 0 }, &it, &err));
	while ((r = trace_iter_next(it, &ev, &err)) == 1)
		nr++;
	assert_int_equal(r, 0);
	assert_in_range(nr, at_least, NR_EVENTS);
	trace_iter_close(it);
	trace_close(t);
}

/* Salvaging in place would lose all when it fails. */
static void test_salvage_onto_itself(void **state)
{
	const char *path = scratch_path("original.trace");
	struct salvage_result saved;
	struct buf now = { 0 };
	struct err err = { "" };

	(void)state;
	assert_int_equal(trace_salvage(path, path,
				       &(struct trace_writer_options){ .replace = true }, NULL,
				       &saved, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, path));
	scratch_read(path, &now);
	assert_int_equal(now.len, original.len);
	buf_release(&now);
}

static void try_cut(size_t len)
{
	unsigned int nr = 0, nr_salvaged = 0, i, n;
	struct check_result c;
	struct err err = { "" };
	struct trace *t;
	int r = trace_open(copy_path, 0, &t, &err);

	if (r < 0) {
		assert_words(&err);
		assert_true(len < 60 + BLOCK_HEADER_BYTES); /* not even the first block */
	} else {
		r = read_events(t, FIRST_OF_EACH, &nr);
		assert_int_equal(r, 0);
		for (i = 0; i < NR_SECTIONS; i++)
			assert_int_equal(read_items(t, i, &n), 0);
		r = trace_tail(t, &err);
		assert_words(&err);
		assert_int_equal(r, boundary[len] ? 1 : -EBADMSG);
		trace_close(t);
	}
	r = trace_check(copy_path, NULL, &c, &err);
	assert_false(!r && check_ok(&c));
	if (!r)
		assert_int_equal(c.nr_dangling, 0);
	OK(trace_open(copy_path, TRACE_SALVAGE, &t, &err));
	assert_int_equal(read_events(t, FIRST_OF_EACH, &nr_salvaged), 0);
	assert_int_equal(nr, nr_salvaged);
	trace_close(t);
	if (len % 101 == 0)
		assert_salvages(nr);
}

static void test_cut_at_every_byte(void **state)
{
	size_t len;

	(void)state;
	restore_copy();
	for (len = original.len; len-- > 0;) {
		assert_int_equal(ftruncate(copy_fd, (off_t)len), 0);
		try_cut(len);
	}
}

/* All of the trace, or an error. */
static void read_changed(void)
{
	unsigned int nr, i;
	struct err err = { "" };
	struct trace *t;
	int r = trace_open(copy_path, 0, &t, &err);

	if (r < 0) {
		assert_words(&err);
		if (!strstr(err.text, "offset"))
			fail_msg("'%s' does not say where", err.text);
		return;
	}
	r = read_events(t, ALL_IN_ORDER, &nr);
	if (!r)
		r = trace_tail(t, &err);
	if (r >= 0)
		assert_int_equal(nr, NR_EVENTS);
	for (i = 0; i < NR_SECTIONS; i++) {
		r = read_items(t, i, &nr);
		if (!r)
			r = trace_tail(t, &err);
		if (r >= 0)
			assert_int_equal(nr, nr_items[i]);
	}
	trace_close(t);
}

static void try_change(size_t at, uint8_t byte)
{
	struct check_result c;
	struct err err = { "" };
	unsigned int nr;
	struct trace *t;

	set_byte(at, byte);
	if (!trace_check(copy_path, NULL, &c, &err)) {
		if (check_ok(&c))
			fail_msg("byte %zu: %02x for %02x is not noticed", at, byte,
				 original.data[at]);
		assert_string_not_equal(c.first_fault.text, "");
	}
	read_changed();
	if (at % 97 == 0) {
		OK(trace_open(copy_path, TRACE_SALVAGE, &t, &err));
		(void)read_events(t, SOME_OF_EACH, &nr); /* less, but nothing wrong */
		trace_close(t);
	}
	set_byte(at, original.data[at]);
}

static void test_change_every_byte(void **state)
{
	struct rng rng = { 1 };
	size_t at;

	(void)state;
	restore_copy();
	for (at = 0; at < original.len; at++) {
		try_change(at, original.data[at] ^ (uint8_t)(1u << rng_below(&rng, 8)));
		try_change(at, original.data[at] ^ 0xff);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_salvage_onto_itself),
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_change_every_byte),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
