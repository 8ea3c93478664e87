/* SPDX-License-Identifier: MIT */
/*
 * A trace of foreign origin. The first byte says what the rest is (enum mode):
 * a file as it is, or blocks that get right headers and checksums, without which
 * hardly anything would reach the code behind them:
 *
 *   u8 type, u8 flags, u8 number, u16 length, payload
 *
 * flags: 1 pack it, 2 with the version byte 2, 4 with an unknown flag.
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
#include "sample.h"
#include "trace/check.h"
#include "trace/reader.h"
#include "trace/salvage.h"

enum mode {
	MODE_BLOCKS = 1,
	MODE_OWN_SCHEMA = 2, /* behind the first block */
	MODE_CLOSED = 4, /* with the index that fits */
	MODE_OWN_INDEX = 8, /* with a footer that names the last index block of the input */
	MODE_SALVAGE = 0xf0, /* all of these bits: it takes long */
	MODE_ORDER_SHIFT = 4, /* and else they choose the order */
};

#define BLOCK_PREFIX 5

/* The rows of the seeds; the whole schema would take most of the time. */
static const char small_schema[] =
	"struct stat u:st_dev:DEV u:st_ino:ULONG u:st_mode:MODE u:st_nlink:ULONG u:st_uid:UID\n"
	"struct iovec d:iov_base:BUF u:iov_len:SIZE\n"
	"struct swirl i:turns:INT l(iovec):at:ARRAY s(stat):when:STRUCT\n"
	"call 11 openat i:dirfd:DIRFD d:path:PATH u:flags:FLAGS u:mode:MODE\n"
	"call 17 close i:fd:FD s(swirl):why:STRUCT\n"
	"call 80 read i:fd:FD d:buf:BUF u:count:SIZE\n"
	"call 81 write i:fd:FD d:buf:BUF u:count:SIZE\n"
	"call 83 writev i:fd:FD l(iovec):iov:ARRAY u:iovcnt:ULONG\n"
	"call 132 fstat i:fd:FD s(stat):statbuf:STRUCT\n"
	"call 345 execve d:path:PATH l(d):argv:STRV l(d):envp:STRV\n"
	"call 4000 frobnicate i:fd:FD l(swirl):swirls:ARRAY l(i):numbers:VEC\n"
	"record 3000 meta d:key:STR d:value:STR\n"
	"record 3010 loss i:kind:ENUM i:pid:PID i:tid:PID u:count:ULONG u:bytes:ULONG\n";

static void put_block(struct forge *f, const uint8_t *p, const uint8_t *payload, size_t len)
{
	struct block_header h = { .type = p[0], .version = p[1] & 2 ? 2 : 1, .number = p[2] };
	struct block_entry e = { .type = p[0], .offset = f->file.len, .number = p[2] };
	struct events_prefix prefix;

	if (p[1] & 4)
		h.flags = 0x10;
	block_pack(f->packer, h, payload, len, p[1] & 1, &f->file);
	e.stored_bytes = (uint32_t)(f->file.len - e.offset - BLOCK_HEADER_BYTES);
	if (e.type == BLOCK_EVENTS && events_prefix_get(payload, len, &prefix)) {
		e.pid = prefix.pid;
		e.tid = prefix.tid;
		e.nr_events = prefix.nr_events;
		e.first_index = prefix.first_index;
		e.first_ns = prefix.first_ns;
		e.last_ns = prefix.last_ns;
	}
	if (e.type == BLOCK_INDEX)
		f->last_index_offset = e.offset;
	if (e.type == BLOCK_INDEX && len >= INDEX_PREFIX_BYTES)
		f->counts.nr_blocks = get_le64(payload + 8);
	if (e.type != BLOCK_INDEX && e.type != BLOCK_FOOTER)
		VEC_PUSH(&f->entries, e);
}

static void put_footer(struct forge *f)
{
	struct footer footer = { .index_offset = f->last_index_offset,
				 .nr_blocks = f->counts.nr_blocks,
				 .own_offset = f->file.len };
	uint8_t payload[FOOTER_PAYLOAD_BYTES];

	footer_put(payload, &footer);
	forge_block(f, BLOCK_FOOTER, 0, payload, sizeof(payload), 0);
}

static void build(struct forge *f, uint8_t mode, const uint8_t *p, size_t size)
{
	forge_init(f);
	if (mode & MODE_OWN_SCHEMA)
		forge_block(f, BLOCK_SCHEMA, 0, small_schema, sizeof(small_schema) - 1, 0);
	while (size >= BLOCK_PREFIX) {
		size_t len = get_le16(p + 3);

		if (len > size - BLOCK_PREFIX)
			len = size - BLOCK_PREFIX;
		put_block(f, p, p + BLOCK_PREFIX, len);
		p += BLOCK_PREFIX + len;
		size -= BLOCK_PREFIX + len;
	}
	if (mode & MODE_OWN_INDEX)
		put_footer(f);
	else if (mode & MODE_CLOSED)
		forge_close(f);
}

static void read_events(struct trace *t, enum trace_order order)
{
	const struct trace_query q = { .order = order };
	struct trace_iter *it;
	struct hash128 hash;
	struct event *ev;
	struct err err;

	if (trace_iter_open(t, &q, &it, &err) < 0)
		return;
	while (trace_iter_next(it, &ev, &err) == 1)
		(void)!sample_digest_event(t, ev, &hash, &err); /* data may well be missing */
	trace_iter_close(it);
}

static void read_items(struct trace *t, enum block_type section)
{
	struct trace_items *it;
	struct hash128 hash;
	struct item *item;
	struct err err;

	if (trace_items_open(t, section, &it, &err) < 0)
		return;
	while (trace_items_next(it, &item, &err) == 1)
		(void)!sample_digest_item(t, item, &hash, &err); /* data may well be missing */
	trace_items_close(it);
}

static void read_all(const char *path, int flags, enum trace_order order)
{
	struct buf text = { 0 };
	struct trace *t;
	struct err err;

	if (trace_open(path, flags, &t, &err) < 0)
		return;
	read_events(t, order);
	read_items(t, BLOCK_META);
	read_items(t, BLOCK_TREE);
	read_items(t, BLOCK_LEDGER);
	(void)trace_meta(t, "cwd", &text);
	(void)!trace_tail(t, &err); /* either is fine */
	trace_close(t);
	buf_release(&text);
}

static void salvage(const char *path)
{
	char output[64];
	struct salvage_result saved;
	struct check_result c;
	struct err err;

	(void)snprintf(output, sizeof(output), "/dev/shm/fuzz_trace.%d", getpid());
	if (trace_salvage(path, output, &(struct trace_writer_options){ .replace = true }, NULL,
			  &saved, &err) == 0) {
		/* What comes of it is whole, whatever it was made of. */
		if (trace_check(output, NULL, &c, &err) < 0 || c.first_fault.text[0]) {
			fprintf(stderr, "salvaged: %s\n", c.first_fault.text);
			abort();
		}
	}
	(void)unlink(output); /* there is none when it failed */
}

static void put_file(int fd, const void *p, size_t len)
{
	if (ftruncate(fd, 0) < 0 || pwrite_full(fd, p, len, 0) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	enum trace_order order;
	struct forge f = { 0 };
	struct check_result c;
	char path[32];
	struct err err;

	if (!size)
		return 0;
	order = (enum trace_order)((data[0] >> MODE_ORDER_SHIFT) % 3);
	if (fd < 0)
		fd = memfd_create("trace", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (data[0] & MODE_BLOCKS) {
		build(&f, data[0], data + 1, size - 1);
		put_file(fd, f.file.data, f.file.len);
		forge_release(&f);
	} else {
		put_file(fd, data + 1, size - 1);
	}
	read_all(path, 0, order);
	read_all(path, TRACE_SALVAGE, order);
	(void)!trace_check(path, NULL, &c, &err); /* either is fine */
	if ((data[0] & MODE_SALVAGE) == MODE_SALVAGE)
		salvage(path);
	return 0;
}
