/* SPDX-License-Identifier: MIT */
#include "order/pieces.h"

#include <stdlib.h>
#include <string.h>

static struct piece_block *block_new(uint32_t cap)
{
	struct piece_block *b = xmalloc(sizeof(*b) + cap * sizeof(b->items[0]));

	b->nr = 0;
	b->cap = cap;
	return b;
}

static void block_resize(struct piece_block **b, uint32_t cap)
{
	*b = xrealloc(*b, sizeof(**b) + cap * sizeof((*b)->items[0]));
	(*b)->cap = cap;
}

static uint64_t block_end(const struct pieces *p, uint32_t block)
{
	const struct piece_block *b = p->blocks[block];

	return b->items[b->nr - 1].to;
}

/* A place for a block at n. */
static void open_gap(struct pieces *p, uint32_t n)
{
	if (p->nr_blocks == p->cap_blocks) {
		p->cap_blocks = p->cap_blocks ? p->cap_blocks * 2 : 1;
		p->blocks = xrealloc(p->blocks, p->cap_blocks * sizeof(p->blocks[0]));
	}
	memmove(p->blocks + n + 1, p->blocks + n, (p->nr_blocks - n) * sizeof(p->blocks[0]));
	p->nr_blocks++;
}

static uint32_t find_block(struct pieces *p, uint64_t pos)
{
	uint32_t low = 0, high = p->nr_blocks, guess = p->last_block;

	if (guess < high && block_end(p, guess) > pos &&
	    (guess == 0 || block_end(p, guess - 1) <= pos))
		return guess;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (block_end(p, middle) <= pos)
			low = middle + 1;
		else
			high = middle;
	}
	p->last_block = low;
	return low;
}

struct piece_at pieces_find(struct pieces *p, uint64_t pos)
{
	struct piece_at at = { .block = find_block(p, pos) };
	const struct piece_block *b;
	uint32_t high;

	if (at.block == p->nr_blocks)
		return at;
	b = p->blocks[at.block];
	for (high = b->nr; at.i < high;) {
		uint32_t middle = at.i + (high - at.i) / 2;

		if (b->items[middle].to <= pos)
			at.i = middle + 1;
		else
			high = middle;
	}
	return at;
}

/* The upper half becomes a block of its own. */
static struct piece_at halve(struct pieces *p, struct piece_at at)
{
	struct piece_block *lower = p->blocks[at.block], *upper = block_new(PIECES_BLOCK);
	uint32_t kept = lower->nr / 2;

	open_gap(p, at.block + 1);
	p->blocks[at.block + 1] = upper;
	upper->nr = lower->nr - kept;
	memcpy(upper->items, lower->items + kept, upper->nr * sizeof(upper->items[0]));
	lower->nr = kept;
	if (at.i <= kept)
		return at;
	return (struct piece_at){ at.block + 1, at.i - kept };
}

/* So that one more fits. Files that grow fill their blocks. */
static struct piece_at make_room(struct pieces *p, struct piece_at at)
{
	struct piece_block *b;

	if (!p->nr_blocks) {
		open_gap(p, 0);
		p->blocks[0] = block_new(1);
		return (struct piece_at){ 0 };
	}
	if (at.block == p->nr_blocks)
		at = (struct piece_at){ at.block - 1, p->blocks[at.block - 1]->nr };
	b = p->blocks[at.block];
	if (b->nr < b->cap)
		return at;
	if (b->cap < PIECES_BLOCK) {
		block_resize(&p->blocks[at.block], b->cap * 2);
		return at;
	}
	if (at.i < b->nr || at.block + 1 < p->nr_blocks)
		return halve(p, at);
	open_gap(p, p->nr_blocks);
	p->blocks[at.block + 1] = block_new(PIECES_BLOCK);
	return (struct piece_at){ at.block + 1, 0 };
}

struct piece_at pieces_insert(struct pieces *p, struct piece_at at, uint64_t from, uint64_t to)
{
	struct piece_block *b;
	struct piece *new;

	at = make_room(p, at);
	b = p->blocks[at.block];
	new = &b->items[at.i];
	memmove(new + 1, new, (b->nr - at.i) * sizeof(*new));
	*new = (struct piece){ .from = from, .to = to };
	b->nr++;
	p->nr++;
	return at;
}

/* Frees the blocks from first to before end that hold nothing. */
static void drop_empty(struct pieces *p, uint32_t first, uint32_t end)
{
	uint32_t i, kept = first;

	for (i = first; i < end; i++) {
		if (p->blocks[i]->nr)
			p->blocks[kept++] = p->blocks[i];
		else
			free(p->blocks[i]);
	}
	if (kept == end)
		return;
	memmove(p->blocks + kept, p->blocks + end, (p->nr_blocks - end) * sizeof(p->blocks[0]));
	p->nr_blocks -= end - kept;
}

void pieces_erase(struct pieces *p, struct piece_at at, uint64_t nr)
{
	uint32_t block = at.block;

	p->nr -= nr;
	for (; nr; block++, at.i = 0) {
		struct piece_block *b = p->blocks[block];
		uint32_t here = nr < b->nr - at.i ? (uint32_t)nr : b->nr - at.i;

		memmove(b->items + at.i, b->items + at.i + here,
			(b->nr - at.i - here) * sizeof(b->items[0]));
		b->nr -= here;
		nr -= here;
	}
	drop_empty(p, at.block, block);
}

/* Joins the block with the next one when both are small. */
static void join(struct pieces *p, uint32_t block)
{
	struct piece_block *b, *next;

	if (block + 1 >= p->nr_blocks)
		return;
	b = p->blocks[block];
	next = p->blocks[block + 1];
	if (b->nr + next->nr > PIECES_BLOCK * 3 / 4)
		return;
	memcpy(b->items + b->nr, next->items, next->nr * sizeof(next->items[0]));
	b->nr += next->nr;
	next->nr = 0;
	drop_empty(p, block + 1, block + 2);
}

void pieces_tidy(struct pieces *p, uint32_t first, uint32_t last)
{
	uint32_t block;

	for (block = last + 1; block > first; block--)
		join(p, block - 1);
	if (first)
		join(p, first - 1);
	if (p->nr_blocks == 1 && p->blocks[0]->nr <= p->blocks[0]->cap / 4)
		block_resize(&p->blocks[0], p->blocks[0]->cap / 2);
}

void pieces_filter(struct pieces *p, bool (*drop)(void *data, struct piece *piece), void *data)
{
	uint32_t block, i, kept;

	for (block = 0; block < p->nr_blocks; block++) {
		struct piece_block *b = p->blocks[block];

		for (i = 0, kept = 0; i < b->nr; i++) {
			if (!drop(data, &b->items[i]))
				b->items[kept++] = b->items[i];
		}
		p->nr -= b->nr - kept;
		b->nr = kept;
	}
	drop_empty(p, 0, p->nr_blocks);
	pieces_tidy(p, 0, p->nr_blocks);
}

void pieces_release(struct pieces *p)
{
	uint32_t i;

	for (i = 0; i < p->nr_blocks; i++)
		free(p->blocks[i]);
	free(p->blocks);
	*p = (struct pieces){ 0 };
}
