/* SPDX-License-Identifier: MIT */
/*
 * Three steps: records become raw entries (a path may have several), which are
 * sorted and added up; then the array is gone through once more with the
 * parents of each entry on a stack, which finds what is implied and what
 * contradicts; at last links are found by device and inode.
 */
#include "snapshot/tree.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/banned.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/varint.h"
#include "model/tree_stat.h"

/* As the kernel has it. */
#define XATTR_VALUE_MAX_BYTES 65536
/* Entries are counted in 32 bits. */
#define ENTRIES_MAX ((size_t)1 << 30)

const char *const snapshot_type_names[SNAPSHOT_TYPE_MAX] = {
	[SNAPSHOT_UNKNOWN] = "something",
	[SNAPSHOT_FILE] = "file",
	[SNAPSHOT_DIR] = "directory",
	[SNAPSHOT_SYMLINK] = "symlink",
	[SNAPSHOT_FIFO] = "fifo",
	[SNAPSHOT_SOCKET] = "socket",
	[SNAPSHOT_CHARDEV] = "character device",
	[SNAPSHOT_BLOCKDEV] = "block device",
};

struct entries {
	struct snapshot_entry *items;
	size_t len, cap;
};

struct snapshot {
	enum snapshot_which which;
	struct snapshot_source *sources;
	size_t nr_sources;
	struct arena arena;
	struct entries entries;
	struct hash128 identity;
	uint64_t nr_left_out;
	const char *first_left_out;
	pthread_mutex_t data_lock; /* of the sources, while others read the tree */
};

/* Order. */

/* A slash sorts before every other byte, so that all below a path follows it. */
static int compare_paths(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t i, n = a_len < b_len ? a_len : b_len;

	for (i = 0; i < n; i++) {
		unsigned int x = (uint8_t)a[i], y = (uint8_t)b[i];

		if (x == y)
			continue;
		if (x == '/')
			return -1;
		if (y == '/')
			return 1;
		return x < y ? -1 : 1;
	}
	return (a_len > b_len) - (a_len < b_len);
}

/* Of one path: by source, then as they stood there (first_link holds that number for now). */
static int compare_entries(const void *a, const void *b)
{
	const struct snapshot_entry *x = a, *y = b;
	int r = compare_paths(x->path, x->path_len, y->path, y->path_len);

	if (!r)
		r = (x->source > y->source) - (x->source < y->source);
	return r ? r : (x->first_link > y->first_link) - (x->first_link < y->first_link);
}

const struct snapshot_entry *snapshot_find(const struct snapshot *s, const char *path, size_t len)
{
	size_t low = 0, high = s->entries.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct snapshot_entry *e = &s->entries.items[mid];
		int r = compare_paths(path, len, e->path, e->path_len);

		if (!r)
			return e;
		if (r < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

/* Records. */

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

		r = load_string(l, value_field(&v->items[i], 0), SNAPSHOT_NAME_MAX,
				"an attribute's name");
		if (r < 0)
			return r;
		if (!r)
			continue;
		x->name = arena_memdup0(&l->s->arena, l->text.data, l->text.len);
		r = load_text(l, value_field(&v->items[i], 1), XATTR_VALUE_MAX_BYTES,
			      "an attribute");
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

static int load_source(struct snapshot *s, uint16_t nr, struct err *err)
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

/* Adding up. */

static void copy_known(struct snapshot_entry *to, const struct snapshot_entry *e)
{
	if (e->known & SNAPSHOT_HAS_MODE)
		to->mode = e->mode;
	if (e->known & SNAPSHOT_HAS_UID)
		to->uid = e->uid;
	if (e->known & SNAPSHOT_HAS_GID)
		to->gid = e->gid;
	if (e->known & SNAPSHOT_HAS_SIZE)
		to->size_bytes = e->size_bytes;
	if (e->known & SNAPSHOT_HAS_ID) {
		to->dev = e->dev;
		to->ino = e->ino;
	}
	if (e->known & SNAPSHOT_HAS_NLINK)
		to->nlink = e->nlink;
	if (e->known & SNAPSHOT_HAS_RDEV)
		to->rdev = e->rdev;
	if (e->known & SNAPSHOT_HAS_MTIME)
		to->mtime_ns = e->mtime_ns;
	if (e->known & SNAPSHOT_HAS_ATIME)
		to->atime_ns = e->atime_ns;
	if (e->known & SNAPSHOT_HAS_TARGET) {
		to->target = e->target;
		to->target_len = e->target_len;
	}
	if (e->known & SNAPSHOT_HAS_XATTRS) {
		to->xattrs = e->xattrs;
		to->nr_xattrs = e->nr_xattrs;
	}
	if (e->known & SNAPSHOT_HAS_HASH)
		memcpy(to->hash, e->hash, sizeof(to->hash));
	if (e->content)
		to->content = e->content;
	to->known |= e->known;
}

/* A later record of the same source. Whether something was there is what the first one says. */
static void add_record(struct snapshot_entry *to, const struct snapshot_entry *e)
{
	if ((to->flags ^ e->flags) & SNAPSHOT_MISSING)
		return;
	if (e->type != SNAPSHOT_UNKNOWN && to->type != SNAPSHOT_UNKNOWN && e->type != to->type) {
		/* Others have replaced it meanwhile: a mixture of both was never there. */
		to->known = 0;
		to->content = NULL;
		to->flags &= SNAPSHOT_LISTED;
	}
	copy_known(to, e);
	to->flags |= e->flags;
	if (e->type != SNAPSHOT_UNKNOWN)
		to->type = e->type;
}

static uint64_t size_of(const struct snapshot_entry *e)
{
	return e->content ? e->content->len_bytes : e->size_bytes;
}

/* How the entries of two sources differ; NULL: both can be had in one tree. */
static const char *conflict(const struct snapshot_entry *a, const struct snapshot_entry *b)
{
	if ((a->flags ^ b->flags) & SNAPSHOT_MISSING)
		return "it is there, and it is not";
	if (!snapshot_exists(a) || a->type == SNAPSHOT_UNKNOWN || b->type == SNAPSHOT_UNKNOWN)
		return NULL;
	if (a->type != b->type)
		return "its type";
	/* What the kernel makes up is another at every look. */
	if ((a->flags | b->flags) & SNAPSHOT_SPECIAL)
		return NULL;
	if (a->known & b->known & SNAPSHOT_HAS_TARGET && strcmp(a->target, b->target) != 0)
		return "where the symlink leads";
	if (a->type != SNAPSHOT_FILE)
		return NULL;
	if (a->known & b->known & SNAPSHOT_HAS_SIZE && size_of(a) != size_of(b))
		return "its size";
	if (a->known & b->known & SNAPSHOT_HAS_HASH && memcmp(a->hash, b->hash, sizeof(a->hash)))
		return "its content";
	return NULL;
}

static int join_sources(const struct snapshot *s, struct snapshot_entry *to,
			const struct snapshot_entry *e, enum snapshot_on_conflict on_conflict,
			struct err *err)
{
	const char *why = conflict(to, e);
	uint16_t flags = to->flags;

	if (why && on_conflict == SNAPSHOT_CONFLICT_FAIL)
		return err_set(err, -EINVAL, "%s and %s cannot share a tree: /%s differs: %s",
			       trace_path(s->sources[to->source].records),
			       trace_path(s->sources[e->source].records), e->path, why);
	/* The first is right; the other knows more, perhaps. */
	if (!why && !to->content && e->content && e->type == SNAPSHOT_FILE) {
		/* Content is loaded from the source of its entry. */
		to->content = e->content;
		to->source = e->source;
	}
	if (!why && to->type == SNAPSHOT_UNKNOWN && e->type != SNAPSHOT_UNKNOWN)
		*to = *e;
	to->flags = flags | (e->flags & SNAPSHOT_LISTED);
	return 0;
}

/* What the entry must be when no record says it. */
static void settle_type(struct snapshot_entry *e)
{
	if (!snapshot_exists(e))
		return;
	if (e->type == SNAPSHOT_UNKNOWN && e->flags & SNAPSHOT_LISTED)
		e->type = SNAPSHOT_DIR;
	else if (e->type == SNAPSHOT_UNKNOWN && e->known & SNAPSHOT_HAS_TARGET)
		e->type = SNAPSHOT_SYMLINK;
	else if (e->type == SNAPSHOT_SYMLINK && !(e->known & SNAPSHOT_HAS_TARGET))
		e->type = SNAPSHOT_UNKNOWN; /* leads to nobody knows where */
	else if (e->type == SNAPSHOT_UNKNOWN && (e->content || e->flags & SNAPSHOT_INFERRED))
		e->type = SNAPSHOT_FILE;
	if (e->type != SNAPSHOT_FILE)
		e->content = NULL;
	if (e->content) {
		e->size_bytes = e->content->len_bytes;
		e->known |= SNAPSHOT_HAS_SIZE;
	}
	if (e->type == SNAPSHOT_DIR)
		e->known &= (uint16_t)~SNAPSHOT_HAS_SIZE;
}

/* Sorts, and leaves one entry for each path. */
static int add_up(struct snapshot *s, enum snapshot_on_conflict on_conflict, struct err *err)
{
	struct entries *v = &s->entries;
	struct snapshot_entry e, joined;
	size_t i = 0, to = 0;
	int r;

	if (v->len)
		qsort(v->items, v->len, sizeof(*v->items), compare_entries);
	while (i < v->len) {
		e = v->items[i++];
		for (; i < v->len && v->items[i].source == e.source &&
		       !strcmp(v->items[i].path, e.path);
		     i++)
			add_record(&e, &v->items[i]);
		if (to && !strcmp(v->items[to - 1].path, e.path)) {
			joined = v->items[to - 1];
			r = join_sources(s, &joined, &e, on_conflict, err);
			if (r < 0)
				return r;
			v->items[to - 1] = joined;
		} else {
			v->items[to++] = e;
		}
	}
	v->len = to;
	for (i = 0; i < v->len; i++)
		settle_type(&v->items[i]);
	return 0;
}

/* Shape. */

static bool is_below(const struct snapshot_entry *e, const struct snapshot_entry *dir)
{
	return !dir->path_len || (e->path_len > dir->path_len && e->path[dir->path_len] == '/' &&
				  !memcmp(e->path, dir->path, dir->path_len));
}

static void leave_out(struct snapshot *s, const struct snapshot_entry *e)
{
	/* That something is not there needs nothing. */
	if (!snapshot_exists(e))
		return;
	if (!s->nr_left_out++)
		s->first_left_out = e->path;
}

struct shaper {
	struct snapshot *s;
	struct entries out;
	uint32_t *stack; /* the entries that lead to where we are, in out */
	size_t depth, cap;
};

static void push(struct shaper *sh, const struct snapshot_entry *e)
{
	uint32_t nr = (uint32_t)sh->out.len;

	if (sh->depth == sh->cap)
		sh->stack = vec_grow(sh->stack, &sh->cap, sizeof(*sh->stack));
	VEC_PUSH(&sh->out, *e);
	sh->out.items[nr].parent = sh->depth ? sh->stack[sh->depth - 1] : 0;
	sh->stack[sh->depth++] = nr;
}

static void pop_to(struct shaper *sh, const struct snapshot_entry *e)
{
	while (sh->depth > 1 && (!e || !is_below(e, &sh->out.items[sh->stack[sh->depth - 1]]))) {
		sh->depth--;
		sh->out.items[sh->stack[sh->depth]].end = (uint32_t)sh->out.len;
	}
}

static void push_implied(struct shaper *sh, const struct snapshot_entry *e)
{
	uint32_t from = sh->out.items[sh->stack[sh->depth - 1]].path_len;

	from += !!from;
	while (from < e->name_at) {
		const char *slash = memchr(e->path + from, '/', e->path_len - from);
		uint32_t len = (uint32_t)(slash - e->path);

		push(sh, &(struct snapshot_entry){
				 .path = arena_memdup0(&sh->s->arena, e->path, len),
				 .path_len = len,
				 .name_at = from,
				 .flags = SNAPSHOT_IMPLIED,
				 .type = SNAPSHOT_DIR,
				 .source = e->source,
			 });
		from = len + 1;
	}
}

static void shape_entry(struct shaper *sh, const struct snapshot_entry *e)
{
	struct snapshot_entry *dir;

	pop_to(sh, e);
	dir = &sh->out.items[sh->stack[sh->depth - 1]];
	if (snapshot_exists(e) && e->type != SNAPSHOT_UNKNOWN && dir->type == SNAPSHOT_UNKNOWN &&
	    snapshot_exists(dir)) {
		dir->type = SNAPSHOT_DIR;
		dir->flags |= SNAPSHOT_IMPLIED;
	}
	/* What is below a directory that was not there was noted after the program had made it. */
	if (!snapshot_exists(dir))
		return;
	if (dir->type != SNAPSHOT_DIR) {
		leave_out(sh->s, e);
		return;
	}
	if (!snapshot_exists(e) && e->name_at > dir->path_len + !!dir->path_len)
		return; /* not even its directory is known */
	push_implied(sh, e);
	push(sh, e);
}

static int shape(struct snapshot *s, struct err *err)
{
	struct shaper sh = { .s = s };
	struct snapshot_entry root = { .path = "",
				       .type = SNAPSHOT_DIR,
				       .flags = SNAPSHOT_IMPLIED };
	size_t i = 0;
	int r = 0;

	if (s->entries.len && !s->entries.items[0].path_len) {
		if (s->entries.items[0].type == SNAPSHOT_DIR)
			root = s->entries.items[0];
		else
			leave_out(s, &s->entries.items[0]);
		i = 1;
	}
	push(&sh, &root);
	for (; i < s->entries.len && !r; i++) {
		const struct snapshot_entry *e = &s->entries.items[i];

		if (snapshot_exists(e) && !strncmp(e->path, SNAPSHOT_RESERVED, 8) &&
		    (!e->path[8] || e->path[8] == '/'))
			r = err_set(err, -EINVAL,
				    "%s: the trace has the path /" SNAPSHOT_RESERVED
				    ", which is kept for our own notes",
				    trace_path(s->sources[e->source].records));
		else if (sh.out.len >= ENTRIES_MAX)
			r = err_set(err, -E2BIG, "the tree has too many entries");
		else
			shape_entry(&sh, e);
	}
	pop_to(&sh, NULL);
	sh.out.items[0].end = (uint32_t)sh.out.len;
	free(s->entries.items);
	s->entries = sh.out;
	free(sh.stack);
	for (i = 0; i < s->entries.len; i++) {
		if (snapshot_exists(&s->entries.items[i]) &&
		    !snapshot_is_made(&s->entries.items[i]))
			leave_out(s, &s->entries.items[i]);
	}
	return r;
}

/* Links. */

struct link_key {
	uint64_t source, dev, ino;
};

static bool may_have_links(const struct snapshot_entry *e)
{
	/* The number of an inode with one name is used again when that name is gone. */
	return snapshot_is_made(e) && e->type != SNAPSHOT_DIR && e->known & SNAPSHOT_HAS_ID &&
	       !(e->known & SNAPSHOT_HAS_NLINK && e->nlink < 2) && !(e->flags & SNAPSHOT_SPECIAL);
}

/*
 * All names of a file get the state that was seen first: a name that was noted
 * later shows what the program had already done by way of another. (Until here
 * first_link is the number of the path's first record.)
 */
static void join_link(struct snapshot_entry *first, const struct snapshot_entry *e)
{
	uint32_t order = first->first_link;

	if (e->first_link < order) {
		order = e->first_link;
		copy_known(first, e);
	} else if (e->content && !first->content) {
		first->content = e->content;
		first->size_bytes = e->size_bytes;
		first->known |= SNAPSHOT_HAS_SIZE;
	}
	if (e->known & ~first->known & SNAPSHOT_HAS_HASH) {
		memcpy(first->hash, e->hash, sizeof(first->hash));
		first->known |= SNAPSHOT_HAS_HASH;
	}
	first->first_link = order;
}

static void find_links(struct snapshot *s)
{
	struct entries *v = &s->entries;
	uint32_t *firsts = xcalloc(v->len, sizeof(*firsts));
	struct map map = { 0 };
	size_t i;

	for (i = 0; i < v->len; i++) {
		struct snapshot_entry *e = &v->items[i];
		struct link_key key = { e->source, e->dev, e->ino };
		struct snapshot_entry *first;
		void **slot;

		firsts[i] = (uint32_t)i;
		e->nr_links = 1;
		if (!may_have_links(e))
			continue;
		slot = map_slot(&map, &key, sizeof(key));
		first = *slot;
		if (!first) {
			*slot = e;
		} else if (first->type == e->type) {
			firsts[i] = (uint32_t)(first - v->items);
			first->nr_links++;
			join_link(first, e);
		}
	}
	map_release(&map);
	for (i = 0; i < v->len; i++) {
		struct snapshot_entry *e = &v->items[i];

		e->first_link = firsts[i];
		if (e->content) {
			e->size_bytes = e->content->len_bytes;
			e->known |= SNAPSHOT_HAS_SIZE;
		}
	}
	free(firsts);
}

/* Identity. */

static void hash_u64(XXH3_state_t *h, uint64_t v)
{
	uint8_t bytes[8];

	put_le64(bytes, v);
	(void)XXH3_128bits_update(h, bytes, sizeof(bytes));
}

static void hash_text(XXH3_state_t *h, const void *p, size_t len)
{
	hash_u64(h, len);
	if (len)
		(void)XXH3_128bits_update(h, p, len);
}

static void hash_content(XXH3_state_t *h, const struct data *d)
{
	uint64_t i, nr = d ? data_nr_pieces(d) : 0;

	hash_u64(h, !!d);
	if (!d)
		return;
	hash_u64(h, d->len_bytes);
	hash_u64(h, d->kept_bytes);
	for (i = 0; i < nr; i++) {
		uint64_t from = i * BLOB_MAX_BYTES, len = d->kept_bytes - from;
		struct hash128 piece;

		if (d->refs)
			piece = d->refs[i].hash;
		else
			piece = hash_bytes(d->bytes + from,
					   (size_t)(len < BLOB_MAX_BYTES ? len : BLOB_MAX_BYTES));
		hash_u64(h, piece.low);
		hash_u64(h, piece.high);
		/* Without its bytes it will be filler. */
		hash_u64(h, d->refs && !d->refs[i].blob);
	}
}

static void hash_entry(XXH3_state_t *h, const struct snapshot_entry *e)
{
	uint32_t i;

	hash_text(h, e->path, e->path_len);
	hash_u64(h, (uint64_t)e->flags << 32 | (uint64_t)e->known << 8 | e->type);
	hash_u64(h, e->first_link);
	hash_u64(h, e->mode);
	hash_u64(h, (uint64_t)e->uid << 32 | e->gid);
	hash_u64(h, e->size_bytes);
	hash_u64(h, e->rdev);
	hash_u64(h, (uint64_t)e->mtime_ns);
	hash_u64(h, (uint64_t)e->atime_ns);
	hash_text(h, e->target, e->target_len);
	hash_u64(h, e->nr_xattrs);
	for (i = 0; i < e->nr_xattrs; i++) {
		hash_text(h, e->xattrs[i].name, strlen(e->xattrs[i].name));
		hash_text(h, e->xattrs[i].value, e->xattrs[i].value_len);
	}
	hash_content(h, e->content);
}

static void compute_identity(struct snapshot *s)
{
	XXH3_state_t *h = XXH3_createState();
	XXH128_hash_t digest;
	size_t i;

	(void)XXH3_128bits_reset(h);
	for (i = 0; i < s->entries.len; i++)
		hash_entry(h, &s->entries.items[i]);
	digest = XXH3_128bits_digest(h);
	(void)XXH3_freeState(h);
	s->identity = (struct hash128){ digest.low64, digest.high64 };
}

/* The whole. */

int snapshot_load(enum snapshot_which which, const struct snapshot_source *sources,
		  size_t nr_sources, enum snapshot_on_conflict on_conflict, struct snapshot **ret,
		  struct err *err)
{
	struct snapshot *s = xcalloc(1, sizeof(*s));
	size_t i;
	int r = 0;

	s->which = which;
	arena_init(&s->arena);
	(void)pthread_mutex_init(&s->data_lock, NULL); /* cannot fail on Linux */
	s->sources = xcalloc(nr_sources, sizeof(*s->sources));
	s->nr_sources = nr_sources;
	if (nr_sources > UINT16_MAX)
		r = err_set(err, -E2BIG, "more than 65535 traces");
	for (i = 0; i < nr_sources && !r; i++) {
		s->sources[i] = sources[i];
		if (!s->sources[i].data)
			s->sources[i].data = sources[i].records;
		r = load_source(s, (uint16_t)i, err);
	}
	if (!r)
		r = add_up(s, on_conflict, err);
	if (!r)
		r = shape(s, err);
	if (r < 0) {
		snapshot_free(s);
		return r;
	}
	find_links(s);
	compute_identity(s);
	*ret = s;
	return 0;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	free(s->entries.items);
	free(s->sources);
	arena_release(&s->arena);
	(void)pthread_mutex_destroy(&s->data_lock); /* nobody holds it */
	free(s);
}

enum snapshot_which snapshot_which(const struct snapshot *s)
{
	return s->which;
}

const struct snapshot_entry *snapshot_entries(const struct snapshot *s, size_t *ret_nr)
{
	*ret_nr = s->entries.len;
	return s->entries.items;
}

size_t snapshot_nr_sources(const struct snapshot *s)
{
	return s->nr_sources;
}

const char *snapshot_source_path(const struct snapshot *s, size_t nr)
{
	return trace_path(s->sources[nr].records);
}

struct hash128 snapshot_identity(const struct snapshot *s)
{
	return s->identity;
}

uint64_t snapshot_nr_left_out(const struct snapshot *s)
{
	return s->nr_left_out;
}

const char *snapshot_first_left_out(const struct snapshot *s)
{
	return s->first_left_out;
}

int snapshot_load_piece(struct snapshot *s, const struct snapshot_entry *e, uint64_t piece,
			uint8_t *room, size_t *ret_len, struct err *err)
{
	const uint8_t *bytes = NULL;
	size_t len = 0;
	int r;

	if (!e->content)
		return 0;
	(void)pthread_mutex_lock(&s->data_lock); /* never held by its own thread */
	r = trace_load_piece(s->sources[e->source].data, e->content, piece, &bytes, &len, err);
	if (r == 1)
		memcpy(room, bytes, len);
	(void)pthread_mutex_unlock(&s->data_lock); /* ours */
	if (r == -ENODATA)
		return 0;
	if (r == 1)
		*ret_len = len;
	return r;
}
