/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "fsmodel/names.h"

/* A path that is longer than this is shown from its end: a tree may be a million directories deep. */
#define SHOWN_MAX_BYTES 16384

#define CONTAINER(ptr, type) ((const type *)(const void *)(ptr))

/* Names from the entry up to the root, or to a directory that has none. */
static void path_up(const struct fsmodel *m, const struct entry *e, struct buf *out)
{
	char text[SHOWN_MAX_BYTES];
	size_t at = sizeof(text);
	const struct inode *dir;

	for (; e; e = dir->own) {
		if (at < (size_t)e->name_len + 1) {
			buf_puts(out, "...");
			break;
		}
		at -= e->name_len;
		memcpy(text + at, e->name, e->name_len);
		text[--at] = '/';
		dir = e->dir;
		if (dir == m->names->root)
			break;
		if (!dir->own)
			buf_printf(out, "#%" PRIu64, dir->res.id);
	}
	buf_put(out, text + at, sizeof(text) - at);
}

static void put_inode(const struct fsmodel *m, const char *what, const struct inode *i,
		      struct buf *out)
{
	const struct entry *e = i->own ? i->own : i->names;

	if (i == m->names->root) {
		buf_printf(out, "%s(/)", what);
	} else if (!e) {
		buf_printf(out, "%s#%" PRIu64, what, i->res.id);
	} else {
		buf_printf(out, "%s(", what);
		path_up(m, e, out);
		buf_putc(out, ')');
	}
}

static void put_open(const struct fsmodel *m, const struct open_file *o, struct buf *out)
{
	static const char *const objects[] = {
		[OBJECT_FILE] = "open",	      [OBJECT_PIPE] = "pipe",	 [OBJECT_SOCKET] = "socket",
		[OBJECT_EVENTFD] = "eventfd", [OBJECT_EPOLL] = "epoll",	 [OBJECT_URING] = "uring",
		[OBJECT_INOTIFY] = "inotify", [OBJECT_OTHER] = "object",
	};

	if (o->inode)
		put_inode(m, "open", o->inode, out);
	else
		buf_printf(out, "%s#%" PRIu64,
			   o->object < ARRAY_LEN(objects) ? objects[o->object] : "open", o->res.id);
}

void fsmodel_res_name(const struct fsmodel *m, const struct res *res, struct buf *out)
{
	static const char *const kinds[RES_KIND_MAX] = {
		[RES_MAP] = "map",     [RES_AIO] = "aio",	[RES_STREAM] = "stream",
		[RES_LOCKS] = "locks", [RES_LOCKER] = "locker",
	};

	switch (res->kind) {
	case RES_FILE:
		put_inode(m, "file", CONTAINER(res, struct inode), out);
		break;
	case RES_NAME:
		buf_puts(out, "path(");
		path_up(m, CONTAINER(res, struct entry), out);
		buf_printf(out, ")@%" PRIu32, res->generation);
		break;
	case RES_FD:
		buf_printf(out, "fd%" PRId32 "@%" PRIu32, CONTAINER(res, struct descriptor)->number,
			   res->generation);
		break;
	case RES_OPEN:
		put_open(m, CONTAINER(res, struct open_file), out);
		break;
	case RES_STORAGE:
		buf_puts(out, "storage");
		break;
	case RES_HANDLE:
		put_inode(m, "dir", CONTAINER(res, struct handle)->dir, out);
		break;
	default:
		buf_printf(out, "%s#%" PRIu64,
			   res->kind < RES_KIND_MAX && kinds[res->kind] ? kinds[res->kind] : "res",
			   res->id);
	}
}

static const struct inode *inode_behind(const struct res *res)
{
	switch (res->kind) {
	case RES_FILE:
		return CONTAINER(res, struct inode);
	case RES_FD:
		return CONTAINER(res, struct descriptor)->open->inode;
	case RES_HANDLE:
		return CONTAINER(res, struct handle)->dir;
	default:
		return NULL;
	}
}

bool fsmodel_path(const struct fsmodel *m, const struct res *res, struct buf *out)
{
	const struct inode *i = inode_behind(res);
	const struct entry *e = res->kind == RES_NAME ? CONTAINER(res, struct entry)
				: i		      ? (i->own ? i->own : i->names)
						      : NULL;

	if (i && i == m->names->root)
		buf_putc(out, '/');
	else if (e)
		path_up(m, e, out);
	else
		return false;
	return true;
}

void fsmodel_names_below(const struct fsmodel *m, const struct res *name,
			 void (*each)(void *arg, const struct res *name), void *arg)
{
	const struct entry *top = CONTAINER(name, struct entry);
	VEC(const struct inode *) dirs = { 0 };
	size_t at;

	(void)m;
	if (name->kind != RES_NAME || !top->target || top->target->type != S_IFDIR)
		return;
	VEC_PUSH(&dirs, top->target);
	for (at = 0; at < dirs.len; at++) {
		const struct entry *e;

		for (e = dirs.items[at]->children; e; e = e->next_child) {
			if (!e->target)
				continue;
			each(arg, &e->res);
			/* Not into a directory that is only shown here: a bind mount may lead back up. */
			if (e->target->type == S_IFDIR && e->target->own == e)
				VEC_PUSH(&dirs, e->target);
		}
	}
	VEC_RELEASE(&dirs);
}
