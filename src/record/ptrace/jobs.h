/* SPDX-License-Identifier: MIT */
/*
 * Job control. What the terminal sends (Ctrl-Z, or that a background job wants
 * to read) goes to the command and to us alike, as we are in one process group.
 * The command decides what that means: only if it stops do we stop, when its
 * stop is in the trace, so that the shell sees its job stopped. We go on when
 * the shell continues the group, and the command with us.
 *
 * A signal that came to us alone was meant for the command. One that reaches the
 * command alone is its own affair: we stay, because who continues it need not know
 * of us. Belongs to the tracer's thread; the handlers only take notes.
 */
#ifndef RECORD_PTRACE_JOBS_H
#define RECORD_PTRACE_JOBS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct tracer;
struct tracee;

#define JOBS_NR_SIGNALS 3

/* What the caller had set for the signals that stop jobs. */
struct jobs_signals {
	struct sigaction old[JOBS_NR_SIGNALS];
};

/* Zeroed at first. */
struct jobs {
	bool is_stopped; /* the command, by the terminal */
	uint64_t continued_ns; /* we were, and the command shall be soon; 0: it was */
};

void jobs_take_signals(struct jobs_signals *s);
/* Also called in the child. */
void jobs_restore_signals(const struct jobs_signals *s);

/* A thread has stopped by this signal, or goes on (0). */
void jobs_note(struct tracer *tr, const struct tracee *t, int signo);
/* To be called after each wait: what was noted is done. True: all stops that there are must be seen. */
bool jobs_must_stop(struct tracer *tr);
/* Stops the recorder itself, until it is continued. */
void jobs_stop(struct tracer *tr);

#endif
