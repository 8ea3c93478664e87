/* SPDX-License-Identifier: MIT */
/*
 * The lines of all inputs, in the order of their times. What `strace -ff` wrote
 * is a file for each thread; without times those of a child come after the
 * call that made it. Lines below a call (struct strace_dump) come with it.
 */
#ifndef IMPORT_STRACE_ORDER_H
#define IMPORT_STRACE_ORDER_H

#include "import/import.h"
#include "import/strace_dump.h"
#include "import/strace_line.h"

struct strace_source;

struct strace_order {
	struct import *im;
	struct strace_source *sources; /* one for each input */
	size_t nr_sources;
	size_t *heap; /* numbers of sources that have a line, the earliest first */
	size_t nr_heap;
	bool by_time;
	struct strace_source *current; /* whose line was given out last; NULL: none */
};

struct strace_next {
	struct import_input *in;
	const char *text; /* valid until the next one is asked for */
	size_t len;
	uint64_t line_no, nr_below;
	const struct strace_dump *dump;
	uint32_t lone_tid; /* whose line it is when it does not say */
	bool follows; /* the threads that a call makes will have lines too */
};

/* Opens all inputs. After a failure there is nothing to close. */
MUST_CHECK int strace_order_open(struct strace_order *o, struct import *im, struct err *err);
void strace_order_close(struct strace_order *o);
/* 1 and a line, 0 at the end, -errno. */
MUST_CHECK int strace_order_next(struct strace_order *o, struct strace_next *ret, struct err *err);
/* A thread was made: without times its lines, if there are, come next. */
void strace_order_begin_child(struct strace_order *o, uint32_t tid);

#endif
