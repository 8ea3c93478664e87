/* SPDX-License-Identifier: MIT */
/*
 * Files whose contents are wanted by a call that is under way. They are opened before the call takes
 * effect, with the rights of its thread; what they hold is kept only if the call succeeds.
 * So nothing gets into a trace that the program was refused, for whatever reason: its user,
 * a security module, a sandbox of its own.
 *
 *   touch: hold --> call succeeds: keep (now, or by tree_later.c) ; fails: let go
 *
 * What a call is about to cut off is copied before it, to where it can be dropped again: what is in the trace
 * stays there.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"
#include "record/tree_inside.h"

/* More than that is not put into memory. */
#define COPY_IN_MEMORY_BYTES ((uint64_t)4 << 20)

static int open_scratch(const struct tree *t, uint64_t bytes)
{
	int fd = -1;

	if (bytes > COPY_IN_MEMORY_BYTES && t->o.scratch_dir)
		fd = open(t->o.scratch_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : memfd_create("reprise-held", MFD_CLOEXEC);
}

/* A file of ours with what this one holds; -1: there is no room for it. */
static int copy_file(struct tree *t, int from, uint64_t bytes)
{
	unsigned int as = creds_current(t->creds);
	uint64_t done = 0;
	ssize_t n = 1;
	int fd;

	creds_return(t->creds, CREDS_OWN);
	fd = open_scratch(t, bytes);
	creds_return(t->creds, as);
	if (fd < 0)
		return -1;
	while (done < bytes && n) {
		n = sendfile(fd, from, &(off_t){ (off_t)done }, (size_t)(bytes - done));
		if (n < 0 && errno != EINTR)
			break;
		done += n > 0 ? (uint64_t)n : 0;
	}
	if (n >= 0)
		return fd;
	(void)close(fd); /* nothing of it is wanted */
	return -1;
}

static void replace_by_copy(struct tree *t, struct tree_file *f)
{
	int copy = copy_file(t, f->fd, f->st.stx_size);

	f->is_copy = true;
	f->changed = tree_has_changed(&f->st, f->fd, true);
	(void)close(f->fd); /* only read from */
	f->fd = copy;
}

static bool is_held(const struct tree *t, const struct statx *st)
{
	size_t i;

	for (i = 0; i < t->holds.len; i++) {
		const struct tree_hold *h = &t->holds.items[i];

		if (h->tid == t->tid && tree_same_object(&h->file.st, st))
			return true;
	}
	return false;
}

void tree_hold(struct tree *t, const struct tree_object *o, enum tree_when when)
{
	struct tree_hold h = {
		.tid = t->tid,
		.when = when,
		.file = { .noted = tree_find(t, o->name), .st = o->st, .fd = -1 },
	};

	if (!h.file.noted || is_held(t, &o->st))
		return;
	h.is_own = creds_current(t->creds) == CREDS_OWN;
	if (!t->is_guarded)
		h.file.fd = tree_open_to_read(o->fd, 0);
	/* Of a server others would see that we have it open. */
	if (h.file.fd >= 0 && (when == TREE_BEFORE || o->is_remote))
		replace_by_copy(t, &h.file);
	VEC_PUSH(&t->holds, h);
}

/* The program was refused what we could have read, if not with its rights. */
static void note_denied(const struct tree_hold *h, int err)
{
	uint16_t *flags = &h->file.noted->flags;
	bool could_read = h->file.fd >= 0;

	if (err != EACCES && err != EPERM)
		return;
	*flags |= NOTED_DENIED;
	/* Of one that it wanted to change it may be that it was refused only that. */
	if (could_read ? h->when == TREE_SOON : !h->is_own)
		*flags |= NOTED_WITHHELD;
}

static void settle(struct tree *t, struct tree_hold *h, int err)
{
	struct tree_content none = { .content = { .type = VALUE_NONE } };
	struct tree_object o = { .st = h->file.st };
	struct noted *n = h->file.noted;

	if (err) {
		note_denied(h, err);
	} else {
		n->flags &= (uint16_t) ~(NOTED_DENIED | NOTED_WITHHELD);
		if (h->has_key)
			tree_remember_seen(t, h->key);
		if (h->file.fd < 0)
			tree_write_content(t, n, &h->file.st, &none, false);
	}
	if (!err && h->file.fd >= 0 && tree_wants_content(t, &o)) {
		tree_remember_content(t, &o);
		tree_keep_file(t, &h->file, h->when == TREE_SOON);
	} else if (h->file.fd >= 0) {
		(void)close(h->file.fd); /* only read from */
	}
}

void tree_settle_holds(struct tree *t, pid_t tid, int err)
{
	size_t i, nr = 0;

	for (i = 0; i < t->holds.len; i++) {
		struct tree_hold h = t->holds.items[i];

		if (h.tid == tid)
			settle(t, &h, err);
		else
			t->holds.items[nr++] = h;
	}
	t->holds.len = nr;
	arena_reset(&t->item);
}

void tree_rename_holds(struct tree *t, pid_t from, pid_t to)
{
	size_t i;

	for (i = 0; i < t->holds.len; i++) {
		if (t->holds.items[i].tid == from)
			t->holds.items[i].tid = to;
	}
}

void tree_key_holds(struct tree *t, size_t first, struct hash128 key)
{
	for (; first < t->holds.len; first++) {
		t->holds.items[first].key = key;
		t->holds.items[first].has_key = true;
	}
}

void tree_release_holds(struct tree *t)
{
	size_t i;

	for (i = 0; i < t->holds.len; i++) {
		if (t->holds.items[i].file.fd >= 0)
			(void)close(t->holds.items[i].file.fd); /* only read from */
	}
	VEC_RELEASE(&t->holds);
}
