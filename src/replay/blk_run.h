/* SPDX-License-Identifier: MIT */
/*
 * A run of block requests: a plan of them performed on devices or files by
 * io_uring.
 *
 *   loader and keeper (a thread)         submitter (the caller's thread, and more)
 *   plan --> window of requests  ------> due? --> ring --> device
 *   sums, trace of the run       <------ done <-- completions
 *
 * One thread submits all requests, so that they reach the device in the order in
 * which they are due, also those of several devices. It does nothing else. Where
 * that is too much for one core, several share the work (blk_inside.h).
 *
 * Memory is bounded by the window, whatever the length of the plan.
 */
#ifndef REPLAY_BLK_RUN_H
#define REPLAY_BLK_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/blk.h"
#include "replay/spread.h"

enum blk_mode {
	BLK_MODE_TIMED, /* each at its time in the trace */
	BLK_MODE_THINK, /* each a think time after its parents were complete */
	BLK_MODE_AFAP, /* one after the other, as fast as the limit in flight allows */
	BLK_MODE_LOAD, /* as many in flight as there were in the trace */
};

/* What a request waits for in mode think. */
enum blk_wait {
	BLK_WAIT_NUMBER, /* as many as were complete (blk_number.h) */
	BLK_WAIT_PARENTS, /* all its parents, and the think time after each of them */
};

enum blk_engine_choice {
	BLK_ENGINE_AUTO, /* io_uring, unless it is not there or a target would be served by its threads */
	BLK_ENGINE_URING,
	BLK_ENGINE_AIO,
};

#define BLK_SUBMITTERS_MAX 64

enum blk_place {
	BLK_PLACE_SAME, /* what lies beyond the target is not made */
	BLK_PLACE_WRAP, /* modulo the size of the target */
	BLK_PLACE_FIT, /* shrunk to the size of the target */
};

/* Where the requests of a device go. */
struct blk_target_request {
	const char *path;
	const char
		*device; /* name or number of the trace's device; NULL: the next; "*": all others */
};

struct blk_run_options {
	enum blk_mode mode;
	enum blk_wait wait;
	double scale; /* of all times */
	/*
	 * Of what the server takes (think times; mode timed: when nothing is in flight), and
	 * of what the storage takes. Modes afap and load have no times.
	 */
	double scale_server, scale_storage;
	uint32_t depth; /* the limit in flight; 0: by the trace and the target */
	uint32_t submitters; /* threads; at least 1 */
	enum blk_engine_choice engine;
	bool realtime; /* submitters go before all other threads (SCHED_FIFO) */
	uint64_t bundle_ns; /* what is due within it after the first goes with it */
	uint32_t bundle_max; /* requests of a bundle */
	enum blk_place place;
	uint64_t offset_bytes; /* added to every place */
	bool writes; /* also what changes the device; to a file it always may */
	bool destroy_data; /* though it holds something, or is in use */
	bool create; /* files are made, or grow, as needed */
	bool buffered; /* not O_DIRECT */
	bool poll; /* completions are looked for, not waited for (IORING_SETUP_IOPOLL) */
	bool observe; /* by the block tracepoints: in which order requests reached the devices */
	bool tune; /* scheduler, merges and queue are set for the run and restored */
	uint32_t compress_percent; /* of the filler: how much of each piece of 4 KiB is zeroes */
	uint32_t dedup_percent; /* of the filler: how many pieces are copies of others */
	const char *output; /* the trace of the run; NULL: none */
	bool replace;
	unsigned int file_mode; /* of the output; 0: IO_FILE_MODE */
};

/* How the queue of a target is set, and what it should be for a faithful run. */
#define BLK_QUEUE_WORD 32
struct blk_queue {
	bool known;
	char dir[64]; /* in sysfs */
	char scheduler[BLK_QUEUE_WORD]; /* the one in use */
	uint64_t nomerges, nr_requests;
	bool rotational;
	uint64_t want_nr_requests; /* 0: as it is */
	/* While it is tuned. */
	int guard_pid, guard_fd;
};

#define BLK_SERIES_POINTS 512

/* How many were in flight, on the average, in each span of time since the beginning. */
struct blk_series {
	uint64_t span_ns;
	uint64_t busy_ns[BLK_SERIES_POINTS]; /* sums of what requests took of each span */
};

/* All requests of one operation. */
struct blk_sums {
	uint64_t nr, nr_made, nr_errors;
	uint64_t bytes;
	struct spread run, original; /* response times; of the original where known */
};

struct blk_run_result {
	uint64_t nr_requests, nr_done, nr_made;
	uint64_t nr_unwanted; /* would have changed the device: not made */
	uint64_t nr_beyond; /* beyond the end of the target: not made */
	uint64_t nr_not_made; /* empty, or of no kind that can be made */
	uint64_t
		nr_cut; /* longer than what is moved at once, or than the target it is wrapped or fitted to: cut */
	uint64_t nr_aligned; /* place or length changed to the sectors of the target */
	uint64_t nr_unsupported; /* discards and zeroes that the target cannot do */
	uint64_t nr_errors;
	int first_error;
	uint64_t nr_differ; /* other outcome than in the trace: failed, or shorter */
	uint64_t nr_without_end; /* in the trace */
	uint64_t nr_reordered; /* submitted after one that came later in the trace (RFC 4737) */
	/* With observe: seen at the device; not, or as a part of another; issued there after one that came later. */
	uint64_t nr_observed, nr_unobserved, nr_reordered_device;
	uint64_t nr_submits; /* calls */
	uint64_t nr_parents_lost; /* so long ago that their completion was forgotten */
	uint64_t elapsed_ns, original_elapsed_ns;
	uint64_t expected_elapsed_ns; /* the original, scaled as the run was */
	uint64_t in_flight_max, original_in_flight_max;
	uint64_t limit_max; /* the highest limit in flight that was allowed */
	uint64_t limit_wait_ns, load_wait_ns; /* held up by the limit; by the loader */
	uint64_t cpu_ns; /* of the submitters */
	uint32_t nr_submitters;
	const char *engine;
	struct spread lateness;
	struct blk_sums ops[BLK_OP_MAX];
	struct blk_series run, original;
	bool direct, registered; /* O_DIRECT; buffers and files known to the kernel */
	bool interrupted;
	uint32_t nr_targets;
	struct blk_queue *queues; /* of each target, as found */
};

struct blk_run_watcher {
	void *arg;
	bool (*want_stop)(void *arg); /* called often */
	void (*progress)(void *arg, uint64_t nr_done, uint64_t nr_requests);
	void (*note)(void *arg, const char *text); /* what the user should know before it begins */
};

/*
 * 0 when the run came to its end or was interrupted; -errno when it could not
 * begin or broke down. ret is set in the first case only.
 */
MUST_CHECK int blk_run_perform(const char *plan, const struct blk_target_request *targets,
			       uint32_t nr_targets, const struct blk_run_options *o,
			       const struct blk_run_watcher *w, struct blk_run_result **ret,
			       struct err *err);
void blk_run_result_free(struct blk_run_result *res);

#endif
