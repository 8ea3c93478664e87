/* SPDX-License-Identifier: MIT */
/*
 * The prologue of ARTC's strace dialect: calls of a thread 0 at time 0 that
 * nobody made. They say what a process had when it was attached to:
 *
 *   chdir(DIR)                              its working directory
 *   open(PATH, FLAGS) = FD, lseek(FD, POS)  a descriptor and where it stands
 *   open(PATH, O_CREAT), unlink(PATH)       one on a file that has no name any more
 *   socket(...) = FD                        one on a pipe or a socket
 *
 * Here that is found_state and found_fd, the events of a recorder that attaches.
 */
#ifndef IMPORT_PROLOGUE_H
#define IMPORT_PROLOGUE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "model/event.h"

struct prologue_fd {
	int64_t fd;
	const char *path; /* NULL: a pipe or a socket */
	uint64_t flags;
	int64_t offset;
	bool removed;
};

struct prologue {
	struct arena arena;
	const char *cwd; /* NULL: not told */
	VEC(struct prologue_fd) fds; /* in the order of the calls */
};

void prologue_init(struct prologue *p);
void prologue_release(struct prologue *p);

/* A call of thread 0. -EBADMSG with words: it says nothing that a prologue can say. */
MUST_CHECK int prologue_take(struct prologue *p, const struct event *ev, struct err *err);

/* The events that it amounts to. Arguments live in the arena; row and arguments are all that is set. */
size_t prologue_nr_events(const struct prologue *p);
void prologue_event(const struct prologue *p, size_t n, struct arena *a, struct event *ret);
/* Forgets all: the events were made. */
void prologue_clear(struct prologue *p);

#endif
