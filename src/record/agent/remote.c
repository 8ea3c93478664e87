/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/agent/inside.h"
#include "record/inproc/agent.h"

#define EARLY_SIGNALS_MAX 8

/* Signals that cannot be held back, and came while the thread worked for us. */
struct early_signals {
	int signo[EARLY_SIGNALS_MAX];
	unsigned int nr;
};

/* False when it has none any more: its end is left for the tracer's next look. */
static bool wait_for_stop(pid_t tid, int *ret_status)
{
	siginfo_t si = { 0 };

	while (waitid(P_PID, (id_t)tid, &si, WSTOPPED | WEXITED | WNOWAIT | __WALL) < 0) {
		if (errno != EINTR)
			return false;
	}
	si.si_pid = 0;
	if (waitid(P_PID, (id_t)tid, &si, WSTOPPED | WNOHANG | __WALL) < 0 || !si.si_pid)
		return false; /* it was an end, or is one now */
	*ret_status = si.si_status << 8 | 0x7f; /* as waitpid() has it */
	return true;
}

/* Steps over the instruction; the call may stop once more for the filter. */
static int step_over(const struct remote *r, struct early_signals *early)
{
	pid_t tid = r->t->tid;
	int status;

	for (;;) {
		if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) < 0)
			return -errno;
		if (!wait_for_stop(tid, &status))
			return -ESRCH;
		if (status >> 16)
			continue;
		if (WSTOPSIG(status) == SIGTRAP)
			return 0;
		if (early->nr < EARLY_SIGNALS_MAX)
			early->signo[early->nr++] = WSTOPSIG(status);
	}
}

static int64_t call_with(const struct remote *r, const struct user_regs_struct *before, long nr,
			 const uint64_t args[6])
{
	struct user_regs_struct regs = *before;
	struct early_signals early = { .nr = 0 };
	uint64_t all = ~UINT64_C(0);
	unsigned int i;
	int64_t ret;

	regs.rip = r->at;
	regs.rax = (uint64_t)nr;
	regs.orig_rax = UINT64_MAX;
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.r10 = args[3];
	regs.r8 = args[4];
	regs.r9 = args[5];
	if (ptrace(PTRACE_SETREGS, r->t->tid, NULL, &regs) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, r->t->tid, sizeof(all), &all) < 0)
		return -errno;
	ret = step_over(r, &early);
	if (!ret)
		ret = ptrace(PTRACE_GETREGS, r->t->tid, NULL, &regs) < 0 ? -errno
									 : (int64_t)regs.rax;
	for (i = 0; i < early.nr; i++)
		(void)syscall(SYS_tgkill, r->t->pid, r->t->tid, early.signo[i]);
	return ret;
}

/* From here on the thread can go on without us, whatever it is in. */
static bool note_state(const struct remote *r, const struct user_regs_struct *regs, uint64_t mask)
{
	uint64_t state[AGENT_REMOTE_STATE_NR] = { mask,	     regs->rax, regs->rdi,
						  regs->rsi, regs->rdx, regs->r10,
						  regs->r8,  regs->r9,	regs->rip };

	return r->at != AGENT_ADDRESS(agent_remote) ||
	       remote_write(r->t, AGENT_ADDRESS(agent_remote_state), state, sizeof(state));
}

int64_t remote_call(const struct remote *r, long nr, const uint64_t args[6])
{
	struct user_regs_struct before;
	pid_t tid = r->t->tid;
	uint64_t mask;
	int64_t ret;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &before) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(mask), &mask) < 0)
		return -errno;
	if (!note_state(r, &before, mask))
		return -EFAULT;
	/* The registers first, and last: without us it puts the mask back with them. */
	ret = call_with(r, &before, nr, args);
	/* It is not in a call that could be made again. */
	before.orig_rax = UINT64_MAX;
	(void)ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask); /* fails only when it is gone */
	(void)ptrace(PTRACE_SETREGS, tid, NULL, &before); /* likewise */
	return ret;
}

bool remote_is_syscall(const struct tracee *t, uint64_t addr)
{
	static const uint8_t insn[] = { 0x0f, 0x05 };
	uint8_t there[sizeof(insn)];

	return remote_read(t, addr, there, sizeof(there)) && !memcmp(there, insn, sizeof(insn));
}

bool remote_put_back(struct tracee *t, uint64_t syscall)
{
	struct user_regs_struct regs;
	uint64_t nr;
	int status = 0;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0)
		return false;
	nr = regs.orig_rax;
	regs.orig_rax = UINT64_MAX; /* no call is made, and the next stop is its end */
	if (ptrace(PTRACE_SETREGS, t->tid, NULL, &regs) < 0 ||
	    ptrace(PTRACE_SYSCALL, t->tid, NULL, NULL) < 0 || !wait_for_stop(t->tid, &status))
		return false;
	regs.rip = syscall;
	regs.rax = nr;
	return ptrace(PTRACE_SETREGS, t->tid, NULL, &regs) == 0;
}

bool remote_write(const struct tracee *t, uint64_t addr, const void *p, size_t len)
{
	char name[64];
	ssize_t n;
	int fd;

	(void)snprintf(name, sizeof(name), "/proc/%d/mem", (int)t->tid);
	fd = open(name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = pwrite(fd, p, len, (off_t)addr);
	(void)close(fd);
	return n == (ssize_t)len;
}

bool remote_read(const struct tracee *t, uint64_t addr, void *p, size_t len)
{
	struct iovec local = { p, len }, remote = { (void *)(uintptr_t)addr, len };

	return process_vm_readv(t->tid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}
