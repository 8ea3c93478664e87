/* SPDX-License-Identifier: MIT */
/* What the files of compile/ share. */
#ifndef COMPILE_INSIDE_H
#define COMPILE_INSIDE_H

#include "compile/compile.h"
#include "compile/window.h"

/* think.c: what a thread did between two actions. */
struct think {
	uint64_t since_ns; /* exit of the event before, or the thread's start */
	uint64_t held_ns; /* by the recorder, after that event */
	uint64_t before_ns, after_ns, wait_ns;
	uint64_t nr_faults; /* that may yet come of files it has mapped */
	bool started;
};

/* An event that is no action has passed. */
void think_pass(struct think *t, const struct event *ev, const struct facts *facts);
/* An action follows: its times are complete. */
void think_arrive(struct think *t, const struct event *ev);
/* The action is over: the next think time begins. */
void think_leave(struct think *t, const struct event *ev);

/* lanes.c: which lane a thread's actions go to. */
struct thread {
	uint32_t tid, pid;
	uint32_t lane; /* NO_LANE before its first event */
	bool has_last;
	bool has_missed; /* the page cache, for the last time when: */
	uint64_t missed_ns;
	bool inherited; /* its maker's think time */
	bool in_part; /* it has had an event in the part of the trace that is wanted */
	struct action_ref last;
	struct think think;
};

#define NO_LANE UINT32_MAX
#define PROLOGUE_LANE 0 /* what processes have before their first action: done before all else */
#define NO_MASK UINT32_MAX

struct lane {
	uint64_t nr_actions;
	uint32_t nr_threads; /* alive on it */
	bool has_last;
	struct action_ref last;
	/* What the lane's replay thread has as cwd, root (ids of RES_HANDLE) and umask. */
	uint64_t cwd, root;
	uint32_t umask;
};

struct lanes {
	VEC(struct lane) list;
	VEC(uint32_t) idle; /* whose threads have ended */
	uint32_t max;
	bool one;
};

void lanes_init(struct lanes *l);
/* The lane of a thread that `parent` (NO_LANE: nobody known) has begun. */
uint32_t lanes_begin(struct lanes *l, const struct order *order, uint32_t parent);
void lanes_end(struct lanes *l, uint32_t lane);

/* slots.c: numbers of the resource table. */
struct free_slot {
	int32_t slot;
	struct action_ref freed; /* by this action */
};

/* Of the slots that one lane gave up: oldest first, from `head`. */
struct free_list {
	VEC(struct free_slot) list;
	size_t head;
};

struct slots {
	VEC(struct free_list) lanes;
	uint32_t nr;
};

/* For an action of this lane: a slot whose former use is certain to be over by then. */
int32_t slots_take(struct slots *s, const struct order *order, uint32_t lane);
void slots_give_back(struct slots *s, int32_t slot, const struct action_ref *freed);
void slots_release(struct slots *s);

/* classify.c: what becomes of an event. */
enum fate {
	FATE_NOTHING, /* neither made nor waited for */
	FATE_ACTION,
	FATE_SIMULATED,
	FATE_WAITING,
	FATE_UNSUPPORTED,
};

/* Requests of io_uring and aio, and what prepares them. */
bool row_is_async(const struct row *row);
/* Whether it is about a pipe, an eventfd or inotify. */
bool event_is_on_stream(const struct fsmodel *m, const struct event *ev, const struct facts *facts);
/* What the event moved through streams without being made again, no replay can have. */
void streams_lose(const struct fsmodel *m, const struct event *ev, const struct facts *facts,
		  enum fate fate);

enum fate event_fate(const struct fsmodel *m, const struct event *ev, const struct facts *facts);
/*
 * The call failed for a reason that a replay may not have, and would change
 * something if it succeeded, or was denied: it must not be made.
 */
bool event_is_enforced(const struct fsmodel *m, const struct event *ev, const struct facts *facts);
/* The outcome of the call depends on more than the storage. */
bool outcome_is_free(const struct fsmodel *m, const struct event *ev, const struct facts *facts);
/* Whether the call looks names up, and whether it may make one. */
bool row_looks_up(const struct row *row);
bool row_makes_names(const struct row *row);

#endif
