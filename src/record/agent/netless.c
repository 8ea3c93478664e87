/* SPDX-License-Identifier: MIT */
/*
 * Recording without a net: no filter sends calls to the tracer that are not the
 * agent's. Threads with an agent run free, and the agent tells of each call that it
 * does not take (inproc/entry.S); so all sites are changed before anybody can come to
 * them, also of calls that are the tracer's. Where that cannot be had, a process is recorded by
 * ptrace alone. What remains unseen are calls from code that is made at run time, and from the few
 * places of libraries that cannot be changed.
 *
 * A thread may have to make a call at the program's own instruction: one that was interrupted and is made
 * again, or that the agent had to give up for a signal or a fault. Until it has, it runs by
 * hand: the agent leaves all to the tracer, which stops it at each call.
 */
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/agent/inside.h"
#include "record/inproc/agent.h"

bool agent_is_netless(const struct tracer *tr)
{
	return tr->agent && tr->agent->netless;
}

uint64_t agent_told_address(const struct agent *a)
{
	return AGENT_ADDRESS(a, agent_told);
}

bool agent_runs_free(const struct tracer *tr, const struct tracee *t)
{
	const struct agent_thread *at = t->agent;

	if (!agent_is_netless(tr))
		return true; /* the net stops it at each call that is not the agent's */
	return at && at->block && !at->nr_awaited && !at->space->lost_gs && !at->space->image->off;
}

/* By hand, or free again. */
static void set_off(const struct agent_thread *at)
{
	__atomic_store_n(&at->block->off, at->nr_awaited || at->space->image->off,
			 __ATOMIC_RELAXED);
}

void agent_expect_call(struct tracer *tr, struct tracee *t, uint64_t ip, uint64_t sp)
{
	struct agent_thread *at = t->agent;
	unsigned int i = 0;

	if (!agent_is_netless(tr) || !at || !at->block)
		return;
	while (i < at->nr_awaited && (at->awaited[i].ip != ip || at->awaited[i].sp != sp))
		i++;
	if (i == AWAITED_MAX)
		i--;
	at->awaited[i] = (struct awaited_call){ ip, sp };
	at->nr_awaited = i + 1;
	set_off(at);
}

/* No frame is so large: what is further away is on another stack. */
#define FRAMES_MAX_BYTES (UINT64_C(8) << 20)

/* The call has been made, or the thread has left all that was to come back to it. */
static bool is_over(const struct awaited_call *c, uint64_t ip, uint64_t sp)
{
	return (c->ip == ip && c->sp == sp) || (sp > c->sp && sp - c->sp < FRAMES_MAX_BYTES);
}

void agent_follow_call(struct tracer *tr, struct tracee *t, const struct outcome *o, uint64_t ip,
		       uint64_t sp)
{
	struct agent_thread *at = t->agent;
	unsigned int i = 0;

	if (!agent_is_netless(tr) || !at || !at->block)
		return;
	if (interrupts_is_restart(o->err)) {
		agent_expect_call(tr, t, ip, sp);
		return;
	}
	while (i < at->nr_awaited && !is_over(&at->awaited[i], ip, sp))
		i++;
	if (i == at->nr_awaited)
		return;
	at->nr_awaited = i;
	set_off(at);
}

void netless_begin_call(struct tracee *t, struct user_regs_struct *regs)
{
	const struct wire_block *b = t->agent->block;

	/* As if it had been made at the program's own instruction. */
	regs->orig_rax = b->nr;
	regs->rip = regs->rcx = b->site + 2;
}

/* So that they stop, and go on from one call to the next. */
static void stop_others(struct tracer *tr, const struct tracee *t)
{
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *other = e->value;

		if (other != t && other->agent &&
		    other->agent->space->image == t->agent->space->image)
			interrupts_break_off(other);
	}
}

static bool is_stopped(const struct tracee *other)
{
	siginfo_t si = { .si_pid = 0 };

	return waitid(P_PID, (id_t)other->tid, &si,
		      WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 ||
	       si.si_pid;
}

/*
 * Who still runs free would make calls that nobody sees; and who is about to tell of one must have
 * done so before a filter of the program's can refuse it. Who is in the kernel stops before he comes back from there.
 */
void netless_stop_others(struct tracer *tr, const struct tracee *t)
{
	if (!agent_is_netless(tr))
		return;
	stop_others(tr, t);
	agent_wait_for_others(tr, t, is_stopped);
}

/* By which it maps libraries: else these would be there and not be changed. */
static bool maps_are_told(const struct agent_space *space)
{
	size_t i, k;

	for (i = 0; i < space->texts.len; i++) {
		const struct agent_text *x = &space->texts.items[i];

		if (x->start != space->loader_start)
			continue;
		for (k = 0; k < x->nr; k++) {
			if (x->patched[k] && agent_texts_site_nr(x, k) == SYS_mmap)
				return true;
		}
	}
	return false;
}

void netless_check_image(struct tracer *tr, struct tracee *t)
{
	const struct agent_space *space = t->agent->space;

	if (!agent_is_netless(tr) || space->image->off)
		return;
	if (!agent_texts_are_known(t) || (space->loader_start && !maps_are_told(space)))
		agent_leave_calls(tr, t);
}

void netless_free_calls(struct agent *a, const bool *wanted)
{
	unsigned int nr;

	for (nr = 0; wanted && nr < WIRE_NR_CALLS; nr++) {
		/* What changes texts, takes gs, or makes the agent leave is told of in any case. */
		if (nr != SYS_mmap && nr != SYS_arch_prctl && nr != SYS_io_uring_setup &&
		    !filter_wants_nr(wanted, nr))
			a->rules[nr].flags |= WIRE_RULE_FREE;
	}
}
