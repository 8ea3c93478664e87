/* SPDX-License-Identifier: MIT */
/* Files that another version wrote: what we do not know must not be in the way. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/varint.h"
#include "forge.h"
#include "sample.h"
#include "scratch.h"
#include "trace/check.h"
#include "trace/reader.h"

static struct err err;
static struct forge forge;
static struct trace *trace;
static struct buf body, events;

static int setup(void **state)
{
	(void)state;
	err.text[0] = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	trace_close(trace);
	trace = NULL;
	forge_release(&forge);
	forge = (struct forge){ 0 };
	buf_release(&body);
	buf_release(&events);
	return 0;
}

#define OK(call)                                                                                   \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, err.text);                                       \
	} while (0)

static const char *path(void)
{
	return scratch_path("f.trace");
}

static void put_schema(const char *text)
{
	forge_block(&forge, BLOCK_SCHEMA, 0, text, strlen(text), 0);
}

/* The body so far becomes the next event. */
static void put_event(void)
{
	forge_put_body(&events, &body);
	buf_clear(&body);
}

static void put_close(int64_t fd)
{
	forge_put_head(&body, SC_close, 0);
	forge_put_i(&body, fd);
	put_event();
}

/* The events so far become a block of stream 0. */
static void put_events(uint32_t nr)
{
	const struct events_prefix prefix = {
		.pid = 1, .tid = 1, .nr_events = nr, .last_ns = 1000
	};

	forge_events(&forge, 0, &prefix, &events);
	buf_clear(&events);
}

static void load(void)
{
	forge_save(&forge, path());
	trace_close(trace);
	trace = NULL;
	OK(trace_open(path(), 0, &trace, &err));
}

static struct trace_iter *iterate(void)
{
	const struct trace_query all = { 0 };
	struct trace_iter *it;

	OK(trace_iter_open(trace, &all, &it, &err));
	return it;
}

static struct event *next(struct trace_iter *it)
{
	struct event *ev = NULL;

	OK(trace_iter_next(it, &ev, &err));
	return ev;
}

static void assert_whole(void)
{
	struct check_result c;

	OK(trace_check(path(), NULL, &c, &err));
	if (!check_ok(&c))
		fail_msg("%s", c.first_fault.text);
}

/* Both by the index and by a scan the file has one event, close(5). */
static void assert_reads(void)
{
	struct trace_iter *it;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		load();
		it = iterate();
		assert_int_equal(next(it)->args[0].i, 5);
		assert_null(next(it));
		trace_iter_close(it);
		forge_close(&forge);
	}
}

static void test_unknown_block_types(void **state)
{
	struct check_result c;

	(void)state;
	forge_init_with_schema(&forge);
	forge_block(&forge, BLOCK_TYPE_MAX, 0, "a", 1, 0);
	forge_block(&forge, 200, 77, "not ours", 8, 0);
	forge_block(&forge, 0, 0, NULL, 0, 0);
	put_close(5);
	put_events(1);
	forge_block(&forge, 255, UINT64_MAX, "last", 4, 0);
	assert_reads();
	OK(trace_check(path(), NULL, &c, &err));
	assert_true(c.nr_unknown_blocks >= 3);
}

/* A block that says by its flags or version that we cannot read it, and that we need not read. */
static void put_odd_block(uint8_t type, uint8_t version, uint16_t flags)
{
	struct block_header h = { .type = type, .version = version, .flags = flags };
	struct block_entry e = { .type = type, .offset = forge.file.len, .stored_bytes = 50 };
	static const uint8_t payload[50] = "RPRB inside a payload is no block";

	block_pack(forge.packer, h, payload, sizeof(payload), 0, &forge.file);
	VEC_PUSH(&forge.entries, e);
}

static void test_unreadable_block_of_unknown_type(void **state)
{
	(void)state;
	forge_init_with_schema(&forge);
	put_odd_block(100, 1, 0x80);
	put_close(5);
	put_events(1);
	assert_reads();
}

static void assert_events_refused(const char *words)
{
	struct trace_iter *it;
	struct event *ev;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		load();
		it = iterate();
		assert_int_equal(trace_iter_next(it, &ev, &err), -EOPNOTSUPP);
		assert_non_null(strstr(err.text, words));
		assert_non_null(strstr(err.text, path()));
		assert_non_null(strstr(err.text, "offset"));
		trace_iter_close(it);
		forge_close(&forge);
	}
}

/* Events that we would need but cannot read are an error that says why. */
static void test_events_of_a_later_version(void **state)
{
	(void)state;
	forge_init_with_schema(&forge);
	put_odd_block(BLOCK_EVENTS, 1, 2);
	assert_events_refused("later version");
	forge_release(&forge);
	forge_init_with_schema(&forge);
	put_odd_block(BLOCK_EVENTS, 2, 0);
	assert_events_refused("later version");
}

static void test_flags_that_may_be_ignored(void **state)
{
	struct block_header h = { .type = BLOCK_META, .version = 1, .flags = 0xff00 };
	struct block_entry e = { .type = BLOCK_META };
	struct trace_items *it;
	struct item *item;

	(void)state;
	forge_init_with_schema(&forge);
	forge_put_u(&body, REC_meta);
	forge_put_u(&body, 0);
	forge_put_inline(&body, "key");
	forge_put_inline(&body, "value");
	put_event();
	e.offset = forge.file.len;
	e.stored_bytes = (uint32_t)events.len;
	block_pack(forge.packer, h, events.data, events.len, 0, &forge.file);
	VEC_PUSH(&forge.entries, e);
	forge_close(&forge);
	load();
	OK(trace_items_open(trace, BLOCK_META, &it, &err));
	assert_int_equal(trace_items_next(it, &item, &err), 1);
	trace_items_close(it);
}

static const char later_schema[] =
	"dialect 3\n"
	"struct iovec d:iov_base:BUF u:iov_len:SIZE l(u):iov_colours:VEC d:iov_name:STR\n"
	"struct swirl i:turns:INT s(iovec):at:STRUCT\n"
	"call 17 close i:fd:FD s(swirl):why:STRUCT d:note:STR l(swirl):more:ARRAY\n"
	"call 83 writev i:fd:FD l(iovec):iov:ARRAY u:iovcnt:ULONG\n"
	"call 4000 frobnicate i:fd:FD l(swirl):swirls:ARRAY d:path:PATH l(i):numbers:VEC\n"
	"event 2080 marker d:text:STR\n"
	"record 3000 meta d:key:STR d:value:STR u:weight:ULONG\n"
	"record 4090 novelty u:x:ULONG\n";

static void put_later_iovec(const char *s)
{
	forge_put_u(&body, 3);
	forge_put_u(&body, 0xf);
	forge_put_inline(&body, s);
	forge_put_u(&body, strlen(s));
	forge_put_u(&body, 3 + 2); /* colours */
	forge_put_u(&body, 1);
	forge_put_u(&body, 1000000);
	forge_put_inline(&body, "name");
}

static void put_swirl(int64_t turns)
{
	forge_put_u(&body, 3);
	forge_put_u(&body, 3);
	forge_put_i(&body, turns);
	put_later_iovec("in a swirl");
}

static void test_more_arguments(void **state)
{
	struct trace_iter *it;
	struct event *ev;

	(void)state;
	forge_init(&forge);
	put_schema(later_schema);
	forge_put_head(&body, SC_close, -7);
	forge_put_i(&body, 12);
	put_swirl(-1);
	forge_put_inline(&body, "bored");
	forge_put_u(&body, 3 + 2);
	put_swirl(1);
	put_swirl(2);
	put_event();
	put_events(1);
	forge_close(&forge);
	load();
	it = iterate();
	ev = next(it);
	assert_ptr_equal(ev->row, row_by_id(SC_close));
	assert_int_equal(ev->args[0].i, 12);
	assert_int_equal(ev->outcome.ret, -7);
	assert_null(next(it));
	trace_iter_close(it);
	assert_whole();
}

static void test_more_fields(void **state)
{
	struct trace_iter *it;
	struct event *ev;
	struct value *iov;

	(void)state;
	forge_init(&forge);
	put_schema(later_schema);
	forge_put_head(&body, SC_writev, 3);
	forge_put_i(&body, 1);
	forge_put_u(&body, 3 + 2);
	put_later_iovec("ab");
	put_later_iovec("c");
	forge_put_u(&body, 2);
	put_event();
	put_events(1);
	forge_close(&forge);
	load();
	it = iterate();
	ev = next(it);
	iov = ev->args[1].items;
	assert_int_equal(ev->args[1].count, 2);
	assert_int_equal(iov[0].fields->present, 3);
	assert_int_equal(iov[0].count, 2);
	assert_memory_equal(iov[0].fields->items[0].data->bytes, "ab", 2);
	assert_memory_equal(iov[1].fields->items[0].data->bytes, "c", 1);
	assert_int_equal(iov[1].fields->items[1].u, 1);
	assert_int_equal(ev->args[2].u, 2);
	trace_iter_close(it);
	assert_whole();
}

static void test_unknown_row(void **state)
{
	struct hash128 hash;
	struct trace_iter *it;
	struct event *ev;

	(void)state;
	forge_init(&forge);
	put_schema(later_schema);
	forge_put_head(&body, 4000, 42);
	forge_put_i(&body, -100);
	forge_put_u(&body, 3 + 1);
	put_swirl(9);
	forge_put_inline(&body, "/a/path");
	forge_put_u(&body, 3 + 1);
	forge_put_i(&body, -5);
	put_event();
	put_events(1);
	forge_close(&forge);
	load();
	it = iterate();
	ev = next(it);
	assert_string_equal(ev->row->name, "frobnicate");
	assert_int_equal(ev->row->sort, ROW_CALL);
	assert_int_equal(ev->row->nr_args, 4);
	assert_int_equal(ev->outcome.ret, 42);
	assert_int_equal(ev->args[0].i, -100);
	assert_int_equal(ev->args[1].count, 1);
	assert_memory_equal(ev->args[2].data->bytes, "/a/path", 7);
	assert_int_equal(ev->args[3].items[0].i, -5);
	OK(sample_digest_event(trace, ev, &hash, &err));
	trace_iter_close(it);
	assert_whole();
}

static void test_unknown_record(void **state)
{
	struct trace_items *it;
	struct item *item;
	struct buf b = { 0 };

	(void)state;
	forge_init(&forge);
	put_schema(later_schema);
	forge_put_u(&body, 4090);
	forge_put_u(&body, 0);
	forge_put_u(&body, 123);
	put_event();
	forge_put_u(&body, REC_meta);
	forge_put_u(&body, 0);
	forge_put_inline(&body, "key");
	forge_put_inline(&body, "value");
	forge_put_u(&body, 5);
	put_event();
	forge_block(&forge, BLOCK_META, 0, events.data, events.len, 0);
	forge_close(&forge);
	load();
	OK(trace_items_open(trace, BLOCK_META, &it, &err));
	assert_int_equal(trace_items_next(it, &item, &err), 1);
	assert_string_equal(item->row->name, "novelty");
	assert_int_equal(item->args[0].u, 123);
	assert_int_equal(trace_items_next(it, &item, &err), 1);
	assert_int_equal(trace_items_next(it, &item, &err), 0);
	trace_items_close(it);
	assert_string_equal(trace_meta(trace, "key", &b), "value");
	buf_release(&b);
	assert_whole();
}

/* Parts of events that we do not know are one number each. */
static void test_unknown_parts(void **state)
{
	struct trace_iter *it;
	struct event *ev;

	(void)state;
	forge_init_with_schema(&forge);
	forge_put_u(&body, 1ull << 0 | 1ull << 7 | 1ull << 9 | 1ull << 63);
	forge_put_u(&body, SC_close);
	forge_put_i(&body, 5);
	forge_put_i(&body, 6);
	forge_put_i(&body, -1);
	forge_put_u(&body, EVENT_COMPAT);
	forge_put_u(&body, 99); /* origin */
	forge_put_u(&body, UINT64_MAX);
	forge_put_u(&body, 1);
	forge_put_u(&body, 0); /* missing */
	forge_put_i(&body, 5);
	put_event();
	put_close(6);
	put_events(2);
	forge_close(&forge);
	load();
	it = iterate();
	ev = next(it);
	assert_int_equal(ev->flags, EVENT_COMPAT);
	assert_int_equal(ev->origin, 99);
	assert_int_equal(ev->enter_ns, 5);
	assert_int_equal(ev->exit_ns, 11);
	assert_int_equal(ev->args[0].i, 5);
	ev = next(it);
	assert_int_equal(ev->flags, 0);
	assert_int_equal(ev->args[0].i, 6);
	trace_iter_close(it);
}

/* Files without a schema are read by ours. */
static void test_no_schema(void **state)
{
	(void)state;
	forge_init(&forge);
	put_close(5);
	put_events(1);
	assert_reads();
}

static void test_contradicting_schema(void **state)
{
	(void)state;
	forge_init(&forge);
	put_schema("call 17 close d:fd:PATH");
	forge_close(&forge);
	forge_save(&forge, path());
	assert_int_equal(trace_open(path(), 0, &trace, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, path()));
	assert_non_null(strstr(err.text, "offset 60"));
	assert_non_null(strstr(err.text, "schema line 1"));
}

static void test_later_format(void **state)
{
	uint8_t payload[FILE_PAYLOAD_BYTES + 4] = "reprise trace\n";
	struct check_result c;

	(void)state;
	put_le32(payload + 16, TRACE_FORMAT_VERSION + 1);
	forge.packer = block_packer_new();
	forge_block(&forge, BLOCK_FILE, 0, payload, sizeof(payload), 0);
	forge_close(&forge);
	forge_save(&forge, path());
	assert_int_equal(trace_open(path(), 0, &trace, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "format version 2"));
	/* A check must not call it damaged. */
	assert_int_equal(trace_check(path(), NULL, &c, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "format version 2"));
}

static void put_write(uint64_t len, struct hash128 hash, uint64_t blob)
{
	uint8_t raw[16];

	put_le64(raw, hash.low);
	put_le64(raw + 8, hash.high);
	forge_put_head(&body, SC_write, 0);
	forge_put_i(&body, 1);
	forge_put_u(&body, 4);
	forge_put_u(&body, len);
	buf_put(&body, raw, sizeof(raw));
	forge_put_u(&body, blob);
	forge_put_u(&body, len);
	put_event();
}

static void put_blob(struct buf *b, const char *s)
{
	struct hash128 hash = hash_bytes(s, strlen(s));
	uint8_t raw[BLOB_PREFIX_BYTES];

	put_le64(raw, hash.low);
	put_le64(raw + 8, hash.high);
	put_le32(raw + 16, (uint32_t)strlen(s));
	buf_put(b, raw, sizeof(raw));
	buf_puts(b, s);
}

static void assert_loads(struct trace_iter *it, int wanted)
{
	struct event *ev = next(it);
	const uint8_t *bytes;
	size_t len;

	err.text[0] = 0;
	assert_int_equal(trace_load_piece(trace, ev->args[1].data, 0, &bytes, &len, &err), wanted);
	if (wanted < 0)
		assert_non_null(strstr(err.text, path()));
}

/* References to what is not there, or is something else. */
static void test_dangling_references(void **state)
{
	struct hash128 first = hash_bytes("first", 5), second = hash_bytes("second", 6);
	const uint64_t place = 1 << BLOB_OFFSET_BITS, far = 9 << BLOB_OFFSET_BITS;
	struct buf blobs = { 0 };
	struct check_result c;
	struct trace_iter *it;

	(void)state;
	forge_init_with_schema(&forge);
	put_blob(&blobs, "first");
	put_blob(&blobs, "second");
	forge_block(&forge, BLOCK_BLOBS, 1, blobs.data, blobs.len, 0);
	forge_block(&forge, BLOCK_BLOBS, 3, "short", 5, 0);
	put_write(5, first, place);
	put_write(6, second, place + BLOB_PREFIX_BYTES + 5);
	put_write(6, second, place); /* another blob */
	put_write(5, second, place + BLOB_PREFIX_BYTES + 5); /* another length */
	put_write(6, second, place + 1); /* between blobs */
	put_write(6, second, place + blobs.len); /* behind the last */
	put_write(6, second, place + blobs.len - 1);
	put_write(6, second, 3 << BLOB_OFFSET_BITS); /* in a block that is too short */
	put_write(6, second, far); /* in no block */
	put_write(6, second, 5); /* in block 0, which there never is */
	put_events(10);
	forge_close(&forge);
	load();
	it = iterate();
	assert_loads(it, 1);
	assert_loads(it, 1);
	assert_loads(it, -EBADMSG);
	assert_loads(it, -EBADMSG);
	assert_loads(it, -EBADMSG);
	assert_loads(it, -EBADMSG);
	assert_loads(it, -EBADMSG);
	assert_loads(it, -EBADMSG);
	assert_loads(it, -ENODATA);
	assert_loads(it, -ENODATA);
	trace_iter_close(it);
	OK(trace_check(path(), NULL, &c, &err));
	assert_false(check_ok(&c));
	assert_int_equal(c.nr_dangling, 8);
	buf_release(&blobs);
}

/* A blob block that cannot be read must not leave its traces in the cache. */
static void test_damaged_blob_block(void **state)
{
	struct hash128 hash = hash_bytes("a blob of some length", 21);
	static const uint8_t large[100000];
	struct buf blobs = { 0 };
	struct trace_iter *it;
	unsigned int i;

	(void)state;
	forge_init_with_schema(&forge);
	put_blob(&blobs, "a blob of some length");
	for (i = 1; i <= 8; i++)
		forge_block(&forge, BLOCK_BLOBS, i, blobs.data, blobs.len, 0);
	forge_block(&forge, BLOCK_BLOBS, 9, large, sizeof(large), 0);
	forge.file.data[forge.file.len - 1] ^= 1;
	for (i = 1; i <= 9; i++)
		put_write(21, hash, (uint64_t)i << BLOB_OFFSET_BITS);
	put_write(21, hash, 1);
	put_write(21, hash, 1 << BLOB_OFFSET_BITS);
	put_events(11);
	forge_close(&forge);
	load();
	it = iterate();
	for (i = 1; i <= 8; i++)
		assert_loads(it, 1);
	assert_loads(it, -EBADMSG); /* damaged */
	assert_loads(it, -ENODATA); /* block 0 */
	assert_loads(it, 1);
	trace_iter_close(it);
	buf_release(&blobs);
}

/* Metadata that cannot be read is not the same as none. */
static void test_damaged_metadata(void **state)
{
	struct buf b = { 0 };

	(void)state;
	forge_init_with_schema(&forge);
	forge_put_u(&body, REC_meta);
	forge_put_u(&body, 0);
	forge_put_inline(&body, "key");
	forge_put_inline(&body, "value");
	put_event();
	forge_block(&forge, BLOCK_META, 0, events.data, events.len, 0);
	forge_close(&forge);
	load();
	assert_null(trace_meta(trace, "other", &b));
	assert_int_equal(trace_tail(trace, &err), 0);
	forge.file.data[forge.entries.items[2].offset + BLOCK_HEADER_BYTES] ^= 1;
	load();
	assert_null(trace_meta(trace, "key", &b));
	assert_int_equal(trace_tail(trace, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "checksum"));
	buf_release(&b);
}

static void test_not_regular_files(void **state)
{
	const char *fifo = scratch_path("fifo");

	(void)state;
	assert_int_equal(trace_open("/", 0, &trace, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_int_equal(trace_open("/dev/null", 0, &trace, &err), -EINVAL);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(trace_open(fifo, 0, &trace, &err), -EINVAL); /* and does not wait */
	assert_int_equal(trace_open("/nonexistent/x", 0, &trace, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x"));
	trace_close(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_unknown_block_types),
		TEST(test_unreadable_block_of_unknown_type),
		TEST(test_events_of_a_later_version),
		TEST(test_flags_that_may_be_ignored),
		TEST(test_more_arguments),
		TEST(test_more_fields),
		TEST(test_unknown_row),
		TEST(test_unknown_record),
		TEST(test_unknown_parts),
		TEST(test_no_schema),
		TEST(test_contradicting_schema),
		TEST(test_later_format),
		TEST(test_dangling_references),
		TEST(test_damaged_blob_block),
		TEST(test_damaged_metadata),
		TEST(test_not_regular_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
