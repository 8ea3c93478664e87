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

#define EARLY_SIGNALS_MAX 8

/* Signals that cannot be held back, and came while the thread worked for us. */
struct early_signals {
	int signo[EARLY_SIGNALS_MAX];
	unsigned int nr;
};

/* Steps over the instruction; the call may stop once more for the filter. */
static int step_over(const struct remote *r, struct early_signals *early)
{
	pid_t tid = r->t->tid;
	int status;

	for (;;) {
		if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) < 0)
			return -errno;
		while (waitpid(tid, &status, __WALL) < 0) {
			if (errno != EINTR)
				return -errno;
		}
		if (!WIFSTOPPED(status))
			return -ESRCH; /* its end was seen, and is told by the next look */
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
	if (ptrace(PTRACE_SETREGS, r->t->tid, NULL, &regs) < 0)
		return -errno;
	ret = step_over(r, &early);
	if (!ret)
		ret = ptrace(PTRACE_GETREGS, r->t->tid, NULL, &regs) < 0 ? -errno
									 : (int64_t)regs.rax;
	for (i = 0; i < early.nr; i++)
		(void)syscall(SYS_tgkill, r->t->pid, r->t->tid, early.signo[i]);
	return ret;
}

int64_t remote_call(const struct remote *r, long nr, const uint64_t args[6])
{
	struct user_regs_struct before;
	uint64_t mask, all = ~UINT64_C(0);
	pid_t tid = r->t->tid;
	int64_t ret;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &before) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(mask), &mask) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all) < 0)
		return -errno;
	ret = call_with(r, &before, nr, args);
	/* It is not in a call that could be made again. */
	before.orig_rax = UINT64_MAX;
	(void)ptrace(PTRACE_SETREGS, tid, NULL, &before); /* fails only when it is gone */
	(void)ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask); /* likewise */
	return ret;
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
