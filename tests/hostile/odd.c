/* SPDX-License-Identifier: MIT */
/*
 * odd WAY: makes calls in an unusual way, or damages the agent first. Each way
 * creates a file odd-WAY, or none if the machine does not support it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

#define NARROW_OPEN 5
#define NARROW_CLONE 120
#define X32_BIT 0x40000000
#define VSYSCALL_TIME 0xffffffffff600400ul
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static struct agent_text text;

/* Copies a name to an address below 4 GiB. */
static char *low_name(const char *name)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
		       -1, 0);

	if (p == MAP_FAILED)
		give_up("mmap");
	return memcpy(p, name, strlen(name) + 1);
}

static long narrow_call(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "0"(nr), "b"(a), "c"(b), "d"(c), "S"(0), "D"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

static void odd_int80(const char *name)
{
	(void)narrow_call(NARROW_OPEN, (long)low_name(name), O_CREAT | O_WRONLY, 0644);
}

static void odd_x32(const char *name)
{
	(void)syscall(X32_BIT | SYS_open, name, O_CREAT | O_WRONLY, 0644);
}

static void odd_vsyscall(const char *name)
{
	long (*get_time)(long *) = (long (*)(long *))VSYSCALL_TIME;
	long t;

	(void)get_time(&t);
	mark(name);
}

static void odd_jit(const char *name)
{
	const long args[6] = { (long)name, O_CREAT | O_WRONLY, 0644 };
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		give_up("mmap");
	memcpy(p, "\x0f\x05\xc3", 3);
	(void)call_at(p, SYS_open, args);
}

static void odd_traceme(const char *name)
{
	(void)ptrace(PTRACE_TRACEME, 0, 0, 0);
	mark(name);
}

static void end_child(long pid, const char *name)
{
	if (!pid) {
		mark(name);
		_exit(0);
	}
	(void)wait(NULL);
}

static void odd_untraced(const char *name)
{
	end_child(syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0), name);
}

static void odd_untraced_int80(const char *name)
{
	end_child(narrow_call(NARROW_CLONE, CLONE_UNTRACED | SIGCHLD, 0, 0), name);
}

static void odd_no_dump(const char *name)
{
	(void)prctl(PR_SET_DUMPABLE, 0);
	mark(name);
}

static void odd_dispatch(const char *name)
{
	static char selector;

	(void)prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector);
	mark(name);
}

static void odd_personality(const char *name)
{
	int now = personality(0xffffffff);

	if (!(now & ADDR_NO_RANDOMIZE)) {
		(void)personality((unsigned long)(now | ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC));
		execl("/proc/self/exe", "hostile", "odd", "personality", NULL);
	}
	mark(name);
}

static void odd_close_all(const char *name)
{
	(void)syscall(SYS_close_range, 0, ~0u, 0);
	mark(name);
}

static void odd_namespaces(const char *name)
{
	(void)unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID);
	if (!fork()) {
		(void)mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
		(void)mount("none", "/proc", "proc", 0, NULL);
		mark(name);
		_exit(0);
	}
	(void)wait(NULL);
}

static void odd_chroot(const char *name)
{
	(void)mkdir("root", 0755);
	if (!chroot("root"))
		(void)!chdir("/");
	mark(name);
}

static void odd_filter(const char *name)
{
	struct sock_filter code[] = { { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } };
	struct sock_fprog program = { 1, code };

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	mark(name);
}

static void odd_unmap(const char *name)
{
	mark(name);
	if (text.start)
		(void)munmap((void *)text.start, 4 * AGENT_PAGE);
	mark("odd-unmapped");
}

static void odd_unmap_ring(const char *name)
{
	mark(name);
	if (text.start)
		(void)munmap(agent_block(), 0x100000);
	mark("odd-unmapped");
}

static void odd_protect(const char *name)
{
	if (text.start)
		(void)mprotect(agent_block(), 4096, PROT_READ);
	mark(name);
}

static void odd_wipe(const char *name)
{
	if (text.start && !mprotect((void *)text.start, AGENT_PAGE, 7))
		memset((void *)text.start, 0xcc, 0x300);
	mark(name);
}

static void odd_no_gs(const char *name)
{
	__asm__ volatile("wrgsbase %0" ::"r"(0x1000ul));
	mark(name);
}

/* The agent writes its records into a ring that the recorder does not read. */
static void odd_fake_gs(const char *name)
{
	static uint8_t block[2 * WIRE_BLOCK_BYTES] __attribute__((aligned(WIRE_BLOCK_BYTES)));
	static uint8_t ring[65536] __attribute__((aligned(4096)));

	if (text.start) {
		agent_forge_block((struct wire_block *)block, ring, sizeof(ring));
		__asm__ volatile("wrgsbase %0" ::"r"(block));
	}
	mark(name);
}

/* Takes back records before the recorder reads them. */
static void odd_take_back(const char *name)
{
	struct wire_block *b = agent_block();
	char numbered[64];
	unsigned int i;
	uint64_t head;

	for (i = 0; i < 50; i++) {
		(void)snprintf(numbered, sizeof(numbered), "%s-%u", name, i);
		head = text.start ? b->head : 0;
		mark(numbered);
		if (text.start)
			__atomic_store_n(&b->head, head, __ATOMIC_RELEASE);
	}
}

/* Jumps to the instruction after the agent's syscall. */
static void odd_middle(const char *name)
{
	mark(name);
	if (text.start)
		((void (*)(void))(uintptr_t)(text.call + 2))();
	mark("odd-middled");
}

static const struct {
	const char *name;
	void (*run)(const char *name);
} ways[] = {
	{ "int80", odd_int80 },
	{ "x32", odd_x32 },
	{ "vsyscall", odd_vsyscall },
	{ "jit", odd_jit },
	{ "traceme", odd_traceme },
	{ "untraced", odd_untraced },
	{ "untraced-int80", odd_untraced_int80 },
	{ "no-dump", odd_no_dump },
	{ "dispatch", odd_dispatch },
	{ "personality", odd_personality },
	{ "close-all", odd_close_all },
	{ "namespaces", odd_namespaces },
	{ "chroot", odd_chroot },
	{ "filter", odd_filter },
	{ "unmap", odd_unmap },
	{ "unmap-ring", odd_unmap_ring },
	{ "protect", odd_protect },
	{ "wipe", odd_wipe },
	{ "no-gs", odd_no_gs },
	{ "fake-gs", odd_fake_gs },
	{ "take-back", odd_take_back },
	{ "middle", odd_middle },
};

int mode_odd(int argc, char **argv)
{
	char name[64];
	unsigned int i;

	text = agent_find();
	if (text.start && !agent_block())
		text.start = NULL;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!argc) {
			puts(ways[i].name);
		} else if (!strcmp(ways[i].name, argv[0])) {
			(void)snprintf(name, sizeof(name), "odd-%s", argv[0]);
			ways[i].run(name);
			return 0;
		}
	}
	return argc ? BROKEN : 0;
}
