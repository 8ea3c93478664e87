/* SPDX-License-Identifier: MIT */
/*
 * The recorder's side of the agent (model/wire.h): puts it into programs at their
 * execve, turns what threads leave in their rings into events, and takes threads
 * out of the agent when they stop in it. All that the agent does not record the
 * tracer sees as always: a filter stops every call that is not made by the
 * agent's own instruction. Belongs to the tracer's thread.
 *
 *   agent: one recording           thread: one slot of the image's shared memory
 *   image: one execve and its forks
 *   space: one address space       areas of stubs near the texts that were patched
 */
#ifndef RECORD_AGENT_AGENT_H
#define RECORD_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct agent;
struct agent_hope;
struct agent_thread;
struct tracer;
struct tracee;
struct outcome;

/* -EOPNOTSUPP, with words, where programs cannot be recorded that way. */
MUST_CHECK int agent_new(const struct tracer *tr, struct agent **ret, struct err *err);
void agent_free(struct agent *a);

/*
 * The addresses behind the agent's syscall instructions: by the first it makes calls of the program, those
 * that it takes; by the second it asks for something itself. The filter lets these calls pass, and no others.
 */
uint64_t agent_call_address(const struct agent *a);
uint64_t agent_ask_address(const struct agent *a);
bool agent_takes(const struct agent *a, unsigned int nr);
/* There are maps of files that programs can store to, one of them new; or none any more. */
void agent_watch_files(struct tracer *tr, bool on);

/* No net: threads run free, and calls from places that could not be changed are not seen. */
bool agent_is_netless(const struct tracer *tr);
/* The address behind the instruction by which the agent tells of calls then. */
uint64_t agent_told_address(const struct agent *a);
/* Whether a thread may run without a stop at each of its calls. */
bool agent_runs_free(const struct tracer *tr, const struct tracee *t);
/* The thread will make a call by the instruction before ip, with this stack pointer, which the agent will not see. */
void agent_expect_call(struct tracer *tr, struct tracee *t, uint64_t ip, uint64_t sp);
/* Likewise, it is stopped at the end of one. */
void agent_follow_call(struct tracer *tr, struct tracee *t, const struct outcome *o, uint64_t ip,
		       uint64_t sp);
/* Places from which calls were not seen, as far as they are known. */
uint64_t agent_nr_unseen_places(const struct agent *a);

/*
 * A traced thread has stopped, for whatever reason: what it left is recorded,
 * and if it is in the agent it is put back into its program. True: the stop was
 * a fault of the agent's, of which the program must not know.
 */
bool agent_at_stop(struct tracer *tr, struct tracee *t);
/* The parent's stop told of a new thread, which may or may not have stopped itself. */
void agent_new_thread(struct tracer *tr, struct tracee *parent, struct tracee *t);
/* The thread is stopped and is about to run for the first time. */
void agent_first_stop(struct tracee *t);
/* The thread is gone; a call that it was making is unfinished. */
void agent_end_thread(struct tracer *tr, struct tracee *t);
/* It has another image now: the old one's state is dropped. */
void agent_leave_image(struct tracer *tr, struct tracee *t);
/* The agent will enter the first program at its execve, if it can. */
bool agent_will_enter(const struct tracer *tr);
/* The thread is stopped at the end of its execve, to begin at ip: the agent enters, later, or not. */
void agent_enter_image(struct tracer *tr, struct tracee *t, uint64_t ip);
/* The thread is stopped at the end of any other call, made by the instruction before ip: likewise. */
void agent_after_call(struct tracer *tr, struct tracee *t, const struct outcome *o, uint64_t ip);
/*
 * The thread is stopped at the entry of a call that makes another one in its memory,
 * by the instruction before ip. True: the agent could enter only before the
 * call, so the thread has been put back to where it makes it again.
 */
bool agent_before_first_thread(struct tracer *tr, struct tracee *t, uint64_t ip);
/* The thread is stopped at the end of an mmap, made by the instruction before ip. */
void agent_after_map(struct tracer *tr, struct tracee *t, const struct outcome *o, uint64_t ip);
/*
 * The thread is stopped at the entry of a call, made by the instruction before ip. True: the
 * call is for the agent from now on, and the thread has been put to where that makes it; if
 * it may be, which is when the filter has stopped it.
 */
bool agent_at_call(struct tracer *tr, struct tracee *t, uint64_t ip, bool may_hand_over);
/*
 * The thread is stopped at the entry of a call that makes a thread or process, which might find no room for what
 * it records. True: the call has been put back, and will be made again.
 */
bool agent_make_room(struct tracer *tr, struct tracee *t, uint64_t ip);
/* The thread is stopped at the entry of a call that makes another one in its memory. */
void agent_before_thread(struct tracer *tr, struct tracee *t);
/* The thread is stopped to get a signal, for which there may be a handler. */
void agent_before_signal(struct tracer *tr, struct tracee *t);
/* The thread has changed its rights: an execve may now fail for other reasons than its file, so it is made. */
void agent_note_rights(const struct tracee *t);
/* The program uses gs itself: the agent cannot find its state, so nobody may come to it. */
void agent_lose_gs(struct tracer *tr, struct tracee *t);
/* From now on the tracer sees all calls of this thread's image. */
void agent_turn_off(struct tracer *tr, struct tracee *t);
/*
 * The thread will not be able to read the processor's counter, nor will those that it makes:
 * the agent goes nowhere any more, unless it uses another clock.
 */
void agent_lose_counter(struct tracer *tr, struct tracee *t);
/* Likewise the kernel's clock will tell them another time than us. */
void agent_lose_clock(struct tracer *tr, struct tracee *t);
/* Where the time of its records is from: "counter", "vdso" or "kernel". */
const char *agent_clock(const struct agent *a);
/* Whether there is an agent in the memory of a thread of which nothing is known. */
bool agent_is_in(const struct tracer *tr, const struct tracee *t);
/* How many calls it has recorded itself. */
uint64_t agent_nr_events(const struct agent *a);
/* What the net has caught, and from where; when that was asked for. */
struct agent_caught {
	uint64_t nr_calls; /* from places that were not changed */
	uint64_t nr_left; /* from changed ones, by which the agent has left them to the tracer */
	uint64_t nr_outside; /* of processes without an agent */
	struct buf places; /* text, a line each; the caller's to release */
};
void agent_audit(const struct agent *a, struct agent_caught *ret);
/* Reads of memory that the agent should have copied, and has not: what is missing for that. */
uint64_t agent_nr_missed(const struct agent *a);
/*
 * After the tree was told of the entry, or the exit, of a call that the tracer sees:
 * from then on the agent may make such a call itself, or not any more.
 */
void agent_begin_names(struct tracer *tr, struct tracee *t);
void agent_end_names(struct tracer *tr, struct tracee *t, bool succeeded);
/*
 * At the entry and the exit of a call that the tracer sees, recorded or not: the
 * agent learns whether the paths of descriptors are wanted, or has to ask again.
 */
void agent_note_choice(struct tracer *tr, struct tracee *t, bool at_entry);
/*
 * Before a call that the tracer sees goes on: all that was done before it is
 * taken in, and the paths of calls that are being made are noted. moving: see
 * tree_is_moving(); those too that are about to be made.
 */
void agent_settle(struct tracer *tr, bool moving);
/* Before something is unmounted: no file of a program is open any more. */
void agent_close_files(struct tracer *tr);
/*
 * Something of the program's own stands where the filter lets the agent's calls pass, or may come to stand there:
 * a stack that grows downwards from an address above (0: none). No agent enters any more. Asked after each
 * call that maps something.
 */
bool agent_is_forestalled(const struct tracer *tr, struct tracee *t, uint64_t stack);
/* Whether a map at these addresses would overlap the place of the agent's text. */
bool agent_would_be_in(const struct tracer *tr, uint64_t start, uint64_t len);
/*
 * Has the thread, which is stopped behind a syscall instruction and outside of a call, make this one
 * there: what it returned, or -errno. No agent is needed for that, but code for this machine.
 */
int64_t agent_call_at(struct tracee *t, uint64_t ip, long nr, const uint64_t args[6]);
/* Takes in what this thread has left so far. */
void agent_drain(struct tracer *tr, struct tracee *t);
/* Takes in what all threads have left so far; of how many bytes that was for the busiest. */
uint64_t agent_drain_all(struct tracer *tr);
/* Whether there is a program with an agent in it. */
bool agent_is_at_work(const struct tracer *tr);

#endif
