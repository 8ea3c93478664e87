/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/varint.h"
#include "model/tree_stat.h"
#include "record/tree_inside.h"

/* As the kernel has them. */
#define XATTR_LIST_MAX_BYTES 65536
#define XATTR_VALUE_MAX_BYTES 65536
static_assert(XATTR_VALUE_MAX_BYTES <= TREE_PIECE_BYTES, "one is read there");
/* Of all values of a file; less than a record may have. */
#define XATTRS_MAX_BYTES ((size_t)4 << 20)
/* A directory with more names than this is not listed whole. */
#define NAMES_MAX ((size_t)1 << 20)

const char *tree_self_path(int fd, char path[static 64])
{
	(void)snprintf(path, 64, "/proc/self/fd/%d", fd);
	return path;
}

/* Devices. */

static bool is_special_fs(unsigned long magic)
{
	switch (magic) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case SECURITYFS_MAGIC:
	case SELINUX_MAGIC:
	case SMACK_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case BPF_FS_MAGIC:
	case DEVPTS_SUPER_MAGIC:
	case BINFMTFS_MAGIC:
	case PSTOREFS_MAGIC:
	case EFIVARFS_MAGIC:
	case NSFS_MAGIC:
	case PIPEFS_MAGIC:
	case SOCKFS_MAGIC:
	case ANON_INODE_FS_MAGIC:
	case 0x62656570: /* configfs, which has no name in the headers */
		return true;
	}
	return false;
}

/* What the kernel has at hand is all that there is to be known of a file. */
static bool is_local_fs(unsigned long magic)
{
	switch (magic) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case SQUASHFS_MAGIC:
	case ISOFS_SUPER_MAGIC:
	case MSDOS_SUPER_MAGIC:
		return true;
	}
	return is_special_fs(magic);
}

/* There a file that is removed while it is open may leave another name behind. */
static bool is_remote_fs(unsigned long magic)
{
	switch (magic) {
	case NFS_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case FUSE_SUPER_MAGIC:
	case V9FS_MAGIC:
	case CEPH_SUPER_MAGIC:
	case AFS_SUPER_MAGIC:
	case CODA_SUPER_MAGIC:
		return true;
	}
	return false;
}

static struct tree_device *device_of(struct tree *t, int fd, uint64_t dev)
{
	struct tree_device *d = tree_get_device(t, dev);
	struct statfs fs;

	if (d->is_asked || fd < 0 || fstatfs(fd, &fs))
		return d;
	d->is_asked = true;
	d->special = is_special_fs((unsigned long)fs.f_type);
	d->local = is_local_fs((unsigned long)fs.f_type);
	d->remote = is_remote_fs((unsigned long)fs.f_type);
	d->shifty = (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC;
	d->timeless =
		(unsigned long)fs.f_type == TMPFS_MAGIC || (unsigned long)fs.f_type == RAMFS_MAGIC;
	return d;
}

static uint64_t dev_of(const struct statx *st)
{
	return makedev(st->stx_dev_major, st->stx_dev_minor);
}

/* how: whether servers are asked. */
static bool ask_kernel(int fd, int how, struct statx *ret)
{
	return tree_stat(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | how, ret);
}

bool tree_ask(struct tree *t, int fd, struct tree_object *ret)
{
	const struct tree_device *device;

	*ret = (struct tree_object){ .fd = fd };
	if (!ask_kernel(fd, AT_STATX_DONT_SYNC, &ret->st)) {
		t->nr_incomplete++; /* it is there: the call is denied, or a server does not answer */
		return false;
	}
	if (tree_is_served(t, dev_of(&ret->st))) {
		t->nr_incomplete++;
		errno = EREMOTE;
		return false;
	}
	device = device_of(t, fd, dev_of(&ret->st));
	if (!device->local && !ask_kernel(fd, AT_STATX_SYNC_AS_STAT, &ret->st))
		return false;
	ret->special = device->special;
	ret->is_remote = device->remote;
	if (device->shifty)
		ret->st.stx_mask &= ~STATX_BTIME;
	return true;
}

const char *tree_read_link(struct tree *t, int fd, size_t *ret_len)
{
	char *text = arena_alloc(&t->item, TREE_PATH_MAX);
	ssize_t n = readlinkat(fd, "", text, TREE_PATH_MAX);

	if (n <= 0)
		return NULL;
	*ret_len = (size_t)n;
	return text;
}

/* What is remembered. */

struct identity {
	uint64_t dev, ino, born_s, born_ns;
};

/*
 * Inode numbers are used again; with the time of birth nothing is taken for something else.
 * Without, a number is free only when we know that its directory was removed (tree.c); a server may
 * give numbers as it likes.
 */
static bool is_known_again(struct tree *t, const struct statx *st)
{
	return st->stx_mask & STATX_BTIME || !device_of(t, -1, dev_of(st))->remote;
}

static struct identity identity_of(const struct statx *st)
{
	struct identity id = { .dev = dev_of(st), .ino = st->stx_ino };

	if (st->stx_mask & STATX_BTIME) {
		id.born_s = (uint64_t)st->stx_btime.tv_sec;
		id.born_ns = st->stx_btime.tv_nsec;
	}
	return id;
}

struct noted *tree_find_dir(struct tree *t, const struct statx *st)
{
	struct identity id = identity_of(st);

	return is_known_again(t, st)
		       ? tree_noted(tree_table_get(&t->dirs, hash_bytes(&id, sizeof(id))))
		       : NULL;
}

static void remember(struct tree *t, const struct statx *st, const struct noted *n)
{
	struct identity id = identity_of(st);

	if (!tree_table_put(t, &t->dirs, hash_bytes(&id, sizeof(id)), (uintptr_t)n))
		t->nr_unnoted++;
}

void tree_remember_dir(struct tree *t, const struct statx *st, struct noted *n)
{
	if (!is_known_again(t, st))
		return;
	remember(t, st, n);
	n->flags |= NOTED_DIR;
}

/* All of them are one: below them nothing was there at the start, whatever their names are. */
void tree_remember_made(struct tree *t, const struct statx *st)
{
	if (is_known_again(t, st))
		remember(t, st, t->made);
}

void tree_remember_device(struct tree *t, const struct statx *st, const struct noted *n)
{
	struct tree_device *d = device_of(t, -1, dev_of(st));

	if (!d->path)
		d->path = n->path;
}

/* Records. */

static int type_of(unsigned int mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return 1;
	case S_IFDIR:
		return 2;
	case S_IFLNK:
		return 3;
	case S_IFIFO:
		return 4;
	case S_IFSOCK:
		return 5;
	case S_IFCHR:
		return 6;
	case S_IFBLK:
		return 7;
	}
	return 0;
}

static struct value time_value(const struct statx_timestamp *ts)
{
	/* Beyond some 292 years either way a sum in ns means nothing; the multiplication may wrap. */
	return value_uint((uint64_t)ts->tv_sec * 1000000000u + ts->tv_nsec);
}

static struct value stat_value(struct tree *t, const struct statx *st)
{
	struct value v = value_struct(&t->item, (UINT64_C(1) << 12) - 1);
	struct value *f = v.fields->items;

	f[0] = value_int(type_of(st->stx_mode));
	f[1] = value_uint(st->stx_mode);
	f[2] = value_uint(st->stx_uid);
	f[3] = value_uint(st->stx_gid);
	f[4] = value_uint(st->stx_size);
	f[5] = value_uint(dev_of(st));
	f[6] = value_uint(st->stx_ino);
	f[7] = value_uint(st->stx_nlink);
	f[8] = value_uint(makedev(st->stx_rdev_major, st->stx_rdev_minor));
	f[9] = time_value(&st->stx_mtime);
	f[10] = time_value(&st->stx_atime);
	f[11] = time_value(&st->stx_ctime);
	return v;
}

void tree_write(struct tree *t, const struct tree_record *rec)
{
	struct item item = { .row = row_by_id(REC_tree_entry) };
	const struct tree_object *o = rec->object;
	int r;

	item.args[ENTRY_TREE] = value_int(rec->which);
	item.args[ENTRY_PATH] = value_bytes(&t->item, rec->path, rec->path_len);
	if (o)
		item.args[ENTRY_STAT] = stat_value(t, &o->st);
	if (o && o->target)
		item.args[ENTRY_TARGET] = value_bytes(&t->item, o->target, o->target_len);
	item.args[ENTRY_XATTRS] = rec->xattrs;
	item.args[ENTRY_CONTENT] = rec->content;
	if (rec->hash)
		item.args[ENTRY_HASH] = value_bytes(&t->item, rec->hash, 16);
	item.args[ENTRY_FLAGS] = value_uint(rec->flags);
	item.args[ENTRY_SEEN_NS] = value_uint(t->now_ns);
	r = t->r ? t->r : trace_feed_item(t->feed, &item);
	if (r == -E2BIG) {
		t->nr_incomplete++; /* a monster of attributes */
		r = 0;
	}
	if (r < 0)
		t->r = r;
}

/* Extended attributes. */

/* What is there, and not told, is missing. *left: bytes of values that there is room for. */
static bool put_xattr(struct tree *t, const char *path, const char *name, size_t *left,
		      struct value *dest)
{
	uint8_t *value = t->piece;
	ssize_t n = getxattr(path, name, value, XATTR_VALUE_MAX_BYTES);

	if (n < 0 || (size_t)n > *left) {
		t->nr_incomplete += n >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
		return false;
	}
	*left -= (size_t)n;
	*dest = value_struct(&t->item, 3);
	dest->fields->items[0] = value_str(&t->item, name);
	dest->fields->items[1] =
		value_bytes(&t->item, arena_memdup0(&t->item, value, (size_t)n), (size_t)n);
	return true;
}

static uint32_t nr_names(const char *names, size_t len)
{
	uint32_t nr = 0;
	size_t i;

	for (i = 0; i < len; i++)
		nr += !names[i];
	return nr;
}

/* By way of /proc, because a descriptor of O_PATH cannot be asked. */
struct value tree_read_xattrs(struct tree *t, int fd)
{
	char path[64], list[4096], *names = list;
	struct value v = { .type = VALUE_NONE };
	size_t left = XATTRS_MAX_BYTES;
	uint32_t nr = 0;
	ssize_t len = listxattr(tree_self_path(fd, path), list, sizeof(list)), at;

	if (len < 0 && errno == ERANGE) {
		names = arena_alloc(&t->item, XATTR_LIST_MAX_BYTES);
		len = listxattr(path, names, XATTR_LIST_MAX_BYTES);
	}
	if (len <= 0)
		return v;
	v = value_list(&t->item, nr_names(names, (size_t)len));
	for (at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		const char *name = arena_memdup0(&t->item, names + at, strlen(names + at));

		nr += put_xattr(t, path, name, &left, &v.items[nr]);
	}
	v.count = nr;
	return v;
}

bool tree_same_object(const struct statx *a, const struct statx *b)
{
	return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
	       a->stx_dev_minor == b->stx_dev_minor;
}

bool tree_same_time(const struct statx_timestamp *a, const struct statx_timestamp *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Notes. */

static bool may_have_content(const struct tree *t, const struct tree_object *o)
{
	return S_ISREG(o->st.stx_mode) && !o->special && o->st.stx_size <= t->o.content_max_bytes &&
	       t->o.content_max_bytes &&
	       (o->st.stx_ino != t->o.own_ino || dev_of(&o->st) != t->o.own_dev);
}

static struct hash128 hash_of_file(const struct tree_object *o)
{
	uint64_t identity[2] = { dev_of(&o->st), o->st.stx_ino };

	return hash_bytes(identity, sizeof(identity));
}

bool tree_wants_content(const struct tree *t, const struct tree_object *o)
{
	return may_have_content(t, o) && !tree_table_get(&t->contents, hash_of_file(o));
}

void tree_remember_content(struct tree *t, const struct tree_object *o)
{
	(void)tree_table_add(t, &t->contents, hash_of_file(o)); /* or it is read again */
}

/* Times are taken from a clock that ticks every few ms: a change sooner than this may not show. */
#define SETTLED_S 2

static bool is_settled(struct tree *t, const struct statx *st)
{
	struct timespec now;

	/* What a server's clock says is compared with ours: only long ago is long ago. */
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return !device_of(t, -1, dev_of(st))->timeless &&
	       st->stx_ctime.tv_sec + SETTLED_S < now.tv_sec &&
	       st->stx_mtime.tv_sec + SETTLED_S < now.tv_sec;
}

static void remember_file(struct tree *t, const struct tree_object *o)
{
	struct noted *n = tree_find(t, o->name);
	struct noted_file *f;

	if (!n || !S_ISREG(o->st.stx_mode) || o->special)
		return;
	f = n->file = tree_keep(t, sizeof(*f));
	if (!f)
		return; /* at the end it is read once more */
	*f = (struct noted_file){ .mtime = o->st.stx_mtime,
				  .ctime = o->st.stx_ctime,
				  .ino = o->st.stx_ino,
				  .size_bytes = o->st.stx_size,
				  .settled = is_settled(t, &o->st) };
	if (o->st.stx_mask & STATX_BTIME)
		f->btime = o->st.stx_btime;
}

bool tree_is_noted(const struct noted *n, const struct tree_object *o)
{
	const struct noted_file *f = n->file;

	if (!f || f->ino != o->st.stx_ino)
		return false;
	return !(o->st.stx_mask & STATX_BTIME) || !f->btime.tv_sec ||
	       tree_same_time(&f->btime, &o->st.stx_btime);
}

bool tree_is_unchanged(const struct noted *n, const struct tree_object *o)
{
	const struct noted_file *f = n->file;

	return f && f->settled && f->ino == o->st.stx_ino && f->size_bytes == o->st.stx_size &&
	       tree_same_time(&f->mtime, &o->st.stx_mtime) &&
	       tree_same_time(&f->ctime, &o->st.stx_ctime);
}

/*
 * How many names a file had: when another of its names was noted that is gone now, this one
 * is no longer seen to be a second name. Two are told then: that it is the same file is what counts.
 */
static uint32_t nr_links_of(struct tree *t, const struct statx *st)
{
	/* Another file may have the number later, but no other has it since then. */
	uint64_t identity[] = { dev_of(st), st->stx_ino, (uint64_t)st->stx_btime.tv_sec,
				st->stx_btime.tv_nsec };
	struct hash128 hash = hash_bytes(identity, sizeof(identity));

	if (S_ISDIR(st->stx_mode) || !(st->stx_mask & STATX_BTIME))
		return st->stx_nlink;
	if (st->stx_nlink > 1)
		(void)tree_table_add(t, &t->linked, hash); /* it may be there */
	return st->stx_nlink == 1 && tree_table_get(&t->linked, hash) ? 2 : st->stx_nlink;
}

void tree_note(struct tree *t, const struct tree_object *of, enum tree_when content)
{
	struct tree_object noted = *of, *o = &noted;
	struct tree_record rec = {
		.which = TREE_INITIAL, .path = o->name->text, .path_len = o->name->len, .object = o
	};
	bool device = S_ISCHR(o->st.stx_mode) || S_ISBLK(o->st.stx_mode);

	if (o->special || device)
		rec.flags |= TREE_SPECIAL;
	else
		rec.xattrs = tree_read_xattrs(t, o->fd);
	noted.st.stx_nlink = nr_links_of(t, &of->st);
	tree_write(t, &rec);
	if (o->special || device)
		return;
	remember_file(t, of);
	tree_note_content(t, of, content);
}

void tree_note_content(struct tree *t, const struct tree_object *o, enum tree_when content)
{
	if (content != TREE_NOT && tree_wants_content(t, o))
		tree_hold(t, o, content);
}

static void note_absent(struct tree *t, const struct tree_name *name, uint64_t flags)
{
	tree_write(t, &(struct tree_record){ .which = TREE_INITIAL,
					     .path = name->text,
					     .path_len = name->len,
					     .flags = flags });
}

void tree_note_missing(struct tree *t, const struct tree_name *name)
{
	note_absent(t, name, TREE_MISSING);
}

void tree_note_unreadable(struct tree *t, const struct tree_name *name)
{
	note_absent(t, name, TREE_UNREADABLE);
}

/* A name that a listing shows. It is described but not opened; a touch will note the rest. */
static void note_name(struct tree *t, int dir_fd, const struct tree_object *dir, const char *name)
{
	struct tree_name path = *dir->name;
	struct tree_object o = { .fd = -1, .name = &path };
	struct tree_record rec = { .which = TREE_INITIAL, .object = &o };
	char target[TREE_PATH_MAX];
	ssize_t n;

	name_add(&path, name, strlen(name));
	if (path.cut || tree_find(t, &path))
		return;
	if (!tree_stat(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, &o.st)) {
		/* Removed meanwhile, or in a directory that may be listed but not searched. */
		t->nr_incomplete += errno != ENOENT && errno != EACCES;
		return;
	}
	o.st.stx_nlink = nr_links_of(t, &o.st);
	if (S_ISLNK(o.st.stx_mode)) {
		n = readlinkat(dir_fd, name, target, sizeof(target));
		o.target = n > 0 ? target : NULL;
		o.target_len = n > 0 ? (size_t)n : 0;
	}
	if (S_ISCHR(o.st.stx_mode) || S_ISBLK(o.st.stx_mode))
		rec.flags = TREE_SPECIAL;
	tree_get(t, &path)->flags |= NOTED_NAME;
	rec.path = path.text;
	rec.path_len = path.len;
	tree_write(t, &rec);
	arena_reset(&t->item);
	spill_relax(&t->spill);
}

/* The directory itself was described when it was touched; the program may have changed it since. */
void tree_note_listing(struct tree *t, int fd, const struct tree_object *dir)
{
	struct tree_record rec = { .which = TREE_INITIAL,
				   .path = dir->name->text,
				   .path_len = dir->name->len,
				   .flags = TREE_LISTED };
	int opened = t->is_guarded ? -1 : tree_open_to_read(fd, O_DIRECTORY);
	DIR *d = opened < 0 ? NULL : fdopendir(opened);
	struct dirent *e;
	size_t nr = 0;

	if (!d) {
		if (opened >= 0)
			(void)close(opened); /* nothing was written */
		t->nr_incomplete += t->is_guarded;
		rec.flags = TREE_UNREADABLE;
		tree_write(t, &rec);
		return;
	}
	while (nr < NAMES_MAX && !t->r && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
			note_name(t, opened, dir, e->d_name);
			nr++;
		}
	}
	if (nr == NAMES_MAX) {
		rec.flags = 0; /* not all of them */
		t->nr_incomplete++;
	}
	(void)closedir(d); /* only read from */
	tree_write(t, &rec);
}
