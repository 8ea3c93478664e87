/* SPDX-License-Identifier: MIT */
/* What is written and where reads go. Of one submitter. Private to this directory. */
#ifndef REPLAY_BLK_DATA_H
#define REPLAY_BLK_DATA_H

#include "base/err.h"
#include "replay/blk_run.h"

struct blk_data {
	uint8_t *base;
	uint64_t base_bytes;
	uint8_t *sink; /* the first part of it */
	uint64_t sink_bytes;
	uint8_t *pool;
	uint64_t pool_bytes, pool_at;
	uint8_t *is_copy; /* for each piece of the pool: its bytes are those of a copy */
	uint64_t nr_pieces; /* so far: what makes one unlike all others */
	uint64_t dice;
	uint32_t compress_percent, dedup_percent;
};

/* number: of the submitter; no two of them fill in the same. */
MUST_CHECK int blk_data_init(struct blk_data *d, uint64_t max_bytes, uint64_t depth,
			     uint32_t number, const struct blk_run_options *o, struct err *err);
void blk_data_release(struct blk_data *d);
/* Bytes for a write: fresh ones each time, as compressible and as new as asked for. */
uint8_t *blk_data_filler(struct blk_data *d, uint64_t len);

#endif
