/* SPDX-License-Identifier: MIT */
/*
 * What belongs to a process: cwd, root, umask, images. Each lane has its own
 * cwd, root and umask (run.c unshares them), and the plan's own actions set
 * them when the lane goes on with another process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/calls.h"

/* The directory is held in a slot, too: for lanes of other threads and processes that come to have it. */
static void keep_directory(struct lane *l, struct ready *a, const char *path, struct outcome *out)
{
	if (!out->err)
		call_set_fd(l, a, 0, open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), out);
}

/* Through a descriptor: what it leads to becomes the cwd; -1 and errno. */
static int enter_through_fds(struct lane *l, struct ready *a)
{
	int r, saved,
		fd = openat(l->run->fds_fd, (char *)a->regs[0], O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	r = fchdir(fd);
	saved = errno;
	(void)close(fd);
	errno = saved;
	return r;
}

void replay_chdir(struct lane *l, struct ready *a, struct outcome *out)
{
	if (a->flags & READY_OPEN_FIRST)
		call_set(out, enter_through_fds(l, a));
	else
		call_generic(l, a, out);
	keep_directory(l, a, ".", out);
}

void replay_fchdir(struct lane *l, struct ready *a, struct outcome *out)
{
	call_generic(l, a, out);
	keep_directory(l, a, ".", out);
}

/* The cwd stays where it was. */
static void chroot_through_fds(struct lane *l, struct ready *a, struct outcome *out)
{
	int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	call_set(out, cwd < 0 ? -1 : enter_through_fds(l, a));
	if (!out->err)
		call_set(out, chroot("."));
	if (cwd >= 0) {
		if (fchdir(cwd) < 0)
			run_fail(l->run, -errno, "cannot go back to the cwd of lane %u",
				 (unsigned int)l->number);
		(void)close(cwd);
	}
}

void replay_chroot(struct lane *l, struct ready *a, struct outcome *out)
{
	if (a->flags & READY_OPEN_FIRST)
		chroot_through_fds(l, a, out);
	else
		call_generic(l, a, out);
	keep_directory(l, a, "/", out);
}

void replay_umask(struct lane *l, struct ready *a, struct outcome *out)
{
	call_generic(l, a, out);
}

void replay_plan_cwd(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, fchdir((int)a->regs[0]));
}

void replay_plan_root(struct lane *l, struct ready *a, struct outcome *out)
{
	int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = cwd < 0 ? -1 : fchdir((int)a->regs[0]);

	(void)l;
	call_set(out, r < 0 ? r : chroot("."));
	/* A plan that wants another cwd says so; as with chroot(2), it stays. */
	if (!r && fchdir(cwd) < 0)
		call_set(out, -1);
	if (cwd >= 0)
		(void)close(cwd);
}

void replay_plan_umask(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	(void)umask((mode_t)a->regs[0]);
	call_set(out, 0);
}

void replay_plan_drop(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *s = call_slot(l, a, 0);
	int fd = s ? slot_swap_fd(l->run, s, -1) : -1;

	if (fd >= 0 && UNLIKELY(atomic_exchange(&s->borrows_locks, false)))
		(void)fcntl(fd, F_OFD_SETLK, &(struct flock){ .l_type = F_UNLCK });
	/* What could not be opened cannot be missed. */
	call_set(out, fd < 0 ? 0 : close(fd));
}

static void fill_slot(struct lane *l, struct slot *s, int fd, struct outcome *out)
{
	int old;

	call_set(out, fd < 0 ? -1 : 0);
	if (fd < 0)
		return;
	old = s ? slot_swap_fd(l->run, s, fd) : fd;
	if (old >= 0)
		(void)close(old);
}

void replay_plan_dup(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *from = call_slot(l, a, 0), *made = call_slot(l, a, 1);
	struct pipe *pipe = from ? atomic_load(&from->pipe) : NULL;

	fill_slot(l, made, fcntl((int)a->regs[0], F_DUPFD_CLOEXEC, 0), out);
	if (pipe && made && !out->err)
		pipes_hold(made, pipe, atomic_load(&from->pipe_ends));
}

void replay_plan_handle(struct lane *l, struct ready *a, struct outcome *out)
{
	fill_slot(l, call_slot(l, a, 1), open((char *)a->regs[0], O_PATH | O_DIRECTORY | O_CLOEXEC),
		  out);
}

/*
 * Locks of lockers exclude each other as those of processes do, for each has an
 * open file of its own. It is open in both ways, if that may be, as the process may
 * come to lock through another descriptor. Where the file cannot be opened again
 * the program's own open file has to do.
 */
void replay_plan_locker(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *s = call_slot(l, a, 1);
	int of = (int)a->regs[0], flags = fcntl(of, F_GETFL), fd = -1;
	char name[16];

	if (flags >= 0 && l->run->fds_fd >= 0) {
		(void)snprintf(name, sizeof(name), "%d", of);
		fd = openat(l->run->fds_fd, name, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0)
			fd = openat(l->run->fds_fd, name,
				    (flags & O_ACCMODE) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	}
	if (fd < 0) {
		fd = fcntl(of, F_DUPFD_CLOEXEC, 0);
		if (s && fd >= 0)
			atomic_store(&s->borrows_locks, true);
	}
	fill_slot(l, s, fd, out);
}

/* A file of the tree is opened; anything else (a terminal, a pipe, a socket) becomes the null device. */
void replay_plan_open(struct lane *l, struct ready *a, struct outcome *out)
{
	uint64_t type = a->regs[3] & S_IFMT;
	int flags = (int)a->regs[1] & ~(O_CREAT | O_EXCL | O_TRUNC | O_ASYNC);
	int fd;

	if (type == 0 || type == S_IFREG || type == S_IFDIR) {
		fd = open((char *)a->regs[0], flags | O_CLOEXEC | O_NOCTTY);
		/* That it is a directory showed only later. */
		if (fd < 0 && errno == EISDIR)
			fd = open((char *)a->regs[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && a->regs[2])
			(void)lseek(fd, (off_t)a->regs[2],
				    SEEK_SET); /* not all can: then it is 0 */
	} else {
		fd = fcntl(l->run->null_fd, F_DUPFD_CLOEXEC, 0);
	}
	fill_slot(l, call_slot(l, a, 4), fd, out);
}

/* Only what it asks of the storage is done: the image is found, opened and its head read. */
static void touch_image(struct ready *a, int dir, const char *path, int at_flags,
			struct outcome *out)
{
	char head[256];
	int fd;

	call_set(out,
		 (at_flags & AT_EMPTY_PATH) && path && !*path ? 0 : faccessat(dir, path, X_OK, 0));
	if (out->err)
		return;
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0) {
		(void)pread(fd, head, sizeof(head),
			    0); /* as the kernel does; its content is its own */
		(void)close(fd);
	}
	/* What else makes an exec fail (format, size of arguments) is not storage. */
	call_stands(a, out);
	if (a->expected.err == ENOENT || a->expected.err == ENOTDIR || a->expected.err == ELOOP)
		call_set(out, 0);
}

void replay_execve(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	touch_image(a, AT_FDCWD, (char *)a->regs[0], 0, out);
}

void replay_execveat(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	touch_image(a, (int)a->regs[0], (char *)a->regs[1], (int)a->regs[4], out);
}

void replay_exit(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_stands(a, out);
}

void replay_exit_group(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_stands(a, out);
}

/* A descriptor of a process that does not exist here: something that can be closed stands for it. */
void replay_pidfd_getfd(struct lane *l, struct ready *a, struct outcome *out)
{
	if (a->expected.err)
		call_stands(a, out);
	else
		call_set_fd(l, a, 0, fcntl(l->run->null_fd, F_DUPFD_CLOEXEC, 0), out);
}

/* The lane's own: who it was set for has no process here. */
void replay_ioprio_set(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	if (a->regs[0] == 1 && !a->expected.err) /* IOPRIO_WHO_PROCESS */
		(void)syscall(SYS_ioprio_set, 1, 0,
			      (int)a->regs[2]); /* not all may: the rest goes on */
	call_stands(a, out);
}
