/* SPDX-License-Identifier: MIT */
/*
 * Values in strace's text, read by the kinds of the table: a call needs no
 * parser of its own. One pass over the text, nothing is allocated but in the
 * arena. The text is foreign: whatever it is, reading stays within it, takes
 * time in proportion to its length and nests no deeper than VALUE_DEPTH_MAX.
 */
#ifndef IMPORT_STRACE_VALUE_H
#define IMPORT_STRACE_VALUE_H

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "import/strace_names.h"
#include "model/value.h"

#define VALUE_DEPTH_MAX 16

/* The length of data that was cut off (`"..."...`) until it is known from elsewhere. */
#define DATA_LEN_UNKNOWN UINT64_MAX

struct strace_text {
	const char *pos, *end;
	const struct strace_names *names;
	struct arena *arena;
	unsigned int depth;
	/* What was not understood, for a message: the first such place since it was cleared. */
	const char *bad;
	size_t bad_len;
	/* What the text says beyond values. */
	bool cut; /* some data, list or struct was cut off */
	const char *path; /* the last decoration of a descriptor: `3</tmp/x>` */
	size_t path_len;
};

/*
 * Reads a value of an argument or field, and moves behind it. False: it is not
 * understood; then the position is behind it all the same, *ret is VALUE_NONE
 * and t->bad says where. `in => out` gives both when ret_after is not NULL (which
 * stays untouched when there is no second), else the first.
 */
bool strace_value(struct strace_text *t, const struct arg *a, struct value *ret,
		  struct value *ret_after);
/* Any number: decimal, hex, octal, with a minus. False when there is none here. */
bool strace_number(struct strace_text *t, uint64_t *ret);
/* Moves behind a value of any form, to what ends or separates it. */
void strace_skip(struct strace_text *t);
/* Moves behind a decoration `<...>` if one stands here, and notes it in t->path. */
void strace_skip_decoration(struct strace_text *t);
/* Moves behind the text if it stands here. Nearly always it does not, and the first character says so. */
static inline bool strace_accept(struct strace_text *t, const char *text, size_t len)
{
	if ((size_t)(t->end - t->pos) < len || *t->pos != *text || memcmp(t->pos, text, len) != 0)
		return false;
	t->pos += len;
	return true;
}
#define STRACE_ACCEPT(t, literal) strace_accept(t, literal, sizeof(literal) - 1)

/* The bytes of text between two quotes, which stands from `from` to `to`, in the arena or as they are. */
const uint8_t *strace_unescape(struct arena *arena, const char *from, const char *to,
			       size_t *ret_len);

#endif
