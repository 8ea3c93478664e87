/* SPDX-License-Identifier: MIT */
#include "record/agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "record/agent/inside.h"
#include "record/agent/rules.h"
#include "record/inproc/agent.h"
#include "record/ptrace/registers.h"

#define PAGE_BYTES 4096u
/* How often a thread that makes calls asks for its processor time: one in some thousand calls. */
#define CPU_EVERY_NS UINT64_C(1000000)
/* Of one ring, then it is another's turn: a thread that waits for room shall not wait for all others. */
#define AT_A_TIME_BYTES (UINT64_C(96) << 10)
/* Some times what it takes to empty so much. */
#define WAIT_FOR_ROOM_NS UINT64_C(60000)

static uint64_t choose_base(void)
{
	const uint64_t nr_pages = (WIRE_AGENT_END - WIRE_AGENT_LOWEST) / PAGE_BYTES;
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		random = clock_monotonic_ns(); /* the machine has just begun */
	return WIRE_AGENT_LOWEST + random % nr_pages * PAGE_BYTES;
}

int agent_new(const struct tracer *tr, struct agent **ret, struct err *err)
{
	struct agent *a;
	unsigned int nr;
	int refusal;

	if (tr->o->attach_pid)
		return err_set(err, -EOPNOTSUPP,
			       "a running process can be recorded by ptrace alone");
	if (tr->o->on_death == RECORD_OUTLIVE && tr->o->net != RECORD_NET_OFF)
		return err_set(
			err, -EOPNOTSUPP,
			"a program with the net under it cannot go on when the recorder is killed: "
			"--on-death=continue can be had with --net=off or --recorder=ptrace");
	refusal = filter_refusal();
	if (refusal)
		return err_set(err, -EOPNOTSUPP, "it needs a seccomp filter, which is refused: %s",
			       strerror(refusal));
	a = xcalloc(1, sizeof(*a));
	a->base = choose_base();
	a->serves_all = tr->o->agent_for == RECORD_AGENT_FOR_ALL;
	a->after_calls = tr->o->agent_after_calls;
	a->net = tr->o->net == RECORD_NET_AUDIT ? net_new() : NULL;
	a->netless = tr->o->net == RECORD_NET_OFF;
	a->outlives = tr->o->on_death == RECORD_OUTLIVE;
	if (a->outlives)
		outlive_init(a);
	a->runs_beside = sysconf(_SC_NPROCESSORS_ONLN) > 1;
	clocks_choose(&a->clocks, tr->o->clock);
	ticks_init(&a->ticks, tr->session->start_ns, a->clocks.by_kernel);
	if (tr->o->cache.dir)
		a->store = site_store_open(tr->o->cache.dir, tr->o->cache.below);
	rules_build(tr->o->data, tr->o->wanted, &tr->o->paths, a->rules);
	if (a->netless)
		netless_free_calls(a, tr->o->wanted);
	for (nr = 0; nr < WIRE_NR_CALLS; nr++) {
		a->has_variants[nr] = a->rules[nr].next != 0;
		a->is_taken[nr] = rules_take(a->rules, nr);
	}
	*ret = a;
	return 0;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	agent_images_release(a);
	agent_texts_release(a);
	site_store_close(a->store);
	agent_programs_release(a);
	ticks_release(&a->ticks);
	net_free(a->net);
	free(a->watchful);
	outlive_release(a);
	free(a);
}

uint64_t agent_call_address(const struct agent *a)
{
	return AGENT_ADDRESS(a, agent_syscall_done);
}

uint64_t agent_ask_address(const struct agent *a)
{
	return AGENT_ADDRESS(a, agent_asked);
}

bool agent_takes(const struct agent *a, unsigned int nr)
{
	return nr < WIRE_NR_CALLS && a->is_taken[nr];
}

/* Slots. */

static void take_slot(struct tracer *tr, const struct tracee *t)
{
	struct agent_thread *at = t->agent;
	struct agent_image *im = at->space->image;
	struct wire_block *b;
	unsigned int slot = slots_find_free(at->space);

	at->needs_gs = true;
	if (!slot)
		return; /* the first slot makes the agent leave all to the tracer */
	im->slots[slot] = true;
	at->slot = slot;
	at->block = b = agent_block_of(im, slot);
	at->ring = (uint8_t *)b + WIRE_BLOCK_BYTES;
	at->ring_bytes = WIRE_RING_FIRST_BYTES;
	if (tr->agent->runs_beside)
		at->wait_ticks = ticks_in_ns(&tr->agent->ticks, WAIT_FOR_ROOM_NS);
	*b = (struct wire_block){
		.self = slots_address(at->space, slot),
		.off = im->off,
		.ring = slots_address(at->space, slot) + WIRE_BLOCK_BYTES,
		.ring_bytes = WIRE_RING_FIRST_BYTES,
		.rules = im->common,
		.where = names_where(tr->agent, t),
		.tells = tr->agent->netless,
		.kernel_clock = tr->agent->clocks.by_kernel,
		.asks_kernel = t->changed_rights,
		.clock_at = clocks_function_of(&tr->agent->clocks, t),
		.master = outlive_master(tr->agent, im),
		.cpu_ticks = ticks_in_ns(&tr->agent->ticks, CPU_EVERY_NS),
	};
	at->stop_ns = tracer_now(tr);
	choice_begin(tr, t);
}

static void release_thread(struct tracer *tr, struct tracee *t)
{
	struct agent_thread *at = t->agent;
	struct agent_space *space = at->space;

	agent_clear_slot(at);
	if (at->slot)
		space->image->slots[at->slot] = false;
	t->agent = NULL;
	free(at);
	if (--space->nr_threads)
		return;
	agent_program_note(space->program, space->nr_calls);
	if (!--space->image->nr_spaces)
		agent_free_image(tr->agent, space->image);
	agent_texts_forget(space);
	free(space);
}

void agent_join(struct tracer *tr, struct tracee *t, struct agent_space *space)
{
	t->agent = xcalloc(1, sizeof(*t->agent));
	t->agent->space = space;
	t->agent->nr_views = 1;
	space->nr_threads++;
	take_slot(tr, t);
}

void agent_first_stop(struct tracee *t)
{
	struct agent_thread *at = t->agent;

	if (!at || !at->needs_gs)
		return;
	at->needs_gs = false;
	if (at->space->lost_gs)
		return; /* it is the program's */
	(void)ptrace(PTRACE_POKEUSER, t->tid, offsetof(struct user_regs_struct, gs_base),
		     slots_address(at->space, at->slot)); /* fails when it is gone */
}

void agent_new_thread(struct tracer *tr, struct tracee *parent, struct tracee *t)
{
	struct agent_space *space = parent->agent ? parent->agent->space : NULL;

	agent_hope_copy(parent, t);
	if (!space || t->agent)
		return;
	if (t->space != parent->space) {
		struct agent_space *copy = xmalloc(sizeof(*copy));

		*copy = *space;
		agent_texts_copy(space, copy);
		copy->nr_threads = 0;
		copy->nr_views = parent->agent->nr_views; /* others may have added some since */
		copy->program = NULL;
		copy->image->nr_spaces++;
		space = copy;
	}
	agent_join(tr, t, space);
}

/* What threads do later. */

void agent_after_map(struct tracer *tr, struct tracee *t, const struct outcome *o, uint64_t ip)
{
	const struct agent_space *space = t->agent ? t->agent->space : NULL;
	struct stat st;
	char name[64];
	int fd;

	if (o->err || !(t->regs[2] & PROT_EXEC) || t->regs[3] & MAP_ANONYMOUS)
		return;
	if (t->hope)
		agent_hope_map(t, (uint64_t)o->ret, t->regs[1], ip);
	if (!space || space->image->off)
		return;
	fd = -1;
	if (ip >= space->loader_start && ip < space->loader_end &&
	    (t->regs[3] & MAP_TYPE) == MAP_PRIVATE && found_stat(t->tid, (int)t->regs[4], &st) &&
	    tree_may_open(tr->session->tree, t->tid, st.st_dev)) {
		/* Another thread may have put something else there. */
		(void)snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)t->tid, (int)t->regs[4]);
		fd = agent_texts_open(tr, t, name);
	}
	if (fd < 0) {
		if (tr->agent->netless)
			agent_leave_calls(tr, t);
		return;
	}
	agent_texts_patch(tr, t, fd, (uint64_t)o->ret, t->regs[1], t->regs[5]);
	(void)close(fd);
}

/*
 * The call is not made, and no stop tells of its end: the thread goes on as if it had come by the
 * stub of its site. A signal that waits for it comes before the call.
 */
static bool hand_over(const struct agent *a, const struct tracee *t, uint64_t syscall)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0 || regs.orig_rax >= WIRE_NR_CALLS ||
	    !a->is_taken[regs.orig_rax])
		return false;
	regs.rax = regs.orig_rax;
	regs.orig_rax = UINT64_MAX;
	regs.rcx = syscall;
	regs.rip = outlive_entry(a);
	return ptrace(PTRACE_SETREGS, t->tid, NULL, &regs) == 0;
}

bool agent_at_call(struct tracer *tr, struct tracee *t, uint64_t ip, bool may_hand_over)
{
	uint64_t syscall = ip - SITE_SYSCALL_BYTES;
	enum text_state state = TEXT_FOREIGN;

	if (!t->agent || t->agent->space->image->off || t->own_filter) {
		if (tr->agent && tr->agent->net && t->recorded)
			tr->agent->net->nr_outside++;
		return false;
	}
	if (tr->agent->net)
		state = agent_texts_state(tr, t, syscall);
	/* Without a net all that can be changed has been. */
	if (!tr->agent->netless && agent_texts_patch_at(tr, t, syscall) && may_hand_over &&
	    hand_over(tr->agent, t, syscall))
		return true;
	if (tr->agent->net)
		net_note_call(tr->agent->net, t, syscall, state);
	return false;
}

void agent_before_thread(struct tracer *tr, struct tracee *t)
{
	if (t->agent && !t->agent->space->image->off && !t->own_filter && !tr->agent->netless)
		agent_texts_patch_all(tr, t, 0);
	if (t->agent && t->agent->block) /* from now on texts are changed when they are mapped */
		t->agent->block->loader_start = t->agent->block->loader_end = 0;
}

void agent_before_signal(struct tracer *tr, struct tracee *t)
{
	struct agent_space *space = t->agent ? t->agent->space : NULL;
	struct user_regs_struct regs;

	if (space)
		edges_leave(tr, t);
	if (t->hope && !t->hope->signalled)
		t->hope->signalled = interrupts_catches(t, t->delivered);
	if (space)
		dump_leave_out(tr, t);
	if (!space || space->signalled || !interrupts_catches(t, t->delivered))
		return;
	if (!space->image->off && !t->own_filter && !tr->agent->netless &&
	    ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) == 0)
		agent_texts_patch_all(tr, t, regs.rip);
	space->signalled = true;
	agent_texts_watch_loader(tr, t);
}

/* Leaving. */

/* What the program's memory says, which may be another number at the next look. */

static uint32_t phase_of(const struct agent_thread *at)
{
	return __atomic_load_n(&at->block->phase, __ATOMIC_ACQUIRE); /* pairs with the agent's */
}

static uint64_t call_head_of(const struct agent_thread *at)
{
	return __atomic_load_n(&at->block->call_head, __ATOMIC_RELAXED);
}

/*
 * The call that the thread was making: its record stands behind all that were published, and taken.
 * ret: its result in phase AFTER.
 */
static bool begin_call(struct tracer *tr, struct tracee *t, uint32_t phase, int64_t ret)
{
	uint64_t call_head = call_head_of(t->agent);

	if (call_head == t->agent->tail)
		return drain_begin_call(tr, t, call_head, phase == WIRE_AFTER ? ret : 0);
	drain_give_up(tr, t);
	return false;
}

void agent_leave_image(struct tracer *tr, struct tracee *t)
{
	agent_hope_end(t);
	if (t->agent)
		release_thread(tr, t);
}

void agent_lose_gs(struct tracer *tr, struct tracee *t)
{
	static const uint8_t to_site[] = { 0xff, 0xe1 }; /* jmp *%rcx */

	agent_hope_end(t);
	if (!t->agent)
		return;
	netless_stop_others(tr, t);
	(void)!remote_write(t, outlive_entry(tr->agent), to_site, sizeof(to_site));
	t->agent->space->lost_gs = true;
}

void agent_note_rights(const struct tracee *t)
{
	if (t->agent && t->agent->block)
		__atomic_store_n(&t->agent->block->asks_kernel, 1, __ATOMIC_RELAXED);
}

bool agent_is_in(const struct tracer *tr, const struct tracee *t)
{
	uint8_t there[64];

	return tr->agent && remote_read(t, tr->agent->base, there, sizeof(there)) &&
	       !memcmp(there, __start_agent_text, sizeof(there));
}

static void turn_image_off(struct agent_image *im)
{
	unsigned int slot;

	im->off = true;
	for (slot = 1; slot < WIRE_NR_SLOTS; slot++) {
		if (im->slots[slot])
			__atomic_store_n(&agent_block_of(im, slot)->off, 1, __ATOMIC_RELAXED);
	}
}

/* In so many looks whoever runs has come to do what is waited for. */
#define LOOKS_MAX 1000u

void agent_wait_for_others(struct tracer *tr, const struct tracee *t,
			   bool (*is_done)(const struct tracee *other))
{
	unsigned int nr = 0;

	MAP_EACH (&tr->all.by_tid, e) {
		const struct tracee *other = e->value;

		if (other == t || !other->agent || !other->agent->block ||
		    other->agent->space->image != t->agent->space->image)
			continue;
		while (!is_done(other) && nr++ < LOOKS_MAX)
			(void)sched_yield();
	}
}

/* Who has seen that the agent is on may be about to ask for something. */
static bool asks_nothing(const struct tracee *other)
{
	uint32_t phase = phase_of(other->agent);

	return phase != WIRE_BEFORE && phase != WIRE_AFTER;
}

void agent_leave_calls(struct tracer *tr, const struct tracee *t)
{
	if (!t->agent || t->agent->space->image->off)
		return;
	netless_stop_others(tr, t);
	turn_image_off(t->agent->space->image);
	if (!agent_is_netless(tr))
		agent_wait_for_others(tr, t, asks_nothing);
}

void agent_turn_off(struct tracer *tr, struct tracee *t)
{
	agent_hope_end(t);
	agent_leave_calls(tr, t);
}

static void stay_out(struct tracer *tr, struct tracee *t)
{
	tr->agent->stays_out = true;
	agent_turn_off(tr, t);
}

void agent_lose_counter(struct tracer *tr, struct tracee *t)
{
	if (tr->agent && (!tr->agent->clocks.by_kernel || tr->agent->clocks.vdso_offset))
		stay_out(tr, t);
}

void agent_lose_clock(struct tracer *tr, struct tracee *t)
{
	if (tr->agent && tr->agent->clocks.by_kernel)
		stay_out(tr, t);
}

const char *agent_clock(const struct agent *a)
{
	return clocks_name(&a->clocks);
}

uint64_t agent_nr_events(const struct agent *a)
{
	return a ? a->nr_events : 0;
}

void agent_audit(const struct agent *a, struct agent_caught *ret)
{
	*ret = (struct agent_caught){ 0 };
	if (!a || !a->net)
		return;
	ret->nr_calls = a->net->nr_caught;
	ret->nr_left = a->net->nr_left;
	ret->nr_outside = a->net->nr_outside;
	net_put_places(a->net, &ret->places);
}

uint64_t agent_nr_unseen_places(const struct agent *a)
{
	return a ? agent_texts_nr_left(a) : 0;
}

uint64_t agent_nr_missed(const struct agent *a)
{
	return a ? a->nr_missed : 0;
}

/* Others are further away than a stack may grow. */
#define STACKS_END (UINT64_C(4) << 30)

bool agent_is_forestalled(const struct tracer *tr, struct tracee *t, uint64_t stack)
{
	uint8_t there[SITE_SYSCALL_BYTES];

	if (!tr->agent || t->agent || tr->agent->netless)
		return false;
	if ((stack < tr->agent->base || stack >= STACKS_END) &&
	    !remote_read(t, agent_call_address(tr->agent) - sizeof(there), there, sizeof(there)) &&
	    !remote_read(t, agent_ask_address(tr->agent) - sizeof(there), there, sizeof(there)))
		return false;
	agent_hope_end(t);
	return true;
}

/* The agent's text is much shorter. */
#define TEXT_ROOM (UINT64_C(1) << 20)

bool agent_would_be_in(const struct tracer *tr, uint64_t start, uint64_t len)
{
	/* The kernel rounds the length up to whole pages. */
	return tr->agent && start < tr->agent->base + TEXT_ROOM &&
	       start + len + PAGE_BYTES > tr->agent->base;
}

void agent_drain(struct tracer *tr, struct tracee *t)
{
	(void)drain_thread(tr, t, DRAIN_ALL);
}

bool agent_is_at_work(const struct tracer *tr)
{
	return tr->agent && tr->agent->images;
}

uint64_t agent_drain_all(struct tracer *tr)
{
	uint64_t most = 0;

	if (!agent_is_at_work(tr))
		return 0;
	MAP_EACH (&tr->all.by_tid, e) {
		uint64_t taken = drain_thread(tr, e->value, AT_A_TIME_BYTES);

		most = taken > most ? taken : most;
	}
	return most;
}

/* Stops. */

static struct outcome outcome_of(int64_t ret)
{
	if (ret < 0 && ret > -4096)
		return (struct outcome){ .ret = -1, .err = (int32_t)-ret };
	return (struct outcome){ .ret = ret };
}

static void restore(const struct wire_block *b, struct user_regs_struct *regs)
{
	regs->rdi = b->regs[0];
	regs->rsi = b->regs[1];
	regs->rdx = b->regs[2];
	regs->r10 = b->regs[3];
	regs->r8 = b->regs[4];
	regs->r9 = b->regs[5];
	regs->rbx = b->saved[0];
	regs->rbp = b->saved[1];
	regs->r12 = b->saved[2];
	regs->r13 = b->saved[3];
	regs->r14 = b->saved[4];
	regs->r15 = b->saved[5];
	regs->rsp = b->rsp;
}

/*
 * The call has been made, by the agent: the rest of it is ours, unless its record was published. False: it
 * is not recorded by us.
 */
static bool take_call(struct tracer *tr, struct tracee *t, uint32_t phase, int64_t ret)
{
	if (phase == WIRE_AFTER && call_head_of(t->agent) != t->agent->tail)
		return false;
	if (!begin_call(tr, t, phase, ret))
		return false;
	tr->agent->nr_events++;
	return true;
}

static void finish_call(struct tracer *tr, struct tracee *t, uint32_t phase, int64_t ret)
{
	if (take_call(tr, t, phase, ret))
		tracer_finish_call(tr, t, outcome_of(ret), tracer_now(tr));
}

/* Back to the program's own instruction, where it makes the call. */
static void leave_call(struct tracer *tr, struct tracee *t, struct user_regs_struct *regs)
{
	regs->rip = t->agent->block->site;
	agent_expect_call(tr, t, regs->rip + SITE_SYSCALL_BYTES, regs->rsp);
}

/* And behind it, where the kernel may make it once more. */
static void end_call(struct tracer *tr, struct tracee *t, uint32_t phase,
		     struct user_regs_struct *regs)
{
	const struct outcome o = outcome_of((int64_t)regs->rax);

	regs->rip = t->agent->block->site + SITE_SYSCALL_BYTES;
	finish_call(tr, t, phase, (int64_t)regs->rax);
	agent_follow_call(tr, t, &o, regs->rip, regs->rsp);
}

/* The call fails because of a signal: as end_call(), unless it would not have without us. */
static void end_broken(struct tracer *tr, struct tracee *t, uint32_t phase,
		       struct user_regs_struct *regs)
{
	const struct broken_call c = {
		regs->orig_rax, { regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9 }
	};
	struct outcome o;
	int64_t ret = (int64_t)regs->rax;

	regs->rip = t->agent->block->site + SITE_SYSCALL_BYTES;
	if (take_call(tr, t, phase, ret)) {
		if (interrupts_judge(tr, t, &c, &ret) == INTERRUPTS_AGAIN) {
			t->state = TRACEE_IN_CALL;
			t->is_again = true;
			regs->rax = regs->orig_rax;
			regs->orig_rax = UINT64_MAX;
			leave_call(tr, t, regs);
			return;
		}
		regs->rax = (uint64_t)ret;
		tracer_finish_call(tr, t, outcome_of(ret), tracer_now(tr));
	}
	o = outcome_of(ret);
	agent_follow_call(tr, t, &o, regs->rip, regs->rsp);
}

/* The thread is stopped in the agent: back to the program, at its instruction or behind it. */
static void take_out(struct tracer *tr, struct tracee *t, uint32_t phase)
{
	struct wire_block *b = t->agent->block;
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0)
		return; /* killed meanwhile */
	if (phase == WIRE_BEFORE) {
		if (regs.rip >= AGENT_ADDRESS(tr->agent, agent_entry) &&
		    regs.rip < AGENT_ADDRESS(tr->agent, agent_registers_saved)) {
			regs.rip = regs.rcx;
			agent_expect_call(tr, t, regs.rip + SITE_SYSCALL_BYTES, regs.rsp);
		} else if (regs.rip == AGENT_ADDRESS(tr->agent, agent_told)) {
			netless_begin_call(t, &regs);
		} else {
			restore(b, &regs);
			regs.rax = b->nr;
			leave_call(tr, t, &regs);
		}
	} else if (phase == WIRE_CALLING && regs.rip == AGENT_ADDRESS(tr->agent, agent_syscall)) {
		leave_call(tr, t, &regs);
	} else if (phase == WIRE_CALLING && (int64_t)regs.rax == -EINTR) {
		end_broken(tr, t, phase, &regs);
	} else if (phase == WIRE_CALLING) {
		end_call(tr, t, phase, &regs);
	} else {
		restore(b, &regs);
		regs.rax = (uint64_t)b->ret;
		end_call(tr, t, phase, &regs);
	}
	b->phase = WIRE_OUTSIDE;
	(void)ptrace(PTRACE_SETREGS, t->tid, NULL, &regs); /* fails only when it is gone */
}

/* A fault by which the program's own memory has stopped us. */
static bool is_fault(const struct tracee *t)
{
	siginfo_t si;

	return (t->delivered == SIGSEGV || t->delivered == SIGBUS) &&
	       !ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) && si.si_code > 0;
}

bool agent_at_stop(struct tracer *tr, struct tracee *t)
{
	bool fault = false;
	uint32_t phase;

	if (!t->agent)
		return false;
	agent_first_stop(t);
	if (!t->agent->block)
		return false;
	waiting_note_stop(&tr->waiting, drain_thread(tr, t, DRAIN_ALL));
	phase = phase_of(t->agent);
	if (phase > WIRE_AFTER)
		drain_give_up(tr, t);
	if (phase != WIRE_OUTSIDE) {
		fault = phase != WIRE_CALLING && is_fault(t);
		take_out(tr, t, phase);
	} else {
		drain_grow_ring(t->agent);
	}
	t->agent->stop_ns = tracer_now(tr);
	return fault;
}

void agent_end_thread(struct tracer *tr, struct tracee *t)
{
	uint32_t phase;

	agent_hope_end(t);
	if (!t->agent)
		return;
	if (t->agent->block) {
		(void)drain_thread(tr, t, DRAIN_ALL);
		phase = phase_of(t->agent);
		if (phase == WIRE_CALLING && begin_call(tr, t, phase, 0)) {
			t->state = TRACEE_IN_CALL; /* for ever */
			tr->agent->nr_events++;
		} else if (phase == WIRE_AFTER) {
			finish_call(tr, t, phase, t->agent->block->ret);
		}
	}
	release_thread(tr, t);
}
