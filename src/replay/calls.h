/* SPDX-License-Identifier: MIT */
/*
 * The functions that make calls again: one for all rows that are GENERIC in the
 * column `replay` of the table, one for each that is SPECIAL (a missing one does
 * not link), and those for the plan's own actions. They run on a lane. Registers
 * are translated and patched; out gets what the call gave.
 */
#ifndef REPLAY_CALLS_H
#define REPLAY_CALLS_H

#include "replay/inside.h"

#define CALL_GENERIC(name)
#define CALL_SPECIAL(name) void replay_##name(struct lane *l, struct ready *a, struct outcome *out);
#define CALL_NOTHING(name)
#define CALL_SIMULATED(name)
#define CALL_WAITING(name)
#define CALL_UNSUPPORTED(name)
#define SYSCALL(id, name, class, args, result, model, replay) CALL_##replay(name)
#include "model/syscalls.def"
#undef SYSCALL
#undef CALL_GENERIC
#undef CALL_SPECIAL
#undef CALL_NOTHING
#undef CALL_SIMULATED
#undef CALL_WAITING
#undef CALL_UNSUPPORTED

void call_generic(struct lane *l, struct ready *a, struct outcome *out);
/* A call of lseek() for data or for a hole. */
bool call_asks_for_holes(const struct ready *a);
/* Reads that may go without a copy. */
void call_read(struct lane *l, struct ready *a, struct outcome *out);
/* Bytes through pipes and what is like them; row: whether the call is such a one. */
void call_stream(struct lane *l, struct ready *a, struct outcome *out);
bool call_moves_through_stream(const struct row *row);
/* The recorded outcome stands, and nobody takes it for a call that was made. */
void call_simulate(struct ready *a, struct outcome *out);

struct call_opening {
	int dir;
	const char *path;
	uint64_t flags,
		mode; /* flags are safe ones but for O_NONBLOCK, which is the recorded one */
};

/* False: it is no FIFO, and nothing was done. */
bool call_open_fifo(struct lane *l, struct ready *a, const struct call_opening *o,
		    struct outcome *out);
/*
 * Copying between a file and what is not there (-1), n bytes: the file's half is
 * made. What would have come is not known: filler.
 */
void call_copy_half(struct lane *l, uint64_t n, int in, off_t *off_in, int out_fd, off_t *off_out,
		    struct outcome *out);
/* Moves the offset as the recorded read did. */
void call_seek_over(struct lane *l, struct ready *a, struct outcome *out);
void replay_plan_cwd(struct lane *l, struct ready *a, struct outcome *out);
void replay_plan_root(struct lane *l, struct ready *a, struct outcome *out);
void replay_plan_umask(struct lane *l, struct ready *a, struct outcome *out);
void replay_plan_drop(struct lane *l, struct ready *a, struct outcome *out);
void replay_plan_dup(struct lane *l, struct ready *a, struct outcome *out);
void replay_plan_handle(struct lane *l, struct ready *a, struct outcome *out);
void replay_plan_open(struct lane *l, struct ready *a, struct outcome *out);
void replay_plan_locker(struct lane *l, struct ready *a, struct outcome *out);
/* Without maps what was stored through them is written: calls that say where that is. */
bool call_follows_maps(const struct row *row);
void replay_map_store(struct lane *l, struct ready *a, struct outcome *out);

/* The machine that we run on. */
static inline enum arch calls_arch(void)
{
#if defined(__aarch64__)
	return ARCH_AARCH64;
#else
	return ARCH_X86_64;
#endif
}

/* What a call of the C library or the kernel returned, as an outcome. */
void call_set(struct outcome *out, int64_t ret);
/* The recorded outcome stands. */
static inline void call_stands(const struct ready *a, struct outcome *out)
{
	*out = a->expected;
}

/* A new descriptor goes to the slot that waits for it; without one it is closed again. */
void call_set_fd(struct lane *l, const struct ready *a, unsigned int which, int fd,
		 struct outcome *out);
/* The slot that a register was translated from; NULL when it was none. */
struct slot *call_slot(struct lane *l, const struct ready *a, unsigned int reg);
/* Closes what the slot has; EBADF when that is nothing. */
void call_drop(struct lane *l, struct slot *s, struct outcome *out);

/* Swaps two names by a third one, where the file system cannot do it at once. As rename(2). */
int call_exchange_by_link(const char *one, const char *two);

#endif
