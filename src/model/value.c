/* SPDX-License-Identifier: MIT */
#include "model/value.h"

#include <string.h>

#include "base/hash.h"

struct value value_bytes(struct arena *a, const void *bytes, size_t len)
{
	struct data *d = arena_alloc(a, sizeof(*d));

	*d = (struct data){ .len_bytes = len, .kept_bytes = len, .bytes = bytes };
	return (struct value){ .type = VALUE_DATA, .data = d };
}

struct value value_str(struct arena *a, const char *s)
{
	return value_bytes(a, s, strlen(s));
}

struct value value_list(struct arena *a, uint32_t count)
{
	struct value v = { .type = VALUE_LIST, .count = count };

	v.items = arena_alloc(a, count * sizeof(*v.items));
	return v;
}

struct value value_struct(struct arena *a, uint64_t present)
{
	struct value v = { .type = VALUE_STRUCT };

	v.count = (uint32_t)__builtin_popcountll(present);
	v.fields = arena_alloc(a, sizeof(*v.fields) + v.count * sizeof(struct value));
	v.fields->present = present;
	return v;
}

struct value *value_field(const struct value *v, unsigned int n)
{
	uint64_t before;

	if (v->type != VALUE_STRUCT || n >= 64 || !(v->fields->present >> n & 1))
		return NULL;
	before = v->fields->present & ((1ull << n) - 1);
	return &v->fields->items[__builtin_popcountll(before)];
}

static struct data *data_copy(struct arena *a, const struct data *from)
{
	struct data *d = arena_alloc(a, sizeof(*d));
	size_t refs_bytes = data_nr_pieces(from) * sizeof(*from->refs);

	*d = *from;
	if (from->bytes)
		d->bytes = (uint8_t *)arena_memdup0(a, from->bytes, from->kept_bytes);
	if (from->refs)
		d->refs = memcpy(arena_alloc(a, refs_bytes), from->refs, refs_bytes);
	return d;
}

struct value value_copy(struct arena *a, const struct value *v)
{
	struct value copy = *v;

	switch (v->type) {
	case VALUE_DATA:
		copy.data = data_copy(a, v->data);
		break;
	case VALUE_STRUCT:
		copy = value_struct(a, v->fields->present);
		for (uint32_t i = 0; i < v->count; i++)
			copy.fields->items[i] = value_copy(a, &v->fields->items[i]);
		break;
	case VALUE_LIST:
		copy = value_list(a, v->count);
		for (uint32_t i = 0; i < v->count; i++)
			copy.items[i] = value_copy(a, &v->items[i]);
		break;
	default:
		break;
	}
	return copy;
}

struct hash128 hash_bytes(const void *bytes, size_t len)
{
	XXH128_hash_t h = XXH3_128bits(bytes, len);

	return (struct hash128){ .low = h.low64, .high = h.high64 };
}

static struct hash128 piece_hash(const struct data *d, uint64_t piece)
{
	uint64_t from = piece * BLOB_MAX_BYTES, len = d->kept_bytes - from;

	if (d->refs)
		return d->refs[piece].hash;
	return hash_bytes(d->bytes + from, len < BLOB_MAX_BYTES ? len : BLOB_MAX_BYTES);
}

bool data_equal(const struct data *a, const struct data *b)
{
	uint64_t i, nr = data_nr_pieces(a);

	if (a->len_bytes != b->len_bytes || a->kept_bytes != b->kept_bytes)
		return false;
	if (a->bytes && b->bytes)
		return !memcmp(a->bytes, b->bytes, a->kept_bytes);
	for (i = 0; i < nr; i++) {
		if (!hash_equal(piece_hash(a, i), piece_hash(b, i)))
			return false;
	}
	return true;
}

static bool items_equal(const struct value *a, const struct value *b, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (!value_equal(&a[i], &b[i]))
			return false;
	}
	return true;
}

bool value_equal(const struct value *a, const struct value *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case VALUE_ADDR:
	case VALUE_INT:
		return a->u == b->u;
	case VALUE_DATA:
		return data_equal(a->data, b->data);
	case VALUE_STRUCT:
		return a->fields->present == b->fields->present &&
		       items_equal(a->fields->items, b->fields->items, a->count);
	case VALUE_LIST:
		return a->count == b->count && items_equal(a->items, b->items, a->count);
	}
	return true;
}
