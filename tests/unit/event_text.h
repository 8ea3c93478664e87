/* SPDX-License-Identifier: MIT */
/*
 * Events and small traces for tests, written as exact text. For one test
 * program: include it once, after cmocka.h.
 */
#ifndef UNIT_EVENT_TEXT_H
#define UNIT_EVENT_TEXT_H

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/parse.h"
#include "trace/writer.h"

#define EVENT_TEXT_THREADS 64

struct event_text {
	struct parser *parser;
	struct arena arena; /* all that was parsed lives until the end */
	uint32_t tids[EVENT_TEXT_THREADS]; /* by stream */
	unsigned int nr_tids;
};

static struct event_text event_text;

static int event_text_setup(void **state)
{
	(void)state;
	event_text.parser = parser_new();
	arena_init(&event_text.arena);
	event_text.nr_tids = 0;
	return 0;
}

static int event_text_teardown(void **state)
{
	(void)state;
	parser_free(event_text.parser);
	arena_release(&event_text.arena);
	return 0;
}

static struct line event_text_line(const char *text)
{
	struct line line;
	struct err err = { "" };

	if (parse_line(event_text.parser, text, strlen(text), &event_text.arena, &line, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return line;
}

/* Threads get their streams in the order of appearance. */
static uint32_t event_text_stream(uint32_t tid)
{
	unsigned int i;

	for (i = 0; i < event_text.nr_tids; i++) {
		if (event_text.tids[i] == tid)
			return i;
	}
	assert_true(i < EVENT_TEXT_THREADS);
	event_text.tids[event_text.nr_tids++] = tid;
	return i;
}

UNUSED static struct event event_from_text(const char *text)
{
	struct line line = event_text_line(text);

	assert_int_equal(line.type, LINE_EVENT);
	line.event.stream = event_text_stream(line.event.tid);
	return line.event;
}

/* Lines up to NULL become a trace at path. */
UNUSED static void trace_from_text(const char *path, const char *const *lines)
{
	struct trace_stream *streams[EVENT_TEXT_THREADS] = { 0 };
	struct trace_writer_options options = { .replace = true };
	struct trace_writer *w;
	struct trace_feed *f;
	struct err err = { "" };

	event_text.nr_tids = 0;
	assert_int_equal(trace_writer_open(path, &options, &w, &err), 0);
	f = trace_writer_add_feed(w);
	for (; *lines; lines++) {
		struct line line = event_text_line(*lines);
		uint32_t n;

		if (line.type == LINE_ITEM) {
			assert_int_equal(trace_feed_item(f, &line.item), 0);
			continue;
		}
		assert_int_equal(line.type, LINE_EVENT);
		n = event_text_stream(line.event.tid);
		if (!streams[n])
			streams[n] = trace_feed_open_stream(f, line.event.pid, line.event.tid);
		assert_int_equal(trace_feed_event(f, streams[n], &line.event), 0);
	}
	assert_int_equal(trace_writer_close(w, &err), 0);
}

#endif
