/* SPDX-License-Identifier: MIT */
/*
 * The set of names by which the agent knows that a call changes nothing that is not
 * noted yet (model/wire.h). A name gets in at a call that the tracer saw, and
 * stays good until names come to mean something else: the tree tells when
 * (a working directory, a directory or a symlink changes). Then every thread's
 * `where` changes, and with it all hashes. Names are in by thread, since each may
 * have a working directory of its own.
 */
#include <string.h>

#include "record/agent/inside.h"

#define MIX UINT64_C(0xff51afd7ed558ccd)

/* Of a thread: another one may get its number, but not in the same address space. */
uint64_t names_where(const struct agent *a, const struct tracee *t)
{
	return ((a->nr_changes + 1) * MIX + t->space) * MIX + (uint64_t)t->tid;
}

static void change_where(struct tracer *tr)
{
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *t = e->value;

		if (t->agent && t->agent->block)
			__atomic_store_n(&t->agent->block->where, names_where(tr->agent, t),
					 __ATOMIC_RELEASE);
	}
}

static void add_name(struct agent_image *im, uint64_t name)
{
	uint64_t *names = (uint64_t *)(void *)(im->shared + WIRE_RULES_BYTES), *at = NULL;
	unsigned int i;

	/* Whoever misses one because of that makes a stop. */
	if (im->nr_names >= WIRE_NR_NAMES / 2) {
		memset(names, 0, WIRE_NAMES_BYTES);
		im->nr_names = 0;
	}
	for (i = 0; i < WIRE_NAME_PROBES && !at; i++) {
		at = &names[(name + i) % WIRE_NR_NAMES];
		at = *at && *at != name ? NULL : at;
	}
	__atomic_store_n(at ? at : &names[name % WIRE_NR_NAMES], name, __ATOMIC_RELAXED);
	im->nr_names++;
}

static void add_paths(struct tracer *tr, struct tracee *t)
{
	unsigned int i;

	for (i = 0; i < t->row->nr_args; i++) {
		const struct data *d = t->args[i].type == VALUE_DATA ? t->args[i].data : NULL;

		if (t->row->args[i].kind == KIND_PATH && d && d->bytes &&
		    d->kept_bytes == d->len_bytes) /* and a NUL behind them */
			add_name(t->agent->space->image,
				 wire_name(names_where(tr->agent, t), t->nr, (const char *)d->bytes,
					   d->len_bytes + 1));
	}
}

void agent_note_names(struct tracer *tr, struct tracee *t, bool at_entry)
{
	if (!tr->agent)
		return;
	if (tr->agent->nr_changes != tree_nr_changes(tr->tree)) {
		tr->agent->nr_changes = tree_nr_changes(tr->tree);
		change_where(tr);
	}
	if (!at_entry || !t->agent || !t->agent->block || t->agent->space->image->off ||
	    t->nr >= WIRE_NR_CALLS || t->flags & EVENT_COMPAT ||
	    !(tr->agent->rules[t->nr].flags & WIRE_RULE_NAMES))
		return;
	if (tree_is_plain(tr->tree, t->tid, t->row, t->args))
		add_paths(tr, t);
}
