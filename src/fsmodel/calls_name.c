/* SPDX-License-Identifier: MIT */
/*
 * The calls that make, move, remove and read names. Errors come in the order of
 * fs/namei.c. c->at is what the (old) path leads to, c->at2 the new path.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/banned.h"
#include "fsmodel/names.h"

struct outcome succeeds_any(struct call *c)
{
	c->any_ret = true;
	return succeeds(c->want_ok ? c->ev->outcome.ret : 0);
}

int ask_make(struct call *c, int64_t dirfd, const struct value *path, bool dir_wanted,
	     struct found *f)
{
	look_up(c, dirfd, path, LOOK_AT_PARENT, 0, f);
	if (f->err)
		return f->err;
	if (!f->dir)
		return EEXIST; /* /, . and .. */
	if (f->last_err)
		return f->last_err;
	name_decide(c, f, false, 0);
	if (f->inode)
		return EEXIST;
	if (f->slash && !dir_wanted)
		return ENOENT;
	return may_make(c, f);
}

static struct outcome ask_mkdir(struct call *c)
{
	int err = ask_make(c, dirfd_arg(c, "dirfd"), arg_of(c, "path"), true, &c->at);

	return err ? fails(err) : succeeds(0);
}

static void apply_mkdir(struct call *c)
{
	uint32_t mode = (uint32_t)int_arg(c, "mode", 0777) & (0777 | S_ISVTX);

	(void)make_in(c, &c->at, S_IFDIR, mode);
}

static struct outcome ask_mknod(struct call *c)
{
	uint32_t type = (uint32_t)int_arg(c, "mode", 0) & S_IFMT;
	int err;

	switch (type) {
	case 0:
		type = S_IFREG;
		break;
	case S_IFREG:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		break;
	case S_IFDIR:
		return fails(EPERM);
	default:
		return fails(EINVAL);
	}
	c->n1 = type;
	err = ask_make(c, dirfd_arg(c, "dirfd"), arg_of(c, "path"), false, &c->at);
	if (err)
		return fails(err);
	/* A device 0:0 is a whiteout of overlayfs, which anybody may make. */
	if ((type == S_IFBLK || (type == S_IFCHR && int_arg(c, "dev", 0))) &&
	    !c->cred.all_powerful && may_deny(c, EPERM))
		return fails(EPERM);
	return succeeds(0);
}

static void apply_mknod(struct call *c)
{
	struct inode *i = make_in(c, &c->at, (uint32_t)c->n1, (uint32_t)int_arg(c, "mode", 0666));

	i->rdev = (uint64_t)int_arg(c, "dev", 0);
}

static struct outcome ask_symlink(struct call *c)
{
	struct path_text text;
	int err = text_of(c, arg_of(c, "target"), &text);

	if (!err && !text.len)
		err = ENOENT;
	if (err && !c->unsure)
		return fails(err);
	err = ask_make(c, dirfd_arg(c, "newdirfd"), arg_of(c, "linkpath"), false, &c->at);
	return err ? fails(err) : succeeds(0);
}

static void apply_symlink(struct call *c)
{
	struct inode *i = make_in(c, &c->at, S_IFLNK, 0777);
	struct path_text text;

	if (!text_of(c, arg_of(c, "target"), &text))
		inode_set_target(c->m, i, text.s, text.len);
}

/* Links. */

static int ask_link_paths(struct call *c, uint32_t flags)
{
	unsigned int look = (flags & AT_SYMLINK_FOLLOW ? LOOK_AT_FOLLOW : 0) |
			    (flags & AT_EMPTY_PATH ? LOOK_AT_EMPTY : 0);

	look_up(c, dirfd_arg(c, "olddirfd"), arg_of(c, "oldpath"), look, 0, &c->at);
	if (c->at.err)
		return c->at.err;
	return ask_make(c, dirfd_arg(c, "newdirfd"), arg_of(c, "newpath"), false, &c->at2);
}

/* fs.protected_hardlinks, which distributions set. */
static bool may_link_to(struct call *c, const struct inode *i)
{
	if (is_owner(c, i) || !may_deny(c, EPERM))
		return true;
	if (i->type != S_IFREG || (i->mode & S_ISUID) ||
	    (i->mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		return false;
	return !may_access(c, i, R_OK | W_OK);
}

/* Directories on different file systems, as far as that is known. */
static bool is_other_device(struct call *c, const struct inode *a, const struct inode *b)
{
	return a->dev && b->dev && a->dev != b->dev && may_deny(c, EXDEV);
}

static struct outcome ask_link(struct call *c)
{
	uint32_t flags = (uint32_t)int_arg(c, "flags", 0);
	struct inode *i;
	int err;

	if (flags & ~(uint32_t)(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return fails(EINVAL);
	err = ask_link_paths(c, flags);
	/* Whether anything may be made there is asked for later. */
	if (err && (err != EACCES || c->at.err || c->at2.err))
		return fails(err);
	i = c->at.inode;
	if (!i)
		return fails(c->at.open ? EXDEV : ENOENT);
	if (is_other_device(c, c->at.dir ? c->at.dir : i, c->at2.dir))
		return fails(by_environment(c, EXDEV));
	if (!may_link_to(c, i))
		return fails(EPERM);
	if (err)
		return fails(err);
	touch_use(c, &i->res, 0);
	if (is_type(c, i, S_IFDIR, false))
		return fails(EPERM);
	if (!i->nlink && !i->linkable && !i->inferred)
		return fails(ENOENT);
	return succeeds(0);
}

static void apply_link(struct call *c)
{
	entry_bind(c, c->at2.entry, c->at.inode);
}

/* Removal. */

static int ask_remove(struct call *c, bool is_dir)
{
	struct found *f = &c->at;

	look_up(c, dirfd_arg(c, "dirfd"), arg_of(c, "path"), LOOK_AT_PARENT, 0, f);
	if (f->err)
		return f->err;
	if (!f->dir) {
		if (!is_dir)
			return EISDIR;
		return f->dotdot ? ENOTEMPTY : f->dots ? EINVAL : EBUSY;
	}
	if (f->last_err)
		return f->last_err;
	name_decide(c, f, true, is_dir ? S_IFDIR : 0);
	if (!f->inode)
		return ENOENT;
	touch_use(c, &f->inode->res, 0);
	if (!is_dir && f->slash)
		return is_type(c, f->inode, S_IFDIR, c->ev->outcome.err == EISDIR) ? EISDIR
										   : ENOTDIR;
	return may_delete(c, f->dir, f->inode, is_dir);
}

/* Counts what is in it. Of a directory that was never listed only the event knows. */
static bool is_empty(struct call *c, struct inode *dir)
{
	touch_use(c, &dir->res, TOUCH_LIST);
	if (dir->nr_present)
		return false;
	return dir->listed || c->m->options.execute || c->ev->outcome.err != ENOTEMPTY;
}

static struct outcome ask_unlink(struct call *c)
{
	int err = ask_remove(c, false);

	if (!err && c->at.entry && c->at.entry->mount)
		err = by_environment(c, EBUSY);
	return err ? fails(err) : succeeds(0);
}

static struct outcome ask_rmdir(struct call *c)
{
	int err = ask_remove(c, true);

	if (!err && c->at.entry && c->at.entry->mount)
		err = by_environment(c, EBUSY);
	if (!err && !is_empty(c, c->at.inode))
		err = ENOTEMPTY;
	return err ? fails(err) : succeeds(0);
}

static struct outcome ask_unlinkat(struct call *c)
{
	uint32_t flags = (uint32_t)int_arg(c, "flags", 0);

	if (flags & ~(uint32_t)AT_REMOVEDIR)
		return fails(EINVAL);
	return flags ? ask_rmdir(c) : ask_unlink(c);
}

static void apply_remove(struct call *c)
{
	if (c->at.inode->type == S_IFDIR)
		c->at.inode->gone = true;
	entry_unbind(c, c->at.entry);
}

/* Renames. */

static int ask_rename_paths(struct call *c, uint32_t flags)
{
	struct found *from = &c->at, *to = &c->at2;

	look_up(c, dirfd_arg(c, "olddirfd"), arg_of(c, "oldpath"), LOOK_AT_PARENT, 0, from);
	if (from->err)
		return from->err;
	look_up(c, dirfd_arg(c, "newdirfd"), arg_of(c, "newpath"), LOOK_AT_PARENT, 0, to);
	if (to->err)
		return to->err;
	if (from->dir && to->dir && is_other_device(c, from->dir, to->dir))
		return by_environment(c, EXDEV);
	if (!from->dir)
		return EBUSY;
	if (!to->dir)
		return flags & RENAME_NOREPLACE ? EEXIST : EBUSY;
	if (from->last_err)
		return from->last_err;
	name_decide_moved(c, from);
	if (from->entry && to->entry == from->entry)
		to->inode = from->inode;
	if (!from->inode)
		return ENOENT;
	if (to->last_err)
		return to->last_err;
	name_decide(c, to, flags & RENAME_EXCHANGE, 0);
	return to->dir->gone ? ENOENT : 0;
}

/* What the two names say, before anybody asks for permissions. */
static int ask_rename_shape(struct call *c, uint32_t flags, bool is_dir)
{
	struct found *from = &c->at, *to = &c->at2;
	bool exchange = flags & RENAME_EXCHANGE;

	if ((flags & RENAME_NOREPLACE) && to->inode)
		return EEXIST;
	if (exchange && !to->inode)
		return ENOENT;
	if (exchange && to->slash && !is_type(c, to->inode, S_IFDIR, true))
		return ENOTDIR;
	if (!is_dir && (from->slash || (!exchange && to->slash)))
		return ENOTDIR;
	if (from->dir == to->dir)
		return 0;
	if (is_dir && dir_is_below(to->dir, from->inode))
		return EINVAL;
	if (to->inode && to->inode->type == S_IFDIR && dir_is_below(from->dir, to->inode))
		return exchange ? EINVAL : ENOTEMPTY;
	return 0;
}

static int ask_rename_rights(struct call *c, uint32_t flags, bool is_dir)
{
	struct found *from = &c->at, *to = &c->at2;
	bool exchange = flags & RENAME_EXCHANGE, to_dir = false;
	int err = may_delete(c, from->dir, from->inode, is_dir);

	if (err)
		return err;
	if (to->inode) {
		to_dir = to->inode->type ? to->inode->type == S_IFDIR : is_dir && !exchange;
		err = may_delete(c, to->dir, to->inode, exchange ? to_dir : is_dir);
	} else {
		err = may_make(c, to);
	}
	if (!err && from->dir != to->dir && is_dir)
		err = may_access(c, from->inode, W_OK);
	if (!err && from->dir != to->dir && exchange && to_dir)
		err = may_access(c, to->inode, W_OK);
	if (err)
		return err;
	if ((from->entry && from->entry->mount) || (to->entry && to->entry->mount))
		return by_environment(c, EBUSY);
	if (to->inode && to_dir && !exchange && !is_empty(c, to->inode))
		return ENOTEMPTY;
	return 0;
}

static struct outcome ask_rename(struct call *c)
{
	uint32_t flags = (uint32_t)int_arg(c, "flags", 0);
	bool is_dir;
	int err;

	if (flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT) ||
	    ((flags & RENAME_EXCHANGE) && (flags & (RENAME_NOREPLACE | RENAME_WHITEOUT))))
		return fails(EINVAL);
	err = ask_rename_paths(c, flags);
	if (err)
		return fails(err);
	/* A directory that nobody has looked at is told by what it replaces or by a slash. */
	is_dir = is_type(c, c->at.inode, S_IFDIR,
			 c->at.slash || c->at2.slash ||
				 (c->at2.inode && c->at2.inode->type == S_IFDIR &&
				  !(flags & RENAME_EXCHANGE)));
	err = ask_rename_shape(c, flags, is_dir);
	if (err)
		return fails(err);
	touch_use(c, &c->at.inode->res, 0);
	if (c->at2.inode && c->at2.inode != c->at.inode)
		touch_use(c, &c->at2.inode->res, 0);
	c->n1 = flags;
	if (c->at.inode == c->at2.inode)
		return succeeds(0);
	err = ask_rename_rights(c, flags, is_dir);
	return err ? fails(err) : succeeds(0);
}

static void exchange(struct call *c)
{
	struct inode *a = c->at.inode, *b = c->at2.inode;

	inode_ref(a);
	inode_ref(b);
	entry_unbind(c, c->at.entry);
	entry_unbind(c, c->at2.entry);
	entry_bind(c, c->at2.entry, a);
	entry_bind(c, c->at.entry, b);
	inode_unref(c->m, a);
	inode_unref(c->m, b);
}

static void apply_rename(struct call *c)
{
	struct inode *i = c->at.inode, *old = c->at2.inode;

	if (i == old)
		return; /* two names of one file: nothing happens */
	if (c->n1 & RENAME_EXCHANGE) {
		exchange(c);
		return;
	}
	inode_ref(i);
	if (old) {
		old->gone = old->type == S_IFDIR;
		entry_unbind(c, c->at2.entry);
	}
	entry_unbind(c, c->at.entry);
	entry_bind(c, c->at2.entry, i);
	inode_unref(c->m, i);
	if (c->n1 & RENAME_WHITEOUT)
		(void)make_in(c, &c->at, S_IFCHR, 0);
}

/* exchangedata() of macOS swaps what two files hold, not their names; replay can only do it by names. */
static struct outcome ask_exchangedata(struct call *c)
{
	unsigned int look = int_arg(c, "options", 0) & 1 ? 0 : LOOK_AT_FOLLOW;

	look_up(c, AT_FDCWD, arg_of(c, "path1"), look, 0, &c->at);
	if (c->at.err)
		return fails(c->at.err);
	look_up(c, AT_FDCWD, arg_of(c, "path2"), look, 0, &c->at2);
	if (c->at2.err)
		return fails(c->at2.err);
	if (!c->at.inode || !c->at2.inode || c->at.inode == c->at2.inode)
		return fails(EINVAL);
	if (is_type(c, c->at.inode, S_IFDIR, false) || is_type(c, c->at2.inode, S_IFDIR, false))
		return fails(EINVAL);
	return succeeds(0);
}

static void apply_exchangedata(struct call *c)
{
	struct inode *a = c->at.inode, *b = c->at2.inode;
	uint64_t size = a->size;
	bool known = a->size_known;

	inode_changes(c, a);
	inode_changes(c, b);
	a->size = b->size;
	a->size_known = b->size_known;
	b->size = size;
	b->size_known = known;
	touch_add(c, &a->res, TOUCH_USE | TOUCH_WRITE | TOUCH_SIZE_WRITE, 0, TOUCH_TO_END);
	touch_add(c, &b->res, TOUCH_USE | TOUCH_WRITE | TOUCH_SIZE_WRITE, 0, TOUCH_TO_END);
	touch_names(c, a, TOUCH_CHANGE);
	touch_names(c, b, TOUCH_CHANGE);
}

/* Reading symlinks. */

/* The text that was read, if it is all there; false: it may have been cut. */
static bool text_read(const struct call *c, struct path_text *ret)
{
	const struct value *buf = arg_of(c, "buf");
	int64_t room = (int32_t)int_arg(c, "bufsiz", 4096);

	if (!c->want_ok || c->m->options.execute || buf->type != VALUE_DATA || !buf->data->bytes ||
	    !buf->data->len_bytes || buf->data->kept_bytes < buf->data->len_bytes ||
	    (int64_t)buf->data->len_bytes >= room)
		return false;
	*ret = (struct path_text){ (const char *)buf->data->bytes, (size_t)buf->data->len_bytes };
	return true;
}

static struct outcome ask_readlink(struct call *c)
{
	const struct value *path = arg_of(c, "path");
	int64_t room = (int32_t)int_arg(c, "bufsiz", 4096);
	bool empty = path && path->type == VALUE_DATA && !path->data->len_bytes;
	struct path_text text;
	struct inode *i;

	if (room <= 0)
		return fails(EINVAL);
	look_up(c, dirfd_arg(c, "dirfd"), path, LOOK_AT_EMPTY, 0, &c->at);
	/* Only readlinkat() takes an empty path. */
	if (empty && c->ev->row->id == SC_readlink)
		return fails(ENOENT);
	if (c->at.err)
		return fails(c->at.err);
	i = c->at.inode;
	if (!i)
		return fails(ENOENT);
	if (i->inferred && i->type != S_IFLNK && (i->type || i->refs > 1) && c->want_ok &&
	    !c->m->options.execute) {
		if (c->quiet || !text_read(c, &text))
			return succeeds_any(c); /* a symlink that was taken for what it leads to */
		tree_infer_link(c, &c->at, text.s, text.len);
		i = c->at.inode;
	}
	touch_use(c, &i->res, 0);
	if (!is_type(c, i, S_IFLNK, c->want_ok))
		return fails(empty ? ENOENT : EINVAL);
	if (!i->target)
		return succeeds_any(c);
	return succeeds((int64_t)i->target_len < room ? (int64_t)i->target_len : room);
}

static void apply_readlink(struct call *c)
{
	struct inode *i = c->at.inode;
	struct path_text text;

	if (i->type == S_IFLNK && !i->target && !i->special && text_read(c, &text))
		inode_set_target(c->m, i, text.s, text.len);
}

/* Repairs. */

static void mend_absent(struct call *c, struct entry *e)
{
	if (e->target->type == S_IFDIR && e->target->own == e) {
		tree_prune(c->m, e->target);
		e->target->gone = true;
	}
	entry_unlink(c->m, e);
	e->known = true;
}

struct mend_path {
	const char *dirfd, *path;
	bool made; /* the call makes it: it was not there */
	bool follow;
};

static bool mend_one(struct call *c, const struct mend_path *p, struct found *f)
{
	const struct value *path = arg_of(c, p->path);
	unsigned int look = p->follow ? LOOK_AT_FOLLOW : LOOK_AT_PARENT;
	int err = c->ev->outcome.err;
	struct found dir;

	if (!path || path->type != VALUE_DATA)
		return false;
	if (!c->want_ok) {
		if (err == ENOENT && !p->made && !f->err && f->inode && f->entry &&
		    f->entry->target == f->inode) {
			mend_absent(c, f->entry);
			return true;
		}
		if ((err == EEXIST && p->made) || err == EISDIR || err == ENOTEMPTY)
			return !f->inode && mend_exists(c, dirfd_arg(c, p->dirfd), path, look,
							err == EEXIST ? 0 : S_IFDIR);
		return false;
	}
	if (!p->made)
		return (f->err || !f->inode) &&
		       mend_exists(c, dirfd_arg(c, p->dirfd), path, look, 0);
	if (!f->err && f->inode && f->entry && f->entry->target) {
		mend_absent(c, f->entry);
		return true;
	}
	if (!f->err)
		return false;
	/* Its directory must be there: made together with the name, which is then taken away again. */
	if (!mend_exists(c, dirfd_arg(c, p->dirfd), path, look, 0))
		return false;
	look_up(c, dirfd_arg(c, p->dirfd), path, LOOK_AT_PARENT, 0, &dir);
	if (dir.entry && dir.entry->target)
		mend_absent(c, dir.entry);
	return true;
}

static const struct mend_path mend_paths[] = {
	{ .dirfd = "dirfd", .path = "path" },
	{ .dirfd = "olddirfd", .path = "oldpath" },
	{ .dirfd = "newdirfd", .path = "linkpath", .made = true }
};

/* The first path of the row. */
bool mend_names(struct call *c)
{
	size_t at;

	for (at = 0; at < ARRAY_LEN(mend_paths); at++) {
		struct mend_path p = mend_paths[at];
		const struct value *path = arg_of(c, p.path);

		if (!path || path->type == VALUE_NONE)
			continue;
		p.follow = row_class(c->ev->row) != C_NAME;
		return mend_one(c, &p, &c->at);
	}
	return false;
}

static bool mend_make(struct call *c)
{
	static const struct mend_path made = { .dirfd = "dirfd", .path = "path", .made = true },
				      linked = { .dirfd = "newdirfd",
						 .path = "linkpath",
						 .made = true };
	const struct value *path = arg_of(c, "path");

	return mend_one(c, path && path->type == VALUE_DATA ? &made : &linked, &c->at);
}

static bool mend_remove(struct call *c)
{
	struct inode *i = c->at.inode;

	if (c->want_ok && i && i->type == S_IFDIR && i->nr_present) {
		tree_prune(c->m, i);
		return true;
	}
	return mend_names(c);
}

static bool mend_rename(struct call *c)
{
	static const struct mend_path to = { .dirfd = "newdirfd", .path = "newpath" };
	struct inode *i = c->at2.inode;
	struct found dir;

	if (c->at.err || !c->at.inode)
		return mend_names(c);
	if (!c->want_ok)
		return mend_names(c);
	if (c->at2.err) {
		if (!mend_one(c, &to, &c->at2))
			return false;
		/* Only its directory had to be there. */
		look_up(c, dirfd_arg(c, to.dirfd), arg_of(c, to.path), LOOK_AT_PARENT, 0, &dir);
		if (dir.entry && dir.entry->target && !(c->n1 & RENAME_EXCHANGE))
			mend_absent(c, dir.entry);
		return true;
	}
	if (i && c->at.dir && c->at2.entry && c->at2.entry->target && !dir_is_below(c->at.dir, i)) {
		mend_absent(c, c->at2.entry);
		return true;
	}
	return false;
}

static bool mend_link(struct call *c)
{
	static const struct mend_path from = { .dirfd = "olddirfd", .path = "oldpath" },
				      to = { .dirfd = "newdirfd", .path = "newpath", .made = true };

	if (c->at.err || !c->at.inode)
		return mend_one(c, &from, &c->at);
	return mend_one(c, &to, &c->at2);
}

const struct call_row model_mkdir = { ask_mkdir, apply_mkdir, mend_make };
const struct call_row model_mkdirat = { ask_mkdir, apply_mkdir, mend_make };
const struct call_row model_mknod = { ask_mknod, apply_mknod, mend_make };
const struct call_row model_mknodat = { ask_mknod, apply_mknod, mend_make };
const struct call_row model_symlink = { ask_symlink, apply_symlink, mend_make };
const struct call_row model_symlinkat = { ask_symlink, apply_symlink, mend_make };
const struct call_row model_link = { ask_link, apply_link, mend_link };
const struct call_row model_linkat = { ask_link, apply_link, mend_link };
const struct call_row model_unlink = { ask_unlink, apply_remove, mend_remove };
const struct call_row model_delete = { ask_unlink, apply_remove, mend_remove };
const struct call_row model_rmdir = { ask_rmdir, apply_remove, mend_remove };
const struct call_row model_unlinkat = { ask_unlinkat, apply_remove, mend_remove };
const struct call_row model_rename = { ask_rename, apply_rename, mend_rename };
const struct call_row model_renameat = { ask_rename, apply_rename, mend_rename };
const struct call_row model_renameat2 = { ask_rename, apply_rename, mend_rename };
const struct call_row model_exchangedata = { ask_exchangedata, apply_exchangedata, NULL };
const struct call_row model_readlink = { ask_readlink, apply_readlink, mend_names };
const struct call_row model_readlinkat = { ask_readlink, apply_readlink, mend_names };
