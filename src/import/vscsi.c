/* SPDX-License-Identifier: MIT */
/*
 * Binary records of VMware's vSCSI layer, as in the CloudPhysics data sets:
 *
 *   version 1, 32 bytes: u32 serial, u32 length, u32 nr_sg, u16 command, u16 version, u64 block, u64 time
 *   version 2, 40 bytes: u16 command, u16 version, u32 serial, u32 length, u32 nr_sg, u64 block, u64 time, u64 response
 *
 * Little-endian; blocks of 512 bytes, times in microseconds. The version is in
 * the upper byte of its field. Commands are those of SCSI.
 */
#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/varint.h"
#include "import/block.h"

#define RECORD_V1_BYTES 32
#define RECORD_V2_BYTES 40

struct record {
	struct block_found found;
	size_t size; /* of a record; 0: not yet known */
	uint64_t number;
	bool wanted;
};

struct vscsi {
	struct import *im;
	struct block_feed *feed;
};

static const struct {
	uint8_t command;
	enum blk_op op;
} commands[] = {
	{ 0x08, BLK_READ },	    { 0x28, BLK_READ },	   { 0x88, BLK_READ },
	{ 0xa8, BLK_READ },	    { 0x0a, BLK_WRITE },   { 0x2a, BLK_WRITE },
	{ 0x8a, BLK_WRITE },	    { 0xaa, BLK_WRITE },   { 0x35, BLK_FLUSH },
	{ 0x91, BLK_FLUSH },	    { 0x42, BLK_DISCARD }, { 0x41, BLK_WRITE_ZEROES },
	{ 0x93, BLK_WRITE_ZEROES },
};

static bool find_op(uint16_t command, enum blk_op *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (commands[i].command == command) {
			*ret = commands[i].op;
			return true;
		}
	}
	return false;
}

/* Where version and command are; the version must be the one of that layout. */
static bool fits(const uint8_t *p, size_t size)
{
	size_t at = size == RECORD_V1_BYTES ? 12 : 0;
	uint16_t command = get_le16(p + at), version = get_le16(p + at + 2);

	return command <= 0xff && version >> 8 == (size == RECORD_V1_BYTES ? 1 : 2);
}

/* The first two records decide, as there is no header. 0: neither. */
static size_t find_size(const uint8_t *p, size_t len)
{
	static const size_t sizes[] = { RECORD_V2_BYTES, RECORD_V1_BYTES };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		if (len >= sizes[i] && fits(p, sizes[i]) &&
		    (len < 2 * sizes[i] || fits(p + sizes[i], sizes[i])))
			return sizes[i];
	}
	return 0;
}

static bool decode(const uint8_t *p, struct record *rec)
{
	bool v1 = rec->size == RECORD_V1_BYTES;
	uint64_t block = get_le64(p + 16), time_us = get_le64(p + 24);
	uint16_t command = get_le16(p + (v1 ? 12 : 0));
	struct block_found *b = &rec->found;

	*b = (struct block_found){ .origin = rec->number };
	b->rq.cpu = -1;
	b->rq.length_bytes = get_le32(p + (v1 ? 4 : 8));
	if (block > INT64_MAX / BLK_SECTOR_BYTES || time_us > UINT64_MAX / NS_PER_US)
		return false;
	b->rq.offset_bytes = block * BLK_SECTOR_BYTES;
	b->issue_ns = time_us * NS_PER_US;
	if (!v1) {
		uint64_t response_us = get_le64(p + 32);

		if (response_us > (UINT64_MAX - b->issue_ns) / NS_PER_US)
			return false;
		b->complete_ns = b->issue_ns + response_us * NS_PER_US;
		b->known_end = true;
	}
	rec->wanted = find_op(command, &b->rq.op);
	return true;
}

static int next_record(void *ctx, struct import_input *in, void *head, uint64_t *ret_ns,
		       struct err *err)
{
	struct vscsi *v = ctx;
	struct record *rec = head;
	const uint8_t *p;
	size_t len;
	int r;

	while ((r = import_input_peek(in, 2 * RECORD_V2_BYTES, &p, &len, err)) == 0 && len) {
		if (!rec->size)
			rec->size = find_size(p, len);
		if (!rec->size)
			return err_set(err, -EBADMSG, "%s: no records of vSCSI", in->name);
		in->line_no = ++rec->number;
		v->im->counts.nr_lines++;
		if (len < rec->size) {
			import_input_skip(in, len);
			(void)err_set(err, -EBADMSG, "the last record is cut short");
			return import_reject_line(v->im, in, err);
		}
		if (fits(p, rec->size) && decode(p, rec)) {
			import_input_skip(in, rec->size);
			if (!rec->wanted)
				continue; /* no request for data */
			/* Each file is of one disk. */
			rec->found.device = v->im->nr_inputs > 1 ? in->name : "";
			rec->found.device_len = strlen(rec->found.device);
			*ret_ns = rec->found.issue_ns;
			return 1;
		}
		import_input_skip(in, rec->size);
		(void)err_set(err, -EBADMSG, "record %llu is malformed",
			      (unsigned long long)rec->number);
		r = import_reject_line(v->im, in, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int take_record(void *ctx, struct import_input *in, void *head, struct err *err)
{
	struct vscsi *v = ctx;
	struct record *rec = head;
	int r = block_feed_add(v->feed, &rec->found, NULL, err);

	return r == -EBADMSG ? import_reject_line(v->im, in, err) : r;
}

static int vscsi_run(struct import *im, struct err *err)
{
	struct vscsi v = { .im = im };
	struct block_merge m = { .head_size = sizeof(struct record),
				 .next = next_record,
				 .take = take_record,
				 .ctx = &v };
	int r;

	v.feed = block_feed_new(im);
	r = block_merge_run(im, &m, err);
	return block_feed_close(v.feed, r, err);
}

static int vscsi_probe(const uint8_t *first, size_t len)
{
	size_t size = find_size(first, len);

	/* Two versions and two commands in the right places: chance would need luck, text has none. */
	return size && len >= 2 * size ? 65 : 0;
}

const struct importer importer_vscsi = {
	.name = "vscsi",
	.summary = "binary vSCSI records, as of CloudPhysics",
	.probe = vscsi_probe,
	.run = vscsi_run,
};
