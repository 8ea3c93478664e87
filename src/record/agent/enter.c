/* SPDX-License-Identifier: MIT */
/*
 * Entering: a stopped thread is made to map the agent, and the memory that it
 * shares with us. At the end of an execve nothing of the program is in use yet.
 * Later (late.c) the process has one thread, which is behind a call or before it,
 * and everything of it but what any call loses is as it was when we have done.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/io.h"
#include "record/agent/inside.h"
#include "record/creds.h"
#include "record/inproc/agent.h"
#include "record/ptrace/registers.h"

/* As /proc/self/maps has it. */
#define MEMORY_NAME "reprise"

/* What the thread is made to do: it stands behind the agent's text. */
#define AREAS_MAX 2u
#define CALLS_AT_MOST (AREAS_MAX + 6)

struct orders {
	char common[64], image[64]; /* names of our descriptors */
	struct wire_call calls[CALLS_AT_MOST + 1];
};

static_assert(CALLS_AT_MOST <= REMOTE_LIST_MAX, "they are made in one go");

static size_t text_bytes(void)
{
	return ((size_t)(__stop_agent_text - __start_agent_text) + 7) / 8 * 8;
}

static const uint8_t syscall_insn[] = { 0x0f, 0x05 };

/* Of the code that the kernel has put there: it is the same everywhere, so we look at our own. 0: none. */
static uint64_t find_in_vdso(const struct tracee *t, const struct maps *m)
{
	const uint8_t *own = (const uint8_t *)getauxval(AT_SYSINFO_EHDR), *at = NULL;
	const struct map_line *vdso = maps_find_vdso(m);
	uint64_t found;

	if (own && vdso)
		at = memmem(own, vdso->end - vdso->start, syscall_insn, sizeof(syscall_insn));
	if (!at)
		return 0;
	found = vdso->start + (uint64_t)(at - own);
	return remote_is_syscall(t, found) ? found : 0;
}

/* By what the thread makes calls before the agent is there, and when it is gone again. */
struct door {
	struct remote r;
	bool is_lent; /* where the program goes on, for as long as it takes */
};

static int64_t call_by(const struct door *d, long nr, const uint64_t args[6])
{
	uint8_t kept[sizeof(syscall_insn)];
	int64_t ret;

	if (!d->is_lent)
		return remote_call(&d->r, nr, args);
	if (!remote_read(d->r.t, d->r.at, kept, sizeof(kept)) ||
	    !remote_write(d->r.t, d->r.at, syscall_insn, sizeof(syscall_insn)))
		return -EFAULT;
	ret = remote_call(&d->r, nr, args);
	/* Without it the program could not go on. */
	if (!remote_write(d->r.t, d->r.at, kept, sizeof(kept)))
		remote_poke(d->r.t, d->r.at, kept, sizeof(kept));
	return ret;
}

static size_t all_text_bytes(void)
{
	return text_bytes() + sizeof(struct orders);
}

/* syscall: the address of an instruction that the program has; 0: none is known. */
static bool map_text(const struct agent *a, struct tracee *t, uint64_t syscall,
		     const struct maps *m, struct door *ret)
{
	uint64_t args[] = { a->base,
			    all_text_bytes(),
			    PROT_READ | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			    UINT64_MAX,
			    0 };
	struct user_regs_struct regs;

	/* With a gs of its own the agent could not find its state. */
	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0 || regs.cs != REGISTERS_CODE_64 ||
	    regs.gs_base || regs.gs)
		return false;
	if (syscall && !remote_is_syscall(t, syscall))
		return false;
	*ret = (struct door){ .r = { .a = a, .t = t, .at = syscall } };
	if (!syscall)
		ret->r.at = find_in_vdso(t, m);
	if (!ret->r.at) {
		ret->r.at = regs.rip;
		ret->is_lent = true;
	}
	return call_by(ret, SYS_mmap, args) == (int64_t)a->base;
}

/* Where stubs will be needed: near each text, as far as one area does not serve several. */
static unsigned int choose_areas(const struct maps *m, uint64_t ret[AREAS_MAX])
{
	unsigned int nr = 0, k;
	size_t i;

	for (i = 0; i < m->lines.len && nr < AREAS_MAX; i++) {
		const struct map_line *l = &m->lines.items[i];

		for (k = 0; k < nr && !maps_are_near(ret[k], l->start); k++)
			;
		if (!maps_is_text(l) || k < nr)
			continue;
		ret[nr] = maps_find_gap(m, l->start);
		nr += ret[nr] != 0;
	}
	return nr;
}

/* Where the image and what all share shall be, with room for all slots (slots.c); 0: anywhere. */
static void choose_places(struct agent_image *im, const struct maps *m)
{
	im->common = maps_find_apart(m, WIRE_COMMON_BYTES + WIRE_IMAGE_BYTES);
	im->remote = im->common ? im->common + WIRE_COMMON_BYTES : 0;
}

/*
 * Three calls: a descriptor of ours is opened there, mapped, and closed. If the place has been
 * taken, the kernel chooses another.
 */
static void order_map(struct wire_call *at, uint64_t name, uint64_t place, uint64_t bytes,
		      bool is_writable)
{
	at[0] = (struct wire_call){ .nr = SYS_openat,
				    .args = { (uint64_t)AT_FDCWD, name,
					      (is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC },
				    .flags = WIRE_CALL_KEEP };
	at[1] = (struct wire_call){ .nr = SYS_mmap,
				    .args = { place, bytes,
					      PROT_READ | (is_writable ? PROT_WRITE : 0),
					      MAP_SHARED | MAP_NORESERVE, 0, 0 },
				    .flags = WIRE_CALL_FD_FIFTH };
	at[2] = (struct wire_call){ .nr = SYS_close, .flags = WIRE_CALL_FD_FIRST };
}

/* Areas first: the kernel might choose their places for the others. */
static unsigned int give_orders(const struct agent *a, const struct agent_image *im,
				const uint64_t *areas, unsigned int nr_areas, struct orders *ret)
{
	uint64_t at = a->base + text_bytes();
	unsigned int i;

	*ret = (struct orders){ .common = "" };
	(void)snprintf(ret->common, sizeof(ret->common), "/proc/%d/fd/%d", (int)getpid(),
		       a->common_fd);
	(void)snprintf(ret->image, sizeof(ret->image), "/proc/%d/fd/%d", (int)getpid(), im->fd);
	for (i = 0; i < nr_areas; i++)
		ret->calls[i] = agent_area_call(areas[i]);
	order_map(&ret->calls[i], at + offsetof(struct orders, common), im->common,
		  WIRE_COMMON_BYTES, false);
	order_map(&ret->calls[i + 3], at + offsetof(struct orders, image), im->remote,
		  slots_first_bytes(a), true);
	ret->calls[i + 6].nr = WIRE_CALLS_END;
	return i + 6;
}

static bool write_text(const struct agent *a, struct tracee *t, const struct orders *o)
{
	size_t len = (size_t)(__stop_agent_text - __start_agent_text), at = text_bytes();
	uint8_t *both = xcalloc(1, at + sizeof(*o));
	bool done;

	memcpy(both, __start_agent_text, len);
	memcpy(both + at, o, sizeof(*o));
	done = remote_write(t, a->base, both, at + sizeof(*o));
	free(both);
	return done;
}

/* Where processes have other numbers, the names of our descriptors may lead to other files. */
static bool are_ours(struct tracee *t, const struct agent *a, const struct agent_image *im)
{
	struct wire_rule rules[16];
	struct wire_block block;

	return remote_read(t, im->common, rules, sizeof(rules)) &&
	       !memcmp(rules, a->common, sizeof(rules)) &&
	       remote_read(t, im->remote, &block, sizeof(block)) &&
	       !memcmp(&block, im->shared, sizeof(block));
}

static void unmap(const struct agent *a, struct tracee *t, int64_t at, uint64_t bytes)
{
	struct remote r = { a, t, outlive_remote(a) };

	if (at >= 0 || at < -4095)
		(void)remote_call(&r, SYS_munmap, (uint64_t[]){ (uint64_t)at, bytes, 0, 0, 0, 0 });
}

/* The places that were chosen were free: what is there now is ours. */
static void unmap_chosen(const struct agent *a, struct tracee *t, struct agent_image *im,
			 const uint64_t *areas, unsigned int nr_areas)
{
	unsigned int i;

	for (i = 0; i < nr_areas; i++)
		unmap(a, t, (int64_t)areas[i], AREA_BYTES_OF_STUBS);
	if (im->common)
		unmap(a, t, (int64_t)im->common, WIRE_COMMON_BYTES + slots_first_bytes(a));
	im->is_large = true; /* not for others, as it may be mapped elsewhere */
}

/*
 * Writes the agent, and lets the program map the memory that we have behind the
 * descriptors. 0: it cannot; -errno: the agent itself is not there.
 */
static int map_shared(struct tracer *tr, struct tracee *t, struct agent_space *space,
		      const struct maps *m)
{
	struct agent_image *im = space->image;
	uint64_t areas[AREAS_MAX];
	unsigned int nr_areas = choose_areas(m, areas), nr, i;
	int64_t done[CALLS_AT_MOST];
	struct orders o;

	choose_places(im, m);
	nr = give_orders(tr->agent, im, areas, nr_areas, &o);
	if (!write_text(tr->agent, t, &o))
		return -EFAULT;
	if (remote_make_list(tr->agent, t,
			     tr->agent->base + text_bytes() + offsetof(struct orders, calls), nr,
			     done) < 0) {
		unmap_chosen(tr->agent, t, im, areas, nr_areas);
		return -EFAULT;
	}
	im->common = (uint64_t)done[nr_areas + 1];
	im->remote = (uint64_t)done[nr_areas + 4];
	for (i = 0; i < nr_areas; i++) {
		if (done[i] == (int64_t)areas[i])
			agent_add_area(space, areas[i]);
	}
	if (are_ours(t, tr->agent, im))
		return 1;
	unmap(tr->agent, t, done[nr_areas + 1], WIRE_COMMON_BYTES);
	unmap(tr->agent, t, done[nr_areas + 4], slots_first_bytes(tr->agent));
	return 0;
}

/* Its first slot is for those that get none, and tells it from other memory. */
static void begin_image(struct tracer *tr, struct agent_image *im)
{
	struct wire_block *b = agent_block_of(im, 0);

	*b = (struct wire_block){ .off = 1,
				  .alive = outlive_word(tr->agent),
				  .cpu_tsc = ++tr->agent->nr_images + tr->session->start_ns };
}

/*
 * A descriptor of the thread's process, as it is open there: so we can do with it what the
 * process can, and no more, whatever somebody has put there meanwhile.
 */
/* Memory behind a descriptor of the thread's; false: it cannot be had, or is not what it was made to be. */
static bool take_memory(struct tracer *tr, const struct tracee *t, int64_t there,
			struct agent_image *im)
{
	AUTO_CLOSE int fd = found_take(t->pid, (int)there);
	uid_t uids[CREDS_NR_UIDS];

	if (fd < 0 || !creds_read_uids(t->tid, uids) ||
	    !agent_seal_memory(fd, uids[CREDS_FILES_UID], WIRE_IMAGE_BYTES + WIRE_COMMON_BYTES) ||
	    pwrite(fd, tr->agent->common, WIRE_COMMON_BYTES, (off_t)WIRE_IMAGE_BYTES) !=
		    (ssize_t)WIRE_COMMON_BYTES)
		return false;
	return agent_image_adopt(tr->agent, im, fd);
}

static int64_t map_there(const struct remote *r, uint64_t place, int64_t fd, uint64_t offset,
			 uint64_t bytes)
{
	return remote_call(r, SYS_mmap,
			   (uint64_t[]){ place, bytes, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_NORESERVE, (uint64_t)fd, offset });
}

/*
 * A program may have neither the right nor the /proc to open what is ours: then it makes the
 * memory, and we take it from there. It has a copy of what all share, which nobody brings up to date.
 */
static bool map_made_there(struct tracer *tr, struct tracee *t, struct agent_image *im,
			   const struct maps *m)
{
	struct remote r = { tr->agent, t, outlive_remote(tr->agent) };
	uint64_t at = tr->agent->base + text_bytes();
	int64_t there, remote = -1, common = -1;

	/* Another thread than the first may have descriptors of its own. */
	if (t->tid != t->pid || !remote_write(t, at, MEMORY_NAME, sizeof(MEMORY_NAME)))
		return false;
	there = remote_call(&r, SYS_memfd_create,
			    (uint64_t[]){ at, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0, 0 });
	if (there < 0)
		return false;
	choose_places(im, m);
	if (take_memory(tr, t, there, im)) {
		remote = map_there(&r, im->remote, there, 0, slots_first_bytes(tr->agent));
		common = map_there(&r, im->common, there, WIRE_IMAGE_BYTES, WIRE_COMMON_BYTES);
	}
	(void)remote_call(&r, SYS_close, (uint64_t[]){ (uint64_t)there, 0, 0, 0, 0, 0 });
	im->remote = (uint64_t)remote;
	im->common = (uint64_t)common;
	im->has_own_rules = true;
	begin_image(tr, im);
	if (remote >= 0 && common >= 0)
		return true;
	unmap(tr->agent, t, remote, slots_first_bytes(tr->agent));
	unmap(tr->agent, t, common, WIRE_COMMON_BYTES);
	return false;
}

/* What could not be made whole goes again, as if nobody had come. */
static void undo(const struct door *d, const struct agent_space *space)
{
	unsigned int i;

	for (i = 0; i < space->nr_areas; i++)
		unmap(d->r.a, d->r.t, (int64_t)space->areas[i].start, AREA_BYTES_OF_STUBS);
	(void)call_by(d, SYS_munmap, (uint64_t[]){ d->r.a->base, all_text_bytes(), 0, 0, 0, 0 });
}

/* What it shares with us could be used against us, or against it by who can look at us. */
static bool is_anothers(const struct tracer *tr, const struct tracee *t)
{
	return tr->o->agent_for != RECORD_AGENT_FOR_ALL && creds_is_other_user(t->tid);
}

bool agent_enter_process(struct tracer *tr, struct tracee *t, uint64_t syscall)
{
	const struct agent_hope *hope = t->hope;
	/* What a handler may be above of could not all be changed, and would not be seen. */
	bool too_late = tr->agent->netless && hope && hope->signalled;
	struct agent_space *space;
	struct agent_image *im = too_late || tr->agent->stays_out || is_anothers(tr, t)
					 ? NULL
					 : agent_new_image(tr->agent);
	struct maps m = { 0 };
	struct door door;
	bool has_text;
	int is_in = 0;

	if (!im)
		return false; /* recorded by the tracer alone */
	space = xcalloc(1, sizeof(*space));
	space->image = im;
	begin_image(tr, im);
	maps_read(t, &m);
	outlive_guard(tr, t, true);
	has_text = map_text(tr->agent, t, syscall, &m, &door);
	if (has_text)
		is_in = map_shared(tr, t, space, &m);
	if (has_text && !is_in)
		is_in = map_made_there(tr, t, im, &m);
	if (has_text && is_in <= 0)
		undo(&door, space);
	outlive_guard(tr, t, false);
	if (is_in <= 0) {
		maps_release(&m);
		agent_free_image(tr->agent, im);
		free(space);
		return false;
	}
	space->signalled = hope && hope->signalled;
	im->nr_spaces = 1;
	slots_begin(tr->agent, space);
	agent_block_of(im, 0)->master = outlive_master(tr->agent, im);
	agent_join(tr, t, space);
	witness_begin_files(tr, t);
	agent_first_stop(t);
	agent_texts_patch_image(tr, t, hope, &m);
	agent_texts_watch_loader(tr, t);
	netless_check_image(tr, t);
	maps_release(&m);
	found_forget(tr->found, t->space); /* it has more maps now */
	return true;
}
