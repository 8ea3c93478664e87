/* SPDX-License-Identifier: MIT */
/*
 * Calls that a signal broke off. At its exit such a call has an error number of
 * the kernel's own (ERESTARTSYS and kin); what the program gets to see is decided
 * when the signal is delivered:
 *
 *   a handler runs, and the error (or the handler) allows no restart   EINTR: INTERRUPTED
 *   no handler runs, or the call may be made again after it            RESTARTED
 *   the signal kills                                                   UNFINISHED
 *
 * Mostly it can be foretold from the signals that are pending. Only whether a
 * handler was set up with SA_RESTART nobody says: then the event is kept until
 * the kernel has prepared the handler's stack frame, in which stands how the
 * call will end; signals that come meanwhile are kept with it.
 */
#ifndef RECORD_PTRACE_INTERRUPTS_H
#define RECORD_PTRACE_INTERRUPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"

struct broken_call;
struct tracer;
struct tracee;

#define KEPT_SIGNALS_MAX 8

/* Events that wait for a decision; in the arena of the call. */
struct kept_events {
	struct event *call; /* NULL: none waits */
	struct event *signals[KEPT_SIGNALS_MAX];
	unsigned int nr_signals;
	uint64_t caught; /* signals that have a handler, as bits */
	bool is_stepping; /* the next stop is at the beginning of the handler */
};

/* Is this error one of those that never leave the kernel? */
bool interrupts_is_restart(int32_t err);
/* Has the thread's process a handler for it? */
bool interrupts_catches(const struct tracee *t, int signo);
/* Will it end the process, for want of a handler, and if it does anything then? */
bool interrupts_is_deadly(const struct tracee *t, int signo);
/* The call that the thread is in ends with such an error. */
void interrupts_put_call(struct tracer *tr, struct tracee *t, struct outcome o, uint64_t seen_ns);
/* A signal is about to be delivered. True: resume by a single step. */
bool interrupts_put_signal(struct tracer *tr, struct tracee *t, struct event *ev);
/* Any stop: what waits is decided, if it can be. True: the stop was made for that alone. */
bool interrupts_decide(struct tracer *tr, struct tracee *t, int signo, bool at_entry);
/*
 * Stops the thread wherever it is; there interrupts_undo() makes that no call tells of it: some
 * fail with EINTR for any break, also one that the program cannot know of.
 */
void interrupts_break_off(struct tracee *t);
void interrupts_undo(const struct tracee *t);
/*
 * Signals that the program ignores: without a tracer the kernel drops them when they are
 * sent; with one it delivers them, and calls that are not restarted fail with EINTR. So such
 * a call is made again. A timeout begins anew then, but when it is over at the next of these signals, so
 * is the call.
 */
bool interrupts_is_unseen(const struct tracee *t, int signo);

enum interrupts_undo {
	INTERRUPTS_LEFT, /* the call fails, as it would without us */
	INTERRUPTS_AGAIN,
	INTERRUPTS_TIMED_OUT, /* *ret: what it returns */
};

/* The thread comes back with EINTR from the call that began at its enter_ns. */
enum interrupts_undo interrupts_judge(struct tracer *tr, const struct tracee *t,
				      const struct broken_call *c, int64_t *ret);
/*
 * The same at the end of the call that it is in, and done: true if that goes on, and t->is_again until the thread
 * comes to it. *ret: what the call returns else.
 */
bool interrupts_make_again(struct tracer *tr, struct tracee *t, int64_t *ret);
/* The thread is gone. */
void interrupts_end(struct tracer *tr, struct tracee *t);

#endif
