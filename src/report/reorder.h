/* SPDX-License-Identifier: MIT */
/*
 * Order changes as RFC 4737 counts them for packets: an event is reordered when
 * one that came later in the original started before it (type-P-reordered). Its
 * extent is how many places after the earliest such event it came, its lateness
 * how much later.
 *
 * Memory is fixed: of the events that were the latest of the original so far, the
 * last REORDER_RECORDS are remembered; an extent that reaches beyond them is cut
 * to what is known and counted. A zeroed struct has seen nothing. Owned by one
 * thread.
 */
#ifndef REPORT_REORDER_H
#define REPORT_REORDER_H

#include <stdint.h>

#include "base/histogram.h"

#define REORDER_RECORDS 65536

/* Where an event stood in the original. */
struct reorder_key {
	uint64_t enter_ns, seq;
};

struct reorder_record;

struct reorder {
	uint64_t nr, nr_reordered, nr_cut;
	struct histogram extents, late_ns;
	struct reorder_record *records; /* a ring, keys ascending */
	uint64_t first, end; /* of the records; positions count on */
};

/* Events in the order in which they started in the run. */
void reorder_add(struct reorder *r, struct reorder_key key, uint64_t start_ns);
void reorder_release(struct reorder *r);

#endif
