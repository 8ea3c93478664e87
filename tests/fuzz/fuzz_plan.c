/* SPDX-License-Identifier: MIT */
/*
 * A plan of foreign origin. The first byte says what the rest is (enum mode): a
 * file as it is, or actions that get right blocks, index and totals, without
 * which hardly anything would reach the code behind them:
 *
 *   u8 lanes, u8 slots, u8 data allowed, in units of 16 bytes, then blocks:
 *   u8 lane, u8 number of actions, u16 length, actions
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/varint.h"
#include "forge.h"
#include "model/codec.h"
#include "plan/plan.h"
#include "sample.h"
#include "trace/check.h"
#include "trace/event_codec.h"

enum mode {
	MODE_BLOCKS = 1,
	MODE_PACKED = 2,
	MODE_STARTED = 4, /* edges to starts are allowed */
};

#define HEAD_BYTES 3
#define BLOCK_HEAD_BYTES 4
#define NR_LANES_MAX 8

/* The rows of the seeds; the whole schema would take most of the time. */
static const uint16_t rows[] = {
	SC_openat,	 SC_close,	    SC_read,	    SC_write,  SC_writev,   SC_pread64,
	SC_preadv,	 SC_pipe,	    SC_mmap,	    SC_munmap, SC_io_setup, SC_io_submit,
	SC_io_getevents, SC_io_uring_enter, SC_sendmsg,	    SC_execve, SC_unlink,   EV_plan_cwd,
	EV_plan_open,	 REC_meta,	    REC_tree_entry,
};

/* First block and schema, made once. */
static const struct forge *start_of_file(void)
{
	static struct forge f;

	if (!f.packer) {
		forge_init(&f);
		forge_schema(&f, rows, ARRAY_LEN(rows));
	}
	return &f;
}

static void put_actions(struct forge *f, uint8_t mode, uint64_t lane, uint64_t first, uint8_t nr,
			const uint8_t *p, size_t len)
{
	const struct events_prefix prefix = { .pid = 1,
					      .tid = 2,
					      .first_index = first,
					      .nr_events = nr,
					      .base_ns = 1000,
					      .base_seq = 10 };
	struct buf payload = { 0 };
	struct block_entry *e;

	events_prefix_put(buf_reserve(&payload, EVENTS_PREFIX_BYTES), &prefix);
	payload.len = EVENTS_PREFIX_BYTES;
	buf_put(&payload, p, len);
	forge_block(f, BLOCK_ACTIONS, lane, payload.data, payload.len, !!(mode & MODE_PACKED));
	e = &f->entries.items[f->entries.len - 1];
	e->pid = prefix.pid;
	e->tid = prefix.tid;
	e->nr_events = nr;
	e->first_index = first;
	buf_release(&payload);
}

static void put_total(struct buf *meta, const char *key, uint64_t value)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	struct buf body = { 0 };

	forge_put_u(&body, REC_meta);
	forge_put_u(&body, 0); /* missing */
	forge_put_inline(&body, key);
	forge_put_u(&body, 2);
	forge_put_u(&body, (uint64_t)len);
	buf_put(&body, text, (size_t)len);
	forge_put_body(meta, &body);
	buf_release(&body);
}

static void put_totals(struct forge *f, uint8_t mode, const uint8_t *head, uint64_t nr_actions)
{
	struct buf meta = { 0 };

	put_total(&meta, "plan.version", 1);
	put_total(&meta, "plan.actions", nr_actions);
	put_total(&meta, "plan.lanes", head[0] % (NR_LANES_MAX + 1));
	put_total(&meta, "plan.slots", head[1]);
	put_total(&meta, "plan.edges", 0);
	put_total(&meta, "plan.elapsed_ns", 0);
	put_total(&meta, "plan.first_ns", 0);
	put_total(&meta, "plan.max_data_bytes", head[2] * UINT64_C(16));
	put_total(&meta, "plan.started_edges", !!(mode & MODE_STARTED));
	put_total(&meta, "plan.prologue", 0);
	forge_block(f, BLOCK_META, 0, meta.data, meta.len, 0);
	buf_release(&meta);
}

static void build(struct forge *f, uint8_t mode, const uint8_t *p, size_t size)
{
	const struct forge *start = start_of_file();
	uint64_t first[NR_LANES_MAX] = { 0 }, nr_actions = 0;
	const uint8_t *head = p;
	size_t i;

	*f = (struct forge){ .packer = block_packer_new() };
	buf_put(&f->file, start->file.data, start->file.len);
	for (i = 0; i < start->entries.len; i++)
		VEC_PUSH(&f->entries, start->entries.items[i]);
	p += HEAD_BYTES;
	size -= HEAD_BYTES;
	while (size >= BLOCK_HEAD_BYTES) {
		size_t len = get_le16(p + 2);
		uint8_t lane = p[0] % NR_LANES_MAX;

		if (len > size - BLOCK_HEAD_BYTES)
			len = size - BLOCK_HEAD_BYTES;
		put_actions(f, mode, lane, first[lane], p[1], p + BLOCK_HEAD_BYTES, len);
		first[lane] += p[1];
		nr_actions += p[1];
		p += BLOCK_HEAD_BYTES + len;
		size -= BLOCK_HEAD_BYTES + len;
	}
	put_totals(f, mode, head, nr_actions);
	forge_close(f);
}

/* What a replay trusts in must hold. */
static void check_promises(const struct plan_totals *t, uint32_t lane, const struct action *a)
{
	uint32_t i;

	if (a->exit_ns < a->enter_ns || a->exit_ns > PLAN_TIME_MAX ||
	    a->nr_edges > ACTION_EDGES_MAX)
		abort();
	for (i = 0; i < a->nr_edges; i++) {
		if (a->edges[i].lane >= t->nr_lanes || a->edges[i].lane == lane)
			abort();
	}
	for (i = 0; i < a->row->nr_args; i++) {
		if (a->row->args[i].kind == KIND_FD && a->args[i].type == VALUE_INT &&
		    a->args[i].i >= (int64_t)t->nr_slots)
			abort();
	}
}

static void read_lane(struct plan *p, uint32_t lane)
{
	const struct action *a;
	struct plan_lane *l;
	struct err err;

	if (plan_lane_open(p, lane, &l, &err) < 0)
		abort();
	while (plan_lane_next(l, &a, &err) == 1) {
		struct event ev = { .row = a->row };
		struct hash128 hash;
		unsigned int i;

		check_promises(plan_totals(p), lane, a);
		for (i = 0; i < a->row->nr_args; i++)
			ev.args[i] = a->args[i];
		/* Looks at all of it; data may well be missing. */
		(void)!sample_digest_event(plan_data_source(p), &ev, &hash, &err);
	}
	plan_lane_close(l);
}

static void read_plan(const char *path)
{
	struct plan *p;
	struct err err;
	uint32_t lane;

	if (plan_open(path, &p, &err) < 0)
		return;
	for (lane = 0; lane < plan_totals(p)->nr_lanes && lane < 64; lane++)
		read_lane(p, lane);
	(void)!plan_check(p, NULL, &err); /* either is fine */
	(void)!plan_check_data(p, NULL, &err);
	plan_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct buf file = { 0 };
	struct check_result c;
	struct forge f;
	char path[32];
	struct err err;

	if (!size)
		return 0;
	if (fd < 0)
		fd = memfd_create("plan", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!(data[0] & MODE_BLOCKS)) {
		buf_put(&file, data + 1, size - 1);
	} else if (size > HEAD_BYTES) {
		build(&f, data[0], data + 1, size - 1);
		buf_put(&file, f.file.data, f.file.len);
		forge_release(&f);
	}
	if (ftruncate(fd, 0) < 0 || pwrite_full(fd, file.data, file.len, 0) < 0)
		abort();
	buf_release(&file);
	read_plan(path);
	(void)!trace_check(path, NULL, &c, &err); /* either is fine */
	return 0;
}
