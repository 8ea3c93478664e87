/* SPDX-License-Identifier: MIT */
/*
 * Threads and processes: who shares which tables, who copies them, when they
 * go. A thread is made by the call of its maker or by its own first event,
 * whichever comes first in effect order: a vfork returns only when the child
 * has ended or become another program.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>

#include "base/banned.h"
#include "fsmodel/tables.h"

/* cwd, root, umask. */

static struct handle *handle_new(struct fsmodel *m, struct inode *dir)
{
	struct handle *h = xcalloc(1, sizeof(*h));

	res_init(m, &h->res, RES_HANDLE);
	h->dir = dir;
	h->refs = 1;
	inode_ref(dir);
	return h;
}

static void handle_unref(struct call *c, struct fsmodel *m, struct handle *h)
{
	if (--h->refs)
		return;
	if (c)
		touch_use(c, &h->res, TOUCH_DELETE);
	inode_unref(m, h->dir);
	res_bury(m, &h->res, NULL);
}

void set_directory(struct call *c, struct handle **place, struct inode *dir)
{
	struct handle *old = *place;

	*place = handle_new(c->m, dir);
	c->facts->new_handle = &(*place)->res;
	touch_use(c, &(*place)->res, TOUCH_CREATE);
	handle_unref(c, c->m, old);
}

static void move_if_at(struct call *c, struct handle **place, struct inode *from, struct handle *to)
{
	if ((*place)->dir != from)
		return;
	handle_unref(c, c->m, *place);
	*place = to;
	to->refs++;
}

void move_directories(struct call *c, struct inode *from, struct inode *to)
{
	struct handle *h = handle_new(c->m, to);

	touch_use(c, &h->res, TOUCH_CREATE);
	inode_ref(from);
	IDS_EACH (&c->m->tables->threads, s) {
		struct fs_state *fs = ((struct thread *)s->value)->fs;

		if (!fs)
			continue;
		move_if_at(c, &fs->root, from, h);
		move_if_at(c, &fs->cwd, from, h);
	}
	inode_unref(c->m, from);
	handle_unref(c, c->m, h);
}

static struct fs_state *fs_copy(const struct fs_state *from)
{
	struct fs_state *fs = xmalloc(sizeof(*fs));

	*fs = *from;
	fs->refs = 1;
	fs->cwd->refs++;
	fs->root->refs++;
	return fs;
}

static void fs_drop(struct call *c, struct fsmodel *m, struct fs_state *fs)
{
	if (--fs->refs)
		return;
	handle_unref(c, m, fs->cwd);
	handle_unref(c, m, fs->root);
	free(fs);
}

/* Processes and threads. */

struct process *process_by_pid(const struct fsmodel *m, uint32_t pid)
{
	return ids_get(&m->tables->processes, pid);
}

static struct process *process_new(struct fsmodel *m, uint32_t pid, struct space *space)
{
	struct process *p = xcalloc(1, sizeof(*p));

	p->pid = pid;
	p->space = space;
	ids_set(&m->tables->processes, pid, p);
	if (pid >= m->tables->next_pid && pid < INT32_MAX)
		m->tables->next_pid = pid + 1;
	return p;
}

static struct thread *thread_new(struct fsmodel *m, struct process *p, uint32_t tid)
{
	struct thread *t = xcalloc(1, sizeof(*t));

	t->tid = tid;
	t->proc = p;
	t->next = p->threads;
	p->threads = t;
	p->nr_threads++;
	ids_set(&m->tables->threads, tid, t);
	if (tid >= m->tables->next_pid && tid < INT32_MAX)
		m->tables->next_pid = tid + 1;
	return t;
}

static void process_unlink(struct call *c, struct fsmodel *m, struct process *p)
{
	space_drop(c, m, p->space);
	if (process_by_pid(m, p->pid) == p)
		ids_remove(&m->tables->processes, p->pid);
	free(p);
}

static void thread_free(struct fsmodel *m, struct thread *t)
{
	if (ids_get(&m->tables->threads, t->tid) == t)
		ids_remove(&m->tables->threads, t->tid);
	if (m->tables->last == t)
		m->tables->last = NULL;
	free(t);
}

/*
 * The thread gives up all that it holds; with the last thread the process goes.
 * It is still known by its tid when its maker's call has not been seen.
 */
static void thread_end(struct call *c, struct fsmodel *m, struct thread *t, bool keep)
{
	struct process *p = t->proc;
	struct thread **at = &p->threads;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	p->nr_threads--;
	if (c) {
		/* Locks and such go by the process that ends, not by the one whose event says so. */
		struct process *proc = c->proc;

		c->proc = p;
		fd_table_drop(c, m, t->files);
		c->proc = proc;
	} else {
		fd_table_drop(NULL, m, t->files);
	}
	fs_drop(c, m, t->fs);
	if (!p->nr_threads) {
		if (c && c->proc == p)
			c->proc = NULL;
		process_unlink(c, m, p);
	}
	if (c && c->thread == t)
		c->thread = NULL;
	t->proc = NULL;
	t->files = NULL;
	t->fs = NULL;
	t->ended = true;
	if (!keep)
		thread_free(m, t);
}

static void process_end(struct call *c, struct process *p)
{
	uint32_t left = p->nr_threads;

	while (left--)
		thread_end(c, c->m, p->threads, false);
}

/* From before the trace, or from nowhere: nothing is known of its descriptors. */
static struct thread *thread_from_nowhere(struct fsmodel *m, uint32_t pid, uint32_t tid)
{
	struct process *p = process_by_pid(m, pid);
	struct thread *t;

	if (p && p->threads) {
		struct thread *other = p->threads;

		t = thread_new(m, p, tid);
		t->files = other->files;
		t->files->refs++;
		t->fs = other->fs;
		t->fs->refs++;
		t->cred = other->cred;
		return t;
	}
	t = thread_new(m, process_new(m, pid, space_new()), tid);
	t->files = fd_table_new(true);
	t->fs = xcalloc(1, sizeof(*t->fs));
	t->fs->refs = 1;
	t->fs->umask = 022;
	t->fs->cwd = t->fs->root = m->tables->root;
	m->tables->root->refs += 2;
	t->cred = (struct credentials){ .uid = m->options.uid,
					.gid = m->options.gid,
					.all_powerful = !m->options.uid };
	return t;
}

/* What clone with these flags makes of its caller. */
static struct thread *thread_clone(struct call *c, struct thread *maker, uint32_t pid, uint32_t tid,
				   uint64_t flags)
{
	struct fsmodel *m = c->m;
	struct process *p = maker->proc;
	struct thread *t;

	if (!(flags & CLONE_THREAD) && pid != p->pid)
		p = process_new(m, pid,
				flags & CLONE_VM ? space_ref(p->space) : space_fork(p->space));
	t = thread_new(m, p, tid);
	if (flags & CLONE_FILES) {
		t->files = maker->files;
		t->files->refs++;
	} else {
		t->files = fd_table_copy(c, maker->files);
	}
	if (flags & CLONE_FS) {
		t->fs = maker->fs;
		t->fs->refs++;
	} else {
		t->fs = fs_copy(maker->fs);
	}
	t->cred = maker->cred;
	return t;
}

/* Whoever had the tid before has ended without a word. */
static void clear_tid(struct call *c, uint32_t tid)
{
	struct thread *old = ids_get(&c->m->tables->threads, tid);

	if (!old)
		return;
	if (old->ended) {
		thread_free(c->m, old);
		return;
	}
	contradict(c, CONTRADICTION_PROCESS, true,
		   "thread %u begins while one of that number lives", tid);
	thread_end(c, c->m, old, false);
}

/* Whoever had the pid before, likewise. */
static void clear_pid(struct call *c, uint32_t pid)
{
	struct process *old = process_by_pid(c->m, pid);

	if (!old)
		return;
	contradict(c, CONTRADICTION_PROCESS, true,
		   "process %u begins while one of that number lives", pid);
	process_end(c, old);
}

static uint32_t event_pid(const struct event *ev)
{
	return ev->pid ? ev->pid : ev->tid;
}

struct thread *thread_of(struct call *c)
{
	struct tables *tables = c->m->tables;
	const struct event *ev = c->ev;
	struct thread *t = tables->last;
	struct process *parent;

	if (LIKELY(t && t->tid == ev->tid && !t->ended))
		return t;
	t = ids_get(&tables->threads, ev->tid);
	if (t && !t->ended) {
		tables->last = t;
		return t;
	}
	/* A trace that tells no beginnings has threads that just are there. */
	if (t || tables->tells_starts)
		contradict(c, CONTRADICTION_PROCESS, true, "of thread %u, which %s", ev->tid,
			   t ? "has ended" : "nobody made");
	if (t)
		thread_free(c->m, t);
	parent = ev->ppid ? process_by_pid(c->m, ev->ppid) : NULL;
	if (parent && parent->threads && !process_by_pid(c->m, event_pid(ev)))
		t = thread_clone(c, parent->threads, event_pid(ev), ev->tid, 0);
	else
		t = thread_from_nowhere(c->m, event_pid(ev), ev->tid);
	t->started = t->cloned = true;
	tables->last = t;
	return t;
}

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
static void become_program(struct call *c)
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

/* Events that are not calls. */

static struct thread *find_maker(const struct call *c)
{
	int64_t parent = value_int_or(arg_at(c, 0), 0);
	struct process *p;
	struct thread *t;

	if (parent <= 0 || parent > UINT32_MAX)
		return NULL;
	t = ids_get(&c->m->tables->threads, (uint32_t)parent);
	if (t && !t->ended)
		return t;
	p = process_by_pid(c->m, (uint32_t)parent);
	return p ? p->threads : NULL;
}

static void start_thread(struct call *c)
{
	const struct event *ev = c->ev;
	bool cloned = value_int_or(arg_at(c, 3), START_CLONE) == START_CLONE;
	uint64_t flags = (uint64_t)value_int_or(arg_at(c, 1), 0);
	struct thread *t = ids_get(&c->m->tables->threads, ev->tid), *maker;

	if (t && !t->started && !t->ended) {
		t->started = true;
		return;
	}
	clear_tid(c, ev->tid);
	maker = cloned ? find_maker(c) : NULL;
	if (maker && event_pid(ev) != ev->tid)
		flags |= CLONE_THREAD; /* whatever it says: it is in a process of another number */
	if (event_pid(ev) == ev->tid && process_by_pid(c->m, ev->tid) &&
	    !(maker && maker->proc->pid == ev->tid))
		clear_pid(c, ev->tid);
	if (maker && (!(flags & CLONE_THREAD) || maker->proc->pid == event_pid(ev)))
		t = thread_clone(c, maker, event_pid(ev), ev->tid, flags);
	else
		t = thread_from_nowhere(c->m, event_pid(ev), ev->tid);
	t->started = true;
	t->cloned = !cloned || !maker;
	c->facts->child_tid = ev->tid;
}

static void end_thread(struct call *c)
{
	struct thread *t = ids_get(&c->m->tables->threads, c->ev->tid);

	if (!t)
		return;
	if (t->ended) {
		if (t->cloned)
			thread_free(c->m, t);
		return;
	}
	c->thread = t;
	c->proc = t->proc;
	thread_end(c, c->m, t, !t->cloned);
}

/* The leader's number is now that of the thread that made the call. */
static void take_leaders_tid(struct call *c, uint32_t former)
{
	struct ids *threads = &c->m->tables->threads;
	struct thread *t = ids_get(threads, former), *leader = ids_get(threads, c->ev->tid);

	if (!t || t->ended || t == leader)
		return;
	if (leader && !leader->ended && leader->proc != t->proc)
		return; /* a trace that makes no sense */
	if (leader && leader->ended)
		thread_free(c->m, leader);
	else if (leader)
		thread_end(c, c->m, leader, false);
	ids_remove(threads, t->tid);
	t->tid = c->ev->tid;
	ids_set(threads, t->tid, t);
}

static void exec_event(struct call *c)
{
	int64_t former = value_int_or(arg_at(c, 1), 0);
	struct thread *t;

	if (former > 0 && former <= UINT32_MAX)
		take_leaders_tid(c, (uint32_t)former);
	t = thread_of(c);
	c->thread = t;
	c->proc = t->proc;
	c->fs = t->fs;
	if (!t->proc->exec_seen)
		become_program(c);
	t->proc->exec_seen = false;
}

/* The directory at a path that a recorder saw; made when nothing is known of it. */
static struct inode *found_directory(struct call *c, const struct value *path)
{
	struct found f = { 0 };

	if (path->type != VALUE_DATA)
		return NULL;
	look_up(c, AT_FDCWD, path, LOOK_AT_FOLLOW, 0, &f);
	if ((f.err || !f.inode) && mend_exists(c, AT_FDCWD, path, LOOK_AT_FOLLOW, S_IFDIR)) {
		f = (struct found){ 0 };
		look_up(c, AT_FDCWD, path, LOOK_AT_FOLLOW, 0, &f);
	}
	return f.err || !f.inode || (f.inode->type && f.inode->type != S_IFDIR) ? NULL : f.inode;
}

static void found_place(struct call *c, struct handle **place, const struct value *path)
{
	struct inode *dir = found_directory(c, path);

	if (dir && dir != (*place)->dir)
		set_directory(c, place, dir);
}

static void found_state(struct call *c)
{
	int64_t umask;

	found_place(c, &c->fs->cwd, arg_at(c, 0));
	found_place(c, &c->fs->root, arg_at(c, 1));
	if (value_get_int(arg_at(c, 2), &umask))
		c->fs->umask = (uint32_t)umask & 0777;
}

static struct open_file *found_open_file(struct call *c)
{
	uint32_t mode = (uint32_t)value_int_or(arg_at(c, 4), 0);
	uint32_t flags = (uint32_t)value_int_or(arg_at(c, 2), O_RDWR);
	uint64_t dev = (uint64_t)value_int_or(arg_at(c, 5), 0);
	uint64_t ino = (uint64_t)value_int_or(arg_at(c, 6), 0);
	const struct value *path = arg_at(c, 1);
	struct inode *i = ino ? inode_by_id(c->m, dev, ino) : NULL;
	struct found f = { 0 };
	struct open_file *o;

	if (!i && path->type == VALUE_DATA && path->data->bytes && path->data->kept_bytes &&
	    path->data->bytes[0] == '/') {
		look_up(c, AT_FDCWD, path, 0, 0, &f);
		if ((f.err || !f.inode) &&
		    mend_exists(c, AT_FDCWD, path, 0, mode ? mode & S_IFMT : 0)) {
			f = (struct found){ 0 };
			look_up(c, AT_FDCWD, path, 0, 0, &f);
		}
		i = f.err ? NULL : f.inode;
	}
	if (!i) {
		o = open_file_unknown(c->m);
		o->flags = flags;
		if ((mode & S_IFMT) == S_IFSOCK || (mode & S_IFMT) == S_IFIFO) {
			o->object = (mode & S_IFMT) == S_IFSOCK ? OBJECT_SOCKET : OBJECT_PIPE;
			o->unknown = false;
		}
		return o;
	}
	o = open_file_on(c->m, i, flags);
	o->offset_known = value_get_int(arg_at(c, 3), (int64_t *)&o->offset);
	return o;
}

static void found_fd(struct call *c)
{
	int64_t number = value_int_or(arg_at(c, 0), -1);

	if (number < 0 || number > INT32_MAX) {
		contradict(c, CONTRADICTION_ARGUMENT, false, "no descriptor can be %lld",
			   (long long)number);
		return;
	}
	fd_put(c, number, found_open_file(c), value_int_or(arg_at(c, 7), 0));
	VEC_PUSH(&c->facts->fds,
		 ((struct fd_ref){ .where = arg_at(c, 0),
				   .fd = &fd_table_get(c->thread->files, number)->res,
				   .made = true }));
}

void process_event(struct call *c)
{
	switch (c->ev->row->id) {
	case EV_thread_start:
		c->m->tables->tells_starts = true;
		start_thread(c);
		return;
	case EV_thread_exit:
		end_thread(c);
		return;
	case EV_exec:
		exec_event(c);
		return;
	case EV_found_fd:
	case EV_found_state:
		c->thread = thread_of(c);
		c->proc = c->thread->proc;
		c->fs = c->thread->fs;
		c->cred = (struct credentials){ .all_powerful = true };
		c->want_ok = true;
		if (c->ev->row->id == EV_found_fd)
			found_fd(c);
		else
			found_state(c);
		return;
	default:
		return;
	}
}

/* The whole. */

void tables_init(struct fsmodel *m)
{
	m->tables->next_pid = 1;
	m->tables->root = handle_new(m, tree_root(m));
	rows_init(m->tables->rows);
}

void tables_release(struct fsmodel *m)
{
	struct tables *tables = m->tables;
	VEC(struct thread *) all = { 0 };
	size_t i;

	IDS_EACH (&tables->threads, s)
		VEC_PUSH(&all, (struct thread *)s->value);
	for (i = 0; i < all.len; i++) {
		if (all.items[i]->ended)
			thread_free(m, all.items[i]);
		else
			thread_end(NULL, m, all.items[i], false);
	}
	VEC_RELEASE(&all);
	streams_drop_passed(m);
	handle_unref(NULL, m, tables->root);
	ids_release(&tables->threads);
	ids_release(&tables->processes);
	map_release(&tables->listeners);
}
