/* SPDX-License-Identifier: MIT */
/*
 * Bytes that move: reads and writes of every form, positions, sizes. A transfer
 * is one side of it: from a descriptor, or to one; calls that copy have two
 * (copy.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/banned.h"
#include "fsmodel/tables.h"
#include "model/fields.h"

#define ADDRESS_MAX ((uint64_t)1 << 47) /* no buffer is longer: EFAULT */
#define VECTORS_MAX 1024

bool can_read(const struct open_file *o)
{
	unsigned int access = o->flags & O_ACCMODE;

	return access == O_RDONLY || access == O_RDWR;
}

bool can_write(const struct open_file *o)
{
	unsigned int access = o->flags & O_ACCMODE;

	return access == O_WRONLY || access == O_RDWR;
}

bool is_stream(const struct open_file *o)
{
	return o->object != OBJECT_FILE || (o->inode && o->inode->type == S_IFIFO);
}

bool is_odd(const struct inode *i)
{
	return i->special || i->type == S_IFCHR;
}

static bool has_size(const struct inode *i)
{
	return i->type == S_IFREG || !i->type;
}

/* Sizes. */

/* The file was found to be this long, or longer. */
static void learn_size(struct call *c, struct inode *i, uint64_t size)
{
	if (size <= i->size)
		return;
	if (i->size_known && has_size(i))
		contradict(c, CONTRADICTION_SIZE, true,
			   "there are %llu bytes where the file should end at %llu",
			   (unsigned long long)size, (unsigned long long)i->size);
	inode_size_at_least(i, size);
}

/* The file was found to end here. */
static void learn_end(struct call *c, struct inode *i, uint64_t size)
{
	if (i->size_known && i->size != size)
		contradict(c, CONTRADICTION_SIZE, true,
			   "the file ends at %llu and not at %llu as it should",
			   (unsigned long long)size, (unsigned long long)i->size);
	inode_size_is(i, size);
}

void set_size(struct call *c, struct inode *i, uint64_t size)
{
	uint64_t from = i->size_known && i->size < size ? i->size : size;

	inode_changes(c, i);
	touch_add(c, &i->res, TOUCH_WRITE | TOUCH_SIZE_WRITE, from, TOUCH_TO_END);
	i->size = size;
	i->size_known = true;
}

/* Whoever reads behind the old end sees a difference, also in the hole that a write may leave. */
void grow_to(struct call *c, struct inode *i, uint64_t end)
{
	touch_add(c, &i->res, TOUCH_WRITE | TOUCH_SIZE_WRITE, i->size < end ? i->size : end, end);
	if (end > i->size)
		i->size = end;
}

/* Streams. */

/* Other threads may use the same end of the stream meanwhile. */
static bool is_shared(const struct call *c, const struct transfer *t, const struct stream *s)
{
	const struct open_file *o = t->d->open;

	return (t->write ? s->writers : s->readers) > 1 || o->refs > 1 || t->d->refs > 1 ||
	       c->thread->files->refs > 1;
}

/* What the call read is what the stream has next. */
static enum held_answer ask_held(const struct call *c, const struct transfer *t,
				 const struct stream *s)
{
	int64_t ret = c->ev->outcome.ret;

	if (c->m->options.execute || ret <= 0 || c->ev->outcome.err || s->counter ||
	    (!is_shared(c, t, s) && !held_is_mixed(&s->held, s->read, s->read + (uint64_t)ret)))
		return HELD_SAME;
	return held_compare(&s->held, &c->m->options.loader, &c->m->tables->held_room, c->ev,
			    s->read, (uint64_t)ret);
}

static struct outcome ask_stream_read(struct call *c, struct transfer *t, struct stream *s)
{
	uint64_t available = s->written > s->read ? s->written - s->read : 0;
	int64_t ret = c->ev->outcome.ret;

	t->from = s->read;
	if (s->foreign || s->packets) {
		c->any_ret = true;
		return succeeds(0);
	}
	if (s->counter) {
		if (t->count < 8)
			return fails(EINVAL);
		if (!available && c->m->options.execute)
			return fails(EAGAIN);
		return succeeds(available ? 8 : 0);
	}
	if (c->m->options.execute && !available && s->writers && t->count)
		return fails(EAGAIN);
	/* It may have come when less was there. */
	if (!c->m->options.execute && ret > 0 && (uint64_t)ret <= available) {
		c->held = s->res.real ? ask_held(c, t, s) : HELD_SAME;
		return succeeds(ret);
	}
	return succeeds((int64_t)(t->count < available ? t->count : available));
}

static struct outcome ask_stream(struct call *c, struct transfer *t)
{
	struct open_file *o = t->d->open;
	struct stream *s = t->write ? o->out : o->in;

	if (o->object == OBJECT_PIPE || (o->inode && o->inode->type == S_IFIFO))
		touch_use(c, &o->res, TOUCH_OFFSET);
	if (!s) {
		c->any_ret = c->unsure = true;
		return succeeds(0);
	}
	if (!t->write)
		return ask_stream_read(c, t, s);
	t->from = s->written;
	if (s->counter && t->count != 8)
		return fails(EINVAL);
	if (!s->readers && !s->foreign && !s->counter && t->count)
		return fails(EPIPE);
	if (!c->m->options.execute)
		c->any_ret = true;
	return succeeds(s->counter ? 8 : (int64_t)t->count);
}

static void apply_stream(struct call *c, const struct transfer *t, uint64_t done)
{
	struct open_file *o = t->d->open;
	struct stream *s = t->write ? o->out : o->in;

	if (!s)
		return;
	c->facts->stream = &s->res;
	c->facts->local_peer = !s->foreign;
	if (t->write) {
		touch_add(c, &s->res, TOUCH_WRITE, s->written, s->written + done);
		if (s->res.real && !s->counter)
			held_put(&s->held, c->ev, s->written, done, is_shared(c, t, s));
		s->written += done;
		s->nr_writes++;
		return;
	}
	c->facts->mixed |= c->held != HELD_SAME;
	/* Its writers went untold (killed, not traced): a replay's are still there, and its reader would wait. */
	if (!done && t->count && s->writers && !s->counter)
		s->res.real = false;
	/* The end of it came from the last writer's close, see stream_detach(). */
	touch_add(c, &s->res, TOUCH_READ, s->read,
		  done || !t->count ? s->read + done : TOUCH_TO_END);
	if (s->read + done > s->written && !s->counter)
		s->res.real = false; /* somebody writes whom the trace does not know */
	if (t->peek)
		return;
	if (s->counter) {
		if (s->read < s->written)
			s->read = s->written;
		return;
	}
	s->read += done;
	held_drop(&s->held, s->read);
	s->nr_reads++;
	if (s->read > s->written && !s->foreign && !s->packets)
		contradict(c, CONTRADICTION_SIZE, false,
			   "%llu bytes were read before they were written",
			   (unsigned long long)(s->read - s->written));
}

/* Files. */

static struct outcome foretell_read(struct call *c, const struct transfer *t, const struct inode *i)
{
	uint64_t left = i->size > t->from ? i->size - t->from : 0;

	if (t->count <= left)
		return succeeds((int64_t)t->count);
	if (!i->size_known || !has_size(i))
		c->any_ret = true;
	return succeeds((int64_t)left);
}

uint64_t range_end(uint64_t from, uint64_t count)
{
	return count > TOUCH_TO_END - from ? TOUCH_TO_END : from + count;
}

void transfer_touch(struct call *c, const struct transfer *t)
{
	struct inode *i = t->d->open->inode;
	uint64_t to;
	uint32_t how;

	if (!i || !t->count || is_odd(i) || is_stream(t->d->open))
		return;
	if (!t->positional && !t->d->open->offset_known) {
		touch_add(c, &i->res, t->write ? TOUCH_WRITE : TOUCH_READ | TOUCH_SIZE_READ, 0,
			  TOUCH_TO_END);
		return;
	}
	to = range_end(t->from, t->count);
	if (t->write)
		how = TOUCH_WRITE | (t->append ? TOUCH_SIZE_READ : 0);
	else
		how = TOUCH_READ | (to > i->size || !has_size(i) ? TOUCH_SIZE_READ : 0);
	touch_add(c, &i->res, how, t->from, to);
}

struct outcome transfer_ask(struct call *c, struct transfer *t)
{
	struct open_file *o = t->d->open;
	struct inode *i = o->inode;

	if (o->unknown) {
		c->unsure = c->any_ret = true;
		if (!t->positional)
			touch_use(c, &o->res, TOUCH_OFFSET);
		return succeeds(0);
	}
	if (t->positional && is_stream(o))
		return fails(ESPIPE);
	if (!(t->write ? can_write(o) : can_read(o)))
		return fails(EBADF);
	if (is_stream(o))
		return ask_stream(c, t);
	if (!t->positional)
		touch_use(c, &o->res, TOUCH_OFFSET);
	if (is_odd(i)) {
		c->any_ret = true;
		return succeeds(0);
	}
	t->from = t->positional ? (uint64_t)t->offset : o->offset;
	if ((int64_t)(t->from + t->count) < 0)
		return fails(EINVAL);
	if (i->type == S_IFDIR)
		return fails(EISDIR);
	if (t->count > COUNT_MAX)
		t->count = COUNT_MAX;
	if (t->write && (t->append || o->flags & O_APPEND)) {
		t->append = true;
		t->from = i->size;
		if (!i->size_known)
			c->any_ret = true;
	}
	transfer_touch(c, t);
	if (!t->positional && !o->offset_known) {
		c->any_ret = true;
		return succeeds((int64_t)t->count);
	}
	if (t->write) {
		/* A full device cuts it short. */
		if (!c->m->options.execute)
			c->any_ret = true;
		return succeeds((int64_t)t->count);
	}
	return foretell_read(c, t, i);
}

static void finish_read(struct call *c, const struct transfer *t, struct inode *i, uint64_t done)
{
	uint64_t end = range_end(t->from, done);

	if (done > t->count) {
		contradict(c, CONTRADICTION_ARGUMENT, false, "%llu bytes where %llu were asked for",
			   (unsigned long long)done, (unsigned long long)t->count);
		return;
	}
	if (done)
		learn_size(c, i, end);
	if (!has_size(i) || done == t->count)
		return;
	c->facts->end = end;
	/* A signal may end a read between its pages; nothing at all is the end of the file. */
	if (!i->size_known ? end >= i->size : !done && t->from < i->size)
		learn_end(c, i, end);
}

static void finish_write(struct call *c, const struct transfer *t, struct inode *i, uint64_t done)
{
	uint64_t end = range_end(t->from, done);

	if (!has_size(i) || !done)
		return;
	inode_changes(c, i);
	if (end > i->size || t->append)
		grow_to(c, i, end);
}

void transfer_apply(struct call *c, const struct transfer *t, uint64_t done)
{
	struct open_file *o = t->d->open;
	struct inode *i = o->inode;

	if (is_stream(o)) {
		apply_stream(c, t, done);
		return;
	}
	c->facts->offset = t->from;
	if (is_odd(i))
		return;
	if (!t->positional && !o->offset_known)
		return;
	if (t->write)
		finish_write(c, t, i, done);
	else
		finish_read(c, t, i, done);
	/* Nothing is appended by an empty write: its offset stays. */
	if (!t->positional && (done || !t->append))
		o->offset = range_end(t->from, done);
}

/* read, write and their kin. */

int sum_vector(const struct value *v, uint64_t *ret)
{
	uint64_t sum = 0;
	uint32_t n;

	if (v->type != VALUE_LIST)
		return 1;
	if (v->count > VECTORS_MAX)
		return -EINVAL;
	for (n = 0; n < v->count; n++) {
		/* iov_len is the second field of every kind of vector. */
		int64_t len = value_int_or(value_field(&v->items[n], FIELD_OF(iovec, iov_len)), 0);

		if (len < 0 || sum + (uint64_t)len > (uint64_t)INT64_MAX)
			return -EINVAL;
		sum += (uint64_t)len;
	}
	*ret = sum;
	return 0;
}

uint64_t vector_bytes(const struct value *iov)
{
	uint64_t sum = 0;

	return iov && !sum_vector(iov, &sum) ? sum : 0;
}

static bool may_use_own_offset(unsigned int id)
{
	return id == SC_preadv2 || id == SC_pwritev2;
}

static void fill_flags(const struct call *c, const struct row_info *info, struct transfer *t)
{
	int64_t flags;

	if (info->flags < 0)
		return;
	flags = value_int_or(arg_at(c, (unsigned int)info->flags), 0);
	if (row_class(c->ev->row) == C_NET)
		t->peek = flags & 2; /* MSG_PEEK */
	else
		t->append = t->write && flags & 0x10; /* RWF_APPEND */
}

struct outcome ask_data(struct call *c)
{
	const struct row *row = c->ev->row;
	const struct row_info *info = &c->m->tables->rows[row->id];
	struct transfer *t = &c->t1;
	int r = 0;

	t->write = row->result == RESULT_BYTES_WRITTEN;
	if (info->offset >= 0) {
		t->offset = value_int_or(arg_at(c, (unsigned int)info->offset), 0);
		t->positional = t->offset != -1 || !may_use_own_offset(row->id);
		if (t->positional && t->offset < 0)
			return fails(EINVAL);
	}
	t->d = fd_usable(c, value_int_or(arg_at(c, (unsigned int)info->fd), -1));
	if (!t->d)
		return fails(EBADF);
	if (row_class(row) == C_NET && t->d->open->object != OBJECT_SOCKET && !t->d->open->unknown)
		return fails(ENOTSOCK);
	if (info->vec >= 0)
		r = sum_vector(arg_at(c, (unsigned int)info->vec), &t->count);
	else if (info->count >= 0)
		t->count = (uint64_t)value_int_or(arg_at(c, (unsigned int)info->count), 0);
	if (r == 1) {
		t->count = c->ev->outcome.ret > 0 ? (uint64_t)c->ev->outcome.ret : 0;
		c->any_ret = true;
	}
	fill_flags(c, info, t);
	if (t->count > ADDRESS_MAX && !t->d->open->unknown &&
	    !(t->positional && is_stream(t->d->open)) &&
	    (t->write ? can_write(t->d->open) : can_read(t->d->open)))
		return fails(EFAULT);
	if (r < 0 && (t->write ? can_write(t->d->open) : can_read(t->d->open)))
		return fails(EINVAL);
	/* Of vectors an empty one is seen before what the file is. */
	if (info->vec >= 0 && !r && !t->count &&
	    (t->write ? can_write(t->d->open) : can_read(t->d->open)) &&
	    !(t->positional && is_stream(t->d->open))) {
		t->d = NULL;
		return succeeds(0);
	}
	return transfer_ask(c, t);
}

uint64_t bytes_done(const struct call *c, uint64_t count)
{
	int64_t ret = c->m->tables->result.ret;

	if (ret < 0)
		return 0;
	return (uint64_t)ret > count ? count : (uint64_t)ret;
}

void apply_data(struct call *c)
{
	const struct transfer *t = &c->t1;
	uint64_t done;

	if (!t->d || t->d->open->unknown)
		return;
	/* A datagram tells its length with MSG_TRUNC even when it did not fit. */
	if (row_class(c->ev->row) != C_NET && c->m->tables->result.ret > (int64_t)t->count &&
	    !(c->any_ret && !t->count))
		contradict(c, CONTRADICTION_ARGUMENT, false, "%lld bytes where %llu were asked for",
			   (long long)c->m->tables->result.ret, (unsigned long long)t->count);
	done = bytes_done(c, t->count);
	transfer_apply(c, t, done);
}

/* Positions. */

static struct outcome seek_to(struct call *c, const struct inode *i, int64_t offset, int64_t whence)
{
	const struct open_file *o = c->fd->open;
	int64_t base = 0, sum;

	switch (whence) {
	case SEEK_SET:
		break;
	case SEEK_CUR:
		if (!o->offset_known)
			c->any_ret = true;
		base = (int64_t)o->offset;
		break;
	case SEEK_END:
		touch_use(c, (struct res *)&i->res, TOUCH_SIZE_READ);
		if (!i->size_known)
			c->any_ret = true;
		base = (int64_t)i->size;
		break;
	case SEEK_DATA:
	case SEEK_HOLE:
		touch_add(c, (struct res *)&i->res, TOUCH_READ | TOUCH_SIZE_READ,
			  offset < 0 ? 0 : (uint64_t)offset, TOUCH_TO_END);
		if (i->size_known && (uint64_t)offset >= i->size)
			return fails(ENXIO);
		c->any_ret = true;
		return succeeds(offset);
	default:
		return fails(EINVAL);
	}
	if (__builtin_add_overflow(base, offset, &sum) || sum < 0) {
		if (c->any_ret)
			c->unsure = true;
		return fails(EINVAL);
	}
	return succeeds(sum);
}

static struct outcome ask_seek(struct call *c, int64_t offset, int64_t whence)
{
	struct inode *i;

	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	touch_use(c, &c->fd->open->res, TOUCH_OFFSET);
	if (whence < SEEK_SET || whence > SEEK_HOLE)
		return fails(EINVAL);
	/* What can be sought in is a file. */
	if (c->fd->open->unknown && c->want_ok)
		(void)fd_inode(c, c->fd, 0);
	if (c->fd->open->unknown) {
		c->unsure = c->any_ret = true;
		return succeeds(0);
	}
	switch (c->fd->open->object) {
	case OBJECT_EVENTFD:
	case OBJECT_EPOLL:
		return succeeds(0); /* nothing is moved, nothing is refused */
	case OBJECT_INOTIFY:
	case OBJECT_OTHER:
		c->unsure = c->any_ret = true;
		return succeeds(0);
	default:
		if (is_stream(c->fd->open))
			return fails(ESPIPE);
	}
	i = c->fd->open->inode;
	if (is_odd(i) || i->type == S_IFDIR || i->type == S_IFBLK) {
		c->unsure = c->any_ret = true;
		return succeeds(offset);
	}
	return seek_to(c, i, offset, whence);
}

static void finish_seek(struct call *c, int64_t offset, int64_t whence, int64_t to)
{
	struct open_file *o = c->fd->open;
	struct inode *i = o->inode;

	if (!i || to < 0)
		return;
	if (whence == SEEK_END && i->type != S_IFDIR && has_size(i) && !is_odd(i)) {
		int64_t size;

		if (!__builtin_sub_overflow(to, offset, &size) && size >= 0) {
			learn_end(c, i, (uint64_t)size);
			c->facts->end = (uint64_t)size;
		}
	}
	c->facts->offset = (uint64_t)to;
	if (whence == SEEK_CUR && !offset && o->offset_known && o->offset != (uint64_t)to) {
		bool shared = o->refs > 1 || c->fd->refs > 1;

		contradict(c, CONTRADICTION_SIZE, !shared,
			   "the offset is %llu and not %llu as it should", (unsigned long long)to,
			   (unsigned long long)o->offset);
		/* It may be older than what others did meanwhile. */
		if (shared)
			return;
	}
	o->offset = (uint64_t)to;
	o->offset_known = true;
}

static struct outcome ask_lseek(struct call *c)
{
	return ask_seek(c, value_int_or(arg_at(c, 1), 0), value_int_or(arg_at(c, 2), -1));
}

static void apply_lseek(struct call *c)
{
	finish_seek(c, value_int_or(arg_at(c, 1), 0), value_int_or(arg_at(c, 2), -1),
		    c->m->tables->result.ret);
}

const struct call_row model_lseek = { ask_lseek, apply_lseek, NULL };

static int64_t llseek_offset(const struct call *c)
{
	uint64_t high = (uint64_t)value_int_or(arg_at(c, 1), 0);
	uint64_t low = (uint64_t)value_int_or(arg_at(c, 2), 0);

	return (int64_t)(high << 32 | (low & UINT32_MAX));
}

static struct outcome ask_llseek(struct call *c)
{
	struct outcome o = ask_seek(c, llseek_offset(c), value_int_or(arg_at(c, 4), -1));

	if (!o.err) {
		c->n1 = (uint64_t)o.ret;
		o.ret = 0;
	}
	return o;
}

static void apply_llseek(struct call *c)
{
	int64_t to;

	if (!value_get_int(value_item(arg_at(c, 3), 0), &to) || c->m->options.execute)
		to = (int64_t)c->n1;
	finish_seek(c, llseek_offset(c), value_int_or(arg_at(c, 4), -1), to);
}

const struct call_row model__llseek = { ask_llseek, apply_llseek, NULL };

/* Sizes by call. */

static struct outcome ask_ftruncate(struct call *c)
{
	int64_t length = value_int_or(arg_at(c, 1), 0);
	struct inode *i;

	if (length < 0)
		return fails(EINVAL);
	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	i = fd_inode(c, c->fd, S_IFREG);
	if (c->unsure && !i)
		return succeeds(0);
	if (!i || (i->type && i->type != S_IFREG) || !can_write(c->fd->open))
		return fails(EINVAL);
	return succeeds(0);
}

static void apply_ftruncate(struct call *c)
{
	if (c->fd->open->inode)
		set_size(c, c->fd->open->inode, (uint64_t)value_int_or(arg_at(c, 1), 0));
}

const struct call_row model_ftruncate = { ask_ftruncate, apply_ftruncate, NULL };

/* Room. */

enum fallocate_mode {
	ROOM_KEEP_SIZE = 1,
	ROOM_PUNCH_HOLE = 2,
	ROOM_COLLAPSE = 8,
	ROOM_ZERO = 0x10,
	ROOM_INSERT = 0x20,
	ROOM_UNSHARE = 0x40,
};

static int room_mode_error(uint64_t mode)
{
	switch (mode & ~(uint64_t)ROOM_KEEP_SIZE) {
	case 0:
	case ROOM_UNSHARE:
	case ROOM_ZERO:
		return 0;
	case ROOM_PUNCH_HOLE:
		return mode & ROOM_KEEP_SIZE ? 0 : EOPNOTSUPP;
	case ROOM_COLLAPSE:
	case ROOM_INSERT:
		return mode & ROOM_KEEP_SIZE ? EOPNOTSUPP : 0;
	default:
		return EOPNOTSUPP;
	}
}

static struct outcome ask_room(struct call *c, uint64_t mode, int64_t offset, int64_t len)
{
	struct inode *i;
	int err;

	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	if (offset < 0 || len <= 0)
		return fails(EINVAL);
	err = room_mode_error(mode);
	if (err)
		return fails(err);
	i = fd_inode(c, c->fd, S_IFREG);
	if (c->unsure && !i)
		return succeeds(0);
	if (!can_write(c->fd->open))
		return fails(EBADF);
	if (is_stream(c->fd->open))
		return fails(c->fd->open->object == OBJECT_PIPE || i ? ESPIPE : ENODEV);
	if (i->type == S_IFDIR)
		return fails(EISDIR);
	if (i->type && i->type != S_IFREG && i->type != S_IFBLK)
		return fails(ENODEV);
	if (offset > INT64_MAX - len)
		return fails(EFBIG);
	if (mode & (ROOM_COLLAPSE | ROOM_INSERT)) {
		uint64_t end =
			mode & ROOM_COLLAPSE ? (uint64_t)offset + (uint64_t)len : (uint64_t)offset;

		/* Whether blocks are of that size is the file system's. */
		c->unsure = true;
		if (i->size_known && end >= i->size)
			return fails(EINVAL);
	}
	c->n1 = mode;
	c->n2 = (uint64_t)offset;
	c->n3 = (uint64_t)len;
	return succeeds(0);
}

static void apply_room(struct call *c)
{
	struct inode *i = c->fd->open->inode;
	uint64_t mode = c->n1, offset = c->n2, end = c->n2 + c->n3;

	if (!i || is_odd(i))
		return;
	inode_changes(c, i);
	if (mode & (ROOM_COLLAPSE | ROOM_INSERT)) {
		touch_add(c, &i->res, TOUCH_WRITE | TOUCH_SIZE_WRITE, offset, TOUCH_TO_END);
		if (mode & ROOM_INSERT)
			i->size += c->n3;
		else if (i->size >= end)
			i->size -= c->n3;
		return;
	}
	if (mode & (ROOM_PUNCH_HOLE | ROOM_ZERO))
		touch_add(c, &i->res, TOUCH_WRITE, offset, end);
	if (!(mode & ROOM_KEEP_SIZE) && has_size(i) && end > i->size)
		grow_to(c, i, end);
	else
		touch_use(c, &i->res, TOUCH_SIZE_READ);
}

static struct outcome ask_fallocate(struct call *c)
{
	return ask_room(c, (uint64_t)value_int_or(arg_at(c, 1), 0), value_int_or(arg_at(c, 2), 0),
			value_int_or(arg_at(c, 3), 0));
}

const struct call_row model_fallocate = { ask_fallocate, apply_room, NULL };

/* The older forms by ioctl, with a position relative to the start, the offset or the end. */
static struct outcome ask_space(struct call *c)
{
	const struct value *arg = arg_at(c, 2);
	int64_t whence = value_int_or(field_of(arg, STRUCT_space_resv, "l_whence"), SEEK_SET);
	int64_t start = value_int_or(field_of(arg, STRUCT_space_resv, "l_start"), 0);
	int64_t len = value_int_or(field_of(arg, STRUCT_space_resv, "l_len"), 0);
	const struct descriptor *d = fd_peek(c, 0, value_int_or(arg_at(c, 0), -1));
	uint64_t mode = ROOM_KEEP_SIZE;

	if (c->ev->row->id == SC_ioctl_fs_ioc_unresvsp ||
	    c->ev->row->id == SC_ioctl_fs_ioc_unresvsp64)
		mode |= ROOM_PUNCH_HOLE;
	if (c->ev->row->id == SC_ioctl_fs_ioc_zero_range)
		mode |= ROOM_ZERO;
	if (d && whence == SEEK_CUR)
		(void)__builtin_add_overflow(start, (int64_t)d->open->offset, &start);
	if (d && d->open->inode && whence == SEEK_END)
		(void)__builtin_add_overflow(start, (int64_t)d->open->inode->size, &start);
	return ask_room(c, mode, start, len);
}

const struct call_row model_ioctl_fs_ioc_resvsp = { ask_space, apply_room, NULL };
const struct call_row model_ioctl_fs_ioc_resvsp64 = { ask_space, apply_room, NULL };
const struct call_row model_ioctl_fs_ioc_unresvsp = { ask_space, apply_room, NULL };
const struct call_row model_ioctl_fs_ioc_unresvsp64 = { ask_space, apply_room, NULL };
const struct call_row model_ioctl_fs_ioc_zero_range = { ask_space, apply_room, NULL };

static struct outcome ask_preallocate(struct call *c)
{
	const struct value *arg = arg_at(c, 1);
	int64_t start = value_int_or(field_of(arg, STRUCT_mac_fstore, "fst_offset"), 0);
	int64_t len = value_int_or(field_of(arg, STRUCT_mac_fstore, "fst_length"), 1);

	c->unsure = true;
	return ask_room(c, ROOM_KEEP_SIZE, start, len);
}

const struct call_row model_mac_fcntl_preallocate = { ask_preallocate, apply_room, NULL };

/* A block device loses what it holds there. */

static struct outcome ask_discard(struct call *c)
{
	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	return c->fd ? succeeds(0) : fails(EBADF);
}

static void apply_discard(struct call *c)
{
	uint64_t from = (uint64_t)value_int_or(value_item(arg_at(c, 2), 0), 0);
	uint64_t len = (uint64_t)value_int_or(value_item(arg_at(c, 2), 1), 0);

	if (c->fd->open->inode)
		touch_add(c, &c->fd->open->inode->res, TOUCH_WRITE, from, range_end(from, len));
}

const struct call_row model_ioctl_blkdiscard = { ask_discard, apply_discard, NULL };
const struct call_row model_ioctl_blksecdiscard = { ask_discard, apply_discard, NULL };
const struct call_row model_ioctl_blkzeroout = { ask_discard, apply_discard, NULL };
