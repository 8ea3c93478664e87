/* SPDX-License-Identifier: MIT */
/*
 * The threads of an strace text: which process each belongs to, what it is in
 * the middle of, and the events that go to the sink on its behalf.
 *
 * 1. A thread's pid must be known before its first event. Who cloned it tells;
 *    its lines may come before the clone's end does, so a clone that is not yet
 *    finished counts. When several are and they leave a doubt, the thread waits,
 *    lines and all (struct waiting_line), until one of them ends.
 * 2. At most one call of a thread is unfinished; its text is kept.
 * 3. A call that a signal broke off is held, with the signals behind it, until
 *    it is clear whether the program sees EINTR or the call is made again.
 *
 * What is kept is bounded by what is unfinished at one time. Belongs to one thread.
 */
#ifndef IMPORT_STRACE_THREADS_H
#define IMPORT_STRACE_THREADS_H

#include "base/map.h"
#include "base/mem.h"
#include "import/sink.h"
#include "model/event.h"

/* Descriptors from this number on are not told apart. */
#define STRACE_FDS_MAX 1024

/* What the process does about signals, as far as its calls told. */
struct strace_process {
	uint32_t pid;
	unsigned int nr_threads;
	bool knows; /* from its start on, or since an execve */
	uint64_t handled, restarts; /* bit n: signal n + 1 has a handler, with SA_RESTART */
	uint64_t fds[STRACE_FDS_MAX / 64]; /* descriptors of which the trace tells what they are */
};

struct waiting_line {
	struct import_input *in;
	uint64_t line_no;
	char *text;
	size_t len;
};

struct strace_thread {
	uint32_t tid, ppid;
	struct strace_process *proc; /* NULL: waits for its maker's clone */
	bool started; /* has a stream */
	uint64_t last_ns; /* when its last event ended */

	bool unfinished;
	struct buf text; /* of the unfinished call */
	uint64_t enter_ns, line_no; /* of its first part */
	bool makes_thread; /* it is a clone */
	uint32_t made; /* ... whose thread is known already, by this tid; 0: not yet */
	uint64_t clone_flags;

	VEC(struct event *) held; /* in `arena` */
	struct arena arena;
	VEC(struct waiting_line) waiting;
};

struct strace_threads {
	struct import_sink sink;
	struct map by_tid; /* -> struct strace_thread */
	struct strace_thread *last; /* the one that was asked for last */
	bool follows; /* lines say of which thread they are: a clone's child will come */
	bool no_time; /* the times are invented */
	bool one_process; /* threads that come from nowhere are of one process ... */
	struct strace_process *shared; /* ... which is this one; held; NULL: not yet */
};

void strace_threads_init(struct strace_threads *ts, struct import *im);
void strace_threads_release(struct strace_threads *ts);

/* NULL when it has not been seen. */
struct strace_thread *strace_threads_find(struct strace_threads *ts, uint32_t tid);
/*
 * The thread, made when it is new: by a clone that is not finished, or (there is
 * none) from nothing, with `how` (START_LAUNCH, START_ATTACH). Its proc is NULL when
 * several unfinished clones leave a doubt.
 */
struct strace_thread *strace_threads_get(struct strace_threads *ts, uint32_t tid, uint64_t now_ns,
					 enum start_how how, int *ret_r, struct err *err);
/* A clone returned: its child, if it has not begun yet, begins. 1: it was waiting for that. */
MUST_CHECK int strace_threads_cloned(struct strace_threads *ts, struct strace_thread *maker,
				     uint32_t child, uint64_t flags, uint64_t now_ns,
				     struct err *err);
/* The leader goes on where another thread, which has ended, called execve. */
MUST_CHECK int strace_threads_restart(struct strace_threads *ts, struct strace_thread *leader,
				      uint32_t former, uint64_t now_ns, struct err *err);
/* No clone will tell any more: the thread is a process of its own. */
MUST_CHECK int strace_threads_settle(struct strace_threads *ts, struct strace_thread *t,
				     uint64_t now_ns, struct err *err);

/* Appends an event of the thread, or holds it behind others that are held. */
MUST_CHECK int strace_threads_put(struct strace_threads *ts, struct strace_thread *t,
				  struct event *ev, struct err *err);
/* Appends one that happens at a moment, of a row with the given arguments. */
MUST_CHECK int strace_threads_put_now(struct strace_threads *ts, struct strace_thread *t,
				      enum row_id id, const struct value *args, unsigned int nr,
				      uint64_t now_ns, struct err *err);
/* Holds a call that a signal broke off. */
void strace_threads_hold(struct strace_thread *t, const struct event *ev);
/* What is held goes on: the broken call was `interrupted`, or made again. */
MUST_CHECK int strace_threads_release_held(struct strace_threads *ts, struct strace_thread *t,
					   bool interrupted, struct err *err);
/* The thread has ended. */
MUST_CHECK int strace_threads_end(struct strace_threads *ts, struct strace_thread *t,
				  struct err *err);

/* Signals. */
void strace_process_set_action(struct strace_process *p, const struct event *ev);
void strace_process_exec(struct strace_process *p);

#endif
