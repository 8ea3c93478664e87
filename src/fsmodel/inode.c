/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/banned.h"
#include "fsmodel/names.h"
#include "model/fields.h"

/* Identities. */

static size_t id_bucket(const struct names *n, uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino + dev * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	return (size_t)(h >> 17) & (n->nr_id_buckets - 1);
}

static void ids_insert(struct names *n, struct inode *i)
{
	struct inode **slot = &n->ids[id_bucket(n, i->dev, i->ino)];

	i->next_same_id = *slot;
	*slot = i;
}

static void ids_grow(struct names *n)
{
	struct inode **old = n->ids;
	size_t nr_old = n->nr_id_buckets, at;

	n->nr_id_buckets = nr_old ? nr_old * 2 : 256;
	n->ids = xcalloc(n->nr_id_buckets, sizeof(struct inode *));
	for (at = 0; at < nr_old; at++) {
		struct inode *i = old[at], *next;

		for (; i; i = next) {
			next = i->next_same_id;
			ids_insert(n, i);
		}
	}
	free(old);
}

static void ids_remove(struct names *n, struct inode *i)
{
	struct inode **slot;

	if (!i->ino)
		return;
	for (slot = &n->ids[id_bucket(n, i->dev, i->ino)]; *slot; slot = &(*slot)->next_same_id) {
		if (*slot == i) {
			*slot = i->next_same_id;
			n->nr_ids--;
			return;
		}
	}
}

struct inode *inode_by_id(struct fsmodel *m, uint64_t dev, uint64_t ino)
{
	struct names *n = m->names;
	struct inode *i;

	if (!ino || !n->nr_id_buckets)
		return NULL;
	for (i = n->ids[id_bucket(n, dev, ino)]; i; i = i->next_same_id) {
		if (i->ino == ino && i->dev == dev)
			return i;
	}
	return NULL;
}

/* A number that was another's is this one's now: the file system has given it out again. */
void inode_set_id(struct fsmodel *m, struct inode *i, uint64_t dev, uint64_t ino)
{
	struct names *n = m->names;
	struct inode *other;

	if (!ino || (i->ino == ino && i->dev == dev))
		return;
	other = inode_by_id(m, dev, ino);
	if (other) {
		ids_remove(n, other);
		other->ino = 0;
	}
	ids_remove(n, i);
	i->dev = dev;
	i->ino = ino;
	if (n->nr_ids >= n->nr_id_buckets)
		ids_grow(n);
	ids_insert(n, i);
	n->nr_ids++;
}

/* Life. */

struct inode *inode_new(struct fsmodel *m, uint32_t type, uint32_t mode)
{
	struct names *n = m->names;
	struct inode *i = xcalloc(1, sizeof(*i));

	res_init(m, &i->res, RES_FILE);
	i->res.generation = 1;
	i->type = type & S_IFMT;
	i->res.directory = i->type == S_IFDIR;
	i->mode = mode & 07777;
	i->mode_known = true;
	i->size_known = true;
	i->held_bytes = UINT64_MAX;
	i->next_all = n->all;
	if (n->all)
		n->all->prev_all = i;
	n->all = i;
	m->totals.nr_files++;
	return i;
}

static uint32_t guess_mode(uint32_t type)
{
	return type == S_IFDIR ? 0755 : type == S_IFLNK ? 0777 : 0644;
}

/* Something of which nothing is known but that it is there. */
struct inode *inode_guess(struct fsmodel *m, uint32_t type)
{
	struct inode *i = inode_new(m, type, guess_mode(type));

	i->uid = m->options.uid;
	i->gid = m->options.gid;
	i->nlink = 1;
	i->mode_known = false;
	i->size_known = false;
	i->held_bytes = 0;
	i->inferred = true;
	i->initial = true;
	return i;
}

struct inode *inode_make(struct call *c, const struct inode *dir, uint32_t type, uint32_t mode)
{
	struct inode *i = inode_new(c->m, type, mode);

	i->uid = c->cred.uid;
	i->gid = c->cred.gid;
	if (type != S_IFLNK)
		i->mode &= ~c->fs->umask;
	if (dir) {
		i->dev = dir->dev;
		i->special = dir->special;
		if (dir->mode & S_ISGID) {
			i->gid = dir->gid;
			if (type == S_IFDIR)
				i->mode |= S_ISGID;
			else if ((i->mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
				 !c->cred.all_powerful && i->gid != c->cred.gid)
				i->mode &= ~(uint32_t)S_ISGID;
		}
	}
	if (type == S_IFCHR || type == S_IFBLK)
		i->special = true;
	i->complete = i->listed = type == S_IFDIR;
	i->xattrs_known = true;
	touch_use(c, &i->res, TOUCH_CREATE);
	return i;
}

void inode_ref(struct inode *i)
{
	i->refs++;
}

static void drop_children(struct fsmodel *m, struct inode *i)
{
	while (i->children) {
		struct entry *e = i->children;

		if (e->target)
			entry_unlink(m, e);
		entry_free_now(m, e);
	}
}

static void inode_die(struct fsmodel *m, struct inode *i)
{
	struct names *n = m->names;

	if (!i->special) {
		struct touch t = { .res = &i->res, .how = TOUCH_USE | TOUCH_DELETE };

		VEC_PUSH(&m->facts.touches, t);
	}
	drop_children(m, i);
	first_drop(m, i);
	inode_drop_tables(m, i);
	ids_remove(n, i);
	if (i->prev_all)
		i->prev_all->next_all = i->next_all;
	else
		n->all = i->next_all;
	if (i->next_all)
		i->next_all->prev_all = i->prev_all;
	if (i->xattrs) {
		map_release(i->xattrs);
		free(i->xattrs);
	}
	free(i->target);
	i->xattrs = NULL;
	i->target = NULL;
	if (i->parent && i->parent != i)
		inode_unref(m, i->parent);
	i->parent = NULL;
	m->totals.nr_files--;
	res_bury(m, &i->res, NULL);
}

/* A chain of a million directories goes without recursion: who dies while others do waits in a list. */
void inode_unref(struct fsmodel *m, struct inode *i)
{
	struct names *n = m->names;

	if (!i || --i->refs)
		return;
	i->next_dying = n->dying;
	n->dying = i;
	if (n->reaping)
		return;
	n->reaping = true;
	while ((i = n->dying)) {
		n->dying = i->next_dying;
		inode_die(m, i);
	}
	n->reaping = false;
}

/* What events tell of an inode. */

void inode_set_type(struct fsmodel *m, struct inode *i, uint32_t type)
{
	struct entry *e = i->names;

	type &= S_IFMT;
	if (i->type == type || !type)
		return;
	if (i->type == S_IFLNK && i->parent) {
		inode_unref(m, i->parent);
		i->parent = NULL;
	}
	if (type == S_IFDIR && e && !dir_is_below(e->dir, i)) {
		/* One name is its own; others, which it should not have, are like bind mounts. */
		i->own = e;
		i->parent = e->dir;
		inode_ref(e->dir);
		while ((e = i->names)) {
			i->names = e->next_name;
			e->next_name = NULL;
		}
	} else if (i->type == S_IFDIR) {
		return; /* with all that may be below it */
	}
	i->type = type;
	i->res.directory = type == S_IFDIR;
	if (!i->mode_known)
		i->mode = guess_mode(type);
	if (i->first && !i->first->given) {
		i->first->type = type;
		if (!i->mode_known)
			i->first->mode = i->mode;
	}
}

bool type_explains(struct call *c)
{
	struct inode *candidates[] = { c->at.inode, c->at2.inode,
				       c->fd ? c->fd->open->inode : NULL };
	int err = c->ev->outcome.err;
	size_t n;

	for (n = 0; n < ARRAY_LEN(candidates); n++) {
		struct inode *i = candidates[n];

		if (!i || i->type || (err != EISDIR && err != ENOTDIR))
			continue;
		if (!c->quiet)
			inode_set_type(c->m, i, err == EISDIR ? S_IFDIR : S_IFREG);
		return true;
	}
	return false;
}

void inode_set_target(struct fsmodel *m, struct inode *i, const char *text, size_t len)
{
	if (len >= MODEL_PATH_MAX || !len)
		return;
	free(i->target);
	i->target = xmemdup0(text, len);
	i->target_len = len;
	i->size = len;
	i->size_known = true;
	words_add(m->names, text, len);
	if (i->parent) {
		inode_unref(m, i->parent);
		i->parent = NULL;
	}
	if (i->first && !i->first->given && !i->first->target) {
		i->first->target = xmemdup0(text, len);
		i->first->target_len = len;
	}
}

void inode_size_at_least(struct inode *i, uint64_t size)
{
	if (size <= i->size)
		return;
	i->size = size;
	/* What nobody has written was there before. */
	if (i->first && !i->size_known && size > i->first->size)
		i->first->size = size;
}

/* Whoever may not keep them takes the bits of privilege away by writing. */
static void drop_privileges(const struct call *c, struct inode *i)
{
	if (i->type != S_IFREG || c->cred.all_powerful)
		return;
	i->mode &= ~(uint32_t)S_ISUID;
	if (i->mode & S_IXGRP)
		i->mode &= ~(uint32_t)S_ISGID;
}

void inode_changes(struct call *c, struct inode *i)
{
	drop_privileges(c, i);
	if (i->first)
		i->first->changed = true;
}

void inode_size_is(struct inode *i, uint64_t size)
{
	if (i->first && !i->first->changed && !i->size_known)
		i->first->size = size;
	i->size = size;
	i->size_known = true;
}

void inode_learn(struct fsmodel *m, struct inode *i, const struct seen_stat *st)
{
	struct first *f = i->first && !i->first->given ? i->first : NULL;
	bool was_known = i->mode_known;

	if (i->special)
		return;
	/* What was already followed is what the symlink leads to: tree_infer_link(). */
	if (S_ISLNK(st->mode) && i->type != S_IFLNK && (i->type || i->refs > 1))
		return;
	if (st->has_mode && !was_known && (i->inferred || !i->type)) {
		inode_set_type(m, i, st->mode);
		if ((st->mode & S_IFMT) == i->type)
			i->mode = st->mode & 07777;
		i->mode_known = true;
		if (st->has_owner) {
			i->uid = st->uid;
			i->gid = st->gid;
		}
		if (f) {
			f->mode = i->mode;
			f->uid = i->uid;
			f->gid = i->gid;
		}
	}
	if (st->has_id && !i->ino && !inode_by_id(m, st->dev, st->ino))
		inode_set_id(m, i, st->dev, st->ino);
	if (st->has_nlink && i->inferred && i->type != S_IFDIR)
		i->nlink = st->nlink;
	/* A size that is known may be newer than the one that a call that overlapped others saw. */
	if (st->has_size && i->type == S_IFREG && !i->size_known)
		inode_size_is(i, st->size);
}

void inode_identify(struct fsmodel *m, struct inode *i, const struct value *file_id)
{
	const struct value *dev = value_field(file_id, FIELD_OF(file_id, dev)),
			   *ino = value_field(file_id, FIELD_OF(file_id, ino)),
			   *mode = value_field(file_id, FIELD_OF(file_id, mode)),
			   *size = value_field(file_id, FIELD_OF(file_id, size));
	struct seen_stat st = {
		.has_id = dev && ino && dev->type == VALUE_INT && ino->type == VALUE_INT,
		.has_mode = mode && mode->type == VALUE_INT,
		.has_size = size && size->type == VALUE_INT,
	};

	st.dev = st.has_id ? dev->u : 0;
	st.ino = st.has_id ? ino->u : 0;
	st.mode = st.has_mode ? (uint32_t)mode->u : 0;
	st.size = st.has_size ? size->u : 0;
	inode_learn(m, i, &st);
}

/* Permissions. */

bool may_deny(const struct call *c, int err)
{
	if (!c->m->options.execute && c->ev->outcome.err != err)
		return false;
	/* What even root may not do no replay may. */
	c->facts->by_environment |= !c->cred.all_powerful;
	return true;
}

int by_environment(const struct call *c, int err)
{
	c->facts->by_environment = true;
	return err;
}

bool is_owner(const struct call *c, const struct inode *i)
{
	return c->cred.all_powerful || !i->mode_known || c->cred.uid == i->uid;
}

int may_access(const struct call *c, const struct inode *i, unsigned int wanted)
{
	uint32_t bits = i->mode;

	if (!i->mode_known || !may_deny(c, EACCES))
		return 0;
	if (c->cred.all_powerful) {
		if (i->type == S_IFDIR || !(wanted & X_OK) || (i->mode & 0111))
			return 0;
		return EACCES;
	}
	if (c->cred.uid == i->uid)
		bits >>= 6;
	else if (c->cred.gid == i->gid)
		bits >>= 3;
	return (bits & wanted) == wanted ? 0 : EACCES;
}

bool is_type(struct call *c, struct inode *i, uint32_t type, bool expected)
{
	if (i->type)
		return i->type == type;
	if (!c->want_ok || c->quiet)
		c->unsure = true;
	else if (expected)
		inode_set_type(c->m, i, type);
	return expected;
}

/* Touches. */

void touch_names(struct call *c, struct inode *i, uint32_t how)
{
	struct entry *e;

	if (i->own)
		touch_use(c, &i->own->res, how);
	for (e = i->names; e; e = e->next_name)
		touch_use(c, &e->res, how);
}
