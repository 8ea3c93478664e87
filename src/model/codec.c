/* SPDX-License-Identifier: MIT */
#include "model/codec.h"

#include <errno.h>

/* The first byte of data. */
enum data_form {
	DATA_NULL,
	DATA_ADDR,
	DATA_INLINE, /* len, bytes */
	DATA_INLINE_CUT, /* len, kept, bytes */
	DATA_REFS, /* len, a ref for each piece */
	DATA_REFS_CUT, /* len, kept, a ref for each piece */
	DATA_NOT_KEPT, /* len */
	DATA_NONE,
};

/* The head of a struct or list: a number below HEAD_BASE, or HEAD_BASE + items. */
enum {
	HEAD_NULL,
	HEAD_ADDR,
	HEAD_NONE,
	HEAD_BASE,
};

/* Structs may only contain structs described before, lists only structs: so this is generous. */
#define DEPTH_MAX 12
#define REF_BYTES_MIN 17 /* the hash and a varint */
#define REF_BYTES_MAX (16 + VARINT_MAX)
#define DATA_HEAD_BYTES_MAX (1 + 2 * VARINT_MAX)
/* What numbers take at most, and data that is short or one piece which is stored already. */
#define SIMPLE_BYTES_MAX (DATA_HEAD_BYTES_MAX + DATA_INLINE_MAX)

struct encoder {
	const struct schema *schema;
	struct blob_sink *sink;
	struct buf *out;
};

static int put_value(struct encoder *e, char type, const struct wire *w, const struct value *v);

static void put_u(struct encoder *e, uint64_t u)
{
	uint8_t *p = buf_reserve(e->out, VARINT_MAX);

	e->out->len += (size_t)(put_uvarint(p, u) - p);
}

static uint8_t *put_ref(uint8_t *p, const struct blob_ref *ref)
{
	put_le64(p, ref->hash.low);
	put_le64(p + 8, ref->hash.high);
	return put_uvarint(p + 16, ref->blob);
}

static int put_refs(struct encoder *e, const struct data *d)
{
	uint64_t done, piece;
	int r;

	for (done = 0; done < d->kept_bytes; done += piece) {
		struct blob_ref ref;

		piece = d->kept_bytes - done;
		if (piece > BLOB_MAX_BYTES)
			piece = BLOB_MAX_BYTES;
		if (d->refs) {
			ref = d->refs[done / BLOB_MAX_BYTES];
		} else {
			r = e->sink->put(e->sink, d->bytes + done, (size_t)piece, &ref);
			if (r < 0)
				return r;
		}
		e->out->len =
			(size_t)(put_ref(buf_reserve(e->out, REF_BYTES_MAX), &ref) - e->out->data);
	}
	return 0;
}

static uint8_t *put_data_head(uint8_t *p, const struct data *d, bool by_refs)
{
	bool cut = d->kept_bytes < d->len_bytes;

	if (cut && !d->kept_bytes) {
		*p++ = DATA_NOT_KEPT;
		return put_uvarint(p, d->len_bytes);
	}
	*p++ = (uint8_t)((by_refs ? DATA_REFS : DATA_INLINE) + cut);
	p = put_uvarint(p, d->len_bytes);
	return cut ? put_uvarint(p, d->kept_bytes) : p;
}

/* Nothing has to be stored for it, and it fits SIMPLE_BYTES_MAX. */
static bool is_simple(const struct data *d)
{
	return d->kept_bytes <= (d->refs ? BLOB_MAX_BYTES : DATA_INLINE_MAX);
}

static uint8_t *put_simple_data(uint8_t *p, const struct data *d)
{
	p = put_data_head(p, d, d->refs);
	if (!d->kept_bytes)
		return p;
	if (d->refs)
		return put_ref(p, d->refs);
	memcpy(p, d->bytes, d->kept_bytes);
	return p + d->kept_bytes;
}

static int put_data(struct encoder *e, const struct data *d)
{
	bool by_refs = d->refs || (e->sink && d->kept_bytes > DATA_INLINE_MAX);
	uint8_t *p = buf_reserve(e->out, DATA_HEAD_BYTES_MAX + (by_refs ? 0 : d->kept_bytes));

	p = put_data_head(p, d, by_refs);
	if (!by_refs && d->kept_bytes) {
		memcpy(p, d->bytes, d->kept_bytes);
		p += d->kept_bytes;
	}
	e->out->len = (size_t)(p - e->out->data);
	return by_refs ? put_refs(e, d) : 0;
}

/* A pointer that leads nowhere, as the first number of a struct, list or data. */
static void put_no_target(struct encoder *e, const struct value *v, unsigned int none)
{
	if (v->type == VALUE_ADDR) {
		put_u(e, HEAD_ADDR);
		put_u(e, v->u);
	} else {
		put_u(e, v->type == VALUE_NULL ? HEAD_NULL : none);
	}
}

static int put_struct(struct encoder *e, const struct wire *w, const struct value *v)
{
	const struct wire_list *l = &e->schema->structs[w->struct_no].fields;
	const struct fields *f = v->fields;
	const struct value *item = f->items;
	uint64_t left;

	put_u(e, HEAD_BASE);
	put_u(e, f->present);
	for (left = f->present; left; left &= left - 1) {
		const struct wire *fw = &l->wires[__builtin_ctzll(left)];
		int r = put_value(e, fw->type, fw, item++);

		if (r < 0)
			return r;
	}
	return 0;
}

static int put_list(struct encoder *e, const struct wire *w, const struct value *v)
{
	uint32_t i;

	put_u(e, (uint64_t)HEAD_BASE + v->count);
	for (i = 0; i < v->count; i++) {
		int r = put_value(e, w->elem, w, &v->items[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int put_value(struct encoder *e, char type, const struct wire *w, const struct value *v)
{
	switch (type) {
	case 'u':
		put_u(e, v->u);
		return 0;
	case 'i':
		put_u(e, zigzag(v->i));
		return 0;
	case 'd':
		if (v->type == VALUE_DATA)
			return put_data(e, v->data);
		put_no_target(e, v, DATA_NONE);
		return 0;
	case 's':
		if (v->type == VALUE_STRUCT)
			return put_struct(e, w, v);
		put_no_target(e, v, HEAD_NONE);
		return 0;
	case 'l':
		if (v->type == VALUE_LIST)
			return put_list(e, w, v);
		put_no_target(e, v, HEAD_NONE);
		return 0;
	}
	return -EINVAL;
}

int codec_put_args(const struct schema_row *row, const struct schema *s, const struct value *args,
		   struct blob_sink *sink, struct buf *out)
{
	struct encoder e = { .schema = s, .sink = sink, .out = out };
	const struct wire *w = row->args.wires, *end = w + row->args.nr_wires;
	uint8_t *p = buf_reserve(out, VARINT_MAX + row->args.nr_wires * SIMPLE_BYTES_MAX);
	uint64_t missing = 0;
	unsigned int i;
	int r;

	for (i = 0; i < row->args.nr_wires; i++)
		missing |= (uint64_t)(args[w[i].position].type == VALUE_NONE) << i;
	p = put_uvarint(p, missing);
	/* Most of all arguments are simple: these need not look for room each by itself. */
	for (; w < end; w++, missing >>= 1) {
		const struct value *v = &args[w->position];

		if (missing & 1)
			continue;
		if (w->type == 'u') {
			p = put_uvarint(p, v->u);
		} else if (w->type == 'i') {
			p = put_svarint(p, v->i);
		} else if (w->type == 'd' && v->type == VALUE_DATA && is_simple(v->data)) {
			p = put_simple_data(p, v->data);
		} else {
			out->len = (size_t)(p - out->data);
			r = put_value(&e, w->type, w, v);
			if (r < 0)
				return r;
			p = buf_reserve(out, (size_t)(end - w) * SIMPLE_BYTES_MAX);
		}
	}
	out->len = (size_t)(p - out->data);
	return 0;
}

struct decoder {
	const struct schema *schema;
	struct cursor *in;
	struct arena *arena;
	unsigned int depth;
};

static bool get_value(struct decoder *d, char type, const struct wire *w, struct value *ret);

static bool get_refs(struct decoder *d, struct data *data)
{
	uint64_t nr = data_nr_pieces(data), i;
	struct blob_ref *refs;

	if (nr > cursor_left(d->in) / REF_BYTES_MIN)
		return false;
	refs = arena_alloc(d->arena, nr * sizeof(*refs));
	for (i = 0; i < nr; i++) {
		const uint8_t *p;

		if (!cursor_get_bytes(d->in, 16, &p) || !cursor_get_uvarint(d->in, &refs[i].blob))
			return false;
		refs[i].hash = (struct hash128){ get_le64(p), get_le64(p + 8) };
	}
	data->refs = refs;
	return true;
}

static bool get_data(struct decoder *d, struct value *ret)
{
	struct cursor *in = d->in;
	struct data *data;
	uint64_t form;

	if (!cursor_get_uvarint(in, &form))
		return false;
	if (form == DATA_NULL || form == DATA_NONE) {
		*ret = (struct value){ .type = form == DATA_NULL ? VALUE_NULL : VALUE_NONE };
		return true;
	}
	if (form == DATA_ADDR) {
		ret->type = VALUE_ADDR;
		return cursor_get_uvarint(in, &ret->u);
	}
	if (form > DATA_NOT_KEPT)
		return false;
	data = arena_alloc(d->arena, sizeof(*data));
	*data = (struct data){ 0 };
	ret->type = VALUE_DATA;
	ret->data = data;
	if (!cursor_get_uvarint(in, &data->len_bytes))
		return false;
	if (form == DATA_NOT_KEPT)
		return true;
	data->kept_bytes = data->len_bytes;
	if ((form == DATA_INLINE_CUT || form == DATA_REFS_CUT) &&
	    (!cursor_get_uvarint(in, &data->kept_bytes) || data->kept_bytes > data->len_bytes))
		return false;
	if (form == DATA_INLINE || form == DATA_INLINE_CUT)
		return cursor_get_bytes(in, data->kept_bytes, &data->bytes);
	return get_refs(d, data);
}

/* True when there is a body of *ret_items items to read; else *ret says why not. */
static bool get_head(struct decoder *d, uint64_t *ret_items, struct value *ret, bool *ok)
{
	uint64_t head;

	*ok = cursor_get_uvarint(d->in, &head);
	if (!*ok)
		return false;
	if (head >= HEAD_BASE) {
		*ret_items = head - HEAD_BASE;
		return true;
	}
	*ret = (struct value){ .type = head == HEAD_NULL ? VALUE_NULL : VALUE_NONE };
	if (head == HEAD_ADDR) {
		ret->type = VALUE_ADDR;
		*ok = cursor_get_uvarint(d->in, &ret->u);
	}
	return false;
}

/* Fields that we do not know are read and dropped; they stand behind those that we know. */
static bool get_struct(struct decoder *d, const struct wire *w, struct value *ret)
{
	const struct wire_list *l = &d->schema->structs[w->struct_no].fields;
	uint64_t present, left, items;
	struct value scratch;
	struct value *item;
	bool ok;

	if (!get_head(d, &items, ret, &ok))
		return ok;
	if (items || !cursor_get_uvarint(d->in, &present))
		return false;
	/* Every field takes a byte at least, so a set of more is a lie that must not allocate. */
	if ((uint64_t)__builtin_popcountll(present) > cursor_left(d->in) ||
	    (l->nr_wires < 64 && present >> l->nr_wires))
		return false;
	*ret = value_struct(d->arena, present);
	item = ret->fields->items;
	for (left = present; left; left &= left - 1) {
		unsigned int n = (unsigned int)__builtin_ctzll(left);
		const struct wire *fw = &l->wires[n];
		bool known = fw->position != WIRE_UNKNOWN;

		if (!get_value(d, fw->type, fw, known ? item : &scratch))
			return false;
		if (known) {
			item++;
		} else {
			ret->fields->present &= ~(1ull << n);
			ret->count--;
		}
	}
	return true;
}

static bool get_list(struct decoder *d, const struct wire *w, struct value *ret)
{
	uint64_t count, i;
	bool ok;

	if (!get_head(d, &count, ret, &ok))
		return ok;
	if (count > cursor_left(d->in))
		return false;
	*ret = value_list(d->arena, (uint32_t)count);
	for (i = 0; i < count; i++) {
		if (!get_value(d, w->elem, w, &ret->items[i]))
			return false;
	}
	return true;
}

static bool get_value(struct decoder *d, char type, const struct wire *w, struct value *ret)
{
	bool ok = false;

	switch (type) {
	case 'u':
		ret->type = VALUE_INT;
		return cursor_get_uvarint(d->in, &ret->u);
	case 'i':
		ret->type = VALUE_INT;
		return cursor_get_svarint(d->in, &ret->i);
	case 'd':
		return get_data(d, ret);
	}
	if (d->depth == DEPTH_MAX)
		return false;
	d->depth++;
	if (type == 's')
		ok = get_struct(d, w, ret);
	else if (type == 'l')
		ok = get_list(d, w, ret);
	d->depth--;
	return ok;
}

bool codec_get_args(const struct schema_row *row, const struct schema *s, struct cursor *in,
		    struct arena *arena, struct value *args)
{
	struct decoder d = { .schema = s, .in = in, .arena = arena };
	const struct wire_list *l = &row->args;
	struct value dropped;
	uint64_t missing;
	unsigned int i;

	for (i = 0; i < row->row->nr_args; i++)
		args[i].type = VALUE_NONE;
	if (!cursor_get_uvarint(in, &missing))
		return false;
	for (i = 0; i < l->nr_wires; i++) {
		const struct wire *w = &l->wires[i];
		struct value *v = w->position == WIRE_UNKNOWN ? &dropped : &args[w->position];

		if (!(missing >> i & 1) && !get_value(&d, w->type, w, v))
			return false;
	}
	return true;
}
