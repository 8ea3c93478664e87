/* SPDX-License-Identifier: MIT */
/*
 * blktrace's binary records, versions 7 and 8, of either byte order: the files
 * of each CPU, to be given together, or one merged file (blkparse -d). What is
 * read: begins and ends of requests, names of processes, the wall clock, and gaps
 * in the sequence numbers, which are losses. What is not: merges, plugs, remaps.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "import/block.h"

#define MAGIC 0x65617400u
#define RECORD_V7_BYTES 48
#define RECORD_V8_BYTES 64
#define COMM_BYTES 16

/* Categories: bits of the action from 16 on. */
enum {
	CAT_READ = 0,
	CAT_WRITE = 1,
	CAT_FLUSH = 2,
	CAT_SYNC = 3,
	CAT_PC = 9,
	CAT_NOTIFY = 10,
	CAT_AHEAD = 11,
	CAT_META = 12,
	CAT_DISCARD = 13,
	CAT_DRV_DATA = 14,
	CAT_FUA = 15,
	CAT_ZONE_APPEND = 16, /* from here on: version 8 */
	CAT_ZONE_RESET = 17,
	CAT_ZONE_CLOSE = 21,
	CAT_WRITE_ZEROES = 22,
};
#define CAT_SHIFT 16
#define HAS(action, cat) ((action) >> (CAT_SHIFT + (cat)) & 1)

enum { NOTIFY_PROCESS, NOTIFY_TIMESTAMP, NOTIFY_MESSAGE };
#define CGROUP_BIT 0x100

/* By the low bits of the action. */
static const char actions[] = "?QMFGSRDCPUTIXBA";

struct record {
	uint64_t time_ns, sector, action;
	uint32_t sequence, bytes, pid, device, cpu;
	uint16_t error, pdu_len;
	bool swapped;
	const uint8_t *pdu; /* of the input: valid until it is asked again */
	uint64_t number; /* in its input, from 1 */
	size_t total_len; /* with the payload: to be skipped before the next */
};

struct blktrace {
	struct import *im;
	struct block_feed *feed;
	struct block_layer *layer;
	struct map names; /* u32 pid -> its name */
	struct map sequences; /* u32 cpu -> last sequence number */
	uint64_t nr_lost;
};

/* Bytes. */

static uint16_t get16(const uint8_t *p, bool swapped)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap16(v) : v;
}

static uint32_t get32(const uint8_t *p, bool swapped)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap32(v) : v;
}

static uint64_t get64(const uint8_t *p, bool swapped)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap64(v) : v;
}

/* The version, 0 when there is no record; tells the byte order. */
static unsigned int get_version(const uint8_t *p, size_t len, bool *ret_swapped)
{
	uint32_t magic;

	if (len < sizeof(magic))
		return 0;
	for (int swapped = 0; swapped < 2; swapped++) {
		magic = get32(p, swapped);
		if ((magic & 0xffffff00u) == MAGIC) {
			*ret_swapped = swapped;
			return magic & 0xff;
		}
	}
	return 0;
}

static size_t header_bytes(unsigned int version)
{
	return version == 7 ? RECORD_V7_BYTES : version == 8 ? RECORD_V8_BYTES : 0;
}

static void decode(const uint8_t *p, unsigned int version, struct record *r)
{
	bool s = r->swapped;

	r->sequence = get32(p + 4, s);
	r->time_ns = get64(p + 8, s);
	r->sector = get64(p + 16, s);
	r->bytes = get32(p + 24, s);
	if (version == 7) {
		r->action = get32(p + 28, s);
		r->pid = get32(p + 32, s);
		p += 36;
	} else {
		r->pid = get32(p + 28, s);
		r->action = get64(p + 32, s);
		p += 40;
	}
	r->device = get32(p, s);
	r->cpu = get32(p + 4, s);
	r->error = get16(p + 8, s);
	r->pdu_len = get16(p + 10, s);
}

static int bad_record(struct import *im, struct import_input *in, uint64_t number, const char *what,
		      struct err *err)
{
	(void)err_set(err, -EBADMSG, "record %llu: %s", (unsigned long long)number, what);
	/* Nothing tells where the next one begins. */
	return import_reject_line(im, in, err);
}

static int next_record(void *ctx, struct import_input *in, void *head, uint64_t *ret_ns,
		       struct err *err)
{
	struct blktrace *b = ctx;
	struct record *rec = head;
	const uint8_t *p;
	unsigned int version;
	size_t len, need;
	int r;

	import_input_skip(in, rec->total_len);
	rec->total_len = 0;
	r = import_input_peek(in, RECORD_V8_BYTES, &p, &len, err);
	if (r < 0 || !len)
		return r;
	version = get_version(p, len, &rec->swapped);
	need = header_bytes(version);
	in->line_no = ++rec->number;
	if (!need)
		return bad_record(
			b->im, in, rec->number,
			version ? "a version other than 7 and 8" : "no record begins here", err);
	if (len >= need) {
		decode(p, version, rec);
		r = import_input_peek(in, need + rec->pdu_len, &p, &len, err);
		if (r < 0)
			return r;
		need += rec->pdu_len;
	}
	if (len < need)
		return bad_record(b->im, in, rec->number, "it is cut short", err);
	rec->pdu = p + need - rec->pdu_len;
	rec->total_len = need;
	b->im->counts.nr_lines++;
	/* A notice belongs to what comes next in its file; its own time is as good as any. */
	*ret_ns = rec->time_ns;
	return 1;
}

/* Records. */

static void take_notice(struct blktrace *b, const struct record *rec)
{
	size_t skip = rec->action & CGROUP_BIT ? 8 : 0, len;
	const uint8_t *p = rec->pdu + skip;
	void **slot;

	if (rec->pdu_len < skip)
		return;
	len = rec->pdu_len - skip;
	switch (rec->action & 0xff) {
	case NOTIFY_PROCESS:
		slot = map_slot(&b->names, &rec->pid, sizeof(rec->pid));
		free(*slot);
		*slot = xmemdup0(p, strnlen((const char *)p, len < COMM_BYTES ? len : COMM_BYTES));
		break;
	case NOTIFY_TIMESTAMP:
		if (len >= 8)
			block_feed_set_wall(b->feed, rec->time_ns,
					    get32(p, rec->swapped) * NS_PER_S +
						    get32(p + 4, rec->swapped));
		break;
	}
}

/* Numbers run on for each CPU; where they are not filled in they are all 0. */
static void note_sequence(struct blktrace *b, const struct record *rec)
{
	void **slot = map_slot(&b->sequences, &rec->cpu, sizeof(rec->cpu));
	uint32_t last = (uint32_t)(uintptr_t)*slot;

	if (last && rec->sequence > last + 1)
		b->nr_lost += rec->sequence - last - 1;
	if (rec->sequence > last)
		*slot = (void *)(uintptr_t)rec->sequence;
}

static void get_op(const struct record *rec, struct block_layer_event *ev)
{
	static const struct {
		unsigned int cat;
		enum blk_flag flag;
	} flags[] = { { CAT_SYNC, BLK_FLAG_SYNC },
		      { CAT_META, BLK_FLAG_META },
		      { CAT_AHEAD, BLK_FLAG_RAHEAD },
		      { CAT_FUA, BLK_FLAG_FUA },
		      { CAT_FLUSH, BLK_FLAG_FLUSH } };
	uint64_t a = rec->action;
	bool zones = false;

	for (unsigned int cat = CAT_ZONE_RESET; cat <= CAT_ZONE_CLOSE; cat++)
		zones |= HAS(a, cat);
	if (zones || HAS(a, CAT_PC))
		ev->op = BLK_OTHER;
	else if (HAS(a, CAT_DISCARD))
		ev->op = BLK_DISCARD;
	else if (HAS(a, CAT_WRITE_ZEROES))
		ev->op = BLK_WRITE_ZEROES;
	else if (HAS(a, CAT_ZONE_APPEND))
		ev->op = BLK_ZONE_APPEND;
	else if (HAS(a, CAT_WRITE))
		ev->op = BLK_WRITE;
	else
		ev->op = HAS(a, CAT_READ) ? BLK_READ : BLK_OTHER;
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		ev->flags |= HAS(a, flags[i].cat) ? flags[i].flag : 0;
}

static int take_record(void *ctx, struct import_input *in, void *head, struct err *err)
{
	struct blktrace *b = ctx;
	const struct record *rec = head;
	unsigned int low = (unsigned int)(rec->action & 0xff);
	const char *name;
	struct block_layer_event ev = {
		.action = low < sizeof(actions) - 1 ? actions[low] : '?',
		.time_ns = rec->time_ns,
		.dev = makedev(rec->device >> 20, rec->device & 0xfffff),
		.sector = rec->sector,
		.bytes = rec->bytes,
		.pid = rec->pid,
		.cpu = (int32_t)(rec->cpu & INT32_MAX),
		.err = rec->error,
		.origin = rec->number,
	};

	(void)in;
	if (HAS(rec->action, CAT_NOTIFY)) {
		take_notice(b, rec);
		return 0;
	}
	note_sequence(b, rec);
	if (HAS(rec->action, CAT_DRV_DATA))
		return 0;
	get_op(rec, &ev);
	name = map_get(&b->names, &rec->pid, sizeof(rec->pid));
	if (name) {
		ev.comm = name;
		ev.comm_len = strlen(name);
	}
	return block_layer_event(b->layer, &ev, err);
}

/* What the first records have, when the user did not say: issues where there are any. */
static int choose_events(struct import *im, enum import_events *ret, struct err *err)
{
	const uint8_t *p;
	size_t len;
	int r;

	*ret = im->block.events;
	if (*ret != IMPORT_EVENTS_AUTO)
		return 0;
	*ret = IMPORT_EVENTS_QUEUE;
	for (size_t i = 0; i < im->nr_inputs; i++) {
		r = import_input_open(&im->inputs[i], err);
		if (!r)
			r = import_input_peek(&im->inputs[i], IMPORT_PROBE_BYTES, &p, &len, err);
		if (r < 0)
			return r;
		while (len) {
			struct record rec = { 0 };
			unsigned int version = get_version(p, len, &rec.swapped);
			size_t need = header_bytes(version);

			if (!need || len < need)
				break;
			decode(p, version, &rec);
			if (!HAS(rec.action, CAT_NOTIFY) && (rec.action & 0xff) == 7) {
				*ret = IMPORT_EVENTS_ISSUE;
				return 0;
			}
			need += rec.pdu_len;
			p += need < len ? need : len;
			len -= need < len ? need : len;
		}
	}
	return 0;
}

static int note_losses(struct blktrace *b, struct err *err)
{
	struct loss loss = { .kind = LOSS_EVENTS_LOST,
			     .count = b->nr_lost,
			     .note = "gaps in the sequence numbers of blktrace's records" };

	if (b->nr_lost && trace_feed_loss(b->im->feed, &loss) < 0)
		return err_set(err, -EIO, "cannot write");
	return 0;
}

static int blktrace_run(struct import *im, struct err *err)
{
	struct blktrace b = { .im = im };
	struct block_merge m = { .head_size = sizeof(struct record),
				 .next = next_record,
				 .take = take_record,
				 .ctx = &b };
	enum import_events events;
	int r = choose_events(im, &events, err);

	if (r < 0)
		return r;
	b.feed = block_feed_new(im);
	b.layer = block_layer_new(b.feed, events);
	r = block_merge_run(im, &m, err);
	block_layer_free(b.layer);
	if (!r)
		r = note_losses(&b, err);
	r = block_feed_close(b.feed, r, err);
	MAP_EACH (&b.names, e)
		free(e->value);
	map_release(&b.names);
	map_release(&b.sequences);
	return r;
}

static int blktrace_probe(const uint8_t *first, size_t len)
{
	bool swapped;

	return header_bytes(get_version(first, len, &swapped)) ? 100 : 0;
}

const struct importer importer_blktrace = {
	.name = "blktrace",
	.summary = "blktrace's binary files, of all CPUs or merged",
	.probe = blktrace_probe,
	.run = blktrace_run,
};
