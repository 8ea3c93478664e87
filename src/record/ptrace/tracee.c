/* SPDX-License-Identifier: MIT */
#include "record/ptrace/tracee.h"

#include <stdlib.h>

#include "base/mem.h"

struct tracee *tracees_find(const struct tracees *all, pid_t tid)
{
	return map_get(&all->by_tid, &tid, sizeof(tid));
}

struct tracee *tracees_get(struct tracees *all, pid_t tid)
{
	void **slot = map_slot(&all->by_tid, &tid, sizeof(tid));
	struct tracee *t = *slot;

	if (!t) {
		t = xcalloc(1, sizeof(*t));
		t->tid = tid;
		t->is_movable = all->are_movable;
		arena_init(&t->arena);
		*slot = t;
	}
	return t;
}

static void tracee_free(struct tracee *t)
{
	arena_release(&t->arena);
	witness_release(&t->witness);
	free(t->hope);
	free(t);
}

void tracees_remove(struct tracees *all, struct tracee *t)
{
	(void)map_remove(&all->by_tid, &t->tid, sizeof(t->tid));
	tracee_free(t);
}

void tracees_rename(struct tracees *all, struct tracee *t, pid_t tid)
{
	(void)map_remove(&all->by_tid, &t->tid, sizeof(t->tid));
	t->tid = tid;
	*map_slot(&all->by_tid, &tid, sizeof(tid)) = t;
}

void tracees_release(struct tracees *all)
{
	MAP_EACH (&all->by_tid, e)
		tracee_free(e->value);
	map_release(&all->by_tid);
}
