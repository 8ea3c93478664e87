/* SPDX-License-Identifier: MIT */
/*
 * The loop of the ptrace recorder: one stop after another, from whichever
 * thread has one.
 *
 * Times. A call begins when its thread is let go from the entry stop and ends
 * when its exit stop is seen; from each stop's arrival to the thread's release
 * the recorder holds it, and that is added up beside the call, so that the
 * computing between two calls can be told from our own work.
 */
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "record/ptrace/tracer.h"

/* What is written reaches the file at least this often, so that a killed recorder loses little. */
#define TICK_NS 500000000u
#define TICK_FIRST_NS 8000000u

/* Error numbers that never leave the kernel: the call will be made again, or becomes EINTR. */
#define ERESTART_FIRST 512
#define ERESTART_LAST 516

volatile sig_atomic_t tracer_stop;

uint64_t tracer_now(const struct tracer *tr)
{
	return clock_monotonic_ns() - tr->start_ns;
}

/* Letting go. */

static void resume(struct tracer *tr, struct tracee *t, int signo)
{
	int request = PTRACE_SYSCALL;

	/* A filter of the program's own may refuse calls before ours can show them: stop at all. */
	if (tr->filtered && t->recorded && t->state != TRACEE_IN_CALL && !t->own_filter)
		request = PTRACE_CONT;
	/* A thread that is gone will be reported as such. */
	(void)ptrace(request, t->tid, NULL, (void *)(intptr_t)signo);
}

/* Ends the recording: the program goes on alone where it can. */
static void cut_short(struct tracer *tr, int r, const char *why)
{
	if (tr->silent)
		return;
	tr->silent = true;
	tr->res->cut_short = true;
	err_set(&tr->res->why_cut, r, "%s", why);
	if (tr->o->on_full == RECORD_STOP && r < 0 && tr->child)
		(void)kill(tr->child, SIGKILL);
}

/* Events. */

int tracer_emit(struct tracer *tr, struct tracee *t, struct event *ev)
{
	ev->pid = (uint32_t)t->pid;
	ev->tid = (uint32_t)t->tid;
	ev->ppid = (uint32_t)t->ppid;
	ev->pgid = (uint32_t)t->pgid;
	tr->res->held_ns += ev->held_ns;
	return trace_feed_event(tr->feed, t->stream, ev);
}

/* Emits unless the recording is over; a failure ends it. */
static void emit(struct tracer *tr, struct tracee *t, struct event *ev)
{
	int r;

	if (tr->silent || !t->stream)
		return;
	r = tracer_emit(tr, t, ev);
	if (r < 0 && r != -E2BIG)
		cut_short(tr, r, "cannot write the trace");
}

static void emit_now(struct tracer *tr, struct tracee *t, enum row_id id, const struct value *args,
		     unsigned int nr)
{
	struct event ev = { .row = row_by_id(id) };

	memcpy(ev.args, args, nr * sizeof(*args));
	ev.enter_ns = ev.exit_ns = tracer_now(tr);
	emit(tr, t, &ev);
}

static void emit_call(struct tracer *tr, struct tracee *t, struct outcome outcome, uint64_t seen_ns)
{
	struct event ev = { .row = t->row,
			    .flags = t->flags,
			    .enter_ns = t->enter_ns,
			    .exit_ns = seen_ns,
			    .outcome = outcome };

	memcpy(ev.args, t->args, t->row->nr_args * sizeof(*t->args));
	ev.held_ns = t->held_ns + tracer_now(tr) - seen_ns;
	emit(tr, t, &ev);
}

/* Threads. */

static void read_status(struct tracee *t, char comm[32])
{
	struct buf b = { 0 };
	const char *s, *p;
	char name[64];

	comm[0] = 0;
	snprintf(name, sizeof(name), "/proc/%d/status", (int)t->tid);
	if (!io_read_file(name, 65536, &b, NULL)) {
		s = buf_str(&b);
		(void)sscanf(s, "Name:\t%31[^\n]", comm);
		p = strstr(s, "\nTgid:");
		if (p)
			t->pid = (pid_t)strtol(p + 6, NULL, 10);
		p = strstr(s, "\nPPid:");
		if (p)
			t->ppid = (pid_t)strtol(p + 6, NULL, 10);
	}
	t->pgid = getpgid(t->tid);
	if (t->pgid < 0)
		t->pgid = 0;
	buf_release(&b);
}

int tracer_begin_thread(struct tracer *tr, struct tracee *t, pid_t parent, uint64_t clone_flags,
			int how)
{
	struct event ev = { .row = row_by_id(EV_thread_start) };
	char comm[32];
	struct arena a;
	int r;

	if (!t->pid)
		t->pid = t->tid;
	read_status(t, comm);
	t->state = TRACEE_RUNNING;
	t->recorded = true;
	t->stream = trace_feed_open_stream(tr->feed, (uint32_t)t->pid, (uint32_t)t->tid);
	tr->res->nr_threads++;
	tr->res->nr_processes += t->pid == t->tid;
	arena_init(&a);
	ev.args[0] = value_int(parent);
	ev.args[1] = value_uint(clone_flags);
	ev.args[2] = value_str(&a, comm);
	ev.args[3] = value_int(how);
	ev.enter_ns = ev.exit_ns = tracer_now(tr);
	r = tracer_emit(tr, t, &ev);
	arena_release(&a);
	return r;
}

static void begin_thread(struct tracer *tr, struct tracee *t, pid_t parent, uint64_t clone_flags,
			 int how)
{
	int r = tr->silent ? 0 : tracer_begin_thread(tr, t, parent, clone_flags, how);

	t->state = TRACEE_RUNNING;
	if (r < 0)
		cut_short(tr, r, "cannot write the trace");
}

static void close_stream(struct tracer *tr, struct tracee *t)
{
	int r = t->stream ? trace_feed_close_stream(tr->feed, t->stream) : 0;

	t->stream = NULL;
	if (r < 0)
		cut_short(tr, r, "cannot write the trace");
}

static void put_loss(struct tracer *tr, const struct loss *loss)
{
	int r = tr->silent ? 0 : trace_feed_loss(tr->feed, loss);

	if (r < 0)
		cut_short(tr, r, "cannot write the trace");
}

static void put_cut(struct tracer *tr, const struct tracee *t)
{
	struct loss loss = { .kind = LOSS_DATA_TRUNCATED,
			     .pid = (uint32_t)t->pid,
			     .tid = (uint32_t)t->tid,
			     .count = t->nr_cut_calls,
			     .bytes = t->cut_bytes,
			     .to_ns = tracer_now(tr),
			     .note = t->cut_denied ? "the process protects its memory"
						   : "memory that could not be read" };

	if (t->nr_cut_calls)
		put_loss(tr, &loss);
}

/* The children of a process that is gone have another parent now. */
static void new_parents(struct tracer *tr, pid_t gone)
{
	char comm[32];

	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *t = e->value;

		if (t->ppid == gone && t->pid != gone)
			read_status(t, comm);
	}
}

/* A thread is gone; what it was doing was not finished. */
static void end_thread(struct tracer *tr, struct tracee *t, int status)
{
	struct value args[3] = { { 0 } };

	if (t->state == TRACEE_IN_CALL && t->row && !t->unwanted) {
		t->flags |= EVENT_UNFINISHED;
		emit_call(tr, t, (struct outcome){ 0 }, tracer_now(tr));
	}
	if (WIFEXITED(status))
		args[0] = value_int(WEXITSTATUS(status));
	if (WIFSIGNALED(status)) {
		args[1] = value_int(WTERMSIG(status));
		args[2] = value_int(!!WCOREDUMP(status));
	}
	emit_now(tr, t, EV_thread_exit, args, 3);
	put_cut(tr, t);
	close_stream(tr, t);
	if (t->pid == t->tid) {
		found_forget(tr->found, t->space);
		aio_forget(tr->aio, t->pid);
		new_parents(tr, t->pid);
	}
	tracees_remove(&tr->all, t);
}

static uint64_t clone_flags_of(const struct tracee *parent)
{
	const struct value *flags;

	if (!parent->row)
		return 0;
	switch ((int)parent->row->id) {
	case SC_clone:
		return parent->regs[0];
	case SC_clone3:
		/* Only a call that is recorded has its arguments read. */
		flags = parent->unwanted ? NULL : value_field(&parent->args[0], 0);
		return flags ? flags->u : 0;
	case SC_vfork:
		return CLONE_VFORK | CLONE_VM | SIGCHLD;
	}
	return SIGCHLD;
}

static void on_new_thread(struct tracer *tr, struct tracee *parent)
{
	unsigned long message = 0;
	uint64_t flags = clone_flags_of(parent);
	struct tracee *t;

	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &message) < 0)
		return;
	t = tracees_get(&tr->all, (pid_t)message);
	t->space = flags & CLONE_VM ? parent->space : ++tr->next_space;
	t->own_filter = parent->own_filter;
	begin_thread(tr, t, parent->tid, flags, START_CLONE);
	if (t->stopped_early) {
		t->stopped_early = false;
		resume(tr, t, 0);
	}
}

/*
 * A new image. The thread that made the execve goes on as the leader; the
 * leader that was (if another) has vanished without a word.
 */
static struct tracee *on_exec(struct tracer *tr, struct tracee *t)
{
	unsigned long former = 0;

	if (ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &former) < 0)
		former = (unsigned long)t->tid;
	if ((pid_t)former != t->tid) {
		struct tracee *caller = tracees_find(&tr->all, (pid_t)former);
		pid_t leader = t->tid;

		if (caller) {
			end_thread(tr, t, 0);
			tracees_rename(&tr->all, caller, leader);
			caller->exec_former_tid = (pid_t)former;
			t = caller;
		}
	}
	t->execing = true;
	found_forget(tr->found, t->space);
	aio_forget(tr->aio, t->pid);
	t->space = ++tr->next_space;
	return t;
}

/* A set-user-id or set-group-id program; the kernel grants that only when the tracer may do as much. */
static bool gives_rights(const char *exe)
{
	struct stat st;

	return !stat(exe, &st) && (st.st_mode & (S_ISUID | S_ISGID));
}

/* After the execve itself is in the trace: what the process is now. */
static void finish_exec(struct tracer *tr, struct tracee *t)
{
	struct value args[4] = { { 0 } };
	char name[64], target[4096];
	ssize_t len;
	struct arena a;

	t->execing = false;
	if (t->exec_former_tid) {
		close_stream(tr, t);
		begin_thread(tr, t, t->exec_former_tid, 0, START_CLONE);
		args[1] = value_int(t->exec_former_tid);
		t->exec_former_tid = 0;
	}
	snprintf(name, sizeof(name), "/proc/%d/exe", (int)t->pid);
	len = readlink(name, target, sizeof(target));
	arena_init(&a);
	if (len > 0)
		args[0] = value_bytes(&a, target, (size_t)len);
	args[2] = value_int(gives_rights(name));
	emit_now(tr, t, EV_exec, args, 4);
	if (args[2].i && geteuid()) {
		args[0] = value_str(
			&a,
			"a set-user-id program: it runs without its rights because it is traced");
		emit_now(tr, t, EV_marker, args, 1);
	}
	arena_release(&a);
}

/* Calls. */

static bool arch_of(uint32_t audit_arch, enum arch *ret)
{
	switch (audit_arch) {
	case AUDIT_ARCH_X86_64:
		*ret = ARCH_X86_64;
		return true;
	case AUDIT_ARCH_I386:
		*ret = ARCH_I386;
		return true;
	case AUDIT_ARCH_AARCH64:
		*ret = ARCH_AARCH64;
		return true;
	}
	return false;
}

static bool is_exec(const struct row *row)
{
	return row->id == SC_execve || row->id == SC_execveat;
}

/*
 * A 32-bit program passes a long number in two registers, and a signed one
 * without its upper half: as a 64-bit program would have passed them.
 */
static void widen(struct tracee *t, const struct row *row, unsigned int wide)
{
	uint64_t raw[6];
	unsigned int i, from = 0;

	memcpy(raw, t->regs, sizeof(raw));
	for (i = 0; i < 6; i++) {
		const struct arg *a = i < row->nr_args ? &row->args[i] : NULL;

		t->regs[i] = from < 6 ? raw[from] : 0;
		if (wide >> i & 1 && from < 5)
			t->regs[i] |= raw[++from] << 32;
		else if (a && kind_infos[a->kind].wire == 'i')
			t->regs[i] = (uint64_t)(int64_t)(int32_t)t->regs[i];
		from++;
	}
}

/* An unknown call is shown with its number and registers. */
static void find_row(struct tracee *t, const struct __ptrace_syscall_info *info)
{
	unsigned int nr = (unsigned int)info->entry.nr, i;
	const struct row *row = NULL;
	enum arch arch = ARCH_X86_64;

	for (i = 0; i < 6; i++)
		t->regs[i] = info->entry.args[i];
	t->flags = 0;
	if (arch_of(info->arch, &arch))
		row = row_by_nr(arch, nr);
	if (arch == ARCH_I386)
		t->flags |= EVENT_COMPAT;
	if (!row) {
		t->row = row_by_id(SC_unknown_call);
		return;
	}
	if (arch == ARCH_I386)
		widen(t, row, row_wide_args(arch, nr));
	t->row = row_select_variant(row, t->regs);
}

static void capture_unknown(struct tracee *t)
{
	unsigned int i;

	t->args[0] = value_int((int64_t)t->nr);
	for (i = 0; i < 6; i++)
		t->args[1 + i] = value_uint(t->regs[i]);
}

static void aim_at(struct tracer *tr, struct tracee *t)
{
	tr->memory.tid = t->tid;
	tr->memory.denied = t->entry_denied;
	tr->capture.arena = &t->arena;
	tr->capture.narrow = t->flags & EVENT_COMPAT;
	tr->capture.truncated_bytes = t->entry_cut_bytes;
}

/* What could not be read is summed up, and told when the thread ends. */
static void note_cut(struct tracer *tr, struct tracee *t, const struct outcome *o)
{
	if (!tr->memory.denied && !tr->capture.truncated_bytes)
		return;
	if (o->err)
		return;
	t->nr_cut_calls++;
	t->cut_bytes += tr->capture.truncated_bytes;
	t->cut_denied |= tr->memory.denied;
}

static void read_entry(struct tracer *tr, struct tracee *t)
{
	struct aio_call call = {
		.pid = t->pid, .tid = t->tid, .row = t->row, .regs = t->regs, .args = t->args
	};
	int r;

	arena_reset(&t->arena);
	t->entry_denied = false;
	t->entry_cut_bytes = 0;
	aim_at(tr, t);
	if (t->row->id == SC_unknown_call) {
		capture_unknown(t);
		return;
	}
	r = capture_entry(&tr->capture, t->row, t->regs, t->args);
	if (r >= 0)
		r = aio_entry(tr->aio, &tr->capture, &call);
	if (r >= 0)
		r = tree_touch(tr->tree, t->tid, t->row, t->args, tracer_now(tr));
	t->entry_denied = tr->memory.denied;
	t->entry_cut_bytes = tr->capture.truncated_bytes;
	if (r < 0)
		cut_short(tr, r, "cannot write the trace");
}

static void read_exit(struct tracer *tr, struct tracee *t, const struct outcome *o)
{
	struct aio_call call = { .pid = t->pid,
				 .tid = t->tid,
				 .row = t->row,
				 .regs = t->regs,
				 .outcome = o,
				 .args = t->args };
	int r;

	if (t->row->id == SC_unknown_call)
		return;
	aim_at(tr, t);
	r = capture_exit(&tr->capture, t->row, t->regs, o, t->args);
	if (r >= 0)
		r = aio_exit(tr->aio, &tr->capture, &call);
	if (r >= 0)
		r = found_fill(tr->found, &tr->capture, t->pid, t->tid, t->space, t->row, t->regs,
			       o, t->args);
	/* What could not be read at the entry has waited for the outcome. */
	note_cut(tr, t, o);
	tree_leave(tr->tree, t->tid);
	if (r < 0)
		cut_short(tr, r, "cannot write the trace");
}

static void on_entry(struct tracer *tr, struct tracee *t, const struct __ptrace_syscall_info *info,
		     uint64_t seen_ns)
{
	t->state = TRACEE_IN_CALL;
	find_row(t, info);
	if (!t->recorded && is_exec(t->row) && t->tid == tr->child)
		begin_thread(tr, t, 0, 0, START_LAUNCH);
	t->state = TRACEE_IN_CALL;
	if (!t->recorded || tr->silent) {
		t->row = NULL;
		return;
	}
	t->nr = info->entry.nr;
	t->unwanted = tr->o->wanted && !tr->o->wanted[t->row->id];
	if (t->unwanted)
		return;
	read_entry(tr, t);
	t->enter_ns = tracer_now(tr);
	t->held_ns = t->enter_ns - seen_ns;
}

static struct outcome outcome_of(const struct __ptrace_syscall_info *info)
{
	if (info->exit.is_error)
		return (struct outcome){ .ret = -1, .err = (int32_t)-info->exit.rval };
	return (struct outcome){ .ret = info->exit.rval };
}

static void new_group(struct tracer *tr, pid_t pid)
{
	pid_t pgid = getpgid(pid);

	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *t = e->value;

		if (t->pid == pid && pgid > 0)
			t->pgid = pgid;
	}
}

/* Calls whose outcome says something of the recording, or changes what every event says. */
static void note_odd_calls(struct tracer *tr, struct tracee *t, const struct outcome *o)
{
	struct loss conflict = { .kind = LOSS_CALL_UNSEEN,
				 .pid = (uint32_t)t->pid,
				 .tid = (uint32_t)t->tid,
				 .count = 1,
				 .from_ns = t->enter_ns,
				 .to_ns = t->enter_ns,
				 .note = "the program is a tracer: what it would trace, we trace" };

	struct loss untraced = conflict;

	untraced.note = "a child that was made with CLONE_UNTRACED is not recorded";
	if (is_exec(t->row) && t->tid == tr->child && !tr->started) {
		tr->started = !o->err;
		tr->exec_err = o->err;
	}
	if (t->row->id == SC_ptrace && o->err == EPERM)
		put_loss(tr, &conflict);
	if (!o->err && (t->row->id == SC_clone || t->row->id == SC_clone3) &&
	    clone_flags_of(t) & CLONE_UNTRACED)
		put_loss(tr, &untraced);
	if (!o->err && t->row->id == SC_setsid)
		new_group(tr, t->pid);
	if (!o->err && t->row->id == SC_setpgid)
		new_group(tr, t->regs[0] ? (pid_t)t->regs[0] : t->pid);
}

static bool is_filter_call(const struct tracee *t)
{
	return t->row->id == SC_seccomp || t->row->id == SC_prctl_set_seccomp;
}

/* A filter may be put on all threads of the process at once. */
static void mark_own_filter(struct tracer *tr, const struct tracee *t)
{
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *other = e->value;

		if (other->pid == t->pid)
			other->own_filter = true;
	}
}

/*
 * A filter that answers with a trap undoes the call: its number stands where
 * the result should be, and a SIGSYS waits.
 */
static bool was_trapped(const struct tracee *t)
{
	struct __ptrace_peeksiginfo_args args = { .nr = 8 };
	siginfo_t pending[8];
	long i, n = ptrace(PTRACE_PEEKSIGINFO, t->tid, &args, pending);

	for (i = 0; i < n; i++) {
		if (pending[i].si_signo == SIGSYS)
			return true;
	}
	return false;
}

static void on_exit_stop(struct tracer *tr, struct tracee *t,
			 const struct __ptrace_syscall_info *info, uint64_t seen_ns)
{
	struct outcome o = outcome_of(info);

	t->state = TRACEE_RUNNING;
	if (!t->row || tr->silent)
		return;
	if (!o.err && is_filter_call(t))
		mark_own_filter(tr, t);
	if (t->unwanted)
		return;
	if (t->own_filter && !o.err && (uint64_t)o.ret == t->nr && was_trapped(t)) {
		o = (struct outcome){ .ret = -1, .err = ENOSYS };
		t->flags |= EVENT_INTERRUPTED;
	}
	if (o.err >= ERESTART_FIRST && o.err <= ERESTART_LAST)
		t->flags |= EVENT_INTERRUPTED;
	read_exit(tr, t, &o);
	emit_call(tr, t, o, seen_ns);
	note_odd_calls(tr, t, &o);
	t->row = NULL;
	if (t->execing)
		finish_exec(tr, t);
}

static void on_syscall_stop(struct tracer *tr, struct tracee *t, uint64_t seen_ns)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) < 0)
		return; /* killed meanwhile */
	switch (info.op) {
	case PTRACE_SYSCALL_INFO_SECCOMP:
	case PTRACE_SYSCALL_INFO_ENTRY:
		/* With a filter a call may stop twice at its entry. */
		if (t->state != TRACEE_IN_CALL)
			on_entry(tr, t, &info, seen_ns);
		break;
	case PTRACE_SYSCALL_INFO_EXIT:
		/* A new thread stops once at the end of the clone that made it: that is its parent's. */
		if (t->state == TRACEE_IN_CALL)
			on_exit_stop(tr, t, &info, seen_ns);
		break;
	}
}

/* Signals. */

static void on_signal(struct tracer *tr, struct tracee *t, int signo)
{
	struct value args[5] = { value_int(signo) };
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
	emit_now(tr, t, EV_signal, args, 5);
}

/* A stop of the whole process (job control) is left to last until SIGCONT. */
static bool is_group_stop(int signo)
{
	return signo == SIGSTOP || signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

static void on_event_stop(struct tracer *tr, struct tracee *t, int signo)
{
	struct value arg = value_int(t->group_stopped ? SIGCONT : signo);

	if (!is_group_stop(signo)) {
		if (t->group_stopped)
			emit_now(tr, t, EV_continued, &arg, 1);
		t->group_stopped = false;
		resume(tr, t, 0);
		return;
	}
	t->group_stopped = true;
	emit_now(tr, t, EV_stopped, &arg, 1);
	(void)ptrace(PTRACE_LISTEN, t->tid, NULL, NULL);
}

/* One stop. */

static void detach(struct tracer *tr, struct tracee *t, int signo)
{
	close_stream(tr, t);
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
		(void)tracees_get(&tr->all, (pid_t)message);
}

static void on_stop(struct tracer *tr, struct tracee *t, int status)
{
	uint64_t seen_ns = tracer_now(tr);
	int signo = WSTOPSIG(status), event = status >> 16;
	bool plain_signal = !event && signo != (SIGTRAP | 0x80);

	if (plain_signal)
		on_signal(tr, t, signo);
	/* With a filter in place the program needs its tracer; without, it can go on alone. */
	if (tr->silent && !tr->filtered) {
		expect_child(tr, t, event);
		detach(tr, t, plain_signal ? signo : 0);
		return;
	}
	if (t->state == TRACEE_NEW) {
		t->stopped_early = true;
		return;
	}
	switch (event) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		on_new_thread(tr, t);
		break;
	case PTRACE_EVENT_EXEC:
		t = on_exec(tr, t);
		break;
	case PTRACE_EVENT_STOP:
		on_event_stop(tr, t, signo);
		return;
	case PTRACE_EVENT_SECCOMP:
		on_syscall_stop(tr, t, seen_ns);
		break;
	case 0:
		if (!plain_signal)
			on_syscall_stop(tr, t, seen_ns);
		break;
	}
	resume(tr, t, plain_signal ? signo : 0);
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
	if (tid == tr->child)
		tr->res->wait_status = status;
	t = tracees_find(&tr->all, tid);
	if (t)
		end_thread(tr, t, status);
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
			(void)ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
	}
}

static void on_tick(struct tracer *tr, uint64_t now)
{
	struct trace_writer_totals totals = trace_writer_totals(tr->writer);
	int r;

	/* Soon at first: what a short program did shall not be lost with a killed recorder. */
	tr->tick_ns = tr->tick_ns * 2 < TICK_NS ? tr->tick_ns * 2 : TICK_NS;
	tr->next_tick_ns = now + tr->tick_ns;
	if (tr->silent)
		return;
	r = trace_feed_flush(tr->feed);
	if (r < 0)
		cut_short(tr, r, "cannot write the trace");
	else if (tr->o->max_bytes && totals.file_bytes >= tr->o->max_bytes)
		cut_short(tr, 0, "the trace has reached its largest size");
	else if (tr->o->max_ns && now >= tr->o->max_ns)
		cut_short(tr, 0, "the recording has reached its longest time");
	else if (tracer_stop && !tr->child)
		tr->silent = true; /* how the recording of an attached process is meant to end */
	if (tr->silent)
		interrupt_all(tr);
}

/* Detached, but ours: its end is still what the user waits for. */
static void wait_for_child(struct tracer *tr)
{
	int status;

	for (;;) {
		pid_t pid = waitpid(tr->child, &status, 0);

		if (pid < 0 && errno != EINTR)
			return; /* its end was seen before it was let go */
		if (pid == tr->child && (WIFEXITED(status) || WIFSIGNALED(status))) {
			tr->res->wait_status = status;
			return;
		}
	}
}

void tracer_loop(struct tracer *tr)
{
	int status;
	pid_t tid;

	tr->next_tick_ns = tr->tick_ns = TICK_FIRST_NS;
	while (tr->all.by_tid.nr_live) {
		uint64_t now;

		tid = waitpid(-1, &status, __WALL);
		if (tid < 0 && errno != EINTR)
			break;
		if (tid > 0)
			on_status(tr, tid, status);
		now = tracer_now(tr);
		if (now >= tr->next_tick_ns || tracer_stop)
			on_tick(tr, now);
	}
	if (tr->child && tr->silent && !tr->filtered)
		wait_for_child(tr);
}
