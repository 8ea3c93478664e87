/* SPDX-License-Identifier: MIT */
/*
 * The initial tree by first touch: before a call first touches a path, what is
 * there is noted, with everything along the way; and the final tree at the end.
 * Each path is noted once. Nothing is followed outside of what the program
 * itself can see: paths are resolved from the program's own root and cwd. What
 * others than the program rename meanwhile may be noted under its old name.
 */
#ifndef RECORD_TREE_H
#define RECORD_TREE_H

#include <sys/types.h>

#include "base/err.h"
#include "model/event.h"
#include "trace/writer.h"

/*
 * What is remembered grows with the number of distinct paths: by about 45 bytes and the path for
 * each, and 90 more for a regular file. Beyond a fixed amount it is in a file (base/spill.h), and what is
 * resident is bounded. Where no file can be had there is a limit: paths beyond it are not
 * noted, and the ledger says so.
 *
 * What is written may name a path more than once: when a directory is read after
 * it was touched (then LISTED), and when a name that a listing showed is touched
 * itself; what is said later adds to what was said. Belongs to one thread.
 */
struct tree;

#define TREE_MEMORY_BYTES ((uint64_t)32 << 20)

struct tree_options {
	uint64_t content_max_bytes; /* contents of files up to this size are kept; 0: none */
	/*
	 * Not NULL: large files that are only read may be read, by a thread of their own, while the program goes
	 * on. All calls that could change a file have to be touched then, up to tree_read_at_once(). The
	 * writer of the feed; it must live until tree_finish() or tree_free().
	 */
	struct trace_writer *later;
	/*
	 * Where files without a name may be made, for what does not fit memory; NULL: nowhere. It must live as long as the tree. What is
	 * remembered is in one beyond memory_bytes (0: TREE_MEMORY_BYTES).
	 */
	const char *scratch_dir;
	uint64_t memory_bytes;
	uint64_t own_dev, own_ino; /* of the trace, which has no content of its own */
	bool misses_calls; /* some are not touched: a thread may be anywhere, each time */
};

struct tree *tree_new(struct trace_feed *feed, const struct tree_options *options);
void tree_free(struct tree *t);

/*
 * To be called before the call takes effect: notes every path that the event's
 * arguments name, resolved for this process (`pid` gives root, cwd and
 * descriptors by /proc). now_ns: for seen_ns.
 */
MUST_CHECK int tree_touch(struct tree *t, pid_t pid, const struct row *row,
			  const struct value *args, uint64_t now_ns);
/*
 * The same of a call that may have taken effect already: what cannot be noted then is missing. When
 * its outcome is known, tree_leave() follows; it may be told of twice before that.
 */
MUST_CHECK int tree_touch_made(struct tree *t, pid_t pid, const struct row *row,
			       const struct value *args, uint64_t now_ns);
/* A descriptor of a file that the call did not name, at its end: nothing was changed yet, unless it was cut. */
MUST_CHECK int tree_touch_opened(struct tree *t, pid_t tid, int fd, bool is_cut, uint64_t now_ns);
/*
 * Notes what the process has open before its first call is recorded, with its
 * content: no call will name it. before_exec: not what the exec will close.
 */
MUST_CHECK int tree_touch_descriptors(struct tree *t, pid_t pid, bool before_exec, uint64_t now_ns);
/* Whether such calls may change root directories, or what is mounted. */
bool tree_moves_base(const struct tree *t, const struct row *row);
/*
 * A working directory that threads share is changing: by this thread's call, whose entry was touched. Until it
 * has returned, relative names of others count as touched in the old and the new directory; so calls of others that
 * are under way then are to be touched once more, and those made meanwhile before tree_leave().
 */
bool tree_is_moving(const struct tree *t, pid_t tid);
MUST_CHECK int tree_touch_again(struct tree *t, pid_t tid, const struct row *row,
				const struct value *args);
/*
 * Of every thread whose calls are touched: it begins, maybe with the credentials of its parent (0: they
 * are asked for) and with another's working directory; it has ended, and nothing more will be told of it.
 */
void tree_begin_thread(struct tree *t, pid_t tid, pid_t parent, bool shares_cwd);
/* Its credentials may be others now. */
void tree_renew_rights(struct tree *t, pid_t tid);
/* It has the number of another one, which is gone. */
void tree_rename_thread(struct tree *t, pid_t from, pid_t to);
void tree_end_thread(struct tree *t, pid_t tid);
/*
 * The call that was touched last by this thread has returned, with err or 0; -1: it is not
 * known how. What files hold that it named is kept only if it has succeeded. If it changes
 * what names mean (chdir, rename of a directory ...), then until this, or the
 * thread's next tree_touch(), every path is looked up anew.
 */
void tree_leave(struct tree *t, pid_t pid, int err);
/*
 * For who keeps names that were touched: whether those of this call lead to files or nowhere, and
 * to no file that is still to be read, for all threads that begin where this one does, and
 * no call is under way that changes what names mean (the call has to be touched before). And how
 * often that was changed: names of before are to be touched again.
 */
enum tree_plain {
	TREE_NOT_PLAIN,
	TREE_PLAIN_IF_KEPT, /* if the call succeeds, by which what they hold is kept */
	TREE_PLAIN,
};
enum tree_plain tree_is_plain(struct tree *t, pid_t pid, const struct row *row,
			      const struct value *args);
struct tree_changes {
	uint64_t nr_names; /* of what any name means */
	uint64_t nr_moves; /* of what those may mean that begin in a working directory */
	bool roots_differ; /* those that do not may mean something else to each thread */
};
struct tree_changes tree_changes(const struct tree *t);
/* Likewise: whether the call that was touched last reads a directory, and which; its names are noted. */
bool tree_was_listed(const struct tree *t, uint64_t *ret_dev, uint64_t *ret_ino);
/* fanotify_mark is asked for these events: it may be that somebody has to answer before files are opened, so we open none. */
void tree_note_guard(struct tree *t, uint64_t events);
/*
 * Whether a file there, as the thread has it, can be opened without a recorded program having to answer: one that serves its file system, or is asked
 * before files are opened.
 */
bool tree_may_open(struct tree *t, pid_t tid, uint64_t dev);
/* Calls will not be touched any more, or not in time: what is left to be read is read now, and all else at once. */
void tree_read_at_once(struct tree *t);
/*
 * Writes the mounts, and the final state of every path that was touched. has_end: the calls that
 * were touched are all that were made; else it would be the state after others.
 */
MUST_CHECK int tree_finish(struct tree *t, uint64_t now_ns, bool has_end);

#endif
