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
/* Behind the agent's text stands the name of the memory, as /proc/self/maps has it. */
#define MEMORY_NAME "reprise"

static size_t text_bytes(void)
{
	return (size_t)(__stop_agent_text - __start_agent_text);
}

static int64_t call_map_text(const struct remote *r)
{
	return remote_call(r, SYS_mmap,
			   (uint64_t[]){ WIRE_AGENT_BASE, text_bytes() + sizeof(MEMORY_NAME),
					 PROT_READ | PROT_EXEC,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
					 UINT64_MAX, 0 });
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

/* What is behind a descriptor of the thread's, for us; NULL: it cannot be had. */
static uint8_t *map_here(struct agent *a, const struct tracee *t, int64_t there)
{
	AUTO_CLOSE int fd = -1;
	char name[64];
	uint8_t *p;

	(void)snprintf(name, sizeof(name), "/proc/%d/fd/%lld", (int)t->tid, (long long)there);
	fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)WIRE_SHARED_BYTES) < 0)
		return NULL;
	p = outlive_map(a, fd);
	if (p)
		memcpy(p, a->rules, sizeof(a->rules));
	return p;
}

/*
 * Memory that both have. The program makes it, since it may have neither the right nor the /proc
 * to open what is ours, and we open what is its.
 */
static uint8_t *map_shared(struct agent *a, struct tracee *t, uint64_t *ret_remote)
{
	struct remote r = { t, outlive_remote(a) };
	uint64_t at = WIRE_AGENT_BASE + text_bytes();
	int64_t there, remote = -1;
	uint8_t *p;

	if (!remote_write(t, at, MEMORY_NAME, sizeof(MEMORY_NAME)))
		return NULL;
	there = remote_call(&r, SYS_memfd_create, (uint64_t[]){ at, MFD_CLOEXEC, 0, 0, 0, 0 });
	if (there < 0)
		return NULL;
	p = map_here(a, t, there);
	if (p)
		remote =
			remote_call(&r, SYS_mmap,
				    (uint64_t[]){ 0, WIRE_SHARED_BYTES, PROT_READ | PROT_WRITE,
						  MAP_SHARED | MAP_NORESERVE, (uint64_t)there, 0 });
	(void)remote_call(&r, SYS_close, (uint64_t[]){ (uint64_t)there, 0, 0, 0, 0, 0 });
	if (p && remote < 0) {
		outlive_unmap(a, p);
		p = NULL;
	}
	*ret_remote = (uint64_t)remote;
	return p;
}

static struct agent_image *new_image(struct tracer *tr, struct tracee *t, uint64_t syscall)
{
	struct agent_image *im;
	uint64_t remote = 0;
	uint8_t *p = NULL;
	int64_t text;

	outlive_guard(tr, t, true);
	text = map_text(t, syscall);
	outlive_guard(tr, t, false);
	if (text >= 0)
		p = map_shared(tr->agent, t, &remote);
	if (!p)
		return NULL;
	im = xcalloc(1, sizeof(*im));
	im->shared = p;
	im->remote = remote;
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
