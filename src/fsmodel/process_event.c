/* SPDX-License-Identifier: MIT */
/* Events that are not calls: the life of threads, and what was found when a recorder came. */
#include <fcntl.h>
#include <sched.h>

#include "base/banned.h"
#include "fsmodel/process.h"

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

	c->m->has_cores |= value_int_or(arg_at(c, 2), 0) != 0;
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

static struct open_file *open_found(struct call *c)
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
		if (i && i->inferred)
			i->unseen = c->m->options.tree_known;
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
	if (i->type == S_IFIFO) {
		stream_attach_fifo(c, o, i);
		if (i->fifo) {
			i->fifo->foreign = true;
			i->fifo->res.real = false;
		}
	}
	o->offset_known = value_get_int(arg_at(c, 3), (int64_t *)&o->offset);
	return o;
}

/* The open file of a descriptor that was found: another one may be known to share it. */
static struct open_file *found_open_file(struct call *c)
{
	uint64_t id = (uint64_t)value_int_or(arg_at(c, 8), 0);
	struct ids *known = &c->m->tables->found_opens;
	struct open_file *o = id ? ids_get(known, id) : NULL;

	if (o)
		return o;
	o = open_found(c);
	o->found_id = id;
	if (id)
		ids_set(known, id, o);
	return o;
}

static void found_fd(struct call *c)
{
	int64_t number = value_int_or(arg_at(c, 0), -1);
	struct descriptor *d;

	if (number < 0 || number > INT32_MAX) {
		contradict(c, CONTRADICTION_ARGUMENT, false, "no descriptor can be %lld",
			   (long long)number);
		return;
	}
	d = fd_put(c, number, found_open_file(c), value_int_or(arg_at(c, 7), 0));
	if (!d->open->found)
		d->open->found = d;
	VEC_PUSH(&c->facts->fds,
		 ((struct fd_ref){ .where = arg_at(c, 0), .fd = &d->res, .made = true }));
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
	case EV_map_store:
		store_in_map(c);
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
