/* SPDX-License-Identifier: MIT */
#include "compile/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"

/*
 *   at:   0        a        b          c
 *         |unknown |  known | unknown  | known ...     known_first = false
 *
 * Sorted, no two alike; from 0 to items[0] it is as known_first says.
 */
struct turns {
	bool known_first;
	VEC(uint64_t) at;
};

static void turns_free(struct turns *t)
{
	if (t)
		VEC_RELEASE(&t->at);
	free(t);
}

void bytes_release(struct bytes *b)
{
	MAP_EACH (&b->by_res, e)
		turns_free(e->value);
	map_release(&b->by_res);
}

void bytes_forget(struct bytes *b, const struct res *res)
{
	if (b->by_res.nr_live)
		turns_free(map_remove(&b->by_res, &res->id, sizeof(res->id)));
}

/* Turns. */

/* How many turns come at or before the offset. */
static size_t nr_turns_until(const struct turns *t, uint64_t offset)
{
	size_t low = 0, high = t->at.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->at.items[middle] <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool state_after(const struct turns *t, size_t nr_turns)
{
	return t->known_first ^ (nr_turns & 1);
}

static bool turns_know(const struct turns *t, uint64_t from, uint64_t to)
{
	size_t n = nr_turns_until(t, from);

	return state_after(t, n) && (n == t->at.len || t->at.items[n] >= to);
}

/* Puts `nr` offsets in place of those from `first` to `last`. */
static void turns_replace(struct turns *t, size_t first, size_t last, const uint64_t *offsets,
			  size_t nr)
{
	size_t behind = t->at.len - last;

	while (t->at.len < first + nr + behind)
		VEC_PUSH(&t->at, UINT64_MAX);
	if (behind)
		memmove(&t->at.items[first + nr], &t->at.items[last],
			behind * sizeof(*t->at.items));
	if (nr)
		memcpy(&t->at.items[first], offsets, nr * sizeof(*offsets));
	t->at.len = first + nr + behind;
}

static void turns_set(struct turns *t, uint64_t from, uint64_t to, bool known)
{
	size_t first = from ? nr_turns_until(t, from - 1) : 0;
	size_t last = to == TOUCH_TO_END ? t->at.len : nr_turns_until(t, to);
	bool before = state_after(t, first), after = state_after(t, last);
	uint64_t offsets[2];
	size_t nr = 0;

	if (!from)
		t->known_first = known;
	else if (before != known)
		offsets[nr++] = from;
	if (to != TOUCH_TO_END && after != known)
		offsets[nr++] = to;
	turns_replace(t, first, last, offsets, nr);
	if (t->at.len > BYTES_TURNS_MAX) {
		t->known_first = false;
		t->at.len = 0;
	}
}

/* Resources. */

static struct turns *find(const struct bytes *b, const struct res *res)
{
	return b->by_res.nr_live ? map_get(&b->by_res, &res->id, sizeof(res->id)) : NULL;
}

static bool has_bytes(const struct res *res)
{
	return (res->kind == RES_FILE && !res->directory) || res->kind == RES_STREAM;
}

/* How many of the bytes that it began with are known. */
static uint64_t first_known(const struct res *res)
{
	return res->kind == RES_FILE ? fsmodel_held_bytes(res) : UINT64_MAX;
}

static bool knows(const struct bytes *b, const struct touch *touch)
{
	const struct turns *t = find(b, touch->res);

	/* What a replay does not put in does not come out of it. */
	if (touch->res->kind == RES_STREAM && !touch->res->real)
		return false;
	return t ? turns_know(t, touch->from, touch->to) : touch->to <= first_known(touch->res);
}

static void set(struct bytes *b, const struct touch *touch, uint64_t to, bool known)
{
	struct turns *t = find(b, touch->res);
	uint64_t first = first_known(touch->res);

	if (to <= touch->from || (!t && known && to <= first))
		return;
	if (!t) {
		t = xcalloc(1, sizeof(*t));
		t->known_first = first > 0;
		if (first && first != UINT64_MAX)
			VEC_PUSH(&t->at, first);
		*map_slot(&b->by_res, &touch->res->id, sizeof(touch->res->id)) = t;
	}
	turns_set(t, touch->from, to, known);
}

/* Events. */

static bool is_held(const struct data *d)
{
	uint64_t i, nr = d->bytes ? 0 : data_nr_pieces(d);

	for (i = 0; i < nr; i++) {
		if (!d->refs || !d->refs[i].blob)
			return false;
	}
	return d->kept_bytes >= d->len_bytes;
}

/* Whether data that goes in is not in the trace. */
static bool lacks_data(const struct arg *a, const struct value *v)
{
	struct arg item = *a;
	unsigned int i;

	switch ((enum value_type)v->type) {
	case VALUE_DATA:
		return a->kind == KIND_BUF && !is_held(v->data);
	case VALUE_NONE:
		return a->kind == KIND_BUF;
	case VALUE_STRUCT:
		for (i = 0; i < struct_descs[a->struct_id].nr_fields; i++) {
			const struct value *f = value_field(v, i);

			if (f && lacks_data(&struct_descs[a->struct_id].fields[i], f))
				return true;
		}
		return false;
	case VALUE_LIST:
		item.kind = a->elem ? a->elem : KIND_STRUCT;
		for (i = 0; i < v->count; i++) {
			if (lacks_data(&item, &v->items[i]))
				return true;
		}
		return false;
	default:
		return false;
	}
}

static bool event_lacks_data(const struct event *ev)
{
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *a = &ev->row->args[i];

		if (a->dir & ARG_IN && a->kind != KIND_STR && lacks_data(a, &ev->args[i]))
			return true;
	}
	return false;
}

/* Bytes that the call moves to other places of the same file. */
static bool shifts_bytes(const struct event *ev)
{
	return ev->row->id == SC_fallocate && ev->args[1].type == VALUE_INT &&
	       ev->args[1].u & 0x28; /* FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE */
}

/* What ends a map, or writes it back, writes nothing else than was stored there. */
static bool writes_bytes(const struct event *ev)
{
	if (ev->row->id == EV_map_store)
		return true;
	switch (row_class(ev->row)) {
	case C_MAP:
	case C_PROC:
		return false;
	default:
		return !ev->outcome.err;
	}
}

/* Touches are of what was asked for: less may have been written. */
static uint64_t written_to(const struct event *ev, const struct touch *touch)
{
	uint64_t done = ev->outcome.ret > 0 ? (uint64_t)ev->outcome.ret : 0;

	if (touch->to == TOUCH_TO_END || touch->how & TOUCH_SIZE_WRITE ||
	    (ev->row->result != RESULT_BYTES_WRITTEN && ev->row->result != RESULT_BYTES_COPIED))
		return touch->to;
	return done < touch->to - touch->from ? touch->from + done : touch->to;
}

static uint64_t read_to(const struct event *ev, const struct touch *touch)
{
	uint64_t done = ev->outcome.ret > 0 ? (uint64_t)ev->outcome.ret : 0;

	if (ev->row->result != RESULT_BYTES_READ && ev->row->result != RESULT_BYTES_COPIED)
		return touch->to;
	return done < touch->to - touch->from ? touch->from + done : touch->to;
}

static bool reads_unknown(const struct bytes *b, const struct event *ev, const struct facts *facts)
{
	for (size_t i = 0; i < facts->touches.len; i++) {
		struct touch touch = facts->touches.items[i];

		if (!(touch.how & TOUCH_READ) || !has_bytes(touch.res))
			continue;
		touch.to = read_to(ev, &touch);
		if (touch.to > touch.from && !knows(b, &touch))
			return true;
	}
	return false;
}

bool bytes_step(struct bytes *b, const struct event *ev, const struct facts *facts)
{
	bool unknown = facts->mixed || reads_unknown(b, ev, facts), lacks = unknown, asked = false;

	if (!writes_bytes(ev))
		return unknown;
	for (size_t i = 0; i < facts->touches.len; i++) {
		const struct touch *touch = &facts->touches.items[i];

		if (!(touch->how & TOUCH_WRITE) || !has_bytes(touch->res))
			continue;
		if (!asked)
			lacks = lacks || event_lacks_data(ev) || shifts_bytes(ev);
		asked = true;
		/* Somewhere in the file: what was unknown stays so. */
		if (touch->to == TOUCH_TO_END && !(touch->how & TOUCH_SIZE_WRITE) && !lacks)
			continue;
		set(b, touch, written_to(ev, touch), !lacks);
	}
	return unknown;
}
