/* SPDX-License-Identifier: MIT */
/*
 * A request to a block device as an event (events.def, block_request): the
 * event's entry is the issue, its exit the completion. One stream for each
 * device, in the order of issue; requests of a stream overlap.
 *
 * Metadata of a trace or plan at this level: `level` is "block";
 * `block.device.N` names the device whose requests have device_no N;
 * `block.end.N`, of plans, is where its last request ends, in bytes.
 */
#ifndef MODEL_BLK_H
#define MODEL_BLK_H

#include <stdbool.h>

#include "base/arena.h"
#include "model/event.h"

enum blk_op {
#define BLOCK_OP(name, id, letters, moves) BLK_##name = (id),
#include "model/blockops.def"
	BLK_OP_MAX = 8,
};

enum blk_flag {
#define BLOCK_FLAG(name, bit, letter) BLK_FLAG_##name = (bit),
#include "model/blockops.def"
};

enum blk_moves { BLK_MOVES_NONE, BLK_MOVES_FROM, BLK_MOVES_TO };

struct blk_op_info {
	const char *name;
	const char *letters; /* of blkparse's rwbs */
	enum blk_moves moves;
};

extern const struct blk_op_info blk_ops[BLK_OP_MAX];

#define BLK_LEVEL "block"
#define BLK_DEVICES_MAX 65536
/* Where sectors count from 512 bytes, whatever the device has. */
#define BLK_SECTOR_BYTES 512

struct blk_request {
	uint64_t dev; /* as DEV values are: makedev(); 0: not known */
	uint32_t device_no; /* from 0, in the order of appearance */
	enum blk_op op;
	uint64_t flags; /* enum blk_flag; unknown bits are kept */
	uint64_t offset_bytes, length_bytes;
	uint32_t pid;
	const char *comm; /* NULL: not known */
	size_t comm_len;
	int32_t cpu; /* -1: not known */
	const struct data *data; /* what was written; NULL: not known */
};

/* Of another row, or without op, offset and length as they must be: false. */
MUST_CHECK bool blk_request_get(const struct row *row, const struct value *args,
				struct blk_request *ret);
/* Fills in row and arguments of an event; parts of them go to the arena. */
void blk_request_put(const struct blk_request *rq, struct arena *a, struct event *ev);

/* In blkparse's words: FWFSM and the like. */
#define BLK_RWBS_MAX 16
void blk_put_rwbs(enum blk_op op, uint64_t flags, char out[BLK_RWBS_MAX]);
/* False: a letter that none of them is. */
MUST_CHECK bool blk_get_rwbs(const char *text, size_t len, enum blk_op *ret_op,
			     uint64_t *ret_flags);

#endif
