/* SPDX-License-Identifier: MIT */
/* The run's own process: from its birth to its sums. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/strings.h"
#include "replay/batch.h"
#include "replay/contain.h"
#include "replay/flight.h"
#include "replay/inside.h"

#define OUT_BUDGET ((uint64_t)32 << 20) /* buffers of all lanes for what is read */
#define OUT_MIN_BYTES ((uint64_t)64 << 10)
#define OUT_MAX_BYTES ((uint64_t)4 << 20)
#define SCRATCH_BYTES ((uint64_t)16 << 10)
#define LANE_OTHER_BYTES ((uint64_t)160 << 10) /* ring, reader, stacks */
#define LANE_STACK_BYTES ((size_t)128 << 10)
#define OWN_DESCRIPTORS 64
#define POLL_NS (20 * NS_PER_MS)
/* Interrupts a call that a lane is in when the run is stopped. */
#define STOP_SIGNAL SIGUSR1

const struct engine *engine_by_name(const char *name)
{
	static const struct engine *const engines[] = {
#define ENGINE(name) &engine_##name,
#include "replay/engines.def"
#undef ENGINE
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(engines); i++)
		if (!strcmp(engines[i]->name, name))
			return engines[i];
	return NULL;
}

void run_stop(struct run *run, enum run_end why)
{
	uint32_t none = 0;

	atomic_compare_exchange_strong(&run->res->stop, &none, (uint32_t)why);
}

void run_fail(struct run *run, int r, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&run->err_mutex);
	if (!run->res->status) {
		va_start(ap, fmt);
		(void)vsnprintf(run->res->err.text, sizeof(run->res->err.text), fmt, ap);
		va_end(ap);
		run->res->status = r;
	}
	pthread_mutex_unlock(&run->err_mutex);
	run_stop(run, RUN_BROKEN);
}

/* Whoever sleeps shall look up. */
static void wake_all(struct run *run)
{
	uint32_t i;

	sync_futex_wake(&run->go);
	bell_ring(&run->loader_bell);
	for (i = 0; i < run->nr_lanes; i++) {
		struct lane *l = &run->lanes[i];

		sync_wake_sleepers(&l->done);
		sync_wake_sleepers(&l->started);
		atomic_store(&l->ring.hungry, 0);
		sync_futex_wake(&l->ring.hungry);
		/* A thread that has ended but was not joined may still be signalled. */
		if (l->created)
			(void)pthread_kill(l->thread, STOP_SIGNAL);
	}
}

static void on_signal(int signo)
{
	(void)signo;
}

static void set_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	(void)sigaction(STOP_SIGNAL, &sa, NULL); /* without SA_RESTART: calls return */
	sa.sa_handler = SIG_IGN;
	(void)sigaction(SIGINT, &sa, NULL); /* whoever watches decides */
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)sigaction(SIGQUIT, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
	(void)sigaction(SIGPIPE, &sa, NULL);
	(void)sigaction(SIGXFSZ, &sa, NULL);
	(void)sigaction(SIGIO, &sa, NULL);
	(void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL);
}

static int check_cache_known(const struct run *run, struct plan *p, const char *path,
			     struct err *err)
{
	struct buf text = { 0 };
	bool known = trace_meta(plan_container(p), PLAN_META_CACHE, &text);

	buf_release(&text);
	if (run->o->reads != RUN_READS_CACHE_MISSES || known)
		return 0;
	return err_set(
		err, -ENODATA,
		"%s: nothing tells which reads missed the page cache: its trace has no event "
		"cache_miss",
		path);
}

static uint64_t number_of(struct plan *p, const char *key)
{
	struct buf text = { 0 };
	const char *words = trace_meta(plan_container(p), key, &text);
	uint64_t nr = 0;

	if (!words || strings_parse_u64(words, &nr) < 0)
		nr = 0;
	buf_release(&text);
	return nr;
}

static int open_plans(struct run *run, const char *const *paths, unsigned int nr, struct err *err)
{
	uint64_t nr_lanes = 0, nr_slots = 0;
	unsigned int i;

	run->plans = xcalloc(nr, sizeof(*run->plans));
	for (i = 0; i < nr; i++) {
		struct run_plan *p = &run->plans[i];
		const struct plan_totals *t;
		int r = plan_open(paths[i], &p->plan, err);

		if (r < 0)
			return r;
		run->nr_plans++;
		t = plan_totals(p->plan);
		r = check_cache_known(run, p->plan, paths[i], err);
		if (r < 0)
			return r;
		p->lane_base = (uint32_t)nr_lanes;
		p->slot_base = (uint32_t)nr_slots;
		p->nr_slots = t->nr_slots;
		p->first_ns = t->first_ns;
		nr_lanes += t->nr_lanes;
		nr_slots += t->nr_slots;
		run->res->nr_actions += t->nr_actions;
		run->res->nr_unverifiable += number_of(p->plan, PLAN_META_UNVERIFIABLE);
		run->res->nr_unordered += number_of(p->plan, PLAN_META_UNORDERED);
		run->res->nr_requests_enforced += number_of(p->plan, PLAN_META_ENFORCED);
		if (t->elapsed_ns > run->res->original_elapsed_ns)
			run->res->original_elapsed_ns = t->elapsed_ns;
		run->has_started_edges |= t->has_started_edges;
		if (t->max_data_bytes > run->max_data_bytes)
			run->max_data_bytes = t->max_data_bytes;
	}
	if (nr_slots > UINT32_MAX || nr_lanes > run->res->nr_lanes)
		return err_set(err, -E2BIG, "the plans have too many lanes or slots");
	run->nr_slots = (uint32_t)nr_slots;
	run->nr_lanes = (uint32_t)nr_lanes;
	return 0;
}

static void make_slots(struct run *run)
{
	uint32_t i;

	run->slots = xcalloc(run->nr_slots ? run->nr_slots : 1, sizeof(*run->slots));
	for (i = 0; i < run->nr_slots; i++)
		atomic_init(&run->slots[i].fd, -1);
	pipes_prepare(run);
}

/* What is read, scratch, predicted times. */
static uint64_t lane_bytes(uint64_t out_bytes)
{
	return out_bytes + SCRATCH_BYTES + PREDICT_BYTES;
}

static int make_lane_memory(struct run *run, struct lane *l, struct err *err)
{
	uint64_t bytes = OUT_BUDGET / run->nr_lanes;
	uint8_t *p;

	if (bytes > OUT_MAX_BYTES)
		bytes = OUT_MAX_BYTES;
	if (bytes < OUT_MIN_BYTES)
		bytes = OUT_MIN_BYTES;
	bytes &= ~(uint64_t)4095;
	p = mmap(NULL, lane_bytes(bytes), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		return err_set(err, -errno, "cannot get memory for lane %u",
			       (unsigned int)l->number);
	l->memory = (struct lane_memory){
		.out = p, .out_bytes = bytes, .scratch = p + bytes, .scratch_bytes = SCRATCH_BYTES
	};
	l->predict.ends_ns = (_Atomic uint64_t *)(void *)(p + bytes + SCRATCH_BYTES);
	l->predict.begins_ns = l->predict.ends_ns + PREDICT_KEPT;
	return 0;
}

static int make_lanes(struct run *run, struct err *err)
{
	size_t size = (size_t)run->nr_lanes * sizeof(*run->lanes);
	uint32_t i, p = 0;
	int r;

	run->lanes = aligned_alloc(64, size ? size : 64);
	if (!run->lanes)
		return err_set(err, -ENOMEM, "cannot get memory for %u lanes",
			       (unsigned int)run->nr_lanes);
	memset((void *)run->lanes, 0, size);
	for (i = 0; i < run->nr_lanes; i++) {
		struct lane *l = &run->lanes[i];

		while (i - run->plans[p].lane_base >= plan_totals(run->plans[p].plan)->nr_lanes)
			p++;
		l->run = run;
		l->number = i;
		l->plan = &run->plans[p];
		l->plan_lane = i - l->plan->lane_base;
		l->state = &run->res->lanes[i];
		run->nr_prologues += lane_is_prologue(l);
		l->rng = (run->o->perturb_seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + i + 1;
		sync_counter_init(&l->done);
		sync_counter_init(&l->started);
		r = make_lane_memory(run, l, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * As many descriptors as this user may have. A plan need not have all its slots
 * in use at once, and not all are descriptors: what there are too few for fails,
 * is a mismatch, and is counted.
 */
static int set_limits(struct run *run, struct err *err)
{
	rlim_t need = (rlim_t)run->nr_slots + OWN_DESCRIPTORS;
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return err_set(err, -errno, "cannot learn how many files may be open");
	if (lim.rlim_max < need) {
		struct rlimit more = { need, need };

		if (!setrlimit(RLIMIT_NOFILE, &more))
			return 0;
	}
	lim.rlim_cur = lim.rlim_max;
	run->res->max_files = lim.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &lim) < 0)
		return err_set(err, -errno, "cannot raise how many files may be open");
	return 0;
}

/* Memory that is a file has been made before. */
static int limit_files(struct run *run, struct err *err)
{
	struct rlimit lim = { run->o->max_file_bytes, run->o->max_file_bytes };

	if (!run->o->max_file_bytes)
		return 0;
	if (!run_sink(run))
		return err_set(err, -ENOMEM, "cannot map memory for large reads");
	if (setrlimit(RLIMIT_FSIZE, &lim) < 0)
		return err_set(err, -errno, "cannot limit the size of files");
	return 0;
}

/* What must be opened while the outside can be seen. */
struct outside {
	int latency_fd; /* held open, it keeps the processors from deep sleep */
	int output_dir;
	char *output_name;
};

static int open_outside(struct run *run, struct outside *o, struct err *err)
{
	int32_t no_latency = 0;

	/* Without it, what goes through descriptors is not made. */
	run->fds_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	o->latency_fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	if (o->latency_fd >= 0 && run->o->speed != RUN_AFAP)
		(void)write(o->latency_fd, &no_latency, sizeof(no_latency)); /* a wish */
	if (run->o->drop_cache)
		run->drop_fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	if (run->o->output) {
		AUTO_FREE char *copy = xstrdup(run->o->output);
		AUTO_FREE char *copy2 = xstrdup(run->o->output);

		o->output_name = xstrdup(basename(copy2));
		o->output_dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (o->output_dir < 0)
			return err_set(err, -errno, "cannot write %s", run->o->output);
	}
	ticker_init(&run->ticker);
	return 0;
}

static int open_output(struct run *run, struct outside *o, struct err *err)
{
	int r;

	if (o->output_dir < 0)
		return keeper_prepare(run, NULL, err);
	/* From inside, the directory can still be reached by the descriptor that we hold. */
	if (fchdir(o->output_dir) < 0)
		return err_set(err, -errno, "cannot write %s", run->o->output);
	r = keeper_prepare(run, o->output_name, err);
	(void)close(o->output_dir);
	o->output_dir = -1;
	if (!r && chdir("/") < 0)
		r = err_set(err, -errno, "cannot enter the root directory");
	return r;
}

static int start_threads(struct run *run, pthread_t *loader, pthread_t *keeper, bool *ret_loader,
			 bool *ret_keeper)
{
	pthread_attr_t attr;
	uint32_t i;
	int r;

	(void)pthread_attr_init(&attr);
	r = pthread_attr_setstacksize(&attr, LANE_STACK_BYTES);
	for (i = 0; i < run->nr_lanes && !r; i++) {
		struct lane *l = &run->lanes[i];

		r = pthread_create(&l->thread, &attr, lane_main, l);
		l->created = !r;
		run->nr_started += !r;
	}
	(void)pthread_attr_destroy(&attr);
	if (!r) {
		r = pthread_create(loader, NULL, loader_main, run);
		*ret_loader = !r;
	}
	if (!r) {
		r = pthread_create(keeper, NULL, keeper_main, run);
		*ret_keeper = !r;
	}
	if (r)
		run_fail(run, -r, "cannot start %u threads: %s", (unsigned int)run->nr_lanes,
			 strerror(r));
	return -r;
}

static void wait_for_lanes(struct run *run, uint32_t nr)
{
	uint32_t n;

	while ((n = atomic_load(&run->nr_ended)) < nr) {
		sync_futex_wait(&run->nr_ended, n, POLL_NS);
		if (run_is_stopped(run)) {
			nr = run->nr_started;
			wake_all(run);
		}
	}
}

static void start_clock(struct run *run, enum run_go go)
{
	run->start_ns = ticker_now_ns(&run->ticker);
	atomic_store(&run->res->began_ns, clock_monotonic_ns());
	atomic_store(&run->go, (uint32_t)go);
	sync_futex_wake(&run->go);
}

/* What the prologue wrote is not to be written back in the time that is measured. */
static void settle(struct run *run)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		(void)syncfs(fd); /* what cannot be written will be met by the run */
		(void)close(fd);
	}
	if (run->drop_fd >= 0)
		(void)write(run->drop_fd, "3", 1); /* a wish */
}

static bool has_setup(const struct run *run)
{
	uint64_t nr = 0;
	uint32_t i;

	for (i = 0; i < run->nr_lanes; i++)
		if (lane_is_prologue(&run->lanes[i]))
			nr += run->lanes[i].sums.nr_setup;
	return nr > 0;
}

static void let_go(struct run *run)
{
	uint64_t begin_ns;
	uint32_t n;

	while ((n = atomic_load(&run->nr_set_up)) < run->nr_started)
		sync_futex_wait(&run->nr_set_up, n, 0);
	start_clock(run, RUN_GO_PROLOGUES);
	begin_ns = run->start_ns;
	wait_for_lanes(run, run->nr_prologues);
	if (run_is_stopped(run))
		return;
	if (has_setup(run)) {
		settle(run);
		run->res->setup_ns = ticker_now_ns(&run->ticker) - begin_ns;
	}
	start_clock(run, RUN_GO_ALL);
}

static void sum_up(struct run *run)
{
	struct run_result *res = run->res;
	uint64_t last_ns = run->start_ns;
	struct rusage usage;
	uint32_t i;

	for (i = 0; i < run->nr_lanes; i++) {
		const struct lane_sums *s = &run->lanes[i].sums;

		res->nr_done += s->nr_done;
		res->nr_verified += s->nr_verified;
		res->nr_results_verified += s->nr_results;
		res->nr_requests_left_out += s->nr_requests_left_out;
		res->nr_edge_waits += s->nr_edge_waits;
		res->deadline_wait_ns += s->deadline_wait_ns;
		res->load_wait_ns += s->load_wait_ns;
		res->note_wait_ns += s->note_wait_ns;
		res->nr_fallbacks_direct += s->nr_direct;
		res->nr_batched += s->nr_batched;
		res->nr_pipes += s->nr_pipes;
		res->lane_cpu_ns += s->cpu_ns;
		if (s->last_exit_ns > last_ns)
			last_ns = s->last_exit_ns;
		if (!lane_is_prologue(&run->lanes[i]) &&
		    run->lanes[i].predict.last_ns > res->predicted_ns)
			res->predicted_ns = run->lanes[i].predict.last_ns;
	}
	res->nr_over_memory = atomic_load(&run->budget.nr_refused);
	res->nr_pipes_broken = atomic_load(&run->pipes.nr_broken);
	flight_sum_up(run, res);
	res->elapsed_ns = last_ns - run->start_ns;
	if (!getrusage(RUSAGE_SELF, &usage)) {
		res->peak_memory_bytes = (uint64_t)usage.ru_maxrss << 10;
		res->cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
			      (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
	}
}

static int go_through(struct run *run, struct err *err)
{
	pthread_t loader, keeper;
	bool has_loader = false, has_keeper = false;
	uint32_t i;
	int r;

	r = start_threads(run, &loader, &keeper, &has_loader, &has_keeper);
	if (!r)
		let_go(run);
	wait_for_lanes(run, run->nr_started);
	bell_ring(&run->loader_bell);
	bell_ring(&run->keeper_bell);
	for (i = 0; i < run->nr_lanes; i++)
		if (run->lanes[i].created)
			(void)pthread_join(run->lanes[i].thread, NULL);
	if (has_loader)
		(void)pthread_join(loader, NULL);
	if (has_keeper)
		(void)pthread_join(keeper, NULL);
	sum_up(run);
	r = keeper_finish(run, err);
	if (r < 0)
		run_fail(run, r, "%s", err->text);
	return run->res->status;
}

/* Memory that must be there: for lanes, whose rings and readers are guessed, and slots. */
static int take_memory(struct run *run, struct err *err)
{
	uint64_t need = run->nr_lanes * (sizeof(*run->lanes) + lane_bytes(OUT_MIN_BYTES) +
					 LANE_OTHER_BYTES) +
			run->nr_slots * (sizeof(*run->slots) + sizeof(*run->pipes.items));
	struct buf words = { 0 };
	int r;

	run->budget.limit_bytes =
		run->o->max_memory_bytes ? run->o->max_memory_bytes : budget_default_bytes();
	run->res->max_memory_bytes = run->budget.limit_bytes;
	if (budget_take(&run->budget, need))
		return 0;
	buf_printf(&words, "%u lanes and %u slots need ", (unsigned int)run->nr_lanes,
		   (unsigned int)run->nr_slots);
	strings_put_bytes(&words, need);
	buf_puts(&words, " of memory, and the run may use ");
	strings_put_bytes(&words, run->budget.limit_bytes);
	r = err_set(err, -E2BIG, "%s (--max-memory)", buf_str(&words));
	buf_release(&words);
	return r;
}

static int prepare(struct run *run, const char *const *plans, unsigned int nr_plans,
		   const char *dir, struct outside *outside, struct err *err)
{
	int r;

	r = open_outside(run, outside, err);
	if (!r)
		r = open_plans(run, plans, nr_plans, err);
	if (!r)
		r = take_memory(run, err);
	if (!r)
		r = set_limits(run, err);
	if (!r)
		r = run->o->no_contain
			    ? contain_chroot(dir, &run->null_fd, err)
			    : contain_enter(dir, run->o->cross_mounts, &run->null_fd, err);
	if (r < 0)
		return r;
	run->memory_fd = contain_memory(run->budget.limit_bytes);
	if (stat("/", &run->root_stat) < 0)
		return err_set(err, -errno, "cannot look at %s", dir);
	make_slots(run);
	r = make_lanes(run, err);
	if (!r)
		r = run_memory_prepare(run, err);
	if (!r)
		r = limit_files(run, err);
	if (!r)
		r = open_output(run, outside, err);
	if (!r)
		r = loader_prepare(run, err);
	return r;
}

int run_perform_here(const char *const *plans, unsigned int nr_plans, const char *dir,
		     const struct run_options *o, struct run_result *res, struct err *err)
{
	struct outside outside = { .latency_fd = -1, .output_dir = -1 };
	struct run run = {
		.o = o, .res = res, .null_fd = -1, .fds_fd = -1, .drop_fd = -1, .memory_fd = -1
	};
	uint32_t i;
	int r;

	run.engine = engine_by_name(o->engine ? o->engine : "sys");
	if (!run.engine)
		return err_set(err, -EINVAL, "there is no engine '%s'", o->engine);
	run.scale = o->scale > 0 ? o->scale : 1;
	run.scale_compute = o->scale_compute > 0 ? o->scale_compute : 1;
	pthread_mutex_init(&run.err_mutex, NULL);
	set_signals();
	r = prepare(&run, plans, nr_plans, dir, &outside, err);
	if (!r) {
		sync_hub_init(&run.hub, run.nr_lanes, &res->stop);
		r = go_through(&run, err);
	} else if (run.writer) {
		trace_writer_abandon(run.writer);
	}
	attrs_close_fd(&run.memory_fd);
	if (run.lanes)
		loader_release(&run);
	for (i = 0; run.lanes && i < run.nr_lanes; i++)
		batch_free(run.lanes[i].batch);
	for (i = 0; run.lanes && i < run.nr_lanes; i++)
		if (run.lanes[i].memory.out)
			(void)munmap(run.lanes[i].memory.out,
				     lane_bytes(run.lanes[i].memory.out_bytes));
	run_memory_release(&run);
	for (i = 0; i < run.nr_plans; i++)
		plan_close(run.plans[i].plan);
	free(run.plans);
	pipes_release(&run);
	free(run.slots);
	free(run.lanes);
	free(outside.output_name);
	pthread_mutex_destroy(&run.err_mutex);
	return r;
}
