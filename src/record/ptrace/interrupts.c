/* SPDX-License-Identifier: MIT */
#include "record/ptrace/interrupts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/io.h"
#include "record/ptrace/registers.h"
#include "record/ptrace/tracer.h"

#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

#define BIT(signo) (UINT64_C(1) << ((signo)-1))
/* Signals that do not kill when nobody handles them. */
#define HARMLESS                                                                                   \
	(BIT(SIGCHLD) | BIT(SIGCONT) | BIT(SIGURG) | BIT(SIGWINCH) | BIT(SIGSTOP) | BIT(SIGTSTP) | \
	 BIT(SIGTTIN) | BIT(SIGTTOU))

bool interrupts_is_restart(int32_t err)
{
	return err == ERESTARTSYS || err == ERESTARTNOINTR || err == ERESTARTNOHAND ||
	       err == ERESTART_RESTARTBLOCK;
}

/* Sets of signals, as bits. */
struct signal_state {
	uint64_t deliverable, caught, ignored;
};

static uint64_t read_set(const char *status, const char *name)
{
	const char *p = strstr(status, name);

	return p ? strtoull(p + strlen(name), NULL, 16) : 0;
}

static void read_signals(const struct tracee *t, struct signal_state *ret)
{
	struct buf b = { 0 };
	const char *s;
	char name[64];

	*ret = (struct signal_state){ 0 };
	(void)snprintf(name, sizeof(name), "/proc/%d/task/%d/status", (int)t->pid, (int)t->tid);
	if (!io_read_file(name, 65536, &b, NULL)) {
		s = buf_str(&b);
		ret->deliverable = (read_set(s, "\nSigPnd:") | read_set(s, "\nShdPnd:")) &
				   ~read_set(s, "\nSigBlk:");
		ret->caught = read_set(s, "\nSigCgt:");
		ret->ignored = read_set(s, "\nSigIgn:");
		if (t->delivered)
			ret->deliverable |= BIT(t->delivered);
	}
	buf_release(&b);
}

bool interrupts_catches(const struct tracee *t, int signo)
{
	struct signal_state s;

	if (!signo) /* it was stopped for something else */
		return false;
	read_signals(t, &s);
	return s.caught & BIT(signo);
}

bool interrupts_is_deadly(const struct tracee *t, int signo)
{
	struct signal_state s;

	read_signals(t, &s);
	return !((s.caught | s.ignored | HARMLESS) & BIT(signo));
}

enum fate {
	FATE_AGAIN,
	FATE_EINTR,
	FATE_DEATH,
	FATE_OPEN, /* the handler's flags decide */
};

/* By the lowest signal that does something; those with low numbers are delivered first. */
static enum fate foretell(const struct signal_state *s, int32_t err)
{
	uint64_t fatal = ~(s->caught | s->ignored | HARMLESS);
	uint64_t acting = s->deliverable & (s->caught | fatal);
	uint64_t first = acting & -acting;

	if (!first)
		return FATE_AGAIN;
	if (first & fatal)
		return FATE_DEATH;
	if (err == ERESTARTNOINTR)
		return FATE_AGAIN;
	return err == ERESTARTSYS ? FATE_OPEN : FATE_EINTR;
}

static void put(struct tracer *tr, struct tracee *t, struct event *ev, enum fate fate)
{
	switch (fate) {
	case FATE_AGAIN:
		ev->flags |= EVENT_RESTARTED;
		break;
	case FATE_DEATH:
		ev->flags |= EVENT_UNFINISHED;
		ev->outcome = (struct outcome){ 0 };
		break;
	default:
		ev->flags |= EVENT_INTERRUPTED;
		ev->outcome.err = EINTR;
	}
	tracer_put_event(tr, t, ev);
}

static void put_kept(struct tracer *tr, struct tracee *t, enum fate fate)
{
	struct kept_events *k = &t->kept;
	unsigned int i;

	put(tr, t, k->call, fate);
	for (i = 0; i < k->nr_signals; i++)
		tracer_put_event(tr, t, k->signals[i]);
	*k = (struct kept_events){ 0 };
}

void interrupts_put_call(struct tracer *tr, struct tracee *t, struct outcome o, uint64_t seen_ns)
{
	struct signal_state signals;
	enum fate fate;
	struct event ev;

	read_signals(t, &signals);
	fate = foretell(&signals, o.err);
	tracer_make_call(tr, t, o, seen_ns, &ev);
	if (fate != FATE_OPEN) {
		put(tr, t, &ev, fate);
		return;
	}
	t->kept = (struct kept_events){ .caught = signals.caught };
	t->kept.call = arena_alloc(&t->arena, sizeof(ev));
	*t->kept.call = ev;
}

bool interrupts_put_signal(struct tracer *tr, struct tracee *t, struct event *ev)
{
	struct kept_events *k = &t->kept;

	if (k->call && k->nr_signals == KEPT_SIGNALS_MAX)
		put_kept(tr, t, FATE_EINTR); /* it comes to a handler sooner or later */
	if (!k->call) {
		tracer_put_event(tr, t, ev);
		return false;
	}
	k->signals[k->nr_signals] = arena_alloc(&t->arena, sizeof(*ev));
	*k->signals[k->nr_signals++] = *ev;
	k->is_stepping = k->caught & BIT(ev->args[0].i);
	return k->is_stepping;
}

bool interrupts_decide(struct tracer *tr, struct tracee *t, int signo, bool at_entry)
{
	bool by_step = t->kept.is_stepping && signo == SIGTRAP, is_eintr = true;

	if (!t->kept.call)
		return false;
	t->kept.is_stepping = false;
	if (by_step) {
		/* Where the frame cannot be read, what programs have to expect. */
		(void)!registers_frame_is_eintr(t->tid, t->flags & EVENT_COMPAT, &is_eintr);
		put_kept(tr, t, is_eintr ? FATE_EINTR : FATE_AGAIN);
		return true;
	}
	if (at_entry)
		put_kept(tr, t, FATE_AGAIN); /* no handler has run */
	return false;
}

/* Breaks of our own. */

void interrupts_break_off(struct tracee *t)
{
	t->is_broken_off = ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) == 0; /* or it is gone */
}

/*
 * When they fail so they have done nothing. Their time begins anew, which is less to bear than
 * an error that nobody expects. With a mask of its own a call must end by a signal that
 * comes just now, so it is left.
 */
static bool may_be_made_again(const struct broken_call *c)
{
	switch (c->nr) {
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_rt_sigtimedwait:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_io_getevents:
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_accept:
	case SYS_accept4:
		return true;
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
	case SYS_io_uring_enter:
		return !c->args[4];
	}
	return false;
}

void interrupts_undo(const struct tracee *t)
{
	struct signal_state signals;
	struct broken_call c;

	if (!t->is_broken_off || registers_broken_call(t->tid, &c) < 0 || !may_be_made_again(&c))
		return;
	read_signals(t, &signals);
	if (foretell(&signals, ERESTARTNOHAND) == FATE_AGAIN)
		(void)!registers_make_again(t->tid); /* or it was killed meanwhile */
}

/* Ignored signals. */

/* As long as nobody handles them. */
#define IGNORED (BIT(SIGCHLD) | BIT(SIGCONT) | BIT(SIGURG) | BIT(SIGWINCH))

static uint64_t unseen(const struct signal_state *s)
{
	return (s->ignored | IGNORED) & ~s->caught;
}

bool interrupts_is_unseen(const struct tracee *t, int signo)
{
	struct signal_state s;

	read_signals(t, &s);
	return unseen(&s) & BIT(signo);
}

/* Calls that fail with EINTR for any signal, having done nothing. */
struct wait_call {
	uint64_t nr;
	int timeout; /* its argument; -1: none */
	bool is_ms; /* in the register; else a struct timespec, in memory */
	int64_t timed_out; /* what it returns then */
};

static const struct wait_call wait_calls[] = {
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, 3, true, 0 },
#endif
	{ SYS_epoll_pwait, 3, true, 0 },
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, 3, false, 0 },
#endif
	{ SYS_rt_sigtimedwait, 2, false, -EAGAIN },
	{ SYS_semop, -1, false, 0 },
	{ SYS_semtimedop, 3, false, -EAGAIN },
	{ SYS_io_getevents, 4, false, 0 },
};

/* UINT64_MAX: none. False: it cannot be told. */
static bool timeout_of(const struct tracee *t, const struct wait_call *w,
		       const struct broken_call *c, uint64_t *ret_ns)
{
	uint64_t arg = w->timeout < 0 ? 0 : c->args[w->timeout];
	struct timespec ts;
	struct iovec local = { &ts, sizeof(ts) }, remote = { (void *)(uintptr_t)arg, sizeof(ts) };

	*ret_ns = UINT64_MAX;
	if (w->timeout < 0 || (w->is_ms ? (int)arg < 0 : !arg))
		return true;
	if (w->is_ms) {
		*ret_ns = (uint64_t)(int)arg * (NS_PER_S / 1000);
		return true;
	}
	if (process_vm_readv(t->tid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(ts))
		return false;
	if (ts.tv_sec >= 0 && (uint64_t)ts.tv_sec < UINT64_MAX / NS_PER_S - 1)
		*ret_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	return true;
}

enum interrupts_undo interrupts_judge(struct tracer *tr, const struct tracee *t,
				      const struct broken_call *c, int64_t *ret)
{
	const size_t nr = sizeof(wait_calls) / sizeof(wait_calls[0]);
	const struct wait_call *w = wait_calls;
	struct signal_state s;
	uint64_t timeout_ns;

	while (w < wait_calls + nr && w->nr != c->nr)
		w++;
	read_signals(t, &s);
	if (w == wait_calls + nr || !s.deliverable || s.deliverable & ~unseen(&s) ||
	    !timeout_of(t, w, c, &timeout_ns))
		return INTERRUPTS_LEFT;
	if (clock_sub_ns(tracer_now(tr), t->enter_ns) < timeout_ns)
		return INTERRUPTS_AGAIN;
	*ret = w->timed_out;
	return INTERRUPTS_TIMED_OUT;
}

bool interrupts_make_again(struct tracer *tr, struct tracee *t, int64_t *ret)
{
	struct broken_call c;
	int64_t result;

	if (!t->row || tr->session->is_over || registers_broken_call(t->tid, &c) < 0)
		return false;
	switch (interrupts_judge(tr, t, &c, &result)) {
	case INTERRUPTS_AGAIN:
		t->is_again = registers_make_again(t->tid) == 0; /* or it was killed meanwhile */
		return t->is_again;
	case INTERRUPTS_TIMED_OUT:
		if (registers_set_result(t->tid, result) == 0)
			*ret = result;
		break;
	case INTERRUPTS_LEFT:
		break;
	}
	return false;
}

void interrupts_end(struct tracer *tr, struct tracee *t)
{
	if (t->kept.call)
		put_kept(tr, t, FATE_DEATH);
}
