/* SPDX-License-Identifier: MIT */
/*
 * The exact text form of a trace (doc/trace-text.md). What `reprise show
 * --exact` printed becomes the same trace again; what somebody wrote by hand
 * becomes a trace with invented times and numbers where they were left out.
 *
 * Memory grows with the number of distinct blobs (model/blobmap.h) and with the
 * number of threads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "import/import.h"
#include "model/blobmap.h"
#include "model/parse.h"

#define HEADER "# reprise exact "
/* How far apart events without times are put. */
#define STEP_NS NS_PER_US

struct exact_stream {
	struct line_thread thread;
	struct trace_stream *stream; /* NULL: not yet open, or closed again */
	uint64_t nr_events_left; /* 0: not known */
	size_t turn; /* which to open before it: as many of the announced ones */
};

struct exact {
	struct import *im;
	const struct import_input *in;
	struct parser *parser;
	struct arena arena;
	struct line line;
	struct blob_map blobs;
	struct map streams; /* struct line_thread -> struct exact_stream */
	VEC(struct exact_stream *) announced;
	size_t nr_opened; /* of these */
	struct line_thread last_thread;
	uint64_t last_seq, last_enter_ns; /* the largest so far */
};

/* Data. */

static int store_blob(struct exact *x, struct err *err)
{
	const struct line_blob *b = &x->line.blob;
	struct blob_slot *slot;
	struct blob_ref ref;
	bool is_new;
	int r;

	if (!hash_equal(hash_bytes(b->bytes, b->len), b->hash))
		return err_set(err, -EBADMSG, "the bytes of this blob have another hash");
	slot = blob_map_add(&x->blobs, b->hash, &is_new);
	if (!is_new)
		return 0;
	r = trace_feed_blob(x->im->feed, b->bytes, b->len, &ref);
	if (r < 0)
		return err_set(err, r, "cannot write");
	slot->place = ref.blob;
	slot->len_bytes = (uint32_t)b->len;
	return 0;
}

static int resolve_piece(struct exact *x, struct blob_ref *ref, uint64_t len, struct err *err)
{
	const struct blob_slot *slot = blob_map_find(&x->blobs, ref->hash);

	if (!slot)
		return err_set(err, -EBADMSG, "no blob %016llx%016llx came before this line",
			       (unsigned long long)ref->hash.high,
			       (unsigned long long)ref->hash.low);
	if (slot->len_bytes != len)
		return err_set(err, -EBADMSG, "blob %016llx%016llx has %u bytes and not %llu",
			       (unsigned long long)ref->hash.high,
			       (unsigned long long)ref->hash.low, slot->len_bytes,
			       (unsigned long long)len);
	ref->blob = slot->place;
	return 0;
}

static int resolve_data(struct exact *x, struct data *d, struct err *err)
{
	uint64_t i, nr = d->refs ? data_nr_pieces(d) : 0;
	/* Made by the parser in our arena, for us to fill in. */
	struct blob_ref *refs = (struct blob_ref *)d->refs;

	for (i = 0; i < nr; i++) {
		uint64_t len = d->kept_bytes - i * BLOB_MAX_BYTES;
		int r;

		if (!refs[i].blob)
			continue;
		r = resolve_piece(x, &refs[i], len < BLOB_MAX_BYTES ? len : BLOB_MAX_BYTES, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int resolve_values(struct exact *x, const struct value *values, uint32_t nr, struct err *err)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < nr && !r; i++) {
		const struct value *v = &values[i];

		if (v->type == VALUE_DATA)
			r = resolve_data(x, v->data, err);
		else if (v->type == VALUE_STRUCT)
			r = resolve_values(x, v->fields->items, v->count, err);
		else if (v->type == VALUE_LIST)
			r = resolve_values(x, v->items, v->count, err);
	}
	return r;
}

/* Streams. */

static struct exact_stream *find_stream(struct exact *x, const struct line_thread *thread)
{
	void **slot = map_slot(&x->streams, thread, sizeof(*thread));
	struct exact_stream *s = *slot;

	if (!s) {
		*slot = s = xcalloc(1, sizeof(*s));
		s->thread = *thread;
	}
	return s;
}

static void announce_stream(struct exact *x)
{
	struct exact_stream *s = find_stream(x, &x->line.thread);

	VEC_PUSH(&x->announced, s);
	s->turn = x->announced.len;
	s->nr_events_left = x->line.nr_events;
}

static void open_stream(struct exact *x, struct exact_stream *s)
{
	if (!s->stream)
		s->stream = trace_feed_open_stream(x->im->feed, s->thread.pid, s->thread.tid);
}

/*
 * The order of opening is what numbers streams, so those announced before this
 * one come first. The others wait: the fewer are open, the larger their blocks.
 */
static void open_in_turn(struct exact *x, struct exact_stream *s)
{
	while (x->nr_opened < s->turn)
		open_stream(x, x->announced.items[x->nr_opened++]);
	open_stream(x, s);
}

static int close_stream(struct exact *x, struct exact_stream *s)
{
	struct trace_stream *stream = s->stream;

	s->stream = NULL;
	return stream ? trace_feed_close_stream(x->im->feed, stream) : 0;
}

/* About in the order of opening, so that the file has them in that order too. */
static int close_streams(struct exact *x, struct err *err)
{
	int r = 0;

	MAP_EACH (&x->streams, e) {
		int closed = close_stream(x, e->value);

		r = r ? r : closed;
	}
	return r < 0 ? err_set(err, r, "cannot write") : 0;
}

/* Events. */

static void complete_event(struct exact *x, struct event *ev)
{
	if (x->line.has_thread)
		x->last_thread = x->line.thread;
	if (!x->line.has_seq)
		ev->seq = x->last_seq + 1;
	if (!x->line.has_time) {
		ev->enter_ns = ev->exit_ns = clock_add_ns(x->last_enter_ns, STEP_NS);
		ev->flags |= EVENT_NO_TIME;
	}
	if (ev->seq > x->last_seq)
		x->last_seq = ev->seq;
	if (ev->enter_ns > x->last_enter_ns)
		x->last_enter_ns = ev->enter_ns;
}

static int feed_event(struct exact *x, struct err *err)
{
	struct event *ev = &x->line.event;
	struct exact_stream *s;
	int r = resolve_values(x, ev->args, ev->row->nr_args, err);

	if (r < 0)
		return r;
	complete_event(x, ev);
	s = find_stream(x, &x->last_thread);
	open_in_turn(x, s);
	r = trace_feed_event(x->im->feed, s->stream, ev);
	if (r == -E2BIG)
		return err_set(err, -EBADMSG, "the event is too large for a trace");
	if (r < 0)
		return err_set(err, r, "cannot write");
	x->im->counts.nr_events++;
	if (s->nr_events_left && !--s->nr_events_left) {
		r = close_stream(x, s);
		if (r < 0)
			return err_set(err, r, "cannot write");
	}
	return 0;
}

static int feed_item(struct exact *x, struct err *err)
{
	struct item *item = &x->line.item;
	int r = resolve_values(x, item->args, item->row->nr_args, err);

	if (r < 0)
		return r;
	r = trace_feed_item(x->im->feed, item);
	if (r == -E2BIG)
		return err_set(err, -EBADMSG, "the record is too large for a trace");
	return r < 0 ? err_set(err, r, "cannot write") : 0;
}

static int read_line(struct exact *x, const char *text, size_t len, struct err *err)
{
	int r;

	arena_reset(&x->arena);
	r = parse_line(x->parser, text, len, &x->arena, &x->line, err);
	if (r < 0)
		return r;
	switch (x->line.type) {
	case LINE_EMPTY:
		return 0;
	case LINE_BLOB:
		return store_blob(x, err);
	case LINE_ITEM:
		return feed_item(x, err);
	case LINE_EVENT:
		return feed_event(x, err);
	case LINE_STREAM:
		announce_stream(x);
		return 0;
	}
	return 0;
}

static int read_input(struct exact *x, struct import_input *in, struct err *err)
{
	const char *text;
	size_t len;
	int r = import_input_open(in, err);

	if (r < 0)
		return r;
	while ((r = import_input_line(in, &text, &len, err)) > 0) {
		x->im->counts.nr_lines++;
		r = read_line(x, text, len, err);
		if (r == -EBADMSG)
			r = import_reject_line(x->im, in, err);
		if (r < 0)
			break;
	}
	import_input_close(in);
	return r;
}

static int exact_run(struct import *im, struct err *err)
{
	struct exact x = { .im = im, .last_thread = { .pid = 1, .tid = 1 } };
	struct err unheard;
	int r = 0, closed;
	size_t i;

	x.parser = parser_new();
	arena_init(&x.arena);
	for (i = 0; i < im->nr_inputs && !r; i++)
		r = read_input(&x, &im->inputs[i], err);
	closed = close_streams(&x, r ? &unheard : err);
	MAP_EACH (&x.streams, e)
		free(e->value);
	map_release(&x.streams);
	VEC_RELEASE(&x.announced);
	blob_map_release(&x.blobs);
	arena_release(&x.arena);
	parser_free(x.parser);
	return r ? r : closed;
}

/* A line of ours has names for the arguments; no other tracer's has. */
static bool is_our_line(const char *text, size_t len)
{
	struct parser *p = parser_new();
	struct arena arena;
	struct line line;
	int r;

	arena_init(&arena);
	r = parse_line(p, text, len, &arena, &line, NULL);
	arena_release(&arena);
	parser_free(p);
	return !r && line.type != LINE_EMPTY;
}

static int exact_probe(const uint8_t *first, size_t len)
{
	const char *text = (const char *)first, *end = text + len;

	if (len >= strlen(HEADER) && !memcmp(text, HEADER, strlen(HEADER)))
		return 100;
	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		const char *stop = eol ? eol : end;

		if (stop > text && *text != '#')
			return is_our_line(text, (size_t)(stop - text)) ? 60 : 0;
		text = eol ? eol + 1 : end;
	}
	return 0;
}

const struct importer importer_exact = {
	.name = "exact",
	.summary = "the text that `reprise show --exact` prints, or somebody wrote",
	.probe = exact_probe,
	.run = exact_run,
};
