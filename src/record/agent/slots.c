/* SPDX-License-Identifier: MIT */
/*
 * Slots: the memory of each thread in that of its image. A program has few threads, and what
 * it has mapped counts for its limits and is locked with all else of it (RLIMIT_AS, mlockall), so it maps a few
 * slots at first. More are mapped before the call that makes a thread, or a
 * process, for which there would be none. What is mapped stays where it is, as threads use it;
 * what is added comes behind it, where room was left (enter.c), or else anywhere:
 *
 *   views of an address space:  | 0 | 1 .. 4 | 5 .. 8 |          | 9 .. 16 |  ...
 *
 * The first slot has no ring; it is for threads that find no other one free.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "record/agent/inside.h"

#define FIRST_SLOTS 4u
/* By which a new view overlaps the one before: the kernel makes it of something that is mapped. */
#define OVERLAP_BYTES UINT64_C(4096)

static uint64_t offset_of(unsigned int slot)
{
	return slot ? WIRE_BLOCK_BYTES + (uint64_t)(slot - 1) * WIRE_SLOT_BYTES : 0;
}

struct wire_block *agent_block_of(const struct agent_image *im, unsigned int slot)
{
	return (struct wire_block *)(void *)(im->shared + offset_of(slot));
}

/* Without a net a call cannot be put back to make room before it. */
static unsigned int first_end(const struct agent *a)
{
	return a->netless ? WIRE_NR_SLOTS : 1 + FIRST_SLOTS;
}

uint64_t slots_first_bytes(const struct agent *a)
{
	return offset_of(first_end(a));
}

void slots_begin(const struct agent *a, struct agent_space *space)
{
	space->views[0] = (struct slot_view){ .remote = space->image->remote, .end = first_end(a) };
	space->nr_views = 1;
}

static unsigned int end_of(const struct agent_space *space)
{
	return space->views[space->nr_views - 1].end;
}

uint64_t slots_address(const struct agent_space *space, unsigned int slot)
{
	const struct slot_view *v = space->views;

	while (slot >= v->end)
		v++;
	return v->remote + (offset_of(slot) - offset_of(v->first));
}

uint64_t slots_view_bytes(const struct slot_view *v)
{
	return offset_of(v->end) - offset_of(v->first);
}

unsigned int slots_find_free(const struct agent_space *space)
{
	unsigned int slot = 1, end = end_of(space);

	while (slot < end && space->image->slots[slot])
		slot++;
	return slot < end ? slot : 0;
}

/* Whether there will be one for a child, also when all calls that make one come to that. */
static bool has_room(struct tracer *tr, const struct tracee *t)
{
	const struct agent_space *space = t->agent->space;
	unsigned int slot, nr_free = 0, nr_makers = 1, end = end_of(space);

	for (slot = 1; slot < end; slot++)
		nr_free += !space->image->slots[slot];
	MAP_EACH (&tr->all.by_tid, e) {
		const struct tracee *other = e->value;

		nr_makers += other != t && other->agent && other->state == TRACEE_IN_CALL &&
			     other->agent->space->image == space->image && other->row &&
			     clones_is_one(other->row);
	}
	return nr_free >= nr_makers;
}

/* Twice as many; no file need be opened for that, to which the program may have no right any more. */
static void add_view(const struct agent *a, struct tracee *t)
{
	struct agent_space *space = t->agent->space;
	const struct slot_view *last = &space->views[space->nr_views - 1];
	struct slot_view v = { .first = last->end, .end = 2 * last->end - 1 };
	struct remote r = { a, t, outlive_remote(a) };
	uint64_t last_bytes = slots_view_bytes(last);
	int64_t at;

	if (v.end > WIRE_NR_SLOTS)
		v.end = WIRE_NR_SLOTS;
	at = remote_call(&r, SYS_mremap,
			 (uint64_t[]){ last->remote, last_bytes, last_bytes + slots_view_bytes(&v),
				       0, 0, 0 });
	if (at == (int64_t)last->remote) {
		v.remote = last->remote + last_bytes;
		space->views[space->nr_views++] = v;
		return;
	}
	at = remote_call(&r, SYS_mremap,
			 (uint64_t[]){ last->remote + last_bytes - OVERLAP_BYTES, 0,
				       OVERLAP_BYTES + slots_view_bytes(&v), MREMAP_MAYMOVE, 0,
				       0 });
	space->is_full = at < 0 && at > -4096;
	if (space->is_full)
		return; /* calls of further threads are the tracer's */
	v.remote = (uint64_t)at + OVERLAP_BYTES;
	space->views[space->nr_views++] = v;
}

bool agent_make_room(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	struct agent_space *space = t->agent ? t->agent->space : NULL;

	if (!space)
		return false;
	t->agent->nr_views = space->nr_views;
	if (space->is_full || space->image->off || space->lost_gs || t->own_filter ||
	    end_of(space) == WIRE_NR_SLOTS || has_room(tr, t) ||
	    !remote_is_syscall(t, ip - SITE_SYSCALL_BYTES) ||
	    !remote_put_back(t, ip - SITE_SYSCALL_BYTES))
		return false;
	add_view(tr->agent, t);
	return true;
}
