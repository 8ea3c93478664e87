/* SPDX-License-Identifier: MIT */
/*
 * A witness for calls that the tracer does not stop: the kernel counts how often each thread
 * reads and writes (/proc/PID/task/TID/io: syscr, syscw). Before a thread ends or runs
 * another program, that is held against what was recorded of it. More by the
 * kernel's count are calls that nobody has recorded; fewer are records of calls that were never made.
 */
#ifndef RECORD_PTRACE_WITNESS_H
#define RECORD_PTRACE_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct tracer;
struct tracee;

struct witness_count {
	uint64_t before; /* the kernel's, when the counting began */
	uint64_t least; /* that the recorded calls must have made of it */
	uint64_t most; /* and may have: of calls that failed not all are counted */
};

struct witness {
	bool is_counting;
	struct witness_count reads, writes;
};

/* The thread is stopped; what it does from now on counts. */
void witness_begin(const struct tracer *tr, struct tracee *t);
/* The same of one that was just made: it has done nothing yet. */
void witness_begin_new(const struct tracer *tr, struct tracee *t);
/* A call of it is recorded. */
void witness_add(struct tracee *t, const struct event *ev);
/* A call of it may be broken off and made again, or end with it. */
void witness_note_break(struct tracee *t);
/* All calls that it has made are recorded, but for one if it runs: a difference goes to the ledger. */
void witness_compare(struct tracer *tr, struct tracee *t, bool runs);
/* It is stopped at the entry of a call, or to get a signal, by which threads may end: these are compared. */
void witness_before_call(struct tracer *tr, struct tracee *t);
void witness_before_signal(struct tracer *tr, struct tracee *t);

#endif
