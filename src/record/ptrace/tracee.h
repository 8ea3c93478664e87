/* SPDX-License-Identifier: MIT */
/*
 * The threads that are traced, by tid. Owned by the tracer's thread.
 *
 *   NEW ---(parent's clone seen)---> RUNNING <---> IN_CALL
 *    \--(stopped before that: waits for it)
 *
 * A thread that stops before its parent's clone event was seen is kept
 * stopped until then, so that the order of the two is right in the trace.
 */
#ifndef RECORD_PTRACE_TRACEE_H
#define RECORD_PTRACE_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/map.h"
#include "model/event.h"
#include "record/ptrace/clones.h"
#include "record/ptrace/cpu.h"
#include "record/ptrace/interrupts.h"
#include "record/ptrace/polled.h"
#include "record/ptrace/witness.h"
#include "trace/writer.h"

enum tracee_state {
	TRACEE_NEW, /* not yet known whose child it is */
	TRACEE_RUNNING,
	TRACEE_IN_CALL, /* between entry and exit stop */
};

struct tracee {
	pid_t tid, pid;
	pid_t ppid, pgid;
	enum tracee_state state;
	int delivered; /* the signal that it has stopped for, which is no longer pending; 0: none */
	bool is_broken_off; /* we have stopped it, wherever it was */
	bool group_stopped; /* by job control, until SIGCONT */
	bool stopped_early; /* NEW: has stopped, waits for its parent's clone event */
	unsigned int early_ticks; /* of the recorder, since then */
	bool recorded; /* has begun: before its first execve the launched child is ours, not the program */
	bool execing; /* EVENT_EXEC was seen: the execve has succeeded */
	pid_t exec_former_tid;
	uint64_t nr_cut_calls, cut_bytes; /* whose data could not be read, and how much of it */
	bool cut_denied; /* because the process protects its memory */
	uint64_t nr_unread_calls; /* of a 32-bit program, with structs */
	bool is_movable; /* as all are, or none */
	bool looks_at_cpus; /* has opened a file that tells of a process where it may run */
	bool own_filter; /* has a seccomp filter of its own, which ours cannot see past */
	bool changed_rights; /* since its last execve: a limit of its user may refuse the next */
	bool stops_at_exit; /* before it ends */
	bool stops_always; /* something of its own is where the agent's calls pass the filter */
	struct witness witness;
	bool is_active; /* in no waiting call; since when */
	uint64_t active_since_ns;
	struct cpu_meter cpu;
	uint64_t space; /* number of its address space */
	struct agent_thread *agent; /* NULL: its calls are seen by the tracer alone */
	struct agent_hope *hope; /* for an agent, later; ours; NULL: none */
	struct trace_stream *stream;

	/* The call that it is in. */
	const struct row *row; /* NULL: none that matters */
	bool is_mmap; /* recorded or not */
	bool unwanted; /* looked at, but not recorded */
	bool is_again; /* it was broken off, and is about to be made again (interrupts.h) */
	uint64_t nr;
	uint16_t flags;
	uint64_t regs[6];
	uint64_t clone_flags; /* of one that makes a child */
	bool has_child; /* that was told of */
	struct hidden_flag hidden;
	struct polled polled;
	uint64_t enter_ns, held_ns;
	bool has_woken; /* others, by the call that has just ended */
	uint64_t carried_ns; /* held since the last call that was recorded, for the next */
	uint64_t inside_ns; /* held in the middle of the call */
	uint64_t noted_ns; /* up to then what it was held is in these or in an event */
	uint64_t event_cpu_ns; /* its CPU time at the last event; 0: not known */
	uint64_t nr_gap_stops; /* since then, in calls that are not recorded */
	uint64_t gap_cpu_ns; /* before the call that it is in */
	bool entry_denied; /* of this call: memory was refused, bytes were cut */
	uint64_t entry_cut_bytes, entry_unread;
	struct value args[ROW_ARGS_MAX];
	struct kept_events kept; /* of the last call */
	struct arena arena;
};

struct tracees {
	struct map by_tid;
	bool are_movable; /* see beside.h: they do not outlive us, and we see all that they do */
};

struct tracee *tracees_find(const struct tracees *all, pid_t tid);
/* Made in state NEW when missing. */
struct tracee *tracees_get(struct tracees *all, pid_t tid);
void tracees_remove(struct tracees *all, struct tracee *t);
/* A thread other than the leader made execve: it goes on under the leader's tid. */
void tracees_rename(struct tracees *all, struct tracee *t, pid_t tid);
void tracees_release(struct tracees *all);

#endif
