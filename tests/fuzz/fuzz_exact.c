/* SPDX-License-Identifier: MIT */
/*
 * The parser of the exact text form, line by line. What it understands must
 * print, be understood again, and print the same.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "model/parse.h"
#include "model/print.h"

struct state {
	struct parser *parser;
	struct arena arena;
	struct line line;
	struct buf first, second;
};

static void print_line(const struct line *line, struct buf *out)
{
	buf_clear(out);
	switch (line->type) {
	case LINE_EMPTY:
		break;
	case LINE_EVENT:
		print_event_line(out, &line->event, line->thread.generation);
		break;
	case LINE_ITEM:
		print_item_line(out, &line->item);
		break;
	case LINE_BLOB:
		print_blob_line(out, line->blob.hash, line->blob.bytes, line->blob.len);
		break;
	case LINE_STREAM:
		print_stream_line(out, line->thread.pid, line->thread.tid, line->thread.generation,
				  line->nr_events);
		break;
	}
}

static void print_for_people(const struct line *line, struct buf *out)
{
	struct print_style style = print_human;

	buf_clear(out);
	style.extras = true;
	if (line->type == LINE_EVENT)
		print_call(out, &line->event, &style);
}

static void try_line(struct state *s, const char *text, size_t len)
{
	struct err err;

	arena_reset(&s->arena);
	if (parse_line(s->parser, text, len, &s->arena, &s->line, &err) < 0)
		return;
	print_for_people(&s->line, &s->second);
	print_line(&s->line, &s->first);
	arena_reset(&s->arena);
	if (parse_line(s->parser, buf_str(&s->first), s->first.len, &s->arena, &s->line, &err) < 0)
		abort();
	print_line(&s->line, &s->second);
	if (s->first.len != s->second.len ||
	    (s->first.len && memcmp(s->first.data, s->second.data, s->first.len) != 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = text + size;
	static struct parser *parser; /* keeps nothing from line to line, and is slow to make */
	struct state s = { 0 };

	if (!parser)
		parser = parser_new();
	s.parser = parser;
	arena_init(&s.arena);
	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		const char *stop = eol ? eol : end;

		try_line(&s, text, (size_t)(stop - text));
		text = eol ? eol + 1 : end;
	}
	arena_release(&s.arena);
	buf_release(&s.first);
	buf_release(&s.second);
	return 0;
}
