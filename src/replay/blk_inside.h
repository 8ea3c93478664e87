/* SPDX-License-Identifier: MIT */
/*
 * What the files of a block run share.
 *
 * The window is a ring of requests in the order of the trace:
 *
 *     kept ... done | in flight, waiting ... | loaded ahead | free
 *              ^tail                          ^admitted      ^loaded
 *
 * The loader fills at `loaded`, the submitter moves `tail` over what is done, the
 * keeper (the loader's thread too) takes what lies before it. Some of what is done
 * stays, for its completion may be asked for. Requests are known by their index,
 * which never wraps; index % nr_slots is the slot.
 */
#ifndef REPLAY_BLK_INSIDE_H
#define REPLAY_BLK_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include <liburing.h>

#include "plan/plan.h"
#include "replay/blk_run.h"
#include "replay/blk_target.h"
#include "replay/ticker.h"

#define BLK_SLOTS ((uint64_t)1 << 16) /* a power of two */
#define BLK_KEPT (BLK_SLOTS / 2) /* of those that are done */
#define BLK_EDGES ((uint64_t)1 << 20) /* a power of two; more than an action can have */
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
	uint64_t first_edge; /* in blk_window.edges */
	uint32_t nr_edges;
	uint32_t traced_in_flight; /* with itself, when it was issued */
	uint32_t traced_peak; /* of the requests shortly before */
	uint32_t target;
	uint32_t flags; /* enum blk_flag */
	uint32_t device_no;
	uint8_t op, fate; /* enum blk_op, blk_fate */
	bool known_end, aligned, cut;
	int32_t expected_err;
	/* By the submitter. */
	bool done;
	uint32_t parents_left;
	uint64_t first_child; /* edge + 1; 0: none */
	uint64_t ready_ns; /* when it is due, as far as is known */
	uint64_t start_ns, end_ns;
	int32_t result; /* bytes, or -errno */
};

/* To a parent; `next` is the parent's next child. */
struct blk_edge {
	uint64_t parent; /* index */
	uint64_t think_ns;
	uint64_t child; /* index */
	uint64_t next;
};

struct blk_window {
	struct blk_slot *slots;
	struct blk_edge *edges;
	_Atomic uint64_t loaded; /* loader to submitter: slots before it are filled in */
	_Atomic uint64_t tail; /* submitter to loader: all before it are done */
	_Atomic uint64_t edges_free; /* submitter to loader: edges before it are over */
	_Atomic bool ended; /* the loader has no more; after the last `loaded` */
	_Atomic bool full; /* there was no room for more: the run can begin */
	_Atomic int status; /* of the loader; with words in err */
	struct err err;
};

static inline struct blk_slot *blk_slot(const struct blk_window *w, uint64_t index)
{
	return &w->slots[index & (BLK_SLOTS - 1)];
}

/* blk_data.c: what is written and where reads go. Of the submitter. */
struct blk_data {
	uint8_t *base;
	uint64_t base_bytes;
	uint8_t *sink; /* the first part of it */
	uint64_t sink_bytes;
	uint8_t *pool;
	uint64_t pool_bytes, pool_at;
	uint8_t *is_copy; /* for each piece of the pool: its bytes are those of a copy */
	uint64_t nr_pieces; /* so far: what makes one unlike all others */
	uint64_t dice;
	uint32_t compress_percent, dedup_percent;
};

MUST_CHECK int blk_data_init(struct blk_data *d, uint64_t max_bytes, uint64_t depth,
			     const struct blk_run_options *o, struct err *err);
void blk_data_release(struct blk_data *d);
/* Bytes for a write: fresh ones each time, as compressible and as new as asked for. */
uint8_t *blk_data_filler(struct blk_data *d, uint64_t len);

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
	uint64_t depth; /* never more in flight */
	uint64_t first_ns;
	struct blk_window window;
	struct blk_data data;
	struct blk_loader loader;
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

/* blk_pace.c: of the submitter. */
MUST_CHECK int blk_pace(struct blk_run *run, struct err *err);

#endif
