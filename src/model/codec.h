/* SPDX-License-Identifier: MIT */
/*
 * Values to bytes and back, as a schema says (doc/trace-format.md, "Values").
 * The encoder trusts its caller, the decoder trusts nobody: it never reads past
 * the input, never nests deeper than the schema allows, and what it allocates
 * is at most a small multiple of the bytes that it reads.
 */
#ifndef MODEL_CODEC_H
#define MODEL_CODEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/varint.h"
#include "model/schema.h"
#include "model/value.h"

/* Where the encoder puts bytes that are too long to stand in an event. */
struct blob_sink {
	/* At most BLOB_MAX_BYTES at a time; 0 or -errno. */
	int (*put)(struct blob_sink *sink, const uint8_t *bytes, size_t len, struct blob_ref *ret);
};

/*
 * Appends the arguments of a row to out. Data given as bytes goes inline or to
 * the sink (all of it inline when there is no sink), data given by refs is written as it is: the refs must be valid in
 * the store that the reader will use.
 */
MUST_CHECK int codec_put_args(const struct schema_row *row, const struct schema *s,
			      const struct value *args, struct blob_sink *sink, struct buf *out);

/*
 * Reads the arguments of a row. args has room for ROW_ARGS_MAX; what is not
 * there becomes VALUE_NONE. Nested parts go to the arena; bytes are borrowed
 * from the input. False when the input is malformed.
 */
MUST_CHECK bool codec_get_args(const struct schema_row *row, const struct schema *s,
			       struct cursor *in, struct arena *arena, struct value *args);

#endif
