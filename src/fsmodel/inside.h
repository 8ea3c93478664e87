/* SPDX-License-Identifier: MIT */
/*
 * What the files of fsmodel/ share. Two halves:
 *
 *   names   tree.c inode.c entry.c lookup.c calls_name.c calls_meta.c res_name.c
 *           inodes, entries, look-ups, the calls that make, move, remove and
 *           describe names; initial tree, inference, forgetting
 *   tables  model.c calls.c refs.c process.c cwd.c fd.c open.c data.c copy.c stream.c
 *           socket.c map.c aio.c uring.c lock.c (tables.h)
 *           the step itself, processes, descriptor tables, open files, offsets,
 *           data, pipes, sockets, maps, asynchronous requests, locks
 *
 * A call has a row of two functions (calls.c, by the column `model` of the
 * table): ask() says what the kernel would answer and keeps what it found in
 * struct call; apply() then changes the state, and is called only when the
 * answer was success. Between them stands, for a contradiction, mend().
 * ask() touches what the call looks at, apply() what it changes.
 */
#ifndef FSMODEL_INSIDE_H
#define FSMODEL_INSIDE_H

#include <sys/stat.h>

#include "base/arena.h"
#include "base/map.h"
#include "fsmodel/fsmodel.h"

struct entry;
struct first;
struct open_file;
struct stream;
struct lock_table;
struct socket;
struct uring;
struct row_info;
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
	uint64_t
		held_bytes; /* so many of those that it began with are in the trace; all: UINT64_MAX */
	uint32_t refs; /* entries that lead here, open files, handles, maps */
	bool size_known; /* else size is a lower bound */
	bool initial; /* existed before the trace */
	bool inferred; /* nobody said so: an event needs it */
	bool special; /* of /proc, /sys or a device: contents follow no rules */
	bool gone; /* a directory that was removed: nothing can be made in it */
	bool mode_known; /* mode, uid and gid are those of the file, not a guess */
	bool linkable; /* made by O_TMPFILE without O_EXCL: linkat() may give it its first name */
	bool unseen; /* open before the trace began, where the recorder might not look: no tree has it */
	bool fd_dir; /* /proc/self/fd: its names are the descriptors */
	bool listed; /* a directory whose names are all known: it can be told whether it is empty */
	struct inode *next_all, *prev_all, *next_same_id, *next_dying;
	/* Directories. */
	struct inode *parent; /* held; of a symlink whose text is not known: what it leads to */
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
	struct first *first; /* what it was before the trace, where an event told so; else NULL */
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
	uint64_t failed_step; /* 1 + that in which it was first found absent; 0: never */
	bool known; /* present or not: an event or the tree said so */
	bool missing; /* the tree says that it was not there at first */
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
	bool dotdot; /* it was .. */
	int last_err; /* LOOK_AT_PARENT: what is wrong with the last component alone (ENAMETOOLONG) */
	struct res *through_fd; /* RES_FD: by AT_EMPTY_PATH or a magic link of /proc */
	struct open_file *open; /* likewise: what it is open on, also when that has no name */
};

enum look_flag {
	LOOK_AT_FOLLOW = 1, /* a symlink at the end is followed */
	LOOK_AT_EMPTY = 2, /* an empty path means the descriptor itself */
	/*
	 * O_CREAT: the last component may be absent: found.err is then 0. With a
	 * slash behind it (found.slash) nothing is followed: EISDIR is the caller's.
	 */
	LOOK_AT_CREATE = 4,
	LOOK_AT_DIRECTORY = 8, /* ENOTDIR for anything else */
	/*
	 * mkdir, unlink, rename ...: only the directory is walked to; the last
	 * component is found, present or absent, never followed, and where nobody
	 * knows whether it is there, it stays so: name_decide().
	 */
	LOOK_AT_PARENT = 16,
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

/*
 * The event says whether a name that nobody has touched was there: it was if
 * the call succeeded and wants it there, and is then of this type (0: any).
 */
void name_decide(struct call *c, struct found *f, bool wanted, uint32_t type);

/* No reference yet: the first entry, open file ... takes one. */
struct inode *inode_new(struct fsmodel *m, uint32_t type, uint32_t mode);
/* As a call makes it in a directory: owner, group, umask (not of symlinks), device; touches it (CREATE). Without name. */
struct inode *inode_make(struct call *c, const struct inode *dir, uint32_t type, uint32_t mode);
void inode_ref(struct inode *i);
/* With the last reference it is deleted: the step's facts get that touch. */
void inode_unref(struct fsmodel *m, struct inode *i);
/* An inode of unknown type turns out to be this. */
void inode_set_type(struct fsmodel *m, struct inode *i, uint32_t type);
/* The error that a call gave comes from the type of something whose type was not known; it is now. */
bool type_explains(struct call *c);
/* An event shows that the file holds so many bytes at least. */
void inode_size_at_least(struct inode *i, uint64_t size);
/* An event shows how long it is. */
void inode_size_is(struct inode *i, uint64_t size);
/* An event writes or truncates it: to be called before its size is changed. */
void inode_changes(struct call *c, struct inode *i);
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
/* Where a name is to be made; 0 or errno. dir_wanted: a slash behind it is right. */
int ask_make(struct call *c, int64_t dirfd, const struct value *path, bool dir_wanted,
	     struct found *f);
bool is_open_call(const struct event *ev);
/* As the kernel reads them; 0 for other calls. */
uint64_t open_flags(const struct event *ev);
int may_access(const struct call *c, const struct inode *i,
	       unsigned int wanted); /* R_OK|W_OK|X_OK; 0 or EACCES */
/* The error, noted as one whose reason are rights or mounts, which a replay does not have. */
int by_environment(const struct call *c, int err);

/* The model's half of fsmodel_add_tree() and of the repairs. */
void tree_init(struct fsmodel *m);
void tree_release(struct fsmodel *m);
/* Makes true that the path leads to something of this type (0: any); false when no repair is known. */
bool mend_exists(struct call *c, int64_t dirfd, const struct value *path, unsigned int flags,
		 uint32_t type);
/* A listing of the directory showed this name; type is S_IF... or 0, ino 0 when not known. Where the tree is not known it was there. */
void entry_listed(struct call *c, struct inode *dir, const char *name, size_t len, uint32_t type,
		  uint64_t ino);
/* What the recorder saw under this identity; NULL when nothing alive has it. */
struct inode *inode_by_id(struct fsmodel *m, uint64_t dev, uint64_t ino);
/* The root of the tree: the first process's. */
struct inode *tree_root(struct fsmodel *m);
/* The directory of an absolute path, symlinks followed; made when it is not there. For cwd and root from outside of the events. */
struct inode *tree_dir(struct fsmodel *m, const char *path, size_t len);
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
	uint32_t pid; /* of a pidfd: whose; 0: not known */
	struct stream *in, *out; /* what reads take and writes give */
	struct socket *socket; /* of OBJECT_SOCKET, may be NULL */
	struct uring *uring; /* of OBJECT_URING, may be NULL */
	uint64_t found_id; /* under which the trace told of it, else 0 */
	struct descriptor *found; /* one that the trace told of, NULL when it is closed */
	uint8_t object; /* enum object_kind */
	bool unknown; /* open before the trace began: what it is open on shows as it is used */
};

enum object_kind {
	OBJECT_FILE,
	OBJECT_PIPE,
	OBJECT_SOCKET,
	OBJECT_EVENTFD,
	OBJECT_EPOLL,
	OBJECT_INOTIFY,
	OBJECT_URING,
	OBJECT_OTHER, /* timerfd, signalfd, pidfd ...: nothing is known of its contents */
};

/* A descriptor as replay will hold it: shared by forked tables. */
struct descriptor {
	struct res res; /* RES_FD */
	struct open_file *open;
	uint32_t refs; /* table slots */
	uint64_t step; /* in which it was made */
	int32_t number; /* in the table in which it was made */
	bool found; /* no event made it: it was open before the trace began */
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

/* One side of a movement of bytes: from a descriptor, or to one (data.c). */
struct transfer {
	struct descriptor *d;
	bool write;
	bool positional;
	bool append; /* RWF_APPEND */
	bool peek; /* MSG_PEEK: nothing is consumed */
	int64_t offset; /* of a positional one */
	uint64_t count;
	uint64_t from; /* ask() says where it begins */
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
	bool unsure; /* ask() met what the model cannot know: any outcome is as foretold */
	bool any_ret; /* ask() knows that it succeeds, but not what it returns */
	/* Of a read from a pipe: what came back is next in it, or not, or nobody else could take it. */
	enum held_answer held;
	/* Of an open that waits for the other end of this FIFO: nobody has that open. */
	const struct inode *alone;
	bool differs; /* ask() knows something else of what the call gave back in its arguments */
	/* What ask() found for apply(). */
	struct found at, at2;
	struct descriptor *fd, *fd2;
	struct open_file *open, *open2;
	uint64_t n1, n2, n3;
	struct transfer t1, t2;
};

/*
 * The descriptor under a number of the process; NULL: EBADF. Touches RES_FD (and
 * what it is open on, RES_OPEN). A number that may have been open before the
 * trace began is taken to be open if the event needs it so.
 */
struct descriptor *fd_get(struct call *c, int64_t number);
/* The same, touching and inferring nothing; of any process (pid 0: the caller's) for /proc/PID/fd. */
struct descriptor *fd_peek(const struct call *c, uint32_t pid, int64_t number);
/*
 * The inode that it is open on, NULL when there is none (pipes, sockets ...).
 * For one that is open on something unknown an inode is made: of this type, 0
 * for any. In a quiet call NULL and c->unsure.
 */
struct inode *fd_inode(struct call *c, struct descriptor *d, uint32_t type);

/* fchmod() of a socket: the file that bind() makes will have that mode. */
void socket_set_mode(struct open_file *o, uint32_t mode);

struct call_row {
	struct outcome (*ask)(struct call *c);
	void (*apply)(struct call *c); /* NULL: nothing changes */
	/* NULL: no repair is known; true: ask again. Of C_NAME and C_META also for an error that was not foretold. */
	bool (*mend)(struct call *c);
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
	struct res storage; /* RES_STORAGE: file systems are not told apart */
	struct names *names;
	struct tables *tables;
	struct buf why; /* of the last contradiction */
	bool has_cores; /* a process has ended with one: a file that no call made */
};

void res_init(struct fsmodel *m, struct res *res, enum res_kind kind);
/* Tells the policy that the resource goes, and whose part its past becomes. */
void res_forget(struct fsmodel *m, struct res *res, struct res *heir);
/*
 * The same when the next step begins, and then frees what begins with res: facts
 * may point to it until then. All that is buried in a step is forgotten before
 * any of it is freed, so an heir may be buried in the same step.
 */
void res_bury(struct fsmodel *m, struct res *res, struct res *heir);
/* What the tables keep of an inode that is about to be buried: its locks and its fifo. */
void inode_drop_tables(struct fsmodel *m, struct inode *i);
/* Asks without keeping anything. False: the model has no answer to this event. */
bool ask_quietly(struct fsmodel *m, struct event *ev, struct call *c, struct outcome *ret);

/* The argument of a name, VALUE_NONE when the row or the event has none. */
const struct value *arg_of(const struct call *c, const char *name);

#endif
