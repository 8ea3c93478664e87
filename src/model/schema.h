/* SPDX-License-Identifier: MIT */
/*
 * How rows and structs are stored in one particular file. A file carries its
 * schema as text, so that it can be read by a program that knows fewer rows or
 * more arguments than the one that wrote it:
 *
 *   struct iovec d:iov_base:BUF u:iov_len:SIZE
 *   call 12 writev i:fd:FD l(iovec):iov:ARRAY u:iovcnt:INT
 *   event 2080 marker d:text:STR
 *
 * Rows and structs only ever grow at their end. What the file knows and we do
 * not is decoded and dropped; a row that we do not know at all is made from the
 * schema, printed and counted like any other.
 *
 * A schema is constant once made and may be shared by threads.
 */
#ifndef MODEL_SCHEMA_H
#define MODEL_SCHEMA_H

#include "base/buf.h"
#include "base/err.h"
#include "model/row.h"

struct wire {
	char type; /* u i d s l */
	char elem; /* of a list: u i d s */
	uint8_t position; /* of the argument in its row; WIRE_UNKNOWN: decoded and dropped */
	uint16_t struct_no; /* in the schema's structs, for s and l of s */
};
#define WIRE_UNKNOWN 0xff

struct wire_list {
	struct wire *wires;
	uint16_t nr_wires;
};

struct schema_struct {
	char *name;
	struct wire_list fields; /* position n is field n of the table's struct */
};

struct schema_row {
	const struct row *row; /* of the table, or ours; NULL: the file has no such row */
	struct wire_list args;
	struct row *made; /* owned: the row of a call that the table does not know */
	struct arg *made_args;
};

struct schema {
	struct schema_row *rows; /* by id, ROW_ID_MAX of them */
	struct schema_struct *structs;
	size_t nr_structs;
};

/* The schema of the table that is built in. */
struct schema *schema_new(void);
void schema_free(struct schema *s);

void schema_print(const struct schema *s, struct buf *out);
/* Foreign text. -EBADMSG when it is malformed, -EOPNOTSUPP when it contradicts the table. */
MUST_CHECK int schema_parse(const char *text, size_t len, struct schema **ret, struct err *err);

#endif
