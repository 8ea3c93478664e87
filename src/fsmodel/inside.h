/* SPDX-License-Identifier: MIT */
/*
 * What the files of fsmodel/ share. Two halves:
 *
 *   names   tree.c inode.c entry.c lookup.c calls_name.c calls_meta.c res_name.c
 *           inodes, entries, look-ups, the calls that make, move, remove and
 *           describe names; initial tree, inference, forgetting
 *   tables  model.c process.c fd.c stream.c map.c aio.c lock.c calls_*.c
 *           the step itself, processes, descriptor tables, open files, offsets,
 *           data, pipes, sockets, maps, asynchronous requests, locks
 *
 * A call has a row of two functions (calls.c, by the column `model` of the
 * table): ask() says what the kernel would answer and keeps what it found in
 * struct call; apply() then changes the state, and is called only when the
 * answer was success. Between them stands, for a contradiction, mend().
 */
#ifndef FSMODEL_INSIDE_H
#define FSMODEL_INSIDE_H

#include <sys/stat.h>

#include "base/arena.h"
#include "base/map.h"
#include "fsmodel/fsmodel.h"

struct entry;
struct open_file;
struct stream;
struct lock_table;
struct process;
struct thread;

/* names */

struct inode {
	struct res res; /* RES_FILE */
	uint32_t type; /* S_IFREG ...; 0: something exists, of unknown type (inferred) */
	uint32_t mode, uid, gid, nlink; /* mode: permission bits */
	uint64_t size;
	uint64_t dev, ino; /* as the recorder saw them; ino 0: not known */
	uint64_t rdev;
	uint32_t refs; /* entries that lead here, open files, handles, maps */
	bool size_known; /* else size is a lower bound */
	bool initial; /* existed before the trace */
	bool inferred; /* nobody said so: an event needs it */
	bool special; /* of /proc, /sys or a device: contents follow no rules */
	bool gone; /* a directory that was removed: nothing can be made in it */
	/* Directories. */
	struct inode *parent;
	struct entry *own; /* the entry that leads to this directory; NULL for roots */
	struct entry *children; /* present and absent ones that are remembered */
	uint32_t nr_present;
	bool complete; /* a name that is not remembered is not there */
	/* Symlinks. */
	char *target;
	size_t target_len;
	/* All names of what is no directory. */
	struct entry *names;
	/* Named pipes; locks of anything. */
	struct stream *fifo;
	struct lock_table *locks;
	struct map *xattrs; /* name -> length in bytes + 1; NULL: none known */
	bool xattrs_known;
	/* The initial state, for fsmodel_initial_tree() of inferred trees. */
	uint64_t first_size;
};

struct entry {
	struct res res; /* RES_NAME */
	struct inode *dir;
	struct inode *target; /* NULL: absent */
	struct entry *next_child, *prev_child; /* of dir */
	struct entry *next_name; /* of target, when it is no directory */
	struct entry *newer, *older; /* absent ones, by last touch */
	struct entry *hash_next;
	uint64_t hash;
	bool mount; /* another file system is mounted here */
	uint16_t name_len;
	char name[];
};

/* Found by a look-up. */
struct found {
	int err; /* 0, or the errno that the kernel would give */
	struct inode *inode; /* NULL when the last component is absent */
	struct inode
		*dir; /* of the last component; NULL when there is none (/, ., AT_EMPTY_PATH) */
	struct entry *entry; /* of the last component; made (absent) if it was not remembered */
	bool slash; /* the path ended with one */
	bool dots; /* the last component was . or .. */
	struct res *through_fd; /* RES_FD: by AT_EMPTY_PATH or a magic link of /proc */
	struct open_file *open; /* likewise: what it is open on, also when that has no name */
};

enum look_flag {
	LOOK_AT_FOLLOW = 1, /* a symlink at the end is followed */
	LOOK_AT_EMPTY = 2, /* an empty path means the descriptor itself */
	LOOK_AT_CREATE = 4, /* the last component may be absent: found.err is then 0 */
	LOOK_AT_DIRECTORY = 8, /* ENOTDIR for anything else */
};

struct call;

/*
 * Walks a path as the kernel would: from the root, the cwd or the descriptor
 * dirfd. Touches every entry on the way. `resolve` are the RESOLVE_* bits of
 * openat2. Where the tree is not known, a name that nobody has touched is taken
 * to be there or not as the event's outcome needs it.
 */
void look_up(struct call *c, int64_t dirfd, const struct value *path, unsigned int flags,
	     uint64_t resolve, struct found *ret);

struct inode *inode_new(struct fsmodel *m, uint32_t type, uint32_t mode);
void inode_ref(struct inode *i);
void inode_unref(struct fsmodel *m, struct inode *i);
/* Touches the file, and its size, metadata ...; [from, to) for READ and WRITE. */
void touch_add(struct call *c, struct res *res, uint32_t how, uint64_t from, uint64_t to);
static inline void touch_use(struct call *c, struct res *res, uint32_t how)
{
	touch_add(c, res, how | TOUCH_USE, 0, 0);
}

/* The entry of a name in a directory, made (absent) when it is not remembered. */
struct entry *entry_of(struct fsmodel *m, struct inode *dir, const char *name, size_t len);
/* Binds and unbinds; touches the entry (CREATE, DELETE) and the directory (ENTRY). */
void entry_bind(struct call *c, struct entry *e, struct inode *target);
void entry_unbind(struct call *c, struct entry *e);
/* What O_CREAT, mkdir, mknod, symlink make: checks of the directory (ask), then the making (apply). */
int may_make(struct call *c, const struct found *f); /* 0 or errno */
struct inode *make_in(struct call *c, const struct found *f, uint32_t type, uint32_t mode);
int may_access(const struct call *c, const struct inode *i,
	       unsigned int wanted); /* R_OK|W_OK|X_OK; 0 or EACCES */

/* The model's half of fsmodel_add_tree() and of the repairs. */
void tree_init(struct fsmodel *m);
void tree_release(struct fsmodel *m);
/* Makes true that the path leads to something of this type (0: any); false when no repair is known. */
bool mend_exists(struct call *c, int64_t dirfd, const struct value *path, unsigned int flags,
		 uint32_t type);
/* The recorder saw this identity under an open descriptor or a name. */
void inode_identify(struct fsmodel *m, struct inode *i, const struct value *file_id);

/* tables */

struct open_file {
	struct res res; /* RES_OPEN */
	struct inode *
		inode; /* NULL: a pipe, socket, eventfd or other object without inode in the tree */
	uint32_t refs;
	uint32_t flags; /* O_ACCMODE, O_APPEND, O_NONBLOCK, O_PATH, O_DIRECT ... */
	uint64_t offset;
	bool offset_known;
	uint64_t dir_cookie; /* listings: whether anything was read */
	struct stream *in, *out; /* what reads take and writes give */
	uint8_t object; /* enum object_kind */
	struct entry *entry; /* through which it was opened, may be NULL; for names */
};

enum object_kind {
	OBJECT_FILE,
	OBJECT_PIPE,
	OBJECT_SOCKET,
	OBJECT_EVENTFD,
	OBJECT_EPOLL,
	OBJECT_URING,
	OBJECT_OTHER, /* timerfd, signalfd, inotify, pidfd ...: nothing is known of its contents */
};

/* A descriptor as replay will hold it: shared by forked tables. */
struct descriptor {
	struct res res; /* RES_FD */
	struct open_file *open;
	uint32_t refs; /* table slots */
	int32_t number; /* in the table in which it was made */
};

struct handle {
	struct res res; /* RES_HANDLE */
	struct inode *dir;
	uint32_t refs;
};

/* A process's cwd, root and umask: shared with CLONE_FS. */
struct fs_state {
	struct handle *cwd, *root;
	uint32_t umask;
	uint32_t refs;
};

struct credentials {
	uint32_t uid, gid; /* those that count for files */
	bool all_powerful; /* CAP_DAC_OVERRIDE and CAP_FOWNER */
};

/* One call on its way through the model. */
struct call {
	struct fsmodel *m;
	struct event *ev;
	struct facts *facts;
	struct process *proc;
	struct thread *thread;
	struct fs_state *fs; /* of the process; never NULL */
	struct credentials cred;
	bool quiet; /* only asked (fsmodel_fits): touches and new state are not kept */
	bool want_ok; /* the event says that it succeeded; with execute: true */
	/* What ask() found for apply(). */
	struct found at, at2;
	struct descriptor *fd, *fd2;
	struct open_file *open, *open2;
	uint64_t n1, n2, n3;
};

/* The descriptor under a number of the process; NULL: EBADF. Touches RES_FD (and what it is open on, RES_OPEN). */
struct descriptor *fd_get(struct call *c, int64_t number);

struct call_row {
	struct outcome (*ask)(struct call *c);
	void (*apply)(struct call *c); /* NULL: nothing changes */
	bool (*mend)(struct call *c); /* NULL: no repair is known; true: ask again */
};

static inline struct outcome fails(int err)
{
	return (struct outcome){ .ret = -1, .err = err };
}

static inline struct outcome succeeds(int64_t ret)
{
	return (struct outcome){ .ret = ret };
}

/* The two halves keep what is theirs behind these. */
struct names;
struct tables;

struct fsmodel {
	struct fsmodel_options options;
	struct facts facts;
	struct fsmodel_totals totals;
	uint64_t next_id; /* of resources, from 1 */
	struct names *names;
	struct tables *tables;
	struct buf why; /* of the last contradiction */
};

void res_init(struct fsmodel *m, struct res *res, enum res_kind kind);
/* Tells the policy that the resource goes, and whose part its past becomes. */
void res_forget(struct fsmodel *m, struct res *res, struct res *heir);

/* The argument of a name, VALUE_NONE when the row or the event has none. */
const struct value *arg_of(const struct call *c, const char *name);

#endif
