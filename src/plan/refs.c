/* SPDX-License-Identifier: MIT */
#include "plan/refs.h"

#include <errno.h>
#include <string.h>

#include "base/varint.h"

bool plan_addr_is_ref(const struct row *row)
{
	enum row_class class = row_class(row);

	if (class == C_AIO || row->id == EV_map_store)
		return true;
	/* Of those only the calls about maps of files have code of their own in a replay. */
	return (class == C_MAP || class == C_SYNC) && row->replay == SUPPORT_SPECIAL;
}

/* What becomes the cwd or root of a process is held in a slot for lanes that take it over. */
static bool makes_handle(const struct row *row)
{
	return row->id == SC_chdir || row->id == SC_fchdir || row->id == SC_chroot;
}

bool plan_ret_is_slot(const struct row *row)
{
	return row->result == RESULT_NEW_FD || makes_handle(row) ||
	       (row->result == RESULT_ADDRESS && plan_addr_is_ref(row));
}

bool plan_put_map_ref(uint32_t slot, uint64_t offset_bytes, struct value *ret)
{
	if (slot > PLAN_REF_SLOT_MAX || offset_bytes >> (64 - PLAN_REF_SLOT_BITS))
		return false;
	/* The slot below: then most are short, and pages' addresses are none. */
	*ret = value_uint(offset_bytes << PLAN_REF_SLOT_BITS | (slot + 1));
	return true;
}

bool plan_get_map_ref(const struct value *v, uint32_t *ret_slot, uint64_t *ret_offset_bytes)
{
	uint64_t slot;

	if (v->type != VALUE_INT)
		return false;
	slot = v->u & (((uint64_t)1 << PLAN_REF_SLOT_BITS) - 1);
	if (!slot)
		return false;
	*ret_slot = (uint32_t)(slot - 1);
	*ret_offset_bytes = v->u >> PLAN_REF_SLOT_BITS;
	return true;
}

struct value plan_put_fd_path(struct arena *a, uint32_t slot, const void *rest, size_t rest_len)
{
	uint8_t *bytes = arena_alloc(a, 1 + VARINT_MAX + rest_len), *p = bytes;

	*p++ = 0;
	p = put_uvarint(p, slot);
	if (rest_len)
		memcpy(p, rest, rest_len);
	return value_bytes(a, bytes, (size_t)(p - bytes) + rest_len);
}

int plan_get_fd_path(const struct value *v, uint32_t *ret_slot, const char **ret_rest,
		     size_t *ret_rest_len)
{
	const struct data *d;
	struct cursor c;
	uint64_t slot;

	if (v->type != VALUE_DATA)
		return 0;
	d = v->data;
	if (!d->bytes || !d->kept_bytes || d->bytes[0])
		return 0;
	c = (struct cursor){ d->bytes + 1, d->bytes + d->kept_bytes };
	if (d->kept_bytes != d->len_bytes || !cursor_get_uvarint(&c, &slot) || slot > UINT32_MAX)
		return -EBADMSG;
	*ret_slot = (uint32_t)slot;
	*ret_rest = (const char *)c.pos;
	*ret_rest_len = cursor_left(&c);
	return 1;
}
