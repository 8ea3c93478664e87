/* SPDX-License-Identifier: MIT */
/*
 * The blocks that a trace file is made of (doc/trace-format.md, "Blocks"):
 * their header, their checksums, their compression. Pure functions over bytes.
 */
#ifndef TRACE_BLOCK_H
#define TRACE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define BLOCK_HEADER_BYTES 40
/* No block holds more when it is unpacked: what a reader may have to allocate for a lie. */
#define BLOCK_PLAIN_MAX ((uint32_t)16 << 20)
#define TRACE_FORMAT_VERSION 1
#define BLOCK_VERSION 1 /* of the payload of every type, so far */

enum block_type {
	BLOCK_FILE = 1, /* the first: format version */
	BLOCK_SCHEMA = 2,
	BLOCK_META = 3,
	BLOCK_EVENTS = 4,
	BLOCK_BLOBS = 5,
	BLOCK_TREE = 6,
	BLOCK_LEDGER = 7,
	BLOCK_INDEX = 8,
	BLOCK_FOOTER = 9, /* the last */
	BLOCK_ACTIONS = 10, /* of a plan (plan/plan.h) */
	BLOCK_TYPE_MAX,
};

enum block_flag {
	BLOCK_ZSTD = 1,
	/* Bits of the low byte change how the payload is read: unknown ones make it unreadable. */
	BLOCK_FLAGS_BINDING = 0xff,
};

struct block_header {
	uint8_t type;
	uint8_t version; /* of this type's payload */
	uint16_t flags;
	uint32_t stored_bytes, plain_bytes;
	uint64_t number; /* EVENTS: the stream; ACTIONS: the lane; BLOBS: the block's own number */
	uint64_t checksum; /* of the stored payload */
};

/* The first bytes of the payload of an EVENTS block, and of an ACTIONS block. */
#define EVENTS_PREFIX_BYTES 56

struct events_prefix {
	uint32_t pid, tid;
	uint64_t first_index; /* how many events of the stream came before */
	uint32_t nr_events;
	uint64_t first_ns, last_ns; /* earliest entry, latest exit */
	uint64_t base_ns, base_seq; /* what the first event's differences refer to */
};

void events_prefix_put(uint8_t *p, const struct events_prefix *e);
MUST_CHECK bool events_prefix_get(const uint8_t *payload, size_t len, struct events_prefix *ret);

/* In front of each blob of a BLOBS block: its hash and its length. */
#define BLOB_PREFIX_BYTES 20
/* A blob's place: the number of its block and the offset of its prefix in the payload. */
#define BLOB_OFFSET_BITS 24

#define FILE_PAYLOAD_BYTES 20
#define FOOTER_PAYLOAD_BYTES 64

struct footer {
	uint64_t index_offset; /* of the last index block; the others are chained from it */
	uint64_t nr_blocks; /* that the index lists */
	uint64_t nr_events, nr_streams, nr_blobs, blob_bytes, nr_losses;
	uint64_t own_offset;
};

void footer_put(uint8_t *p, const struct footer *f);
void footer_get(const uint8_t *p, struct footer *f);

/* What the index says of a block. */
#define INDEX_ENTRY_BYTES 64
#define INDEX_PREFIX_BYTES                                                                         \
	16 /* offset of the index block before this one (0: none), number of entries */

struct block_entry {
	uint8_t type;
	uint32_t stored_bytes;
	uint64_t offset;
	uint64_t number;
	uint32_t pid, tid; /* these and below: of EVENTS and ACTIONS */
	uint32_t nr_events;
	uint64_t first_index;
	uint64_t first_ns, last_ns;
};

void block_entry_put(uint8_t *p, const struct block_entry *e);
void block_entry_get(const uint8_t *p, struct block_entry *e);

void block_header_put(uint8_t *p, const struct block_header *h);
/* -EBADMSG: no block starts here, or its header is damaged. */
MUST_CHECK int block_header_get(const uint8_t *p, struct block_header *ret);
uint64_t block_checksum(const void *payload, size_t len);
bool block_has_magic(const uint8_t *p);

/*
 * Appends header and payload to out; packs the payload when level > 0 and it
 * gains by it.
 */
struct block_packer;
struct block_packer *block_packer_new(void);
void block_packer_free(struct block_packer *p);
void block_pack(struct block_packer *p, struct block_header h, const void *payload, size_t len,
		int level, struct buf *out);

/*
 * The payload of a block whose stored bytes are at hand: checked, and unpacked
 * into plain if need be. *ret points into stored or plain.
 */
struct block_unpacker;
struct block_unpacker *block_unpacker_new(void);
void block_unpacker_free(struct block_unpacker *u);
MUST_CHECK int block_unpack(struct block_unpacker *u, const struct block_header *h,
			    const uint8_t *stored, struct buf *plain, const uint8_t **ret,
			    struct err *err);

/* A key of metadata and its value, which change how the records of a trace are taken. */
#define TRACE_META_TREE "initial_tree"
#define TRACE_TREE_PARTIAL "partial"

#endif
