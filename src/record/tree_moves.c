/* SPDX-License-Identifier: MIT */
/*
 * Working directories that change while other threads use them. Between the entry
 * and the exit of a chdir nobody can tell whether a relative name of another
 * thread means a file in the old or in the new directory, and what such a call has
 * touched may be learned only then. So it counts as touched in both.
 *
 * 1. Both directories are kept open from the entry of the call on. They are let go
 *    when no call is under way that changes what names mean: until then a name may have
 *    been meant in any of them, when threads change the directory at the same time. So the
 *    working directory of a thread that shares it is always one of them.
 * 2. Whoever sees the calls touches those that are under way once more when one
 *    begins, and those that were made meanwhile before it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "record/tree_inside.h"

/* More than that, and not all meanings of a name are looked up. */
#define MOVES_MAX 64

/* Threads share it as they were made to. What cannot be told, as of a thread that is gone, counts as yes. */
static bool share_cwd(pid_t a, pid_t b)
{
	if (a == b || syscall(SYS_kcmp, a, b, KCMP_FS, 0, 0) <= 0)
		return true;
	/* One that has ended shares nothing any more, but has done so. */
	return tree_thread_is_gone(a) || tree_thread_is_gone(b);
}

static bool is_known(const struct tree *t, const struct tree_move *move)
{
	size_t i;

	for (i = 0; i < t->moves.len; i++) {
		const struct tree_move *m = &t->moves.items[i];

		if (tree_same_identity(&m->identity, &move->identity) &&
		    share_cwd(m->tid, move->tid))
			return true;
	}
	return false;
}

/* Takes the descriptor. */
static void add(struct tree *t, pid_t tid, int fd)
{
	struct tree_move m = { .tid = tid, .fd = fd };
	bool is_asked = fd >= 0 && tree_fd_identity(fd, &m.identity);
	bool is_new = !is_asked || !is_known(t, &m);

	if (is_asked && is_new && t->moves.len < MOVES_MAX) {
		VEC_PUSH(&t->moves, m);
		return;
	}
	t->nr_incomplete += is_new;
	if (fd >= 0)
		(void)close(fd); /* O_PATH: nothing to fail */
}

void tree_add_move(struct tree *t, pid_t tid, int fd)
{
	add(t, tid, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void tree_add_move_to(struct tree *t, pid_t tid, enum walk_base base, int fd)
{
	char path[64];
	int own = open(tree_base_path(path, tid, base, fd), O_PATH | O_DIRECTORY | O_CLOEXEC);

	/* No directory, or no such descriptor: the call will fail. */
	if (own >= 0 || (errno != ENOENT && errno != ENOTDIR))
		add(t, tid, own);
}

void tree_forget_moves(struct tree *t)
{
	size_t i;

	for (i = 0; i < t->moves.len; i++)
		(void)close(t->moves.items[i].fd); /* O_PATH: nothing to fail */
	t->moves.len = 0;
}

bool tree_walk_moves(struct tree *t, const struct walk_request *q, unsigned int *ret_type)
{
	struct walk_request there = *q;
	size_t i, nr = t->moves.len; /* a chdir adds where it may lead from there */
	unsigned int type;
	bool any = false, is_gone = nr && tree_thread_is_gone(q->tid);

	there.base = WALK_FROM_OURS;
	for (i = 0; i < nr && !t->r; i++) {
		const struct tree_move *m = &t->moves.items[i];

		if (!share_cwd(m->tid, q->tid))
			continue;
		there.fd = m->fd;
		there.tid = is_gone ? m->tid : q->tid; /* they share the root too */
		type = tree_walk_new(t, &there);
		if (!any || type == S_IFDIR || type == S_IFLNK)
			*ret_type = type;
		any = true;
	}
	return any;
}
