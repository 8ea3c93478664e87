/* SPDX-License-Identifier: MIT */
/*
 * Maps of files. A slot keeps address and length; whatever a plan says, only
 * memory within the slot's map is touched. A part that is given up stays
 * reserved, so that nothing of ours can come to lie there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"
#include "replay/calls.h"

#define PAGE UINT64_C(4096)
#define TOUCH_BYTES ((uint64_t)1 << 20) /* at once: a run can be stopped in between */
#define TOUCH_MAX_BYTES ((uint64_t)1 << 30) /* of one map */
#define MADVISE_POISON_FIRST 100 /* MADV_HWPOISON, MADV_SOFT_OFFLINE: they harm the machine */

/* What of [regs[reg], + len) lies in the map; false when nothing does. */
static bool range_in_map(struct lane *l, struct ready *a, unsigned int reg, uint64_t *ret_addr,
			 uint64_t *ret_len)
{
	struct slot *s = call_slot(l, a, reg);
	uint64_t base = s ? atomic_load(&s->addr) : 0, map_len = s ? atomic_load(&s->len_bytes) : 0;
	uint64_t addr = a->regs[reg], len = (a->regs[reg + 1] + PAGE - 1) & ~(PAGE - 1);

	if (!base || addr < base || addr - base >= map_len)
		return false;
	*ret_addr = addr & ~(PAGE - 1);
	*ret_len = len < map_len - (*ret_addr - base) ? len : map_len - (*ret_addr - base);
	return true;
}

/* How far the file reaches into a map of it. */
static uint64_t bytes_of_file(int fd, uint64_t offset, uint64_t len)
{
	uint64_t end = 0;
	struct stat st;

	if (!fstat(fd, &st) && st.st_size > 0 && (uint64_t)st.st_size > offset)
		end = ((uint64_t)st.st_size - offset + PAGE - 1) & ~(PAGE - 1);
	return end < len ? end : len;
}

/* Pages of a private map that are written are memory of the run: whether it may have so many more. */
static bool take_pages(struct lane *l, struct slot *s, uint64_t len)
{
	uint64_t taken = atomic_load(&s->taken_bytes), most = atomic_load(&s->len_bytes);

	if (!atomic_load(&s->is_private))
		return true;
	if (len > most - (taken < most ? taken : most))
		len = most - (taken < most ? taken : most); /* some of them a second time */
	if (!budget_take(&l->run->budget, len))
		return false;
	atomic_fetch_add(&s->taken_bytes, len);
	return true;
}

/*
 * Each page of the map that the file reaches is read, as faults would read it.
 * Through madvise(), which gives an error where another lane has cut the file
 * meanwhile and an access would end the run.
 */
static void touch(struct lane *l, uint8_t *p, uint64_t len, int fd, uint64_t offset)
{
	uint64_t done, piece, end = bytes_of_file(fd, offset, len);

	if (end > TOUCH_MAX_BYTES)
		end = TOUCH_MAX_BYTES;
	for (done = 0; done < end && !run_is_stopped(l->run); done += piece) {
		piece = end - done < TOUCH_BYTES ? end - done : TOUCH_BYTES;
		/* Kernels before 5.14 know only the hint. */
		if (madvise(p + done, piece, MADV_POPULATE_READ) < 0 &&
		    madvise(p + done, piece, MADV_WILLNEED) < 0)
			return;
	}
}

static bool makes_maps(const struct lane *l)
{
	return l->run->o->mmap != RUN_MMAP_SKIP;
}

bool call_follows_maps(const struct row *row)
{
	switch ((int)row->id) {
	case SC_mmap:
	case SC_mmap2:
	case SC_mremap:
	case SC_munmap:
	case EV_map_store:
		return true;
	}
	return false;
}

/* The address of a map that is not made: nothing is ever looked for there. */
#define NO_MAP_BASE PAGE

static void set_map(struct slot *s, uint64_t addr, uint64_t len, uint64_t offset)
{
	atomic_store(&s->len_bytes, len);
	atomic_store(&s->offset, offset);
	atomic_store(&s->addr, addr);
}

/* A map is not made, but its file kept, to write there what is stored through it. */
static void keep_file(struct lane *l, struct ready *a, uint64_t len, uint64_t offset)
{
	struct slot *s = a->slots[0] == READY_NO_SLOT ? NULL : &l->run->slots[a->slots[0]];
	int fd, old;

	if (!s || !(a->regs[3] & MAP_SHARED))
		return;
	fd = fcntl((int)a->regs[4], F_DUPFD_CLOEXEC, 0);
	old = slot_swap_fd(l->run, s, fd);
	if (old >= 0)
		(void)close(old);
	set_map(s, fd < 0 ? 0 : NO_MAP_BASE, len, offset);
}

static void map_file(struct lane *l, struct ready *a, uint64_t offset, struct outcome *out)
{
	uint64_t len = (a->regs[1] + PAGE - 1) & ~(PAGE - 1);
	int prot = (int)a->regs[2] & (PROT_READ | PROT_WRITE);
	int flags = (int)a->regs[3] & (MAP_SHARED | MAP_PRIVATE | MAP_NORESERVE | MAP_POPULATE);
	bool populate;
	struct slot *s;
	void *p;

	if ((int)a->regs[4] < 0 || ((int)a->regs[3] & MAP_ANONYMOUS)) {
		call_stands(a, out); /* no storage behind it */
		return;
	}
	if (!makes_maps(l)) {
		keep_file(l, a, len, offset);
		call_stands(a, out);
		return;
	}
	if (l->run->o->mmap == RUN_MMAP_POPULATE)
		flags |= MAP_POPULATE;
	populate = flags & MAP_POPULATE;
	if ((flags & MAP_PRIVATE) && (prot & PROT_WRITE))
		flags &= ~MAP_POPULATE; /* below */
	p = mmap(NULL, len, prot, flags, (int)a->regs[4], (off_t)offset);
	if (p == MAP_FAILED) {
		call_set(out, -1);
		return;
	}
	call_stands(a, out);
	if (a->slots[0] == READY_NO_SLOT) {
		(void)munmap(p, len);
		out->err = 0;
		return;
	}
	if (l->run->o->mmap == RUN_MMAP_TOUCH && (prot & PROT_READ))
		touch(l, p, len, (int)a->regs[4], offset);
	s = &l->run->slots[a->slots[0]];
	set_map(s, (uint64_t)(uintptr_t)p, len, offset);
	atomic_store(&s->is_private, flags & MAP_PRIVATE);
	/* As MAP_POPULATE: what cannot be loaded is no failure. */
	if (populate && !(flags & MAP_POPULATE)) {
		len = bytes_of_file((int)a->regs[4], offset, len);
		if (len && take_pages(l, s, len))
			(void)madvise(p, len, MADV_POPULATE_WRITE);
	}
}

void replay_mmap(struct lane *l, struct ready *a, struct outcome *out)
{
	map_file(l, a, a->regs[5], out);
}

void replay_mmap2(struct lane *l, struct ready *a, struct outcome *out)
{
	map_file(l, a, a->regs[5] * PAGE, out);
}

void replay_munmap(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *s = call_slot(l, a, 0);
	uint64_t addr, len;
	bool is_all;
	int fd;

	if (!range_in_map(l, a, 0, &addr, &len)) {
		call_stands(a, out);
		return;
	}
	is_all = addr == atomic_load(&s->addr) && len == atomic_load(&s->len_bytes);
	if (is_all)
		set_map(s, 0, 0, 0);
	if (!makes_maps(l)) {
		fd = is_all ? slot_swap_fd(l->run, s, -1) : -1;
		if (fd >= 0)
			(void)close(fd);
		call_stands(a, out);
		return;
	}
	if (is_all) {
		call_set(out, munmap((void *)addr, len));
		budget_give(&l->run->budget, atomic_exchange(&s->taken_bytes, 0));
		return;
	}
	call_set(out,
		 mmap((void *)addr, len, PROT_NONE,
		      MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED
			 ? -1
			 : 0);
}

void replay_mremap(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *s = call_slot(l, a, 0), *to;
	uint64_t addr, len, new_len = (a->regs[2] + PAGE - 1) & ~(PAGE - 1), offset, taken;
	bool is_private;
	void *p;

	call_stands(a, out);
	if (a->slots[0] == READY_NO_SLOT || !range_in_map(l, a, 0, &addr, &len) ||
	    addr != atomic_load(&s->addr))
		return;
	to = &l->run->slots[a->slots[0]];
	offset = atomic_load(&s->offset);
	if (!makes_maps(l)) {
		p = (void *)NO_MAP_BASE;
		if (to != s)
			(void)slot_swap_fd(l->run, to, slot_swap_fd(l->run, s, -1));
	} else {
		p = mremap((void *)addr, len, new_len, MREMAP_MAYMOVE);
	}
	if (p == MAP_FAILED) {
		call_set(out, -1);
		return;
	}
	is_private = atomic_load(&s->is_private);
	taken = atomic_exchange(&s->taken_bytes, 0);
	set_map(s, 0, 0, 0);
	set_map(to, (uint64_t)(uintptr_t)p, new_len, offset);
	atomic_store(&to->is_private, is_private);
	atomic_store(&to->taken_bytes, taken);
}

/*
 * By a call, not by an instruction: where another lane has cut the file meanwhile, it fails, and a
 * store would end the run.
 */
static int64_t store(void *to, const void *from, uint64_t len)
{
	struct iovec local = { (void *)(uintptr_t)from, len }, remote = { to, len };

	return process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
}

/* Files of huge pages know no write(): they are mapped for as long as the store takes. */
static int64_t store_in_huge(int fd, const uint8_t *from, uint64_t len, uint64_t offset)
{
	uint64_t before, bytes;
	struct statfs fs;
	int64_t done;
	void *p;

	if (fstatfs(fd, &fs) < 0 || fs.f_type != HUGETLBFS_MAGIC || fs.f_bsize <= 0) {
		errno = EINVAL;
		return -1;
	}
	before = offset % (uint64_t)fs.f_bsize;
	bytes = before + len + (uint64_t)fs.f_bsize - 1;
	bytes -= bytes % (uint64_t)fs.f_bsize;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - before));
	if (p == MAP_FAILED)
		return -1;
	done = store((uint8_t *)p + before, from, len);
	(void)munmap(p, bytes); /* our own map */
	return done;
}

static int64_t write_at(int fd, const uint8_t *from, uint64_t len, uint64_t offset)
{
	int r = fd < 0 ? -EBADF : pwrite_full(fd, from, len, offset);

	if (r == -EINVAL)
		return store_in_huge(fd, from, len, offset);
	errno = r < 0 ? -r : 0;
	return r < 0 ? -1 : (int64_t)len;
}

void replay_map_store(struct lane *l, struct ready *a, struct outcome *out)
{
	const struct slot *s = call_slot(l, a, 0);
	uint64_t base = s ? atomic_load(&s->addr) : 0, len = a->regs[1], at;
	int64_t done = -1;

	errno = EFAULT;
	at = base ? a->regs[0] - base : 0;
	if (base && a->regs[0] >= base && at <= atomic_load(&s->len_bytes) &&
	    len <= atomic_load(&s->len_bytes) - at)
		done = makes_maps(l) ? store((void *)a->regs[0], (void *)a->regs[2], len)
				     : write_at(atomic_load(&s->fd), (void *)a->regs[2], len,
						atomic_load(&s->offset) + at);
	if (done >= 0 && (uint64_t)done < len) {
		done = -1;
		errno = EFAULT;
	}
	call_set(out, done < 0 ? -1 : 0);
}

void replay_mprotect(struct lane *l, struct ready *a, struct outcome *out)
{
	uint64_t addr, len;

	if (!range_in_map(l, a, 0, &addr, &len)) {
		call_stands(a, out);
		return;
	}
	call_set(out, mprotect((void *)addr, len, (int)a->regs[2] & (PROT_READ | PROT_WRITE)));
}

void replay_pkey_mprotect(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_mprotect(l, a, out);
}

void replay_madvise(struct lane *l, struct ready *a, struct outcome *out)
{
	uint64_t addr, len;

	if (a->regs[2] >= MADVISE_POISON_FIRST || !range_in_map(l, a, 0, &addr, &len)) {
		call_stands(a, out);
		return;
	}
	if (a->regs[2] == MADV_POPULATE_WRITE && !take_pages(l, call_slot(l, a, 0), len)) {
		call_stands(a, out);
		return;
	}
	call_set(out, madvise((void *)addr, len, (int)a->regs[2]));
}

/* The pages are read in, as locking does; they are not kept from the others on this machine. */
void replay_mlock(struct lane *l, struct ready *a, struct outcome *out)
{
	uint64_t addr, len;

	if (range_in_map(l, a, 0, &addr, &len))
		(void)madvise((void *)addr, len, MADV_WILLNEED); /* a hint: nothing depends on it */
	call_stands(a, out);
}

void replay_mlock2(struct lane *l, struct ready *a, struct outcome *out)
{
	replay_mlock(l, a, out);
}

void replay_msync(struct lane *l, struct ready *a, struct outcome *out)
{
	uint64_t addr, len;

	if (!range_in_map(l, a, 0, &addr, &len) || (!makes_maps(l) && a->regs[2] & MS_ASYNC)) {
		call_stands(a, out);
		return;
	}
	if (!makes_maps(l)) {
		call_set(out, fdatasync(atomic_load(&call_slot(l, a, 0)->fd)));
		return;
	}
	call_set(out, msync((void *)addr, len, (int)a->regs[2]));
}
