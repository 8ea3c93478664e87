/* SPDX-License-Identifier: MIT */
/*
 * The plan: all that a replay needs (doc/plan-format.md). A plan file is a
 * container of the same blocks as a trace, so data, trees, metadata and ledger
 * are read by trace/reader.h; instead of events it has ACTIONS blocks, each with
 * a run of actions of one lane.
 *
 * Actions hold no descriptor numbers, addresses or aio contexts of the traced
 * program but slots of the resource table: numbers in which a replay keeps what
 * it got for them. A slot is used again when what it stood for is gone.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <stdbool.h>

#include "base/err.h"
#include "model/event.h"
#include "trace/reader.h"
#include "trace/writer.h"

/* Bits of action.flags; on disk. */
enum action_flag {
	ACTION_SIMULATED = 1, /* not made again: its outcome stands */
	ACTION_SHARED_FD = 2, /* a close whose descriptor other processes still have: not made */
	ACTION_HAS_RESULT = 4, /* result is known */
	ACTION_COMPAT = 8, /* was made through a 32-bit interface */
	ACTION_ANY_OUTCOME = 16, /* the outcome depends on more than the storage: not verified */
	ACTION_SETUP =
		64, /* makes the state before a part of a trace: neither timed nor reported */
	ACTION_CACHE_MISS = 256, /* a read that the trace says went to the storage */
	ACTION_PARTIAL_DATA = 32, /* bytes to be written were not all kept: filler stands in */
	ACTION_EDGE_THINK = 128, /* each edge has a think time of its own */
	ACTION_STREAM = 512, /* on a pipe, an eventfd or inotify: as many bytes as recorded */
	ACTION_ENFORCED =
		1024, /* failed for a reason of the original's environment: not made, it would do harm */
};

/* Limits of the format; what is beyond them is refused. */
#define PLAN_LANES_MAX 65536
#define PLAN_SLOTS_MAX ((uint32_t)1 << 24)
#define PLAN_DATA_MAX ((uint64_t)1 << 31) /* bytes of data of one action */
#define PLAN_TIME_MAX ((uint64_t)1 << 60) /* ns; what is written beyond is cut to it */

/* Metadata that stands in a plan whose trace tells of reads whether they missed the page cache. */
#define PLAN_META_CACHE "cache_misses"

/* ... and how many reads were of bytes that the trace does not have, so that they have no result. */
#define PLAN_META_UNVERIFIABLE "unverifiable_reads"

/* ... and how many writes overlapped others and were put behind each other in an order that the trace does not show. */
#define PLAN_META_UNORDERED "unordered_writes"

/* ... and how many asynchronous requests do nothing, for they failed and might not fail again. */
#define PLAN_META_ENFORCED "enforced_requests"

/* ... and, of a plan of a part, where that begins and ends: "#EVENT" or "TIMEns"; without one there is no end. */
#define PLAN_META_PART_FROM "part_from"
#define PLAN_META_PART_TO "part_to"

struct action_edge {
	uint32_t lane;
	uint64_t nr; /* done[lane] > nr, or with `started` started[lane] > nr */
	uint8_t rule; /* enum rule of order/; a replay only hands it on to reports */
	bool started;
	uint64_t
		think_ns; /* with ACTION_EDGE_THINK: start so long after the other was done; else 0 */
};

/* At most one edge to what is done and one to what has started for each other lane. */
#define ACTION_EDGES_MAX 65536

/*
 * Times are ns. Think time is told apart as the thread spent it between its
 * previous action and this one:
 *
 *   previous action | compute_before | waiting for others | compute_after | this action
 *
 * A replay at natural speed starts the action compute_after_ns after both
 * compute_before_ns have passed since the previous action and all edges are
 * satisfied. Both parts are free of the time that the recorder held the thread,
 * and contain what the thread slept by its own timers. wait_ns is what it
 * waited for others.
 */
struct action {
	const struct row *row; /* a call of the table, or one of the plan's own (EV_plan_*) */
	uint16_t flags; /* enum action_flag */
	uint32_t pid, tid; /* of the traced thread, for reports */
	uint64_t seq; /* of the event in the trace; 0 for the plan's own actions */
	uint64_t origin;
	uint64_t enter_ns, exit_ns; /* of the event */
	uint64_t compute_before_ns, compute_after_ns, wait_ns;
	struct outcome
		outcome; /* of calls that make a descriptor, a map, a cwd or a root: ret is the slot */
	struct hash128 result; /* of what the call returned besides (plan/result.h) */
	/* What goes in only. Descriptors and addresses are slots, see doc/plan-format.md. */
	struct value args[ROW_ARGS_MAX];
	const struct action_edge *edges;
	uint32_t nr_edges;
};

/* Where the data of actions and trees is. */
enum plan_data {
	PLAN_DATA_OWN, /* copied into the plan: it stands alone */
	PLAN_DATA_TRACE, /* stays in the trace, which the plan names */
};

struct plan_writer;

struct plan_writer_options {
	enum plan_data data;
	bool replace;
	bool existing; /* as in trace_writer_options */
	unsigned int file_mode; /* of the file, as in trace_writer_options */
	int level; /* of zstd, as in trace_writer_options */
};

/* `from` is the trace that the plan is made of: the source of data. It must outlive the writer. */
MUST_CHECK int plan_writer_open(const char *path, struct trace *from,
				const struct plan_writer_options *options, struct plan_writer **ret,
				struct err *err);
/* A new lane; they are numbered from 0. Beyond PLAN_LANES_MAX no action can be added to it. */
uint32_t plan_writer_add_lane(struct plan_writer *w);
/* From now on actions that name a slot from this one on are refused. */
void plan_writer_limit_slots(struct plan_writer *w, uint32_t nr);
/*
 * The next action of the lane. Values are borrowed; data refs lead into the
 * trace. What only comes out of the call is left out by the writer, so the
 * arguments may be those of the event but for slots. ACTION_PARTIAL_DATA is set
 * by the writer where it applies. -E2BIG as trace_feed_event(): the action was
 * not written and has no number; if it would change something, the ledger says so.
 * -EINVAL: it contradicts the format, err says how.
 */
MUST_CHECK int plan_writer_action(struct plan_writer *w, uint32_t lane, const struct action *a,
				  struct err *err);
/*
 * Records of the trace (metadata, tree entries, mounts, losses) go over with
 * their data; the values are changed in place. Metadata under a key of the plan's
 * own is passed over. -EOPNOTSUPP: a row that the table does not know.
 */
MUST_CHECK int plan_writer_item(struct plan_writer *w, struct item *item, struct err *err);
/* -EINVAL for the plan's own keys. */
MUST_CHECK int plan_writer_meta(struct plan_writer *w, const char *key, const char *value);
/* Of a lane, so far: the number that its next action will have. */
uint64_t plan_writer_nr_actions(const struct plan_writer *w, uint32_t lane);

/* What a replay must know before it starts; written at the close. */
struct plan_totals {
	uint64_t nr_actions;
	uint32_t nr_lanes;
	uint32_t nr_slots;
	uint64_t nr_edges;
	uint64_t elapsed_ns; /* of the original: first entry to last exit of its actions */
	uint64_t first_ns; /* entry of the first action */
	uint64_t
		max_data_bytes; /* of one action: the largest buffer that a lane needs for what goes in */
	bool has_started_edges;
	/* Lane 0 is a prologue: what processes had open before the first action. All else comes after it. */
	bool has_prologue;
};

/*
 * Of the totals, what the writer has seen itself (actions, lanes, edges) is
 * written as it was seen, and max_data_bytes is raised to that. -EINVAL when an
 * edge leads to an action that never came, or a slot is not below nr_slots. After
 * a failure there is no file.
 */
MUST_CHECK int plan_writer_close(struct plan_writer *w, const struct plan_totals *totals,
				 struct err *err);
/* Gives up, and removes the file. NULL is fine. */
void plan_writer_abandon(struct plan_writer *w);

/*
 * Reading. A plan is untrusted: plan_open() checks its head and index, a lane's
 * reader checks every action as it comes (rows, slots below nr_slots, edges to
 * lanes that exist and to actions that exist, none to itself). plan_check()
 * goes through all lanes once and also proves that no set of edges can
 * deadlock.
 */
struct plan;
struct plan_lane;

MUST_CHECK int plan_open(const char *path, struct plan **ret, struct err *err);
void plan_close(struct plan *p);
/* Whether the opened container is a plan: so that a command can take either. */
bool plan_is_plan(struct trace *t);

/*
 * The container: trees, metadata, ledger; and the one that the data of actions
 * and trees comes from (PLAN_DATA_TRACE: the trace).
 */
struct trace *plan_container(struct plan *p);
struct trace *plan_data_source(struct plan *p);
const struct plan_totals *plan_totals(const struct plan *p);
uint64_t plan_lane_nr_actions(const struct plan *p, uint32_t lane);
/*
 * What became of the number-th request that the action submits: an error, or how
 * many bytes it wrote. False: it is made as it stands there.
 */
bool plan_request_outcome(const struct plan *p, const struct action *a, uint32_t number,
			  int64_t *ret);
/* Whether the lane's first action waits for a prologue, by an edge that is not in the file. */
bool plan_lane_awaits_prologue(const struct plan *p, uint32_t lane);

/*
 * A reader of one lane. Several may be open; all belong to the thread of the
 * plan. An action is valid until the next call for its lane.
 */
MUST_CHECK int plan_lane_open(struct plan *p, uint32_t lane, struct plan_lane **ret,
			      struct err *err);
void plan_lane_close(struct plan_lane *l);
/* 1 and an action; 0 at the end; -errno. */
MUST_CHECK int plan_lane_next(struct plan_lane *l, const struct action **ret, struct err *err);

/*
 * -EBADMSG: something is wrong; err says what, for a deadlock it names the lanes
 * and actions that wait for each other. -E2BIG: the blocks of all lanes together
 * take too much memory. Progress counts actions; its total is the caller's.
 */
MUST_CHECK int plan_check(struct plan *p, struct progress *progress, struct err *err);
/* Loads all the data that actions refer to. -EBADMSG, -ENODATA: some is not what it should be. */
MUST_CHECK int plan_check_data(struct plan *p, struct progress *progress, struct err *err);

#endif
