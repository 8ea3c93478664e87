/* SPDX-License-Identifier: MIT */
/*
 * First it is settled what is expected of which path (one array), then each path
 * is looked at by several threads, then links are compared, for which all must
 * have been seen.
 *
 * What the program did not touch is expected to be as it was in the beginning,
 * but only where it can still be: below directories that are still the same ones.
 * A directory that was moved takes names along that nobody noted under its new
 * name; that is why only directories with a full listing, at the place where they
 * were listed, are searched for names that should not be there.
 */
#include "snapshot/verify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/privileged.h"
#include "base/varint.h"
#include "snapshot/contain.h"
#include "snapshot/inside.h"

#define XATTR_LIST_MAX_BYTES 65536
#define XATTR_VALUE_MAX_BYTES 65536

const char *const snapshot_diff_names[SNAPSHOT_DIFF_MAX] = {
	[SNAPSHOT_DIFF_MISSING] = "missing", [SNAPSHOT_DIFF_UNEXPECTED] = "unexpected",
	[SNAPSHOT_DIFF_TYPE] = "type",	     [SNAPSHOT_DIFF_SIZE] = "size",
	[SNAPSHOT_DIFF_MODE] = "mode",	     [SNAPSHOT_DIFF_TARGET] = "target",
	[SNAPSHOT_DIFF_LINK] = "link",	     [SNAPSHOT_DIFF_XATTR] = "xattr",
	[SNAPSHOT_DIFF_CONTENT] = "content", [SNAPSHOT_DIFF_OWNER] = "owner",
	[SNAPSHOT_DIFF_TIME] = "time",
};

/* What is expected of one path, and what was found there. */
struct expected {
	const struct snapshot_entry *e; /* of the final tree, or of the initial one */
	bool listed; /* no other names may be in it */
	bool no_content; /* size and content are not known any more */
	bool made_up; /* the content that it began with was filler */
	bool found;
	uint64_t dev, ino, nlink; /* as found */
};

struct verification {
	struct creation base; /* of which verify uses the options, DIR and the final tree */
	const struct snapshot_verify_options *o;
	struct snapshot *initial, *final;
	bool data_lost; /* the trace did not keep what was written */
	bool all_mode_bits, alone;
	VEC(struct expected) list;
	pthread_mutex_t lock; /* of the verdict, while there are threads */
	struct snapshot_verdict *verdict;
	size_t cap_items;
};

/* Differences. */

PRINTF_LIKE(1, 2) static char *words(const char *fmt, ...)
{
	struct buf b = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	(void)buf_str(&b);
	return (char *)b.data;
}

/* Takes found and recorded. */
static void differ(struct verification *v, const char *path, enum snapshot_diff what, char *found,
		   char *recorded)
{
	struct snapshot_verdict *to = v->verdict;

	(void)pthread_mutex_lock(&v->lock); /* never held by its own thread */
	to->nr_differences++;
	to->by_kind[what]++;
	if (!v->o->max_listed || to->nr_items < v->o->max_listed) {
		if (to->nr_items == v->cap_items)
			to->items = vec_grow(to->items, &v->cap_items, sizeof(*to->items));
		to->items[to->nr_items++] =
			(struct snapshot_difference){ .path = words("/%s", path),
						      .what = what,
						      .found = found,
						      .recorded = recorded };
		found = recorded = NULL;
	}
	(void)pthread_mutex_unlock(&v->lock); /* ours */
	free(found);
	free(recorded);
}

static void count(struct verification *v, uint64_t *counter)
{
	(void)pthread_mutex_lock(&v->lock); /* never held by its own thread */
	(*counter)++;
	(void)pthread_mutex_unlock(&v->lock); /* ours */
}

void snapshot_verdict_release(struct snapshot_verdict *v)
{
	size_t i;

	for (i = 0; i < v->nr_items; i++) {
		free(v->items[i].path);
		free(v->items[i].found);
		free(v->items[i].recorded);
	}
	free(v->items);
	v->items = NULL;
	v->nr_items = 0;
}

static int compare_differences(const void *a, const void *b)
{
	const struct snapshot_difference *x = a, *y = b;
	int r = strcmp(x->path, y->path);

	return r ? r : (x->what > y->what) - (x->what < y->what);
}

/* Expectations. */

static bool same_identity(const struct snapshot_entry *a, const struct snapshot_entry *b)
{
	return a->known & b->known & SNAPSHOT_HAS_ID && a->dev == b->dev && a->ino == b->ino;
}

struct id_key {
	uint64_t dev, ino;
};

static void index_files(const struct snapshot *s, struct map *map)
{
	size_t i, nr;
	const struct snapshot_entry *entries = snapshot_entries(s, &nr);

	for (i = 0; i < nr; i++) {
		const struct snapshot_entry *e = &entries[i];
		struct id_key key = { e->dev, e->ino };

		if (snapshot_is_made(e) && e->known & SNAPSHOT_HAS_ID && e->type != SNAPSHOT_DIR)
			*map_slot(map, &key, sizeof(key)) = (void *)e;
	}
}

static const struct snapshot_entry *find_file(const struct map *map, const struct snapshot_entry *e)
{
	struct id_key key = { e->dev, e->ino };

	return e->known & SNAPSHOT_HAS_ID ? map_get(map, &key, sizeof(key)) : NULL;
}

static bool is_made_up(const struct snapshot_entry *e)
{
	return e && snapshot_is_made(e) && e->type == SNAPSHOT_FILE &&
	       content_held_bytes(e) < content_size(e);
}

static void expect_final(struct verification *v, const struct map *initial_files)
{
	size_t i, nr;
	const struct snapshot_entry *entries = snapshot_entries(v->final, &nr);

	for (i = 1; i < nr; i++) {
		const struct snapshot_entry *e = &entries[i], *was;
		struct expected x = { .e = e };

		if (e->flags & SNAPSHOT_IMPLIED)
			continue;
		if (e->flags & SNAPSHOT_SPECIAL || (snapshot_exists(e) && !snapshot_is_made(e))) {
			v->verdict->nr_skipped++;
			continue;
		}
		was = snapshot_find(v->initial, e->path, e->path_len);
		if (e->type == SNAPSHOT_FILE)
			x.made_up = is_made_up(was) || is_made_up(find_file(initial_files, e));
		if (e->type == SNAPSHOT_DIR)
			x.listed = e->flags & SNAPSHOT_LISTED ||
				   (was && was->flags & SNAPSHOT_LISTED && same_identity(was, e));
		VEC_PUSH(&v->list, x);
	}
}

/* Whether what was in the directory can still be there. */
static bool is_still_there(const struct verification *v, const struct snapshot_entry *dir)
{
	const struct snapshot_entry *now = snapshot_find(v->final, dir->path, dir->path_len);

	return !dir->path_len || !now || now->flags & SNAPSHOT_IMPLIED ||
	       (now->type == SNAPSHOT_DIR && same_identity(now, dir));
}

static void expect_untouched(struct verification *v, const struct map *final_files)
{
	size_t i, nr;
	const struct snapshot_entry *entries = snapshot_entries(v->initial, &nr);
	bool *gone = xcalloc(nr, sizeof(*gone)); /* by entry: what is below it may be elsewhere */

	for (i = 0; i < nr; i++) {
		const struct snapshot_entry *e = &entries[i], *now, *same;
		struct expected x = { .e = e };

		gone[i] = (i && gone[e->parent]) ||
			  (e->type == SNAPSHOT_DIR && !is_still_there(v, e));
		if (gone[i] || !snapshot_exists(e))
			continue;
		if (!i) {
			/* DIR itself is the user's, but not the names in it. */
			x.listed = e->flags & SNAPSHOT_LISTED;
			if (x.listed)
				VEC_PUSH(&v->list, x);
			continue;
		}
		now = snapshot_find(v->final, e->path, e->path_len);
		if (now && !(now->flags & SNAPSHOT_IMPLIED))
			continue;
		if (e->flags & SNAPSHOT_SPECIAL || !snapshot_is_made(e)) {
			v->verdict->nr_skipped++;
			continue;
		}
		x.listed = e->type == SNAPSHOT_DIR && e->flags & SNAPSHOT_LISTED;
		x.made_up = is_made_up(&entries[e->first_link]);
		/* Another name of it was touched, or may have been. */
		same = e->type == SNAPSHOT_DIR ? NULL : find_file(final_files, e);
		x.no_content = same || (e->known & SNAPSHOT_HAS_NLINK && e->nlink > 1 &&
					e->type != SNAPSHOT_DIR);
		VEC_PUSH(&v->list, x);
	}
	free(gone);
}

/* Comparison. */

struct look {
	struct verification *v;
	struct worker *w;
	struct expected *x;
	const struct snapshot_entry *e;
	int fd; /* O_PATH */
	struct stat st;
};

static void compare_meta(const struct look *l)
{
	const struct snapshot_entry *e = l->e;
	mode_t bits = (mode_t)07777 & ~(l->v->all_mode_bits ? 0 : PRIVILEGED_MODE_BITS);
	mode_t mode = l->st.st_mode & bits;

	if (e->type != SNAPSHOT_SYMLINK && e->known & SNAPSHOT_HAS_MODE && mode != (e->mode & bits))
		differ(l->v, e->path, SNAPSHOT_DIFF_MODE, words("%04o", mode),
		       words("%04o", e->mode & bits));
	if (l->v->o->owners && ((e->known & SNAPSHOT_HAS_UID && e->uid != l->st.st_uid) ||
				(e->known & SNAPSHOT_HAS_GID && e->gid != l->st.st_gid)))
		differ(l->v, e->path, SNAPSHOT_DIFF_OWNER,
		       words("%u:%u", l->st.st_uid, l->st.st_gid), words("%u:%u", e->uid, e->gid));
	if (l->v->o->times && e->known & SNAPSHOT_HAS_MTIME &&
	    e->mtime_ns != meta_time_ns(&l->st.st_mtim))
		differ(l->v, e->path, SNAPSHOT_DIFF_TIME,
		       words("%" PRId64, meta_time_ns(&l->st.st_mtim)),
		       words("%" PRId64, e->mtime_ns));
}

static void compare_target(const struct look *l)
{
	char text[SNAPSHOT_PATH_MAX + 1];
	ssize_t n = readlinkat(l->fd, "", text, sizeof(text));

	if (l->e->type != SNAPSHOT_SYMLINK || !(l->e->known & SNAPSHOT_HAS_TARGET))
		return;
	if (n != (ssize_t)l->e->target_len || memcmp(text, l->e->target, (size_t)n))
		differ(l->v, l->e->path, SNAPSHOT_DIFF_TARGET,
		       xmemdup0(text, n < 0 ? 0 : (size_t)n),
		       xmemdup0(l->e->target, l->e->target_len));
}

static bool has_xattr(const struct snapshot_entry *e, const char *name)
{
	uint32_t i;

	for (i = 0; i < e->nr_xattrs; i++) {
		if (!strcmp(e->xattrs[i].name, name))
			return true;
	}
	return false;
}

/* By way of /proc, because a descriptor of O_PATH cannot be asked. */
static void compare_xattrs(const struct look *l)
{
	const struct snapshot_entry *e = l->e;
	bool privileged = l->v->base.o->privileged_metadata;
	char path[64], *names = (char *)l->w->want;
	uint8_t *value = l->w->have;
	ssize_t len, at, n;
	uint32_t i;

	if (!(e->known & SNAPSHOT_HAS_XATTRS) ||
	    (e->type != SNAPSHOT_FILE && e->type != SNAPSHOT_DIR))
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", l->fd);
	for (i = 0; i < e->nr_xattrs; i++) {
		const struct snapshot_xattr *x = &e->xattrs[i];

		if (!meta_is_our_xattr(x->name, privileged))
			continue;
		n = getxattr(path, x->name, value, XATTR_VALUE_MAX_BYTES);
		if (n != (ssize_t)x->value_len || memcmp(value, x->value, (size_t)n))
			differ(l->v, e->path, SNAPSHOT_DIFF_XATTR,
			       n < 0 ? words("no %s", x->name) : words("another %s", x->name),
			       words("%s of %u bytes", x->name, x->value_len));
	}
	len = listxattr(path, names, XATTR_LIST_MAX_BYTES);
	for (at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		if (meta_is_our_xattr(names + at, privileged) && !has_xattr(e, names + at))
			differ(l->v, e->path, SNAPSHOT_DIFF_XATTR, xstrdup(names + at), NULL);
	}
}

/* 1 and the hash; 0 when we may not read it. */
static int hash_file(const struct look *l, uint8_t ret[static 16])
{
	struct worker *w = l->w;
	AUTO_CLOSE int fd =
		contain_open(w->c->dir_fd, l->e->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, true);
	XXH3_state_t *h;
	XXH128_hash_t digest;
	uint64_t offset = 0;
	ssize_t n = 0;
	int r = 0;

	if (fd < 0)
		return fd == -EACCES || fd == -EPERM ? 0 : worker_fail(w, l->e, fd, "open");
	h = XXH3_createState();
	(void)XXH3_128bits_reset(h);
	do {
		r = worker_check_stop(w);
		n = r ? 0 : pread_full(fd, w->have, BLOB_MAX_BYTES, offset);
		if (n < 0)
			r = worker_fail(w, l->e, (int)n, "read");
		if (n > 0)
			(void)XXH3_128bits_update(h, w->have, (size_t)n);
		offset += n > 0 ? (uint64_t)n : 0;
	} while (!r && (size_t)n == BLOB_MAX_BYTES);
	digest = XXH3_128bits_digest(h);
	(void)XXH3_freeState(h);
	put_le64(ret, digest.low64);
	put_le64(ret + 8, digest.high64);
	return r ? r : 1;
}

static char *hash_words(const uint8_t hash[static 16])
{
	struct buf b = { 0 };
	unsigned int i;

	for (i = 0; i < 16; i++)
		buf_printf(&b, "%02x", hash[i]);
	(void)buf_str(&b);
	return (char *)b.data;
}

static int compare_content(const struct look *l)
{
	const struct snapshot_entry *e = l->e;
	uint64_t *skipped = &l->v->verdict->nr_contents_skipped;
	uint8_t hash[16];
	int r;

	if (e->known & SNAPSHOT_HAS_SIZE && !l->x->no_content &&
	    (uint64_t)l->st.st_size != e->size_bytes) {
		differ(l->v, e->path, SNAPSHOT_DIFF_SIZE, words("%lld", (long long)l->st.st_size),
		       words("%" PRIu64, e->size_bytes));
		return 0; /* what it holds cannot be the same */
	}
	/* Holes that stand for more than was ever there need not be read. */
	if (!(e->known & SNAPSHOT_HAS_HASH) || l->x->no_content || e->flags & SNAPSHOT_CHANGED ||
	    (l->x->made_up && (uint64_t)l->st.st_size > SNAPSHOT_SPARSE_OVER_DEFAULT)) {
		if (l->st.st_size)
			count(l->v, skipped);
		return 0;
	}
	r = hash_file(l, hash);
	if (r < 0)
		return r;
	if (!r || (memcmp(hash, e->hash, sizeof(hash)) && (l->x->made_up || l->v->data_lost))) {
		count(l->v, skipped);
		return 0;
	}
	count(l->v, &l->v->verdict->nr_contents);
	if (memcmp(hash, e->hash, sizeof(hash)))
		differ(l->v, e->path, SNAPSHOT_DIFF_CONTENT, hash_words(hash), hash_words(e->hash));
	return 0;
}

/* Listings. */

static bool may_be_in(const struct verification *v, const struct snapshot_entry *dir,
		      const char *name)
{
	char path[SNAPSHOT_PATH_MAX + 1 + SNAPSHOT_NAME_MAX + 1];
	int len = snprintf(path, sizeof(path), "%s%s%s", dir->path, dir->path_len ? "/" : "", name);
	const struct snapshot_entry *e;

	if (len < 0 || (size_t)len >= sizeof(path))
		return false;
	if (!dir->path_len && (!strcmp(name, SNAPSHOT_RESERVED) || !strcmp(name, "lost+found")))
		return true;
	/* Names that are known to be gone are told for themselves. */
	e = snapshot_find(v->final, path, (size_t)len);
	if (!e)
		e = snapshot_find(v->initial, path, (size_t)len);
	return e && (snapshot_exists(e) || snapshot_find(v->final, path, (size_t)len));
}

static int compare_listing(const struct look *l)
{
	int fd, r = 0;
	struct dirent *e;
	DIR *d;

	fd = contain_open(l->w->c->dir_fd, l->e->path, O_RDONLY | O_DIRECTORY, true);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			(void)close(fd); /* nothing was written */
		return fd == -EACCES ? 0 : worker_fail(l->w, l->e, fd < 0 ? fd : -errno, "read");
	}
	count(l->v, &l->v->verdict->nr_listings);
	while ((errno = 0, e = readdir(d))) {
		struct buf path = { 0 };

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    may_be_in(l->v, l->e, e->d_name))
			continue;
		buf_printf(&path, "%s%s%s", l->e->path, l->e->path_len ? "/" : "", e->d_name);
		differ(l->v, buf_str(&path), SNAPSHOT_DIFF_UNEXPECTED, NULL, NULL);
		buf_release(&path);
	}
	if (errno)
		r = worker_fail(l->w, l->e, -errno, "read");
	(void)closedir(d); /* only read from */
	return r;
}

/* One path. */

static int look_at(struct worker *w, uint32_t nr)
{
	struct verification *v = (struct verification *)w->c;
	struct expected *x = &v->list.items[nr];
	const struct snapshot_entry *e = x->e;
	AUTO_CLOSE int fd = contain_open(w->c->dir_fd, e->path, O_PATH, true);
	struct look l = { .v = v, .w = w, .x = x, .e = e, .fd = fd };
	int r = 0;

	/* ELOOP, ENOTDIR: something on the way is of another type. */
	if (fd < 0 && fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP)
		return worker_fail(w, e, fd, "look at");
	if (fd >= 0 && fstat(fd, &l.st))
		return worker_fail(w, e, -errno, "stat");
	x->found = fd >= 0;
	if (e->path_len)
		count(v, &v->verdict->nr_paths);
	if (!snapshot_exists(e) || !x->found) {
		if (snapshot_exists(e) != x->found)
			differ(v, e->path,
			       x->found ? SNAPSHOT_DIFF_UNEXPECTED : SNAPSHOT_DIFF_MISSING, NULL,
			       NULL);
		return 0;
	}
	x->dev = l.st.st_dev;
	x->ino = l.st.st_ino;
	x->nlink = l.st.st_nlink;
	if (snapshot_type_of_mode(l.st.st_mode) != e->type) {
		differ(v, e->path, SNAPSHOT_DIFF_TYPE,
		       xstrdup(snapshot_type_names[snapshot_type_of_mode(l.st.st_mode)]),
		       xstrdup(snapshot_type_names[e->type]));
		return 0;
	}
	if (e->path_len) {
		compare_meta(&l);
		compare_target(&l);
		compare_xattrs(&l);
	}
	if (e->type == SNAPSHOT_FILE)
		r = compare_content(&l);
	if (!r && x->listed && v->alone)
		r = compare_listing(&l);
	return r;
}

/* Links. */

static bool has_links(const struct snapshot_entry *e)
{
	return snapshot_is_made(e) && e->type != SNAPSHOT_DIR && e->known & SNAPSHOT_HAS_ID &&
	       e->known & SNAPSHOT_HAS_NLINK && e->nlink > 1;
}

static void compare_links(struct verification *v)
{
	struct map recorded = { 0 }, found = { 0 };
	size_t i;

	for (i = 0; i < v->list.len; i++) {
		struct expected *x = &v->list.items[i], *other;
		struct id_key was = { x->e->dev, x->e->ino }, is = { x->dev, x->ino };
		void **slot;

		if (!x->found || x->e->type == SNAPSHOT_DIR)
			continue;
		if (has_links(x->e)) {
			slot = map_slot(&recorded, &was, sizeof(was));
			other = *slot;
			if (!other)
				*slot = x;
			else if (other->dev != x->dev || other->ino != x->ino)
				differ(v, x->e->path, SNAPSHOT_DIFF_LINK, NULL,
				       words("the same file as /%s", other->e->path));
		}
		if (x->nlink > 1 && x->e->known & SNAPSHOT_HAS_ID) {
			slot = map_slot(&found, &is, sizeof(is));
			other = *slot;
			if (!other)
				*slot = x;
			else if (!same_identity(other->e, x->e))
				differ(v, x->e->path, SNAPSHOT_DIFF_LINK,
				       words("the same file as /%s", other->e->path), NULL);
		}
	}
	map_release(&recorded);
	map_release(&found);
}

/* The whole. */

/* The recorder says in its options whether it kept what was written. */
static bool is_data_lost(struct trace *t)
{
	struct buf text = { 0 };
	const char *options = trace_meta(t, "recorder_options", &text);
	bool lost = options && (strstr(options, "data=hash") || strstr(options, "data=none"));

	buf_release(&text);
	return lost;
}

static int read_state(struct verification *v, struct snapshot_options *o, struct err *err)
{
	struct snapshot_state state;
	int r = snapshot_state_read(v->base.dir_fd, &state, err);

	if (r < 0)
		return r;
	v->all_mode_bits = !r || state.privileged;
	o->privileged_metadata = v->all_mode_bits;
	/* What another trace has put there, or was there before, says nothing about this one. */
	v->alone = !r || (state.exclusive && state.traces.len <= 1);
	snapshot_state_release(&state);
	return 0;
}

static int verify(struct verification *v, struct err *err)
{
	struct pool_work work = { .c = &v->base, .run = look_at, .shown = true };
	struct map initial_files = { 0 }, final_files = { 0 };
	int r;

	index_files(v->initial, &initial_files);
	index_files(v->final, &final_files);
	expect_final(v, &initial_files);
	expect_untouched(v, &final_files);
	map_release(&initial_files);
	map_release(&final_files);
	work.nr = v->list.len;
	progress_set_total(v->o->progress, work.nr);
	r = pool_run(&work, err);
	if (!r)
		compare_links(v);
	return r;
}

int snapshot_verify(const struct snapshot_source *source, const char *dir,
		    const struct snapshot_verify_options *options, struct snapshot_verdict *ret,
		    struct err *err)
{
	struct snapshot_options o = { .jobs = options->jobs,
				      .progress = options->progress,
				      .stop = options->stop };
	struct verification v = { .o = options, .verdict = ret };
	int r;

	*ret = (struct snapshot_verdict){ 0 };
	(void)pthread_mutex_init(&v.lock, NULL); /* cannot fail on Linux */
	v.base.o = &o;
	v.base.dir = dir;
	v.base.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = v.base.dir_fd < 0 ? err_set(err, -errno, "cannot open %s", dir) : 0;
	if (!r)
		r = read_state(&v, &o, err);
	if (!r)
		r = snapshot_load(SNAPSHOT_INITIAL, source, 1, SNAPSHOT_CONFLICT_FAIL, &v.initial,
				  err);
	if (!r)
		r = snapshot_load(SNAPSHOT_FINAL, source, 1, SNAPSHOT_CONFLICT_FAIL, &v.final, err);
	if (!r) {
		v.base.s = v.final;
		v.base.entries = snapshot_entries(v.final, &v.base.nr_entries);
		v.data_lost = is_data_lost(source->records);
		r = verify(&v, err);
	}
	if (ret->nr_items)
		qsort(ret->items, ret->nr_items, sizeof(*ret->items), compare_differences);
	attrs_close_fd(&v.base.dir_fd);
	snapshot_free(v.initial);
	snapshot_free(v.final);
	VEC_RELEASE(&v.list);
	(void)pthread_mutex_destroy(&v.lock); /* nobody holds it */
	return r;
}
