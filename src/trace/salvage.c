/* SPDX-License-Identifier: MIT */
#include "trace/salvage.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/copy.h"
#include "trace/file.h"

struct salvage {
	struct trace *from;
	struct trace_writer *writer;
	struct trace_feed *to;
	struct trace_stream **streams; /* by the position in from->streams */
	uint64_t *left; /* events that each has still to come, as its blocks say */
	struct salvage_result *res;
	struct arena arena;
	struct err *err;
};

/* What a copy's status means here: gone data and unknown rows are counted, the rest ends it. */
static int judge(struct salvage *s, int r)
{
	if (r == 1) {
		s->res->nr_missing_data++;
		return 0;
	}
	if (r == -EOPNOTSUPP || r == -E2BIG) {
		s->res->nr_lost_events++;
		return 1;
	}
	return r;
}

static int copy_section(struct salvage *s, enum block_type section)
{
	struct trace_items *it;
	struct item *item;
	int r = trace_items_open(s->from, section, &it, s->err);

	if (r < 0)
		return r;
	while ((r = trace_items_next(it, &item, s->err)) == 1) {
		arena_reset(&s->arena);
		r = judge(s, trace_copy_item(s->from, s->to, item, &s->arena, s->err));
		if (r < 0)
			break;
	}
	trace_items_close(it);
	return r;
}

/* A stream is opened with its first event and closed with the last that its blocks announce. */
static int copy_event(struct salvage *s, struct event *ev)
{
	struct trace_stream **stream = &s->streams[ev->stream];
	int r;

	if (!*stream)
		*stream = trace_feed_open_stream(s->to, ev->pid, ev->tid);
	arena_reset(&s->arena);
	r = judge(s, trace_copy_event(s->from, s->to, *stream, ev, &s->arena, s->err));
	if (!r)
		s->res->nr_events++;
	if (r >= 0 && !--s->left[ev->stream]) {
		r = trace_feed_close_stream(s->to, *stream);
		*stream = NULL;
	}
	return r < 0 ? r : 0;
}

static int copy_events(struct salvage *s, struct progress *progress)
{
	struct trace_query q = { .progress = progress };
	struct trace_iter *it;
	struct event *ev;
	int r = trace_iter_open(s->from, &q, &it, s->err);

	if (r < 0)
		return r;
	while ((r = trace_iter_next(it, &ev, s->err)) == 1) {
		r = copy_event(s, ev);
		if (r < 0)
			break;
	}
	trace_iter_close(it);
	return r;
}

/* Events that stood in blocks which are gone, as far as later blocks of their threads tell. */
static int note_gaps(struct salvage *s)
{
	size_t i;

	for (i = 0; i < s->from->streams.len; i++) {
		const struct trace_stream_info *info = &s->from->streams.items[i];
		uint64_t gap = trace_stream_gap(s->from, info);
		struct loss loss = { .kind = LOSS_EVENTS_LOST,
				     .pid = info->pid,
				     .tid = info->tid,
				     .count = gap,
				     .from_ns = info->first_ns,
				     .to_ns = info->last_ns,
				     .note = "their blocks were damaged" };
		int r;

		if (!gap)
			continue;
		s->res->nr_lost_events += gap;
		r = trace_feed_loss(s->to, &loss);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool ends_torn(const struct trace *t)
{
	size_t i;

	for (i = 0; i < t->damages.len; i++) {
		if (t->damages.items[i].tail)
			return true;
	}
	return false;
}

static int note_losses(struct salvage *s)
{
	size_t i;
	int r = note_gaps(s);

	for (i = 0; !r && i < s->from->damages.len; i++) {
		const struct trace_damage *d = &s->from->damages.items[i];
		struct loss loss = { .kind = d->tail ? LOSS_NOT_CLOSED : LOSS_BLOCK_DAMAGED,
				     .bytes = d->length_bytes };

		r = trace_feed_loss(s->to, &loss);
	}
	if (!r && s->res->nr_missing_data) {
		struct loss loss = { .kind = LOSS_BLOB_MISSING,
				     .count = s->res->nr_missing_data,
				     .note = "events and records whose data was damaged" };

		r = trace_feed_loss(s->to, &loss);
	}
	if (!r && !s->from->has_footer && !ends_torn(s->from)) {
		struct loss loss = { .kind = LOSS_NOT_CLOSED };

		r = trace_feed_loss(s->to, &loss);
	}
	return r;
}

static int copy_all(struct salvage *s, struct progress *progress)
{
	int r = copy_section(s, BLOCK_META);

	if (!r)
		r = copy_section(s, BLOCK_TREE);
	if (!r)
		r = copy_section(s, BLOCK_LEDGER);
	if (!r)
		r = copy_events(s, progress);
	return r ? r : note_losses(s);
}

/* Writing over the trace at hand would lose it when the writing fails. */
static int check_output(const struct trace *from, const char *output, struct err *err)
{
	struct stat in, out;

	if (!fstat(from->fd, &in) && !stat(output, &out) && in.st_dev == out.st_dev &&
	    in.st_ino == out.st_ino)
		return err_set(err, -EINVAL, "%s is the trace itself", output);
	return 0;
}

int trace_salvage(const char *path, const char *output, const struct trace_writer_options *o,
		  struct progress *progress, struct salvage_result *ret, struct err *err)
{
	struct trace_writer_options options = { .replace = o->replace,
						.file_mode = o->file_mode,
						.eager = true };
	struct salvage s = { .res = ret, .err = err };
	size_t i;
	int r;

	*ret = (struct salvage_result){ 0 };
	r = trace_open(path, TRACE_SALVAGE, &s.from, err);
	if (r < 0)
		return r;
	if (!s.from->blocks.len)
		r = err_set(err, -EBADMSG, "%s: nothing in it can be read", path);
	if (!r)
		r = check_output(s.from, output, err);
	if (!r)
		r = trace_writer_open(output, &options, &s.writer, err);
	if (r < 0)
		goto out;
	progress_set_total(progress, trace_nr_events(s.from));
	s.to = trace_writer_add_feed(s.writer);
	s.streams = xcalloc(s.from->streams.len, sizeof(*s.streams));
	s.left = xcalloc(s.from->streams.len, sizeof(*s.left));
	for (i = 0; i < s.from->streams.len; i++)
		s.left[i] = s.from->streams.items[i].nr_events;
	arena_init(&s.arena);
	r = copy_all(&s, progress);
	arena_release(&s.arena);
	if (r < 0)
		trace_writer_abandon(s.writer);
	else
		r = trace_writer_close(s.writer, err);
	if (r < 0)
		(void)unlink(output); /* half a trace would look like a whole one */
out:
	free(s.streams);
	free(s.left);
	trace_close(s.from);
	return r;
}
