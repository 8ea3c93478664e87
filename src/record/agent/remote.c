/* SPDX-License-Identifier: MIT */
#include <assert.h>
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

#include "base/clock.h"
#include "record/agent/inside.h"
#include "record/inproc/agent.h"
#include "record/ptrace/beside.h"
#include "record/ptrace/registers.h"

#define EARLY_SIGNALS_MAX 8

/* Signals that cannot be held back, and came while the thread worked for us. */
struct early_signals {
	int signo[EARLY_SIGNALS_MAX];
	unsigned int nr;
};

static long let_go(const struct tracee *t, int request)
{
	/* It works for us alone, and sees nothing of where. */
	return t->is_movable ? beside_let_go(request, t->tid, 0)
			     : ptrace(request, t->tid, NULL, NULL);
}

/* What it does for us takes some microseconds. */
#define PATIENCE_NS UINT64_C(30000000000)

/* False when it has none any more: its end is left for the tracer's next look. */
static bool wait_for_stop(pid_t tid, int *ret_status)
{
	uint64_t begin_ns = clock_monotonic_ns();
	siginfo_t si;

	/* No child that could stop is left when it has ended. */
	while (waitid(P_PID, (id_t)tid, &si, WSTOPPED | __WALL) < 0) {
		if (errno != EINTR)
			return false;
		/* Somebody has changed what it runs, so that it never comes back. */
		if (clock_monotonic_ns() - begin_ns > PATIENCE_NS)
			(void)kill(tid, SIGKILL);
	}
	*ret_status = si.si_status << 8 | 0x7f; /* as waitpid() has it */
	return true;
}

/*
 * What the thread itself has done wrong while it worked for us, where the agent is not as
 * it should be: the program is not to blame, and gets no signal for it.
 */
static bool is_fault(pid_t tid, int signo)
{
	siginfo_t si;

	return (signo == SIGSEGV || signo == SIGBUS || signo == SIGILL || signo == SIGFPE) &&
	       !ptrace(PTRACE_GETSIGINFO, tid, NULL, &si) && si.si_code > 0;
}

/* Lets the thread go until it traps; a call may stop once more for the filter. */
static int run_to_trap(const struct remote *r, int request, struct early_signals *early)
{
	pid_t tid = r->t->tid;
	int status;

	for (;;) {
		if (let_go(r->t, request) < 0)
			return -errno;
		if (!wait_for_stop(tid, &status))
			return -ESRCH;
		if (status >> 16)
			continue;
		if (WSTOPSIG(status) == SIGTRAP)
			return 0;
		if (early->nr == EARLY_SIGNALS_MAX || is_fault(tid, WSTOPSIG(status)))
			return -EFAULT; /* the instruction is not there, or the program is at its end */
		early->signo[early->nr++] = WSTOPSIG(status);
	}
}

/* What a thread was before it worked for us. */
struct kept_thread {
	struct user_regs_struct regs;
	uint64_t mask;
};

static int keep_thread(const struct remote *r, struct kept_thread *ret)
{
	pid_t tid = r->t->tid;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &ret->regs) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(ret->mask), &ret->mask) < 0)
		return -errno;
	return 0;
}

/* From here on the thread can go on without us, whatever it is in. */
static bool note_state(const struct remote *r, const struct kept_thread *kept)
{
	const struct user_regs_struct *regs = &kept->regs;
	uint64_t state[AGENT_REMOTE_STATE_NR] = { kept->mask, regs->rax, regs->rdi,
						  regs->rsi,  regs->rdx, regs->r10,
						  regs->r8,   regs->r9,	 regs->rip };

	return !r->a || r->at != AGENT_ADDRESS(r->a, agent_remote) ||
	       remote_write(r->t, AGENT_ADDRESS(r->a, agent_remote_state), state, sizeof(state));
}

/* Fails only when it is gone. */
static void put_back_thread(const struct remote *r, struct kept_thread *kept,
			    const struct early_signals *early)
{
	pid_t tid = r->t->tid;
	unsigned int i;

	for (i = 0; i < early->nr; i++)
		(void)syscall(SYS_tgkill, r->t->pid, tid, early->signo[i]);
	kept->regs.orig_rax = UINT64_MAX; /* it is not in a call that could be made again */
	/* The registers first, and last: without us it puts the mask back with them. */
	(void)ptrace(PTRACE_SETSIGMASK, tid, sizeof(kept->mask), &kept->mask);
	(void)ptrace(PTRACE_SETREGS, tid, NULL, &kept->regs);
}

/* From these registers on to the trap at `end`; *regs: as they are then. */
static int work(const struct remote *r, int request, uint64_t end, struct user_regs_struct *regs,
		struct early_signals *early)
{
	uint64_t all = ~(UINT64_C(1) << (SIGTRAP - 1)); /* that one ends the work */
	int ret;

	regs->orig_rax = UINT64_MAX;
	if (ptrace(PTRACE_SETREGS, r->t->tid, NULL, regs) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, r->t->tid, sizeof(all), &all) < 0)
		return -errno;
	witness_pause(r->t, true);
	for (;;) {
		ret = run_to_trap(r, request, early);
		if (!ret && ptrace(PTRACE_GETREGS, r->t->tid, NULL, regs) < 0)
			ret = -errno;
		if (ret || regs->rip == end)
			break;
		/* A trap that somebody has sent. */
		if (early->nr == EARLY_SIGNALS_MAX) {
			ret = -EFAULT;
			break;
		}
		early->signo[early->nr++] = SIGTRAP;
	}
	witness_pause(r->t, false);
	return ret;
}

int64_t remote_call(const struct remote *r, long nr, const uint64_t args[6])
{
	struct early_signals early = { .nr = 0 };
	struct user_regs_struct regs;
	struct kept_thread kept;
	int64_t ret = keep_thread(r, &kept);

	if (!ret && !note_state(r, &kept))
		ret = -EFAULT;
	if (ret)
		return ret;
	regs = kept.regs;
	regs.rip = r->at;
	regs.rax = (uint64_t)nr;
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.r10 = args[3];
	regs.r8 = args[4];
	regs.r9 = args[5];
	ret = work(r, PTRACE_SINGLESTEP, r->at + SITE_SYSCALL_BYTES, &regs, &early);
	put_back_thread(r, &kept, &early);
	return ret ? ret : (int64_t)regs.rax;
}

int64_t agent_call_at(struct tracee *t, uint64_t ip, long nr, const uint64_t args[6])
{
	struct remote r = { .t = t, .at = ip - SITE_SYSCALL_BYTES };

	if (!registers_can_inject(t->tid) || !remote_is_syscall(t, r.at))
		return -EOPNOTSUPP;
	return remote_call(&r, nr, args);
}

#define RED_ZONE_BYTES 128u

int remote_make_list(const struct agent *a, struct tracee *t, uint64_t list, unsigned int nr,
		     int64_t *ret)
{
	struct remote r = { .a = a, .t = t };
	struct early_signals early = { .nr = 0 };
	struct user_regs_struct regs;
	struct kept_thread kept;
	int64_t pushed[REMOTE_LIST_MAX];
	uint64_t sp;
	unsigned int i;
	int status = nr <= REMOTE_LIST_MAX ? keep_thread(&r, &kept) : -E2BIG;

	if (status)
		return status;
	regs = kept.regs;
	regs.rip = AGENT_ADDRESS(a, agent_begin);
	regs.r12 = list;
	regs.rsp = sp = (kept.regs.rsp - RED_ZONE_BYTES) & ~UINT64_C(15);
	/* What they return, and where the next one goes on. */
	if (!remote_read(t, sp - sizeof(pushed) - sizeof(sp), pushed, sizeof(pushed)))
		return -EFAULT; /* it has so little of its stack left */
	status = work(&r, PTRACE_CONT, AGENT_ADDRESS(a, agent_begun), &regs, &early);
	if (!status && !remote_read(t, sp - nr * sizeof(*pushed), pushed, nr * sizeof(*pushed)))
		status = -EFAULT;
	put_back_thread(&r, &kept, &early);
	for (i = 0; i < nr && !status; i++)
		ret[i] = pushed[nr - 1 - i];
	return status;
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
	if (ptrace(PTRACE_SETREGS, t->tid, NULL, &regs) < 0 || let_go(t, PTRACE_SYSCALL) < 0 ||
	    !wait_for_stop(t->tid, &status))
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

void remote_poke(const struct tracee *t, uint64_t addr, const void *p, size_t len)
{
	long word;

	assert(len <= sizeof(word));
	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, t->tid, (void *)(uintptr_t)addr, NULL);
	if (errno)
		return; /* it is gone */
	memcpy(&word, p, len);
	(void)ptrace(PTRACE_POKETEXT, t->tid, (void *)(uintptr_t)addr, (void *)word);
}
