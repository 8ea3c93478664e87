/* SPDX-License-Identifier: MIT */
/*
 * The loop of the ptrace recorder: one stop after another, from whichever
 * thread has one.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "record/ptrace/beside.h"
#include "record/ptrace/map_stores.h"
#include "record/ptrace/tracer.h"

/* What is written reaches the file at least this often, so that a killed recorder loses little. */
#define TICK_NS 500000000u
#define TICK_FIRST_NS 8000000u

volatile sig_atomic_t tracer_stop;

/* With more it is not worth a look at each. */
#define FEW_THREADS 16u

/* As far as we can see: an agent may have it wait in a call. */
static bool runs_alone(const struct tracer *tr, const struct tracee *t)
{
	if (tr->all.by_tid.nr_live > FEW_THREADS)
		return false;
	MAP_EACH (&tr->all.by_tid, e) {
		const struct tracee *other = e->value;

		/* Who is in such a call may be about to say where this one shall run. */
		if (other != t && (other->state == TRACEE_RUNNING || calls_are_about_cpus(other)))
			return false;
	}
	return true;
}

static bool belongs_beside_us(const struct tracer *tr, const struct tracee *t)
{
	if (!t->is_movable || t->looks_at_cpus ||
	    waiting_is_busy(&tr->waiting, clock_monotonic_ns()))
		return false;
	return !calls_are_about_cpus(t) && runs_alone(tr, t);
}

void tracer_resume(struct tracer *tr, struct tracee *t, int signo)
{
	int request = PTRACE_SYSCALL;

	/*
	 * A filter of the program's own may refuse calls before ours can show them: stop at all.
	 * Likewise before the execve, unless ours shows all calls: stops are measured there.
	 */
	if (tr->filtered && (t->recorded || tr->agent) && t->state != TRACEE_IN_CALL &&
	    !t->own_filter && !t->stops_always && !t->polled.is_working && agent_runs_free(tr, t))
		request = PTRACE_CONT;
	/* A thread that is gone will be reported as such. */
	tr->waiting.is_beside = belongs_beside_us(tr, t);
	if (tr->waiting.is_beside)
		(void)beside_let_go(request, t->tid, signo);
	else
		(void)ptrace(request, t->tid, NULL, (void *)(intptr_t)signo);
}

/*
 * Wakers. A thread that was woken stops at the end of its wait, and until we have
 * seen that and let it go, its waker would be back at the lock that it gave up: a
 * traced program would seldom hand over a lock that it hands over most of the time.
 * So who has woken somebody goes on after those that are stopped already.
 */

/* As many stops of others, in case they do not end. */
#define HOLD_BACK_STOPS 8u

static void let_waker_go(struct tracer *tr)
{
	struct tracee *t = tr->waker.tracee;

	tr->waker.tracee = NULL;
	if (!t)
		return;
	t->carried_ns += tracer_now(tr) - tr->waker.since_ns;
	tracer_resume(tr, t, 0);
}

static void hold_waker_back(struct tracer *tr, struct tracee *t)
{
	let_waker_go(tr);
	tr->waker = (struct waker){ .tracee = t, .since_ns = tracer_now(tr) };
}

/* The next stop that is there, as long as a waker has to wait; else 0. */
static pid_t take_before_waker(struct tracer *tr, int *ret_status)
{
	pid_t tid = 0;

	if (tr->waker.tracee && tr->waker.nr_stops++ < HOLD_BACK_STOPS)
		tid = waiting_look(&tr->waiting, ret_status);
	if (tid <= 0)
		let_waker_go(tr);
	return tid > 0 ? tid : 0;
}

/* Signals. */

/* True: the signal is to be delivered with a single step. */
static bool on_signal(struct tracer *tr, struct tracee *t, int signo)
{
	struct event ev = { .row = row_by_id(EV_signal), .args = { value_int(signo) } };
	struct value *args = ev.args;
	siginfo_t si;

	if (!ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si)) {
		args[1] = value_int(si.si_code);
		if (si.si_code <= 0 || signo == SIGCHLD) {
			args[2] = value_int(si.si_pid);
			args[3] = value_uint(si.si_uid);
		} else if (signo == SIGSEGV || signo == SIGBUS || signo == SIGFPE ||
			   signo == SIGILL) {
			args[4] = value_uint((uintptr_t)si.si_addr);
		}
	}
	ev.enter_ns = ev.exit_ns = tracer_now(tr);
	tracer_take_held(t, &ev);
	return interrupts_put_signal(tr, t, &ev);
}

/*
 * The thread is let go: what of this stop is in no event yet belongs to the next call, or to
 * the one that it is in, unless that has just begun.
 */
static void note_held(struct tracer *tr, struct tracee *t, uint64_t seen_ns)
{
	/* An execve may have made it another thread than the one that was seen. */
	uint64_t now_ns = tracer_now(tr), from_ns = t->noted_ns > seen_ns ? t->noted_ns : seen_ns;

	if (t->state != TRACEE_IN_CALL)
		t->carried_ns += now_ns - from_ns;
	else if (t->enter_ns < seen_ns)
		t->inside_ns += now_ns - from_ns;
	t->noted_ns = now_ns;
}

/* A stop of the whole process (job control) is left to last until SIGCONT. */
static bool is_group_stop(int signo)
{
	return signo == SIGSTOP || signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

static void on_event_stop(struct tracer *tr, struct tracee *t, int signo, uint64_t seen_ns)
{
	struct value arg = value_int(t->group_stopped ? SIGCONT : signo);

	if (!is_group_stop(signo)) {
		if (t->group_stopped)
			tracer_put_now(tr, t, EV_continued, &arg, 1);
		t->group_stopped = false;
		jobs_note(tr, t, 0);
		map_stores_first_stop(tr, t);
		polled_begin_work(tr, t);
		note_held(tr, t, seen_ns);
		tracer_resume(tr, t, 0);
		return;
	}
	t->group_stopped = true;
	jobs_note(tr, t, signo);
	tracer_put_now(tr, t, EV_stopped, &arg, 1);
	(void)ptrace(PTRACE_LISTEN, t->tid, NULL, NULL);
}

/*
 * Ends of threads. Marks of pages are gone with the memory of a process, so from then on threads stop
 * before they end, also when they are killed. Options can be set at a stop only.
 */

static void set_options(const struct tracer *tr, struct tracee *t)
{
	t->stops_at_exit = !ptrace(PTRACE_SETOPTIONS, t->tid, NULL, tracer_options(tr));
}

void tracer_stop_at_exits(struct tracer *tr, struct tracee *t)
{
	tr->stops_at_exits = true;
	set_options(tr, t);
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *other = e->value;

		if (other != t && other->space == t->space && !other->stops_at_exit)
			interrupts_break_off(other);
	}
}

static void on_exit_event(struct tracer *tr, struct tracee *t)
{
	if (!tr->session->is_over && t->state != TRACEE_NEW)
		map_stores_before_end(tr, t);
	tracer_resume(tr, t, 0);
}

/* One stop. */

static void detach(struct tracer *tr, struct tracee *t, int signo)
{
	if (tr->waker.tracee == t)
		tr->waker.tracee = NULL;
	tracer_close_stream(tr, t);
	clones_put_back(t);
	polled_put_back(t);
	polled_leave_alone(t);
	(void)ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)signo);
	tracees_remove(&tr->all, t);
}

/* The child is attached to us already: it must be let go too, so the loop has to wait for it. */
static void expect_child(struct tracer *tr, const struct tracee *t, int event)
{
	unsigned long message = 0;

	if (event != PTRACE_EVENT_CLONE && event != PTRACE_EVENT_FORK &&
	    event != PTRACE_EVENT_VFORK)
		return;
	if (!ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &message) && message)
		clones_pass_on(t, tracees_get(&tr->all, (pid_t)message));
}

/* At the stop that we have asked for; or at the end of the call, where it is let go for good. */
static void undo_break(const struct tracer *tr, struct tracee *t, int signo, int event)
{
	if (event == PTRACE_EVENT_STOP ? is_group_stop(signo)
				       : !tr->session->is_over || signo != (SIGTRAP | 0x80))
		return;
	interrupts_undo(t);
	t->is_broken_off &= event != PTRACE_EVENT_STOP;
}

/*
 * The thread has not begun to make its call again. True: the signal would not have come
 * without us. Any other breaks the call off.
 */
static bool is_unseen(struct tracer *tr, struct tracee *t, int status, uint64_t seen_ns)
{
	int signo = WSTOPSIG(status), event = status >> 16;

	if (event == PTRACE_EVENT_STOP ? !is_group_stop(signo) : !t->delivered)
		return false;
	if (!event && interrupts_is_unseen(t, signo))
		return true;
	tracer_end_again(tr, t, seen_ns);
	return false;
}

static void on_stop(struct tracer *tr, struct tracee *t, int status)
{
	uint64_t seen_ns = tracer_now(tr);
	int signo = WSTOPSIG(status), event = status >> 16;
	bool plain_signal = !event && signo != (SIGTRAP | 0x80), step = false;

	t->noted_ns = seen_ns;
	tr->cost.nr_stops += t->recorded && !tr->session->is_over;
	tr->cost.nr_trial_stops += !t->recorded;
	tr->cost.nr_unrecorded_stops += !t->recorded;
	if (event == PTRACE_EVENT_EXIT) {
		on_exit_event(tr, t);
		return;
	}
	if (tr->stops_at_exits && !t->stops_at_exit)
		set_options(tr, t);
	if (t->state == TRACEE_RUNNING)
		clones_put_back(t); /* a child's first stop */
	t->delivered = plain_signal ? signo : 0;
	if (plain_signal || event == PTRACE_EVENT_STOP)
		witness_note_break(t);
	undo_break(tr, t, signo, event);
	/* At an execve the thread may have another's number, and has nothing of its own left. */
	if ((t->agent && event != PTRACE_EVENT_EXEC && agent_at_stop(tr, t)) ||
	    (t->is_again && is_unseen(tr, t, status, seen_ns))) {
		note_held(tr, t, seen_ns);
		tracer_resume(tr, t, 0);
		return;
	}
	if (interrupts_decide(tr, t, signo, !plain_signal && event != PTRACE_EVENT_STOP)) {
		plain_signal = false; /* no signal: the program is at the beginning of a handler */
		signo = 0;
	}
	if (plain_signal) {
		agent_before_signal(tr, t);
		witness_before_signal(tr, t);
		step = on_signal(tr, t, signo);
	}
	/* With a filter or such rings the program needs its tracer; without, it can go on alone. */
	if (tr->session->is_over && !tr->filtered && !polled_needs_us(tr, t)) {
		expect_child(tr, t, event);
		detach(tr, t, plain_signal ? signo : 0);
		return;
	}
	if (t->state == TRACEE_NEW) {
		t->stopped_early = true;
		t->early_ticks = 0;
		return;
	}
	switch (event) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		tracer_new_thread(tr, t);
		break;
	case PTRACE_EVENT_EXEC:
		t = tracer_exec(tr, t);
		break;
	case PTRACE_EVENT_STOP:
		on_event_stop(tr, t, signo, seen_ns);
		return;
	case PTRACE_EVENT_SECCOMP:
		tracer_syscall_stop(tr, t, seen_ns);
		break;
	case 0:
		if (!plain_signal && signo)
			tracer_syscall_stop(tr, t, seen_ns);
		/* Any stop takes back the one that we have asked for, so a call's end will do. */
		if (t->polled.wanted_fd && !plain_signal && signo)
			polled_begin_work(tr, t);
		break;
	}
	note_held(tr, t, seen_ns);
	if (t->has_woken) {
		t->has_woken = false;
		hold_waker_back(tr, t);
	} else if (step)
		(void)ptrace(PTRACE_SINGLESTEP, t->tid, NULL, (void *)(intptr_t)signo);
	else
		tracer_resume(tr, t, plain_signal ? signo : 0);
}

/* Asked for once: with each wait the kernel would add up all threads of the process. */
static void end_cost(struct tracer *tr)
{
	struct rusage usage;

	if (!getrusage(RUSAGE_CHILDREN, &usage)) /* the command is the only one */
		cost_end(&tr->cost, &usage, tracer_now(tr));
}

static void on_status(struct tracer *tr, pid_t tid, int status)
{
	struct tracee *t;

	if (WIFSTOPPED(status)) {
		on_stop(tr, tracees_get(&tr->all, tid), status);
		return;
	}
	if (!WIFEXITED(status) && !WIFSIGNALED(status))
		return;
	if (tid == tr->child) {
		tr->session->res->wait_status = status;
		if (!tr->session->is_over)
			end_cost(tr);
	}
	t = tracees_find(&tr->all, tid);
	if (t)
		tracer_end_thread(tr, t, status);
}

/* The loop. */

/* So that each stops once more, and can be let go; those that wait for us go at once. */
static void interrupt_all(struct tracer *tr)
{
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *t = e->value;

		if (t->stopped_early && !tr->filtered)
			detach(tr, t, 0);
		else
			interrupts_break_off(t);
	}
}

static void on_tick(struct tracer *tr, uint64_t now)
{
	int r;

	/* Soon at first: what a short program did shall not be lost with a killed recorder. */
	tr->tick_ns = tr->tick_ns * 2 < TICK_NS ? tr->tick_ns * 2 : TICK_NS;
	tr->next_tick_ns = now + tr->tick_ns;
	if (tr->o->max_ns > now && tr->o->max_ns < tr->next_tick_ns)
		tr->next_tick_ns = tr->o->max_ns;
	tracer_release_orphans(tr);
	if (tr->session->is_over)
		return;
	(void)agent_drain_all(tr);
	r = trace_feed_flush(tr->session->feed);
	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
	else if (tr->o->max_ns && now >= tr->o->max_ns)
		tracer_cut_short(tr, 0, "the recording has reached its longest time");
	else if (tracer_stop && !tr->child)
		tracer_end_recording(
			tr); /* how the recording of an attached process is meant to end */
	if (!tr->session->is_over)
		return;
	tr->waiting.until_ns = 0;
	interrupt_all(tr);
}

/* Detached, but ours: its end is still what the user waits for. */
static void wait_for_child(struct tracer *tr)
{
	int status;

	for (;;) {
		pid_t pid = waitpid(tr->child, &status, WUNTRACED);

		if (pid == tr->child && WIFSTOPPED(status) && WSTOPSIG(status) != SIGSTOP)
			(void)kill(getpid(), SIGSTOP); /* the shell waits for us, not for it */
		if (pid < 0 && errno != EINTR)
			return; /* its end was seen before it was let go */
		if (pid == tr->child && (WIFEXITED(status) || WIFSIGNALED(status))) {
			tr->session->res->wait_status = status;
			return;
		}
	}
}

/*
 * Who shares the terminal stops at the same time as the command: what has not done
 * so within some ms will be seen when we go on. Others may make stops without end.
 */
#define QUIET_MS 10u
#define QUIET_WITHIN_NS UINT64_C(50000000)

static void stop_with_job(struct tracer *tr)
{
	uint64_t until_ns = tracer_now(tr) + QUIET_WITHIN_NS;
	unsigned int nr_ms = 0;
	int status;
	pid_t tid;

	let_waker_go(tr);
	while (nr_ms < QUIET_MS && tracer_now(tr) < until_ns) {
		tid = waiting_look(&tr->waiting, &status);
		if (tid > 0)
			on_status(tr, tid, status);
		else
			(void)usleep(1000);
		nr_ms = tid > 0 ? 0 : nr_ms + 1;
	}
	if (!tr->session->is_over && trace_feed_flush(tr->session->feed) < 0)
		return; /* the next flush will tell */
	if (jobs_must_stop(tr))
		jobs_stop(tr);
}

/* What agents have recorded is taken in while nobody stops. */
static pid_t wait_and_drain(struct tracer *tr, int *ret_status)
{
	pid_t tid = take_before_waker(tr, ret_status);
	uint64_t taken = 0;

	if (tid)
		return tid;
	if (!agent_is_at_work(tr))
		waiting_forget_rings(&tr->waiting);
	while (agent_is_at_work(tr) && (waiting_is_rushed(&tr->waiting, taken) ||
					waiting_must_look(&tr->waiting, clock_monotonic_ns()))) {
		if (tracer_now(tr) >= tr->next_tick_ns || tracer_stop) {
			errno = EINTR;
			return -1;
		}
		tid = waiting_look(&tr->waiting, ret_status);
		if (tid)
			return tid;
		taken = agent_drain_all(tr);
		waiting_note_rings(&tr->waiting, taken, clock_monotonic_ns());
	}
	return waiting_for_any(&tr->waiting, ret_status);
}

/* So many stops without a pause, or as many as there are threads, and all are asked in turn. */
#define IN_A_ROW_MIN 16u

/*
 * The kernel shows the stops of the youngest threads first: if these are faster than we are, older ones
 * would never be served.
 */
static void serve_all(struct tracer *tr)
{
	VEC(pid_t) tids = { 0 };
	int status;
	size_t i;

	if (tr->waiting.nr_in_a_row < IN_A_ROW_MIN ||
	    tr->waiting.nr_in_a_row < tr->all.by_tid.nr_live)
		return;
	tr->waiting.nr_in_a_row = 0;
	MAP_EACH (&tr->all.by_tid, e) {
		const struct tracee *t = e->value;

		VEC_PUSH(&tids, t->tid);
	}
	for (i = 0; i < tids.len; i++) {
		if (waitpid(tids.items[i], &status, __WALL | WNOHANG) > 0)
			on_status(tr, tids.items[i], status);
	}
	VEC_RELEASE(&tids);
}

void tracer_loop(struct tracer *tr)
{
	int status;
	pid_t tid;

	tr->next_tick_ns = tr->tick_ns = TICK_FIRST_NS;
	if (tr->o->max_ns)
		tr->waiting.until_ns = tr->session->start_ns + tr->o->max_ns;
	while (tr->all.by_tid.nr_live) {
		uint64_t now;

		tid = wait_and_drain(tr, &status);
		if (tid < 0 && errno != EINTR)
			break;
		if (tid > 0)
			on_status(tr, tid, status);
		serve_all(tr);
		polled_watch(tr);
		if (jobs_must_stop(tr))
			stop_with_job(tr);
		now = tracer_now(tr);
		if (now >= tr->next_tick_ns || tracer_stop)
			on_tick(tr, now);
	}
	if (tr->child && tr->session->is_over && !tr->filtered)
		wait_for_child(tr);
}
