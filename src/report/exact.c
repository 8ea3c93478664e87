/* SPDX-License-Identifier: MIT */
#include "report/exact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "model/blobmap.h"
#include "model/print.h"

#define TEXT_BYTES ((size_t)64 << 10)

/* What blob_slot.place says of a hash that was seen. */
enum {
	BLOB_MISSING = 1,
	BLOB_PRINTED = 2,
};

struct exact {
	struct trace *t;
	FILE *out;
	struct err *err;
	struct buf text;
	struct arena arena; /* for the references of the current event that had to be changed */
	struct blob_map blobs;
	uint64_t nr_missing;
	const struct trace_stream_info *streams;
};

static int write_text(struct exact *x)
{
	size_t done = fwrite(x->text.data, 1, x->text.len, x->out);
	bool whole = done == x->text.len;

	buf_clear(&x->text);
	return whole ? 0 : -ECANCELED; /* not worth more words: see exact_print_trace() */
}

static int end_line(struct exact *x)
{
	buf_putc(&x->text, '\n');
	return x->text.len < TEXT_BYTES ? 0 : write_text(x);
}

/* Blobs. */

/* 1: printed, 0: the file has lost it. */
static int print_blob(struct exact *x, const struct data *d, uint64_t piece)
{
	struct err why = { 0 };
	const uint8_t *bytes;
	size_t len;
	int r = trace_load_piece(x->t, d, piece, &bytes, &len, &why);

	if (r == 1) {
		print_blob_line(&x->text, d->refs[piece].hash, bytes, len);
		r = end_line(x);
		return r < 0 ? r : 1;
	}
	if (r < 0 && r != -ENODATA && r != -EBADMSG) {
		if (x->err)
			*x->err = why;
		return r;
	}
	x->nr_missing++;
	buf_puts(&x->text, "# lost: ");
	print_hash(&x->text, d->refs[piece].hash);
	return end_line(x);
}

/* Sees to it that a stored piece is printed before it is referred to. */
static int ensure_blob(struct exact *x, const struct data *d, uint64_t piece)
{
	struct blob_slot *slot;
	bool is_new;
	int r;

	slot = blob_map_add(&x->blobs, d->refs[piece].hash, &is_new);
	if (is_new) {
		r = print_blob(x, d, piece);
		if (r < 0)
			return r;
		slot->place = r ? BLOB_PRINTED : BLOB_MISSING;
	}
	return slot->place == BLOB_PRINTED;
}

/* What cannot be given any more is referred to by its hash alone. */
static void forget_piece(struct exact *x, struct data *d, uint64_t piece)
{
	size_t size = (size_t)data_nr_pieces(d) * sizeof(*d->refs);
	struct blob_ref *copy = arena_alloc(&x->arena, size);

	memcpy(copy, d->refs, size);
	copy[piece].blob = 0;
	d->refs = copy;
}

static int print_blobs_of_data(struct exact *x, struct data *d)
{
	uint64_t i, nr = d->refs ? data_nr_pieces(d) : 0;

	for (i = 0; i < nr; i++) {
		int r = d->refs[i].blob ? ensure_blob(x, d, i) : 1;

		if (r < 0)
			return r;
		if (!r)
			forget_piece(x, d, i);
	}
	return 0;
}

static int print_blobs(struct exact *x, const struct value *values, uint32_t nr)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < nr && !r; i++) {
		const struct value *v = &values[i];

		if (v->type == VALUE_DATA)
			r = print_blobs_of_data(x, v->data);
		else if (v->type == VALUE_STRUCT)
			r = print_blobs(x, v->fields->items, v->count);
		else if (v->type == VALUE_LIST)
			r = print_blobs(x, v->items, v->count);
	}
	return r;
}

/* Records. */

static int print_item(struct exact *x, struct item *item)
{
	int r;

	arena_reset(&x->arena);
	r = print_blobs(x, item->args, item->row->nr_args);
	if (r < 0)
		return r;
	print_item_line(&x->text, item);
	return end_line(x);
}

static int print_section(struct exact *x, enum block_type section)
{
	struct trace_items *it;
	struct item *item;
	int r = trace_items_open(x->t, section, &it, x->err);

	if (r < 0)
		return r;
	while ((r = trace_items_next(it, &item, x->err)) > 0) {
		r = print_item(x, item);
		if (r < 0)
			break;
	}
	trace_items_close(it);
	return r;
}

/* Streams. */

static int by_number(const void *a, const void *b)
{
	const struct trace_stream_info *x = *(const struct trace_stream_info *const *)a;
	const struct trace_stream_info *y = *(const struct trace_stream_info *const *)b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static const struct trace_stream_info **sort_streams(struct trace *t, size_t *ret_nr)
{
	const struct trace_stream_info *infos = trace_streams(t, ret_nr);
	const struct trace_stream_info **sorted = xmalloc(*ret_nr * sizeof(*sorted));
	size_t i;

	for (i = 0; i < *ret_nr; i++)
		sorted[i] = &infos[i];
	if (*ret_nr)
		qsort(sorted, *ret_nr, sizeof(*sorted), by_number);
	return sorted;
}

static bool has_number(const uint32_t *list, size_t nr, uint32_t number)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (list[i] == number)
			return true;
	}
	return !nr;
}

/*
 * Streams are numbered in the order in which they were opened. Printed in that
 * order they are opened again in that order, and the number of their events
 * says when they can be closed.
 */
static int print_streams(struct exact *x, const struct trace_query *q)
{
	size_t i, nr;
	const struct trace_stream_info **sorted = sort_streams(x->t, &nr);
	int r = 0;

	for (i = 0; i < nr && !r; i++) {
		const struct trace_stream_info *s = sorted[i];

		if (!has_number(q->pids, q->nr_pids, s->pid) ||
		    !has_number(q->tids, q->nr_tids, s->tid))
			continue;
		print_stream_line(&x->text, s->pid, s->tid, s->generation, s->nr_events);
		r = end_line(x);
	}
	free(sorted);
	return r;
}

/* Events. */

static int print_event(struct exact *x, struct event *ev)
{
	int r;

	arena_reset(&x->arena);
	r = print_blobs(x, ev->args, ev->row->nr_args);
	if (r < 0)
		return r;
	print_event_line(&x->text, ev, x->streams[ev->stream].generation);
	return end_line(x);
}

static int print_events(struct exact *x, const struct trace_query *q,
			const struct exact_filter *filter)
{
	uint64_t left = filter->nr_events_max ? filter->nr_events_max : UINT64_MAX;
	struct trace_iter *it;
	struct event *ev;
	int r = trace_iter_open(x->t, q, &it, x->err);

	if (r < 0)
		return r;
	while (left && (r = trace_iter_next(it, &ev, x->err)) > 0) {
		if (filter->keep && !filter->keep(filter->ctx, ev))
			continue;
		r = print_event(x, ev);
		if (r < 0)
			break;
		left--;
	}
	trace_iter_close(it);
	return r < 0 ? r : 0;
}

static int print_all(struct exact *x, const struct trace_query *q, const struct exact_filter *f)
{
	int r;

	buf_puts(&x->text, EXACT_HEADER);
	r = end_line(x);
	if (!r)
		r = print_section(x, BLOCK_META);
	if (!r)
		r = print_section(x, BLOCK_LEDGER);
	if (!r)
		r = print_section(x, BLOCK_TREE);
	if (!r)
		r = print_streams(x, q);
	if (!r)
		r = print_events(x, q, f);
	return r ? r : write_text(x);
}

int exact_print_trace(struct trace *t, const struct trace_query *q,
		      const struct exact_filter *filter, FILE *out, struct err *err)
{
	static const struct trace_query all_events;
	static const struct exact_filter no_filter;
	struct exact x = { .t = t, .out = out, .err = err };
	size_t nr_streams;
	int r;

	x.streams = trace_streams(t, &nr_streams);
	arena_init(&x.arena);
	r = print_all(&x, q ? q : &all_events, filter ? filter : &no_filter);
	if (r == -ECANCELED)
		r = 0; /* the owner of out knows why, and says so */
	if (!r && x.nr_missing)
		r = err_set(err, -ENODATA, "%s: %llu pieces of data are lost", trace_path(t),
			    (unsigned long long)x.nr_missing);
	arena_release(&x.arena);
	blob_map_release(&x.blobs);
	buf_release(&x.text);
	return r;
}
