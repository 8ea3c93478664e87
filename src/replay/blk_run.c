/* SPDX-License-Identifier: MIT */
#include "replay/blk_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/mem.h"
#include "base/strings.h"
#include "replay/blk_inside.h"

#define DEPTH_DEFAULT 128
#define DEPTH_MAX 32768
#define QUEUE_SPARE 8 /* of a queue: beyond it, io_uring hands requests to other threads */
#define PROGRESS_NS (200 * NS_PER_MS)

/* What the plan says of itself. */

static bool get_meta(struct blk_run *run, const char *key, struct buf *text, const char **ret)
{
	*ret = trace_meta(plan_container(run->plan), key, text);
	return *ret != NULL;
}

static uint64_t get_meta_u64(struct blk_run *run, const char *key, uint64_t otherwise)
{
	struct buf text = { 0 };
	const char *value;
	uint64_t v;

	if (!get_meta(run, key, &text, &value) || strings_parse_u64(value, &v) < 0)
		v = otherwise;
	buf_release(&text);
	return v;
}

static int check_plan(struct blk_run *run, const char *path, struct err *err)
{
	struct buf text = { 0 };
	const char *value;
	bool block, think;

	block = get_meta(run, "level", &text, &value) && !strcmp(value, BLK_LEVEL);
	think = get_meta(run, "order", &text, &value) && !strcmp(value, "think");
	buf_release(&text);
	if (!block)
		return err_set(err, -EINVAL,
			       "%s has no block requests: give a directory, not --device", path);
	if (run->o->mode == BLK_MODE_THINK && !think)
		return err_set(
			err, -EINVAL,
			"%s was compiled with another order than think, which the mode needs",
			path);
	return 0;
}

/* Devices of the trace, and where they go. */

static int find_devices(struct blk_run *run, struct err *err)
{
	char key[32];

	run->end_of = xcalloc(BLK_DEVICES_MAX, sizeof(*run->end_of));
	for (; run->nr_devices < BLK_DEVICES_MAX; run->nr_devices++) {
		(void)snprintf(key, sizeof(key), "block.end.%u", run->nr_devices);
		run->end_of[run->nr_devices] = get_meta_u64(run, key, UINT64_MAX);
		if (run->end_of[run->nr_devices] == UINT64_MAX)
			break;
	}
	if (plan_totals(run->plan)->nr_actions && !run->nr_devices)
		return err_set(err, -EBADMSG, "the plan does not say which devices it has");
	run->max_length = get_meta_u64(run, "block.max_length", BLK_LENGTH_MAX);
	if (run->max_length > BLK_LENGTH_MAX || !run->max_length)
		run->max_length = BLK_LENGTH_MAX;
	return 0;
}

static bool is_device(struct blk_run *run, uint32_t number, const char *asked)
{
	struct buf text = { 0 };
	const char *name;
	char key[32], digits[16];
	bool is;

	(void)snprintf(digits, sizeof(digits), "%u", number);
	(void)snprintf(key, sizeof(key), "block.device.%u", number);
	is = (get_meta(run, key, &text, &name) && !strcmp(name, asked)) || !strcmp(digits, asked);
	buf_release(&text);
	return is;
}

static int refuse_without_target(struct blk_run *run, uint32_t device, struct err *err)
{
	struct buf text = { 0 };
	const char *name;
	char key[32];
	int r;

	(void)snprintf(key, sizeof(key), "block.device.%u", device);
	r = err_set(
		err, -EINVAL,
		"the trace has %u devices, and no target for number %u (%s): --device=NAME=TARGET "
		"or --device='*=TARGET'",
		run->nr_devices, device, get_meta(run, key, &text, &name) ? name : "without name");
	buf_release(&text);
	return r;
}

static int map_device(struct blk_run *run, const struct blk_target_request *targets, uint32_t nr,
		      uint32_t device, struct err *err)
{
	uint32_t i, plain = 0;

	for (i = 0; i < nr; i++) {
		if (targets[i].device && strcmp(targets[i].device, "*") != 0 &&
		    is_device(run, device, targets[i].device))
			goto found;
	}
	for (i = 0; i < nr; i++) {
		if (!targets[i].device && plain++ == device)
			goto found;
	}
	for (i = 0; i < nr; i++) {
		if (targets[i].device && !strcmp(targets[i].device, "*"))
			goto found;
	}
	return refuse_without_target(run, device, err);
found:
	run->target_of[device] = i;
	return 0;
}

/* Whoever misspells a name shall not find his requests on another target. */
static int check_name(struct blk_run *run, const struct blk_target_request *target, struct err *err)
{
	struct buf text = { 0 };
	const char *name;
	int r;

	if (!target->device || !strcmp(target->device, "*"))
		return 0;
	for (uint32_t d = 0; d < run->nr_devices; d++) {
		if (is_device(run, d, target->device))
			return 0;
	}
	r = err_set(
		err, -ENODEV,
		"--device=%s=%s: the trace has no device '%s'; of %u, the first is '%s' (a path "
		"with an equal sign begins with / or ./)",
		target->device, target->path, target->device, run->nr_devices,
		get_meta(run, "block.device.0", &text, &name) ? name : "0");
	buf_release(&text);
	return r;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static int open_targets(struct blk_run *run, const struct blk_target_request *targets, uint32_t nr,
			struct err *err)
{
	uint64_t need;
	uint32_t i, d;
	int r;

	run->target_of = xcalloc(run->nr_devices + 1, sizeof(*run->target_of));
	for (i = 0; i < nr; i++) {
		r = check_name(run, &targets[i], err);
		if (r < 0)
			return r;
	}
	for (d = 0; d < run->nr_devices; d++) {
		r = map_device(run, targets, nr, d, err);
		if (r < 0)
			return r;
	}
	run->targets = xcalloc(nr, sizeof(*run->targets));
	for (i = 0; i < nr; i++)
		run->targets[i].fd = -1;
	run->nr_targets = nr;
	for (i = 0; i < nr; i++) {
		for (need = 0, d = 0; d < run->nr_devices; d++) {
			if (run->target_of[d] == i && run->end_of[d] > need)
				need = run->end_of[d];
		}
		need = add_saturated(add_saturated(need, run->o->offset_bytes), 4095) &
		       ~UINT64_C(4095);
		r = blk_target_open(&run->targets[i], targets[i].path, need, run->o, err);
		if (r < 0)
			return r;
		if (need && run->targets[i].size_bytes < run->targets[i].align_bytes)
			return err_set(err, -ENOSPC, "%s has no room for a single sector%s",
				       targets[i].path,
				       run->targets[i].device ? "" : " (--create lets it grow)");
		run->res->direct = !i || run->res->direct ? run->targets[i].direct : false;
	}
	return 0;
}

/* The queue. */

static uint64_t power_of_two(uint64_t v)
{
	return v > 1 ? (uint64_t)1 << (64 - __builtin_clzll(v - 1)) : 1;
}

static void tell(const struct blk_run *run, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void tell(const struct blk_run *run, const char *fmt, ...)
{
	struct buf text = { 0 };
	va_list ap;

	if (!run->watcher->note)
		return;
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	run->watcher->note(run->watcher->arg, buf_str(&text));
	buf_release(&text);
}

/* Says what the paper would set, and sets it when asked. */
static int prepare_queue(struct blk_run *run, struct blk_target *t, uint64_t wanted,
			 struct err *err)
{
	struct blk_queue *q = &t->queue;
	int r;

	blk_queue_advise(q, wanted);
	if (run->o->tune && t->device) {
		r = blk_queue_tune(q, err);
		return r < 0 ? err_wrap(err, r, "%s", t->path) : 0;
	}
	if (run->o->tune)
		tell(run, "%s is a file: it has no queue that could be tuned", t->path);
	if (!q->known)
		return 0;
	if (q->scheduler[0] && strcmp(q->scheduler, "none") != 0)
		tell(run, "%s: the scheduler is %s; none keeps the order (--tune)", t->path,
		     q->scheduler);
	if (q->nomerges < 2 && q->nr_requests)
		tell(run, "%s: requests may be merged; nomerges=2 keeps them apart (--tune)",
		     t->path);
	if (q->want_nr_requests)
		tell(run, "%s: the queue has room for %llu requests; the trace wants %llu (--tune)",
		     t->path, (unsigned long long)q->nr_requests,
		     (unsigned long long)q->want_nr_requests);
	return 0;
}

/* Requests that come at times of their own do so on any device. */
static void advise_mode(struct blk_run *run)
{
	struct buf text = { 0 };
	const char *value;

	if (run->o->mode == BLK_MODE_THINK && get_meta(run, "block.arrivals", &text, &value) &&
	    !strcmp(value, "open"))
		tell(run,
		     "the requests of the trace came as if they did not wait for each other "
		     "(an open load): --mode=think makes them wait, --mode=timed keeps their times");
	buf_release(&text);
}

static int choose_depth(struct blk_run *run, struct err *err)
{
	uint64_t wanted = power_of_two(plan_totals(run->plan)->nr_lanes), limit = UINT64_MAX;

	if (wanted < 32)
		wanted = 32;
	if (run->o->depth)
		wanted = run->o->depth;
	if (wanted > DEPTH_MAX)
		wanted = DEPTH_MAX;
	for (uint32_t i = 0; i < run->nr_targets; i++) {
		struct blk_queue now;
		int r = prepare_queue(run, &run->targets[i], wanted, err);

		if (r < 0)
			return r;
		blk_queue_read(run->targets[i].fd, &now);
		if (now.nr_requests > 2 * QUEUE_SPARE && now.nr_requests - QUEUE_SPARE < limit)
			limit = now.nr_requests - QUEUE_SPARE;
		run->res->queues[i] = run->targets[i].queue;
	}
	run->depth = wanted < DEPTH_DEFAULT && run->o->mode == BLK_MODE_AFAP && !run->o->depth
			     ? DEPTH_DEFAULT
			     : wanted;
	if (run->depth > limit && !run->o->depth)
		run->depth = limit;
	return 0;
}

/* The loader's thread. */

static void report_progress(struct blk_run *run, uint64_t *last_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!run->watcher->progress || now_ns - *last_ns < PROGRESS_NS)
		return;
	*last_ns = now_ns;
	run->watcher->progress(run->watcher->arg, run->nr_kept, plan_totals(run->plan)->nr_actions);
}

static int work(struct blk_run *run, struct err *err)
{
	bool more = true, stopped, any_loaded, any_kept;
	uint64_t last_ns = 0;
	int r;

	do {
		/* Before the look at what is done: nothing is done after the stop. */
		stopped = atomic_load_explicit(&run->stop, memory_order_acquire);
		any_loaded = any_kept = false;
		r = 0;
		if (more && !stopped) {
			r = blk_loader_work(run, &any_loaded, err);
			more = r > 0;
			/* Pairs with the submitter's: `loaded` does not change any more. */
			if (!r)
				atomic_store_explicit(&run->window.ended, true,
						      memory_order_release);
		}
		if (r >= 0)
			r = blk_keeper_work(run, &any_kept, err);
		if (r < 0)
			return r;
		report_progress(run, &last_ns);
		if (!any_loaded && !any_kept && !stopped) {
			struct timespec ts = { .tv_nsec = (long)NS_PER_MS };

			(void)nanosleep(&ts, NULL);
		}
	} while (!stopped || any_kept);
	return 0;
}

static void *loader_main(void *arg)
{
	struct blk_run *run = arg;
	int r = work(run, &run->window.err);

	/* Pairs with the submitter's, which stops then. */
	if (r < 0)
		atomic_store_explicit(&run->window.status, r, memory_order_release);
	return NULL;
}

/* Submitters. */

/* A target for which io_uring would use threads of the kernel is better served without. */
static const struct blk_engine *choose_engine(const struct blk_run *run)
{
	if (run->o->engine != BLK_ENGINE_AUTO || run->o->poll)
		return run->o->engine == BLK_ENGINE_AIO ? &blk_engine_aio : &blk_engine_uring;
	for (uint32_t i = 0; i < run->nr_targets; i++) {
		if (run->targets[i].device && !run->targets[i].nowait)
			return &blk_engine_aio;
	}
	return blk_uring_is_allowed() ? &blk_engine_uring : &blk_engine_aio;
}

static int make_submitters(struct blk_run *run, struct err *err)
{
	uint32_t nr = run->o->submitters ? run->o->submitters : 1;

	run->engine = choose_engine(run);
	run->submitters = xcalloc(nr, sizeof(*run->submitters));
	run->nr_submitters = nr;
	(void)pthread_mutex_init(&run->shared.graph, NULL);
	blk_tally_init(&run->shared.tally, run->nr_devices * BLK_OP_MAX);
	blk_tally_init(&run->shared.followed, run->nr_devices * BLK_OP_MAX);
	for (uint32_t i = 0; i < nr; i++) {
		struct blk_submitter *sub = &run->submitters[i];
		int r;

		sub->run = run;
		sub->number = i;
		sub->mine = huge_alloc(BLK_SLOTS * sizeof(*sub->mine));
		sub->port = (struct blk_port){ .engine = run->engine,
					       .targets = run->targets,
					       .nr_targets = run->nr_targets,
					       .depth = run->depth,
					       .poll = run->o->poll };
		r = blk_data_init(&sub->port.data, run->max_length, run->depth / nr + 1, i, run->o,
				  err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void release_submitters(struct blk_run *run)
{
	for (uint32_t i = 0; i < run->nr_submitters; i++) {
		struct blk_submitter *sub = &run->submitters[i];

		if (sub->mine)
			huge_free(sub->mine, BLK_SLOTS * sizeof(*sub->mine));
		blk_data_release(&sub->port.data);
		VEC_RELEASE(&sub->heap);
	}
	if (run->nr_submitters)
		(void)pthread_mutex_destroy(&run->shared.graph);
	blk_tally_release(&run->shared.tally);
	blk_tally_release(&run->shared.followed);
	free(run->submitters);
}

static void add_up_submitters(struct blk_run *run)
{
	struct blk_run_result *res = run->res;

	res->nr_submitters = run->nr_submitters;
	res->engine = run->engine->name;
	res->registered = true;
	for (uint32_t i = 0; i < run->nr_submitters; i++) {
		const struct blk_submitter *sub = &run->submitters[i];
		const struct blk_counts *c = &sub->counts;

		res->nr_reordered += c->nr_reordered;
		res->in_flight_max = c->in_flight_max > res->in_flight_max ? c->in_flight_max
									   : res->in_flight_max;
		res->limit_max = c->limit_max > res->limit_max ? c->limit_max : res->limit_max;
		res->limit_wait_ns += c->limit_wait_ns;
		res->load_wait_ns += c->load_wait_ns;
		res->cpu_ns += c->cpu_ns;
		res->nr_submits += sub->port.nr_submits;
		res->registered = res->registered && sub->port.registered;
	}
}

static void *submitter_main(void *arg)
{
	struct blk_submitter *sub = arg;

	sub->status = blk_pace(sub, &sub->err);
	return NULL;
}

/* A processor that sleeps deeply wakes late. Held while the descriptor is open; needs the right to. */
static int hold_latency(void)
{
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	int32_t zero = 0;

	if (fd >= 0 && write(fd, &zero, sizeof(zero)) < 0) {
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

/* The first of them is the caller's thread. */
static int start_submitters(struct blk_run *run, struct err *err)
{
	for (run->nr_threads = 1; run->nr_threads < run->nr_submitters; run->nr_threads++) {
		struct blk_submitter *sub = &run->submitters[run->nr_threads];
		int r = pthread_create(&sub->thread, NULL, submitter_main, sub);

		if (r)
			return err_set(err, -r, "cannot start %u threads", run->nr_submitters);
	}
	return 0;
}

static int run_submitters(struct blk_run *run, struct err *err)
{
	int r = start_submitters(run, err);

	if (!r) {
		r = blk_pace(&run->submitters[0], err);
	} else {
		atomic_store(&run->shared.stopping, true);
		atomic_store(&run->shared.go, true);
	}
	for (uint32_t i = 1; i < run->nr_threads; i++) {
		const struct blk_submitter *sub = &run->submitters[i];

		(void)pthread_join(sub->thread, NULL);
		if (!r && sub->status < 0) {
			r = sub->status;
			*err = sub->err;
		}
	}
	return r;
}

static int run_threads(struct blk_run *run, struct err *err)
{
	AUTO_CLOSE int latency_fd = hold_latency();
	pthread_t loader;
	int r, status;

	(void)latency_fd; /* is only there to be open */
	ticker_init(&run->ticker);
	r = pthread_create(&loader, NULL, loader_main, run);
	if (r)
		return err_set(err, -r, "cannot start a thread");
	r = run_submitters(run, err);
	atomic_store_explicit(&run->stop, true, memory_order_release);
	(void)pthread_join(loader, NULL);
	status = atomic_load(&run->window.status);
	if (!r && status < 0) {
		*err = run->window.err;
		r = status;
	}
	return r;
}

static int perform(struct blk_run *run, const char *plan, const struct blk_target_request *targets,
		   uint32_t nr_targets, struct err *err)
{
	int r = plan_open(plan, &run->plan, err);

	if (!r)
		r = check_plan(run, plan, err);
	if (!r)
		r = find_devices(run, err);
	if (!r)
		r = open_targets(run, targets, nr_targets, err);
	if (!r)
		advise_mode(run);
	if (!r)
		r = choose_depth(run, err);
	if (!r)
		r = make_submitters(run, err);
	if (!r)
		r = blk_loader_open(run, err);
	if (!r)
		r = blk_keeper_open(run, err);
	if (!r)
		r = blk_observer_open(run, err);
	if (r < 0)
		return r;
	run->first_ns = plan_totals(run->plan)->first_ns;
	run->res->nr_requests = plan_totals(run->plan)->nr_actions;
	run->res->original_elapsed_ns = plan_totals(run->plan)->elapsed_ns;
	run->window.slots = huge_alloc(BLK_SLOTS * sizeof(*run->window.slots));
	run->window.edges = huge_alloc(BLK_EDGES * sizeof(*run->window.edges));
	r = run_threads(run, err);
	add_up_submitters(run);
	run->res->nr_parents_lost += run->loader.nr_parents_lost;
	run->res->expected_elapsed_ns =
		run->o->mode == BLK_MODE_TIMED
			? run->loader.expected_ns
			: (uint64_t)((double)run->res->original_elapsed_ns * run->o->scale);
	if (!r && run->last_end_ns > run->start_ns)
		run->res->elapsed_ns = run->last_end_ns - run->start_ns;
	return r;
}

static void release(struct blk_run *run)
{
	blk_observer_close(run);
	blk_loader_close(run);
	/* What an interrupted run has not come to. */
	for (uint64_t i = 0; run->window.slots && i < BLK_SLOTS; i++)
		free(run->window.slots[i].data);
	if (run->window.slots)
		huge_free(run->window.slots, BLK_SLOTS * sizeof(*run->window.slots));
	if (run->window.edges)
		huge_free(run->window.edges, BLK_EDGES * sizeof(*run->window.edges));
	release_submitters(run);
	for (uint32_t i = 0; i < run->nr_targets; i++)
		blk_target_close(&run->targets[i]);
	free(run->targets);
	free(run->target_of);
	free(run->end_of);
	plan_close(run->plan);
}

int blk_run_perform(const char *plan, const struct blk_target_request *targets, uint32_t nr_targets,
		    const struct blk_run_options *o, const struct blk_run_watcher *w,
		    struct blk_run_result **ret, struct err *err)
{
	struct blk_run *run = xcalloc(1, sizeof(*run));
	struct blk_run_result *res = xcalloc(1, sizeof(*res));
	int r;

	run->o = o;
	run->watcher = w;
	run->res = res;
	res->queues = xcalloc(nr_targets, sizeof(*res->queues));
	res->nr_targets = nr_targets;
	r = perform(run, plan, targets, nr_targets, err);
	r = blk_keeper_close(run, r, err);
	if (!r && !res->interrupted && res->nr_done != res->nr_requests)
		r = err_set(err, -EIO, "of %llu requests only %llu were seen to end",
			    (unsigned long long)res->nr_requests, (unsigned long long)res->nr_done);
	release(run);
	free(run);
	if (r < 0)
		blk_run_result_free(res);
	else
		*ret = res;
	return r;
}

void blk_run_result_free(struct blk_run_result *res)
{
	if (!res)
		return;
	free(res->queues);
	free(res);
}
