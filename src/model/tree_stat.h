/* SPDX-License-Identifier: MIT */
/* The tree entries of a trace (rows and struct tree_stat of the tables), for who writes or reads them. */
#ifndef MODEL_TREE_STAT_H
#define MODEL_TREE_STAT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/fields.h"
#include "model/value.h"

/* Arguments of the record tree_entry, in the order of its row; old traces lack the last. */
enum tree_entry_arg {
	ENTRY_TREE,
	ENTRY_PATH,
	ENTRY_STAT,
	ENTRY_TARGET,
	ENTRY_XATTRS,
	ENTRY_CONTENT,
	ENTRY_HASH,
	ENTRY_FLAGS,
	ENTRY_SEEN_NS,
};

/* Fields of struct tree_stat. */
enum tree_stat_field {
	STAT_TYPE = FIELD_OF(tree_stat, type),
	STAT_MODE = FIELD_OF(tree_stat, mode),
	STAT_UID = FIELD_OF(tree_stat, uid),
	STAT_GID = FIELD_OF(tree_stat, gid),
	STAT_SIZE = FIELD_OF(tree_stat, size),
	STAT_DEV = FIELD_OF(tree_stat, dev),
	STAT_INO = FIELD_OF(tree_stat, ino),
	STAT_NLINK = FIELD_OF(tree_stat, nlink),
	STAT_RDEV = FIELD_OF(tree_stat, rdev),
	STAT_MTIME = FIELD_OF(tree_stat, mtime_ns),
	STAT_ATIME = FIELD_OF(tree_stat, atime_ns),
};

/* False: the entry does not say it. stat may be NULL. */
static inline bool tree_stat_get(const struct value *stat, enum tree_stat_field field,
				 uint64_t *ret)
{
	const struct value *v = stat ? value_field(stat, field) : NULL;

	if (!v || v->type != VALUE_INT)
		return false;
	*ret = v->u;
	return true;
}

/* Types of entries; their words are the set file_types. */
enum tree_type {
	TREE_TYPE_FILE = 1,
	TREE_TYPE_DIR = 2,
	TREE_TYPE_SYMLINK = 3,
};

/* Entries, by type. */
struct tree_count {
	uint64_t nr_files, nr_dirs, nr_symlinks, nr_others;
	uint64_t file_bytes; /* at least */
};

static inline void tree_count_add(struct tree_count *n, const struct value *stat)
{
	uint64_t type = 0, size = 0;

	(void)tree_stat_get(stat, STAT_TYPE, &type); /* else it is one of the others */
	switch (type) {
	case TREE_TYPE_FILE:
		(void)tree_stat_get(stat, STAT_SIZE, &size); /* else nothing is known of it */
		n->nr_files++;
		n->file_bytes =
			size > UINT64_MAX - n->file_bytes ? UINT64_MAX : n->file_bytes + size;
		break;
	case TREE_TYPE_DIR:
		n->nr_dirs++;
		break;
	case TREE_TYPE_SYMLINK:
		n->nr_symlinks++;
		break;
	default:
		n->nr_others++;
	}
}

static inline uint64_t tree_count_all(const struct tree_count *n)
{
	return n->nr_files + n->nr_dirs + n->nr_symlinks + n->nr_others;
}

#endif
