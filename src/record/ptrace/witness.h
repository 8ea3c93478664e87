/* SPDX-License-Identifier: MIT */
/*
 * A witness for calls that the tracer does not stop: the kernel counts how often each thread
 * reads and writes (/proc/PID/task/TID/io: syscr, syscw). Before a thread ends or runs
 * another program, that count is compared with what was recorded of it. If the kernel
 * has counted more, calls were not recorded; if fewer, records are of calls that were
 * never made. An audit compares all calls (kernel_calls.h), where the rights allow
 * that, when a thread has ended or runs another program.
 */
#ifndef RECORD_PTRACE_WITNESS_H
#define RECORD_PTRACE_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

struct err;
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
	bool keeps_counts;
	int counts_fd; /* of the file with the counts of reads and writes */
	bool counts_calls;
	int calls_fd; /* the kernel's count of them */
	struct witness_count calls;
};

/* What an audit has compared. */
struct witness_audit {
	int tracepoint; /* 0: all calls cannot be counted */
	uint64_t nr_compared, nr_not; /* threads, one for each program that they ran */
};

/* Before the first thread begins; err says why an audit cannot count all calls. */
void witness_init(struct tracer *tr, struct err *err);

/* A thread was just made: it has done nothing yet. */
void witness_begin_new(struct tracer *tr, struct tracee *t);
/* It has begun another program. Without the agent all its calls stop: nothing is compared before that enters. */
void witness_begin_program(struct tracer *tr, struct tracee *t);
/* The agent has entered: what the thread reads and writes from now on counts. It is stopped. */
void witness_begin_files(const struct tracer *tr, struct tracee *t);
/*
 * The same after an execve that failed, in which the kernel may have read files and counted
 * that. Who searches for a program makes many of them, so these are made cheap.
 */
void witness_begin_again(const struct tracer *tr, struct tracee *t);
/* It has ended, and all that it has done is recorded. */
void witness_end(struct tracer *tr, struct tracee *t);
void witness_release(struct witness *w);
/* What it does from now on it does for us; or that is over. */
void witness_pause(const struct tracee *t, bool on);
/* A call of it is recorded. */
void witness_add(struct tracer *tr, struct tracee *t, const struct event *ev);
/* A call of it may be broken off and made again, or end with it. */
void witness_note_break(struct tracee *t);
/* All calls that it has made are recorded, but for one if it runs: a difference goes to the ledger. */
void witness_compare(struct tracer *tr, struct tracee *t, bool runs);
/* It is stopped at the entry of a call, or to get a signal, by which threads may end: these are compared. */
void witness_before_call(struct tracer *tr, struct tracee *t);
void witness_before_signal(struct tracer *tr, struct tracee *t);

#endif
