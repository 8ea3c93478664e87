/* SPDX-License-Identifier: MIT */
/*
 * The walk along a path, as fs/namei.c does it: iterative, with a stack of what
 * remains behind the symlinks that are being followed. Of a symlink that is the
 * last component of what is on top nothing remains, so the stack never holds
 * more than the symlinks that were followed: 40 at most.
 *
 * Errors come in the kernel's order: permission to search a directory is asked
 * for before the component is looked at, and the type of what was found only
 * then.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "fsmodel/names.h"
#include "fsmodel/tables.h"
#include "model/fields.h"

struct walk {
	struct call *c;
	struct found *f;
	const struct value *path;
	unsigned int flags; /* enum look_flag */
	uint64_t resolve;
	struct inode *dir, *root;
	const char *s, *end; /* what remains of the text on top */
	const char *first_s, *first_end; /* the path itself */
	unsigned int depth, nr_links;
	bool must_dir;
	bool root_used; /* an absolute path, a .. or an absolute symlink has asked for the root */
	bool ends_in_fd_dir;
	/* Repairs: what is absent is made. */
	bool force;
	uint32_t force_type;
	struct path_text *rest; /* of MODEL_LINKS_MAX */
};

/* One component. */
struct part {
	const char *s;
	size_t len;
	const char *end; /* of the text that it is in */
	bool last, slash;
};

int64_t dirfd_arg(const struct call *c, const char *name)
{
	return (int32_t)int_arg(c, name, AT_FDCWD);
}

int text_of(struct call *c, const struct value *v, struct path_text *ret)
{
	const uint8_t *nul;

	*ret = (struct path_text){ .s = "" };
	if (!v || v->type == VALUE_NONE) {
		c->unsure = true;
		return ENOENT;
	}
	if (v->type != VALUE_DATA)
		return EFAULT;
	if (v->data->kept_bytes < v->data->len_bytes || (v->data->len_bytes && !v->data->bytes)) {
		if (v->data->len_bytes >= MODEL_PATH_MAX)
			return ENAMETOOLONG;
		c->unsure = true;
		return ENOENT;
	}
	if (!v->data->len_bytes)
		return 0;
	ret->s = (const char *)v->data->bytes;
	nul = memchr(v->data->bytes, 0, v->data->len_bytes);
	ret->len = nul ? (size_t)(nul - v->data->bytes) : (size_t)v->data->len_bytes;
	return ret->len >= MODEL_PATH_MAX ? ENAMETOOLONG : 0;
}

/* What the outcome says of names that nobody has touched. */

enum verdict {
	OPEN, /* still nobody knows */
	PRESENT,
	ABSENT,
};

/* Errors that a call gives only when it has found everything on the way. */
static bool came_through(const struct call *c)
{
	switch (c->ev->outcome.err) {
	case EEXIST:
	case EISDIR:
	case ENOTEMPTY:
	case ENODATA:
	case ERANGE:
	case EPERM:
	case ETXTBSY:
	case ENXIO:
	case EXDEV:
	case EROFS:
	case ENOEXEC:
		return true;
	case EINVAL:
		return c->ev->row->id == SC_readlink || c->ev->row->id == SC_readlinkat;
	}
	return false;
}

/* Of a call with two paths nobody knows which of them was not found. */
static bool has_two_paths(const struct call *c)
{
	switch (c->ev->row->id) {
	case SC_link:
	case SC_linkat:
	case SC_rename:
	case SC_renameat:
	case SC_renameat2:
	case SC_exchangedata:
		return true;
	}
	return false;
}

/* A descriptor that open() gave shows whether the file was there: it then has contents. */
static bool opened_with_contents(const struct call *c)
{
	const struct value *id = arg_of(c, "file");
	const struct value *size = id ? value_field(id, FIELD_OF(file_id, size)) : NULL;

	return size && size->type == VALUE_INT && size->u > 0;
}

static enum verdict judge(const struct walk *w, const struct part *p, uint32_t *ret_type)
{
	const struct call *c = w->c;
	int err = c->ev->outcome.err;

	*ret_type = p->last && !p->slash && !(w->flags & LOOK_AT_DIRECTORY) ? 0 : S_IFDIR;
	if (w->force)
		return PRESENT;
	if (c->want_ok) {
		if (p->last && (w->flags & LOOK_AT_CREATE))
			return opened_with_contents(c) ? PRESENT : ABSENT;
		return PRESENT;
	}
	if (err == ENOENT)
		return p->last && !(w->flags & LOOK_AT_CREATE) && !has_two_paths(c) ? ABSENT : OPEN;
	if (!came_through(c))
		return OPEN;
	/* O_CREAT with a slash is EISDIR whatever is there. */
	if (p->last && (err == EXDEV || err == EROFS || (p->slash && w->flags & LOOK_AT_CREATE)))
		return OPEN;
	if (p->last && (err == EISDIR || err == ENOTEMPTY))
		*ret_type = S_IFDIR;
	return PRESENT;
}

/* Decides an entry that has no target and is not known. False: it stays open. */
static void decide(struct walk *w, struct entry *e, const struct part *p)
{
	struct call *c = w->c;
	uint32_t type;

	if (p->last && (w->flags & LOOK_AT_PARENT) && !w->force)
		return;
	switch (judge(w, p, &type)) {
	case PRESENT:
		tree_infer(c->m, e, p->last && w->force_type ? w->force_type : type);
		break;
	case ABSENT:
		e->known = true;
		break;
	case OPEN:
		if (c->ev->outcome.err != ENOENT)
			c->unsure = true;
		break;
	}
}

/* Whether anything is to be found out, and may be. */
static bool is_open(struct call *c, const struct found *f)
{
	if (f->err || f->inode || !f->dir || (f->entry && f->entry->known) ||
	    dir_is_complete(c->m, f->dir))
		return false;
	if (!c->quiet && f->entry)
		return true;
	c->unsure = true;
	return false;
}

static void name_infer(struct call *c, struct found *f, uint32_t type)
{
	tree_infer(c->m, f->entry, type);
	f->inode = f->entry->target;
}

void name_decide(struct call *c, struct found *f, bool wanted, uint32_t type)
{
	int err = c->ev->outcome.err;

	if (!is_open(c, f))
		return;
	if (c->want_ok && wanted)
		name_infer(c, f, type);
	else if (!c->want_ok && (err == EEXIST || err == EISDIR || err == ENOTEMPTY))
		name_infer(c, f, err == EEXIST ? 0 : S_IFDIR);
	else if (c->want_ok || (err == ENOENT && wanted && !has_two_paths(c)))
		f->entry->known = true;
	else
		c->unsure = true;
}

void name_decide_moved(struct call *c, struct found *f)
{
	int err = c->ev->outcome.err;

	if (!c->want_ok && (err == EISDIR || err == ENOTEMPTY) && is_open(c, f))
		name_infer(c, f, err == EISDIR ? S_IFREG : 0);
	else
		name_decide(c, f, true, 0);
}

/* One component. */

static void touch_entry(struct walk *w, struct entry *e, const struct part *p)
{
	uint32_t how = TOUCH_USE | (p->last ? 0 : TOUCH_WALK);

	if (w->force)
		return;
	if (!e->target) {
		how |= TOUCH_FAILED;
		if (e->known && !e->failed_step && !w->c->quiet)
			e->failed_step = w->c->m->tables->step + 1;
	}
	touch_add(w->c, &e->res, how, 0, 0);
}

/* The entry of a component; NULL in a quiet call that would have to make it. */
static struct entry *entry_at(struct walk *w, const struct part *p)
{
	struct fsmodel *m = w->c->m;
	uint64_t hash = entry_hash(w->dir, p->s, p->len);
	struct entry *e = entry_find(m, w->dir, p->s, p->len, hash);

	if (e)
		entry_used(m, e);
	if (w->c->quiet) {
		if (!e ? !dir_is_complete(m, w->dir) : !e->target && !e->known)
			w->c->unsure = true;
		return e;
	}
	if (!e)
		e = entry_new(m, w->dir, p->s, p->len, hash);
	if (!e->target && (!e->known || w->force))
		decide(w, e, p);
	/* What the kernel makes up comes and goes as it likes. */
	if (w->dir->special && !m->options.execute) {
		w->c->unsure = true;
		if (!e->target && w->c->want_ok && !(w->flags & LOOK_AT_PARENT && p->last))
			tree_infer(m, e, p->last ? 0 : S_IFDIR);
	}
	touch_entry(w, e, p);
	return e;
}

static bool is_dot(const struct part *p)
{
	return p->len == 1 && p->s[0] == '.';
}

static bool is_dotdot(const struct part *p)
{
	return p->len == 2 && p->s[0] == '.' && p->s[1] == '.';
}

/* The text on top is used up: what was behind the symlink is on top again. */
static void pop(struct walk *w)
{
	w->depth--;
	w->s = w->rest[w->depth].s;
	w->end = w->s + w->rest[w->depth].len;
}

/* The component ends here: skips what is between it and the next. */
static void end_part(struct walk *w, struct part *p, const char *after)
{
	p->len = (size_t)(after - p->s);
	p->end = w->end;
	p->slash = after < w->end;
	while (after < w->end && *after == '/')
		after++;
	w->s = after;
	p->last = after == w->end && !w->depth;
	if (after == w->end && w->depth)
		pop(w);
}

/* Takes the next component off the texts. False: there is none. */
static bool next_part(struct walk *w, struct part *ret)
{
	const char *slash;

	for (;;) {
		while (w->s < w->end && *w->s == '/')
			w->s++;
		if (w->s < w->end)
			break;
		if (!w->depth)
			return false;
		pop(w); /* the text was "/" */
	}
	ret->s = w->s;
	slash = memchr(w->s, '/', (size_t)(w->end - w->s));
	end_part(w, ret, slash ? slash : w->end);
	return true;
}

static void use_handle(struct walk *w, struct handle *h)
{
	if (!w->force)
		touch_use(w->c, &h->res, 0);
}

/* From here on the outcome depends on what the root is. */
static void ask_root(struct walk *w)
{
	if (!w->root_used)
		use_handle(w, w->c->fs->root);
	w->root_used = true;
}

/* The next step begins in the root. */
static int jump_root(struct walk *w)
{
	/* The kernel takes a root that it has not looked at yet for another mount (nd_jump_root). */
	if ((w->resolve & RESOLVE_BENEATH) ||
	    ((w->resolve & RESOLVE_NO_XDEV) && w->dir && !w->root_used))
		return EXDEV;
	w->dir = w->root;
	ask_root(w);
	return 0;
}

static int follow(struct walk *w, struct inode *link, const struct part *p)
{
	if (w->nr_links++ >= MODEL_LINKS_MAX || (w->resolve & RESOLVE_NO_SYMLINKS))
		return ELOOP;
	if (!p->last) {
		w->rest[w->depth].s = w->s;
		w->rest[w->depth].len = (size_t)(w->end - w->s);
		w->depth++;
	}
	if (p->last) {
		/* From here on every symlink at the end is followed. */
		w->must_dir |= p->slash;
		if (p->slash)
			w->flags |= LOOK_AT_FOLLOW;
		w->f->dir = NULL;
		w->f->entry = NULL;
		w->f->slash = false;
	}
	w->s = link->target;
	w->end = link->target + link->target_len;
	return *w->s == '/' ? jump_root(w) : 0;
}

/* Of a symlink is known only that it is one: what it leads to is something of its own. */
static struct inode *behind(struct walk *w, struct inode *link, const struct part *p)
{
	uint32_t type = p->last && !p->slash && !(w->flags & LOOK_AT_DIRECTORY) ? 0 : S_IFDIR;

	if (w->c->quiet || !w->c->want_ok) {
		w->c->unsure = true;
		return NULL;
	}
	if (!link->parent) {
		link->parent = inode_guess(w->c->m, type);
		inode_ref(link->parent);
	}
	return link->parent;
}

static bool is_dir(struct walk *w, struct inode *i)
{
	if (w->force && i->type != S_IFDIR && i->type != S_IFLNK)
		inode_set_type(w->c->m, i, S_IFDIR);
	return is_type(w->c, i, S_IFDIR, w->c->want_ok);
}

/* What a path ends with. */
static int finish(struct walk *w, struct inode *i)
{
	struct found *f = w->f;

	f->inode = i;
	if ((w->must_dir || (w->flags & LOOK_AT_DIRECTORY)) && !is_dir(w, i))
		return ENOTDIR;
	if (w->ends_in_fd_dir && i->type == S_IFDIR)
		i->fd_dir = true;
	return 0;
}

enum step {
	GO_ON,
	DONE, /* found.err says how */
};

static enum step fail(struct walk *w, int err)
{
	w->f->err = err;
	return DONE;
}

static enum step take_dots(struct walk *w, const struct part *p)
{
	if (is_dotdot(p)) {
		ask_root(w);
		if (w->dir == w->root) {
			if (w->resolve & RESOLVE_BENEATH)
				return fail(w, EXDEV);
		} else if (w->dir->parent) {
			if (w->resolve & RESOLVE_NO_XDEV && w->dir->own && w->dir->own->mount)
				return fail(w, by_environment(w->c, EXDEV));
			w->dir = w->dir->parent;
		}
	}
	if (!p->last)
		return GO_ON;
	w->f->dots = true;
	w->f->dotdot = is_dotdot(p);
	return fail(w, finish(w, w->dir));
}

/* Whether a symlink is meant by what it leads to. */
static bool is_followed(const struct walk *w, const struct part *p)
{
	if (!p->last)
		return true;
	if (w->flags & LOOK_AT_PARENT)
		return false;
	if (p->slash)
		return !(w->flags & LOOK_AT_CREATE);
	return w->flags & LOOK_AT_FOLLOW;
}

static enum step take_absent(struct walk *w, const struct part *p)
{
	return fail(w, p->last && (w->flags & (LOOK_AT_CREATE | LOOK_AT_PARENT)) ? 0 : ENOENT);
}

static enum step take_name(struct walk *w, const struct part *p)
{
	struct call *c = w->c;
	struct entry *e = NULL;
	struct inode *next;

	if (p->last) {
		w->f->dir = w->dir;
		w->f->slash = p->slash;
		if (!w->force)
			touch_use(c, &w->dir->res, 0);
	}
	if (p->len > MODEL_NAME_MAX) {
		int err = w->dir->gone ? ENOENT : ENAMETOOLONG;

		if (p->last && p->slash && (w->flags & LOOK_AT_CREATE))
			return fail(w, 0);
		if (!p->last || !(w->flags & LOOK_AT_PARENT))
			return fail(w, err);
		w->f->last_err = err;
		return fail(w, 0);
	}
	e = entry_at(w, p);
	if (p->last)
		w->f->entry = e;
	next = e ? e->target : NULL;
	if (!next)
		return take_absent(w, p);
	if (e->mount && (w->resolve & RESOLVE_NO_XDEV))
		return fail(w, by_environment(w->c, EXDEV));
	if (next->type == S_IFLNK && is_followed(w, p)) {
		int err;

		if (next->target) {
			err = follow(w, next, p);
			return err ? fail(w, err) : GO_ON;
		}
		next = behind(w, next, p);
		if (!next)
			return fail(w, ENOENT);
	}
	if (p->last) {
		if (p->slash && !(w->flags & (LOOK_AT_CREATE | LOOK_AT_PARENT)))
			w->must_dir = true;
		return fail(w, finish(w, next));
	}
	if (!is_dir(w, next))
		return fail(w, ENOTDIR);
	w->dir = next;
	return GO_ON;
}

/* Descriptors under names: /proc/self/fd/3, /dev/fd/3, /dev/stdin. */

struct words {
	const char *s, *end;
};

static bool next_word(struct words *t, const char **ret, size_t *ret_len)
{
	do {
		while (t->s < t->end && *t->s == '/')
			t->s++;
		*ret = t->s;
		while (t->s < t->end && *t->s != '/')
			t->s++;
		*ret_len = (size_t)(t->s - *ret);
	} while (*ret_len == 1 && **ret == '.');
	return *ret_len > 0;
}

static bool word_is(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(s, word, len);
}

static bool word_number(const char *s, size_t len, int64_t *ret)
{
	int64_t n = 0;
	size_t at;

	if (!len || len > 10 || (len > 1 && s[0] == '0'))
		return false;
	for (at = 0; at < len; at++) {
		if (s[at] < '0' || s[at] > '9')
			return false;
		n = n * 10 + (s[at] - '0');
	}
	*ret = n;
	return true;
}

struct magic {
	uint32_t pid; /* 0: the caller's own */
	int64_t fd; /* -1: dir */
	struct inode *dir; /* its cwd or root */
	const char *after;
};

static bool match_dev(struct words *t, struct magic *ret)
{
	static const char *const standard[] = { "stdin", "stdout", "stderr" };
	const char *s;
	size_t len, at;

	if (!next_word(t, &s, &len))
		return false;
	for (at = 0; at < ARRAY_LEN(standard); at++) {
		if (word_is(s, len, standard[at])) {
			ret->fd = (int64_t)at;
			return true;
		}
	}
	return word_is(s, len, "fd") && next_word(t, &s, &len) && word_number(s, len, &ret->fd);
}

static bool match_proc(struct walk *w, struct words *t, struct magic *ret)
{
	int64_t pid;
	const char *s;
	size_t len;

	if (!next_word(t, &s, &len))
		return false;
	if (word_number(s, len, &pid))
		ret->pid = pid == w->c->ev->pid ? 0 : (uint32_t)pid;
	else if (!word_is(s, len, "self") && !word_is(s, len, "thread-self"))
		return false;
	if (!next_word(t, &s, &len))
		return false;
	if (word_is(s, len, "task") &&
	    (!next_word(t, &s, &len) || !word_number(s, len, &pid) || !next_word(t, &s, &len)))
		return false;
	if (!ret->pid && (word_is(s, len, "cwd") || word_is(s, len, "root"))) {
		const struct handle *h = *s == 'c' ? w->c->fs->cwd : w->c->fs->root;

		ret->dir = h->dir;
		return true;
	}
	if (!word_is(s, len, "fd"))
		return false;
	if (!next_word(t, &s, &len)) {
		w->ends_in_fd_dir = !ret->pid && !w->depth;
		return false;
	}
	return word_number(s, len, &ret->fd);
}

static bool match_magic(struct walk *w, const struct part *p, struct magic *ret)
{
	struct words t = { .s = p->s + p->len, .end = p->end };
	bool yes = false;

	*ret = (struct magic){ .fd = -1 };
	if (w->dir->fd_dir)
		yes = word_number(p->s, p->len, &ret->fd);
	else if (word_is(p->s, p->len, "proc"))
		yes = match_proc(w, &t, ret);
	else if (word_is(p->s, p->len, "dev"))
		yes = match_dev(&t, ret);
	ret->after = t.s;
	return yes;
}

/* The number was found behind the part: it is part of it now. */
static struct part extend(struct walk *w, const struct part *p, const struct magic *magic)
{
	struct part ret = *p;

	if (magic->after == p->s + p->len)
		return ret;
	w->end = p->end;
	end_part(w, &ret, magic->after);
	return ret;
}

static int enter_magic(struct walk *w)
{
	if (w->resolve & (RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS))
		return ELOOP;
	if (w->resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT))
		return EXDEV;
	return w->nr_links++ >= MODEL_LINKS_MAX ? ELOOP : 0;
}

static void note_fd_path(struct walk *w, const struct part *p, const struct magic *magic,
			 struct descriptor *d)
{
	struct fd_path ref = { .fd = &d->res };

	if (p->end == w->first_end) {
		ref.where = (struct value *)(uintptr_t)w->path;
		ref.rest = (uint32_t)(magic->after - w->first_s);
	}
	if (!w->c->quiet && !w->force)
		VEC_PUSH(&w->c->facts->fd_paths, ref);
}

static enum step take_magic(struct walk *w, const struct part *p, const struct magic *magic)
{
	struct call *c = w->c;
	struct part part = extend(w, p, magic);
	struct inode *i = magic->dir;
	struct descriptor *d = NULL;
	int err;

	if (magic->fd >= 0) {
		d = magic->pid || c->quiet ? fd_peek(c, magic->pid, magic->fd)
					   : fd_get(c, magic->fd);
		c->unsure |= !d && magic->pid;
		if (!d)
			return fail(w, ENOENT);
	}
	if (part.last && !is_followed(w, &part)) {
		c->unsure = true;
		return fail(w, finish(w, c->m->names->magic_link));
	}
	err = enter_magic(w);
	if (err)
		return fail(w, err);
	if (d) {
		note_fd_path(w, &part, magic, d);
		i = fd_inode(c, d, part.last && !part.slash ? 0 : S_IFDIR);
	}
	if (!part.last) {
		if (!i || !is_dir(w, i))
			return fail(w, ENOTDIR);
		w->dir = i;
		return GO_ON;
	}
	w->f->through_fd = d ? &d->res : NULL;
	w->f->open = d ? d->open : NULL;
	w->f->slash = part.slash;
	w->must_dir |= part.slash;
	if (i)
		return fail(w, finish(w, i));
	return fail(w, w->must_dir || w->flags & LOOK_AT_DIRECTORY ? ENOTDIR : 0);
}

/* The whole walk. */

static enum step take_part(struct walk *w, const struct part *p)
{
	struct magic magic;
	int err = may_access(w->c, w->dir, X_OK);

	if (err)
		return fail(w, err);
	if (is_dot(p) || is_dotdot(p))
		return take_dots(w, p);
	if ((w->dir == w->c->m->names->root || w->dir->fd_dir) && match_magic(w, p, &magic))
		return take_magic(w, p, &magic);
	return take_name(w, p);
}

/* Where the walk starts. 0 or errno. */
static int begin(struct walk *w, int64_t dirfd)
{
	struct call *c = w->c;
	struct descriptor *d;
	bool absolute = w->s < w->end && *w->s == '/';

	w->root = c->fs->root->dir;
	if (absolute && !(w->resolve & RESOLVE_IN_ROOT))
		return jump_root(w);
	if ((int32_t)dirfd == AT_FDCWD) {
		use_handle(w, c->fs->cwd);
		w->dir = c->fs->cwd->dir;
		if (!w->dir->type && !c->quiet)
			inode_set_type(c->m, w->dir, S_IFDIR);
	} else {
		d = c->quiet || w->force ? fd_peek(c, 0, dirfd) : fd_get(c, dirfd);
		if (!d)
			return EBADF;
		w->dir = fd_inode(c, d, w->s < w->end ? S_IFDIR : 0);
		w->f->through_fd = w->s < w->end ? NULL : &d->res;
		w->f->open = w->s < w->end ? NULL : d->open;
		if (w->s < w->end && (!w->dir || !is_dir(w, w->dir)))
			return ENOTDIR;
	}
	if (w->resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) {
		w->root = w->dir;
		w->root_used = true;
	}
	return 0;
}

static void walk(struct walk *w, int64_t dirfd)
{
	struct found *f = w->f;
	struct path_text text;
	struct part p;

	*f = (struct found){ .err = text_of(w->c, w->path, &text) };
	if (f->err)
		return;
	w->s = w->first_s = text.s;
	w->end = w->first_end = text.s + text.len;
	if (!text.len && !(w->flags & LOOK_AT_EMPTY)) {
		f->err = ENOENT;
		return;
	}
	f->err = begin(w, dirfd);
	if (f->err)
		return;
	if (!text.len) {
		f->inode = w->dir;
		if (w->flags & LOOK_AT_DIRECTORY && !(w->dir && is_dir(w, w->dir)))
			f->err = ENOTDIR;
		return;
	}
	while (next_part(w, &p)) {
		if (take_part(w, &p) == DONE) {
			if (f->err)
				f->inode = NULL;
			return;
		}
	}
	f->err = finish(w, w->dir);
}

void look_up(struct call *c, int64_t dirfd, const struct value *path, unsigned int flags,
	     uint64_t resolve, struct found *ret)
{
	struct path_text rest[MODEL_LINKS_MAX];
	struct walk w = {
		.c = c, .f = ret, .path = path, .flags = flags, .resolve = resolve, .rest = rest
	};

	walk(&w, dirfd);
}

bool mend_exists(struct call *c, int64_t dirfd, const struct value *path, unsigned int flags,
		 uint32_t type)
{
	struct found f;
	struct path_text rest[MODEL_LINKS_MAX];
	struct walk w = { .c = c,
			  .f = &f,
			  .rest = rest,
			  .path = path,
			  .flags = flags & ~(unsigned int)LOOK_AT_CREATE,
			  .force = true,
			  .force_type = type };

	if (c->quiet)
		return false;
	walk(&w, dirfd);
	if (f.err || !f.inode)
		return false;
	tree_know_core(c, path, f.inode);
	if (type && f.inode->type != type)
		inode_set_type(c->m, f.inode, type);
	return !type || f.inode->type == type;
}
