/* SPDX-License-Identifier: MIT */
/* The caller's side of a run: the process is started, watched and, at need, ended. */
#include "replay/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "plan/plan.h"
#include "replay/inside.h"
#include "replay/stall.h"

#define POLL_MS 20
#define FREE_PART 64
#define FREE_MAX_BYTES ((uint64_t)64 << 20)
#define TELL_NS (10 * NS_PER_S)
/* A process that was asked to end and does not is ended. */
#define GRACE_NS (3 * NS_PER_S)

static void *map_shared(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* How many lanes there will be: that much must be shared from the beginning. */
static int count_lanes(const char *const *plans, unsigned int nr_plans, uint64_t *ret,
		       struct err *err)
{
	unsigned int i;

	*ret = 0;
	for (i = 0; i < nr_plans; i++) {
		struct plan *p;
		int r = plan_open(plans[i], &p, err);

		if (r < 0)
			return r;
		*ret += plan_totals(p)->nr_lanes;
		plan_close(p);
	}
	return 0;
}

static int new_result(uint64_t nr_lanes, struct run_result **ret, struct err *err)
{
	uint64_t head = (sizeof(struct run_result) + 63) & ~UINT64_C(63);
	uint64_t bytes = head + nr_lanes * sizeof(struct run_lane_state);
	struct run_result *res = map_shared(bytes);

	if (!res)
		return err_set(err, -errno, "cannot get memory for %llu lanes",
			       (unsigned long long)nr_lanes);
	res->mapped_bytes = bytes;
	res->nr_lanes = (uint32_t)nr_lanes;
	res->lanes = (struct run_lane_state *)(void *)((uint8_t *)res + head);
	*ret = res;
	return 0;
}

void run_result_free(struct run_result *res)
{
	if (res)
		(void)munmap(res, res->mapped_bytes);
}

/* What the caller had open is not the run's business; its words go to stderr. */
static void close_inherited(void)
{
	int null = open("/dev/null", O_RDWR);

	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
	}
	(void)close_range(3, ~0U, 0);
}

static NORETURN void child(const char *const *plans, unsigned int nr_plans, const char *dir,
			   const struct run_options *o, struct run_result *res)
{
	struct err err = { "" };
	int r;

	close_inherited();
	r = run_perform_here(plans, nr_plans, dir, o, res, &err);
	if (r < 0 && !res->status) {
		res->status = r;
		res->err = err;
	}
	_exit(0);
}

/* What must be left of the target; both 0: all may be used. */
struct reserve {
	uint64_t bytes, files;
};

struct watch {
	const char *dir;
	struct reserve reserve;
	const struct run_options *o;
	const struct run_watcher *w;
	struct run_result *res;
	pid_t pid;
	uint64_t done_seen, moved_ns, told_ns, stopped_ns;
	struct stall stall;
	uint64_t nr_mismatches_told;
};

static uint64_t count_done(const struct run_result *res)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < res->nr_lanes; i++)
		sum += atomic_load_explicit(&res->lanes[i].nr_done, memory_order_relaxed);
	return sum;
}

static void ask_to_stop(struct watch *x, enum run_end why)
{
	uint32_t none = 0;

	atomic_compare_exchange_strong(&x->res->stop, &none, (uint32_t)why);
}

static void look_for_pause(struct watch *x, uint64_t now_ns)
{
	uint64_t done = count_done(x->res);

	if (!atomic_load(&x->res->began_ns) || done != x->done_seen || !x->moved_ns) {
		x->done_seen = done;
		x->moved_ns = x->told_ns = now_ns;
		return;
	}
	if (now_ns - x->told_ns >= TELL_NS && x->w->stalled) {
		x->told_ns = now_ns;
		x->w->stalled(x->w->arg, x->res, now_ns - x->moved_ns);
	}
}

static void set_reserve(struct watch *x)
{
	struct statvfs st;

	x->reserve.bytes = x->o->min_free_bytes;
	if (x->o->min_free_bytes != RUN_FREE_DEFAULT)
		return;
	x->reserve.bytes = 0;
	if (statvfs(x->dir, &st) < 0)
		return;
	x->reserve.bytes = (uint64_t)st.f_blocks / FREE_PART * st.f_frsize;
	if (x->reserve.bytes > FREE_MAX_BYTES)
		x->reserve.bytes = FREE_MAX_BYTES;
	x->reserve.files = (uint64_t)st.f_files / FREE_PART;
	/* What was scarce before the run is not its fault. */
	if ((uint64_t)st.f_bavail * st.f_frsize < 2 * x->reserve.bytes)
		x->reserve.bytes = (uint64_t)st.f_bavail * st.f_frsize / 2;
	if (st.f_favail < 2 * x->reserve.files)
		x->reserve.files = st.f_favail / 2;
}

static void look_for_space(struct watch *x)
{
	struct statvfs st;

	if ((!x->reserve.bytes && !x->reserve.files) || statvfs(x->dir, &st) < 0)
		return;
	if ((st.f_blocks && (uint64_t)st.f_bavail * st.f_frsize < x->reserve.bytes) ||
	    (st.f_files && st.f_favail < x->reserve.files))
		ask_to_stop(x, RUN_FULL);
}

static void tell_mismatches(struct watch *x)
{
	if (x->o->on_mismatch != RUN_MISMATCH_WARN || !x->w->mismatch)
		return;
	while (x->nr_mismatches_told < RUN_MISMATCHES_KEPT) {
		const struct run_mismatch *m = &x->res->mismatches[x->nr_mismatches_told];

		if (!atomic_load_explicit(&m->whole, memory_order_acquire))
			return;
		x->w->mismatch(x->w->arg, m);
		x->nr_mismatches_told++;
	}
}

static void look(struct watch *x)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (x->w->want_stop && x->w->want_stop(x->w->arg))
		ask_to_stop(x, RUN_INTERRUPTED);
	look_for_pause(x, now_ns);
	if (x->o->stall_ns && !atomic_load(&x->res->stop) &&
	    stall_look(&x->stall, x->res, x->pid, x->o->stall_ns, now_ns))
		ask_to_stop(x, RUN_STALLED);
	look_for_space(x);
	tell_mismatches(x);
	if (x->w->progress)
		x->w->progress(x->w->arg, x->res);
	if (!atomic_load(&x->res->stop))
		return;
	if (!x->stopped_ns)
		x->stopped_ns = now_ns;
	else if (now_ns - x->stopped_ns > GRACE_NS)
		(void)kill(x->pid, SIGKILL);
}

/* Until the process is gone; its wait status. */
static int watch_process(struct watch *x)
{
	int pidfd = (int)syscall(SYS_pidfd_open, x->pid, 0);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int status = 0;
	pid_t gone;

	/* Without a pidfd (-1 is ignored) it is found within POLL_MS. */
	do {
		(void)poll(&p, 1, POLL_MS);
		look(x);
		gone = waitpid(x->pid, &status, WNOHANG);
	} while (gone == 0 || (gone < 0 && errno == EINTR));
	if (pidfd >= 0)
		(void)close(pidfd);
	tell_mismatches(x);
	return status;
}

/* In the order of the trace. One that was not finished, its lane being killed, comes last. */
static int compare_mismatches(const void *a, const void *b)
{
	const struct run_mismatch *x = a, *y = b;
	uint32_t x_whole = atomic_load(&x->whole), y_whole = atomic_load(&y->whole);

	if (x_whole != y_whole)
		return x_whole ? -1 : 1;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->nr < y->nr ? -1 : x->nr > y->nr;
}

/* Lanes keep them when they come to it, which may be after the lanes that waited for them. */
static void sort_mismatches(struct run_result *res)
{
	uint64_t nr = atomic_load(&res->nr_mismatches);

	qsort(res->mismatches, nr < RUN_MISMATCHES_KEPT ? nr : RUN_MISMATCHES_KEPT,
	      sizeof(res->mismatches[0]), compare_mismatches);
}

static void conclude(struct run_result *res, int status)
{
	uint64_t began_ns = atomic_load(&res->began_ns);

	res->end = atomic_load(&res->stop);
	sort_mismatches(res);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return;
	/* What the lanes left is all there is. */
	res->nr_done = count_done(res);
	if (!res->elapsed_ns && began_ns)
		res->elapsed_ns = clock_monotonic_ns() - began_ns;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && res->end != RUN_COMPLETE)
		return; /* by us */
	res->end = RUN_DIED;
	res->status = -ECHILD;
	(void)err_set(&res->err, -EINVAL, "the process of the run died (%s %d)",
		      WIFSIGNALED(status) ? "signal" : "status",
		      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int run_perform(const char *const *plans, unsigned int nr_plans, const char *dir,
		const struct run_options *o, const struct run_watcher *w, struct run_result **ret,
		struct err *err)
{
	static const struct run_watcher nobody;
	struct watch x = { .o = o, .w = w ? w : &nobody };
	AUTO_FREE char *real = realpath(dir, NULL);
	uint64_t nr_lanes;
	int r;

	if (!real)
		return err_set(err, -errno, "cannot find %s", dir);
	r = count_lanes(plans, nr_plans, &nr_lanes, err);
	if (r < 0)
		return r;
	if (nr_lanes > UINT32_MAX)
		return err_set(err, -E2BIG, "the plans have too many lanes");
	r = new_result(nr_lanes, &x.res, err);
	if (r < 0)
		return r;
	x.dir = real;
	set_reserve(&x);
	x.pid = fork();
	if (x.pid < 0) {
		r = err_set(err, -errno, "cannot start the process of the run");
		run_result_free(x.res);
		return r;
	}
	if (!x.pid)
		child(plans, nr_plans, real, o, x.res);
	conclude(x.res, watch_process(&x));
	/* It never began: that is a failure and not a run. */
	if (x.res->status < 0 && !atomic_load(&x.res->began_ns)) {
		r = x.res->status;
		*err = x.res->err;
		run_result_free(x.res);
		return r;
	}
	*ret = x.res;
	return 0;
}
