/* SPDX-License-Identifier: MIT */
/*
 * Which bytes a replay can have: those that the initial tree holds, and those that
 * the trace wrote. All others are filler, made up, so that what a call read of
 * them cannot be verified: that it differs means nothing.
 *
 * A file or stream that has anything unknown has the offsets at which known and
 * unknown bytes take turns; most files have nothing unknown, and cost nothing.
 * Copies hand on what they copy. Belongs to one compilation.
 */
#ifndef COMPILE_BYTES_H
#define COMPILE_BYTES_H

#include "base/map.h"
#include "fsmodel/fsmodel.h"

/* Beyond so many turns a file counts as unknown: memory is bounded by the files that are alive. */
#define BYTES_TURNS_MAX 4096

struct bytes {
	struct map by_res; /* id -> struct turns */
};

void bytes_release(struct bytes *b);
/* An event, with its arguments as in the trace. True: it read bytes that nobody knows. */
bool bytes_step(struct bytes *b, const struct event *ev, const struct facts *facts);
/* Nobody can touch the resource any more. */
void bytes_forget(struct bytes *b, const struct res *res);

#endif
