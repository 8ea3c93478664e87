/* SPDX-License-Identifier: MIT */
/*
 * Targets of a block run: devices and files, opened with the care that somebody's
 * data deserves. Private to this directory.
 */
#ifndef REPLAY_BLK_TARGET_H
#define REPLAY_BLK_TARGET_H

#include "replay/blk_run.h"

#define BLK_SECTOR_MAX                                                                             \
	65536 /* of a target, in bytes; a device with larger ones is taken for one of 4096 */

struct blk_target {
	char *path;
	int fd; /* -1: not open */
	bool device;
	bool writable;
	bool direct;
	bool nowait; /* it can say that it would have to wait */
	uint64_t size_bytes;
	uint32_t align_bytes; /* of places and lengths */
	struct blk_queue queue; /* as found */
};

/*
 * Opens it. need_bytes is how large it has to be, as far as a file may grow.
 * A device that is to be written is refused when it is in use or holds something
 * that is known, unless destroy_data is set; so is a file that holds such.
 */
MUST_CHECK int blk_target_open(struct blk_target *t, const char *path, uint64_t need_bytes,
			       const struct blk_run_options *o, struct err *err);
/* Restores the queue if it was tuned. */
void blk_target_close(struct blk_target *t);

/* What is on the device: "ext4", "partition table (GPT)" ...; NULL: nothing that is known. -errno in *ret. */
const char *blk_signature(int fd, int *ret);

/* Reads how the queue is set; known stays false where there is none. */
void blk_queue_read(int fd, struct blk_queue *q);
/* depth: how many may be in flight. */
void blk_queue_advise(struct blk_queue *q, uint64_t depth);
/*
 * Sets no scheduler, no merges and the advised size. A process of its own watches, and
 * brings back what q says when it is asked to or when this process has ended, however.
 */
MUST_CHECK int blk_queue_tune(struct blk_queue *q, struct err *err);
/* Does nothing if it was not tuned. */
void blk_queue_restore(struct blk_queue *q);

#endif
