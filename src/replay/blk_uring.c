/* SPDX-License-Identifier: MIT */
/* Requests by io_uring, with registered buffers and files where the limits allow it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <sys/uio.h>

#include <liburing.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "replay/blk_inside.h"
#include "replay/blk_port.h"

/* Of an entry whose completion means nothing by itself: the flush before a write. */
#define NOT_COUNTED UINT64_MAX
#define ENTRIES_MIN 64u
#define ENTRIES_MAX 4096u
#define CQ_ENTRIES_MAX 65536u
#define CQES_MAX 256
/* Of linux/blkdev.h since 6.12: place and length in addr and addr3. */
#define CMD_DISCARD _IO(0x12, 0)

struct uring {
	struct io_uring ring;
	bool registered_buffers, registered_files;
	bool *discards; /* by target: it takes CMD_DISCARD */
};

/* Setting up. */

static int open_ring(const struct blk_port *p, struct uring *u, struct err *err)
{
	struct io_uring_params params = { .flags = IORING_SETUP_CQSIZE };
	unsigned int entries = ENTRIES_MIN;
	int r;

	while (entries < ENTRIES_MAX && entries < 2 * p->depth + 2)
		entries *= 2;
	params.cq_entries = entries;
	while (params.cq_entries < CQ_ENTRIES_MAX && params.cq_entries < 4 * p->depth)
		params.cq_entries *= 2;
	if (p->poll)
		params.flags |= IORING_SETUP_IOPOLL;
	else
		params.flags |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
				IORING_SETUP_TASKRUN_FLAG;
	r = io_uring_queue_init_params(entries, &u->ring, &params);
	if (r == -EINVAL && !p->poll) { /* an older kernel */
		params = (struct io_uring_params){ .flags = IORING_SETUP_CQSIZE,
						   .cq_entries = params.cq_entries };
		r = io_uring_queue_init_params(entries, &u->ring, &params);
	}
	return r < 0 ? err_set(err, r, "cannot set up an io_uring") : 0;
}

/* Both spare the kernel work for each request, and neither is needed: a limit may forbid them. */
static void register_all(struct blk_port *p, struct uring *u)
{
	struct iovec iov = { p->data.base, p->data.base_bytes };
	int *fds = xcalloc(p->nr_targets, sizeof(*fds));

	for (uint32_t i = 0; i < p->nr_targets; i++)
		fds[i] = p->targets[i].fd;
	u->registered_files = !io_uring_register_files(&u->ring, fds, p->nr_targets);
	u->registered_buffers = !io_uring_register_buffers(&u->ring, &iov, 1);
	p->registered = u->registered_files && u->registered_buffers;
	free(fds);
}

/* What a target without polled queues says to the first request shall be known before the run. */
static int probe_polling(struct blk_port *p, struct uring *u, uint32_t target, struct err *err)
{
	const struct blk_target *t = &p->targets[target];
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
	struct io_uring_cqe *cqe;
	int r;

	if (t->size_bytes < t->align_bytes)
		return 0;
	io_uring_prep_read(sqe, t->fd, p->data.sink, t->align_bytes, 0);
	r = io_uring_submit_and_wait(&u->ring, 1);
	if (r >= 0)
		r = io_uring_wait_cqe(&u->ring, &cqe);
	if (r < 0)
		return err_set(err, r, "--poll: cannot read from %s", t->path);
	r = cqe->res;
	io_uring_cqe_seen(&u->ring, cqe);
	if (r == -EOPNOTSUPP || r == -EINVAL)
		return err_set(err, -EOPNOTSUPP,
			       "--poll: the device of %s has no queue that can be polled", t->path);
	return r < 0 ? err_set(err, r, "--poll: cannot read from %s", t->path) : 0;
}

static void prep_discard(struct io_uring_sqe *sqe, uint64_t offset, uint64_t length)
{
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, 0, NULL, 0, 0);
	sqe->cmd_op = CMD_DISCARD;
	sqe->addr = offset;
	sqe->addr3 = length;
}

/*
 * Whether the kernel makes a discard of a discard. Nothing is discarded: a command that is
 * known is told that there is no such range, another one that there is no such command.
 */
static bool takes_discards(struct uring *u, const struct blk_target *t)
{
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	int r;

	if (!t->device || !t->writable)
		return false;
	sqe = io_uring_get_sqe(&u->ring);
	prep_discard(sqe, 0, 0);
	sqe->fd = t->fd;
	r = io_uring_submit_and_wait(&u->ring, 1);
	if (r >= 0)
		r = io_uring_wait_cqe(&u->ring, &cqe);
	if (r < 0)
		return false;
	r = cqe->res;
	io_uring_cqe_seen(&u->ring, cqe);
	return r == -EINVAL;
}

static void probe_discards(const struct blk_port *p, struct uring *u)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(&u->ring);
	bool has_commands = probe && io_uring_opcode_supported(probe, IORING_OP_URING_CMD);

	io_uring_free_probe(probe);
	u->discards = xcalloc(p->nr_targets, sizeof(*u->discards));
	/* A ring that is polled takes none. */
	for (uint32_t i = 0; has_commands && !p->poll && i < p->nr_targets; i++)
		u->discards[i] = takes_discards(u, &p->targets[i]);
}

static void uring_close(struct blk_port *p)
{
	struct uring *u = p->state;

	if (!u)
		return;
	/*
	 * A ring lives on for a while when it is closed, and would keep the devices
	 * open: the next run would find them in use.
	 */
	if (u->registered_files)
		(void)io_uring_unregister_files(&u->ring);
	io_uring_queue_exit(&u->ring);
	free(u->discards);
	free(u);
	p->state = NULL;
}

static int uring_open(struct blk_port *p, struct err *err)
{
	struct uring *u = xcalloc(1, sizeof(*u));
	int r = open_ring(p, u, err);

	if (r < 0) {
		free(u);
		return r;
	}
	p->state = u;
	for (uint32_t i = 0; p->poll && i < p->nr_targets; i++) {
		r = probe_polling(p, u, i, err);
		if (r < 0)
			return r;
	}
	probe_discards(p, u);
	register_all(p, u);
	return 0;
}

/* Submitting. */

static struct io_uring_sqe *get_sqe(struct blk_port *p, struct uring *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	while (!sqe) {
		p->nr_submits++;
		/* What fails shows in its completion, or is tried again. */
		(void)io_uring_submit(&u->ring);
		sqe = io_uring_get_sqe(&u->ring);
	}
	return sqe;
}

static void put_file(const struct blk_port *p, const struct uring *u, struct io_uring_sqe *sqe,
		     uint32_t target)
{
	if (u->registered_files) {
		sqe->fd = (int)target;
		sqe->flags |= IOSQE_FIXED_FILE;
	} else {
		sqe->fd = p->targets[target].fd;
	}
}

static void put_flush_before(struct blk_port *p, struct uring *u, const struct blk_slot *s)
{
	struct io_uring_sqe *sqe;

	/* Both must be in one submission, or they are not linked. */
	if (io_uring_sq_space_left(&u->ring) < 2) {
		p->nr_submits++;
		(void)io_uring_submit(&u->ring); /* tried again, as in get_sqe() */
	}
	sqe = get_sqe(p, u);
	io_uring_prep_fsync(sqe, 0, IORING_FSYNC_DATASYNC);
	put_file(p, u, sqe, s->target);
	sqe->flags |= IOSQE_IO_LINK;
	io_uring_sqe_set_data64(sqe, NOT_COUNTED);
}

static void put_write(struct blk_port *p, struct uring *u, struct io_uring_sqe *sqe,
		      const struct blk_slot *s)
{
	unsigned int len = (unsigned int)s->length_bytes;

	if (s->data)
		io_uring_prep_write(sqe, 0, s->data, len, s->offset_bytes);
	else if (u->registered_buffers)
		io_uring_prep_write_fixed(sqe, 0, blk_data_filler(&p->data, len), len,
					  s->offset_bytes, 0);
	else
		io_uring_prep_write(sqe, 0, blk_data_filler(&p->data, len), len, s->offset_bytes);
	if (s->flags & BLK_FLAG_FUA)
		sqe->rw_flags = RWF_DSYNC;
}

static void put_read(struct blk_port *p, struct uring *u, struct io_uring_sqe *sqe,
		     const struct blk_slot *s)
{
	unsigned int len = (unsigned int)s->length_bytes;

	if (u->registered_buffers)
		io_uring_prep_read_fixed(sqe, 0, p->data.sink, len, s->offset_bytes, 0);
	else
		io_uring_prep_read(sqe, 0, p->data.sink, len, s->offset_bytes);
}

static void put_hole(const struct uring *u, struct io_uring_sqe *sqe, const struct blk_slot *s)
{
	if (s->op == BLK_DISCARD && u->discards[s->target])
		prep_discard(sqe, s->offset_bytes, s->length_bytes);
	else
		io_uring_prep_fallocate(sqe, 0, blk_slot_fallocate_mode(s), (off_t)s->offset_bytes,
					(off_t)s->length_bytes);
}

static void uring_put(struct blk_port *p, const struct blk_slot *s, uint64_t index)
{
	struct uring *u = p->state;
	struct io_uring_sqe *sqe;

	if (blk_slot_flushes_before(s) && !p->poll)
		put_flush_before(p, u, s);
	sqe = get_sqe(p, u);
	switch ((enum blk_op)s->op) {
	case BLK_READ:
		put_read(p, u, sqe, s);
		break;
	case BLK_WRITE:
	case BLK_ZONE_APPEND:
		put_write(p, u, sqe, s);
		break;
	case BLK_DISCARD:
	case BLK_SECURE_ERASE:
	case BLK_WRITE_ZEROES:
		put_hole(u, sqe, s);
		break;
	default:
		io_uring_prep_fsync(sqe, 0, IORING_FSYNC_DATASYNC);
		break;
	}
	put_file(p, u, sqe, s->target);
	io_uring_sqe_set_data64(sqe, index);
}

static int uring_submit(struct blk_port *p, struct err *err)
{
	struct uring *u = p->state;

	while (io_uring_sq_ready(&u->ring)) {
		int r = io_uring_submit(&u->ring);

		p->nr_submits++;
		if (r == -EAGAIN || r == -EBUSY)
			return 1;
		if (r < 0 && r != -EINTR)
			return err_set(err, r, "cannot submit requests");
	}
	return 0;
}

/* Completions. */

static unsigned int uring_take(struct blk_port *p, struct blk_done *out, unsigned int max)
{
	struct uring *u = p->state;
	struct io_uring_cqe *cqes[CQES_MAX];
	unsigned int taken = 0, nr, i;

	nr = io_uring_peek_batch_cqe(&u->ring, cqes, max < CQES_MAX ? max : CQES_MAX);
	for (i = 0; i < nr; i++) {
		uint64_t index = io_uring_cqe_get_data64(cqes[i]);

		if (index != NOT_COUNTED)
			out[taken++] = (struct blk_done){ index, cqes[i]->res };
	}
	io_uring_cq_advance(&u->ring, nr);
	return taken;
}

static bool uring_look(struct blk_port *p)
{
	struct uring *u = p->state;
	unsigned int flags = __atomic_load_n(u->ring.sq.kflags, __ATOMIC_RELAXED);

	if (io_uring_cq_ready(&u->ring))
		return true;
	if (p->poll || flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW))
		(void)io_uring_get_events(&u->ring); /* there is something or there is not */
	return io_uring_cq_ready(&u->ring) > 0;
}

static void uring_wait(struct blk_port *p, uint64_t ns, unsigned int nr, bool in_flight)
{
	struct uring *u = p->state;
	struct io_uring_cqe *cqe;
	struct __kernel_timespec ts = {
		.tv_nsec = (long long)(ns < BLK_WAIT_MAX_NS ? ns : BLK_WAIT_MAX_NS)
	};

	if (p->poll && in_flight)
		(void)uring_look(p); /* a polled ring does not wake anybody */
	else
		(void)io_uring_wait_cqes(&u->ring, &cqe, nr, &ts, NULL); /* events or the time */
}

bool blk_uring_is_allowed(void)
{
	struct io_uring ring;

	if (io_uring_queue_init(2, &ring, 0) < 0)
		return false;
	io_uring_queue_exit(&ring);
	return true;
}

const struct blk_engine blk_engine_uring = {
	.name = "io_uring",
	.open = uring_open,
	.close = uring_close,
	.put = uring_put,
	.submit = uring_submit,
	.take = uring_take,
	.look = uring_look,
	.wait = uring_wait,
};
