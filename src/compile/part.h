/* SPDX-License-Identifier: MIT */
/*
 * A part of a trace. What came before it is not performed but its state is
 * needed: names, contents, open descriptors with their offsets, locks, maps. The
 * model tells which of the earlier calls changed any of that; they alone become
 * actions, in the order of their effects, in the prologue, which a replay makes
 * before its clock starts. What only looked (reads, stat, failed calls) is left
 * out; of a read that moved an offset a seek is left.
 *
 *     effect order   e e e e e e | e e e e e e e e | e e e
 *                     prologue   |     the part    | not seen
 *
 * Both cuts are made in the order of effects, so that no action before a cut
 * depends on one behind it, however the calls overlapped.
 */
#ifndef COMPILE_PART_H
#define COMPILE_PART_H

#include "compile/inside.h"

struct part {
	bool begun;
	uint64_t begin_ns; /* entry of its first event */
};

void part_init(struct part *p, const struct compile_options *o);
/* Whether the part is over: this event and all that follow are not wanted. */
bool part_is_over(const struct compile_options *o, const struct event *ev);
/* Whether the event, the next in the order of effects, comes before the part. */
bool part_is_before(struct part *p, const struct compile_options *o, const struct event *ev);
/* Whether the call has left something that calls of the part can meet. */
bool part_needs(const struct event *ev, const struct facts *facts);
/* A read that moved the offset of its file becomes a seek to where it ended. */
bool part_make_seek(const struct event *ev, const struct facts *facts, struct action *a);
/* The thread was there before the part: its computing counts from the part's beginning. */
void part_cut_think(const struct part *p, struct think *t);

#endif
