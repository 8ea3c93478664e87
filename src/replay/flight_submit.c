/* SPDX-License-Identifier: MIT */
/* How requests come into flight. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "model/uring.h"
#include "replay/calls.h"
#include "replay/flight_inside.h"
#include "replay/ring_files.h"

/*
 * About something that is simulated (a socket, a pipe) nothing is made. What may
 * also never have been open is tried, to see that it fails; not where others
 * would fail with it.
 */
static void forget_simulated(struct lane *l, struct request *q)
{
	if (q->flags & REQUEST_ABSENT
		    ? !q->links && !q->block
		    : q->slot == READY_NO_SLOT || atomic_load(&l->run->slots[q->slot].fd) >= 0)
		return;
	l->sums.nr_requests_left_out += request_is_made(q);
	q->nr = -1;
	q->flags &= (uint8_t)~REQUEST_CLOSES;
}

static uint64_t fd_of_slot(const struct lane *l, uint32_t slot)
{
	return (uint64_t)(int64_t)atomic_load(&l->run->slots[slot].fd);
}

static void put_fixed(struct ring_files *files, struct request *q, unsigned int reg)
{
	const struct ring_file *f =
		files && q->fixed - 1 < files->nr ? &files->items[q->fixed - 1] : NULL;
	int fd = f ? atomic_load(&f->fd) : -1;

	q->slot = f && fd >= 0 ? atomic_load(&f->slot) : READY_NO_SLOT;
	q->regs[reg] = (uint64_t)(int64_t)fd;
	if (fd < 0)
		q->flags |= REQUEST_ABSENT;
}

/* Looks up the descriptors of the request; those before it in the action have been submitted. */
static void put_files(struct lane *l, struct ring_files *files, struct request *q)
{
	unsigned int reg = q->flags & REQUEST_SWAPPED ? 1 : 0;

	if (q->update)
		ring_files_update(l->run, files, q->regs[1], q->update);
	if (q->slot2 != READY_NO_SLOT)
		q->regs[2] = fd_of_slot(l, q->slot2);
	if (q->fixed) {
		put_fixed(files, q, reg);
		if (q->flags & REQUEST_ABSENT)
			forget_simulated(l, q);
		return;
	}
	if (q->slot != READY_NO_SLOT)
		q->regs[reg] = fd_of_slot(l, q->slot);
	forget_simulated(l, q);
}

static int64_t call(const struct request *q)
{
	long r;

	if (q->flags & REQUEST_CLOSES)
		return 0; /* when it is taken */
	r = syscall(q->nr, q->regs[0], q->regs[1], q->regs[2], q->regs[3], q->regs[4], q->regs[5]);
	return r < 0 ? -errno : r;
}

/* The request as an sqe; a close is made when it is taken, so nothing stands in its place. */
static void put_sqe(const struct request *q, struct io_uring_sqe *s, uint64_t user_data)
{
	*s = (struct io_uring_sqe){
		.opcode = IORING_OP_NOP, .flags = q->links, .fd = -1, .user_data = user_data
	};
	if (q->nr < 0 || (q->flags & REQUEST_CLOSES))
		return;
	s->opcode = q->opcode;
	s->fd = (int32_t)q->regs[0];
	s->rw_flags = (int)q->op_flags;
	s->addr = q->regs[1];
	switch (q->nr) {
	case SYS_read:
	case SYS_write:
	case SYS_pread64:
	case SYS_pwrite64:
		/* Of registered buffers, which our ring does not have, ordinary ones. */
		s->opcode = q->nr == SYS_read || q->nr == SYS_pread64 ? IORING_OP_READ
								      : IORING_OP_WRITE;
		s->len = (uint32_t)q->regs[2];
		s->off = q->nr == SYS_read || q->nr == SYS_write ? UINT64_MAX : q->regs[3];
		break;
	case SYS_preadv2:
	case SYS_pwritev2:
		s->opcode = q->nr == SYS_preadv2 ? IORING_OP_READV : IORING_OP_WRITEV;
		s->len = (uint32_t)q->regs[2];
		s->off = q->regs[3];
		break;
	case SYS_fsync:
	case SYS_fdatasync:
		s->addr = 0;
		break;
	case SYS_sync_file_range:
	case SYS_fadvise64:
		s->addr = 0;
		s->off = q->regs[1];
		s->len = (uint32_t)q->regs[2];
		break;
	case SYS_fallocate:
		s->len = (uint32_t)q->regs[1];
		s->off = q->regs[2];
		s->addr = q->regs[3];
		s->rw_flags = 0;
		break;
	case SYS_ftruncate:
		s->addr = 0;
		s->off = q->regs[1];
		s->rw_flags = 0;
		break;
	case SYS_openat:
		s->len = (uint32_t)q->regs[3];
		s->open_flags = (uint32_t)q->regs[2];
		break;
	case SYS_openat2:
		s->len = (uint32_t)q->regs[3];
		s->off = q->regs[2];
		s->rw_flags = 0;
		break;
	case SYS_statx:
		s->len = (uint32_t)q->regs[3];
		s->off = q->regs[4];
		break;
	case SYS_mkdirat:
		s->len = (uint32_t)q->regs[2];
		s->rw_flags = 0;
		break;
	case SYS_symlinkat: /* target, directory, name */
		s->fd = (int32_t)q->regs[1];
		s->addr = q->regs[0];
		s->off = q->regs[2];
		s->rw_flags = 0;
		break;
	case SYS_renameat2:
	case SYS_linkat:
		s->len = (uint32_t)q->regs[2];
		s->off = q->regs[3];
		break;
	default: /* unlinkat: fd, path, flags */
		break;
	}
}

static bool ring_knows(const struct flight *f, const struct request *q)
{
	if (q->flags & REQUEST_BY_CALL)
		return false;
	return !request_is_made(q) || (q->flags & REQUEST_CLOSES) ||
	       (q->opcode < PROBED_OPS && (f->ops & (UINT64_C(1) << q->opcode)));
}

/* What has been put into the ring goes to the kernel. */
static void push(struct run *run, struct flight *f)
{
	while (f->has_ring && io_uring_sq_ready(&f->ring)) {
		int r = io_uring_submit(&f->ring);

		if (r >= 0 || r == -EINTR)
			continue;
		if (r != -EBUSY && r != -EAGAIN) {
			run_fail(run, r, "cannot submit requests to an io_uring");
			return;
		}
		/* There is no room for more completions. */
		if (!f->nr_flying || !flight_wait_some(run, f))
			return;
	}
}

static const struct completion *find_completion(const struct completions *all, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < all->nr; i++)
		if (all->items[i].number == number)
			return &all->items[i];
	return NULL;
}

/* The ring is not known, so nobody could wait for anything. */
static void make_at_once(struct lane *l, const struct requests *all, const struct request *q)
{
	const struct completion *want = find_completion(&all->done, q->number);
	struct completion none = { .slot = READY_NO_SLOT, .res = -ECANCELED };
	struct request_result got;

	if (!request_is_made(q))
		return;
	got = request_result_of(q, call(q));
	flight_conclude(l, want ? want : &none, q->flags, q->slot, &got);
}

/* What the request opens is in the ring's table from now on. */
static void land_direct(struct entry *e, const struct request *q, struct ring_files *files)
{
	if (!q->direct || e->got.res < 0)
		return;
	if (q->direct == URING_INDEX_ALLOC) {
		e->files = files;
		return;
	}
	(void)ring_files_put(files, q->direct - 1, READY_NO_SLOT, (int)e->got.res);
	e->flags &= (uint8_t)~REQUEST_OPENS;
}

/* The place in the table is free; the file is closed when the request is taken. */
static void hold_closed(struct entry *e, const struct request *q, struct ring_files *files)
{
	if (q->direct && (q->flags & REQUEST_CLOSES))
		e->held_fd = ring_files_take(files, q->direct - 1);
}

/* By the call that does the same; others may submit meanwhile. */
static bool call_one(struct run *run, struct flight *f, struct request *q, struct requests *all,
		     struct ring_files *files)
{
	struct entry *e;
	int64_t res;

	push(run, f);
	/* Those that it is linked to come first. */
	while ((q->flags & REQUEST_LINKED) && atomic_load(&all->nr_flying))
		if (!flight_wait_some(run, f))
			return false;
	e = flight_entry_new(run, f, q, all);
	if (!e)
		return false;
	hold_closed(e, q, files);
	pthread_mutex_unlock(&f->mutex);
	res = call(q);
	pthread_mutex_lock(&f->mutex);
	f->nr_by_calls++;
	flight_land(f, e, res);
	land_direct(e, q, files);
	return true;
}

/* False: there is no more to do, the run has ended. */
static bool submit_one(struct run *run, struct flight *f, struct request *q, struct requests *all,
		       struct ring_files *files)
{
	struct io_uring_sqe *sqe;
	struct entry *e = NULL;

	/* What is not made keeps its place among those that are linked. */
	if (!request_is_made(q) && !q->links && !(q->flags & REQUEST_LINKED))
		return true;
	if (!f->has_ring || !ring_knows(f, q))
		return !request_is_made(q) || call_one(run, f, q, all, files);
	if (request_is_made(q) && !(e = flight_entry_new(run, f, q, all)))
		return false;
	if (e)
		hold_closed(e, q, files);
	sqe = io_uring_get_sqe(&f->ring);
	if (!sqe) {
		push(run, f);
		sqe = f->has_ring ? io_uring_get_sqe(&f->ring) : NULL;
	}
	if (sqe)
		put_sqe(q, sqe, e ? (uint64_t)(e - f->entries) : UINT64_MAX);
	else if (e)
		flight_land(f, e, -ECANCELED);
	return sqe;
}

void flight_submit(struct lane *l, struct slot *ring, struct requests *all)
{
	struct ring_files *files = ring ? atomic_load(&ring->files) : NULL;
	struct flight *f = ring ? atomic_load(&ring->flight) : NULL;
	uint32_t i;

	if (!f) {
		for (i = 0; i < all->nr; i++) {
			put_files(l, files, &all->items[i]);
			make_at_once(l, all, &all->items[i]);
		}
		return;
	}
	all->flight = f;
	pthread_mutex_lock(&f->mutex);
	for (i = 0; f->is_open && i < all->nr; i++) {
		put_files(l, files, &all->items[i]);
		if (!submit_one(l->run, f, &all->items[i], all, files))
			break;
	}
	push(l->run, f);
	pthread_mutex_unlock(&f->mutex);
}

/* Blocks for the kernel; those that are not made count as taken by it. */
static uint64_t gather_blocks(struct run *run, struct flight *f, struct requests *all, uint64_t nr)
{
	uint64_t i, n = 0;

	for (i = 0; i < nr; i++) {
		struct request *q = &all->items[i];
		struct entry *e = q->nr < 0 ? NULL : flight_entry_new(run, f, q, all);

		if (!e)
			continue;
		q->block->aio_data = (uint64_t)(e - f->entries) + 1;
		all->blocks[n++] = q->block;
	}
	return n;
}

int64_t flight_submit_aio(struct lane *l, struct flight *f, struct requests *all, uint64_t most)
{
	uint64_t i, n, taken = 0, nr = most < all->nr ? most : all->nr;
	long r = 0;

	all->flight = f;
	for (i = 0; i < nr; i++)
		forget_simulated(l, &all->items[i]);
	pthread_mutex_lock(&f->mutex);
	n = f->is_open ? gather_blocks(l->run, f, all, nr) : 0;
	while (taken < n) {
		r = syscall(SYS_io_submit, f->context, (long)(n - taken), all->blocks + taken);
		r = r < 0 ? -errno : r;
		if (r > 0)
			taken += (uint64_t)r;
		else if (r != -EAGAIN || f->nr_flying <= n - taken || !flight_wait_some(l->run, f))
			break;
	}
	for (i = taken; i < n; i++) {
		struct entry *e = &f->entries[all->blocks[i]->aio_data - 1];

		flight_land(f, e, -ECANCELED);
		flight_entry_free(f, e);
	}
	pthread_mutex_unlock(&f->mutex);
	if (r < 0 && !taken) {
		errno = (int)-r;
		return -1;
	}
	return (int64_t)(nr - (n - taken));
}

/* Taking. */
