/* SPDX-License-Identifier: MIT */
/* Directories that processes have as their cwd or root. */
#include <stdlib.h>

#include "base/banned.h"
#include "fsmodel/process.h"

struct handle *handle_new(struct fsmodel *m, struct inode *dir)
{
	struct handle *h = xcalloc(1, sizeof(*h));

	res_init(m, &h->res, RES_HANDLE);
	h->dir = dir;
	h->refs = 1;
	inode_ref(dir);
	return h;
}

void handle_unref(struct call *c, struct fsmodel *m, struct handle *h)
{
	if (--h->refs)
		return;
	if (c)
		touch_use(c, &h->res, TOUCH_DELETE);
	inode_unref(m, h->dir);
	res_bury(m, &h->res, NULL);
}

void set_directory(struct call *c, struct handle **place, struct inode *dir)
{
	struct handle *old = *place;

	*place = handle_new(c->m, dir);
	c->facts->new_handle = &(*place)->res;
	touch_use(c, &(*place)->res, TOUCH_CREATE);
	handle_unref(c, c->m, old);
}

static void move_if_at(struct call *c, struct handle **place, struct inode *from, struct handle *to)
{
	if ((*place)->dir != from)
		return;
	handle_unref(c, c->m, *place);
	*place = to;
	to->refs++;
}

void move_directories(struct call *c, struct inode *from, struct inode *to)
{
	struct handle *h = handle_new(c->m, to);

	touch_use(c, &h->res, TOUCH_CREATE);
	inode_ref(from);
	IDS_EACH (&c->m->tables->threads, s) {
		struct fs_state *fs = ((struct thread *)s->value)->fs;

		if (!fs)
			continue;
		move_if_at(c, &fs->root, from, h);
		move_if_at(c, &fs->cwd, from, h);
	}
	inode_unref(c->m, from);
	handle_unref(c, c->m, h);
}

struct fs_state *fs_copy(const struct fs_state *from)
{
	struct fs_state *fs = xmalloc(sizeof(*fs));

	*fs = *from;
	fs->refs = 1;
	fs->cwd->refs++;
	fs->root->refs++;
	return fs;
}

void fs_drop(struct call *c, struct fsmodel *m, struct fs_state *fs)
{
	if (--fs->refs)
		return;
	handle_unref(c, m, fs->cwd);
	handle_unref(c, m, fs->root);
	free(fs);
}
