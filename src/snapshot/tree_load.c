/* SPDX-License-Identifier: MIT */
/* Records of trees, none of which is to be trusted, become entries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "base/mem.h"
#include "model/fields.h"
#include "model/tree_stat.h"
#include "snapshot/tree_inside.h"

/* As the kernel has it. */
#define XATTR_VALUE_MAX_BYTES 65536

struct loader {
	struct snapshot *s;
	struct trace *records, *data;
	uint16_t source;
	struct buf text;
	struct err *err;
};

static int bad(struct loader *l, const char *what)
{
	return err_set(l->err, -EBADMSG, "%s: a tree entry has %s", trace_path(l->records), what);
}

/*
 * The bytes of a text in l->text, NUL-terminated. 1; 0 when it is not known;
 * -errno, also when it is longer than max_bytes.
 */
static int load_text(struct loader *l, const struct value *v, size_t max_bytes, const char *what)
{
	uint64_t i, nr;
	int r = 1;

	if (!v || v->type != VALUE_DATA || v->data->kept_bytes != v->data->len_bytes)
		return 0;
	if (v->data->len_bytes > max_bytes)
		return err_set(l->err, -EBADMSG, "%s: a tree entry has %s of %llu bytes",
			       trace_path(l->records), what,
			       (unsigned long long)v->data->len_bytes);
	nr = data_nr_pieces(v->data);
	buf_clear(&l->text);
	for (i = 0; i < nr && r == 1; i++) {
		const uint8_t *bytes;
		size_t len;

		r = trace_load_piece(l->data, v->data, i, &bytes, &len, l->err);
		if (r == 1)
			buf_put(&l->text, bytes, len);
	}
	(void)buf_str(&l->text);
	return r;
}

/* The same, without a NUL within, and not empty. */
static int load_string(struct loader *l, const struct value *v, size_t max_bytes, const char *what)
{
	int r = load_text(l, v, max_bytes, what);

	if (r == 1 && (!l->text.len || memchr(l->text.data, 0, l->text.len)))
		return err_set(l->err, -EBADMSG, "%s: a tree entry has %s that is %s",
			       trace_path(l->records), what,
			       l->text.len ? "cut by a zero byte" : "empty");
	return r;
}

/* The path without its slash in front, without empty parts and "."; none is "..". */
static int load_path(struct loader *l, const struct value *v, struct snapshot_entry *e)
{
	int r = load_string(l, v, SNAPSHOT_PATH_MAX, "a path");
	const char *p = (const char *)l->text.data, *end;
	char *to;

	if (r <= 0)
		return r < 0 ? r : bad(l, "no path");
	if (*p != '/')
		return err_set(l->err, -EBADMSG, "%s: the path \"%s\" of the tree is not absolute",
			       trace_path(l->records), p);
	end = p + l->text.len;
	e->path = to = arena_alloc(&l->s->arena, l->text.len + 1);
	while (p < end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t len = (size_t)((slash ? slash : end) - p);

		if (len == 2 && !memcmp(p, "..", 2))
			return err_set(l->err, -EBADMSG,
				       "%s: the path \"%s\" of the tree leads upwards",
				       trace_path(l->records), (const char *)l->text.data);
		if (len > SNAPSHOT_NAME_MAX)
			return bad(l, "a name that is longer than 255 bytes");
		if (len && !(len == 1 && *p == '.')) {
			if (to > e->path)
				*to++ = '/';
			e->name_at = (uint32_t)(to - e->path);
			memcpy(to, p, len);
			to += len;
		}
		p += len + 1;
	}
	*to = 0;
	e->path_len = (uint32_t)(to - e->path);
	return 0;
}

uint8_t snapshot_type_of_mode(uint64_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return SNAPSHOT_FILE;
	case S_IFDIR:
		return SNAPSHOT_DIR;
	case S_IFLNK:
		return SNAPSHOT_SYMLINK;
	case S_IFIFO:
		return SNAPSHOT_FIFO;
	case S_IFSOCK:
		return SNAPSHOT_SOCKET;
	case S_IFCHR:
		return SNAPSHOT_CHARDEV;
	case S_IFBLK:
		return SNAPSHOT_BLOCKDEV;
	}
	return SNAPSHOT_UNKNOWN;
}

static void take_stat(const struct value *stat, struct snapshot_entry *e)
{
	uint64_t n;

	if (tree_stat_get(stat, STAT_TYPE, &n) && n < SNAPSHOT_TYPE_MAX)
		e->type = (uint8_t)n;
	if (tree_stat_get(stat, STAT_MODE, &n)) {
		e->mode = (uint32_t)n & 07777;
		e->known |= SNAPSHOT_HAS_MODE;
		if (e->type == SNAPSHOT_UNKNOWN)
			e->type = snapshot_type_of_mode(n);
	}
	if (tree_stat_get(stat, STAT_UID, &n)) {
		e->uid = (uint32_t)n;
		e->known |= SNAPSHOT_HAS_UID;
	}
	if (tree_stat_get(stat, STAT_GID, &n)) {
		e->gid = (uint32_t)n;
		e->known |= SNAPSHOT_HAS_GID;
	}
	if (tree_stat_get(stat, STAT_SIZE, &n)) {
		/* More than a file can have is a lie, and as much as one can have as good. */
		e->size_bytes = n > INT64_MAX ? INT64_MAX : n;
		e->known |= SNAPSHOT_HAS_SIZE;
	}
	if (tree_stat_get(stat, STAT_INO, &e->ino) && tree_stat_get(stat, STAT_DEV, &e->dev))
		e->known |= SNAPSHOT_HAS_ID;
	if (tree_stat_get(stat, STAT_NLINK, &n)) {
		e->nlink = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
		e->known |= SNAPSHOT_HAS_NLINK;
	}
	if (tree_stat_get(stat, STAT_RDEV, &e->rdev))
		e->known |= SNAPSHOT_HAS_RDEV;
	if (tree_stat_get(stat, STAT_MTIME, &n)) {
		e->mtime_ns = (int64_t)n;
		e->known |= SNAPSHOT_HAS_MTIME;
	}
	if (tree_stat_get(stat, STAT_ATIME, &n)) {
		e->atime_ns = (int64_t)n;
		e->known |= SNAPSHOT_HAS_ATIME;
	}
}

static int load_xattrs(struct loader *l, const struct value *v, struct snapshot_entry *e)
{
	struct snapshot_xattr *list;
	uint32_t i;
	int r;

	if (v->type != VALUE_LIST)
		return 0;
	e->xattrs = list = arena_alloc(&l->s->arena, v->count * sizeof(*list));
	for (i = 0; i < v->count; i++) {
		struct snapshot_xattr *x = &list[e->nr_xattrs];

		r = load_string(l, value_field(&v->items[i], FIELD_OF(xattr, name)),
				SNAPSHOT_NAME_MAX, "an attribute's name");
		if (r < 0)
			return r;
		if (!r)
			continue;
		x->name = arena_memdup0(&l->s->arena, l->text.data, l->text.len);
		r = load_text(l, value_field(&v->items[i], FIELD_OF(xattr, value)),
			      XATTR_VALUE_MAX_BYTES, "an attribute");
		if (r < 0)
			return r;
		if (!r)
			continue;
		x->value = (uint8_t *)arena_memdup0(&l->s->arena, l->text.data, l->text.len);
		x->value_len = (uint32_t)l->text.len;
		e->nr_xattrs++;
	}
	e->known |= SNAPSHOT_HAS_XATTRS;
	return 0;
}

static void take_content(struct loader *l, const struct value *v, struct snapshot_entry *e)
{
	struct data *d;
	size_t nr;

	if (v->type != VALUE_DATA)
		return;
	/* Only files have any. */
	if (e->type == SNAPSHOT_UNKNOWN)
		e->type = SNAPSHOT_FILE;
	e->size_bytes = v->data->len_bytes > INT64_MAX ? INT64_MAX : v->data->len_bytes;
	e->known |= SNAPSHOT_HAS_SIZE;
	if ((!v->data->kept_bytes && v->data->len_bytes) || v->data->len_bytes > INT64_MAX)
		return; /* nothing but its size is known */
	d = arena_alloc(&l->s->arena, sizeof(*d));
	*d = *v->data;
	nr = (size_t)data_nr_pieces(d);
	if (d->bytes || !nr) {
		d->bytes = (uint8_t *)arena_memdup0(&l->s->arena, d->bytes, (size_t)d->kept_bytes);
		d->refs = NULL;
	} else if (d->refs) {
		struct blob_ref *refs = arena_alloc(&l->s->arena, nr * sizeof(*refs));

		memcpy(refs, d->refs, nr * sizeof(*refs));
		d->refs = refs;
	} else {
		return;
	}
	e->content = d;
}

static int load_entry(struct loader *l, const struct item *item)
{
	const struct value *args = item->args;
	struct snapshot_entry e = { .source = l->source };
	int r = load_path(l, &args[ENTRY_PATH], &e);

	if (r < 0)
		return r;
	if (l->s->entries.len == ENTRIES_MAX)
		return err_set(l->err, -E2BIG, "%s: the tree has too many entries",
			       trace_path(l->records));
	e.first_link = (uint32_t)l->s->entries.len;
	if (args[ENTRY_FLAGS].type == VALUE_INT)
		e.flags = (uint16_t)(args[ENTRY_FLAGS].u & 0x7f);
	take_stat(&args[ENTRY_STAT], &e);
	r = load_string(l, &args[ENTRY_TARGET], SNAPSHOT_PATH_MAX, "a symlink");
	if (r == 1) {
		e.target = arena_memdup0(&l->s->arena, l->text.data, l->text.len);
		e.target_len = (uint32_t)l->text.len;
		e.known |= SNAPSHOT_HAS_TARGET;
	}
	if (r >= 0)
		r = load_xattrs(l, &args[ENTRY_XATTRS], &e);
	if (r >= 0)
		r = load_text(l, &args[ENTRY_HASH], sizeof(e.hash), "a hash");
	if (r == 1 && l->text.len == sizeof(e.hash)) {
		memcpy(e.hash, l->text.data, sizeof(e.hash));
		e.known |= SNAPSHOT_HAS_HASH;
	}
	if (r < 0)
		return r;
	take_content(l, &args[ENTRY_CONTENT], &e);
	VEC_PUSH(&l->s->entries, e);
	return 0;
}

int tree_load(struct snapshot *s, uint16_t nr, struct err *err)
{
	struct loader l = { .s = s,
			    .records = s->sources[nr].records,
			    .data = s->sources[nr].data,
			    .source = nr,
			    .err = err };
	struct trace_items *it;
	struct item *item;
	int r = trace_items_open(l.records, BLOCK_TREE, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_items_next(it, &item, err)) == 1) {
		if (item->row->id != REC_tree_entry || item->args[ENTRY_TREE].type != VALUE_INT ||
		    item->args[ENTRY_TREE].u != (uint64_t)s->which)
			continue;
		r = load_entry(&l, item);
		if (r < 0)
			break;
	}
	trace_items_close(it);
	buf_release(&l.text);
	return r;
}
