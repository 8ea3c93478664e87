/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a call that strace prints below its line (-e read=, -e write=):
 *
 *    | 00000  68 65 6c 6c 6f 0a                                 hello.           |
 *
 * and for vectors " * N bytes in buffer K" before those of each buffer.
 */
#ifndef IMPORT_STRACE_DUMP_H
#define IMPORT_STRACE_DUMP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "model/event.h"

/* A zeroed one is empty. */
struct strace_dump {
	struct buf bytes;
	VEC(size_t) starts; /* where the bytes of each buffer begin; none: there is but one */
};

void strace_dump_release(struct strace_dump *d);
void strace_dump_clear(struct strace_dump *d);
/* Whether a line that begins like this belongs to the line above it. */
bool strace_dump_is_below(const char *text, size_t len);
/* Takes such a line; other things than bytes (a stack) are passed over. */
void strace_dump_add(struct strace_dump *d, const char *line, size_t len);
/* Puts the bytes into the event in place of what its line has of them. */
void strace_dump_apply(const struct strace_dump *d, struct arena *arena, struct event *ev);

#endif
