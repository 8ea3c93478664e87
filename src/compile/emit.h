/* SPDX-License-Identifier: MIT */
/* From an event and its facts to actions: what stands between compile.c, overlap.c and emit.c. */
#ifndef COMPILE_EMIT_H
#define COMPILE_EMIT_H

#include "compile/bytes.h"
#include "compile/contest.h"
#include "compile/inside.h"
#include "compile/part.h"
#include "compile/texts.h"

/* One action in the making. */
enum step_kind {
	STEP_ROOT,
	STEP_CWD,
	STEP_UMASK,
	STEP_LOCKER, /* who holds the POSIX locks of the caller */
	STEP_CALL,
	STEP_COPY, /* a descriptor that a message took in or handed out */
	STEP_DROP, /* what went without a call of its own */
};

struct step {
	enum step_kind kind;
	struct res *res;
	const struct res *from; /* STEP_COPY */
};

/* A process some of whose threads have ended. */
struct ended {
	uint32_t pid;
	uint64_t last_ns; /* when their last action was over */
	uint64_t end_ns, computed_ns; /* of the first thread: its end, its think time up to there */
};

/* A thread that a clone has begun and that has had no event yet. */
struct begun {
	uint32_t tid, lane;
	uint64_t inherited_ns; /* of its maker's think time */
};

struct compiler {
	struct trace *trace;
	const struct compile_options *options;
	struct plan_writer *writer; /* may be NULL */
	struct compile_observer *observer; /* may be NULL */
	struct compile_totals *totals;
	struct err *err;
	struct window *window;
	struct texts texts; /* of trees */
	struct fsmodel *model;
	struct order *order;
	struct lanes lanes;
	struct slots slots;
	struct bytes bytes;
	bool shows_ahead; /* the order wants to see events before their turn */
	bool tree_known;
	struct part part;
	struct contests contests;
	bool knows_contests; /* they have been looked for */
	bool is_setup; /* the present event is before the part */
	bool knows_start; /* what the metadata say of the first process is in the model */
	const struct trace_stream_info *streams;
	size_t nr_streams;
	struct thread *threads; /* by stream */
	uint64_t *nr_seen; /* events of each stream */
	VEC(uint32_t) alive; /* streams */
	VEC(struct begun) begun;
	VEC(struct ended) ended;
	uint32_t launched_tid; /* of the first process; 0: not known */
	uint64_t first_root; /* id of the root that every lane has at first, also as its cwd */
	uint64_t last_ns;
	/* Of the present event. */
	VEC(struct step) steps;
	VEC(struct action_edge) edges;
	bool reads_unknown; /* bytes that no replay can have */
	struct action action;
	struct arena arena;
	struct buf path;
};

/* What the event will become: fills c->steps. Copies and drops come last, when ready_found() has given out slots. */
void steps_plan(struct compiler *c, const struct event *ev, const struct facts *facts, bool call,
		const struct lane *lane);
void steps_plan_copies(struct compiler *c, const struct facts *facts);
void steps_plan_drops(struct compiler *c, const struct event *ev, const struct facts *facts,
		      bool call);
/* What the steps, or the call, need that nobody in the trace made goes into the prologue. */
MUST_CHECK int ready_found(struct compiler *c, const struct event *ev, const struct facts *facts,
			   bool call, struct err *err);
/* Requests that the event saw complete and that must not be made as they were submitted. */
MUST_CHECK int put_request_ends(struct compiler *c, const struct event *ev,
				const struct facts *facts, struct err *err);
/* Makes actions of c->steps, with slots, and writes them. The event's arguments are changed. */
MUST_CHECK int steps_emit(struct compiler *c, const struct compiled *view, struct thread *t,
			  struct err *err);
/* What the trace's metadata says of the first process goes into the model. */
void state_at_start(struct compiler *c, const struct event *first);

/* passing.c: the event is no action. Before it is passed: what its thread, or its child, inherits. */
void passing_at_start(struct compiler *c, struct thread *t, const struct event *ev);
void passing_to_child(struct compiler *c, const struct thread *maker, const struct event *ev);
/* After that: what a process did at its end, if the thread has waited for it. */
void passing_to_waiter(struct compiler *c, struct thread *t, const struct event *ev);
/* The thread has ended. */
void passing_note_end(struct compiler *c, const struct thread *t);

/* An event that is in the model is compiled before its turn. */
MUST_CHECK int compile_early(struct compiler *c, struct event *ev, const struct facts *facts,
			     struct err *err);
/* Looks for the places of writes, once, when the first two meet whose places the kernel chose: contest.h. */
MUST_CHECK int overlap_know_contests(struct compiler *c, struct err *err);
/* Calls that overlapped the present one, and what they saw says that they took effect before it, go first. */
MUST_CHECK int overlap_let_pass(struct compiler *c, struct err *err);
/* As fsmodel_try(), and NULL too when the call is a write that is not in its place. */
const struct facts *overlap_try(struct compiler *c, struct event *ev);
/* False: it is a write that has to wait for others to reach its place. */
bool overlap_in_place(struct compiler *c, struct event *ev);
/*
 * The present event does not fit: those that overlapped it go first until it does. Then
 * its facts; NULL when it never does.
 */
MUST_CHECK int overlap_swap(struct compiler *c, const struct facts **ret, struct err *err);

#endif
