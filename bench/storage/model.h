/* SPDX-License-Identifier: MIT */
/*
 * How long a storage device would take: disks, channels of an SSD, or a RAID of
 * disks, each a server with a clock of its own. The clock is virtual: a request
 * starts when it arrived or when its server was done with the one before,
 * whichever is later, and not when somebody got round to looking, so lateness of
 * the simulation does not add up.
 *
 * Addresses go to servers in stripes; a request that covers several is served in
 * pieces, and is done when the last piece is. One thread.
 */
#ifndef STORAGE_MODEL_H
#define STORAGE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

#define MODEL_MAX_SERVERS 64

enum model_queue {
	MODEL_QUEUE_FIFO,
	MODEL_QUEUE_NEAREST, /* the shortest way for the head, of the oldest `depth` requests */
};

/* What the text file says; storage/README.md tells the keys. */
struct model_params {
	uint64_t size_bytes;
	uint64_t nr_servers;
	uint64_t stripe_bytes;
	enum model_queue queue;
	uint64_t queue_depth;
	uint64_t seek_min_ns, seek_max_ns;
	uint64_t rotation_ns, track_bytes;
	uint64_t read_ns, write_ns, flush_ns;
	uint64_t bytes_per_s; /* 0: transfer takes no time */
	double scale; /* of all times */
	/* Limits that the kernel enforces (blkio); 0: none. */
	uint64_t limit_iops, limit_bytes_per_s;
};

MUST_CHECK int model_params_read(const char *path, struct model_params *ret, struct err *err);

enum model_op { MODEL_READ, MODEL_WRITE, MODEL_FLUSH };

struct model_piece {
	uint64_t arrival_ns;
	uint64_t offset, bytes; /* on the server */
	uint32_t request;
	enum model_op op;
};

struct model_server {
	VEC(struct model_piece) waiting; /* oldest first */
	struct model_piece current;
	bool busy;
	uint64_t done_ns; /* of current; when not busy, of the last one */
	uint64_t head; /* where the last piece ended */
	uint64_t busy_ns;
};

struct model_request {
	uint64_t tag;
	uint64_t done_ns; /* of the pieces so far */
	uint32_t nr_pieces; /* not done */
	uint32_t next_free;
};

struct model {
	struct model_params params;
	struct model_server servers[MODEL_MAX_SERVERS];
	VEC(struct model_request) requests;
	uint32_t free_request;
	uint64_t nr_pending;
};

void model_init(struct model *m, const struct model_params *params);
void model_release(struct model *m);

/* arrival_ns never decreases. The range lies within the device; a flush has none. */
void model_submit(struct model *m, enum model_op op, uint64_t offset, uint64_t bytes,
		  uint64_t arrival_ns, uint64_t tag);
/* Takes a request that is done at now_ns; false when there is none. */
bool model_take_done(struct model *m, uint64_t now_ns, uint64_t *ret_tag, uint64_t *ret_done_ns);
/* When to look again; UINT64_MAX when nothing is pending. After model_take_done() said no. */
uint64_t model_next_ns(const struct model *m);

#endif
