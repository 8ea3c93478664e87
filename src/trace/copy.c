/* SPDX-License-Identifier: MIT */
#include "trace/copy.h"

#include <errno.h>

struct copier {
	struct trace *from;
	struct trace_feed *to;
	struct arena *arena;
	struct err *err;
	bool missing; /* some data is gone from the source */
};

static int copy_piece(struct copier *c, const struct data *d, uint64_t piece, struct blob_ref *ret)
{
	const uint8_t *bytes;
	size_t len;
	struct err why;
	int r = trace_load_piece(c->from, d, piece, &bytes, &len, &why);

	*ret = (struct blob_ref){ .hash = d->refs[piece].hash };
	if (r == 1) {
		r = trace_feed_blob(c->to, bytes, len, ret);
		return r < 0 ? err_set(c->err, r, "cannot write the new trace") : 0;
	}
	if (r < 0 && r != -ENODATA && r != -EBADMSG) {
		if (c->err)
			*c->err = why;
		return r;
	}
	if (r < 0)
		c->missing = true;
	return 0;
}

static int copy_data(struct copier *c, struct value *v)
{
	struct data *copy;
	struct blob_ref *refs;
	uint64_t i, nr;
	int r;

	if (!v->data->refs)
		return 0;
	nr = data_nr_pieces(v->data);
	refs = arena_alloc(c->arena, nr * sizeof(*refs));
	for (i = 0; i < nr; i++) {
		r = copy_piece(c, v->data, i, &refs[i]);
		if (r < 0)
			return r;
	}
	copy = arena_alloc(c->arena, sizeof(*copy));
	*copy = *v->data;
	copy->refs = refs;
	v->data = copy;
	return 0;
}

static int copy_values(struct copier *c, struct value *values, uint32_t nr)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < nr && !r; i++) {
		struct value *v = &values[i];

		if (v->type == VALUE_DATA)
			r = copy_data(c, v);
		else if (v->type == VALUE_STRUCT)
			r = copy_values(c, v->fields->items, v->count);
		else if (v->type == VALUE_LIST)
			r = copy_values(c, v->items, v->count);
	}
	return r;
}

int trace_copy_values(struct trace *from, struct trace_feed *to, struct value *values, uint32_t nr,
		      struct arena *a, struct err *err)
{
	struct copier c = { .from = from, .to = to, .arena = a, .err = err };
	int r = copy_values(&c, values, nr);

	return r < 0 ? r : c.missing;
}

static bool row_is_known(const struct row *row)
{
	return row_by_id(row->id) == row;
}

int trace_copy_event(struct trace *from, struct trace_feed *to, struct trace_stream *s,
		     struct event *ev, struct arena *a, struct err *err)
{
	struct copier c = { .from = from, .to = to, .arena = a, .err = err };
	int r;

	if (!row_is_known(ev->row))
		return err_set(err, -EOPNOTSUPP, "call %s is not in the table", ev->row->name);
	r = copy_values(&c, ev->args, ev->row->nr_args);
	if (r < 0)
		return r;
	r = trace_feed_event(to, s, ev);
	if (r < 0)
		return err_set(err, r, "cannot write the new trace");
	return c.missing;
}

int trace_copy_item(struct trace *from, struct trace_feed *to, struct item *item, struct arena *a,
		    struct err *err)
{
	struct copier c = { .from = from, .to = to, .arena = a, .err = err };
	int r;

	if (!row_is_known(item->row))
		return err_set(err, -EOPNOTSUPP, "record %s is not in the table", item->row->name);
	r = copy_values(&c, item->args, item->row->nr_args);
	if (r < 0)
		return r;
	r = trace_feed_item(to, item);
	if (r < 0)
		return err_set(err, r, "cannot write the new trace");
	return c.missing;
}
