/* SPDX-License-Identifier: MIT */
/*
 * Where names begin: the root and the working directory of a thread, or one of
 * its descriptors. To ask /proc takes several calls, which for a short path is
 * more than the path itself takes, so roots and working directories are kept
 * open.
 *
 * 1. Nothing is kept across a call that may change what it says: whoever sees
 *    one begin and end calls tree_places_forget(). In between nothing is kept.
 * 2. A place is known again by device, inode and mount, so that threads share
 *    it, and a thread that is new costs no more than the question which it is.
 * 3. An open directory keeps its file system busy. So descriptors are not kept,
 *    and roots and working directories only until a thread ends.
 * 4. What a thread has done may be learned when it is gone, and /proc tells nothing
 *    of it. So which places are whose is known from a thread's beginning to its end,
 *    and a place that was shut is found by the name that it had.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/banned.h"
#include "record/tree_inside.h"

#define IDS_MAX 256
#define PLACES_MAX 16

struct tree_id {
	pid_t tid;
	bool has_root, has_cwd;
	struct tree_identity root, cwd;
};

struct tree_places {
	struct tree_id ids[IDS_MAX]; /* of the threads that made the last calls */
	bool has_ids;
	struct tree_place items[PLACES_MAX];
	uint64_t age;
};

struct tree_places *tree_places_new(void)
{
	struct tree_places *p = xcalloc(1, sizeof(*p));
	unsigned int i;

	for (i = 0; i < PLACES_MAX; i++)
		p->items[i].o.fd = -1;
	return p;
}

static void shut(struct tree_place *p)
{
	if (p->o.fd >= 0)
		(void)close(p->o.fd); /* O_PATH: nothing to fail */
	p->o.fd = -1;
	p->kept = false;
}

static void shut_all(struct tree_places *p)
{
	unsigned int i;

	for (i = 0; i < PLACES_MAX; i++)
		shut(&p->items[i]);
}

void tree_places_free(struct tree_places *p)
{
	if (p)
		tree_places_forget(p);
	free(p);
}

void tree_places_forget(struct tree_places *p)
{
	if (p->has_ids)
		memset(p->ids, 0, sizeof(p->ids));
	p->has_ids = false;
	shut_all(p);
}

/* Which they are. */

static struct tree_id *id_of(struct tree_places *p, pid_t tid)
{
	return &p->ids[(unsigned int)tid % IDS_MAX];
}

static struct tree_identity identity_of(const struct statx *st)
{
	struct tree_identity id = { .dev = makedev(st->stx_dev_major, st->stx_dev_minor),
				    .ino = st->stx_ino };

	if (st->stx_mask & STATX_MNT_ID)
		id.mount = st->stx_mnt_id;
	return id;
}

bool tree_same_identity(const struct tree_identity *a, const struct tree_identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mount == b->mount;
}

const char *tree_base_path(char path[static 64], pid_t tid, enum walk_base base, int fd)
{
	if (base == WALK_FROM_OURS)
		return tree_self_path(fd, path);
	if (base == WALK_FROM_FD)
		(void)snprintf(path, 64, "/proc/%d/fd/%d", tid, fd);
	else
		(void)snprintf(path, 64, "/proc/%d/%s", tid,
			       base == WALK_FROM_ROOT ? "root" : "cwd");
	return path;
}

static bool ask_identity(int fd, const char *path, int flags, struct tree_identity *ret)
{
	struct statx st;

	/* Neither number ever changes: no server need be asked. */
	if (!tree_stat(fd, path, flags | AT_STATX_DONT_SYNC, &st))
		return false;
	*ret = identity_of(&st);
	return true;
}

bool tree_fd_identity(int fd, struct tree_identity *ret)
{
	return ask_identity(fd, "", AT_EMPTY_PATH, ret);
}

/* Not while, or where, somebody may be moving that we do not see. */
static bool may_keep(const struct tree *t, enum walk_base base)
{
	if (t->o.misses_calls || (base != WALK_FROM_ROOT && base != WALK_FROM_CWD))
		return false;
	return base == WALK_FROM_ROOT ? !tree_changes_names(t) : !t->unsettled.nr_live;
}

bool tree_place_identity(struct tree *t, pid_t tid, enum walk_base base, int fd,
			 struct tree_identity *ret)
{
	struct tree_id *id = id_of(t->places, tid);
	bool *has = base == WALK_FROM_ROOT ? &id->has_root : &id->has_cwd;
	struct tree_identity *known = base == WALK_FROM_ROOT ? &id->root : &id->cwd;
	char path[64];

	if (base == WALK_FROM_FD || base == WALK_FROM_OURS)
		return ask_identity(AT_FDCWD, tree_base_path(path, tid, base, fd), 0, ret);
	if (id->tid != tid)
		*id = (struct tree_id){ .tid = tid };
	*has &= may_keep(t, base);
	t->places->has_ids = true;
	if (!*has)
		*has = ask_identity(AT_FDCWD, tree_base_path(path, tid, base, fd), 0, known);
	*ret = *known;
	return *has;
}

/* What they are. */

/* A link of /proc as text; false when it leads to no name. */
static bool read_name(const char *path, struct tree_name *ret)
{
	char text[TREE_PATH_MAX];
	ssize_t n = readlink(path, text, sizeof(text));

	if (n <= 0 || text[0] != '/')
		return false;
	/* No name leads there any more. */
	if (n > 10 && !memcmp(text + n - 10, " (deleted)", 10))
		return false;
	name_set(ret, text, (size_t)n);
	return !ret->cut;
}

static bool open_place(struct tree *t, struct tree_place *p, const char *path)
{
	p->o.fd = open(path, O_PATH | O_CLOEXEC);
	if (p->o.fd >= 0 && tree_ask(t, p->o.fd, &p->o)) {
		p->identity = identity_of(&p->o.st);
		return true;
	}
	shut(p);
	return false;
}

static bool ask(struct tree *t, struct tree_place *p, const char *path)
{
	return read_name(path, &p->name) && open_place(t, p, path);
}

/* Nobody's, and of those the one that was of no use for the longest time. */
static struct tree_place *find_spare(struct tree_places *places)
{
	struct tree_place *spare = NULL;
	unsigned int i;

	for (i = 0; i < PLACES_MAX; i++) {
		struct tree_place *p = &places->items[i];

		if (!p->nr_users && (!spare || p->age < spare->age))
			spare = p;
	}
	return spare;
}

static struct tree_place *find_kept(struct tree_places *places, const struct tree_identity *id)
{
	unsigned int i;

	for (i = 0; i < PLACES_MAX; i++) {
		if (places->items[i].kept && tree_same_identity(&places->items[i].identity, id))
			return &places->items[i];
	}
	return NULL;
}

/* It may be another one by now that has the name. */
static struct tree_place *find_again(struct tree *t, const struct tree_identity *id)
{
	unsigned int i;

	for (i = 0; i < PLACES_MAX; i++) {
		struct tree_place *p = &t->places->items[i];

		if (p->nr_users || !p->name.len || !tree_same_identity(&p->identity, id))
			continue;
		if (open_place(t, p, p->name.text) && tree_same_identity(&p->identity, id))
			return p;
		shut(p);
	}
	return NULL;
}

struct tree_place *tree_place_take(struct tree *t, pid_t tid, enum walk_base base, int fd)
{
	struct tree_place *p = NULL;
	struct tree_identity id;
	char path[64];
	/* Without the mount, a name could be that of another way to the same directory. */
	bool keep = may_keep(t, base) && tree_place_identity(t, tid, base, fd, &id) && id.mount;

	if (keep)
		p = find_kept(t->places, &id);
	if (!p) {
		p = find_spare(t->places);
		if (!p)
			return NULL;
		shut(p);
		if (!ask(t, p, tree_base_path(path, tid, base, fd)))
			p = keep ? find_again(t, &id) : NULL;
		if (!p)
			return NULL;
		p->kept = keep;
	}
	p->age = ++t->places->age;
	p->nr_users++;
	return p;
}

void tree_place_drop(struct tree_place *p)
{
	if (p && !--p->nr_users && !p->kept)
		shut(p);
}

/* Threads. */

static bool has_name(const struct tree_places *places, const struct tree_identity *id)
{
	unsigned int i;

	for (i = 0; i < PLACES_MAX; i++) {
		if (places->items[i].name.len && tree_same_identity(&places->items[i].identity, id))
			return true;
	}
	return false;
}

/* So that it can be found again. */
static void note_place(struct tree *t, pid_t tid, enum walk_base base)
{
	struct tree_identity id;

	if (tree_place_identity(t, tid, base, -1, &id) && !has_name(t->places, &id))
		tree_place_drop(tree_place_take(t, tid, base, -1));
}

/* It is asked itself: where its parent was when it was made, that may not be any more. */
void tree_begin_thread(struct tree *t, pid_t tid, pid_t parent, bool shares_cwd)
{
	void *rights = parent ? map_get(&t->rights, &parent, sizeof(parent)) : NULL;

	if (rights)
		*map_slot(&t->rights, &tid, sizeof(tid)) = rights;
	else
		tree_renew_rights(t, tid);
	t->cwds_are_shared |= shares_cwd;
	t->had_several |= ++t->nr_alive > 1;
	*id_of(t->places, tid) = (struct tree_id){ 0 };
	if (may_keep(t, WALK_FROM_ROOT))
		note_place(t, tid, WALK_FROM_ROOT);
	if (may_keep(t, WALK_FROM_CWD))
		note_place(t, tid, WALK_FROM_CWD);
}

/* Those that share it are asked while they can be: what they have done may be learned later. */
void tree_places_move(struct tree *t, pid_t tid)
{
	struct tree_id *id = id_of(t->places, tid);

	shut_all(t->places);
	if (!t->cwds_are_shared) {
		id->has_cwd &= id->tid != tid;
		return;
	}
	for (id = t->places->ids; id < t->places->ids + IDS_MAX; id++) {
		id->has_cwd = false;
		if (id->tid && may_keep(t, WALK_FROM_CWD))
			note_place(t, id->tid, WALK_FROM_CWD);
	}
}

void tree_end_thread(struct tree *t, pid_t tid)
{
	struct tree_id *id = id_of(t->places, tid);

	tree_leave(t, tid, -1);
	t->nr_alive -= t->nr_alive > 0;
	(void)map_remove(&t->rights, &tid, sizeof(tid));
	if (id->tid == tid)
		*id = (struct tree_id){ 0 };
	shut_all(t->places);
}
