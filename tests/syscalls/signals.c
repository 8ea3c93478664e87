/* SPDX-License-Identifier: MIT */
/* Signals that a thread sends itself: when they come is certain then. */
#include <fcntl.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "lib.h"

struct kernel_sigaction {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

#define MASK(signo) (UINT64_C(1) << ((signo)-1))
#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif

static pid_t self;
static uid_t uid;
static int out;

/* What libc gives the kernel, so that ours ends properly too. */
static void (*restorer)(void);

static void write_in_handler(int signo)
{
	char c = (char)('A' + signo);

	expect("write(fd=%d, buf=%s, count=1) = 1", out, quote(&c, 1));
	t_is(sys(write, out, &c, 1), 1);
}

static void find_restorer(void)
{
	struct kernel_sigaction old = { 0 };
	struct sigaction sa = { .sa_handler = write_in_handler };

	t_ok(sigaction(SIGUSR1, &sa, NULL));
	t_ok(sys(rt_sigaction, SIGUSR1, NULL, &old, 8));
	restorer = old.restorer;
}

static void handle(int signo, unsigned long flags, const char *flags_text, uint64_t mask,
		   const char *mask_text)
{
	struct kernel_sigaction act = { write_in_handler, flags | SA_RESTORER, restorer, mask };

	expect("rt_sigaction(signum=SIG%s, act={sa_handler=%s, sa_mask=%s, sa_flags=%s, sa_restorer=%s}, oldact=NULL, sigsetsize=8) = 0",
	       sigabbrev_np(signo), hex((unsigned long)write_in_handler), mask_text, flags_text,
	       hex((unsigned long)restorer));
	t_ok(sys(rt_sigaction, signo, &act, NULL, 8));
}

static void actions(void)
{
	struct kernel_sigaction act = { 0 }, old = { 0 };

	handle(SIGUSR1, SA_RESTART, "SA_RESTORER|SA_RESTART", MASK(SIGINT) | MASK(SIGUSR2),
	       "[INT USR2]");
	handle(SIGUSR2, SA_NODEFER, "SA_RESTORER|SA_NODEFER", 0, "[]");
	t_ok(sys(rt_sigaction, SIGUSR1, NULL, &old, 8));
	expect("rt_sigaction(signum=SIGUSR1, act=NULL, oldact={sa_handler=%s, sa_mask=[INT USR2], sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=%s}, sigsetsize=8) = 0",
	       hex((unsigned long)old.handler), hex((unsigned long)restorer));
	act.handler = SIG_IGN;
	expect("rt_sigaction(signum=SIGHUP, act={sa_handler=0x1, sa_mask=[], sa_flags=0, sa_restorer=0}, oldact={sa_handler=0}, sigsetsize=8) = 0");
	t_ok(sys(rt_sigaction, SIGHUP, &act, &old, 8));
	expect("rt_sigaction(signum=SIGKILL, act={sa_handler=0x1}, oldact=%s, sigsetsize=8) = -1 EINVAL",
	       pointer(&old));
	t_fails(sys(rt_sigaction, SIGKILL, &act, &old, 8), EINVAL);
	expect("rt_sigaction(signum=100, act=NULL, oldact=NULL, sigsetsize=8) = -1 EINVAL");
	t_fails(sys(rt_sigaction, 100, NULL, NULL, 8), EINVAL);
	expect("rt_sigaction(signum=SIGUSR1, act=NULL, oldact=NULL, sigsetsize=4) = -1 EINVAL");
	t_fails(sys(rt_sigaction, SIGUSR1, NULL, NULL, 4), EINVAL);
}

/* The call that sends, the signal, the handler's own call, the return: in this order. */
static void sent(void)
{
	union sigval value = { .sival_int = 77 };
	siginfo_t si = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };

	expect("kill(pid=%d, sig=SIGUSR1) = 0", self);
	expect("signal(signal=SIGUSR1, code=0, sender=%d, uid=%u)", self, uid);
	t_ok(sys(kill, self, SIGUSR1));
	expect("rt_sigreturn() = 0");
	expect("tkill(tid=%d, sig=SIGUSR2) = 0", self);
	expect("signal(signal=SIGUSR2, code=-6, sender=%d, uid=%u)", self, uid);
	t_ok(sys(tkill, self, SIGUSR2));
	expect("rt_sigreturn() = 0");
	expect("tgkill(tgid=%d, tid=%d, sig=SIGUSR1) = 0", self, self);
	expect("signal(signal=SIGUSR1, code=-6, sender=%d, uid=%u)", self, uid);
	t_ok(sys(tgkill, self, self, SIGUSR1));
	expect("rt_sigreturn() = 0");
	si.si_pid = self;
	si.si_uid = uid;
	si.si_value = value;
	expect("rt_sigqueueinfo(tgid=%d, sig=SIGUSR1, info={si_signo=SIGUSR1, si_code=-1, si_errno=0, si_pid=%d, si_uid=%u, si_value=0x4d}) = 0",
	       self, self, uid);
	expect("signal(signal=SIGUSR1, code=-1, sender=%d, uid=%u)", self, uid);
	t_ok(sys(rt_sigqueueinfo, self, SIGUSR1, &si));
	expect("rt_sigreturn() = 0");
	expect("rt_tgsigqueueinfo(tgid=%d, tid=%d, sig=SIGUSR1, info={si_signo=SIGUSR1, si_code=-1, si_pid=%d, si_uid=%u, si_value=0x4d}) = 0",
	       self, self, self, uid);
	expect("signal(signal=SIGUSR1, code=-1, sender=%d, uid=%u)", self, uid);
	t_ok(sys(rt_tgsigqueueinfo, self, self, SIGUSR1, &si));
	expect("rt_sigreturn() = 0");
}

static void not_sent(void)
{
	siginfo_t si = { .si_signo = SIGUSR1, .si_code = SI_USER };

	expect("kill(pid=%d, sig=0) = 0", self);
	t_ok(sys(kill, self, 0));
	expect("kill(pid=%d, sig=1000) = -1 EINVAL", self);
	t_fails(sys(kill, self, 1000), EINVAL);
	expect("tkill(tid=-1, sig=SIGUSR1) = -1 EINVAL");
	t_fails(sys(tkill, -1, SIGUSR1), EINVAL);
	expect("tgkill(tgid=%d, tid=1, sig=0) = -1 ESRCH", self);
	t_fails(sys(tgkill, self, 1, 0), ESRCH);
	expect("rt_sigqueueinfo(tgid=1, sig=SIGUSR1, info={si_code=0}) = -1 EPERM");
	t_fails(sys(rt_sigqueueinfo, 1, SIGUSR1, &si), EPERM);
	expect("rt_tgsigqueueinfo(tgid=-1, tid=%d, sig=SIGUSR1, info={si_code=0}) = -1 EINVAL",
	       self);
	t_fails(sys(rt_tgsigqueueinfo, -1, self, SIGUSR1, &si), EINVAL);
	/* One that is ignored does not change anything, but was sent. */
	expect("kill(pid=%d, sig=SIGHUP) = 0", self);
	expect("signal(signal=SIGHUP, code=0, sender=%d, uid=%u)", self, uid);
	t_ok(sys(kill, self, SIGHUP));
}

static void masks(void)
{
	uint64_t set = MASK(SIGUSR1) | MASK(SIGUSR2), old = 0, none = 0, most = ~MASK(SIGTERM), rt;

	expect("rt_sigprocmask(how=SIG_BLOCK, set=[[USR1 USR2]], oldset=[[]], sigsetsize=8) = 0");
	t_ok(sys(rt_sigprocmask, SIG_BLOCK, &set, &old, 8));
	expect("kill(pid=%d, sig=SIGUSR1) = 0", self);
	t_ok(sys(kill, self, SIGUSR1));
	expect("rt_sigpending(set=[[USR1]], sigsetsize=8) = 0");
	t_ok(sys(rt_sigpending, &old, 8));
	expect("rt_sigpending(set=%s, sigsetsize=9) = -1 EINVAL", pointer(&old));
	t_fails(sys(rt_sigpending, &old, 9), EINVAL);
	/* What was held back comes when it is let in. */
	expect("rt_sigprocmask(how=SIG_SETMASK, set=[[]], oldset=[[USR1 USR2]], sigsetsize=8) = 0");
	expect("signal(signal=SIGUSR1, code=0, sender=%d, uid=%u)", self, uid);
	t_ok(sys(rt_sigprocmask, SIG_SETMASK, &none, &old, 8));
	expect("rt_sigreturn() = 0");
	expect("rt_sigprocmask(how=SIG_BLOCK, set=[~[TERM]], oldset=NULL, sigsetsize=8) = 0");
	t_ok(sys(rt_sigprocmask, SIG_BLOCK, &most, NULL, 8));
	expect("rt_sigprocmask(how=SIG_BLOCK, set=NULL, oldset=[~[KILL TERM STOP]], sigsetsize=8) = 0");
	t_ok(sys(rt_sigprocmask, SIG_BLOCK, NULL, &old, 8));
	rt = MASK(32) | MASK(33) | MASK(64);
	expect("rt_sigprocmask(how=SIG_SETMASK, set=[[RTMIN RT_1 RT_32]], oldset=%s, sigsetsize=8) = 0",
	       "NULL");
	t_ok(sys(rt_sigprocmask, SIG_SETMASK, &rt, NULL, 8));
	expect("rt_sigprocmask(how=SIG_SETMASK, set=[[]], oldset=NULL, sigsetsize=8) = 0");
	t_ok(sys(rt_sigprocmask, SIG_SETMASK, &none, NULL, 8));
	expect("rt_sigprocmask(how=7, set=[[]], oldset=%s, sigsetsize=8) = -1 EINVAL",
	       pointer(&old));
	t_fails(sys(rt_sigprocmask, 7, &none, &old, 8), EINVAL);
}

static void waited_for(void)
{
	uint64_t set = MASK(SIGUSR1), none = 0;
	const struct timespec zero = { 0, 0 };
	siginfo_t si;

	expect("rt_sigprocmask(how=SIG_BLOCK, set=[[USR1]]) = 0");
	t_ok(sys(rt_sigprocmask, SIG_BLOCK, &set, NULL, 8));
	expect("kill(pid=%d, sig=SIGUSR1) = 0", self);
	t_ok(sys(kill, self, SIGUSR1));
	expect("rt_sigtimedwait(set=[[USR1]], info={si_signo=SIGUSR1, si_code=0, si_errno=0, si_pid=%d, si_uid=%u}, timeout=NULL, sigsetsize=8) = 10",
	       self, uid);
	t_is(sys(rt_sigtimedwait, &set, &si, NULL, 8), SIGUSR1);
	expect("rt_sigtimedwait(set=[[USR1]], info=%s, timeout={tv_sec=0, tv_nsec=0}, sigsetsize=8) = -1 EAGAIN",
	       pointer(&si));
	t_fails(sys(rt_sigtimedwait, &set, &si, &zero, 8), EAGAIN);
	/* A suspension ends by the handler; the mask is back before the return. */
	expect("kill(pid=%d, sig=SIGUSR1) = 0", self);
	t_ok(sys(kill, self, SIGUSR1));
	expect("rt_sigsuspend(mask=[[]], sigsetsize=8) = -1 EINTR {flags=INTERRUPTED}");
	expect("signal(signal=SIGUSR1, code=0, sender=%d, uid=%u)", self, uid);
	t_fails(sys(rt_sigsuspend, &none, 8), EINTR);
	expect("rt_sigreturn() = -1 EINTR");
	expect("rt_sigsuspend(mask=[[]], sigsetsize=1) = -1 EINVAL");
	t_fails(sys(rt_sigsuspend, &none, 1), EINVAL);
	expect("rt_sigprocmask(how=SIG_UNBLOCK, set=[[USR1]]) = 0");
	t_ok(sys(rt_sigprocmask, SIG_UNBLOCK, &set, NULL, 8));
}

static void stacks(void)
{
	static char memory[65536];
	stack_t ss = { .ss_sp = memory, .ss_size = sizeof(memory) }, old;

	t_ok(sys(sigaltstack, &ss, &old));
	expect("sigaltstack(ss={ss_sp=%s, ss_flags=0, ss_size=65536}, old_ss={ss_sp=0, ss_flags=SS_DISABLE, ss_size=0}) = 0",
	       addr(memory));
	handle(SIGUSR1, SA_ONSTACK, "SA_RESTORER|SA_ONSTACK", 0, "[]");
	expect("kill(pid=%d, sig=SIGUSR1) = 0", self);
	expect("signal(signal=SIGUSR1, code=0, sender=%d, uid=%u)", self, uid);
	t_ok(sys(kill, self, SIGUSR1));
	expect("rt_sigreturn() = 0");
	ss.ss_size = 1;
	expect("sigaltstack(ss={ss_sp=%s, ss_flags=0, ss_size=1}, old_ss=NULL) = -1 ENOMEM",
	       addr(memory));
	t_fails(sys(sigaltstack, &ss, NULL), ENOMEM);
	ss.ss_flags = SS_DISABLE;
	expect("sigaltstack(ss={ss_sp=%s, ss_flags=SS_DISABLE}, old_ss=NULL) = 0", addr(memory));
	t_ok(sys(sigaltstack, &ss, NULL));
}

static void broken_pipe(void)
{
	int pipes[2];

	t_ok(pipe(pipes));
	t_ok(close(pipes[0]));
	t_begin();
	handle(SIGPIPE, 0, "SA_RESTORER", 0, "[]");
	expect("write(fd=%d, buf=\"x\", count=1) = -1 EPIPE", pipes[1]);
	expect("signal(signal=SIGPIPE, code=0, sender=%d, uid=%u)", self, uid);
	t_fails(sys(write, pipes[1], "x", 1), EPIPE);
	expect("rt_sigreturn() = -1 EPIPE");
	t_end();
	t_ok(close(pipes[1]));
}

static void skip_fault(int signo, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;

	(void)si;
	write_in_handler(signo);
	uc->uc_mcontext.gregs[REG_RIP] += 2; /* ud2 */
}

static void faults(void)
{
	struct sigaction sa = { .sa_sigaction = skip_fault, .sa_flags = SA_SIGINFO };

	t_ok(sigaction(SIGILL, &sa, NULL));
	t_begin();
	expect("signal(signal=SIGILL, code=2, sender=?, uid=?, addr=*)");
	__asm__ volatile("ud2" ::: "memory");
	expect("rt_sigreturn() = *");
	t_end();
}

int main(void)
{
	t_init();
	self = getpid();
	uid = getuid();
	out = (int)t_ok(open("out", O_CREAT | O_WRONLY, 0600));
	find_restorer();
	t_begin();
	actions();
	sent();
	not_sent();
	masks();
	waited_for();
	stacks();
	t_end();
	broken_pipe();
	faults();
	return 0;
}
