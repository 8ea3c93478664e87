/* SPDX-License-Identifier: MIT */
/* Programs that change the world they live in. Exit status 77: that is not allowed here. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

#define NOT_ALLOWED 77
#define NOBODY 65534

/* close-all: every descriptor that may be open, the recorder's too if it were here. */
int mode_close_all(int argc, char **argv)
{
	int fd;

	(void)argc;
	(void)argv;
	for (fd = 0; fd < 1024; fd++)
		(void)close(fd);
	(void)syscall(SYS_close_range, 0, ~0u, 0);
	some_calls("calls", 100, 1);
	return 0;
}

/* chroot DIR */
int mode_chroot(int argc, char **argv)
{
	const char *dir = argc > 0 ? argv[0] : ".";

	if (chroot(dir) < 0)
		return errno == EPERM ? NOT_ALLOWED : 99;
	must(chdir("/"), "chdir");
	some_calls("/calls", 100, 1);
	return 0;
}

/* drop-rights: as root, for good. */
int mode_drop_rights(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (setgroups(0, NULL) < 0)
		return errno == EPERM ? NOT_ALLOWED : 99;
	must(setresgid(NOBODY, NOBODY, NOBODY), "setresgid");
	must(setresuid(NOBODY, NOBODY, NOBODY), "setresuid");
	some_calls("calls", 100, 1);
	return 0;
}

/* no-dump: memory that only root may look into. */
int mode_no_dump(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	must(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "PR_SET_DUMPABLE");
	some_calls("calls", 100, 1);
	return 0;
}

/* limit-memory: until there is nothing left to map. */
int mode_limit_memory(int argc, char **argv)
{
	struct rlimit limit = { 64 << 20, 64 << 20 };
	size_t len = 32 << 20;

	(void)argc;
	(void)argv;
	must(setrlimit(RLIMIT_AS, &limit), "setrlimit");
	while (len >= 4096) {
		if (mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			len /= 2;
	}
	some_calls("calls", 100, 1);
	return 0;
}

/* Calls of the given number get the answer, others are allowed. */
static int install_filter(unsigned int nr, unsigned int answer)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static void on_trap(int signo)
{
	(void)signo;
	atomic_fetch_add(&counts[COUNT_SIGNALS].begun, 1);
	atomic_fetch_add(&counts[COUNT_SIGNALS].done, 1);
}

static void refused_calls(unsigned int nr)
{
	while (nr--)
		(void)counted_call(COUNT_mkdirat, AT_FDCWD, (long)"refused", 0700, 0);
}

static int wake_fds[2];

static void *wait_to_be_woken(void *arg)
{
	char c;

	(void)arg;
	must(read(wake_fds[0], &c, 1), "read");
	some_calls("waited", 20, 2);
	return NULL;
}

static void *be_busy(void *arg)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "busy%u", (unsigned int)(uintptr_t)arg);
	some_calls(name, 2000, 3);
	return NULL;
}

/* seccomp-all: a filter for all threads, of which some are in calls, forbids what they do not do. */
int mode_seccomp_all(int argc, char **argv)
{
	static const unsigned int never[] = { SYS_clock_gettime, SYS_fstat, SYS_fcntl, SYS_access,
					      SYS_sched_yield };
	struct sock_filter code[2 * sizeof(never) / sizeof(never[0]) + 2];
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };
	pthread_t t[4];
	unsigned int i;

	(void)argc;
	(void)argv;
	must(pipe2(wake_fds, 0), "pipe2");
	errno = pthread_create(&t[0], NULL, wait_to_be_woken, NULL);
	for (i = 1; i < 4 && !errno; i++)
		errno = pthread_create(&t[i], NULL, be_busy, (void *)(uintptr_t)i);
	if (errno)
		give_up("pthread_create");
	usleep(50000);
	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, nr));
	for (i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		code[2 * i + 1] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, never[i], 0, 1);
		code[2 * i + 2] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	code[2 * i + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
		return NOT_ALLOWED;
	must(write(wake_fds[1], "!", 1), "write");
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* seccomp errno|trap|kill|strict: its own filter refuses mkdirat in this way. */
int mode_seccomp(int argc, char **argv)
{
	const char *how = argc > 0 ? argv[0] : "errno";
	unsigned int answer = SECCOMP_RET_ERRNO | ENOTSUP;

	some_calls("calls", 20, 1);
	if (!strcmp(how, "strict")) {
		must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0), "PR_SET_SECCOMP");
		(void)!write(1, "strict\n", 7);
		syscall(SYS_exit, 8); /* exit_group is not among the four that are left */
	}
	if (!strcmp(how, "trap")) {
		signal(SIGSYS, on_trap);
		answer = SECCOMP_RET_TRAP;
	}
	if (!strcmp(how, "kill"))
		answer = SECCOMP_RET_KILL_PROCESS;
	if (install_filter(SYS_mkdirat, answer) < 0)
		return NOT_ALLOWED;
	refused_calls(20);
	some_calls("calls", 20, 1);
	return 0;
}

/* int80: calls by the 32-bit door; exit status 77 when it is closed. */
int mode_int80(int argc, char **argv)
{
	(void)argc;
	(void)argv;
#ifdef __x86_64__
	static const char text[] = "through the old door\n";
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long r, i;

	if (low == MAP_FAILED)
		return NOT_ALLOWED;
	memcpy(low, text, sizeof(text));
	signal(SIGSEGV, SIG_DFL);
	for (i = 0; i < 10; i++) {
		/* write, by its number of the 32-bit table */
		__asm__ volatile("int $0x80"
				 : "=a"(r)
				 : "a"(4L), "b"(1L), "c"(low), "d"(sizeof(text) - 1)
				 : "memory", "r8", "r9", "r10", "r11");
		if (r != sizeof(text) - 1)
			return NOT_ALLOWED;
	}
	/* sysinfo: a struct that is laid out in another way, which is not known */
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(116L), "b"(low)
			 : "memory", "r8", "r9", "r10", "r11");
	if (r)
		return NOT_ALLOWED;
	some_calls("calls", 10, 1);
	return 0;
#else
	return NOT_ALLOWED;
#endif
}

static void *some_made_calls(void *arg)
{
	some_calls("calls2", *(const unsigned int *)arg, 2);
	return NULL;
}

/* made-code N: calls from code that is made at run time, alone and with a second thread. */
int mode_made_code(int argc, char **argv)
{
#ifdef __x86_64__
	/* mov %rdi,%rax; mov %rsi,%rdi; mov %rdx,%rsi; mov %rcx,%rdx; mov %r8,%r10; syscall; ret */
	static const unsigned char code[] = {
		0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6,
		0x48, 0x89, 0xca, 0x4d, 0x89, 0xc2, 0x0f, 0x05, 0xc3
	};
	unsigned int nr = argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 100;
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	if (p == MAP_FAILED)
		return NOT_ALLOWED;
	memcpy(p, code, sizeof(code));
	if (mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0)
		return NOT_ALLOWED;
	memcpy(&make_call, &p, sizeof(p));
	some_calls("calls", nr, 1);
	must(-pthread_create(&thread, NULL, some_made_calls, &nr), "pthread_create");
	some_calls("calls", nr, 1);
	must(-pthread_join(thread, NULL), "pthread_join");
	return 0;
#else
	(void)argc;
	(void)argv;
	return NOT_ALLOWED;
#endif
}

/* no-counter N: reading the processor's counter is an error for it and a child. */
int mode_no_counter(int argc, char **argv)
{
	unsigned int nr = argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 100;
	pid_t pid;
	int status;

	some_calls("calls", nr, 1);
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) < 0)
		return NOT_ALLOWED;
	some_calls("calls", nr, 1);
	pid = (pid_t)must(fork(), "fork");
	if (!pid) {
		some_calls("calls", nr, 1);
		_exit(0);
	}
	must(waitpid(pid, &status, 0), "waitpid");
	some_calls("calls", nr, 1);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 12;
}

/* trace-me: is a tracer itself, or tries to be. */
int mode_trace_me(int argc, char **argv)
{
	pid_t pid;
	int status;

	(void)argc;
	(void)argv;
	some_calls("calls", 10, 1);
	pid = (pid_t)must(fork(), "fork");
	if (!pid) {
		long r = ptrace(PTRACE_TRACEME, 0, NULL, NULL);

		some_calls("calls", 10, 1);
		_exit(r < 0 ? 10 : 11);
	}
	must(waitpid(pid, &status, 0), "waitpid");
	some_calls("calls", 10, 1);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 12;
}

/* huge MIB: one write of so much, as much read into 1024 pieces, and memory that is not there. */
int mode_huge(int argc, char **argv)
{
	size_t len = (argc > 0 ? strtoul(argv[0], NULL, 10) : 32) << 20, piece = len / 1024, i;
	int fd = (int)must(open("huge", O_RDWR | O_CREAT | O_CLOEXEC, 0600), "huge");
	uint32_t *words =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov[1024];

	if (words == MAP_FAILED)
		give_up("mmap");
	for (i = 0; i < len / sizeof(*words); i++)
		words[i] = (uint32_t)i * 2654435761u;
	must(counted_call(COUNT_pwrite64, fd, (long)words, (long)len, 0), "pwrite64");
	for (i = 0; i < 1024; i++)
		iov[i] = (struct iovec){ (char *)words + i * piece, piece };
	if (counted_call(COUNT_preadv, fd, (long)iov, 1024, 0) != (long)(piece * 1024))
		give_up("preadv");
	must(munmap((char *)words + len / 2, len / 2), "munmap");
	/* The second half is gone: the kernel writes the first, or refuses. */
	(void)counted_call(COUNT_pwrite64, fd, (long)words, (long)len, (long)len);
	(void)counted_call(COUNT_preadv, fd, (long)iov, 1024, 0);
	(void)counted_call(COUNT_preadv, fd, 16, 1024, 0);
	(void)counted_call(COUNT_mkdirat, AT_FDCWD, 16, 0700, 0);
	return 0;
}
