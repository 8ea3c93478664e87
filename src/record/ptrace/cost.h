/* SPDX-License-Identifier: MIT */
/*
 * How much slower the program ran because it was traced: an estimate.
 *
 * Alone, the program would have needed its processor time without what the
 * kernel spends on our stops, and the time in which its calls were blocked; all
 * else of its active time is ours: that we held it, that it waited for us, that
 * processors were switched. What a stop costs in processor time is measured
 * with calls that do nothing, which the child makes before its execve. Every
 * stop gives up the processor once; as many times more as the program did so,
 * in no waiting call, so many calls were blocked: the longest. Time in which all
 * threads are in waiting calls (sleeps, polls) would have passed alike.
 *
 *   slow-down = elapsed / (idle + active * alone / sum of the threads' active times)
 *
 * Belongs to the tracer's thread.
 */
#ifndef RECORD_PTRACE_COST_H
#define RECORD_PTRACE_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls that the child makes to measure stops; without them nothing is told. */
#define COST_NR_TRIALS 8

struct rusage;

struct cost {
	/* What stops cost. */
	bool is_trial;
	uint64_t nr_unrecorded_stops, nr_trial_stops;
	uint64_t trial_start_cpu_ns; /* while it lasts */
	uint64_t stop_cpu_ns; /* one of them */

	/* What the program did. */
	uint64_t nr_stops, nr_waits, active_ns /* of all threads */, idle_ns;
	struct {
		uint64_t nr, sum_ns;
	} calls[64]; /* by the binary logarithm of their durations */
	uint64_t begun_ns, ended_ns; /* 0: not yet */
	uint64_t cpu_before_ns, cpu_ns;
	uint64_t nr_switches_before, nr_switches; /* how often it gave up the processor */
	uint64_t nr_active; /* threads that are in no waiting call */
	uint64_t idle_from_ns;
};

/* The child begins to measure; it has done so, and makes its execve. */
void cost_begin_trial(struct cost *c, pid_t pid);
void cost_end_trial(struct cost *c, pid_t pid, uint64_t now_ns);

/* A thread becomes active, or is no longer; since_ns: when it became so. */
void cost_enter_active(struct cost *c, uint64_t now_ns);
void cost_leave_active(struct cost *c, uint64_t since_ns, uint64_t now_ns);
/* A call that is no waiting call took so long, as seen by us. */
void cost_add_call(struct cost *c, uint64_t duration_ns);

/* The program has ended, and used so much with all children that it waited for. */
void cost_end(struct cost *c, const struct rusage *usage, uint64_t now_ns);
/*
 * In percent: 310 is 3.1 times slower; 0 when nothing can be said, as of a
 * process that was attached to or outlives the recording.
 */
uint64_t cost_slowdown_percent(const struct cost *c);

#endif
