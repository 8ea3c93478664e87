/* SPDX-License-Identifier: MIT */
/*
 * Makes or repairs one entry. What is there already is one of:
 *
 *   - as it was left: the same inode, not changed since. Only its time of access
 *     may be another.
 *   - of the right type: compared, and what differs is set right.
 *   - something else, or a file that has names which are not of the tree: removed
 *     and made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/banned.h"
#include "snapshot/contain.h"
#include "snapshot/inside.h"

/* Devices that do no harm. */
static bool is_harmless(const struct snapshot_entry *e)
{
	unsigned int minor_nr = minor(e->rdev);

	if (e->type != SNAPSHOT_CHARDEV || !(e->known & SNAPSHOT_HAS_RDEV))
		return false;
	if (major(e->rdev) == 5)
		return minor_nr == 0; /* tty */
	/* null, zero, full, random, urandom */
	return major(e->rdev) == 1 &&
	       (minor_nr == 3 || minor_nr == 5 || minor_nr == 7 || minor_nr == 8 || minor_nr == 9);
}

/* What is made of the entry. */
static mode_t type_to_make(const struct worker *w, const struct snapshot_entry *e)
{
	switch ((enum snapshot_type)e->type) {
	case SNAPSHOT_DIR:
		return S_IFDIR;
	case SNAPSHOT_SYMLINK:
		return S_IFLNK;
	case SNAPSHOT_FIFO:
		return S_IFIFO;
	case SNAPSHOT_SOCKET:
		return S_IFSOCK;
	case SNAPSHOT_CHARDEV:
		return is_harmless(e) && !atomic_load(&w->c->no_mknod) ? S_IFCHR : S_IFREG;
	default:
		return S_IFREG; /* also in place of a device */
	}
}

size_t entry_others(const struct creation *c, uint32_t first, size_t *ret_end)
{
	size_t low = 0, high = c->nr_others, end;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->entries[c->others[mid]].first_link < first)
			low = mid + 1;
		else
			high = mid;
	}
	for (end = low; end < c->nr_others && c->entries[c->others[end]].first_link == first;)
		end++;
	*ret_end = end;
	return low;
}

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/*
 * Whether the file has exactly those names that the tree gives it, as far as
 * these are there: else somebody else may have it too.
 */
static bool has_foreign_names(struct worker *w, const struct snapshot_entry *e,
			      const struct stat *st)
{
	const struct creation *c = w->c;
	size_t at, end;
	nlink_t known = 1;
	struct stat other;

	at = entry_others(c, (uint32_t)(e - c->entries), &end);
	for (; at < end && known < st->st_nlink; at++) {
		const struct snapshot_entry *o = &c->entries[c->others[at]];
		AUTO_CLOSE int fd = contain_open(c->dir_fd, o->path, O_PATH, c->o->cross_mounts);

		known += fd >= 0 && !fstat(fd, &other) && is_same_inode(&other, st);
	}
	return known != st->st_nlink;
}

static bool is_as_left(const struct creation *c, uint32_t nr, const struct stat *st)
{
	const struct snapshot_stamp *old = c->old ? &c->old[nr] : NULL;

	return old && old->ctime_ns && st->st_dev == c->dev && old->ino == st->st_ino &&
	       old->ctime_ns == snapshot_ctime_ns(st);
}

/* Directories. */

int entry_make_dir(struct worker *w, uint32_t nr)
{
	struct creation *c = w->c;
	const struct snapshot_entry *e = &c->entries[nr];
	int parent = worker_parent(w, e), r;
	struct stat st;

	if (parent < 0)
		return parent;
	r = c->is_new[e->parent] ? -ENOENT
				 : contain_stat(parent, entry_name(e), c->o->cross_mounts, &st);
	if (!r && !S_ISDIR(st.st_mode)) {
		r = remove_name(w, parent, entry_name(e));
		if (!r)
			r = -ENOENT;
	}
	if (r == -ENOENT) {
		if (mkdirat(parent, entry_name(e), 0700))
			return worker_fail(w, e, -errno, "make the directory");
		c->is_new[nr] = true;
		w->counts.nr_made++;
		return 0;
	}
	/* Who is not root must be able to work in it; it gets its own mode at the end. */
	if (!r && (st.st_mode & 0700) != 0700 && c->uid)
		r = contain_chmod(parent, entry_name(e), (st.st_mode & 07777) | 0700,
				  c->o->cross_mounts);
	return r < 0 ? worker_fail(w, e, r, "use the directory") : 0;
}

static int keep(struct worker *w, const struct meta_target *t)
{
	const struct snapshot_entry *e = t->e;

	w->counts.nr_same++;
	w->counts.nr_trusted++;
	/* Being read changes nothing but that. */
	if (!(e->known & SNAPSHOT_HAS_ATIME) || meta_time_ns(&t->st.st_atim) == e->atime_ns)
		return 0;
	return meta_apply_times(w, t);
}

int entry_finish_dir(struct worker *w, uint32_t nr)
{
	struct creation *c = w->c;
	const struct snapshot_entry *e = &c->entries[nr];
	struct meta_target t = { .e = e, .type = S_IFDIR, .fd = -1 };
	bool changed = false;
	int r;

	if (!nr)
		return 0; /* DIR is the user's */
	t.parent_fd = worker_parent(w, e);
	if (t.parent_fd < 0)
		return t.parent_fd;
	t.fd = contain_open_dir(t.parent_fd, entry_name(e), c->o->cross_mounts);
	if (t.fd < 0)
		return worker_fail(w, e, t.fd, "open");
	r = fstat(t.fd, &t.st) ? worker_fail(w, e, -errno, "stat") : 0;
	if (!r && !c->is_new[nr] && is_as_left(c, nr, &t.st)) {
		r = keep(w, &t);
	} else if (!r) {
		r = meta_apply(w, &t, c->is_new[nr], &changed);
		if (!c->is_new[nr]) {
			w->counts.nr_repaired += changed;
			w->counts.nr_same += !changed;
		}
	}
	(void)close(t.fd); /* nothing was written */
	return r ? r : entry_stamp(w, nr);
}

/* Others. */

static int make_file(struct worker *w, struct meta_target *t)
{
	const struct snapshot_entry *e = t->e;
	bool changed;

	t->fd = openat(t->parent_fd, entry_name(e),
		       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (t->fd < 0)
		return worker_fail(w, e, -errno, "make");
	return content_write(w, e, t->fd, true, &changed);
}

static int make_new(struct worker *w, struct meta_target *t)
{
	const struct snapshot_entry *e = t->e;
	const char *name = entry_name(e);
	int r = 0;

	switch (t->type) {
	case S_IFLNK:
		r = symlinkat(e->target, t->parent_fd, name) ? -errno : 0;
		break;
	case S_IFIFO:
	case S_IFSOCK:
		r = mknodat(t->parent_fd, name, t->type | 0600, 0) ? -errno : 0;
		break;
	case S_IFCHR:
		r = mknodat(t->parent_fd, name, S_IFCHR | 0600, (dev_t)e->rdev) ? -errno : 0;
		if (r == -EPERM) {
			atomic_store(&w->c->no_mknod, true);
			t->type = S_IFREG;
			return make_file(w, t);
		}
		break;
	default:
		return make_file(w, t);
	}
	return r < 0 ? worker_fail(w, e, r, "make") : 0;
}

/* -ESTALE: it cannot be repaired, but it can be replaced. */
static int repair_file(struct worker *w, struct meta_target *t, bool *ret_changed)
{
	const struct snapshot_entry *e = t->e;
	int flags = O_RDWR | O_NONBLOCK | O_NOCTTY, r;
	bool cross = w->c->o->cross_mounts;
	struct stat st;

	/* Being compared is no access. */
	t->fd = contain_open(t->parent_fd, entry_name(e), flags | O_NOATIME, cross);
	if (t->fd == -EPERM)
		t->fd = contain_open(t->parent_fd, entry_name(e), flags, cross);
	if (t->fd == -EACCES) {
		r = contain_chmod(t->parent_fd, entry_name(e), 0600, cross);
		if (r < 0)
			return worker_fail(w, e, r, "get access to");
		*ret_changed = true;
		t->fd = contain_open(t->parent_fd, entry_name(e), flags, cross);
	}
	if (t->fd < 0)
		return t->fd == -ETXTBSY ? -ESTALE : worker_fail(w, e, t->fd, "open");
	if (fstat(t->fd, &st) || !is_same_inode(&st, &t->st) || !S_ISREG(st.st_mode))
		return -ESTALE; /* somebody is at work here */
	return content_write(w, e, t->fd, false, ret_changed);
}

static bool is_right_symlink(const struct meta_target *t)
{
	char text[SNAPSHOT_PATH_MAX + 1];
	ssize_t n = readlinkat(t->parent_fd, entry_name(t->e), text, sizeof(text));

	return n == (ssize_t)t->e->target_len && !memcmp(text, t->e->target, (size_t)n);
}

/* Whether what is there can become what it shall be. */
static bool is_repairable(struct worker *w, const struct meta_target *t)
{
	if ((t->st.st_mode & S_IFMT) != t->type || has_foreign_names(w, t->e, &t->st))
		return false;
	if (t->type == S_IFLNK)
		return is_right_symlink(t);
	if (t->type == S_IFCHR)
		return t->st.st_rdev == (dev_t)t->e->rdev;
	return true;
}

static int replace(struct worker *w, struct meta_target *t, bool exists)
{
	bool changed;
	int r = 0;

	if (t->fd >= 0)
		(void)close(t->fd); /* it is going to be removed */
	t->fd = -1;
	if (exists) {
		r = remove_name(w, t->parent_fd, entry_name(t->e));
		w->counts.nr_removed -= !r; /* it comes again */
	}
	w->c->is_new[t->e - w->c->entries] = true;
	if (!r)
		r = make_new(w, t);
	if (!r && contain_stat(t->parent_fd, entry_name(t->e), w->c->o->cross_mounts, &t->st) < 0)
		r = worker_fail(w, t->e, -ENOENT, "find");
	if (!r)
		r = meta_apply(w, t, true, &changed);
	if (!r) {
		w->counts.nr_made += !exists;
		w->counts.nr_repaired += exists;
	}
	return r;
}

static int repair(struct worker *w, struct meta_target *t)
{
	bool changed = false;
	int r = 0;

	if (t->type == S_IFREG)
		r = repair_file(w, t, &changed);
	if (r == -ESTALE)
		return replace(w, t, true);
	/* Comparing has read it: its time of access may be another by now. */
	if (!r && t->fd >= 0)
		r = fstat(t->fd, &t->st) ? worker_fail(w, t->e, -errno, "stat") : 0;
	if (!r)
		r = meta_apply(w, t, changed, &changed);
	if (!r) {
		w->counts.nr_repaired += changed;
		w->counts.nr_same += !changed;
	}
	return r;
}

/* How it will be known again. */
int entry_stamp(struct worker *w, uint32_t nr)
{
	const struct snapshot_entry *e = &w->c->entries[nr];
	int parent = worker_parent(w, e), r;
	struct stat st;

	if (parent < 0)
		return parent;
	r = contain_stat(parent, entry_name(e), w->c->o->cross_mounts, &st);
	if (r < 0)
		return worker_fail(w, e, r, "stat");
	w->c->stamps[nr] =
		(struct snapshot_stamp){ .ino = st.st_ino, .ctime_ns = snapshot_ctime_ns(&st) };
	return 0;
}

int entry_make(struct worker *w, uint32_t nr)
{
	struct creation *c = w->c;
	const struct snapshot_entry *e = &c->entries[nr];
	struct meta_target t = { .e = e, .fd = -1, .type = type_to_make(w, e) };
	int r;

	t.parent_fd = worker_parent(w, e);
	if (t.parent_fd < 0)
		return t.parent_fd;
	r = c->is_new[e->parent]
		    ? -ENOENT
		    : contain_stat(t.parent_fd, entry_name(e), c->o->cross_mounts, &t.st);
	if (r < 0 && r != -ENOENT)
		return worker_fail(w, e, r, "stat");
	if (r == -ENOENT)
		r = replace(w, &t, false);
	else if (is_as_left(c, nr, &t.st))
		r = keep(w, &t);
	else if (is_repairable(w, &t))
		r = repair(w, &t);
	else
		r = replace(w, &t, true);
	if (snapshot_is_device(e) && t.type == S_IFREG)
		w->counts.nr_stand_ins++;
	if (t.fd >= 0 && close(t.fd) && !r)
		r = worker_fail(w, e, -errno, "close");
	return r;
}

int entry_make_link(struct worker *w, uint32_t nr)
{
	struct creation *c = w->c;
	const struct snapshot_entry *e = &c->entries[nr], *first = &c->entries[e->first_link];
	int parent = worker_parent(w, e), r;
	AUTO_CLOSE int dir = -1;
	struct stat st, first_st;

	if (parent < 0)
		return parent;
	dir = contain_open(c->dir_fd, c->entries[first->parent].path, O_PATH | O_DIRECTORY,
			   c->o->cross_mounts);
	r = dir < 0 ? dir : contain_stat(dir, entry_name(first), c->o->cross_mounts, &first_st);
	if (r < 0)
		return worker_fail(w, first, r, "find");
	r = contain_stat(parent, entry_name(e), c->o->cross_mounts, &st);
	if (!r && is_same_inode(&st, &first_st)) {
		w->counts.nr_same++;
		return 0;
	}
	if (!r) {
		w->counts.nr_repaired++;
		r = remove_name(w, parent, entry_name(e));
		w->counts.nr_removed -= !r; /* it comes again */
		if (r < 0)
			return r;
	} else if (r == -ENOENT) {
		w->counts.nr_made++;
	} else {
		return worker_fail(w, e, r, "stat");
	}
	c->is_new[nr] = true;
	if (linkat(dir, entry_name(first), parent, entry_name(e), 0))
		return worker_fail(w, e, -errno, "make the link");
	return 0;
}
