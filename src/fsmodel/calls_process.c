/* SPDX-License-Identifier: MIT */
/* Calls that make threads and processes, make them another program, end them, or wait for that. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>

#include "base/banned.h"
#include "fsmodel/process.h"

/* clone and its kin. */

static uint64_t clone_flags(const struct call *c)
{
	switch (c->ev->row->id) {
	case SC_fork:
		return 0;
	case SC_vfork:
		return CLONE_VM | CLONE_VFORK;
	case SC_clone3:
		return (uint64_t)value_int_or(field_of(arg_at(c, 0), STRUCT_clone_args, "flags"),
					      0);
	default:
		return (uint64_t)value_int_or(arg_at(c, 0), 0);
	}
}

static struct outcome ask_clone(struct call *c)
{
	uint64_t flags = clone_flags(c);

	if ((flags & CLONE_THREAD && !(flags & CLONE_SIGHAND)) ||
	    (flags & CLONE_SIGHAND && !(flags & CLONE_VM)) ||
	    (flags & CLONE_FS && flags & CLONE_NEWNS))
		return fails(EINVAL);
	c->n1 = flags;
	c->any_ret = true;
	/* Limits, name spaces and wishes for a number are not modelled. */
	if (!c->want_ok)
		c->unsure = true;
	return succeeds(0);
}

/* The pidfd belongs to the maker, and is made before the child's copy of the table. */
static void make_pidfd(struct call *c, int64_t number)
{
	struct open_file *o = open_file_new(c->m, OBJECT_OTHER, O_RDWR);

	o->pid = (uint32_t)c->m->tables->result.ret;
	if (number >= 0)
		fd_make(c, o, number, 0, true);
	else
		fd_make(c, o, c->m->options.execute ? -1 : 0, 0, true);
}

static int64_t pidfd_number(const struct call *c)
{
	int64_t number = -1;

	if (c->ev->row->id == SC_clone3)
		(void)value_get_int(arg_at(c, 2), &number);
	else if (c->ev->row->nr_args > 2)
		(void)value_get_int(value_item(arg_at(c, 2), 0), &number);
	return number;
}

static void apply_clone(struct call *c)
{
	struct tables *tables = c->m->tables;
	uint64_t flags = c->n1;
	struct thread *t;
	uint32_t tid;

	if (c->m->options.execute &&
	    (tables->result.ret <= 0 || ids_get(&tables->threads, (uint64_t)tables->result.ret)))
		tables->result.ret = tables->next_pid;
	if (tables->result.ret <= 0 || tables->result.ret > UINT32_MAX) {
		contradict(c, CONTRADICTION_ARGUMENT, false, "no thread can be %lld",
			   (long long)tables->result.ret);
		return;
	}
	tid = (uint32_t)tables->result.ret;
	t = ids_get(&tables->threads, tid);
	if (t && !t->cloned) {
		/* It began, and perhaps ended, before its maker came back. */
		t->cloned = true;
		if (t->ended)
			thread_free(c->m, t);
	} else if (t != c->thread) {
		clear_tid(c, tid);
		if (!(flags & CLONE_THREAD))
			clear_pid(c, tid);
		if (!c->thread) /* it cleared itself: a trace that makes no sense */
			return;
		t = thread_clone(c, c->thread, flags & CLONE_THREAD ? c->proc->pid : tid, tid,
				 flags);
		t->cloned = true;
		c->facts->child_tid = tid;
	}
	if (flags & CLONE_PIDFD && pidfd_number(c) >= 0)
		make_pidfd(c, pidfd_number(c));
}

const struct call_row model_fork = { ask_clone, apply_clone, NULL };
const struct call_row model_vfork = { ask_clone, apply_clone, NULL };
const struct call_row model_clone = { ask_clone, apply_clone, NULL };
const struct call_row model_clone_backwards = { ask_clone, apply_clone, NULL };
const struct call_row model_clone3 = { ask_clone, apply_clone, NULL };

static struct outcome ask_unshare(struct call *c)
{
	(void)c;
	return succeeds(0);
}

static void unshare_files(struct call *c, struct thread *t)
{
	struct fd_table *copy;

	if (t->files->refs == 1)
		return;
	copy = fd_table_copy(c, t->files);
	fd_table_drop(c, c->m, t->files);
	t->files = copy;
}

static void unshare_fs(struct call *c, struct thread *t)
{
	struct fs_state *copy;

	if (t->fs->refs == 1)
		return;
	copy = fs_copy(t->fs);
	fs_drop(c, c->m, t->fs);
	t->fs = copy;
}

static void apply_unshare(struct call *c)
{
	uint64_t flags = (uint64_t)value_int_or(arg_at(c, 0), 0);

	if (flags & CLONE_FILES)
		unshare_files(c, c->thread);
	if (flags & (CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER))
		unshare_fs(c, c->thread);
}

const struct call_row model_unshare = { ask_unshare, apply_unshare, NULL };

/* exec. */

static struct outcome ask_exec(struct call *c)
{
	bool at = c->ev->row->id == SC_execveat;
	int64_t dirfd = at ? value_int_or(arg_at(c, 0), -1) : AT_FDCWD;
	int64_t flags = at ? value_int_or(arg_at(c, 4), 0) : 0;
	unsigned int look = flags & AT_SYMLINK_NOFOLLOW ? 0 : LOOK_AT_FOLLOW;

	if (flags & AT_EMPTY_PATH)
		look |= LOOK_AT_EMPTY;
	look_up(c, dirfd, arg_at(c, at ? 1 : 0), look, 0, &c->at);
	if (c->at.err)
		return fails(c->at.err);
	if (!c->at.inode) {
		c->unsure = true;
		return succeeds(0);
	}
	if (c->at.inode->type == S_IFLNK)
		return fails(ELOOP);
	if (c->at.inode->type && c->at.inode->type != S_IFREG)
		return fails(EACCES);
	if (may_access(c, c->at.inode, 1) || (c->at.inode->type && !(c->at.inode->mode & 0111)))
		return fails(EACCES);
	touch_add(c, &c->at.inode->res, TOUCH_READ, 0, TOUCH_TO_END);
	return succeeds(0);
}

/* The process becomes another program: its other threads end, its tables are its own. */
void become_program(struct call *c)
{
	struct thread *self = c->thread, *t, *next;
	struct process *p = c->proc;
	struct thread *leader;
	struct space *old;

	for (t = p->threads; t; t = next) {
		next = t->next;
		if (t != self)
			thread_end(c, c->m, t, !t->cloned);
	}
	unshare_files(c, self);
	fd_table_close_range(c, self->files, 0, UINT32_MAX, SLOT_CLOEXEC);
	old = p->space;
	p->space = space_new();
	space_drop(c, c->m, old);
	/* A thread that was not the leader takes the leader's number. */
	if (self->tid != p->pid) {
		leader = ids_get(&c->m->tables->threads, p->pid);
		if (leader && !leader->ended)
			return;
		if (leader)
			thread_free(c->m, leader);
		ids_remove(&c->m->tables->threads, self->tid);
		self->tid = p->pid;
		ids_set(&c->m->tables->threads, self->tid, self);
		/* A recorder lets it begin under that number. */
		self->started = false;
		c->facts->child_tid = self->tid;
	}
}

static void apply_exec(struct call *c)
{
	become_program(c);
	c->proc->exec_seen = true;
}

static bool mend_exec(struct call *c)
{
	bool at = c->ev->row->id == SC_execveat;

	return mend_exists(c, at ? value_int_or(arg_at(c, 0), -1) : AT_FDCWD, arg_at(c, at ? 1 : 0),
			   LOOK_AT_FOLLOW, S_IFREG);
}

const struct call_row model_execve = { ask_exec, apply_exec, mend_exec };
const struct call_row model_execveat = { ask_exec, apply_exec, mend_exec };

/* The end. */

static struct outcome ask_exit(struct call *c)
{
	(void)c;
	return succeeds(0);
}

static void apply_exit(struct call *c)
{
	struct process *p = c->proc;

	/*
	 * The others of the process may still be in calls; each of them ends with
	 * an event of its own, and the last takes the tables along.
	 */
	if (c->ev->row->id == SC_exit_group)
		p->exiting = true;
	thread_end(c, c->m, c->thread, true);
}

const struct call_row model_exit = { ask_exit, apply_exit, NULL };
const struct call_row model_exit_group = { ask_exit, apply_exit, NULL };

static struct outcome ask_wait(struct call *c)
{
	c->any_ret = c->unsure = true;
	return succeeds(0);
}

static void apply_wait(struct call *c)
{
	struct process *p;
	struct thread *t;
	int64_t pid = c->m->tables->result.ret;

	if (c->ev->row->id == SC_waitid)
		pid = value_int_or(field_of(arg_at(c, 2), STRUCT_siginfo, "si_pid"), 0);
	if (pid <= 0 || pid > UINT32_MAX || pid == (int64_t)c->proc->pid)
		return;
	p = process_by_pid(c->m, (uint32_t)pid);
	/* A trace without events for the ends of threads: here it is certain. */
	if (p && p->exiting)
		process_end(c, p);
	t = ids_get(&c->m->tables->threads, (uint32_t)pid);
	if (t && t->ended && t->cloned)
		thread_free(c->m, t);
}

const struct call_row model_wait4 = { ask_wait, apply_wait, NULL };
const struct call_row model_waitid = { ask_wait, apply_wait, NULL };
const struct call_row model_waitpid = { ask_wait, apply_wait, NULL };

static struct outcome ask_pidfd_open(struct call *c)
{
	c->any_ret = c->unsure = true;
	return succeeds(0);
}

static void apply_pidfd_open(struct call *c)
{
	struct open_file *o = open_file_new(c->m, OBJECT_OTHER, O_RDWR);

	o->pid = (uint32_t)value_int_or(arg_at(c, 0), 0);
	fd_make_result(c, o, true);
}

const struct call_row model_pidfd_open = { ask_pidfd_open, apply_pidfd_open, NULL };
