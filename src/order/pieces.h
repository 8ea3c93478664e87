/* SPDX-License-Identifier: MIT */
/*
 * Pieces of a file that do not overlap, in order, in blocks of a bounded size:
 *
 *   blocks  -> [0, 4096) [4096, 8192) [65536, 69632)
 *           -> [1048576, 1052672) ... [end)
 *
 * So that a piece can be put anywhere among a million of them at the cost of a
 * search and of moving a block's worth; a file with one piece costs one piece.
 *
 * A place (struct piece_at) is good until pieces are inserted or erased.
 */
#ifndef ORDER_PIECES_H
#define ORDER_PIECES_H

#include "order/users.h"

/* Pieces in a block. */
#define PIECES_BLOCK 64

struct piece {
	uint64_t from, to;
	uint64_t stamp; /* of its last use */
	struct users writers; /* one action, but for what is no action itself */
	struct users readers; /* since */
};

struct piece_block {
	uint32_t nr, cap;
	struct piece items[];
};

/* Zeroed: none. No block is empty; only one that is alone has a cap below PIECES_BLOCK. */
struct pieces {
	struct piece_block **blocks;
	uint32_t nr_blocks, cap_blocks;
	uint32_t last_block; /* where something was found last: a guess */
	uint64_t nr; /* in all blocks */
};

struct piece_at {
	uint32_t block, i;
};

/* NULL: behind the last. */
static inline struct piece *pieces_at(const struct pieces *p, struct piece_at at)
{
	return at.block < p->nr_blocks ? &p->blocks[at.block]->items[at.i] : NULL;
}

static inline struct piece_at pieces_next(const struct pieces *p, struct piece_at at)
{
	if (++at.i < p->blocks[at.block]->nr)
		return at;
	return (struct piece_at){ at.block + 1, 0 };
}

/* The first piece that ends behind pos. */
struct piece_at pieces_find(struct pieces *p, uint64_t pos);
/* A new piece before what is there; nobody has used it. It may come to another place. */
struct piece_at pieces_insert(struct pieces *p, struct piece_at at, uint64_t from, uint64_t to);
/* So many from there on, whose users have been released. */
void pieces_erase(struct pieces *p, struct piece_at at, uint64_t nr);
/* Gives back room in blocks where pieces were erased; the last need not be there any more. */
void pieces_tidy(struct pieces *p, uint32_t first, uint32_t last);
/* Erases all for which drop() is true; that releases their users. */
void pieces_filter(struct pieces *p, bool (*drop)(void *data, struct piece *piece), void *data);
/* The pieces' users have been released. */
void pieces_release(struct pieces *p);

#endif
