/* SPDX-License-Identifier: MIT */
/*
 * The initial or the final tree of one or several traces, as one sorted array
 * of paths:
 *
 *     ""  "etc"  "etc/passwd"  "home"  "home/u" ...
 *
 * A path stands right before all that is below it, so that a subtree is the run
 * [entry, entry->end). The records of a path are added up as
 * doc/trace-format.md says, directories that nobody described but that must be
 * there are put in, and what contradicts the rest (something below a file) is
 * left out and counted.
 *
 * Nothing of a trace is trusted: after a load every path is relative to the
 * root, has no empty, "." or ".." part, no part longer than 255 bytes, and all
 * its parents are directories of the tree.
 *
 * Memory: some 200 bytes and its path for each entry, and 24 bytes for each
 * piece of kept content. A tree does not change once it is loaded: any thread
 * may read it. Data is loaded from the sources, which must outlive it.
 */
#ifndef SNAPSHOT_TREE_H
#define SNAPSHOT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/value.h"
#include "trace/reader.h"

/* The one name at the top of a directory that belongs to us (snapshot/state.h). */
#define SNAPSHOT_RESERVED ".reprise"
#define SNAPSHOT_PATH_MAX 4095
#define SNAPSHOT_NAME_MAX 255

enum snapshot_which { /* of the set tree_which */
		      SNAPSHOT_INITIAL = 0,
		      SNAPSHOT_FINAL = 1,
};

enum snapshot_type { /* of the set file_types */
		     SNAPSHOT_UNKNOWN = 0,
		     SNAPSHOT_FILE = 1,
		     SNAPSHOT_DIR = 2,
		     SNAPSHOT_SYMLINK = 3,
		     SNAPSHOT_FIFO = 4,
		     SNAPSHOT_SOCKET = 5,
		     SNAPSHOT_CHARDEV = 6,
		     SNAPSHOT_BLOCKDEV = 7,
		     SNAPSHOT_TYPE_MAX,
};

enum snapshot_flag { /* of the set tree_flags, and one of our own */
		     SNAPSHOT_LISTED = 1,
		     SNAPSHOT_SPECIAL = 2,
		     SNAPSHOT_MISSING = 4,
		     SNAPSHOT_INFERRED = 8,
		     SNAPSHOT_CONTENT_KEPT = 16,
		     SNAPSHOT_UNREADABLE = 32,
		     SNAPSHOT_CHANGED = 64,
		     SNAPSHOT_IMPLIED = 1 << 15, /* no record says so, but something is below it */
};

/* Which fields of an entry are known. */
enum snapshot_known {
	SNAPSHOT_HAS_MODE = 1,
	SNAPSHOT_HAS_UID = 2,
	SNAPSHOT_HAS_GID = 4,
	SNAPSHOT_HAS_SIZE = 8,
	SNAPSHOT_HAS_ID = 16, /* dev and ino */
	SNAPSHOT_HAS_NLINK = 32,
	SNAPSHOT_HAS_RDEV = 64,
	SNAPSHOT_HAS_MTIME = 128,
	SNAPSHOT_HAS_ATIME = 256,
	SNAPSHOT_HAS_TARGET = 512,
	SNAPSHOT_HAS_XATTRS = 1024, /* all of them: none may be an answer too */
	SNAPSHOT_HAS_HASH = 2048,
};

struct snapshot_xattr {
	const char *name;
	const uint8_t *value;
	uint32_t value_len;
};

struct snapshot_entry {
	const char *path; /* "" is the root */
	uint32_t path_len;
	uint32_t name_at; /* where its last part begins */
	uint16_t flags; /* enum snapshot_flag */
	uint16_t known; /* enum snapshot_known */
	uint8_t type; /* enum snapshot_type; UNKNOWN: not there, or nobody knows what it was */
	uint16_t source;
	uint32_t parent; /* of the root: 0 */
	uint32_t end; /* the first entry that is not below it */
	/* The first entry that is the same file; its own number when there is none. */
	uint32_t first_link, nr_links; /* nr_links: of the first one, itself included */
	uint32_t mode; /* without the type */
	uint32_t uid, gid, nlink;
	uint64_t size_bytes; /* of a file with kept content: that of the content */
	uint64_t dev, ino, rdev;
	int64_t mtime_ns, atime_ns;
	const char *target;
	uint32_t target_len, nr_xattrs;
	const struct snapshot_xattr *xattrs;
	const struct data *content; /* NULL: nothing kept; of links it stands with the first */
	uint8_t hash[16]; /* of the whole content */
};

struct snapshot;

struct snapshot_source {
	struct trace *records; /* a trace, or the container of a plan */
	struct trace *data; /* where the data of the records is; NULL: in the same file */
};

/* What to do when two sources say different things of a path. */
enum snapshot_on_conflict {
	SNAPSHOT_CONFLICT_FAIL,
	SNAPSHOT_CONFLICT_FIRST, /* the source that was named first is right */
};

MUST_CHECK int snapshot_load(enum snapshot_which which, const struct snapshot_source *sources,
			     size_t nr_sources, enum snapshot_on_conflict on_conflict,
			     struct snapshot **ret, struct err *err);
void snapshot_free(struct snapshot *s);

enum snapshot_which snapshot_which(const struct snapshot *s);
const struct snapshot_entry *snapshot_entries(const struct snapshot *s, size_t *ret_nr);
/* By its path without a slash in front; NULL: not in the tree. */
const struct snapshot_entry *snapshot_find(const struct snapshot *s, const char *path, size_t len);
/* Whether something was there. */
static inline bool snapshot_exists(const struct snapshot_entry *e)
{
	return !(e->flags & SNAPSHOT_MISSING);
}

/* ... and it is known what. */
static inline bool snapshot_is_made(const struct snapshot_entry *e)
{
	return snapshot_exists(e) && e->type != SNAPSHOT_UNKNOWN;
}

/* A file of the kernel's own making, which is described but not copied. */
static inline bool snapshot_is_device(const struct snapshot_entry *e)
{
	return e->type == SNAPSHOT_CHARDEV || e->type == SNAPSHOT_BLOCKDEV;
}

extern const char *const snapshot_type_names[SNAPSHOT_TYPE_MAX];
/* By the file type bits of a mode. */
uint8_t snapshot_type_of_mode(uint64_t mode);

size_t snapshot_nr_sources(const struct snapshot *s);
const char *snapshot_source_path(const struct snapshot *s, size_t nr);

/* Names all that the tree says: equal for a trace and the plan that was made of it. */
struct hash128 snapshot_identity(const struct snapshot *s);

/*
 * What was there but is of no known type, or contradicts the rest; and the first
 * such path, NULL: none.
 */
uint64_t snapshot_nr_left_out(const struct snapshot *s);
const char *snapshot_first_left_out(const struct snapshot *s);

/*
 * A piece of what a file shall hold, from the trace. 1 and the bytes in `room`
 * (BLOB_MAX_BYTES); 0 when they were not kept, or are lost with a damaged part of
 * the trace; -errno. Any thread may call it: they take turns.
 */
MUST_CHECK int snapshot_load_piece(struct snapshot *s, const struct snapshot_entry *e,
				   uint64_t piece, uint8_t *room, size_t *ret_len, struct err *err);

#endif
