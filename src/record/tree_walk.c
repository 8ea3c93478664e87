/* SPDX-License-Identifier: MIT */
/*
 * Path resolution as the kernel does it for the program: from its root, its
 * working directory or one of its descriptors, a component at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "record/tree_inside.h"

/* The root of /proc; `self` there is not us but the program. */
#define PROC_ROOT_INO 1

struct walk {
	struct tree *t;
	pid_t tid;
	struct tree_place *root, *base; /* base: NULL when the path is absolute */

	/* Where we are: always a directory. */
	struct tree_object cur;
	bool borrowed; /* its descriptor is a place's */
	struct tree_name now, first; /* its name now, and at the start */
	bool made; /* by the program: was not there at the start */

	char rest[2 * TREE_PATH_MAX]; /* of the path */
	size_t at, len;
	unsigned int nr_links;
	bool follow, writes; /* as was asked for */
	bool lost; /* where the kernel will come to is not known */
	bool denied; /* its thread's credentials could not be assumed */
	enum tree_when content;
	unsigned int end_type;
	unsigned int caller; /* the credentials of who asked for it */
};

/* Names. */

void name_set(struct tree_name *n, const char *text, size_t len)
{
	n->cut = len >= sizeof(n->text);
	n->len = n->cut ? 0 : len;
	memcpy(n->text, text, n->len);
	n->text[n->len] = 0;
}

void name_add(struct tree_name *n, const char *part, size_t len)
{
	size_t slash = n->len != 1 || n->text[0] != '/';

	if (n->len + slash + len >= sizeof(n->text)) {
		n->cut = true;
		return;
	}
	if (slash)
		n->text[n->len++] = '/';
	memcpy(n->text + n->len, part, len);
	n->len += len;
	n->text[n->len] = 0;
}

void name_drop_last(struct tree_name *n)
{
	while (n->len > 1 && n->text[n->len - 1] != '/')
		n->len--;
	if (n->len > 1)
		n->len--;
	n->text[n->len] = 0;
}

/* Where we are. */

static void leave(struct walk *w)
{
	if (w->cur.fd >= 0 && !w->borrowed)
		(void)close(w->cur.fd); /* O_PATH: nothing to fail */
	w->cur.fd = -1;
}

static void stand_in(struct walk *w, const struct tree_object *dir, bool borrowed)
{
	leave(w);
	w->cur = *dir;
	w->cur.name = NULL;
	w->cur.target = NULL;
	w->borrowed = borrowed;
}

/* The name at the start of a directory that was not reached from its parent. */
static void find_first_name(struct walk *w)
{
	struct noted *n = tree_find_dir(w->t, &w->cur.st);

	w->made = n == w->t->made;
	if (n && !w->made) {
		name_set(&w->first, n->path, strlen(n->path));
		return;
	}
	w->first = w->now;
	if (w->made)
		return;
	n = tree_find(w->t, &w->now);
	/* It was not there, or it has taken the place of what was: see note_child(). */
	w->made = n && (n->flags & NOTED_MISSING ||
			((n->flags & (NOTED_INITIAL | NOTED_UNREADABLE)) == NOTED_INITIAL &&
			 w->cur.st.stx_mask & STATX_BTIME));
}

/* It was made since the recording began. */
static bool is_younger(const struct tree *t, const struct statx *st)
{
	return st->stx_mask & STATX_BTIME && (st->stx_btime.tv_sec > t->begin.tv_sec ||
					      (st->stx_btime.tv_sec == t->begin.tv_sec &&
					       (long)st->stx_btime.tv_nsec > t->begin.tv_nsec));
}

/* Notes what is under a name of the start, as far as it must be; true: the program made it. */
static bool note_named(struct walk *w, struct tree_object *o, struct tree_name *first)
{
	struct noted *n = tree_get(w->t, first);
	bool dir = S_ISDIR(o->st.stx_mode);

	if (n->flags & NOTED_MISSING)
		return true;
	o->name = first;
	if (n->flags & NOTED_UNREADABLE) {
		/* Nobody could see so far what was there. */
		n->flags &= (uint16_t) ~(NOTED_UNREADABLE | NOTED_INITIAL);
		if (is_younger(w->t, &o->st)) {
			n->flags |= NOTED_MISSING;
			return true;
		}
	}
	if (n->flags & NOTED_INITIAL) {
		/* A file that has taken the place of another is none of the start's. */
		if (tree_is_noted(n, o))
			tree_note_content(w->t, o, w->content);
		/* Another directory has taken the place of the one that was there. */
		return dir && o->st.stx_mask & STATX_BTIME;
	}
	n->flags |= NOTED_INITIAL;
	tree_note(w->t, o, w->content);
	tree_remember_device(w->t, &o->st, n);
	if (dir)
		tree_remember_dir(w->t, &o->st, n);
	return false;
}

/*
 * Notes a directory or anything else in the current directory, as far as it
 * must be, and says under which name and whether the program made it.
 */
static void note_child(struct walk *w, struct tree_object *o, struct tree_name *first, bool *made)
{
	bool dir = S_ISDIR(o->st.stx_mode);
	struct noted *n = dir ? tree_find_dir(w->t, &o->st) : NULL;

	if (w->writes && S_ISREG(o->st.stx_mode))
		tree_later_need(w->t, &o->st);
	w->t->met_later |= S_ISREG(o->st.stx_mode) && tree_later_has(w->t, &o->st);
	*made = n == w->t->made;
	if (n) {
		if (!*made)
			name_set(first, n->path, strlen(n->path));
		return;
	}
	*made = w->made || note_named(w, o, first);
	if (*made && dir)
		tree_remember_made(w->t, &o->st);
	w->t->met_unread |= !*made && tree_wants_content(w->t, o);
}

static void stand_in_root(struct walk *w)
{
	struct tree_name first = w->root->name;
	struct noted *n = tree_get(w->t, &first);
	struct tree_object o = w->root->o, now;
	bool made;

	/* What is noted is how it is now. */
	if (!(n->flags & NOTED_INITIAL) && tree_ask(w->t, o.fd, &now))
		o = now;
	n->flags |= NOTED_TOUCHED;
	n->seen_by |= UINT64_C(1) << creds_current(w->t->creds);
	stand_in(w, &o, true);
	w->made = false;
	note_child(w, &w->cur, &first, &made);
	w->now = w->root->name;
	w->first = first;
	w->made = made;
}

static void go_up(struct walk *w)
{
	struct tree_object o;
	int fd;

	if (tree_same_object(&w->cur.st, &w->root->o.st) || w->now.len <= 1)
		return;
	fd = openat(w->cur.fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || !tree_ask(w->t, fd, &o)) {
		if (fd >= 0)
			(void)close(fd); /* O_PATH: nothing to fail */
		w->lost = true;
		return;
	}
	stand_in(w, &o, false);
	name_drop_last(&w->now);
	find_first_name(w);
}

/* Components. */

/* What links of /proc say that are no names: pipe:[123], anon_inode:inotify. */
static bool is_no_name(const char *text, size_t len)
{
	return text[0] != '/' &&
	       (memmem(text, len, ":[", 2) || (len > 11 && !memcmp(text, "anon_inode:", 11)));
}

static pid_t process_of(pid_t tid)
{
	char path[64], text[1024];
	const char *line;
	int fd, pid = tid;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)close(fd); /* only read from */
	text[n < 0 ? 0 : n] = 0;
	line = strstr(text, "\nTgid:");
	if (line && sscanf(line, "\nTgid: %d", &pid) != 1)
		pid = tid;
	return pid;
}

/* The text of a symlink as the program would see it. */
static const char *link_text(struct walk *w, const struct tree_object *o, const char *name,
			     size_t *ret_len)
{
	bool in_proc_root = w->cur.special && w->cur.st.stx_ino == PROC_ROOT_INO;
	char *text;

	if (in_proc_root && !strcmp(name, "self")) {
		text = arena_alloc(&w->t->item, 64);
		*ret_len = (size_t)snprintf(text, 64, "%d", process_of(w->tid));
		return text;
	}
	if (in_proc_root && !strcmp(name, "thread-self")) {
		text = arena_alloc(&w->t->item, 64);
		*ret_len = (size_t)snprintf(text, 64, "%d/task/%d", process_of(w->tid), w->tid);
		return text;
	}
	return tree_read_link(w->t, o->fd, ret_len);
}

/* Puts the target of a symlink before the rest of the path. False when the walk ends here. */
static bool follow_link(struct walk *w, const struct tree_object *o)
{
	size_t rest = w->len - w->at;

	/* The kernel goes to the file itself, whatever the text says: only relative ones are meant as such. */
	w->lost |= o->special && (!o->target || o->target[0] == '/');
	w->t->met_special_link |= o->special;
	if (++w->nr_links > TREE_LINKS_MAX || !o->target ||
	    o->target_len + 1 + rest >= sizeof(w->rest) ||
	    (o->special && is_no_name(o->target, o->target_len))) {
		w->lost = true;
		return false;
	}
	memmove(w->rest + o->target_len + 1, w->rest + w->at, rest);
	memcpy(w->rest, o->target, o->target_len);
	w->rest[o->target_len] = '/';
	/* A slash at the very end would ask for a directory. */
	w->len = o->target_len + (rest ? 1 + rest : 0);
	w->at = 0;
	if (o->target[0] == '/')
		stand_in_root(w);
	return true;
}

static void touch_absent(struct walk *w, const struct tree_name *first, int why)
{
	struct noted *n;

	w->t->met_denied |= why == EACCES || why == EPERM;
	if (why != ENOENT && why != EACCES && why != EPERM) {
		/* ENOTDIR, ENAMETOOLONG, ELOOP: as the program will find itself. */
		if (why == EMFILE || why == ENFILE || why == ENOMEM || why == EIO)
			w->t->nr_incomplete++;
		return;
	}
	if (w->made)
		return;
	n = tree_get(w->t, first);
	/* Removed by somebody else after it was listed: it was there. */
	if (n->flags & (NOTED_INITIAL | NOTED_NAME | NOTED_MISSING))
		return;
	if (why == ENOENT) {
		n->flags |= NOTED_MISSING;
		tree_note_missing(w->t, first);
	} else {
		n->flags |= NOTED_INITIAL | NOTED_UNREADABLE;
		tree_note_unreadable(w->t, first);
	}
}

/* Takes one component. False when the walk is over. */
static bool step(struct walk *w, const char *name, size_t len, bool last)
{
	struct tree_name now = w->now, first = w->first;
	struct tree_object o;
	struct noted *n;
	bool made, go_on;
	int fd;

	w->end_type = 0;
	name_add(&now, name, len);
	name_add(&first, name, len);
	if (now.cut || first.cut) {
		w->t->nr_incomplete++;
		w->lost = true;
		return false;
	}
	n = tree_get(w->t, &now);
	n->flags |= NOTED_TOUCHED | (w->cur.special ? NOTED_SPECIAL : 0);
	fd = openat(w->cur.fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 || errno == ENOENT)
		n->seen_by |= UINT64_C(1) << creds_current(w->t->creds);
	if (fd < 0 || !tree_ask(w->t, fd, &o)) {
		w->lost |= errno != ENOENT;
		touch_absent(w, &first, errno);
		if (fd >= 0)
			(void)close(fd); /* O_PATH: nothing to fail */
		return false;
	}
	n->flags |= o.special ? NOTED_SPECIAL : 0;
	if (S_ISLNK(o.st.stx_mode)) {
		o.target = link_text(w, &o, name, &o.target_len);
		/* Of /proc: which of the two it leads to nobody can tell. */
		w->t->nr_incomplete += o.special && w->t->moves.len && !strcmp(name, "cwd");
	}
	if (S_ISLNK(o.st.stx_mode) && o.special && !o.target) {
		(void)close(fd); /* what it was a link to is gone, and the link with it */
		return false;
	}
	note_child(w, &o, &first, &made);
	w->end_type = o.st.stx_mode & S_IFMT;
	if (S_ISDIR(o.st.stx_mode)) {
		stand_in(w, &o, false);
		w->now = now;
		w->first = first;
		w->made = made;
		return true;
	}
	go_on = S_ISLNK(o.st.stx_mode) && (!last || w->follow) && follow_link(w, &o);
	(void)close(fd); /* O_PATH: nothing to fail */
	return go_on;
}

/* The next component of the rest, in name; its length, 0 at the end, -1 when it is too long. */
static int next_component(struct walk *w, char name[static NAME_MAX + 1], bool *ret_last)
{
	size_t len = 0, from;

	while (w->at < w->len && w->rest[w->at] == '/')
		w->at++;
	from = w->at;
	while (w->at < w->len && w->rest[w->at] != '/')
		w->at++;
	len = w->at - from;
	if (len > NAME_MAX)
		return -1;
	memcpy(name, w->rest + from, len);
	name[len] = 0;
	/* A slash behind the last one asks for what it leads to. */
	*ret_last = w->at == w->len;
	return (int)len;
}

/*
 * How far the rest of the path leads through directories that were noted under
 * the names that it uses: the name of the last of them, and where the path goes
 * on. Returns how many there are.
 */
static unsigned int known_part(struct walk *w, struct tree_name *ret, size_t *ret_at)
{
	size_t at = w->at;
	unsigned int nr = 0;
	char name[NAME_MAX + 1];
	const struct noted *n;
	bool last;
	int len;

	*ret = w->now;
	while ((len = next_component(w, name, &last)) > 0) {
		if (strcmp(name, ".") != 0) {
			size_t before = ret->len;

			name_add(ret, name, (size_t)len);
			n = strcmp(name, "..") != 0 && !ret->cut ? tree_find(w->t, ret) : NULL;
			if (!n || !(n->flags & NOTED_DIR) || !(n->flags & NOTED_TOUCHED)) {
				ret->len = before;
				ret->text[before] = 0;
				break;
			}
			nr++;
		}
		*ret_at = w->at;
	}
	w->at = at;
	return nr;
}

/*
 * Goes through known directories at once instead of one by one. It is no guess:
 * the kernel meets no symlink, and the directory at the end is the one that was
 * noted under this name.
 */
static void jump(struct walk *w)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS };
	struct tree_name name;
	struct tree_object o;
	size_t at = 0;
	int fd;

	/* What is mounted now on what was noted must not be looked through: see tree_served.c. */
	if (w->t->roots_differ || w->made || w->cur.special || w->t->no_openat2 ||
	    w->now.len != w->first.len || memcmp(w->now.text, w->first.text, w->now.len) != 0 ||
	    known_part(w, &name, &at) < 2)
		return;
	fd = (int)syscall(SYS_openat2, w->cur.fd, name.text + w->now.len + (w->now.len > 1), &how,
			  sizeof(how));
	if (fd < 0) {
		w->t->no_openat2 = errno == ENOSYS || errno == EPERM;
		return;
	}
	if (!tree_ask(w->t, fd, &o) || tree_find_dir(w->t, &o.st) != tree_find(w->t, &name)) {
		(void)close(fd); /* O_PATH: nothing to fail */
		return;
	}
	stand_in(w, &o, false);
	w->now = w->first = name;
	w->at = at;
	w->end_type = S_IFDIR;
}

static void run(struct walk *w)
{
	char name[NAME_MAX + 1];
	bool last, go_on = true;
	int len;

	while (go_on && !w->t->r) {
		/* At the start, and behind a symlink. */
		if (!w->at)
			jump(w);
		len = next_component(w, name, &last);
		if (len <= 0)
			break;
		w->end_type = S_IFDIR;
		if (!strcmp(name, ".."))
			go_up(w);
		else if (strcmp(name, ".") != 0)
			go_on = step(w, name, (size_t)len, last);
		/* It ends before its end. */
		if (!go_on && w->at < w->len)
			w->end_type = 0;
		arena_reset(&w->t->item);
	}
}

/* Beginnings. */

/* The name of a base without that of the program's root; NULL when it lies outside. */
static const char *inside_root(const struct walk *w)
{
	const struct tree_name *root = &w->root->name, *base = &w->base->name;

	if (root->len == 1)
		return base->text;
	if (!strncmp(base->text, root->text, root->len) &&
	    (base->text[root->len] == '/' || !base->text[root->len]))
		return base->text + root->len;
	return NULL;
}

/* Describes a directory that the thread can name, although no path leads there for it. False: that was done before. */
static bool note_held_directory(struct walk *w, struct tree_object *o, const struct tree_name *name)
{
	struct noted *n = tree_get(w->t, name);

	if (n->flags & NOTED_MISSING ||
	    (n->flags & NOTED_INITIAL && !(n->flags & NOTED_UNREADABLE)) ||
	    is_younger(w->t, &o->st))
		return false;
	n->flags &= (uint16_t)~NOTED_UNREADABLE;
	n->flags |= NOTED_INITIAL | NOTED_TOUCHED;
	o->name = name;
	tree_note(w->t, o, TREE_NOT);
	tree_remember_device(w->t, &o->st, n);
	tree_remember_dir(w->t, &o->st, n);
	return true;
}

/*
 * A thread may be in a directory that it could not come to: one above it is closed to the thread. It can
 * ask what "." is all the same, and "..", as far as that leads.
 */
static void note_upwards(struct walk *w)
{
	struct tree_name name = w->now;
	struct tree_object o = w->cur;
	int fd = -1, up;

	while (note_held_directory(w, &o, &name) && name.len > 1) {
		up = openat(o.fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			(void)close(fd); /* O_PATH: nothing to fail */
		fd = up;
		name_drop_last(&name);
		if (fd < 0 || !tree_ask(w->t, fd, &o))
			break;
	}
	if (fd >= 0)
		(void)close(fd); /* likewise */
}

/* Stands in the working directory or the directory of a descriptor; false when there is none. */
static bool stand_in_base(struct walk *w)
{
	const struct tree_object *o = &w->base->o;
	const struct noted *n = tree_find(w->t, &w->base->name);
	const char *path = inside_root(w);

	/* All that leads to it counts as touched too. */
	if (path && !(n && n->flags & NOTED_TOUCHED && !w->content))
		(void)tree_walk(w->t, &(struct walk_request){
					      .tid = w->tid,
					      .base = WALK_FROM_ROOT,
					      .path = path,
					      .path_len = strlen(path),
					      .content = w->content && !S_ISDIR(o->st.stx_mode),
					      .writes = w->writes,
				      });
	w->end_type = o->st.stx_mode & S_IFMT;
	if (!S_ISDIR(o->st.stx_mode))
		return false;
	stand_in(w, o, true);
	w->now = w->base->name;
	find_first_name(w);
	if (path && !w->made)
		note_upwards(w);
	return true;
}

static bool begin(struct walk *w, struct tree *t, const struct walk_request *q)
{
	w->t = t;
	w->tid = t->tid = q->tid;
	w->cur.fd = -1;
	w->base = NULL;
	w->lost = w->denied = false;
	w->at = w->nr_links = w->end_type = 0;
	w->len = q->path_len;
	w->follow = q->follow;
	w->writes = q->writes;
	w->content = !q->content ? TREE_NOT
		     : q->cuts	 ? TREE_BEFORE
		     : q->writes ? TREE_NOW
				 : TREE_SOON;
	w->caller = creds_current(t->creds);
	/* What /proc tells of a thread it tells us, not the thread. */
	creds_return(t->creds, CREDS_OWN);
	w->root = tree_place_take(t, q->tid, WALK_FROM_ROOT, -1);
	if (!w->root || q->path_len >= sizeof(w->rest))
		return false;
	if (q->base != WALK_FROM_ROOT)
		w->base = tree_place_take(t, q->tid, q->base, q->fd);
	w->denied = !creds_assume(t->creds, tree_rights_of(t, q->tid));
	if (w->denied)
		return false;
	memcpy(w->rest, q->path, q->path_len);
	if (q->base == WALK_FROM_ROOT) {
		stand_in_root(w);
		return true;
	}
	return w->base && w->base->o.st.stx_nlink && stand_in_base(w);
}

static void end(struct walk *w)
{
	leave(w);
	creds_return(w->t->creds, w->caller);
	tree_place_drop(w->base);
	tree_place_drop(w->root);
	arena_reset(&w->t->item);
}

/* One that has ended may be listed still. */
bool tree_thread_is_gone(pid_t tid)
{
	char path[64], text[1];

	return readlink(tree_base_path(path, tid, WALK_FROM_ROOT, -1), text, sizeof(text)) < 0;
}

unsigned int tree_walk(struct tree *t, const struct walk_request *q)
{
	struct walk w;

	if (begin(&w, t, q)) {
		run(&w);
		if (q->removes && w.end_type == S_IFDIR)
			tree_begin_removal(t, q->tid, &w.cur);
		if (q->moves && w.end_type == S_IFDIR)
			tree_add_move(t, q->tid, w.cur.fd);
	} else {
		w.lost = true;
		/* One that was killed at the beginning of its call does not make it any more. */
		t->nr_incomplete += w.denied || (t->is_made && tree_thread_is_gone(q->tid));
	}
	if (w.lost && q->writes)
		tree_later_need_all(t);
	end(&w);
	return w.end_type;
}

void tree_list(struct tree *t, pid_t tid, int fd)
{
	struct walk_request q = { .tid = tid, .base = WALK_FROM_FD, .fd = fd, .path = "" };
	struct walk w;

	if (begin(&w, t, &q) && !w.made && !w.cur.special) {
		w.cur.name = &w.first;
		tree_note_listing(t, w.cur.fd, &w.cur);
	}
	end(&w);
}
