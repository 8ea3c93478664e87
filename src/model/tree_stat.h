/* SPDX-License-Identifier: MIT */
/* The tree entries of a trace (rows and struct tree_stat of the tables), for who writes or reads them. */
#ifndef MODEL_TREE_STAT_H
#define MODEL_TREE_STAT_H

#include <stdbool.h>
#include <stdint.h>

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

/* Fields, in the order of structs.def. */
enum tree_stat_field {
	STAT_TYPE,
	STAT_MODE,
	STAT_UID,
	STAT_GID,
	STAT_SIZE,
	STAT_DEV,
	STAT_INO,
	STAT_NLINK,
	STAT_RDEV,
	STAT_MTIME,
	STAT_ATIME,
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

#endif
