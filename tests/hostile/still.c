/* SPDX-License-Identifier: MIT */
/*
 * Static programs that attack before they have the agent: `still MODE ARGS`.
 * Without arguments the program exits without any other call. After a few such
 * runs the recorder assumes that the program makes few calls, and does not
 * inject the agent at its start.
 *
 *   own BASE OFFSET...         makes calls from a page at the agent's address
 *   guess OFFSET...            makes calls from every page the agent could be at
 *   adopt VICTIM BASE OFFSET   while the agent enters, a process that shares the
 *                              descriptor table replaces the descriptor of the
 *                              recorder's memory with the victim
 *   cut VICTIM BASE OFFSET     the other process truncates that memory instead
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

#define MEMORY_FD 4 /* the first descriptor after the victim's */
#define SHARED_PAGES 256ul
#define SPIN_MS 300

/* The entry point: exits without arguments, else continues at _start. */
__asm__(".text\n"
	".globl still_start\n"
	"still_start:\n"
	"\tcmpq $1, (%rsp)\n"
	"\tjne _start\n"
	"\txorl %edi, %edi\n"
	"\tmovl $231, %eax\n"
	"\tsyscall\n");

static void put_calls(uint8_t *page, char **offsets)
{
	for (; *offsets; offsets++)
		memcpy(page + strtoul(*offsets, NULL, 16), "\x0f\x05\xc3", 3);
}

static long make(const uint8_t *page, const char *offset, long nr, long a, long b, long c, long d)
{
	const long args[6] = { a, b, c, d };

	return call_at(page + strtoul(offset, NULL, 16), nr, args);
}

/* Maps a page with a "syscall; ret" at each offset, over whatever is there. */
static uint8_t *map_page(unsigned long base, char **offsets)
{
	uint8_t *page = mmap((void *)base, AGENT_PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (page == MAP_FAILED)
		_exit(BROKEN);
	put_calls(page, offsets);
	if (mprotect(page, AGENT_PAGE, PROT_READ | PROT_EXEC))
		_exit(BROKEN);
	return page;
}

static int own(char **argv)
{
	uint8_t *page = map_page(strtoul(argv[0], NULL, 16), argv + 1);
	unsigned int i;
	char name[16];
	long fd;

	for (i = 1; argv[i]; i++) {
		(void)sprintf(name, "own-%u", i);
		fd = make(page, argv[i], SYS_openat, AT_FDCWD, (long)name, O_CREAT | O_WRONLY,
			  0644);
		if (make(page, argv[i], SYS_write, fd, (long)name, 5, 0) != 5)
			return BROKEN;
	}
	return 0;
}

/* Maps the same few pages over the whole range, and writes a byte from each page. */
static int guess(char **argv)
{
	const uint64_t bytes = SHARED_PAGES * AGENT_PAGE;
	int memory = memfd_create("guess", 0);
	int fd = open("guessed", O_CREAT | O_WRONLY, 0644);
	unsigned long at;
	uint8_t *page;

	if (memory < 0 || fd < 0 || ftruncate(memory, (off_t)bytes))
		return BROKEN;
	page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (page == MAP_FAILED)
		return BROKEN;
	for (at = 0; at < bytes; at += AGENT_PAGE)
		put_calls(page + at, argv);
	for (at = AGENT_LOW; at < AGENT_HIGH; at += bytes) {
		if (mmap((void *)at, bytes, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED_NOREPLACE,
			 memory, 0) != (void *)at)
			return BROKEN;
	}
	for (at = AGENT_LOW; at < AGENT_HIGH; at += AGENT_PAGE) {
		if (make((uint8_t *)at, argv[0], SYS_pwrite64, fd, (long)"x", 1,
			 (long)((at - AGENT_LOW) / AGENT_PAGE)) != 1)
			return BROKEN;
	}
	return 0;
}

struct adopter {
	char **argv; /* BASE OFFSET */
	bool cuts;
};

/* Waits for the descriptor of the recorder's memory, by calls that avoid the filter. */
static void spin(const struct adopter *a)
{
	uint8_t *page = map_page(strtoul(a->argv[0], NULL, 16), a->argv + 1);
	const char *offset = a->argv[1];
	const struct timespec nap = { 0, 50000000 };
	uint64_t end = now_ms() + SPIN_MS;
	long copy;

	while (now_ms() < end) {
		if (make(page, offset, SYS_fcntl, MEMORY_FD, F_GETFD, 0, 0) < 0)
			continue;
		if (!a->cuts) {
			(void)make(page, offset, SYS_dup2, MEMORY_FD - 1, MEMORY_FD, 0, 0);
			break;
		}
		copy = make(page, offset, SYS_fcntl, MEMORY_FD, F_DUPFD, 9, 0);
		(void)make(page, offset, SYS_nanosleep, (long)&nap, 0, 0, 0);
		(void)make(page, offset, SYS_ftruncate, copy, 0, 0, 0);
		break;
	}
	(void)make(page, offset, SYS_exit_group, 0, 0, 0, 0);
}

/* Runs in a vfork child, so that the recorder does not see that the tables are shared. */
static int start_spinning(void *arg)
{
	if (!syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0))
		spin(arg);
	_exit(0);
}

static int adopt(char **argv, bool cuts)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct adopter a = { argv + 1, cuts };
	const struct timespec nap = { 0, 100000000 };
	unsigned int i;

	(void)close_range(3, ~0u, 0);
	if (open(argv[0], O_PATH) != MEMORY_FD - 1)
		return BROKEN;
	(void)clone(start_spinning, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &a);
	(void)syscall(SYS_nanosleep, &nap, NULL);
	for (i = 0; i < 200; i++)
		(void)syscall(SYS_getppid);
	(void)syscall(SYS_nanosleep, &nap, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "own"))
		return own(argv + 2);
	if (argc > 2 && !strcmp(argv[1], "guess"))
		return guess(argv + 2);
	if (argc > 4 && !strcmp(argv[1], "adopt"))
		return adopt(argv + 2, false);
	if (argc > 4 && !strcmp(argv[1], "cut"))
		return adopt(argv + 2, true);
	return BROKEN;
}
