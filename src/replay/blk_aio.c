/* SPDX-License-Identifier: MIT */
/*
 * Requests by the older asynchronous calls (io_submit). Where a device cannot say
 * that it would have to wait, io_uring hands every request to a thread of the kernel,
 * and what is measured is that thread; io_submit makes the request itself. It also
 * is there where io_uring is forbidden.
 *
 * What io_submit cannot do (discards, zeroes) is done on the spot.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "replay/blk_inside.h"
#include "replay/blk_port.h"

#define EVENTS_MAX 256
/* The ring of completions as the kernel shares it (fs/aio.c); read only when it has this magic. */
#define RING_MAGIC 0xa10a10a1u

struct aio_ring {
	unsigned int id, nr, head, tail;
	unsigned int magic, compat_features, incompat_features, header_length;
};

struct aio {
	aio_context_t context;
	struct iocb *iocbs, **put; /* as many as may be in flight; those not yet submitted */
	uint32_t *free_iocbs;
	uint32_t nr_iocbs, nr_free, nr_put;
	VEC(struct blk_done) done; /* on the spot */
};

static int aio_open(struct blk_port *p, struct err *err)
{
	struct aio *a = xcalloc(1, sizeof(*a));

	a->nr_iocbs = (uint32_t)p->depth + 1;
	if (syscall(SYS_io_setup, a->nr_iocbs, &a->context) < 0) {
		int r = -errno;

		free(a);
		return err_set(err, r, "cannot set up asynchronous requests (io_setup)");
	}
	a->iocbs = xcalloc(a->nr_iocbs, sizeof(*a->iocbs));
	a->put = xcalloc(a->nr_iocbs, sizeof(struct iocb *));
	a->free_iocbs = xcalloc(a->nr_iocbs, sizeof(*a->free_iocbs));
	for (; a->nr_free < a->nr_iocbs; a->nr_free++)
		a->free_iocbs[a->nr_free] = a->nr_iocbs - 1 - a->nr_free;
	p->state = a;
	return 0;
}

static void aio_close(struct blk_port *p)
{
	struct aio *a = p->state;

	if (!a)
		return;
	(void)syscall(SYS_io_destroy, a->context); /* waits for what is in flight */
	VEC_RELEASE(&a->done);
	free(a->iocbs);
	free(a->put);
	free(a->free_iocbs);
	free(a);
	p->state = NULL;
}

static void do_at_once(struct blk_port *p, struct aio *a, const struct blk_slot *s, uint64_t index)
{
	const struct blk_target *t = &p->targets[s->target];
	uint64_t range[2] = { s->offset_bytes, s->length_bytes };
	struct blk_done done = { .index = index };
	int r;

	if (t->device && s->op == BLK_DISCARD)
		r = ioctl(t->fd, BLKDISCARD, range);
	else
		r = fallocate(t->fd, blk_slot_fallocate_mode(s), (off_t)s->offset_bytes,
			      (off_t)s->length_bytes);
	if (r < 0)
		done.result = -errno;
	VEC_PUSH(&a->done, done);
}

static void fill_iocb(struct blk_port *p, struct iocb *cb, const struct blk_slot *s, uint64_t index)
{
	uint8_t *buf = p->data.sink;

	*cb = (struct iocb){ .aio_data = index,
			     .aio_fildes = (uint32_t)p->targets[s->target].fd,
			     .aio_offset = (int64_t)s->offset_bytes,
			     .aio_nbytes = s->length_bytes };
	switch ((enum blk_op)s->op) {
	case BLK_READ:
		cb->aio_lio_opcode = IOCB_CMD_PREAD;
		break;
	case BLK_WRITE:
	case BLK_ZONE_APPEND:
		cb->aio_lio_opcode = IOCB_CMD_PWRITE;
		cb->aio_rw_flags = s->flags & BLK_FLAG_FUA ? RWF_DSYNC : 0;
		buf = s->data ? s->data : blk_data_filler(&p->data, s->length_bytes);
		break;
	default:
		cb->aio_lio_opcode = IOCB_CMD_FDSYNC;
		cb->aio_offset = 0;
		cb->aio_nbytes = 0;
		return;
	}
	cb->aio_buf = (uint64_t)(uintptr_t)buf;
}

static void aio_put(struct blk_port *p, const struct blk_slot *s, uint64_t index)
{
	struct aio *a = p->state;
	struct iocb *cb;

	/* There are no links here: the flush is waited for. What fails, the write will tell. */
	if (blk_slot_flushes_before(s))
		(void)fdatasync(p->targets[s->target].fd);
	if (blk_ops[s->op].moves == BLK_MOVES_NONE && s->op != BLK_FLUSH) {
		do_at_once(p, a, s, index);
		return;
	}
	/* The submitter keeps to the depth, for which there are as many. */
	cb = &a->iocbs[a->free_iocbs[--a->nr_free]];
	fill_iocb(p, cb, s, index);
	a->put[a->nr_put++] = cb;
}

static void free_iocb(struct aio *a, const struct iocb *cb)
{
	a->free_iocbs[a->nr_free++] = (uint32_t)(cb - a->iocbs);
}

static int aio_submit(struct blk_port *p, struct err *err)
{
	struct aio *a = p->state;
	uint32_t from = 0;
	int r = 0;

	while (from < a->nr_put) {
		long n =
			syscall(SYS_io_submit, a->context, (long)(a->nr_put - from), a->put + from);

		p->nr_submits++;
		if (n >= 0) {
			from += (uint32_t)n;
		} else if (errno == EAGAIN) {
			r = 1;
			break;
		} else if (errno != EINTR) {
			/* The first of them was refused: that is its outcome. */
			struct blk_done done = { a->put[from]->aio_data, -errno };

			if (errno == EFAULT || errno == ENOSYS)
				return err_set(err, -errno, "cannot submit requests");
			VEC_PUSH(&a->done, done);
			free_iocb(a, a->put[from++]);
		}
	}
	a->nr_put -= from;
	memmove(a->put, a->put + from, a->nr_put * sizeof(a->put[0]));
	return r;
}

static bool aio_look(struct blk_port *p)
{
	const struct aio *a = p->state;
	const struct aio_ring *ring = (const struct aio_ring *)a->context;

	if (a->done.len)
		return true;
	if (ring->magic != RING_MAGIC || ring->incompat_features)
		return true; /* the call will tell */
	/* Only whether to make the call, which orders what is read. */
	return __atomic_load_n(&ring->head, __ATOMIC_RELAXED) !=
	       __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
}

static struct blk_done read_event(struct aio *a, const struct io_event *event)
{
	free_iocb(a, (const struct iocb *)(uintptr_t)event->obj);
	return (struct blk_done){ event->data, (int32_t)event->res };
}

static unsigned int aio_take(struct blk_port *p, struct blk_done *out, unsigned int max)
{
	struct aio *a = p->state;
	struct io_event events[EVENTS_MAX];
	struct timespec now = { 0 };
	unsigned int taken = 0;
	long i, n;

	while (a->done.len && taken < max)
		out[taken++] = a->done.items[--a->done.len];
	if (taken == max || !aio_look(p))
		return taken;
	max -= taken;
	n = syscall(SYS_io_getevents, a->context, 0L, (long)(max < EVENTS_MAX ? max : EVENTS_MAX),
		    events, &now);
	for (i = 0; i < n; i++)
		out[taken++] = read_event(a, &events[i]);
	return taken;
}

static void aio_wait(struct blk_port *p, uint64_t ns, unsigned int nr, bool in_flight)
{
	struct aio *a = p->state;
	struct timespec ts = { .tv_nsec = (long)(ns < BLK_WAIT_MAX_NS ? ns : BLK_WAIT_MAX_NS) };
	struct io_event events[EVENTS_MAX];
	long i, n;

	(void)in_flight;
	if (a->done.len)
		return;
	n = syscall(SYS_io_getevents, a->context, (long)(nr < EVENTS_MAX ? nr : EVENTS_MAX),
		    (long)EVENTS_MAX, events, &ts);
	for (i = 0; i < n; i++) {
		struct blk_done done = read_event(a, &events[i]);

		VEC_PUSH(&a->done, done);
	}
}

const struct blk_engine blk_engine_aio = {
	.name = "aio",
	.open = aio_open,
	.close = aio_close,
	.put = aio_put,
	.submit = aio_submit,
	.take = aio_take,
	.look = aio_look,
	.wait = aio_wait,
};
