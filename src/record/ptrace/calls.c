/* SPDX-License-Identifier: MIT */
/*
 * Calls: what is seen of one at its entry and at its exit becomes an event.
 *
 * Times. A call begins when its thread is let go from the entry stop and ends
 * when its exit stop is seen; from each stop's arrival to the thread's release
 * the recorder holds it, and that is added up beside the call, so that the
 * computing between two calls can be told from our own work. Where it was held
 * for something that makes no call event, the next one carries that.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "record/ptrace/map_stores.h"
#include "record/ptrace/registers.h"
#include "record/ptrace/tracer.h"

/* asm/prctl.h, which other machines do not have. */
#define ARCH_SET_GS 0x1001

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

		/* The upper half, where the row has a place for it. */
		if (a && a->kind == KIND_HOLE && i && wide >> (i - 1) & 1) {
			t->regs[i] = 0;
			continue;
		}
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
	tr->capture.narrow_nr = (uint32_t)t->nr;
	tr->capture.truncated_bytes = t->entry_cut_bytes;
	tr->capture.nr_unread_structs = t->entry_unread;
}

/* What could not be read is summed up, and told when the thread ends. */
static void note_cut(struct tracer *tr, struct tracee *t, const struct outcome *o)
{
	t->nr_unread_calls += tr->capture.nr_unread_structs != 0;
	if (!tr->memory.denied && !tr->capture.truncated_bytes)
		return;
	if (o->err)
		return;
	t->nr_cut_calls++;
	t->cut_bytes += tr->capture.truncated_bytes;
	t->cut_denied |= tr->memory.denied;
}

/* What CPUs a thread may run on. */

static bool is_cpu_call(const struct row *row)
{
	return row->id == SC_sched_getaffinity || row->id == SC_sched_setaffinity ||
	       row->id == SC_sched_setattr; /* of which a kind needs all CPUs */
}

bool calls_are_about_cpus(const struct tracee *t)
{
	/* Of ours, before the execve, none does. */
	if (t->state != TRACEE_IN_CALL || !t->recorded)
		return false;
	/* An execve of another thread than the first gives it another number: we would not find it again. */
	return !t->row || is_cpu_call(t->row) || clones_is_one(t->row) ||
	       (is_exec(t->row) && t->tid != t->pid);
}

/*
 * Files that tell of a process where it may run, or does, are below its number or a name for it; by another
 * way, as from a working directory, by what they are called there.
 */
static bool tells_of_process(const char *path)
{
	static const char proc[] = "/proc/";
	const char *name = path + sizeof(proc) - 1, *last = strrchr(path, '/');

	last = last ? last + 1 : path;
	if (!strcmp(last, "status") || !strcmp(last, "stat") || !strcmp(last, "sched"))
		return true;
	if (strncmp(path, proc, sizeof(proc) - 1) != 0)
		return false;
	return (*name >= '0' && *name <= '9') || !strncmp(name, "self", 4) ||
	       !strncmp(name, "thread-self", 11);
}

/* All its threads can read what one of them has opened. */
static void leave_in_peace(struct tracer *tr, const struct tracee *t)
{
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *other = e->value;

		if (other->pid == t->pid)
			other->looks_at_cpus = true;
	}
}

static void note_proc(struct tracer *tr, struct tracee *t)
{
	unsigned int i;

	for (i = 0; i < t->row->nr_args; i++) {
		const struct data *d = t->args[i].type == VALUE_DATA ? t->args[i].data : NULL;

		if (t->row->args[i].kind == KIND_PATH && d && d->bytes &&
		    d->kept_bytes == d->len_bytes && /* and a NUL behind them */
		    !t->looks_at_cpus && tells_of_process((const char *)d->bytes))
			leave_in_peace(tr, t);
	}
}

static void read_entry(struct tracer *tr, struct tracee *t)
{
	struct aio_call call = {
		.pid = t->pid, .tid = t->tid, .row = t->row, .regs = t->regs, .args = t->args
	};
	int r;

	arena_reset(&t->arena);
	t->entry_denied = false;
	t->entry_cut_bytes = t->entry_unread = 0;
	aim_at(tr, t);
	if (t->row->id == SC_unknown_call) {
		capture_unknown(t);
		return;
	}
	r = capture_entry(&tr->capture, t->row, t->regs, t->args);
	note_proc(tr, t);
	if (r >= 0)
		r = aio_entry(tr->aio, &tr->capture, &call);
	if (r >= 0)
		r = tree_touch(tr->session->tree, t->tid, t->row, t->args, tracer_now(tr));
	agent_begin_names(tr, t);
	t->entry_denied = tr->memory.denied;
	t->entry_cut_bytes = tr->capture.truncated_bytes;
	t->entry_unread = tr->capture.nr_unread_structs;
	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
}

void tracer_leave_tree(struct tracer *tr, const struct tracee *t, int err)
{
	if (tree_is_moving(tr->session->tree, t->tid))
		agent_settle(tr, false);
	tree_leave(tr->session->tree, t->tid, err);
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
	tr->capture.policy = tracer_data_policy(tr, t, o);
	r = capture_exit(&tr->capture, t->row, t->regs, o, t->args);
	tr->capture.policy = tr->data;
	/* It moves bytes in the direction that its pipe allows. */
	if (r >= 0 && t->row->id == SC_vmsplice && !o->err &&
	    found_is_read_end(t->tid, (int)t->regs[0]))
		r = capture_turned(&tr->capture, t->row, t->regs, o, t->args, 1);
	if (r >= 0)
		r = aio_exit(tr->aio, &tr->capture, &call);
	/* Of calls that change the memory map, not all may have come by. */
	if (tr->o->wanted || tr->o->paths.wants)
		found_forget(tr->found, t->space);
	if (r >= 0)
		r = found_fill(tr->found, &tr->capture, t->pid, t->tid, t->space, t->row, t->regs,
			       o, t->args);
	if (r >= 0 && !o->err && t->row->id == SC_open_by_handle_at)
		r = tree_touch_opened(tr->session->tree, t->tid, (int)o->ret, t->regs[2] & O_TRUNC,
				      tracer_now(tr));
	/* What could not be read at the entry has waited for the outcome. */
	note_cut(tr, t, o);
	tracer_leave_tree(tr, t, o->err);
	agent_end_names(tr, t, !o->err);
	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
}

/* The thread is about to move, and with it others: names in calls that they have begun may mean other files then. */
static void touch_calls_of_others(struct tracer *tr, const struct tracee *t)
{
	int r = 0;

	MAP_EACH (&tr->all.by_tid, e) {
		const struct tracee *other = e->value;

		if (other != t && other->state == TRACEE_IN_CALL && other->row &&
		    !other->unwanted && r >= 0)
			r = tree_touch_again(tr->session->tree, other->tid, other->row,
					     other->args);
	}
	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
	agent_settle(tr, true);
}

/* Whatever is recorded: every child must be seen. */
static void enter_clone(struct tracer *tr, struct tracee *t)
{
	struct loss untraced = {
		.kind = LOSS_CALL_UNSEEN,
		.pid = (uint32_t)t->pid,
		.tid = (uint32_t)t->tid,
		.count = 1,
		.from_ns = tracer_now(tr),
		.to_ns = tracer_now(tr),
		.note = "a child that was made with CLONE_UNTRACED is not recorded",
	};

	if (!clones_enter(t))
		tracer_put_loss(tr, &untraced);
	if (clones_shares_memory(t))
		agent_before_thread(tr, t);
}

static bool wants_call(struct tracer *tr, struct tracee *t)
{
	if (tr->o->wanted && !tr->o->wanted[t->row->id])
		return false;
	if (!tr->o->paths.wants)
		return true;
	aim_at(tr, t);
	if (paths_want_call(&tr->o->paths, &tr->capture, t->tid, t->row, t->regs))
		return true;
	tr->nr_left_out++;
	return false;
}

/* CPU time since the last event, but for what our stops took of it. */
static uint64_t gap_cpu_ns(struct tracer *tr, struct tracee *t)
{
	uint64_t now_ns = cpu_read_ns(&tr->cpus, &t->cpu, t->pid, t->tid);
	uint64_t stops_ns = (t->nr_gap_stops + 1) * tr->cost.stop_cpu_ns; /* half of two */
	uint64_t gap_ns = clock_sub_ns(clock_sub_ns(now_ns, t->event_cpu_ns), stops_ns);

	if (!now_ns || !t->event_cpu_ns)
		return 0;
	return gap_ns ? gap_ns : 1; /* known to be none */
}

static bool is_filter_call(const struct tracee *t)
{
	return t->row->id == SC_seccomp || t->row->id == SC_prctl_set_seccomp;
}

/* The filter will be that of all threads, wherever they are. */
static bool filters_all(const struct tracee *t)
{
	return t->row->id == SC_seccomp && t->regs[0] == SECCOMP_SET_MODE_FILTER &&
	       t->regs[1] & SECCOMP_FILTER_FLAG_TSYNC;
}

static bool sets_gs(const struct tracee *t)
{
	return t->row->id == SC_arch_prctl && t->regs[0] == ARCH_SET_GS;
}

/* Reading the counter shall be an error from then on. */
static bool forbids_counter(const struct tracee *t)
{
	return t->row->id == SC_prctl && t->regs[0] == PR_SET_TSC && t->regs[1] == PR_TSC_SIGSEGV;
}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80 /* linux/sched.h, which does not go with sched.h */
#endif

/* Its children, or it itself, may have clocks of their own from then on. */
static bool sets_clocks(const struct tracee *t)
{
	return (t->row->id == SC_unshare && t->regs[0] & CLONE_NEWTIME) ||
	       (t->row->id == SC_setns && (!t->regs[1] || t->regs[1] & CLONE_NEWTIME));
}

/* Calls are told apart by where they are made from then on: each has to be made at its own place. */
static bool dispatches_calls(const struct tracee *t)
{
	return t->row->id == SC_prctl && t->regs[0] == PR_SET_SYSCALL_USER_DISPATCH;
}

/* Its memory may come to be there only when a thread of its own has seen to that (userfaultfd). */
static bool sees_to_faults(const struct tracee *t)
{
	return t->row->id == SC_userfaultfd || t->row->id == SC_ioctl_userfaultfd_new ||
	       (t->row->id == SC_ioctl && (uint32_t)t->regs[1] == UFFDIO_REGISTER);
}

/* What the agent must know of also then; whether the call succeeds will not be seen. */
static void enter_unrecorded(struct tracer *tr, struct tracee *t)
{
	if (clones_is_one(t->row))
		enter_clone(tr, t);
	if (is_filter_call(t))
		agent_turn_off(tr, t);
	if (sets_gs(t))
		agent_lose_gs(tr, t);
	t->row = NULL;
}

/*
 * The last moment for an agent, or to make room for what another thread will record. True: the call has been put
 * back, and will be made again.
 */
static bool let_agent_in(struct tracer *tr, struct tracee *t,
			 const struct __ptrace_syscall_info *info)
{
	bool put_back = false;

	if (!clones_is_one(t->row))
		return false;
	if (t->hope && clones_will_share_memory(t))
		put_back = agent_before_first_thread(tr, t, info->instruction_pointer);
	else if (t->agent)
		put_back = agent_make_room(tr, t, info->instruction_pointer);
	if (put_back)
		agent_expect_call(tr, t, info->instruction_pointer, info->stack_pointer);
	return put_back;
}

/*
 * What it makes is said in memory, which another thread may change after we have looked: a child could be made
 * that nobody traces. Programs do without it where the kernel lacks it.
 */
static bool must_not_be_made(const struct tracer *tr, const struct tracee *t)
{
	return tr->o->untrusted && t->row->id == SC_clone3;
}

static void on_entry(struct tracer *tr, struct tracee *t, const struct __ptrace_syscall_info *info,
		     uint64_t seen_ns)
{
	t->state = TRACEE_IN_CALL;
	t->inside_ns = 0;
	find_row(t, info);
	if (!t->recorded && t->row->id == SC_getppid && !tr->cost.is_trial)
		cost_begin_trial(&tr->cost, t->pid);
	if (!t->recorded && is_exec(t->row) && t->tid == tr->child) {
		cost_end_trial(&tr->cost, t->pid, seen_ns);
		tracer_start_thread(tr, t, 0, 0, START_LAUNCH);
	}
	t->state = TRACEE_IN_CALL;
	if (let_agent_in(tr, t, info)) {
		t->state = TRACEE_RUNNING;
		t->row = NULL;
		return;
	}
	if (must_not_be_made(tr, t))
		(void)!registers_skip_call(t->tid, ENOSYS); /* or it was killed meanwhile */
	t->is_mmap = t->row->id == SC_mmap;
	tr->memory.may_wait |= sees_to_faults(t);
	if (t->row->id == SC_fanotify_mark)
		tree_note_guard(tr->session->tree, t->regs[2]);
	if (agent_at_call(tr, t, info->instruction_pointer,
			  info->op == PTRACE_SYSCALL_INFO_SECCOMP && t->recorded &&
				  !tr->session->is_over)) {
		t->state = TRACEE_RUNNING;
		t->row = NULL;
		return;
	}
	/* Before it: what the agent tells of calls by, or asks, may be what the filter refuses. */
	if ((is_filter_call(t) && agent_is_netless(tr)) || filters_all(t))
		agent_turn_off(tr, t);
	if (forbids_counter(t))
		agent_lose_counter(tr, t);
	if (sets_clocks(t))
		agent_lose_clock(tr, t);
	if (dispatches_calls(t) || sees_to_faults(t))
		agent_turn_off(tr, t);
	polled_enter_submit(tr, t);
	if (!t->recorded || tr->session->is_over) {
		bool follows = t->recorded && polled_needs_us(tr, t) && aio_follows(t->row);
		const struct row *row = t->row;

		enter_unrecorded(tr, t);
		t->row = follows ? row : NULL; /* where rings are must be known to the end */
		return;
	}
	witness_before_call(tr, t);
	agent_settle(tr, false);
	if (tree_moves_base(tr->session->tree, t->row))
		agent_close_files(tr);
	t->nr = info->entry.nr;
	t->unwanted = !wants_call(tr, t);
	agent_note_choice(tr, t, true);
	map_stores_before_call(tr, t);
	if (!t->unwanted) {
		t->gap_cpu_ns = gap_cpu_ns(tr, t);
		read_entry(tr, t);
		if (tree_is_moving(tr->session->tree, t->tid))
			touch_calls_of_others(tr, t);
	}
	/* After its arguments were read: they are recorded as they are. */
	if (clones_is_one(t->row))
		enter_clone(tr, t);
	polled_enter_setup(tr, t);
	t->enter_ns = tracer_now(tr);
	if (t->row->class & A_WAITS)
		tracer_set_active(tr, t, false, t->enter_ns);
	t->held_ns = t->enter_ns - (t->noted_ns > seen_ns ? t->noted_ns : seen_ns);
	if (!t->unwanted) {
		t->held_ns += t->carried_ns;
		t->carried_ns = 0;
		t->nr_gap_stops = 0;
	}
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

	if (is_exec(t->row) && t->tid == tr->child && !tr->started) {
		tr->started = !o->err;
		tr->exec_err = o->err;
		if (tr->started)
			session_drop_old(tr->session);
	}
	if (t->row->id == SC_ptrace && o->err == EPERM)
		tracer_put_loss(tr, &conflict);
	if (clones_is_one(t->row) && !o->err && o->ret > 0 && !t->has_child) {
		conflict.note = "a child that is not traced";
		tracer_put_loss(tr, &conflict);
	}
	if (!o->err && t->row->id == SC_setsid)
		new_group(tr, t->pid);
	if (!o->err && t->row->id == SC_setpgid)
		new_group(tr, t->regs[0] ? (pid_t)t->regs[0] : t->pid);
}

/* Where io_uring has its rings must be known although it is not recorded. */
static void follow_unwanted(struct tracer *tr, struct tracee *t, const struct outcome *o)
{
	struct aio_call call = { .pid = t->pid,
				 .tid = t->tid,
				 .row = t->row,
				 .regs = t->regs,
				 .outcome = o,
				 .args = t->args };
	int r;

	if (!aio_follows(t->row))
		return;
	arena_reset(&t->arena);
	memset(t->args, 0, sizeof(t->args)); /* not known, instead of those of another call */
	t->entry_denied = false;
	t->entry_cut_bytes = t->entry_unread = 0;
	aim_at(tr, t);
	r = aio_exit(tr->aio, &tr->capture, &call);
	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
}

/* After it, the thread's rights may be others. */
static bool changes_rights(const struct row *row)
{
	switch ((int)row->id) {
	case SC_setuid:
	case SC_setgid:
	case SC_setreuid:
	case SC_setregid:
	case SC_setresuid:
	case SC_setresgid:
	case SC_setfsuid:
	case SC_setfsgid:
	case SC_setgroups:
	case SC_capset:
	case SC_unshare: /* of users */
	case SC_setns:
		return true;
	}
	return false;
}

/* What note_odd_calls() and others here look at, whether it is recorded or not. */
bool calls_are_seen(const struct row *row, const bool *wanted)
{
	if (wanted[SC_io_uring_enter] && aio_follows(row))
		return true;
	switch ((int)row->id) {
	case SC_seccomp: /* a filter of the program's own may hide calls from ours */
	case SC_prctl:
	case SC_ptrace:
	case SC_setsid:
	case SC_setpgid:
	case SC_userfaultfd:
	case SC_ioctl_userfaultfd_new:
	case SC_fanotify_mark:
		return true;
	}
	return is_exec(row) || clones_is_one(row) || changes_rights(row);
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

/* The program's own filter undid the call: with a signal, or with death, in which it never ends. */
static void on_trap(struct tracer *tr, struct tracee *t, uint64_t seen_ns)
{
	struct outcome o = { .ret = -1, .err = ENOSYS };

	if (!interrupts_catches(t, SIGSYS)) /* a forced signal is deadly then */ {
		t->flags |= EVENT_UNFINISHED;
		tracer_leave_tree(tr, t, -1);
		agent_end_names(tr, t, false);
		tracer_put_call(tr, t, (struct outcome){ 0 }, seen_ns);
		return;
	}
	t->flags |= EVENT_INTERRUPTED;
	read_exit(tr, t, &o);
	tracer_put_call(tr, t, o, seen_ns);
}

void tracer_finish_call(struct tracer *tr, struct tracee *t, struct outcome o, uint64_t seen_ns)
{
	t->state = TRACEE_RUNNING;
	t->is_again = false;
	clones_put_back(t); /* no child was made */
	polled_put_back(t);
	if (t->row && tr->session->is_over) {
		follow_unwanted(tr, t, &o);
		t->row = NULL;
	}
	if (!t->row)
		return;
	agent_note_choice(tr, t, false);
	map_stores_after_call(tr, t, &o);
	if (t->row->class & A_WAITS)
		tracer_set_active(tr, t, true, seen_ns);
	else
		cost_add_call(&tr->cost, seen_ns - t->enter_ns);
	if (!o.err && changes_rights(t->row)) {
		tree_renew_rights(tr->session->tree, t->tid);
		t->changed_rights = true;
		agent_note_rights(t);
	}
	if (!o.err && is_filter_call(t))
		mark_own_filter(tr, t);
	/* What they do is bound to numbers of descriptors at the moment of each call. */
	if (!o.err && (is_filter_call(t) || row_class(t->row) == C_URING))
		agent_turn_off(tr, t);
	if (t->own_filter && !o.err && (uint64_t)o.ret == t->nr && was_trapped(t)) {
		if (!t->unwanted)
			on_trap(tr, t, seen_ns);
		t->row = NULL;
		return;
	}
	if (o.err == EINTR && t->row->id != SC_rt_sigreturn)
		t->flags |= EVENT_INTERRUPTED;
	if (!t->unwanted) {
		read_exit(tr, t, &o);
		if (interrupts_is_restart(o.err))
			interrupts_put_call(tr, t, o, seen_ns);
		else
			tracer_put_call(tr, t, o, seen_ns);
	} else {
		follow_unwanted(tr, t, &o);
	}
	note_odd_calls(tr, t, &o);
	if (t->unwanted) {
		t->carried_ns += t->held_ns + t->inside_ns;
		t->inside_ns = 0;
		t->nr_gap_stops += 2;
	}
	t->row = NULL;
	if (t->execing)
		tracer_finish_exec(tr, t);
}

/* The futex calls that wake and tell how many: others return no count, or wait themselves. */
static bool wakes(const struct row *row, const struct outcome *o)
{
	return row && row_class(row) == C_WAIT && !(row->class & A_WAITS) &&
	       row->result == RESULT_COUNT && !o->err && o->ret > 0;
}

/* Whether the call may have mapped memory of the program where the agent's text belongs. */
static bool may_map_there(const struct tracer *tr, const struct tracee *t, const struct outcome *o)
{
	const uint64_t *regs = t->regs;

	if (o->err || (row_class(t->row) != C_MAP && t->row->id != SC_shmat))
		return false;
	switch ((int)t->row->id) {
	case SC_munmap:
	case SC_madvise:
		return false;
	case SC_mmap:
	case SC_mmap2:
		return regs[3] & MAP_GROWSDOWN || agent_would_be_in(tr, (uint64_t)o->ret, regs[1]);
	case SC_mremap:
		return agent_would_be_in(tr, (uint64_t)o->ret, regs[2]);
	case SC_mprotect:
	case SC_pkey_mprotect:
		return agent_would_be_in(tr, regs[0], regs[1]);
	}
	return true;
}

static void end_call(struct tracer *tr, struct tracee *t, const struct __ptrace_syscall_info *info,
		     uint64_t seen_ns)
{
	struct outcome o = outcome_of(info);
	bool uses_gs = t->row && sets_gs(t);
	bool execing = t->execing;
	bool maps = t->row && may_map_there(tr, t, &o);
	bool grows = t->is_mmap && t->regs[3] & MAP_GROWSDOWN && !o.err;
	bool hides = t->polled.hidden.is_hidden;

	/* The kernel may have read the file, and counts that as the thread's. */
	if (o.err && t->row && is_exec(t->row) && !tr->session->is_over)
		witness_begin_again(tr, t);
	t->has_woken = wakes(t->row, &o);
	tracer_finish_call(tr, t, o, seen_ns);
	if (t->execing && t->recorded && !tr->session->is_over) /* whose call was not seen */
		tracer_finish_exec(tr, t);
	t->execing = false;
	if (uses_gs && !o.err)
		agent_lose_gs(tr, t);
	if (execing)
		agent_enter_image(tr, t, info->instruction_pointer);
	else if (t->is_mmap)
		agent_after_map(tr, t, &o, info->instruction_pointer);
	if (execing || maps)
		t->stops_always |= agent_is_forestalled(tr, t, grows ? (uint64_t)o.ret : 0);
	agent_follow_call(tr, t, &o, info->instruction_pointer, info->stack_pointer);
	if (!execing)
		agent_after_call(tr, t, &o, info->instruction_pointer);
	map_stores_at_instruction(tr, t, info->instruction_pointer);
	polled_after_call(tr, t, hides, o.err ? -1 : o.ret, info->instruction_pointer);
	polled_leave(t, o.err ? -1 : o.ret);
}

static void on_exit_stop(struct tracer *tr, struct tracee *t, struct __ptrace_syscall_info *info,
			 uint64_t seen_ns)
{
	int64_t ret = info->exit.rval;

	if (info->exit.is_error && ret == -EINTR && interrupts_make_again(tr, t, &ret))
		return;
	info->exit.is_error = ret < 0 && info->exit.is_error;
	info->exit.rval = ret;
	end_call(tr, t, info, seen_ns);
}

void tracer_end_again(struct tracer *tr, struct tracee *t, uint64_t seen_ns)
{
	struct __ptrace_syscall_info info;

	if (registers_end_again(t->tid) < 0 ||
	    ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) < 0)
		return; /* killed meanwhile */
	info.exit.rval = -EINTR;
	info.exit.is_error = true;
	end_call(tr, t, &info, seen_ns);
}

/*
 * Old programs ask for the time by code that the kernel has put at an address for all. It asks
 * filters as if that were a call, but it is none, like what the vDSO does: nobody will see its end.
 */
static bool is_vsyscall(const struct __ptrace_syscall_info *info)
{
	return info->op == PTRACE_SYSCALL_INFO_SECCOMP &&
	       info->instruction_pointer >> 12 == UINT64_C(0xffffffffff600);
}

void tracer_syscall_stop(struct tracer *tr, struct tracee *t, uint64_t seen_ns)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) < 0)
		return; /* killed meanwhile */
	/* A filter of the program's hands it to a tracer that it has not: without us it would fail. */
	if (info.op == PTRACE_SYSCALL_INFO_SECCOMP && info.seccomp.ret_data != tr->filter_mark)
		(void)!registers_skip_call(t->tid, ENOSYS); /* or it was killed meanwhile */
	if (is_vsyscall(&info))
		return;
	switch (info.op) {
	case PTRACE_SYSCALL_INFO_SECCOMP:
	case PTRACE_SYSCALL_INFO_ENTRY:
		/* With a filter a call may stop twice at its entry; one that is made again is the same. */
		t->is_again = false;
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
