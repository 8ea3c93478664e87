/* SPDX-License-Identifier: MIT */
/*
 * What the files about threads and processes share: handle.c, process.c,
 * calls_process.c, process_event.c.
 */
#ifndef FSMODEL_PROCESS_H
#define FSMODEL_PROCESS_H

#include "fsmodel/tables.h"

/* With one reference, the caller's. */
struct handle *handle_new(struct fsmodel *m, struct inode *dir);
void handle_unref(struct call *c, struct fsmodel *m, struct handle *h);
struct fs_state *fs_copy(const struct fs_state *from);
void fs_drop(struct call *c, struct fsmodel *m, struct fs_state *fs);

/* What clone with these flags makes of its caller. */
struct thread *thread_clone(struct call *c, struct thread *maker, uint32_t pid, uint32_t tid,
			    uint64_t flags);
/* From before the trace, or from nowhere: nothing is known of its descriptors. */
struct thread *thread_from_nowhere(struct fsmodel *m, uint32_t pid, uint32_t tid);
void thread_free(struct fsmodel *m, struct thread *t);
/* keep: its number is still needed, see thread.ended. */
void thread_end(struct call *c, struct fsmodel *m, struct thread *t, bool keep);
void process_end(struct call *c, struct process *p);
/* Whoever had the number before has ended without a word. */
void clear_tid(struct call *c, uint32_t tid);
void clear_pid(struct call *c, uint32_t pid);
uint32_t event_pid(const struct event *ev);
/* The process of the call becomes another program: its other threads end, its tables are its own. */
void become_program(struct call *c);

#endif
