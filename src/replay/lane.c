/* SPDX-License-Identifier: MIT */
/*
 * A lane at work. Per action, in this order: wait for the edges, wait for the
 * time, put in what slots hold, call, tell the others, look at the outcome, take
 * a note. Nothing here allocates, logs, or touches memory for the first time.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/batch.h"
#include "replay/flight.h"
#include "replay/inside.h"

/* Of a perturbed run: one action in so many is held up, by at most so much. */
#define PERTURB_ONE_IN 8
#define PERTURB_MAX_NS (300 * NS_PER_US)
/* How often a lane that waits for the loader looks at its requests in flight. */
#define ALOFT_POLL_NS NS_PER_MS

static bool has_aloft(const struct lane *l)
{
	return l->first_aloft != l->last_aloft;
}

static void release(struct lane *l)
{
	uint64_t pos = flight_release(l);

	atomic_store_explicit(&l->ring.tail, pos, memory_order_release);
	if (UNLIKELY(pos >= atomic_load_explicit(&l->ring.low, memory_order_relaxed))) {
		atomic_store_explicit(&l->ring.low, UINT64_MAX, memory_order_relaxed);
		bell_ring(&l->run->loader_bell);
	}
}

/* The loader is behind: tell it, and sleep. */
static void starve(struct lane *l)
{
	struct run *run = l->run;
	uint64_t begin_ns = ticker_now_ns(&run->ticker);

	lane_set_phase(l, RUN_LANE_LOAD);
	sync_sleep_begin(&run->hub);
	for (;;) {
		atomic_store(&l->ring.hungry, 1);
		if (atomic_load(&l->ring.head) != l->pos || atomic_load(&l->ring.ended) ||
		    run_is_stopped(run))
			break;
		bell_ring(&run->loader_bell);
		/* What is aloft may be in the way: its memory is given back as it lands. */
		sync_futex_wait(&l->ring.hungry, 1, has_aloft(l) ? ALOFT_POLL_NS : 0);
		if (has_aloft(l)) {
			flight_poll(l);
			release(l);
		}
	}
	atomic_store(&l->ring.hungry, 0);
	sync_sleep_end(&run->hub);
	l->sums.load_wait_ns += ticker_now_ns(&run->ticker) - begin_ns;
}

void lane_advance(struct lane *l, uint64_t pos)
{
	l->pos = pos;
	release(l);
}

static void advance(struct lane *l, const struct ready *a)
{
	bool big = a->flags & READY_BIG;

	lane_advance(l, l->pos + a->size);
	if (UNLIKELY(big))
		bell_ring(&l->run->loader_bell);
}

struct ready *lane_next(struct lane *l)
{
	for (;;) {
		struct ready *a = (struct ready *)(void *)(l->ring.base + l->pos % l->ring.size);

		if (l->pos == l->head_seen) {
			l->head_seen = atomic_load_explicit(&l->ring.head, memory_order_acquire);
			if (l->pos == l->head_seen) {
				/* Ended first: what it followed is then in head. */
				if (atomic_load(&l->ring.ended) &&
				    atomic_load(&l->ring.head) == l->pos)
					return NULL;
				starve(l);
				if (run_is_stopped(l->run))
					return NULL;
				continue;
			}
		}
		if (!(a->flags & READY_WRAP))
			return a;
		advance(l, a);
	}
}

/* ns that were waited; false when the run was stopped meanwhile. */
static bool wait_edges(struct lane *l, const struct ready *a, uint64_t *ret_ns)
{
	struct run *run = l->run;
	uint32_t i;

	for (i = 0; i < a->nr_edges; i++) {
		const struct run_edge *e = &a->edges[i];
		struct lane *other = &run->lanes[e->lane];
		struct sync_counter *c = e->started ? &other->started : &other->done;
		uint64_t begin_ns;

		if (LIKELY(sync_get(c) > e->nr))
			continue;
		begin_ns = ticker_now_ns(&run->ticker);
		atomic_store_explicit(&l->state->edge_lane, e->lane, memory_order_relaxed);
		atomic_store_explicit(&l->state->edge_nr, e->nr, memory_order_relaxed);
		lane_set_phase(l, RUN_LANE_EDGE);
		if (!sync_wait(c, e->nr + 1, &l->waiter, &run->hub))
			return false;
		*ret_ns += ticker_now_ns(&run->ticker) - begin_ns;
		l->sums.nr_edge_waits++;
	}
	return true;
}

/* A slot without a descriptor becomes a name that is not there. */
static void put_fd_path(char *where, int fd)
{
	char *p = where + FD_PATH_ROOM;

	if (fd < 0)
		*--p = '-';
	for (; fd > 0 || p == where + FD_PATH_ROOM; fd /= 10)
		*--p = (char)('0' + fd % 10);
	while (p > where + 1)
		*--p = '/';
	*where = '.';
}

static void put_slots(struct lane *l, const struct ready *a)
{
	uint32_t i;

	for (i = 0; i < a->nr_patches; i++) {
		const struct patch *p = &a->patches[i];
		const struct slot *s = &l->run->slots[p->slot];
		uint64_t u;
		int32_t fd;

		switch ((enum patch_kind)p->kind) {
		case PATCH_FD32:
			fd = atomic_load_explicit(&s->fd, memory_order_acquire);
			memcpy(p->where, &fd, sizeof(fd));
			break;
		case PATCH_FD64:
			u = (uint64_t)(int64_t)atomic_load_explicit(&s->fd, memory_order_acquire);
			memcpy(p->where, &u, sizeof(u));
			break;
		case PATCH_ADDR:
			u = atomic_load(&s->addr);
			if (u && p->offset < atomic_load(&s->len_bytes))
				u += p->offset;
			else
				u = 0;
			memcpy(p->where, &u, sizeof(u));
			break;
		case PATCH_CONTEXT:
			break;
		case PATCH_PATH:
			put_fd_path(p->where, atomic_load_explicit(&s->fd, memory_order_acquire));
			break;
		}
	}
}

static uint64_t next_random(struct lane *l)
{
	l->rng ^= l->rng << 13;
	l->rng ^= l->rng >> 7;
	l->rng ^= l->rng << 17;
	return l->rng;
}

static void perturb(struct lane *l)
{
	uint64_t n = next_random(l);

	if (n % PERTURB_ONE_IN == 0)
		ticker_wait_until(&l->run->ticker,
				  ticker_now_ns(&l->run->ticker) + (n >> 32) % PERTURB_MAX_NS);
}

/* When the action is due; 0: as soon as possible. */
static uint64_t deadline_of(const struct lane *l, const struct ready *a, uint64_t edge_wait_ns)
{
	const struct run *run = l->run;
	uint64_t due;

	if (run->o->speed == RUN_AFAP || (a->flags & READY_SEEN))
		return 0;
	if (run->o->speed == RUN_TIMED)
		return clock_add_ns(run->start_ns, a->enter_ns);
	if (!a->before_ns && !a->after_ns)
		return 0;
	due = clock_add_ns(l->sums.last_exit_ns, a->before_ns);
	if (edge_wait_ns) {
		uint64_t now = ticker_now_ns(&run->ticker);

		if (due < now)
			due = now;
	}
	return clock_add_ns(due, a->after_ns);
}

/* Long waits look up now and then, so that a run can be stopped. */
static void wait_deadline(struct lane *l, uint64_t deadline_ns)
{
	const struct ticker *t = &l->run->ticker;
	uint64_t now = ticker_now_ns(t);
	uint64_t begin_ns = now;
	bool sleeps = deadline_ns > now && deadline_ns - now > 2 * t->spin_ns;

	if (deadline_ns <= now)
		return;
	lane_set_phase(l, RUN_LANE_TIME);
	if (sleeps)
		sync_sleep_begin(&l->run->hub);
	while (deadline_ns > now && deadline_ns - now > 100 * NS_PER_MS &&
	       !run_is_stopped(l->run)) {
		ticker_wait_until(t, now + 50 * NS_PER_MS);
		now = ticker_now_ns(t);
	}
	if (!run_is_stopped(l->run))
		ticker_wait_until(t, deadline_ns);
	if (sleeps)
		sync_sleep_end(&l->run->hub);
	l->sums.deadline_wait_ns += ticker_now_ns(t) - begin_ns;
}

/* Where the next note goes. Waits while the keeper is behind. */
static struct note *next_note(struct lane *l)
{
	struct notes *n = &l->notes;
	uint64_t head = atomic_load_explicit(&n->head, memory_order_relaxed);

	if (UNLIKELY(head == n->limit)) {
		uint64_t begin_ns = ticker_now_ns(&l->run->ticker);

		lane_set_phase(l, RUN_LANE_NOTE);
		sync_sleep_begin(&l->run->hub);
		for (;;) {
			atomic_store(&n->full, 1);
			n->limit = atomic_load(&n->tail) + n->size;
			if (head != n->limit)
				break;
			bell_ring(&l->run->keeper_bell);
			/* The keeper ends only after the lanes: it will come. */
			sync_futex_wait(&n->full, 1, 10 * NS_PER_MS);
		}
		atomic_store(&n->full, 0);
		sync_sleep_end(&l->run->hub);
		l->sums.note_wait_ns += ticker_now_ns(&l->run->ticker) - begin_ns;
	}
	return &n->items[head % n->size];
}

static void push_note(struct lane *l)
{
	struct notes *n = &l->notes;
	uint64_t head = atomic_load_explicit(&n->head, memory_order_relaxed) + 1;

	atomic_store_explicit(&n->head, head, memory_order_release);
	if (UNLIKELY(head == n->tell_at)) {
		n->tell_at = head + n->size / 2;
		bell_ring(&l->run->keeper_bell);
	}
}

static void fill_note(struct note *n, const struct ready *a, const struct outcome *got)
{
	n->seq = a->seq;
	n->original_ns = a->original_ns;
	n->ret = got->ret;
	n->err = got->err;
	n->row_id = a->row_id;
	n->pid = a->pid;
	n->tid = a->tid;
	n->flags = (uint16_t)((a->fn && !(a->flags & READY_SKIPPED) ? NOTE_MADE : 0) |
			      (a->flags & READY_SEEN ? NOTE_PLAN : 0) |
			      (a->flags & READY_UNBUILT ? NOTE_UNBUILT : 0) |
			      (a->flags & READY_SETUP ? NOTE_SETUP : 0) |
			      (a->flags & READY_STREAM ? NOTE_STREAM : 0) |
			      (a->flags & READY_ENFORCED ? NOTE_ENFORCED : 0));
}

/* The lane's cwd is its own (set_up()), so that nobody else sees it moved. */
static void call_from_fds(struct lane *l, struct ready *a, struct outcome *got)
{
	int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (cwd < 0 || fchdir(l->run->fds_fd) < 0) {
		run_fail(l->run, -errno, "cannot look through descriptors");
		*got = a->expected;
	} else {
		a->fn(l, a, got);
		if (fchdir(cwd) < 0)
			run_fail(l->run, -errno, "cannot go back to the cwd of lane %u",
				 (unsigned int)l->number);
	}
	if (cwd >= 0)
		(void)close(cwd);
}

void lane_conclude(struct lane *l, const struct ready *a, const struct outcome *got, uint64_t nr,
		   const struct lane_times *t)
{
	struct note *note = next_note(l);

	atomic_store_explicit(&l->state->nr_done, nr + 1, memory_order_relaxed);
	l->sums.last_exit_ns = t->exit_ns;
	l->sums.nr_setup += (a->flags & READY_SETUP) != 0;
	fill_note(note, a, got);
	note->enter_ns = t->enter_ns;
	note->exit_ns = t->exit_ns;
	note->edge_wait_ns = t->edge_wait_ns;
	note->late_ns = 0;
	if (t->deadline_ns) {
		note->flags |= NOTE_TIMED;
		note->late_ns = clock_sub_ns(t->enter_ns, t->deadline_ns);
	}
	if (a->flags & READY_VERIFY) {
		check_outcome(l, a, got, nr, note);
		if ((a->flags & READY_RESULT) && !(note->flags & NOTE_MISMATCH))
			check_result(l, a, got, nr, note);
	}
	if (UNLIKELY(l->odd.is_set))
		check_odd(l, a, nr, note);
	push_note(l);
}

/*
 * The parts of a listing add up in the slot of the directory, and the check of its end reads what
 * is left there: other lanes may not be at the next part, nor change the directory, before that.
 */
static bool is_of_listing(const struct ready *a)
{
	return a->row_id == SC_getdents64 || a->row_id == SC_getdents || a->row_id == SC_lseek;
}

static bool perform(struct lane *l, struct ready *a, uint64_t nr)
{
	struct run *run = l->run;
	struct lane_times t = { 0 };
	struct outcome got;

	atomic_store_explicit(&l->state->seq, a->seq, memory_order_relaxed);
	atomic_store_explicit(&l->state->row_id, a->row_id, memory_order_relaxed);
	if (UNLIKELY(run->o->perturb_seed))
		perturb(l);
	if (a->nr_edges && !wait_edges(l, a, &t.edge_wait_ns))
		return false;
	if (UNLIKELY(has_aloft(l)) && a->fn && row_class(row_by_id(a->row_id)) != C_URING &&
	    row_class(row_by_id(a->row_id)) != C_AIO)
		flight_settle(l, a);
	t.deadline_ns = deadline_of(l, a, t.edge_wait_ns);
	if (t.deadline_ns) {
		wait_deadline(l, t.deadline_ns);
		if (run_is_stopped(run))
			return false;
	}
	put_slots(l, a);
	predict_begin(l, a, nr);
	if (run->has_started_edges)
		sync_set(&l->started, nr + 1);
	lane_set_phase(l, RUN_LANE_CALL);
	t.enter_ns = ticker_now_ns(&run->ticker);
	if (UNLIKELY(a->flags & READY_FROM_FDS))
		call_from_fds(l, a, &got);
	else if (a->fn)
		a->fn(l, a, &got);
	else
		got = a->expected;
	t.exit_ns = ticker_now_ns(&run->ticker);
	if (UNLIKELY(got.err == EINTR) && run_is_stopped(run))
		return false; /* by us */
	predict_end(l, nr, t.exit_ns - t.enter_ns);
	if (UNLIKELY(is_of_listing(a))) {
		lane_conclude(l, a, &got, nr, &t);
		sync_set(&l->done, nr + 1);
	} else {
		sync_set(&l->done, nr + 1);
		lane_conclude(l, a, &got, nr, &t);
	}
	return true;
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;
	uint64_t ns;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) < 0 || clock_ns_from_timespec(&ts, &ns) < 0)
		return 0;
	return ns;
}

static void work(struct lane *l)
{
	uint64_t nr = 0, cpu_ns = thread_cpu_ns();
	struct ready *a;

	while (!run_is_stopped(l->run) && (a = lane_next(l))) {
		uint64_t n = l->batch ? batch_perform(l, a, nr) : 0;

		nr += n;
		if (n)
			continue;
		if (!perform(l, a, nr))
			break;
		nr++;
		advance(l, a);
	}
	flight_drain(l);
	l->sums.nr_done = nr;
	l->sums.cpu_ns = thread_cpu_ns() - cpu_ns;
}

/* Its own cwd, root and umask; the shortest timers; its core. */
static bool set_up(struct lane *l)
{
	struct run *run = l->run;
	cpu_set_t cpus;
	int r;

	if (unshare(CLONE_FS) < 0) {
		run_fail(run, -errno, "cannot give lane %u a cwd of its own",
			 (unsigned int)l->number);
		return false;
	}
	(void)prctl(PR_SET_TIMERSLACK, 1UL); /* where it is not heard, lateness will show it */
	if (run->o->batch_reads && !run->o->perturb_seed && run->engine->gives_back) {
		struct batch *b = batch_new(l, &r);

		if (!b) {
			run_fail(run, -r,
				 "cannot batch reads: the kernel gives lane %u no io_uring",
				 (unsigned int)l->number);
			return false;
		}
		atomic_store(&l->batch, b);
	}
	if (run->o->pin) {
		CPU_ZERO(&cpus);
		CPU_SET(l->number % run->hub.nr_cpus, &cpus);
		(void)sched_setaffinity(0, sizeof(cpus), &cpus); /* a wish */
	}
	return true;
}

/* Prologues go first, and alone. */
static bool wait_to_go(struct lane *l)
{
	struct run *run = l->run;
	uint32_t go, wanted = lane_is_prologue(l) ? RUN_GO_PROLOGUES : RUN_GO_ALL;

	while ((go = atomic_load(&run->go)) < wanted && !run_is_stopped(run))
		sync_futex_wait(&run->go, go, 0);
	return go >= wanted;
}

void *lane_main(void *arg)
{
	struct lane *l = arg;
	struct run *run = l->run;
	bool ready;

	atomic_store_explicit(&l->state->tid, gettid(), memory_order_relaxed);
	ready = set_up(l);
	atomic_fetch_add(&run->nr_set_up, 1);
	sync_futex_wake(&run->nr_set_up);
	if (wait_to_go(l) && ready) {
		l->sums.last_exit_ns = run->start_ns;
		work(l);
	}
	lane_set_phase(l, RUN_LANE_ENDED);
	sync_sleep_begin(&run->hub);
	atomic_fetch_add(&run->nr_ended, 1);
	sync_futex_wake(&run->nr_ended);
	return NULL;
}
