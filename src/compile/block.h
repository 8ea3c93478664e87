/* SPDX-License-Identifier: MIT */
/* Compilation of traces of block requests; compile_trace() comes here by itself. */
#ifndef COMPILE_BLOCK_H
#define COMPILE_BLOCK_H

#include "compile/compile.h"

/*
 * With a policy that is none of block requests there are lanes but no edges: for
 * a replay that needs none. Memory is bounded by the requests in flight.
 */
MUST_CHECK int compile_block(struct trace *t, const struct compile_options *options,
			     struct plan_writer *w, struct compile_observer *observer,
			     struct compile_totals *ret, struct err *err);

#endif
