/* SPDX-License-Identifier: MIT */
#include "replay/batch.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/calls.h"

#define BATCH_MAX 128
#define BATCH_MIN 4 /* fewer gain nothing */
#define READ_MAX_BYTES ((uint64_t)64 << 10)
#define NR_FILES 16 /* that a ring has registered */
#define REGISTER_AT 8 /* reads of a batch that make a file worth registering */

struct batch {
	int ring_fd;
	void *rings;
	size_t rings_bytes;
	struct io_uring_sqe *sqes;
	size_t sqes_bytes;
	_Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
	uint32_t *sq_array;
	uint32_t sq_mask, cq_mask;
	const struct io_uring_cqe *cqes;
	bool has_buffer, has_files;
	pthread_mutex_t files_mutex; /* of files[], against who closes */
	uint32_t files[NR_FILES]; /* 1 + the slot that is registered there; 0: none */
	/* Of the present batch. */
	struct ready *actions[BATCH_MAX];
	int32_t results[BATCH_MAX];
	uint32_t nr;
	uint64_t end_pos; /* of the lane's ring: behind the last action */
	uint64_t out_used;
};

static int map_rings(struct batch *b, const struct io_uring_params *p)
{
	size_t sq_bytes = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	size_t cq_bytes = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	uint8_t *base;

	if (!(p->features & IORING_FEAT_SINGLE_MMAP))
		return -ENOSYS;
	b->rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
	base = mmap(NULL, b->rings_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		    b->ring_fd, IORING_OFF_SQ_RING);
	if (base == MAP_FAILED)
		return -errno;
	b->rings = base;
	b->sqes_bytes = p->sq_entries * sizeof(*b->sqes);
	b->sqes = mmap(NULL, b->sqes_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		       b->ring_fd, IORING_OFF_SQES);
	if (b->sqes == MAP_FAILED) {
		b->sqes = NULL;
		return -errno;
	}
	b->sq_tail = (_Atomic uint32_t *)(void *)(base + p->sq_off.tail);
	b->sq_array = (uint32_t *)(void *)(base + p->sq_off.array);
	b->sq_mask = *(uint32_t *)(void *)(base + p->sq_off.ring_mask);
	b->cq_head = (_Atomic uint32_t *)(void *)(base + p->cq_off.head);
	b->cq_tail = (_Atomic uint32_t *)(void *)(base + p->cq_off.tail);
	b->cq_mask = *(uint32_t *)(void *)(base + p->cq_off.ring_mask);
	b->cqes = (const struct io_uring_cqe *)(void *)(base + p->cq_off.cqes);
	return 0;
}

/* Both are wishes: a user may lock only so much memory, and old kernels know no empty tables. */
static void register_all(struct batch *b, const struct lane_memory *m)
{
	struct iovec iov = { m->out, m->out_bytes };
	int32_t none[NR_FILES];
	int i;

	for (i = 0; i < NR_FILES; i++)
		none[i] = -1;
	b->has_buffer =
		!syscall(SYS_io_uring_register, b->ring_fd, IORING_REGISTER_BUFFERS, &iov, 1U);
	b->has_files = !syscall(SYS_io_uring_register, b->ring_fd, IORING_REGISTER_FILES, none,
				(unsigned int)NR_FILES);
}

struct batch *batch_new(struct lane *l, int *ret_errno)
{
	struct io_uring_params p = { 0 };
	struct batch *b = xcalloc(1, sizeof(*b));
	int r;

	pthread_mutex_init(&b->files_mutex, NULL);
	b->ring_fd = (int)syscall(SYS_io_uring_setup, (unsigned int)BATCH_MAX, &p);
	r = b->ring_fd < 0 ? -errno : map_rings(b, &p);
	if (r < 0) {
		*ret_errno = -r;
		batch_free(b);
		return NULL;
	}
	register_all(b, &l->memory);
	return b;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	if (b->sqes)
		(void)munmap(b->sqes, b->sqes_bytes);
	if (b->rings)
		(void)munmap(b->rings, b->rings_bytes);
	if (b->ring_fd >= 0)
		(void)close(b->ring_fd);
	pthread_mutex_destroy(&b->files_mutex);
	free(b);
}

/* Files. */

static bool set_file(struct batch *b, uint32_t at, int32_t fd)
{
	struct io_uring_files_update u = { .offset = at, .fds = (uint64_t)(uintptr_t)&fd };

	return syscall(SYS_io_uring_register, b->ring_fd, IORING_REGISTER_FILES_UPDATE, &u, 1U) ==
	       1;
}

/* Whether the slot's file is registered, under slot % NR_FILES. */
static bool has_file(const struct batch *b, uint32_t slot)
{
	return b->has_files && b->files[slot % NR_FILES] == slot + 1;
}

static void add_file(struct lane *l, struct batch *b, uint32_t slot)
{
	struct slot *s = &l->run->slots[slot];
	uint32_t at = slot % NR_FILES;
	int fd;

	pthread_mutex_lock(&b->files_mutex);
	/* Counted first: who closes it from now on comes to look. */
	atomic_fetch_add(&s->nr_rings, 1);
	fd = atomic_load(&s->fd);
	if (b->files[at])
		atomic_fetch_sub(&l->run->slots[b->files[at] - 1].nr_rings, 1);
	b->files[at] = 0;
	if (fd >= 0 && set_file(b, at, fd))
		b->files[at] = slot + 1;
	else
		atomic_fetch_sub(&s->nr_rings, 1);
	pthread_mutex_unlock(&b->files_mutex);
}

void batch_forget(struct run *run, struct slot *s)
{
	uint32_t i, slot = (uint32_t)(s - run->slots), at = slot % NR_FILES;

	for (i = 0; i < run->nr_lanes; i++) {
		struct batch *b = atomic_load(&run->lanes[i].batch);

		if (!b)
			continue;
		pthread_mutex_lock(&b->files_mutex);
		if (b->files[at] == slot + 1) {
			(void)set_file(b, at, -1); /* else it stays open until the run ends */
			b->files[at] = 0;
			atomic_fetch_sub(&s->nr_rings, 1);
		}
		pthread_mutex_unlock(&b->files_mutex);
	}
}

/* Gathering. */

static bool edges_are_satisfied(const struct lane *l, const struct ready *a)
{
	uint32_t i;

	for (i = 0; i < a->nr_edges; i++) {
		const struct lane *other = &l->run->lanes[a->edges[i].lane];

		if (sync_get(a->edges[i].started ? &other->started : &other->done) <=
		    a->edges[i].nr)
			return false;
	}
	return true;
}

static bool is_batchable(const struct lane *l, const struct ready *a)
{
	const struct run *run = l->run;

	if (a->fn != call_read || a->row_id != SC_pread64 || a->nr_patches != 1 ||
	    (a->flags & (READY_BIG | READY_SINK | READY_FROM_FDS | READY_SETUP)) ||
	    a->regs[2] > READ_MAX_BYTES || !a->regs[2] || (int64_t)a->regs[3] < 0)
		return false;
	if (run->o->speed == RUN_TIMED ||
	    (run->o->speed == RUN_NATURAL && (a->before_ns || a->after_ns)))
		return false;
	return edges_are_satisfied(l, a);
}

/* What is verified needs a place of its own; all else may go to the same. */
static bool give_buffer(struct batch *b, const struct lane_memory *m, struct ready *a)
{
	if (!(a->flags & READY_RESULT))
		return true;
	if (a->regs[2] > m->out_bytes - b->out_used)
		return false;
	a->out = m->out + b->out_used;
	a->regs[1] = (uint64_t)(uintptr_t)a->out;
	b->out_used += (a->regs[2] + 63) & ~UINT64_C(63);
	if (b->out_used > m->out_bytes)
		b->out_used = m->out_bytes;
	return true;
}

static void gather(struct lane *l, struct batch *b)
{
	uint64_t pos = l->pos;
	uint64_t head = atomic_load_explicit(&l->ring.head, memory_order_acquire);
	uint64_t most = l->notes.size / 2 < BATCH_MAX ? l->notes.size / 2 : BATCH_MAX;

	b->nr = 0;
	b->out_used = 0;
	b->end_pos = pos;
	while (pos != head && b->nr < most) {
		struct ready *a = (struct ready *)(void *)(l->ring.base + pos % l->ring.size);

		if (!(a->flags & READY_WRAP)) {
			if (!is_batchable(l, a) || !give_buffer(b, &l->memory, a))
				return;
			b->actions[b->nr++] = a;
			b->end_pos = pos + a->size;
		}
		pos += a->size;
	}
}

/* Submitting. */

static void register_files(struct lane *l, struct batch *b)
{
	uint32_t i, slot = READY_NO_SLOT, same = 0;

	for (i = 0; i < b->nr; i++) {
		uint32_t s = b->actions[i]->patches[0].slot;

		same = s == slot ? same + 1 : 1;
		slot = s;
		if (same == REGISTER_AT && b->has_files && !has_file(b, slot))
			add_file(l, b, slot);
	}
}

static bool in_buffer(const struct lane_memory *m, const struct ready *a)
{
	uint64_t base = (uint64_t)(uintptr_t)m->out;

	return a->regs[1] >= base && a->regs[1] - base <= m->out_bytes &&
	       a->regs[2] <= m->out_bytes - (a->regs[1] - base);
}

static void put_request(struct lane *l, struct batch *b, uint32_t i, uint32_t tail)
{
	struct ready *a = b->actions[i];
	uint32_t at = tail & b->sq_mask, slot = a->patches[0].slot;
	bool file = has_file(b, slot), buffer = b->has_buffer && in_buffer(&l->memory, a);

	a->regs[0] = (uint64_t)(int64_t)atomic_load_explicit(&l->run->slots[slot].fd,
							     memory_order_acquire);
	b->sqes[at] = (struct io_uring_sqe){
		.opcode = buffer ? IORING_OP_READ_FIXED : IORING_OP_READ,
		.flags = file ? IOSQE_FIXED_FILE : 0,
		.fd = file ? (int32_t)(slot % NR_FILES) : (int32_t)a->regs[0],
		.off = a->regs[3],
		.addr = a->regs[1],
		.len = (uint32_t)a->regs[2],
		.user_data = i,
	};
	b->sq_array[at] = at;
	b->results[i] = -EAGAIN;
}

static uint32_t take_results(struct batch *b)
{
	uint32_t head = atomic_load_explicit(b->cq_head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(b->cq_tail, memory_order_acquire), n = 0;

	for (; head != tail; head++, n++) {
		const struct io_uring_cqe *c = &b->cqes[head & b->cq_mask];

		if (c->user_data < b->nr)
			b->results[c->user_data] = c->res;
	}
	atomic_store_explicit(b->cq_head, head, memory_order_release);
	return n;
}

/* All of them, whatever happens meanwhile: they write into our memory. */
static void submit(struct lane *l, struct batch *b)
{
	uint32_t i, tail = atomic_load_explicit(b->sq_tail, memory_order_relaxed);
	uint32_t to_submit = b->nr, nr_done = 0;

	for (i = 0; i < b->nr; i++)
		put_request(l, b, i, tail + i);
	atomic_store_explicit(b->sq_tail, tail + b->nr, memory_order_release);
	while (nr_done < b->nr) {
		long r = syscall(SYS_io_uring_enter, b->ring_fd, to_submit, b->nr - nr_done,
				 IORING_ENTER_GETEVENTS, NULL, 0);

		if (r > 0)
			to_submit -= (uint32_t)r < to_submit ? (uint32_t)r : to_submit;
		else if (r < 0 && errno != EINTR && errno != EAGAIN && errno != EBUSY) {
			run_fail(l->run, -errno, "cannot submit reads");
			return;
		}
		nr_done += take_results(b);
	}
}

static void conclude(struct lane *l, struct batch *b, uint64_t nr, uint64_t enter_ns,
		     uint64_t exit_ns)
{
	uint64_t share_ns = (exit_ns - enter_ns) / b->nr;
	uint32_t i;

	for (i = 0; i < b->nr; i++) {
		struct ready *a = b->actions[i];
		int32_t res = b->results[i];
		struct outcome got = { .ret = res < 0 ? -1 : res, .err = res < 0 ? -res : 0 };
		struct lane_times t = { .enter_ns = enter_ns + i * share_ns,
					.exit_ns = enter_ns + (i + 1) * share_ns };

		if (UNLIKELY(got.ret != a->expected.ret || got.err != a->expected.err)) {
			t.enter_ns = ticker_now_ns(&l->run->ticker);
			a->fn(l, a, &got);
			t.exit_ns = ticker_now_ns(&l->run->ticker);
		}
		lane_conclude(l, a, &got, nr + i, &t);
	}
}

uint64_t batch_perform(struct lane *l, struct ready *a, uint64_t nr)
{
	struct batch *b = atomic_load_explicit(&l->batch, memory_order_relaxed);
	uint64_t enter_ns, exit_ns;
	uint32_t i;

	if (!is_batchable(l, a))
		return 0;
	gather(l, b);
	if (b->nr < BATCH_MIN)
		return 0;
	if (l->run->has_started_edges)
		sync_set(&l->started, nr + b->nr);
	register_files(l, b);
	enter_ns = ticker_now_ns(&l->run->ticker);
	submit(l, b);
	exit_ns = ticker_now_ns(&l->run->ticker);
	if (run_is_stopped(l->run))
		return 0;
	l->sums.nr_batched += b->nr;
	for (i = 0; i < b->nr; i++) {
		predict_begin(l, b->actions[i], nr + i);
		predict_end(l, nr + i, (exit_ns - enter_ns) / b->nr);
	}
	sync_set(&l->done, nr + b->nr);
	conclude(l, b, nr, enter_ns, exit_ns);
	lane_advance(l, b->end_pos);
	return b->nr;
}
