/* SPDX-License-Identifier: MIT */
/* Programs that would notice if something in them were not as it is without a recorder. */
#include <asm/prctl.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

/* So many that whoever comes late has come. */
static void calls_first(unsigned int nr)
{
	while (nr--)
		(void)syscall(SYS_getppid);
}

#ifdef __x86_64__
static uint64_t own[8] = { 0xabcdef };

static uint64_t read_gs(void)
{
	uint64_t v;

	__asm__ volatile("movq %%gs:0, %0" : "=r"(v));
	return v;
}

static void *read_gs_in_thread(void *arg)
{
	*(uint64_t *)arg = read_gs();
	return NULL;
}

/* own-gs: the register is the program's, and its threads' and children's. */
int mode_own_gs(int argc, char **argv)
{
	uint64_t seen = 0;
	pthread_t t;
	int status;
	pid_t pid;

	(void)argc;
	(void)argv;
	calls_first(100);
	must(syscall(SYS_arch_prctl, ARCH_SET_GS, own), "ARCH_SET_GS");
	pid = (pid_t)must(fork(), "fork");
	if (!pid)
		_exit(read_gs() != own[0]);
	must(waitpid(pid, &status, 0), "waitpid");
	if (pthread_create(&t, NULL, read_gs_in_thread, &seen))
		give_up("pthread_create");
	pthread_join(t, NULL);
	return status || seen != own[0] || read_gs() != own[0];
}

/* little-stack: calls with the stack pointer right above what is not there. */
int mode_little_stack(int argc, char **argv)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long ret, nr = 200;

	(void)argc;
	(void)argv;
	if (p == MAP_FAILED)
		give_up("mmap");
	must(mprotect(p, 4096, PROT_NONE), "mprotect");
	__asm__ volatile("movq %%rsp, %%r15\n\t"
			 "movq %2, %%rsp\n"
			 "1:\tmovl %3, %%eax\n\t"
			 "syscall\n\t"
			 "decq %1\n\t"
			 "jnz 1b\n\t"
			 "movq %%r15, %%rsp"
			 : "=&a"(ret), "+&r"(nr)
			 : "r"(p + 4096 + 8), "i"(SYS_getppid)
			 : "rcx", "r11", "r15", "memory");
	return ret != getppid();
}

extern long allowed_call(void);
extern const char allowed_call_end[];
__asm__(".text\n"
	".type allowed_call, @function\n"
	"allowed_call:\n"
	"\t.cfi_startproc\n"
	"\tmovl $110, %eax\n" /* getppid */
	"\tsyscall\n"
	"\tret\n"
	"\t.cfi_endproc\n"
	"allowed_call_end:\n");

static volatile char selector;
static volatile sig_atomic_t nr_trapped;

static void on_dispatch(int signo)
{
	(void)signo;
	selector = 0;
	nr_trapped++;
}

/* dispatch: calls are told apart by where they are made (PR_SET_SYSCALL_USER_DISPATCH). */
int mode_dispatch(int argc, char **argv)
{
	const struct sigaction trap = { .sa_handler = on_dispatch };
	const char *from = (const char *)(uintptr_t)allowed_call;
	long ret;
	int nr;

	(void)argc;
	(void)argv;
	calls_first(100);
	must(sigaction(SIGSYS, &trap, NULL), "sigaction");
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, from, allowed_call_end - from,
		  &selector))
		return NOT_HERE;
	selector = 1;
	ret = allowed_call();
	selector = 0;
	nr = nr_trapped;
	selector = 1;
	(void)getppid();
	selector = 0;
	return nr || ret != getppid() || nr_trapped != 1;
}
#endif

static volatile sig_atomic_t nr_handled;

static void on_signal(int signo)
{
	(void)signo;
	nr_handled++;
}

/* masked-waits N: after N calls, waits that let a signal through by a mask of their own. */
int mode_masked_waits(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal };
	struct epoll_event event;
	sigset_t blocked, none;
	int fd, i;

	must(sigaction(SIGUSR1, &action, NULL), "sigaction");
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	must(sigprocmask(SIG_BLOCK, &blocked, NULL), "sigprocmask");
	fd = (int)must(epoll_create1(0), "epoll_create1");
	calls_first(argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 0);
	for (i = 1; i <= 60; i++) {
		must(raise(SIGUSR1), "raise");
		if (epoll_pwait(fd, &event, 1, 1000, &none) != -1 || errno != EINTR ||
		    nr_handled != i)
			return 1;
	}
	return 0;
}

/* Sends signals that do nothing, until it is killed or its parent is gone. */
static pid_t send_ignored(void)
{
	pid_t parent = getpid(), pid = (pid_t)must(fork(), "fork");

	while (!pid) {
		(void)usleep(2000);
		if (getppid() != parent || kill(parent, SIGUSR2) || kill(parent, SIGWINCH))
			_exit(0);
	}
	return pid;
}

/* After some time something happens, to which a wait may come to an end: a byte, or a signal. */
static pid_t happen(int fd, int signo)
{
	pid_t parent = getpid(), pid = (pid_t)must(fork(), "fork");

	if (pid)
		return pid;
	(void)usleep(30000);
	_exit(signo ? kill(parent, signo) != 0 : write(fd, "", 1) != 1);
}

/* Each is made once, and ends by its timeout. */
static bool times_out(int epoll, int sem)
{
	const struct timespec timeout = { .tv_nsec = 20000000 };
	struct sembuf wait = { .sem_op = -1 };
	struct epoll_event event;
	sigset_t none;

	sigemptyset(&none);
	return !epoll_wait(epoll, &event, 1, 20) && !epoll_pwait(epoll, &event, 1, 20, &none) &&
	       sigtimedwait(&none, NULL, &timeout) < 0 && errno == EAGAIN &&
	       semtimedop(sem, &wait, 1, &timeout) < 0 && errno == EAGAIN;
}

/* One ends by what it waits for, one by a signal that is handled. */
static bool ends(int epoll, const int fds[2])
{
	struct epoll_event event;
	int handled = nr_handled, status[2];
	pid_t pid = happen(fds[1], 0);
	char byte;

	if (epoll_wait(epoll, &event, 1, -1) != 1 || read(fds[0], &byte, 1) != 1)
		return false;
	must(waitpid(pid, &status[0], 0), "waitpid");
	pid = happen(-1, SIGUSR1);
	if (epoll_wait(epoll, &event, 1, -1) != -1 || errno != EINTR || nr_handled != handled + 1)
		return false;
	must(waitpid(pid, &status[1], 0), "waitpid");
	return !status[0] && !status[1];
}

/* ignored N: N times waits, while signals come that are ignored. */
int mode_ignored(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal };
	int nr = argc > 0 ? (int)strtol(argv[0], NULL, 10) : 1, fds[2], epoll, sem;
	struct epoll_event event = { .events = EPOLLIN };
	bool fine = true;
	pid_t sender;

	must(sigaction(SIGUSR1, &action, NULL), "sigaction");
	if (signal(SIGUSR2, SIG_IGN) == SIG_ERR || signal(SIGWINCH, SIG_DFL) == SIG_ERR)
		give_up("signal");
	must(pipe2(fds, O_CLOEXEC), "pipe2");
	epoll = (int)must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
	must(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event), "epoll_ctl");
	sem = (int)must(semget(IPC_PRIVATE, 1, 0600), "semget");
	calls_first(100);
	sender = send_ignored();
	while (nr-- && fine)
		fine = times_out(epoll, sem) && ends(epoll, fds);
	must(kill(sender, SIGKILL), "kill");
	must(waitpid(sender, NULL, 0), "waitpid");
	must(semctl(sem, 0, IPC_RMID), "semctl");
	return !fine;
}

#ifndef TORTURE_STATIC
static void *nothing(void *arg)
{
	return arg;
}

/* reused-text LIBRARY: where it was, its file is mapped to be read. */
int mode_reused_text(int argc, char **argv)
{
	void *library = argc > 0 ? dlopen(argv[0], RTLD_NOW) : NULL;
	unsigned char *there, *bytes;
	struct link_map *map;
	struct stat st;
	pthread_t t;
	void *base;
	int fd;

	if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map))
		give_up("no library");
	base = (void *)map->l_addr;
	calls_first(100);
	if (!dlsym(library, "library_call") || dlclose(library))
		give_up("library_call");
	fd = (int)must(open(argv[0], O_RDONLY | O_CLOEXEC), argv[0]);
	must(fstat(fd, &st), "fstat");
	bytes = malloc((size_t)st.st_size);
	if (!bytes || pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
		give_up("pread");
	there = mmap(base, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
	if (there != base)
		return NOT_HERE; /* something else is there */
	if (pthread_create(&t, NULL, nothing, NULL))
		give_up("pthread_create");
	pthread_join(t, NULL);
	return memcmp(there, bytes, (size_t)st.st_size) != 0;
}
#endif

/* limit-later: a limit for the memory that is enough without a recorder. */
int mode_limit_later(int argc, char **argv)
{
	struct rlimit limit = { 300 << 20, 300 << 20 };
	struct rusage usage;

	(void)argc;
	(void)argv;
	calls_first(100);
	must(setrlimit(RLIMIT_AS, &limit), "setrlimit");
	if (mmap(NULL, 200 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		give_up("mmap");
	if (!mlockall(MCL_CURRENT) && !getrusage(RUSAGE_SELF, &usage))
		return usage.ru_maxrss > (300 << 10);
	return 0;
}

/* As far as the kernel keeps from what is below a stack, in pages (stack_guard_gap). */
#define STACK_GUARD_PAGES 256

/* Returns how many calls of itself it took to get there. */
static size_t use_stack(const char *to)
{
	volatile char here[1024];

	here[0] = 1; /* and is read below: no such call is a jump */
	return ((char *)here > to ? use_stack(to) : 0) + (size_t)here[0];
}

static void *use_stack_in_thread(void *to)
{
	return use_stack(to) ? NULL : to;
}

/* growing-stack N: made where there was room for it, and used after N calls. */
int mode_growing_stack(int argc, char **argv)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 64 * page;
	const size_t hole = bytes + STACK_GUARD_PAGES * page;
	char *there = mmap(NULL, hole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *first = there + hole - bytes / 4;
	void *failed = NULL;
	pthread_attr_t attr;
	pthread_t t;

	if (there == MAP_FAILED)
		give_up("mmap");
	must(munmap(there, hole), "munmap");
	if (mmap(first, bytes / 4, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN, -1, 0) != first)
		give_up("mmap");
	calls_first(argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 0);
	if (pthread_attr_init(&attr) || pthread_attr_setstack(&attr, there + hole - bytes, bytes) ||
	    pthread_create(&t, &attr, use_stack_in_thread, there + hole - bytes + page))
		give_up("pthread_create");
	return pthread_join(t, &failed) || failed;
}
