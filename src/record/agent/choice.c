/* SPDX-License-Identifier: MIT */
/*
 * Chosen paths with the agent in the program. What a descriptor leads to is
 * known only at the moment of a call, and records are taken in later. So each thread
 * has a table of descriptors in which the recorder notes, at a call that it sees,
 * whether their paths are wanted; calls of descriptors that are not noted are
 * left to the recorder, as are those that name paths, or that make or end
 * descriptors. What is noted is forgotten whenever a descriptor may come to be of
 * another file, or its file to have another name: by all threads, since nobody
 * knows whose descriptors are the same.
 *
 * The same table serves while files are mapped that programs can store to (ptrace/map_stores.h): descriptors of
 * these are never noted, so the recorder sees all calls with them.
 */
#include <string.h>

#include "record/agent/inside.h"
#include "record/agent/rules.h"
#include "record/paths.h"
#include "record/stores.h"

static uint8_t *table_of(const struct tracee *t)
{
	return t->agent && t->agent->block ? (uint8_t *)t->agent->block + WIRE_FILES_AT : NULL;
}

static bool uses_table(const struct tracer *tr)
{
	return tr->o->paths.wants || tr->agent->is_watching;
}

void choice_begin(const struct tracer *tr, const struct tracee *t)
{
	if (uses_table(tr) && table_of(t))
		memset(table_of(t), WIRE_FILE_UNKNOWN, WIRE_NR_FILES);
}

static void forget(struct tracer *tr, uint64_t first, uint64_t nr)
{
	uint64_t i;

	MAP_EACH (&tr->all.by_tid, e) {
		uint8_t *table = table_of(e->value);

		for (i = first; table && i < WIRE_NR_FILES && i - first < nr; i++)
			__atomic_store_n(&table[i], WIRE_FILE_UNKNOWN, __ATOMIC_RELAXED);
	}
}

/* Descriptors that may lead elsewhere after the call that the thread is in. */
static void forget_changed(struct tracer *tr, const struct tracee *t)
{
	switch ((int)t->row->id) {
	case SC_close:
		forget(tr, (uint32_t)t->regs[0], 1);
		return;
	case SC_dup2:
	case SC_dup3:
		forget(tr, (uint32_t)t->regs[1], 1);
		return;
	case SC_close_range:
	case SC_rename:
	case SC_renameat:
	case SC_renameat2:
		forget(tr, 0, WIRE_NR_FILES);
		return;
	}
	if (row_class(t->row) == C_CWD) /* roots and mounts */
		forget(tr, 0, WIRE_NR_FILES);
}

static void note_file(struct tracer *tr, const struct tracee *t)
{
	int reg = rules_chosen_by(t->row);
	uint8_t *table = table_of(t);
	struct stat st;
	bool wanted;

	if (!table || reg < 0 || (uint32_t)t->regs[reg] >= WIRE_NR_FILES)
		return;
	if (tr->agent->is_watching && (!found_stat(t->tid, (int)t->regs[reg], &st) ||
				       stores_has_file(tr->stores, st.st_dev, st.st_ino)))
		return;
	if (!tr->o->paths.wants)
		__atomic_store_n(&table[(uint32_t)t->regs[reg]], WIRE_FILE_WANTED,
				 __ATOMIC_RELAXED);
	else if (paths_look_up(&tr->o->paths, t->tid, (int)t->regs[reg], &wanted))
		__atomic_store_n(&table[(uint32_t)t->regs[reg]],
				 wanted ? WIRE_FILE_WANTED : WIRE_FILE_UNWANTED, __ATOMIC_RELAXED);
}

void agent_note_choice(struct tracer *tr, struct tracee *t, bool at_entry)
{
	if (!agent_is_at_work(tr) || !uses_table(tr) || !t->row)
		return;
	/* At both ends of the call: others may use them while it is made. */
	forget_changed(tr, t);
	if (at_entry)
		note_file(tr, t);
}

/* Agents read the rules meanwhile: each is the one or the other. */
static void set_rules(struct agent *a, const struct wire_rule *from)
{
	struct wire_rule *to = (struct wire_rule *)a->common;
	unsigned int i;

	for (i = 0; to && i < WIRE_NR_RULES; i++) {
		__atomic_store_n(&to[i].file_from, from[i].file_from, __ATOMIC_RELAXED);
		__atomic_store_n(&to[i].flags, from[i].flags, __ATOMIC_RELEASE);
	}
}

/* Rules of their own are not brought up to date. */
static void turn_off_copies(struct tracer *tr)
{
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *t = e->value;

		if (t->agent && t->agent->space->image->has_own_rules)
			agent_turn_off(tr, t);
	}
}

void agent_watch_files(struct tracer *tr, bool on)
{
	struct agent *a = tr->agent;

	if (!a)
		return;
	forget(tr, 0, WIRE_NR_FILES);
	if (on == a->is_watching)
		return;
	if (on && !a->watchful) {
		a->watchful = xcalloc(WIRE_NR_RULES, sizeof(*a->watchful));
		rules_build_watchful(tr->o->data, tr->o->wanted, &tr->o->paths, a->watchful);
	}
	a->is_watching = on;
	set_rules(a, on ? a->watchful : a->rules);
	if (on)
		turn_off_copies(tr);
}
