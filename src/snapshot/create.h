/* SPDX-License-Identifier: MIT */
/*
 * Makes a tree below a directory, or repairs what differs from it there.
 *
 *     /home/u/app.db of the trace  ->  DIR/home/u/app.db
 *
 * 1. Nothing outside of DIR is touched, whatever the tree holds: every name is
 *    used relative to an open directory that was reached from DIR without
 *    following a symlink, and no symlink is followed at its end. A file that has
 *    a name which is not of the tree (a hard link out of DIR, perhaps) is
 *    replaced, never written to. What is mounted below DIR is not entered, unless
 *    asked for.
 * 2. DIR/.reprise (snapshot/state.h) says what was made, and by which inode and
 *    time of change each entry is known again. What is still the same since is
 *    not looked at again; everything else is compared and repaired.
 * 3. Whatever ends it leaves a directory that the next call repairs.
 *
 * DIR itself keeps its mode, owner and times.
 */
#ifndef SNAPSHOT_CREATE_H
#define SNAPSHOT_CREATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/progress.h"
#include "snapshot/tree.h"

#define SNAPSHOT_JOBS_MAX 64
#define SNAPSHOT_SPARSE_OVER_DEFAULT ((uint64_t)1 << 30)

enum snapshot_cache {
	SNAPSHOT_CACHE_KEEP, /* as it comes */
	SNAPSHOT_CACHE_DROP, /* nothing of the tree is in memory */
	SNAPSHOT_CACHE_WARM, /* all of it is, as far as there is memory */
};

struct snapshot_options {
	bool force; /* also a directory that is neither empty nor ours; names that are not known stay */
	bool only_repair; /* fail unless the directory holds a former init */
	bool whole; /* compare everything, whatever the notes of the last time say */
	bool privileged_metadata; /* owners, set-id bits, attributes that need rights */
	bool cross_mounts; /* also what is mounted below DIR; else that is an error */
	unsigned int jobs; /* threads; 0: as many as there are cores */
	uint64_t
		sparse_over_bytes; /* larger files without content are made as holes; 0: the default */
	enum snapshot_cache cache;
	struct progress *progress; /* counts entries; may be NULL */
	/* Not 0: stop soon, with -EINTR. May be NULL. */
	const volatile sig_atomic_t *stop;
	bool locked; /* the caller holds the lock of DIR (snapshot_lock()) */
};

struct snapshot_result {
	bool was_ours; /* it held a former init */
	uint64_t nr_entries; /* that exist in the tree, without the root */
	uint64_t nr_made, nr_repaired, nr_same, nr_removed;
	uint64_t nr_trusted; /* of the same: by inode and time of change alone */
	uint64_t bytes_written;
	uint64_t nr_files, file_bytes; /* regular ones, by their names */
	uint64_t nr_filler, filler_bytes; /* whose content was not kept, holes not counted */
	uint64_t nr_sparse, sparse_bytes; /* made as holes */
	uint64_t sparse_over_bytes; /* the limit that held in the end: lower when space is short */
	uint64_t nr_lost; /* pieces of content that the trace has lost: filler */
	uint64_t nr_too_large; /* larger than the file system allows: made smaller */
	uint64_t nr_stand_ins; /* empty files in place of devices */
	uint64_t nr_owners, nr_setid; /* not applied: not asked for, or not allowed */
	uint64_t nr_xattrs; /* not applied */
	uint64_t nr_foreign; /* names that were there and stay */
	uint64_t nr_left_out; /* as snapshot_nr_left_out() */
	bool cache_partly; /* CACHE_DROP without the right to: only what the files hold was dropped */
	uint64_t elapsed_ns;
};

/* Makes DIR too, but not what leads to it. The result is good also on failure, as far as it came. */
MUST_CHECK int snapshot_create(struct snapshot *s, const char *dir,
			       const struct snapshot_options *options, struct snapshot_result *ret,
			       struct err *err);

/*
 * Keeps others from making, repairing or running in DIR until the descriptor is
 * closed. -EBUSY when somebody does. A DIR without a former init is locked
 * itself: that keeps out only others who come this way.
 */
MUST_CHECK int snapshot_lock(const char *dir, int *ret_fd, struct err *err);

#endif
