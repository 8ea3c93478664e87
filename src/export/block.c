/* SPDX-License-Identifier: MIT */
/*
 * Traces of block requests for other tools: lines of our own columns, fio's iolog
 * of version 3, blkparse's text, blktrace's binary records (one file, as blkparse
 * -d makes it), and btrecord's file for btreplay.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/mem.h"
#include "base/strings.h"
#include "base/varint.h"
#include "export/export.h"
#include "model/blk.h"
#include "model/vocab.h"

struct request {
	struct blk_request rq;
	uint64_t issue_ns, complete_ns;
	bool known_end;
	int32_t err;
};

struct block_export {
	struct export *ex;
	struct buf names; /* of devices: NUL-terminated, one behind the other */
	VEC(size_t) name_at;
	int (*issue)(struct block_export *x, const struct request *r); /* 1 written, 0 left out */
	int (*complete)(struct block_export *x, const struct request *r); /* may be NULL */
	VEC(struct request) flying; /* a heap by completion */
	uint64_t nr_records; /* of formats that number them */
};

/* Devices. */

static const char *device_name(struct block_export *x, uint32_t number)
{
	struct buf text = { 0 };
	char key[32], *p;
	const char *name;

	while (x->name_at.len <= number) {
		(void)snprintf(key, sizeof(key), "block.device.%zu", x->name_at.len);
		name = trace_meta(x->ex->t, key, &text);
		VEC_PUSH(&x->name_at, x->names.len);
		if (name && *name)
			strings_put_message(&x->names, name);
		else
			buf_printf(&x->names, "device%zu", x->name_at.len - 1);
		buf_putc(&x->names, '\0');
		/* No format here can quote: what would separate becomes something else. */
		for (p = (char *)x->names.data + x->name_at.items[x->name_at.len - 1]; *p; p++) {
			if (*p == ' ' || *p == '\t' || *p == '\n' || *p == ',')
				*p = *p == ',' ? ':' : '_';
		}
	}
	buf_release(&text);
	return (const char *)x->names.data + x->name_at.items[number];
}

/* What a tool that wants one number is given. */
static uint64_t device_number(const struct request *r)
{
	return r->rq.dev ? r->rq.dev : makedev(0, r->rq.device_no + 1);
}

/* Completions in the order of time. */

static bool completes_before(const struct request *a, const struct request *b)
{
	return a->complete_ns < b->complete_ns;
}

static struct request land(struct block_export *x)
{
	struct request first = x->flying.items[0];

	HEAP_POP(&x->flying, completes_before);
	return first;
}

static void land_until(struct block_export *x, uint64_t ns)
{
	while (x->flying.len && x->flying.items[0].complete_ns <= ns) {
		struct request r = land(x);

		(void)x->complete(x, &r); /* its issue was counted */
	}
}

static void take_request(struct block_export *x, const struct event *ev)
{
	struct request r = { .issue_ns = ev->enter_ns,
			     .complete_ns = ev->exit_ns,
			     .known_end = !(ev->flags & (EVENT_UNFINISHED | EVENT_NO_DURATION)),
			     .err = ev->outcome.err };

	if (!blk_request_get(ev->row, ev->args, &r.rq)) {
		x->ex->counts.nr_left_out++;
		return;
	}
	if (x->complete)
		land_until(x, r.issue_ns);
	if (!x->issue(x, &r)) {
		x->ex->counts.nr_left_out++;
		return;
	}
	x->ex->counts.nr_written++;
	r.rq.comm = NULL; /* it is the event's */
	if (x->complete && r.known_end)
		HEAP_PUSH(&x->flying, r, completes_before);
}

static int export_requests(struct block_export *x, struct err *err)
{
	struct trace_query q = { .order = TRACE_BY_ENTER, .progress = x->ex->progress };
	struct trace_iter *it;
	struct event *ev;
	int r = trace_iter_open(x->ex->t, &q, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_iter_next(it, &ev, err)) > 0)
		take_request(x, ev);
	trace_iter_close(it);
	if (!r && x->complete)
		land_until(x, UINT64_MAX);
	return r;
}

static void release(struct block_export *x)
{
	buf_release(&x->names);
	VEC_RELEASE(&x->name_at);
	VEC_RELEASE(&x->flying);
}

/* Columns. */

static int csv_issue(struct block_export *x, const struct request *r)
{
	struct buf flags = { 0 };

	vocab_print_flags(&flags, SET_block_flags, r->rq.flags);
	fprintf(x->ex->out, "%" PRIu64 ",", r->issue_ns);
	if (r->known_end)
		fprintf(x->ex->out, "%" PRIu64, r->complete_ns - r->issue_ns);
	fprintf(x->ex->out, ",%s,%s,%s,%" PRIu64 ",%" PRIu64 ",", device_name(x, r->rq.device_no),
		blk_ops[r->rq.op].name, buf_str(&flags), r->rq.offset_bytes, r->rq.length_bytes);
	if (r->rq.pid)
		fprintf(x->ex->out, "%u", r->rq.pid);
	fputc('\n', x->ex->out);
	buf_release(&flags);
	return 1;
}

static int csv_run(struct export *ex, struct err *err)
{
	struct block_export x = { .ex = ex, .issue = csv_issue };
	int r;

	fputs("time_ns,latency_ns,device,op,flags,offset,length,pid\n", ex->out);
	r = export_requests(&x, err);
	release(&x);
	return r;
}

const struct exporter exporter_blockcsv = {
	.summary = "block requests as lines of columns, which import reads again",
	.run = csv_run,
};

/* fio. */

/* As fio does it, a file is declared and opened before its first request. */
static void fio_open(struct block_export *x, uint32_t number, uint64_t us)
{
	while (x->nr_records <= number) {
		const char *name = device_name(x, (uint32_t)x->nr_records++);

		fprintf(x->ex->out, "%" PRIu64 " %s add\n%" PRIu64 " %s open\n", us, name, us,
			name);
	}
}

static int fio_issue(struct block_export *x, const struct request *r)
{
	static const char *const words[BLK_OP_MAX] = {
		[BLK_READ] = "read",	[BLK_WRITE] = "write", [BLK_ZONE_APPEND] = "write",
		[BLK_DISCARD] = "trim", [BLK_FLUSH] = "sync",
	};
	/* A delay after the time 0 is not kept. */
	uint64_t us = r->issue_ns / NS_PER_US + 1;

	if (!words[r->rq.op])
		return 0;
	fio_open(x, r->rq.device_no, us);
	if (r->rq.flags & BLK_FLAG_FLUSH && r->rq.op != BLK_FLUSH)
		fprintf(x->ex->out, "%" PRIu64 " %s sync 0 0\n", us,
			device_name(x, r->rq.device_no));
	fprintf(x->ex->out, "%" PRIu64 " %s %s %" PRIu64 " %" PRIu64 "\n", us,
		device_name(x, r->rq.device_no), words[r->rq.op], r->rq.offset_bytes,
		r->rq.length_bytes);
	return 1;
}

static int fio_run(struct export *ex, struct err *err)
{
	struct block_export x = { .ex = ex, .issue = fio_issue };
	int r;

	fputs("fio version 3 iolog\n", ex->out);
	r = export_requests(&x, err);
	release(&x);
	return r;
}

const struct exporter exporter_fio = {
	.summary = "block requests as an iolog of fio, version 3",
	.run = fio_run,
};

/* blkparse. */

static void put_comm(struct block_export *x, const struct blk_request *rq)
{
	struct buf comm = { 0 };

	strings_put_foreign(&comm, rq->comm ? rq->comm : "(null)", rq->comm ? rq->comm_len : 6);
	fprintf(x->ex->out, "[%s]\n", buf_str(&comm));
	buf_release(&comm);
}

static void put_line(struct block_export *x, const struct request *r, char action, uint64_t ns)
{
	uint64_t dev = device_number(r);
	char rwbs[BLK_RWBS_MAX];

	blk_put_rwbs(r->rq.op, r->rq.flags, rwbs);
	fprintf(x->ex->out, "%3u,%-3u %2d %8" PRIu64 " %5" PRIu64 ".%09" PRIu64 " %5u %2c %3s ",
		major(dev), minor(dev), r->rq.cpu > 0 ? r->rq.cpu : 0, ++x->nr_records,
		ns / NS_PER_S, ns % NS_PER_S, r->rq.pid, action, rwbs);
	if (r->rq.length_bytes)
		fprintf(x->ex->out, "%" PRIu64 " + %" PRIu64 " ",
			r->rq.offset_bytes / BLK_SECTOR_BYTES,
			(r->rq.length_bytes + BLK_SECTOR_BYTES - 1) / BLK_SECTOR_BYTES);
	else if (action == 'C')
		fprintf(x->ex->out, "%" PRIu64 " ", r->rq.offset_bytes / BLK_SECTOR_BYTES);
	if (action == 'C')
		fprintf(x->ex->out, "[%d]\n", r->err);
	else
		put_comm(x, &r->rq);
}

static int blkparse_issue(struct block_export *x, const struct request *r)
{
	put_line(x, r, 'Q', r->issue_ns);
	put_line(x, r, 'D', r->issue_ns);
	return 1;
}

static int blkparse_complete(struct block_export *x, const struct request *r)
{
	put_line(x, r, 'C', r->complete_ns);
	return 1;
}

static int blkparse_run(struct export *ex, struct err *err)
{
	struct block_export x = { .ex = ex,
				  .issue = blkparse_issue,
				  .complete = blkparse_complete };
	int r = export_requests(&x, err);

	release(&x);
	return r;
}

const struct exporter exporter_blkparse = {
	.summary = "block requests as blkparse prints them: queued, issued, complete",
	.run = blkparse_run,
};

/* blktrace. */

static void put_record(struct block_export *x, const struct request *r, uint32_t action,
		       uint64_t ns)
{
	static const struct {
		uint64_t flag;
		unsigned int category;
	} flags[] = { { BLK_FLAG_FLUSH, 2 },
		      { BLK_FLAG_SYNC, 3 },
		      { BLK_FLAG_RAHEAD, 11 },
		      { BLK_FLAG_META, 12 },
		      { BLK_FLAG_FUA, 15 } };
	static const uint8_t categories[BLK_OP_MAX] = {
		[BLK_READ] = 0,	    [BLK_WRITE] = 1,	   [BLK_FLUSH] = 2,
		[BLK_DISCARD] = 13, [BLK_ZONE_APPEND] = 1, [BLK_SECURE_ERASE] = 13
	};
	uint64_t dev = device_number(r);
	uint32_t what = 1u << categories[r->rq.op];
	uint8_t p[48] = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		what |= r->rq.flags & flags[i].flag ? 1u << flags[i].category : 0;
	if (r->rq.op == BLK_DISCARD || r->rq.op == BLK_FLUSH)
		what |= 1u << 1; /* they are writes too */
	/* QUEUE, ISSUE or COMPLETE, and FS for the latter two. */
	what |= action == 1 ? 1u << 4 : action == 7 ? 1u << 6 | 1u << 8 : 1u << 7 | 1u << 8;
	put_le32(p, 0x65617407);
	put_le32(p + 4, (uint32_t)++x->nr_records);
	put_le64(p + 8, ns);
	put_le64(p + 16, r->rq.offset_bytes / BLK_SECTOR_BYTES);
	put_le32(p + 24, (uint32_t)r->rq.length_bytes);
	put_le32(p + 28, action | what << 16);
	put_le32(p + 32, r->rq.pid);
	put_le32(p + 36, major(dev) << 20 | (minor(dev) & 0xfffff));
	put_le16(p + 44, (uint16_t)r->err);
	fwrite(p, 1, sizeof(p), x->ex->out);
}

static int blktrace_issue(struct block_export *x, const struct request *r)
{
	if (r->rq.op == BLK_OTHER || r->rq.op == BLK_WRITE_ZEROES ||
	    r->rq.length_bytes > UINT32_MAX)
		return 0;
	put_record(x, r, 1, r->issue_ns);
	put_record(x, r, 7, r->issue_ns);
	return 1;
}

static int blktrace_complete(struct block_export *x, const struct request *r)
{
	put_record(x, r, 8, r->complete_ns);
	return 1;
}

static int blktrace_run(struct export *ex, struct err *err)
{
	struct block_export x = { .ex = ex,
				  .issue = blktrace_issue,
				  .complete = blktrace_complete };
	int r = export_requests(&x, err);

	release(&x);
	return r;
}

const struct exporter exporter_blktrace = {
	.summary = "block requests as binary records of blktrace, in one file",
	.run = blktrace_run,
	.raw = true,
};

/* btrecord: a bunch for each request, so that its time is exact. */

static bool is_for_btreplay(const struct request *r)
{
	return blk_ops[r->rq.op].moves != BLK_MOVES_NONE;
}

static int btrecord_count(struct block_export *x, const struct request *r)
{
	x->nr_records += is_for_btreplay(r);
	return 1;
}

static int btrecord_issue(struct block_export *x, const struct request *r)
{
	uint8_t p[40] = { 0 };

	if (!is_for_btreplay(r))
		return 0;
	put_le64(p, 1);
	put_le64(p + 8, r->issue_ns);
	put_le64(p + 16, r->rq.offset_bytes / BLK_SECTOR_BYTES);
	put_le64(p + 24, r->rq.length_bytes);
	put_le32(p + 32, r->rq.op == BLK_READ);
	fwrite(p, 1, sizeof(p), x->ex->out);
	return 1;
}

static int btrecord_run(struct export *ex, struct err *err)
{
	struct block_export x = { .ex = ex, .issue = btrecord_count };
	uint8_t head[32] = { 0 };
	int r = export_requests(&x, err);

	if (!r) {
		/* The counts stand first. */
		put_le64(head, 0x010000);
		put_le64(head + 16, x.nr_records);
		put_le64(head + 24, x.nr_records);
		fwrite(head, 1, sizeof(head), ex->out);
		ex->counts = (struct export_counts){ 0 };
		x.issue = btrecord_issue;
		r = export_requests(&x, err);
	}
	release(&x);
	return r;
}

const struct exporter exporter_btrecord = {
	.summary = "block requests for btreplay, as btrecord writes them",
	.run = btrecord_run,
	.raw = true,
};
