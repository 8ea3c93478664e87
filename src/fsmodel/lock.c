/* SPDX-License-Identifier: MIT */
/*
 * Locks of files: flock (of an open file), POSIX (of a descriptor table, which
 * is what the kernel calls a process here), OFD (of an open file, in the space of
 * POSIX). A lock touches RES_LOCKS of its inode: exclusive as a write of its
 * range, shared as a read. flock and the others never meet; in RES_LOCKS it is
 * one byte beyond all that a POSIX lock can reach.
 *
 * The POSIX locks of one table on one file have a RES_LOCKER: in a replay, where
 * all are one process, an open file of its own that stands for the table. It
 * begins with the table's first call about locks of the file and ends, with all
 * locks, when the table closes any descriptor of the file.
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
	const void *owner; /* descriptor table or open file */
	bool exclusive;
	uint64_t from, to;
	struct lock *next;
};

struct locker {
	struct res res; /* RES_LOCKER */
	const struct fd_table *owner; /* NULL: its locks are gone, which no event said */
	struct locker *next;
};

struct lock_table {
	struct res res; /* RES_LOCKS */
	struct lock *first;
	unsigned int nr_locks;
	struct locker *lockers;
};

void locks_free(struct fsmodel *m, struct lock_table *t)
{
	while (t->first) {
		struct lock *l = t->first;

		t->first = l->next;
		free(l);
	}
	while (t->lockers) {
		struct locker *l = t->lockers;

		t->lockers = l->next;
		res_bury(m, &l->res, NULL);
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

static bool conflicts(const struct lock *l, const struct lock *wanted)
{
	return l->owner != wanted->owner && l->from < wanted->to && wanted->from < l->to &&
	       (l->exclusive || wanted->exclusive);
}

static struct lock *find_conflict(const struct lock_table *t, const struct lock *wanted)
{
	struct lock *l;

	for (l = t->first; l && !conflicts(l, wanted);)
		l = l->next;
	return l;
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

/* Takes in what the owner has of the same kind on either side, as the kernel does. */
static void join(struct lock_table *t, struct lock *lock)
{
	struct lock **at = &t->first, *l;

	while ((l = *at)) {
		if (l->owner != lock->owner || l->exclusive != lock->exclusive ||
		    (l->to != lock->from && l->from != lock->to)) {
			at = &l->next;
			continue;
		}
		if (l->to == lock->from)
			lock->from = l->from;
		else
			lock->to = l->to;
		*at = l->next;
		t->nr_locks--;
		free(l);
	}
}

/* Lockers. */

static struct locker *find_locker(const struct lock_table *t, const struct fd_table *owner)
{
	struct locker *l;

	for (l = t->lockers; l && l->owner != owner;)
		l = l->next;
	return l;
}

static void end_lockers(struct call *c, struct lock_table *t, const struct fd_table *owner)
{
	struct locker **at = &t->lockers, *l;

	while ((l = *at)) {
		if (l->owner != owner) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		touch_use(c, &l->res, TOUCH_DELETE);
		res_bury(c->m, &l->res, NULL);
	}
}

void locks_drop_table(struct call *c, const struct fd_table *t, struct inode *i)
{
	cut(c, i->locks, t, 0, POSIX_END);
	end_lockers(c, i->locks, t);
}

/*
 * Whoever is in the way must have given up. Of a locker all locks go: touches are
 * for the call that is asked again.
 */
static void cut_others(struct lock_table *t, const struct lock *wanted)
{
	struct lock *l;

	while ((l = find_conflict(t, wanted))) {
		struct locker *locker = find_locker(t, l->owner);

		if (locker)
			locker->owner = NULL;
		cut(NULL, t, l->owner, locker ? 0 : wanted->from, locker ? POSIX_END : wanted->to);
	}
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

	c->open = c->fd->open;
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
	lock.from = c->n1;
	lock.to = c->n2;
	join(i->locks, &lock);
	insert(i->locks, &lock, lock.from, lock.to);
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
	cut_others(i->locks, &wanted);
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
	switch (c->ev->row->id) {
	case SC_fcntl_ofd_getlk:
	case SC_fcntl_ofd_setlk:
	case SC_fcntl_ofd_setlkw:
		return true;
	}
	return false;
}

static bool is_posix(const struct call *c)
{
	switch (c->ev->row->id) {
	case SC_fcntl_getlk:
	case SC_fcntl_setlk:
	case SC_fcntl_setlkw:
		return true;
	}
	return false;
}

static const void *owner_of(const struct call *c)
{
	return is_ofd(c) ? (const void *)c->fd->open : (const void *)c->thread->files;
}

/* 0, or the errno for a range that cannot be. */
static int read_range(struct call *c, const struct value *arg)
{
	int64_t whence = value_int_or(field_of(arg, STRUCT_flock, "l_whence"), SEEK_SET);
	int64_t start = value_int_or(field_of(arg, STRUCT_flock, "l_start"), 0);
	int64_t len = value_int_or(field_of(arg, STRUCT_flock, "l_len"), 0);
	const struct open_file *o = c->fd->open;
	int64_t base = 0, end;

	if (whence == SEEK_CUR) {
		touch_use(c, &c->fd->open->res, TOUCH_OFFSET);
		base = (int64_t)o->offset;
		c->facts->offset = o->offset;
	} else if (whence == SEEK_END && o->inode) {
		touch_use(c, &o->inode->res, TOUCH_SIZE_READ);
		base = (int64_t)o->inode->size;
	} else if (whence != SEEK_SET && whence != SEEK_END) {
		return EINVAL;
	}
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

/* What all of these look at first; err 0 and c->n3: it may go on. */
static struct outcome ask_range(struct call *c)
{
	const struct value *arg = arg_at(c, 2);
	int64_t type = value_int_or(field_of(arg, STRUCT_flock, "l_type"), F_UNLCK);
	int err;

	c->n3 = WANT_NONE;
	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	if (arg->type != VALUE_STRUCT) {
		c->unsure = true;
		return succeeds(0);
	}
	err = read_range(c, arg);
	if (err)
		return fails(err);
	if (type != F_RDLCK && type != F_WRLCK && type != F_UNLCK)
		return fails(EINVAL);
	if (is_ofd(c) && value_int_or(field_of(arg, STRUCT_flock, "l_pid"), 0))
		return fails(EINVAL);
	c->n3 = type == F_RDLCK ? WANT_SHARED : type == F_WRLCK ? WANT_EXCLUSIVE : WANT_NONE;
	return succeeds(0);
}

static struct outcome ask_setlk(struct call *c)
{
	struct outcome o = ask_range(c);

	if (o.err || arg_at(c, 2)->type != VALUE_STRUCT)
		return o;
	if (!c->fd->open->unknown && ((c->n3 == WANT_SHARED && !can_read(c->fd->open)) ||
				      (c->n3 == WANT_EXCLUSIVE && !can_write(c->fd->open))))
		return fails(EBADF);
	return ask_lock(c, owner_of(c));
}

static void apply_setlk(struct call *c)
{
	if (arg_at(c, 2)->type != VALUE_STRUCT)
		return;
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

static bool asks(const struct call *c)
{
	return c->ev->row->id == SC_fcntl_getlk || c->ev->row->id == SC_fcntl_ofd_getlk;
}

/* Whose locks are in the way: none, one owner's, or those of several. */
static uint32_t count_owners(const struct lock_table *t, const struct lock *wanted)
{
	const struct lock *first = find_conflict(t, wanted), *l;

	for (l = first; l; l = l->next) {
		if (l->owner != first->owner && conflicts(l, wanted))
			return 2;
	}
	return first != NULL;
}

/* The lock that the call says it has found; false: none. */
static bool read_found(const struct call *c, struct lock *ret)
{
	const struct value *found = arg_at(c, 3);
	int64_t type = value_int_or(field_of(found, STRUCT_flock, "l_type"), F_UNLCK);
	uint64_t start = (uint64_t)value_int_or(field_of(found, STRUCT_flock, "l_start"), 0);
	uint64_t len = (uint64_t)value_int_or(field_of(found, STRUCT_flock, "l_len"), 0);

	if (type == F_UNLCK)
		return false;
	*ret = (struct lock){ .exclusive = type == F_WRLCK, .from = start, .to = POSIX_END };
	if (len && start < POSIX_END - len)
		ret->to = start + len;
	return true;
}

/* Whether what the call says that it found is there. */
static bool finds(const struct call *c, const struct lock_table *t, const struct lock *wanted)
{
	const struct lock *l;
	struct lock found;

	if (!read_found(c, &found))
		return !find_conflict(t, wanted);
	for (l = t->first; l; l = l->next) {
		if (conflicts(l, wanted) && l->exclusive == found.exclusive &&
		    l->from == found.from && l->to == found.to)
			return true;
	}
	return false;
}

/* The answer has the whole lock that is in the way: what touches its ends would change them. */
static void touch_found(struct call *c, struct lock_table *t, const struct lock *wanted)
{
	uint64_t from = wanted->from, to = wanted->to;
	struct lock found;

	if (read_found(c, &found)) {
		if (found.from < from + 1)
			from = found.from ? found.from - 1 : 0;
		if (found.to + 1 > to)
			to = found.to < POSIX_END ? found.to + 1 : POSIX_END;
	}
	touch_lock(c, t, wanted->exclusive, from, to);
}

static struct outcome ask_getlk(struct call *c)
{
	struct outcome o = ask_range(c);
	struct inode *i;
	struct lock wanted;

	if (o.err || arg_at(c, 2)->type != VALUE_STRUCT)
		return o;
	if (c->n3 == WANT_NONE) {
		c->unsure = is_ofd(c); /* younger kernels list the locks of an open file so */
		return c->unsure ? succeeds(0) : fails(EINVAL);
	}
	wanted = (struct lock){ .owner = owner_of(c),
				.exclusive = c->n3 == WANT_EXCLUSIVE,
				.from = c->n1,
				.to = c->n2 };
	c->open = c->fd->open;
	i = c->open->inode;
	if (i && !c->quiet)
		touch_found(c, locks_of(c->m, i), &wanted);
	if (i && i->locks) {
		c->facts->nr_lock_owners = count_owners(i->locks, &wanted);
		c->facts->lock_foretold = finds(c, i->locks, &wanted);
	} else {
		c->facts->lock_foretold = finds(c, &(struct lock_table){ 0 }, &wanted);
	}
	return o;
}

const struct call_row model_fcntl_getlk = { ask_getlk, NULL, NULL };
const struct call_row model_fcntl_ofd_getlk = { ask_getlk, NULL, NULL };

/* For the step. */

void locks_collect(struct call *c)
{
	struct inode *i = c->open ? c->open->inode : NULL;
	struct fd_table *owner = c->thread ? c->thread->files : NULL;
	struct locker *l;

	if (!i || !owner)
		return;
	end_lockers(c, locks_of(c->m, i), NULL);
	if (!is_posix(c))
		return;
	l = find_locker(i->locks, owner);
	if (!l && c->n3 != WANT_NONE) {
		l = xcalloc(1, sizeof(*l));
		res_init(c->m, &l->res, RES_LOCKER);
		l->owner = owner;
		l->next = i->locks->lockers;
		i->locks->lockers = l;
		owner->has_locks = true;
		touch_use(c, &l->res, TOUCH_CREATE);
	} else if (l) {
		touch_use(c, &l->res, TOUCH_USE);
	}
	c->facts->locker = l ? &l->res : NULL;
}

bool locks_overlap(const struct call *first, const struct call *then, struct outcome foretold)
{
	if (!first->open || !then->open || first->open->inode != then->open->inode)
		return false;
	/* Of a lock that is found, all of its range is told. */
	if (asks(then))
		return (first->n1 == FLOCK_FROM) == (then->n1 == FLOCK_FROM);
	if (first->n1 >= then->n2 || then->n1 >= first->n2)
		return false;
	if (foretold.err)
		return first->n3 != WANT_EXCLUSIVE;
	return first->n3 == WANT_EXCLUSIVE ||
	       (first->n3 == WANT_SHARED && then->n3 == WANT_EXCLUSIVE);
}

bool locks_are_of(const struct call *c, const struct fd_table *t)
{
	bool whole = c->ev->row->id == SC_flock;
	struct lock wanted = { .owner = whole ? c->fd->open : owner_of(c),
			       .exclusive = c->n3 == WANT_EXCLUSIVE,
			       .from = c->n1,
			       .to = c->n2 };
	const struct lock *l;

	for (l = c->open->inode->locks->first; l; l = l->next) {
		if (conflicts(l, &wanted) && (l->owner == t || fd_table_has(t, l->owner)))
			return true;
	}
	return false;
}

/*
 * That a lock was taken may be due to a program that the trace does not know. But
 * first another call that overlapped this one may have taken it, or given it up.
 */
bool locks_fit(const struct call *c, struct outcome foretold)
{
	const struct event *ev = c->ev;

	if (!c->open || !c->open->inode)
		return true;
	if (ev->outcome.err)
		return ev->outcome.err != EAGAIN || foretold.err == EAGAIN;
	return !asks(c) || c->facts->lock_foretold || arg_at(c, 3)->type != VALUE_STRUCT;
}
