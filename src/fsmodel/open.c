/* SPDX-License-Identifier: MIT */
/* Calls that open files: by name, by handle, without a name. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/banned.h"
#include "fsmodel/tables.h"

#define TMPFILE_BIT ((uint64_t)020000000) /* O_TMPFILE without O_DIRECTORY */
#define PATH_FLAGS ((uint64_t)(O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC))
#define KNOWN_FLAGS                                                                                \
	((uint64_t)(O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK |    \
		    O_SYNC | O_DSYNC | O_ASYNC | O_DIRECT | 0100000 | O_DIRECTORY | O_NOFOLLOW |   \
		    O_NOATIME | O_CLOEXEC | O_PATH) |                                              \
	 TMPFILE_BIT)
#define RESOLVE_KNOWN 0x3full
#define RESOLVE_BENEATH_BIT 0x08
#define RESOLVE_IN_ROOT_BIT 0x10
#define MEMORY_DEV UINT64_MAX /* of what lives in no file system that is mounted */
#define OPEN_MODE_BITS 07777u

/* What the call asks for, however it was said. */
struct wish {
	int64_t dirfd;
	const struct value *path;
	uint64_t flags, resolve;
	uint32_t mode;
};

struct flag_pair {
	uint64_t theirs, ours;
};

static uint64_t flags_of_mac(uint64_t flags)
{
	static const struct flag_pair pairs[] = {
		{ 0x4, O_NONBLOCK },	   { 0x8, O_APPEND },
		{ 0x100, O_NOFOLLOW },	   { 0x200, O_CREAT },
		{ 0x400, O_TRUNC },	   { 0x800, O_EXCL },
		{ 0x100000, O_DIRECTORY }, { 0x200000, O_PATH | O_NOFOLLOW },
		{ 0x1000000, O_CLOEXEC },
	};
	uint64_t ours = flags & O_ACCMODE;
	size_t n;

	for (n = 0; n < ARRAY_LEN(pairs); n++) {
		if (flags & pairs[n].theirs)
			ours |= pairs[n].ours;
	}
	return ours;
}

/* Flags that mean nothing are dropped by the older calls. */
static void settle_flags(struct wish *w)
{
	w->flags &= KNOWN_FLAGS;
	if (w->flags & O_PATH)
		w->flags &= PATH_FLAGS;
	w->mode &= OPEN_MODE_BITS;
}

static int read_how(const struct call *c, struct wish *w)
{
	const struct value *how = arg_at(c, 2);
	uint64_t mode;

	if (how->type != VALUE_STRUCT)
		return 0;
	w->flags = (uint64_t)value_int_or(field_of(how, STRUCT_open_how, "flags"), 0);
	mode = (uint64_t)value_int_or(field_of(how, STRUCT_open_how, "mode"), 0);
	w->resolve = (uint64_t)value_int_or(field_of(how, STRUCT_open_how, "resolve"), 0);
	w->mode = (uint32_t)mode & OPEN_MODE_BITS;
	if (w->flags & ~KNOWN_FLAGS || w->resolve & ~RESOLVE_KNOWN || mode & ~(uint64_t)07777 ||
	    (mode && !(w->flags & (O_CREAT | TMPFILE_BIT))))
		return EINVAL;
	if (w->resolve & RESOLVE_BENEATH_BIT && w->resolve & RESOLVE_IN_ROOT_BIT)
		return EINVAL;
	return w->flags & O_PATH && w->flags & ~PATH_FLAGS ? EINVAL : 0;
}

static int read_wish(const struct call *c, struct wish *w)
{
	*w = (struct wish){ .dirfd = AT_FDCWD };
	switch (c->ev->row->id) {
	case SC_openat:
	case SC_openat2:
		w->dirfd = value_int_or(arg_at(c, 0), -1);
		w->path = arg_at(c, 1);
		if (c->ev->row->id == SC_openat2)
			return read_how(c, w);
		w->flags = (uint64_t)value_int_or(arg_at(c, 2), 0);
		w->mode = (uint32_t)value_int_or(arg_at(c, 3), 0);
		break;
	case SC_creat:
		w->path = arg_at(c, 0);
		w->flags = O_CREAT | O_WRONLY | O_TRUNC;
		w->mode = (uint32_t)value_int_or(arg_at(c, 1), 0);
		break;
	default:
		w->path = arg_at(c, 0);
		w->flags = (uint64_t)value_int_or(arg_at(c, 1), 0);
		w->mode = (uint32_t)value_int_or(arg_at(c, 2), 0);
		if (c->ev->row->id == SC_mac_open)
			w->flags = flags_of_mac(w->flags);
		break;
	}
	settle_flags(w);
	return 0;
}

bool is_open_call(const struct event *ev)
{
	switch (ev->row->id) {
	case SC_open:
	case SC_openat:
	case SC_openat2:
	case SC_creat:
	case SC_mac_open:
		return true;
	}
	return false;
}

uint64_t open_flags(const struct event *ev)
{
	struct call c = { .ev = (struct event *)ev }; /* only looked at */
	struct wish w = { 0 };

	return is_open_call(ev) && !read_wish(&c, &w) ? w.flags : 0;
}

static unsigned int access_wanted(uint64_t flags)
{
	static const unsigned int wanted[] = { R_OK, W_OK, R_OK | W_OK, R_OK | W_OK };

	if (flags & O_PATH)
		return 0;
	return wanted[flags & O_ACCMODE] | (flags & O_TRUNC ? W_OK : 0);
}

static int ask_tmpfile(struct call *c, const struct wish *w)
{
	look_up(c, w->dirfd, w->path, LOOK_AT_FOLLOW | LOOK_AT_DIRECTORY, w->resolve, &c->at);
	if (c->at.err || !c->at.inode)
		return c->at.err;
	if (may_access(c, c->at.inode, W_OK | X_OK))
		return EACCES;
	return c->at.inode->gone ? EPERM : 0; /* so ext4; it is the file system's to say */
}

/* O_CREAT on a device or socket of somebody else's in a directory such as /tmp. */
static bool is_trap(const struct call *c, const struct inode *i)
{
	const struct inode *dir = c->at.dir;

	if (i->type == S_IFREG || i->type == S_IFIFO || i->type == S_IFDIR || !i->type)
		return false; /* these only if fs.protected_regular and _fifos say so */
	return dir && (dir->mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) &&
	       i->uid != dir->uid && i->uid != c->cred.uid && c->m->options.execute;
}

/* Whether the open cannot have returned yet: it waits for the other end, which nobody has. */
static bool is_alone(const struct call *c, const struct wish *w, const struct inode *i)
{
	const struct stream *s = i->fifo;
	bool writes = (w->flags & O_ACCMODE) == O_WRONLY;

	if (c->m->options.execute || w->flags & O_NONBLOCK || (w->flags & O_ACCMODE) == O_RDWR)
		return false;
	/* Each of two waits for the other: who is tried for the other's sake is not alone. */
	if (c->m->tables->lonely == i)
		return false;
	if (!s)
		return true;
	/* One that went meanwhile may have been there. */
	return !s->foreign && !(writes ? s->readers : s->writers) &&
	       (writes ? s->no_readers_ns : s->no_writers_ns) < c->ev->enter_ns;
}

/* What is there: may it be opened so? */
static int ask_existing(struct call *c, const struct wish *w, const struct inode *i)
{
	if (w->flags & O_CREAT && w->flags & O_EXCL)
		return EEXIST;
	if (w->flags & O_CREAT && i->type == S_IFDIR)
		return EISDIR;
	if (w->flags & O_CREAT && is_trap(c, i))
		return EACCES;
	if (w->flags & O_DIRECTORY && i->type && i->type != S_IFDIR)
		return ENOTDIR;
	if (w->flags & O_PATH)
		return 0;
	if (i->type == S_IFLNK)
		return ELOOP;
	if (i->type == S_IFDIR && access_wanted(w->flags) & W_OK)
		return EISDIR;
	if (may_access(c, i, access_wanted(w->flags)))
		return EACCES;
	if (w->flags & O_NOATIME && !c->cred.all_powerful && c->cred.uid != i->uid)
		return EPERM;
	if (i->type == S_IFSOCK)
		return ENXIO;
	/* No driver has the number 0, which whiteouts have. */
	if ((i->type == S_IFCHR || i->type == S_IFBLK) && !i->rdev && i->mode_known &&
	    c->m->options.execute)
		return ENXIO;
	if (i->type == S_IFIFO && (w->flags & O_ACCMODE) == O_ACCMODE)
		return EINVAL;
	if (i->type == S_IFIFO && (w->flags & O_ACCMODE) == O_WRONLY && w->flags & O_NONBLOCK &&
	    !(i->fifo && (i->fifo->readers || i->fifo->foreign)))
		return ENXIO;
	if (i->type == S_IFIFO && is_alone(c, w, i))
		c->alone = i;
	return 0;
}

static int ask_path(struct call *c, const struct wish *w)
{
	unsigned int look = LOOK_AT_FOLLOW;

	if (w->flags & O_NOFOLLOW || (w->flags & O_CREAT && w->flags & O_EXCL))
		look = 0;
	if (w->flags & O_CREAT)
		look |= LOOK_AT_CREATE;
	look_up(c, w->dirfd, w->path, look, w->resolve, &c->at);
	if (c->at.err)
		return c->at.err;
	if (w->flags & O_CREAT && (c->at.slash || c->at.dots)) {
		if (c->at.dots && !c->at.slash && w->flags & O_EXCL)
			return EEXIST;
		return EISDIR;
	}
	if (c->at.inode)
		return ask_existing(c, w, c->at.inode);
	if (c->at.open)
		return 0;
	if (!(w->flags & O_CREAT)) {
		c->unsure = true; /* not even the look-up knows */
		return 0;
	}
	return may_make(c, &c->at);
}

static struct outcome ask_open(struct call *c)
{
	struct wish w;
	int err = read_wish(c, &w);

	if (!err && (w.flags & (O_DIRECTORY | O_CREAT)) == (O_DIRECTORY | O_CREAT))
		err = EINVAL;
	if (!err && w.flags & TMPFILE_BIT &&
	    (!(w.flags & O_DIRECTORY) || (w.flags & O_ACCMODE) == O_RDONLY))
		err = EINVAL;
	if (err)
		return fails(err);
	err = w.flags & TMPFILE_BIT ? ask_tmpfile(c, &w) : ask_path(c, &w);
	c->any_ret = true;
	return err ? fails(err) : succeeds(0);
}

/* What the recorder saw behind the new descriptor. */
static const struct value *file_id_of(const struct call *c)
{
	return arg_of(c, "file");
}

static void open_inode(struct call *c, struct inode *i, const struct wish *w)
{
	uint32_t flags = (uint32_t)(w->flags &
				    ~(uint64_t)(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC));
	struct open_file *o = open_file_on(c->m, i, flags);

	touch_use(c, &i->res, TOUCH_USE);
	if (i->type == S_IFIFO)
		stream_attach_fifo(c, o, i);
	fd_make_result(c, o, w->flags & O_CLOEXEC);
}

/* A pipe or socket that is opened again through /proc. */
static void open_again(struct call *c, struct open_file *from, const struct wish *w)
{
	struct open_file *o =
		open_file_new(c->m, from->object, (uint32_t)w->flags & ~(uint32_t)O_CLOEXEC);
	uint32_t access = o->flags & O_ACCMODE;
	struct stream *s = from->in ? from->in : from->out;

	if (s && from->object == OBJECT_PIPE)
		stream_attach(o, access == O_WRONLY ? NULL : s, access == O_RDONLY ? NULL : s);
	o->unknown = from->unknown;
	fd_make_result(c, o, w->flags & O_CLOEXEC);
}

static void apply_open(struct call *c)
{
	struct inode *i = c->at.inode;
	struct wish w;

	(void)read_wish(c, &w); /* ask_open() has refused what is wrong */
	if (w.flags & TMPFILE_BIT) {
		if (i) {
			i = inode_make(c, i, S_IFREG, w.mode);
			i->linkable = !(w.flags & O_EXCL);
		}
	} else if (!i && c->at.open) {
		open_again(c, c->at.open, &w);
		return;
	} else if (!i && w.flags & O_CREAT) {
		i = make_in(c, &c->at, S_IFREG, w.mode);
	} else if (i && w.flags & O_TRUNC && (i->type == S_IFREG || !i->type) && !i->special) {
		set_size(c, i, 0);
	}
	if (!i) {
		fd_make_result(c, open_file_unknown(c->m), w.flags & O_CLOEXEC);
		return;
	}
	if (!c->m->options.execute)
		inode_identify(c->m, i, file_id_of(c));
	open_inode(c, i, &w);
}

/* What was there must have gone before, or something must have been there. */
static bool mend_open(struct call *c)
{
	const struct value *mode = field_of(file_id_of(c), STRUCT_file_id, "mode");
	uint32_t type = (uint32_t)value_int_or(mode, 0) & S_IFMT;
	struct wish w;

	if (read_wish(c, &w))
		return false;
	if (c->at.err)
		return mend_exists(c, w.dirfd, w.path, w.flags & O_NOFOLLOW ? 0 : LOOK_AT_FOLLOW,
				   w.flags & O_DIRECTORY ? S_IFDIR : type);
	if (c->at.inode && c->at.entry && w.flags & O_CREAT && w.flags & O_EXCL) {
		entry_unbind(c, c->at.entry);
		return true;
	}
	/* Rights that the model does not know of: groups, capabilities, ACLs. */
	if (c->at.inode && may_access(c, c->at.inode, access_wanted(w.flags))) {
		c->at.inode->mode |= access_wanted(w.flags) * 0111;
		return true;
	}
	return false;
}

const struct call_row model_open = { ask_open, apply_open, mend_open };
const struct call_row model_openat = { ask_open, apply_open, mend_open };
const struct call_row model_openat2 = { ask_open, apply_open, mend_open };
const struct call_row model_creat = { ask_open, apply_open, mend_open };
const struct call_row model_mac_open = { ask_open, apply_open, mend_open };

/* By handle: only the recorder knows what that is. */

static struct outcome ask_by_handle(struct call *c)
{
	int64_t number = value_int_or(arg_at(c, 0), AT_FDCWD);

	c->any_ret = c->unsure = true;
	if (number != AT_FDCWD && !fd_get(c, number))
		return fails(EBADF);
	return succeeds(0);
}

static void apply_by_handle(struct call *c)
{
	const struct value *file = file_id_of(c);
	uint64_t dev = (uint64_t)value_int_or(field_of(file, STRUCT_file_id, "dev"), 0);
	uint64_t ino = (uint64_t)value_int_or(field_of(file, STRUCT_file_id, "ino"), 0);
	uint32_t mode = (uint32_t)value_int_or(field_of(file, STRUCT_file_id, "mode"), 0);
	struct wish w = { .flags = (uint64_t)value_int_or(arg_at(c, 2), 0) };
	struct inode *i = ino ? inode_by_id(c->m, dev, ino) : NULL;

	settle_flags(&w);
	if (!i) {
		i = inode_new(c->m, mode & S_IFMT, mode & 07777);
		i->initial = i->inferred = true;
		if (!c->m->options.execute)
			inode_identify(c->m, i, file);
	}
	if (w.flags & O_TRUNC && i->type == S_IFREG)
		set_size(c, i, 0);
	open_inode(c, i, &w);
}

const struct call_row model_open_by_handle_at = { ask_by_handle, apply_by_handle, NULL };

/* Files without a name. */

static struct outcome ask_memfd(struct call *c)
{
	c->any_ret = true;
	return succeeds(0);
}

static void apply_memfd(struct call *c)
{
	bool secret = c->ev->row->id == SC_memfd_secret;
	uint64_t flags = (uint64_t)value_int_or(arg_at(c, secret ? 0 : 1), 0);
	struct inode *i = inode_new(c->m, S_IFREG, 0777);
	struct wish w = { .flags = O_RDWR };

	i->uid = c->cred.uid;
	i->gid = c->cred.gid;
	i->size_known = true;
	i->dev = MEMORY_DEV;
	if (secret ? flags & O_CLOEXEC : flags & 1)
		w.flags |= O_CLOEXEC;
	touch_use(c, &i->res, TOUCH_CREATE);
	if (!c->m->options.execute)
		inode_identify(c->m, i, file_id_of(c));
	open_inode(c, i, &w);
}

const struct call_row model_memfd_create = { ask_memfd, apply_memfd, NULL };
const struct call_row model_memfd_secret = { ask_memfd, apply_memfd, NULL };
