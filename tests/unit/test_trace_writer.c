/* SPDX-License-Identifier: MIT */
/* The writer: its sections, its feeds, its limits, and how it begins and ends. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace_rig.h"

static void append_tree_entry(const char *name, uint64_t size)
{
	struct item item = { .row = row_by_id(REC_tree_entry) };

	item.args[0] = value_int(0);
	item.args[1] = value_str(&arena, name);
	item.args[2] = value_struct(&arena, 1);
	item.args[2].fields->items[0] = value_uint(size);
	OK(trace_feed_item(feed, &item));
}

static void test_sections(void **state)
{
	struct loss loss = { .kind = LOSS_EVENTS_LOST, .tid = 5, .count = 3, .note = "too fast" };
	struct item item = { .row = row_by_id(REC_tree_mount) };
	struct trace_items *it;
	struct item *got;
	uint64_t n;

	(void)state;
	begin();
	OK(trace_feed_meta(feed, "command", "true"));
	OK(trace_feed_loss(feed, &loss));
	item.args[1] = value_str(&arena, "/mnt");
	item.args[0] = item.args[2] = item.args[3] = item.args[4] =
		(struct value){ .type = VALUE_NONE };
	OK(trace_feed_item(feed, &item));
	for (n = 0; n < 30000; n++)
		append_tree_entry("a/b", n);
	end();
	reopen();
	assert_int_equal(trace_footer(trace)->nr_losses, 1);
	assert_int_equal(count_items(BLOCK_META, REC_meta), 1);
	assert_int_equal(count_items(BLOCK_LEDGER, REC_loss), 1);
	assert_int_equal(count_items(BLOCK_TREE, REC_tree_mount), 1);
	assert_int_equal(count_items(BLOCK_TREE, REC_tree_entry), 30000);
	OK(trace_items_open(trace, BLOCK_LEDGER, &it, &err));
	assert_int_equal(trace_items_next(it, &got, &err), 1);
	assert_int_equal(got->args[0].i, LOSS_EVENTS_LOST);
	assert_int_equal(got->args[2].i, 5);
	assert_int_equal(got->args[3].u, 3);
	assert_memory_equal(got->args[7].data->bytes, "too fast", 8);
	trace_items_close(it);
	/* In the order of writing. */
	OK(trace_items_open(trace, BLOCK_TREE, &it, &err));
	assert_int_equal(trace_items_next(it, &got, &err), 1);
	for (n = 0; trace_items_next(it, &got, &err) == 1; n++)
		assert_int_equal(got->args[2].fields->items[0].u, n);
	trace_items_close(it);
	assert_int_equal(trace_items_open(trace, BLOCK_EVENTS, &it, &err), -EINVAL);
	trace_items_close(NULL);
}

static void test_item_without_section(void **state)
{
	struct item item = { .row = row_by_id(SC_close) };

	(void)state;
	begin();
	assert_int_equal(trace_feed_item(feed, &item), -EINVAL);
	end();
}

static void test_metadata(void **state)
{
	struct buf b = { 0 };
	size_t long_len = 2 * BLOB_MAX_BYTES + 100;
	char *long_value = xmalloc(long_len + 1);

	(void)state;
	memset(long_value, 'v', long_len);
	long_value[long_len] = 0;
	begin();
	OK(trace_feed_meta(feed, "hostname", "here"));
	OK(trace_feed_meta(feed, "host", "other"));
	OK(trace_feed_meta(feed, "cwd", ""));
	OK(trace_feed_meta(feed, "long", long_value));
	end();
	reopen();
	assert_string_equal(trace_meta(trace, "hostname", &b), "here");
	assert_string_equal(trace_meta(trace, "host", &b), "other");
	assert_non_null(trace_meta(trace, "cwd", &b));
	assert_string_equal(trace_meta(trace, "cwd", &b), "");
	assert_string_equal(trace_meta(trace, "long", &b), long_value);
	assert_int_equal(b.len, long_len);
	assert_null(trace_meta(trace, "hos", &b));
	assert_null(trace_meta(trace, "hostnames", &b));
	buf_release(&b);
	free(long_value);
}

#define NR_PER_FEED 5000

struct worker {
	struct trace_writer *w;
	struct trace_feed *f;
	uint32_t tid;
	int r;
};

/* Not through helpers that assert: those belong to the main thread. */
static void *work(void *arg)
{
	struct worker *k = arg;
	struct trace_stream *s = trace_feed_open_stream(k->f, 100, k->tid);
	struct arena a;
	uint64_t n;

	arena_init(&a);
	for (n = 0; n < NR_PER_FEED && !k->r; n++) {
		struct event ev;

		arena_reset(&a);
		sample_event(&a, k->tid, n, &ev);
		k->r = trace_feed_event(k->f, s, &ev);
	}
	if (!k->r)
		k->r = trace_feed_close_stream(k->f, s);
	arena_release(&a);
	return NULL;
}

/* Each with a feed and a thread of its own. */
static void run_workers(struct worker *k, unsigned int nr, void *(*run)(void *))
{
	pthread_t *threads = xcalloc(nr, sizeof(*threads));
	unsigned int i;

	for (i = 0; i < nr; i++) {
		k[i] = (struct worker){ .w = writer,
					.f = trace_writer_add_feed(writer),
					.tid = i + 1 };
		assert_int_equal(pthread_create(&threads[i], NULL, run, &k[i]), 0);
	}
	for (i = 0; i < nr; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(k[i].r, 0);
	}
	free(threads);
}

static void test_two_feeds(void **state)
{
	const struct trace_query all = { 0 };
	uint64_t n[4] = { 0 };
	struct worker k[4];
	struct trace_iter *it;
	struct event *ev, wanted;
	unsigned int i;

	(void)state;
	begin();
	run_workers(k, ARRAY_LEN(k), work);
	end();
	assert_whole();
	reopen();
	it = iterate(&all);
	while ((ev = next(it))) {
		assert_in_range(ev->tid, 1, ARRAY_LEN(k));
		arena_reset(&arena);
		sample_event(&arena, ev->tid, n[ev->tid - 1]++, &wanted);
		assert_true(sample_equal(ev, &wanted));
	}
	for (i = 0; i < ARRAY_LEN(k); i++)
		assert_int_equal(n[i], NR_PER_FEED);
	trace_iter_close(it);
}

#define NR_LARGE_BLOBS 4u
#define SMALL_BLOB_BYTES 512u

/* Other data each time, as much by small blobs as by large ones; not through helpers that assert. */
static void *put_blobs(void *arg)
{
	struct worker *k = arg;
	size_t len = k->tid % 2 ? BLOB_MAX_BYTES : SMALL_BLOB_BYTES;
	uint64_t nr = NR_LARGE_BLOBS * (BLOB_MAX_BYTES / len), n;
	uint64_t *bytes = xcalloc(1, len);
	struct blob_ref ref;

	for (n = 0; n < nr && !k->r; n++) {
		bytes[0] = (uint64_t)k->tid << 32 | n;
		k->r = trace_feed_blob(k->f, (uint8_t *)bytes, len, &ref);
	}
	if (!k->r)
		k->r = trace_feed_flush(k->f);
	free(bytes);
	return NULL;
}

static void put_by_many(void)
{
	struct trace_writer_options o = { .replace = true,
					  .reserve = true,
					  .pack_after_ns = UINT64_C(1) << 60 };
	struct trace_writer_totals totals;
	struct worker k[4];

	begin_with(&o);
	run_workers(k, ARRAY_LEN(k), put_blobs);
	OK(trace_writer_sync(writer, &err));
	totals = trace_writer_totals(writer);
	assert_int_equal(totals.blob_bytes, ARRAY_LEN(k) * NR_LARGE_BLOBS * BLOB_MAX_BYTES);
	end();
	assert_whole();
}

/*
 * Who finds that another one has taken what it had reserved must not take that for a full disk.
 * In small files, for which room is reserved the most often.
 */
static void test_feeds_that_reserve(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 24; i++)
		put_by_many();
}

static long max_rss_kib(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u); /* cannot fail */
	return u.ru_maxrss;
}

#define NR_MANY 2000

/* In a child, whose peak is its own: earlier tests have raised ours. */
static void run_many_streams(void)
{
	struct trace_stream **s = xcalloc(NR_MANY, sizeof(*s));
	const struct trace_query all = { 0 };
	uint64_t *n = xcalloc(NR_MANY, sizeof(*n)), i, sum = 0;
	struct trace_iter *it;
	struct event *ev;

	begin();
	for (i = 0; i < NR_MANY; i++)
		s[i] = trace_feed_open_stream(feed, 1, (uint32_t)i + 1);
	for (i = 0; i < 100 * NR_MANY; i++)
		append_sample(s[i % NR_MANY], (uint32_t)(i % NR_MANY) + 1, i / NR_MANY);
	end();
	reopen();
	it = iterate(&all);
	while ((ev = next(it))) {
		struct event wanted;

		arena_reset(&arena);
		sample_event(&arena, ev->tid, n[ev->tid - 1]++, &wanted);
		wanted.pid = 1;
		assert_true(sample_equal(ev, &wanted));
		sum++;
	}
	assert_int_equal(sum, 100 * NR_MANY);
	trace_iter_close(it);
	free(s);
	free(n);
}

static void test_many_streams(void **state)
{
	long before_kib = max_rss_kib();

	(void)state;
	run_many_streams();
	/*
	 * Our part: 8 MiB of stream buffers, at most twice that in unused room, the
	 * batches (7 * 2 MiB), the table of known hashes (4 MiB), and as much for the
	 * reader. A sanitizer takes several times as much, so the limit is loose.
	 */
	assert_true(max_rss_kib() - before_kib < 512 * 1024);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
	assert_true(max_rss_kib() - before_kib < 80 * 1024);
#endif
}

static struct value huge_list(uint32_t nr)
{
	struct value v = value_list(&arena, nr);
	uint32_t i;

	for (i = 0; i < nr; i++) {
		v.items[i] = value_struct(&arena, 2);
		v.items[i].fields->items[0] = value_uint(UINT64_MAX);
	}
	return v;
}

static void test_event_too_large(void **state)
{
	const struct trace_query all = { 0 };
	struct event ev = { .row = row_by_id(SC_writev), .enter_ns = 5, .exit_ns = 9 };
	struct trace_stream *s;
	struct trace_items *it;
	struct trace_iter *events;
	struct event *back;
	struct item *item;

	(void)state;
	begin();
	s = trace_feed_open_stream(feed, 1, 2);
	ev.args[1] = huge_list(800000); /* 12 bytes each: 9.6 MB */
	assert_int_equal(trace_feed_event(feed, s, &ev), -E2BIG);
	append_at(s, 10, 20, 0);
	assert_int_equal(trace_feed_event(feed, s, &ev), -E2BIG);
	ev.args[1] = huge_list(650000); /* 7.8 MB: fits */
	OK(trace_feed_event(feed, s, &ev));
	append_at(s, 30, 40, 0);
	end();
	reopen();
	assert_int_equal(trace_footer(trace)->nr_losses, 2);
	OK(trace_items_open(trace, BLOCK_LEDGER, &it, &err));
	assert_int_equal(trace_items_next(it, &item, &err), 1);
	assert_int_equal(item->args[0].i, LOSS_EVENT_TOO_LARGE);
	assert_int_equal(item->args[1].i, 1);
	assert_int_equal(item->args[2].i, 2);
	assert_int_equal(item->args[3].u, 1);
	assert_int_equal(item->args[5].u, 5);
	assert_int_equal(item->args[6].u, 9);
	assert_memory_equal(item->args[7].data->bytes, "writev", 6);
	trace_items_close(it);
	events = iterate(&all);
	assert_int_equal(next(events)->enter_ns, 10);
	back = next(events);
	assert_int_equal(back->args[1].count, 650000);
	assert_true(back->args[1].items[649999].fields->items[0].u == UINT64_MAX);
	assert_int_equal(next(events)->enter_ns, 30);
	assert_null(next(events));
	trace_iter_close(events);
}

static void test_row_that_the_table_lacks(void **state)
{
	const struct trace_query all = { 0 };
	const struct row foreign = { .id = 4000, .name = "frobnicate" };
	struct event ev = { .row = &foreign };
	struct trace_stream *s;

	(void)state;
	begin();
	s = trace_feed_open_stream(feed, 1, 2);
	assert_int_equal(trace_feed_event(feed, s, &ev), -EOPNOTSUPP);
	append_at(s, 1, 2, 0);
	end();
	reopen();
	assert_int_equal(count(&all), 1);
	assert_int_equal(count_items(BLOCK_LEDGER, REC_loss), 1);
}

/* A file that is being written can be read up to what was handed over. */
static void test_reading_while_writing(void **state)
{
	const struct trace_query all = { 0 };
	struct trace_stream *s;
	unsigned int i;
	uint64_t n;

	(void)state;
	begin();
	s = trace_feed_open_stream(feed, 100, 7);
	for (i = 1; i <= 5; i++) {
		for (n = 0; n < 1000; n++)
			append_sample(s, 7, n);
		OK(trace_feed_flush(feed));
		OK(trace_writer_sync(writer, &err));
		reopen();
		assert_int_equal(count(&all), i * 1000);
		assert_int_equal(trace_tail(trace, &err), 1);
		assert_non_null(strstr(err.text, "not closed"));
		assert_non_null(strstr(err.text, path()));
		assert_null(trace_footer(trace));
	}
	assert_int_equal(trace_writer_totals(writer).nr_events, 5000);
	assert_int_equal(trace_writer_totals(writer).file_bytes, scratch_size(path()));
	end();
	reopen();
	assert_int_equal(trace_tail(trace, &err), 0);
	assert_int_equal(count(&all), 5000);
}

static void test_abandon(void **state)
{
	const struct trace_query all = { 0 };
	struct trace_stream *s;

	(void)state;
	begin();
	s = trace_feed_open_stream(feed, 100, 7);
	append_sample(s, 7, 0);
	OK(trace_feed_flush(feed));
	append_sample(s, 7, 1);
	append_sample(s, 7, 2); /* with data */
	trace_writer_abandon(writer);
	writer = NULL;
	reopen();
	assert_int_equal(trace_tail(trace, &err), 1);
	assert_int_equal(count(&all), 1);
	trace_writer_abandon(NULL);
	OK(trace_writer_close(NULL, &err));
}

static void test_existing_file(void **state)
{
	struct trace_writer *w = NULL;
	struct buf before = { 0 }, after = { 0 };

	(void)state;
	begin();
	end();
	scratch_read(path(), &before);
	assert_int_equal(trace_writer_open(path(), NULL, &w, &err), -EEXIST);
	assert_null(w);
	assert_non_null(strstr(err.text, path()));
	assert_non_null(strstr(err.text, strerror(EEXIST)));
	scratch_read(path(), &after);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.data, after.data, before.len);
	begin(); /* with replace */
	end();
	assert_int_equal(unlink(path()), 0);
	begin_with(NULL);
	end();
	assert_int_equal(trace_writer_open("/nonexistent/x.trace",
					   &(struct trace_writer_options){ .replace = true }, &w,
					   &err),
			 -ENOENT);
	buf_release(&before);
	buf_release(&after);
}

/* Whoever reads a trace that is replaced reads on in the old one. */
static void test_replaced_while_read(void **state)
{
	struct trace_stream *s;
	uint64_t n;

	(void)state;
	begin();
	s = trace_feed_open_stream(feed, 100, 7);
	for (n = 0; n < 1000; n++)
		append_sample(s, 7, n);
	end();
	reopen();
	begin();
	end();
	assert_int_equal(count(&(struct trace_query){ 0 }), 1000);
}

static void test_record_too_large(void **state)
{
	struct item item = { .row = row_by_id(REC_tree_entry) };
	struct value *xattrs = args_find(item.row, item.args, "xattrs");
	uint32_t i;

	(void)state;
	begin();
	OK(trace_feed_meta(feed, "before", "1"));
	*xattrs = value_list(&arena, 1000000);
	for (i = 0; i < xattrs->count; i++) {
		xattrs->items[i] = value_struct(&arena, 1);
		xattrs->items[i].fields->items[0] = value_str(&arena, "user.name");
	}
	assert_int_equal(trace_feed_item(feed, &item), -E2BIG);
	append_tree_entry("behind", 1);
	end();
	assert_whole();
	reopen();
	assert_int_equal(count_items(BLOCK_META, REC_meta), 1);
	assert_int_equal(count_items(BLOCK_TREE, REC_tree_entry), 1);
}

/* More blocks than an index block lists. */
static void test_chained_index(void **state)
{
	const struct trace_query all = { 0 };
	struct trace_stream *s;
	uint64_t n;
	size_t nr;

	(void)state;
	begin();
	s = trace_feed_open_stream(feed, 100, 7);
	for (n = 0; n < 2500; n++) {
		append_sample(s, 7, n);
		OK(trace_feed_flush(feed));
	}
	end();
	assert_whole();
	reopen();
	(void)trace_blocks(trace, &nr);
	assert_true(nr > 2500);
	assert_int_equal(trace_footer(trace)->nr_blocks, nr);
	assert_int_equal(count(&all), 2500);
}

static uint64_t size_at_level(int level, bool eager)
{
	struct trace_stream *s;
	uint64_t n;

	begin_with(
		&(struct trace_writer_options){ .replace = true, .level = level, .eager = eager });
	s = trace_feed_open_stream(feed, 100, 7);
	for (n = 0; n < 5000; n++)
		append_sample(s, 7, n);
	end();
	assert_whole();
	reopen();
	assert_int_equal(count(&(struct trace_query){ 0 }), 5000);
	return scratch_size(path());
}

static void test_levels(void **state)
{
	uint64_t plain = size_at_level(-1, false), fast = size_at_level(0, true);

	(void)state;
	assert_true(fast < plain * 3 / 4);
	assert_true(size_at_level(19, true) < fast);
}

/* A block of one piece of data, which packs to nothing or not at all. */
static void put_block_of(bool dense, uint64_t seed)
{
	size_t len = BLOB_MAX_BYTES, i;
	uint8_t *bytes = xcalloc(1, len);
	struct blob_ref ref;

	for (i = 0; i < (dense ? len : 8); i += 8) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(bytes + i, &seed, 8);
	}
	OK(trace_feed_blob(feed, bytes, len, &ref));
	OK(trace_feed_flush(feed));
	OK(trace_writer_sync(writer,
			     &err)); /* so that nobody waits, and nothing goes out in a rush */
	free(bytes);
}

/* Data that does not pack is not tried for a while, and what comes after it is packed again. */
static void test_dense_data(void **state)
{
	uint64_t i;

	(void)state;
	begin();
	for (i = 1; i <= 8; i++)
		put_block_of(true, i);
	for (i = 0; i < 40; i++)
		put_block_of(false, i + 100);
	end();
	assert_in_range(scratch_size(path()), 8 * BLOB_MAX_BYTES, 20 * BLOB_MAX_BYTES);
	reopen();
}

/* Data that packs to nothing, as the options say; what it takes in the file. */
static uint64_t size_of_sparse(const struct trace_writer_options *options, bool hurry)
{
	uint64_t i;

	begin_with(options);
	if (hurry)
		trace_writer_hurry(writer);
	for (i = 1; i <= 8; i++)
		put_block_of(false, i);
	end();
	reopen();
	return scratch_size(path());
}

/* Packing takes time, which a short recording does not have, unless it has even less room. */
static void test_packing_waits(void **state)
{
	struct trace_writer_options o = { .replace = true };
	const uint64_t all = 8 * BLOB_MAX_BYTES;

	(void)state;
	assert_true(size_of_sparse(&o, false) < all / 2);
	assert_true(size_of_sparse(&o, true) >= all);
	o.pack_after_ns = UINT64_C(1) << 60;
	assert_true(size_of_sparse(&o, false) >= all);
	o.reserve = true;
	o.max_bytes = 2 * all;
	assert_true(size_of_sparse(&o, false) < all / 2);
	o.eager = true;
	o.max_bytes = 0;
	assert_true(size_of_sparse(&o, true) < all / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_many_streams), /* first: it looks at the peak of memory */
		TEST(test_sections),
		TEST(test_item_without_section),
		TEST(test_metadata),
		TEST(test_two_feeds),
		TEST(test_feeds_that_reserve),
		TEST(test_event_too_large),
		TEST(test_row_that_the_table_lacks),
		TEST(test_reading_while_writing),
		TEST(test_abandon),
		TEST(test_existing_file),
		TEST(test_replaced_while_read),
		TEST(test_record_too_large),
		TEST(test_chained_index),
		TEST(test_levels),
		TEST(test_dense_data),
		TEST(test_packing_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
