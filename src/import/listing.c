/* SPDX-License-Identifier: MIT */
#include "import/listing.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "import/brackets.h"
#include "import/mac_path.h"
#include "import/sink.h"

/* A kind of entry, a number, a path, a size or target. */
#define FIELDS_MAX 4

enum { TYPE_FILE = 1, TYPE_DIR = 2, TYPE_SYMLINK = 3 }; /* of the set file_types, on disk */

struct entry {
	uint64_t type, size;
	struct scan_word path, target;
	bool has_inode, fork;
	uint64_t inode;
};

void listing_init(struct listing *l)
{
	memset(l, 0, sizeof(*l));
	arena_init(&l->arena);
}

void listing_release(struct listing *l)
{
	map_release(&l->by_inode);
	arena_release(&l->arena);
}

/* Fields. */

/*
 * Names may have a '#' in them. Paths begin with a slash, and numbers do not, so
 * that it can be told apart from a separator but for the one before a target.
 */
static int split_hashes(const char *line, size_t len, struct scan_word *ret, struct err *err)
{
	const char *end = line + len, *hash = memchr(line, '#', len), *last;
	int nr = 0;

	if (!hash)
		return err_set(err, -EBADMSG, "no '#' after the kind of entry");
	ret[nr++] = (struct scan_word){ line, (size_t)(hash - line) };
	line = hash + 1;
	if (scan_word_is(ret[0], "dir")) {
		ret[nr++] = (struct scan_word){ line, (size_t)(end - line) };
		return nr;
	}
	hash = memchr(line, '#', (size_t)(end - line));
	if (hash && scan_word_is(ret[0], "file") && line < end && *line != '/') {
		ret[nr++] = (struct scan_word){ line, (size_t)(hash - line) };
		line = hash + 1;
	}
	last = memrchr(line, '#', (size_t)(end - line));
	if (!last)
		return err_set(err, -EBADMSG, "a part is missing, or a name has a newline");
	if (scan_word_is(ret[0], "symlink") && last != hash)
		return err_set(err, -EBADMSG, "'#' in a symlink's name or target");
	ret[nr++] = (struct scan_word){ line, (size_t)(last - line) };
	ret[nr++] = (struct scan_word){ last + 1, (size_t)(end - last - 1) };
	return nr;
}

static int take_path(struct scan_word w, struct entry *e, struct err *err)
{
	if (!w.len || *w.text != '/')
		return err_set(err, -EBADMSG, "the path is not absolute");
	if (w.len >= PATH_MAX || memchr(w.text, 0, w.len))
		return err_set(err, -EBADMSG, "the path is none");
	e->path = w;
	return 0;
}

static int take_inode(struct scan_word w, struct entry *e, struct err *err)
{
	static const char fork[] = "rsrc";
	size_t fork_len = sizeof(fork) - 1;

	if (w.len > fork_len && !memcmp(w.text + w.len - fork_len, fork, fork_len)) {
		w.len -= fork_len;
		e->fork = true;
	}
	if (!scan_convert(w, 10, &e->inode))
		return err_set(err, -EBADMSG, "the inode is no number");
	e->has_inode = true;
	return 0;
}

static int take_size(struct scan_word w, struct entry *e, struct err *err)
{
	if (!scan_convert(w, 10, &e->size) || e->size > INT64_MAX)
		return err_set(err, -EBADMSG, "the size is no number");
	return 0;
}

static int take_fields(const struct scan_word *f, int nr, struct entry *e, struct err *err)
{
	int r = 0;

	if (scan_word_is(f[0], "dir") && nr == 2) {
		e->type = TYPE_DIR;
		return take_path(f[1], e, err);
	}
	if (scan_word_is(f[0], "symlink") && nr == 3) {
		e->type = TYPE_SYMLINK;
		e->target = f[2];
		if (!f[2].len || f[2].len >= PATH_MAX || memchr(f[2].text, 0, f[2].len))
			return err_set(err, -EBADMSG, "the target is none");
		return take_path(f[1], e, err);
	}
	if (!scan_word_is(f[0], "file") || (nr != 3 && nr != 4))
		return err_set(err, -EBADMSG, "neither dir, file nor symlink with its parts");
	e->type = TYPE_FILE;
	if (nr == 4)
		r = take_inode(f[1], e, err);
	if (!r)
		r = take_path(f[nr - 2], e, err);
	return r ? r : take_size(f[nr - 1], e, err);
}

static int parse_entry(const char *line, size_t len, struct entry *e, struct err *err)
{
	struct scan_word fields[FIELDS_MAX] = { 0 };
	int nr;

	if (len && line[len - 1] == '\r')
		len--;
	nr = len && *line == '[' ? brackets_split(line, len, fields, FIELDS_MAX, err)
				 : split_hashes(line, len, fields, err);
	return nr < 0 ? nr : take_fields(fields, nr, e, err);
}

/* Entries of the tree. */

/* Which field of the struct has this name; they are on disk. */
static unsigned int field_of(enum struct_id id, const char *name)
{
	const struct struct_desc *d = &struct_descs[id];
	unsigned int n;

	for (n = 0; n < d->nr_fields; n++)
		if (!strcmp(d->fields[n].name, name))
			return n;
	return d->nr_fields;
}

static struct value stat_value(struct arena *a, const struct entry *e)
{
	unsigned int type = field_of(STRUCT_tree_stat, "type");
	unsigned int size = field_of(STRUCT_tree_stat, "size");
	uint64_t sized = e->type == TYPE_FILE ? UINT64_C(1) << size : 0;
	struct value v = value_struct(a, UINT64_C(1) << type | sized);

	*value_field(&v, type) = value_uint(e->type);
	if (sized)
		*value_field(&v, size) = value_uint(e->size);
	return v;
}

/* A fork is listed by its own path or by that of its file. */
static void put_path(struct buf *out, const struct entry *e)
{
	size_t file_len;

	if (mac_path_is_fork(e->path.text, e->path.len, &file_len))
		mac_path_put_fork(out, e->path.text, file_len);
	else if (e->fork)
		mac_path_put_fork(out, e->path.text, e->path.len);
	else
		buf_put(out, e->path.text, e->path.len);
}

static int feed_entry(struct import *im, struct arena *a, const struct entry *e, struct buf *path,
		      struct err *err)
{
	struct item item = { .row = row_by_id(REC_tree_entry) };
	struct import_sink sink = { .im = im };

	*args_find(item.row, item.args, "tree") = value_uint(0);
	*args_find(item.row, item.args, "path") = value_bytes(a, path->data, path->len);
	*args_find(item.row, item.args, "stat") = stat_value(a, e);
	if (e->type == TYPE_SYMLINK)
		*args_find(item.row, item.args, "target") =
			value_bytes(a, e->target.text, e->target.len);
	return import_sink_item(&sink, &item, err);
}

static void note_inode(struct listing *l, const struct entry *e)
{
	void **slot;

	if (!e->has_inode || e->fork)
		return;
	slot = map_slot(&l->by_inode, &e->inode, sizeof(e->inode));
	if (!*slot)
		*slot = arena_memdup0(&l->arena, e->path.text, e->path.len);
}

static int read_entry(struct listing *l, struct import *im, const char *line, size_t len,
		      struct arena *a, struct err *err)
{
	struct entry e = { 0 };
	struct buf path = { 0 };
	int r;

	if (!len)
		return 0;
	r = parse_entry(line, len, &e, err);
	if (r < 0)
		return r;
	note_inode(l, &e);
	put_path(&path, &e);
	r = feed_entry(im, a, &e, &path, err);
	buf_release(&path);
	return r;
}

int listing_read(struct listing *l, struct import *im, struct import_input *in, struct err *err)
{
	struct import_sink sink = { .im = im };
	struct arena arena;
	const char *line;
	size_t len;
	int r = import_input_open(in, err);

	arena_init(&arena);
	if (!r)
		r = import_sink_meta(&sink, TRACE_META_TREE, TRACE_TREE_PARTIAL, err);
	while (!r && (r = import_input_line(in, &line, &len, err)) > 0) {
		im->counts.nr_lines++;
		arena_reset(&arena);
		r = read_entry(l, im, line, len, &arena, err);
		if (r == -EBADMSG)
			r = import_reject_line(im, in, err);
	}
	import_input_close(in);
	arena_release(&arena);
	return r;
}

/* A listing alone: a trace with a tree and no events. */

static int listing_probe(const uint8_t *first, size_t len)
{
	const char *line = (const char *)first;
	const char *eol = memchr(line, '\n', len);
	struct entry e = { 0 };

	return !parse_entry(line, eol ? (size_t)(eol - line) : len, &e, NULL) ? 60 : 0;
}

static int listing_run(struct import *im, struct err *err)
{
	struct import_sink sink = { .im = im };
	struct listing l;
	size_t i;
	int r = import_sink_describe(&sink, "listing", err);

	listing_init(&l);
	for (i = 0; i < im->nr_inputs && !r; i++)
		r = listing_read(&l, im, &im->inputs[i], err);
	listing_release(&l);
	return r;
}

const struct importer importer_listing = {
	.name = "listing",
	.summary = "a listing of the initial tree, as ARTC and iBench have it",
	.probe = listing_probe,
	.run = listing_run,
};
