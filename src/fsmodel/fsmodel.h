/* SPDX-License-Identifier: MIT */
/*
 * The state that events imply: names, inodes, links, mounts, open files,
 * descriptors, cwd, root, umask, pipes, maps, aio, locks; and which resources
 * each event touches.
 *
 *   process --> descriptor table --> descriptor (RES_FD) --> open file (RES_OPEN)
 *      |                                                          |
 *      +--> cwd, root (RES_HANDLE) --> directory (RES_FILE) <-----+
 *                                        | entries (RES_NAME): name -> inode or nothing
 *
 * A name is an entry of a directory inode, not a text: renaming a directory
 * moves its entry and nothing else, however much is below. A look-up uses the
 * entry of every component, of the symlinks on the way too; so whoever renames,
 * removes or makes any of them is ordered against it, and a create that makes a
 * dangling symlink good meets those who looked through it.
 *
 * Every call has one function that says what the kernel would answer in the
 * present state and another that changes the state. Events of a trace carry
 * their outcome: where it is another than foretold, that is a contradiction,
 * counted by kind; the state is then mended so that the outcome becomes true
 * where a repair is known (a file that must have existed is put into the initial
 * tree), else left alone. Nothing in an event is trusted, nothing is fatal.
 *
 * Memory is bounded by what is alive: an inode without name and descriptor is
 * freed, and of the entries that are absent only so many are remembered one by
 * one; older ones are forgotten into their directory (hooks.forget).
 *
 * Names in events and trees (paths, listings, texts of symlinks, addresses of
 * sockets) must have their bytes: data that stands in the trace's blobs is loaded by the caller.
 * What has none is taken as unknown. The contents of reads and writes are looked at
 * only where they tell in which order several threads used a pipe (held.h).
 *
 * A model belongs to one thread.
 */
#ifndef FSMODEL_FSMODEL_H
#define FSMODEL_FSMODEL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fsmodel/held.h"
#include "fsmodel/res.h"
#include "model/event.h"

struct fsmodel;

struct fsmodel_options {
	/*
	 * The tree is complete: a name without an entry does not exist. Else
	 * (a trace without initial tree) the first event that touches a name
	 * tells whether it was there, and of what type and size at least.
	 */
	bool tree_known;
	/* Calls are made, not observed: fsmodel_step() gives the events their outcome. */
	bool execute;
	uint32_t uid, gid; /* of the first process, where the trace does not say */
	size_t max_absent; /* absent entries remembered one by one; 0: the default */
	/*
	 * A resource is about to be freed. What a policy remembers of it passes
	 * to heir (a directory's own RES_FILE for an absent entry), or is dropped
	 * when heir is NULL: nobody can touch it again.
	 */
	void (*forget)(void *arg, struct res *res, struct res *heir);
	void *forget_arg;
	/* For what goes through pipes that several threads use. May be empty: then nobody knows. */
	struct held_loader loader;
};

struct fsmodel *fsmodel_new(const struct fsmodel_options *options);
void fsmodel_free(struct fsmodel *m);

/* An entry of the initial tree (REC_tree_entry, tree initial; others are ignored) or a mount. Before the first event. */
void fsmodel_add_tree(struct fsmodel *m, const struct item *item);

/* A descriptor number in the arguments, and what it is. */
struct fd_ref {
	struct value *where; /* in the event; NULL: the outcome's ret */
	struct res *fd; /* RES_FD; NULL: no open descriptor has this number */
	bool made; /* by this event */
	bool result; /* of a request: what it is open on does not matter */
};

/*
 * A descriptor that the event makes as a copy of another, on the same open file,
 * by something that a replay does not make: a message takes it in or hands it
 * out. Both are RES_FD; what a message holds has no number.
 */
struct fd_copy {
	struct res *from, *to;
};

/* A pathname that leads through a descriptor (/proc/self/fd/N, /dev/fd/N, /dev/stdin). */
struct fd_path {
	struct value *where; /* the PATH argument; NULL: it got there by a symlink */
	struct res *fd;
	uint32_t rest; /* offset of what follows the number in its bytes */
};

/* An address in the arguments that lies in a map of a file, or is that of an aio context or request. */
struct map_ref {
	struct value *where; /* NULL: the outcome's ret */
	struct res *map; /* RES_MAP, RES_AIO */
	uint64_t offset_bytes; /* from its beginning */
	bool made;
};

enum contradiction {
	CONTRADICTION_NONE,
	CONTRADICTION_MISSING, /* succeeded on something that should not exist */
	CONTRADICTION_EXISTS, /* succeeded in making what should exist, or failed because of it */
	CONTRADICTION_TYPE, /* what is there is of another type */
	CONTRADICTION_FD, /* a number that should be closed, or taken */
	CONTRADICTION_SIZE, /* read or sought beyond what the file should hold */
	CONTRADICTION_ERROR, /* failed with another error, or failed where it should not */
	CONTRADICTION_PROCESS, /* of a process or thread that is not known, or has ended */
	CONTRADICTION_ARGUMENT, /* impossible arguments */
	CONTRADICTION_MAX,
};

extern const char *const contradiction_names[CONTRADICTION_MAX];

/* What the model says of one event. Borrowed: valid until the next step. */
/*
 * A request of io_uring or io_submit failed for a reason of its environment, or
 * wrote fewer bytes than it was to. The call that submitted it may be long past.
 */
struct request_end {
	struct value *completion; /* in the event's arguments */
	uint32_t tid; /* the event that submitted it, and which of its requests it was */
	uint64_t seq;
	uint32_t number;
	int64_t res;
};

struct facts {
	struct outcome predicted; /* ret is meaningful only where the model can know it */
	enum contradiction contradiction;
	bool repaired;
	/*
	 * The call failed for a reason of its environment, which a replay does not
	 * have: names, files and descriptors would have let it succeed, or fail
	 * otherwise.
	 */
	bool unexplained;
	bool by_environment; /* rights or mounts had a part in the prediction */
	/* Completions of requests that a replay must not make as they were submitted. */
	VEC(struct request_end) request_ends;
	VEC(struct touch) touches; /* a resource may stand in it more than once */
	VEC(struct fd_ref) fds;
	VEC(struct fd_copy) fd_copies; /* in the order in which they are made */
	VEC(struct fd_path) fd_paths;
	VEC(struct map_ref) maps;
	/* The process's, before the event. NULL when the process is not known. */
	struct res *cwd, *root; /* RES_HANDLE */
	struct res *new_handle; /* that chdir, fchdir or chroot made */
	uint32_t umask;
	/* A thread that this event began: clone, fork, thread_start. 0: none. */
	uint32_t child_tid;
	/* Bytes moved: where the transfer began, also when the call names no offset. */
	uint64_t offset;
	/* The call showed that the file ends here; UINT64_MAX: it did not. */
	uint64_t end;
	struct res *stream; /* that a pipe, socket or eventfd call read or wrote */
	bool local_peer; /* the other end of the stream is in the trace */
	/*
	 * Bytes of a stream were read that others could read or write at the same time, and
	 * what they are does not tell who was first.
	 */
	bool mixed;
	/* Of a call about POSIX locks: RES_LOCKER, NULL where the call has nothing to do with one. */
	struct res *locker;
	/* Of F_GETLK: whose locks are in the way of what is asked for (0, 1, 2: several); the answer is as foretold. */
	uint32_t nr_lock_owners;
	bool lock_foretold;
};

/*
 * The next event in effect order. Never fails: what is wrong with the event is
 * in the facts. With `execute` the outcome is written to the event: for a call
 * that makes descriptors its ret (or its VEC_OUT of descriptors) is taken as a
 * wish if it is >= 0 and free, else the lowest free number is given.
 */
const struct facts *fsmodel_step(struct fsmodel *m, struct event *ev);

/*
 * Whether the outcome of the event is what the model would foretell now.
 * Changes nothing. For the repair of overlapping calls: a call that does not
 * fit may fit after one that overlapped it.
 */
bool fsmodel_fits(struct fsmodel *m, struct event *ev);
/* As fsmodel_step() when the event fits; else NULL, and nothing has changed. */
const struct facts *fsmodel_try(struct fsmodel *m, struct event *ev);
/* Whether applying `first` could change what the model foretells for `then`: cheap, may say yes too often. */
bool fsmodel_may_affect(struct fsmodel *m, const struct event *first, const struct event *then);
/* Whether the thread has a lock, by its descriptors, that is in the way of one that the event wants. */
bool fsmodel_locks_out(struct fsmodel *m, uint32_t tid, struct event *ev);
/* Whether the event leaves the state as it is, and whether it may change names or locks or close a descriptor. */
bool fsmodel_only_looks(const struct fsmodel *m, const struct event *ev);
bool fsmodel_changes_names(const struct fsmodel *m, const struct event *ev);
/* Whether it may change the size or the mode of a file. */
bool fsmodel_changes_attributes(const struct fsmodel *m, const struct event *ev);
/* Whether all that it changes is the offset of an open file that has one descriptor. */
bool fsmodel_moves_offset(const struct fsmodel *m, const struct event *ev);
/*
 * Whether the call changes something whenever it succeeds: names, bytes, metadata,
 * descriptors, offsets, maps, locks. Says nothing about the call's own outcome.
 */
bool fsmodel_is_change(const struct fsmodel *m, const struct event *ev);
/* Whether it removes a name or a descriptor, and whether that is one without which `then` would fail. */
bool fsmodel_takes_away(const struct event *ev);
bool fsmodel_takes_from(const struct fsmodel *m, const struct event *first,
			const struct event *then);

/*
 * Of a call that moves bytes to or from a place of a regular file that the kernel chose:
 * behind what others have appended, or at an offset that others move too.
 */
struct placed {
	const struct res *file; /* RES_FILE */
	const struct res *line; /* whose end is the place: the file, or its RES_OPEN */
	uint64_t at; /* where the call would begin now */
};

/* False: the call is no such one. */
bool fsmodel_placed(struct fsmodel *m, struct event *ev, struct placed *ret);

/* What a descriptor is open on, for whoever decides whether calls on it can be made again. */
enum fd_object {
	FD_OBJECT_FILE, /* a file or directory of the tree */
	FD_OBJECT_SPECIAL, /* a device, or a file of /proc or /sys */
	FD_OBJECT_PIPE,
	FD_OBJECT_FIFO, /* of the tree: a file to those who ask for its metadata */
	FD_OBJECT_SOCKET,
	FD_OBJECT_EVENTFD,
	FD_OBJECT_INOTIFY,
	FD_OBJECT_URING,
	FD_OBJECT_OTHER,
};

struct fd_info {
	enum fd_object object;
	uint32_t flags; /* of the open */
	uint32_t mode; /* type and permissions of the file; of a socket: of what bind() makes */
	uint64_t offset, rdev;
	const struct res *
		shared; /* another RES_FD on the same open file that was there at the start; NULL: none */
	bool lost; /* open before the trace began, on what is not known or in no tree */
	bool real; /* of a pipe, a FIFO, an eventfd, inotify: made by a call of the trace, see res.h */
};

void fsmodel_fd_info(const struct fsmodel *m, const struct res *fd, struct fd_info *ret);
/*
 * Something went through the RES_STREAM that will not be made again: what comes
 * out of it in a replay is not what came out of it here, from now on.
 */
void fsmodel_lose(struct res *stream);
/* The same for what a RES_FD reads from and writes to. */
void fsmodel_lose_ends(const struct fsmodel *m, struct res *fd);
/* The path in an address of a socket; NULL: it names no file. */
struct value *fsmodel_socket_path(const struct value *addr);
/* How many of the bytes that a RES_FILE began with are in the trace; UINT64_MAX: all, or it is no regular file. */
uint64_t fsmodel_held_bytes(const struct res *file);
/* A device, or a file of /proc or /sys: what it answers is not the storage's. */
bool fsmodel_is_special(const struct res *file);
/* The absolute path that leads to what a RES_FD, RES_HANDLE, RES_FILE or RES_NAME is, now. False: none does. */
bool fsmodel_path(const struct fsmodel *m, const struct res *res, struct buf *out);
/*
 * A file that is open and that no event named gets a name in the initial tree, so
 * that something can stand for it. False: what the RES_FD is open on is no such
 * file, or hardly one.
 */
bool fsmodel_infer_name(struct fsmodel *m, const struct res *fd);

/* Counts by kind since the beginning. */
struct fsmodel_totals {
	uint64_t contradictions[CONTRADICTION_MAX], repaired[CONTRADICTION_MAX];
	uint64_t nr_outside; /* calls that failed for a reason that the model cannot know */
	uint64_t nr_files, nr_names, nr_absent, nr_fds; /* alive now */
};

struct fsmodel_totals fsmodel_totals(const struct fsmodel *m);

/* Why the last step's event was a contradiction, for a human; "" when it was none. */
const char *fsmodel_why(const struct fsmodel *m);

/*
 * The name of a resource as a human knows it: path(/a/b)@1, fd3@2, file(/a/b),
 * open(/a/b), pipe#7. Names of files are those they have now.
 */
void fsmodel_res_name(const struct fsmodel *m, const struct res *res, struct buf *out);
/* The names below a directory's entry that the model knows, RES_NAME each, deepest last. */
void fsmodel_names_below(const struct fsmodel *m, const struct res *name,
			 void (*each)(void *arg, const struct res *name), void *arg);
/* What a step found out to have existed before the trace (tree_known false), as REC_tree_entry items. */
int fsmodel_initial_tree(const struct fsmodel *m, int (*each)(void *arg, const struct item *item),
			 void *arg);

#endif
