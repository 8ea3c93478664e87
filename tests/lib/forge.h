/* SPDX-License-Identifier: MIT */
/*
 * Trace files made block by block: what a later version, a broken one or an
 * enemy would write. Headers and checksums are right unless the caller wants
 * them wrong. Aborts when memory ends; owned by one thread.
 */
#ifndef LIB_FORGE_H
#define LIB_FORGE_H

#include "base/mem.h"
#include "trace/block.h"

struct forge {
	struct block_packer *packer;
	struct buf file;
	VEC(struct block_entry) entries; /* what the index will say; a test may change it */
	uint64_t last_index_offset;
	struct footer counts; /* what the footer will say beside offsets, blocks and events */
};

/* A file with its first block. */
void forge_init(struct forge *f);
/* ... and with the schema of this version's table. */
void forge_init_with_schema(struct forge *f);
/* Appends a schema of these rows only, and their structs. */
void forge_schema(struct forge *f, const uint16_t *rows, size_t nr_rows);
void forge_release(struct forge *f);

/* Appends a block; the index will list it as it is. level as in block_pack(). */
void forge_block(struct forge *f, uint8_t type, uint64_t number, const void *payload, size_t len,
		 int level);
/* Appends a block of events: `events` are their bytes. The prefix must be filled in. */
void forge_events(struct forge *f, uint64_t stream, const struct events_prefix *prefix,
		  const struct buf *events);
/* Appends a block as another file has it, with what that file's index says of it. */
void forge_copy(struct forge *f, const struct block_entry *e, const uint8_t *file);
/* The index of all blocks so far, and the footer. */
void forge_close(struct forge *f);
/* To a file, see scratch.h. */
void forge_save(const struct forge *f, const char *path);

/* Bytes for the payloads. */
void forge_put_u(struct buf *b, uint64_t u);
void forge_put_i(struct buf *b, int64_t i);
void forge_put_inline(struct buf *b, const char *s); /* data that stands in the event */
/* A body with its length in front, as events and records have it. */
void forge_put_body(struct buf *b, const struct buf *body);
/* The head of an event: 1 ns long, 10 ns after the one before, no parts, no argument missing. */
void forge_put_head(struct buf *body, unsigned int row_id, int64_t ret);

#endif
