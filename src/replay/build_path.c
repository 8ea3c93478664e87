/* SPDX-License-Identifier: MIT */
/* Pathnames; those that lead through a descriptor begin in the directory of our own descriptors. */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/banned.h"
#include "plan/refs.h"
#include "replay/build.h"

/* Calls of two pathnames that the kernel also has with dirfds; -1: none. */
static int at_form(const struct row *row)
{
	switch (row->id) {
	case SC_rename:
		return SYS_renameat;
	case SC_link:
		return SYS_linkat;
	case SC_symlink:
		return SYS_symlinkat;
	default:
		return -1;
	}
}

void build_at_form(struct builder *b)
{
	uint64_t *regs = b->a->regs;
	uint64_t first = regs[0], second = regs[1], fds = (uint64_t)b->run->fds_fd;

	b->a->nr = at_form(b->act->row);
	if (b->a->nr == SYS_symlinkat) {
		regs[1] = fds;
		regs[2] = second;
		return;
	}
	regs[0] = b->from_fds & 1 ? fds : (uint64_t)AT_FDCWD;
	regs[1] = first;
	regs[2] = b->from_fds & 2 ? fds : (uint64_t)AT_FDCWD;
	regs[3] = second;
	regs[4] = 0;
}

/*
 * A call with a pathname that is to begin in the directory of our descriptors:
 * through the dirfd beside it, which an absolute pathname left unused; by the form
 * of the call that has one; or else with that directory as the cwd.
 */
static bool begin_in_fds(struct builder *b, unsigned int i)
{
	const struct row *row = b->act->row;
	uint64_t *dirfd = &b->a->regs[i ? i - 1 : 0];
	unsigned int n;
	uint32_t k;

	if (i && row->args[i - 1].kind == KIND_DIRFD && row->args[i - 1].reg == REG_OWN) {
		for (k = 0; k < b->a->nr_patches; k++)
			if (b->patches[k].where == dirfd)
				b->patches[k--] = b->patches[--b->a->nr_patches];
		*dirfd = (uint64_t)b->run->fds_fd;
		return true;
	}
	if (at_form(row) >= 0) {
		b->from_fds |= 1U << i;
		return row->id != SC_symlink || i == 1;
	}
	for (n = 0; n < row->nr_args; n++)
		if (n != i && (row->args[n].kind == KIND_PATH || row->args[n].kind == KIND_DIRFD))
			return false;
	if (row->id == SC_chdir || row->id == SC_chroot)
		b->a->flags |= READY_OPEN_FIRST;
	else
		b->a->flags |= READY_FROM_FDS;
	return true;
}

void *build_path(struct builder *b, unsigned int i)
{
	const char *rest = NULL;
	size_t rest_len = 0;
	uint32_t slot = 0;
	int r = plan_get_fd_path(&b->act->args[i], &slot, &rest, &rest_len);
	char *path;

	if (!r)
		return build_string(b, &b->act->args[i]);
	if (r > 0)
		slot = build_slot(b, slot);
	/* What follows must not become part of the number. */
	if (r < 0 || slot == READY_NO_SLOT || (rest_len && rest[0] != '/') ||
	    rest_len > PATH_BYTES_MAX || b->run->fds_fd < 0 || !begin_in_fds(b, i)) {
		b->unbuilt = true;
		return NULL;
	}
	path = build_alloc(b, FD_PATH_ROOM + rest_len + 1, 1);
	if (path && rest_len)
		memcpy(path + FD_PATH_ROOM, rest, rest_len);
	if (path)
		build_patch(b, path, PATCH_PATH, slot, 0);
	return path;
}
