/* SPDX-License-Identifier: MIT */
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/varint.h"

/* splitmix64 */
uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	return rng_next(r) % n;
}

void rng_fill(struct rng *r, uint8_t *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)rng_next(r);
}

static int keep_hash(struct blob_sink *sink, const uint8_t *bytes, size_t len, struct blob_ref *ret)
{
	(void)sink;
	*ret = (struct blob_ref){ .hash = hash_bytes(bytes, len) };
	return 0;
}

struct blob_sink sample_sink = { keep_hash };

/* Any values. */

struct maker {
	const struct schema *schema;
	struct rng *rng;
	struct arena *arena;
};

static struct value make_value(struct maker *m, char type, const struct wire *w);

static uint64_t make_number(struct maker *m)
{
	return rng_next(m->rng) >> rng_below(m->rng, 64);
}

static const uint8_t *make_bytes(struct maker *m, size_t len)
{
	uint8_t *p = arena_alloc(m->arena, len);

	rng_fill(m->rng, p, len);
	return p;
}

static const struct blob_ref *make_hashes(struct maker *m, uint64_t nr)
{
	struct blob_ref *refs = arena_alloc(m->arena, nr * sizeof(*refs));
	uint64_t i;

	for (i = 0; i < nr; i++)
		refs[i] = (struct blob_ref){ .hash = { rng_next(m->rng), rng_next(m->rng) } };
	return refs;
}

static struct value no_target(struct maker *m, uint64_t which)
{
	if (which == 0)
		return (struct value){ .type = VALUE_NULL };
	if (which == 1)
		return (struct value){ .type = VALUE_ADDR, .u = make_number(m) | 1 };
	return (struct value){ .type = VALUE_NONE };
}

static struct value make_data(struct maker *m)
{
	static const uint16_t lengths[] = { 0, 1, 63, 64, 65, 300 };
	uint64_t which = rng_below(m->rng, 12);
	struct data *d = arena_alloc(m->arena, sizeof(*d));

	if (which < 3)
		return no_target(m, which);
	*d = (struct data){ .kept_bytes = lengths[rng_below(m->rng, ARRAY_LEN(lengths))] };
	if (which == 3) /* only hashes, of several pieces */
		d->kept_bytes = 1 + rng_below(m->rng, 3 * BLOB_MAX_BYTES);
	if (which == 4) /* only its length */
		d->kept_bytes = 0;
	d->len_bytes = d->kept_bytes + (which < 7 ? rng_below(m->rng, 5000) : 0);
	if (which == 3)
		d->refs = make_hashes(m, data_nr_pieces(d));
	else if (d->kept_bytes || !d->len_bytes)
		d->bytes = make_bytes(m, d->kept_bytes);
	return (struct value){ .type = VALUE_DATA, .data = d };
}

static struct value make_struct(struct maker *m, const struct wire *w)
{
	const struct wire_list *l = &m->schema->structs[w->struct_no].fields;
	uint64_t which = rng_below(m->rng, 12), present = 0, left;
	struct value v, *item;

	if (which < 3)
		return no_target(m, which);
	if (l->nr_wires)
		present = ~UINT64_C(0) >> (64 - l->nr_wires);
	if (which < 6)
		present &= rng_next(m->rng);
	v = value_struct(m->arena, present);
	item = v.fields->items;
	for (left = present; left; left &= left - 1) {
		const struct wire *fw = &l->wires[__builtin_ctzll(left)];

		*item++ = make_value(m, fw->type, fw);
	}
	return v;
}

static struct value make_list(struct maker *m, const struct wire *w)
{
	uint64_t which = rng_below(m->rng, 12);
	struct value v;
	uint32_t i;

	if (which < 3)
		return no_target(m, which);
	v = value_list(m->arena, (uint32_t)rng_below(m->rng, 4));
	for (i = 0; i < v.count; i++)
		v.items[i] = make_value(m, w->elem, w);
	return v;
}

static struct value make_value(struct maker *m, char type, const struct wire *w)
{
	switch (type) {
	case 'd':
		return make_data(m);
	case 's':
		return make_struct(m, w);
	case 'l':
		return make_list(m, w);
	case 'i':
		return value_int(unzigzag(make_number(m)));
	}
	return value_uint(make_number(m));
}

void sample_args(const struct schema *s, unsigned int row_id, struct rng *r, struct arena *a,
		 struct value *args)
{
	const struct schema_row *row = &s->rows[row_id];
	struct maker m = { .schema = s, .rng = r, .arena = a };
	unsigned int i;

	for (i = 0; i < ROW_ARGS_MAX; i++)
		args[i] = (struct value){ .type = VALUE_NONE };
	for (i = 0; i < row->args.nr_wires; i++) {
		const struct wire *w = &row->args.wires[i];

		if (rng_below(r, 8))
			args[w->position] = make_value(&m, w->type, w);
	}
}

/* The events of a thread. */

static struct value sample_bytes(struct arena *a, uint64_t seed, size_t len)
{
	struct rng r = { seed };
	uint8_t *p = arena_alloc(a, len);

	/* Half of it repeats, so that packing has something to do. */
	rng_fill(&r, p, len / 2);
	memset(p + len / 2, 'x', len - len / 2);
	return value_bytes(a, p, len);
}

static void fill_openat(struct arena *a, struct event *ev, uint64_t n)
{
	char path[64];
	int len =
		snprintf(path, sizeof(path), "/data/%u/file-%llu", ev->tid, (unsigned long long)n);

	ev->args[0] = value_int(AT_FDCWD);
	ev->args[1] = value_bytes(a, arena_memdup0(a, path, (size_t)len), (size_t)len);
	ev->args[2] = value_uint(O_RDWR | O_CREAT);
	ev->args[3] = value_uint(0644);
	ev->outcome.ret = 3;
}

static void fill_transfer(struct arena *a, struct event *ev, uint64_t seed, size_t len)
{
	ev->args[0] = value_int(3);
	ev->args[1] = sample_bytes(a, seed, len);
	ev->args[2] = value_uint(len);
	ev->outcome.ret = (int64_t)len;
}

static void fill_writev(struct arena *a, struct event *ev, uint64_t n)
{
	uint32_t i;

	ev->args[0] = value_int(3);
	ev->args[1] = value_list(a, 1 + (uint32_t)(n / 8 % 3));
	ev->args[2] = value_uint(ev->args[1].count);
	for (i = 0; i < ev->args[1].count; i++) {
		struct value *v = &ev->args[1].items[i];
		size_t len = 40 + 20 * (size_t)i;

		*v = value_struct(a, 3);
		v->fields->items[0] = sample_bytes(a, n + i, len);
		v->fields->items[1] = value_uint(len);
		ev->outcome.ret += (int64_t)len;
	}
}

static void fill_stat(struct arena *a, struct event *ev, uint64_t n)
{
	struct value st = value_struct(a, 0xff);
	unsigned int i;

	for (i = 0; i < 8; i++)
		st.fields->items[i] = value_uint(n * i);
	ev->args[0] = value_int(3);
	ev->args[1] = st;
}

/* A read of which only the beginning was kept, or nothing. */
static void fill_cut_read(struct arena *a, struct event *ev, uint64_t n)
{
	struct value v = sample_bytes(a, n, n & 8 ? 100 : 10);

	v.data->len_bytes = 4096;
	if (n & 16) {
		v.data->kept_bytes = 0;
		v.data->bytes = NULL;
	}
	ev->args[0] = value_int(3);
	ev->args[1] = v;
	ev->args[2] = value_uint(4096);
	ev->outcome.ret = 4096;
}

static void fill_failed_read(struct event *ev, uint64_t n)
{
	ev->args[0] = value_int(-1);
	ev->args[1] = value_addr(n & 8 ? 0x7ffd00001000 : 0);
	ev->args[2] = value_uint(512);
	ev->outcome = (struct outcome){ .ret = -1, .err = EBADF };
	ev->flags = EVENT_INTERRUPTED;
	ev->held_ns = 77;
}

static void fill_args(struct arena *a, struct event *ev, uint64_t n)
{
	static const uint16_t rows[8] = { SC_openat, SC_write, SC_read, SC_writev,
					  SC_fstat,  SC_read,  SC_read, SC_close };

	ev->row = row_by_id(rows[n % 8]);
	switch (n % 8) {
	case 0:
		fill_openat(a, ev, n);
		break;
	case 1: /* new data each time, small and large */
		fill_transfer(a, ev, ev->tid * 1000003 + n, (size_t)(n / 8 * 37 % 700));
		break;
	case 2: /* the same data again and again */
		fill_transfer(a, ev, 5, 600);
		break;
	case 3:
		fill_writev(a, ev, n);
		break;
	case 4:
		fill_stat(a, ev, n);
		break;
	case 5:
		fill_cut_read(a, ev, n);
		break;
	case 6:
		fill_failed_read(ev, n);
		break;
	case 7:
		ev->args[0] = value_int(3);
		break;
	}
}

void sample_event(struct arena *a, uint32_t tid, uint64_t n, struct event *ret)
{
	*ret = (struct event){ .pid = 100, .tid = tid, .ppid = 1, .pgid = 100 };
	ret->seq = n * 16 + tid % 16 + 1;
	ret->enter_ns = n * 1000 + tid % 16 * 10;
	ret->exit_ns = ret->enter_ns + 500 + n % 8 * 100;
	ret->cpu_ns = n * 300;
	ret->origin = n % 5;
	fill_args(a, ret, n);
}

bool sample_equal(const struct event *a, const struct event *b)
{
	unsigned int i;

	if (a->row != b->row || a->flags != b->flags || a->pid != b->pid || a->tid != b->tid ||
	    a->ppid != b->ppid || a->pgid != b->pgid || a->seq != b->seq ||
	    a->enter_ns != b->enter_ns || a->exit_ns != b->exit_ns || a->cpu_ns != b->cpu_ns ||
	    a->held_ns != b->held_ns || a->origin != b->origin ||
	    a->outcome.ret != b->outcome.ret || a->outcome.err != b->outcome.err)
		return false;
	for (i = 0; i < a->row->nr_args; i++) {
		if (!value_equal(&a->args[i], &b->args[i]))
			return false;
	}
	return true;
}

/* Digests. */

struct digest {
	struct trace *t;
	struct buf text;
	struct err *err;
};

static void put_number(struct digest *d, uint64_t u)
{
	uint8_t *p = buf_reserve(&d->text, 8);

	put_le64(p, u);
	d->text.len += 8;
}

static int digest_data(struct digest *d, const struct data *data)
{
	uint64_t i, nr = data_nr_pieces(data);

	put_number(d, data->len_bytes);
	put_number(d, data->kept_bytes);
	for (i = 0; i < nr; i++) {
		const uint8_t *bytes;
		struct hash128 hash;
		size_t len;
		int r = trace_load_piece(d->t, data, i, &bytes, &len, d->err);

		if (r < 0)
			return r;
		put_number(d, (uint64_t)r);
		if (!r && !data->refs)
			continue;
		hash = r ? hash_bytes(bytes, len) : data->refs[i].hash;
		put_number(d, hash.low);
		put_number(d, hash.high);
	}
	return 0;
}

static int digest_values(struct digest *d, const struct value *v, uint32_t nr)
{
	int r = 0;

	for (; nr && !r; nr--, v++) {
		put_number(d, v->type);
		if (v->type == VALUE_INT || v->type == VALUE_ADDR) {
			put_number(d, v->u);
		} else if (v->type == VALUE_DATA) {
			r = digest_data(d, v->data);
		} else if (v->type == VALUE_STRUCT) {
			put_number(d, v->fields->present);
			r = digest_values(d, v->fields->items, v->count);
		} else if (v->type == VALUE_LIST) {
			put_number(d, v->count);
			r = digest_values(d, v->items, v->count);
		}
	}
	return r;
}

static int finish(struct digest *d, int r, struct hash128 *ret)
{
	if (!r)
		*ret = hash_bytes(d->text.data, d->text.len);
	buf_release(&d->text);
	return r;
}

int sample_digest_event(struct trace *t, const struct event *ev, struct hash128 *ret,
			struct err *err)
{
	const uint64_t head[] = { ev->row->id,
				  ev->flags,
				  ev->pid,
				  ev->tid,
				  ev->ppid,
				  ev->pgid,
				  ev->seq,
				  ev->enter_ns,
				  ev->exit_ns,
				  ev->cpu_ns,
				  ev->held_ns,
				  ev->origin,
				  (uint64_t)ev->outcome.ret,
				  (uint64_t)ev->outcome.err };
	struct digest d = { .t = t, .err = err };
	size_t i;

	for (i = 0; i < ARRAY_LEN(head); i++)
		put_number(&d, head[i]);
	return finish(&d, digest_values(&d, ev->args, ev->row->nr_args), ret);
}

int sample_digest_item(struct trace *t, const struct item *item, struct hash128 *ret,
		       struct err *err)
{
	struct digest d = { .t = t, .err = err };

	put_number(&d, item->row->id);
	return finish(&d, digest_values(&d, item->args, item->row->nr_args), ret);
}
