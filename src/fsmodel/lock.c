/* SPDX-License-Identifier: MIT */
/*
 * Locks of files: flock (of an open file), POSIX (of a process), OFD (of an open
 * file, in the space of POSIX). A lock touches RES_LOCKS of its inode: exclusive
 * as a write of its range, shared as a read. flock and the others never meet;
 * in RES_LOCKS it is one byte beyond all that a POSIX lock can reach.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

#include "base/banned.h"
#include "fsmodel/tables.h"

#define POSIX_END ((uint64_t)INT64_MAX + 1)
#define FLOCK_FROM (POSIX_END + 1)
#define FLOCK_TO (POSIX_END + 2)

struct lock {
	const void *owner; /* process or open file */
	bool exclusive;
	uint64_t from, to;
	struct lock *next;
};

struct lock_table {
	struct res res; /* RES_LOCKS */
	struct lock *first;
	unsigned int nr_locks;
};

void locks_free(struct fsmodel *m, struct lock_table *t)
{
	while (t->first) {
		struct lock *l = t->first;

		t->first = l->next;
		free(l);
	}
	res_bury(m, &t->res, NULL);
}

static struct lock_table *locks_of(struct fsmodel *m, struct inode *i)
{
	if (!i->locks) {
		i->locks = xcalloc(1, sizeof(*i->locks));
		res_init(m, &i->locks->res, RES_LOCKS);
	}
	return i->locks;
}

static void touch_lock(struct call *c, struct lock_table *t, bool exclusive, uint64_t from,
		       uint64_t to)
{
	touch_add(c, &t->res, exclusive ? TOUCH_WRITE : TOUCH_READ, from, to);
}

static struct lock *find_conflict(const struct lock_table *t, const struct lock *wanted)
{
	struct lock *l;

	for (l = t->first; l; l = l->next) {
		if (l->owner != wanted->owner && l->from < wanted->to && wanted->from < l->to &&
		    (l->exclusive || wanted->exclusive))
			return l;
	}
	return NULL;
}

/* A file with more locks than this has a program that nobody wants to wait for: the others are not kept. */
#define LOCKS_MAX 4096

static void insert(struct lock_table *t, const struct lock *like, uint64_t from, uint64_t to)
{
	struct lock *l;

	if (t->nr_locks >= LOCKS_MAX)
		return;
	l = xmalloc(sizeof(*l));
	*l = *like;
	l->from = from;
	l->to = to;
	l->next = t->first;
	t->first = l;
	t->nr_locks++;
}

/* Takes [from, to) away from what the owner has; touches as the locks that end. */
static void cut(struct call *c, struct lock_table *t, const void *owner, uint64_t from, uint64_t to)
{
	struct lock **at = &t->first, *l;

	while ((l = *at)) {
		if (l->owner != owner || l->from >= to || from >= l->to) {
			at = &l->next;
			continue;
		}
		if (c)
			touch_lock(c, t, l->exclusive, l->from > from ? l->from : from,
				   l->to < to ? l->to : to);
		if (l->from < from) {
			/* What is left behind the cut goes to the front, where we have been. */
			if (l->to > to)
				insert(t, l, to, l->to);
			l->to = from;
			at = &l->next;
		} else if (l->to > to) {
			l->from = to;
			at = &l->next;
		} else {
			*at = l->next;
			t->nr_locks--;
			free(l);
		}
	}
}

static void cut_others(struct call *c, struct lock_table *t, const struct lock *wanted)
{
	struct lock *l;

	while ((l = find_conflict(t, wanted)))
		cut(c, t, l->owner, wanted->from, wanted->to);
}

void locks_drop_process(struct call *c, struct process *p, struct inode *i)
{
	cut(c, i->locks, p, 0, POSIX_END);
}

void locks_drop_open(struct call *c, struct open_file *o)
{
	cut(c, o->inode->locks, o, 0, UINT64_MAX);
}

/* A wish in struct call: n1 from, n2 to, n3 what. */
enum wanted {
	WANT_SHARED,
	WANT_EXCLUSIVE,
	WANT_NONE,
};

static struct outcome ask_lock(struct call *c, const void *owner)
{
	struct inode *i = c->fd->open->inode;
	struct lock wanted = {
		.owner = owner, .exclusive = c->n3 == WANT_EXCLUSIVE, .from = c->n1, .to = c->n2
	};

	if (!i || c->quiet)
		return i && i->locks && c->n3 != WANT_NONE && find_conflict(i->locks, &wanted)
			       ? fails(EAGAIN)
			       : succeeds(0);
	(void)locks_of(c->m, i);
	if (c->n3 == WANT_NONE || !find_conflict(i->locks, &wanted))
		return succeeds(0);
	/* Who finds it taken depends on who has it. */
	touch_lock(c, i->locks, wanted.exclusive, wanted.from, wanted.to);
	return fails(EAGAIN);
}

static void apply_lock(struct call *c, const void *owner)
{
	struct inode *i = c->fd->open->inode;
	struct lock lock = { .owner = owner, .exclusive = c->n3 == WANT_EXCLUSIVE };

	if (!i || !i->locks)
		return;
	cut(c, i->locks, owner, c->n1, c->n2);
	if (c->n3 == WANT_NONE)
		return;
	insert(i->locks, &lock, c->n1, c->n2);
	touch_lock(c, i->locks, lock.exclusive, c->n1, c->n2);
}

static bool mend_lock(struct call *c, const void *owner)
{
	struct inode *i = c->fd ? c->fd->open->inode : NULL;
	struct lock wanted = {
		.owner = owner, .exclusive = c->n3 == WANT_EXCLUSIVE, .from = c->n1, .to = c->n2
	};

	if (!i || !i->locks)
		return false;
	cut_others(c, i->locks, &wanted);
	return true;
}

/* flock. */

static struct outcome ask_flock(struct call *c)
{
	int64_t op = value_int_or(arg_at(c, 1), 0);
	struct outcome o;

	switch (op & ~(int64_t)LOCK_NB) {
	case LOCK_SH:
		c->n3 = WANT_SHARED;
		break;
	case LOCK_EX:
		c->n3 = WANT_EXCLUSIVE;
		break;
	case LOCK_UN:
		c->n3 = WANT_NONE;
		break;
	default:
		return fails(EINVAL);
	}
	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	if (c->n3 != WANT_NONE && !can_read(c->fd->open) && !can_write(c->fd->open))
		return fails(EBADF);
	c->n1 = FLOCK_FROM;
	c->n2 = FLOCK_TO;
	o = ask_lock(c, c->fd->open);
	/* What it had is given up before what it wants is found to be taken. */
	if (o.err == EAGAIN && !c->quiet && (c->m->options.execute || c->ev->outcome.err))
		cut(c, c->fd->open->inode->locks, c->fd->open, FLOCK_FROM, FLOCK_TO);
	return o;
}

static void apply_flock(struct call *c)
{
	apply_lock(c, c->fd->open);
}

static bool mend_flock(struct call *c)
{
	return mend_lock(c, c->fd ? c->fd->open : NULL);
}

const struct call_row model_flock = { ask_flock, apply_flock, mend_flock };

/* fcntl. */

static bool is_ofd(const struct call *c)
{
	return c->ev->row->id == SC_fcntl_ofd_setlk || c->ev->row->id == SC_fcntl_ofd_setlkw;
}

static const void *owner_of(const struct call *c)
{
	return is_ofd(c) ? (const void *)c->fd->open : (const void *)c->proc;
}

/* 0, or the errno for a range that cannot be. */
static int read_range(struct call *c, const struct value *arg)
{
	int64_t whence = value_int_or(field_of(arg, STRUCT_flock, "l_whence"), SEEK_SET);
	int64_t start = value_int_or(field_of(arg, STRUCT_flock, "l_start"), 0);
	int64_t len = value_int_or(field_of(arg, STRUCT_flock, "l_len"), 0);
	const struct open_file *o = c->fd->open;
	int64_t base = 0, end;

	if (whence == SEEK_CUR)
		base = (int64_t)o->offset;
	else if (whence == SEEK_END)
		base = o->inode ? (int64_t)o->inode->size : 0;
	else if (whence != SEEK_SET)
		return EINVAL;
	if (__builtin_add_overflow(base, start, &start))
		return EOVERFLOW;
	if (start < 0)
		return EINVAL;
	if (len < 0) {
		end = start;
		if (__builtin_add_overflow(start, len, &start) || start < 0)
			return EINVAL;
	} else if (len == 0) {
		c->n1 = (uint64_t)start;
		c->n2 = POSIX_END;
		return 0;
	} else if (__builtin_add_overflow(start, len - 1, &end)) {
		return EOVERFLOW;
	} else {
		c->n1 = (uint64_t)start;
		c->n2 = (uint64_t)end + 1;
		return 0;
	}
	c->n1 = (uint64_t)start;
	c->n2 = (uint64_t)end;
	return 0;
}

static struct outcome ask_setlk(struct call *c)
{
	const struct value *arg = arg_at(c, 2);
	int64_t type = value_int_or(field_of(arg, STRUCT_flock, "l_type"), F_UNLCK);
	int err;

	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	if (arg->type != VALUE_STRUCT) {
		c->unsure = true;
		c->n3 = WANT_NONE;
		return succeeds(0);
	}
	err = read_range(c, arg);
	if (err)
		return fails(err);
	if (type != F_RDLCK && type != F_WRLCK && type != F_UNLCK)
		return fails(EINVAL);
	if (is_ofd(c) && value_int_or(field_of(arg, STRUCT_flock, "l_pid"), 0))
		return fails(EINVAL);
	if (!c->fd->open->unknown && ((type == F_RDLCK && !can_read(c->fd->open)) ||
				      (type == F_WRLCK && !can_write(c->fd->open))))
		return fails(EBADF);
	c->n3 = type == F_RDLCK ? WANT_SHARED : type == F_WRLCK ? WANT_EXCLUSIVE : WANT_NONE;
	return ask_lock(c, owner_of(c));
}

static void apply_setlk(struct call *c)
{
	if (arg_at(c, 2)->type != VALUE_STRUCT)
		return;
	if (!is_ofd(c))
		c->proc->has_locks = true;
	apply_lock(c, owner_of(c));
}

static bool mend_setlk(struct call *c)
{
	return c->fd && mend_lock(c, owner_of(c));
}

const struct call_row model_fcntl_setlk = { ask_setlk, apply_setlk, mend_setlk };
const struct call_row model_fcntl_setlkw = { ask_setlk, apply_setlk, mend_setlk };
const struct call_row model_fcntl_ofd_setlk = { ask_setlk, apply_setlk, mend_setlk };
const struct call_row model_fcntl_ofd_setlkw = { ask_setlk, apply_setlk, mend_setlk };
