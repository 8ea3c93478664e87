/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous I/O: requests go to a ring or a context of our own (flight.h),
 * and are waited for where the trace has their completion.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/calls.h"
#include "replay/flight.h"
#include "replay/ring_files.h"

static struct flight *flight_of(struct slot *s)
{
	return s ? atomic_load(&s->flight) : NULL;
}

void replay_io_setup(struct lane *l, struct ready *a, struct outcome *out)
{
	struct flight *f = a->extra, *old;

	call_set(out, flight_open_aio(f, (unsigned int)a->regs[0]));
	if (out->err)
		return;
	old = a->slots[0] == READY_NO_SLOT ? f
					   : atomic_exchange(&l->run->slots[a->slots[0]].flight, f);
	(void)flight_close(l->run, old); /* of a program that ended without a word */
}

void replay_io_destroy(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *s = call_slot(l, a, 0);
	struct flight *f = s ? atomic_exchange(&s->flight, NULL) : NULL;

	errno = EINVAL;
	call_set(out, f ? flight_close(l->run, f) : -1);
}

void replay_io_submit(struct lane *l, struct ready *a, struct outcome *out)
{
	struct flight *f = flight_of(call_slot(l, a, 0));
	struct requests *all = a->extra;

	if (!all->nr) {
		call_stands(a, out);
		return;
	}
	errno = EINVAL;
	/* What it took there; the rest was submitted again by a later call. */
	call_set(out, f ? flight_submit_aio(l, f, all,
					    a->expected.err ? all->nr : (uint64_t)a->expected.ret)
			: -1);
	flight_add_aloft(l, a, all);
}

void replay_io_getevents(struct lane *l, struct ready *a, struct outcome *out)
{
	const struct requests *all = a->extra;

	/* Those that it got there: how long it waited for them the edges say. */
	flight_take(l, flight_of(call_slot(l, a, 0)), &all->done);
	call_stands(a, out);
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

/* Something that can be closed stands for the ring; ours is out of the reach of plans. */
void replay_io_uring_setup(struct lane *l, struct ready *a, struct outcome *out)
{
	struct flight *f = a->extra;

	if (a->expected.err) {
		call_stands(a, out);
		return;
	}
	call_set_fd(l, a, 0, fcntl(l->run->null_fd, F_DUPFD_CLOEXEC, 0), out);
	if (out->err || a->slots[0] == READY_NO_SLOT)
		return;
	flight_open_uring(f, a->regs[0]);
	(void)flight_close(l->run, atomic_exchange(&l->run->slots[a->slots[0]].flight, f));
}

void replay_io_uring_enter(struct lane *l, struct ready *a, struct outcome *out)
{
	struct requests *all = a->extra;
	struct slot *ring = call_slot(l, a, 0);

	flight_take(l, flight_of(ring), &all->early);
	flight_submit(l, ring, all);
	flight_take(l, flight_of(ring), &all->done);
	flight_add_aloft(l, a, all);
	call_stands(a, out);
}

static void set_files(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *ring = call_slot(l, a, 0);

	if (ring && !a->expected.err) {
		ring_files_update(l->run, a->extra, 0, a->extra);
		ring_files_close(atomic_exchange(&ring->files, (struct ring_files *)a->extra));
	}
	call_stands(a, out);
}

static void update_files(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *ring = call_slot(l, a, 0);

	if (ring && a->extra && !a->expected.err)
		ring_files_update(l->run, atomic_load(&ring->files), a->regs[4], a->extra);
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
		ring_files_close(atomic_exchange(&ring->files, NULL));
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
