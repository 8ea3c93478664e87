/* SPDX-License-Identifier: MIT */
#include "fsmodel/held.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "model/fields.h"

/* More writes than any pipe holds pages or single bytes of by default. */
#define PIECES_MAX 65536

void held_release(struct held_bytes *h)
{
	VEC_RELEASE(&h->pieces);
	*h = (struct held_bytes){ 0 };
}

/* The data of a read or write, one buffer after the other: the n-th, NULL behind the last. */
static const struct data *data_at(const struct event *ev, uint32_t n)
{
	if (row_class(ev->row) != C_DATA && ev->row->id != SC_vmsplice)
		return NULL;
	for (unsigned int i = 0; i < ev->row->nr_args; i++) {
		const struct value *v = &ev->args[i];

		if (ev->row->args[i].kind == KIND_BUF)
			return !n && v->type == VALUE_DATA ? v->data : NULL;
		if (v->type != VALUE_LIST || ev->row->args[i].struct_id != STRUCT_iovec)
			continue;
		if (n >= v->count)
			return NULL;
		v = value_field(&v->items[n], FIELD_OF(iovec, iov_base));
		return v && v->type == VALUE_DATA ? v->data : NULL;
	}
	return NULL;
}

static void push(struct held_bytes *h, const struct held_piece *p)
{
	if (p->from >= p->to)
		return;
	if (h->pieces.len - h->first >= PIECES_MAX) {
		held_release(h);
		h->lost = true;
	}
	VEC_PUSH(&h->pieces, *p);
}

static uint64_t piece_bytes(const struct data *d, uint64_t piece)
{
	uint64_t left = d->kept_bytes - piece * BLOB_MAX_BYTES;

	return left < BLOB_MAX_BYTES ? left : BLOB_MAX_BYTES;
}

static void put_piece(struct held_bytes *h, const struct data *d, uint64_t piece,
		      struct held_piece *p)
{
	uint64_t len = p->to - p->from;

	if (d->bytes && len <= DATA_INLINE_MAX) {
		memcpy(p->bytes, d->bytes + piece * BLOB_MAX_BYTES, (size_t)len);
		p->is_short = true;
	} else if (d->refs && !d->bytes) {
		p->ref = d->refs[piece];
		p->blob_bytes = piece_bytes(d, piece);
	}
	push(h, p);
}

void held_put(struct held_bytes *h, const struct event *ev, uint64_t at, uint64_t len, bool mixed)
{
	uint64_t end = at + len;
	const struct data *d;

	for (uint32_t n = 0; at < end && (d = data_at(ev, n)); n++) {
		for (uint64_t i = 0; at < end && i < data_nr_pieces(d); i++) {
			struct held_piece p = { .from = at,
						.to = at + piece_bytes(d, i),
						.mixed = mixed };

			if (p.to > end)
				p.to = end;
			put_piece(h, d, i, &p);
			at = p.to;
		}
		if (d->kept_bytes < d->len_bytes)
			break;
	}
	/* What the trace does not have, or what came from elsewhere. */
	push(h, &(struct held_piece){ .from = at, .to = end, .mixed = mixed });
}

void held_drop(struct held_bytes *h, uint64_t until)
{
	while (h->first < h->pieces.len && h->pieces.items[h->first].to <= until)
		h->first++;
	if (!h->first || h->first < h->pieces.len / 2)
		return;
	h->pieces.len -= h->first;
	memmove(h->pieces.items, h->pieces.items + h->first,
		h->pieces.len * sizeof(*h->pieces.items));
	h->first = 0;
}

/* The first piece that reaches beyond this place. */
static size_t find(const struct held_bytes *h, uint64_t at)
{
	size_t i = h->first;

	while (i < h->pieces.len && h->pieces.items[i].to <= at)
		i++;
	return i;
}

bool held_is_mixed(const struct held_bytes *h, uint64_t from, uint64_t to)
{
	for (size_t i = find(h, from); i < h->pieces.len && h->pieces.items[i].from < to; i++)
		if (h->pieces.items[i].mixed)
			return true;
	return h->lost;
}

static const uint8_t *load_held(const struct held_loader *l, const struct held_piece *p)
{
	if (p->is_short)
		return p->bytes;
	return p->blob_bytes && p->ref.blob && l->load ? l->load(l->arg, &p->ref, p->blob_bytes)
						       : NULL;
}

/* Both are whole pieces of data: their hashes tell. */
static bool has_hashes(const struct held_piece *p, const struct data *d, uint64_t piece,
		       uint64_t at)
{
	return p->from == at && p->to - at == piece_bytes(d, piece) &&
	       p->blob_bytes == p->to - at && d->refs && !d->bytes;
}

/* The bytes of a piece that was read, out of the way of what is loaded next. */
static const uint8_t *load_read(const struct held_loader *l, const struct data *d, uint64_t piece,
				struct buf *room)
{
	const uint8_t *bytes;

	if (d->bytes)
		return d->bytes + piece * BLOB_MAX_BYTES;
	if (!d->refs || !d->refs[piece].blob || !l->load)
		return NULL;
	bytes = l->load(l->arg, &d->refs[piece], piece_bytes(d, piece));
	if (!bytes)
		return NULL;
	buf_clear(room);
	buf_put(room, bytes, (size_t)piece_bytes(d, piece));
	return room->data;
}

static enum held_answer compare_piece(const struct held_bytes *h, const struct held_loader *l,
				      struct buf *room, const struct data *d, uint64_t piece,
				      uint64_t at)
{
	uint64_t end = at + piece_bytes(d, piece);
	const uint8_t *read = NULL, *held;

	for (size_t i = find(h, at); at < end; i++) {
		const struct held_piece *p = &h->pieces.items[i];
		uint64_t to;

		if (i >= h->pieces.len || p->from > at)
			return HELD_UNKNOWN;
		if (has_hashes(p, d, piece, at))
			return hash_equal(p->ref.hash, d->refs[piece].hash) ? HELD_SAME
									    : HELD_OTHER;
		if (!read)
			read = load_read(l, d, piece, room);
		held = read ? load_held(l, p) : NULL;
		if (!held)
			return HELD_UNKNOWN;
		to = p->to < end ? p->to : end;
		if (memcmp(held + (at - p->from), read + (piece_bytes(d, piece) - (end - at)),
			   (size_t)(to - at)) != 0)
			return HELD_OTHER;
		at = to;
	}
	return HELD_SAME;
}

enum held_answer held_compare(const struct held_bytes *h, const struct held_loader *l,
			      struct buf *room, const struct event *ev, uint64_t at, uint64_t len)
{
	enum held_answer answer = HELD_SAME;
	uint64_t end = at + len;
	const struct data *d;

	for (uint32_t n = 0; at < end && (d = data_at(ev, n)); n++) {
		if (d->kept_bytes < d->len_bytes || d->kept_bytes > end - at)
			return HELD_UNKNOWN;
		for (uint64_t i = 0; i < data_nr_pieces(d); i++) {
			answer = compare_piece(h, l, room, d, i, at);
			if (answer != HELD_SAME)
				return answer;
			at += piece_bytes(d, i);
		}
	}
	return at == end ? HELD_SAME : HELD_UNKNOWN;
}
