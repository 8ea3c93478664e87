/* SPDX-License-Identifier: MIT */
/*
 * Which bytes of a file were read and written by whom, as far as later actions
 * can conflict with it: pieces that do not overlap, in order, each with its last
 * writer and the readers since.
 *
 *   [0, 4096) w=2:17 r={1:9 3:4}   [8192, 12288) r={1:10}   [65536, end) w=2:20
 *
 * The number of pieces is bounded. Beyond that, those not used for longest go to
 * the past: a few sets of users, chosen by position, which only say that somebody
 * used something about there. So an edge may be added, to what is long done, and
 * none is lost.
 */
#ifndef ORDER_RANGE_H
#define ORDER_RANGE_H

#include "order/users.h"

#define RANGE_PIECES_MAX 128
/* Readers and writers of all pieces together, where they are more than one for a piece. */
#define RANGE_USERS_MAX 1024
/* The past: sets, and how many bytes in a row share one. */
#define RANGE_PAST_SETS 32
#define RANGE_PAST_BYTES ((uint64_t)1 << 20)
/* A lane that goes through a file in order makes pieces of up to this size. */
#define RANGE_RUN_BYTES ((uint64_t)256 << 10)

struct piece {
	uint64_t from, to;
	uint64_t stamp; /* of its last use: ranges.clock */
	struct users writers; /* one action, but for what is no action itself */
	struct users readers; /* since */
};

struct past_use {
	struct users writers, readers;
};

/* Zeroed: nothing was used. */
struct ranges {
	struct piece *pieces;
	uint32_t nr, cap;
	uint64_t clock;
	struct past_use *past; /* RANGE_PAST_SETS of them; NULL: nobody yet */
};

void ranges_release(struct ranges *r);
/* After the writes of these bytes. `self` is who does it, mostly one action. An empty range is no use. */
void ranges_read(struct ranges *r, uint64_t from, uint64_t to, const struct users *self,
		 const struct sink *sink, enum rule rule);
/* After the writes and reads of these bytes. */
void ranges_write(struct ranges *r, uint64_t from, uint64_t to, const struct users *self,
		  const struct sink *sink, enum rule rule);

/*
 * What goes through a pipe, by position in the stream: bytes are put once, by
 * whoever `before` names, and taken after that. Takers need not be remembered.
 */
void ranges_put(struct ranges *r, uint64_t from, uint64_t to, const struct users *before);
void ranges_take(const struct ranges *r, uint64_t from, uint64_t to, const struct sink *sink,
		 enum rule rule);

#endif
