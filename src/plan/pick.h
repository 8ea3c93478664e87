/* SPDX-License-Identifier: MIT */
/*
 * What of an event's arguments goes into a plan (doc/plan-format.md,
 * "Arguments"): what goes in, and the slots of what comes out.
 */
#ifndef PLAN_PICK_H
#define PLAN_PICK_H

#include "base/arena.h"
#include "model/event.h"

struct picker {
	uint64_t out_fields[STRUCT_MAX]; /* of a struct that the call fills: the fields to keep */
	struct arena *arena; /* for what is not the same as before */
};

void picker_init(struct picker *p, struct arena *arena);
/* ret has room for ROW_ARGS_MAX. Lists and structs are copies, data is shared. */
void picker_args(const struct picker *p, const struct row *row, const struct value *args,
		 struct value *ret);

#endif
