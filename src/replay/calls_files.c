/* SPDX-License-Identifier: MIT */
/* Opening, closing, doubling, locking; names that need care. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/banned.h"
#include "model/kernel_structs.h"
#include "replay/calls.h"

#define NO_COPY_MIN_BYTES (32 << 10)

void call_read(struct lane *l, struct ready *a, struct outcome *out)
{
	off_t offset = (off_t)a->regs[3];

	if (!l->run->o->no_copy_reads || a->regs[2] < NO_COPY_MIN_BYTES ||
	    (a->flags & READY_RESULT)) {
		call_generic(l, a, out);
		return;
	}
	call_set(out, sendfile(l->run->null_fd, (int)a->regs[0],
			       a->row_id == SC_pread64 ? &offset : NULL, a->regs[2]));
	if (out->err == EINVAL) /* not a file */
		call_generic(l, a, out);
}

void call_seek_over(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	if (a->expected.ret > 0 && !a->expected.err)
		(void)lseek((int)a->regs[0], a->expected.ret, SEEK_CUR); /* not all have one */
	call_stands(a, out);
}

/* No signals, no controlling terminal, and no descriptor for whatever is executed later. */
static uint64_t safe_flags(uint64_t flags)
{
	return (flags & ~(uint64_t)O_ASYNC) | O_CLOEXEC | O_NOCTTY;
}

/* What the new descriptor leads to is an end of the same pipe. */
static void share_pipe(struct lane *l, const struct ready *a, struct slot *from,
		       const struct outcome *out)
{
	struct pipe *pipe = from ? atomic_load(&from->pipe) : NULL;

	if (UNLIKELY(pipe) && !out->err && a->slots[0] != READY_NO_SLOT)
		pipes_hold(&l->run->slots[a->slots[0]], pipe, atomic_load(&from->pipe_ends));
}

/* A pipe opened again, through a descriptor of it: ours never wait. */
static void share_opened(struct lane *l, const struct ready *a, int fd, const struct outcome *out)
{
	uint32_t i;

	if (fd < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return;
	for (i = 0; i < a->nr_patches; i++)
		if (a->patches[i].kind == PATCH_PATH)
			share_pipe(l, a, &l->run->slots[a->patches[i].slot], out);
}

static bool is_through_fd(const struct ready *a)
{
	uint32_t i;

	for (i = 0; i < a->nr_patches; i++)
		if (a->patches[i].kind == PATCH_PATH)
			return true;
	return false;
}

static bool open_fifo(struct lane *l, struct ready *a, int dir, const char *path, uint64_t flags,
		      uint64_t mode, struct outcome *out)
{
	struct call_opening o = { dir, path, safe_flags(flags), mode };

	return a->flags & READY_STREAM && !a->expected.err && !is_through_fd(a) &&
	       call_open_fifo(l, a, &o, out);
}

static void open_into_slot(struct lane *l, struct ready *a, int dir, const char *path,
			   uint64_t flags, uint64_t mode, struct outcome *out)
{
	int fd;

	if (UNLIKELY(open_fifo(l, a, dir, path, flags, mode, out)))
		return;
	fd = openat(dir, path, (int)safe_flags(flags), (mode_t)mode);
	if (fd < 0 && errno == EINVAL && (flags & O_DIRECT) && a->expected.err != EINVAL) {
		/* A target that cannot: the report says how often. */
		fd = openat(dir, path, (int)safe_flags(flags & ~(uint64_t)O_DIRECT), (mode_t)mode);
		l->sums.nr_direct += fd >= 0;
	}
	call_set_fd(l, a, 0, fd, out);
	if (UNLIKELY(a->flags & READY_STREAM))
		share_opened(l, a, fd, out);
}

void replay_open(struct lane *l, struct ready *a, struct outcome *out)
{
	open_into_slot(l, a, AT_FDCWD, (char *)a->regs[0], a->regs[1], a->regs[2], out);
}

void replay_openat(struct lane *l, struct ready *a, struct outcome *out)
{
	open_into_slot(l, a, (int)a->regs[0], (char *)a->regs[1], a->regs[2], a->regs[3], out);
}

void replay_openat2(struct lane *l, struct ready *a, struct outcome *out)
{
	struct k_open_how *how = (struct k_open_how *)a->regs[2];

	if (how && a->regs[3] >= sizeof(*how) &&
	    UNLIKELY(open_fifo(l, a, (int)a->regs[0], (char *)a->regs[1], how->flags, how->mode,
			       out)))
		return;
	/* Unlike the older calls it refuses what it does not know: only what is known is added. */
	if (how && a->regs[3] >= sizeof(*how) && !(how->flags & O_PATH))
		how->flags = safe_flags(how->flags);
	call_set_fd(l, a, 0,
		    (int)syscall(SYS_openat2, (int)a->regs[0], a->regs[1], how, a->regs[3]), out);
}

void replay_creat(struct lane *l, struct ready *a, struct outcome *out)
{
	open_into_slot(l, a, AT_FDCWD, (char *)a->regs[0], O_CREAT | O_WRONLY | O_TRUNC, a->regs[1],
		       out);
}

/* A handle of one file system means nothing to another, and a plan has none: the name is looked up. */
void replay_name_to_handle_at(struct lane *l, struct ready *a, struct outcome *out)
{
	struct {
		struct file_handle h;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = { .h.handle_bytes = MAX_HANDLE_SZ };
	int mount_id;

	(void)l;
	if (a->expected.err == EOVERFLOW)
		handle.h.handle_bytes = 0;
	call_set(out, name_to_handle_at((int)a->regs[0], (char *)a->regs[1], &handle.h, &mount_id,
					(int)a->regs[4]));
}

void replay_open_by_handle_at(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_stands(a, out);
}

/*
 * A file like a memfd's, in a file system that can hold only so much. It has no
 * seals: calls_files.c, replay_fcntl_add_seals().
 */
static int make_memory_file(struct lane *l, unsigned int flags)
{
	char name[16];
	int fd;

	(void)snprintf(name, sizeof(name), "%u", (unsigned int)l->number);
	fd = openat(l->run->memory_fd, name,
		    O_RDWR | O_CREAT | O_EXCL | (flags & MFD_CLOEXEC ? O_CLOEXEC : 0), 0700);
	if (fd < 0)
		return fd;
	(void)fchmod(fd, 0777); /* our own file */
	(void)unlinkat(l->run->memory_fd, name, 0);
	return fd;
}

void replay_memfd_create(struct lane *l, struct ready *a, struct outcome *out)
{
	unsigned int flags = (unsigned int)a->regs[1];
	/* Huge pages are bounded by whoever has set them aside; what fails shall fail as it did. */
	bool bounded = l->run->memory_fd >= 0 && !(flags & MFD_HUGETLB) && !a->expected.err;

	call_set_fd(l, a, 0,
		    bounded ? make_memory_file(l, flags)
			    : (int)syscall(SYS_memfd_create, a->regs[0], flags),
		    out);
}

/* Whether it is a file of make_memory_file(), whose seals are only recorded ones. */
static bool is_memory_file(const struct lane *l, int fd)
{
	struct stat st, memory;

	return l->run->memory_fd >= 0 && !fstat(fd, &st) && !fstat(l->run->memory_fd, &memory) &&
	       st.st_dev == memory.st_dev;
}

void replay_fcntl_add_seals(struct lane *l, struct ready *a, struct outcome *out)
{
	if (is_memory_file(l, (int)a->regs[0]))
		call_stands(a, out);
	else
		call_generic(l, a, out);
}

void replay_fcntl_get_seals(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_fcntl_add_seals(l, a, out);
}

void replay_close(struct lane *l, struct ready *a, struct outcome *out)
{
	call_drop(l, call_slot(l, a, 0), out);
}

/* Its numbers are of no table of ours: what it closes are actions of their own. */
void replay_close_range(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_stands(a, out);
}

/* Numbers do not matter here, slots do. */
static void dup_into_slot(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *from = call_slot(l, a, 0);

	call_set_fd(l, a, 0, fcntl((int)a->regs[0], F_DUPFD_CLOEXEC, 0), out);
	share_pipe(l, a, from, out);
}

void replay_dup(struct lane *l, struct ready *a, struct outcome *out)
{
	dup_into_slot(l, a, out);
}

/* What was open under the new number is closed, unless other processes still have it. */
void replay_dup2(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *from = call_slot(l, a, 0), *old = call_slot(l, a, 1);
	struct outcome ignored;

	/* Of equal numbers nothing happens. Errors are about the new number, unless the old is not open. */
	if ((from && from == old && !a->expected.err) ||
	    (a->expected.err && ((int)a->regs[0] >= 0 || a->expected.err != EBADF))) {
		call_stands(a, out);
		return;
	}
	dup_into_slot(l, a, out);
	if (!out->err && old && a->slots[0] != READY_NO_SLOT &&
	    old != &l->run->slots[a->slots[0]] && !(a->flags & READY_SHARED_FD))
		call_drop(l, old, &ignored);
}

void replay_dup3(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_dup2(l, a, out);
}

void replay_fcntl_dupfd(struct lane *l, struct ready *a, struct outcome *out)
{
	if (a->expected.err == EINVAL || a->expected.err == EMFILE) /* of the wanted number */
		call_stands(a, out);
	else
		dup_into_slot(l, a, out);
}

void replay_fcntl_dupfd_cloexec(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_fcntl_dupfd(l, a, out);
}

/*
 * All lanes are one process here: locks belong to open files instead. Those of a
 * process are of an open file that stands for it (replay_plan_locker()).
 */
static void lock(struct ready *a, int cmd, struct outcome *out)
{
	struct k_flock *lock = (struct k_flock *)a->regs[2];

	if (lock && a->expected.err != EINVAL)
		lock->l_pid = 0; /* as these commands want it */
	call_set(out, fcntl((int)a->regs[0], cmd, lock));
}

#define LOCK_CALL(name, cmd)                                                                       \
	void replay_##name(struct lane *l, struct ready *a, struct outcome *out)                   \
	{                                                                                          \
		(void)l;                                                                           \
		lock(a, cmd, out);                                                                 \
	}

LOCK_CALL(fcntl_getlk, F_OFD_GETLK)
LOCK_CALL(fcntl_setlk, F_OFD_SETLK)
LOCK_CALL(fcntl_setlkw, F_OFD_SETLKW)
LOCK_CALL(fcntl_ofd_getlk, F_OFD_GETLK)
LOCK_CALL(fcntl_ofd_setlk, F_OFD_SETLK)
LOCK_CALL(fcntl_ofd_setlkw, F_OFD_SETLKW)

void replay_flock(struct lane *l, struct ready *a, struct outcome *out)
{
	call_generic(l, a, out);
}

bool call_asks_for_holes(const struct ready *a)
{
	return a->regs[2] == SEEK_DATA || a->regs[2] == SEEK_HOLE;
}

/* Where holes are is the target's affair, but what follows is at the recorded offset. */
void replay_lseek(struct lane *l, struct ready *a, struct outcome *out)
{
	bool asks = call_asks_for_holes(a);
	off_t at = asks ? lseek((int)a->regs[0], 0, SEEK_CUR) : 0;

	call_generic(l, a, out);
	if (!asks || at < 0 || (out->err && out->err != ENXIO))
		return;
	if (!a->expected.err)
		at = a->expected.ret;
	(void)lseek((int)a->regs[0], at, SEEK_SET); /* as the call that it corrects */
}

void replay__llseek(struct lane *l, struct ready *a, struct outcome *out)
{
	off_t offset = (off_t)(a->regs[1] << 32 | (a->regs[2] & UINT32_MAX));

	(void)l;
	call_set(out, lseek((int)a->regs[0], offset, (int)a->regs[4]) < 0 ? -1 : 0);
}

void call_copy_half(struct lane *l, uint64_t n, int in, off_t *off_in, int out_fd, off_t *off_out,
		    struct outcome *out)
{
	if (n > l->run->filler_bytes)
		n = l->run->filler_bytes;
	if (in < 0 && out_fd < 0)
		*out = (struct outcome){ .ret = (int64_t)n };
	else if (in >= 0)
		call_set(out, sendfile(l->run->null_fd, in, off_in, n));
	else if (off_out)
		call_set(out, pwrite(out_fd, l->run->filler, n, *off_out));
	else
		call_set(out, write(out_fd, l->run->filler, n));
}

static void copy_half(struct lane *l, struct ready *a, int in, off_t *off_in, int out_fd,
		      off_t *off_out, struct outcome *out)
{
	if (a->expected.err || (in < 0 && out_fd < 0))
		call_stands(a, out);
	else
		call_copy_half(l, a->expected.ret > 0 ? (uint64_t)a->expected.ret : 0, in, off_in,
			       out_fd, off_out, out);
}

/*
 * Copies, in as many calls as this kernel and file system want to have: how much
 * one of them copies is their own affair. regs[size] is what is left; offsets that
 * the call is given move on.
 */
static void copy_all(struct lane *l, struct ready *a, unsigned int size, struct outcome *out)
{
	int64_t done = 0;

	do {
		call_generic(l, a, out);
		if (out->err || out->ret <= 0)
			break;
		done += out->ret;
		a->regs[size] -= (uint64_t)out->ret;
	} while (a->regs[size] && done < a->expected.ret);
	if (done)
		*out = (struct outcome){ .ret = done };
}

void replay_copy_file_range(struct lane *l, struct ready *a, struct outcome *out)
{
	copy_all(l, a, 4, out);
}

void replay_sendfile(struct lane *l, struct ready *a, struct outcome *out)
{
	int to = (int)a->regs[0], from = (int)a->regs[1];

	if (to < 0 || from < 0)
		copy_half(l, a, from, (off_t *)a->regs[2], to, NULL, out);
	else
		copy_all(l, a, 3, out);
}

void replay_splice(struct lane *l, struct ready *a, struct outcome *out)
{
	int from = (int)a->regs[0], to = (int)a->regs[2];

	if (from < 0 || to < 0)
		copy_half(l, a, from, (off_t *)a->regs[1], to, (off_t *)a->regs[3], out);
	else {
		a->regs[5] |= SPLICE_F_NONBLOCK; /* of pipes: nobody waits there */
		copy_all(l, a, 4, out);
	}
}

/* The devices that every program may have. */
static bool is_harmless_device(uint64_t mode, uint64_t dev)
{
	static const uint8_t minors[] = { 3, 5, 7, 8, 9 }; /* null zero full random urandom */
	size_t i;

	if ((mode & S_IFMT) != S_IFCHR)
		return false;
	if (major(dev) == 5 && minor(dev) == 0) /* tty */
		return true;
	for (i = 0; i < ARRAY_LEN(minors); i++)
		if (major(dev) == 1 && minor(dev) == minors[i])
			return true;
	return false;
}

static void make_node(struct ready *a, int dir, unsigned int first, struct outcome *out)
{
	uint64_t mode = a->regs[first + 1], dev = a->regs[first + 2];
	uint64_t type = mode & S_IFMT;
	bool device = type == S_IFCHR || type == S_IFBLK;

	if (device && !is_harmless_device(mode, dev)) {
		call_stands(a, out);
		return;
	}
	if (device && dev == makedev(1, 8))
		dev = makedev(1, 9);
	call_set(out, mknodat(dir, (char *)a->regs[first], (mode_t)mode, device ? dev : 0));
}

void replay_mknod(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	make_node(a, AT_FDCWD, 0, out);
}

void replay_mknodat(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	make_node(a, (int)a->regs[0], 1, out);
}

void replay_statfs64(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, statfs((char *)a->regs[0], (struct statfs *)a->regs[2]));
}

void replay_fstatfs64(struct lane *l, struct ready *a, struct outcome *out)
{
	(void)l;
	call_set(out, fstatfs((int)a->regs[0], (struct statfs *)a->regs[2]));
}

void replay_ioctl_fideduperange(struct lane *l, struct ready *a, struct outcome *out)
{
	call_generic(l, a, out);
}

void replay_ioctl_fs_ioc_fiemap(struct lane *l, struct ready *a, struct outcome *out)
{
	call_generic(l, a, out);
}
