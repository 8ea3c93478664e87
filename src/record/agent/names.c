/* SPDX-License-Identifier: MIT */
/*
 * The set of names by which the agent knows that a call changes nothing that is not
 * noted yet (model/wire.h). A name gets in at a call that the tracer saw, and
 * stays good until names come to mean something else: the tree tells when
 * (a working directory, a directory or a symlink changes). Then every thread's
 * `where` changes, and with it all hashes. Names that begin in the working directory
 * are in by thread, since each may have one of its own; those that begin at the root
 * mean the same to all, as long as none has changed that.
 *
 * And the set of directories whose names are noted, by which it knows that it may read them.
 */
#include <string.h>

#include "record/agent/inside.h"

#define MIX UINT64_C(0xff51afd7ed558ccd)

/* Of a thread: another one may get its number, but not in the same address space. */
static uint64_t of_thread(uint64_t where, const struct tracee *t)
{
	return (where * MIX + t->space) * MIX + (uint64_t)t->tid;
}

struct wire_where names_where(const struct agent *a, const struct tracee *t)
{
	uint64_t from_root = (a->changes.nr_names + 1) * MIX;
	uint64_t from_cwd = of_thread((from_root + a->changes.nr_moves) * MIX + 1, t);

	if (a->changes.roots_differ)
		from_root = of_thread(from_root, t);
	return (struct wire_where){ .from_root = from_root, .from_cwd = from_cwd };
}

static void change_where(struct tracer *tr)
{
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *t = e->value;
		struct wire_where now;

		if (!t->agent || !t->agent->block)
			continue;
		now = names_where(tr->agent, t);
		__atomic_store_n(&t->agent->block->where.from_root, now.from_root,
				 __ATOMIC_RELEASE);
		__atomic_store_n(&t->agent->block->where.from_cwd, now.from_cwd, __ATOMIC_RELEASE);
	}
}

/* Returns how many there are now. */
static unsigned int add_hash(uint64_t *set, unsigned int size, unsigned int nr, uint64_t hash)
{
	uint64_t *at = NULL;
	unsigned int i;

	/* Whoever misses one because of that makes a stop. */
	if (nr >= size / 2) {
		memset(set, 0, size * sizeof(*set));
		nr = 0;
	}
	for (i = 0; i < WIRE_NAME_PROBES && !at; i++) {
		at = &set[(hash + i) % size];
		at = *at && *at != hash ? NULL : at;
	}
	__atomic_store_n(at ? at : &set[hash % size], hash, __ATOMIC_RELAXED);
	return nr + 1;
}

static void add_name(struct agent *a, uint64_t name)
{
	uint64_t *names = (uint64_t *)(void *)(a->common + WIRE_RULES_BYTES);

	a->nr_names = add_hash(names, WIRE_NR_NAMES, a->nr_names, name);
}

/* Directories stay listed whatever names mean. */
static void add_directory(struct agent *a, uint64_t hash)
{
	uint64_t *dirs = (uint64_t *)(void *)(a->common + WIRE_RULES_BYTES + WIRE_NAMES_BYTES);

	if (!a->common)
		return;
	a->nr_dirs = add_hash(dirs, WIRE_NR_DIRS, a->nr_dirs, hash);
}

void names_add_text(struct agent *a, uint64_t dev, uint64_t ino)
{
	add_directory(a, wire_dir(dev ^ WIRE_TEXT_SALT, ino));
}

static void add_paths(struct tracer *tr, struct tracee *t)
{
	struct wire_where where = names_where(tr->agent, t);
	unsigned int i;

	for (i = 0; i < t->row->nr_args; i++) {
		const struct data *d = t->args[i].type == VALUE_DATA ? t->args[i].data : NULL;

		if (t->row->args[i].kind == KIND_PATH && d && d->bytes &&
		    d->kept_bytes == d->len_bytes) /* and a NUL behind them */
			add_name(tr->agent, wire_name(&where, t->nr, (const char *)d->bytes,
						      d->len_bytes + 1));
	}
}

static bool are_same(const struct tree_changes *a, const struct tree_changes *b)
{
	return a->nr_names == b->nr_names && a->nr_moves == b->nr_moves &&
	       a->roots_differ == b->roots_differ;
}

static void note_changes(struct tracer *tr)
{
	struct tree_changes *known = &tr->agent->changes, now = tree_changes(tr->session->tree);

	if (are_same(known, &now))
		return;
	*known = now;
	change_where(tr);
}

/* Whether the agent looks names of such calls up in the set. */
static bool looks_up(const struct tracer *tr, const struct tracee *t)
{
	return t->agent && t->agent->block && !t->agent->space->image->off &&
	       t->nr < WIRE_NR_CALLS && !(t->flags & EVENT_COMPAT) &&
	       tr->agent->rules[t->nr].flags & WIRE_RULE_NAMES;
}

void agent_begin_names(struct tracer *tr, struct tracee *t)
{
	uint64_t dev, ino;

	if (!tr->agent)
		return;
	note_changes(tr);
	if (tree_was_listed(tr->session->tree, &dev, &ino))
		add_directory(tr->agent, wire_dir(dev, ino));
	if (!looks_up(tr, t))
		return;
	t->agent->plain = tree_is_plain(tr->session->tree, t->tid, t->row, t->args);
	t->agent->plain_at = tr->agent->changes;
}

/* What was so before the call, and is still, is so; and what files hold that it has named is kept if it has succeeded. */
void agent_end_names(struct tracer *tr, struct tracee *t, bool succeeded)
{
	enum tree_plain plain = t->agent ? t->agent->plain : TREE_NOT_PLAIN;

	if (!tr->agent)
		return;
	note_changes(tr);
	if (t->agent)
		t->agent->plain = TREE_NOT_PLAIN;
	if (plain == TREE_NOT_PLAIN || (plain == TREE_PLAIN_IF_KEPT && !succeeded) ||
	    !looks_up(tr, t) || !are_same(&t->agent->plain_at, &tr->agent->changes))
		return;
	add_paths(tr, t);
}
