/* SPDX-License-Identifier: MIT */
/*
 * What the parts of a run share. Included by src/replay alone.
 *
 *   loader (one thread)     reads the plans, makes actions ready in each lane's ring
 *   lanes (one thread each) wait, call, verify, note
 *   keeper (one thread)     takes the notes, sums them up, writes the run's trace
 *   main                    starts them, passes on stop requests, waits
 *
 * A lane's ring and its ring of notes have one writer and one reader each.
 */
#ifndef REPLAY_INSIDE_H
#define REPLAY_INSIDE_H

#include <pthread.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "plan/plan.h"
#include "replay/budget.h"
#include "replay/engine.h"
#include "replay/pipes.h"
#include "replay/predict.h"
#include "replay/run.h"
#include "replay/sync.h"
#include "replay/ticker.h"

/* Names that a target may have at its top without being asked: ours, and the file system's. */
#define RUN_STRANGERS 2
extern const char *const run_strangers[RUN_STRANGERS];

/* What a slot of the plans' resource tables stands for in this run. */
struct slot {
	_Atomic int fd; /* -1: none */
	_Atomic uint64_t addr, len_bytes; /* of a map */
	_Atomic uint64_t offset; /* in the file, of a map that is not made (--mmap=skip) */
	/* ... and of its pages, if they are private, what was taken from the budget. */
	_Atomic uint64_t taken_bytes;
	_Atomic bool is_private;
	_Atomic bool borrows_locks; /* a locker that is the program's own open file */
	_Atomic uint32_t nr_rings; /* of lanes, in which the descriptor is registered (batch.h) */
	struct flight *_Atomic flight; /* of an io_uring or an aio context (flight.h) */
	struct ring_files *_Atomic files; /* of an io_uring; belongs to the run */
	struct pipe *_Atomic pipe; /* that the descriptor is an end of; of the run's (pipes.h) */
	_Atomic uint32_t pipe_ends; /* of a FIFO: which */
	/* Of a listing: what was recorded and what was found since its beginning, low and high halves. */
	_Atomic uint64_t listed[4];
	/* ... and of that, what is the target's own: names of strangers[], halves. */
	_Atomic uint64_t strange[2 * RUN_STRANGERS];
	_Atomic uint64_t listed_seq; /* of its first call; 0: several threads make it */
	_Atomic uint64_t listed_by; /* the tid that made that, plus one; 0: none has begun */
};

/* The number of a slot goes somewhere into memory or a register before the call. */
enum patch_kind {
	PATCH_FD32,
	PATCH_FD64,
	PATCH_ADDR, /* address of the slot's map, plus `offset` as far as the map reaches */
	PATCH_CONTEXT, /* of aio: only tells the slot */
	PATCH_PATH, /* the descriptor in digits, to the end of FD_PATH_ROOM characters */
};

struct patch {
	void *where;
	uint64_t offset;
	uint32_t slot;
	uint32_t kind;
};

enum ready_flag {
	READY_VERIFY = 1, /* the outcome is to be compared */
	READY_RESULT = 2, /* and what came besides */
	READY_BIG = 4, /* its parts are in a block of their own */
	READY_SINK = 8, /* what is read goes where it cannot be looked at again */
	READY_WRAP = 16, /* no action: the next one is at the start of the ring */
	READY_UNBUILT = 32, /* the plan lacks what the call needs */
	READY_SHARED_FD = 64,
	READY_SEEN = 128, /* the plan's own action, not in the trace */
	READY_OPEN_FIRST =
		2048, /* likewise, of a call that changes the cwd: it is opened, then entered */
	READY_SKIPPED = 1024, /* a read that is not wanted: only the offset is moved */
	READY_SETUP = 512, /* made before the clock starts */
	READY_FROM_FDS = 256, /* its pathname begins in the directory of our descriptors */
	READY_AT_ONCE = 4096, /* it ends when its requests do */
	READY_NAMES = 8192, /* it looks at names */
	READY_STREAM =
		16384, /* on a pipe or the like: how long it took is no matter of the storage */
	READY_ENFORCED = 32768, /* it failed, and must not succeed here: not made */
};

#define READY_NO_SLOT UINT32_MAX

/*
 * What a pathname through a descriptor begins with, seen from run->fds_fd: a dot,
 * as many slashes as it takes (no leading zeros: the kernel knows no such names),
 * the number.
 */
#define FD_PATH_ROOM 12

/* An action that can be performed without looking at the plan again. */
struct ready {
	uint32_t size; /* to the next one in the ring */
	uint16_t row_id;
	uint16_t flags; /* enum ready_flag */
	call_fn fn; /* NULL: not made */
	int32_t nr; /* the kernel's number of the call */
	uint32_t nr_edges, nr_patches;
	uint32_t slots[2]; /* that the call fills */
	uint32_t pid, tid;
	uint64_t seq, origin;
	uint64_t enter_ns, original_ns; /* of the event: begin, and how long it took */
	uint64_t before_ns, after_ns; /* think time */
	struct outcome expected;
	struct hash128 result;
	uint64_t regs[6];
	const struct run_edge *edges;
	const struct patch *patches;
	void *out; /* where the call puts what it gives back */
	uint64_t out_bytes;
	void *extra; /* of calls that need more than registers */
};

/* Of bytes; positions count on and are taken modulo the size. */
struct ring {
	uint8_t *base;
	uint64_t size;
	uint64_t write_pos; /* loader */
	_Alignas(64) _Atomic uint64_t head; /* ready up to here; by the loader */
	_Atomic uint32_t ended; /* nothing will follow; by the loader */
	_Alignas(64) _Atomic uint64_t tail; /* free up to here; by the lane */
	_Atomic uint64_t low; /* by the loader: the lane tells when tail gets there */
	_Atomic uint32_t hungry; /* the lane sleeps until something is there: a futex */
};

/* What a lane notes of an action. */
struct note {
	uint64_t seq, enter_ns, exit_ns, original_ns;
	int64_t ret;
	int32_t err;
	uint16_t row_id;
	uint16_t flags; /* enum note_flag */
	uint32_t pid, tid;
	uint64_t edge_wait_ns, late_ns;
};

enum note_flag {
	NOTE_MADE = 1,
	NOTE_MISMATCH = 2,
	NOTE_TIMED = 4, /* late_ns means something */
	NOTE_PLAN = 8, /* the plan's own action */
	NOTE_UNBUILT = 16,
	NOTE_SETUP = 32, /* made before the clock started */
	NOTE_RESULT = 64, /* what came besides the outcome was compared, and is equal */
	NOTE_STREAM = 128, /* its time tells nothing: READY_STREAM */
	NOTE_ENFORCED = 256,
};

struct notes {
	struct note *items;
	uint64_t size;
	_Alignas(64) _Atomic uint64_t head; /* by the lane */
	uint64_t limit; /* the lane's own idea of how far it may write */
	uint64_t tell_at; /* lane: the keeper is told when head gets there */
	_Alignas(64) _Atomic uint64_t tail; /* by the keeper */
	_Atomic uint32_t full; /* the lane sleeps until there is room: a futex */
};

/* A thread that sleeps until it is told that there is work. */
struct bell {
	_Alignas(64) _Atomic uint32_t rings;
	_Atomic uint32_t asleep;
};

/* Rings from any thread; cheap when nobody sleeps. */
void bell_ring(struct bell *b);
/* Returns after a ring since `seen` was read, or after timeout_ns (0: none). */
void bell_wait(struct bell *b, uint32_t seen, uint64_t timeout_ns);

static inline uint32_t bell_look(const struct bell *b)
{
	return atomic_load(&((struct bell *)b)->rings);
}

struct big_block {
	uint64_t pos; /* freed when the lane's tail is beyond */
	void *p;
	size_t size;
	bool reserve;
};

/* Where a call of a lane may put what it gives back. */
struct lane_memory {
	uint8_t *out; /* data */
	uint64_t out_bytes;
	uint8_t *scratch; /* structs and numbers */
	uint64_t scratch_bytes;
};

struct lane_sums {
	uint64_t nr_done, nr_made, nr_verified, nr_results;
	uint64_t edge_wait_ns, nr_edge_waits, deadline_wait_ns, load_wait_ns, note_wait_ns;
	uint64_t nr_direct; /* fallbacks */
	uint64_t nr_batched; /* reads */
	uint64_t nr_requests_left_out; /* about something that is simulated or not open */
	uint64_t nr_pipes; /* made */
	uint64_t nr_setup; /* actions that only made a state */
	uint64_t last_exit_ns;
	uint64_t cpu_ns;
};

/* An action that is done but for its requests in flight. */
struct aloft {
	uint64_t pos; /* in the lane's ring: its memory begins here */
	struct requests *requests;
};

/* A request that came out otherwise: the action that completes it is a mismatch. */
struct lane_odd {
	bool is_set;
	enum run_mismatch_kind kind;
	struct outcome expected, got;
};

/* A listing that is not as it was recorded. */
struct lane_listing {
	struct hash128 recorded, found; /* sums */
	uint64_t first_seq;
	bool has_stranger[RUN_STRANGERS];
};

struct lane {
	struct run *run;
	uint32_t number; /* in the run */
	struct run_plan *plan;
	uint32_t plan_lane;

	/* The lane's own. */
	_Alignas(64) struct ring ring;
	struct notes notes;
	struct sync_counter done, started;
	_Alignas(64) struct sync_waiter waiter;
	uint64_t pos; /* of the ring: the present action; beyond its tail while actions are aloft */
	uint64_t head_seen; /* of the ring */
	struct aloft *aloft; /* by the loader, when it is first needed: FLIGHT_ALOFT_MAX of them */
	uint64_t first_aloft, last_aloft; /* modulo that */
	struct lane_memory memory;
	struct lane_sums sums;
	struct run_lane_state *state; /* shared with who watches */
	uint64_t rng;
	struct lane_odd odd; /* of the present action */
	struct lane_listing
		listing; /* likewise, while check_result() has found a mismatch in one */
	struct predict predict;
	struct batch *_Atomic batch; /* NULL: none */
	pthread_t thread;
	bool created;

	/* The loader's. */
	struct plan_lane *reader;
	const struct action *pending; /* read, but there was no room */
	uint64_t nr_loaded;
	bool at_end;
	bool wants_reserve;
	VEC(struct big_block) bigs; /* in order; [first_big ...] are not freed yet */
	size_t first_big;

	/* The keeper's. */
	struct trace_stream *stream;
	uint32_t stream_pid, stream_tid;
};

/* What lanes wait for before their first action. */
enum run_go { RUN_GO_NOT, RUN_GO_PROLOGUES, RUN_GO_ALL };

struct run_plan {
	struct plan *plan;
	uint32_t lane_base, slot_base, nr_slots;
	uint64_t first_ns;
};

struct run {
	const struct run_options *o;
	const struct engine *engine;
	struct run_result *res;
	uint32_t nr_started; /* lanes that have a thread */
	double scale, scale_compute;
	struct ticker ticker;
	_Atomic uint64_t start_ns; /* of the ticker; first of the prologue, then of the rest */
	struct sync_hub hub;
	struct run_plan *plans;
	uint32_t nr_plans;
	struct lane *lanes;
	uint32_t nr_lanes;
	struct slot *slots;
	uint32_t nr_slots;
	struct pipes pipes;
	struct budget budget;
	int memory_fd; /* a file system in memory, for memfds; -1: none (contain_memory()) */
	bool has_started_edges;
	uint64_t max_data_bytes;
	int null_fd; /* the null device */
	/*
	 * The directory /proc/PID/fd of the run, which itself is out of reach of
	 * plans; -1: none. Only ever looked into for the number of a slot.
	 */
	int fds_fd;
	struct stat root_stat; /* dev and ino of DIR */
	int drop_fd; /* where the page cache is dropped; -1: nowhere, or nobody asked */
	const uint8_t *filler; /* stands for bytes that were not kept */
	uint64_t filler_bytes;
	uint8_t *sink; /* for reads that are larger than a lane's buffer: nobody looks at it */
	uint64_t sink_bytes;
	_Atomic uint32_t go; /* enum run_go: a futex */
	_Atomic uint32_t nr_set_up, nr_ended; /* lanes: futexes */
	uint32_t nr_prologues;
	struct bell loader_bell, keeper_bell;
	uint64_t big_bytes; /* loader: in use for big blocks */
	bool reserve_busy; /* loader */
	pthread_mutex_t err_mutex;
	struct trace_writer *writer;
	struct trace_feed *feed;
	struct ring_files *ring_files; /* loader: all, to be freed */
	struct flight *flights; /* likewise */
	struct patch *patch_room; /* loader: RUN_PATCHES_MAX */
};

#define RUN_PATCHES_MAX 65536

/* run_memory.c; by the loader alone once the run has begun. NULL when the system refuses. */
uint8_t *run_sink(struct run *run);
MUST_CHECK int run_memory_prepare(struct run *run, struct err *err);
void run_memory_release(struct run *run);

/* loader.c */
void *loader_main(void *arg);
/* Fills all rings for the first time; the loader's thread goes on from there. */
MUST_CHECK int loader_prepare(struct run *run, struct err *err);
void loader_release(struct run *run);

/* build.c: -ENOSPC never; *ret_size is at least what build_action() will need. */
uint64_t build_bound(const struct run *run, const struct action *act);
MUST_CHECK int build_action(struct run *run, struct lane *l, const struct action *act,
			    struct ready *a, uint8_t *parts, uint64_t parts_bytes,
			    uint64_t *ret_used, struct err *err);

/* Whether the memory of the action may be in use after it is performed. */
bool build_may_be_aloft(const struct action *act);

/* What must be done before the clock starts. */
static inline bool lane_is_prologue(const struct lane *l)
{
	return !l->plan_lane && plan_totals(l->plan->plan)->has_prologue;
}

/* Nothing of a listing is left in the slot. */
static inline void slot_forget_listing(struct slot *s)
{
	unsigned int i;

	if (!atomic_load_explicit(&s->listed_by, memory_order_relaxed))
		return;
	for (i = 0; i < ARRAY_LEN(s->strange); i++)
		atomic_store_explicit(&s->strange[i], 0, memory_order_relaxed);
	for (i = 0; i < ARRAY_LEN(s->listed); i++)
		atomic_store_explicit(&s->listed[i], 0, memory_order_relaxed);
	atomic_store_explicit(&s->listed_seq, 0, memory_order_relaxed);
	atomic_store_explicit(&s->listed_by, 0, memory_order_relaxed);
}

/* A descriptor goes into the slot, -1: none; what was there, for the caller to close. */
int slot_swap_fd(struct run *run, struct slot *s, int fd);

/* lane.c */
static inline void lane_set_phase(struct lane *l, enum run_lane_phase phase)
{
	atomic_store_explicit(&l->state->phase, phase, memory_order_relaxed);
}

/* When an action was performed. */
struct lane_times {
	uint64_t enter_ns, exit_ns, edge_wait_ns;
	uint64_t deadline_ns; /* 0: none */
};

/* The outcome is verified and noted; the others have been told. */
void lane_conclude(struct lane *l, const struct ready *a, const struct outcome *got, uint64_t nr,
		   const struct lane_times *t);
/* Actions up to this position of the ring are performed. */
void lane_advance(struct lane *l, uint64_t pos);
void *lane_main(void *arg);
/* The next action or NULL at the end, or when the run is stopped. */
struct ready *lane_next(struct lane *l);

/* check.c */
/* Which returned values must be the same wherever the call is made. */
bool check_value_matters(const struct row *row);
/* RUN_MISMATCH_MAX when they agree. An operation that one of the two systems does
 * not have is no fault of the replay, and told apart. */
enum run_mismatch_kind check_kind_of_error(int32_t want_err, int32_t got_err);
void check_outcome(struct lane *l, const struct ready *a, const struct outcome *got, uint64_t nr,
		   struct note *note);
/* What request_compare() found. */
void check_odd(struct lane *l, const struct ready *a, uint64_t nr, struct note *note);
void check_result(struct lane *l, const struct ready *a, const struct outcome *got, uint64_t nr,
		  struct note *note);

/* keeper.c */
void *keeper_main(void *arg);
/* output: the run's trace as it is reached from here; NULL: none. */
MUST_CHECK int keeper_prepare(struct run *run, const char *output, struct err *err);
/* After all lanes have ended: what is left. */
MUST_CHECK int keeper_finish(struct run *run, struct err *err);

/* perform.c: the run's own process. */
int run_perform_here(const char *const *plans, unsigned int nr_plans, const char *dir,
		     const struct run_options *o, struct run_result *res, struct err *err);
/* The run cannot go on. Any thread. */
PRINTF_LIKE(3, 4) void run_fail(struct run *run, int r, const char *fmt, ...);
void run_stop(struct run *run, enum run_end why);

static inline bool run_is_stopped(const struct run *run)
{
	return atomic_load_explicit(&run->res->stop, memory_order_relaxed) != 0;
}

#endif
