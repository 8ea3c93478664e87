/* SPDX-License-Identifier: MIT */
/*
 * Owner, mode, times, attributes. What needs rights, or gives some, is applied
 * only on request: owners, set-id bits, capabilities. The order matters: a change
 * of owner takes set-id bits away, an attribute needs a file that may be written,
 * and everything changes times.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/mem.h"
#include "base/privileged.h"
#include "snapshot/contain.h"
#include "snapshot/inside.h"

/* As the kernel has them. */
#define XATTR_LIST_MAX_BYTES 65536
#define XATTR_VALUE_MAX_BYTES 65536

static bool starts_with(const char *s, const char *start)
{
	return !strncmp(s, start, strlen(start));
}

bool meta_is_our_xattr(const char *name, bool privileged)
{
	if (starts_with(name, "user.") || starts_with(name, "system.posix_acl_"))
		return true;
	/* Labels and overlays belong to the machine. */
	return privileged &&
	       (!strcmp(name, "security.capability") ||
		(starts_with(name, "trusted.") && !starts_with(name, "trusted.overlay.")));
}

mode_t meta_mode(const struct snapshot_entry *e, bool privileged)
{
	mode_t mode = e->type == SNAPSHOT_DIR ? 0755 : 0644;

	if (e->known & SNAPSHOT_HAS_MODE)
		mode = (mode_t)e->mode;
	return privileged ? mode : mode & ~PRIVILEGED_MODE_BITS;
}

int64_t meta_time_ns(const struct timespec *ts)
{
	/* As the recorder has it: beyond 292 years either way it means nothing. */
	return (int64_t)((uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec);
}

bool meta_times_differ(const struct snapshot_entry *e, const struct stat *st)
{
	return (e->known & SNAPSHOT_HAS_MTIME && meta_time_ns(&st->st_mtim) != e->mtime_ns) ||
	       (e->known & SNAPSHOT_HAS_ATIME && meta_time_ns(&st->st_atim) != e->atime_ns);
}

static struct timespec timespec_of(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	if (ts.tv_nsec < 0) {
		ts.tv_nsec += 1000000000;
		ts.tv_sec--;
	}
	return ts;
}

int meta_apply_times(struct worker *w, const struct meta_target *t)
{
	const struct snapshot_entry *e = t->e;
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };

	if (e->known & SNAPSHOT_HAS_ATIME)
		ts[0] = timespec_of(e->atime_ns);
	if (e->known & SNAPSHOT_HAS_MTIME)
		ts[1] = timespec_of(e->mtime_ns);
	if (utimensat(t->parent_fd, entry_name(e), ts, AT_SYMLINK_NOFOLLOW))
		return worker_fail(w, e, -errno, "set the times of");
	return 0;
}

static int apply_owner(struct worker *w, const struct meta_target *t, bool *changed)
{
	const struct snapshot_entry *e = t->e;
	uid_t uid = e->known & SNAPSHOT_HAS_UID ? e->uid : t->st.st_uid;
	gid_t gid = e->known & SNAPSHOT_HAS_GID ? e->gid : t->st.st_gid;

	if (uid == t->st.st_uid && gid == t->st.st_gid)
		return 0;
	if (w->c->o->privileged_metadata &&
	    !fchownat(t->parent_fd, entry_name(e), uid, gid, AT_SYMLINK_NOFOLLOW)) {
		*changed = true;
		return 0;
	}
	/* EINVAL: a user whom this namespace does not know. */
	if (w->c->o->privileged_metadata && errno != EPERM && errno != EINVAL && errno != ENOTSUP)
		return worker_fail(w, e, -errno, "set the owner of");
	w->counts.nr_owners++;
	return 0;
}

static int apply_mode(struct worker *w, const struct meta_target *t, bool *changed)
{
	bool privileged = w->c->o->privileged_metadata;
	mode_t mode = meta_mode(t->e, privileged);
	struct stat st = t->st;
	int r = 0;

	if (t->type == S_IFLNK)
		return 0;
	if (!privileged && t->e->known & SNAPSHOT_HAS_MODE && t->e->mode & PRIVILEGED_MODE_BITS)
		w->counts.nr_setid++;
	/* Another owner, an attribute: they change modes. */
	if (privileged || t->e->nr_xattrs || *changed)
		r = contain_stat(t->parent_fd, entry_name(t->e), w->c->o->cross_mounts, &st);
	if (!r && (st.st_mode & 07777) == mode)
		return 0;
	if (!r && t->fd >= 0)
		r = fchmod(t->fd, mode) ? -errno : 0;
	else if (!r)
		r = contain_chmod(t->parent_fd, entry_name(t->e), mode, w->c->o->cross_mounts);
	if (r < 0)
		return worker_fail(w, t->e, r, "set the mode of");
	*changed = true;
	return 0;
}

/* Attributes. */

static const struct snapshot_xattr *find_xattr(const struct snapshot_entry *e, const char *name)
{
	uint32_t i;

	for (i = 0; i < e->nr_xattrs; i++) {
		if (!strcmp(e->xattrs[i].name, name))
			return &e->xattrs[i];
	}
	return NULL;
}

static int remove_others(struct worker *w, const struct meta_target *t, bool *changed)
{
	char *names = (char *)w->have; /* larger than any list */
	ssize_t len = flistxattr(t->fd, names, XATTR_LIST_MAX_BYTES), at;

	if (len < 0 && errno != ENOTSUP && errno != ENOSYS)
		return worker_fail(w, t->e, -errno, "read the attributes of");
	for (at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		if (!meta_is_our_xattr(names + at, w->c->o->privileged_metadata) ||
		    find_xattr(t->e, names + at))
			continue;
		if (fremovexattr(t->fd, names + at) && errno != ENODATA)
			return worker_fail(w, t->e, -errno, "remove an attribute of");
		*changed = true;
	}
	return 0;
}

static int apply_xattrs(struct worker *w, const struct meta_target *t, bool is_bare, bool *changed)
{
	uint32_t i;
	int r = 0;

	if (t->fd < 0) {
		w->counts.nr_xattrs += t->e->nr_xattrs;
		return 0;
	}
	if (!is_bare)
		r = remove_others(w, t, changed);
	for (i = 0; !r && i < t->e->nr_xattrs; i++) {
		const struct snapshot_xattr *x = &t->e->xattrs[i];
		ssize_t n;

		if (!meta_is_our_xattr(x->name, w->c->o->privileged_metadata)) {
			w->counts.nr_xattrs++;
			continue;
		}
		n = is_bare ? -1 : fgetxattr(t->fd, x->name, w->have, XATTR_VALUE_MAX_BYTES);
		if (n == (ssize_t)x->value_len && !memcmp(w->have, x->value, (size_t)n))
			continue;
		if (!fsetxattr(t->fd, x->name, x->value, x->value_len, 0))
			*changed = true;
		else if (errno == EDQUOT || errno == EIO || errno == EROFS)
			r = worker_fail(w, t->e, -errno, "set an attribute of");
		else
			w->counts
				.nr_xattrs++; /* not known here, not allowed, no room in the inode */
	}
	return r;
}

int meta_apply(struct worker *w, const struct meta_target *t, bool touched, bool *ret_changed)
{
	bool changed = false;
	/* What is made in an old directory may inherit attributes from it. */
	bool is_bare = w->c->is_new[t->e - w->c->entries] && w->c->is_new[t->e->parent];
	int r = apply_xattrs(w, t, is_bare, &changed);

	if (!r)
		r = apply_owner(w, t, &changed);
	if (!r)
		r = apply_mode(w, t, &changed);
	changed |= touched || (t->e->known & SNAPSHOT_HAS_MTIME &&
			       meta_time_ns(&t->st.st_mtim) != t->e->mtime_ns);
	/* That it was read is undone too, but is not worth a word. */
	if (!r && (changed || meta_times_differ(t->e, &t->st)))
		r = meta_apply_times(w, t);
	if (changed)
		*ret_changed = true;
	return r;
}
