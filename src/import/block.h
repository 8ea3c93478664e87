/* SPDX-License-Identifier: MIT */
/*
 * What importers of block traces share.
 *
 *   inputs --merge by time--> importer --> feed: waits for completions, sorts --> trace
 *
 * The feed puts requests into the order of issue, one stream for each device. It
 * holds back as many as BLOCK_SORT_MAX, so that files that are a little out of
 * order become traces that are not, and requests whose completion is still to
 * come as long as it can. All of this belongs to one thread.
 */
#ifndef IMPORT_BLOCK_H
#define IMPORT_BLOCK_H

#include "import/import.h"
#include "model/blk.h"

/* Requests that are held back to be sorted, and at most while completions are awaited. */
#define BLOCK_SORT_MAX 16384
#define BLOCK_HELD_MAX ((size_t)1 << 20)

struct block_feed;
struct block_held;

/* A request as an importer found it. Borrowed. */
struct block_found {
	struct blk_request rq; /* device_no and data aside */
	const char *device; /* its name; NULL: dev alone tells */
	size_t device_len;
	uint64_t issue_ns; /* of any clock, the same for all */
	uint64_t complete_ns; /* when known */
	int32_t err; /* of the completion */
	bool known_end; /* complete_ns is there */
	bool await_end; /* it will come, by block_feed_end() */
	bool no_time; /* issue_ns is invented */
	uint64_t origin; /* line or record */
};

struct block_feed *block_feed_new(struct import *im);
/*
 * ret may be NULL; else it gets, where await_end asks for it, what block_feed_end()
 * or block_feed_give_up() must be called with, before the feed is closed. It gets
 * NULL when the request is of a device that is not wanted.
 */
MUST_CHECK int block_feed_add(struct block_feed *f, const struct block_found *found,
			      struct block_held **ret, struct err *err);
/* The request is complete, or its end will never be known. */
void block_feed_end(struct block_held *h, uint64_t complete_ns, int32_t error);
void block_feed_give_up(struct block_held *h);
/* The moment of the inputs' clock at which it was so late, in ns since 1970. */
void block_feed_set_wall(struct block_feed *f, uint64_t clock_ns, uint64_t wall_ns);
/* Writes what is left, unless the import has failed already (r < 0), and frees. Returns r or what went wrong. */
MUST_CHECK int block_feed_close(struct block_feed *f, int r, struct err *err);

/*
 * Reading several inputs at once, by time. next() finds the next entry of an
 * input: 1, its time in *ret_ns and the entry where `head` points (head_size
 * bytes, its own for each input, kept from call to call), 0 at the end, -errno.
 * take() gets entries in the order of their times.
 */
struct block_merge {
	size_t head_size;
	int (*next)(void *ctx, struct import_input *in, void *head, uint64_t *ret_ns,
		    struct err *err);
	int (*take)(void *ctx, struct import_input *in, void *head, struct err *err);
	void (*release)(void *head); /* may be NULL */
	void *ctx;
};

MUST_CHECK int block_merge_run(struct import *im, const struct block_merge *m, struct err *err);

/*
 * A number with or without fraction, in units of so many ns (or bytes); the whole
 * text, but for blanks around it. False when it is none or does not fit.
 */
MUST_CHECK bool block_get_scaled(const char *text, size_t len, uint64_t unit, uint64_t *ret);

/*
 * Events as the kernel's block layer has them (queue, issue, complete ...) to
 * requests: shared by blktrace's binary files and blkparse's text.
 */
struct block_layer;

struct block_layer_event {
	char action; /* as blkparse prints it: Q D C R ... */
	uint64_t time_ns;
	uint64_t dev; /* makedev() */
	uint64_t sector, bytes;
	enum blk_op op;
	uint64_t flags;
	uint32_t pid;
	int32_t cpu, err;
	const char *comm;
	size_t comm_len;
	uint64_t origin;
};

struct block_layer *block_layer_new(struct block_feed *feed, enum import_events events);
MUST_CHECK int block_layer_event(struct block_layer *l, const struct block_layer_event *ev,
				 struct err *err);
void block_layer_free(struct block_layer *l);

#endif
