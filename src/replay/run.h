/* SPDX-License-Identifier: MIT */
/*
 * A run: plans performed in a directory.
 *
 *   the caller's process                 the run's own process
 *   run_perform()  -- fork -->           contain, open plans, calibrate
 *   watches, waits                       loader --rings--> lanes --notes--> keeper
 *   reads the result  <-- shared memory --
 *
 * The run has a process of its own, so that its root directory, descriptors,
 * limits and whatever a plan does to them are its own, and so that the caller
 * learns what happened even when it dies.
 *
 * Memory is bounded by the number of lanes and slots and the largest buffer of
 * the plans, not by their length. The caller must have one thread.
 */
#ifndef REPLAY_RUN_H
#define REPLAY_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/event.h"
#include "replay/spread.h"

struct engine;

enum run_speed { RUN_NATURAL, RUN_AFAP, RUN_TIMED };
enum run_verify { RUN_VERIFY_DATA, RUN_VERIFY_OUTCOME, RUN_VERIFY_OFF };
enum run_on_mismatch { RUN_MISMATCH_COUNT, RUN_MISMATCH_WARN, RUN_MISMATCH_STOP };
enum run_mmap { RUN_MMAP_TOUCH, RUN_MMAP_MAP, RUN_MMAP_POPULATE, RUN_MMAP_SKIP };
enum run_mac_fsync { RUN_MAC_FSYNC_DURABLE, RUN_MAC_FSYNC_DEVICE };
enum run_reads { RUN_READS_ALL, RUN_READS_NONE, RUN_READS_CACHE_MISSES };

/* A 64th of the target, 64 MiB at most; and a 64th of the files that it can have. */
#define RUN_FREE_DEFAULT UINT64_MAX

struct run_options {
	const char *engine; /* a name of engines.def; NULL: sys */
	enum run_speed speed;
	double scale, scale_compute; /* factors; 0 counts as 1 */
	enum run_verify verify;
	enum run_on_mismatch on_mismatch;
	enum run_mmap mmap;
	enum run_reads reads;
	enum run_mac_fsync mac_fsync; /* what an fsync of macOS becomes */
	bool batch_reads; /* reads of a lane that follow each other and wait for nothing are made at once */
	bool no_copy_reads; /* reads of 32 KiB and more whose data is not verified are sent to the null device */
	bool pin; /* each lane to a core, in turn */
	bool no_contain;
	bool cross_mounts; /* what is mounted below DIR can be reached */
	bool privileged_metadata; /* owners and set-id bits are applied */
	const char *output; /* the trace of the run; NULL: none */
	bool drop_cache; /* what a prologue brought into memory is dropped before the clock starts */
	bool replace; /* an existing output is replaced */
	unsigned int file_mode; /* of the output; 0: IO_FILE_MODE */
	uint64_t stall_ns; /* end the run when it has stood still for so long (stall.h); 0: never */
	uint64_t min_free_bytes; /* the run ends when the target has less left; RUN_FREE_DEFAULT */
	uint64_t max_file_bytes; /* no file grows beyond; 0: no limit */
	uint64_t max_memory_bytes; /* that plans make the run use; 0: budget_default_bytes() */
	uint64_t perturb_seed; /* not 0: random delays before actions, to try the order */
};

/* How an outcome differed. */
enum run_mismatch_kind {
#define MISMATCH(name, key, words) RUN_MISMATCH_##name,
#include "replay/mismatches.def"
#undef MISMATCH
	RUN_MISMATCH_MAX,
};

extern const char *const run_mismatch_keys[RUN_MISMATCH_MAX];
extern const char *const run_mismatch_words[RUN_MISMATCH_MAX];

#define RUN_MISMATCH_EDGES 8

struct run_edge {
	uint32_t lane;
	uint64_t nr;
	uint8_t rule;
	bool started;
};

/* What a call of a mismatch gave back, as far as a lane kept it (found.h). */
enum run_found_kind {
	RUN_FOUND_NOTHING,
	RUN_FOUND_BYTES,
	RUN_FOUND_STAT, /* a struct k_stat */
	RUN_FOUND_STATX,
	RUN_FOUND_LISTING, /* all entries, however many calls gave them */
};

struct run_found {
	enum run_found_kind kind;
	uint64_t len_bytes; /* of what came back */
	uint64_t at, kept_bytes; /* as much of it is in run_result.found, from here on */
	bool has_offset;
	uint64_t offset; /* in the file, of bytes; wrong if another lane moved it at once */
	/* Of a listing: the sum of what was recorded (plan/result.h), and the event at which
	 * it began; 0: several threads made it. */
	uint64_t recorded_low, recorded_high, first_seq;
};

struct run_mismatch {
	_Atomic uint32_t whole; /* all of it has been written */
	enum run_mismatch_kind kind;
	uint32_t plan, lane, pid, tid;
	uint64_t nr; /* of the action in its lane */
	uint64_t seq, origin; /* of the event in the trace */
	uint16_t row_id;
	struct outcome expected, got;
	struct run_found found;
	uint32_t nr_edges; /* how many there were; at most RUN_MISMATCH_EDGES are here */
	struct run_edge edges[RUN_MISMATCH_EDGES];
};

#define RUN_MISMATCHES_KEPT 1024
#define RUN_FOUND_ROOM ((uint64_t)16 << 20) /* of all mismatches */

/* All actions of one row. */
struct run_call {
	uint64_t count, made, errors, mismatches;
	uint64_t run_ns, original_ns; /* sums */
	struct spread run, original;
};

/* What a lane is at; written by the lane, read by who watches. */
enum run_lane_phase {
	RUN_LANE_IDLE, /* not begun */
	RUN_LANE_EDGE, /* waits for another lane */
	RUN_LANE_TIME, /* for its time */
	RUN_LANE_CALL, /* in a call */
	RUN_LANE_PIPE, /* for the other end of a pipe */
	RUN_LANE_LOAD, /* for the loader */
	RUN_LANE_NOTE, /* for the keeper of notes */
	RUN_LANE_ENDED,
};

struct run_lane_state {
	_Alignas(64) _Atomic uint64_t nr_done;
	_Atomic uint64_t seq;
	_Atomic uint32_t row_id, phase;
	_Atomic uint32_t edge_lane;
	_Atomic uint64_t edge_nr;
	_Atomic int32_t tid; /* of the lane's thread; 0: not begun */
};

/* What a lane was at when a run had come to a standstill. */
struct run_wait {
	uint32_t lane, phase;
	uint16_t row_id;
	uint64_t nr, seq; /* of the action, and of its event in the trace */
	uint32_t edge_lane; /* in RUN_LANE_EDGE: whom it waits for */
	uint64_t edge_nr;
};

#define RUN_WAITS_KEPT 64

/* Why a run ended before its actions did. */
enum run_end {
	RUN_COMPLETE,
	RUN_INTERRUPTED,
	RUN_STALLED,
	RUN_MISMATCHED,
	RUN_BROKEN,
	RUN_DIED,
	RUN_FULL
};

#define RUN_ERRNO_MAX 4096

struct run_result {
	_Atomic uint32_t stop; /* enum run_end; not 0: everybody ends as soon as possible */
	_Atomic uint64_t began_ns; /* CLOCK_MONOTONIC when the clock started; 0: not yet */
	uint32_t end; /* enum run_end */
	int status; /* of the run's own process, with words in err */
	struct err err;

	uint64_t nr_actions, nr_done; /* in the plans; performed */
	uint64_t nr_setup; /* of the performed: made before the clock started */
	uint64_t setup_ns; /* that took so long */
	uint64_t nr_made; /* calls that were really made */
	uint64_t nr_simulated; /* actions whose recorded outcome stands, for it needs no call */
	uint64_t nr_enforced; /* ... for the call failed there and might not fail here */
	uint64_t enforced_by_error[RUN_ERRNO_MAX];
	uint64_t nr_verified, nr_results_verified;
	uint64_t nr_unordered; /* overlapping writes whose order the traces do not show */
	uint64_t
		nr_unverifiable; /* reads of bytes that the traces do not have: what they give is free */
	uint64_t elapsed_ns, original_elapsed_ns;
	uint64_t predicted_ns; /* of the program on this target (predict.h) */
	uint64_t call_ns, original_call_ns; /* of all lanes: sums of the times in calls */
	uint64_t edge_wait_ns, deadline_wait_ns, load_wait_ns, note_wait_ns;
	uint64_t nr_edge_waits;
	uint64_t nr_fallbacks_direct; /* files opened without O_DIRECT, for the target cannot */
	uint64_t nr_batched; /* reads that were made together with others */
	uint64_t nr_pipes,
		nr_pipes_broken; /* made; of these or besides, simulated in part or whole */
	uint64_t nr_requests_enforced; /* in the plans: failures that are not made again */
	uint64_t nr_requests; /* asynchronous ones that were made */
	uint64_t nr_requests_by_calls; /* of these by calls, for there was no io_uring for them */
	uint64_t nr_requests_left_out; /* besides: about something that is simulated or not open */
	uint64_t most_in_flight; /* of one ring or context at once */
	uint64_t max_memory_bytes,
		nr_over_memory; /* what plans may use; what was left out for it */
	uint64_t max_files; /* that may be open at once; 0: as many as the plans need */
	_Atomic uint64_t nr_over_files; /* calls that failed for it */
	uint64_t nr_unbuilt; /* actions that lacked what a call needs: not made */
	uint64_t peak_memory_bytes;
	uint64_t cpu_ns; /* of the run's process */
	uint64_t lane_cpu_ns; /* of its lanes, while they performed */
	struct spread lateness;
	_Atomic uint64_t nr_mismatches;
	_Atomic uint64_t mismatches_by_kind[RUN_MISMATCH_MAX];
	struct run_mismatch mismatches
		[RUN_MISMATCHES_KEPT]; /* the first; at the end in the order of the trace */
	uint32_t nr_waits; /* of a run that stalled: lanes that waited */
	struct run_wait waits[RUN_WAITS_KEPT];
	struct run_call calls[ROW_ID_MAX]; /* sparse: pages that are not touched take no memory */
	_Atomic uint64_t found_bytes; /* in use of `found` */
	uint8_t found[RUN_FOUND_ROOM]; /* sparse too */
	uint64_t loop_ns; /* wall time of the process from fork to end */
	uint32_t nr_lanes;
	struct run_lane_state *lanes;
	uint64_t mapped_bytes;
};

/* What the caller may want to know meanwhile. Any may be NULL. */
struct run_watcher {
	void *arg;
	/* Called often: a true answer ends the run (SIGINT). */
	bool (*want_stop)(void *arg);
	/* Now and then. */
	void (*progress)(void *arg, const struct run_result *res);
	/* Nothing moved for 10 s, and every 10 s after. */
	void (*stalled)(void *arg, const struct run_result *res, uint64_t since_ns);
	/* A mismatch, when the run was asked to warn. */
	void (*mismatch)(void *arg, const struct run_mismatch *m);
};

/*
 * Performs the plans in dir. 0 when the run came to an end of whatever kind,
 * which res->end tells; -errno when it could not begin. ret is set in the first
 * case only.
 */
MUST_CHECK int run_perform(const char *const *plans, unsigned int nr_plans, const char *dir,
			   const struct run_options *o, const struct run_watcher *w,
			   struct run_result **ret, struct err *err);
void run_result_free(struct run_result *res);

#endif
