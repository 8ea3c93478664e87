/* SPDX-License-Identifier: MIT */
/* The plan's own metadata: its totals as keys and numbers. Private to this directory. */
#ifndef PLAN_FORMAT_H
#define PLAN_FORMAT_H

#include "plan/plan.h"

#define PLAN_VERSION 1
#define PLAN_KEY_PREFIX "plan."

enum plan_key_id {
	PLAN_KEY_VERSION,
	PLAN_KEY_ACTIONS,
	PLAN_KEY_LANES,
	PLAN_KEY_SLOTS,
	PLAN_KEY_EDGES,
	PLAN_KEY_ELAPSED,
	PLAN_KEY_FIRST,
	PLAN_KEY_MAX_DATA,
	PLAN_KEY_STARTED,
	PLAN_KEY_PROLOGUE,
	PLAN_NR_KEYS,
};

struct plan_key {
	const char *key;
	uint64_t max;
};

extern const struct plan_key plan_keys[PLAN_NR_KEYS];

uint64_t plan_key_get(const struct plan_totals *t, enum plan_key_id id);
/* The value is at most the key's max. */
void plan_key_set(struct plan_totals *t, enum plan_key_id id, uint64_t value);

#endif
