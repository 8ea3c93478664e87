/* SPDX-License-Identifier: MIT */
/*
 * When the tracer looks for what was stored through shared maps of files (record/stores.h): before each call
 * that could read it, write it to the storage, change it, or end a map, of whatever process;
 * and when an address space has ended, however that came about.
 */
#ifndef RECORD_PTRACE_MAP_STORES_H
#define RECORD_PTRACE_MAP_STORES_H

#include "model/event.h"

struct tracer;
struct tracee;

/* The thread is stopped at the entry of a call that is recorded. */
void map_stores_before_call(struct tracer *tr, struct tracee *t);
/* The call has ended, before it is recorded. */
void map_stores_after_call(struct tracer *tr, struct tracee *t, const struct outcome *o);
/* The parent has made a process with memory of its own. */
void map_stores_fork(struct tracer *tr, const struct tracee *parent, const struct tracee *child);
/*
 * The thread is stopped behind the instruction of a call that has ended; or for the first time, where
 * it was forked. Large maps are marked from there on.
 */
void map_stores_at_instruction(struct tracer *tr, struct tracee *t, uint64_t ip);
void map_stores_first_stop(struct tracer *tr, struct tracee *t);
/* A process that was running before is recorded from now on. */
void map_stores_found(struct tracer *tr, const struct tracee *t);
/* The thread is about to end, and will run no more. */
void map_stores_before_end(struct tracer *tr, struct tracee *t);
/* The thread ends, or begins another program: with it the address space, unless others are in it. */
void map_stores_end(struct tracer *tr, struct tracee *t);

#endif
