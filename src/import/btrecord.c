/* SPDX-License-Identifier: MIT */
/*
 * btrecord's files (dev.replay.N), of all CPUs together, either byte order. The
 * requests of a bunch have one time; ends are not known. The counts in the
 * header are too small in files of version 1.0.0: the file is read to its end.
 */
#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "import/block.h"

#define VERSION 0x010000
#define VERSION_MASK 0xffff00 /* major and minor: what decides about the layout */
#define HEADER_BYTES 32
#define BUNCH_BYTES 16
#define PACKET_BYTES 24
#define PACKETS_MAX 512

struct packet {
	uint64_t sector, bytes, time_ns;
	bool read;
	/* Of the bunch that it is in. */
	uint64_t left;
	bool began, swapped;
	uint64_t number;
};

struct btrecord {
	struct import *im;
	struct block_feed *feed;
};

static uint64_t get64(const uint8_t *p, bool swapped)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap64(v) : v;
}

static bool has_header(const uint8_t *p, size_t len, bool *ret_swapped)
{
	for (int swapped = 0; swapped < 2 && len >= HEADER_BYTES; swapped++) {
		uint64_t version = get64(p, swapped);

		if ((version & VERSION_MASK) == VERSION && version >> 24 == 0) {
			*ret_swapped = swapped;
			return true;
		}
	}
	return false;
}

static int reject(struct btrecord *b, struct import_input *in, struct packet *pk, const char *what,
		  struct err *err)
{
	in->line_no = pk->number + 1;
	(void)err_set(err, -EBADMSG, "request %llu: %s", (unsigned long long)in->line_no, what);
	return import_reject_line(b->im, in, err);
}

/* The next so many bytes, taken. 1, 0 at the end, -errno; *ret_len says how many there were. */
static int take_bytes(struct import_input *in, size_t want, const uint8_t **ret, size_t *ret_len,
		      struct err *err)
{
	int r = import_input_peek(in, want, ret, ret_len, err);

	if (r < 0 || !*ret_len)
		return r;
	if (*ret_len > want)
		*ret_len = want;
	import_input_skip(in, *ret_len);
	return 1;
}

/* Heads of file and bunch, as far as one has to come. 1, 0 at the end, -errno. */
static int next_bunch(struct btrecord *b, struct import_input *in, struct packet *pk,
		      struct err *err)
{
	const uint8_t *p;
	size_t len;
	int r;

	if (!pk->began) {
		r = take_bytes(in, HEADER_BYTES, &p, &len, err);
		if (r <= 0)
			return r;
		if (!has_header(p, len, &pk->swapped))
			return reject(b, in, pk, "the file is not one of btrecord", err);
		pk->began = true;
	}
	while (!pk->left) {
		r = take_bytes(in, BUNCH_BYTES, &p, &len, err);
		if (r <= 0)
			return r;
		if (len < BUNCH_BYTES)
			return reject(b, in, pk, "the file is cut short", err);
		pk->left = get64(p, pk->swapped);
		pk->time_ns = get64(p + 8, pk->swapped);
		if (pk->left > PACKETS_MAX)
			return reject(b, in, pk, "a bunch of more than 512 requests", err);
	}
	return 1;
}

static int next_packet(void *ctx, struct import_input *in, void *head, uint64_t *ret_ns,
		       struct err *err)
{
	struct btrecord *b = ctx;
	struct packet *pk = head;
	uint32_t rw;
	const uint8_t *p;
	size_t len;
	int r = next_bunch(b, in, pk, err);

	if (r > 0)
		r = take_bytes(in, PACKET_BYTES, &p, &len, err);
	if (r <= 0)
		return r;
	if (len < PACKET_BYTES)
		return reject(b, in, pk, "the file is cut short", err);
	pk->left--;
	pk->number++;
	pk->sector = get64(p, pk->swapped);
	pk->bytes = get64(p + 8, pk->swapped);
	memcpy(&rw, p + 16, sizeof(rw));
	pk->read = rw != 0;
	b->im->counts.nr_lines++;
	*ret_ns = pk->time_ns;
	return 1;
}

static int take_packet(void *ctx, struct import_input *in, void *head, struct err *err)
{
	struct btrecord *b = ctx;
	const struct packet *pk = head;
	struct block_found found = {
		.rq = { .op = !pk->bytes ? BLK_FLUSH
			      : pk->read ? BLK_READ
					 : BLK_WRITE,
			.offset_bytes = pk->bytes ? pk->sector * BLK_SECTOR_BYTES : 0,
			.length_bytes = pk->bytes,
			.cpu = -1 },
		.device = "",
		.issue_ns = pk->time_ns,
		.origin = pk->number,
	};
	int r;

	if (pk->sector > INT64_MAX / BLK_SECTOR_BYTES)
		r = err_set(err, -EBADMSG, "a sector beyond the largest offset");
	else
		r = block_feed_add(b->feed, &found, NULL, err);
	in->line_no = pk->number;
	return r == -EBADMSG ? import_reject_line(b->im, in, err) : r;
}

static int btrecord_run(struct import *im, struct err *err)
{
	struct btrecord b = { .im = im };
	struct block_merge m = { .head_size = sizeof(struct packet),
				 .next = next_packet,
				 .take = take_packet,
				 .ctx = &b };
	int r;

	b.feed = block_feed_new(im);
	r = block_merge_run(im, &m, err);
	return block_feed_close(b.feed, r, err);
}

/* A version is a weak sign; the first bunch must look like one too. */
static int btrecord_probe(const uint8_t *first, size_t len)
{
	bool swapped;
	uint64_t nr;

	if (!has_header(first, len, &swapped))
		return 0;
	if (len < HEADER_BYTES + BUNCH_BYTES)
		return 50;
	nr = get64(first + HEADER_BYTES, swapped);
	return nr && nr <= PACKETS_MAX ? 90 : 0;
}

const struct importer importer_btrecord = {
	.name = "btrecord",
	.summary = "the files that btrecord makes for btreplay",
	.probe = btrecord_probe,
	.run = btrecord_run,
};
