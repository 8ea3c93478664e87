/* SPDX-License-Identifier: MIT */
/* One process and another: by descriptor, and into its memory. */
#include <fcntl.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

static pid_t self, child;
static uid_t uid;

static void close_it(long fd)
{
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
}

static void descriptors(int file)
{
	siginfo_t si = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
	long fd, got;

	fd = t_ok(sys(pidfd_open, child, O_NONBLOCK));
	expect("pidfd_open(pid=%d, flags=PIDFD_NONBLOCK) = %ld", child, fd);
	expect("pidfd_open(pid=-1, flags=0) = -1 EINVAL");
	t_fails(sys(pidfd_open, -1, 0), EINVAL);
	got = t_ok(sys(pidfd_getfd, fd, file, 0));
	expect("pidfd_getfd(pidfd=%ld, targetfd=%d, flags=0) = %ld", fd, file, got);
	close_it(got);
	expect("pidfd_getfd(pidfd=%ld, targetfd=999, flags=0) = -1 EBADF", fd);
	t_fails(sys(pidfd_getfd, fd, 999, 0), EBADF);
	expect("pidfd_send_signal(pidfd=%ld, sig=0, info=NULL, flags=0) = 0", fd);
	t_ok(sys(pidfd_send_signal, fd, 0, NULL, 0));
	expect("pidfd_send_signal(pidfd=-1, sig=SIGUSR1, info={si_signo=SIGUSR1, si_code=-1}, flags=0) = -1 EBADF");
	t_fails(sys(pidfd_send_signal, -1, SIGUSR1, &si, 0), EBADF);
	expect("kcmp(pid1=%d, pid2=%d, type=KCMP_VM, idx1=0, idx2=0) = %s", self, child,
	       outcome(sys(kcmp, self, child, KCMP_VM, 0, 0)));
	expect("kcmp(pid1=%d, pid2=%d, type=KCMP_FILE, idx1=%d, idx2=%d) = 0", self, child, file,
	       file);
	t_is(sys(kcmp, self, child, KCMP_FILE, file, file), 0);
	/* The child is ended by this, and waited for as what it is. */
	si.si_signo = SIGTERM;
	si.si_pid = self;
	si.si_uid = uid;
	expect_of(child, "signal(signal=SIGTERM, code=-1, sender=%d, uid=%u)", self, uid);
	expect_of(child, "thread_exit(signal=SIGTERM)");
	expect("pidfd_send_signal(pidfd=%ld, sig=SIGTERM, info={si_signo=SIGTERM, si_code=-1, si_pid=%d, si_uid=%u}, flags=0) = 0",
	       fd, self, uid);
	t_ok(sys(pidfd_send_signal, fd, SIGTERM, &si, 0));
	expect("fcntl_setfl(fd=%ld, arg=O_RDONLY) = 0", fd);
	t_ok(sys(fcntl, fd, F_SETFL, 0));
	expect("waitid(idtype=P_PIDFD, id=%ld, infop={si_signo=SIGCHLD, si_code=2, si_pid=%d, si_status=15}, options=WEXITED, rusage=NULL) = 0",
	       fd, child);
	t_ok(sys(waitid, P_PIDFD, fd, &(siginfo_t){ 0 }, WEXITED, NULL));
	expect("pidfd_send_signal(pidfd=%ld, sig=SIGTERM, info=NULL, flags=0) = -1 ESRCH", fd);
	t_fails(sys(pidfd_send_signal, fd, SIGTERM, NULL, 0), ESRCH);
	close_it(fd);
}

static char there[20] = "what is there";

static void memory(void)
{
	char a[4], b[20];
	struct iovec local[2] = { { a, 4 }, { b, 20 } }, remote = { there, 13 };
	struct iovec out = { (char *)(uintptr_t) "THAT", 4 };

	expect("process_vm_readv(pid=%d, local_iov=[{iov_base=\"what\", iov_len=4}, {iov_base=\" is there\", iov_len=20}], liovcnt=2, remote_iov=[{iov_base=%s, iov_len=13}], riovcnt=1, flags=0) = 13",
	       child, addr(there));
	t_is(sys(process_vm_readv, child, local, 2, &remote, 1, 0), 13);
	expect("process_vm_writev(pid=%d, local_iov=[{iov_base=\"THAT\", iov_len=4}], liovcnt=1, remote_iov=[{iov_base=%s, iov_len=13}], riovcnt=1, flags=0) = 4",
	       child, addr(there));
	t_is(sys(process_vm_writev, child, &out, 1, &remote, 1, 0), 4);
	expect("process_vm_readv(pid=-1, local_iov=*, liovcnt=1, remote_iov=[{iov_base=%s}], riovcnt=1, flags=0) = -1 ESRCH",
	       addr(there));
	t_fails(sys(process_vm_readv, -1, local, 1, &remote, 1, 0), ESRCH);
	expect("process_vm_writev(pid=%d, local_iov=[{iov_base=\"THAT\"}], liovcnt=1, remote_iov=[{}], riovcnt=1, flags=1) = -1 EINVAL",
	       child);
	t_fails(sys(process_vm_writev, child, &out, 1, &remote, 1, 1), EINVAL);
}

int main(void)
{
	int file;

	t_init();
	self = getpid();
	uid = getuid();
	file = (int)t_ok(open("f", O_CREAT | O_RDWR, 0600));
	t_block_sigchld();
	child = (pid_t)t_ok(fork());
	if (!child) {
		for (;;)
			(void)sys(pause);
	}
	t_await_state(child, 'S');
	t_begin();
	memory();
	descriptors(file);
	t_end();
	return 0;
}
