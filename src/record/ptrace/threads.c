/* SPDX-License-Identifier: MIT */
/* Threads: how they begin, take a new image, and end. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "record/ptrace/map_stores.h"
#include "record/ptrace/tracer.h"

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
	const struct tracee *maker =
		how == START_CLONE && parent ? tracees_find(&tr->all, parent) : NULL;
	char comm[32];
	struct arena a;
	int r;

	if (!t->pid)
		t->pid = t->tid;
	read_status(t, comm);
	t->state = TRACEE_RUNNING;
	t->recorded = true;
	tree_begin_thread(tr->session->tree, t->tid, clone_flags & CLONE_NEWUSER ? 0 : parent,
			  clone_flags & CLONE_FS || t->tid != t->pid);
	tracer_set_active(tr, t, true, tracer_now(tr));
	t->stream = trace_feed_open_stream(tr->session->feed, (uint32_t)t->pid, (uint32_t)t->tid);
	tr->session->res->nr_threads++;
	arena_init(&a);
	ev.args[0] = value_int(parent);
	ev.args[1] = value_uint(clone_flags);
	ev.args[2] = value_str(&a, comm);
	ev.args[3] = value_int(how);
	ev.enter_ns = ev.exit_ns = tracer_now(tr);
	/* What is known of its maker's gap before the call: the call itself is told of later. */
	if (maker && maker->state == TRACEE_IN_CALL) {
		ev.held_ns = ev.held_before_ns = maker->held_ns;
		ev.gap_cpu_ns = maker->gap_cpu_ns;
	}
	r = tracer_emit(tr, t, &ev);
	arena_release(&a);
	return r;
}

void tracer_start_thread(struct tracer *tr, struct tracee *t, pid_t parent, uint64_t clone_flags,
			 int how)
{
	int r = 0;
	char comm[32];

	if (tr->session->is_over)
		read_status(t, comm);
	else
		r = tracer_begin_thread(tr, t, parent, clone_flags, how);
	if (!tr->session->is_over && !r && how == START_LAUNCH)
		r = tracer_note_process(tr, t, true);
	t->state = TRACEE_RUNNING;
	t->recorded = true; /* or would be */
	t->event_cpu_ns = cpu_read_ns(&tr->cpus, &t->cpu, t->pid, t->tid);
	t->carried_ns = 0; /* what it was held before is not in the trace */
	t->noted_ns = tracer_now(tr);
	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
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
		tracer_put_loss(tr, &loss);
	if (!t->nr_unread_calls)
		return;
	loss.count = t->nr_unread_calls;
	loss.bytes = 0;
	loss.note = "structures of 32-bit calls that are not known here";
	tracer_put_loss(tr, &loss);
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

/* A thread that was made is known, and who made it: it may begin. */
static void begin_child(struct tracer *tr, struct tracee *parent, struct tracee *t)
{
	/* Seen at the entry of every call that makes a child, unless we came in the middle of it. */
	uint64_t flags = parent->state == TRACEE_IN_CALL ? parent->clone_flags : 0;

	parent->has_child = true;
	clones_pass_on(parent, t);
	clones_put_back(parent);
	if (t->state != TRACEE_NEW)
		return; /* it was let go without its parent */
	t->space = flags & CLONE_VM ? parent->space : ++tr->next_space;
	if (t->space != parent->space)
		map_stores_fork(tr, parent, t);
	t->own_filter = parent->own_filter;
	t->changed_rights = parent->changed_rights;
	t->stops_always = parent->stops_always;
	witness_begin_new(tr, t);
	t->looks_at_cpus = parent->looks_at_cpus; /* it has its descriptors */
	tracer_start_thread(tr, t, parent->tid, flags, START_CLONE);
	if (t->pid == parent->pid) {
		t->space = parent->space; /* also when the flags are not known */
		t->cpu.has_company = parent->cpu.has_company = true;
	}
	agent_new_thread(tr, parent, t);
	if (t->stopped_early) {
		t->stopped_early = false;
		agent_first_stop(t);
		clones_put_back(t);
		map_stores_first_stop(tr, t);
		t->carried_ns += tracer_now(tr) - t->noted_ns;
		tracer_resume(tr, t, 0);
	}
}

void tracer_new_thread(struct tracer *tr, struct tracee *parent)
{
	unsigned long message = 0;

	if (!ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &message))
		begin_child(tr, parent, tracees_get(&tr->all, (pid_t)message));
}

/* Orphans: who made them was killed in the middle of it, and will not tell of them. */

static bool is_orphan(struct tracer *tr, struct tracee *t)
{
	char comm[32];

	if (t->state != TRACEE_NEW || !t->stopped_early)
		return false;
	read_status(t, comm);
	/* Somebody else is its parent now. A mere thread dies with who made it. */
	return t->pid == t->tid && !tracees_find(&tr->all, t->ppid);
}

/* The thread has ended in a call that made a child, if it came so far. */
static void find_orphan(struct tracer *tr, struct tracee *parent)
{
	MAP_EACH (&tr->all.by_tid, e) {
		if (is_orphan(tr, e->value)) {
			begin_child(tr, parent, e->value);
			return;
		}
	}
}

/*
 * In ticks, for the clock goes on while we are held up and have not yet seen the
 * parent stop. Children made with CLONE_PARENT have no parent that tells what they
 * are: only when no parent can be so late they are taken for orphans.
 */
#define ORPHAN_TICKS 8u
#define SURELY_ORPHAN_TICKS 240u

void tracer_release_orphans(struct tracer *tr)
{
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *t = e->value;

		if (t->state != TRACEE_NEW || !t->stopped_early || ++t->early_ticks < ORPHAN_TICKS)
			continue;
		if (!is_orphan(tr, t) && t->early_ticks < SURELY_ORPHAN_TICKS)
			continue;
		t->stopped_early = false;
		t->space = ++tr->next_space;
		tracer_start_thread(tr, t, 0, 0, START_CLONE);
		/* What it has of an agent is its parent's, which is gone: with that it cannot go on. */
		if (agent_is_in(tr, t))
			(void)kill(t->tid, SIGKILL);
		else
			tracer_resume(tr, t, 0);
	}
}

void tracer_end_thread(struct tracer *tr, struct tracee *t, int status)
{
	struct value args[3] = { { 0 } };

	if (tr->waker.tracee == t)
		tr->waker.tracee = NULL;
	if (t->state == TRACEE_IN_CALL && t->row && clones_is_one(t->row) && !t->has_child)
		find_orphan(tr, t);
	agent_end_thread(tr, t);
	interrupts_end(tr, t);
	map_stores_end(tr, t);
	if (t->state == TRACEE_IN_CALL && t->row && !t->unwanted) {
		t->flags |= EVENT_UNFINISHED;
		tracer_put_call(tr, t, (struct outcome){ 0 }, tracer_now(tr));
	}
	if (WIFEXITED(status))
		args[0] = value_int(WEXITSTATUS(status));
	if (WIFSIGNALED(status)) {
		args[1] = value_int(WTERMSIG(status));
		args[2] = value_int(!!WCOREDUMP(status));
	}
	tracer_put_now(tr, t, EV_thread_exit, args, 3);
	put_cut(tr, t);
	witness_end(tr, t);
	tracer_close_stream(tr, t);
	tracer_leave_tree(tr, t, -1);
	tree_end_thread(tr->session->tree, t->tid);
	if (t->pid == t->tid) {
		found_forget(tr->found, t->space);
		aio_forget(tr->aio, t->pid);
		new_parents(tr, t->pid);
	}
	tracees_remove(&tr->all, t);
}

struct tracee *tracer_exec(struct tracer *tr, struct tracee *t)
{
	unsigned long former = 0;

	if (ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &former) < 0)
		former = (unsigned long)t->tid;
	if ((pid_t)former != t->tid) {
		struct tracee *caller = tracees_find(&tr->all, (pid_t)former);
		pid_t leader = t->tid;

		if (caller) {
			tracer_end_thread(tr, t, 0);
			cpu_close(&tr->cpus, &caller->cpu);
			tracees_rename(&tr->all, caller, leader);
			tree_rename_thread(tr->session->tree, (pid_t)former, leader);
			caller->exec_former_tid = (pid_t)former;
			t = caller;
		}
	}
	t->execing = true;
	if (t->state != TRACEE_IN_CALL) { /* not seen to be made; its end will be */
		t->state = TRACEE_IN_CALL;
		t->row = NULL;
	}
	agent_leave_image(tr, t);
	map_stores_end(tr, t);
	found_forget(tr->found, t->space);
	aio_forget(tr->aio, t->pid);
	t->space = ++tr->next_space;
	t->stops_always = false;
	return t;
}

/*
 * A set-user-id or set-group-id program, or one with capabilities; the kernel grants that only when
 * the tracer may do as much.
 */
static bool gives_rights(const char *exe)
{
	struct stat st;

	return !fstatat(AT_FDCWD, exe, &st, AT_STATX_DONT_SYNC) &&
	       (st.st_mode & (S_ISUID | S_ISGID) ||
		getxattr(exe, "security.capability", NULL, 0) > 0);
}

void tracer_finish_exec(struct tracer *tr, struct tracee *t)
{
	struct event ev = { .row = row_by_id(EV_exec) };
	struct value *args = ev.args;
	char name[64], target[4096];
	ssize_t len;
	struct arena a;

	t->execing = t->changed_rights = false;
	tree_renew_rights(tr->session->tree, t->tid);
	witness_begin_program(tr, t);
	if (t->exec_former_tid) {
		tracer_close_stream(tr, t);
		tracer_start_thread(tr, t, t->exec_former_tid, 0, START_CLONE);
		args[1] = value_int(t->exec_former_tid);
		t->exec_former_tid = 0;
	}
	snprintf(name, sizeof(name), "/proc/%d/exe", (int)t->pid);
	len = readlink(name, target, sizeof(target));
	arena_init(&a);
	if (len > 0)
		args[0] = value_bytes(&a, target, (size_t)len);
	args[2] = value_int(gives_rights(name));
	ev.enter_ns = ev.exit_ns = tracer_now(tr);
	tracer_take_held(t, &ev);
	tracer_put_event(tr, t, &ev);
	if (args[2].i && geteuid()) {
		tr->session->res->nr_without_rights++;
		args[0] = value_str(
			&a,
			"a program with rights of its own (set-user-id or capabilities): it runs without "
			"them because it is traced");
		tracer_put_now(tr, t, EV_marker, args, 1);
	}
	arena_release(&a);
}
