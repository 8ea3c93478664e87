/* SPDX-License-Identifier: MIT */
/*
 * Writing a trace while something runs that must not be held up.
 *
 *   appending thread            writer's own thread
 *   feed: streams, blobs  -->   batches: pack, checksum, write(2)
 *
 * A feed belongs to one thread; several feeds may write one trace. Appending
 * costs an encoding into memory; full buffers are handed to the writer's thread
 * and used again. When it cannot keep up (all batches are full) an append
 * waits: memory is bounded and nothing is dropped. A failed write is sticky:
 * the file stays readable up to its last finished block, and every later call
 * returns the error. When room is reserved, no room is a failure that metadata
 * and losses survive.
 */
#ifndef TRACE_WRITER_H
#define TRACE_WRITER_H

#include <stdbool.h>

#include "base/err.h"
#include "model/event.h"
#include "trace/block.h"

struct trace_writer;
struct trace_feed;
struct trace_stream;

struct trace_writer_options {
	int level; /* of zstd; 0: the default (1), -1: none */
	bool replace; /* an existing file is replaced; else it is an error */
	bool existing; /* the file is there and empty, and is the caller's: not made, mode unchanged */
	unsigned int file_mode; /* of the file; 0: IO_FILE_MODE */
	bool eager; /* pack data blocks even while batches pile up */
	/*
	 * Data blocks are packed only from then on, as a short recording would take longer by
	 * it, unless there is little room (a limit, a full disk).
	 */
	uint64_t pack_after_ns;
	size_t dedup_entries; /* hashes remembered by each feed; 0: the default */
	bool no_blobs; /* data stands in events and records, however long */
	/*
	 * Room on the disk is reserved before anything is taken in. Then a full disk
	 * (-ENOSPC, -EDQUOT, or -EFBIG for a limit) ends the taking, but what was
	 * taken before is written, with a ledger entry for the rest, and the file is
	 * closed as it should be. Needs a file system with fallocate.
	 */
	bool reserve;
	/*
	 * The file never gets larger; 0: no limit. Needs `reserve`, and ends the
	 * taking like a full disk (-EXFULL); no file system has to know of it.
	 */
	uint64_t max_bytes;
	void (*begin_thread)(void); /* by the writer's thread, first of all; NULL: nothing */
};

/* Creates the file. err explains a failure, after which there is no file. */
MUST_CHECK int trace_writer_open(const char *path, const struct trace_writer_options *options,
				 struct trace_writer **ret, struct err *err);
/*
 * Writes what is left, the index and the footer, and frees all feeds and
 * streams. After an earlier failure that failure is returned, also when the file
 * could be closed as it should be (no room, reserved). NULL is fine.
 */
MUST_CHECK int trace_writer_close(struct trace_writer *w, struct err *err);
/* Leaves the file as it is, unfinished: for a failure after which closing would lie. */
void trace_writer_abandon(struct trace_writer *w);

/* For one appending thread; lives until the writer is closed. Any thread may call. */
struct trace_feed *trace_writer_add_feed(struct trace_writer *w);

/* A thread's life: its events come in the order of the thread. */
struct trace_stream *trace_feed_open_stream(struct trace_feed *f, uint32_t pid, uint32_t tid);
/* Hands over what is left of the stream and frees it. */
MUST_CHECK int trace_feed_close_stream(struct trace_feed *f, struct trace_stream *s);

/*
 * Appends an event. The stream's pid and tid count, not the event's. seq 0 is
 * replaced by the writer's own count. -E2BIG: too large for a block; a ledger
 * entry says so. -EOPNOTSUPP: a row that the table lacks; likewise.
 */
MUST_CHECK int trace_feed_event(struct trace_feed *f, struct trace_stream *s,
				const struct event *ev);
/* Appends a record to the section of its row (metadata, trees, ledger). */
MUST_CHECK int trace_feed_item(struct trace_feed *f, const struct item *item);
/* Stores bytes ahead of the event that will refer to them, at most BLOB_MAX_BYTES. */
MUST_CHECK int trace_feed_blob(struct trace_feed *f, const uint8_t *bytes, size_t len,
			       struct blob_ref *ret);
/*
 * The same of bytes that somebody else may change meanwhile: what is stored is as it was at some moment
 * of the call, each byte by itself, and the hash is that of what is stored.
 */
MUST_CHECK int trace_feed_lent_blob(struct trace_feed *f, const uint8_t *bytes, size_t len,
				    struct blob_ref *ret);
/*
 * The same without a copy: where at most so many bytes may be put, and then that
 * so many were. In between nothing else may be done with the feed; if nothing was
 * put, nothing need be said.
 */
MUST_CHECK int trace_feed_blob_room(struct trace_feed *f, size_t len, uint8_t **ret);
MUST_CHECK int trace_feed_blob_filled(struct trace_feed *f, const uint8_t *room, size_t len,
				      struct blob_ref *ret);

/*
 * Appends a block of a type that is interpreted elsewhere; the index lists it as
 * the entry says, offset and length aside. It may reach the file before the
 * blobs that it refers to: only a closed file holds all of them.
 */
MUST_CHECK int trace_feed_block(struct trace_feed *f, const struct block_entry *entry,
				const struct buf *payload);

/* Shorthands for common records. */
MUST_CHECK int trace_feed_meta(struct trace_feed *f, const char *key, const char *value);

struct loss {
	enum loss_kind kind;
	uint32_t pid, tid;
	uint64_t count, bytes, from_ns, to_ns;
	const char *note;
};

MUST_CHECK int trace_feed_loss(struct trace_feed *f, const struct loss *loss);

/* Hands over all that the feed holds, so that it reaches the file soon. */
MUST_CHECK int trace_feed_flush(struct trace_feed *f);
/* Time counts more than room from here on: data blocks are no longer packed, unless eager. */
void trace_writer_hurry(struct trace_writer *w);
/* Waits until all that was handed over is in the file. */
MUST_CHECK int trace_writer_sync(struct trace_writer *w, struct err *err);

struct trace_writer_totals {
	uint64_t nr_events, nr_streams, nr_blobs, blob_bytes, nr_losses;
	uint64_t nr_losses_by_kind[LOSS_KIND_MAX]; /* [0]: of kinds that are not known here */
	uint64_t file_bytes;
};

struct trace_writer_totals trace_writer_totals(struct trace_writer *w);

#endif
