/* SPDX-License-Identifier: MIT */
/*
 * Random values for every kind of argument: ordinary ones, the ends of their
 * ranges, and all the ways in which data may be known or not. The same seed
 * gives the same values.
 */
#ifndef UNIT_RANDOM_EVENT_H
#define UNIT_RANDOM_EVENT_H

#include <stdint.h>
#include <string.h>

#include "base/attrs.h"
#include "model/event.h"
#include "model/vocab.h"

struct random {
	uint64_t state; /* not 0 */
	struct arena *arena;
	bool no_stored_refs; /* none that claim to be in a store */
};

static inline uint64_t random_u64(struct random *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint64_t random_below(struct random *r, uint64_t n)
{
	return (random_u64(r) >> 11) % n;
}

static inline uint64_t random_number(struct random *r)
{
	static const uint64_t edges[] = {
		0,
		1,
		2,
		3,
		0777,
		0100644,
		040755,
		0xffff,
		0x10000,
		INT32_MAX,
		UINT32_MAX,
		(uint64_t)INT32_MIN,
		INT64_MAX,
		UINT64_MAX,
		UINT64_MAX - 99,
		UINT64_C(1) << 63,
		4096,
		64,
	};

	switch (random_below(r, 4)) {
	case 0:
		return edges[random_below(r, ARRAY_LEN(edges))];
	case 1:
		return random_below(r, 100);
	case 2:
		return random_u64(r) >> 32;
	}
	return random_u64(r);
}

/* Some names of the vocabulary, and now and then bits that have none. */
static inline uint64_t random_word_of_set(struct random *r, const struct arg *a)
{
	const struct set_desc *d = &set_descs[a->set];
	uint64_t v = 0, i, nr;

	if (!d->nr_entries || !random_below(r, 4))
		return random_number(r);
	nr = a->kind == KIND_FLAGS ? random_below(r, 5) : 1;
	for (i = 0; i < nr; i++) {
		const struct set_entry *e = &d->entries[random_below(r, d->nr_entries)];

		v = (v & ~e->mask) | e->value;
	}
	return v;
}

static inline struct value random_scalar(struct random *r, const struct arg *a)
{
	return value_uint(a->set ? random_word_of_set(r, a) : random_number(r));
}

static inline uint8_t *random_bytes(struct random *r, size_t len)
{
	uint8_t *bytes = arena_alloc(r->arena, len + 1);
	uint64_t plain = random_below(r, 2);
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = (uint8_t)(plain ? 'a' + random_below(r, 26) : random_u64(r) >> 33);
	return bytes;
}

static inline const struct blob_ref *random_refs(struct random *r, uint64_t nr)
{
	struct blob_ref *refs = arena_alloc(r->arena, nr * sizeof(*refs));
	uint64_t i;

	for (i = 0; i < nr; i++) {
		refs[i].hash = (struct hash128){ random_u64(r), random_u64(r) };
		refs[i].blob = r->no_stored_refs ? 0 : random_below(r, 2);
	}
	return refs;
}

static inline struct value random_data(struct random *r, const struct arg *a)
{
	struct data *d = arena_alloc(r->arena, sizeof(*d));

	*d = (struct data){ 0 };
	if (a->kind == KIND_HASH) {
		d->bytes = random_bytes(r, 16);
		d->len_bytes = d->kept_bytes = 16;
		return (struct value){ .type = VALUE_DATA, .data = d };
	}
	switch (random_below(r, 4)) {
	case 0:
		d->len_bytes = 1 + random_number(r) / 2; /* and nothing of it is kept */
		break;
	case 1:
		d->kept_bytes = 1 + random_below(r, 3 * BLOB_MAX_BYTES);
		d->len_bytes = d->kept_bytes + random_below(r, 2) * 1000;
		d->refs = random_refs(r, data_nr_pieces(d));
		break;
	default:
		d->kept_bytes = random_below(r, DATA_INLINE_MAX + 1);
		d->bytes = random_bytes(r, d->kept_bytes);
		d->len_bytes = d->kept_bytes;
		if (d->kept_bytes && !random_below(r, 4))
			d->len_bytes += 1 + random_number(r) / 2;
	}
	return (struct value){ .type = VALUE_DATA, .data = d };
}

static inline struct value random_value(struct random *r, const struct arg *a);

static inline struct value random_struct(struct random *r, const struct arg *a)
{
	const struct struct_desc *desc = &struct_descs[a->struct_id];
	uint64_t all = desc->nr_fields < 64 ? (UINT64_C(1) << desc->nr_fields) - 1 : UINT64_MAX;
	uint64_t present = random_below(r, 2) ? all : random_u64(r) & all;
	struct value v = value_struct(r->arena, present);
	struct value *item = v.fields->items;

	for (; present; present &= present - 1)
		*item++ = random_value(r, &desc->fields[__builtin_ctzll(present)]);
	return v;
}

static inline struct value random_list(struct random *r, const struct arg *a)
{
	struct value v = value_list(r->arena, (uint32_t)random_below(r, 4));
	struct arg elem = *a;
	uint32_t i;

	elem.kind = a->elem ? a->elem : KIND_STRUCT;
	for (i = 0; i < v.count; i++)
		v.items[i] = random_value(r, &elem);
	return v;
}

static inline struct value random_value(struct random *r, const struct arg *a)
{
	char wire = kind_infos[a->kind].wire;

	if (wire == 'u' || wire == 'i')
		return random_scalar(r, a);
	switch (random_below(r, 12)) {
	case 0:
		return (struct value){ .type = VALUE_NULL };
	case 1:
		return (struct value){ .type = VALUE_ADDR, .u = random_number(r) };
	case 2:
		return (struct value){ .type = VALUE_NONE };
	}
	if (wire == 'd')
		return random_data(r, a);
	return wire == 's' ? random_struct(r, a) : random_list(r, a);
}

static inline void random_args(struct random *r, const struct row *row, struct value *args)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (row->args[i].kind == KIND_HOLE || !random_below(r, 8))
			args[i] = (struct value){ .type = VALUE_NONE };
		else
			args[i] = random_value(r, &row->args[i]);
	}
}

/* All but the thread, the number and the times. */
static inline void random_event(struct random *r, const struct row *row, struct event *ev)
{
	ev->row = row;
	ev->flags = random_below(r, 3) ? 0 : (uint16_t)random_u64(r);
	ev->cpu_ns = random_below(r, 2) * random_number(r);
	ev->held_ns = random_below(r, 2) * random_number(r);
	ev->gap_cpu_ns = random_below(r, 2) * random_number(r);
	ev->held_before_ns = random_below(r, 2) * random_number(r);
	ev->held_inside_ns = random_below(r, 2) * random_number(r);
	ev->ppid = (uint32_t)random_number(r);
	ev->pgid = (uint32_t)random_number(r);
	ev->origin = random_below(r, 2) * random_number(r);
	ev->outcome.ret = (int64_t)random_number(r) * (int64_t)random_below(r, 2);
	ev->outcome.err = random_below(r, 2) ? 0 : (int32_t)random_below(r, 140);
	random_args(r, row, ev->args);
}

#endif
