/* SPDX-License-Identifier: MIT */
/*
 * What we keep in a directory that we made: DIR/.reprise, a directory with
 *
 *   state    text, a line each: what was made of which traces, and how
 *   inodes   for each entry of the tree its inode and its time of change, by
 *            which it is known again
 *   trash/   what is being removed and was too deep to be removed at once
 *
 * reprise-init(1) tells the form of both. They are only notes: whatever stands in
 * them, the worst is that something is compared once more, or not.
 */
#ifndef SNAPSHOT_STATE_H
#define SNAPSHOT_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/mem.h"
#include "model/value.h"

/* 0, 0: not known, to be compared. */
struct snapshot_stamp {
	uint64_t ino;
	uint64_t ctime_ns;
};

struct snapshot_state {
	bool complete;
	bool exclusive; /* DIR was empty: all in it is ours */
	bool privileged;
	uint64_t sparse_over_bytes;
	struct hash128 tree; /* snapshot_identity() */
	uint64_t nr_entries;
	struct hash128 stamps; /* of the bytes of inodes; 0, 0: none */
	VEC(char *) traces; /* absolute paths */
};

void snapshot_state_release(struct snapshot_state *st);

/* 1; 0 when DIR holds none; -errno. A state that cannot be understood is one of nothing. */
MUST_CHECK int snapshot_state_read(int dir_fd, struct snapshot_state *ret, struct err *err);
/* Made if need be, and locked for its descriptor; with -EBUSY when somebody else has it. */
MUST_CHECK int snapshot_state_open(int dir_fd, bool make, bool lock, int *ret_fd, struct err *err);
/* Both in a whole: either the old one is there or the new one. state_fd is of snapshot_state_open(). */
MUST_CHECK int snapshot_state_write(int state_fd, const struct snapshot_state *st, struct err *err);

uint64_t snapshot_ctime_ns(const struct stat *st);

/*
 * The stamps of st->nr_entries entries; NULL when there are none that can be
 * trusted. Freed by the caller.
 */
struct snapshot_stamp *snapshot_stamps_read(int state_fd, const struct snapshot_state *st);
/*
 * Writes them and sets st->stamps. Those that are as young as the file itself are
 * left out: a change right now would leave the time as it is.
 */
MUST_CHECK int snapshot_stamps_write(int state_fd, struct snapshot_state *st,
				     struct snapshot_stamp *stamps, struct err *err);

#endif
