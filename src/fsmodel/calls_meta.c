/* SPDX-License-Identifier: MIT */
/*
 * The calls that describe files and change what describes them: stat, access,
 * chmod, chown, times, statfs, attributes, truncation by name. c->at is what
 * they are about; without inode when that is a pipe, a socket or the like.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/banned.h"
#include "fsmodel/calls_meta.h"
#include "fsmodel/names.h"
#include "fsmodel/tables.h"
#include "model/fields.h"

#define STATX_SYNC_BITS 0x6000u
#define MAC_NOFOLLOW 1

static unsigned int look_of(const struct call *c, uint32_t flags)
{
	const struct row *row = c->ev->row;
	unsigned int look = LOOK_AT_FOLLOW, at;

	for (at = 0; at < row->nr_args; at++) {
		if (row->args[at].kind == KIND_PATH && row->args[at].look == LOOK_NOFOLLOW)
			look = 0;
	}
	if (flags & AT_SYMLINK_NOFOLLOW)
		look = 0;
	if (flags & AT_SYMLINK_FOLLOW)
		look = LOOK_AT_FOLLOW;
	if ((row->class & A_MAC) && (int_arg(c, "options", 0) & MAC_NOFOLLOW))
		look = 0;
	return look | (flags & AT_EMPTY_PATH ? LOOK_AT_EMPTY : 0);
}

static int find_fd(struct call *c, int64_t number, bool any_open)
{
	struct descriptor *d = fd_get(c, number);

	if (!d || (!any_open && (d->open->flags & O_PATH)))
		return EBADF;
	c->at = (struct found){ .inode = fd_inode(c, d, 0),
				.through_fd = &d->res,
				.open = d->open };
	return 0;
}

int meta_find(struct call *c, const struct meta_find *how)
{
	const struct value *path = arg_of(c, "path");
	const struct value *fd = arg_of(c, "fd");
	uint32_t flags = how->flags ? (uint32_t)int_arg(c, how->flags, 0) : 0;
	int err;

	if (flags & ~how->allowed)
		return EINVAL;
	if (fd && fd->type == VALUE_INT && (!path || path->type == VALUE_NONE)) {
		err = find_fd(c, fd->i, how->any_open);
	} else if (path && path->type == VALUE_NULL && (flags & AT_EMPTY_PATH) && how->null_path &&
		   dirfd_arg(c, "dirfd") >= 0) {
		err = find_fd(c, dirfd_arg(c, "dirfd"), how->any_open);
	} else {
		look_up(c, dirfd_arg(c, "dirfd"), path, look_of(c, flags), 0, &c->at);
		err = c->at.err;
	}
	if (!err && c->at.inode)
		touch_use(c, &c->at.inode->res, how->touch);
	return err;
}

/* stat. */

static struct outcome ask_plain(struct call *c, const struct meta_find *how)
{
	int err = meta_find(c, how);

	return err ? fails(err) : succeeds(0);
}

static bool field_uint(const struct value *v, unsigned int n, uint64_t *ret)
{
	const struct value *f = value_field(v, n);

	if (!f || f->type != VALUE_INT)
		return false;
	*ret = f->u;
	return true;
}

/* Which fields of struct stat and statx hold what. */
struct stat_places {
	unsigned int dev, ino, mode, nlink, uid, gid, size;
};

static const struct stat_places places_stat = { 0, 1, 2, 3, 4, 5, 7 };
static const struct stat_places places_statx = { 17, 7, 6, 3, 4, 5, 8 };

static void read_stat(const struct value *v, const struct stat_places *p, struct seen_stat *st)
{
	uint64_t n, minor_dev;

	*st = (struct seen_stat){ 0 };
	st->has_mode = field_uint(v, p->mode, &n);
	st->mode = st->has_mode ? (uint32_t)n : 0;
	st->has_nlink = field_uint(v, p->nlink, &n);
	st->nlink = st->has_nlink ? (uint32_t)n : 0;
	st->has_owner = field_uint(v, p->uid, &n);
	st->uid = st->has_owner ? (uint32_t)n : 0;
	st->has_owner &= field_uint(v, p->gid, &n);
	st->gid = st->has_owner ? (uint32_t)n : 0;
	st->has_size = field_uint(v, p->size, &st->size);
	st->has_id = field_uint(v, p->ino, &st->ino) && field_uint(v, p->dev, &st->dev);
	if (p != &places_statx)
		return;
	st->has_id &= field_uint(v, p->dev + 1, &minor_dev);
	if (st->has_id)
		st->dev = makedev((unsigned int)st->dev, (unsigned int)minor_dev);
	/* The mask tells what the kernel filled in; without it nothing is known. */
	if (!field_uint(v, 0, &n))
		n = 0;
	st->has_mode &= (n & 3) == 3; /* STATX_TYPE, STATX_MODE */
	st->has_owner &= (n & 0x18) == 0x18;
	st->has_nlink &= (n & 4) != 0;
	st->has_size &= (n & 0x200) != 0;
	st->has_id &= (n & 0x100) != 0;
}

/* What the call gave back. False: it did not, or not of something that has an inode. */
static bool seen_of(const struct call *c, struct seen_stat *ret)
{
	const struct value *st = arg_of(c, "statbuf"), *stx = arg_of(c, "statxbuf");

	if (!c->at.inode || c->m->options.execute || c->ev->outcome.err)
		return false;
	if (st->type == VALUE_STRUCT)
		read_stat(st, &places_stat, ret);
	else if (stx->type == VALUE_STRUCT)
		read_stat(stx, &places_statx, ret);
	return st->type == VALUE_STRUCT || stx->type == VALUE_STRUCT;
}

static bool has_other_size(const struct inode *i, const struct seen_stat *st)
{
	return st->has_size && i->type == S_IFREG && !i->special && i->size_known &&
	       (!st->has_mode || S_ISREG(st->mode)) && st->size != i->size;
}

/* A replay verifies mode and size. */
static bool differs_from(const struct inode *i, const struct seen_stat *st)
{
	return has_other_size(i, st) ||
	       (st->has_mode && i->mode_known && i->type == S_IFREG && !i->special &&
		S_ISREG(st->mode) && (st->mode & 07777) != i->mode);
}

static struct outcome ask_stat(struct call *c)
{
	static const struct meta_find how = {
		.flags = "flags",
		.allowed = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | STATX_SYNC_BITS,
		.any_open = true,
		.null_path = true,
		.touch = TOUCH_META_READ | TOUCH_SIZE_READ,
	};
	struct seen_stat st;
	struct outcome o;

	if (c->ev->row->id == SC_statx &&
	    (int_arg(c, "flags", 0) & STATX_SYNC_BITS) == STATX_SYNC_BITS)
		return fails(EINVAL);
	o = ask_plain(c, &how);
	if (!o.err && seen_of(c, &st))
		c->differs = differs_from(c->at.inode, &st);
	return o;
}

static void apply_stat(struct call *c)
{
	struct seen_stat st;

	if (!seen_of(c, &st))
		return;
	/* What the model knows may be newer than what a call that overlapped others saw: it stays. */
	if (has_other_size(c->at.inode, &st))
		contradict(c, CONTRADICTION_SIZE, false,
			   "it shows %llu bytes where the file should have %llu",
			   (unsigned long long)st.size, (unsigned long long)c->at.inode->size);
	if (st.has_size && c->at.inode->type == S_IFREG)
		c->facts->end = st.size;
	inode_learn(c->m, c->at.inode, &st);
}

static struct outcome ask_statfs(struct call *c)
{
	static const struct meta_find how = { .any_open = true };

	return ask_plain(c, &how);
}

/* access */

static struct outcome ask_access(struct call *c)
{
	static const struct meta_find how = {
		.flags = "flags",
		.allowed = AT_SYMLINK_NOFOLLOW | AT_EACCESS | AT_EMPTY_PATH,
		.any_open = true,
		.touch = TOUCH_META_READ,
	};
	uint32_t mode = (uint32_t)int_arg(c, "mode", 0);
	int err;

	if (mode & ~(uint32_t)(R_OK | W_OK | X_OK))
		return fails(EINVAL);
	err = meta_find(c, &how);
	if (!err && mode && c->at.inode)
		err = may_access(c, c->at.inode, mode);
	return err ? fails(err) : succeeds(0);
}

/* chmod, chown */

static void set_mode(struct call *c, struct inode *i, uint32_t mode, uint32_t uid, uint32_t gid)
{
	bool same = i->mode_known && i->mode == mode && i->uid == uid && i->gid == gid;

	i->mode = mode;
	i->uid = uid;
	i->gid = gid;
	if (!same)
		touch_names(c, i, TOUCH_CHANGE);
}

static struct outcome ask_chmod(struct call *c)
{
	static const struct meta_find how = {
		.flags = "flags",
		.allowed = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
		.touch = TOUCH_META_WRITE,
	};
	struct inode *i;
	int err = meta_find(c, &how);

	if (err)
		return fails(err);
	i = c->at.inode;
	if (!i)
		return succeeds(0);
	/* Symlinks first: no file system has a mode for them. */
	if (i->type == S_IFLNK)
		return fails(EOPNOTSUPP);
	return is_owner(c, i) || !may_deny(c, EPERM) ? succeeds(0) : fails(EPERM);
}

static void apply_chmod(struct call *c)
{
	struct inode *i = c->at.inode;
	uint32_t mode = (uint32_t)int_arg(c, "mode", i ? i->mode : 0) & 07777;

	if (!i && c->at.open)
		socket_set_mode(c->at.open, mode);
	if (!i)
		return;
	if (!c->cred.all_powerful && i->mode_known && i->gid != c->cred.gid &&
	    c->m->options.execute)
		mode &= ~(uint32_t)S_ISGID;
	set_mode(c, i, mode, i->uid, i->gid);
}

#define KEEP_ID UINT32_MAX

/* What a change of owner leaves of the mode. */
static uint32_t mode_of_chowned(const struct call *c, const struct inode *i)
{
	uint32_t mode = i->mode;

	if (i->type == S_IFDIR)
		return mode;
	mode &= ~(uint32_t)S_ISUID;
	if ((mode & S_IXGRP) || (!c->cred.all_powerful && i->gid != c->cred.gid))
		mode &= ~(uint32_t)S_ISGID;
	return mode;
}

static struct outcome ask_chown(struct call *c)
{
	static const struct meta_find how = {
		.flags = "flags",
		.allowed = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
		.touch = TOUCH_META_WRITE,
	};
	uint32_t uid = (uint32_t)int_arg(c, "owner", -1), gid = (uint32_t)int_arg(c, "group", -1);
	const struct inode *i;
	int err = meta_find(c, &how);

	if (err)
		return fails(err);
	i = c->at.inode;
	if (!i || c->cred.all_powerful || !i->mode_known || !may_deny(c, EPERM))
		return succeeds(0);
	if (uid != KEEP_ID && (c->cred.uid != i->uid || uid != i->uid))
		return fails(EPERM);
	if (gid != KEEP_ID && (c->cred.uid != i->uid || (gid != i->gid && gid != c->cred.gid)))
		return fails(EPERM);
	if (c->cred.uid != i->uid && mode_of_chowned(c, i) != i->mode)
		return fails(EPERM);
	return succeeds(0);
}

static void apply_chown(struct call *c)
{
	uint32_t uid = (uint32_t)int_arg(c, "owner", -1), gid = (uint32_t)int_arg(c, "group", -1);
	struct inode *i = c->at.inode;

	if (i)
		set_mode(c, i, mode_of_chowned(c, i), uid == KEEP_ID ? i->uid : uid,
			 gid == KEEP_ID ? i->gid : gid);
}

/* Times. */

enum times {
	TIMES_NOW, /* both become the present time */
	TIMES_GIVEN,
	TIMES_KEPT, /* both stay */
	TIMES_WRONG,
};

static enum times times_of(const struct call *c)
{
	const struct value *v = arg_of(c, "times");
	bool has_ns = c->ev->row->id == SC_utimensat;
	unsigned int at, now = 0, kept = 0;

	if (!v || v->type == VALUE_NULL)
		return TIMES_NOW;
	if (v->type != VALUE_LIST || v->count < 2)
		return TIMES_GIVEN;
	for (at = 0; at < 2; at++) {
		const struct value *part = value_field(&v->items[at], FIELD_OF(timespec, tv_nsec));
		int64_t n = part && part->type == VALUE_INT ? part->i : 0;

		now += has_ns && n == UTIME_NOW;
		kept += has_ns && n == UTIME_OMIT;
		if ((n < 0 || n >= (has_ns ? 1000000000 : 1000000)) &&
		    !(has_ns && (n == UTIME_NOW || n == UTIME_OMIT)))
			return TIMES_WRONG;
	}
	return now == 2 ? TIMES_NOW : kept == 2 ? TIMES_KEPT : TIMES_GIVEN;
}

static int find_for_times(struct call *c)
{
	static const struct meta_find how = {
		.flags = "flags",
		.allowed = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
		.touch = TOUCH_META_WRITE,
	};
	const struct value *path = arg_of(c, "path");
	int err;

	/* futimens(): a descriptor without a path. */
	if (path && path->type == VALUE_NULL && dirfd_arg(c, "dirfd") != AT_FDCWD) {
		if (int_arg(c, "flags", 0))
			return EINVAL;
		err = find_fd(c, dirfd_arg(c, "dirfd"), false);
		if (!err && c->at.inode)
			touch_use(c, &c->at.inode->res, TOUCH_META_WRITE);
		return err;
	}
	return meta_find(c, &how);
}

static struct outcome ask_times(struct call *c)
{
	enum times times = times_of(c);
	int err;

	if (times == TIMES_KEPT)
		return succeeds(0);
	/* Calls with microseconds look at them before the path, the other when it is found. */
	if (times == TIMES_WRONG && c->ev->row->id != SC_utimensat)
		return fails(EINVAL);
	err = find_for_times(c);
	if (!err && times == TIMES_WRONG)
		err = EINVAL;
	if (!err && c->at.inode && !is_owner(c, c->at.inode)) {
		if (times == TIMES_NOW)
			err = may_access(c, c->at.inode, W_OK);
		else if (may_deny(c, EPERM))
			err = EPERM;
	}
	return err ? fails(err) : succeeds(0);
}

/* Other attributes. */

static struct outcome ask_attr(struct call *c, uint32_t touch)
{
	const struct meta_find how = {
		.flags = arg_of(c, "at_flags")->type == VALUE_NONE ? NULL : "at_flags",
		.allowed = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
		.touch = touch,
	};

	return ask_plain(c, &how);
}

/* Which of these the file system has is its own affair. */
static struct outcome ask_attr_any(struct call *c, uint32_t touch)
{
	struct outcome o = ask_attr(c, touch);

	if (!o.err)
		c->unsure = true;
	return o;
}

static struct outcome ask_getattr(struct call *c)
{
	return ask_attr_any(c, TOUCH_META_READ);
}

static struct outcome ask_setattr(struct call *c)
{
	return ask_attr_any(c, TOUCH_META_WRITE);
}

static struct outcome ask_mac_getattr(struct call *c)
{
	return ask_attr(c, TOUCH_META_READ | TOUCH_SIZE_READ);
}

static struct outcome ask_mac_setattr(struct call *c)
{
	return ask_attr(c, TOUCH_META_WRITE);
}

static struct outcome ask_name_to_handle(struct call *c)
{
	static const struct meta_find how = {
		.flags = "flags",
		.allowed = AT_SYMLINK_FOLLOW | AT_EMPTY_PATH | 0x203, /* AT_HANDLE_* */
		.any_open = true,
	};
	int err = meta_find(c, &how);

	c->unsure |= !err; /* EOVERFLOW and EOPNOTSUPP depend on the file system */
	return err ? fails(err) : succeeds(0);
}

static struct outcome ask_inotify_add_watch(struct call *c)
{
	uint32_t mask = (uint32_t)int_arg(c, "mask", IN_ALL_EVENTS);
	struct descriptor *d;

	if (!mask)
		return fails(EINVAL);
	d = fd_get(c, int_arg(c, "fd", -1));
	if (!d)
		return fails(EBADF);
	if (d->open->object == OBJECT_FILE && !d->open->unknown)
		return fails(EINVAL);
	look_up(c, AT_FDCWD, arg_of(c, "path"),
		(mask & IN_DONT_FOLLOW ? 0 : LOOK_AT_FOLLOW) |
			(mask & IN_ONLYDIR ? LOOK_AT_DIRECTORY : 0),
		0, &c->at);
	if (c->at.err)
		return fails(c->at.err);
	if (c->at.inode) {
		int err = may_access(c, c->at.inode, R_OK);

		if (err)
			return fails(err);
		touch_use(c, &c->at.inode->res, 0);
	}
	return succeeds_any(c);
}

/* truncate */

static struct outcome ask_truncate(struct call *c)
{
	struct inode *i;
	int err;

	if (int_arg(c, "length", 0) < 0)
		return fails(EINVAL);
	look_up(c, AT_FDCWD, arg_of(c, "path"), LOOK_AT_FOLLOW, 0, &c->at);
	if (c->at.err)
		return fails(c->at.err);
	i = c->at.inode;
	if (!i)
		return fails(EINVAL);
	touch_use(c, &i->res, 0);
	if (!i->type && c->want_ok && !c->quiet)
		inode_set_type(c->m, i, S_IFREG);
	if (i->type == S_IFDIR)
		return fails(EISDIR);
	if (i->type && i->type != S_IFREG)
		return fails(EINVAL);
	err = may_access(c, i, W_OK);
	return err ? fails(err) : succeeds(0);
}

static void apply_truncate(struct call *c)
{
	set_size(c, c->at.inode, (uint64_t)int_arg(c, "length", 0));
}

#define ROW(name, ask, apply) const struct call_row model_##name = { ask, apply, mend_names };

ROW(stat, ask_stat, apply_stat)
ROW(lstat, ask_stat, apply_stat)
ROW(fstat, ask_stat, apply_stat)
ROW(newfstatat, ask_stat, apply_stat)
ROW(statx, ask_stat, apply_stat)
ROW(mac_stat64, ask_stat, NULL)
ROW(mac_lstat64, ask_stat, NULL)
ROW(mac_fstat64, ask_stat, NULL)
ROW(statfs, ask_statfs, NULL)
ROW(fstatfs, ask_statfs, NULL)
ROW(statfs64, ask_statfs, NULL)
ROW(fstatfs64, ask_statfs, NULL)
ROW(mac_statfs64, ask_statfs, NULL)
ROW(mac_fstatfs64, ask_statfs, NULL)
ROW(access, ask_access, NULL)
ROW(faccessat, ask_access, NULL)
ROW(faccessat2, ask_access, NULL)
ROW(chmod, ask_chmod, apply_chmod)
ROW(fchmod, ask_chmod, apply_chmod)
ROW(fchmodat, ask_chmod, apply_chmod)
ROW(fchmodat2, ask_chmod, apply_chmod)
ROW(chown, ask_chown, apply_chown)
ROW(lchown, ask_chown, apply_chown)
ROW(fchown, ask_chown, apply_chown)
ROW(fchownat, ask_chown, apply_chown)
ROW(utime, ask_times, NULL)
ROW(utimes, ask_times, NULL)
ROW(futimesat, ask_times, NULL)
ROW(utimensat, ask_times, NULL)
ROW(mac_futimes, ask_times, NULL)
ROW(file_getattr, ask_getattr, NULL)
ROW(file_setattr, ask_setattr, NULL)
ROW(ioctl_fs_ioc_getflags, ask_getattr, NULL)
ROW(ioctl_fs_ioc_setflags, ask_setattr, NULL)
ROW(ioctl_fs_ioc_fsgetxattr, ask_getattr, NULL)
ROW(ioctl_fs_ioc_fssetxattr, ask_setattr, NULL)
ROW(ioctl_fs_ioc_getversion, ask_getattr, NULL)
ROW(ioctl_fs_ioc_setversion, ask_setattr, NULL)
ROW(getattrlist, ask_mac_getattr, NULL)
ROW(setattrlist, ask_mac_setattr, NULL)
ROW(chflags, ask_mac_setattr, NULL)
ROW(fchflags, ask_mac_setattr, NULL)
ROW(fgetattrlist, ask_mac_getattr, NULL)
ROW(fsetattrlist, ask_mac_setattr, NULL)
ROW(fsctl, ask_mac_getattr, NULL)
ROW(ffsctl, ask_mac_getattr, NULL)
ROW(stat64_extended, ask_stat, NULL)
ROW(lstat64_extended, ask_stat, NULL)
ROW(fstat64_extended, ask_stat, NULL)
ROW(name_to_handle_at, ask_name_to_handle, NULL)
ROW(inotify_add_watch, ask_inotify_add_watch, NULL)
ROW(truncate, ask_truncate, apply_truncate)
