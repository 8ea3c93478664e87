/* SPDX-License-Identifier: MIT */
/* Programs that would notice if something in them were not as it is without a recorder. */
#include <asm/prctl.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
