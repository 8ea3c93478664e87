/* SPDX-License-Identifier: MIT */
/*
 * Slots in places that were not made for numbers (doc/plan-format.md, "Slots"):
 * one definition for whoever writes actions and whoever performs them.
 */
#ifndef PLAN_REFS_H
#define PLAN_REFS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/attrs.h"
#include "model/value.h"

/* A number under which nothing was open. */
#define PLAN_NO_SLOT (-1)

/* Whether the returned value of the call, when it succeeded, is a slot (or negative: none). */
bool plan_ret_is_slot(const struct row *row);
/*
 * Whether the row's ADDR arguments are references to maps, aio contexts or aio
 * requests. Those of other rows are left out of a plan. The fields `obj` of iocb
 * and io_event are such references in any row.
 */
bool plan_addr_is_ref(const struct row *row);

/* Of an address in a map: the map's slot, and how far from its beginning. */
#define PLAN_REF_SLOT_BITS 20
#define PLAN_REF_SLOT_MAX (((uint32_t)1 << PLAN_REF_SLOT_BITS) - 2)

/* False when slot or offset are too large to be referred to: *ret is then as it was. */
MUST_CHECK bool plan_put_map_ref(uint32_t slot, uint64_t offset_bytes, struct value *ret);
/* False when the value is no reference (a null pointer, or not known). */
MUST_CHECK bool plan_get_map_ref(const struct value *v, uint32_t *ret_slot,
				 uint64_t *ret_offset_bytes);

/* Aio contexts (ctx_id, the item behind ctx_idp) and requests (obj, aiocb): the slot alone. */
static inline MUST_CHECK bool plan_put_aio_ref(uint32_t slot, struct value *ret)
{
	return plan_put_map_ref(slot, 0, ret);
}

static inline MUST_CHECK bool plan_get_aio_ref(const struct value *v, uint32_t *ret_slot)
{
	uint64_t offset;

	return plan_get_map_ref(v, ret_slot, &offset);
}

/* A pathname that leads through a descriptor: its slot, and what follows (may be empty). */
struct value plan_put_fd_path(struct arena *a, uint32_t slot, const void *rest, size_t rest_len);
/*
 * 1 and the parts, which point into the value's bytes; 0 when it is any other
 * pathname; -EBADMSG when it begins like one but is none.
 */
MUST_CHECK int plan_get_fd_path(const struct value *v, uint32_t *ret_slot, const char **ret_rest,
				size_t *ret_rest_len);

#endif
