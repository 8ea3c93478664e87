/* SPDX-License-Identifier: MIT */
/*
 * Reading a trace: open it, learn what is in it from its index, iterate over
 * its events in global order (or of some threads, or of a time range), over its
 * records, and fetch the data that events refer to.
 *
 * A file without index (its writer was killed, or it was cut short) is scanned:
 * what is there up to the last finished block is read, and trace_tail() says
 * what is missing. A damaged block is an error with its offset, unless the file
 * was opened to salvage: then it is left out and counted.
 *
 * Memory is bounded by the number of threads that are alive at the same time
 * in the trace, not by its length. A trace and its iterators belong to one
 * thread.
 */
#ifndef TRACE_READER_H
#define TRACE_READER_H

#include <stdbool.h>

#include "base/err.h"
#include "base/progress.h"
#include "model/event.h"
#include "model/schema.h"
#include "trace/block.h"

struct trace;
struct trace_iter;
struct trace_items;

enum trace_open_flag {
	TRACE_SALVAGE = 1, /* scan the whole file, leave damaged blocks out */
};

MUST_CHECK int trace_open(const char *path, int flags, struct trace **ret, struct err *err);
void trace_close(struct trace *t);

/* A thread's life in the trace. */
struct trace_stream_info {
	uint64_t number;
	uint32_t pid, tid;
	uint32_t generation; /* how many streams before this one had the same tid */
	uint64_t nr_events;
	uint64_t first_ns, last_ns;
	uint32_t first_block; /* in trace_blocks(); the others are chained */
};

const char *trace_path(const struct trace *t);
uint64_t trace_file_bytes(const struct trace *t);
/* In the order of their numbers. */
const struct trace_stream_info *trace_streams(const struct trace *t, size_t *ret_nr);
const struct block_entry *trace_blocks(const struct trace *t, size_t *ret_nr);
/* Events of all streams, from the index: nothing is read. */
uint64_t trace_nr_events(const struct trace *t);
/* NULL when the trace was not closed. */
const struct footer *trace_footer(const struct trace *t);

/* What a scan found that is not a good block. */
struct trace_damage {
	uint64_t offset, length_bytes;
	bool tail; /* at the very end: an unfinished block, as a killed writer leaves it */
};

const struct trace_damage *trace_damages(const struct trace *t, size_t *ret_nr);

/*
 * 0 when the trace is closed. 1 when its writer did not finish but the file
 * ends with a whole block. -EBADMSG when it ends within a block, or what made
 * trace_meta() or a trace_load_piece() without err fail. err gets the words in
 * all cases but the first. To be asked after the reading, so that a cut file
 * still gives what it has.
 */
MUST_CHECK int trace_tail(const struct trace *t, struct err *err);

enum trace_order {
	TRACE_BY_ENTER,
	TRACE_BY_EXIT,
	TRACE_BY_EFFECT,
};

/* A zeroed query asks for everything, by entry. */
struct trace_query {
	enum trace_order order;
	const uint32_t *pids, *tids; /* any of these; none given: all */
	size_t nr_pids, nr_tids;
	const uint32_t *streams; /* positions in trace_streams(); likewise */
	size_t nr_streams;
	uint64_t from_ns, to_ns; /* events that overlap [from, to); to 0: no end */
	bool no_args; /* the arguments are not wanted: ev->args stay VALUE_NONE */
	struct progress *progress; /* counts events; may be NULL */
};

MUST_CHECK int trace_iter_open(struct trace *t, const struct trace_query *q,
			       struct trace_iter **ret, struct err *err);
void trace_iter_close(struct trace_iter *it);
/* 1 and an event, valid until the next call; 0 at the end; -errno. */
MUST_CHECK int trace_iter_next(struct trace_iter *it, struct event **ret, struct err *err);
/*
 * Events before their turn. The next of a stream, if it is of this class (C_x): 1 and
 * the event; 0: it is not, or there is none.
 */
MUST_CHECK int trace_iter_ahead(struct trace_iter *it, uint32_t stream, unsigned int class,
				struct event **ret, struct err *err);
/*
 * The next event of each stream that has begun by then, in the order of their turns. All
 * are valid until the next trace_iter_next(), or until they are taken; their arguments are
 * there once they are loaded: false when they are malformed, which their turn will tell.
 */
MUST_CHECK int trace_iter_pending(struct trace_iter *it, uint64_t until_ns,
				  struct event *const **ret, size_t *ret_nr, struct err *err);
MUST_CHECK bool trace_iter_load(struct trace_iter *it, struct event *ev);
/* Whether there is any but that of the stream at hand that was entered before then: cheap. */
bool trace_iter_overlaps(const struct trace_iter *it, uint64_t until_ns);
/* A pending event shall not come again. The list of pending ones is not valid any more. */
MUST_CHECK int trace_iter_take(struct trace_iter *it, struct event *ev, struct err *err);

/* Records of one section: BLOCK_META, BLOCK_TREE or BLOCK_LEDGER, in the order of writing. */
MUST_CHECK int trace_items_open(struct trace *t, enum block_type section, struct trace_items **ret,
				struct err *err);
void trace_items_close(struct trace_items *it);
MUST_CHECK int trace_items_next(struct trace_items *it, struct item **ret, struct err *err);

/*
 * One piece of data. 1 and its bytes, valid until the next call; 0 when only
 * the hash was kept; -ENODATA when its block is missing; -EBADMSG when that is
 * damaged or holds something else. Without err a failure is kept for
 * trace_tail(), so that nobody who goes on without the data can forget it.
 */
MUST_CHECK int trace_load_piece(struct trace *t, const struct data *d, uint64_t piece,
				const uint8_t **ret, size_t *ret_len, struct err *err);

/*
 * Reads the header and payload of the block at an offset, checked and unpacked:
 * for types that are interpreted elsewhere. The payload is in one of the two
 * buffers. Words in err name file and offset.
 */
struct block_read {
	struct block_header header;
	struct buf *stored, *plain;
	const uint8_t *payload;
	size_t len;
};

MUST_CHECK int trace_read_block(struct trace *t, uint64_t offset, struct block_read *b,
				struct err *err);
/* How the values in the file are stored. */
const struct schema *trace_schema(const struct trace *t);

/* The value of a metadata key in buf; NULL when there is none, or when trace_tail() will say why. */
const char *trace_meta(struct trace *t, const char *key, struct buf *buf);
/* There was more than the records of the initial tree tell, or may have been: a listing. */
bool trace_tree_is_partial(struct trace *t);

#endif
