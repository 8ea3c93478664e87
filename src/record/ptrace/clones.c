/* SPDX-License-Identifier: MIT */
#include "record/ptrace/clones.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "model/kernel_structs.h"
#include "record/ptrace/registers.h"
#include "record/ptrace/tracee.h"

bool clones_is_one(const struct row *row)
{
	switch ((int)row->id) {
	case SC_fork:
	case SC_vfork:
	case SC_clone:
	case SC_clone_backwards:
	case SC_clone3:
		return true;
	}
	return false;
}

/* The kernel takes a struct of any length from that of its first version on. */
static bool read_args(const struct tracee *t, struct k_clone_args *ret)
{
	struct iovec local = { ret, sizeof(*ret) };
	struct iovec remote = { (void *)(uintptr_t)t->regs[0], sizeof(*ret) };
	size_t least = offsetof(struct k_clone_args, set_tid);

	if (t->regs[1] < sizeof(*ret))
		local.iov_len = remote.iov_len = t->regs[1];
	return process_vm_readv(t->tid, &local, 1, &remote, 1, 0) >= (ssize_t)least;
}

/* By ptrace, which writes where the program itself may only read. */
static bool poke(const struct tracee *t, uint64_t at, uint64_t value)
{
	return ptrace(PTRACE_POKEDATA, t->tid, at, value) == 0;
}

static bool set_flags(const struct tracee *t, uint64_t at, uint64_t value)
{
	if (at)
		return poke(t, at, value);
	return registers_set_first(t->tid, t->flags & EVENT_COMPAT, value) == 0;
}

static bool hide(struct tracee *t, uint64_t at, uint64_t flags)
{
	t->hidden = (struct hidden_flag){ .at = at, .value = flags };
	t->hidden.is_hidden = set_flags(t, at, flags & ~(uint64_t)CLONE_UNTRACED);
	return t->hidden.is_hidden;
}

bool clones_enter(struct tracee *t)
{
	struct k_clone_args a = { 0 };

	t->has_child = false;
	switch ((int)t->row->id) {
	case SC_fork:
		t->clone_flags = SIGCHLD;
		return true;
	case SC_vfork:
		t->clone_flags = CLONE_VFORK | CLONE_VM | SIGCHLD;
		return true;
	case SC_clone3:
		if (!read_args(t, &a)) {
			t->clone_flags = 0; /* the call will fail */
			return true;
		}
		t->clone_flags = a.flags | (a.exit_signal & CSIGNAL);
		return !(a.flags & CLONE_UNTRACED) || hide(t, t->regs[0], a.flags);
	}
	t->clone_flags = t->regs[0];
	return !(t->clone_flags & CLONE_UNTRACED) || hide(t, 0, t->clone_flags);
}

static bool share_memory(uint64_t flags)
{
	return flags & CLONE_VM && !(flags & CLONE_VFORK);
}

bool clones_will_share_memory(const struct tracee *t)
{
	struct k_clone_args a = { 0 };

	switch ((int)t->row->id) {
	case SC_clone3:
		return read_args(t, &a) && share_memory(a.flags);
	case SC_clone:
	case SC_clone_backwards:
		return share_memory(t->regs[0]);
	}
	return false;
}

bool clones_shares_memory(const struct tracee *t)
{
	return share_memory(t->clone_flags);
}

void clones_put_back(struct tracee *t)
{
	if (!t->hidden.is_hidden)
		return;
	t->hidden.is_hidden = false;
#ifdef __aarch64__
	if (!t->hidden.at)
		return; /* the result stands there now */
#endif
	(void)set_flags(t, t->hidden.at, t->hidden.value); /* fails only when the thread is gone */
}

void clones_pass_on(const struct tracee *parent, struct tracee *child)
{
	/* In shared memory the parent's is the child's. */
	if (!parent->hidden.is_hidden || (parent->hidden.at && parent->clone_flags & CLONE_VM))
		return;
	child->hidden = parent->hidden;
	child->flags = parent->flags & EVENT_COMPAT;
}
