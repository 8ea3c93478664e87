/* SPDX-License-Identifier: MIT */
/*
 * The inside of tree: what its files share.
 *
 *   tree.c          which paths a call names, and whether they were seen before
 *   tree_place.c    where paths begin: root, working directory, descriptors
 *   tree_served.c   file systems that nothing is asked of, as a recorded program would have to answer
 *   tree_moves.c    where else they may, while a working directory changes
 *   tree_walk.c     goes along a path as the kernel would for the program
 *   tree_note.c     describes what is there, and writes it
 *   tree_hold.c     holds files until it is known whether the call succeeds that wants what they hold
 *   tree_content.c  reads what files hold
 *   tree_later.c    does so while the program goes on
 *   tree_memory.c   what is remembered of all this
 *   tree_final.c    the end: final state, mounts
 *
 * A path has two names. Its name now, and the one that it had at the start: they
 * differ below a directory that the program has renamed. Directories are known
 * again by device, inode and, where it is told, time of birth, so that what was
 * there before is noted under its first name. What is below a directory that the program made
 * was not there at the start and needs no note.
 *
 * Names are those of the recorder: of a program that has changed its root, they
 * begin with the name of that root. Nobody is trusted to leave things as they
 * are: every object is opened by O_PATH, without following, and is asked by
 * that descriptor alone; only regular files and directories are opened to be
 * read.
 */
#ifndef RECORD_TREE_INSIDE_H
#define RECORD_TREE_INSIDE_H

#include <linux/stat.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/spill.h"
#include "model/blobmap.h"
#include "record/creds.h"
#include "record/tree.h"

struct statx;

#define TREE_PATH_MAX 4096 /* as the kernel has it, with the NUL */
#define TREE_LINKS_MAX 40

enum noted_flag {
	NOTED_INITIAL = 1, /* its initial state is in the trace, whole */
	NOTED_NAME = 2, /* only what a listing of its directory says */
	NOTED_MISSING = 4, /* was not there at the start */
	NOTED_TOUCHED = 8, /* its final state is wanted */
	NOTED_SPECIAL = 16, /* on a file system of the kernel's own making */
	NOTED_DIR = 32, /* a directory that is known again by its identity */
	NOTED_UNREADABLE = 64, /* who looked had no right to see what is there */
	NOTED_DENIED = 128, /* the last call that wanted what it holds was refused */
	NOTED_WITHHELD = 256, /* and we could have read it */
};

/* A regular file as it was noted, to tell at the end whether it is the same still. */
struct noted_file {
	struct statx_timestamp mtime, ctime, btime; /* btime: 0 where it is not known */
	uint64_t ino, size_bytes;
	bool has_hash, settled; /* settled: a change would show in its times */
	uint8_t hash[16];
};

/* What is remembered of a path, for as long as the tree lives. */
struct noted {
	struct noted *next; /* that was made */
	struct noted_file *file; /* NULL: none, or it was not noted whole */
	uint64_t seen_by; /* a bit for each of the credentials with which it could be looked up */
	uint16_t flags; /* enum noted_flag */
	char path[];
};

/* A name that is put together; what does not fit sets `cut`. */
struct tree_name {
	char text[TREE_PATH_MAX];
	size_t len;
	bool cut;
};

struct tree_device {
	uint64_t dev;
	bool is_asked; /* these are known: */
	bool special; /* of the kernel's own making: nothing there is copied */
	bool remote; /* a server keeps its files */
	bool local; /* nobody but the kernel knows more of its files */
	bool shifty; /* a directory's time of birth is not its own for ever (overlayfs) */
	bool timeless; /* stores through a mapping do not show in a file's times (tmpfs) */
	bool is_looked_up; /* and, as long as nothing is mounted, this: */
	bool served; /* by a program that may be recorded: nothing is asked of it */
	bool by_others; /* it was served before the recording */
	const char *path; /* something on it, or NULL */
};

/* While it is open, its number is nobody else's. */
struct tree_removal {
	pid_t tid;
	int fd;
	struct statx st;
};

struct tree_identity {
	uint64_t dev, ino, mount; /* mount 0: the kernel does not tell */
};

/* A directory that is or may become a thread's working directory, by a call that is under way. */
struct tree_move {
	pid_t tid;
	int fd; /* O_PATH */
	struct tree_identity identity;
};

/* A file that was noted, open to be read. */
struct tree_file {
	struct noted *noted; /* the tree's */
	struct statx st;
	int fd; /* -1: it could not be opened */
	bool is_copy; /* of what it held when it was asked; had it changed? */
	bool changed;
};

enum tree_when {
	TREE_NOT, /* the content is not wanted */
	TREE_SOON, /* before the file changes */
	TREE_NOW, /* as soon as the call has succeeded */
	TREE_BEFORE, /* the call itself may cut it off */
};

/* By a call that is under way. */
struct tree_hold {
	pid_t tid;
	enum tree_when when;
	struct tree_file file;
	bool is_own; /* with the recorder's own rights */
	bool has_key; /* of the path that led there: */
	struct hash128 key;
};

/* A slot has 16 bits of a hash and an address (tree_memory.c). */
struct tree_paths {
	uint64_t *slots; /* the spill's; 0: free */
	size_t nr_slots, nr_taken;
};

/* Of a hash; a value is not 0 (tree_memory.c). */
struct tree_table {
	struct table_slot *slots; /* 1 << bits; the spill's */
	unsigned int bits;
	size_t nr_taken;
};

/* Where the next record goes. */
struct tree_chunk {
	uint8_t *pos; /* the spill's */
	size_t left_bytes, len_bytes;
};

/* At a time, of what is only hashed: less than a processor's cache has; as much as an attribute. */
#define TREE_PIECE_BYTES ((size_t)128 << 10)

struct tree {
	struct trace_feed *feed;
	struct tree_options o;
	struct spill spill; /* the memory of all that grows with the number of names: */
	struct tree_chunk chunk;
	struct noted *noted, **noted_end; /* all of them, in the order in which they were made */
	struct tree_paths paths; /* finds them by their paths */
	struct tree_table dirs; /* identity -> struct noted */
	struct noted *made; /* stands there for all directories that the program made */
	struct noted *unnoted; /* for all paths for which there is no room */
	uint64_t nr_unnoted; /* what was not noted for that */
	struct blob_map seen; /* hashes of (root, start, path): nothing more to be done */
	struct tree_table listed; /* (device, inode) */
	pid_t tid; /* whose file systems are meant: of the last walk */
	bool is_guarded; /* a program is asked before files are opened (fanotify): we do not open them */
	bool has_listing; /* by the last call: */
	uint64_t listing_dev, listing_ino;
	struct tree_table contents; /* the same, of files whose content is kept */
	struct tree_table
		linked; /* of (device, inode, birth): files that had several names when one was noted */
	uint64_t nr_changes; /* counts what makes known names unknown */
	uint64_t nr_moves; /* likewise those that begin in a working directory */
	bool roots_differ; /* of threads, maybe: one has changed its own, or what is mounted */
	struct map unsettled; /* threads in a call that may change what names mean */
	struct timespec begin; /* of the recording, by the clock of files */
	struct creds *creds;
	struct map rights; /* thread -> number of its credentials, and 1 */
	VEC(struct tree_hold) holds;
	VEC(struct tree_removal) removals; /* of directories, by calls that are under way */
	VEC(struct tree_move) moves; /* of threads that share their working directory with others */
	bool cwds_are_shared; /* of some threads */
	VEC(struct tree_device) devices;
	struct arena item; /* of the record that is being made */
	uint8_t *piece; /* TREE_PIECE_BYTES: what is read of a file and not kept in pieces */
	uint8_t *row_uses; /* by row id: enum row_use */
	struct tree_places *places;
	struct tree_later *later; /* NULL: nothing is read later */
	bool met_later; /* by the last walks: a file that is still to be read */
	bool met_unread; /* likewise, a file of the start whose content was not asked for */
	bool met_denied; /* likewise, something that the thread may not look at */
	bool met_special_link; /* likewise, a link of the kernel's own making: it leads others elsewhere */
	bool no_openat2; /* the kernel lacks it, or it is forbidden */
	bool is_made; /* the call whose paths are touched may have had its effect */
	uint64_t now_ns;
	uint32_t nr_alive; /* threads */
	bool had_several; /* at a time: what they wrote may lie in files in any order */
	uint64_t final_left_bytes; /* of contents of the final tree that may be kept */
	uint64_t nr_incomplete; /* what could not be noted for reasons of ours */
	uint64_t nr_withheld; /* files that we have not read because the program had no right to */
	int r; /* the feed's first failure */
};

/* Names (tree_walk.c). */
void name_set(struct tree_name *n, const char *text, size_t len);
/* Appends "/part". */
void name_add(struct tree_name *n, const char *part, size_t len);
void name_drop_last(struct tree_name *n);

/* Something that is open by O_PATH. */
struct tree_object {
	int fd;
	struct statx st;
	bool special; /* its file system */
	bool is_remote; /* likewise: others see who has a file open */
	const struct tree_name *name;
	const char *target; /* of a symlink; else NULL */
	size_t target_len;
};

/* Asks what fd is; false when that fails, or must not be asked (errno is EREMOTE): then that is counted. */
bool tree_ask(struct tree *t, int fd, struct tree_object *ret);
/* statx, with the mask that says what is known, or fstatat where that is denied. False: errno says why. */
bool tree_stat(int fd, const char *path, int flags, struct statx *ret);
/* File systems that may be a recorded program's (tree_served.c). */

/* Made when it is new. Valid until the next one is made. */
struct tree_device *tree_get_device(struct tree *t, uint64_t dev);
/* Those that are there now are others'. */
void tree_begin_served(struct tree *t);
/* What is mounted may have changed: their numbers may be those of others now. */
void tree_forget_served(struct tree *t);
/* For t->tid: must nothing there be asked for? */
bool tree_is_served(struct tree *t, uint64_t dev);

/* The text of a symlink, in the item's arena; NULL: none. */
const char *tree_read_link(struct tree *t, int fd, size_t *ret_len);

/* What is remembered (tree_memory.c). */

/* Memory for as long as the tree lives, zeroed; NULL: no room. */
void *tree_keep(struct tree *t, size_t len_bytes);
/* That is a table's value; NULL: none. */
static inline struct noted *tree_noted(uint64_t value)
{
	return (struct noted *)(uintptr_t)value;
}

/* 0: none. */
uint64_t tree_table_get(const struct tree_table *table, struct hash128 hash);
/* False: no room. */
bool tree_table_put(struct tree *t, struct tree_table *table, struct hash128 hash, uint64_t value);
/* Of a set: true if it is new there; false also where there is no room, which is counted. */
bool tree_table_add(struct tree *t, struct tree_table *table, struct hash128 hash);
/* Made when it is new. t->unnoted: there is no room for it, which is counted; nothing is to be said of it. */
struct noted *tree_get(struct tree *t, const struct tree_name *name);
struct noted *tree_find(const struct tree *t, const struct tree_name *name);

/* The directory by its identity, under the name of the start; NULL: not known. */
struct noted *tree_find_dir(struct tree *t, const struct statx *st);
void tree_remember_dir(struct tree *t, const struct statx *st, struct noted *n);
/* tree_find_dir() gives t->made for it from now on. */
void tree_remember_made(struct tree *t, const struct statx *st);
/* Something on this device, to find its mount by. */
void tree_remember_device(struct tree *t, const struct statx *st, const struct noted *n);

/* Write a record of the initial tree. */
void tree_note(struct tree *t, const struct tree_object *o, enum tree_when content);
/* What a file that was noted before holds, unless that is known, also under another name. */
void tree_note_content(struct tree *t, const struct tree_object *o, enum tree_when content);
void tree_note_missing(struct tree *t, const struct tree_name *name);
void tree_note_unreadable(struct tree *t, const struct tree_name *name);
/* A directory that is going to be read: its names, as far as they are not known. */
void tree_note_listing(struct tree *t, int fd, const struct tree_object *dir);

/* Writes a record: of the initial tree (0) or of the final one (1). */
enum tree_which {
	TREE_INITIAL = 0,
	TREE_FINAL = 1,
};

enum tree_flag { /* of the set tree_flags */
		 TREE_LISTED = 1,
		 TREE_SPECIAL = 2,
		 TREE_MISSING = 4,
		 TREE_CONTENT_KEPT = 16,
		 TREE_UNREADABLE = 32,
		 TREE_CHANGED = 64,
};

struct tree_record {
	enum tree_which which;
	const char *path;
	size_t path_len;
	const struct tree_object *object; /* NULL: not there, or not to be asked */
	uint64_t flags;
	struct value xattrs, content; /* VALUE_NONE: none */
	const uint8_t *hash; /* 16 bytes, or NULL */
};

void tree_write(struct tree *t, const struct tree_record *rec);

/* The extended attributes of an open object; VALUE_NONE when there are none. */
struct value tree_read_xattrs(struct tree *t, int fd);

/* Is it the file that was noted, changed or not? */
bool tree_is_noted(const struct noted *n, const struct tree_object *o);
/* Is it what was noted, by all that can be told without reading it? */
bool tree_is_unchanged(const struct noted *n, const struct tree_object *o);

/*
 * A descriptor to read from; -1 when there is none. It is that very object, not
 * what its name leads to now. Its time of access is left alone where we may.
 */
int tree_open_to_read(int fd, int flags);

/* By which an open object can be named; returns path. */
const char *tree_self_path(int fd, char path[static 64]);
bool tree_same_object(const struct statx *a, const struct statx *b);
bool tree_same_time(const struct statx_timestamp *a, const struct statx_timestamp *b);

/*
 * Reads a regular file to its end: the hash of it all, and, with content, its
 * pieces as data. False when it cannot be read, or is longer than max_bytes.
 */
struct tree_content {
	struct value content;
	uint8_t hash[16];
	uint64_t len_bytes;
	bool changed;
};

bool tree_read_content(struct tree *t, const struct tree_object *o, uint64_t max_bytes, bool keep,
		       struct tree_content *ret);
/* Since it was asked for, by all that can be told; alone: nobody has run meanwhile. */
bool tree_has_changed(const struct statx *before, int fd, bool alone);
/* Whether what the file holds is wanted, and was not kept before. */
bool tree_wants_content(const struct tree *t, const struct tree_object *o);
/* It is kept now. */
void tree_remember_content(struct tree *t, const struct tree_object *o);
/* Keeps what the file holds, now or (soon) before it can change. Takes its descriptor. */
void tree_keep_file(struct tree *t, struct tree_file *f, bool soon);
/* Writes the record of a file that was read, or could not be. */
void tree_write_content(struct tree *t, struct noted *n, const struct statx *st,
			const struct tree_content *c, bool is_read);

/* Where contents are kept; arena: of what is said of them. */
struct tree_keeper {
	struct trace_feed *feed;
	struct arena *arena;
	int r; /* the feed's first failure */
};

/* The same for an open file that holds more than fits an event. */
bool tree_keep_content(struct tree_keeper *k, const struct tree_file *f, struct tree_content *ret);

/* Contents that are read while the program goes on (tree_later.c). */

struct tree_later *tree_later_new(struct trace_writer *writer);
/* What is not read yet is given up. NULL is fine. */
void tree_later_free(struct tree_later *l);
/* The file will be read, and its descriptor taken. False: it must be read now. */
bool tree_later_add(struct tree *t, const struct tree_file *f);
/* Whether there is something that was not read yet. */
bool tree_later_is_busy(const struct tree *t);
/* Whether the file was not read yet. */
bool tree_later_has(const struct tree *t, const struct statx *st);
/* It is about to change: its content is read when this returns. */
void tree_later_need(struct tree *t, const struct statx *st);
/* Likewise of all files. */
void tree_later_need_all(struct tree *t);
/* Writes records of what was read. */
void tree_later_collect(struct tree *t);

/* Files whose contents a call wants (tree_hold.c). */

/* By a call of the thread t->tid, with the credentials that are assumed. */
void tree_hold(struct tree *t, const struct tree_object *o, enum tree_when when);
/* The thread's call has succeeded (0), failed, or will not be seen to end (-1). */
void tree_settle_holds(struct tree *t, pid_t tid, int err);
void tree_rename_holds(struct tree *t, pid_t from, pid_t to);
/* Those from the first on were found by the path with this key. */
void tree_key_holds(struct tree *t, size_t first, struct hash128 key);
void tree_release_holds(struct tree *t);

/* Nothing more is to be done for the path with this key (tree.c). */
void tree_remember_seen(struct tree *t, struct hash128 key);
/* The credentials of a thread (tree.c). */
unsigned int tree_rights_of(struct tree *t, pid_t tid);

/* Where walks begin (tree_place.c). */

enum walk_base {
	WALK_FROM_ROOT,
	WALK_FROM_CWD,
	WALK_FROM_FD,
	WALK_FROM_OURS, /* a descriptor of the recorder */
};

struct tree_place {
	struct tree_identity identity;
	struct tree_object o; /* as it was when it was opened */
	struct tree_name name;
	bool kept;
	unsigned int nr_users;
	uint64_t age;
};

struct tree_places *tree_places_new(void);
void tree_places_free(struct tree_places *p);
/* Nobody may have a place in use. */
void tree_places_forget(struct tree_places *p);
/* The thread may have another working directory, and with it those that share it. */
void tree_places_move(struct tree *t, pid_t tid);
bool tree_same_identity(const struct tree_identity *a, const struct tree_identity *b);
bool tree_fd_identity(int fd, struct tree_identity *ret);
/* A link of /proc that leads there; returns path. */
const char *tree_base_path(char path[static 64], pid_t tid, enum walk_base base, int fd);
bool tree_place_identity(struct tree *t, pid_t tid, enum walk_base base, int fd,
			 struct tree_identity *ret);
/* NULL when no name leads there. To be dropped after use; until then its descriptor is open. */
struct tree_place *tree_place_take(struct tree *t, pid_t tid, enum walk_base base, int fd);
void tree_place_drop(struct tree_place *p); /* NULL is fine */

/* A call is under way that may change more than working directories (tree.c). */
bool tree_changes_names(const struct tree *t);

/* Removed directories (tree.c). */
void tree_begin_removal(struct tree *t, pid_t tid, const struct tree_object *dir);

/* Walking (tree_walk.c). */

struct walk_request {
	pid_t tid;
	enum walk_base base;
	int fd; /* FROM_FD, FROM_OURS */
	const char *path;
	size_t path_len;
	bool follow; /* a symlink at the end */
	bool anew; /* even if it was seen before */
	bool content; /* of a regular file at the end is wanted */
	bool writes; /* the file at the end may be changed from then on */
	bool cuts; /* it may be cut off by the call itself */
	bool removes; /* a directory at the end may be gone then */
	bool moves; /* it may be the working directory then */
};

/* Notes everything along the path. Returns the type of its end (S_IFMT), 0 when it is not there. */
unsigned int tree_walk(struct tree *t, const struct walk_request *q);
/* The same, unless it was seen before (tree.c): 0 then. */
unsigned int tree_walk_new(struct tree *t, const struct walk_request *q);
/* Nothing can be asked of it any more. */
bool tree_thread_is_gone(pid_t tid);
/* Notes the names in a directory that is open. */
void tree_list(struct tree *t, pid_t tid, int fd);

/* Working directories that change (tree_moves.c). */

/* The thread's call may leave from or come to this open directory, or what the base is. */
void tree_add_move(struct tree *t, pid_t tid, int fd);
void tree_add_move_to(struct tree *t, pid_t tid, enum walk_base base, int fd);
/* No call is under way any more. */
void tree_forget_moves(struct tree *t);
/*
 * A relative path, from all these directories; *ret_type: as of touched paths, a directory's or symlink's if it may
 * lead to such. False: the thread's working directory is not changing.
 */
bool tree_walk_moves(struct tree *t, const struct walk_request *q, unsigned int *ret_type);

#endif
