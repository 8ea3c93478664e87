/* SPDX-License-Identifier: MIT */
/*
 * Which bytes of a file were read and written by whom, as far as later actions
 * can conflict with it: pieces that do not overlap, in order, each with its last
 * writer and the readers since.
 *
 *   [0, 4096) w=2:17 r={1:9 3:4}   [8192, 12288) r={1:10}   [65536, end) w=2:20
 *
 * This is exact: a later action is ordered after those that it conflicts with,
 * and after what those came after, and after nothing else.
 *
 * Two bounds hold for traces that would cost too much: memory for the pieces of
 * all files together, and time for reads that cover very many pieces again and
 * again. Beyond either, the half of a file's pieces that was not used for
 * longest goes to the past: a few sets of users, chosen by position, which only
 * say that somebody used something about there. So an edge may be added, to what
 * is long done, and none is lost; and it is counted.
 */
#ifndef ORDER_RANGE_H
#define ORDER_RANGE_H

#include "order/pieces.h"
#include "order/users.h"

/* For all files together, unless somebody asks for another bound. */
#define RANGE_BYTES_MAX ((uint64_t)128 << 20)
/* A file with less than this keeps it, whatever others use. */
#define RANGE_BYTES_SURE ((uint64_t)16 << 10)
/* Pieces that the reads of one file may meet: so many, and so many more with each use of it. */
#define RANGE_VISITS_MAX ((uint64_t)1 << 22)
#define RANGE_VISITS_EACH 64
/* The past: sets, and how many bytes in a row share one. */
#define RANGE_PAST_SETS 32
#define RANGE_PAST_BYTES ((uint64_t)1 << 20)

struct past_use {
	struct users writers, readers;
};

/* What all files share. */
struct range_budget {
	uint64_t used_bytes, max_bytes;
	uint64_t sure_bytes; /* of each file */
	uint64_t nr_forgotten; /* pieces that went to the past */
};

static inline void range_budget_init(struct range_budget *b, uint64_t max_bytes)
{
	*b = (struct range_budget){ .max_bytes = max_bytes ? max_bytes : RANGE_BYTES_MAX };
	b->sure_bytes = b->max_bytes < RANGE_BYTES_SURE ? b->max_bytes : RANGE_BYTES_SURE;
}

/* Zeroed, with a budget: nothing was used. */
struct ranges {
	struct range_budget *budget;
	struct pieces pieces;
	uint64_t clock; /* uses so far */
	uint64_t used_bytes; /* its part of the budget */
	uint64_t nr_visits;
	struct past_use *past; /* RANGE_PAST_SETS of them; NULL: nobody yet */
};

/* Who uses the bytes, mostly one action, and where goes what that must wait for. */
struct range_user {
	const struct users *self;
	const struct sink *sink;
	enum rule rule;
};

void ranges_release(struct ranges *r);
/* After the writes of these bytes. An empty range is no use. */
void ranges_read(struct ranges *r, uint64_t from, uint64_t to, const struct range_user *u);
/* After the writes and reads of these bytes. */
void ranges_write(struct ranges *r, uint64_t from, uint64_t to, const struct range_user *u);

/*
 * What goes through a pipe, by position in the stream: bytes are put by `self`
 * and taken after that. Who takes them need not be remembered; nor what was put
 * before them, as nothing is taken again.
 */
void ranges_put(struct ranges *r, uint64_t from, uint64_t to, const struct users *self);
void ranges_take(struct ranges *r, uint64_t from, uint64_t to, const struct sink *sink,
		 enum rule rule);

#endif
