/* SPDX-License-Identifier: MIT */
/*
 * What lies between the program and the agent: the jump in the program, the stub
 * with the instructions that stood there, and the first and last instructions of
 * the agent, which tell nobody that a thread is in them. A handler would see an address
 * there, which an unwinder does not know and the program neither. So before a signal is
 * delivered the thread is put to where it would be without an agent:
 *
 *   padding: jump -----> the beginning of the function behind it
 *   stub: instructions -> the same in the program, the first of them at its jump
 *   stub: lea mov jmp --+-> the program's syscall instruction
 *   agent: beginning ---'
 *   agent: last jump ----> where it leads
 *
 * The program has lost those that the jump stands on, but for the first: of several short ones
 * a handler may see the others in the stub.
 */
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "record/agent/inside.h"
#include "record/inproc/agent.h"

/* A program that steps through its own code would never come past a jump to which it is put back. */
#define STEPS 0x100u

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
	if (is_in(regs->rip, AGENT_ADDRESS(tr->agent, agent_entry),
		  AGENT_ADDRESS(tr->agent, agent_registers_saved)) ||
	    is_in(regs->rip, AGENT_ADDRESS(tr->agent, agent_watchful_entry),
		  AGENT_ADDRESS(tr->agent, agent_ask)))
		put_to_call(tr, t, regs, regs->rcx);
	else
		regs->rip = regs->rcx;
}

/* Where the jump leads that stands there; 0: there is none. */
static uint64_t target_of(const uint8_t bytes[SITE_JUMP_BYTES], uint64_t at)
{
	int32_t far;

	if (bytes[0] != SITE_JUMP)
		return 0;
	memcpy(&far, bytes + 1, sizeof(far));
	return at + SITE_JUMP_BYTES + (uint64_t)(int64_t)far;
}

/* Whether a function begins there with a hop to the jump before it; *ret: where that leads. */
static bool has_hop(const uint8_t bytes[SITE_JUMP_BYTES + SITE_HOP_BYTES], uint64_t at,
		    uint64_t *ret)
{
	uint8_t hop[SITE_HOP_BYTES];

	site_put_hop(hop);
	*ret = target_of(bytes, at - SITE_JUMP_BYTES);
	return *ret && !memcmp(bytes + SITE_JUMP_BYTES, hop, sizeof(hop));
}

/* What stands at rip in the stub, len bytes up to its end. */
struct rest {
	uint64_t rip;
	const uint8_t *bytes;
	size_t len;
};

/* Whether the thread can go on there in the program instead: the same stands there, or the jump to the stub. */
static bool can_go_on(struct tracer *tr, const struct tracee *t, const struct rest *rest,
		      uint64_t there)
{
	uint8_t bytes[SITE_JUMP_BYTES + SITE_STUB_MAX_BYTES], *at = bytes + SITE_JUMP_BYTES;
	uint64_t to;

	if (!remote_read(t, there - SITE_JUMP_BYTES, bytes, SITE_JUMP_BYTES + rest->len))
		return false;
	/* Without a net its call would not be seen. */
	if (!memcmp(at, rest->bytes, rest->len))
		return !agent_is_netless(tr);
	return (rest->len >= SITE_JUMP_BYTES && target_of(at, there) == rest->rip) ||
	       (rest->len >= SITE_HOP_BYTES && has_hop(bytes, there, &to) && to == rest->rip);
}

static void leave_stub(struct tracer *tr, struct tracee *t, struct user_regs_struct *regs)
{
	uint8_t stub[SITE_STUB_MAX_BYTES + SITE_STUB_END_BYTES];
	struct rest rest = { .rip = regs->rip, .bytes = stub };
	uint64_t syscall = 0;

	if (!remote_read(t, regs->rip, stub, sizeof(stub)))
		return;
	while (rest.len < SITE_STUB_MAX_BYTES &&
	       !site_read_stub_end(stub + rest.len, regs->rip + rest.len,
				   (uint32_t)outlive_entry(tr->agent), &syscall))
		rest.len++;
	if (!rest.len)
		put_to_call(tr, t, regs, syscall ? syscall : regs->rcx);
	else if (syscall && !(regs->eflags & STEPS) && can_go_on(tr, t, &rest, syscall - rest.len))
		regs->rip = syscall - rest.len;
}

/* The jump stands before the function, which begins with a hop to it. */
static void leave_padding(const struct tracee *t, struct user_regs_struct *regs)
{
	uint8_t bytes[SITE_JUMP_BYTES + SITE_HOP_BYTES];
	uint64_t function = regs->rip + SITE_JUMP_BYTES, to;

	if (remote_read(t, regs->rip, bytes, sizeof(bytes)) && has_hop(bytes, function, &to) &&
	    area_of(t->agent->space, to))
		regs->rip = function;
}

void edges_leave(struct tracer *tr, struct tracee *t)
{
	struct user_regs_struct regs;
	uint64_t rip;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0)
		return;
	rip = regs.rip;
	if (is_in(rip, tr->agent->base, AGENT_ADDRESS(tr->agent, __stop_agent_text)))
		leave_agent(tr, t, &regs);
	else if (area_of(t->agent->space, rip))
		leave_stub(tr, t, &regs);
	else if (!(regs.eflags & STEPS))
		leave_padding(t, &regs);
	if (regs.rip != rip)
		(void)ptrace(PTRACE_SETREGS, t->tid, NULL, &regs); /* fails only when it is gone */
}
