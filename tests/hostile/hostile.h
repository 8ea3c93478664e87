/* SPDX-License-Identifier: MIT */
/*
 * Programs that attack their recorder, all in one binary: `hostile MODE ARGS`.
 * They create files in the working directory; the test compares the trace with
 * these files.
 *
 * Exit status: 0 the attack was made, 7 the process has no agent, 77 not
 * possible on this machine, 99 error in the test itself.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "model/wire.h"

#define NO_AGENT 7
#define NOT_HERE 77
#define BROKEN 99

/* The range in which a recording places the agent's text. */
#define AGENT_LOW 0x70000000ul
#define AGENT_HIGH 0x7f000000ul
#define AGENT_PAGE 4096ul

/* The agent's text in this process and its instructions; start is NULL if there is no agent. */
struct agent_text {
	const uint8_t *start;
	const uint8_t *ask; /* syscall; ret */
	const uint8_t *call; /* the syscall of recorded calls */
};

/* Makes enough calls for the agent to enter, then searches for it. */
struct agent_text agent_find(void);
/* The block of this thread, or NULL. */
struct wire_block *agent_block(void);
/* A copy of this thread's block, with a ring of its own. */
void agent_forge_block(struct wire_block *fake, void *ring, uint64_t ring_bytes);

/* Makes no system call: the time comes from the vDSO. */
static inline uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline uint64_t gs_base(void)
{
	uint64_t base;

	__asm__ volatile("rdgsbase %0" : "=r"(base));
	return base;
}

/*
 * Makes a call with a "syscall; ret" at another address. The return address is
 * in the caller's frame, where a vfork child that shares the stack does not
 * overwrite it.
 */
static inline __attribute__((always_inline)) long call_at(const void *insn, long nr,
							  const long *args)
{
	register long r10 __asm__("r10") = args[3];
	register long r8 __asm__("r8") = args[4];
	register long r9 __asm__("r9") = args[5];
	uint64_t stack[64];
	long ret;

	__asm__ volatile("movq %%rsp, %%rbx\n\t"
			 "movq %[stack], %%rsp\n\t"
			 "leaq 1f(%%rip), %%rcx\n\t"
			 "pushq %%rcx\n\t"
			 "jmp *%[insn]\n"
			 "1:\tmovq %%rbx, %%rsp"
			 : "=a"(ret)
			 : "0"(nr), "D"(args[0]), "S"(args[1]), "d"(args[2]), "r"(r10), "r"(r8),
			   "r"(r9), [stack] "r"(stack + 64), [insn] "r"(insn)
			 : "rbx", "rcx", "r11", "memory");
	return ret;
}

/*
 * Makes a call with the agent's other instruction. The agent code behind it then
 * runs with a forged block and returns here.
 */
static inline __attribute__((always_inline)) long
call_inside(const void *insn, struct wire_block *fake, long nr, const long *args)
{
	register long r10 __asm__("r10") = args[3];
	register long r8 __asm__("r8") = args[4];
	register long r9 __asm__("r9") = args[5];
	unsigned int i;
	long ret;

	for (i = 0; i < 6; i++)
		fake->regs[i] = (uint64_t)args[i];
	__asm__ volatile("rdgsbase %%rbx\n\t"
			 "leaq 1f-2(%%rip), %%rcx\n\t"
			 "movq %%rcx, %c[site](%[fake])\n\t"
			 "movq %%rsp, %c[rsp](%[fake])\n\t"
			 "wrgsbase %[fake]\n\t"
			 "jmp *%[insn]\n"
			 "1:\twrgsbase %%rbx"
			 : "=a"(ret)
			 : "0"(nr), "D"(args[0]), "S"(args[1]), "d"(args[2]), "r"(r10), "r"(r8),
			   "r"(r9), [fake] "r"(fake), [insn] "r"(insn), [site] "i"(WIRE_AT_SITE),
			   [rsp] "i"(WIRE_AT_RSP)
			 : "rbx", "rcx", "r11", "memory");
	return ret;
}

/* Creates a file that contains its own name, by libc's open, write and close. */
void mark(const char *name);
__attribute__((noreturn, format(printf, 1, 2))) void give_up(const char *fmt, ...);
long must(long r, const char *what);
void nap_us(long us);

typedef int (*mode_fn)(int argc, char **argv);

int mode_probe(int argc, char **argv);
int mode_children(int argc, char **argv);
int mode_guarded(int argc, char **argv);
int mode_evade(int argc, char **argv);
int mode_answer(int argc, char **argv);

int mode_forge(int argc, char **argv);
int mode_poison(int argc, char **argv);
int mode_sizes(int argc, char **argv);
int mode_truncate(int argc, char **argv);
int mode_fifo(int argc, char **argv);

int mode_odd(int argc, char **argv);

int mode_open(int argc, char **argv);
int mode_move(int argc, char **argv);
int mode_swap(int argc, char **argv);
int mode_confined(int argc, char **argv);

#endif
