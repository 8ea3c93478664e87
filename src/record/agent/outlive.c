/* SPDX-License-Identifier: MIT */
/*
 * Programs that go on when the recorder is killed. There is no net then, whose calls
 * would fail without a tracer, and the agent looks at a word in the shared memory before
 * it does anything: the recorder's thread number, as in a futex that it holds. The kernel
 * marks such words when their holder dies (a robust list), and does so before it lets
 * go of what that has traced. So whoever runs on, and what it makes later with the same
 * memory and the same gs, finds that the agent does nothing any more.
 *
 *   ours:   [ a page of our own: the entry in the list | shared memory ... the word ... ]
 *
 * The entry is not in the shared memory: the program could lead the kernel astray by it.
 *
 * Whatever is done to a stopped thread is one write to its registers, or can be ended by the
 * thread itself (agent_remote), and jumps are written when what they lead to is there. At two moments
 * that is not so: while the agent enters, up to its first jump, and a call put back; if the
 * recorder dies within these the process ends with it.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/agent/inside.h"
#include "record/inproc/agent.h"

#define PAGE_BYTES 4096u
/* The kernel looks at no more than 2048 entries of a list. */
#define IMAGES_MAX 2000u

static uint64_t word_at(void)
{
	return offsetof(struct wire_block, alive);
}

void outlive_init(struct agent *a)
{
	a->robust = (struct robust_list_head){ .list = { &a->robust.list },
					       .futex_offset = (long)(PAGE_BYTES + word_at()) };
	if (syscall(SYS_get_robust_list, 0, &a->former, &a->former_bytes) < 0)
		a->former = NULL;
	(void)syscall(SYS_set_robust_list, &a->robust,
		      sizeof(a->robust)); /* cannot fail with these */
}

void outlive_release(struct agent *a)
{
	if (a->outlives && a->former)
		(void)syscall(SYS_set_robust_list, a->former, a->former_bytes); /* as it was */
}

static uint8_t *map_with_entry(struct agent *a, int fd)
{
	struct robust_list *entry;
	uint8_t *p;

	if (a->nr_entries == IMAGES_MAX)
		return NULL;
	p = mmap(NULL, PAGE_BYTES + WIRE_IMAGE_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (mmap(p + PAGE_BYTES, WIRE_IMAGE_BYTES, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED) {
		(void)munmap(p, PAGE_BYTES + WIRE_IMAGE_BYTES);
		return NULL;
	}
	entry = (struct robust_list *)(void *)p;
	entry->next = a->robust.list.next;
	a->robust.list.next = entry;
	a->nr_entries++;
	return p + PAGE_BYTES;
}

uint8_t *outlive_map(struct agent *a, int fd)
{
	void *p;

	if (a->outlives)
		return map_with_entry(a, fd);
	p = mmap(NULL, WIRE_IMAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

void outlive_unmap(struct agent *a, uint8_t *shared)
{
	struct robust_list *entry = (struct robust_list *)(void *)(shared - PAGE_BYTES);
	struct robust_list *before = &a->robust.list;

	if (!a->outlives) {
		(void)munmap(shared, WIRE_IMAGE_BYTES);
		return;
	}
	while (before->next != entry)
		before = before->next;
	before->next = entry->next;
	a->nr_entries--;
	(void)munmap(entry, PAGE_BYTES + WIRE_IMAGE_BYTES);
}

uint32_t outlive_word(const struct agent *a)
{
	return a->outlives ? (uint32_t)gettid() : 0;
}

uint64_t outlive_master(const struct agent *a, const struct agent_image *im)
{
	return a->outlives ? im->remote + word_at() : 0;
}

uint64_t outlive_entry(const struct agent *a)
{
	return a->outlives ? AGENT_ADDRESS(a, agent_watchful_entry) : AGENT_ADDRESS(a, agent_entry);
}

uint64_t outlive_remote(const struct agent *a)
{
	return a->outlives ? AGENT_ADDRESS(a, agent_remote)
			   : AGENT_ADDRESS(a, agent_asked) - SITE_SYSCALL_BYTES;
}

void outlive_guard(struct tracer *tr, const struct tracee *t, bool begin)
{
	unsigned long options = tracer_options(tr);

	if (!tr->agent || !tr->agent->outlives)
		return;
	if (begin)
		options |= PTRACE_O_EXITKILL;
	(void)ptrace(PTRACE_SETOPTIONS, t->tid, NULL, options); /* fails only when it is gone */
}
