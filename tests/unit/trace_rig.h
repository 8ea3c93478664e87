/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the trace container share: one trace that is written, then
 * read, and failures that end the test with the words of the error. Included
 * behind cmocka.h, once in a program.
 */
#ifndef UNIT_TRACE_RIG_H
#define UNIT_TRACE_RIG_H

#include "sample.h"
#include "scratch.h"
#include "trace/check.h"
#include "trace/reader.h"
#include "trace/writer.h"

static struct arena arena;
static struct err err;
static struct trace_writer *writer;
static struct trace_feed *feed;
static struct trace *trace;

#define OK(call)                                                                                   \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, err.text);                                       \
	} while (0)

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

static int rig_setup(void **state)
{
	(void)state;
	arena_init(&arena);
	err.text[0] = 0;
	return 0;
}

static int rig_teardown(void **state)
{
	(void)state;
	trace_close(trace);
	trace = NULL;
	trace_writer_abandon(writer);
	writer = NULL;
	arena_release(&arena);
	return 0;
}

static inline const char *path(void)
{
	return scratch_path("t.trace");
}

static inline void begin_with(const struct trace_writer_options *options)
{
	OK(trace_writer_open(path(), options, &writer, &err));
	feed = trace_writer_add_feed(writer);
}

static inline void begin(void)
{
	begin_with(&(struct trace_writer_options){ .replace = true });
}

static inline void end(void)
{
	struct trace_writer *w = writer;

	writer = NULL;
	OK(trace_writer_close(w, &err));
}

static inline void reopen(void)
{
	trace_close(trace);
	trace = NULL;
	OK(trace_open(path(), 0, &trace, &err));
}

static inline void append_sample(struct trace_stream *s, uint32_t tid, uint64_t n)
{
	struct event ev;

	arena_reset(&arena);
	sample_event(&arena, tid, n, &ev);
	OK(trace_feed_event(feed, s, &ev));
}

/* An event that is all about its times. */
static inline void append_at(struct trace_stream *s, uint64_t enter_ns, uint64_t exit_ns,
			     uint64_t seq)
{
	struct event ev = { .row = row_by_id(SC_read), .seq = seq };

	ev.enter_ns = enter_ns;
	ev.exit_ns = exit_ns;
	OK(trace_feed_event(feed, s, &ev));
}

static inline struct trace_iter *iterate(const struct trace_query *q)
{
	struct trace_iter *it;

	OK(trace_iter_open(trace, q, &it, &err));
	return it;
}

/* NULL at the end. */
static inline struct event *next(struct trace_iter *it)
{
	struct event *ev = NULL;

	OK(trace_iter_next(it, &ev, &err));
	return ev;
}

static inline uint64_t count(const struct trace_query *q)
{
	struct trace_iter *it = iterate(q);
	uint64_t nr = 0;

	while (next(it))
		nr++;
	trace_iter_close(it);
	return nr;
}

static inline unsigned int count_items(enum block_type section, unsigned int row_id)
{
	struct trace_items *it;
	struct item *item;
	unsigned int nr = 0;

	OK(trace_items_open(trace, section, &it, &err));
	while (trace_items_next(it, &item, &err) == 1)
		nr += item->row->id == row_id;
	assert_string_equal(err.text, "");
	trace_items_close(it);
	return nr;
}

/* Whole as a file; what its ledger says is another matter. */
static inline void assert_whole(void)
{
	struct check_result c;

	OK(trace_check(path(), NULL, &c, &err));
	assert_string_equal(c.first_fault.text, "");
	assert_true(c.closed);
}

#endif
