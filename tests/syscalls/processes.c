/* SPDX-License-Identifier: MIT */
/*
 * Processes: how they begin, end, and are waited for. SIGCHLD is blocked, so
 * that it comes when the test wants it.
 */
#include <linux/sched.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

#define EXITED(status) ((status) << 8)

static pid_t self;
static uid_t uid;

static long own_pid(void)
{
	return sys(getpid);
}

/* The whole life of a child that makes one call and ends. */
static void expect_short_life(pid_t pid, const char *clone_flags, int status)
{
	t_strict(pid);
	expect_of(
		pid,
		"thread_start(parent=%d, clone_flags=%s, comm=\"processes\", how=clone) {ppid=%d, after=fork%d, label=start%d}",
		self, clone_flags, self, pid, pid);
	expect_of(pid, "getppid() = %d {ppid=%d}", self, self);
	expect_of(pid, "exit_group(status=%d) = ? {label=leaving%d}", status, pid);
	expect_of(pid, "thread_exit(status=%d, signal=?, core_dumped=?) {label=end%d}", status,
		  pid);
}

static _Noreturn void short_life(int status)
{
	(void)sys(getppid);
	(void)sys(exit_group, status);
	abort();
}

static char *rusage_text(const struct rusage *r)
{
	return text("{ru_utime={tv_sec=%ld, tv_usec=%ld}, ru_stime={tv_sec=%ld, tv_usec=%ld}, "
		    "ru_maxrss=%ld, ru_minflt=%ld, ru_majflt=%ld, ru_nvcsw=%ld, ru_nivcsw=%ld}",
		    r->ru_utime.tv_sec, r->ru_utime.tv_usec, r->ru_stime.tv_sec,
		    r->ru_stime.tv_usec, r->ru_maxrss, r->ru_minflt, r->ru_majflt, r->ru_nvcsw,
		    r->ru_nivcsw);
}

/* Waits for the end of a child, and expects the wait. */
static void reap(pid_t pid, int status)
{
	int got = -1;

	expect("wait4(pid=%d, wstatus=[%d], options=0, rusage=NULL) = %d {after=end%d}", pid,
	       status, pid, pid);
	t_is(sys(wait4, pid, &got, 0, NULL), pid);
	t_is(got, status);
}

static void forks(void)
{
	struct rusage ru;
	int status = -1;
	pid_t pid;

	pid = (pid_t)t_ok(sys(fork));
	if (!pid)
		short_life(7);
	expect("fork() = %d {label=fork%d, after=start%d}", pid, pid, pid);
	expect_short_life(pid, "SIGCHLD", 7);
	t_is(sys(wait4, pid, &status, 0, &ru), pid);
	expect("wait4(pid=%d, wstatus=[%d], options=0, rusage=%s) = %d", pid, EXITED(7),
	       rusage_text(&ru), pid);
	expect("wait4(pid=%d, wstatus=%s, options=0, rusage=NULL) = -1 ECHILD", pid,
	       pointer(&status));
	t_fails(sys(wait4, pid, &status, 0, NULL), ECHILD);
	expect("wait4(pid=-1, wstatus=NULL, options=WNOHANG|WUNTRACED|WCONTINUED, rusage=NULL) = -1 ECHILD");
	t_fails(sys(wait4, -1, NULL, WNOHANG | WUNTRACED | WCONTINUED, NULL), ECHILD);
	expect("wait4(pid=-1, wstatus=NULL, options=0x10, rusage=NULL) = -1 EINVAL");
	t_fails(sys(wait4, -1, NULL, 0x10, NULL), EINVAL);
}

static void vforks(void)
{
	pid_t pid = vfork();

	if (!pid)
		short_life(9);
	t_ok(pid);
	expect("vfork() = %d {label=fork%d, after=leaving%d}", pid, pid, pid);
	expect_short_life(pid, "CLONE_VM|CLONE_VFORK|SIGCHLD", 9);
	reap(pid, EXITED(9));
}

static void clones(void)
{
	int parent_tid = -1, child_tid = -1;
	pid_t pid;

	pid = (pid_t)t_ok(sys(clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, NULL,
			      &parent_tid, &child_tid, NULL));
	if (!pid)
		short_life(0);
	expect("clone(flags=CLONE_PARENT_SETTID|CLONE_CHILD_SETTID|SIGCHLD, stack=0, parent_tid=[%d], child_tid=%s, tls=0) = %d",
	       pid, addr(&child_tid), pid);
	expect_short_life(pid, "CLONE_PARENT_SETTID|CLONE_CHILD_SETTID|SIGCHLD", 0);
	reap(pid, 0);

	/* Without a signal at its end only __WALL finds it. */
	pid = (pid_t)t_ok(sys(clone, CLONE_FILES | CLONE_FS, NULL, NULL, NULL, NULL));
	if (!pid)
		short_life(1);
	expect("clone(flags=CLONE_FS|CLONE_FILES, stack=0, parent_tid=NULL, child_tid=0, tls=0) = %d",
	       pid);
	expect_short_life(pid, "CLONE_FS|CLONE_FILES", 1);
	expect("wait4(pid=%d, wstatus=NULL, options=__WALL, rusage=NULL) = %d", pid, pid);
	t_is(sys(wait4, pid, NULL, __WALL, NULL), pid);

	/* A register that the kernel does not look at may hold anything. */
	pid = (pid_t)t_ok(sys(clone, SIGCHLD, NULL, 16, NULL, NULL));
	if (!pid)
		short_life(2);
	expect("clone(flags=SIGCHLD, stack=0, parent_tid=%s, child_tid=0, tls=0) = %d",
	       pointer((void *)16), pid);
	expect_short_life(pid, "SIGCHLD", 2);
	reap(pid, EXITED(2));

	expect("clone(flags=CLONE_THREAD, stack=0, parent_tid=%s, child_tid=0, tls=0) = -1 EINVAL",
	       pointer(&parent_tid));
	t_fails(sys(clone, CLONE_THREAD, NULL, &parent_tid, NULL, NULL), EINVAL);
}

static void clone3s(void)
{
	int pidfd = -1, tid = -1;
	pid_t wish[1] = { 1 };
	struct clone_args a = {
		.flags = CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CLEAR_SIGHAND,
		.pidfd = (uintptr_t)&pidfd,
		.child_tid = (uintptr_t)&tid,
		.exit_signal = SIGCHLD,
	};
	pid_t pid;
	long r;

	pid = (pid_t)t_ok(sys(clone3, &a, sizeof(a)));
	if (!pid)
		short_life(33);
	expect("clone3(cl_args={flags=CLONE_PIDFD|CLONE_CHILD_SETTID|CLONE_CLEAR_SIGHAND, pidfd=%s, child_tid=%s, parent_tid=0, exit_signal=SIGCHLD, stack=0, stack_size=0, tls=0, set_tid=NULL, set_tid_size=0, cgroup=0}, size=88, pidfd=%d) = %d",
	       addr(&pidfd), addr(&tid), pidfd, pid);
	expect_short_life(pid, "CLONE_PIDFD|CLONE_CHILD_SETTID|CLONE_CLEAR_SIGHAND|SIGCHLD", 33);
	reap(pid, EXITED(33));
	expect("close(fd=%d) = 0", pidfd);
	t_ok(sys(close, pidfd));

	/* The first version of the struct: fields behind its end are not known. */
	a.flags = 0;
	pid = (pid_t)t_ok(sys(clone3, &a, 64));
	if (!pid)
		short_life(34);
	expect("clone3(cl_args={flags=0, pidfd=%s, exit_signal=SIGCHLD, tls=0, set_tid=?, set_tid_size=?, cgroup=?}, size=64, pidfd=?) = %d",
	       addr(&pidfd), pid);
	expect_short_life(pid, "SIGCHLD", 34);
	reap(pid, EXITED(34));

	a.set_tid = (uintptr_t)wish;
	a.set_tid_size = 1;
	r = sys(clone3, &a, sizeof(a));
	expect("clone3(cl_args={flags=0, exit_signal=SIGCHLD, set_tid=[1], set_tid_size=1}, size=88, pidfd=?) = %s",
	       outcome(r));
	t_true(r == -1);
	expect("clone3(cl_args=NULL, size=88) = -1 EFAULT");
	t_fails(sys(clone3, NULL, sizeof(a)), EFAULT);
}

/*
 * Children that ask not to be traced are recorded all the same, and neither
 * they nor their parent can tell: the flag stands where it stood.
 */
static long clone_and_look(long flags, long *ret_flags)
{
	register long child_tid __asm__("r10") = 0;
	register long tls __asm__("r8") = 0;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r), "+D"(flags)
			 : "0"((long)SYS_clone), "S"(0L), "d"(0L), "r"(child_tid), "r"(tls)
			 : "rcx", "r11", "memory");
	*ret_flags = flags;
	return r;
}

static void untraced(void)
{
	static const struct clone_args fixed = { .flags = CLONE_UNTRACED, .exit_signal = SIGCHLD };
	struct clone_args a = { .flags = CLONE_UNTRACED | CLONE_VM | CLONE_VFORK,
				.exit_signal = SIGCHLD };
	char stack[4096] __attribute__((aligned(16)));
	long seen;
	pid_t pid;

	pid = (pid_t)t_ok(clone_and_look(CLONE_UNTRACED | SIGCHLD, &seen));
	if (!pid)
		short_life(seen == (CLONE_UNTRACED | SIGCHLD) ? 21 : 22);
	t_is(seen, CLONE_UNTRACED | SIGCHLD);
	expect("clone(flags=CLONE_UNTRACED|SIGCHLD, stack=0, parent_tid=NULL, child_tid=0, tls=0) = %d {label=fork%d, after=start%d}",
	       pid, pid, pid);
	expect_short_life(pid, "CLONE_UNTRACED|SIGCHLD", 21);
	reap(pid, EXITED(21));

	/* In memory that may not be written, and is the child's own. */
	pid = (pid_t)t_ok(sys(clone3, &fixed, sizeof(fixed)));
	if (!pid)
		short_life(*(volatile __u64 *)&fixed.flags == CLONE_UNTRACED ? 23 : 24);
	t_is(*(volatile __u64 *)&fixed.flags, CLONE_UNTRACED);
	expect("clone3(cl_args={flags=CLONE_UNTRACED, exit_signal=SIGCHLD}, size=88) = %d {label=fork%d, after=start%d}",
	       pid, pid, pid);
	expect_short_life(pid, "CLONE_UNTRACED|SIGCHLD", 23);
	reap(pid, EXITED(23));

	/* One that fails. */
	a.stack = (uintptr_t)stack;
	expect("clone3(cl_args={flags=CLONE_VM|CLONE_VFORK|CLONE_UNTRACED, stack=%s, stack_size=0}, size=88) = -1 EINVAL",
	       addr(stack));
	t_fails(sys(clone3, &a, sizeof(a)), EINVAL);
	t_is(a.flags, CLONE_UNTRACED | CLONE_VM | CLONE_VFORK);
	t_is(clone_and_look(CLONE_UNTRACED | CLONE_THREAD, &seen), -EINVAL);
	t_is(seen, CLONE_UNTRACED | CLONE_THREAD);
	expect("clone(flags=CLONE_THREAD|CLONE_UNTRACED) = -1 EINVAL");
}

/* In a namespace of its own it has another number; a trace knows it by the one outside. */
static void renumbered(void)
{
	struct clone_args a = { .flags = CLONE_NEWUSER | CLONE_NEWPID, .exit_signal = SIGCHLD };
	pid_t pid = (pid_t)sys(clone3, &a, sizeof(a));

	if (!pid) {
		long child;

		(void)sys(getpid);
		child = sys(fork);
		if (!child)
			(void)sys(exit_group, 1);
		(void)sys(wait4, child, NULL, 0, NULL);
		(void)sys(exit_group, 2);
	}
	expect("clone3(cl_args={flags=CLONE_NEWUSER|CLONE_NEWPID}, size=88) = %s", outcome(pid));
	if (pid < 0) {
		t_skip("processes of another namespace: %s", error_name(errno));
		return;
	}
	t_strict(pid);
	expect_of(pid, "thread_start(parent=%d, clone_flags=CLONE_NEWUSER|CLONE_NEWPID|SIGCHLD)",
		  self);
	expect_of(pid, "getpid() = 1");
	expect_of(pid, "fork() = 2");
	expect_of(pid, "wait4(pid=2, wstatus=NULL, options=0, rusage=NULL) = 2");
	expect_of(pid, "exit_group(status=2) = ?");
	expect_of(pid, "thread_exit(status=2)");
	reap(pid, EXITED(2));
}

/* exit ends a thread, and with its last thread the process. */
static void exits(void)
{
	pid_t pid = (pid_t)t_ok(sys(fork));

	if (!pid) {
		(void)sys(exit, 200);
		abort();
	}
	expect("fork() = %d", pid);
	t_strict(pid);
	expect_of(pid, "thread_start(parent=%d, clone_flags=SIGCHLD)", self);
	expect_of(pid, "exit(status=200) = ?");
	expect_of(pid, "thread_exit(status=200)");
	reap(pid, EXITED(200));
}

static void kills_itself(void)
{
	pid_t pid = (pid_t)t_ok(sys(fork));

	if (!pid) {
		(void)sys(kill, own_pid(), SIGKILL);
		abort();
	}
	expect("fork() = %d", pid);
	t_strict(pid);
	expect_of(pid, "thread_start(parent=%d, clone_flags=SIGCHLD)", self);
	expect_of(pid, "getpid() = %d", pid);
	expect_of(pid, "kill(pid=%d, sig=SIGKILL) = ?", pid);
	expect_of(pid, "thread_exit(status=?, signal=SIGKILL, core_dumped=0)");
	reap(pid, SIGKILL);
}

/* A child that waits for a signal, and the signal that ends it. */
static void killed(int signo)
{
	pid_t pid = (pid_t)t_ok(sys(fork));

	if (!pid) {
		(void)sys(pause);
		abort();
	}
	expect("fork() = %d", pid);
	t_strict(pid);
	expect_of(pid, "thread_start(parent=%d, clone_flags=SIGCHLD)", self);
	t_end();
	t_await_state(pid, 'S');
	t_begin();
	expect("kill(pid=%d, sig=SIG%s) = 0", pid, sigabbrev_np(signo));
	t_ok(sys(kill, pid, signo));
	if (signo == SIGKILL) {
		expect_of(pid, "pause() = ?");
	} else {
		expect_of(pid, "pause() = ?");
		expect_of(pid, "signal(signal=SIG%s, code=0, sender=%d, uid=%u, addr=?)",
			  sigabbrev_np(signo), self, uid);
	}
	expect_of(pid, "thread_exit(status=?, signal=SIG%s, core_dumped=0)", sigabbrev_np(signo));
	reap(pid, signo);
}

static void faults(void)
{
	int *volatile nowhere = (int *)0x10;
	pid_t pid = (pid_t)t_ok(sys(fork));

	if (!pid) {
		*nowhere = 0;
		abort();
	}
	expect("fork() = %d", pid);
	t_strict(pid);
	expect_of(pid, "thread_start(parent=%d, clone_flags=SIGCHLD)", self);
	expect_of(pid, "signal(signal=SIGSEGV, code=1, sender=?, uid=?, addr=0x10)");
	expect_of(pid, "thread_exit(status=?, signal=SIGSEGV, core_dumped=0)");
	reap(pid, SIGSEGV);
}

/* Stopped and continued: the process, and what its parent learns of it. */
static void stops(const int pipes[2])
{
	pid_t pid = (pid_t)t_ok(sys(fork));

	if (!pid) {
		(void)sys(kill, own_pid(), SIGSTOP);
		(void)sys(read, pipes[0], (char[1]){ 0 }, 1);
		short_life(4);
	}
	expect("fork() = %d", pid);
	t_strict(pid);
	expect_of(pid, "thread_start(parent=%d, clone_flags=SIGCHLD)", self);
	expect_of(pid, "getpid() = %d", pid);
	expect_of(pid, "kill(pid=%d, sig=SIGSTOP) = 0", pid);
	expect_of(pid, "signal(signal=SIGSTOP, code=0, sender=%d, uid=%u)", pid, uid);
	expect_of(pid, "stopped(signal=SIGSTOP)");
	expect_of(pid, "continued(signal=SIGCONT)");
	expect_of(pid, "signal(signal=SIGCONT, code=0, sender=%d, uid=%u)", self, uid);
	expect_of(pid, "read(fd=%d, buf=\"x\", count=1) = 1", pipes[0]);
	expect_of(pid, "getppid() = %d", self);
	expect_of(pid, "exit_group(status=4) = ?");
	expect_of(pid, "thread_exit(status=4)");

	expect("wait4(pid=%d, wstatus=[%d], options=WUNTRACED, rusage=NULL) = %d", pid,
	       EXITED(SIGSTOP) | 0x7f, pid);
	t_is(sys(wait4, pid, &(int){ 0 }, WUNTRACED, NULL), pid);
	expect("kill(pid=%d, sig=SIGCONT) = 0", pid);
	t_ok(sys(kill, pid, SIGCONT));
	expect("wait4(pid=%d, wstatus=[%d], options=WCONTINUED, rusage=NULL) = %d", pid, 0xffff,
	       pid);
	t_is(sys(wait4, pid, &(int){ 0 }, WCONTINUED, NULL), pid);
	expect("write(fd=%d, buf=\"x\", count=1) = 1", pipes[1]);
	t_is(sys(write, pipes[1], "x", 1), 1);
	reap(pid, EXITED(4));
}

static void waitids(void)
{
	siginfo_t si;
	pid_t pid;

	pid = (pid_t)t_ok(sys(fork));
	if (!pid)
		short_life(12);
	expect("fork() = %d", pid);
	expect_short_life(pid, "SIGCHLD", 12);
	expect("waitid(idtype=P_PID, id=%d, infop={si_signo=SIGCHLD, si_code=1, si_errno=0, si_pid=%d, si_uid=%u, si_status=12}, options=WEXITED|WNOWAIT, rusage=NULL) = 0",
	       pid, pid, uid);
	t_ok(sys(waitid, P_PID, pid, &si, WEXITED | WNOWAIT, NULL));
	expect("waitid(idtype=P_ALL, id=0, infop={si_signo=SIGCHLD, si_code=1, si_pid=%d, si_status=12}, options=WEXITED, rusage=NULL) = 0",
	       pid);
	t_ok(sys(waitid, P_ALL, 0, &si, WEXITED, NULL));
	expect("waitid(idtype=P_PGID, id=0, infop=%s, options=WNOHANG|WUNTRACED|WEXITED|WCONTINUED, rusage=NULL) = -1 ECHILD",
	       pointer(&si));
	t_fails(sys(waitid, P_PGID, 0, &si, WEXITED | WSTOPPED | WCONTINUED | WNOHANG, NULL),
		ECHILD);
	expect("waitid(idtype=P_PID, id=0, infop=NULL, options=0, rusage=NULL) = -1 EINVAL");
	t_fails(sys(waitid, P_PID, 0, NULL, 0, NULL), EINVAL);
}

/* The child's end is told when the signal is let in. */
static void tells_of_child(void)
{
	uint64_t chld = 1ULL << (SIGCHLD - 1);

	expect("rt_sigprocmask(how=SIG_UNBLOCK, set=[[CHLD]], oldset=NULL, sigsetsize=8) = 0");
	expect("signal(signal=SIGCHLD, code=1, uid=%u)", uid);
	t_ok(sys(rt_sigprocmask, SIG_UNBLOCK, &chld, NULL, 8));
}

static void unshares(void)
{
	expect("unshare(flags=CLONE_FS|CLONE_FILES) = 0");
	t_ok(sys(unshare, CLONE_FS | CLONE_FILES));
	expect("unshare(flags=0x1) = -1 EINVAL");
	t_fails(sys(unshare, 1), EINVAL);
	expect("setns(fd=-1, nstype=CLONE_NEWNS) = -1 EBADF");
	t_fails(sys(setns, -1, CLONE_NEWNS), EBADF);
}

int main(void)
{
	const struct rlimit none = { 0, 0 };
	int pipes[2];

	t_init();
	t_ok(pipe(pipes));
	self = getpid();
	uid = getuid();
	t_ok(setrlimit(RLIMIT_CORE, &none));
	t_block_sigchld();
	t_begin();
	forks();
	vforks();
	clones();
	clone3s();
	untraced();
	renumbered();
	exits();
	kills_itself();
	killed(SIGTERM);
	killed(SIGKILL);
	faults();
	stops(pipes);
	waitids();
	tells_of_child();
	unshares();
	t_end();
	return 0;
}
