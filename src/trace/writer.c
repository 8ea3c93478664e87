/* SPDX-License-Identifier: MIT */
/*
 * The half of the writer that appending threads run: streams, sections, the
 * blob store (known.c: which are in it).
 *
 *   stream buffer --(full: copied as one block)--> feed's batch --> sink
 *   blob bytes ----(copied once)-----------------> blob batch ----> sink
 *
 * Invariant: before a block that may refer to the blobs of the blob batch
 * enters the feed's batch, the blob batch is submitted. So a file that ends
 * anywhere has the data of all the events that it has.
 */
#include "trace/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/codec.h"
#include "trace/event_codec.h"
#include "trace/known.h"
#include "trace/writer_thread.h"

/* All streams together may hold this much; each gets its share, within limits. */
#define STREAMS_BYTES ((size_t)8 << 20)
#define STREAM_MIN_BYTES ((size_t)4 << 10)
#define STREAM_MAX_BYTES ((size_t)256 << 10)
#define SECTION_BYTES ((size_t)256 << 10)
/* With less room than this left nothing more is taken in. */
#define ROOM_MIN_BYTES ((uint64_t)8 << 10)
/* A feed claims so much at a time, while there is plenty. */
#define CREDIT_BYTES ((uint64_t)32 << 10)

enum section {
	SECTION_META,
	SECTION_TREE,
	SECTION_LEDGER,
	SECTION_MAX,
};

static const uint8_t section_blocks[SECTION_MAX] = { BLOCK_META, BLOCK_TREE, BLOCK_LEDGER };

struct trace_stream {
	struct trace_stream *next, *prev;
	uint64_t number;
	struct events_prefix prefix; /* of the block that is being filled */
	struct event_state state;
	struct buf bytes;
};

struct trace_feed {
	struct blob_sink blobs; /* first: put_blob() gets a pointer to it */
	struct trace_writer *writer;
	struct trace_feed *next;
	struct trace_stream *streams;
	size_t nr_streams, stream_limit_bytes;
	struct buf sections[SECTION_MAX];
	struct batch *batch, *blob_batch;
	struct known known;
	bool was_known; /* the last one that was lent */
	uint64_t credit_bytes; /* claimed, for what will be kept */
	bool seal_due; /* a batch of data is full: the events that it is of shall follow it */
	bool at_end; /* what is being taken in may use the room set aside for the end */
};

struct trace_writer {
	struct sink *sink;
	struct schema *schema;
	size_t dedup_entries;
	bool no_blobs;
	pthread_mutex_t lock; /* guards the list of feeds */
	struct trace_feed *feeds;
	/* Plain counters: nothing is ordered by them. */
	_Atomic uint64_t next_seq, next_stream, next_blob_block, nr_losses;
	_Atomic uint64_t nr_losses_by_kind[LOSS_KIND_MAX];
	/* Reserved room has run out: why, and what had to be refused since. */
	atomic_int full;
	_Atomic uint64_t nr_refused, refused_from_ns, refused_to_ns;
};

static struct batch_block *add_block(struct batch *b, uint8_t type, uint64_t number)
{
	struct batch_block *bb = &b->blocks[b->nr_blocks++];

	*bb = (struct batch_block){ .entry = { .type = type, .number = number },
				    .at = b->len_bytes };
	return bb;
}

static void submit_blobs(struct trace_feed *f)
{
	struct batch *b = f->blob_batch;

	if (!b)
		return;
	if (!b->len_bytes)
		b->nr_blocks = 0; /* there was no room for what it was taken for */
	b->blocks[0].len_bytes = b->len_bytes;
	sink_submit(f->writer->sink, b);
	f->blob_batch = NULL;
}

static void submit_batch(struct trace_feed *f)
{
	if (f->batch)
		sink_submit(f->writer->sink, f->batch);
	f->batch = NULL;
}

/* Copies a payload into the feed's batch as one block. */
static struct batch_block *copy_block(struct trace_feed *f, uint8_t type, uint64_t number,
				      const struct buf *payload)
{
	struct batch_block *bb;

	if (f->batch && (f->batch->len_bytes + payload->len > BATCH_BYTES ||
			 f->batch->nr_blocks == BATCH_BLOCKS_MAX))
		submit_batch(f);
	if (!f->batch)
		f->batch = sink_take_batch(f->writer->sink, payload->len);
	bb = add_block(f->batch, type, number);
	bb->len_bytes = payload->len;
	memcpy(f->batch->bytes + f->batch->len_bytes, payload->data, payload->len);
	f->batch->len_bytes += payload->len;
	return bb;
}

/* The same for a block that may refer to what the blob batch holds. */
static struct batch_block *emit_block(struct trace_feed *f, uint8_t type, uint64_t number,
				      const struct buf *payload)
{
	submit_blobs(f);
	return copy_block(f, type, number, payload);
}

int trace_feed_block(struct trace_feed *f, const struct block_entry *entry,
		     const struct buf *payload)
{
	int r = sink_error(f->writer->sink);

	if (!r && payload->len > BLOCK_PLAIN_MAX)
		r = -E2BIG;
	if (!r)
		copy_block(f, entry->type, entry->number, payload)->entry = *entry;
	return r;
}

/* Room. */

static int seal_all(struct trace_feed *f);

/* 0, or the failure that ended the taking. Cheap. */
static int feed_error(const struct trace_feed *f)
{
	int r = sink_error(f->writer->sink);

	return r ? r : atomic_load_explicit(&f->writer->full, memory_order_relaxed);
}

/*
 * Sees to it that there is some room, before something is taken in: at a point
 * where nothing is half done, so that what the feed holds can be written, which
 * takes less room once it is packed.
 */
static int make_room(struct trace_feed *f, uint64_t bytes)
{
	struct sink *k = f->writer->sink;
	int r = feed_error(f);

	bytes += ROOM_MIN_BYTES;
	if (r || f->credit_bytes >= bytes || sink_has_room(k, bytes))
		return r;
	r = sink_extend(k, bytes);
	if (!r)
		return 0;
	(void)!seal_all(f); /* a failure is seen below */
	(void)!sink_wait_idle(k, NULL); /* likewise */
	if (sink_error(k))
		return sink_error(k);
	if (sink_has_room(k, bytes))
		return 0;
	atomic_store_explicit(&f->writer->full, r, memory_order_relaxed);
	return r;
}

/* Claims room for what is about to be kept. */
static int claim(struct trace_feed *f, uint64_t bytes)
{
	struct sink *k = f->writer->sink;
	int r;

	if (LIKELY(f->credit_bytes >= bytes)) {
		f->credit_bytes -= bytes;
		return 0;
	}
	if (sink_claim(k, bytes + CREDIT_BYTES)) {
		f->credit_bytes += CREDIT_BYTES;
		return 0;
	}
	do {
		if (sink_claim(k, bytes))
			return 0;
		r = sink_extend(k, bytes);
	} while (!r); /* another feed may have been faster */
	if (f->at_end && sink_claim_end(k, bytes))
		return 0;
	if (!sink_error(k))
		atomic_store_explicit(&f->writer->full, r, memory_order_relaxed);
	return r;
}

/* Blobs. */

static bool blob_fits(const struct trace_feed *f, size_t len)
{
	const struct batch *b = f->blob_batch;

	return b && b->len_bytes + BLOB_PREFIX_BYTES + len <= BATCH_BYTES;
}

/* Where the bytes of a blob go, so many of them at most: in a block that has room for them. */
static uint8_t *blob_room(struct trace_feed *f, size_t len)
{
	struct batch *b = f->blob_batch;
	uint64_t number;

	if (b && !blob_fits(f, len)) {
		submit_blobs(f);
		f->seal_due = true;
		b = NULL;
	}
	if (!b) {
		number = atomic_fetch_add_explicit(&f->writer->next_blob_block, 1,
						   memory_order_relaxed);
		b = f->blob_batch = sink_take_batch(f->writer->sink, BATCH_ROOM);
		(void)add_block(b, BLOCK_BLOBS, number);
	}
	return b->bytes + b->len_bytes + BLOB_PREFIX_BYTES;
}

/* Keeps the bytes that were put where blob_room() has said. */
static int keep_blob(struct trace_feed *f, size_t len, struct blob_ref *ref)
{
	struct batch *b = f->blob_batch;
	uint8_t *p = b->bytes + b->len_bytes;
	int r = claim(f, BLOB_PREFIX_BYTES + len + (b->len_bytes ? 0 : BLOCK_COST_BYTES));

	if (r)
		return r;
	put_le64(p, ref->hash.low);
	put_le64(p + 8, ref->hash.high);
	put_le32(p + 16, (uint32_t)len);
	ref->blob = b->blocks[0].entry.number << BLOB_OFFSET_BITS | b->len_bytes;
	b->len_bytes += BLOB_PREFIX_BYTES + len;
	b->blocks[0].nr_blobs++;
	known_add(&f->known, ref);
	return 0;
}

static int put_blob(struct blob_sink *sink, const uint8_t *bytes, size_t len, struct blob_ref *ret)
{
	struct trace_feed *f = (struct trace_feed *)sink;

	if (len > BLOB_MAX_BYTES)
		return -E2BIG;
	ret->hash = hash_bytes(bytes, len);
	if (known_find(&f->known, ret))
		return 0;
	memcpy(blob_room(f, len), bytes, len);
	return keep_blob(f, len, ret);
}

int trace_feed_blob(struct trace_feed *f, const uint8_t *bytes, size_t len, struct blob_ref *ret)
{
	int r = make_room(f, len);

	return r ? r : put_blob(&f->blobs, bytes, len, ret);
}

/*
 * A hash that is known stands for bytes that are stored, whatever it was computed from. So where
 * known data is to be expected it is not copied; what is stored is hashed as it was copied.
 */
int trace_feed_lent_blob(struct trace_feed *f, const uint8_t *bytes, size_t len,
			 struct blob_ref *ret)
{
	int r = len > BLOB_MAX_BYTES ? -E2BIG : make_room(f, len);
	uint8_t *room;

	if (r)
		return r;
	if (f->was_known) {
		ret->hash = hash_bytes(bytes, len);
		if (known_find(&f->known, ret))
			return 0;
	}
	room = blob_room(f, len);
	memcpy(room, bytes, len);
	ret->hash = hash_bytes(room, len);
	f->was_known = known_find(&f->known, ret);
	return f->was_known ? 0 : keep_blob(f, len, ret);
}

int trace_feed_blob_room(struct trace_feed *f, size_t len, uint8_t **ret)
{
	int r = len > BLOB_MAX_BYTES ? -E2BIG : make_room(f, len);

	if (r)
		return r;
	*ret = blob_room(f, len);
	sink_ready_batch(f->blob_batch, f->blob_batch->len_bytes + BLOB_PREFIX_BYTES + len);
	return 0;
}

int trace_feed_blob_filled(struct trace_feed *f, const uint8_t *room, size_t len,
			   struct blob_ref *ret)
{
	ret->hash = hash_bytes(room, len);
	return known_find(&f->known, ret) ? 0 : keep_blob(f, len, ret);
}

/* Where the data of events and records goes; NULL: nowhere else. */
static struct blob_sink *blob_sink(struct trace_feed *f)
{
	return f->writer->no_blobs ? NULL : &f->blobs;
}

/* Streams. */

static void share_out(struct trace_feed *f)
{
	size_t share = STREAMS_BYTES / (f->nr_streams ? f->nr_streams : 1);

	if (share < STREAM_MIN_BYTES)
		share = STREAM_MIN_BYTES;
	f->stream_limit_bytes = share < STREAM_MAX_BYTES ? share : STREAM_MAX_BYTES;
}

static void start_block(struct trace_stream *s)
{
	s->prefix.first_index += s->prefix.nr_events;
	s->prefix.nr_events = 0;
	s->prefix.first_ns = UINT64_MAX;
	s->prefix.last_ns = 0;
	buf_clear(&s->bytes);
}

static void seal_stream(struct trace_feed *f, struct trace_stream *s)
{
	struct block_entry *e;

	if (!s->prefix.nr_events)
		return;
	events_prefix_put(s->bytes.data, &s->prefix);
	e = &emit_block(f, BLOCK_EVENTS, s->number, &s->bytes)->entry;
	e->pid = s->prefix.pid;
	e->tid = s->prefix.tid;
	e->nr_events = s->prefix.nr_events;
	e->first_index = s->prefix.first_index;
	e->first_ns = s->prefix.first_ns;
	e->last_ns = s->prefix.last_ns;
	start_block(s);
	/* A stream that grew when there were few may now hold more than its share. */
	if (s->bytes.cap > 2 * f->stream_limit_bytes)
		buf_release(&s->bytes);
}

static void seal_streams(struct trace_feed *f)
{
	struct trace_stream *s;

	for (s = f->streams; s; s = s->next)
		seal_stream(f, s);
	submit_batch(f);
	f->seal_due = false;
}

struct trace_stream *trace_feed_open_stream(struct trace_feed *f, uint32_t pid, uint32_t tid)
{
	struct trace_stream *s = xcalloc(1, sizeof(*s));

	s->number = atomic_fetch_add_explicit(&f->writer->next_stream, 1, memory_order_relaxed);
	s->prefix.pid = pid;
	s->prefix.tid = tid;
	start_block(s);
	s->next = f->streams;
	if (s->next)
		s->next->prev = s;
	f->streams = s;
	f->nr_streams++;
	share_out(f);
	return s;
}

static void free_stream(struct trace_feed *f, struct trace_stream *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		f->streams = s->next;
	if (s->next)
		s->next->prev = s->prev;
	f->nr_streams--;
	share_out(f);
	buf_release(&s->bytes);
	free(s);
}

int trace_feed_close_stream(struct trace_feed *f, struct trace_stream *s)
{
	seal_stream(f, s);
	free_stream(f, s);
	return sink_error(f->writer->sink);
}

static int refuse_event(struct trace_feed *f, const struct trace_stream *s, const struct event *ev,
			int why)
{
	struct loss loss = {
		.kind = why == -E2BIG ? LOSS_EVENT_TOO_LARGE : LOSS_EVENTS_LOST,
		.pid = s->prefix.pid,
		.tid = s->prefix.tid,
		.count = 1,
		.from_ns = ev->enter_ns,
		.to_ns = ev->exit_ns,
		.note = ev->row->name,
	};
	int r = trace_feed_loss(f, &loss);

	return r ? r : why;
}

/* Counts what is refused because there is no room; closing says so in the ledger. */
static int refuse_for_room(struct trace_feed *f, const struct event *ev, int why)
{
	struct trace_writer *w = f->writer;
	uint64_t none = 0;

	if (sink_error(w->sink))
		return why;
	atomic_fetch_add_explicit(&w->nr_refused, 1, memory_order_relaxed);
	(void)atomic_compare_exchange_strong(&w->refused_from_ns, &none, ev->enter_ns);
	atomic_store_explicit(&w->refused_to_ns, ev->exit_ns, memory_order_relaxed);
	return why;
}

int trace_feed_event(struct trace_feed *f, struct trace_stream *s, const struct event *ev)
{
	struct events_prefix *prefix = &s->prefix;
	struct event_state before;
	uint64_t seq = ev->seq;
	int r = make_room(f, 0);
	size_t start;

	if (UNLIKELY(r))
		return refuse_for_room(f, ev, r);
	start = prefix->nr_events ? s->bytes.len : 0;
	if (!seq)
		seq = 1 + atomic_fetch_add_explicit(&f->writer->next_seq, 1, memory_order_relaxed);
	if (!prefix->nr_events) {
		(void)buf_reserve(&s->bytes, EVENTS_PREFIX_BYTES);
		s->bytes.len = EVENTS_PREFIX_BYTES;
		prefix->base_ns = ev->enter_ns;
		prefix->base_seq = seq - 1;
		s->state =
			(struct event_state){ .exit_ns = prefix->base_ns, .seq = prefix->base_seq };
	}
	before = s->state;
	r = event_put(f->writer->schema, ev, seq, &s->state, blob_sink(f), &s->bytes);
	if (UNLIKELY(r))
		return r == -E2BIG || r == -EOPNOTSUPP ? refuse_event(f, s, ev, r)
						       : refuse_for_room(f, ev, r);
	r = claim(f, s->bytes.len - start + (start ? 0 : BLOCK_COST_BYTES));
	if (UNLIKELY(r)) {
		s->bytes.len = start;
		s->state = before;
		return refuse_for_room(f, ev, r);
	}
	prefix->nr_events++;
	if (ev->enter_ns < prefix->first_ns)
		prefix->first_ns = ev->enter_ns;
	if (ev->exit_ns > prefix->last_ns)
		prefix->last_ns = ev->exit_ns;
	if (f->seal_due)
		seal_streams(f);
	else if (s->bytes.len >= f->stream_limit_bytes)
		seal_stream(f, s);
	return 0;
}

/* Sections. */

static void seal_section(struct trace_feed *f, enum section section)
{
	struct buf *b = &f->sections[section];

	if (b->len)
		(void)emit_block(f, section_blocks[section], 0, b);
	buf_clear(b);
}

static int section_of(const struct row *row)
{
	switch ((int)row->id) {
	case REC_meta:
	case REC_request_outcome:
		return SECTION_META;
	case REC_loss:
		return SECTION_LEDGER;
	case REC_tree_entry:
	case REC_tree_mount:
		return SECTION_TREE;
	}
	return -EINVAL;
}

static int put_item(struct trace_feed *f, enum section section, const struct item *item)
{
	struct buf *b = &f->sections[section];
	size_t start = b->len;
	int r = item_put(f->writer->schema, item, blob_sink(f), b);

	if (!r)
		r = claim(f, b->len - start + (start ? 0 : BLOCK_COST_BYTES));
	if (r)
		b->len = start;
	return r;
}

static void count_loss(struct trace_writer *w, const struct value *kind)
{
	bool is_known = kind->type == VALUE_INT && kind->u < LOSS_KIND_MAX;

	atomic_fetch_add_explicit(&w->nr_losses, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&w->nr_losses_by_kind[is_known ? kind->u : 0], 1,
				  memory_order_relaxed);
}

int trace_feed_item(struct trace_feed *f, const struct item *item)
{
	int section = section_of(item->row);
	bool of_end = section == SECTION_META || section == SECTION_LEDGER;
	int r = make_room(f, 0);

	/* What tells of the end has its own room. */
	if (r && (sink_error(f->writer->sink) || !of_end))
		return r;
	if (section < 0)
		return section;
	f->at_end = of_end;
	r = put_item(f, (enum section)section, item);
	f->at_end = false;
	if (r < 0)
		return r;
	if (section == SECTION_LEDGER)
		count_loss(f->writer, &item->args[0]);
	if (f->sections[section].len >= SECTION_BYTES)
		seal_section(f, (enum section)section);
	return 0;
}

int trace_feed_meta(struct trace_feed *f, const char *key, const char *value)
{
	struct item item = { .row = row_by_id(REC_meta) };
	struct arena a;
	int r;

	arena_init(&a);
	item.args[0] = value_str(&a, key);
	item.args[1] = value_str(&a, value);
	r = trace_feed_item(f, &item);
	arena_release(&a);
	return r;
}

int trace_feed_loss(struct trace_feed *f, const struct loss *loss)
{
	struct item item = { .row = row_by_id(REC_loss) };
	struct arena a;
	int r;

	arena_init(&a);
	item.args[0] = value_int(loss->kind);
	item.args[1] = value_int((int32_t)loss->pid);
	item.args[2] = value_int((int32_t)loss->tid);
	item.args[3] = value_uint(loss->count);
	item.args[4] = value_uint(loss->bytes);
	item.args[5] = value_uint(loss->from_ns);
	item.args[6] = value_uint(loss->to_ns);
	if (loss->note)
		item.args[7] = value_str(&a, loss->note);
	r = trace_feed_item(f, &item);
	arena_release(&a);
	return r;
}

static int seal_all(struct trace_feed *f)
{
	unsigned int i;

	for (i = 0; i < SECTION_MAX; i++)
		seal_section(f, (enum section)i);
	seal_streams(f);
	submit_blobs(f);
	return sink_error(f->writer->sink);
}

int trace_feed_flush(struct trace_feed *f)
{
	int r = seal_all(f);

	return r ? r : feed_error(f);
}

/* The writer. */

struct trace_feed *trace_writer_add_feed(struct trace_writer *w)
{
	struct trace_feed *f = xcalloc(1, sizeof(*f));

	f->blobs.put = put_blob;
	f->writer = w;
	known_init(&f->known, w->dedup_entries);
	share_out(f);
	sink_add_feed(w->sink);
	pthread_mutex_lock(&w->lock);
	f->next = w->feeds;
	w->feeds = f;
	pthread_mutex_unlock(&w->lock);
	return f;
}

static void free_feed(struct trace_feed *f)
{
	unsigned int i;

	while (f->streams)
		free_stream(f, f->streams);
	for (i = 0; i < SECTION_MAX; i++)
		buf_release(&f->sections[i]);
	known_release(&f->known);
	free(f);
}

static void writer_free(struct trace_writer *w)
{
	while (w->feeds) {
		struct trace_feed *f = w->feeds;

		w->feeds = f->next;
		free_feed(f);
	}
	schema_free(w->schema);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

int trace_writer_open(const char *path, const struct trace_writer_options *options,
		      struct trace_writer **ret, struct err *err)
{
	static const struct trace_writer_options defaults;
	struct trace_writer *w = xcalloc(1, sizeof(*w));
	struct buf text = { 0 };
	int r;

	if (!options)
		options = &defaults;
	pthread_mutex_init(&w->lock, NULL);
	w->dedup_entries = options->dedup_entries;
	w->no_blobs = options->no_blobs;
	w->next_blob_block = 1; /* so that no blob's place is 0 */
	w->schema = schema_new();
	r = sink_open(path, options, &w->sink, err);
	if (r < 0) {
		writer_free(w);
		return r;
	}
	schema_print(w->schema, &text);
	r = sink_start(w->sink, text.data, text.len, err);
	buf_release(&text);
	if (r < 0) {
		/* The first failure is the one to tell, and there is nothing in the file. */
		(void)!sink_close(w->sink, false, 0, 0, NULL);
		(void)unlink(path);
		writer_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

static void note_refused(struct trace_writer *w)
{
	struct loss loss = { .kind = LOSS_EVENTS_LOST,
			     .count = w->nr_refused,
			     .from_ns = w->refused_from_ns,
			     .to_ns = w->refused_to_ns,
			     .note = "no room for more: this is the end" };

	/* The room for it was set aside, and is enough but for somebody who writes books into it. */
	(void)!trace_feed_loss(w->feeds, &loss);
}

int trace_writer_close(struct trace_writer *w, struct err *err)
{
	struct trace_feed *f;
	char *path;
	int r;

	if (!w)
		return 0;
	if (w->feeds && w->full)
		note_refused(w);
	for (f = w->feeds; f; f = f->next)
		(void)!seal_all(f); /* a failure sticks and is returned below */
	path = xstrdup(sink_path(w->sink));
	r = sink_close(w->sink, true, w->next_stream, w->nr_losses, err);
	if (!r && w->full)
		r = err_set(err, w->full, "cannot write %s", path);
	free(path);
	writer_free(w);
	return r;
}

static void drop_batches(struct trace_feed *f)
{
	/* Handed in empty: the sink frees them. */
	if (f->batch)
		f->batch->nr_blocks = 0;
	if (f->blob_batch)
		f->blob_batch->nr_blocks = 0;
	submit_batch(f);
	if (f->blob_batch)
		sink_submit(f->writer->sink, f->blob_batch);
	f->blob_batch = NULL;
}

void trace_writer_abandon(struct trace_writer *w)
{
	struct trace_feed *f;

	if (!w)
		return;
	for (f = w->feeds; f; f = f->next)
		drop_batches(f);
	(void)!sink_close(w->sink, false, 0, 0, NULL); /* given up: its failure no longer matters */
	writer_free(w);
}

void trace_writer_hurry(struct trace_writer *w)
{
	sink_hurry(w->sink);
}

int trace_writer_sync(struct trace_writer *w, struct err *err)
{
	int r = sink_wait_idle(w->sink, err);

	return r || !w->full ? r : err_set(err, w->full, "cannot write %s", sink_path(w->sink));
}

struct trace_writer_totals trace_writer_totals(struct trace_writer *w)
{
	struct trace_writer_totals t;
	unsigned int i;

	sink_totals(w->sink, &t);
	t.nr_streams = w->next_stream;
	for (i = 0; i < LOSS_KIND_MAX; i++)
		t.nr_losses_by_kind[i] = w->nr_losses_by_kind[i];
	t.nr_losses = w->nr_losses + !!w->full; /* closing will say so */
	t.nr_losses_by_kind[LOSS_EVENTS_LOST] += !!w->full;
	return t;
}
