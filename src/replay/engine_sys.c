/* SPDX-License-Identifier: MIT */
/* Makes the calls, through the kernel's own numbers. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/batch.h"
#include "replay/calls.h"
#include "replay/flight.h"
#include "replay/ring_files.h"

/* Of rows that are not made a stated fact: their recorded outcome stands. */
#define CALL_GENERIC(name) call_generic
#define CALL_SPECIAL(name) replay_##name
#define CALL_NOTHING(name) NULL
#define CALL_SIMULATED(name) NULL
#define CALL_WAITING(name) NULL
#define CALL_UNSUPPORTED(name) NULL

static const call_fn handlers[ROW_ID_MAX] = {
#define SYSCALL(id, name, class, args, result, model, replay) [id] = CALL_##replay(name),
#include "model/syscalls.def"
#undef SYSCALL
	[EV_plan_cwd] = replay_plan_cwd,       [EV_plan_root] = replay_plan_root,
	[EV_plan_umask] = replay_plan_umask,   [EV_plan_drop] = replay_plan_drop,
	[EV_plan_handle] = replay_plan_handle, [EV_plan_open] = replay_plan_open,
	[EV_plan_locker] = replay_plan_locker, [EV_plan_dup] = replay_plan_dup,
	[EV_map_store] = replay_map_store,
};

static call_fn sys_find(const struct row *row)
{
	if (row->id == SC_read || row->id == SC_pread64)
		return call_read;
	return row->id < ROW_ID_MAX ? handlers[row->id] : NULL;
}

void call_set(struct outcome *out, int64_t ret)
{
	out->ret = ret;
	out->err = ret == -1 ? errno : 0;
}

void call_generic(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, syscall(a->nr, a->regs[0], a->regs[1], a->regs[2], a->regs[3], a->regs[4],
			      a->regs[5]));
}

struct slot *call_slot(struct lane *l, const struct ready *a, unsigned int reg)
{
	uint32_t i;

	for (i = 0; i < a->nr_patches; i++)
		if (a->patches[i].where == &a->regs[reg])
			return &l->run->slots[a->patches[i].slot];
	return NULL;
}

void call_set_fd(struct lane *l, const struct ready *a, unsigned int which, int fd,
		 struct outcome *out)
{
	int old;

	if (fd < 0) {
		call_set(out, -1);
		return;
	}
	out->err = 0;
	if (a->slots[which] == READY_NO_SLOT) {
		out->ret = fd;
		(void)close(fd);
		return;
	}
	out->ret = a->expected.ret;
	/* Somebody whose end was not recorded may have left it open. */
	old = slot_swap_fd(l->run, &l->run->slots[a->slots[which]], fd);
	if (old >= 0)
		(void)close(old);
}

int slot_swap_fd(struct run *run, struct slot *s, int fd)
{
	int old = atomic_exchange(&s->fd, fd);

	if (UNLIKELY(atomic_load(&s->flight)))
		(void)flight_close(run, atomic_exchange(&s->flight, NULL));
	if (UNLIKELY(atomic_load(&s->files)))
		ring_files_close(atomic_exchange(&s->files, NULL));
	if (UNLIKELY(atomic_load(&s->nr_rings)))
		batch_forget(run, s);
	if (UNLIKELY(atomic_load(&s->pipe)))
		pipes_drop(run, s);
	slot_forget_listing(s);
	return old;
}

void call_drop(struct lane *l, struct slot *s, struct outcome *out)
{
	/* Taken first: of two that close it only one does. */
	int fd = s ? slot_swap_fd(l->run, s, -1) : -1;

	call_set(out, close(fd));
}

const struct engine engine_sys = {
	.name = "sys",
	.summary = "the calls themselves",
	.gives_back = true,
	.find = sys_find,
};
