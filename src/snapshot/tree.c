/* SPDX-License-Identifier: MIT */
/*
 * Three steps: records become raw entries (a path may have several), which are
 * sorted and added up; then the array is gone through once more with the
 * parents of each entry on a stack, which finds what is implied and what
 * contradicts; at last links are found by device and inode.
 */
#include "snapshot/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "base/mem.h"
#include "snapshot/tree_inside.h"

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

/* Adding up. */

void tree_copy_known(struct snapshot_entry *to, const struct snapshot_entry *e)
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
	tree_copy_known(to, e);
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
		r = tree_load(s, (uint16_t)i, err);
	}
	if (!r)
		r = add_up(s, on_conflict, err);
	if (!r)
		r = shape(s, err);
	if (r < 0) {
		snapshot_free(s);
		return r;
	}
	tree_find_links(s);
	tree_identify(s);
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
