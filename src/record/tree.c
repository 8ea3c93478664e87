/* SPDX-License-Identifier: MIT */
#include "record/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fanotify.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"
#include "model/fields.h"
#include "record/capture_inside.h"
#include "record/tree_inside.h"

/* What a row means for the tree. */
enum row_use {
	USE_PATHS = 1, /* it names some */
	USE_LISTING = 2, /* it reads a directory */
	USE_MOVES_BASE = 4, /* it may change root or working directory, or what is mounted */
	USE_MOVES_NAMES = 8, /* ... where names lead through a symlink or directory */
	USE_MOVES_CWD = 16, /* ... the working directory, and nothing else */
	USE_CONTENT = 32, /* it opens, runs, cuts, moves or links: what a file holds may matter */
};

static bool is_path(const struct arg *a)
{
	return (a->kind == KIND_PATH && a->look != LOOK_TEXT) ||
	       (a->kind == KIND_SOCKADDR && a->dir & ARG_IN) || a->kind == KIND_SQES;
}

static uint8_t use_of(const struct row *row)
{
	uint8_t use = 0;
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (is_path(&row->args[i]))
			use |= USE_PATHS;
	}
	if (row_class(row) == C_DIR && row->nr_args && row->args[0].kind == KIND_FD)
		use |= USE_LISTING;
	if (row->result == RESULT_NEW_FD)
		use |= USE_CONTENT;
	switch ((int)row->id) {
	case SC_execve:
	case SC_execveat:
	case SC_truncate:
	case SC_link:
	case SC_linkat:
		use |= USE_CONTENT;
		break;
	case SC_unshare:
	case SC_setns:
		return use | USE_MOVES_BASE;
	case SC_symlink:
	case SC_symlinkat:
	case SC_rename:
	case SC_renameat:
	case SC_renameat2:
		return use | USE_MOVES_NAMES | USE_CONTENT;
	case SC_chdir:
	case SC_fchdir:
	case SC_rmdir: /* of any thread */
		return use | USE_MOVES_CWD;
	case SC_umask:
	case SC_getcwd:
		return use;
	}
	if (row_class(row) == C_CWD)
		use |= USE_MOVES_BASE;
	return use;
}

struct tree *tree_new(struct trace_feed *feed, const struct tree_options *options)
{
	struct tree *t = xcalloc(1, sizeof(*t));
	unsigned int id;

	t->feed = feed;
	t->o = *options;
	spill_init(&t->spill, options->scratch_dir,
		   options->memory_bytes ? options->memory_bytes : TREE_MEMORY_BYTES);
	t->noted_end = &t->noted;
	arena_init(&t->item);
	t->made = xcalloc(1, sizeof(*t->made) + 1);
	t->made->flags = NOTED_MISSING;
	t->unnoted = xcalloc(1, sizeof(*t->unnoted) + 1);
	t->piece = xmalloc(TREE_PIECE_BYTES);
	t->places = tree_places_new();
	t->later = options->later ? tree_later_new(options->later) : NULL;
	t->row_uses = xcalloc(ROW_ID_MAX, 1);
	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		if (row && row->sort == ROW_CALL)
			t->row_uses[id] = use_of(row);
	}
	t->creds = creds_new();
	(void)clock_gettime(CLOCK_REALTIME, &t->begin);
	tree_begin_served(t);
	return t;
}

void tree_free(struct tree *t)
{
	size_t i;

	if (!t)
		return;
	tree_later_free(t->later);
	map_release(&t->unsettled);
	map_release(&t->rights);
	tree_release_holds(t);
	creds_free(t->creds);
	blob_map_release(&t->seen);
	VEC_RELEASE(&t->devices);
	for (i = 0; i < t->removals.len; i++)
		(void)close(t->removals.items[i].fd); /* O_PATH: nothing to fail */
	VEC_RELEASE(&t->removals);
	tree_forget_moves(t);
	VEC_RELEASE(&t->moves);
	spill_release(&t->spill);
	free(t->made);
	free(t->unnoted);
	arena_release(&t->item);
	free(t->piece);
	tree_places_free(t->places);
	free(t->row_uses);
	free(t);
}

/* What is known of places and paths. */

static void forget_seen(struct tree *t)
{
	if (t->seen.nr_taken)
		blob_map_release(&t->seen);
}

/*
 * Directories that are known again by their numbers alone. When one is removed, another may get its
 * number, which the program has made then.
 */

void tree_begin_removal(struct tree *t, pid_t tid, const struct tree_object *dir)
{
	struct tree_removal r = { .tid = tid, .st = dir->st };

	if (dir->st.stx_mask & STATX_BTIME || !tree_find_dir(t, &dir->st))
		return;
	r.fd = fcntl(dir->fd, F_DUPFD_CLOEXEC, 0);
	if (r.fd >= 0)
		VEC_PUSH(&t->removals, r);
	else
		t->nr_incomplete++;
}

static void end_removal(struct tree *t, const struct tree_removal *r)
{
	struct stat now;

	if (fstat(r->fd, &now) || !now.st_nlink)
		tree_remember_made(t, &r->st);
	(void)close(r->fd); /* O_PATH: nothing to fail */
}

static void end_removals(struct tree *t, pid_t tid)
{
	size_t i, nr = 0;

	for (i = 0; i < t->removals.len; i++) {
		if (t->removals.items[i].tid == tid)
			end_removal(t, &t->removals.items[i]);
		else
			t->removals.items[nr++] = t->removals.items[i];
	}
	t->removals.len = nr;
}

/* A call that was under way has ended, and with it what it may have changed. */
void tree_leave(struct tree *t, pid_t pid, int err)
{
	void *what;

	if (t->holds.len)
		tree_settle_holds(t, pid, err);
	if (t->removals.len)
		end_removals(t, pid);
	if (!t->unsettled.nr_live)
		return;
	what = map_remove(&t->unsettled, &pid, sizeof(pid));
	if (!what)
		return;
	if (!t->unsettled.nr_live)
		tree_forget_moves(t);
	if (what == t->places) {
		t->nr_moves++;
		tree_places_move(t, pid);
		return;
	}
	t->nr_changes++;
	tree_places_forget(t->places);
	tree_forget_served(t);
	forget_seen(t);
}

bool tree_changes_names(const struct tree *t)
{
	MAP_EACH (&t->unsettled, e) {
		if (e->value != t->places)
			return true;
	}
	return false;
}

static void unsettle(struct tree *t, pid_t tid)
{
	t->nr_changes++;
	*map_slot(&t->unsettled, &tid, sizeof(tid)) = t;
	tree_places_forget(t->places);
	forget_seen(t);
}

/* Only where relative names of the thread begin may change: the keys of what was seen have that. */
static void unsettle_base(struct tree *t, pid_t tid)
{
	t->nr_moves++;
	*map_slot(&t->unsettled, &tid, sizeof(tid)) = t->places;
	tree_places_move(t, tid);
}

/* Rights. */

unsigned int tree_rights_of(struct tree *t, pid_t tid)
{
	void *known = map_get(&t->rights, &tid, sizeof(tid));

	if (!known)
		tree_renew_rights(t, tid);
	return (unsigned int)(uintptr_t)map_get(&t->rights, &tid, sizeof(tid)) - 1;
}

void tree_renew_rights(struct tree *t, pid_t tid)
{
	*map_slot(&t->rights, &tid, sizeof(tid)) =
		(void *)((uintptr_t)creds_of_thread(t->creds, tid) + 1);
}

void tree_rename_thread(struct tree *t, pid_t from, pid_t to)
{
	void *known = map_remove(&t->rights, &from, sizeof(from));

	if (known)
		*map_slot(&t->rights, &to, sizeof(to)) = known;
	tree_rename_holds(t, from, to);
}

/* Paths that were seen before: they need not be walked. Three quarters of 8 MiB of slots. */

#define SEEN_MAX ((size_t)3 << 16)

struct seen_key {
	struct tree_identity root, base;
	uint64_t how; /* the end is followed, the content is wanted; and the thread's credentials */
	char path[TREE_PATH_MAX];
};

/* False when the thread is gone, or nothing must be taken for known just now. */
static bool make_key(struct tree *t, const struct walk_request *q, struct hash128 *ret)
{
	struct seen_key key; /* not all of it is used, so not all of it is cleared */

	if (q->path_len >= sizeof(key.path) || tree_changes_names(t))
		return false;
	key.how = q->follow | q->content << 1 | (uint64_t)tree_rights_of(t, q->tid) << 2;
	key.base = (struct tree_identity){ 0 };
	if (!tree_place_identity(t, q->tid, WALK_FROM_ROOT, -1, &key.root))
		return false;
	if (q->base != WALK_FROM_ROOT && !tree_place_identity(t, q->tid, q->base, q->fd, &key.base))
		return false;
	memcpy(key.path, q->path, q->path_len);
	*ret = hash_bytes(&key, offsetof(struct seen_key, path) + q->path_len);
	return true;
}

void tree_remember_seen(struct tree *t, struct hash128 key)
{
	bool is_new;

	if (t->seen.nr_taken >= SEEN_MAX)
		forget_seen(t);
	(void)blob_map_add(&t->seen, key, &is_new);
}

unsigned int tree_walk_new(struct tree *t, const struct walk_request *q)
{
	bool has_key;
	size_t nr_held = t->holds.len;
	struct hash128 key;
	unsigned int type;

	has_key = make_key(t, q, &key);
	if (has_key && blob_map_find(&t->seen, key) && !q->anew &&
	    !(q->writes && tree_later_is_busy(t)))
		return 0;
	type = tree_walk(t, q);
	/* Where something is held, more is to be done until the call has succeeded. */
	if (has_key && t->holds.len == nr_held)
		tree_remember_seen(t, key);
	else if (has_key)
		tree_key_holds(t, nr_held, key);
	return type;
}

/* The type of the path's end when it had to be walked, else 0. */
static unsigned int touch_path(struct tree *t, const struct walk_request *q)
{
	unsigned int type;

	/* Somebody is about to change where names lead. */
	if (q->writes && t->unsettled.nr_live)
		tree_later_need_all(t);
	if (q->base == WALK_FROM_CWD && tree_walk_moves(t, q, &type))
		return type;
	return tree_walk_new(t, q);
}

/* Arguments. */

/* -1: not said. */
static int follows_by_flags(const struct arg *a, uint64_t flags)
{
	switch ((enum set_id)a->set) {
	case SET_open_flags:
		if (flags & O_NOFOLLOW || (flags & O_CREAT && flags & O_EXCL))
			return 0;
		break;
	case SET_at_flags:
	case SET_statx_flags:
	case SET_access_flags:
	case SET_handle_flags:
	case SET_exec_flags:
	case SET_open_tree_flags:
		if (flags & AT_SYMLINK_NOFOLLOW)
			return 0;
		if (flags & AT_SYMLINK_FOLLOW)
			return 1;
		break;
	default:
		break;
	}
	return -1;
}

/* The flags that an argument is or has; *ret_set: of which set they are. False: none. */
static bool flags_of(const struct arg *a, const struct value *v, const struct arg **ret_set,
		     uint64_t *ret)
{
	if (a->struct_id == STRUCT_open_how) {
		a = &struct_descs[STRUCT_open_how].fields[FIELD_OF(open_how, flags)];
		v = value_field(v, FIELD_OF(open_how, flags));
	}
	if (a->kind != KIND_FLAGS || !v || v->type != VALUE_INT)
		return false;
	*ret_set = a;
	*ret = v->u;
	return true;
}

static bool follows(const struct row *row, const struct value *args, const struct arg *path)
{
	const struct arg *set;
	unsigned int i;
	uint64_t flags;
	int said;

	for (i = 0; i < row->nr_args; i++) {
		if (!flags_of(&row->args[i], &args[i], &set, &flags))
			continue;
		said = follows_by_flags(set, flags);
		if (said >= 0)
			return said;
	}
	return path->look == LOOK_FOLLOW;
}

static bool removes_directory(const struct row *row, const struct value *args)
{
	return row->id == SC_rmdir ||
	       (row->id == SC_unlinkat && args[2].type == VALUE_INT && args[2].u & AT_REMOVEDIR);
}

/* Of a call that opens, runs, moves or links: might what the file holds change from then on? */
static bool may_write(const struct row *row, const struct value *args)
{
	const struct arg *set;
	unsigned int i;
	uint64_t flags;

	if (row->id == SC_execve || row->id == SC_execveat)
		return false;
	for (i = 0; i < row->nr_args; i++) {
		if (flags_of(&row->args[i], &args[i], &set, &flags) && set->set == SET_open_flags)
			return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
	}
	return true;
}

/* Of a call that may write: might it cut what the file holds itself? */
static bool may_cut(const struct row *row, const struct value *args)
{
	const struct arg *set;
	unsigned int i;
	uint64_t flags;

	for (i = 0; i < row->nr_args; i++) {
		if (flags_of(&row->args[i], &args[i], &set, &flags) && set->set == SET_open_flags)
			return flags & O_TRUNC;
	}
	return row->id == SC_creat || row->id == SC_truncate;
}

/* Whether the kernel will take the path in a way that is not ours (openat2). */
static bool resolves_otherwise(const struct row *row, const struct value *args)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		const struct value *resolve =
			row->args[i].struct_id == STRUCT_open_how
				? value_field(&args[i], FIELD_OF(open_how, resolve))
				: NULL;

		if (resolve && resolve->type == VALUE_INT && resolve->u)
			return true;
	}
	return false;
}

static bool path_of(const struct value *v, struct walk_request *q)
{
	if (!v || v->type != VALUE_DATA || !v->data->bytes ||
	    v->data->kept_bytes != v->data->len_bytes)
		return false;
	q->path = (const char *)v->data->bytes;
	q->path_len = (size_t)v->data->len_bytes;
	if (q->path_len && q->path[0] == '/')
		q->base = WALK_FROM_ROOT;
	return true;
}

static void start_at(struct walk_request *q, int64_t dirfd)
{
	q->base = dirfd == AT_FDCWD ? WALK_FROM_CWD : WALK_FROM_FD;
	q->fd = (int)dirfd;
}

/* The type of what is at the path's end, when it had to be walked. */
static unsigned int touch_arg(struct tree *t, pid_t tid, const struct row *row,
			      const struct value *args, unsigned int i, bool anew)
{
	const struct arg *a = &row->args[i];
	struct walk_request q = { .tid = tid, .base = WALK_FROM_CWD };

	/* What is renamed is looked at each time: is it a directory now? */
	q.removes = t->row_uses[row->id] & USE_MOVES_NAMES || removes_directory(row, args);
	q.moves = row->id == SC_chdir && t->cwds_are_shared;
	q.anew = anew || q.removes || q.moves;
	q.content = t->row_uses[row->id] & USE_CONTENT;
	q.writes = q.content && may_write(row, args);
	q.cuts = q.writes && may_cut(row, args);
	if (q.writes && resolves_otherwise(row, args))
		tree_later_need_all(t);
	if (a->kind == KIND_SOCKADDR) {
		q.follow = true;
		return path_of(value_field(&args[i], FIELD_OF(sockaddr, path)), &q)
			       ? touch_path(t, &q)
			       : 0;
	}
	if (i && row->args[i - 1].kind == KIND_DIRFD && args[i - 1].type == VALUE_INT)
		start_at(&q, args[i - 1].i);
	q.follow = follows(row, args, a);
	/* What a descriptor is of was touched when it was opened, or found (fstat is such a call). */
	if (!path_of(&args[i], &q) || (q.base == WALK_FROM_FD && !q.path_len && !q.content))
		return 0;
	return touch_path(t, &q);
}

/* A request of io_uring is a call of its own. */
static void touch_request(struct tree *t, pid_t tid, const struct value *sqe)
{
	const struct value *opcode = value_field(sqe, FIELD_OF(io_uring_sqe, opcode)),
			   *fd = value_field(sqe, FIELD_OF(io_uring_sqe, fd));
	const struct value *len = value_field(sqe, FIELD_OF(io_uring_sqe, len));
	const struct value *flags = value_field(sqe, FIELD_OF(io_uring_sqe, op_flags));
	struct walk_request q = { .tid = tid, .base = WALK_FROM_CWD };
	bool two;

	if (!opcode || !fd || !len || !flags)
		return;
	two = opcode->u == IORING_OP_RENAMEAT || opcode->u == IORING_OP_LINKAT;
	q.content = two || opcode->u == IORING_OP_OPENAT || opcode->u == IORING_OP_OPENAT2;
	/* Names that are made or removed are meant themselves. */
	q.follow = !two && opcode->u != IORING_OP_UNLINKAT && opcode->u != IORING_OP_MKDIRAT;
	if (opcode->u == IORING_OP_STATX && flags->u & AT_SYMLINK_NOFOLLOW)
		q.follow = false;
	start_at(&q, fd->i);
	if (opcode->u == IORING_OP_SETXATTR || opcode->u == IORING_OP_GETXATTR)
		start_at(&q, AT_FDCWD);
	if (opcode->u != IORING_OP_SYMLINKAT &&
	    path_of(value_field(sqe, FIELD_OF(io_uring_sqe, path)), &q))
		(void)touch_path(t, &q);
	q.follow = false;
	start_at(&q, two ? (int32_t)len->u : fd->i);
	if (path_of(value_field(sqe, FIELD_OF(io_uring_sqe, path2)), &q))
		(void)touch_path(t, &q);
	if (opcode->u == IORING_OP_RENAMEAT || opcode->u == IORING_OP_SYMLINKAT)
		unsettle(t, tid);
	else if (opcode->u == IORING_OP_UNLINKAT && flags->u & AT_REMOVEDIR)
		unsettle_base(t, tid);
	start_at(&q, AT_FDCWD);
	if (value_field(sqe, FIELD_OF(io_uring_sqe, sockaddr)) &&
	    path_of(value_field(value_field(sqe, FIELD_OF(io_uring_sqe, sockaddr)),
				FIELD_OF(sockaddr, path)),
		    &q))
		(void)touch_path(t, &q);
}

/* Of a symlink it is one too, which leads to what no name led to before. */
static bool makes_link(const struct row *row)
{
	return row->id == SC_link || row->id == SC_linkat;
}

static void touch_paths(struct tree *t, pid_t tid, const struct row *row, const struct value *args)
{
	bool moves = t->row_uses[row->id] & USE_MOVES_NAMES, moved = false;
	unsigned int i, type;
	uint32_t k;

	for (i = 0; i < row->nr_args && !t->r; i++) {
		if (!is_path(&row->args[i]))
			continue;
		if (row->args[i].kind == KIND_SQES) {
			for (k = 0; args[i].type == VALUE_LIST && k < args[i].count; k++)
				touch_request(t, tid, &args[i].items[k]);
			continue;
		}
		type = touch_arg(t, tid, row, args, i, false);
		moved |= type == S_IFDIR || type == S_IFLNK;
	}
	if (moves ? moved || row->id == SC_symlink || row->id == SC_symlinkat
		  : moved && makes_link(row))
		unsettle(t, tid);
}

static void touch_listing(struct tree *t, pid_t tid, const struct value *args)
{
	struct tree_identity id;

	if (args[0].type != VALUE_INT || args[0].i < 0 ||
	    !tree_place_identity(t, tid, WALK_FROM_FD, (int)args[0].i, &id))
		return;
	id.mount = tree_rights_of(t, tid); /* and by whatever way it was reached */
	if (tree_table_add(t, &t->listed, hash_bytes(&id, sizeof(id))))
		tree_list(t, tid, (int)args[0].i);
	t->has_listing = true;
	t->listing_dev = id.dev;
	t->listing_ino = id.ino;
}

/* What was open before there were calls to be seen. */

/* The flags of an open file; 0 when they are not told. */
static unsigned int flags_of_fd(pid_t pid, int fd)
{
	char path[64], text[256];
	unsigned int flags = 0;
	const char *line;
	ssize_t n;
	int info;

	(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	n = info < 0 ? -1 : read(info, text, sizeof(text) - 1);
	if (info >= 0)
		(void)close(info); /* only read from */
	text[n < 0 ? 0 : n] = 0;
	line = strstr(text, "flags:");
	if (!line || sscanf(line, "flags: %o", &flags) != 1)
		return 0;
	return flags;
}

int tree_touch_descriptors(struct tree *t, pid_t pid, bool before_exec, uint64_t now_ns)
{
	struct walk_request q = {
		.tid = pid, .base = WALK_FROM_FD, .path = "", .content = true, .writes = true
	};
	struct dirent *e;
	char path[64];
	DIR *d;

	t->now_ns = now_ns;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	tree_leave(t, pid, -1);
	d = opendir(path);
	while (d && !t->r && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		q.fd = (int)strtol(e->d_name, NULL, 10);
		if (!before_exec || !(flags_of_fd(pid, q.fd) & O_CLOEXEC))
			(void)tree_walk(t, &q);
	}
	if (d)
		(void)closedir(d); /* only read from */
	tree_leave(t, pid, 0); /* it has them open */
	return t->r;
}

int tree_touch_opened(struct tree *t, pid_t tid, int fd, bool is_cut, uint64_t now_ns)
{
	struct walk_request q = { .tid = tid,
				  .base = WALK_FROM_FD,
				  .fd = fd,
				  .path = "",
				  .content = true,
				  .writes = true };

	t->now_ns = now_ns;
	t->nr_incomplete += is_cut;
	(void)tree_walk(t, &q);
	tree_settle_holds(t, tid, 0);
	return t->r;
}

/*
 * Calls that open files without naming them, and those for which it makes a difference whether, or
 * when, we have a file open: what is left to be read is read before them.
 */
static bool needs_all(const struct row *row, uint8_t use)
{
	switch ((int)row->id) {
	case SC_open_by_handle_at:
	case SC_fcntl_setlease:
	case SC_inotify_add_watch:
	case SC_fanotify_mark:
	case SC_utime: /* by which else a file seems to have changed while it was read */
	case SC_utimes:
	case SC_futimesat:
	case SC_utimensat:
		return true;
	}
	return use & USE_MOVES_BASE;
}

/* Where the thread leaves from; where to is known by the walk, if there is one. */
static void begin_move(struct tree *t, pid_t tid, const struct row *row, const struct value *args)
{
	if (!t->cwds_are_shared || (row->id != SC_chdir && row->id != SC_fchdir))
		return;
	tree_add_move_to(t, tid, WALK_FROM_CWD, -1);
	if (row->id == SC_fchdir && args[0].type == VALUE_INT)
		tree_add_move_to(t, tid, WALK_FROM_FD, (int)args[0].i);
}

bool tree_is_moving(const struct tree *t, pid_t tid)
{
	return t->moves.len && map_get(&t->unsettled, &tid, sizeof(tid)) == t->places;
}

int tree_touch_again(struct tree *t, pid_t tid, const struct row *row, const struct value *args)
{
	t->is_made = true;
	if (row->id < ROW_ID_MAX && t->row_uses[row->id] & USE_PATHS)
		touch_paths(t, tid, row, args);
	t->is_made = false;
	return t->r;
}

bool tree_moves_base(const struct tree *t, const struct row *row)
{
	return row->id < ROW_ID_MAX && t->row_uses[row->id] & USE_MOVES_BASE;
}

void tree_note_guard(struct tree *t, uint64_t events)
{
	const uint64_t pre_access = 0x100000; /* not in all headers yet */

	if (!(events & (FAN_OPEN_PERM | FAN_ACCESS_PERM | FAN_OPEN_EXEC_PERM | pre_access)))
		return;
	tree_read_at_once(t);
	t->is_guarded = true;
}

static int touch(struct tree *t, pid_t pid, const struct row *row, const struct value *args,
		 uint64_t now_ns)
{
	uint8_t use = row->id < ROW_ID_MAX ? t->row_uses[row->id] : 0;

	t->has_listing = false;
	t->now_ns = now_ns;
	spill_relax(&t->spill);
	tree_later_collect(t);
	if (needs_all(row, use))
		tree_later_need_all(t);
	/* Its requests are made when nobody looks. */
	if (row_class(row) == C_URING)
		tree_read_at_once(t);
	if (!use || t->r)
		return t->r;
	if (use & USE_PATHS)
		touch_paths(t, pid, row, args);
	if (use & USE_LISTING)
		touch_listing(t, pid, args);
	if (use & USE_MOVES_CWD || removes_directory(row, args))
		unsettle_base(t, pid);
	begin_move(t, pid, row, args);
	if (use & USE_MOVES_BASE) {
		t->roots_differ = true;
		unsettle(t, pid);
	}
	/* The new name may be one of a symlink. */
	if (makes_link(row))
		t->nr_changes++;
	return t->r;
}

int tree_touch(struct tree *t, pid_t pid, const struct row *row, const struct value *args,
	       uint64_t now_ns)
{
	tree_leave(t, pid, -1); /* the end of its last call was not seen */
	return touch(t, pid, row, args, now_ns);
}

int tree_touch_made(struct tree *t, pid_t pid, const struct row *row, const struct value *args,
		    uint64_t now_ns)
{
	t->is_made = true;
	(void)!touch(t, pid, row, args, now_ns); /* it is t->r */
	t->is_made = false;
	return t->r;
}

bool tree_was_listed(const struct tree *t, uint64_t *ret_dev, uint64_t *ret_ino)
{
	*ret_dev = t->listing_dev;
	*ret_ino = t->listing_ino;
	return t->has_listing;
}

struct tree_changes tree_changes(const struct tree *t)
{
	return (struct tree_changes){ t->nr_changes, t->nr_moves, t->roots_differ };
}

static bool are_plain(struct tree *t, pid_t pid, const struct row *row, const struct value *args)
{
	unsigned int i, type;

	t->met_later = t->met_special_link = t->met_unread = t->met_denied = false;
	for (i = 0; i < row->nr_args && !t->r && !t->unsettled.nr_live; i++) {
		if (row->args[i].kind != KIND_PATH)
			continue;
		type = touch_arg(t, pid, row, args, i, true);
		if (type && type != S_IFREG && type != S_IFCHR)
			return false;
	}
	return !t->r && !t->unsettled.nr_live && !t->met_later && !t->met_special_link &&
	       !t->met_denied;
}

enum tree_plain tree_is_plain(struct tree *t, pid_t pid, const struct row *row,
			      const struct value *args)
{
	if (!are_plain(t, pid, row, args))
		return TREE_NOT_PLAIN;
	if (!t->met_unread)
		return TREE_PLAIN;
	/* If the call fails the file stays, of whose content nothing is known; and what is only read may be read later. */
	return t->row_uses[row->id] & USE_CONTENT && may_write(row, args) ? TREE_PLAIN_IF_KEPT
									  : TREE_NOT_PLAIN;
}
