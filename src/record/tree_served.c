/* SPDX-License-Identifier: MIT */
/*
 * File systems whose files are somebody's answers (FUSE). A program may be recorded together with
 * the one that serves it, which waits for us at its stops: who asks for anything there that the
 * kernel does not have at hand waits for ever. So nothing is asked of those that came after the
 * recording began; those that were there before are served by others.
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/io.h"
#include "record/tree_inside.h"

#define MOUNTS_MAX_BYTES ((size_t)16 << 20)
#define OWN_MOUNTS "/proc/self/mountinfo"

struct tree_device *tree_get_device(struct tree *t, uint64_t dev)
{
	struct tree_device new = { .dev = dev };
	size_t i;

	for (i = 0; i < t->devices.len; i++) {
		if (t->devices.items[i].dev == dev)
			return &t->devices.items[i];
	}
	VEC_PUSH(&t->devices, new);
	return &t->devices.items[t->devices.len - 1];
}

static bool is_served_type(const char *type)
{
	size_t len = strcspn(type, " ");

	return !strncmp(type, "fuse.", 5) || (len == 4 && !strncmp(type, "fuse", 4)) ||
	       (len == 7 && !strncmp(type, "fuseblk", 7));
}

/* A line of mountinfo, without its end. */
static void learn_line(struct tree *t, const char *line, bool by_others)
{
	const char *type = strstr(line, " - ");
	unsigned int major, minor;
	struct tree_device *d;

	if (!type || sscanf(line, "%*d %*d %u:%u", &major, &minor) != 2)
		return;
	d = tree_get_device(t, makedev(major, minor));
	d->is_looked_up = true;
	if (!is_served_type(type + strlen(" - ")))
		return;
	d->by_others |= by_others;
	d->served = !d->by_others;
}

/* Those in a list of mounts that are not others' are recorded programs', or (by_others) become others'. */
static bool learn(struct tree *t, const char *mountinfo, bool by_others)
{
	struct buf text = { 0 };
	char *line, *end;

	if (io_read_file(mountinfo, MOUNTS_MAX_BYTES, &text, NULL) < 0)
		return false;
	buf_put(&text, "", 1);
	for (line = (char *)text.data; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		learn_line(t, line, by_others);
	}
	buf_release(&text);
	return true;
}

void tree_begin_served(struct tree *t)
{
	(void)learn(t, OWN_MOUNTS, true); /* without /proc nothing is noted anyway */
}

void tree_forget_served(struct tree *t)
{
	size_t i;

	for (i = 0; i < t->devices.len; i++)
		t->devices.items[i].served = t->devices.items[i].is_looked_up = false;
}

bool tree_is_served(struct tree *t, uint64_t dev)
{
	unsigned int as = creds_current(t->creds);
	char name[64];

	if (!tree_get_device(t, dev)->is_looked_up) {
		creds_return(t->creds, CREDS_OWN);
		(void)snprintf(name, sizeof(name), "/proc/%d/mountinfo", (int)t->tid);
		if (!learn(t, name, false)) /* the thread is gone */
			(void)learn(t, OWN_MOUNTS, false);
		creds_return(t->creds, as);
		tree_get_device(t, dev)->is_looked_up = true;
	}
	return tree_get_device(t, dev)->served;
}

bool tree_may_open(struct tree *t, pid_t tid, uint64_t dev)
{
	t->tid = tid;
	return !t->is_guarded && !tree_is_served(t, dev);
}
