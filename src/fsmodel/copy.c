/* SPDX-License-Identifier: MIT */
/*
 * Calls about the contents of files that neither read nor write them for the
 * caller: copies between descriptors, shared blocks, advice, what makes data
 * durable, listings.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include "base/banned.h"
#include "fsmodel/names.h"
#include "fsmodel/tables.h"

/* From one descriptor to another. */

/* An offset behind a pointer: positional; without one: the file's own. */
static void take_offset(struct transfer *t, const struct value *ptr)
{
	t->positional = value_get_int(value_item(ptr, 0), &t->offset);
}

/* Both sides; what the first gives is what the second may take. */
static struct outcome ask_copy(struct call *c, uint64_t count)
{
	struct outcome in, out;
	bool any;

	c->t1.count = c->t2.count = count < COUNT_MAX ? count : COUNT_MAX;
	c->t2.write = true;
	in = transfer_ask(c, &c->t1);
	if (in.err)
		return in;
	any = c->any_ret;
	c->any_ret = false;
	out = transfer_ask(c, &c->t2);
	if (out.err)
		return out;
	/* It may be less than there is room for, but what is in a pipe has been written. */
	c->any_ret =
		any || (c->any_ret && (!is_stream(c->t1.d->open) || c->ev->outcome.ret <= in.ret));
	return succeeds(in.ret < out.ret ? in.ret : out.ret);
}

static void apply_copy(struct call *c)
{
	uint64_t done = bytes_done(c, c->t1.count);

	if (!c->t1.d || !c->t2.d)
		return;
	if (!c->t1.d->open->unknown)
		transfer_apply(c, &c->t1, done);
	if (!c->t2.d->open->unknown)
		transfer_apply(c, &c->t2, done);
}

static struct outcome ask_copy_file_range(struct call *c)
{
	uint64_t len = (uint64_t)value_int_or(arg_at(c, 4), 0);
	const struct open_file *in, *out;

	c->t1.d = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->t1.d)
		return fails(EBADF);
	c->t2.d = fd_usable(c, value_int_or(arg_at(c, 2), -1));
	if (!c->t2.d)
		return fails(EBADF);
	take_offset(&c->t1, arg_at(c, 1));
	take_offset(&c->t2, arg_at(c, 3));
	if (value_int_or(arg_at(c, 5), 0))
		return fails(EINVAL);
	in = c->t1.d->open;
	out = c->t2.d->open;
	if (in->unknown || out->unknown)
		return ask_copy(c, len);
	if ((in->inode && in->inode->type == S_IFDIR) ||
	    (out->inode && out->inode->type == S_IFDIR))
		return fails(EISDIR);
	if (is_stream(in) || is_stream(out))
		return fails(EINVAL);
	if (!can_read(in) || !can_write(out) || out->flags & O_APPEND)
		return fails(EBADF);
	/* Devices may differ within one file system (btrfs): then it can be foretold only to fail. */
	if (in->inode->dev && out->inode->dev && in->inode->dev != out->inode->dev &&
	    (c->m->options.execute || c->ev->outcome.err == EXDEV))
		return fails(by_environment(c, EXDEV));
	if ((c->t1.positional && c->t1.offset < 0) || (c->t2.positional && c->t2.offset < 0))
		return fails(EINVAL);
	if (in->inode == out->inode && len) {
		uint64_t a = c->t1.positional ? (uint64_t)c->t1.offset : in->offset;
		uint64_t b = c->t2.positional ? (uint64_t)c->t2.offset : out->offset;
		uint64_t n = in->inode->size > a && in->inode->size - a < len ? in->inode->size - a
			     : in->inode->size > a			      ? len
									      : 0;

		if (n && a < b + n && b < a + n)
			return fails(EINVAL);
	}
	return ask_copy(c, len);
}

const struct call_row model_copy_file_range = { ask_copy_file_range, apply_copy, NULL };

static struct outcome ask_sendfile(struct call *c)
{
	uint64_t count = (uint64_t)value_int_or(arg_at(c, 3), 0);

	take_offset(&c->t1, arg_at(c, 2));
	c->t1.d = fd_usable(c, value_int_or(arg_at(c, 1), -1));
	if (!c->t1.d || (!c->t1.d->open->unknown && !can_read(c->t1.d->open)))
		return fails(EBADF);
	if (c->t1.positional && is_stream(c->t1.d->open) && !c->t1.d->open->unknown)
		return fails(ESPIPE);
	c->t2.d = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->t2.d || (!c->t2.d->open->unknown && !can_write(c->t2.d->open)))
		return fails(EBADF);
	if (c->t1.positional && c->t1.offset < 0)
		return fails(EINVAL);
	if (c->t2.d->open->flags & O_APPEND && !c->t2.d->open->unknown)
		return fails(EINVAL);
	return ask_copy(c, count);
}

const struct call_row model_sendfile = { ask_sendfile, apply_copy, NULL };

static bool is_pipe(const struct open_file *o)
{
	return o->unknown || o->object == OBJECT_PIPE || (o->inode && o->inode->type == S_IFIFO);
}

static struct outcome ask_splice(struct call *c)
{
	bool tee = c->ev->row->id == SC_tee;
	uint64_t len = (uint64_t)value_int_or(arg_at(c, tee ? 2 : 4), 0);

	if (!len)
		return succeeds(0);
	c->t1.d = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	c->t2.d = c->t1.d ? fd_usable(c, value_int_or(arg_at(c, tee ? 1 : 2), -1)) : NULL;
	if (!c->t1.d || !c->t2.d)
		return fails(EBADF);
	if (tee) {
		c->t1.peek = true;
		if (!is_pipe(c->t1.d->open) || !is_pipe(c->t2.d->open))
			return fails(EINVAL);
	} else {
		take_offset(&c->t1, arg_at(c, 1));
		take_offset(&c->t2, arg_at(c, 3));
		if (!is_pipe(c->t1.d->open) && !is_pipe(c->t2.d->open))
			return fails(EINVAL);
	}
	return ask_copy(c, len);
}

const struct call_row model_splice = { ask_splice, apply_copy, NULL };
const struct call_row model_tee = { ask_splice, apply_copy, NULL };

static struct outcome ask_vmsplice(struct call *c)
{
	struct transfer *t = &c->t1;

	t->d = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!t->d)
		return fails(EBADF);
	if (!is_pipe(t->d->open))
		return fails(EBADF);
	t->write = can_write(t->d->open);
	if (sum_vector(arg_at(c, 1), &t->count) < 0)
		return fails(EINVAL);
	return transfer_ask(c, t);
}

const struct call_row model_vmsplice = { ask_vmsplice, apply_data, NULL };

/* Blocks that two files come to share. */

static struct outcome ask_clone_range(struct call *c)
{
	const struct value *arg = arg_at(c, 2);
	bool whole = c->ev->row->id == SC_ioctl_ficlone;
	int64_t src =
		value_int_or(whole ? arg : field_of(arg, STRUCT_file_clone_range, "src_fd"), -1);

	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	c->fd2 = c->fd ? fd_usable(c, src) : NULL;
	if (!c->fd || !c->fd2)
		return fails(EBADF);
	if (!whole) {
		c->n1 = (uint64_t)value_int_or(field_of(arg, STRUCT_file_clone_range, "src_offset"),
					       0);
		c->n2 = (uint64_t)value_int_or(
			field_of(arg, STRUCT_file_clone_range, "dest_offset"), 0);
		c->n3 = (uint64_t)value_int_or(field_of(arg, STRUCT_file_clone_range, "src_length"),
					       0);
	}
	/* Few file systems can, and each has conditions of its own. */
	c->unsure = true;
	return succeeds(0);
}

static void apply_clone_range(struct call *c)
{
	struct inode *to = c->fd->open->inode, *from = c->fd2->open->inode;
	uint64_t len = c->n3, end;

	if (!to || !from)
		return;
	if (!len)
		len = from->size > c->n1 ? from->size - c->n1 : 0;
	inode_changes(c, to);
	touch_add(c, &from->res, TOUCH_READ | TOUCH_SIZE_READ, c->n1, range_end(c->n1, len));
	end = range_end(c->n2, len);
	touch_add(c, &to->res, TOUCH_WRITE, c->n2, end);
	if (end > to->size)
		grow_to(c, to, end);
}

const struct call_row model_ioctl_ficlone = { ask_clone_range, apply_clone_range, NULL };
const struct call_row model_ioctl_ficlonerange = { ask_clone_range, apply_clone_range, NULL };

static struct outcome ask_dedupe(struct call *c)
{
	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	c->unsure = true;
	return c->fd ? succeeds(0) : fails(EBADF);
}

/* Nothing changes but where bytes are kept; equal bytes are needed for that. */
static void apply_dedupe(struct call *c)
{
	const struct value *arg = arg_at(c, 2);
	const struct value *list = field_of(arg, STRUCT_file_dedupe_range, "info");
	uint64_t from =
		(uint64_t)value_int_or(field_of(arg, STRUCT_file_dedupe_range, "src_offset"), 0);
	uint64_t len =
		(uint64_t)value_int_or(field_of(arg, STRUCT_file_dedupe_range, "src_length"), 0);
	struct value *item;
	uint32_t n;

	if (c->fd->open->inode)
		touch_add(c, &c->fd->open->inode->res, TOUCH_READ, from, range_end(from, len));
	for (n = 0; (item = value_item(list, n)); n++) {
		const struct descriptor *d = fd_peek(
			c, 0,
			value_int_or(field_of(item, STRUCT_file_dedupe_range_info, "dest_fd"), -1));
		uint64_t to = (uint64_t)value_int_or(
			field_of(item, STRUCT_file_dedupe_range_info, "dest_offset"), 0);

		if (d && d->open->inode)
			touch_add(c, &d->open->inode->res, TOUCH_READ, to, range_end(to, len));
	}
}

const struct call_row model_ioctl_fideduperange = { ask_dedupe, apply_dedupe, NULL };

/* Advice, which only pipes refuse. */

static struct outcome ask_advice(struct call *c)
{
	const struct open_file *o;

	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	o = c->fd->open;
	if (c->ev->row->id == SC_readahead)
		return is_stream(o) || !can_read(o) ? fails(can_read(o) ? EINVAL : EBADF)
						    : succeeds(0);
	if (o->object == OBJECT_PIPE || (o->inode && o->inode->type == S_IFIFO))
		return fails(ESPIPE);
	if (value_int_or(arg_at(c, 2), 0) < 0)
		return fails(EINVAL);
	return succeeds(0);
}

const struct call_row model_fadvise64 = { ask_advice, NULL, NULL };
const struct call_row model_readahead = { ask_advice, NULL, NULL };

/* Making data durable: after the writes before it, whatever comes after. */

struct outcome ask_sync(struct call *c)
{
	const struct row *row = c->ev->row;
	const struct row_info *info = &c->m->tables->rows[row->id];
	uint64_t from = 0, to = TOUCH_TO_END;
	uint32_t whole = TOUCH_SYNC;
	struct inode *i;

	if (info->fd < 0) {
		touch_use(c, &c->m->storage, TOUCH_READ);
		return succeeds(0);
	}
	c->fd = fd_usable(c, value_int_or(arg_at(c, (unsigned int)info->fd), -1));
	if (!c->fd)
		return fails(EBADF);
	if (c->fd->open->unknown)
		return succeeds(0);
	if (row->id == SC_sync_file_range) {
		int64_t offset = value_int_or(arg_at(c, 1), 0), n = value_int_or(arg_at(c, 2), 0);

		if (value_int_or(arg_at(c, 3), 0) & ~(int64_t)7 || offset < 0 || n < 0 ||
		    offset > INT64_MAX - n)
			return fails(EINVAL);
		if (is_stream(c->fd->open))
			return fails(ESPIPE);
		from = (uint64_t)offset;
		to = n ? from + (uint64_t)n : TOUCH_TO_END;
		whole = 0; /* starts or awaits the writing of these bytes alone */
	}
	if (is_stream(c->fd->open))
		return row->id == SC_syncfs ? succeeds(0) : fails(EINVAL); /* of no storage */
	if (row->id == SC_syncfs) {
		touch_use(c, &c->m->storage, TOUCH_READ);
		return succeeds(0);
	}
	i = c->fd->open->inode;
	if (is_odd(i)) {
		c->unsure = true;
		return succeeds(0);
	}
	if (i->type == S_IFDIR)
		touch_use(c, &i->res, TOUCH_LIST | TOUCH_META_READ | TOUCH_SYNC);
	else
		touch_add(c, &i->res, TOUCH_READ | TOUCH_SIZE_READ | TOUCH_META_READ | whole, from,
			  to);
	return succeeds(0);
}

/* Listings. */

static bool row_lists(const struct row *row)
{
	return row->id == SC_getdents || row->id == SC_getdents64;
}

/* The name of the n-th entry of a listing, its length 0 for . and .. and what no name is; NULL: there is none. */
static const char *listed_name(const struct call *c, uint32_t n, const struct value **ret_item,
			       size_t *ret_len)
{
	enum struct_id id = c->ev->row->id == SC_getdents ? STRUCT_dirent_old : STRUCT_dirent64;
	const struct value *name;

	*ret_item = value_item(arg_at(c, 1), n);
	if (!*ret_item)
		return NULL;
	name = field_of(*ret_item, id, "d_name");
	*ret_len = 0;
	if (!name || name->type != VALUE_DATA || !name->data->bytes)
		return "";
	if (name->data->kept_bytes <= 255 && name->data->kept_bytes >= name->data->len_bytes &&
	    !(name->data->kept_bytes <= 2 &&
	      !memcmp(name->data->bytes, "..", name->data->kept_bytes)))
		*ret_len = name->data->kept_bytes;
	return (const char *)name->data->bytes;
}

/* So many bytes an entry takes at most: where they were left, all was listed that there was. */
#define DIRENT_MAX_BYTES 280

/*
 * Whether the listing shows a name that is not there, or lacks one that is. Only one
 * that begins with the first entry and leaves room in its buffer shows all of them.
 */
static bool listing_differs(const struct call *c, const struct inode *dir)
{
	uint64_t room = (uint64_t)value_int_or(arg_at(c, 2), 0);
	bool whole = false;
	uint32_t n, nr = 0;
	const struct value *item;
	const char *name;
	size_t len;

	if (!dir->listed || dir->special || c->m->options.execute)
		return false;
	for (n = 0; (name = listed_name(c, n, &item, &len)); n++) {
		const struct entry *e;

		if (!len) {
			whole |= name[0] == '.';
			continue;
		}
		e = entry_find(c->m, dir, name, len, entry_hash(dir, name, len));
		if (!e || !e->target)
			return true;
		nr++;
	}
	whole &= (uint64_t)c->ev->outcome.ret + DIRENT_MAX_BYTES <= room;
	return whole && nr != dir->nr_present;
}

static struct outcome ask_getdents(struct call *c)
{
	struct inode *i;

	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	touch_use(c, &c->fd->open->res, TOUCH_OFFSET);
	i = fd_inode(c, c->fd, S_IFDIR);
	if (c->unsure && !i)
		return succeeds(0);
	if (!i || (i->type && i->type != S_IFDIR))
		return fails(ENOTDIR);
	if (!i->type && c->want_ok && !c->quiet)
		inode_set_type(c->m, i, S_IFDIR); /* what can be listed is one */
	if (i->gone)
		return fails(ENOENT);
	touch_use(c, &i->res, TOUCH_LIST);
	c->any_ret = true;
	if (row_lists(c->ev->row) && c->want_ok)
		c->differs = listing_differs(c, i);
	return succeeds(0);
}

static uint32_t type_of_dirent(int64_t d_type)
{
	/* The numbers are the upper bits of st_mode. */
	return d_type > 0 && d_type < 15 ? (uint32_t)d_type << 12 : 0;
}

static void apply_getdents(struct call *c)
{
	struct inode *dir = c->fd->open->inode;
	enum struct_id id = c->ev->row->id == SC_getdents ? STRUCT_dirent_old : STRUCT_dirent64;
	const struct value *item;
	const char *name;
	size_t len;
	uint32_t n;

	if (!dir || c->m->options.execute)
		return;
	if (c->differs)
		contradict(c, CONTRADICTION_EXISTS, false,
			   "it lists other names than there should be");
	for (n = 0; (name = listed_name(c, n, &item, &len)); n++) {
		if (len)
			entry_listed(c, dir, name, len,
				     type_of_dirent(value_int_or(field_of(item, id, "d_type"), 0)),
				     (uint64_t)value_int_or(field_of(item, id, "d_ino"), 0));
	}
}

const struct call_row model_getdents = { ask_getdents, apply_getdents, NULL };
const struct call_row model_getdents64 = { ask_getdents, apply_getdents, NULL };
const struct call_row model_getdirentries64 = { ask_getdents, NULL, NULL };
const struct call_row model_getdirentriesattr = { ask_getdents, NULL, NULL };
const struct call_row model_getattrlistbulk = { ask_getdents, NULL, NULL };
