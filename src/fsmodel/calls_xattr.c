/* SPDX-License-Identifier: MIT */
/*
 * Extended attributes. Of each its length is remembered. Only those of the
 * namespace user. are a file's own affair; what security modules, ACLs and file
 * systems make of the others the model does not know, nor whether the file
 * system has any.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/banned.h"
#include "fsmodel/calls_meta.h"
#include "fsmodel/names.h"
#include "model/fields.h"

#define XATTR_NAME_MAX_BYTES 255
#define XATTR_SIZE_MAX_BYTES 65536

static int find_with(struct call *c, uint32_t touch)
{
	const struct meta_find how = {
		.flags = arg_of(c, "at_flags")->type == VALUE_NONE ? NULL : "at_flags",
		.allowed = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
		.touch = touch,
	};

	return meta_find(c, &how);
}

static int name_of(struct call *c, struct path_text *ret)
{
	int err = text_of(c, arg_of(c, "name"), ret);

	if (err)
		return err == ENAMETOOLONG ? ERANGE : err;
	return !ret->len || ret->len > XATTR_NAME_MAX_BYTES ? ERANGE : 0;
}

static bool is_user(const struct path_text *name)
{
	return name->len > 5 && !memcmp(name->s, "user.", 5);
}

static bool are_known(const struct call *c, const struct inode *i)
{
	return i->xattrs_known || c->m->options.execute;
}

/* Length + 1, 0: there is none. */
static uint64_t get(const struct inode *i, const struct path_text *name)
{
	return i->xattrs ? (uint64_t)(uintptr_t)map_get(i->xattrs, name->s, name->len) : 0;
}

static void put(struct inode *i, const struct path_text *name, uint64_t len)
{
	if (!i->xattrs)
		i->xattrs = xcalloc(1, sizeof(*i->xattrs));
	*map_slot(i->xattrs, name->s, name->len) = (void *)(uintptr_t)(len + 1);
}

/* The size argument, of the call or of its struct. */
static uint64_t size_of(const struct call *c)
{
	const struct value *uargs = arg_of(c, "uargs");
	const struct value *v = uargs->type == VALUE_STRUCT
					? value_field(uargs, FIELD_OF(xattr_args_set, size))
					: arg_of(c, "size");

	return v && v->type == VALUE_INT ? v->u : 0;
}

static uint32_t flags_of(const struct call *c)
{
	const struct value *uargs = arg_of(c, "uargs");
	const struct value *v = uargs->type == VALUE_STRUCT
					? value_field(uargs, FIELD_OF(xattr_args_set, flags))
					: arg_of(c, "flags");

	return v && v->type == VALUE_INT ? (uint32_t)v->u : 0;
}

/* Only the owner changes those of a directory with the sticky bit. */
static int may_change(const struct call *c, const struct inode *i)
{
	if (i->type != S_IFREG && i->type != S_IFDIR)
		return EPERM;
	if (i->type == S_IFDIR && (i->mode & S_ISVTX) && !is_owner(c, i) && may_deny(c, EPERM))
		return EPERM;
	return may_access(c, i, W_OK);
}

/* Only what is the same everywhere; else any outcome is right. */
/* An error, or what the call is about; NULL and unsure when the model cannot tell of this attribute. */
static int find_attribute(struct call *c, uint32_t touch, struct path_text *ret_name,
			  struct inode **ret)
{
	struct inode *i;
	int err = name_of(c, ret_name);

	if (!err)
		err = find_with(c, touch);
	if (err)
		return err;
	i = c->at.inode;
	if (!i || !is_user(ret_name) || !are_known(c, i)) {
		c->unsure = true;
		i = NULL;
	}
	*ret = i;
	return 0;
}

static struct outcome ask_setxattr(struct call *c)
{
	uint32_t flags = flags_of(c);
	struct path_text name;
	struct inode *i;
	int err;

	if (flags & ~(uint32_t)(XATTR_CREATE | XATTR_REPLACE))
		return fails(EINVAL);
	err = name_of(c, &name);
	if (!err && size_of(c) > XATTR_SIZE_MAX_BYTES)
		err = E2BIG;
	if (!err)
		err = find_attribute(c, TOUCH_META_WRITE, &name, &i);
	if (err)
		return fails(err);
	if (!i)
		return succeeds(0);
	err = may_change(c, i);
	if (!err && (flags & XATTR_CREATE) && get(i, &name))
		err = EEXIST;
	if (!err && (flags & XATTR_REPLACE) && !get(i, &name))
		err = ENODATA;
	c->unsure |= !c->m->options.execute && c->ev->outcome.err == EOPNOTSUPP;
	return err ? fails(err) : succeeds(0);
}

static void apply_setxattr(struct call *c)
{
	struct path_text name;

	if (c->at.inode && !name_of(c, &name))
		put(c->at.inode, &name, size_of(c));
}

static struct outcome ask_getxattr(struct call *c)
{
	struct path_text name;
	uint64_t len, room = size_of(c);
	struct inode *i;
	int err = find_attribute(c, TOUCH_META_READ, &name, &i);

	if (err)
		return fails(err);
	if (!i)
		return succeeds_any(c);
	if (i->type != S_IFREG && i->type != S_IFDIR)
		return fails(ENODATA);
	err = may_access(c, i, R_OK);
	if (err)
		return fails(err);
	c->unsure |= !c->m->options.execute && c->ev->outcome.err == EOPNOTSUPP;
	len = get(i, &name);
	if (!len)
		return fails(ENODATA);
	len--;
	if (room && room < len)
		return fails(ERANGE);
	return succeeds((int64_t)len);
}

/* What else there may be in a list (labels, ACLs) is not known. */
static struct outcome ask_listxattr(struct call *c)
{
	int err = find_with(c, TOUCH_META_READ);

	if (err)
		return fails(err);
	c->unsure = true;
	return succeeds_any(c);
}

static struct outcome ask_removexattr(struct call *c)
{
	struct path_text name;
	struct inode *i;
	int err = find_attribute(c, TOUCH_META_WRITE, &name, &i);

	if (err)
		return fails(err);
	if (!i)
		return succeeds(0);
	err = may_change(c, i);
	if (!err && !get(i, &name))
		err = ENODATA;
	return err ? fails(err) : succeeds(0);
}

static void apply_removexattr(struct call *c)
{
	struct path_text name;

	if (c->at.inode && c->at.inode->xattrs && !name_of(c, &name))
		(void)map_remove(c->at.inode->xattrs, name.s, name.len);
}

/* On macOS names have no namespaces. */
static struct outcome ask_mac_get(struct call *c)
{
	int err = find_with(c, TOUCH_META_READ);

	c->unsure |= !err;
	return err ? fails(err) : succeeds_any(c);
}

static struct outcome ask_mac_set(struct call *c)
{
	int err = find_with(c, TOUCH_META_WRITE);

	c->unsure |= !err;
	return err ? fails(err) : succeeds(0);
}

#define ROW(name, ask, apply) const struct call_row model_##name = { ask, apply, mend_names };

ROW(setxattr, ask_setxattr, apply_setxattr)
ROW(lsetxattr, ask_setxattr, apply_setxattr)
ROW(fsetxattr, ask_setxattr, apply_setxattr)
ROW(setxattrat, ask_setxattr, apply_setxattr)
ROW(getxattr, ask_getxattr, NULL)
ROW(lgetxattr, ask_getxattr, NULL)
ROW(fgetxattr, ask_getxattr, NULL)
ROW(getxattrat, ask_getxattr, NULL)
ROW(listxattr, ask_listxattr, NULL)
ROW(llistxattr, ask_listxattr, NULL)
ROW(flistxattr, ask_listxattr, NULL)
ROW(listxattrat, ask_listxattr, NULL)
ROW(removexattr, ask_removexattr, apply_removexattr)
ROW(lremovexattr, ask_removexattr, apply_removexattr)
ROW(fremovexattr, ask_removexattr, apply_removexattr)
ROW(removexattrat, ask_removexattr, apply_removexattr)
ROW(mac_getxattr, ask_mac_get, NULL)
ROW(mac_fgetxattr, ask_mac_get, NULL)
ROW(mac_listxattr, ask_mac_get, NULL)
ROW(mac_flistxattr, ask_mac_get, NULL)
ROW(mac_setxattr, ask_mac_set, NULL)
ROW(mac_fsetxattr, ask_mac_set, NULL)
ROW(mac_removexattr, ask_mac_set, NULL)
ROW(mac_fremovexattr, ask_mac_set, NULL)
