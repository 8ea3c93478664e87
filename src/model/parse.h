/* SPDX-License-Identifier: MIT */
/*
 * Reads the exact form of events, records and blobs (model/print.h,
 * doc/trace-text.md), a line at a time. What print_*_line() wrote comes back as
 * the same values; lines written by hand may leave out the thread, the number
 * and the times, may give arguments in any order, and numbers for names.
 *
 * The text is foreign: whatever it is, the parser stays within it, takes time
 * in proportion to its length, nests no deeper than PARSE_DEPTH_MAX, and says
 * in which column it lost the thread. A parser belongs to one thread.
 */
#ifndef MODEL_PARSE_H
#define MODEL_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attrs.h"
#include "base/err.h"
#include "model/event.h"

#define PARSE_DEPTH_MAX 16

/* The place of a blob that the text refers to as stored ("@..."): known to whoever stored it. */
#define BLOB_PLACE_UNKNOWN UINT64_MAX

enum line_type {
	LINE_EMPTY, /* blank, or a comment */
	LINE_EVENT,
	LINE_ITEM,
	LINE_BLOB,
	LINE_STREAM,
};

/* The thread that an event or a stream line is about. */
struct line_thread {
	uint32_t pid, tid, generation;
};

struct line_blob {
	struct hash128 hash;
	const uint8_t *bytes; /* at most BLOB_MAX_BYTES */
	size_t len;
};

struct line {
	enum line_type type;
	bool has_thread, has_seq, has_time; /* of an event; what is missing is 0 */
	struct line_thread thread; /* of an event or stream */
	uint64_t nr_events; /* of a stream */
	union {
		struct event event; /* stream is 0 */
		struct item item;
		struct line_blob blob;
	};
};

struct parser;

struct parser *parser_new(void);
void parser_free(struct parser *p);

/*
 * Reads one line, without its newline. Nested parts go to the arena, bytes are
 * borrowed from the text or in the arena. -EBADMSG with "column N: ..." when it
 * is not understood; then *ret holds nothing of use.
 */
MUST_CHECK int parse_line(struct parser *p, const char *text, size_t len, struct arena *arena,
			  struct line *ret, struct err *err);

/* Reads one value of an argument; the text must hold nothing else. */
MUST_CHECK int parse_value(struct parser *p, const struct arg *a, const char *text, size_t len,
			   struct arena *arena, struct value *ret, struct err *err);

#endif
