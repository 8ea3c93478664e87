/* SPDX-License-Identifier: MIT */
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/map.h"
#include "base/varint.h"
#include "trace/event_codec.h"
#include "trace/file.h"

/* Opening. */

static int check_first_block(struct trace *t, struct err *err)
{
	struct buf stored = { 0 }, plain = { 0 };
	struct block_read b = { .stored = &stored, .plain = &plain };
	uint8_t raw[4] = { 0 };
	ssize_t n;
	int r;

	if (!t->file_bytes)
		return trace_fault(t, 0, -EBADMSG, err, "the file is empty");
	n = pread_full(t->fd, raw, sizeof(raw), 0);
	if (n < 0)
		return trace_fault(t, 0, (int)n, err, "cannot read");
	if (n != sizeof(raw) || !block_has_magic(raw))
		return trace_fault(t, 0, -EBADMSG, err, "not a trace of reprise");
	r = trace_read_block(t, 0, &b, err);
	if (!r && (b.header.type != BLOCK_FILE || b.len < FILE_PAYLOAD_BYTES ||
		   memcmp(b.payload, "reprise trace\n", 14)))
		r = trace_fault(t, 0, -EBADMSG, err, "not a trace of reprise");
	if (!r && get_le32(b.payload + 16) > TRACE_FORMAT_VERSION)
		r = trace_fault(t, 0, -EOPNOTSUPP, err,
				"format version %u, this program reads up to %u",
				get_le32(b.payload + 16), TRACE_FORMAT_VERSION);
	buf_release(&stored);
	buf_release(&plain);
	return r;
}

static int load_schema(struct trace *t, struct err *err)
{
	struct buf stored = { 0 }, plain = { 0 };
	struct block_read b = { .stored = &stored, .plain = &plain };
	size_t i;
	int r = 0;

	for (i = 0; i < t->blocks.len; i++) {
		const struct block_entry *e = &t->blocks.items[i];

		if (e->type != BLOCK_SCHEMA)
			continue;
		r = trace_read_block(t, e->offset, &b, err);
		if (r < 0)
			break;
		r = schema_parse((const char *)b.payload, b.len, &t->schema, err);
		if (r < 0)
			err_wrap(err, r, "%s: offset %llu", t->path, (unsigned long long)e->offset);
		break;
	}
	/* Without one (its block is damaged, or was never written) ours is the best guess. */
	if (!r && !t->schema)
		t->schema = schema_new();
	if (r < 0 && (t->flags & TRACE_SALVAGE)) {
		t->schema = schema_new();
		r = 0;
	}
	buf_release(&stored);
	buf_release(&plain);
	return r;
}

static int open_file(struct trace *t, struct err *err)
{
	struct stat st;

	/* A FIFO without a writer must not hold us up: it is refused below. */
	t->fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (t->fd < 0)
		return err_set(err, -errno, "cannot open %s", t->path);
	if (fstat(t->fd, &st) < 0)
		return err_set(err, -errno, "cannot look at %s", t->path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s: not a regular file", t->path);
	t->file_bytes = (uint64_t)st.st_size;
	return 0;
}

int trace_open(const char *path, int flags, struct trace **ret, struct err *err)
{
	struct trace *t = xcalloc(1, sizeof(*t));
	int r;

	t->path = xstrdup(path);
	t->flags = flags;
	t->unpacker = block_unpacker_new();
	r = open_file(t, err);
	if (!r)
		r = check_first_block(t, err);
	/* Damage is what there is to salvage; another format would be read wrongly. */
	if (r == -EBADMSG && (flags & TRACE_SALVAGE))
		r = 0;
	if (!r)
		r = trace_find_blocks(t, err);
	if (!r)
		r = load_schema(t, err);
	if (!r)
		r = trace_build_streams(t, err);
	if (r < 0) {
		trace_close(t);
		return r;
	}
	*ret = t;
	return 0;
}

void trace_close(struct trace *t)
{
	unsigned int i;

	if (!t)
		return;
	if (t->fd >= 0)
		(void)close(t->fd); /* only read from */
	for (i = 0; i < BLOB_CACHE_BLOCKS; i++) {
		buf_release(&t->cache[i].stored);
		buf_release(&t->cache[i].plain);
	}
	VEC_RELEASE(&t->blocks);
	VEC_RELEASE(&t->streams);
	VEC_RELEASE(&t->blob_blocks);
	VEC_RELEASE(&t->damages);
	free(t->next_of_stream);
	schema_free(t->schema);
	block_unpacker_free(t->unpacker);
	free(t->path);
	free(t);
}

/* Streams. */

/* Gives the stream of each block, made when it is the stream's first. */
static struct trace_stream_info *stream_of(struct trace *t, struct map *by_number,
					   const struct block_entry *e, uint32_t block)
{
	void **slot = map_slot(by_number, &e->number, sizeof(e->number));
	struct trace_stream_info s;

	if (*slot)
		return &t->streams.items[(uintptr_t)*slot - 1];
	s = (struct trace_stream_info){ .number = e->number,
					.pid = e->pid,
					.tid = e->tid,
					.first_ns = e->first_ns,
					.last_ns = e->last_ns,
					.first_block = block };
	VEC_PUSH(&t->streams, s);
	*slot = (void *)t->streams.len;
	return &t->streams.items[t->streams.len - 1];
}

static int stream_order(const void *a, const void *b)
{
	const struct trace_stream_info *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Streams are numbered as they begin, which need not be the order in which they reach the file. */
static void sort_streams(struct trace *t)
{
	struct map per_tid = { 0 };
	size_t i;

	if (t->streams.len)
		qsort(t->streams.items, t->streams.len, sizeof(*t->streams.items), stream_order);
	for (i = 0; i < t->streams.len; i++) {
		struct trace_stream_info *s = &t->streams.items[i];
		void **seen = map_slot(&per_tid, &s->tid, sizeof(s->tid));

		s->generation = (uint32_t)(uintptr_t)*seen;
		*seen = (void *)((uintptr_t)*seen + 1);
	}
	map_release(&per_tid);
}

static int blob_block_order(const void *a, const void *b, void *blocks)
{
	const struct block_entry *entries = blocks;
	uint64_t x = entries[*(const uint32_t *)a].number, y = entries[*(const uint32_t *)b].number;

	return x < y ? -1 : x > y;
}

int trace_build_streams(struct trace *t, struct err *err)
{
	struct map by_number = { 0 };
	VEC(uint32_t) last = { 0 };
	size_t i;

	if (t->blocks.len >= NO_BLOCK)
		return err_set(err, -E2BIG, "%s: too many blocks", t->path);
	t->next_of_stream = xmalloc(t->blocks.len * sizeof(*t->next_of_stream));
	for (i = 0; i < t->blocks.len; i++) {
		const struct block_entry *e = &t->blocks.items[i];
		struct trace_stream_info *s;
		size_t no;

		t->next_of_stream[i] = NO_BLOCK;
		if (e->type == BLOCK_BLOBS)
			VEC_PUSH(&t->blob_blocks, (uint32_t)i);
		if (e->type != BLOCK_EVENTS)
			continue;
		s = stream_of(t, &by_number, e, (uint32_t)i);
		no = (size_t)(s - t->streams.items);
		if (no == last.len)
			VEC_PUSH(&last, (uint32_t)i);
		else
			t->next_of_stream[last.items[no]] = (uint32_t)i;
		last.items[no] = (uint32_t)i;
		s->nr_events += e->nr_events;
		s->first_ns = e->first_ns < s->first_ns ? e->first_ns : s->first_ns;
		s->last_ns = e->last_ns > s->last_ns ? e->last_ns : s->last_ns;
	}
	sort_streams(t);
	if (t->blob_blocks.len)
		qsort_r(t->blob_blocks.items, t->blob_blocks.len, sizeof(uint32_t),
			blob_block_order, t->blocks.items);
	map_release(&by_number);
	VEC_RELEASE(&last);
	return 0;
}

uint64_t trace_stream_gap(const struct trace *t, const struct trace_stream_info *s)
{
	uint64_t expected = 0, gap = 0;
	uint32_t n;

	for (n = s->first_block; n != NO_BLOCK; n = t->next_of_stream[n]) {
		const struct block_entry *e = &t->blocks.items[n];

		if (e->first_index > expected)
			gap += e->first_index - expected;
		expected = e->first_index + e->nr_events;
	}
	return gap;
}

const char *trace_path(const struct trace *t)
{
	return t->path;
}

uint64_t trace_file_bytes(const struct trace *t)
{
	return t->file_bytes;
}

const struct trace_stream_info *trace_streams(const struct trace *t, size_t *ret_nr)
{
	*ret_nr = t->streams.len;
	return t->streams.items;
}

const struct block_entry *trace_blocks(const struct trace *t, size_t *ret_nr)
{
	*ret_nr = t->blocks.len;
	return t->blocks.items;
}

uint64_t trace_nr_events(const struct trace *t)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < t->streams.len; i++)
		sum += t->streams.items[i].nr_events;
	return sum;
}

const struct footer *trace_footer(const struct trace *t)
{
	return t->closed ? &t->footer : NULL;
}

const struct schema *trace_schema(const struct trace *t)
{
	return t->schema;
}

const struct trace_damage *trace_damages(const struct trace *t, size_t *ret_nr)
{
	*ret_nr = t->damages.len;
	return t->damages.items;
}

int trace_tail(const struct trace *t, struct err *err)
{
	if (t->late_r && err)
		*err = t->late;
	if (t->late_r)
		return t->late_r;
	if (t->closed)
		return 0;
	if (t->damages.len && t->damages.items[t->damages.len - 1].tail)
		return trace_fault(t, t->end_bytes, -EBADMSG, err,
				   "the file ends within a block; what came before it was read");
	(void)trace_fault(
		t, t->end_bytes, 0, err,
		"the trace was not closed: its recorder was stopped, or the file was cut");
	return 1;
}

int trace_bad_block(struct trace *t, const struct block_entry *e, int r)
{
	struct trace_damage d = { .offset = e->offset,
				  .length_bytes = BLOCK_HEADER_BYTES + e->stored_bytes };

	if (!(t->flags & TRACE_SALVAGE))
		return r;
	VEC_PUSH(&t->damages, d);
	return 0;
}

/* Records. */

struct trace_items {
	struct trace *t;
	enum block_type section;
	size_t next_block;
	const struct block_entry *block;
	struct buf stored, plain;
	struct cursor in;
	struct arena arena;
	struct item item;
};

int trace_items_open(struct trace *t, enum block_type section, struct trace_items **ret,
		     struct err *err)
{
	struct trace_items *it;

	if (section != BLOCK_META && section != BLOCK_TREE && section != BLOCK_LEDGER)
		return err_set(err, -EINVAL, "block type %d holds no records", (int)section);
	it = xcalloc(1, sizeof(*it));
	it->t = t;
	it->section = section;
	arena_init(&it->arena);
	*ret = it;
	return 0;
}

void trace_items_close(struct trace_items *it)
{
	if (!it)
		return;
	buf_release(&it->stored);
	buf_release(&it->plain);
	arena_release(&it->arena);
	free(it);
}

static int next_items_block(struct trace_items *it, struct err *err)
{
	struct trace *t = it->t;

	while (it->next_block < t->blocks.len) {
		const struct block_entry *e = &t->blocks.items[it->next_block++];
		struct block_read b = { .stored = &it->stored, .plain = &it->plain };
		int r;

		if (e->type != it->section)
			continue;
		r = trace_read_block(t, e->offset, &b, err);
		if (r < 0) {
			r = trace_bad_block(t, e, r);
			if (r < 0)
				return r;
			continue;
		}
		it->block = e;
		it->in = (struct cursor){ b.payload, b.payload + b.len };
		return 1;
	}
	return 0;
}

int trace_items_next(struct trace_items *it, struct item **ret, struct err *err)
{
	int r;

	for (;;) {
		while (!cursor_left(&it->in)) {
			r = next_items_block(it, err);
			if (r <= 0)
				return r;
		}
		arena_reset(&it->arena);
		if (item_get(it->t->schema, &it->in, &it->arena, &it->item)) {
			*ret = &it->item;
			return 1;
		}
		r = trace_bad_block(it->t, it->block, -EBADMSG);
		if (r < 0)
			return trace_fault(it->t, it->block->offset, r, err, "malformed record");
		it->in = (struct cursor){ 0 };
	}
}

/* The first failure is the one to tell. */
static void fail_late(struct trace *t, int r, const struct err *err)
{
	if (t->late_r)
		return;
	t->late_r = r;
	t->late = *err;
}

/* 1 and the text, 0 when only its hash was kept, -errno. */
static int load_text(struct trace *t, const struct data *d, struct buf *ret, struct err *err)
{
	uint64_t i, nr = data_nr_pieces(d);
	int r;

	buf_clear(ret);
	for (i = 0; i < nr; i++) {
		const uint8_t *bytes;
		size_t len;

		r = trace_load_piece(t, d, i, &bytes, &len, err);
		if (r != 1)
			return r;
		buf_put(ret, bytes, len);
	}
	return 1;
}

const char *trace_meta(struct trace *t, const char *key, struct buf *buf)
{
	struct trace_items *it;
	struct item *item;
	const char *found = NULL;
	struct err err;
	int r = trace_items_open(t, BLOCK_META, &it, &err);

	if (r < 0)
		return NULL; /* META has records, so this cannot be */
	while (!found && (r = trace_items_next(it, &item, &err)) == 1) {
		const struct value *k = &item->args[0], *v = &item->args[1];

		if (item->row->id != REC_meta || k->type != VALUE_DATA || v->type != VALUE_DATA ||
		    !k->data->bytes || k->data->kept_bytes != strlen(key) ||
		    memcmp(k->data->bytes, key, strlen(key)))
			continue;
		r = load_text(t, v->data, buf, &err);
		if (r != 1)
			break;
		found = buf_str(buf);
	}
	if (r < 0)
		fail_late(t, r, &err);
	trace_items_close(it);
	return found;
}

bool trace_tree_is_partial(struct trace *t)
{
	struct buf text = { 0 };
	const char *word = trace_meta(t, TRACE_META_TREE, &text);
	bool partial = word && !strcmp(word, TRACE_TREE_PARTIAL);

	buf_release(&text);
	return partial;
}

/* Data. */

static const struct block_entry *find_blob_block(const struct trace *t, uint64_t number)
{
	size_t low = 0, high = t->blob_blocks.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct block_entry *e = &t->blocks.items[t->blob_blocks.items[mid]];

		if (e->number == number)
			return e;
		if (e->number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static int load_blob_block(struct trace *t, uint64_t number, struct blob_block **ret,
			   struct err *err)
{
	struct blob_block *c = &t->cache[0];
	const struct block_entry *e = NULL;
	struct block_read b;
	unsigned int i;
	int r;

	/* 0 marks what is empty in the cache. */
	for (i = 0; number && i < BLOB_CACHE_BLOCKS; i++) {
		if (t->cache[i].number == number) {
			t->cache[i].used = ++t->cache_clock;
			*ret = &t->cache[i];
			return 0;
		}
		if (t->cache[i].used < c->used)
			c = &t->cache[i];
	}
	if (number)
		e = find_blob_block(t, number);
	if (!e)
		return err_set(err, -ENODATA, "%s: data block %llu is missing", t->path,
			       (unsigned long long)number);
	c->number = 0;
	b = (struct block_read){ .stored = &c->stored, .plain = &c->plain };
	r = trace_read_block(t, e->offset, &b, err);
	if (r < 0)
		return r;
	c->number = number;
	c->used = ++t->cache_clock;
	c->payload = b.payload;
	c->payload_len = b.len;
	*ret = c;
	return 0;
}

static int load_blob(struct trace *t, const struct blob_ref *ref, uint64_t want,
		     const uint8_t **ret, struct err *err)
{
	uint64_t at = ref->blob & ((1u << BLOB_OFFSET_BITS) - 1), len;
	struct blob_block *c = NULL;
	const uint8_t *p;
	int r = load_blob_block(t, ref->blob >> BLOB_OFFSET_BITS, &c, err);

	if (r < 0)
		return r;
	if (c->payload_len < BLOB_PREFIX_BYTES || at > c->payload_len - BLOB_PREFIX_BYTES)
		goto bad;
	p = c->payload + at;
	len = get_le32(p + 16);
	if (len != want || len > c->payload_len - BLOB_PREFIX_BYTES - at ||
	    get_le64(p) != ref->hash.low || get_le64(p + 8) != ref->hash.high)
		goto bad;
	*ret = p + BLOB_PREFIX_BYTES;
	return 1;
bad:
	return err_set(err, -EBADMSG, "%s: data block %llu does not hold what an event refers to",
		       t->path, (unsigned long long)(ref->blob >> BLOB_OFFSET_BITS));
}

int trace_load_piece(struct trace *t, const struct data *d, uint64_t piece, const uint8_t **ret,
		     size_t *ret_len, struct err *err)
{
	uint64_t from = piece * BLOB_MAX_BYTES, len;
	struct err why;
	int r;

	if (piece >= data_nr_pieces(d))
		return 0;
	len = d->kept_bytes - from < BLOB_MAX_BYTES ? d->kept_bytes - from : BLOB_MAX_BYTES;
	*ret_len = (size_t)len;
	if (d->bytes) {
		*ret = d->bytes + from;
		return 1;
	}
	if (!d->refs || !d->refs[piece].blob)
		return 0;
	r = load_blob(t, &d->refs[piece], len, ret, err ? err : &why);
	if (r < 0 && !err)
		fail_late(t, r, &why);
	return r;
}
