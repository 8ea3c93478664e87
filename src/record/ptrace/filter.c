/* SPDX-License-Identifier: MIT */
/*
 * The seccomp filter: calls that are wanted go to the tracer, others run free.
 * Numbers come in runs with the same answer, tried from the lowest up, since
 * the calls that programs make most have low numbers. Calls of another
 * architecture all go to the tracer: their numbers mean something else.
 *
 * A program may put filters of its own behind ours. All are asked, the most
 * restrictive answer counts, and among equal ones that of the youngest filter.
 * So a call that the program's filter refuses never reaches us by ours, and one
 * that it hands to a tracer (which it has not: the call must fail) comes with
 * the program's number instead of our mark.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/wire.h"
#include "record/ptrace/tracer.h"

#ifdef __aarch64__
#define NATIVE_AUDIT_ARCH AUDIT_ARCH_AARCH64
#define NATIVE_ARCH ARCH_AARCH64
#else
#define NATIVE_AUDIT_ARCH AUDIT_ARCH_X86_64
#define NATIVE_ARCH ARCH_X86_64
#endif

#define NR_MAX 1024

/* Its code comes first, so that freeing the filter frees it. */
struct program {
	struct sock_filter code[2 * NR_MAX + 128];
	unsigned int len;
};

static void put(struct program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	p->code[p->len++] = (struct sock_filter){ .code = code, .jt = jt, .jf = jf, .k = k };
}

/* A row is wanted when it is, or when one of its variants is: these are told apart later. */
bool filter_wants_nr(const bool *wanted, unsigned int nr)
{
	const struct row *row = row_by_nr(NATIVE_ARCH, nr);
	const struct row_variant *v;
	size_t i;

	if (!wanted)
		return true;
	if (!row)
		return wanted[SC_unknown_call];
	if (wanted[row->id] || calls_are_seen(row, wanted))
		return true;
	for (i = 0; (v = row_variant_at(i)); i++) {
		if (v->base == row->id && wanted[v->id])
			return true;
	}
	return false;
}

/* Calls that make processes, or change what is seen of them: no agent makes them. */
static bool is_never_let_pass(unsigned int nr)
{
	switch (nr) {
	case SYS_clone:
	case SYS_clone3:
	case SYS_execve:
	case SYS_execveat:
	case SYS_ptrace:
	case SYS_prctl:
	case SYS_seccomp:
#ifdef SYS_fork
	case SYS_fork:
	case SYS_vfork:
#endif
		return true;
	}
	return false;
}

static uint32_t word_of_calls(const struct agent *a, unsigned int word)
{
	uint32_t bits = 0;
	unsigned int i;

	for (i = 0; i < 32; i++) {
		unsigned int nr = word * 32 + i;

		if (agent_takes(a, nr) && !is_never_let_pass(nr))
			bits |= UINT32_C(1) << i;
	}
	return bits;
}

/* Jumps whose end is not known yet; resolve() knows. */
#define TO_PASS 254
#define TO_NET 255

/* The filter goes on at the end of the program, and the call passes. */
static void resolve(struct program *p, unsigned int from)
{
	const unsigned int pass = p->len, net = p->len + 1;
	unsigned int i;

	for (i = from; i < p->len; i++) {
		struct sock_filter *f = &p->code[i];

		if (BPF_CLASS(f->code) != BPF_JMP)
			continue;
		if (f->jt >= TO_PASS)
			f->jt = (uint8_t)((f->jt == TO_PASS ? pass : net) - i - 1);
		if (f->jf >= TO_PASS)
			f->jf = (uint8_t)((f->jf == TO_PASS ? pass : net) - i - 1);
	}
	put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

/* A 64-bit call from an address without an upper half; A: its number. */
static void put_number(struct program *p)
{
	const unsigned int at = offsetof(struct seccomp_data, instruction_pointer);

	put(p, BPF_LD | BPF_W | BPF_ABS, at + 4, 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, TO_NET);
	put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_AUDIT_ARCH, 0, TO_NET);
	put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

/* A is the number of a word, X that of a bit in it: it is found by halving. */
static void put_words(struct program *p, const struct agent *a, unsigned int from, unsigned int nr)
{
	unsigned int at = p->len;

	if (nr == 1) {
		put(p, BPF_LD | BPF_IMM, word_of_calls(a, from), 0, 0);
		put(p, BPF_ALU | BPF_RSH | BPF_X, 0, 0, 0);
		put(p, BPF_JMP | BPF_JSET | BPF_K, 1, TO_PASS, TO_NET);
		return;
	}
	put(p, BPF_JMP | BPF_JGE | BPF_K, from + nr / 2, 0, 0);
	put_words(p, a, from, nr / 2);
	p->code[at].jt = (uint8_t)(p->len - at - 1);
	put_words(p, a, from + nr / 2, nr - nr / 2);
}

/*
 * What the agent makes passes: at each of its two instructions the calls that it is for. Whoever else comes to
 * one of them gets no further than these, and none of them makes a process that nobody sees.
 */
static void put_agent(struct program *p, const struct agent *a)
{
	static const uint32_t asked[] = { WIRE_NR_FSTAT,       WIRE_NR_CLOCK_GETTIME,
					  WIRE_NR_SCHED_YIELD, WIRE_NR_FACCESSAT2,
					  WIRE_NR_MMAP,	       WIRE_NR_OPENAT,
					  WIRE_NR_CLOSE };
	const unsigned int begin = p->len;
	unsigned int i;

	put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer), 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)agent_call_address(a), 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)agent_ask_address(a), 0, TO_NET);
	put_number(p);
	for (i = 0; i < ARRAY_LEN(asked); i++)
		put(p, BPF_JMP | BPF_JEQ | BPF_K, asked[i], TO_PASS, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, WIRE_NR_FCNTL, 0, TO_NET);
	put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]), 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, WIRE_FCNTL_GET_FLAGS, TO_PASS, TO_NET);
	p->code[begin + 1].jt = (uint8_t)(p->len - begin - 2);
	put_number(p);
	put(p, BPF_JMP | BPF_JGE | BPF_K, WIRE_NR_CALLS, TO_NET, 0);
	put(p, BPF_ALU | BPF_AND | BPF_K, 31, 0, 0);
	put(p, BPF_MISC | BPF_TAX, 0, 0, 0);
	put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	put(p, BPF_ALU | BPF_RSH | BPF_K, 5, 0, 0);
	put_words(p, a, 0, WIRE_NR_CALLS / 32);
	resolve(p, begin);
}

/* Of an ioctl that nobody wants to see, the commands that we have to. Goes on with the number of the call. */
static void put_commands(struct program *p, const bool *wanted, uint32_t to_tracer)
{
	const struct row_variant *v;
	size_t i;

	for (i = 0; (v = row_variant_at(i)); i++) {
		if (v->base != SC_ioctl || !calls_are_seen(row_by_id(v->id), wanted))
			continue;
		put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4);
		put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]), 0, 0);
		put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)v->value, 0, 1);
		put(p, BPF_RET | BPF_K, to_tracer, 0, 0);
		put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	}
}

void filter_build(const bool *wanted, uint16_t mark, const struct agent *agent,
		  struct sock_fprog *ret)
{
	const uint32_t to_tracer = SECCOMP_RET_TRACE | mark;
	struct program *p = xcalloc(1, sizeof(*p));
	unsigned int nr;

	if (agent)
		put_agent(p, agent);
	put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_AUDIT_ARCH, 1, 0);
	put(p, BPF_RET | BPF_K, to_tracer, 0, 0);
	put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	if (!filter_wants_nr(wanted, SYS_ioctl))
		put_commands(p, wanted, to_tracer);
	for (nr = 1; nr < NR_MAX; nr++) {
		bool before = filter_wants_nr(wanted, nr - 1);

		if (filter_wants_nr(wanted, nr) == before)
			continue;
		/* Below nr: the answer of the run that ends here. */
		put(p, BPF_JMP | BPF_JGE | BPF_K, nr, 1, 0);
		put(p, BPF_RET | BPF_K, before ? to_tracer : SECCOMP_RET_ALLOW, 0, 0);
	}
	put(p, BPF_RET | BPF_K, to_tracer, 0, 0);
	*ret = (struct sock_fprog){ .len = (unsigned short)p->len, .filter = p->code };
}

/*
 * By number first: the kernel finds out that all other calls run free whatever
 * they are given, and does not ask the filter for them any more.
 */
void filter_build_tell(uint16_t mark, const struct agent *agent, struct sock_fprog *ret)
{
	const unsigned int at = offsetof(struct seccomp_data, instruction_pointer);
	struct program *p = xcalloc(1, sizeof(*p));
	uint64_t told = agent_told_address(agent);

	put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, WIRE_NR_TELL, 0, 5);
	put(p, BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)told, 0, 3);
	put(p, BPF_LD | BPF_W | BPF_ABS, at + 4, 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(told >> 32), 0, 1);
	put(p, BPF_RET | BPF_K, SECCOMP_RET_TRACE | mark, 0, 0);
	put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	*ret = (struct sock_fprog){ .len = (unsigned short)p->len, .filter = p->code };
}

/*
 * Kernels before 5.16 take programs with a filter for sandboxes, and let them run slower, without
 * some guessing ahead, unless asked not to; kernels before 4.17 cannot be asked, nor by prctl,
 * which may be allowed where seccomp is denied.
 */
static bool set_filter(const struct sock_fprog *filter)
{
	return !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
			filter) ||
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter) ||
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter, 0, 0);
}

bool filter_install(const struct sock_fprog *filter)
{
	/* Root may do without, and then set-user-id programs keep working. */
	return set_filter(filter) ||
	       (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && set_filter(filter));
}

/* A process of its own tries, as a filter cannot be taken back. */
static int try_filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { .len = 1, .filter = &allow };
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(filter_install(&filter) ? 0 : errno & 0xff);
	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

int filter_refusal(void)
{
	uint32_t action = SECCOMP_RET_TRACE;

	/* Kernels before 4.14 do not know the question. */
	if (!syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) || errno == EINVAL)
		return 0;
	return try_filter();
}
