/* SPDX-License-Identifier: MIT */
/*
 * The graph of a plan in numbers: how long its edges are, how long its longest
 * chain is, how much could run at a time; and a drawing of a part of it. Looks on
 * while a trace is compiled. Memory: 8 bytes for each action.
 */
#ifndef COMPILE_GRAPH_H
#define COMPILE_GRAPH_H

#include "base/buf.h"
#include "base/histogram.h"
#include "compile/compile.h"

struct graph;

struct graph_options {
	struct buf *dot; /* a drawing in the language of graphviz goes here; NULL: none */
	uint64_t from_ns, to_ns; /* of the drawing; to 0: to the end */
};

struct graph_totals {
	struct histogram
		edge_length_ns; /* from the end of the one call to the begin of the other */
	uint64_t call_ns; /* in the calls of all actions */
	uint64_t elapsed_ns; /* first begin to last end, in the trace */
	uint64_t critical_ns; /* the longest chain of calls that must follow each other */
	uint64_t critical_actions; /* their number */
	uint64_t drawn; /* actions in the drawing */
};

struct graph *graph_new(const struct graph_options *options);
void graph_free(struct graph *g);
struct compile_observer *graph_observer(struct graph *g);
/* To be called when the compilation is over: completes the drawing. Valid until graph_free(). */
const struct graph_totals *graph_finish(struct graph *g);

/* How many calls ran at a time on the average; 0 when nothing is known. */
double graph_parallelism(uint64_t call_ns, uint64_t span_ns);

#endif
