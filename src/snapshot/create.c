/* SPDX-License-Identifier: MIT */
/*
 * The steps of a creation, each over all entries it is for:
 *
 *   1. directories, parents first, with all rights for their owner
 *   2. names that do not belong there are removed
 *   3. everything else, by several threads, in the order in which the trace
 *      holds the contents, so that none of its blocks is unpacked twice
 *   4. further names of files
 *   5. directories, children first: mode, times
 *
 * The state says "not complete" from before the first to after the last.
 */
#include "snapshot/create.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/strings.h"
#include "snapshot/contain.h"
#include "snapshot/inside.h"

/* DIR. */

static int open_dir(const char *dir, int *ret_fd, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	struct stat st, root;

	if (mkdir(dir, 0755) && errno != EEXIST)
		return err_set(err, -errno, "cannot make %s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || stat("/", &root))
		return err_set(err, -errno, "cannot open %s", dir);
	if (st.st_dev == root.st_dev && st.st_ino == root.st_ino)
		return err_set(err, -EINVAL, "%s is the root of this machine", dir);
	*ret_fd = fd_take(&fd);
	return 0;
}

/* 1; 0 when something is in it that a new file system does not have. */
static int is_empty(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 1;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		r = -errno;
		if (fd >= 0)
			(void)close(fd); /* nothing was written */
		return r;
	}
	while (r == 1 && (errno = 0, e = readdir(d))) {
		/* A state that is not there: killed before it was written. */
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    strcmp(e->d_name, "lost+found") != 0 &&
		    strcmp(e->d_name, SNAPSHOT_RESERVED) != 0)
			r = 0;
	}
	if (r == 1 && errno)
		r = -errno;
	(void)closedir(d); /* only read from */
	return r;
}

/* Whether all in it may be taken for ours. */
static int claim(struct creation *c, const struct snapshot_state *state, bool was_ours,
		 struct err *err)
{
	int r;

	if (was_ours) {
		c->exclusive = state->exclusive;
		return 0;
	}
	if (c->o->only_repair)
		return err_set(err, -EINVAL, "%s holds no former init to be repaired", c->dir);
	r = is_empty(c->dir_fd);
	if (r < 0)
		return err_set(err, r, "cannot read %s", c->dir);
	if (!r && !c->o->force)
		return err_set(
			err, -EINVAL,
			"%s is neither empty nor made by a former init: it takes 'init --force' to make the tree there",
			c->dir);
	c->exclusive = r;
	return 0;
}

static int open_trash(struct creation *c, struct err *err)
{
	if (mkdirat(c->state_fd, "trash", 0700) && errno != EEXIST)
		return err_set(err, -errno, "cannot make %s/" SNAPSHOT_RESERVED "/trash", c->dir);
	c->trash_fd =
		contain_open(c->state_fd, "trash", O_RDONLY | O_DIRECTORY, c->o->cross_mounts);
	if (c->trash_fd < 0)
		return err_set(err, c->trash_fd, "cannot open %s/" SNAPSHOT_RESERVED "/trash",
			       c->dir);
	return 0;
}

/* What is to be done. */

struct lists {
	uint32_t *dirs, *old_dirs, *files, *missing; /* without the root */
	size_t nr_dirs, nr_files, nr_missing;
};

static void lists_release(struct lists *l)
{
	free(l->dirs);
	free(l->old_dirs);
	free(l->files);
	free(l->missing);
}

struct placed {
	uint64_t place;
	uint32_t nr;
};

static int compare_places(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return (x->nr > y->nr) - (x->nr < y->nr);
}

static void sort_by_place(struct creation *c, struct lists *l)
{
	struct placed *placed = xcalloc(l->nr_files + 1, sizeof(*placed));
	size_t i;

	for (i = 0; i < l->nr_files; i++) {
		const struct data *d = c->entries[l->files[i]].content;

		placed[i].nr = l->files[i];
		if (d && d->refs && d->kept_bytes)
			placed[i].place = d->refs[0].blob;
	}
	qsort(placed, l->nr_files, sizeof(*placed), compare_places);
	for (i = 0; i < l->nr_files; i++)
		l->files[i] = placed[i].nr;
	free(placed);
}

static int compare_links(const void *a, const void *b, void *arg)
{
	const struct creation *c = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t first_x = c->entries[x].first_link, first_y = c->entries[y].first_link;

	if (first_x != first_y)
		return first_x < first_y ? -1 : 1;
	return (x > y) - (x < y);
}

static void make_lists(struct creation *c, struct lists *l)
{
	size_t i, nr = c->nr_entries;

	l->dirs = xcalloc(nr, sizeof(*l->dirs));
	l->old_dirs = xcalloc(nr, sizeof(*l->old_dirs));
	l->files = xcalloc(nr, sizeof(*l->files));
	l->missing = xcalloc(nr, sizeof(*l->missing));
	c->others = xcalloc(nr, sizeof(*c->others));
	for (i = 1; i < nr; i++) {
		const struct snapshot_entry *e = &c->entries[i];

		if (!snapshot_is_made(e)) {
			if (!snapshot_exists(e))
				l->missing[l->nr_missing++] = (uint32_t)i;
		} else if (e->type == SNAPSHOT_DIR) {
			l->dirs[l->nr_dirs++] = (uint32_t)i;
		} else if (e->first_link != i) {
			c->others[c->nr_others++] = (uint32_t)i;
		} else {
			l->files[l->nr_files++] = (uint32_t)i;
		}
	}
	sort_by_place(c, l);
	qsort_r(c->others, c->nr_others, sizeof(*c->others), compare_links, c);
}

/* Space. */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static bool is_file(const struct creation *c, size_t nr)
{
	const struct snapshot_entry *e = &c->entries[nr];

	return snapshot_is_made(e) && e->type == SNAPSHOT_FILE && e->first_link == nr;
}

/* The largest limit with which what must be made up fits into the room. */
static uint64_t limit_for(const struct creation *c, uint64_t room, uint64_t limit)
{
	uint64_t *sizes = xcalloc(c->nr_entries, sizeof(*sizes)), sum = 0;
	size_t i, nr = 0;

	for (i = 0; i < c->nr_entries; i++) {
		if (is_file(c, i) && !content_has_holes(&c->entries[i], limit))
			sizes[nr++] =
				content_size(&c->entries[i]) - content_held_bytes(&c->entries[i]);
	}
	qsort(sizes, nr, sizeof(*sizes), compare_u64);
	for (i = 0; i < nr; i++) {
		sum = add_capped(sum, sizes[i]);
		if (sum > room) {
			/* Of equals none is made, so that it is clear which. */
			limit = sizes[i] ? sizes[i] - 1 : 0;
			break;
		}
	}
	free(sizes);
	return limit;
}

/* Nothing is known of what a former init of something else takes, and will give back. */
static int plan_space(struct creation *c, bool was_ours, struct err *err)
{
	uint64_t held = 0, room, reserve;
	struct statvfs vfs;
	struct buf words = { 0 };
	size_t i;
	int r = 0;

	for (i = 0; i < c->nr_entries; i++) {
		if (is_file(c, i))
			held = add_capped(held, content_held_bytes(&c->entries[i]));
	}
	if (fstatvfs(c->dir_fd, &vfs))
		return err_set(err, -errno, "cannot ask for the space of %s", c->dir);
	if (!vfs.f_blocks) /* it does not tell: ramfs, for one */
		return 0;
	if (vfs.f_frsize && (uint64_t)vfs.f_bavail > UINT64_MAX / vfs.f_frsize)
		return 0;
	room = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	if (held > room && !was_ours) {
		buf_puts(&words, "the contents that the trace holds need ");
		strings_put_bytes(&words, held);
		buf_printf(&words, ", and %s has room for ", c->dir);
		strings_put_bytes(&words, room);
		r = err_set(err, -ENOSPC, "%s", buf_str(&words));
		buf_release(&words);
		return r;
	}
	/* The tree needs more than what files hold, and the run some too. */
	room = room > held ? room - held : 0;
	reserve = room / 8;
	c->sparse_over_bytes = limit_for(c, room - reserve, c->sparse_over_bytes);
	return 0;
}

static void count_all(struct creation *c, struct snapshot_result *ret)
{
	size_t i;

	for (i = 1; i < c->nr_entries; i++) {
		const struct snapshot_entry *e = &c->entries[i];
		uint64_t size = content_size(e), made_up;

		ret->nr_entries += snapshot_is_made(e);
		if (!snapshot_is_made(e) || e->type != SNAPSHOT_FILE)
			continue;
		ret->nr_files++;
		if (e->first_link != i)
			continue;
		made_up = size - content_held_bytes(e);
		ret->file_bytes = add_capped(ret->file_bytes, size);
		if (!made_up || e->flags & SNAPSHOT_SPECIAL)
			continue;
		if (content_has_holes(e, c->sparse_over_bytes)) {
			ret->nr_sparse++;
			ret->sparse_bytes = add_capped(ret->sparse_bytes, made_up);
		} else {
			ret->nr_filler++;
			ret->filler_bytes = add_capped(ret->filler_bytes, made_up);
		}
	}
	ret->sparse_over_bytes = c->sparse_over_bytes;
	ret->nr_left_out = snapshot_nr_left_out(c->s);
}

/* Steps. */

static int run_steps(struct creation *c, struct lists *l, struct snapshot_result *counts,
		     struct err *err)
{
	struct pool_work dirs = { .c = c, .order = l->dirs, .nr = l->nr_dirs, .counts = counts };
	struct pool_work files = { .c = c, .order = l->files, .nr = l->nr_files, .counts = counts };
	struct pool_work links = {
		.c = c, .order = c->others, .nr = c->nr_others, .counts = counts
	};
	struct pool_work missing = { .c = c, .order = l->missing, .nr = l->nr_missing };
	struct pool_work unknown = { .c = c, .counts = counts };
	uint32_t swap;
	size_t i, j;
	int r;

	missing.counts = counts;
	progress_set_total(c->o->progress, l->nr_dirs + l->nr_files + c->nr_others);
	dirs.run = entry_make_dir;
	dirs.shown = true;
	r = pool_run_in_order(&dirs, err);
	missing.run = remove_missing;
	if (!r && !c->exclusive)
		r = pool_run(&missing, err);
	/* In what was made just now nothing else can be. The root is number 0. */
	for (i = 0, unknown.nr = 1; i < l->nr_dirs && !r; i++) {
		if (!c->is_new[l->dirs[i]])
			l->old_dirs[unknown.nr++] = l->dirs[i];
	}
	unknown.run = remove_unknown;
	unknown.order = l->old_dirs;
	if (!r)
		r = pool_run(&unknown, err);
	files.run = entry_make;
	files.shown = true;
	if (!r)
		r = pool_run(&files, err);
	links.run = entry_make_link;
	links.shown = true;
	if (!r)
		r = pool_run(&links, err);
	/* While everything can still be reached by its owner. */
	files.run = entry_stamp;
	files.shown = false;
	if (!r)
		r = pool_run(&files, err);
	for (i = 0, j = l->nr_dirs; i + 1 < j; i++) {
		swap = l->dirs[i];
		l->dirs[i] = l->dirs[--j];
		l->dirs[j] = swap;
	}
	dirs.run = entry_finish_dir;
	dirs.shown = false;
	return r ? r : pool_run_in_order(&dirs, err);
}

static int empty_trash(struct creation *c, struct err *err)
{
	struct worker w;
	int r;

	worker_init(&w, c);
	r = remove_trash(&w);
	if (r < 0)
		*err = w.err;
	worker_release(&w);
	if (!r && unlinkat(c->state_fd, "trash", AT_REMOVEDIR))
		r = err_set(err, -errno, "cannot remove %s/" SNAPSHOT_RESERVED "/trash", c->dir);
	return r;
}

/* The state. */

static void name_traces(const struct snapshot *s, struct snapshot_state *state)
{
	size_t i;

	for (i = 0; i < snapshot_nr_sources(s); i++) {
		const char *path = snapshot_source_path(s, i);
		char *absolute = realpath(path, NULL);

		VEC_PUSH(&state->traces, absolute ? absolute : xstrdup(path));
	}
}

/* Notes of the last time that hold for what is to be made now. False: it was something else. */
static bool take_old(struct creation *c, const struct snapshot_state *was,
		     struct snapshot_state *state)
{
	bool same = hash_equal(was->tree, state->tree) && was->nr_entries == state->nr_entries &&
		    was->privileged == state->privileged;

	if (!same)
		return false;
	if (!c->o->sparse_over_bytes)
		c->sparse_over_bytes = was->sparse_over_bytes;
	if (c->o->whole || c->sparse_over_bytes != was->sparse_over_bytes)
		return true;
	c->old = snapshot_stamps_read(c->state_fd, was);
	if (c->old)
		state->stamps = was->stamps;
	return true;
}

static int finish(struct creation *c, struct snapshot_state *state, struct snapshot_result *counts,
		  struct err *err)
{
	int r = empty_trash(c, err);

	if (r < 0)
		return r;
	/* What a run pays for shall be its own writes, not ours. */
	if (counts->nr_made + counts->nr_repaired + counts->nr_removed && syncfs(c->dir_fd))
		return err_set(err, -errno, "cannot write all of %s to its storage", c->dir);
	r = snapshot_stamps_write(c->state_fd, state, c->stamps, err);
	if (r < 0)
		return err_wrap(err, r, "%s", c->dir);
	state->complete = true;
	r = snapshot_state_write(c->state_fd, state, err);
	if (r < 0)
		return err_wrap(err, r, "%s", c->dir);
	return cache_prepare(c, counts, err);
}

static int create(struct creation *c, struct snapshot_result *ret, struct err *err)
{
	struct snapshot_state was = { 0 }, state = { 0 };
	struct lists lists = { 0 };
	int r = snapshot_state_read(c->dir_fd, &was, err);

	if (r < 0)
		return err_wrap(err, r, "%s", c->dir);
	ret->was_ours = r;
	r = claim(c, &was, ret->was_ours, err);
	if (!r) {
		r = snapshot_state_open(c->dir_fd, true, !c->o->locked, &c->state_fd, err);
		if (r < 0)
			(void)err_wrap(err, r, "%s", c->dir);
	}
	if (r < 0)
		goto out;
	state.exclusive = c->exclusive;
	state.privileged = c->o->privileged_metadata;
	state.tree = snapshot_identity(c->s);
	state.nr_entries = c->nr_entries;
	name_traces(c->s, &state);
	if (!take_old(c, &was, &state))
		r = plan_space(c, ret->was_ours, err);
	state.sparse_over_bytes = c->sparse_over_bytes;
	count_all(c, ret);
	make_lists(c, &lists);
	if (!r) {
		r = snapshot_state_write(c->state_fd, &state, err);
		if (r < 0)
			(void)err_wrap(err, r, "%s", c->dir);
	}
	if (!r)
		r = open_trash(c, err);
	if (!r)
		r = run_steps(c, &lists, ret, err);
	if (!r)
		r = finish(c, &state, ret, err);
out:
	lists_release(&lists);
	snapshot_state_release(&was);
	snapshot_state_release(&state);
	return r;
}

int snapshot_create(struct snapshot *s, const char *dir, const struct snapshot_options *options,
		    struct snapshot_result *ret, struct err *err)
{
	struct creation c = { .s = s, .o = options, .dir = dir };
	uint64_t start_ns = clock_monotonic_ns();
	sigset_t too_large, old;
	struct stat st;
	int r;

	*ret = (struct snapshot_result){ 0 };
	c.dir_fd = c.state_fd = c.trash_fd = -1;
	c.entries = snapshot_entries(s, &c.nr_entries);
	c.uid = geteuid();
	c.sparse_over_bytes = options->sparse_over_bytes ? options->sparse_over_bytes
							 : SNAPSHOT_SPARSE_OVER_DEFAULT;
	c.is_new = xcalloc(c.nr_entries, sizeof(*c.is_new));
	c.stamps = xcalloc(c.nr_entries, sizeof(*c.stamps));
	/* A file beyond a limit shall be an error, not the end of us. */
	(void)sigemptyset(&too_large);
	(void)sigaddset(&too_large, SIGXFSZ);
	(void)pthread_sigmask(SIG_BLOCK, &too_large, &old); /* with these words it cannot fail */
	r = open_dir(dir, &c.dir_fd, err);
	if (!r && !options->cross_mounts)
		r = contain_check_mounts(c.dir_fd, err);
	if (!r && fstat(c.dir_fd, &st))
		r = err_set(err, -errno, "cannot stat %s", dir);
	if (!r) {
		c.dev = st.st_dev;
		r = create(&c, ret, err);
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* as above */
	attrs_close_fd(&c.trash_fd);
	attrs_close_fd(&c.state_fd);
	attrs_close_fd(&c.dir_fd);
	free(c.is_new);
	free(c.stamps);
	free((void *)c.old);
	free(c.others);
	ret->elapsed_ns = clock_sub_ns(clock_monotonic_ns(), start_ns);
	return r;
}
