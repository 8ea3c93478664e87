/* SPDX-License-Identifier: MIT */
#include "trace/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/varint.h"
#include "trace/file.h"

/*
 * References are checked against a set of the blobs that the file has. The set
 * holds this many at most; a file with more is gone through several times.
 */
#define BLOBS_PER_PASS ((size_t)1 << 21)

struct checker {
	struct trace *t;
	struct check_result *c;
	struct progress *progress;
	uint64_t *known; /* marks of blobs, open addressing, 0: empty */
	size_t nr_known, known_mask;
	uint64_t pass_from, pass_to; /* numbers of the blob blocks of this pass */
	bool data_elsewhere; /* of a plan: references lead into another file */
};

bool check_intact(const struct check_result *c)
{
	return c->closed && !c->nr_bad_blocks && !c->nr_bad_blobs && !c->nr_dangling &&
	       !c->nr_missing_events && !c->first_fault.text[0];
}

bool check_ok(const struct check_result *c)
{
	return check_intact(c) && !c->nr_grave_losses;
}

bool check_complete(const struct check_result *c)
{
	return check_intact(c) && c->nr_losses == c->nr_left_out;
}

PRINTF_LIKE(3, 4)
static void fault(struct checker *k, uint64_t offset, const char *fmt, ...)
{
	struct err *e = &k->c->first_fault;
	char words[256];
	va_list ap;

	if (e->text[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, ap); /* long ones are cut */
	va_end(ap);
	(void)trace_fault(k->t, offset, -EBADMSG, e, "%s", words);
}

static void bad_block(struct checker *k, const struct block_entry *e, const char *why)
{
	k->c->nr_bad_blocks++;
	k->c->nr_bad_bytes += BLOCK_HEADER_BYTES + e->stored_bytes;
	fault(k, e->offset, "%s", why);
}

/* The set of blobs. */

static uint64_t mark_of(struct hash128 hash, uint64_t blob, uint64_t len)
{
	uint64_t parts[4] = { hash.low, hash.high, blob, len };

	return XXH3_64bits(parts, sizeof(parts)) | 1;
}

static void know_blob(struct checker *k, uint64_t mark)
{
	size_t i;

	if (2 * (k->nr_known + 1) > k->known_mask + 1) {
		uint64_t *old = k->known;
		size_t nr = old ? k->known_mask + 1 : 0;

		k->known_mask = old ? nr * 2 - 1 : 1023;
		k->known = xcalloc(k->known_mask + 1, sizeof(*k->known));
		k->nr_known = 0;
		for (i = 0; i < nr; i++) {
			if (old[i])
				know_blob(k, old[i]);
		}
		free(old);
	}
	for (i = mark & k->known_mask; k->known[i]; i = (i + 1) & k->known_mask) {
		if (k->known[i] == mark)
			return;
	}
	k->known[i] = mark;
	k->nr_known++;
}

static bool is_known(const struct checker *k, uint64_t mark)
{
	size_t i;

	if (!k->known)
		return false;
	for (i = mark & k->known_mask; k->known[i]; i = (i + 1) & k->known_mask) {
		if (k->known[i] == mark)
			return true;
	}
	return false;
}

static void check_blobs(struct checker *k, const struct block_entry *e, const uint8_t *p,
			size_t len)
{
	size_t at = 0;

	while (at < len) {
		struct hash128 hash, real;
		uint64_t size;

		if (len - at < BLOB_PREFIX_BYTES ||
		    get_le32(p + at + 16) > len - at - BLOB_PREFIX_BYTES) {
			bad_block(k, e, "malformed data block");
			return;
		}
		hash = (struct hash128){ get_le64(p + at), get_le64(p + at + 8) };
		size = get_le32(p + at + 16);
		real = hash_bytes(p + at + BLOB_PREFIX_BYTES, size);
		k->c->nr_blobs++;
		k->c->blob_bytes += size;
		if (!hash_equal(hash, real)) {
			k->c->nr_bad_blobs++;
			fault(k, e->offset, "data does not match its hash");
		} else {
			know_blob(k, mark_of(hash, e->number << BLOB_OFFSET_BITS | at, size));
		}
		at += BLOB_PREFIX_BYTES + size;
	}
}

/* References. */

static void check_value(struct checker *k, uint64_t offset, const struct value *v);

static void check_data(struct checker *k, uint64_t offset, const struct data *d)
{
	uint64_t i, nr = d->refs ? data_nr_pieces(d) : 0;

	for (i = 0; i < nr; i++) {
		uint64_t left = d->kept_bytes - i * BLOB_MAX_BYTES;
		uint64_t number = d->refs[i].blob >> BLOB_OFFSET_BITS;

		if (!d->refs[i].blob || k->data_elsewhere || number < k->pass_from ||
		    number >= k->pass_to)
			continue;
		if (is_known(k, mark_of(d->refs[i].hash, d->refs[i].blob,
					left < BLOB_MAX_BYTES ? left : BLOB_MAX_BYTES)))
			continue;
		k->c->nr_dangling++;
		fault(k, offset, "an event refers to data that is not in the file");
	}
}

static void check_values(struct checker *k, uint64_t offset, const struct value *v, uint64_t nr)
{
	uint64_t i;

	for (i = 0; i < nr; i++)
		check_value(k, offset, &v[i]);
}

static void check_value(struct checker *k, uint64_t offset, const struct value *v)
{
	if (v->type == VALUE_DATA)
		check_data(k, offset, v->data);
	else if (v->type == VALUE_STRUCT)
		check_values(k, offset, v->fields->items, v->count);
	else if (v->type == VALUE_LIST)
		check_values(k, offset, v->items, v->count);
}

/* Blocks that cannot be decoded show as new damages of the trace, which salvages. */
static void count_damages(struct checker *k, size_t from)
{
	size_t i;

	for (i = from; i < k->t->damages.len; i++) {
		const struct trace_damage *d = &k->t->damages.items[i];

		k->c->nr_bad_blocks++;
		k->c->nr_bad_bytes += d->length_bytes;
		fault(k, d->offset, d->tail ? "the file ends within a block" : "damaged block");
	}
}

static int check_events(struct checker *k, bool first_pass, struct err *err)
{
	struct trace_query q = { .progress = k->progress };
	size_t damages = k->t->damages.len;
	struct trace_iter *it;
	struct event *ev;
	int r = trace_iter_open(k->t, &q, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_iter_next(it, &ev, err)) == 1) {
		if (first_pass)
			k->c->nr_events++;
		check_values(k, 0, ev->args, ev->row->nr_args);
	}
	trace_iter_close(it);
	if (first_pass)
		count_damages(k, damages);
	k->t->damages.len = damages;
	return r;
}

/* Without some data, or parts of the trees, it is still what the program did. */
static bool is_grave(int64_t kind)
{
	return kind != LOSS_DATA_TRUNCATED && kind != LOSS_TREE_INCOMPLETE && kind != LOSS_FILTERED;
}

static void count_loss(struct checker *k, const struct item *item)
{
	const struct value *kind = &item->args[0], *count = &item->args[3];

	k->c->nr_losses++;
	if (kind->type != VALUE_INT || is_grave(kind->i))
		k->c->nr_grave_losses++;
	else if (kind->i == LOSS_FILTERED)
		k->c->nr_left_out++;
	if (kind->type == VALUE_INT && count->type == VALUE_INT &&
	    (kind->i == LOSS_EVENTS_LOST || kind->i == LOSS_EVENT_TOO_LARGE))
		k->c->nr_lost_events += count->u;
}

static int check_section(struct checker *k, enum block_type section, bool first_pass,
			 struct err *err)
{
	size_t damages = k->t->damages.len;
	struct trace_items *it;
	struct item *item;
	int r = trace_items_open(k->t, section, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_items_next(it, &item, err)) == 1) {
		check_values(k, 0, item->args, item->row->nr_args);
		if (!first_pass)
			continue;
		k->c->nr_records++;
		if (item->row->id == REC_loss)
			count_loss(k, item);
	}
	trace_items_close(it);
	if (first_pass)
		count_damages(k, damages);
	k->t->damages.len = damages;
	return r;
}

/* All that refers to data, against the blobs of this pass. */
static int check_references(struct checker *k, bool first_pass, struct err *err)
{
	int r = check_events(k, first_pass, err);

	if (!r)
		r = check_section(k, BLOCK_META, first_pass, err);
	if (!r)
		r = check_section(k, BLOCK_TREE, first_pass, err);
	if (!r)
		r = check_section(k, BLOCK_LEDGER, first_pass, err);
	return r;
}

static int check_data_blocks(struct checker *k, struct err *err)
{
	struct buf stored = { 0 }, plain = { 0 };
	struct block_read b = { .stored = &stored, .plain = &plain };
	bool first_pass = true;
	size_t i = 0;
	int r;

	k->pass_from = 0;
	do {
		k->nr_known = 0;
		if (k->known)
			memset(k->known, 0, (k->known_mask + 1) * sizeof(*k->known));
		for (; i < k->t->blob_blocks.len && k->nr_known < BLOBS_PER_PASS; i++) {
			const struct block_entry *e =
				&k->t->blocks.items[k->t->blob_blocks.items[i]];

			if (trace_read_block(k->t, e->offset, &b, NULL) < 0)
				bad_block(k, e, "damaged block");
			else
				check_blobs(k, e, b.payload, b.len);
		}
		k->pass_to = i < k->t->blob_blocks.len
				     ? k->t->blocks.items[k->t->blob_blocks.items[i]].number
				     : UINT64_MAX;
		r = check_references(k, first_pass, err);
		first_pass = false;
		k->pass_from = k->pass_to;
	} while (!r && i < k->t->blob_blocks.len);
	buf_release(&stored);
	buf_release(&plain);
	return r;
}

/* Each block of a stream says how many events came before it. */
static void check_streams(struct checker *k)
{
	size_t i;

	for (i = 0; i < k->t->streams.len; i++) {
		const struct trace_stream_info *s = &k->t->streams.items[i];
		uint64_t gap = trace_stream_gap(k->t, s);

		if (!gap)
			continue;
		k->c->nr_missing_events += gap;
		fault(k, k->t->blocks.items[s->first_block].offset,
		      "%llu events of thread %u are missing", (unsigned long long)gap, s->tid);
	}
	k->c->nr_lost_events += k->c->nr_missing_events;
}

static bool same_entry(const struct block_entry *a, const struct block_entry *b)
{
	return a->type == b->type && a->stored_bytes == b->stored_bytes && a->offset == b->offset &&
	       a->number == b->number && a->pid == b->pid && a->tid == b->tid &&
	       a->nr_events == b->nr_events && a->first_index == b->first_index &&
	       a->first_ns == b->first_ns && a->last_ns == b->last_ns;
}

/* The index must say of the file what a scan finds. */
static void check_index(struct checker *k)
{
	struct trace *indexed;
	const struct footer *f;
	struct err err = { "" };
	size_t i;

	if (trace_open(k->t->path, 0, &indexed, &err) < 0) {
		if (!k->c->first_fault.text[0])
			k->c->first_fault = err;
		return;
	}
	f = trace_footer(indexed);
	if (!f) {
		if (trace_tail(indexed, &err) && !k->c->first_fault.text[0])
			k->c->first_fault = err;
		goto out;
	}
	for (i = 0; i < indexed->blocks.len && i < k->t->blocks.len; i++) {
		if (!same_entry(&indexed->blocks.items[i], &k->t->blocks.items[i]))
			break;
	}
	if (i < indexed->blocks.len || i < k->t->blocks.len)
		fault(k, f->index_offset, "the index does not describe this file");
	else if (f->nr_events != k->c->nr_events || f->nr_blobs != k->c->nr_blobs ||
		 f->nr_losses != k->c->nr_losses)
		fault(k, f->own_offset, "the footer's counts are wrong");
	else
		k->c->closed = true;
out:
	trace_close(indexed);
}

/* Only a plan may keep its data elsewhere (doc/plan-format.md). */
static bool has_data_elsewhere(struct trace *t)
{
	size_t i, damages = t->damages.len;
	struct buf value = { 0 };
	bool found = false;

	for (i = 0; i < t->blocks.len && !found; i++)
		found = t->blocks.items[i].type == BLOCK_ACTIONS;
	found = found && trace_meta(t, "data_file", &value);
	t->damages.len = damages; /* those of the records are counted when they are checked */
	buf_release(&value);
	return found;
}

static void count_blocks(struct checker *k)
{
	size_t i;

	k->c->nr_blocks = k->t->blocks.len;
	k->c->nr_streams = k->t->streams.len;
	for (i = 0; i < k->t->blocks.len; i++) {
		if (k->t->blocks.items[i].type >= BLOCK_TYPE_MAX)
			k->c->nr_unknown_blocks++;
	}
}

int trace_check(const char *path, struct progress *progress, struct check_result *ret,
		struct err *err)
{
	struct checker k = { .c = ret, .progress = progress };
	int r;

	*ret = (struct check_result){ 0 };
	r = trace_open(path, TRACE_SALVAGE, &k.t, err);
	if (r < 0)
		return r;
	progress_set_total(progress, trace_nr_events(k.t));
	count_damages(&k, 0);
	count_blocks(&k);
	k.data_elsewhere = has_data_elsewhere(k.t);
	if (!k.t->blocks.len) {
		/* Nothing of ours in it: the words of an ordinary reader fit best. */
		trace_close(k.t);
		r = trace_open(path, 0, &k.t, err);
		if (r >= 0)
			trace_close(k.t);
		return r < 0 ? r : err_set(err, -EBADMSG, "%s: nothing in it can be read", path);
	}
	r = check_data_blocks(&k, err);
	if (!r) {
		check_streams(&k);
		check_index(&k);
	}
	free(k.known);
	trace_close(k.t);
	return r;
}
