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

#include "record/agent/agent.h"
#include "record/aio.h"
#include "record/capture.h"
#include "record/found.h"
#include "record/open_ids.h"
#include "record/ptrace/cost.h"
#include "record/ptrace/jobs.h"
#include "record/ptrace/tracee.h"
#include "record/ptrace/waiting.h"
#include "record/recorder.h"
#include "record/session.h"

struct process_memory {
	struct memory memory; /* first: read() gets a pointer to it */
	pid_t tid;
	bool denied; /* the kernel refused: the process protects its memory */
	bool may_wait; /* a program sees to faults of its own: what is not there yet is not waited for */
};

/* What the caller of the recorder had set, for it and for the command. */
struct signals {
	struct sigaction interrupt, quit, terminate, hangup, alarm, child;
	bool has_jobs; /* the command is one, and shall be stopped as such */
	struct jobs_signals jobs;
	struct itimerval timer;
	sigset_t mask;
};

/* A thread that is stopped at the end of a call by which it woke others. */
struct waker {
	struct tracee *tracee; /* NULL: there is none */
	uint64_t since_ns;
	unsigned int nr_stops; /* of others, that came first */
};

struct tracer {
	struct session *session;
	const struct record_options *o; /* the session's */

	struct tracees all;
	char path[PATH_MAX]; /* of the command's program */
	struct signals signals;
	pid_t child; /* the launched command; 0 when attached */
	bool started; /* its execve succeeded */
	int exec_err; /* or why it did not */
	bool filtered; /* a seccomp filter chooses the calls: between them threads run free */
	uint16_t filter_mark; /* of the stops that it makes */

	struct process_memory memory;
	struct capture capture;
	struct found *found;
	struct open_ids open_ids; /* of the descriptors that were there when the recording began */
	struct aio *aio;
	struct stores *stores; /* through maps */
	bool stops_at_exits; /* threads, as far as they could be told */
	struct agent *agent; /* NULL: no agent is put into programs */
	struct witness_audit audit;

	uint64_t next_tick_ns, tick_ns;
	struct waiting waiting;
	uint64_t watched_ns; /* rings that nobody polls, the last time (polled.h) */
	struct waker waker;
	struct jobs jobs;
	uint64_t next_space;
	struct cost cost;
	struct cpu_meters cpus;
	uint64_t nr_left_out; /* calls that touch no path that is asked for */
	bool has_polled_ring; /* a kernel thread took requests of an io_uring before the recording began */
	uint64_t nr_own_reads, own_bytes; /* of the trace itself, by the program */
	enum data_policy data; /* what was asked for, or nothing, from then on */
	uint64_t no_data_ns;
};

static inline uint64_t tracer_now(const struct tracer *tr)
{
	return session_now(tr->session);
}

/* Where the command's program is. Before anything is written. */
MUST_CHECK int tracer_find_program(struct tracer *tr, struct err *err);
/* Starts the command, stopped before its execve, with the tracer attached to it. */
MUST_CHECK int tracer_launch(struct tracer *tr, struct err *err);
/* What ptrace is asked for. */
unsigned long tracer_options(const struct tracer *tr);
/* Threads stop before they end from now on, those of this one's process at once. */
void tracer_stop_at_exits(struct tracer *tr, struct tracee *t);
/* Attaches to all threads of a process. */
MUST_CHECK int tracer_attach(struct tracer *tr, struct err *err);
/* Notes cwd, root, umask and descriptors that a process has when the recording begins. */
MUST_CHECK int tracer_note_process(struct tracer *tr, struct tracee *t, bool before_exec);
/* Runs until no traced thread is left. */
void tracer_loop(struct tracer *tr);

/* Lets a stopped thread go on, with a signal or 0. */
void tracer_resume(struct tracer *tr, struct tracee *t, int signo);

/* Whether the thread is in no waiting call: for the cost of tracing. */
void tracer_set_active(struct tracer *tr, struct tracee *t, bool active, uint64_t now_ns);

/* Writing (output.c). */

/*
 * What is kept of the buffers of a call that is over. What the program reads of the trace would be
 * in the trace again, for it to read on, without end: of that only the length. If it copies the
 * trace, that would still be so, and after some time no data is kept.
 */
enum data_policy tracer_data_policy(struct tracer *tr, const struct tracee *t,
				    const struct outcome *o);

/* The recording ends as it was meant to, before the program does. */
void tracer_end_recording(struct tracer *tr);
/* It ends too early: the program goes on alone where it can. */
void tracer_cut_short(struct tracer *tr, int r, const char *why);
/* Appends an event of this thread; row and arguments are given, ids and stream filled in. */
MUST_CHECK int tracer_emit(struct tracer *tr, struct tracee *t, struct event *ev);
/* As that, unless the recording is over; a failure ends it, as with all that follow. */
void tracer_put_event(struct tracer *tr, struct tracee *t, struct event *ev);
/* An event that is no call. */
void tracer_put_now(struct tracer *tr, struct tracee *t, enum row_id id, const struct value *args,
		    unsigned int nr);
/* An event that is no call stands in the gap between two: it has what the thread was held up to it. */
void tracer_take_held(struct tracee *t, struct event *ev);
/* The call that the thread is in, whose exit stop was seen at that time. */
void tracer_make_call(struct tracer *tr, struct tracee *t, struct outcome outcome, uint64_t seen_ns,
		      struct event *ret);
void tracer_put_call(struct tracer *tr, struct tracee *t, struct outcome outcome, uint64_t seen_ns);
void tracer_put_loss(struct tracer *tr, const struct loss *loss);
void tracer_close_stream(struct tracer *tr, struct tracee *t);

/* Threads (threads.c). */

/* A thread begins: its stream and its thread_start event. how: of the set start_how. */
MUST_CHECK int tracer_begin_thread(struct tracer *tr, struct tracee *t, pid_t parent,
				   uint64_t clone_flags, int how);
/* As that, within the loop: a failure ends the recording. */
void tracer_start_thread(struct tracer *tr, struct tracee *t, pid_t parent, uint64_t clone_flags,
			 int how);
/* The stop that tells of a child. */
void tracer_new_thread(struct tracer *tr, struct tracee *parent);
/* Those that have waited too long for somebody who tells of them. */
void tracer_release_orphans(struct tracer *tr);
/* A thread is gone; what it was doing was not finished. */
void tracer_end_thread(struct tracer *tr, struct tracee *t, int status);
/*
 * The stop within a successful execve. The thread that made it goes on as the
 * leader, and is returned; the leader that was (if another) has vanished
 * without a word.
 */
struct tracee *tracer_exec(struct tracer *tr, struct tracee *t);
/* After the execve itself is in the trace: what the process is now. */
void tracer_finish_exec(struct tracer *tr, struct tracee *t);

/* Calls (calls.c). */

/* Calls that the tracer has to know of, also when they are not wanted themselves. */
bool calls_are_seen(const struct row *row, const bool *wanted);
/* The thread is in a call that reads, sets or hands on where it may run, or may be in one. */
bool calls_are_about_cpus(const struct tracee *t);
/* A stop at the entry or the exit of a call. */
void tracer_syscall_stop(struct tracer *tr, struct tracee *t, uint64_t seen_ns);
/* The call that the thread is in, or was in to its end, is over, as tree_leave() has it. */
void tracer_leave_tree(struct tracer *tr, const struct tracee *t, int err);
/* The call that the thread is in has this outcome. */
void tracer_finish_call(struct tracer *tr, struct tracee *t, struct outcome o, uint64_t seen_ns);
/* A call that was to be made again ends with EINTR: the thread is stopped, and has not begun to. */
void tracer_end_again(struct tracer *tr, struct tracee *t, uint64_t seen_ns);

/*
 * The filter that stops only wanted calls, for the child to install; its code is
 * the caller's to free. The stops that it makes carry the mark. wanted: NULL for
 * all. agent: what it does runs free; NULL: there is none.
 */
struct sock_fprog;
void filter_build(const bool *wanted, uint16_t mark, const struct agent *agent,
		  struct sock_fprog *ret);
/* The filter without a net: it stops what the agent tells of, and nothing else. */
void filter_build_tell(uint16_t mark, const struct agent *agent, struct sock_fprog *ret);
/* Whether such a call, or a variant of it, is recorded, or seen for another reason. */
bool filter_wants_nr(const bool *wanted, unsigned int nr);
/* For the calling process, for ever; false: it is refused, and errno says why. */
MUST_CHECK bool filter_install(const struct sock_fprog *filter);
/* An errno: no process of ours may have a filter, as in a sandbox that denies seccomp(2); else 0. */
int filter_refusal(void);

/* Puts the dispositions back; also called in the child. */
void signals_restore(const struct signals *s);

/* Set by the signal handlers of the recorder. */
extern volatile sig_atomic_t tracer_stop;

#endif
