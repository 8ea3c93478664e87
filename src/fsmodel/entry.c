/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/hash.h"
#include "fsmodel/names.h"

/* The table of all entries. */

uint64_t entry_hash(const struct inode *dir, const char *name, size_t len)
{
	return XXH3_64bits_withSeed(name, len, dir->res.id * UINT64_C(0x9e3779b97f4a7c15));
}

struct entry *entry_find(const struct fsmodel *m, const struct inode *dir, const char *name,
			 size_t len, uint64_t hash)
{
	const struct names *n = m->names;
	struct entry *e;

	for (e = n->buckets[hash & (n->nr_buckets - 1)]; e; e = e->hash_next) {
		if (e->hash == hash && e->dir == dir && e->name_len == len &&
		    !memcmp(e->name, name, len))
			return e;
	}
	return NULL;
}

static void table_grow(struct names *n)
{
	size_t nr = n->nr_buckets * 2, at;
	struct entry **buckets = xcalloc(nr, sizeof(struct entry *));

	for (at = 0; at < n->nr_buckets; at++) {
		struct entry *e = n->buckets[at], *next;

		for (; e; e = next) {
			next = e->hash_next;
			e->hash_next = buckets[e->hash & (nr - 1)];
			buckets[e->hash & (nr - 1)] = e;
		}
	}
	free(n->buckets);
	n->buckets = buckets;
	n->nr_buckets = nr;
}

static void table_remove(struct names *n, struct entry *e)
{
	struct entry **slot = &n->buckets[e->hash & (n->nr_buckets - 1)];

	while (*slot != e)
		slot = &(*slot)->hash_next;
	*slot = e->hash_next;
	n->nr_entries--;
}

/* Those without target, by age. */

static void age_remove(struct fsmodel *m, struct entry *e)
{
	struct names *n = m->names;

	*(e->newer ? &e->newer->older : &n->newest) = e->older;
	*(e->older ? &e->older->newer : &n->oldest) = e->newer;
	e->newer = e->older = NULL;
	m->totals.nr_absent--;
}

static void age_insert(struct fsmodel *m, struct entry *e)
{
	struct names *n = m->names;

	e->older = n->newest;
	e->newer = NULL;
	*(n->newest ? &n->newest->newer : &n->oldest) = e;
	n->newest = e;
	m->totals.nr_absent++;
}

/* A look-up has come by: of those that are absent, who is asked for often is remembered. */
void entry_used(struct fsmodel *m, struct entry *e)
{
	if (!e->target && m->names->newest != e) {
		age_remove(m, e);
		age_insert(m, e);
	}
}

static void forget_oldest(struct fsmodel *m)
{
	size_t max = m->options.max_absent ? m->options.max_absent : MAX_ABSENT_DEFAULT;

	if (max < MAX_ABSENT_LEAST)
		max = MAX_ABSENT_LEAST;
	while (m->totals.nr_absent > max)
		entry_free_now(m, m->names->oldest);
}

/* Life. */

struct entry *entry_new(struct fsmodel *m, struct inode *dir, const char *name, size_t len,
			uint64_t hash)
{
	struct names *n = m->names;
	struct entry *e = xcalloc(1, sizeof(*e) + len + 1);

	res_init(m, &e->res, RES_NAME);
	e->res.generation = 0;
	e->dir = dir;
	e->hash = hash;
	e->name_len = (uint16_t)len;
	memcpy(e->name, name, len);
	e->known = dir_is_complete(m, dir);
	if (n->nr_entries >= n->nr_buckets)
		table_grow(n);
	e->hash_next = n->buckets[hash & (n->nr_buckets - 1)];
	n->buckets[hash & (n->nr_buckets - 1)] = e;
	n->nr_entries++;
	e->next_child = dir->children;
	if (dir->children)
		dir->children->prev_child = e;
	dir->children = e;
	age_insert(m, e);
	forget_oldest(m);
	m->totals.nr_names++;
	return e;
}

struct entry *entry_of(struct fsmodel *m, struct inode *dir, const char *name, size_t len)
{
	uint64_t hash = entry_hash(dir, name, len);
	struct entry *e = entry_find(m, dir, name, len, hash);

	return e ? e : entry_new(m, dir, name, len, hash);
}

/* An entry without target is no longer remembered: its past becomes the directory's. */
void entry_free_now(struct fsmodel *m, struct entry *e)
{
	age_remove(m, e);
	table_remove(m->names, e);
	*(e->prev_child ? &e->prev_child->next_child : &e->dir->children) = e->next_child;
	if (e->next_child)
		e->next_child->prev_child = e->prev_child;
	m->totals.nr_names--;
	res_bury(m, &e->res, &e->dir->res);
}

/* Targets. */

bool dir_is_below(const struct inode *dir, const struct inode *i)
{
	for (; dir != i; dir = dir->parent) {
		if (!dir->parent || dir->parent == dir)
			return false;
	}
	return true;
}

void entry_link(struct fsmodel *m, struct entry *e, struct inode *target)
{
	age_remove(m, e);
	e->target = target;
	e->known = true;
	e->res.generation++;
	e->dir->nr_present++;
	inode_ref(target);
	if (target->type != S_IFDIR) {
		e->next_name = target->names;
		target->names = e;
		return;
	}
	/*
	 * A second name of a directory is a bind mount: it stays where it is. So
	 * does one that would come to be below itself; its subdirectories hold it.
	 */
	if (target->own || target == m->names->root ||
	    (target->refs > 1 && dir_is_below(e->dir, target)))
		return;
	target->own = e;
	if (target->parent != e->dir) {
		inode_ref(e->dir);
		inode_unref(m, target->parent);
		target->parent = e->dir;
	}
}

void entry_unlink(struct fsmodel *m, struct entry *e)
{
	struct inode *target = e->target;
	struct entry **slot;

	if (target->type == S_IFDIR && target->own == e) {
		if (target->initial && !target->gone)
			first_remember(m, target); /* it may only move */
		target->own = NULL;
	}
	for (slot = &target->names; *slot; slot = &(*slot)->next_name) {
		if (*slot == e) {
			*slot = e->next_name;
			break;
		}
	}
	e->next_name = NULL;
	e->target = NULL;
	e->dir->nr_present--;
	age_insert(m, e);
	inode_unref(m, target);
}

void entry_bind(struct call *c, struct entry *e, struct inode *target)
{
	entry_link(c->m, e, target);
	if (target->type != S_IFDIR) {
		target->nlink++;
		target->linkable = false;
	}
	touch_use(c, &e->res, TOUCH_CREATE);
	touch_use(c, &e->dir->res, TOUCH_ENTRY);
}

void entry_unbind(struct call *c, struct entry *e)
{
	touch_use(c, &e->res, TOUCH_DELETE);
	touch_use(c, &e->dir->res, TOUCH_ENTRY);
	if (e->target->type != S_IFDIR && e->target->nlink)
		e->target->nlink--;
	entry_unlink(c->m, e);
}

/*
 * Down to the first leaf, then up again: no recursion. Entries go too, so that
 * none is met twice; what they remember becomes their directory's.
 */
void tree_prune(struct fsmodel *m, struct inode *dir)
{
	struct inode *at = dir;

	for (;;) {
		struct entry *e = at->children;
		struct inode *i = e ? e->target : NULL;

		if (!e) {
			if (at == dir)
				return;
			at = at->parent;
		} else if (i && i->type == S_IFDIR && i->own == e && i->children) {
			at = i;
		} else {
			if (i && i->type == S_IFDIR && i->own == e)
				i->gone = true;
			if (i)
				entry_unlink(m, e);
			entry_free_now(m, e);
		}
	}
}

/* What directories permit. */

/* Nothing can be made in a directory that is removed: that it is depends on who emptied it. */
static int gone_error(struct call *c, struct inode *dir)
{
	if (!dir->gone)
		return 0;
	touch_use(c, &dir->res, TOUCH_ENTRY);
	return ENOENT;
}

int may_make(struct call *c, const struct found *f)
{
	if (f->inode || !f->dir)
		return EEXIST;
	if (gone_error(c, f->dir))
		return ENOENT;
	return may_access(c, f->dir, W_OK | X_OK);
}

static bool sticky(const struct call *c, const struct inode *dir, const struct inode *victim)
{
	if (!(dir->mode & S_ISVTX) || !dir->mode_known || c->cred.all_powerful)
		return false;
	return c->cred.uid != dir->uid && (!victim->mode_known || c->cred.uid != victim->uid);
}

int may_delete(struct call *c, struct inode *dir, struct inode *victim, bool is_dir)
{
	int err = may_access(c, dir, W_OK | X_OK);

	if (err)
		return err;
	if (sticky(c, dir, victim) && may_deny(c, EPERM))
		return EPERM;
	if (is_dir && !is_type(c, victim, S_IFDIR, c->want_ok))
		return ENOTDIR;
	if (!is_dir && is_type(c, victim, S_IFDIR, c->ev->outcome.err == EISDIR))
		return EISDIR;
	return gone_error(c, dir);
}

struct inode *make_in(struct call *c, const struct found *f, uint32_t type, uint32_t mode)
{
	struct inode *i = inode_make(c, f->dir, type, mode);

	entry_bind(c, f->entry, i);
	return i;
}
