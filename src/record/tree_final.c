/* SPDX-License-Identifier: MIT */
/* The end of a recording: how the touched paths are now, and what they were mounted from. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/io.h"
#include "record/tree_inside.h"

/* Of all files together, so that the end of a recording has an end. */
#define HASH_MAX_BYTES ((uint64_t)1 << 30)
/* Likewise, of what is kept besides its hash. */
#define FINAL_KEPT_MAX_BYTES ((uint64_t)16 << 20)
#define MOUNTINFO_MAX_BYTES ((size_t)16 << 20)

enum {
	MOUNT_DEV,
	MOUNT_PATH,
	MOUNT_TYPE,
	MOUNT_SOURCE,
	MOUNT_OPTIONS,
};

/* A name of ours has no symlinks but at its end; what has become one since is another path. */
static int open_name(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS };
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return (int)fd;
}

/* What is found at a path; the record points into the rest. */
struct description {
	struct tree_record rec;
	struct tree_object object;
	struct tree_content content;
};

/*
 * Whether what the file holds is kept too. Where several threads wrote at the same time to
 * one place, as appends do, that alone tells which came first.
 */
static bool keeps_final(const struct tree *t, const struct tree_object *o)
{
	return t->had_several && o->st.stx_size <= t->o.content_max_bytes &&
	       o->st.stx_size <= t->final_left_bytes;
}

/* True: nothing more can be told of it with other rights. */
static bool describe(struct tree *t, const struct noted *n, uint64_t hash_left,
		     struct description *ret)
{
	AUTO_CLOSE int fd = open_name(n->path);
	struct tree_record *rec = &ret->rec;
	struct tree_object *o = &ret->object;

	*rec = (struct tree_record){ .object = NULL };
	ret->content.len_bytes = 0;
	if (fd < 0 || !tree_ask(t, fd, o)) {
		rec->flags = errno == EACCES || errno == EPERM ? TREE_UNREADABLE : TREE_MISSING;
		return rec->flags == TREE_MISSING;
	}
	rec->object = o;
	if (S_ISLNK(o->st.stx_mode))
		o->target = tree_read_link(t, fd, &o->target_len);
	if (o->special || S_ISCHR(o->st.stx_mode) || S_ISBLK(o->st.stx_mode))
		rec->flags |= TREE_SPECIAL;
	if (!o->special && (S_ISREG(o->st.stx_mode) || S_ISDIR(o->st.stx_mode))) {
		rec->xattrs = tree_read_xattrs(t, fd);
		/* That there are none is known too, and can be verified. */
		if (rec->xattrs.type == VALUE_NONE)
			rec->xattrs = value_list(&t->item, 0);
	}
	/* What has not been changed need not be read again; and if it was not read then, not now. */
	if (tree_is_unchanged(n, o)) {
		rec->hash = n->file->has_hash ? n->file->hash : NULL;
	} else if (S_ISREG(o->st.stx_mode) && !o->special && n->flags & NOTED_DENIED) {
		rec->flags |= TREE_UNREADABLE;
	} else if (S_ISREG(o->st.stx_mode) && !o->special && o->st.stx_size <= hash_left) {
		bool keep = keeps_final(t, o);

		if (!tree_read_content(t, o, hash_left, keep, &ret->content)) {
			rec->flags |= TREE_UNREADABLE;
			return false;
		}
		if (keep) {
			t->final_left_bytes -= ret->content.len_bytes;
			rec->content = ret->content.content;
			rec->flags |= TREE_CONTENT_KEPT;
		}
		rec->hash = ret->content.hash;
		rec->flags |= ret->content.changed ? TREE_CHANGED : 0;
	}
	return true;
}

/* With the rights of those who could look it up, until one could read it; of others it is not said what is there. */
static void write_final(struct tree *t, const struct noted *n, uint64_t *hash_left)
{
	struct description d = { .rec = { .flags = TREE_UNREADABLE } };
	bool is_whole = false;
	unsigned int id;

	for (id = 0; id < CREDS_MAX && !is_whole; id++) {
		if (!(n->seen_by >> id & 1) || !creds_assume(t->creds, id))
			continue;
		is_whole = describe(t, n, *hash_left, &d);
		creds_return(t->creds, CREDS_OWN);
	}
	d.rec.which = TREE_FINAL;
	d.rec.path = n->path;
	d.rec.path_len = strlen(n->path);
	*hash_left -= d.content.len_bytes;
	tree_write(t, &d.rec);
}

/* Mounts. */

struct mount_line {
	uint64_t dev;
	char *path, *type, *source, *options;
};

/* Octal escapes, in place. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = 0;
}

/* The next word of a line; NULL at its end. */
static char *next_word(char **line)
{
	char *word = *line, *space;

	if (!word)
		return NULL;
	space = strchr(word, ' ');
	if (space)
		*space++ = 0;
	*line = space;
	return word;
}

/* id parent major:minor root path options [more...] - type source options */
static bool parse_mount(char *line, struct mount_line *ret)
{
	unsigned int major, minor;
	char *word;

	(void)next_word(&line);
	(void)next_word(&line);
	word = next_word(&line);
	if (!word || sscanf(word, "%u:%u", &major, &minor) != 2)
		return false;
	ret->dev = makedev(major, minor);
	(void)next_word(&line);
	ret->path = next_word(&line);
	ret->options = next_word(&line);
	do
		word = next_word(&line);
	while (word && strcmp(word, "-") != 0);
	ret->type = next_word(&line);
	ret->source = next_word(&line);
	if (!ret->source)
		return false;
	unescape(ret->path);
	unescape(ret->source);
	return true;
}

static bool is_below(const char *path, const char *mount)
{
	size_t len = strlen(mount);

	return !strncmp(path, mount, len) && (len == 1 || path[len] == '/' || !path[len]);
}

/*
 * The mount that something on the device is below: of this device, or (some
 * file systems show their files another one) of any.
 */
static const struct mount_line *find_mount(const struct mount_line *lines, size_t nr,
					   const struct tree_device *d)
{
	const struct mount_line *best = NULL;
	bool best_same = false;
	size_t i;

	for (i = 0; i < nr; i++) {
		bool same = lines[i].dev == d->dev;

		if (!is_below(d->path, lines[i].path) || (best_same && !same))
			continue;
		/* Of equals the last: it lies on top. */
		if (!best || (same && !best_same) || strlen(lines[i].path) >= strlen(best->path)) {
			best = &lines[i];
			best_same = same;
		}
	}
	return best;
}

static void write_mount(struct tree *t, uint64_t dev, const struct mount_line *m)
{
	struct item item = { .row = row_by_id(REC_tree_mount) };
	int r;

	item.args[MOUNT_DEV] = value_uint(dev);
	item.args[MOUNT_PATH] = value_str(&t->item, m->path);
	item.args[MOUNT_TYPE] = value_str(&t->item, m->type);
	item.args[MOUNT_SOURCE] = value_str(&t->item, m->source);
	item.args[MOUNT_OPTIONS] = value_str(&t->item, m->options);
	r = t->r ? t->r : trace_feed_item(t->feed, &item);
	if (r < 0)
		t->r = r;
}

static void write_mounts(struct tree *t)
{
	VEC(struct mount_line) lines = { 0 };
	struct buf text = { 0 };
	struct mount_line m;
	char *line, *end;
	size_t i;

	if (io_read_file("/proc/self/mountinfo", MOUNTINFO_MAX_BYTES, &text, NULL) < 0) {
		t->nr_incomplete++;
		return;
	}
	buf_putc(&text, 0);
	for (line = (char *)text.data; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		if (parse_mount(line, &m))
			VEC_PUSH(&lines, m);
	}
	for (i = 0; i < t->devices.len; i++) {
		const struct tree_device *d = &t->devices.items[i];
		const struct mount_line *found =
			d->path ? find_mount(lines.items, lines.len, d) : NULL;

		if (found)
			write_mount(t, d->dev, found);
		arena_reset(&t->item);
	}
	VEC_RELEASE(&lines);
	buf_release(&text);
}

static void write_all_final(struct tree *t)
{
	uint64_t hash_left = HASH_MAX_BYTES;

	const struct noted *n;

	for (n = t->noted; n; n = n->next) {
		/* What the kernel makes up is not the program's work. */
		if (!(n->flags & NOTED_TOUCHED) || n->flags & NOTED_SPECIAL || t->r)
			continue;
		write_final(t, n, &hash_left);
		arena_reset(&t->item);
		spill_relax(&t->spill);
	}
}

/* What a program was refused is said to be unreadable, also where we could have read it. */
static void write_denied(struct tree *t)
{
	const struct noted *n;

	for (n = t->noted; n && !t->r; n = n->next) {
		spill_relax(&t->spill); /* all of it is gone through */
		if (!(n->flags & NOTED_DENIED) || (n->file && n->file->has_hash))
			continue;
		tree_write(t, &(struct tree_record){ .which = TREE_INITIAL,
						     .path = n->path,
						     .path_len = strlen(n->path),
						     .flags = TREE_UNREADABLE });
		t->nr_withheld += n->flags & NOTED_WITHHELD ? 1 : 0;
		arena_reset(&t->item);
	}
}

int tree_finish(struct tree *t, uint64_t now_ns, bool has_end)
{
	struct loss loss = { .kind = LOSS_TREE_INCOMPLETE, .to_ns = now_ns };

	t->now_ns = now_ns;
	t->final_left_bytes = FINAL_KEPT_MAX_BYTES;
	tree_read_at_once(t);
	tree_places_forget(t->places);
	write_denied(t);
	if (has_end)
		write_all_final(t);
	if (!t->r)
		write_mounts(t);
	loss.count = t->nr_incomplete;
	loss.note = "paths that could not be described";
	if (!t->r && t->nr_incomplete)
		t->r = trace_feed_loss(t->feed, &loss);
	loss.count = t->nr_withheld;
	loss.note = "files that the program was not allowed to read, so they were not read for it";
	if (!t->r && t->nr_withheld)
		t->r = trace_feed_loss(t->feed, &loss);
	loss.count = t->nr_unnoted;
	loss.note = "uses of paths that there was no room to remember";
	if (!t->r && t->nr_unnoted)
		t->r = trace_feed_loss(t->feed, &loss);
	return t->r;
}
