/* SPDX-License-Identifier: MIT */
/* What the files that make a snapshot share. */
#ifndef SNAPSHOT_TREE_INSIDE_H
#define SNAPSHOT_TREE_INSIDE_H

#include <pthread.h>

#include "base/arena.h"
#include "snapshot/tree.h"

/* Entries are counted in 32 bits. */
#define ENTRIES_MAX ((size_t)1 << 30)

struct entries {
	struct snapshot_entry *items;
	size_t len, cap;
};

struct snapshot {
	enum snapshot_which which;
	struct snapshot_source *sources;
	size_t nr_sources;
	struct arena arena;
	struct entries entries;
	struct hash128 identity;
	uint64_t nr_left_out;
	const char *first_left_out;
	pthread_mutex_t data_lock; /* of the sources, while others read the tree */
};

/* tree_load.c: the records of a source become entries, in their order: its number stands in first_link. */
MUST_CHECK int tree_load(struct snapshot *s, uint16_t nr, struct err *err);

/* tree.c: what is known of `e` alone is known of `to` from now on. */
void tree_copy_known(struct snapshot_entry *to, const struct snapshot_entry *e);

/* tree_links.c: entries of one file, and what tells the tree from others. */
void tree_find_links(struct snapshot *s);
void tree_identify(struct snapshot *s);

#endif
