/* SPDX-License-Identifier: MIT */
/*
 * Filler comes from a pool that is gone through again and again, so that what is
 * in flight stays as it is. Pieces of 4 KiB: noise and, behind it, as many zeroes
 * as make it compressible; a number at their beginning makes each unlike all
 * others, but for those that shall be copies of one of a few.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/banned.h"
#include "base/mem.h"
#include "replay/blk_data.h"
#include "replay/blk_target.h"

#define PIECE_BYTES 4096u
#define POOL_MAX_BYTES ((uint64_t)64 << 20)
#define NR_ORIGINALS 16

static uint64_t roll(uint64_t *dice)
{
	uint64_t x = *dice;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *dice = x;
}

static void fill_piece(const struct blk_data *d, uint8_t *piece, uint64_t seed)
{
	uint32_t noise = PIECE_BYTES - PIECE_BYTES * d->compress_percent / 100;
	uint32_t i;

	seed = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	for (i = 0; i < noise; i += sizeof(seed)) {
		(void)roll(&seed);
		memcpy(piece + i, &seed, sizeof(seed));
	}
	memset(piece + i, 0, PIECE_BYTES - i);
}

static uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

int blk_data_init(struct blk_data *d, uint64_t max_bytes, uint64_t depth, uint32_t number,
		  const struct blk_run_options *o, struct err *err)
{
	uint64_t pieces,
		most = depth < POOL_MAX_BYTES / PIECE_BYTES ? depth : POOL_MAX_BYTES / PIECE_BYTES;

	*d = (struct blk_data){ .dice = 88172645463325252u + number,
				.nr_pieces = (uint64_t)number << 56,
				.compress_percent = o->compress_percent,
				.dedup_percent = o->dedup_percent };
	/* What is widened to whole sectors needs a little more. */
	d->sink_bytes = round_up(max_bytes + 2 * BLK_SECTOR_MAX, PIECE_BYTES);
	/* Twice what can be in flight: a piece is written again when it has long been read. */
	d->pool_bytes = round_up(max_bytes, PIECE_BYTES) * most * 2;
	if (d->pool_bytes > POOL_MAX_BYTES)
		d->pool_bytes = POOL_MAX_BYTES;
	if (d->pool_bytes < d->sink_bytes * 2)
		d->pool_bytes = d->sink_bytes * 2;
	d->base_bytes = d->sink_bytes + d->pool_bytes;
	d->base = mmap(NULL, d->base_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (d->base == MAP_FAILED) {
		d->base = NULL;
		return err_set(err, -ENOMEM, "no memory for the data of requests");
	}
	d->sink = d->base;
	d->pool = d->base + d->sink_bytes;
	pieces = d->pool_bytes / PIECE_BYTES;
	d->is_copy = xcalloc(pieces, 1);
	for (uint64_t i = 0; i < pieces; i++)
		fill_piece(d, d->pool + i * PIECE_BYTES, NR_ORIGINALS + i);
	return 0;
}

void blk_data_release(struct blk_data *d)
{
	if (d->base)
		(void)munmap(d->base, d->base_bytes);
	free(d->is_copy);
	*d = (struct blk_data){ 0 };
}

static void renew_piece(struct blk_data *d, uint64_t at)
{
	uint8_t *piece = d->pool + at;
	uint64_t n = at / PIECE_BYTES, number;

	if (d->dedup_percent && roll(&d->dice) % 100 < d->dedup_percent) {
		fill_piece(d, piece, roll(&d->dice) % NR_ORIGINALS);
		d->is_copy[n] = 1;
		return;
	}
	if (d->is_copy[n]) {
		fill_piece(d, piece, NR_ORIGINALS + n);
		d->is_copy[n] = 0;
	}
	number = ++d->nr_pieces;
	memcpy(piece, &number, sizeof(number));
}

uint8_t *blk_data_filler(struct blk_data *d, uint64_t len)
{
	uint64_t need = round_up(len, PIECE_BYTES), at;

	if (d->pool_at + need > d->pool_bytes)
		d->pool_at = 0;
	for (at = d->pool_at; at < d->pool_at + need; at += PIECE_BYTES)
		renew_piece(d, at);
	at = d->pool_at;
	d->pool_at += need;
	return d->pool + at;
}
