/* SPDX-License-Identifier: MIT */
/*
 * The submitter: what is due goes into the ring, together with what is due soon
 * after it, and completions come out. Nothing here allocates in the end, prints
 * or waits for anybody but the clock, the ring and, if it is behind, the loader.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/mem.h"
#include "replay/blk_inside.h"

#define NONE UINT64_MAX
/* Of an entry whose completion means nothing by itself: the flush before a write. */
#define NOT_COUNTED UINT64_MAX
/* So few in flight trouble no device. */
#define LIMIT_MIN 8
#define SLEEP_MAX_NS (100 * NS_PER_MS)
#define CQES_MAX 256

struct ready {
	uint64_t due_ns, index;
};

struct pace {
	struct blk_run *run;
	const struct blk_run_options *o;
	struct blk_window *w;
	struct io_uring ring;
	bool ring_open, registered_buffers, registered_files;
	uint64_t next; /* in the order of the trace: the first that was not started */
	uint64_t admitted; /* think: requests whose parents are known */
	uint64_t tail;
	uint64_t in_flight;
	uint64_t latest; /* index + 1 of the latest that was started */
	VEC(struct ready) heap; /* think: all parents are complete */
	uint64_t spin_ns;
	bool stopping;
	int latency_fd;
};

/* Setting up. */

static int open_ring(struct pace *p, struct err *err)
{
	struct io_uring_params params = { .flags = IORING_SETUP_CQSIZE };
	unsigned int entries = 64;
	int r;

	while (entries < 4096 && entries < 2 * p->run->depth + 2)
		entries *= 2;
	params.cq_entries = entries;
	while (params.cq_entries < 65536 && params.cq_entries < 4 * p->run->depth)
		params.cq_entries *= 2;
	if (p->o->poll)
		params.flags |= IORING_SETUP_IOPOLL;
	else
		params.flags |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
				IORING_SETUP_TASKRUN_FLAG;
	r = io_uring_queue_init_params(entries, &p->ring, &params);
	if (r == -EINVAL && !p->o->poll) { /* an older kernel */
		params = (struct io_uring_params){ .flags = IORING_SETUP_CQSIZE,
						   .cq_entries = params.cq_entries };
		r = io_uring_queue_init_params(entries, &p->ring, &params);
	}
	if (r < 0)
		return err_set(err, r, "cannot set up an io_uring");
	p->ring_open = true;
	return 0;
}

/* Both spare the kernel work for each request, and neither is needed: a limit may forbid them. */
static void register_all(struct pace *p)
{
	struct blk_run *run = p->run;
	struct iovec iov = { run->data.base, run->data.base_bytes };
	int *fds = xcalloc(run->nr_targets, sizeof(*fds));

	for (uint32_t i = 0; i < run->nr_targets; i++)
		fds[i] = run->targets[i].fd;
	p->registered_files = !io_uring_register_files(&p->ring, fds, run->nr_targets);
	p->registered_buffers = !io_uring_register_buffers(&p->ring, &iov, 1);
	run->res->registered = p->registered_files && p->registered_buffers;
	free(fds);
}

/* What is ready. */

static void push_ready(struct pace *p, uint64_t due_ns, uint64_t index)
{
	struct ready e = { due_ns, index };
	size_t at = p->heap.len;

	VEC_PUSH(&p->heap, e);
	while (at) {
		struct ready *up = &p->heap.items[(at - 1) / 2];

		if (up->due_ns < due_ns || (up->due_ns == due_ns && up->index < index))
			break;
		p->heap.items[at] = *up;
		at = (at - 1) / 2;
	}
	p->heap.items[at] = e;
}

static bool ready_is_before(const struct ready *a, const struct ready *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->index < b->index;
}

static void pop_ready(struct pace *p)
{
	struct ready *h = p->heap.items, last = h[--p->heap.len];
	size_t nr = p->heap.len, at = 0, child;

	while ((child = 2 * at + 1) < nr) {
		if (child + 1 < nr && ready_is_before(&h[child + 1], &h[child]))
			child++;
		if (!ready_is_before(&h[child], &last))
			break;
		h[at] = h[child];
		at = child;
	}
	if (nr)
		h[at] = last;
}

/* When the child may start by this parent: never before that is complete. */
static uint64_t child_due(const struct pace *p, const struct blk_slot *parent, uint64_t think_ns)
{
	double took = (double)(parent->end_ns - parent->start_ns);
	double due = (double)parent->start_ns + took * p->o->scale_storage +
		     (double)think_ns * p->o->scale_server;

	return due > (double)parent->end_ns ? (uint64_t)due : parent->end_ns;
}

static void admit_one(struct pace *p, uint64_t index)
{
	struct blk_slot *s = blk_slot(p->w, index);

	/* Who waits for nobody starts at its own time: there is nothing else to go by. */
	s->ready_ns = p->run->start_ns;
	if (!s->nr_edges)
		s->ready_ns += (uint64_t)((double)s->issue_ns * p->o->scale_server);
	for (uint64_t i = s->first_edge; i < s->first_edge + s->nr_edges; i++) {
		struct blk_edge *e = &p->w->edges[i & (BLK_EDGES - 1)];
		struct blk_slot *parent = blk_slot(p->w, e->parent);

		if (e->parent < p->tail && p->tail - e->parent > BLK_KEPT) {
			p->run->res->nr_parents_lost++;
		} else if (parent->done) {
			uint64_t due = child_due(p, parent, e->think_ns);

			s->ready_ns = due > s->ready_ns ? due : s->ready_ns;
		} else {
			e->next = parent->first_child;
			parent->first_child = (i & (BLK_EDGES - 1)) + 1;
			s->parents_left++;
		}
	}
	if (!s->parents_left)
		push_ready(p, s->ready_ns, index);
}

static void admit(struct pace *p)
{
	/* Pairs with the loader's. */
	uint64_t loaded = atomic_load_explicit(&p->w->loaded, memory_order_acquire);

	for (; p->admitted < loaded; p->admitted++)
		admit_one(p, p->admitted);
}

static void release_children(struct pace *p, struct blk_slot *s)
{
	while (s->first_child) {
		const struct blk_edge *e = &p->w->edges[s->first_child - 1];
		struct blk_slot *child = blk_slot(p->w, e->child);
		uint64_t due = child_due(p, s, e->think_ns);

		child->ready_ns = due > child->ready_ns ? due : child->ready_ns;
		s->first_child = e->next;
		if (!--child->parents_left)
			push_ready(p, child->ready_ns, e->child);
	}
}

static void finish(struct pace *p, struct blk_slot *s, uint64_t now_ns, int32_t result)
{
	s->result = result;
	s->end_ns = now_ns > s->start_ns ? now_ns : s->start_ns;
	release_children(p, s);
	s->done = true;
}

/* What lies before the first that is not done is over. */
static void move_tail(struct pace *p)
{
	uint64_t end = p->o->mode == BLK_MODE_THINK ? p->admitted : p->next, edges = 0;
	uint64_t from = p->tail;

	while (p->tail < end && blk_slot(p->w, p->tail)->done) {
		const struct blk_slot *s = blk_slot(p->w, p->tail++);

		edges = s->first_edge + s->nr_edges;
	}
	if (p->tail == from)
		return;
	/* Pairs with the loader's: it may use them again. */
	atomic_store_explicit(&p->w->edges_free, edges, memory_order_release);
	atomic_store_explicit(&p->w->tail, p->tail, memory_order_release);
}

/* Starting. */

static struct io_uring_sqe *get_sqe(struct pace *p)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&p->ring);

	while (!sqe) {
		p->run->res->nr_submits++;
		(void)io_uring_submit(
			&p->ring); /* what fails shows in its completion, or is tried again */
		sqe = io_uring_get_sqe(&p->ring);
	}
	return sqe;
}

static void put_file(struct pace *p, struct io_uring_sqe *sqe, uint32_t target)
{
	if (p->registered_files) {
		sqe->fd = (int)target;
		sqe->flags |= IOSQE_FIXED_FILE;
	} else {
		sqe->fd = p->run->targets[target].fd;
	}
}

static void put_flush_before(struct pace *p, const struct blk_slot *s)
{
	struct io_uring_sqe *sqe;

	/* Both must be in one submission, or they are not linked. */
	if (io_uring_sq_space_left(&p->ring) < 2) {
		p->run->res->nr_submits++;
		(void)io_uring_submit(&p->ring);
	}
	sqe = get_sqe(p);
	io_uring_prep_fsync(sqe, 0, IORING_FSYNC_DATASYNC);
	put_file(p, sqe, s->target);
	sqe->flags |= IOSQE_IO_LINK;
	io_uring_sqe_set_data64(sqe, NOT_COUNTED);
}

static void put_write(struct pace *p, struct io_uring_sqe *sqe, const struct blk_slot *s)
{
	unsigned int len = (unsigned int)s->length_bytes;

	if (s->data)
		io_uring_prep_write(sqe, 0, s->data, len, s->offset_bytes);
	else if (p->registered_buffers)
		io_uring_prep_write_fixed(sqe, 0, blk_data_filler(&p->run->data, len), len,
					  s->offset_bytes, 0);
	else
		io_uring_prep_write(sqe, 0, blk_data_filler(&p->run->data, len), len,
				    s->offset_bytes);
	if (s->flags & BLK_FLAG_FUA)
		sqe->rw_flags = RWF_DSYNC;
}

static void put_request(struct pace *p, const struct blk_slot *s, uint64_t index)
{
	struct io_uring_sqe *sqe;

	if (s->flags & BLK_FLAG_FLUSH && s->op != BLK_FLUSH && s->op != BLK_READ)
		put_flush_before(p, s);
	sqe = get_sqe(p);
	switch ((enum blk_op)s->op) {
	case BLK_READ:
		if (p->registered_buffers)
			io_uring_prep_read_fixed(sqe, 0, p->run->data.sink,
						 (unsigned int)s->length_bytes, s->offset_bytes, 0);
		else
			io_uring_prep_read(sqe, 0, p->run->data.sink, (unsigned int)s->length_bytes,
					   s->offset_bytes);
		break;
	case BLK_WRITE:
	case BLK_ZONE_APPEND:
		put_write(p, sqe, s);
		break;
	case BLK_DISCARD:
	case BLK_SECURE_ERASE:
		io_uring_prep_fallocate(sqe, 0, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)s->offset_bytes, (off_t)s->length_bytes);
		break;
	case BLK_WRITE_ZEROES:
		io_uring_prep_fallocate(sqe, 0, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
					(off_t)s->offset_bytes, (off_t)s->length_bytes);
		break;
	default:
		io_uring_prep_fsync(sqe, 0, IORING_FSYNC_DATASYNC);
		break;
	}
	put_file(p, sqe, s->target);
	io_uring_sqe_set_data64(sqe, index);
}

static void start(struct pace *p, uint64_t index, uint64_t now_ns)
{
	struct blk_slot *s = blk_slot(p->w, index);

	s->start_ns = now_ns;
	if (index + 1 > p->latest)
		p->latest = index + 1;
	else
		p->run->res->nr_reordered++;
	if (s->fate != BLK_MAKE) {
		finish(p, s, now_ns, 0);
		return;
	}
	put_request(p, s, index);
	if (++p->in_flight > p->run->res->in_flight_max)
		p->run->res->in_flight_max = p->in_flight;
}

/* Completions. */

static void take_completions(struct pace *p)
{
	struct io_uring_cqe *cqes[CQES_MAX];
	unsigned int nr, i;
	uint64_t now_ns;

	while ((nr = io_uring_peek_batch_cqe(&p->ring, cqes, CQES_MAX)) > 0) {
		now_ns = ticker_now_ns(&p->run->ticker);
		for (i = 0; i < nr; i++) {
			uint64_t index = io_uring_cqe_get_data64(cqes[i]);

			if (index == NOT_COUNTED)
				continue;
			p->in_flight--;
			finish(p, blk_slot(p->w, index), now_ns, cqes[i]->res);
		}
		io_uring_cq_advance(&p->ring, nr);
	}
	move_tail(p);
}

/* Lets the kernel hand over what is complete, if it has something. */
static bool look(struct pace *p)
{
	unsigned int flags = __atomic_load_n(p->ring.sq.kflags, __ATOMIC_RELAXED);

	if (io_uring_cq_ready(&p->ring))
		return true;
	if (p->o->poll || flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW))
		(void)io_uring_get_events(&p->ring); /* there is something or there is not */
	return io_uring_cq_ready(&p->ring) > 0;
}

/* What is next. */

static uint64_t next_index(struct pace *p)
{
	if (p->o->mode == BLK_MODE_THINK)
		return p->heap.len ? p->heap.items[0].index : NONE;
	/* Pairs with the loader's. */
	return p->next < atomic_load_explicit(&p->w->loaded, memory_order_acquire) ? p->next : NONE;
}

static uint64_t due_of(const struct pace *p, struct blk_slot *s, uint64_t now_ns)
{
	switch (p->o->mode) {
	case BLK_MODE_TIMED:
		return s->ready_ns =
			       p->run->start_ns + (uint64_t)((double)s->issue_ns * p->o->scale);
	case BLK_MODE_THINK:
		return s->ready_ns;
	default:
		return s->ready_ns = now_ns;
	}
}

static uint64_t power_of_two(uint64_t v)
{
	return v > 1 ? (uint64_t)1 << (64 - __builtin_clzll(v - 1)) : 1;
}

/* How many may be in flight when this one is started, without it. */
static uint64_t limit_of(const struct pace *p, const struct blk_slot *s)
{
	uint64_t limit = p->run->depth, traced = s->traced_in_flight;

	if (!s->known_end)
		return limit - 1;
	/*
	 * Rounded up: what was late may catch up a little, and not all at once. By
	 * the peak of what came before, for a moment in which little was in flight is
	 * no reason to wait.
	 */
	if (p->o->mode == BLK_MODE_TIMED && !p->o->depth)
		traced = power_of_two(s->traced_peak > LIMIT_MIN ? s->traced_peak : LIMIT_MIN);
	else if (p->o->mode != BLK_MODE_LOAD)
		return limit - 1;
	return (traced < limit ? traced : limit) - 1;
}

enum why { WHY_DUE, WHY_TIME, WHY_LIMIT, WHY_LOADER, WHY_FLIGHT, WHY_ENDED };

/* Starts what is due, at most a bundle. Tells what the next has to wait for, and for a time until when. */
static enum why start_due(struct pace *p, uint64_t *ret_due_ns)
{
	uint64_t now_ns = ticker_now_ns(&p->run->ticker), horizon_ns = now_ns;
	uint32_t nr = 0;

	while (!p->stopping && nr < p->o->bundle_max) {
		uint64_t index = next_index(p);
		struct blk_slot *s;

		if (index == NONE)
			break;
		s = blk_slot(p->w, index);
		*ret_due_ns = due_of(p, s, now_ns);
		if (*ret_due_ns > horizon_ns)
			return nr ? WHY_DUE : WHY_TIME;
		if (s->fate == BLK_MAKE && p->in_flight > limit_of(p, s))
			return nr ? WHY_DUE : WHY_LIMIT;
		if (s->fate == BLK_MAKE && limit_of(p, s) + 1 > p->run->res->limit_max)
			p->run->res->limit_max = limit_of(p, s) + 1;
		if (!nr && *ret_due_ns + p->o->bundle_ns > horizon_ns)
			horizon_ns = *ret_due_ns + p->o->bundle_ns;
		if (p->o->mode == BLK_MODE_THINK)
			pop_ready(p);
		else
			p->next++;
		start(p, index, now_ns);
		nr++;
	}
	if (nr)
		return WHY_DUE;
	if (p->in_flight)
		return p->stopping || p->o->mode == BLK_MODE_THINK ? WHY_FLIGHT : WHY_LOADER;
	return p->stopping ? WHY_ENDED : WHY_LOADER;
}

static int submit(struct pace *p, struct err *err)
{
	while (io_uring_sq_ready(&p->ring)) {
		int r = io_uring_submit(&p->ring);

		p->run->res->nr_submits++;
		if (r == -EAGAIN || r == -EBUSY || r == -EINTR) {
			(void)look(p);
			take_completions(p);
			continue;
		}
		if (r < 0)
			return err_set(err, r, "cannot submit requests");
	}
	return 0;
}

/* Waiting. */

static void sleep_until_event(struct pace *p, uint64_t ns)
{
	struct io_uring_cqe *cqe;
	struct __kernel_timespec ts;

	if (ns > SLEEP_MAX_NS)
		ns = SLEEP_MAX_NS;
	ts = (struct __kernel_timespec){ .tv_sec = 0, .tv_nsec = (long long)ns };
	if (p->o->poll && p->in_flight)
		(void)look(p); /* a polled ring does not wake anybody */
	else
		(void)io_uring_wait_cqe_timeout(&p->ring, &cqe, &ts); /* an event or the time */
}

static void spin_until(struct pace *p, uint64_t deadline_ns)
{
	while (ticker_now_ns(&p->run->ticker) < deadline_ns && !look(p))
		ticker_relax();
}

static void wait_for(struct pace *p, enum why why, uint64_t due_ns)
{
	uint64_t now_ns = ticker_now_ns(&p->run->ticker), after_ns;

	switch (why) {
	case WHY_TIME:
		if (due_ns > now_ns + p->spin_ns)
			sleep_until_event(p, due_ns - now_ns - p->spin_ns);
		else
			spin_until(p, due_ns);
		return;
	case WHY_LIMIT:
	case WHY_FLIGHT:
		/* What comes soon is met awake: a wake-up takes longer than many a request. */
		if (p->o->mode == BLK_MODE_THINK || p->o->mode == BLK_MODE_TIMED)
			spin_until(p, now_ns + p->spin_ns);
		if (!io_uring_cq_ready(&p->ring))
			sleep_until_event(p, SLEEP_MAX_NS);
		break;
	default:
		sleep_until_event(p, 100 * NS_PER_US);
		break;
	}
	after_ns = ticker_now_ns(&p->run->ticker);
	if (why == WHY_LIMIT)
		p->run->res->limit_wait_ns += after_ns - now_ns;
	else if (why == WHY_LOADER)
		p->run->res->load_wait_ns += after_ns - now_ns;
}

/* Whether all that there is has been done. */
static bool is_over(struct pace *p)
{
	/* Pairs with the loader's: `loaded` is final when it has ended. */
	return atomic_load_explicit(&p->w->ended, memory_order_acquire) && !p->in_flight &&
	       p->tail == atomic_load_explicit(&p->w->loaded, memory_order_acquire);
}

static int loop(struct pace *p, struct err *err)
{
	uint64_t due_ns = 0;
	enum why why;
	int r;

	for (;;) {
		(void)look(p);
		take_completions(p);
		if (p->o->mode == BLK_MODE_THINK)
			admit(p);
		why = start_due(p, &due_ns);
		r = submit(p, err);
		if (r < 0)
			return r;
		if (why == WHY_DUE)
			continue;
		move_tail(p);
		r = atomic_load_explicit(&p->w->status, memory_order_acquire);
		if (r < 0)
			p->stopping = true; /* the caller has its words */
		if (why == WHY_ENDED || is_over(p))
			return 0;
		if (p->run->watcher->want_stop(p->run->watcher->arg))
			p->run->res->interrupted = p->stopping = true;
		wait_for(p, why, due_ns);
	}
}

/* The whole. */

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
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

static void wait_for_loader(struct pace *p)
{
	while (!atomic_load_explicit(&p->w->ended, memory_order_acquire) &&
	       !atomic_load_explicit(&p->w->status, memory_order_acquire) &&
	       !atomic_load_explicit(&p->w->full, memory_order_acquire)) {
		struct timespec ts = { .tv_nsec = 1000000 };

		(void)nanosleep(&ts, NULL);
	}
}

int blk_pace(struct blk_run *run, struct err *err)
{
	struct pace p = { .run = run, .o = run->o, .w = &run->window, .latency_fd = -1 };
	uint64_t cpu_ns;
	int r = open_ring(&p, err);

	if (!r) {
		register_all(&p);
		(void)prctl(PR_SET_TIMERSLACK,
			    1UL); /* where it is not heard, lateness will show it */
		p.latency_fd = hold_latency();
		ticker_init(&run->ticker);
		p.spin_ns = run->ticker.spin_ns;
		wait_for_loader(&p);
		cpu_ns = thread_cpu_ns();
		run->start_ns = ticker_now_ns(&run->ticker);
		r = loop(&p, err);
		run->res->cpu_ns = thread_cpu_ns() - cpu_ns;
	}
	if (p.latency_fd >= 0)
		(void)close(p.latency_fd);
	if (p.ring_open)
		io_uring_queue_exit(&p.ring);
	VEC_RELEASE(&p.heap);
	return r;
}
