/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON as it is told, a value at a time, to a buffer or a stream.
 *
 *     json_object_begin(&w);
 *     json_kv_u64(&w, "events", 17);
 *     json_key(&w, "sizes");
 *     json_array_begin(&w);
 *     ...
 *     json_array_end(&w);
 *     json_object_end(&w);
 *
 * A newline follows every value at the top, so compact values written one
 * after another are JSON Lines. A call that cannot follow the one before (a
 * value without a key in an object, an end without its begin) is an error of
 * the program and fails an assertion; the output is always valid JSON.
 *
 * Numbers are written exactly, also integers beyond 2^53. A double that is not
 * finite is written as null.
 *
 * Text and bytes. JSON strings are made of code points, file names and data of
 * bytes, so there are two ways to write a string:
 *
 * - json_str() is for text. Valid UTF-8 is written as it is, and every byte
 *   that is not part of a valid sequence as U+FFFD: readable, not reversible.
 * - json_bytes() loses nothing. Valid UTF-8 is written as it is. Otherwise
 *   every byte is written as the code point of the same number, U+0000 to U+00FF
 *   (Latin-1). A reader cannot see from the string which of both it was, so
 *   json_bytes() returns it, and json_kv_bytes() adds a second member,
 *   "<key>_encoding": "latin-1", in the second case.
 *
 * Owned by one thread.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/attrs.h"
#include "base/buf.h"

#define JSON_DEPTH_MAX 64

enum json_layout {
	JSON_COMPACT, /* a value at the top is one line */
	JSON_PRETTY, /* a line for each member and element, indented by two spaces */
};

/* The fields are json.c's own. */
struct json {
	struct buf *to;
	FILE *file; /* NULL: into the caller's buffer */
	struct buf own; /* what the stream has not yet got */
	enum json_layout layout;
	unsigned int depth;
	uint64_t is_object, has_items; /* a bit for each depth */
	bool after_key;
};

/* Appends to b, which stays the caller's. */
void json_init_buf(struct json *w, struct buf *b, enum json_layout layout);
/* Each value at the top, and long ones on the way, are handed to f. Whether f
 * could write them is for its owner to ask f. */
void json_init_file(struct json *w, FILE *f, enum json_layout layout);
/* Everything begun must have ended. Accepts a zeroed writer. */
void json_release(struct json *w);

void json_object_begin(struct json *w);
void json_object_end(struct json *w);
void json_array_begin(struct json *w);
void json_array_end(struct json *w);
/* Keys are our own words: ASCII, or valid UTF-8. */
void json_key(struct json *w, const char *key);

void json_u64(struct json *w, uint64_t v);
void json_i64(struct json *w, int64_t v);
void json_double(struct json *w, double v);
void json_bool(struct json *w, bool v);
void json_null(struct json *w);
void json_str(struct json *w, const void *p, size_t len);
/* Returns whether the bytes were UTF-8; false: written as Latin-1. */
bool json_bytes(struct json *w, const void *p, size_t len);

/* Members in one call. NULL as a string is null. */
void json_kv_u64(struct json *w, const char *key, uint64_t v);
void json_kv_i64(struct json *w, const char *key, int64_t v);
void json_kv_double(struct json *w, const char *key, double v);
void json_kv_bool(struct json *w, const char *key, bool v);
void json_kv_str(struct json *w, const char *key, const char *s);
void json_kv_bytes(struct json *w, const char *key, const void *p, size_t len);

#endif
