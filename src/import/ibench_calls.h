/* SPDX-License-Identifier: MIT */
/*
 * The calls of iBench traces, and what their attributes are here (ibench.def).
 * Numbers that macOS has of its own become those of the rows.
 */
#ifndef IMPORT_IBENCH_CALLS_H
#define IMPORT_IBENCH_CALLS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "import/listing.h"
#include "model/event.h"
#include "model/scan.h"

#define IBENCH_ATTRS_MAX 8

struct ibench_call;

/* What a call is read into. Paths and texts live in the arena or in the line. */
struct ibench_line {
	const struct ibench_call *call;
	const struct scan_word *attrs; /* as many as the call has */
	struct arena *arena;
	struct listing *places; /* files by number; open() adds to them */
};

struct ibench_call {
	const char *name;
	uint16_t row_id;
	unsigned int nr_attrs;
	/* P, T, D, N or X as in ibench.def, and behind it the name of the argument. */
	const char *attrs[IBENCH_ATTRS_MAX];
	/* After the attributes were read and the outcome is known; may be NULL. */
	int (*adjust)(const struct ibench_line *l, struct event *ev, struct err *err);
};

/* Calls that macOS has in two forms (x and x_nocancel) are one. NULL: none of that name. */
const struct ibench_call *ibench_call_find(const struct map *calls, struct scan_word name);
/* All calls by name, for ibench_call_find(). */
void ibench_calls_fill(struct map *calls);

/* Fills in row and arguments; the outcome is already there. -EBADMSG when they make no sense. */
MUST_CHECK int ibench_call_read(const struct ibench_line *l, struct event *ev, struct err *err);

/* A number as iBench writes them: decimal with or without sign, or 0x and hex digits. */
bool ibench_number(struct scan_word w, int64_t *ret);

#endif
