/* SPDX-License-Identifier: MIT */
/*
 * Descriptor tables, descriptors and open files. A table that is copied by fork
 * shares its descriptors with the copy: one is deleted when the last table has
 * closed it. dup makes a descriptor of its own on the same open file.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include "base/banned.h"
#include "fsmodel/tables.h"

/* Open files. */

struct open_file *open_file_new(struct fsmodel *m, enum object_kind object, uint32_t flags)
{
	struct open_file *o = xcalloc(1, sizeof(*o));

	res_init(m, &o->res, RES_OPEN);
	o->object = (uint8_t)object;
	o->flags = flags;
	o->offset_known = true;
	return o;
}

struct open_file *open_file_on(struct fsmodel *m, struct inode *i, uint32_t flags)
{
	struct open_file *o = open_file_new(m, OBJECT_FILE, flags);

	o->inode = i;
	inode_ref(i);
	return o;
}

struct open_file *open_file_unknown(struct fsmodel *m)
{
	struct open_file *o = open_file_new(m, OBJECT_OTHER, O_RDWR);

	o->unknown = true;
	o->offset_known = false;
	return o;
}

void open_file_unref(struct call *c, struct fsmodel *m, struct open_file *o)
{
	if (--o->refs)
		return;
	if (c)
		touch_use(c, &o->res, TOUCH_DELETE);
	if (o->inode && o->inode->locks && c)
		locks_drop_open(c, o);
	stream_detach(c, m, o);
	if (o->found_id)
		ids_remove(&m->tables->found_opens, o->found_id);
	if (o->socket)
		socket_free(m, o);
	if (o->uring)
		uring_free(c, m, o->uring);
	if (o->inode)
		inode_unref(m, o->inode);
	res_bury(m, &o->res, NULL);
}

/* Descriptors. */

struct descriptor *descriptor_new(struct call *c, struct open_file *o, int64_t number)
{
	struct descriptor *d = xcalloc(1, sizeof(*d));

	res_init(c->m, &d->res, RES_FD);
	d->open = o;
	d->number = (int32_t)number;
	d->step = c->m->tables->step;
	o->refs++;
	c->m->totals.nr_fds++;
	touch_use(c, &d->res, TOUCH_CREATE);
	touch_use(c, &o->res, o->refs == 1 ? TOUCH_CREATE : TOUCH_USE);
	return d;
}

void descriptor_unref(struct call *c, struct fsmodel *m, struct descriptor *d)
{
	d->refs--;
	if (c)
		touch_use(c, &d->res, d->refs ? TOUCH_USE : TOUCH_DELETE);
	if (d->refs)
		return;
	m->totals.nr_fds--;
	if (d->open->found == d)
		d->open->found = NULL;
	open_file_unref(c, m, d->open);
	res_bury(m, &d->res, NULL);
}

/* Tables. */

struct fd_table *fd_table_new(bool open_world)
{
	struct fd_table *t = xcalloc(1, sizeof(*t));

	t->refs = 1;
	t->open_world = open_world;
	return t;
}

/* Pointers in the map have room for a bit. */
static struct descriptor *tagged_descriptor(void *value)
{
	return (struct descriptor *)((uintptr_t)value & ~(uintptr_t)1);
}

static uint8_t tagged_flags(const void *value)
{
	return (uintptr_t)value & 1 ? SLOT_CLOEXEC : 0;
}

static void *tagged(struct descriptor *d, bool cloexec)
{
	return (void *)((uintptr_t)d | cloexec);
}

/*
 * Every fork copies a table, so few events can ask for very much. So many copies
 * of descriptors there are at a time; and so many are made, plus some with
 * each event of the trace.
 */
#define COPIES_MAX ((uint64_t)1 << 22)
#define COPIED_MAX ((uint64_t)1 << 23)
#define COPIED_EACH 128

static bool may_copy(struct call *c, uint64_t nr)
{
	struct tables *all = c->m->tables;

	if (all->nr_copies + nr > COPIES_MAX ||
	    all->nr_copied + nr > COPIED_MAX + all->step * COPIED_EACH) {
		contradict(c, CONTRADICTION_PROCESS, false,
			   "too many descriptors to follow into yet another process");
		return false;
	}
	all->nr_copies += nr;
	all->nr_copied += nr;
	return true;
}

struct fd_table *fd_table_copy(struct call *c, struct fd_table *from)
{
	struct fd_table *t = fd_table_new(from->open_world);
	uint32_t i;

	t->nr_copies = from->nr_slots + from->beyond.nr_used;
	if (!may_copy(c, t->nr_copies)) {
		t->nr_copies = 0;
		/* Whatever it uses is open on something. */
		t->open_world = true;
		return t;
	}
	t->lowest = from->lowest;
	t->nr_slots = from->nr_slots;
	if (from->nr_slots) {
		t->slots = xmalloc(from->nr_slots * sizeof(*t->slots));
		memcpy(t->slots, from->slots, from->nr_slots * sizeof(*t->slots));
	}
	for (i = 0; i < t->nr_slots; i++) {
		if (t->slots[i].d)
			t->slots[i].d->refs++;
	}
	ids_copy(&t->beyond, &from->beyond);
	IDS_EACH (&t->beyond, s)
		tagged_descriptor(s->value)->refs++;
	return t;
}

struct descriptor *fd_table_get(const struct fd_table *t, int64_t number)
{
	if (number >= 0 && number < t->nr_slots)
		return t->slots[number].d;
	if (number < FD_DENSE || number > INT32_MAX)
		return NULL;
	return tagged_descriptor(ids_get(&t->beyond, (uint64_t)number));
}

bool fd_table_has(const struct fd_table *t, const struct open_file *o)
{
	uint32_t i;

	for (i = 0; i < t->nr_slots; i++) {
		if (t->slots[i].d && t->slots[i].d->open == o)
			return true;
	}
	IDS_EACH (&t->beyond, s) {
		if (tagged_descriptor(s->value)->open == o)
			return true;
	}
	return false;
}

static void grow_slots(struct fd_table *t, int64_t number)
{
	uint32_t want = t->nr_slots ? t->nr_slots : 16;

	while (want <= number)
		want *= 2;
	if (want == t->nr_slots)
		return;
	t->slots = xrealloc(t->slots, want * sizeof(*t->slots));
	memset(t->slots + t->nr_slots, 0, (want - t->nr_slots) * sizeof(*t->slots));
	t->nr_slots = want;
}

/* number is in range and free. */
static void table_set(struct fd_table *t, int64_t number, struct descriptor *d, bool cloexec)
{
	d->refs++;
	if (number >= FD_DENSE) {
		ids_set(&t->beyond, (uint64_t)number, tagged(d, cloexec));
		return;
	}
	grow_slots(t, number);
	t->slots[number] =
		(struct fd_slot){ .d = d,
				  .flags = (uint8_t)((cloexec ? SLOT_CLOEXEC : 0) | SLOT_SEEN) };
}

static struct descriptor *table_take(struct fd_table *t, int64_t number)
{
	struct descriptor *d;

	if (number >= FD_DENSE)
		return tagged_descriptor(ids_remove(&t->beyond, (uint64_t)number));
	d = t->slots[number].d;
	t->slots[number].d = NULL;
	t->slots[number].flags = SLOT_SEEN;
	if (number < t->lowest)
		t->lowest = (uint32_t)number;
	return d;
}

static bool table_set_cloexec(struct fd_table *t, int64_t number, bool on)
{
	struct descriptor *d = fd_table_get(t, number);

	if (!d)
		return false;
	if (number >= FD_DENSE)
		ids_set(&t->beyond, (uint64_t)number, tagged(d, on));
	else if (on)
		t->slots[number].flags |= SLOT_CLOEXEC;
	else
		t->slots[number].flags &= (uint8_t)~SLOT_CLOEXEC;
	return true;
}

static bool table_cloexec(const struct fd_table *t, int64_t number)
{
	if (number < FD_DENSE)
		return t->slots[number].flags & SLOT_CLOEXEC;
	return tagged_flags(ids_get(&t->beyond, (uint64_t)number));
}

static int64_t table_lowest_free(struct fd_table *t, int64_t min)
{
	int64_t n;

	if (min <= t->lowest) {
		while (t->lowest < t->nr_slots && t->slots[t->lowest].d)
			t->lowest++;
		n = t->lowest;
	} else {
		for (n = min; n < t->nr_slots && t->slots[n].d;)
			n++;
	}
	while (n >= FD_DENSE && ids_get(&t->beyond, (uint64_t)n))
		n++;
	return n;
}

static void drop_slot(struct call *c, struct fsmodel *m, struct fd_table *t, int64_t number)
{
	struct descriptor *d = table_take(t, number);

	if (c && t->has_locks && !(d->open->flags & O_PATH) && d->open->inode &&
	    d->open->inode->locks)
		locks_drop_table(c, t, d->open->inode);
	descriptor_unref(c, m, d);
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* In rising order, so that touches do not depend on the hashing. */
static void close_beyond(struct call *c, struct fd_table *t, uint32_t first, uint32_t last,
			 uint8_t flags)
{
	VEC(uint64_t) numbers = { 0 };
	size_t i;

	/* A few numbers out of many are looked up one by one. */
	if (last - first < t->beyond.nr_used) {
		for (; first <= last; first++) {
			void *value = ids_get(&t->beyond, first);

			if (value && (tagged_flags(value) & flags) == flags)
				drop_slot(c, c->m, t, first);
			if (first == UINT32_MAX)
				break;
		}
		return;
	}
	IDS_EACH (&t->beyond, s) {
		if (s->key >= first && s->key <= last && (tagged_flags(s->value) & flags) == flags)
			VEC_PUSH(&numbers, s->key);
	}
	if (numbers.len)
		qsort(numbers.items, numbers.len, sizeof(*numbers.items), compare_numbers);
	for (i = 0; i < numbers.len; i++)
		drop_slot(c, c->m, t, (int64_t)numbers.items[i]);
	VEC_RELEASE(&numbers);
}

void fd_table_close_range(struct call *c, struct fd_table *t, uint32_t first, uint32_t last,
			  uint8_t flags)
{
	uint32_t i;

	for (i = first; i < t->nr_slots && i <= last; i++) {
		if (t->slots[i].d && (t->slots[i].flags & flags) == flags)
			drop_slot(c, c->m, t, i);
		else if (!flags)
			t->slots[i].flags |= SLOT_SEEN;
	}
	if (t->beyond.nr_used)
		close_beyond(c, t, first, last, flags);
}

void fd_table_drop(struct call *c, struct fsmodel *m, struct fd_table *t)
{
	if (--t->refs)
		return;
	m->tables->nr_copies -= t->nr_copies;
	if (c) {
		fd_table_close_range(c, t, 0, UINT32_MAX, 0);
	} else {
		uint32_t i;

		for (i = 0; i < t->nr_slots; i++) {
			if (t->slots[i].d)
				descriptor_unref(NULL, m, t->slots[i].d);
		}
		IDS_EACH (&t->beyond, s)
			descriptor_unref(NULL, m, tagged_descriptor(s->value));
	}
	free(t->slots);
	ids_release(&t->beyond);
	free(t);
}

/* Descriptors by number. */

static bool may_be_open(const struct call *c, int64_t number)
{
	const struct fd_table *t = c->thread->files;

	if (!t->open_world || c->m->options.execute || number < 0 || number > INT32_MAX)
		return false;
	return number >= t->nr_slots || !(t->slots[number].flags & SLOT_SEEN);
}

static struct descriptor *infer(struct call *c, int64_t number)
{
	if (!may_be_open(c, number) || c->ev->outcome.err == EBADF)
		return NULL;
	if (c->quiet) {
		c->unsure = true;
		return NULL;
	}
	return fd_put_found(c, number);
}

struct descriptor *fd_put_found(struct call *c, int64_t number)
{
	struct descriptor *d = fd_put(c, number, open_file_unknown(c->m), false);

	d->found = true;
	return d;
}

struct descriptor *fd_get(struct call *c, int64_t number)
{
	struct descriptor *d = fd_table_get(c->thread->files, number);

	if (UNLIKELY(!d)) {
		d = infer(c, number);
		if (!d)
			return NULL;
	}
	if (d->open->unknown)
		c->unsure = true;
	touch_use(c, &d->res, TOUCH_USE);
	touch_use(c, &d->open->res, TOUCH_USE);
	return d;
}

struct descriptor *fd_usable(struct call *c, int64_t number)
{
	struct descriptor *d = fd_get(c, number);

	return d && !(d->open->flags & O_PATH) ? d : NULL;
}

struct descriptor *fd_peek(const struct call *c, uint32_t pid, int64_t number)
{
	const struct process *p;

	if (!pid || pid == c->proc->pid)
		return fd_table_get(c->thread->files, number);
	p = process_by_pid(c->m, pid);
	return p && p->threads ? fd_table_get(p->threads->files, number) : NULL;
}

struct inode *fd_inode(struct call *c, struct descriptor *d, uint32_t type)
{
	struct open_file *o = d->open;

	if (o->inode || !o->unknown)
		return o->inode;
	if (c->quiet) {
		c->unsure = true;
		return NULL;
	}
	o->inode = inode_new(c->m, type, 0644);
	inode_ref(o->inode);
	o->inode->inferred = o->inode->initial = true;
	o->inode->size_known = o->inode->mode_known = false;
	o->object = OBJECT_FILE;
	o->unknown = false;
	return o->inode;
}

struct descriptor *fd_put(struct call *c, int64_t number, struct open_file *o, bool cloexec)
{
	struct fd_table *t = c->thread->files;
	struct descriptor *d;

	/* Held, for what is there may be the last on the same open file. */
	o->refs++;
	if (fd_table_get(t, number))
		drop_slot(c, c->m, t, number);
	o->refs--;
	d = descriptor_new(c, o, number);
	table_set(t, number, d, cloexec);
	return d;
}

bool fd_may_be_given(const struct call *c, int64_t number)
{
	return number >= 0 && number <= INT32_MAX && !fd_table_get(c->thread->files, number);
}

int32_t fd_make(struct call *c, struct open_file *o, int64_t wish, int64_t min, bool cloexec)
{
	if (c->m->options.execute) {
		if (wish < min || !fd_may_be_given(c, wish))
			wish = table_lowest_free(c->thread->files, min);
	} else if (wish < 0 || wish > INT32_MAX) {
		contradict(c, CONTRADICTION_ARGUMENT, true, "no descriptor can be %lld",
			   (long long)wish);
		wish = table_lowest_free(c->thread->files, 0);
	} else if (!fd_may_be_given(c, wish)) {
		contradict(c, CONTRADICTION_FD, true, "gave %lld, which should be open already",
			   (long long)wish);
	}
	fd_put(c, wish, o, cloexec);
	return (int32_t)wish;
}

void fd_make_result(struct call *c, struct open_file *o, bool cloexec)
{
	struct outcome *result = &c->m->tables->result;

	result->ret = fd_make(c, o, result->ret, 0, cloexec);
}

void fd_make_object(struct call *c, enum object_kind object, uint32_t flags, bool cloexec)
{
	fd_make_result(c, open_file_new(c->m, object, O_RDWR | flags), cloexec);
}

bool fd_close(struct call *c, int64_t number)
{
	if (!fd_table_get(c->thread->files, number))
		return false;
	drop_slot(c, c->m, c->thread->files, number);
	return true;
}

/* Calls. */

static struct outcome ask_close(struct call *c)
{
	c->fd = fd_get(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	if (c->fd->open->inode)
		touch_use(c, &c->fd->open->inode->res, 0);
	return succeeds(0);
}

static void apply_close(struct call *c)
{
	fd_close(c, value_int_or(arg_at(c, 0), -1));
}

const struct call_row model_close = { ask_close, apply_close, NULL };

#define CLOSE_RANGE_UNSHARE_BIT 2
#define CLOSE_RANGE_CLOEXEC_BIT 4

static struct outcome ask_close_range(struct call *c)
{
	uint32_t first = (uint32_t)value_int_or(arg_at(c, 0), 0);
	uint32_t last = (uint32_t)value_int_or(arg_at(c, 1), 0);
	int64_t flags = value_int_or(arg_at(c, 2), 0);

	if (flags & ~(int64_t)(CLOSE_RANGE_UNSHARE_BIT | CLOSE_RANGE_CLOEXEC_BIT) || first > last)
		return fails(EINVAL);
	return succeeds(0);
}

static void set_cloexec_range(struct call *c, uint32_t first, uint32_t last)
{
	struct fd_table *t = c->thread->files;
	uint32_t i;

	for (i = first; i < t->nr_slots && i <= last; i++) {
		if (t->slots[i].d) {
			touch_use(c, &t->slots[i].d->res, TOUCH_USE);
			t->slots[i].flags |= SLOT_CLOEXEC;
		}
	}
	IDS_EACH (&t->beyond, s) {
		if (s->key >= first && s->key <= last)
			s->value = tagged(tagged_descriptor(s->value), true);
	}
}

static void apply_close_range(struct call *c)
{
	uint32_t first = (uint32_t)value_int_or(arg_at(c, 0), 0);
	uint32_t last = (uint32_t)value_int_or(arg_at(c, 1), 0);
	int64_t flags = value_int_or(arg_at(c, 2), 0);

	if (flags & CLOSE_RANGE_UNSHARE_BIT && c->thread->files->refs > 1) {
		struct fd_table *copy = fd_table_copy(c, c->thread->files);

		fd_table_drop(c, c->m, c->thread->files);
		c->thread->files = copy;
	}
	if (flags & CLOSE_RANGE_CLOEXEC_BIT)
		set_cloexec_range(c, first, last);
	else
		fd_table_close_range(c, c->thread->files, first, last, 0);
}

const struct call_row model_close_range = { ask_close_range, apply_close_range, NULL };

/* dup and its kin: c->n1 is the lowest number that will do. */

static struct outcome ask_dup(struct call *c)
{
	c->fd = fd_get(c, value_int_or(arg_at(c, 0), -1));
	c->any_ret = true;
	return c->fd ? succeeds(0) : fails(EBADF);
}

static void dup_result(struct call *c, int64_t min, bool cloexec)
{
	struct outcome *result = &c->m->tables->result;

	result->ret = fd_make(c, c->fd->open, result->ret, min, cloexec);
}

static void apply_dup(struct call *c)
{
	dup_result(c, 0, false);
}

const struct call_row model_dup = { ask_dup, apply_dup, NULL };

static struct outcome ask_fcntl_dupfd(struct call *c)
{
	int64_t min = value_int_or(arg_at(c, 2), 0);
	struct outcome o = ask_dup(c);

	if (!o.err && (min < 0 || min >= (1 << 30)))
		return fails(EINVAL);
	return o;
}

static void apply_fcntl_dupfd(struct call *c)
{
	dup_result(c, value_int_or(arg_at(c, 2), 0), c->ev->row->id == SC_fcntl_dupfd_cloexec);
}

const struct call_row model_fcntl_dupfd = { ask_fcntl_dupfd, apply_fcntl_dupfd, NULL };
const struct call_row model_fcntl_dupfd_cloexec = { ask_fcntl_dupfd, apply_fcntl_dupfd, NULL };

static struct outcome ask_dup2(struct call *c)
{
	int64_t from = value_int_or(arg_at(c, 0), -1), to = value_int_or(arg_at(c, 1), -1);

	if (c->ev->row->id == SC_dup3) {
		int64_t flags = value_int_or(arg_at(c, 2), 0);

		if (flags & ~(int64_t)O_CLOEXEC || from == to)
			return fails(EINVAL);
	}
	c->fd = fd_get(c, from);
	if (!c->fd || to < 0 || to > INT32_MAX)
		return fails(EBADF);
	return succeeds(to);
}

static void apply_dup2(struct call *c)
{
	int64_t from = value_int_or(arg_at(c, 0), -1), to = value_int_or(arg_at(c, 1), -1);
	bool cloexec = c->ev->row->id == SC_dup3 && value_int_or(arg_at(c, 2), 0) & O_CLOEXEC;

	if (from == to)
		return;
	fd_put(c, to, c->fd->open, cloexec);
}

const struct call_row model_dup2 = { ask_dup2, apply_dup2, NULL };
const struct call_row model_dup3 = { ask_dup2, apply_dup2, NULL };

/* The flag of a descriptor: of one table, though the descriptor is shared. */

static struct outcome ask_fd(struct call *c)
{
	c->fd = fd_get(c, value_int_or(arg_at(c, 0), -1));
	return c->fd ? succeeds(0) : fails(EBADF);
}

static void set_cloexec(struct call *c, bool on)
{
	table_set_cloexec(c->thread->files, value_int_or(arg_at(c, 0), -1), on);
}

static void apply_fcntl_setfd(struct call *c)
{
	set_cloexec(c, value_int_or(arg_at(c, 2), 0) & FD_CLOEXEC);
}

static void apply_fioclex(struct call *c)
{
	set_cloexec(c, true);
}

static void apply_fionclex(struct call *c)
{
	set_cloexec(c, false);
}

const struct call_row model_fcntl_setfd = { ask_fd, apply_fcntl_setfd, NULL };
const struct call_row model_ioctl_fioclex = { ask_fd, apply_fioclex, NULL };
const struct call_row model_ioctl_fionclex = { ask_fd, apply_fionclex, NULL };

static struct outcome ask_fcntl_getfd(struct call *c)
{
	int64_t number = value_int_or(arg_at(c, 0), -1);

	c->fd = fd_get(c, number);
	if (!c->fd)
		return fails(EBADF);
	c->any_ret = c->fd->open->unknown;
	return succeeds(table_cloexec(c->thread->files, number) ? FD_CLOEXEC : 0);
}

static void apply_fcntl_getfd(struct call *c)
{
	set_cloexec(c, c->m->tables->result.ret & FD_CLOEXEC);
}

const struct call_row model_fcntl_getfd = { ask_fcntl_getfd, apply_fcntl_getfd, NULL };

/* The flags of an open file. */

#define SETTABLE_FLAGS ((uint32_t)(O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | O_ASYNC))

static struct outcome ask_setfl(struct call *c)
{
	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	touch_use(c, &c->fd->open->res, TOUCH_OFFSET);
	return succeeds(0);
}

static void apply_fcntl_setfl(struct call *c)
{
	uint32_t flags = (uint32_t)value_int_or(arg_at(c, 2), 0);
	struct open_file *o = c->fd->open;

	o->flags = (o->flags & ~SETTABLE_FLAGS) | (flags & SETTABLE_FLAGS);
}

static void apply_ioctl_fionbio(struct call *c)
{
	if (value_int_or(value_item(arg_at(c, 2), 0), 0))
		c->fd->open->flags |= O_NONBLOCK;
	else
		c->fd->open->flags &= ~(uint32_t)O_NONBLOCK;
}

const struct call_row model_fcntl_setfl = { ask_setfl, apply_fcntl_setfl, NULL };
const struct call_row model_ioctl_fionbio = { ask_setfl, apply_ioctl_fionbio, NULL };

/* The descriptor of another process, NULL when it is not known. See apply_pidfd_open(). */
static struct descriptor *behind_pidfd(struct call *c)
{
	const struct open_file *pidfd = c->fd->open;

	if (pidfd->object != OBJECT_OTHER || !pidfd->pid)
		return NULL;
	return fd_peek(c, pidfd->pid, value_int_or(arg_at(c, 1), -1));
}

static struct outcome ask_pidfd_getfd(struct call *c)
{
	if (value_int_or(arg_at(c, 2), 0))
		return fails(EINVAL);
	c->fd = fd_get(c, value_int_or(arg_at(c, 0), -1));
	c->any_ret = true;
	if (!c->fd)
		return fails(EBADF);
	c->fd2 = behind_pidfd(c);
	if (c->fd2)
		touch_use(c, &c->fd2->res, TOUCH_USE);
	else
		c->unsure = true;
	return succeeds(0);
}

static void apply_pidfd_getfd(struct call *c)
{
	fd_make_result(c, c->fd2 ? c->fd2->open : open_file_unknown(c->m), true);
	if (c->fd2)
		fd_note_copy(c, c->fd2, fd_table_get(c->thread->files, c->m->tables->result.ret));
}

const struct call_row model_pidfd_getfd = { ask_pidfd_getfd, apply_pidfd_getfd, NULL };
