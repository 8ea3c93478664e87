/* SPDX-License-Identifier: MIT */
/* Threads, orders and filters: what the reader makes of what was written. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace_rig.h"

static void test_one_stream(void **state)
{
	const struct trace_query all = { 0 };
	const struct trace_stream_info *info;
	struct trace_stream *s;
	struct trace_iter *it;
	struct event *ev, wanted;
	uint64_t n;
	size_t nr;

	(void)state;
	begin();
	s = trace_feed_open_stream(feed, 100, 7);
	for (n = 0; n < 20000; n++)
		append_sample(s, 7, n);
	end();
	assert_whole();
	reopen();
	assert_int_equal(trace_nr_events(trace), 20000);
	assert_int_equal(trace_tail(trace, NULL), 0);
	assert_int_equal(trace_footer(trace)->nr_events, 20000);
	assert_int_equal(trace_footer(trace)->nr_streams, 1);
	assert_string_equal(trace_path(trace), path());
	assert_int_equal(trace_file_bytes(trace), scratch_size(path()));
	(void)trace_damages(trace, &nr);
	assert_int_equal(nr, 0);
	info = trace_streams(trace, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(info->pid, 100);
	assert_int_equal(info->tid, 7);
	assert_int_equal(info->generation, 0);
	assert_int_equal(info->nr_events, 20000);
	assert_int_equal(info->first_ns, 70);
	assert_int_equal(info->last_ns, 19999 * 1000 + 70 + 500 + 700);
	it = iterate(&all);
	for (n = 0; (ev = next(it)); n++) {
		arena_reset(&arena);
		sample_event(&arena, 7, n, &wanted);
		assert_true(sample_equal(ev, &wanted));
	}
	assert_int_equal(n, 20000);
	assert_null(next(it)); /* the end stays the end */
	trace_iter_close(it);
}

static void test_nothing_written(void **state)
{
	const struct trace_query all = { 0 };
	struct trace_items *items;
	struct item *item;

	(void)state;
	begin();
	end();
	assert_whole();
	reopen();
	assert_int_equal(count(&all), 0);
	assert_int_equal(trace_nr_events(trace), 0);
	OK(trace_items_open(trace, BLOCK_META, &items, &err));
	assert_int_equal(trace_items_next(items, &item, &err), 0);
	trace_items_close(items);
}

#define NR_THREADS 3
#define NR_EACH 500

struct expected {
	uint64_t key, seq;
	uint32_t tid;
	uint64_t n;
};

static int by_key(const void *a, const void *b)
{
	const struct expected *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void expect_order(enum trace_order order, struct expected *ret)
{
	struct expected *e = ret;
	uint64_t n, key;
	uint32_t tid;

	for (tid = 1; tid <= NR_THREADS; tid++) {
		for (key = 0, n = 0; n < NR_EACH; n++, e++) {
			struct event ev;
			uint64_t at;

			arena_reset(&arena);
			sample_event(&arena, tid, n, &ev);
			at = order == TRACE_BY_ENTER  ? ev.enter_ns
			     : order == TRACE_BY_EXIT ? ev.exit_ns
						      : event_effect_ns(&ev);
			/* Within a thread its own order holds. */
			key = at > key ? at : key;
			*e = (struct expected){ .key = key, .seq = ev.seq, .tid = tid, .n = n };
		}
	}
	qsort(ret, NR_THREADS * NR_EACH, sizeof(*ret), by_key);
}

static void test_orders(void **state)
{
	static const enum trace_order orders[] = { TRACE_BY_ENTER, TRACE_BY_EXIT, TRACE_BY_EFFECT };
	struct expected *expected = xcalloc(NR_THREADS * NR_EACH, sizeof(*expected));
	struct trace_stream *s[NR_THREADS];
	struct event *ev, wanted;
	uint64_t n;
	unsigned int i;

	(void)state;
	begin();
	for (i = 0; i < NR_THREADS; i++)
		s[i] = trace_feed_open_stream(feed, 100, i + 1);
	for (n = 0; n < NR_EACH; n++) {
		for (i = 0; i < NR_THREADS; i++)
			append_sample(s[i], i + 1, n);
		if (n % 100 == 50)
			OK(trace_feed_flush(feed));
	}
	end();
	reopen();
	for (i = 0; i < ARRAY_LEN(orders); i++) {
		const struct trace_query q = { .order = orders[i] };
		struct trace_iter *it = iterate(&q);

		expect_order(orders[i], expected);
		for (n = 0; (ev = next(it)); n++) {
			assert_in_range(n, 0, NR_THREADS * NR_EACH - 1);
			arena_reset(&arena);
			sample_event(&arena, expected[n].tid, expected[n].n, &wanted);
			assert_true(sample_equal(ev, &wanted));
		}
		assert_int_equal(n, NR_THREADS * NR_EACH);
		trace_iter_close(it);
	}
	free(expected);
}

/* Equal times: by sequence number; equal numbers: by stream. */
static void test_ties(void **state)
{
	const struct trace_query all = { 0 };
	static const uint32_t wanted[] = { 3, 1, 2, 1, 2 };
	struct trace_stream *a, *b, *c;
	struct trace_iter *it;
	struct event *ev;
	unsigned int i;

	(void)state;
	begin();
	a = trace_feed_open_stream(feed, 1, 1);
	b = trace_feed_open_stream(feed, 1, 2);
	c = trace_feed_open_stream(feed, 1, 3);
	append_at(a, 10, 20, 2);
	append_at(a, 10, 20, 4);
	append_at(b, 10, 20, 3);
	append_at(b, 10, 20, 4);
	append_at(c, 10, 20, 1);
	end();
	reopen();
	it = iterate(&all);
	for (i = 0; (ev = next(it)); i++)
		assert_int_equal(ev->tid, wanted[i]);
	assert_int_equal(i, ARRAY_LEN(wanted));
	trace_iter_close(it);
}

/* Numbers of the writer: one more for each event, over all streams. */
static void test_writer_numbers_events(void **state)
{
	const struct trace_query all = { 0 };
	struct trace_stream *a, *b;
	struct trace_iter *it;
	struct event *ev;
	uint64_t n;

	(void)state;
	begin();
	a = trace_feed_open_stream(feed, 1, 1);
	b = trace_feed_open_stream(feed, 1, 2);
	for (n = 0; n < 100; n++)
		append_at(n % 3 ? a : b, 5, 5, 0);
	end();
	reopen();
	it = iterate(&all);
	for (n = 0; (ev = next(it)); n++) {
		assert_int_equal(ev->seq, n + 1);
		assert_int_equal(ev->tid, n % 3 ? 1 : 2);
	}
	assert_int_equal(n, 100);
	trace_iter_close(it);
}

static void test_clock_that_jumps(void **state)
{
	const struct trace_query all = { 0 };
	static const uint64_t times[] = { 100, 50, 60, 200, 0, 300 };
	struct trace_stream *a, *b;
	struct trace_iter *it;
	struct event *ev;
	uint64_t last_b = 0;
	unsigned int i, n = 0;

	(void)state;
	begin();
	a = trace_feed_open_stream(feed, 1, 1);
	b = trace_feed_open_stream(feed, 1, 2);
	for (i = 0; i < ARRAY_LEN(times); i++)
		append_at(a, times[i], times[i] + 5, 0);
	for (i = 0; i < 40; i++)
		append_at(b, i * 10, i * 10, 0);
	end();
	assert_whole();
	reopen();
	it = iterate(&all);
	while ((ev = next(it))) {
		if (ev->tid == 1) {
			/* The thread's order and its own times, and at its place. */
			assert_int_equal(ev->enter_ns, times[n]);
			assert_int_equal(ev->exit_ns, times[n] + 5);
			if (n && times[n] >= 100)
				assert_true(last_b <= times[n]);
			n++;
		} else {
			last_b = ev->enter_ns;
		}
	}
	assert_int_equal(n, ARRAY_LEN(times));
	trace_iter_close(it);
	assert_int_equal(trace_streams(trace, &(size_t){ 0 })[0].first_ns, 0);
	/* A range finds what lies in it, wherever it stands. */
	assert_int_equal(
		count(&(struct trace_query){
			.from_ns = 50, .to_ns = 61, .tids = &(uint32_t){ 1 }, .nr_tids = 1 }),
		2);
}

static void write_for_filters(void)
{
	struct trace_stream *s;
	uint32_t tid;
	uint64_t n;

	begin();
	for (tid = 1; tid <= 6; tid++) {
		s = trace_feed_open_stream(feed, 10 + tid % 2, tid);
		for (n = 0; n < 50; n++)
			append_at(s, n * 100 + tid, n * 100 + tid + 50, 0);
		OK(trace_feed_flush(feed));
	}
	end();
	reopen();
}

static void test_filter_threads(void **state)
{
	static const uint32_t pids[] = { 11, 99 }, tids[] = { 1, 2, 5 };
	struct trace_query q = { .pids = pids, .nr_pids = 1 };
	struct trace_iter *it;
	struct event *ev;

	(void)state;
	write_for_filters();
	assert_int_equal(count(&q), 150);
	q.nr_pids = 2;
	assert_int_equal(count(&q), 150);
	q.tids = tids;
	q.nr_tids = 3;
	assert_int_equal(count(&q), 100); /* both must hold: 1 and 5 */
	q.nr_pids = 0;
	assert_int_equal(count(&q), 150);
	it = iterate(&q);
	while ((ev = next(it)))
		assert_true(ev->tid == 1 || ev->tid == 2 || ev->tid == 5);
	trace_iter_close(it);
	q.pids = &pids[1];
	q.nr_pids = 1;
	assert_int_equal(count(&q), 0);
}

static void test_filter_times(void **state)
{
	const uint32_t tid = 3;
	struct trace_query q = { .tids = &tid, .nr_tids = 1 };
	struct trace_iter *it;

	(void)state;
	write_for_filters();
	/* Events of thread 3 are [3, 53], [103, 153] ... [4903, 4953]. */
	q.from_ns = 103;
	assert_int_equal(count(&q), 49);
	q.from_ns = 153;
	assert_int_equal(count(&q), 49);
	q.from_ns = 154;
	assert_int_equal(count(&q), 48);
	q.from_ns = 4953;
	assert_int_equal(count(&q), 1);
	q.from_ns = 4954;
	assert_int_equal(count(&q), 0);
	q.from_ns = 0;
	q.to_ns = 103;
	assert_int_equal(count(&q), 1);
	q.to_ns = 104;
	assert_int_equal(count(&q), 2);
	q.from_ns = 60;
	assert_int_equal(count(&q), 1);
	q.to_ns = 61;
	assert_int_equal(count(&q), 0);
	q.to_ns = 60;
	assert_int_equal(trace_iter_open(trace, &q, &it, &err), -EINVAL);
	assert_non_null(strstr(err.text, "range"));
	q = (struct trace_query){ .from_ns = 2000, .to_ns = 2001 };
	assert_int_equal(count(&q), 0);
	q.to_ns = 2004;
	assert_int_equal(count(&q), 3);
}

static void test_without_arguments(void **state)
{
	const struct trace_query q = { .no_args = true };
	struct trace_stream *s;
	struct trace_iter *it;
	struct event *ev;
	unsigned int i;
	uint64_t n;

	(void)state;
	begin();
	s = trace_feed_open_stream(feed, 1, 1);
	for (n = 0; n < 50; n++)
		append_sample(s, 1, n);
	end();
	reopen();
	it = iterate(&q);
	for (n = 0; (ev = next(it)); n++) {
		struct event wanted;

		arena_reset(&arena);
		sample_event(&arena, 1, n, &wanted);
		assert_int_equal(ev->outcome.ret, wanted.outcome.ret);
		for (i = 0; i < ev->row->nr_args; i++)
			assert_int_equal(ev->args[i].type, VALUE_NONE);
	}
	assert_int_equal(n, 50);
	trace_iter_close(it);
}

/* Iterators of one trace do not know of each other, and may end anywhere. */
static void append_row(struct trace_stream *s, unsigned int row, uint64_t enter_ns, uint64_t n)
{
	struct event ev = { .row = row_by_id(row), .enter_ns = enter_ns, .exit_ns = enter_ns + 10 };

	ev.args[0] = value_uint(n);
	OK(trace_feed_event(feed, s, &ev));
}

/* The next of a stream, if it waits: the address of its word; 0 when it does not. */
static uint64_t ahead(struct trace_iter *it, uint32_t stream)
{
	struct event *ev = NULL;
	int r = trace_iter_ahead(it, stream, C_WAIT, &ev, &err);

	OK(r);
	if (!r)
		return 0;
	assert_int_equal(ev->stream, stream);
	assert_int_equal(row_class(ev->row), C_WAIT);
	return ev->args[0].u;
}

static void test_ahead(void **state)
{
	struct trace_query q = { .order = TRACE_BY_EXIT };
	struct trace_stream *a, *b;
	struct trace_iter *it;
	struct event *ev;
	uint32_t first, second;

	(void)state;
	begin();
	a = trace_feed_open_stream(feed, 1, 1);
	b = trace_feed_open_stream(feed, 1, 2);
	append_row(a, SC_read, 100, 1);
	append_row(b, SC_read, 110, 2);
	append_row(a, SC_futex_op_wait, 300, 0x10);
	append_row(b, SC_futex_op_wait, 200, 0x20);
	append_row(b, SC_read, 400, 3);
	end();
	reopen();
	it = iterate(&q);
	ev = next(it);
	first = ev->stream;
	assert_int_equal(ev->args[0].u, 1);
	/* Of the stream at hand, more than once, and of another, whose next is not one. */
	assert_int_equal(ahead(it, first), 0x10);
	assert_int_equal(ahead(it, first), 0x10);
	assert_int_equal(ahead(it, 77), 0);
	ev = next(it);
	second = ev->stream;
	assert_int_not_equal(first, second);
	assert_int_equal(ev->args[0].u, 2);
	assert_int_equal(ahead(it, second), 0x20);
	assert_int_equal(ahead(it, first), 0x10);
	/* All come again when it is their turn, with their arguments. */
	ev = next(it);
	assert_int_equal(ev->args[0].u, 0x20);
	assert_int_equal(ahead(it, second), 0); /* it reads */
	assert_int_equal(next(it)->args[0].u, 0x10);
	assert_int_equal(ahead(it, first), 0); /* it has ended */
	assert_int_equal(next(it)->args[0].u, 3);
	assert_int_equal(ahead(it, second), 0);
	assert_null(next(it));
	assert_int_equal(ahead(it, second), 0);
	trace_iter_close(it);
}

/* Those whose turn has not come: looked at while the present event stays, and taken out of turn. */
static void test_pending(void **state)
{
	struct trace_query q = { .order = TRACE_BY_EXIT };
	struct trace_stream *a, *b, *c;
	struct event *const *pending;
	struct trace_iter *it;
	struct event *ev;
	size_t nr;

	(void)state;
	begin();
	a = trace_feed_open_stream(feed, 1, 1);
	b = trace_feed_open_stream(feed, 1, 2);
	c = trace_feed_open_stream(feed, 1, 3);
	append_row(a, SC_read, 100, 1);
	append_row(a, SC_read, 150, 4);
	append_row(b, SC_read, 102, 2);
	append_row(b, SC_read, 104, 3);
	append_row(c, SC_read, 900, 5);
	end();
	reopen();
	it = iterate(&q);
	ev = next(it);
	OK(trace_iter_pending(it, 120, &pending, &nr, &err));
	assert_int_equal(nr, 2);
	assert_int_equal(pending[1]->tid, 1);
	assert_true(trace_iter_load(it, pending[0]));
	assert_int_equal(pending[0]->args[0].u, 2);
	OK(trace_iter_take(it, pending[0], &err));
	OK(trace_iter_pending(it, 900, &pending, &nr, &err));
	assert_int_equal(nr, 3);
	assert_true(trace_iter_load(it, pending[0]));
	assert_true(trace_iter_load(it, pending[1]));
	assert_int_equal(pending[0]->args[0].u, 3);
	assert_int_equal(pending[1]->args[0].u, 4);
	assert_int_equal(pending[2]->tid, 3);
	/* The last of its stream. */
	OK(trace_iter_take(it, pending[0], &err));
	OK(trace_iter_pending(it, 900, &pending, &nr, &err));
	assert_int_equal(nr, 2);
	assert_int_equal(ev->args[0].u, 1);
	assert_int_equal(next(it)->args[0].u, 4);
	assert_int_equal(next(it)->args[0].u, 5);
	assert_int_equal(trace_iter_next(it, &ev, &err), 0);
	trace_iter_close(it);
}

/* Through many blocks of many streams: looking ahead changes nothing of what comes. */
static void test_ahead_changes_nothing(void **state)
{
	struct trace_query q = { .order = TRACE_BY_EXIT };
	struct trace_stream *streams[5];
	struct trace_iter *plain, *looked;
	uint64_t nr_ahead = 0, i;
	struct event *ev, *other;

	(void)state;
	begin();
	for (i = 0; i < 5; i++)
		streams[i] = trace_feed_open_stream(feed, 1, 1 + (uint32_t)i);
	for (i = 0; i < 100000; i++)
		append_row(streams[(i * 7 + i / 9) % 5], i % 3 ? SC_futex_op_wait : SC_read, i * 20,
			   i + 1);
	end();
	reopen();
	plain = iterate(&q);
	looked = iterate(&q);
	while ((ev = next(plain))) {
		other = next(looked);
		assert_non_null(other);
		assert_int_equal(other->args[0].u, ev->args[0].u);
		assert_int_equal(other->stream, ev->stream);
		nr_ahead += ahead(looked, other->stream) > ev->args[0].u;
	}
	assert_null(next(looked));
	assert_true(nr_ahead > 50000);
	trace_iter_close(plain);
	trace_iter_close(looked);
}

/* The event at hand stays as it is while its stream goes on to another block, or ends. */
static void test_pending_keeps_present(void **state)
{
	struct trace_query q = { .order = TRACE_BY_EXIT };
	struct trace_stream *streams[3];
	struct event *const *pending;
	struct trace_iter *it;
	struct event *ev;
	uint64_t n = 0;
	char text[32];
	size_t nr;

	(void)state;
	begin();
	for (uint32_t i = 0; i < 3; i++)
		streams[i] = trace_feed_open_stream(feed, 1, 1 + i);
	for (uint64_t i = 0; i < 60000; i++) {
		struct event made = { .row = row_by_id(SC_unlink),
				      .enter_ns = i * 20,
				      .exit_ns = i * 20 + 10 };

		(void)snprintf(text, sizeof(text), "/name/%llu", (unsigned long long)i);
		arena_reset(&arena);
		made.args[0] = value_str(&arena, text);
		OK(trace_feed_event(feed, streams[i % 3], &made));
	}
	end();
	reopen();
	it = iterate(&q);
	while ((ev = next(it))) {
		OK(trace_iter_pending(it, ev->exit_ns, &pending, &nr, &err));
		for (size_t i = 0; i < nr; i++)
			assert_true(trace_iter_load(it, pending[i]));
		(void)snprintf(text, sizeof(text), "/name/%llu", (unsigned long long)n++);
		assert_int_equal(ev->args[0].data->len_bytes, strlen(text));
		assert_memory_equal(ev->args[0].data->bytes, text, strlen(text));
	}
	assert_int_equal(n, 60000);
	trace_iter_close(it);
}

static void test_iterators_side_by_side(void **state)
{
	const struct trace_query by_enter = { 0 }, by_exit = { .order = TRACE_BY_EXIT };
	struct trace_iter *a, *b, *c;
	struct event *x, *y;
	unsigned int n = 0;

	(void)state;
	write_for_filters();
	a = iterate(&by_enter);
	b = iterate(&by_exit);
	c = iterate(&by_enter);
	assert_non_null(next(c));
	trace_iter_close(c);
	while ((x = next(a))) {
		y = next(b);
		assert_non_null(y);
		assert_int_equal(x->seq, y->seq); /* all last 50 ns, so both orders agree */
		n++;
	}
	assert_null(next(b));
	assert_int_equal(n, 300);
	trace_iter_close(a);
	trace_iter_close(b);
	trace_iter_close(NULL);
}

static void test_tid_used_again(void **state)
{
	const struct trace_stream_info *info;
	const struct trace_query all = { 0 };
	struct trace_stream *s;
	struct trace_iter *it;
	struct event *ev;
	uint32_t streams[3], n = 0;
	unsigned int i;
	size_t nr;

	(void)state;
	begin();
	for (i = 0; i < 3; i++) {
		s = trace_feed_open_stream(feed, 100 + i, 7);
		append_at(s, i * 100, i * 100 + 10, 0);
		append_at(s, i * 100 + 20, i * 100 + 30, 0);
		OK(trace_feed_close_stream(feed, s));
	}
	end();
	assert_whole();
	reopen();
	info = trace_streams(trace, &nr);
	assert_int_equal(nr, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(info[i].tid, 7);
		assert_int_equal(info[i].pid, 100 + i);
		assert_int_equal(info[i].generation, i);
		assert_int_equal(info[i].nr_events, 2);
	}
	it = iterate(&all);
	while ((ev = next(it))) {
		assert_int_equal(ev->pid, 100 + n / 2);
		streams[n / 2] = ev->stream;
		n++;
	}
	assert_int_equal(n, 6);
	assert_true(streams[0] != streams[1] && streams[1] != streams[2]);
	trace_iter_close(it);
}

/* Which life of a tid came first is told by when it began, not by which reached the file first. */
static void test_generation_follows_the_opening(void **state)
{
	const struct trace_stream_info *info;
	struct trace_stream *old, *new;
	struct trace_feed *other;
	size_t nr, i;

	(void)state;
	begin();
	other = trace_writer_add_feed(writer);
	old = trace_feed_open_stream(feed, 1, 7);
	append_at(old, 10, 20, 0);
	new = trace_feed_open_stream(other, 2, 7);
	{
		struct event ev = { .row = row_by_id(SC_read), .enter_ns = 100, .exit_ns = 110 };

		OK(trace_feed_event(other, new, &ev));
	}
	OK(trace_feed_flush(other));
	end();
	reopen();
	info = trace_streams(trace, &nr);
	assert_int_equal(nr, 2);
	for (i = 0; i < nr; i++) {
		assert_int_equal(info[i].number, i);
		assert_int_equal(info[i].generation, info[i].pid == 1 ? 0 : 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_stream),
		TEST(test_nothing_written),
		TEST(test_orders),
		TEST(test_ties),
		TEST(test_writer_numbers_events),
		TEST(test_clock_that_jumps),
		TEST(test_filter_threads),
		TEST(test_filter_times),
		TEST(test_without_arguments),
		TEST(test_ahead),
		TEST(test_pending),
		TEST(test_pending_keeps_present),
		TEST(test_ahead_changes_nothing),
		TEST(test_iterators_side_by_side),
		TEST(test_tid_used_again),
		TEST(test_generation_follows_the_opening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
