/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous I/O. Blocks of the kernel's first kind are submitted through the
 * kernel again; what they write lies in memory that the lane uses again, so a
 * submission with writes waits for its end, and their completions are counted
 * for who asks for them later. Requests of an io_uring are made one after
 * another by the calls that do the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "model/kernel_structs.h"
#include "plan/result.h"
#include "replay/calls.h"

#define EVENTS_AT_ONCE 64

static uint64_t context_of(struct slot *s)
{
	return s ? atomic_load(&s->context) : 0;
}

static void keep_results(struct run *run, const struct k_io_event *events, long nr)
{
	long i;

	for (i = 0; i < nr; i++) {
		struct slot *s;

		if (!events[i].data || events[i].data > run->nr_slots)
			continue;
		s = &run->slots[events[i].data - 1];
		atomic_store(&s->aio_res, events[i].res);
		atomic_store(&s->has_aio_res, 1);
	}
}

/* Takes n completions, with patience; what came of them is kept in the slots of the requests. */
static int64_t reap(struct run *run, uint64_t context, uint64_t n)
{
	struct k_io_event events[EVENTS_AT_ONCE];
	uint64_t got = 0;

	while (got < n) {
		uint64_t want = n - got < EVENTS_AT_ONCE ? n - got : EVENTS_AT_ONCE;
		long r = syscall(SYS_io_getevents, context, want, want, events, NULL);

		if (r <= 0)
			return got ? (int64_t)got : r;
		keep_results(run, events, r);
		got += (uint64_t)r;
	}
	return (int64_t)got;
}

void replay_io_setup(struct lane *l, struct ready *a, struct outcome *out)
{
	uint64_t context = 0, old;

	call_set(out, syscall(SYS_io_setup, (unsigned int)a->regs[0], &context));
	if (out->err)
		return;
	if (a->slots[0] == READY_NO_SLOT) {
		(void)syscall(SYS_io_destroy, context);
		return;
	}
	old = atomic_exchange(&l->run->slots[a->slots[0]].context, context);
	atomic_store(&l->run->slots[a->slots[0]].nr_early, 0);
	if (old)
		(void)syscall(SYS_io_destroy, old);
}

void replay_io_destroy(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *s = call_slot(l, a, 0);
	uint64_t context = s ? atomic_exchange(&s->context, 0) : 0;

	if (!context && !a->expected.err)
		errno = EINVAL;
	call_set(out, context ? syscall(SYS_io_destroy, context) : -1);
	if (!context)
		out->err = EINVAL;
}

void replay_io_submit(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *s = call_slot(l, a, 0);
	struct aio_batch *batch = a->extra;
	int64_t early;

	if (!batch || !batch->nr) {
		call_stands(a, out);
		return;
	}
	call_set(out, syscall(SYS_io_submit, context_of(s), (long)batch->nr, batch->blocks));
	if (out->err || !batch->nr_writes || out->ret <= 0 || !s)
		return;
	early = reap(l->run, context_of(s), (uint64_t)out->ret);
	if (early > 0)
		atomic_fetch_add(&s->nr_early, (uint64_t)early);
}

void replay_io_getevents(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *s = call_slot(l, a, 0);
	const struct requests *all = a->extra;
	uint64_t early, want = a->expected.ret > 0 ? (uint64_t)a->expected.ret : 0;
	int64_t got;

	/* As many as it got: how long it waited for them the edges say. */
	if (!s || !want || a->expected.err) {
		call_stands(a, out);
		return;
	}
	early = atomic_load(&s->nr_early);
	if (early > want)
		early = want;
	atomic_fetch_sub(&s->nr_early, early);
	got = want > early ? reap(l->run, context_of(s), want - early) : 0;
	call_set(out, got < 0 ? -1 : got + (int64_t)early);
	if (all)
		requests_complete_aio(l, &all->done);
}

void replay_io_pgetevents(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_io_getevents(l, a, out);
}

/* Whether it came in time was luck there, and would be here. */
void replay_io_cancel(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_stands(a, out);
}

/* Something that can be closed stands for the ring. */
void replay_io_uring_setup(struct lane *l, struct ready *a, struct outcome *out)
{
	if (a->expected.err) {
		call_stands(a, out);
		return;
	}
	if (a->slots[0] != READY_NO_SLOT)
		atomic_store(&l->run->slots[a->slots[0]].results, (struct ring_results *)a->extra);
	call_set_fd(l, a, 0, fcntl(l->run->null_fd, F_DUPFD_CLOEXEC, 0), out);
}

/* The slot of a registered file, NULL when there is none. */
static struct slot *fixed_slot(struct lane *l, struct slot *ring, uint32_t index)
{
	struct ring_files *files = ring ? atomic_load(&ring->files) : NULL;
	uint32_t slot =
		files && index < files->nr ? atomic_load(&files->slots[index]) : READY_NO_SLOT;

	return slot == READY_NO_SLOT ? NULL : &l->run->slots[slot];
}

static struct slot *request_slot(struct lane *l, struct ready *a, struct request *q)
{
	uint32_t i;

	for (i = 0; i < a->nr_patches; i++)
		if (a->patches[i].where == &q->regs[0])
			return &l->run->slots[a->patches[i].slot];
	return NULL;
}

/* Kept for who completes it. */
static void keep_result(struct slot *ring, const struct request *q, int64_t res)
{
	struct ring_results *results = ring ? atomic_load(&ring->results) : NULL;
	struct request_result *kept;

	if (!results)
		return;
	kept = &results->items[q->number % RING_RESULTS];
	kept->number = q->number + 1;
	kept->res = res;
	kept->has_hash = q->hashes && res > 0;
	if (!kept->has_hash)
		return;
	if (q->nr == SYS_pread64 || q->nr == SYS_read)
		kept->hash = result_hash_data((void *)q->regs[1], (uint64_t)res);
	else if (q->nr == SYS_preadv2)
		kept->hash = result_hash_vec((const struct iovec *)q->regs[1], q->regs[2],
					     (uint64_t)res);
	else
		kept->has_hash = false;
}

static void make_request(struct lane *l, struct ready *a, struct slot *ring, struct request *q)
{
	struct slot *fixed = q->fixed ? fixed_slot(l, ring, q->fixed - 1) : NULL;
	struct outcome ignored;
	long r;

	if (q->fixed)
		q->regs[q->swap ? 1 : 0] =
			(uint64_t)(int64_t)(fixed ? atomic_load(&fixed->fd) : -1);
	if (q->closes) {
		if (!q->fixed) {
			call_drop(l, request_slot(l, a, q), &ignored);
			keep_result(ring, q, ignored.err ? -ignored.err : 0);
		}
		return;
	}
	if (q->nr < 0)
		return;
	r = syscall(q->nr, q->regs[0], q->regs[1], q->regs[2], q->regs[3], q->regs[4], q->regs[5]);
	keep_result(ring, q, r < 0 ? -errno : r);
	if (!q->opens || r < 0)
		return;
	if (q->slot == READY_NO_SLOT) {
		(void)close((int)r);
	} else {
		int old = slot_swap_fd(l->run, &l->run->slots[q->slot], (int)r);

		if (old >= 0)
			(void)close(old);
	}
}

void replay_io_uring_enter(struct lane *l, struct ready *a, struct outcome *out)
{
	struct requests *all = a->extra;
	struct slot *ring = call_slot(l, a, 0);
	uint32_t i;

	for (i = 0; all && i < all->nr; i++)
		make_request(l, a, ring, &all->items[i]);
	if (all)
		requests_complete(l, ring, &all->done);
	call_stands(a, out);
}

static void set_files(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *ring = call_slot(l, a, 0);

	if (ring && !a->expected.err)
		atomic_store(&ring->files, (struct ring_files *)a->extra);
	call_stands(a, out);
}

static void update_files(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *ring = call_slot(l, a, 0);
	struct ring_files *files = ring ? atomic_load(&ring->files) : NULL;
	struct ring_files *from = a->extra;
	uint64_t i;

	for (i = 0; files && from && !a->expected.err && i < from->nr; i++)
		if (a->regs[4] + i < files->nr)
			atomic_store(&files->slots[a->regs[4] + i], atomic_load(&from->slots[i]));
	call_stands(a, out);
}

void replay_io_uring_register_files(struct lane *l, struct ready *a, struct outcome *out)
{
	set_files(l, a, out);
}

void replay_io_uring_register_files2(struct lane *l, struct ready *a, struct outcome *out)
{
	set_files(l, a, out);
}

void replay_io_uring_register_files_update(struct lane *l, struct ready *a, struct outcome *out)
{
	update_files(l, a, out);
}

void replay_io_uring_register_files_update2(struct lane *l, struct ready *a, struct outcome *out)
{
	update_files(l, a, out);
}

void replay_io_uring_unregister_files(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *ring = call_slot(l, a, 0);

	if (ring)
		atomic_store(&ring->files, NULL);
	call_stands(a, out);
}

/* Buffers, workers and rings of rings: there is no ring here that they could belong to. */
#define NO_RING(name)                                                                              \
	void replay_io_uring_##name(struct lane *l, struct ready *a, struct outcome *out)          \
	{                                                                                          \
		(void)l;                                                                           \
		call_stands(a, out);                                                               \
	}

NO_RING(register_buffers)
NO_RING(unregister_buffers)
NO_RING(register_enable_rings)
NO_RING(register_buffers2)
NO_RING(register_buffers_update)
NO_RING(register_iowq_max_workers)
NO_RING(register_ring_fds)
NO_RING(unregister_ring_fds)
NO_RING(register_pbuf_ring)
NO_RING(unregister_pbuf_ring)
NO_RING(register_file_alloc_range)
NO_RING(register_clone_buffers)
NO_RING(register_resize_rings)
