/* SPDX-License-Identifier: MIT */
#include "record/ptrace/registers.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#ifdef __x86_64__

static int set_register(pid_t tid, size_t offset, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, regs) + offset, value) < 0
		       ? -errno
		       : 0;
}

int registers_set_first(pid_t tid, bool compat, uint64_t value)
{
	return set_register(tid,
			    compat ? offsetof(struct user_regs_struct, rbx)
				   : offsetof(struct user_regs_struct, rdi),
			    value);
}

int registers_set_second(pid_t tid, bool compat, uint64_t value)
{
	return set_register(tid,
			    compat ? offsetof(struct user_regs_struct, rcx)
				   : offsetof(struct user_regs_struct, rsi),
			    value);
}

int registers_skip_call(pid_t tid, int err)
{
	int r = set_register(tid, offsetof(struct user_regs_struct, orig_rax), (uint64_t)-1);

	return r < 0 ? r
		     : set_register(tid, offsetof(struct user_regs_struct, rax), (uint64_t)-err);
}

/*
 * What the program will have in rax when the handler has returned. The kernel's
 * struct rt_sigframe: a return address, then the ucontext. Of a 32-bit program
 * there are two, and the one for handlers with siginfo holds its address.
 */
enum {
	FRAME_RAX = 8 + 40 + 13 * 8,
	FRAME32_EAX = 8 + 16 + 7 * 4,
	FRAME32_RT_EAX = 16 + 128 + 20 + 16 + 7 * 4,
	FRAME32_RT_INFO = 16,
};

static int frame_eax(pid_t tid, uint64_t sp, int32_t *ret)
{
	uint32_t words[FRAME32_RT_EAX / 4 + 1];
	struct iovec local = { words, sizeof(words) }, remote = { (void *)sp, sizeof(words) };

	if (process_vm_readv(tid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(words))
		return -EFAULT;
	*ret = (int32_t)(words[2] == (uint32_t)sp + FRAME32_RT_INFO ? words[FRAME32_RT_EAX / 4]
								    : words[FRAME32_EAX / 4]);
	return 0;
}

int registers_frame_is_eintr(pid_t tid, bool compat, bool *ret)
{
	struct user_regs_struct regs;
	int32_t eax = 0;
	long rax;
	int r;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0)
		return -errno;
	if (compat) {
		r = frame_eax(tid, regs.rsp, &eax);
		if (r < 0)
			return r;
		*ret = eax == -EINTR;
		return 0;
	}
	errno = 0;
	rax = ptrace(PTRACE_PEEKDATA, tid, regs.rsp + FRAME_RAX, NULL);
	if (errno)
		return -errno;
	*ret = rax == -EINTR;
	return 0;
}

#define SYSCALL_BYTES 2

int registers_broken_call(pid_t tid, struct broken_call *ret)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0)
		return -errno;
	/* Outside of calls the kernel has a number below 0 there. */
	if (regs.cs != REGISTERS_CODE_64 || (int64_t)regs.orig_rax < 0 ||
	    (int64_t)regs.rax != -EINTR)
		return -ENOENT;
	*ret = (struct broken_call){ regs.orig_rax,
				     { regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9 } };
	return 0;
}

int registers_make_again(pid_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0)
		return -errno;
	regs.rax = regs.orig_rax;
	regs.orig_rax = UINT64_MAX;
	regs.rip -= SYSCALL_BYTES;
	return ptrace(PTRACE_SETREGS, tid, NULL, &regs) < 0 ? -errno : 0;
}

int registers_set_result(pid_t tid, int64_t result)
{
	return set_register(tid, offsetof(struct user_regs_struct, rax), (uint64_t)result);
}

int registers_end_again(pid_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0)
		return -errno;
	regs.orig_rax = regs.rax;
	regs.rax = (uint64_t)-EINTR;
	regs.rip += SYSCALL_BYTES;
	return ptrace(PTRACE_SETREGS, tid, NULL, &regs) < 0 ? -errno : 0;
}

bool registers_can_inject(pid_t tid)
{
	struct user_regs_struct regs;

	return !ptrace(PTRACE_GETREGS, tid, NULL, &regs) && regs.cs == REGISTERS_CODE_64;
}

#define ERESTARTSYS_FIRST 512
#define ERESTARTSYS_LAST 516

/* It comes from a call that the kernel is about to make again. */
static bool is_restart(const struct user_regs_struct *regs)
{
	int64_t err = -(int64_t)regs->rax;

	return (int64_t)regs->orig_rax >= 0 && err >= ERESTARTSYS_FIRST && err <= ERESTARTSYS_LAST;
}

static bool is_syscall(pid_t tid, uint64_t at)
{
	static const uint8_t instruction[SYSCALL_BYTES] = { 0x0f, 0x05 };
	uint8_t bytes[SYSCALL_BYTES];
	struct iovec local = { bytes, sizeof(bytes) };
	struct iovec remote = { (void *)(uintptr_t)at, sizeof(bytes) };

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof(bytes) &&
	       !memcmp(bytes, instruction, sizeof(bytes));
}

int registers_inject(pid_t tid, uint64_t ip, long nr, uint64_t arg, struct kept_registers *ret)
{
	struct kept_registers kept;
	struct user_regs_struct regs;
	uint64_t all = UINT64_MAX;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &kept.regs) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(kept.mask), &kept.mask) < 0)
		return -errno;
	if (kept.regs.cs != REGISTERS_CODE_64 || is_restart(&kept.regs) ||
	    !is_syscall(tid, ip - SYSCALL_BYTES))
		return -ENOENT;
	kept.regs.orig_rax = UINT64_MAX; /* a call that it comes from has ended */
	regs = kept.regs;
	regs.rip = ip - SYSCALL_BYTES;
	regs.rax = (uint64_t)nr;
	regs.rdi = arg;
	regs.rsi = regs.rdx = regs.r10 = regs.r8 = regs.r9 = 0;
	/* A handler would run amid what the thread does for us. */
	if (ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all) < 0 ||
	    ptrace(PTRACE_SETREGS, tid, NULL, &regs) < 0)
		return -errno;
	*ret = kept;
	return 0;
}

void registers_put_back(pid_t tid, const struct kept_registers *kept)
{
	struct kept_registers k = *kept;

	(void)ptrace(PTRACE_SETSIGMASK, tid, sizeof(k.mask), &k.mask);
	(void)ptrace(PTRACE_SETREGS, tid, NULL, &k.regs);
}

#elif defined(__aarch64__)

/* The first argument and the result are in the same register. */
int registers_set_first(pid_t tid, bool compat, uint64_t value)
{
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof(regs) };

	(void)compat;
	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		return -errno;
	regs.regs[0] = value;
	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) < 0 ? -errno : 0;
}

int registers_skip_call(pid_t tid, int err)
{
	int none = -1;
	struct iovec iov = { &none, sizeof(none) };

	if (ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &iov) < 0)
		return -errno;
	return registers_set_first(tid, false, (uint64_t)-err);
}

int registers_set_second(pid_t tid, bool compat, uint64_t value)
{
	(void)tid;
	(void)compat;
	(void)value;
	return -EOPNOTSUPP;
}

bool registers_can_inject(pid_t tid)
{
	(void)tid;
	return false;
}

int registers_inject(pid_t tid, uint64_t ip, long nr, uint64_t arg, struct kept_registers *ret)
{
	(void)tid;
	(void)ip;
	(void)nr;
	(void)arg;
	(void)ret;
	return -EOPNOTSUPP;
}

void registers_put_back(pid_t tid, const struct kept_registers *kept)
{
	(void)tid;
	(void)kept;
}

int registers_frame_is_eintr(pid_t tid, bool compat, bool *ret)
{
	(void)tid;
	(void)compat;
	(void)ret;
	return -EOPNOTSUPP;
}

int registers_broken_call(pid_t tid, struct broken_call *ret)
{
	(void)tid;
	(void)ret;
	return -ENOENT;
}

int registers_make_again(pid_t tid)
{
	(void)tid;
	return -EOPNOTSUPP;
}

int registers_set_result(pid_t tid, int64_t result)
{
	(void)tid;
	(void)result;
	return -EOPNOTSUPP;
}

int registers_end_again(pid_t tid)
{
	(void)tid;
	return -EOPNOTSUPP;
}

#else
#error "how is a call changed on this machine?"
#endif
