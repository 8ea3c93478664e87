/* SPDX-License-Identifier: MIT */
/*
 * Values of arguments and fields as they are in memory: small trees. Nested
 * parts live in an arena (or wherever who built them likes) and are borrowed.
 *
 *   value INT     .u / .i
 *   value DATA    -> struct data: how long the bytes were, and what of them is kept
 *   value STRUCT  -> struct fields: a set of present fields, then their values, packed
 *   value LIST    .count, .items
 *   value NONE    not known (an import that lacks it, a struct field left out)
 *   value NULL_   a null pointer;  value ADDR  a pointer whose target was not read
 */
#ifndef MODEL_VALUE_H
#define MODEL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/row.h"

enum value_type {
	VALUE_NONE,
	VALUE_NULL,
	VALUE_ADDR,
	VALUE_INT,
	VALUE_DATA,
	VALUE_STRUCT,
	VALUE_LIST,
};

struct value {
	uint8_t type; /* enum value_type */
	uint32_t count; /* LIST: items; STRUCT: present fields */
	union {
		uint64_t u;
		int64_t i;
		struct data *data;
		struct fields *fields;
		struct value *items;
	};
};

struct hash128 {
	uint64_t low, high;
};

/* A piece of data in the blob store. Pieces but the last are BLOB_MAX_BYTES long. */
struct blob_ref {
	struct hash128 hash; /* XXH3-128 of the piece */
	uint64_t blob; /* where it is stored; 0: only the hash was kept */
};

#define BLOB_MAX_BYTES ((uint64_t)1 << 20)
/* Up to here data stands in the event itself. */
#define DATA_INLINE_MAX 64

/*
 * Data of an argument. len_bytes is how long it really was; the first
 * kept_bytes of it are known: as bytes (then refs is NULL on the way in, and
 * on the way out means that they stood in the event), or by refs, one for each
 * piece. kept_bytes == 0 with len_bytes > 0: nothing but the length is known.
 */
struct data {
	uint64_t len_bytes, kept_bytes;
	const uint8_t *bytes;
	const struct blob_ref *refs;
};

static inline uint64_t data_nr_pieces(const struct data *d)
{
	return d->kept_bytes / BLOB_MAX_BYTES + (d->kept_bytes % BLOB_MAX_BYTES != 0);
}

struct fields {
	uint64_t present; /* bit n: field n of the struct's description has a value */
	struct value items[];
};

struct outcome {
	int64_t ret;
	int32_t err; /* an errno, 0 for success; ret is then what the call returned */
};

static inline struct value value_int(int64_t i)
{
	return (struct value){ .type = VALUE_INT, .i = i };
}

static inline struct value value_uint(uint64_t u)
{
	return (struct value){ .type = VALUE_INT, .u = u };
}

static inline struct value value_addr(uint64_t addr)
{
	return (struct value){ .type = addr ? VALUE_ADDR : VALUE_NULL, .u = addr };
}

/* Bytes that are all there. They are borrowed, not copied. */
struct value value_bytes(struct arena *a, const void *bytes, size_t len);
struct value value_str(struct arena *a, const char *s);
struct value value_list(struct arena *a, uint32_t count);
/* A struct with the given set of fields, to be filled in through value_field(). */
struct value value_struct(struct arena *a, uint64_t present);
/* The place of field n, NULL when it is not present or v is no struct. */
struct value *value_field(const struct value *v, unsigned int n);

/* A copy whose parts all live in the arena, the bytes too. */
struct value value_copy(struct arena *a, const struct value *v);

/* Equal in type, numbers, lengths and content (by bytes or, failing that, by hash). */
bool value_equal(const struct value *a, const struct value *b);
bool data_equal(const struct data *a, const struct data *b);

/* One argument made of many pieces, as it is kept: the hash that names a piece. */
struct hash128 hash_bytes(const void *bytes, size_t len);

static inline bool hash_equal(struct hash128 a, struct hash128 b)
{
	return a.low == b.low && a.high == b.high;
}

#endif
