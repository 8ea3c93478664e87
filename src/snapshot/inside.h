/* SPDX-License-Identifier: MIT */
/*
 * The inside of create and verify: what their files share.
 *
 *   create.c   the steps, and what is decided for all entries together
 *   entry.c    makes or repairs one entry
 *   meta.c     owner, mode, times, attributes
 *   content.c  what files hold
 *   remove.c   takes away what does not belong there
 *   cache.c    what of it is in memory before a run
 *   pool.c     many entries by several threads
 */
#ifndef SNAPSHOT_INSIDE_H
#define SNAPSHOT_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "snapshot/create.h"
#include "snapshot/state.h"

/* A creation: made by the calling thread, read by the workers but for what is said. */
struct creation {
	struct snapshot *s;
	const struct snapshot_entry *entries;
	size_t nr_entries;
	const struct snapshot_options *o;
	const char *dir; /* for messages */
	int dir_fd, state_fd, trash_fd;
	dev_t dev; /* of DIR */
	uid_t uid;
	uint64_t sparse_over_bytes;
	bool exclusive;
	bool *is_new; /* by entry: made by this run. Written by the worker of the entry. */
	const struct snapshot_stamp *old; /* by entry: how it was left; NULL: not known */
	struct snapshot_stamp *stamps; /* by entry: how it is left. Written by its worker. */
	/* The names that are not the first of their file, sorted by that first one. */
	uint32_t *others;
	size_t nr_others;
	atomic_uint next_trash; /* names in trash/ */
	atomic_bool no_mknod; /* devices cannot be made */
};

/* What one thread has. */
struct worker {
	struct creation *c;
	atomic_bool *failed; /* of the pool: all stop */
	int parent_fd; /* -1: none */
	uint32_t parent; /* which entry that is */
	uint8_t *want, *have; /* BLOB_MAX_BYTES each */
	struct snapshot_result counts;
	struct err err;
};

/* pool.c */

typedef int (*work_fn)(struct worker *w, uint32_t nr);

struct pool_work {
	struct creation *c; /* its options say how many threads, who watches, and when to stop */
	const uint32_t *order; /* NULL: 0, 1, 2 ... */
	size_t nr;
	work_fn run;
	bool shown; /* as progress */
	struct snapshot_result *counts; /* added to; may be NULL */
};

/* 0 when all were run; the first failure; -EINTR when told to stop. */
MUST_CHECK int pool_run(const struct pool_work *work, struct err *err);
/* The same one after another, in this order. */
MUST_CHECK int pool_run_in_order(const struct pool_work *work, struct err *err);
void worker_init(struct worker *w, struct creation *c);
void worker_release(struct worker *w);
/* -EINTR with words when the run shall end. */
MUST_CHECK int worker_check_stop(struct worker *w);
/* The directory that an entry is in, open by O_PATH. -errno with words in w->err. */
MUST_CHECK int worker_parent(struct worker *w, const struct snapshot_entry *e);
/* Words for a failure on an entry: "cannot make DIR/home/u". Returns r. */
MUST_CHECK int worker_fail(struct worker *w, const struct snapshot_entry *e, int r,
			   const char *what);

static inline const char *entry_name(const struct snapshot_entry *e)
{
	return e->path + e->name_at;
}

/* entry.c */
MUST_CHECK int entry_make_dir(struct worker *w, uint32_t nr);
MUST_CHECK int entry_make(struct worker *w, uint32_t nr); /* all but directories and other links */
MUST_CHECK int entry_make_link(struct worker *w, uint32_t nr);
MUST_CHECK int entry_finish_dir(struct worker *w, uint32_t nr); /* after all that is below it */
MUST_CHECK int entry_stamp(struct worker *w, uint32_t nr);

/* The other names of the file whose first one this is: others[*ret .. end). */
size_t entry_others(const struct creation *c, uint32_t first, size_t *ret_end);

/* meta.c */

struct meta_target {
	const struct snapshot_entry *e;
	int parent_fd;
	int fd; /* of a file or directory, open; else -1 */
	struct stat st; /* as it is */
	mode_t type; /* what is made of it: S_IFMT bits */
};

/* Sets what differs; *ret_changed when something did. Times last, when they differ or `touched`. */
MUST_CHECK int meta_apply(struct worker *w, const struct meta_target *t, bool touched,
			  bool *ret_changed);
MUST_CHECK int meta_apply_times(struct worker *w, const struct meta_target *t);
/* Attributes that we set, compare and remove; the others belong to the machine. */
bool meta_is_our_xattr(const char *name, bool privileged);
/* Differ the times from those of the entry, as far as they are known? */
bool meta_times_differ(const struct snapshot_entry *e, const struct stat *st);
int64_t meta_time_ns(const struct timespec *ts);
mode_t meta_mode(const struct snapshot_entry *e, bool privileged);

/* content.c */

uint64_t content_size(const struct snapshot_entry *e);
/* How many of its bytes the trace has; what is behind the kept part does not count as held. */
uint64_t content_held_bytes(const struct snapshot_entry *e);
/* Whether what the trace does not have is left as holes, and not made up. */
bool content_has_holes(const struct snapshot_entry *e, uint64_t sparse_over_bytes);
/* Writes what an open file shall hold. `fresh`: it is empty; else only what differs is written. */
MUST_CHECK int content_write(struct worker *w, const struct snapshot_entry *e, int fd, bool fresh,
			     bool *ret_changed);
/* Bytes that look random and are the same for the same path and offset. */
void content_fill(const struct snapshot_entry *e, uint64_t offset, uint8_t *p, size_t len);

/* remove.c */

/* A name with all below it; counts in nr_removed. */
MUST_CHECK int remove_name(struct worker *w, int parent_fd, const char *name);
/* Names in a directory of the tree that are not in the tree. */
MUST_CHECK int remove_unknown(struct worker *w, uint32_t nr);
/* A name that the tree knows not to be there. */
MUST_CHECK int remove_missing(struct worker *w, uint32_t nr);
MUST_CHECK int remove_trash(struct worker *w);

/* cache.c */
MUST_CHECK int cache_prepare(struct creation *c, struct snapshot_result *counts, struct err *err);

#endif
