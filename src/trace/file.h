/* SPDX-License-Identifier: MIT */
/*
 * Inside of the reader: an open trace, and access to its blocks. Private to
 * this directory.
 */
#ifndef TRACE_FILE_H
#define TRACE_FILE_H

#include "base/mem.h"
#include "model/schema.h"
#include "trace/reader.h"

#define NO_BLOCK UINT32_MAX
#define BLOB_CACHE_BLOCKS 8

/* A block of blobs kept unpacked. */
struct blob_block {
	uint64_t number; /* 0: empty */
	uint64_t used; /* when last */
	struct buf stored, plain;
	const uint8_t *payload;
	size_t payload_len;
};

struct trace {
	int fd;
	char *path;
	uint64_t file_bytes;
	int flags;

	VEC(struct block_entry) blocks; /* in the order of the file */
	VEC(struct trace_stream_info) streams; /* by number */
	uint32_t *next_of_stream; /* for each block: the next one of its stream, or NO_BLOCK */
	VEC(uint32_t) blob_blocks; /* indices of BLOBS blocks, sorted by number */
	VEC(struct trace_damage) damages;

	bool closed; /* read by its index: nothing is missing at the end */
	bool has_footer; /* also when found by a scan */
	struct footer footer;
	uint64_t end_bytes; /* where the last good block ends */
	int late_r; /* 0, or a failure that its caller did not want to hear of; trace_tail() tells it */
	struct err late; /* its words */

	struct schema *schema;
	struct block_unpacker *unpacker;
	struct blob_block cache[BLOB_CACHE_BLOCKS];
	uint64_t cache_clock;
};

/* Finds the blocks: by the index if the file was closed, else by a scan. */
MUST_CHECK int trace_find_blocks(struct trace *t, struct err *err);
/* Groups the blocks by stream. */
MUST_CHECK int trace_build_streams(struct trace *t, struct err *err);

/* How many events of a stream stood in blocks that are not there any more. */
uint64_t trace_stream_gap(const struct trace *t, const struct trace_stream_info *s);

/* Words for a fault at an offset of this file; returns r. */
PRINTF_LIKE(5, 6)
int trace_fault(const struct trace *t, uint64_t offset, int r, struct err *err, const char *fmt,
		...);

/* A fault in a block while iterating: an error, or (salvaging) something to note and go on: 0. */
MUST_CHECK int trace_bad_block(struct trace *t, const struct block_entry *e, int r);

#endif
