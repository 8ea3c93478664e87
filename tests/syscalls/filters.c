/* SPDX-License-Identifier: MIT */
/*
 * Programs with seccomp filters of their own: each answer that a filter may
 * give has its effect as without a recorder, and is recorded.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

/* Calls of the given number get the answer, others are allowed. */
static void refuse(long nr, unsigned int answer, unsigned int flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_LEN(code), code };

	expect("prctl_set_no_new_privs(arg2=1, arg3=0, arg4=0, arg5=0) = 0");
	t_ok(sys(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	expect("seccomp(operation=SECCOMP_SET_MODE_FILTER, flags=%s, args=%s) = 0",
	       flags ? "SECCOMP_FILTER_FLAG_TSYNC" : "0", addr(&program));
	t_ok(sys(seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

/* Calls around the one that is refused are as always. */
static void others(void)
{
	expect("getpid() = %d", (int)sys(getpid));
	expect("openat(dirfd=AT_FDCWD, path=\"missing\", flags=O_RDONLY) = -1 ENOENT");
	t_fails(sys(openat, AT_FDCWD, "missing", O_RDONLY, 0), ENOENT);
}

static void answer_errno(void)
{
	refuse(SYS_mkdir, SECCOMP_RET_ERRNO | EOPNOTSUPP, 0);
	expect("mkdir(path=\"d\", mode=0700) = -1 EOPNOTSUPP");
	t_fails(sys(mkdir, "d", 0700), EOPNOTSUPP);
	others();
	/* A success that never was. */
	refuse(SYS_rmdir, SECCOMP_RET_ERRNO, 0);
	expect("rmdir(path=\"nothing\") = 0");
	t_ok(sys(rmdir, "nothing"));
}

/* There is no tracer but us, and a call that is handed to none fails. */
static void answer_trace(void)
{
	unsigned int data;

	for (data = 0; data < 3; data++) {
		refuse(SYS_mkdir, SECCOMP_RET_TRACE | data, 0);
		expect("mkdir(path=\"d\", mode=0700) = -1 ENOSYS");
		t_fails(sys(mkdir, "d", 0700), ENOSYS);
		others();
	}
	refuse(SYS_getppid, SECCOMP_RET_TRACE | 0x7fff, 0);
	expect("getppid() = -1 ENOSYS");
	t_fails(sys(getppid), ENOSYS);
	/* The directory was not made. */
	expect("rmdir(path=\"d\") = -1 ENOENT");
	t_fails(sys(rmdir, "d"), ENOENT);
}

static volatile sig_atomic_t nr_traps;

static void on_trap(int signo)
{
	(void)signo;
	nr_traps++;
}

static void answer_trap(void)
{
	refuse(SYS_mkdir, SECCOMP_RET_TRAP | 5, 0);
	expect("mkdir(path=\"d\", mode=0700) = -1 ENOSYS {flags=INTERRUPTED}");
	expect("signal(signal=SIGSYS)");
	expect("rt_sigreturn() = *");
	(void)sys(mkdir, "d", 0700);
	t_is(nr_traps, 1);
	others();
}

static void answer_log(void)
{
	refuse(SYS_mkdir, SECCOMP_RET_LOG, 0);
	expect("mkdir(path=\"logged\", mode=0700) = 0");
	t_ok(sys(mkdir, "logged", 0700));
	others();
}

/* The most restrictive counts, and of equal ones the youngest. */
static void answer_of_several(void)
{
	refuse(SYS_mkdir, SECCOMP_RET_ERRNO | EOPNOTSUPP, 0);
	refuse(SYS_mkdir, SECCOMP_RET_TRACE | 1, 0);
	expect("mkdir(path=\"d\", mode=0700) = -1 EOPNOTSUPP");
	t_fails(sys(mkdir, "d", 0700), EOPNOTSUPP);
	refuse(SYS_mkdir, SECCOMP_RET_ERRNO | EXDEV, 0);
	expect("mkdir(path=\"d\", mode=0700) = -1 EXDEV");
	t_fails(sys(mkdir, "d", 0700), EXDEV);
}

static void answer_kill(void)
{
	refuse(SYS_mkdir, SECCOMP_RET_KILL_PROCESS, 0);
	others();
	expect("mkdir(path=\"d\", mode=0700) = ?");
	expect("thread_exit(status=?, signal=SIGSYS)");
	(void)sys(mkdir, "d", 0700);
}

static void *refused_too(void *arg)
{
	t_thread();
	t_begin();
	expect("mkdir(path=\"d\", mode=0700) = -1 EOPNOTSUPP");
	t_fails(sys(mkdir, "d", 0700), EOPNOTSUPP);
	t_end();
	return arg;
}

/* A thread and a child have the filter of who made them. */
static void answer_to_children(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	refuse(SYS_mkdir, SECCOMP_RET_ERRNO | EOPNOTSUPP, SECCOMP_FILTER_FLAG_TSYNC);
	t_end();
	t_is(pthread_create(&thread, NULL, refused_too, NULL), 0);
	t_is(pthread_join(thread, NULL), 0);
	pid = (pid_t)t_ok(fork());
	if (!pid) {
		(void)refused_too(NULL);
		_exit(0);
	}
	t_is(waitpid(pid, &status, 0), pid);
	t_is(status, 0);
	t_begin();
}

/* A filter stays for good: each has a process of its own. */
static void in_child(void (*part)(void), int signo)
{
	pid_t pid = (pid_t)t_ok(fork());
	int status;

	if (!pid) {
		t_thread();
		t_begin();
		part();
		t_end();
		_exit(0);
	}
	t_is(waitpid(pid, &status, 0), pid);
	t_is(status & ~0x80, signo); /* with or without a core */
}

int main(void)
{
	t_init();
	t_true(signal(SIGSYS, on_trap) != SIG_ERR);
	in_child(answer_errno, 0);
	in_child(answer_trace, 0);
	in_child(answer_trap, 0);
	in_child(answer_log, 0);
	in_child(answer_of_several, 0);
	in_child(answer_to_children, 0);
	in_child(answer_kill, SIGSYS);
	return 0;
}
