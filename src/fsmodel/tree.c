/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/hash.h"
#include "fsmodel/names.h"
#include "fsmodel/tables.h"
#include "model/fields.h"
#include "model/tree_stat.h"

enum tree_flag { /* of the set tree_flags */
		 TREE_LISTED = 1,
		 TREE_SPECIAL = 2,
		 TREE_MISSING = 4,
		 TREE_INFERRED = 8,
		 TREE_UNREADABLE = 32,
};

/* By number in the set file_types. */
static const uint32_t type_bits[] = { 0,       S_IFREG,	 S_IFDIR, S_IFLNK,
				      S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK };

static int64_t type_number(uint32_t type)
{
	size_t at;

	for (at = 1; at < ARRAY_LEN(type_bits); at++) {
		if (type_bits[at] == type)
			return (int64_t)at;
	}
	return 1; /* something that nobody ever looked at: a file will do */
}

/* Words of symlinks. */

static unsigned int word_bit(const char *name, size_t len)
{
	return (unsigned int)XXH3_64bits(name, len) % LINK_WORDS_BITS;
}

void words_add(struct names *n, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *slash = memchr(text, '/', (size_t)(end - text));
		const char *after = slash ? slash : end;
		unsigned int bit = word_bit(text, (size_t)(after - text));

		if (after > text)
			n->link_words[bit / 64] |= UINT64_C(1) << bit % 64;
		text = after + 1;
	}
}

bool words_have(const struct names *n, const char *name, size_t len)
{
	unsigned int bit = word_bit(name, len);

	return n->link_words[bit / 64] >> bit % 64 & 1;
}

/* Life. */

void tree_init(struct fsmodel *m)
{
	struct names *n = m->names = xcalloc(1, sizeof(*n));

	n->nr_buckets = 1024;
	n->buckets = xcalloc(n->nr_buckets, sizeof(struct entry *));
	n->root = inode_guess(m, S_IFDIR);
	n->root->complete = m->options.tree_known;
	n->root->inferred = !m->options.tree_known;
	n->root->parent = n->root;
	inode_ref(n->root);
	n->magic_link = inode_guess(m, S_IFLNK);
	n->magic_link->special = true;
	inode_ref(n->magic_link);
}

void tree_release(struct fsmodel *m)
{
	struct names *n = m->names;
	struct inode *i, *next_inode;
	struct first *f, *next_first;
	size_t at;

	if (!n)
		return;
	for (at = 0; at < n->nr_buckets; at++) {
		struct entry *e = n->buckets[at], *next;

		for (; e; e = next) {
			next = e->hash_next;
			free(e);
		}
	}
	for (i = n->all; i; i = next_inode) {
		next_inode = i->next_all;
		inode_drop_tables(m, i);
		if (i->xattrs)
			map_release(i->xattrs);
		free(i->xattrs);
		free(i->target);
		free(i);
	}
	for (f = n->first_first; f; f = next_first) {
		next_first = f->next;
		free(f->target);
		free(f->name);
		free(f);
	}
	free(n->buckets);
	free(n->ids);
	VEC_RELEASE(&n->mounts);
	free(n);
	m->names = NULL;
}

struct inode *tree_root(struct fsmodel *m)
{
	return m->names->root;
}

/* What was there before the trace. */

static struct first *first_new(struct fsmodel *m, struct inode *i, const char *name, size_t len)
{
	struct names *n = m->names;
	struct first *f = xcalloc(1, sizeof(*f));

	f->inode = i;
	f->type = i->type;
	f->mode = i->mode;
	f->uid = i->uid;
	f->gid = i->gid;
	f->name = xmemdup0(name, len);
	f->name_len = len;
	*(n->last_first ? &n->last_first->next : &n->first_first) = f;
	n->last_first = f;
	i->first = f;
	return f;
}

/* Whether the way up to the root, or to a directory that is remembered, is one of initial directories. */
static bool first_reachable(const struct fsmodel *m, const struct inode *dir)
{
	for (; dir != m->names->root && !dir->first; dir = dir->parent) {
		if (!dir->initial || !dir->own)
			return false;
	}
	return true;
}

void first_remember(struct fsmodel *m, struct inode *dir)
{
	struct first *below = NULL;

	if (!first_reachable(m, dir))
		return;
	for (; dir != m->names->root && !dir->first; dir = dir->parent) {
		struct first *f = first_new(m, dir, dir->own->name, dir->own->name_len);

		f->given = true;
		if (below)
			below->parent = f;
		below = f;
	}
	if (below)
		below->parent = dir->first;
}

void first_drop(struct fsmodel *m, struct inode *i)
{
	(void)m; /* the node stays: what it stands for was there */
	if (i->first)
		i->first->inode = NULL;
	i->first = NULL;
}

/* Whether nothing speaks against it that the name was there before the trace. */
static bool may_be_initial(const struct fsmodel *m, const struct entry *e)
{
	const struct inode *dir = e->dir;

	return dir->initial && !dir->special && !dir->listed && !dir->gone && !e->res.generation &&
	       (!e->failed_step || e->failed_step == m->tables->step + 1);
}

static void infer_as(struct fsmodel *m, struct entry *e, struct inode *i, bool initial)
{
	bool in_root = e->dir == m->names->root;

	i->initial = initial;
	i->dev = e->dir->dev;
	i->special = e->dir->special ||
		     (in_root && e->name_len == 4 && !memcmp(e->name, "proc", 4)) ||
		     (in_root && e->name_len == 3 && !memcmp(e->name, "sys", 3));
	if (i->initial && !i->special) {
		first_remember(m, e->dir);
		if (in_root || e->dir->first)
			first_new(m, i, e->name, e->name_len)->parent = e->dir->first;
	}
	entry_link(m, e, i);
}

void tree_infer(struct fsmodel *m, struct entry *e, uint32_t type)
{
	infer_as(m, e, inode_guess(m, type), may_be_initial(m, e));
}

/* Where files are put that the trace uses and does not name. No listing knows of it. */
static struct inode *unnamed_directory(struct fsmodel *m)
{
	static const char name[] = ".reprise-unnamed";
	struct entry *e = entry_of(m, m->names->root, name, sizeof(name) - 1);

	if (!e->target)
		infer_as(m, e, inode_guess(m, S_IFDIR), true);
	return e->target->type == S_IFDIR ? e->target : NULL;
}

/* A standard stream is taken for a file only when it is known to be one. */
bool fd_may_be_named(const struct fsmodel *m, const struct descriptor *d)
{
	const struct inode *i = d->open->inode;

	if (m->options.tree_known || !i || !i->inferred || i->names || i->own || i->special)
		return false;
	return i->type == S_IFREG || i->type == S_IFDIR || (!i->type && d->number > STDERR_FILENO);
}

bool fsmodel_infer_name(struct fsmodel *m, const struct res *fd)
{
	const struct descriptor *d = (const struct descriptor *)fd;
	struct open_file *o = d->open;
	struct inode *i = o->inode, *dir;
	char name[24];
	int len;

	if (!fd_may_be_named(m, d))
		return false;
	dir = unnamed_directory(m);
	if (!dir)
		return false;
	if (i->type == S_IFDIR)
		o->flags = O_RDONLY | O_DIRECTORY;
	/* Where it stood nobody knows; what stands for it begins at its beginning. */
	if (!o->offset_known)
		o->offset = 0;
	o->offset_known = true;
	i->nlink = 1;
	len = snprintf(name, sizeof(name), "%llu", (unsigned long long)fd->id);
	infer_as(m, entry_of(m, dir, name, (size_t)len), i, true);
	if (i->first)
		i->first->size = i->size;
	return true;
}

/* What was under one name is under another, and was from the beginning. */
static void first_rename(struct fsmodel *m, struct inode *i, const struct entry *e)
{
	struct first *f = i->first;

	first_remember(m, e->dir);
	if (!f || f->given || (e->dir != m->names->root && !e->dir->first))
		return;
	free(f->name);
	f->name = xmemdup0(e->name, e->name_len);
	f->name_len = e->name_len;
	f->parent = e->dir->first;
}

void tree_infer_link(struct call *c, struct found *f, const char *text, size_t len)
{
	struct inode *old = f->inode, *link = inode_guess(c->m, S_IFLNK);
	struct entry *e = f->entry;
	struct found to;

	if (!e || e->target != old)
		return;
	inode_ref(old);
	entry_unlink(c->m, e);
	e->res.generation = 0;
	e->failed_step = 0;
	infer_as(c->m, e, link, may_be_initial(c->m, e));
	inode_set_target(c->m, link, text, len);
	f->inode = link;
	look_up(c, dirfd_arg(c, "dirfd"), arg_of(c, "path"), LOOK_AT_FOLLOW | LOOK_AT_CREATE, 0,
		&to);
	if (!to.err && to.entry && !to.inode && !to.entry->res.generation) {
		first_rename(c->m, old, to.entry);
		entry_link(c->m, to.entry, old);
	}
	inode_unref(c->m, old);
}

void entry_listed(struct call *c, struct inode *dir, const char *name, size_t len, uint32_t type,
		  uint64_t ino)
{
	struct fsmodel *m = c->m;
	struct entry *e;

	if (c->quiet || !len || len > MODEL_NAME_MAX || (len == 1 && name[0] == '.') ||
	    (len == 2 && name[0] == '.' && name[1] == '.'))
		return;
	/* A listing may be older than a removal that overlapped it: what is known to be absent stays so. */
	if (dir_is_complete(m, dir) && !entry_find(m, dir, name, len, entry_hash(dir, name, len)))
		return;
	e = entry_of(m, dir, name, len);
	if (!e->target && !e->known) {
		tree_infer(m, e, type);
		if (ino && dir->ino && !inode_by_id(m, dir->dev, ino))
			inode_set_id(m, e->target, dir->dev, ino);
	} else if (e->target && !e->target->type) {
		inode_set_type(m, e->target, type);
	}
}

/* Items of the tree. */

static bool item_text(const struct item *item, const char *name, struct path_text *ret)
{
	struct item *open = (struct item *)(uintptr_t)item; /* args_find() gives what it is given */
	const struct value *v = args_find(item->row, open->args, name);

	if (!v || v->type != VALUE_DATA || v->data->kept_bytes < v->data->len_bytes ||
	    !v->data->bytes)
		return false;
	ret->s = (const char *)v->data->bytes;
	ret->len = strnlen(ret->s, v->data->len_bytes);
	return true;
}

static uint64_t item_int(const struct item *item, const char *name)
{
	struct item *open = (struct item *)(uintptr_t)item;
	const struct value *v = args_find(item->row, open->args, name);

	return v && v->type == VALUE_INT ? v->u : 0;
}

static struct inode *given_new(struct fsmodel *m, const struct inode *dir, uint32_t type)
{
	struct inode *i = inode_guess(m, type);

	i->inferred = false;
	i->dev = dir->dev;
	i->special = dir->special;
	i->complete = m->options.tree_known && !dir->special;
	return i;
}

/* The entry of a path, its directories made; NULL: no path, or the root itself. */
static struct entry *entry_at_path(struct fsmodel *m, const struct path_text *path)
{
	const char *s = path->s, *end = path->s + path->len;
	struct inode *dir = m->names->root;
	struct entry *e = NULL;

	while (s < end) {
		const char *slash = memchr(s, '/', (size_t)(end - s));
		size_t len = (size_t)((slash ? slash : end) - s);

		if (len) {
			/* What is below a name that was missing at first came later. */
			if (e && !e->target && e->missing)
				return NULL;
			if (e && !e->target)
				entry_link(m, e, given_new(m, e->dir, S_IFDIR));
			if (e)
				dir = e->target;
			if (!dir->type)
				inode_set_type(m, dir, S_IFDIR);
			if (dir->type != S_IFDIR || len > MODEL_NAME_MAX ||
			    (s[0] == '.' && (len == 1 || (len == 2 && s[1] == '.'))))
				return NULL;
			e = entry_of(m, dir, s, len);
		}
		s += len + 1;
	}
	return e;
}

static void add_xattrs(struct inode *i, const struct value *list)
{
	uint32_t at;

	if (!list || list->type != VALUE_LIST || i->xattrs_known)
		return;
	i->xattrs = xcalloc(1, sizeof(*i->xattrs));
	i->xattrs_known = true;
	for (at = 0; at < list->count; at++) {
		const struct value *name = value_field(&list->items[at], FIELD_OF(xattr, name));
		const struct value *data = value_field(&list->items[at], FIELD_OF(xattr, value));

		if (name && name->type == VALUE_DATA && name->data->bytes && data &&
		    data->type == VALUE_DATA)
			*map_slot(i->xattrs, name->data->bytes, name->data->kept_bytes) =
				(void *)(uintptr_t)(data->data->len_bytes + 1);
	}
}

static void fill_in(struct fsmodel *m, struct inode *i, const struct value *stat)
{
	uint64_t mode, uid = 0, gid = 0, size, dev, ino, nlink, rdev;

	if (tree_stat_get(stat, STAT_MODE, &mode) && !i->mode_known) {
		i->mode = mode & 07777;
		i->mode_known =
			tree_stat_get(stat, STAT_UID, &uid) && tree_stat_get(stat, STAT_GID, &gid);
		i->uid = (uint32_t)uid;
		i->gid = (uint32_t)gid;
	}
	if (tree_stat_get(stat, STAT_SIZE, &size) && !i->size_known && !i->special) {
		i->size = size;
		i->size_known = true;
	}
	if (tree_stat_get(stat, STAT_DEV, &dev) && tree_stat_get(stat, STAT_INO, &ino) && !i->ino)
		inode_set_id(m, i, dev, ino);
	if (tree_stat_get(stat, STAT_NLINK, &nlink))
		i->nlink = (uint32_t)nlink;
	if (tree_stat_get(stat, STAT_RDEV, &rdev))
		i->rdev = rdev;
}

/* The inode that a stat describes: another name's, or a new one. */
static struct inode *given_inode(struct fsmodel *m, const struct inode *dir, uint32_t type,
				 const struct value *stat)
{
	struct inode *i = NULL;
	uint64_t dev, ino;

	if (type != S_IFDIR && tree_stat_get(stat, STAT_DEV, &dev) &&
	    tree_stat_get(stat, STAT_INO, &ino))
		i = inode_by_id(m, dev, ino);
	return i && i->type == type && !i->special ? i : given_new(m, dir, type);
}

/* How much of its content is in the trace, from its beginning on without a gap. */
static void note_held(struct inode *i, const struct value *content)
{
	const struct data *d = content && content->type == VALUE_DATA ? content->data : NULL;
	uint64_t piece = 0, nr = d ? data_nr_pieces(d) : 0, held = 0;

	while (piece < nr && (d->bytes || (d->refs && d->refs[piece].blob)))
		piece++;
	if (d)
		held = piece == nr ? d->kept_bytes : piece * BLOB_MAX_BYTES;
	if ((d && held >= d->len_bytes) || (i->size_known && !i->size))
		held = UINT64_MAX;
	if (held > i->held_bytes)
		i->held_bytes = held;
}

static void add_entry(struct fsmodel *m, const struct item *item)
{
	struct item *open = (struct item *)(uintptr_t)item;
	const struct value *stat = args_find(item->row, open->args, "stat");
	uint64_t flags = item_int(item, "flags"), number = 0, mode = 0;
	struct path_text path, target;
	struct entry *e;
	struct inode *i;
	uint32_t type;

	if (item_int(item, "tree") || !item_text(item, "path", &path) || !path.len ||
	    path.s[0] != '/')
		return;
	e = entry_at_path(m, &path);
	if (!e && strspn(path.s, "/") < path.len)
		return;
	i = e ? e->target : m->names->root;
	if (!i && e->missing)
		return;
	(void)tree_stat_get(stat, STAT_TYPE, &number);
	type = number < ARRAY_LEN(type_bits) ? type_bits[number] : 0;
	if (!type && tree_stat_get(stat, STAT_MODE, &mode))
		type = mode & S_IFMT;
	if (!i && (flags & TREE_LISTED))
		type = S_IFDIR;
	if (!i && !type) {
		e->known = !(flags & TREE_UNREADABLE) && (e->known || (flags & TREE_MISSING));
		e->missing = e->known && flags & TREE_MISSING;
		return;
	}
	if (!i) {
		i = given_inode(m, e->dir, type, stat);
		entry_link(m, e, i);
	} else if (!i->type) {
		inode_set_type(m, i, type);
	}
	i->special |= (flags & TREE_SPECIAL) != 0;
	i->listed |= (flags & TREE_LISTED) != 0 && i->type == S_IFDIR;
	i->complete = (i->complete || i->listed) && !(flags & TREE_UNREADABLE) && !i->special;
	if (!type || i->type == type)
		fill_in(m, i, stat);
	if (i->type == S_IFLNK && !i->target && item_text(item, "target", &target))
		inode_set_target(m, i, target.s, target.len);
	add_xattrs(i, args_find(item->row, open->args, "xattrs"));
	note_held(i, args_find(item->row, open->args, "content"));
}

static void add_mount(struct fsmodel *m, const struct item *item)
{
	struct path_text path, type;
	struct entry *e;
	struct inode *i;

	if (!item_text(item, "path", &path) || !path.len || path.s[0] != '/')
		return;
	e = entry_at_path(m, &path);
	if (!e && strspn(path.s, "/") < path.len)
		return;
	if (e && !e->target)
		entry_link(m, e, given_new(m, e->dir, S_IFDIR));
	i = e ? e->target : m->names->root;
	if (!i->ino)
		i->dev = item_int(item, "dev");
	if (e && !e->mount) {
		struct mounted mounted = { .entry = e };

		e->mount = true;
		VEC_PUSH(&m->names->mounts, mounted);
	}
	if (item_text(item, "type", &type) && ((type.len == 4 && !memcmp(type.s, "proc", 4)) ||
					       (type.len == 5 && !memcmp(type.s, "sysfs", 5)))) {
		i->special = true;
		i->complete = false;
	}
}

void fsmodel_add_tree(struct fsmodel *m, const struct item *item)
{
	if (item->row->id == REC_tree_entry)
		add_entry(m, item);
	else if (item->row->id == REC_tree_mount)
		add_mount(m, item);
}

/* A text that grows at its front. */
static bool prepend(char *room, size_t *at, const char *s, size_t len)
{
	if (len > *at)
		return false;
	*at -= len;
	memcpy(room + *at, s, len);
	return true;
}

struct inode *tree_dir(struct fsmodel *m, const char *path, size_t len)
{
	char room[2][MODEL_PATH_MAX * 2];
	struct path_text text = { path, len };
	unsigned int links = 0;
	struct inode *dir = m->names->root;
	const char *s = path, *end = path + len;

	while (s < end) {
		const char *slash = memchr(s, '/', (size_t)(end - s));
		size_t part = (size_t)((slash ? slash : end) - s);
		struct entry *e;

		if (part == 2 && !memcmp(s, "..", 2)) {
			dir = dir->parent ? dir->parent : dir;
		} else if (part > MODEL_NAME_MAX) {
			return dir;
		} else if (part && !(part == 1 && *s == '.')) {
			e = entry_of(m, dir, s, part);
			if (!e->target)
				tree_infer(m, e, S_IFDIR);
			if (e->target->type == S_IFLNK && e->target->target &&
			    links < MODEL_LINKS_MAX) {
				char *to = room[links++ & 1];
				size_t at = sizeof(room[0]);

				if (slash && !prepend(to, &at, slash, (size_t)(end - slash)))
					return dir;
				if (!prepend(to, &at, e->target->target, e->target->target_len))
					return dir;
				text = (struct path_text){ to + at, sizeof(room[0]) - at };
				s = text.s;
				end = s + text.len;
				dir = *s == '/' ? m->names->root : dir;
				continue;
			}
			if (!e->target->type)
				inode_set_type(m, e->target, S_IFDIR);
			if (e->target->type != S_IFDIR)
				return dir;
			dir = e->target;
		}
		s += part + 1;
	}
	return dir;
}

/* What was found out. */

static void first_path(const struct first *f, struct buf *path)
{
	const struct first *up;
	size_t len = 0, at;

	for (up = f; up; up = up->parent)
		len += up->name_len + 1;
	buf_clear(path);
	(void)buf_reserve(path, len);
	path->len = at = len;
	for (up = f; up; up = up->parent) {
		(void)prepend((char *)path->data, &at, up->name, up->name_len);
		(void)prepend((char *)path->data, &at, "/", 1);
	}
}

static void first_item(struct arena *a, const struct first *f, const struct buf *path,
		       struct item *ret)
{
	struct value stat = value_struct(a, 1 << STAT_TYPE | 1 << STAT_MODE | 1 << STAT_UID |
						    1 << STAT_GID | 1 << STAT_SIZE);
	/* A symlink without text cannot be made: something must be there all the same. */
	uint32_t type = !f->type || (f->type == S_IFLNK && !f->target) ? S_IFREG : f->type;

	*ret = (struct item){ .row = row_by_id(REC_tree_entry) };
	*value_field(&stat, STAT_TYPE) = value_int(type_number(type));
	*value_field(&stat, STAT_MODE) = value_uint(type | f->mode);
	*value_field(&stat, STAT_UID) = value_uint(f->uid);
	*value_field(&stat, STAT_GID) = value_uint(f->gid);
	*value_field(&stat, STAT_SIZE) = value_uint(f->size);
	*args_find(ret->row, ret->args, "tree") = value_int(0);
	*args_find(ret->row, ret->args, "path") = value_bytes(a, path->data, path->len);
	*args_find(ret->row, ret->args, "stat") = stat;
	*args_find(ret->row, ret->args, "flags") = value_uint(TREE_INFERRED);
	if (f->type == S_IFLNK && f->target)
		*args_find(ret->row, ret->args, "target") =
			value_bytes(a, f->target, f->target_len);
}

struct showing {
	int (*each)(void *arg, const struct item *item);
	void *arg;
	struct arena a;
	struct buf path;
	VEC(struct first *) way; /* from one up to a directory that was shown */
};

/* With the directories on the way to it, as far as they were not shown yet. */
static int show_first(struct showing *s, struct first *f)
{
	struct item item;
	int r = 0;

	s->way.len = 0;
	for (; f && !f->shown; f = f->parent)
		VEC_PUSH(&s->way, f);
	while (s->way.len && r >= 0) {
		f = s->way.items[--s->way.len];
		f->shown = true;
		if (f->given)
			continue;
		arena_reset(&s->a);
		first_path(f, &s->path);
		first_item(&s->a, f, &s->path, &item);
		r = s->each(s->arg, &item);
	}
	return r;
}

int fsmodel_initial_tree(const struct fsmodel *m, int (*each)(void *arg, const struct item *item),
			 void *arg)
{
	struct showing s = { .each = each, .arg = arg };
	struct first *f;
	int r = 0;

	arena_init(&s.a);
	for (f = m->names->first_first; f; f = f->next)
		f->shown = false;
	for (f = m->names->first_first; f && r >= 0; f = f->next)
		r = show_first(&s, f);
	arena_release(&s.a);
	buf_release(&s.path);
	VEC_RELEASE(&s.way);
	return r < 0 ? r : 0;
}

/*
 * What is known of its name is what most systems have: that it has "core" in it. A
 * replay has no such file, and what calls on it give is not verified.
 */
void tree_know_core(struct call *c, const struct value *path, struct inode *i)
{
	struct path_text text;
	const char *slash, *name;

	if (!c->m->has_cores || !c->m->options.tree_known || !i->inferred ||
	    (i->type && i->type != S_IFREG) || text_of(c, path, &text))
		return;
	slash = memrchr(text.s, '/', text.len);
	name = slash ? slash + 1 : text.s;
	if (memmem(name, (size_t)(text.s + text.len - name), "core", 4))
		i->special = true;
}
