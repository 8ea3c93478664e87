/* SPDX-License-Identifier: MIT */
/*
 * What the files of a block run share.
 *
 * The window is a ring of requests in the order of the trace:
 *
 *     kept ... done | in flight, waiting ... | loaded ahead | free
 *              ^tail                          ^admitted      ^loaded
 *
 * The loader fills at `loaded` and moves `tail` over what is done; the keeper (the
 * loader's thread too) takes what lies before it. Some of what is done stays, for its
 * completion may be asked for. Requests are known by their index, which never wraps;
 * index % nr_slots is the slot.
 *
 * Each request belongs to one submitter, chosen by the loader. Where there are several,
 * they start requests in turn, in the order of the trace; in mode think, whose order
 * is another, they share the graph, under its lock.
 */
#ifndef REPLAY_BLK_INSIDE_H
#define REPLAY_BLK_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "plan/plan.h"
#include "replay/blk_claim.h"
#include "replay/blk_number.h"
#include "replay/blk_port.h"
#include "replay/blk_run.h"
#include "replay/blk_target.h"
#include "replay/ticker.h"

#define BLK_SLOTS ((uint64_t)1 << 16) /* a power of two */
#define BLK_KEPT (BLK_SLOTS / 2) /* of those that are done */
#define BLK_EDGES ((uint64_t)1 << 20) /* a power of two; more than twice what an action can have */
#define BLK_LENGTH_MAX ((uint64_t)16 << 20) /* moved by one request */
#define BLK_DATA_MAX ((uint64_t)256 << 20) /* recorded data that is held at a time */

enum blk_fate {
	BLK_MAKE,
	BLK_UNWANTED,
	BLK_BEYOND,
	BLK_NOT_MADE,
};

struct blk_slot {
	/* By the loader. */
	uint64_t seq, origin;
	uint64_t issue_ns, duration_ns; /* in the trace, since its first request */
	uint64_t offset_bytes, length_bytes; /* on the target */
	uint8_t *data; /* to be written; NULL: filler */
	uint64_t first_edge; /* in blk_window.edges: of parents, or needs */
	uint32_t nr_edges;
	uint32_t
		nr_follows; /* by number: behind them, needs up to the completion that it follows */
	uint32_t traced_in_flight; /* with itself, when it was issued */
	uint32_t traced_peak; /* of the requests shortly before */
	uint32_t target;
	uint32_t flags; /* enum blk_flag */
	uint32_t device_no;
	uint32_t submitter;
	uint64_t due_ns; /* mode timed: since the start of the run */
	uint64_t think_ns; /* by number: since the completion that it follows; BLK_NO_THINK: none */
	uint8_t op, fate; /* enum blk_op, blk_fate */
	bool known_end, aligned, cut;
	int32_t expected_err;
	/* By the submitter. */
	_Atomic bool done; /* to the loader: all others are filled in */
	uint32_t parents_left;
	uint64_t first_child; /* edge + 1; 0: none */
	uint64_t ready_ns; /* when it is due, as far as is known */
	uint64_t start_ns, end_ns;
	/* Mode think: how much of the think time after it had passed when it was seen to be complete. */
	uint32_t seen_late_ns;
	int32_t result; /* bytes, or -errno */
};

/* To a parent; `next` is the parent's next child. By number: what is needed. */
struct blk_edge {
	union {
		struct {
			uint64_t parent; /* index */
			uint64_t think_ns;
			uint64_t child; /* index */
			uint64_t next;
		};
		struct blk_need need;
	};
};

struct blk_window {
	struct blk_slot *slots;
	struct blk_edge *edges;
	_Atomic uint64_t loaded; /* loader to submitters: slots before it are filled in */
	uint64_t tail, edges_free; /* the loader's: all requests before are done, edges over */
	_Atomic bool ended; /* the loader has no more; after the last `loaded` */
	_Atomic bool full; /* there was no room for more: the run can begin */
	_Atomic int status; /* of the loader; with words in err */
	struct err err;
};

/* Times and factors are foreign: what is beyond all measure is as late as can be. */
static inline uint64_t blk_ns(double ns)
{
	return ns < (double)(UINT64_MAX / 4) ? (uint64_t)ns : UINT64_MAX / 4;
}

/* A write that first wants what was written before to be safe. */
static inline bool blk_slot_flushes_before(const struct blk_slot *s)
{
	return s->flags & BLK_FLAG_FLUSH && s->op != BLK_FLUSH && s->op != BLK_READ;
}

/* Requests of a kind can stand in for each other (blk_number.h). */
static inline uint32_t blk_slot_kind(const struct blk_slot *s)
{
	return s->device_no * BLK_OP_MAX + s->op;
}

/* How fallocate() makes it, if it is a discard or zeroes. */
int blk_slot_fallocate_mode(const struct blk_slot *s);

static inline struct blk_slot *blk_slot(const struct blk_window *w, uint64_t index)
{
	return &w->slots[index & (BLK_SLOTS - 1)];
}

struct blk_lane;
struct blk_observer;

/* blk_load.c: of the loader's thread. */
struct blk_loader {
	struct plan *plan;
	struct blk_lane *lanes;
	uint32_t nr_lanes;
	uint32_t *heap; /* lanes by the number of their next request */
	uint32_t nr_heap;
	uint64_t nr_loaded, edges_used;
	uint64_t nr_parents_lost;
	uint64_t data_bytes; /* of recorded data that is held */
	/* Ends of requests that were in flight in the trace: a heap. */
	VEC(uint64_t) ends;
	uint32_t peak, former_peak; /* of what was in flight, in this and the former stretch */
	/* Mode timed: the time of the trace up to which it was scaled, and when the last request so far ended. */
	uint64_t scaled_to_ns, busy_until_ns;
	double scaled_ns;
	uint64_t expected_ns; /* how long the run takes if all goes as in the trace, scaled */
	struct blk_share *shares; /* by target */
	/* Mode think, by number. */
	struct blk_needs needs, follows;
	struct blk_claims claims;
};

/* Who gets the requests of a target. */
struct blk_share {
	uint32_t first, nr; /* submitters */
	uint32_t at; /* the one of the bundle that is being formed */
	uint32_t nr_in_bundle;
	uint64_t last_issue_ns;
};

/* What a submitter counts; added up at the end. */
struct blk_counts {
	uint64_t nr_reordered;
	uint64_t in_flight_max, limit_max;
	uint64_t limit_wait_ns, load_wait_ns, cpu_ns;
};

struct blk_ready {
	uint64_t due_ns, index;
};

struct blk_submitter {
	struct blk_run *run;
	uint32_t number;
	struct blk_port port;
	/* Indices of its requests, a ring; by the loader, up to nr_mine. */
	uint64_t *mine;
	_Atomic uint64_t nr_mine; /* loader to submitter: those before it are filled in */
	uint64_t nr_started; /* of them */
	uint64_t in_flight;
	bool woken; /* it has slept, and not looked since */
	uint64_t call_ns; /* what a call that submits takes, about */
	VEC(struct blk_ready) heap; /* think: all parents are complete; of the graph */
	struct blk_counts counts;
	pthread_t thread;
	int status;
	struct err err;
};

/* What submitters share. */
struct blk_shared {
	_Atomic uint64_t turn; /* the first request that was not started; not of mode think */
	_Atomic uint64_t in_flight;
	_Atomic uint64_t latest; /* index + 1 of the latest that was started */
	_Atomic uint64_t nr_done;
	_Atomic bool stopping;
	pthread_mutex_t graph; /* think: heaps, children, parents_left; and: */
	uint64_t admitted; /* requests whose parents are known; by number: that wait for nobody */
	struct blk_tally tally, followed; /* by number: of what is needed, and what is followed */
	uint32_t last_late_ns; /* by number: how late the last completion was seen */
	_Atomic uint32_t nr_open; /* submitters that have opened their ports, or failed to */
	_Atomic bool go; /* the first to the others: start_ns is known */
};

struct blk_run {
	const struct blk_run_options *o;
	const struct blk_run_watcher *watcher;
	struct blk_run_result *res;
	struct plan *plan;
	struct blk_target *targets;
	uint32_t nr_targets;
	uint32_t *target_of; /* by device_no */
	uint64_t *end_of; /* of the last request of each device */
	uint32_t nr_devices;
	uint64_t max_length;
	const struct blk_engine *engine;
	uint64_t depth; /* never more in flight */
	uint64_t first_ns;
	struct blk_window window;
	struct blk_loader loader;
	struct blk_submitter *submitters;
	uint32_t nr_submitters, nr_threads; /* nr_threads: of them, how many were started */
	struct blk_shared shared;
	struct blk_observer *observer; /* NULL: none */
	struct ticker ticker;
	uint64_t start_ns; /* of the run, by the ticker */
	/* The keeper's. */
	uint64_t nr_kept;
	uint64_t last_end_ns;
	struct trace_writer *writer;
	struct trace_feed *feed;
	struct trace_stream **streams; /* by device_no */
	struct arena arena;
	_Atomic bool stop; /* the run is over: the loader comes to an end */
};

MUST_CHECK int blk_loader_open(struct blk_run *run, struct err *err);
/* Loads requests while there is room: 1, 0 when there are no more, -errno. *ret_any: whether it loaded one. */
MUST_CHECK int blk_loader_work(struct blk_run *run, bool *ret_any, struct err *err);
void blk_loader_move_tail(struct blk_run *run);
void blk_loader_close(struct blk_run *run);

/* blk_keep.c: sums, and the trace of the run. Of the loader's thread. */
MUST_CHECK int blk_keeper_open(struct blk_run *run, struct err *err);
/* Takes what is done; returns whether there was anything. */
MUST_CHECK int blk_keeper_work(struct blk_run *run, bool *ret_any, struct err *err);
MUST_CHECK int blk_keeper_close(struct blk_run *run, int r, struct err *err);

/* blk_observe.c: what the devices saw. Of the loader's thread, but for open and close. */
MUST_CHECK int blk_observer_open(struct blk_run *run, struct err *err);
/* Reads what there is: what is done has been seen then. */
void blk_observer_work(struct blk_run *run);
void blk_observer_take(struct blk_run *run, const struct blk_slot *s);
void blk_observer_close(struct blk_run *run);

/*
 * blk_graph.c: mode think. Of the submitters; where there are several, between
 * lock and unlock.
 */
void blk_graph_lock(struct blk_run *run);
void blk_graph_unlock(struct blk_run *run);
/* Takes in what was loaded. */
void blk_graph_admit(struct blk_run *run);
/* Others may be ready now; s->done is to be set by the caller, still locked. */
void blk_graph_complete(struct blk_run *run, struct blk_slot *s);
void blk_graph_pop(struct blk_submitter *sub);

/* blk_pace.c: a submitter from beginning to end, in its own thread. */
MUST_CHECK int blk_pace(struct blk_submitter *sub, struct err *err);

#endif
