/* SPDX-License-Identifier: MIT */
/*
 * Finding the blocks of a file. A closed file has a footer at its very end,
 * which leads to a chain of index blocks. Any other file is scanned: block after
 * block, and behind a damaged one byte by byte for the next good header.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/varint.h"
#include "trace/file.h"

/*
 * A hostile file may be full of headers that promise long payloads. Checking
 * them all may cost at most this many times the size of the file.
 */
#define SCAN_EFFORT 16
#define SCAN_WINDOW ((size_t)1 << 16)

int trace_fault(const struct trace *t, uint64_t offset, int r, struct err *err, const char *fmt,
		...)
{
	char words[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, ap); /* long ones are cut */
	va_end(ap);
	return err_set(err, r, "%s: offset %llu: %s", t->path, (unsigned long long)offset, words);
}

/* All or a failure: a file may shrink while it is read. */
static int read_at(const struct trace *t, void *p, size_t len, uint64_t offset)
{
	ssize_t n = pread_full(t->fd, p, len, offset);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EIO;
}

static bool block_fits(const struct trace *t, uint64_t offset, uint64_t stored_bytes)
{
	return offset <= t->file_bytes && t->file_bytes - offset >= BLOCK_HEADER_BYTES &&
	       t->file_bytes - offset - BLOCK_HEADER_BYTES >= stored_bytes;
}

static int read_header(struct trace *t, uint64_t offset, struct block_header *ret, struct err *err)
{
	uint8_t raw[BLOCK_HEADER_BYTES];
	int r;

	if (!block_fits(t, offset, 0))
		return trace_fault(t, offset, -EBADMSG, err, "the file ends within a block");
	r = read_at(t, raw, sizeof(raw), offset);
	if (r < 0)
		return trace_fault(t, offset, r, err, "cannot read");
	if (block_header_get(raw, ret) < 0)
		return trace_fault(t, offset, -EBADMSG, err, "damaged block header");
	if (!block_fits(t, offset, ret->stored_bytes))
		return trace_fault(t, offset, -EBADMSG, err, "the file ends within a block");
	return 0;
}

int trace_read_block(struct trace *t, uint64_t offset, struct block_read *b, struct err *err)
{
	int r = read_header(t, offset, &b->header, err);

	if (r < 0)
		return r;
	/* An unpacked block cannot be longer than the format allows, nor can its packed form. */
	if (b->header.stored_bytes > BLOCK_PLAIN_MAX)
		return trace_fault(t, offset, -EBADMSG, err, "block claims %u bytes",
				   b->header.stored_bytes);
	buf_clear(b->stored);
	r = read_at(t, buf_reserve(b->stored, b->header.stored_bytes), b->header.stored_bytes,
		    offset + BLOCK_HEADER_BYTES);
	if (r < 0)
		return trace_fault(t, offset, r, err, "cannot read");
	b->len = b->header.plain_bytes;
	r = block_unpack(t->unpacker, &b->header, b->stored->data, b->plain, &b->payload, err);
	if (r < 0)
		return err_wrap(err, r, "%s: offset %llu", t->path, (unsigned long long)offset);
	return 0;
}

/* By the index. */

/*
 * Reads one index block. *below is where the block behind its last entry begins,
 * and gets where its first entry does: entries stand in the order of the file,
 * so a file cannot list more blocks than it has room for.
 */
static int load_index_block(struct trace *t, uint64_t offset, struct block_read *b, uint64_t *below,
			    uint64_t *ret_prev, struct err *err)
{
	uint64_t nr, i;
	int r = trace_read_block(t, offset, b, err);

	if (r < 0)
		return r;
	if (b->header.type != BLOCK_INDEX || b->len < INDEX_PREFIX_BYTES)
		return trace_fault(t, offset, -EBADMSG, err, "not an index block");
	nr = get_le64(b->payload + 8);
	if (nr > (b->len - INDEX_PREFIX_BYTES) / INDEX_ENTRY_BYTES)
		return trace_fault(t, offset, -EBADMSG, err, "index claims too many entries");
	*ret_prev = get_le64(b->payload);
	/* The chain must go down, or it could go round. */
	if (*ret_prev >= offset)
		return trace_fault(t, offset, -EBADMSG, err, "index chain does not go back");
	for (i = nr; i-- > 0;) {
		struct block_entry e;

		block_entry_get(b->payload + INDEX_PREFIX_BYTES + i * INDEX_ENTRY_BYTES, &e);
		if (e.offset >= *below ||
		    BLOCK_HEADER_BYTES + (uint64_t)e.stored_bytes > *below - e.offset)
			return trace_fault(t, offset, -EBADMSG, err,
					   "index entries are not in the order of the file");
		*below = e.offset;
		VEC_PUSH(&t->blocks, e);
	}
	return 0;
}

/* The chain is followed backwards; this puts the blocks in the order of the file. */
static void reverse_blocks(struct trace *t)
{
	size_t i, n = t->blocks.len;

	for (i = 0; i < n / 2; i++) {
		struct block_entry e = t->blocks.items[i];

		t->blocks.items[i] = t->blocks.items[n - 1 - i];
		t->blocks.items[n - 1 - i] = e;
	}
}

static int load_footer(struct trace *t, struct block_read *b, struct err *err)
{
	uint64_t size = BLOCK_HEADER_BYTES + FOOTER_PAYLOAD_BYTES;
	uint64_t offset = t->file_bytes - size;
	int r;

	if (t->file_bytes < size)
		return trace_fault(t, 0, -EBADMSG, err, "no footer");
	r = trace_read_block(t, offset, b, err);
	if (r < 0)
		return r;
	if (b->header.type != BLOCK_FOOTER || b->len != FOOTER_PAYLOAD_BYTES)
		return trace_fault(t, offset, -EBADMSG, err, "no footer");
	footer_get(b->payload, &t->footer);
	if (t->footer.own_offset != offset || t->footer.index_offset >= offset)
		return trace_fault(t, offset, -EBADMSG, err, "footer of another file");
	return 0;
}

static int load_index(struct trace *t, struct block_read *b, struct err *err)
{
	uint64_t offset, below;
	int r = load_footer(t, b, err);

	if (r < 0)
		return r;
	below = t->footer.own_offset;
	for (offset = t->footer.index_offset; offset;) {
		r = load_index_block(t, offset, b, &below, &offset, err);
		if (r < 0)
			return r;
	}
	reverse_blocks(t);
	if (t->blocks.len != t->footer.nr_blocks)
		return trace_fault(t, t->footer.index_offset, -EBADMSG, err, "index is incomplete");
	t->closed = t->has_footer = true;
	t->end_bytes = t->file_bytes;
	return 0;
}

/* By a scan. */

struct scan {
	struct trace *t;
	struct err *err;
	struct block_read b;
	uint64_t effort_left; /* bytes that may still be checked in vain */
};

static void note_damage(struct trace *t, uint64_t offset, uint64_t len, bool tail)
{
	struct trace_damage d = { .offset = offset, .length_bytes = len, .tail = tail };

	VEC_PUSH(&t->damages, d);
}

static struct block_entry entry_of(const struct block_read *b, uint64_t offset)
{
	struct block_entry e = { .type = b->header.type,
				 .stored_bytes = b->header.stored_bytes,
				 .offset = offset,
				 .number = b->header.number };
	struct events_prefix p;

	if (e.type != BLOCK_EVENTS && e.type != BLOCK_ACTIONS)
		return e;
	if (!events_prefix_get(b->payload, b->len, &p)) {
		e.last_ns = UINT64_MAX; /* whoever asks for any time must come upon it */
	} else {
		e.pid = p.pid;
		e.tid = p.tid;
		e.nr_events = p.nr_events;
		e.first_index = p.first_index;
		e.first_ns = p.first_ns;
		e.last_ns = p.last_ns;
	}
	return e;
}

/* 1 when a good block starts at the offset, 0 when none does, -errno. Checks its payload too. */
static int try_block(struct scan *s, uint64_t offset)
{
	struct block_header h;
	int r = read_header(s->t, offset, &h, s->err);

	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	if (h.stored_bytes > s->effort_left)
		return 0;
	r = trace_read_block(s->t, offset, &s->b, s->err);
	if (!r)
		return 1;
	if (r == -EOPNOTSUPP) {
		/* Whole, but not for us: an unknown type is passed over, a known one is refused when read. */
		s->b.len = 0;
		return 1;
	}
	if (r != -EBADMSG)
		return r;
	s->effort_left -= h.stored_bytes;
	return 0;
}

/* The next good block at or after *offset, the end of the file if there is none. 0 or -errno. */
static int find_block(struct scan *s, uint8_t *window, uint64_t *offset)
{
	struct trace *t = s->t;
	int r;

	while (t->file_bytes - *offset >= BLOCK_HEADER_BYTES) {
		size_t want = SCAN_WINDOW, i;

		if (want > t->file_bytes - *offset)
			want = (size_t)(t->file_bytes - *offset);
		r = read_at(t, window, want, *offset);
		if (r < 0)
			return trace_fault(t, *offset, r, s->err, "cannot read");
		for (i = 0; i + 4 <= want; i++) {
			r = block_has_magic(window + i) ? try_block(s, *offset + i) : 0;
			if (!r)
				continue;
			*offset += i;
			return r < 0 ? r : 0;
		}
		*offset += want - 3;
	}
	*offset = t->file_bytes;
	return 0;
}

static bool is_layout(uint8_t type)
{
	return type == BLOCK_INDEX || type == BLOCK_FOOTER;
}

static int scan_blocks(struct trace *t, struct buf *stored, struct buf *plain, struct err *err)
{
	AUTO_FREE uint8_t *window = xmalloc(SCAN_WINDOW);
	struct scan s = { .t = t,
			  .err = err,
			  .b = { .stored = stored, .plain = plain },
			  .effort_left = (t->file_bytes + 1) * SCAN_EFFORT };
	uint64_t offset = 0, good;
	int r;

	while (offset < t->file_bytes) {
		good = offset;
		r = try_block(&s, offset);
		if (!r)
			r = find_block(&s, window, &good);
		if (r < 0)
			return r;
		if (good != offset)
			note_damage(t, offset, good - offset, good == t->file_bytes);
		if (good == t->file_bytes)
			break;
		if (!is_layout(s.b.header.type)) {
			struct block_entry e = entry_of(&s.b, good);

			VEC_PUSH(&t->blocks, e);
		}
		if (s.b.header.type == BLOCK_FOOTER)
			t->has_footer = true;
		offset = good + BLOCK_HEADER_BYTES + s.b.header.stored_bytes;
		t->end_bytes = offset;
	}
	if (t->flags & TRACE_SALVAGE)
		return 0;
	/* A writer that was killed damages nothing but the end. */
	if (t->damages.len && !t->damages.items[0].tail)
		return trace_fault(t, t->damages.items[0].offset, -EBADMSG, err, "damaged block");
	return 0;
}

int trace_find_blocks(struct trace *t, struct err *err)
{
	struct buf stored = { 0 }, plain = { 0 };
	struct block_read b = { .stored = &stored, .plain = &plain };
	struct err why = {
		""
	}; /* of the last thing that did not work; told only if it ends here */
	int r = -EBADMSG;

	if (!(t->flags & TRACE_SALVAGE))
		r = load_index(t, &b, &why);
	if (r == -EBADMSG || r == -EOPNOTSUPP) {
		t->blocks.len = 0;
		r = scan_blocks(t, &stored, &plain, &why);
	}
	if (r < 0 && err)
		*err = why;
	buf_release(&stored);
	buf_release(&plain);
	return r;
}
