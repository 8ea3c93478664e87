/* SPDX-License-Identifier: MIT */
/*
 * Inside of the ptrace recorder: the state of one recording, and the parts
 * that its files offer each other. All of it belongs to the tracer's thread.
 */
#ifndef RECORD_PTRACE_TRACER_H
#define RECORD_PTRACE_TRACER_H

#include <limits.h>
#include <signal.h>
#include <sys/time.h>

#include "record/aio.h"
#include "record/capture.h"
#include "record/found.h"
#include "record/ptrace/tracee.h"
#include "record/recorder.h"
#include "record/tree.h"

struct process_memory {
	struct memory memory; /* first: read() gets a pointer to it */
	pid_t tid;
	bool denied; /* the kernel refused: the process protects its memory */
};

/* What the caller of the recorder had set, for it and for the command. */
struct signals {
	struct sigaction interrupt, quit, terminate, hangup, alarm, file_size;
	struct itimerval timer;
};

struct tracer {
	const struct record_options *o;
	struct record_result *res;

	struct tracees all;
	char path[PATH_MAX]; /* of the command's program */
	struct signals signals;
	pid_t child; /* the launched command; 0 when attached */
	bool started; /* its execve succeeded */
	int exec_err; /* or why it did not */
	bool filtered; /* a seccomp filter chooses the calls: between them threads run free */
	bool silent; /* recording has ended, the program has not */

	struct trace_writer *writer;
	struct trace_feed *feed;
	struct process_memory memory;
	struct capture capture;
	struct found *found;
	struct aio *aio;
	struct tree *tree;

	uint64_t start_ns; /* of the monotonic clock */
	uint64_t next_tick_ns, tick_ns;
	uint64_t next_space;
};

uint64_t tracer_now(const struct tracer *tr);

/* Where the command's program is. Before anything is written. */
MUST_CHECK int tracer_find_program(struct tracer *tr, struct err *err);
/* Starts the command, stopped before its execve, with the tracer attached to it. */
MUST_CHECK int tracer_launch(struct tracer *tr, struct err *err);
/* Attaches to all threads of a process and notes its open descriptors. */
MUST_CHECK int tracer_attach(struct tracer *tr, struct err *err);
/* Runs until no traced thread is left. */
void tracer_loop(struct tracer *tr);

/* A thread begins: its stream and its thread_start event. how: of the set start_how. */
MUST_CHECK int tracer_begin_thread(struct tracer *tr, struct tracee *t, pid_t parent,
				   uint64_t clone_flags, int how);
/* Appends an event of this thread; row and arguments are given, ids and stream filled in. */
MUST_CHECK int tracer_emit(struct tracer *tr, struct tracee *t, struct event *ev);

/* The filter that stops only wanted calls, for the child to install; its code is the caller's to free. */
struct sock_fprog;
void filter_build(const bool *wanted, struct sock_fprog *ret);

/* Puts the dispositions back; also called in the child. */
void signals_restore(const struct signals *s);

/* Set by the signal handlers of the recorder. */
extern volatile sig_atomic_t tracer_stop;

#endif
