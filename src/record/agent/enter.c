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
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/io.h"
#include "record/agent/inside.h"
#include "record/inproc/agent.h"

#define CODE_SELECTOR_64 0x33
/* Behind the agent's text, for the name of our descriptor. */
#define NAME_MAX_BYTES 64u

static size_t text_bytes(void)
{
	return (size_t)(__stop_agent_text - __start_agent_text);
}

static int64_t call_map_text(const struct remote *r)
{
	return remote_call(
		r, SYS_mmap,
		(uint64_t[]){ WIRE_AGENT_BASE, text_bytes() + NAME_MAX_BYTES, PROT_READ | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, UINT64_MAX, 0 });
}

/* syscall: the address of an instruction that the program has; 0: none is known. */
static int64_t map_text(struct tracee *t, uint64_t syscall)
{
	static const uint8_t insn[] = { 0x0f, 0x05 };
	struct user_regs_struct regs;
	struct remote r = { .t = t, .at = syscall };
	uint8_t kept[sizeof(insn)];
	int64_t ret;

	/* With a gs of its own the agent could not find its state. */
	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0 || regs.cs != CODE_SELECTOR_64 ||
	    regs.gs_base || regs.gs)
		return -EOPNOTSUPP;
	if (!syscall) /* one is lent where the program begins */
		r.at = regs.rip;
	if (!remote_read(t, r.at, kept, sizeof(kept)))
		return -EFAULT;
	if (syscall && memcmp(kept, insn, sizeof(insn)))
		return -EOPNOTSUPP;
	if (!syscall && !remote_write(t, r.at, insn, sizeof(insn)))
		return -EFAULT;
	ret = call_map_text(&r);
	if (!syscall && !remote_write(t, r.at, kept, sizeof(kept)))
		return -EFAULT;
	if (ret >= 0 && (ret != WIRE_AGENT_BASE ||
			 !remote_write(t, WIRE_AGENT_BASE, __start_agent_text, text_bytes())))
		return -EFAULT;
	return ret;
}

/* Lets the program map the memory that we have behind the descriptor. */
static int64_t map_shared(const struct agent *a, struct tracee *t, int fd)
{
	struct remote r = { t, outlive_remote(a) };
	uint64_t at = WIRE_AGENT_BASE + text_bytes();
	char name[NAME_MAX_BYTES];
	int64_t there, ret;

	(void)snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)getpid(), fd);
	if (!remote_write(t, at, name, strlen(name) + 1))
		return -EFAULT;
	there = remote_call(&r, SYS_openat,
			    (uint64_t[]){ (uint64_t)AT_FDCWD, at, O_RDWR | O_CLOEXEC, 0, 0, 0 });
	if (there < 0)
		return there;
	ret = remote_call(&r, SYS_mmap,
			  (uint64_t[]){ 0, WIRE_SHARED_BYTES, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_NORESERVE, (uint64_t)there, 0 });
	(void)remote_call(&r, SYS_close, (uint64_t[]){ (uint64_t)there, 0, 0, 0, 0, 0 });
	return ret;
}

/* Where processes have other numbers, the name of our descriptor may lead to another file. */
static bool is_ours(const struct agent *a, struct tracee *t, uint64_t remote)
{
	struct remote r = { t, outlive_remote(a) };
	struct wire_rule there[16];

	if (remote_read(t, remote, there, sizeof(there)) && !memcmp(there, a->rules, sizeof(there)))
		return true;
	(void)remote_call(&r, SYS_munmap, (uint64_t[]){ remote, WIRE_SHARED_BYTES, 0, 0, 0, 0 });
	return false;
}

static struct agent_image *new_image(struct tracer *tr, struct tracee *t, uint64_t syscall)
{
	AUTO_CLOSE int fd = memfd_create("reprise", MFD_CLOEXEC);
	struct agent_image *im;
	int64_t remote;
	uint8_t *p;

	if (fd < 0 || ftruncate(fd, (off_t)WIRE_SHARED_BYTES) < 0)
		return NULL;
	p = outlive_map(tr->agent, fd);
	if (!p)
		return NULL;
	memcpy(p, tr->agent->rules, sizeof(tr->agent->rules));
	outlive_guard(tr, t, true);
	remote = map_text(t, syscall);
	outlive_guard(tr, t, false);
	if (remote >= 0)
		remote = map_shared(tr->agent, t, fd);
	if (remote < 0 || !is_ours(tr->agent, t, (uint64_t)remote)) {
		outlive_unmap(tr->agent, p);
		return NULL;
	}
	im = xcalloc(1, sizeof(*im));
	im->shared = p;
	im->remote = (uint64_t)remote;
	agent_block_of(im, 0)->off = 1;
	agent_block_of(im, 0)->master = outlive_master(tr->agent, im);
	names_begin_image(tr->agent, im);
	im->next = tr->agent->images;
	tr->agent->images = im;
	return im;
}

bool agent_enter_process(struct tracer *tr, struct tracee *t, uint64_t syscall)
{
	const struct agent_hope *hope = t->hope;
	/* What a handler may be above of could not all be changed, and would not be seen. */
	bool too_late = tr->agent->netless && hope && hope->signalled;
	struct agent_space *space;
	struct agent_image *im = too_late ? NULL : new_image(tr, t, syscall);

	if (!im)
		return false; /* recorded by the tracer alone */
	space = xcalloc(1, sizeof(*space));
	space->image = im;
	space->signalled = hope && hope->signalled;
	im->nr_spaces = 1;
	agent_join(tr, t, space);
	agent_first_stop(t);
	agent_texts_patch_image(tr, t, hope);
	netless_check_image(tr, t);
	found_forget(tr->found, t->space); /* it has more maps now */
	return true;
}
