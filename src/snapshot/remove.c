/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/buf.h"
#include "snapshot/contain.h"
#include "snapshot/inside.h"

/*
 * A tree may be deeper than we can have descriptors: what is below this many
 * levels is moved to the trash, to be removed from there.
 */
#define DEPTH_MAX 64

static int fail(struct worker *w, int r, const char *name)
{
	return err_set(&w->err, r, "cannot remove %s (in %s)", name, w->c->dir);
}

static int move_to_trash(struct worker *w, int parent_fd, const char *name)
{
	char to[32];

	(void)snprintf(to, sizeof(to), "%u", atomic_fetch_add(&w->c->next_trash, 1));
	return renameat(parent_fd, name, w->c->trash_fd, to) ? fail(w, -errno, name) : 0;
}

static int remove_at(struct worker *w, int parent_fd, const char *name, unsigned int depth);

/* One pass over the names; 1 when there were some. */
static int remove_names(struct worker *w, DIR *d, unsigned int depth)
{
	struct dirent *e;
	bool some = false;
	int r = 0;

	rewinddir(d);
	while (!r && (errno = 0, e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		some = true;
		r = worker_check_stop(w);
		if (!r)
			r = remove_at(w, dirfd(d), e->d_name, depth);
	}
	if (!r && errno)
		r = fail(w, -errno, "the names of a directory");
	return r ? r : some;
}

static int remove_dir(struct worker *w, int parent_fd, const char *name, unsigned int depth)
{
	int fd, r;
	DIR *d;

	if (depth >= DEPTH_MAX)
		return move_to_trash(w, parent_fd, name);
	fd = contain_open_dir(parent_fd, name, w->c->o->cross_mounts);
	if (fd < 0)
		return fail(w, fd, name);
	/* Its owner may have taken the right to remove names from himself. */
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) && fchmod(fd, 0700)) {
		r = fail(w, -errno, name);
		(void)close(fd); /* nothing was written */
		return r;
	}
	d = fdopendir(fd);
	if (!d) {
		r = fail(w, -errno, name);
		(void)close(fd); /* likewise */
		return r;
	}
	/* Names that are removed while a directory is read may hide others. */
	do
		r = remove_names(w, d, depth + 1);
	while (r == 1);
	(void)closedir(d); /* only read from */
	if (!r && unlinkat(parent_fd, name, AT_REMOVEDIR))
		r = fail(w, -errno, name);
	return r;
}

static int remove_at(struct worker *w, int parent_fd, const char *name, unsigned int depth)
{
	struct stat st;
	int r = contain_stat(parent_fd, name, w->c->o->cross_mounts, &st);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return fail(w, r, name);
	if (S_ISDIR(st.st_mode))
		r = remove_dir(w, parent_fd, name, depth);
	else if (unlinkat(parent_fd, name, 0))
		r = fail(w, -errno, name);
	return r;
}

int remove_name(struct worker *w, int parent_fd, const char *name)
{
	int r = remove_at(w, parent_fd, name, 0);

	w->counts.nr_removed += !r;
	return r;
}

int remove_trash(struct worker *w)
{
	int fd = fcntl(w->c->trash_fd, F_DUPFD_CLOEXEC, 0), r;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		r = fail(w, -errno, "the trash");
		if (fd >= 0)
			(void)close(fd); /* nothing was written */
		return r;
	}
	do
		r = remove_names(w, d, 0);
	while (r == 1);
	(void)closedir(d); /* only read from */
	return r;
}

/* Names at the top that are no part of any tree. */
static bool is_kept(const struct snapshot_entry *dir, const char *name)
{
	return !dir->path_len && (!strcmp(name, SNAPSHOT_RESERVED) || !strcmp(name, "lost+found"));
}

/* What shall be there is known by its whole path. */
static bool is_known(const struct creation *c, const struct snapshot_entry *dir, const char *name)
{
	char path[SNAPSHOT_PATH_MAX + 1 + SNAPSHOT_NAME_MAX + 1];
	int len = snprintf(path, sizeof(path), "%s%s%s", dir->path, dir->path_len ? "/" : "", name);
	const struct snapshot_entry *e;

	if (len < 0 || (size_t)len >= sizeof(path))
		return false;
	e = snapshot_find(c->s, path, (size_t)len);
	return e && snapshot_is_made(e);
}

int remove_unknown(struct worker *w, uint32_t nr)
{
	const struct snapshot_entry *dir = &w->c->entries[nr];
	int fd, r = 0;
	struct dirent *e;
	DIR *d;

	fd = contain_open(w->c->dir_fd, dir->path, O_RDONLY | O_DIRECTORY | O_NOATIME,
			  w->c->o->cross_mounts);
	if (fd == -EPERM)
		fd = contain_open(w->c->dir_fd, dir->path, O_RDONLY | O_DIRECTORY,
				  w->c->o->cross_mounts);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		r = worker_fail(w, dir, fd < 0 ? fd : -errno, "read");
		if (fd >= 0)
			(void)close(fd); /* nothing was written */
		return r;
	}
	while (!r && (errno = 0, e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    is_kept(dir, e->d_name) || is_known(w->c, dir, e->d_name))
			continue;
		r = worker_check_stop(w);
		if (!r && w->c->exclusive)
			r = remove_name(w, fd, e->d_name);
		else
			w->counts.nr_foreign++;
	}
	if (!r && errno)
		r = worker_fail(w, dir, -errno, "read");
	(void)closedir(d); /* only read from */
	return r;
}

int remove_missing(struct worker *w, uint32_t nr)
{
	const struct snapshot_entry *e = &w->c->entries[nr];
	int fd = worker_parent(w, e), r;
	struct stat st;

	if (fd < 0)
		return fd;
	r = contain_stat(fd, entry_name(e), w->c->o->cross_mounts, &st);
	if (r < 0 && r != -EXDEV)
		return 0; /* as it shall be; or whoever wants it will find out */
	return remove_name(w, fd, entry_name(e));
}
