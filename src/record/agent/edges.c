/* SPDX-License-Identifier: MIT */
/*
 * What lies between the program and the agent: the jump in the program, the stub
 * with the instructions that stood there, and the first and last instructions of
 * the agent, which tell nobody that a thread is in them. A handler would see an address
 * there, which an unwinder does not know and the program neither. So before a signal is
 * delivered the thread is put to where it would be without an agent:
 *
 *   padding: jump -----> the beginning of the function behind it
 *   stub: insn insn -> stepped over -.
 *   stub: lea mov jmp ---------------+-> the program's syscall instruction
 *   agent: first instructions -------'
 *   agent: last jump ------------------> where it leads
 */
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "record/agent/inside.h"
#include "record/inproc/agent.h"

static bool is_in(uint64_t addr, uint64_t from, uint64_t to)
{
	return addr >= from && addr < to;
}

static const struct stub_area *area_of(const struct agent_space *space, uint64_t addr)
{
	unsigned int i;

	for (i = 0; i < space->nr_areas; i++) {
		const struct stub_area *a = &space->areas[i];

		if (is_in(addr, a->start, a->start + a->used_bytes))
			return a;
	}
	return NULL;
}

/* It will make its call at its own instruction, of which the agent will not know. */
static void put_to_call(struct tracer *tr, struct tracee *t, struct user_regs_struct *regs,
			uint64_t syscall)
{
	regs->rip = syscall;
	agent_expect_call(tr, t, syscall + SITE_SYSCALL_BYTES, regs->rsp);
}

/* In the agent, and in none of its phases. */
static void leave_agent(struct tracer *tr, struct tracee *t, struct user_regs_struct *regs)
{
	if (is_in(regs->rip, AGENT_ADDRESS(agent_entry), AGENT_ADDRESS(agent_registers_saved)) ||
	    is_in(regs->rip, AGENT_ADDRESS(agent_watchful_entry), AGENT_ADDRESS(agent_ask)))
		put_to_call(tr, t, regs, regs->rcx);
	else
		regs->rip = regs->rcx;
}

/* Behind the instructions of the program. False: it is still in these. */
static bool leave_stub_end(struct tracer *tr, struct tracee *t, struct user_regs_struct *regs)
{
	uint8_t bytes[SITE_STUB_END_BYTES];
	uint64_t syscall;

	if (!remote_read(t, regs->rip, bytes, sizeof(bytes)) ||
	    !site_read_stub_end(bytes, regs->rip, (uint32_t)outlive_entry(tr->agent), &syscall))
		return false;
	put_to_call(tr, t, regs, syscall ? syscall : regs->rcx);
	return true;
}

/* A fault is the instruction's own: it would come again. */
static bool is_its_fault(const struct tracee *t)
{
	siginfo_t si;

	return ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) < 0 ||
	       (si.si_code > 0 &&
		(si.si_signo == SIGSEGV || si.si_signo == SIGBUS || si.si_signo == SIGFPE ||
		 si.si_signo == SIGILL || si.si_signo == SIGTRAP));
}

static void leave_stub(struct tracer *tr, struct tracee *t, struct user_regs_struct *regs)
{
	unsigned int i;

	if (leave_stub_end(tr, t, regs) || is_its_fault(t))
		return;
	for (i = 0; i < SITE_INSNS_MAX; i++) {
		if (remote_step(t, regs) < 0 || !area_of(t->agent->space, regs->rip) ||
		    leave_stub_end(tr, t, regs))
			return;
	}
}

/* The jump stands before the function, which begins with a hop to it. */
static void leave_padding(const struct tracee *t, struct user_regs_struct *regs)
{
	uint8_t bytes[SITE_JUMP_BYTES + SITE_HOP_BYTES], hop[SITE_HOP_BYTES];
	int32_t far;

	site_put_hop(hop);
	if (!remote_read(t, regs->rip, bytes, sizeof(bytes)) || bytes[0] != 0xe9 ||
	    memcmp(bytes + SITE_JUMP_BYTES, hop, sizeof(hop)) != 0)
		return;
	memcpy(&far, bytes + 1, sizeof(far));
	if (area_of(t->agent->space, regs->rip + SITE_JUMP_BYTES + (uint64_t)(int64_t)far))
		regs->rip += SITE_JUMP_BYTES;
}

void edges_leave(struct tracer *tr, struct tracee *t)
{
	struct user_regs_struct regs;
	uint64_t rip;

	if (!t->agent->block || ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0)
		return;
	rip = regs.rip;
	if (is_in(rip, WIRE_AGENT_BASE, AGENT_ADDRESS(__stop_agent_text)))
		leave_agent(tr, t, &regs);
	else if (area_of(t->agent->space, rip))
		leave_stub(tr, t, &regs);
	else
		leave_padding(t, &regs);
	if (regs.rip != rip)
		(void)ptrace(PTRACE_SETREGS, t->tid, NULL, &regs); /* fails only when it is gone */
}
