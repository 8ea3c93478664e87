/* SPDX-License-Identifier: MIT */
/*
 * Which of several overlapping writes came first, where the kernel chose their places:
 * appends to one file, and writes at an offset that threads or processes share. What
 * they return does not tell. What the trace shows later does: sizes that were seen,
 * offsets, bytes that were read, and what the file held at the end.
 *
 * A trace that has such writes is looked through once more, ahead of its compilation.
 * Writes of several threads whose times are chained by overlaps are a group; where a
 * group begins and ends in its file is certain, and in it that order is searched which
 * agrees with all that was seen. Each of its writes then has its place, and is compiled
 * when the file has grown to it.
 *
 * Bounded: the bytes that are held, and the steps of each search. A group whose order
 * is not found, or of whose file the trace has only the hash at the end, is counted:
 * a replay may mix its writes otherwise than the program did, and verify would see it.
 * What nobody ever sees may be in either order.
 */
#ifndef COMPILE_CONTEST_H
#define COMPILE_CONTEST_H

#include "base/map.h"
#include "compile/compile.h"

struct contests {
	struct map places; /* stream and number of an event in it -> place + 1 */
	uint64_t nr_unordered; /* writes of groups whose order is not known */
};

#define CONTEST_ANYWHERE UINT64_MAX

MUST_CHECK int contests_find(struct trace *t, struct contests *ret, struct err *err);
void contests_release(struct contests *c);
/* Where the write must begin. CONTEST_ANYWHERE: wherever it does. */
uint64_t contests_place(const struct contests *c, uint32_t stream, uint64_t number);

/* contest_search.c: one group. */

struct entrant {
	uint32_t stream;
	uint64_t number; /* of the event in its stream */
	uint64_t enter_ns, exit_ns;
	uint64_t len_bytes; /* 0: it only saw where the line ended */
	uint64_t place; /* where it must be; CONTEST_ANYWHERE: not known yet */
	const uint8_t *bytes; /* NULL: not known */
};

/* Bytes of the file as somebody saw them. */
struct sight {
	uint64_t from, len_bytes;
	const uint8_t *bytes; /* NULL: no one saw them */
	const uint8_t *seen; /* a byte for each: not 0, it was seen; NULL: all were */
};

/* Gives each entrant its place, from `from` on without gaps. False: no order was found. */
MUST_CHECK bool contest_search(struct entrant *list, size_t nr, uint64_t from,
			       const struct sight *sight);

#endif
