/* SPDX-License-Identifier: MIT */
/*
 * Compares a directory with what the trace says of the end: the final tree, and
 * of what was not touched, the initial one.
 *
 * Compared are names, types, sizes, modes, targets of symlinks, which names are
 * one file, attributes, and contents by their hash; that nothing is there that
 * was gone in the end; and, in a directory whose names were all known, that no
 * other name is there. What the trace does not know is counted, not guessed: a
 * content without hash, or one that began as filler; what the kernel makes up.
 */
#ifndef SNAPSHOT_VERIFY_H
#define SNAPSHOT_VERIFY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/progress.h"
#include "snapshot/tree.h"

enum snapshot_diff {
	SNAPSHOT_DIFF_MISSING, /* should be there */
	SNAPSHOT_DIFF_UNEXPECTED, /* should not be there */
	SNAPSHOT_DIFF_TYPE,
	SNAPSHOT_DIFF_SIZE,
	SNAPSHOT_DIFF_MODE,
	SNAPSHOT_DIFF_TARGET,
	SNAPSHOT_DIFF_LINK, /* one file instead of two, or two instead of one */
	SNAPSHOT_DIFF_XATTR,
	SNAPSHOT_DIFF_CONTENT,
	SNAPSHOT_DIFF_OWNER,
	SNAPSHOT_DIFF_TIME,
	SNAPSHOT_DIFF_MAX,
};

extern const char *const snapshot_diff_names[SNAPSHOT_DIFF_MAX];

struct snapshot_difference {
	char *path; /* as in the trace, with the slash in front */
	enum snapshot_diff what;
	char *found, *recorded; /* words; NULL: none */
};

struct snapshot_verify_options {
	bool owners, times; /* compare these too; of times that of modification */
	unsigned int jobs; /* as in snapshot_options */
	size_t max_listed; /* differences beyond are only counted; 0: all are listed */
	struct progress *progress; /* counts paths; may be NULL */
	const volatile sig_atomic_t *stop;
};

struct snapshot_verdict {
	uint64_t nr_paths; /* that were compared */
	uint64_t nr_differences;
	uint64_t by_kind[SNAPSHOT_DIFF_MAX];
	uint64_t nr_skipped; /* paths that cannot be compared */
	uint64_t nr_contents, nr_contents_skipped;
	uint64_t nr_listings; /* directories that must hold no other name */
	struct snapshot_difference *items; /* by path */
	size_t nr_items;
};

void snapshot_verdict_release(struct snapshot_verdict *v);

/* 0 also when it differs. */
MUST_CHECK int snapshot_verify(const struct snapshot_source *source, const char *dir,
			       const struct snapshot_verify_options *options,
			       struct snapshot_verdict *ret, struct err *err);

#endif
