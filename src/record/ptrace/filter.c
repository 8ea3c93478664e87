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
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>

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
	struct sock_filter code[2 * NR_MAX + 16];
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

/* Its instructions stand at addresses that need no upper half. */
static void put_agent(struct program *p)
{
	const unsigned int at = offsetof(struct seccomp_data, instruction_pointer);
	uint64_t addresses[AGENT_NR_CALL_ADDRESSES];

	agent_call_addresses(addresses);
	put(p, BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)addresses[0], 1, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)addresses[1], 0, 3);
	put(p, BPF_LD | BPF_W | BPF_ABS, at + 4, 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
	put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
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

void filter_build(const bool *wanted, uint16_t mark, bool with_agent, struct sock_fprog *ret)
{
	const uint32_t to_tracer = SECCOMP_RET_TRACE | mark;
	struct program *p = xcalloc(1, sizeof(*p));
	unsigned int nr;

	if (with_agent)
		put_agent(p);
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
void filter_build_tell(uint16_t mark, struct sock_fprog *ret)
{
	const unsigned int at = offsetof(struct seccomp_data, instruction_pointer);
	struct program *p = xcalloc(1, sizeof(*p));
	uint64_t told = agent_told_address();

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
