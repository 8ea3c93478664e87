/* SPDX-License-Identifier: MIT */
/* Calls that change what a process is: its directories, its umask, its identity. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/banned.h"
#include "fsmodel/tables.h"

/* Directories of the process. */

static struct outcome ask_chdir(struct call *c)
{
	bool root = c->ev->row->id == SC_chroot;

	look_up(c, AT_FDCWD, arg_at(c, 0), LOOK_AT_FOLLOW | LOOK_AT_DIRECTORY, 0, &c->at);
	if (c->at.err)
		return fails(c->at.err);
	if (!c->at.inode) {
		c->unsure = true;
		return succeeds(0);
	}
	if (may_access(c, c->at.inode, 1))
		return fails(EACCES);
	if (root && !c->cred.all_powerful)
		return fails(by_environment(c, EPERM));
	return succeeds(0);
}

static void apply_chdir(struct call *c)
{
	if (c->at.inode)
		set_directory(c, &c->fs->cwd, c->at.inode);
}

static void apply_chroot(struct call *c)
{
	if (c->at.inode)
		set_directory(c, &c->fs->root, c->at.inode);
}

static bool mend_chdir(struct call *c)
{
	return mend_exists(c, AT_FDCWD, arg_at(c, 0), LOOK_AT_FOLLOW, S_IFDIR);
}

const struct call_row model_chdir = { ask_chdir, apply_chdir, mend_chdir };
const struct call_row model_chroot = { ask_chdir, apply_chroot, mend_chdir };

static struct outcome ask_fchdir(struct call *c)
{
	struct descriptor *d = fd_get(c, value_int_or(arg_at(c, 0), -1));
	struct inode *i;

	if (!d)
		return fails(EBADF);
	i = fd_inode(c, d, S_IFDIR);
	if (c->unsure && !i)
		return succeeds(0);
	if (!i || (i->type && i->type != S_IFDIR))
		return fails(ENOTDIR);
	if (may_access(c, i, 1))
		return fails(EACCES);
	c->at.inode = i;
	return succeeds(0);
}

const struct call_row model_fchdir = { ask_fchdir, apply_chdir, NULL };

static struct outcome ask_umask(struct call *c)
{
	return succeeds(c->fs->umask);
}

static void apply_umask(struct call *c)
{
	c->fs->umask = (uint32_t)value_int_or(arg_at(c, 0), 0) & 0777;
}

const struct call_row model_umask = { ask_umask, apply_umask, NULL };

/* Who one is. -1 leaves as it is. */

static struct outcome ask_identity(struct call *c)
{
	c->unsure = c->any_ret = true;
	return succeeds(0);
}

static void set_uid(struct call *c, int64_t uid)
{
	if (uid < 0 || uid >= UINT32_MAX)
		return;
	c->thread->cred.uid = (uint32_t)uid;
	c->thread->cred.all_powerful = !uid;
}

static void set_gid(struct call *c, int64_t gid)
{
	if (gid >= 0 && gid < UINT32_MAX)
		c->thread->cred.gid = (uint32_t)gid;
}

static void apply_first_uid(struct call *c)
{
	set_uid(c, value_int_or(arg_at(c, 0), -1));
}

static void apply_second_uid(struct call *c)
{
	set_uid(c, value_int_or(arg_at(c, 1), -1));
}

static void apply_first_gid(struct call *c)
{
	set_gid(c, value_int_or(arg_at(c, 0), -1));
}

static void apply_second_gid(struct call *c)
{
	set_gid(c, value_int_or(arg_at(c, 1), -1));
}

const struct call_row model_setuid = { ask_identity, apply_first_uid, NULL };
const struct call_row model_setfsuid = { ask_identity, apply_first_uid, NULL };
const struct call_row model_setreuid = { ask_identity, apply_second_uid, NULL };
const struct call_row model_setresuid = { ask_identity, apply_second_uid, NULL };
const struct call_row model_setgid = { ask_identity, apply_first_gid, NULL };
const struct call_row model_setfsgid = { ask_identity, apply_first_gid, NULL };
const struct call_row model_setregid = { ask_identity, apply_second_gid, NULL };
const struct call_row model_setresgid = { ask_identity, apply_second_gid, NULL };
