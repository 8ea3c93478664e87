/* SPDX-License-Identifier: MIT */
/*
 * What differs between two events of the same call, in detail: results, fields
 * of structs, the first differing byte of data, names in listings.
 *
 *   statbuf.st_size: expected 4096, got 0
 *   buf: byte 100 (4196 of the file): expected 61 62 "ab", got 00 00 "\\x00\\x00"
 *   dirp: missing "a" DT_REG, "b" DT_REG and 3 more; added "c" DT_DIR
 *
 * All parts live in the arena. Owned by one thread.
 */
#ifndef REPORT_DETAILS_H
#define REPORT_DETAILS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "report/compare_event.h"
#include "trace/reader.h"

#define DETAIL_BYTES 16 /* of data that are shown from the first difference on */
#define DETAIL_NAMES 5 /* of a listing that text shows */

enum detail_kind { DETAIL_VALUE, DETAIL_DATA, DETAIL_NAMES_OF_LIST };

/* Data from the first difference on; !is_known: the trace does not have it. */
struct detail_bytes {
	bool is_known;
	uint64_t len_bytes; /* of all of it, from its beginning */
	size_t nr;
	uint8_t bytes[DETAIL_BYTES];
};

/* An entry of a listing. */
struct detail_name {
	const uint8_t *name;
	size_t len;
	const char *type; /* NULL: names have none */
	bool is_own; /* of the second listing: no difference where the first has no such name */
};

struct detail_names {
	size_t nr;
	struct detail_name *items;
};

struct detail {
	enum detail_kind kind;
	const char *where; /* "result", an argument, a field of it */
	const char *value[2]; /* as they are printed */
	bool has_offset, has_file_offset; /* else: beyond what was kept */
	uint64_t offset, file_offset;
	struct detail_bytes data[2];
	struct detail_names missing, added;
};

struct details {
	struct arena *arena;
	VEC(struct detail) list;
};

/* One of the two events; t: where its data is stored, NULL: nowhere else. */
struct detail_side {
	const struct event *ev;
	struct trace *t;
};

struct detail_options {
	unsigned int ignore; /* enum compare_ignore */
	bool tell_unknown; /* what only the second event knows is a difference all the same */
	bool has_file_offset;
	uint64_t file_offset; /* of the data, where no argument tells */
};

void details_init(struct details *d, struct arena *arena);
void details_release(struct details *d);
/* Appends all differences; both events are of the same row. */
void details_compare(struct details *d, const struct detail_side *a, const struct detail_side *b,
		     const struct detail_options *o);
/* Appends the difference of two listings, if there is one. Both are sorted on the way. */
void details_compare_names(struct details *d, const char *where, struct detail_names *a,
			   struct detail_names *b);
/* The entries of a listing that stands in an argument; in the arena. */
struct detail_names details_names_of(struct details *d, struct trace *t, const struct arg *arg,
				     const struct value *v);

/* One line without its end; words stand before the two sides: "expected ", ", got ". */
void detail_put(const struct detail *d, const char *const words[2], struct buf *b);
/* An array of objects. */
void details_put_json(const struct details *d, struct json *w);

#endif
