/* SPDX-License-Identifier: MIT */
#include "import/sink.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/mem.h"

struct sink_thread {
	uint32_t pid, tid;
	struct trace_stream *stream; /* NULL: it has ended */
};

static int cannot_write(struct err *err, int r)
{
	return r < 0 ? err_set(err, r, "cannot write") : r;
}

static struct sink_thread *find_thread(struct import_sink *sink, uint32_t tid)
{
	struct sink_thread *t = sink->last;
	void **slot;

	if (t && t->tid == tid)
		return t;
	slot = map_slot(&sink->threads, &tid, sizeof(tid));
	t = *slot;
	if (!t) {
		*slot = t = xcalloc(1, sizeof(*t));
		t->tid = tid;
	}
	sink->last = t;
	return t;
}

static int end_thread(struct import_sink *sink, struct sink_thread *t)
{
	struct trace_stream *stream = t->stream;

	t->stream = NULL;
	return stream ? trace_feed_close_stream(sink->im->feed, stream) : 0;
}

int import_sink_event(struct import_sink *sink, struct event *ev, struct err *err)
{
	struct sink_thread *t = find_thread(sink, ev->tid);
	int r = 0;

	if (t->stream && t->pid != ev->pid)
		r = end_thread(sink, t);
	if (r < 0)
		return cannot_write(err, r);
	if (!t->stream) {
		t->pid = ev->pid;
		t->stream = trace_feed_open_stream(sink->im->feed, ev->pid, ev->tid);
	}
	if (!ev->seq)
		ev->seq = sink->last_seq + 1;
	r = trace_feed_event(sink->im->feed, t->stream, ev);
	if (r == -E2BIG)
		return err_set(err, -EBADMSG, "the event is too large for a trace");
	if (r < 0)
		return cannot_write(err, r);
	if (ev->seq > sink->last_seq)
		sink->last_seq = ev->seq;
	sink->im->counts.nr_events++;
	return 0;
}

int import_sink_end_thread(struct import_sink *sink, uint32_t tid, struct err *err)
{
	return cannot_write(err, end_thread(sink, find_thread(sink, tid)));
}

int import_sink_close(struct import_sink *sink, struct err *err)
{
	int r = 0;

	MAP_EACH (&sink->threads, e) {
		int ended = end_thread(sink, e->value);

		r = r ? r : ended;
		free(e->value);
	}
	map_release(&sink->threads);
	sink->last = NULL;
	return cannot_write(err, r);
}

int import_sink_item(struct import_sink *sink, const struct item *item, struct err *err)
{
	int r = trace_feed_item(sink->im->feed, item);

	if (r == -E2BIG)
		return err_set(err, -EBADMSG, "the record is too large for a trace");
	return cannot_write(err, r);
}

int import_sink_meta(struct import_sink *sink, const char *key, const char *value, struct err *err)
{
	return cannot_write(err, trace_feed_meta(sink->im->feed, key, value));
}

int import_sink_loss(struct import_sink *sink, const struct loss *loss, struct err *err)
{
	return cannot_write(err, trace_feed_loss(sink->im->feed, loss));
}

int import_sink_describe(struct import_sink *sink, const char *format, struct err *err)
{
	int r = import_sink_meta(sink, "import.format", format, err);
	size_t i;

	for (i = 0; i < sink->im->nr_inputs && !r; i++)
		r = import_sink_meta(sink, "import.source", sink->im->inputs[i].name, err);
	return r;
}
