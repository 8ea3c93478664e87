/* SPDX-License-Identifier: MIT */
/*
 * Mounts, as far as the model goes: a mount covers a name with another root, of
 * which is known what the type of the file system tells; an unmount uncovers
 * it. All processes see the same tree: private mount namespaces are not told
 * apart. Below a bind mount .. leads to where the directory really is. After
 * pivot_root() the new root is where it was, but the root of all who had the old
 * one; of what is then under the name of the old one nothing is known.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>

#include "base/banned.h"
#include "fsmodel/names.h"
#include "fsmodel/tables.h"

/* Changes of what is mounted, not of where. */
#define MOUNT_CHANGES (MS_REMOUNT | MS_SHARED | MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE)

static bool type_is(const struct path_text *type, const char *name)
{
	return type->len == strlen(name) && !memcmp(type->s, name, type->len);
}

static struct inode *new_root(struct call *c, struct entry *e)
{
	struct inode *i = inode_guess(c->m, S_IFDIR);
	struct path_text type;

	i->initial = false;
	i->dev = 0;
	if (text_of(c, arg_of(c, "filesystemtype"), &type))
		return i;
	if (type_is(&type, "tmpfs") || type_is(&type, "ramfs"))
		i->complete = i->listed = true;
	i->special = type_is(&type, "proc") || type_is(&type, "sysfs") ||
		     type_is(&type, "cgroup2") || type_is(&type, "devpts") || e->dir->special;
	return i;
}

static void cover(struct call *c, struct entry *e, struct inode *root)
{
	struct mounted mounted = { .entry = e, .covered = e->target };

	inode_ref(e->target);
	inode_ref(root);
	entry_unbind(c, e);
	entry_bind(c, e, root);
	inode_unref(c->m, root);
	e->mount = true;
	VEC_PUSH(&c->m->names->mounts, mounted);
}

static struct mounted *find_mount(struct call *c, const struct entry *e)
{
	size_t at = c->m->names->mounts.len;

	while (e && at--) {
		if (c->m->names->mounts.items[at].entry == e)
			return &c->m->names->mounts.items[at];
	}
	return NULL;
}

/* Whether it may be done is asked of capabilities that the model does not know. */
static struct outcome ask_mount(struct call *c)
{
	uint64_t flags = (uint64_t)int_arg(c, "mountflags", 0);

	look_up(c, AT_FDCWD, arg_of(c, "target"), LOOK_AT_FOLLOW, 0, &c->at);
	if (c->at.err)
		return fails(c->at.err);
	c->n1 = !(flags & MOUNT_CHANGES);
	if (c->n1 && (flags & (MS_BIND | MS_MOVE))) {
		look_up(c, AT_FDCWD, arg_of(c, "source"), LOOK_AT_FOLLOW, 0, &c->at2);
		if (c->at2.err)
			return fails(c->at2.err);
	}
	c->unsure = true;
	return succeeds(0);
}

static void apply_mount(struct call *c)
{
	struct entry *e = c->at.entry;

	if (!c->n1 || !e || !c->at.inode || e->target != c->at.inode)
		return;
	if (c->at2.inode && (c->at2.inode == c->at.inode || c->at2.inode->type != S_IFDIR))
		return;
	cover(c, e, c->at2.inode ? c->at2.inode : new_root(c, e));
}

static struct outcome ask_umount(struct call *c)
{
	look_up(c, AT_FDCWD, arg_of(c, "target"), LOOK_AT_FOLLOW, 0, &c->at);
	if (c->at.err)
		return fails(c->at.err);
	c->unsure = true;
	return succeeds(0);
}

static void apply_umount(struct call *c)
{
	struct entry *e = c->at.entry;
	struct mounted *mounted = find_mount(c, e), last;
	struct inode *covered;

	if (!mounted)
		return;
	covered = mounted->covered;
	/* What a mount from before the trace covers was never seen. */
	if (!covered) {
		covered = inode_guess(c->m, S_IFDIR);
		covered->initial = false;
		inode_ref(covered);
	}
	last = c->m->names->mounts.items[--c->m->names->mounts.len];
	if (mounted->entry != last.entry || mounted->covered != last.covered)
		*mounted = last;
	if (e->target)
		entry_unbind(c, e);
	entry_bind(c, e, covered);
	inode_unref(c->m, covered);
	e->mount = find_mount(c, e) != NULL;
}

static struct outcome ask_move_mount(struct call *c)
{
	uint32_t flags = (uint32_t)int_arg(c, "flags", 0);
	unsigned int from = (flags & 1 ? LOOK_AT_FOLLOW : 0) | (flags & 4 ? LOOK_AT_EMPTY : 0);
	unsigned int to = (flags & 0x10 ? LOOK_AT_FOLLOW : 0) | (flags & 0x40 ? LOOK_AT_EMPTY : 0);

	look_up(c, dirfd_arg(c, "from_dirfd"), arg_of(c, "from_path"), from, 0, &c->at2);
	if (c->at2.err)
		return fails(c->at2.err);
	look_up(c, dirfd_arg(c, "to_dirfd"), arg_of(c, "to_path"), to, 0, &c->at);
	if (c->at.err)
		return fails(c->at.err);
	c->n1 = 1;
	c->at2.inode = NULL; /* mostly a detached tree: nothing is known of it */
	c->unsure = true;
	return succeeds(0);
}

static struct outcome ask_pivot_root(struct call *c)
{
	look_up(c, AT_FDCWD, arg_of(c, "new_root"), LOOK_AT_FOLLOW | LOOK_AT_DIRECTORY, 0, &c->at);
	if (c->at.err)
		return fails(c->at.err);
	look_up(c, AT_FDCWD, arg_of(c, "put_old"), LOOK_AT_FOLLOW | LOOK_AT_DIRECTORY, 0, &c->at2);
	if (c->at2.err)
		return fails(c->at2.err);
	c->unsure = true;
	return succeeds(0);
}

static void apply_pivot_root(struct call *c)
{
	struct inode *old = c->fs->root->dir, *new = c->at.inode;
	struct entry *e = c->at2.entry;
	struct inode *unknown;

	if (!new || new == old)
		return;
	move_directories(c, old, new);
	/* With the same directory twice the old root lies upon the new one, until it is unmounted. */
	if (!e || !c->at2.inode || c->at2.inode == new || e->target != c->at2.inode)
		return;
	unknown = inode_guess(c->m, S_IFDIR);
	unknown->initial = false;
	unknown->special = true;
	unknown->dev = 0;
	cover(c, e, unknown);
}

const struct call_row model_mount = { ask_mount, apply_mount, NULL };
const struct call_row model_umount = { ask_umount, apply_umount, NULL };
const struct call_row model_umount2 = { ask_umount, apply_umount, NULL };
const struct call_row model_move_mount = { ask_move_mount, apply_mount, NULL };
const struct call_row model_pivot_root = { ask_pivot_root, apply_pivot_root, NULL };
