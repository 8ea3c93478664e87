/* SPDX-License-Identifier: MIT */
/*
 * The half of the writer that owns the file: a queue of batches of finished
 * blocks, and the thread that packs, checks and writes them and keeps the
 * index. Feeds talk to it only through batches.
 */
#ifndef TRACE_WRITER_THREAD_H
#define TRACE_WRITER_THREAD_H

#include "base/err.h"
#include "trace/block.h"
#include "trace/writer.h"

/* A batch's memory is one huge page; it is handed over when it holds BATCH_BYTES. */
#define BATCH_ROOM ((size_t)2 << 20)
#define BATCH_BYTES (BATCH_ROOM - ((size_t)256 << 10))
#define BATCH_BLOCKS_MAX 512

struct batch_block {
	struct block_entry entry; /* offset and stored_bytes are filled in when it is written */
	size_t at, len_bytes; /* of the payload in the batch */
	uint32_t nr_blobs;
};

struct batch {
	struct batch *next;
	uint8_t *bytes; /* BATCH_ROOM, or more for a single block that is larger */
	size_t len_bytes, room_bytes;
	size_t ready_bytes; /* of these the memory has been got, as far as that is known */
	bool is_huge; /* in huge pages */
	unsigned int nr_blocks;
	struct batch_block blocks[BATCH_BLOCKS_MAX];
};

/* What a block takes in the file beside its payload: its header, and its entry in the index. */
#define BLOCK_COST_BYTES 128

struct sink;

MUST_CHECK int sink_open(const char *path, const struct trace_writer_options *options,
			 struct sink **ret, struct err *err);
/* Writes the header blocks: before the thread starts, so that a failure is seen at once. */
MUST_CHECK int sink_start(struct sink *k, const void *schema, size_t schema_len, struct err *err);

/* One more feed: two more batches may be in use. */
void sink_add_feed(struct sink *k);
/* An empty batch with room for this much at least; waits while all are in use. */
struct batch *sink_take_batch(struct sink *k, size_t room_bytes);
/* Gets the memory of a batch up to there at once: much cheaper than page by page, for what will be used. */
void sink_ready_batch(struct batch *b, size_t upto);
/* Hands a batch over. Batches are written in the order of this call. */
void sink_submit(struct sink *k, struct batch *b);
/* 0, or the failure that stopped the writing. Cheap. */
int sink_error(const struct sink *k);
/* Somebody waits for the end: time counts more than room from here on. */
void sink_hurry(struct sink *k);
MUST_CHECK int sink_wait_idle(struct sink *k, struct err *err);

/*
 * Room in the file, for a sink that reserves it (else there always is). What a
 * feed takes in it has to claim first, as payload and BLOCK_COST_BYTES for each
 * block that will be; it is given back by the writing.
 */
bool sink_has_room(const struct sink *k, uint64_t bytes);
/* False: there is no room, and nothing is claimed. */
bool sink_claim(struct sink *k, uint64_t bytes);
/* The same out of what is set aside for the end. */
bool sink_claim_end(struct sink *k, uint64_t bytes);
/* Reserves more: 0, or why there is no more. */
MUST_CHECK int sink_extend(struct sink *k, uint64_t bytes);

/* Index and footer when `finish`; frees everything in any case. */
MUST_CHECK int sink_close(struct sink *k, bool finish, uint64_t nr_streams, uint64_t nr_losses,
			  struct err *err);
const char *sink_path(const struct sink *k);
void sink_totals(struct sink *k, struct trace_writer_totals *ret);

#endif
