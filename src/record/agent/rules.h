/* SPDX-License-Identifier: MIT */
/*
 * The agent's rules, made from the table of calls: which calls it may record
 * by itself, and what of their memory it copies. A call is left to the tracer
 * when its event needs more than registers and memory at known places (a path
 * to be noted before, a file to be asked for after), when the tracer has to act
 * on it, or when what it needs is not known before it is made.
 */
#ifndef RECORD_AGENT_RULES_H
#define RECORD_AGENT_RULES_H

#include <stdbool.h>

#include "model/row.h"
#include "model/wire.h"
#include "record/capture.h"
#include "record/paths.h"

/* May the agent record this call? Then the rule's pieces are filled in; selection aside. */
bool rules_for_row(const struct row *row, enum data_policy policy, struct wire_rule *ret);
/* All WIRE_NR_RULES of them. wanted: by row id, NULL for all. */
void rules_build(enum data_policy policy, const bool *wanted, const struct path_choice *paths,
		 struct wire_rule *ret);
/* The same while files are mapped that programs can store to: they differ in flags and in file_from alone. */
void rules_build_watchful(enum data_policy policy, const bool *wanted,
			  const struct path_choice *paths, struct wire_rule *ret);
/*
 * The register with the descriptor by which alone it is chosen whether a call is
 * recorded; -1: it is chosen otherwise.
 */
int rules_chosen_by(const struct row *row);
/* Whether such calls are for the agent, in any of their variants. */
bool rules_take(const struct wire_rule *rules, unsigned int nr);
/* The rule by which the agent records a call with these registers; NULL: it does not. */
const struct wire_rule *rules_find(const struct wire_rule *rules, uint64_t nr,
				   const uint64_t regs[6]);
/* How many copies a record by this rule has at most: never more than WIRE_COPIES_MAX. */
unsigned int rules_most_copies(const struct wire_rule *r);
/* Whether a call by this rule can have come to that result; 0 if it has none yet. */
bool rules_allow_result(const struct wire_rule *r, int64_t ret);

#endif
