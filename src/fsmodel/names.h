/* SPDX-License-Identifier: MIT */
/*
 * What the files of the names half share (see inside.h).
 *
 *   inode --children--> entry, entry, ...     entries of a directory, present or
 *     ^                   |                   absent, are also in one hash table,
 *     +------target-------+                   by directory and name
 *
 * An entry is in one of three states:
 *   present   target is set
 *   absent    no target, known: an event, the tree or the directory said so
 *   open      no target, not known: the first event that touches it will say
 * Those without target stand in a list by age; the oldest are forgotten.
 *
 * A directory holds its parent, so that .. works in removed ones too; entries
 * hold what they lead to.
 */
#ifndef FSMODEL_NAMES_H
#define FSMODEL_NAMES_H

#include "fsmodel/inside.h"

#define MODEL_NAME_MAX 255
#define MODEL_PATH_MAX 4096 /* with the NUL */
#define MODEL_LINKS_MAX 40
#define MAX_ABSENT_DEFAULT ((size_t)1 << 16)
/* One event touches less than this many absent entries: none of them is forgotten by it. */
#define MAX_ABSENT_LEAST 64

/*
 * Something that was there before the trace. Those that an event told of are
 * what fsmodel_initial_tree() shows; the others stand only for a directory of
 * the tree that has moved since.
 */
struct first {
	struct first *parent; /* NULL: the root */
	struct first *next; /* in order of discovery */
	struct inode *inode; /* NULL once it is no more */
	bool given; /* by the tree */
	bool changed; /* by an event: what is found out of its size from then on is not its first size */
	uint32_t type, mode, uid, gid;
	uint64_t size;
	char *target;
	size_t target_len;
	char *name;
	size_t name_len;
	bool shown; /* by the fsmodel_initial_tree() that is going on */
};

struct mounted {
	struct entry *entry;
	struct inode *covered; /* held; NULL: the tree showed only what is mounted */
};

/* Which names occur in the texts of symlinks: says yes too often. */
#define LINK_WORDS_BITS 4096u

struct names {
	struct inode *root;
	struct inode *magic_link; /* stands for a symlink of /proc that leads to a descriptor */
	struct inode *all;
	struct entry **buckets; /* of entries */
	size_t nr_buckets, nr_entries;
	struct entry *newest, *oldest; /* without target */
	struct inode **ids; /* by device and inode number */
	size_t nr_id_buckets, nr_ids;
	struct inode *dying;
	bool reaping;
	struct first *first_first, *last_first;
	VEC(struct mounted) mounts;
	uint64_t link_words[LINK_WORDS_BITS / 64];
};

/* inode.c */
struct inode *inode_guess(struct fsmodel *m, uint32_t type);
/* A file that was just found to be there, by this name: it may be the core of a process. */
void tree_know_core(struct call *c, const struct value *path, struct inode *i);
void inode_set_target(struct fsmodel *m, struct inode *i, const char *text, size_t len);
void inode_set_id(struct fsmodel *m, struct inode *i, uint64_t dev, uint64_t ino);
/* Whether an error that comes from permissions and mounts may be foretold: the model does not know groups, ACLs, LSMs. */
bool may_deny(const struct call *c, int err);
/* Owner, or all-powerful. */
bool is_owner(const struct call *c, const struct inode *i);
/* A type that is not known is what the event needs it to be. */
bool is_type(struct call *c, struct inode *i, uint32_t type, bool expected);
/* Touches every name that leads to it (CHANGE): look-ups see another mode. */
void touch_names(struct call *c, struct inode *i, uint32_t how);
/* A struct stat or statx says what the inode is. */
struct seen_stat {
	bool has_mode, has_owner, has_size, has_id, has_nlink;
	uint32_t mode, uid, gid, nlink;
	uint64_t size, dev, ino;
};
void inode_learn(struct fsmodel *m, struct inode *i, const struct seen_stat *st);

/* entry.c */
struct entry *entry_find(const struct fsmodel *m, const struct inode *dir, const char *name,
			 size_t len, uint64_t hash);
uint64_t entry_hash(const struct inode *dir, const char *name, size_t len);
struct entry *entry_new(struct fsmodel *m, struct inode *dir, const char *name, size_t len,
			uint64_t hash);
void entry_free_now(struct fsmodel *m, struct entry *e);
/* Whether dir is i or below it. */
bool dir_is_below(const struct inode *dir, const struct inode *i);
/* State alone: no touches. */
void entry_link(struct fsmodel *m, struct entry *e, struct inode *target);
void entry_unlink(struct fsmodel *m, struct entry *e);
void entry_used(struct fsmodel *m, struct entry *e);
/* All that is below a directory goes: for repairs. */
void tree_prune(struct fsmodel *m, struct inode *dir);
/* A name that is not remembered is not there. */
static inline bool dir_is_complete(const struct fsmodel *m, const struct inode *dir)
{
	return dir->complete || dir->gone || m->options.execute;
}
/* 0 or errno: unlink, rmdir, rename. */
int may_delete(struct call *c, struct inode *dir, struct inode *victim, bool is_dir);

/* lookup.c */
struct path_text {
	const char *s;
	size_t len;
};
/* 0 or errno. Bytes of an argument that is a string. */
int text_of(struct call *c, const struct value *v, struct path_text *ret);

/* The same as name_decide() for what is to be renamed: EISDIR tells that the other is a directory. */
void name_decide_moved(struct call *c, struct found *f);

/* tree.c */
/* Puts something that must have been there before the trace under an entry, which is absent. */
void tree_infer(struct fsmodel *m, struct entry *e, uint32_t type);
/* Whether it is open on a file that no event named, and that can be given a name. */
bool fd_may_be_named(const struct fsmodel *m, const struct descriptor *d);
/*
 * A name that was taken for what it leads to turns out to be a symlink: what was
 * found through it so far is under the name that the text gives, if that is free.
 */
void tree_infer_link(struct call *c, struct found *f, const char *text, size_t len);
/* The initial directory may be about to move: remembers its first name. */
void first_remember(struct fsmodel *m, struct inode *dir);
void first_drop(struct fsmodel *m, struct inode *i);

/* For calls. */
static inline int64_t int_arg(const struct call *c, const char *name, int64_t otherwise)
{
	const struct value *v = arg_of(c, name);

	return v && v->type == VALUE_INT ? v->i : otherwise;
}

/* A descriptor that paths start from; AT_FDCWD when the row has none. */
int64_t dirfd_arg(const struct call *c, const char *name);
/* Repairs for calls with one or two paths in at and at2. */
bool mend_names(struct call *c);
struct outcome succeeds_any(struct call *c);
/* link_words. */
void words_add(struct names *n, const char *text, size_t len);
bool words_have(const struct names *n, const char *name, size_t len);

#endif
