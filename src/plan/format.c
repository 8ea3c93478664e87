/* SPDX-License-Identifier: MIT */
#include "plan/format.h"

const struct plan_key plan_keys[PLAN_NR_KEYS] = {
	[PLAN_KEY_VERSION] = { PLAN_KEY_PREFIX "version", UINT64_MAX },
	[PLAN_KEY_ACTIONS] = { PLAN_KEY_PREFIX "actions", UINT64_MAX },
	[PLAN_KEY_LANES] = { PLAN_KEY_PREFIX "lanes", PLAN_LANES_MAX },
	[PLAN_KEY_SLOTS] = { PLAN_KEY_PREFIX "slots", PLAN_SLOTS_MAX },
	[PLAN_KEY_EDGES] = { PLAN_KEY_PREFIX "edges", UINT64_MAX },
	[PLAN_KEY_ELAPSED] = { PLAN_KEY_PREFIX "elapsed_ns", PLAN_TIME_MAX },
	[PLAN_KEY_FIRST] = { PLAN_KEY_PREFIX "first_ns", PLAN_TIME_MAX },
	[PLAN_KEY_MAX_DATA] = { PLAN_KEY_PREFIX "max_data_bytes", PLAN_DATA_MAX },
	[PLAN_KEY_STARTED] = { PLAN_KEY_PREFIX "started_edges", 1 },
	[PLAN_KEY_PROLOGUE] = { PLAN_KEY_PREFIX "prologue", 1 },
};

uint64_t plan_key_get(const struct plan_totals *t, enum plan_key_id id)
{
	switch (id) {
	case PLAN_KEY_VERSION:
		return PLAN_VERSION;
	case PLAN_KEY_ACTIONS:
		return t->nr_actions;
	case PLAN_KEY_LANES:
		return t->nr_lanes;
	case PLAN_KEY_SLOTS:
		return t->nr_slots;
	case PLAN_KEY_EDGES:
		return t->nr_edges;
	case PLAN_KEY_ELAPSED:
		return t->elapsed_ns;
	case PLAN_KEY_FIRST:
		return t->first_ns;
	case PLAN_KEY_MAX_DATA:
		return t->max_data_bytes;
	case PLAN_KEY_STARTED:
		return t->has_started_edges;
	case PLAN_KEY_PROLOGUE:
		return t->has_prologue;
	case PLAN_NR_KEYS:
		break;
	}
	return 0;
}

void plan_key_set(struct plan_totals *t, enum plan_key_id id, uint64_t value)
{
	switch (id) {
	case PLAN_KEY_ACTIONS:
		t->nr_actions = value;
		break;
	case PLAN_KEY_LANES:
		t->nr_lanes = (uint32_t)value;
		break;
	case PLAN_KEY_SLOTS:
		t->nr_slots = (uint32_t)value;
		break;
	case PLAN_KEY_EDGES:
		t->nr_edges = value;
		break;
	case PLAN_KEY_ELAPSED:
		t->elapsed_ns = value;
		break;
	case PLAN_KEY_FIRST:
		t->first_ns = value;
		break;
	case PLAN_KEY_MAX_DATA:
		t->max_data_bytes = value;
		break;
	case PLAN_KEY_STARTED:
		t->has_started_edges = value;
		break;
	case PLAN_KEY_PROLOGUE:
		t->has_prologue = value;
		break;
	case PLAN_KEY_VERSION:
	case PLAN_NR_KEYS:
		break;
	}
}
