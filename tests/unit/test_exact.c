/* SPDX-License-Identifier: MIT */
/* A trace printed exactly and imported again is the same trace. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "import/import.h"
#include "model/print.h"
#include "random_event.h"
#include "report/exact.h"

#define TEXT_MAX ((size_t)256 << 20)

static char dir[64];
static struct err err;
static struct arena arena;

static int setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/reprise-exact-XXXXXX");
	arena_init(&arena);
	return mkdtemp(dir) ? 0 : -1;
}

static const char *path(const char *name)
{
	static char paths[4][128];
	static unsigned int next;
	char *p = paths[next++ % 4];

	(void)snprintf(p, sizeof(paths[0]), "%s/%s", dir, name);
	return p;
}

static int teardown(void **state)
{
	static const char *const names[] = { "a.trace", "b.trace", "a.txt", "b.txt" };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(names); i++)
		(void)unlink(path(names[i]));
	(void)rmdir(dir);
	arena_release(&arena);
	return 0;
}

static void check(int r)
{
	if (r < 0)
		fail_msg("%s", err.text);
}

static void print_trace(const char *trace, const struct exact_filter *filter, const char *to)
{
	FILE *out = fopen(path(to), "w");
	struct trace *t;

	assert_non_null(out);
	check(trace_open(path(trace), 0, &t, &err));
	check(exact_print_trace(t, NULL, filter, out, &err));
	trace_close(t);
	assert_int_equal(fclose(out), 0);
}

static int import_text(const char *from, const char *to, bool strict, struct import_counts *counts)
{
	const char *input = path(from);
	struct import_request rq = { .paths = &input,
				     .nr_paths = 1,
				     .output = path(to),
				     .replace = true,
				     .strict = strict };

	return import_files(&rq, counts, &err);
}

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(path(name), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void read_text(const char *name, struct buf *ret)
{
	buf_clear(ret);
	check(io_read_file(path(name), TEXT_MAX, ret, &err));
}

static void assert_same_files(const char *a, const char *b)
{
	struct buf x = { 0 }, y = { 0 };

	read_text(a, &x);
	read_text(b, &y);
	assert_int_equal(x.len, y.len);
	assert_memory_equal(x.data, y.data, x.len);
	buf_release(&x);
	buf_release(&y);
}

static void expect_text(const char *name, const char *wanted)
{
	struct buf text = { 0 };

	read_text(name, &text);
	assert_string_equal(buf_str(&text), wanted);
	buf_release(&text);
}

/* Makes a trace. */

struct maker {
	struct trace_writer *writer;
	struct trace_feed *feed;
	struct random random;
	uint64_t now_ns;
};

static void begin(struct maker *m)
{
	*m = (struct maker){
		.random = { .state = 4101842887655102017u, .arena = &arena, .no_stored_refs = true }
	};
	check(trace_writer_open(path("a.trace"), NULL, &m->writer, &err));
	m->feed = trace_writer_add_feed(m->writer);
}

static void end(struct maker *m)
{
	check(trace_writer_close(m->writer, &err));
}

static void add_random(struct maker *m, struct trace_stream *s, const struct row *row)
{
	struct event ev = { 0 };

	arena_reset(&arena);
	random_event(&m->random, row, &ev);
	m->now_ns += random_below(&m->random, 1000);
	ev.enter_ns = m->now_ns;
	ev.exit_ns = m->now_ns + random_below(&m->random, 5000);
	check(trace_feed_event(m->feed, s, &ev));
}

static void add_write(struct maker *m, struct trace_stream *s, size_t len, uint8_t fill)
{
	struct event ev = { .row = row_by_name("write"), .outcome = { (int64_t)len, 0 } };
	uint8_t *bytes;

	arena_reset(&arena);
	bytes = arena_alloc(&arena, len + 1);
	memset(bytes, fill, len);
	*args_find(ev.row, ev.args, "buf") = value_bytes(&arena, bytes, len);
	ev.enter_ns = ev.exit_ns = ++m->now_ns;
	check(trace_feed_event(m->feed, s, &ev));
}

static void add_item(struct maker *m, const struct row *row)
{
	struct item item = { .row = row };

	arena_reset(&arena);
	random_args(&m->random, row, item.args);
	check(trace_feed_item(m->feed, &item));
}

static void assert_round_trip(struct import_counts *counts)
{
	print_trace("a.trace", NULL, "a.txt");
	check(import_text("a.txt", "b.trace", true, counts));
	print_trace("b.trace", NULL, "b.txt");
	assert_same_files("a.txt", "b.txt");
}

static bool is_named_once(const struct row *row)
{
	return row->sort == ROW_RECORD || row_by_name(row->name) == row;
}

static void test_all_rows(void **state)
{
	struct import_counts counts;
	struct trace_stream *streams[3];
	struct maker m;
	uint64_t nr_events = 0;
	unsigned int id, i;

	(void)state;
	begin(&m);
	for (i = 0; i < 3; i++)
		streams[i] = trace_feed_open_stream(m.feed, 100, 100 + i);
	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		if (!row || !is_named_once(row))
			continue;
		for (i = 0; i < 10; i++) {
			if (row->sort == ROW_RECORD)
				add_item(&m, row);
			else
				add_random(&m, streams[random_below(&m.random, 3)], row);
			nr_events += row->sort != ROW_RECORD;
		}
	}
	end(&m);
	assert_round_trip(&counts);
	assert_true(counts.nr_events == nr_events);
	assert_true(counts.nr_not_understood == 0);
}

static void test_blobs(void **state)
{
	struct import_counts counts;
	struct trace_stream *s;
	struct buf text = { 0 };
	struct maker m;

	(void)state;
	begin(&m);
	s = trace_feed_open_stream(m.feed, 1, 1);
	add_write(&m, s, 0, 0);
	add_write(&m, s, DATA_INLINE_MAX, 'a');
	add_write(&m, s, DATA_INLINE_MAX + 1, 0);
	add_write(&m, s, DATA_INLINE_MAX + 1, 0);
	add_write(&m, s, BLOB_MAX_BYTES, 0xff);
	add_write(&m, s, 2 * BLOB_MAX_BYTES + 5, 0xff); /* two pieces that are the same */
	end(&m);
	assert_round_trip(&counts);
	assert_true(counts.nr_events == 6);

	/* Each distinct blob once: 65 zeroes, a whole piece, five bytes. */
	assert_true(counts.nr_lines == 1 + 1 + 6 + 3);
	read_text("a.txt", &text);
	assert_non_null(strstr(buf_str(&text), "\nblob "));
	buf_release(&text);
}

/* A tid that was used again, by one process after another and by two at a time. */
static void test_generations(void **state)
{
	struct import_counts counts;
	struct trace_stream *a, *b;
	struct maker m;
	unsigned int i;

	(void)state;
	begin(&m);
	for (i = 0; i < 3; i++) {
		a = trace_feed_open_stream(m.feed, 1, 7);
		add_random(&m, a, row_by_id(EV_marker));
		check(trace_feed_close_stream(m.feed, a));
	}
	a = trace_feed_open_stream(m.feed, 1, 8);
	b = trace_feed_open_stream(m.feed, 1, 8);
	add_random(&m, b, row_by_id(EV_marker));
	add_random(&m, a, row_by_id(EV_marker));
	check(trace_feed_close_stream(m.feed, a));
	check(trace_feed_close_stream(m.feed, b));
	end(&m);
	assert_round_trip(&counts);
}

static bool is_even(void *ctx, struct event *ev)
{
	unsigned int *nr = ctx;

	(void)ev;
	return (*nr)++ % 2 == 0;
}

static void test_filter(void **state)
{
	unsigned int nr = 0;
	struct exact_filter filter = { .keep = is_even, .ctx = &nr, .nr_events_max = 2 };
	struct import_counts counts;

	(void)state;
	write_text("a.txt", "1 5+0 marker(text=\"a\")\n1 6+0 marker(text=\"b\")\n"
			    "1 7+0 marker(text=\"c\")\n1 8+0 marker(text=\"d\")\n"
			    "1 9+0 marker(text=\"e\")\n");
	check(import_text("a.txt", "a.trace", true, &counts));
	print_trace("a.trace", &filter, "b.txt");
	expect_text("b.txt", "# reprise exact 1\nstream 1/1 5\n1/1 #1 5+0 marker(text=\"a\")\n"
			     "1/1 #3 7+0 marker(text=\"c\")\n");
}

static void test_written_by_hand(void **state)
{
	struct import_counts counts;

	(void)state;
	write_text("a.txt", "\n# by hand\n"
			    "meta(key=\"k\", value=\"v\")\n"
			    "marker(text=\"first\")\n"
			    "5/6 marker(text=\"second\")\n"
			    "marker(text=\"third\")\n"
			    "5/6 #20 9000+5 marker(text=\"fourth\")\n"
			    "marker(text=\"last\")");
	check(import_text("a.txt", "a.trace", true, &counts));
	assert_true(counts.nr_lines == 8 && counts.nr_events == 5);
	print_trace("a.trace", NULL, "b.txt");
	expect_text("b.txt", "# reprise exact 1\n"
			     "meta(key=\"k\", value=\"v\")\n"
			     "stream 1/1 1\n"
			     "stream 5/6 4\n"
			     "1/1 #1 1000+0 marker(text=\"first\") {flags=NO_TIME}\n"
			     "5/6 #2 2000+0 marker(text=\"second\") {flags=NO_TIME}\n"
			     "5/6 #3 3000+0 marker(text=\"third\") {flags=NO_TIME}\n"
			     "5/6 #20 9000+5 marker(text=\"fourth\")\n"
			     "5/6 #21 10000+0 marker(text=\"last\") {flags=NO_TIME}\n");
}

static void note_complaint(void *ctx, const struct import_complaint *c)
{
	struct buf *b = ctx;

	buf_printf(b, "%llu: %s\n", (unsigned long long)c->line_no, c->why);
}

static void test_bad_lines(void **state)
{
	const char *input = path("a.txt");
	struct buf said = { 0 };
	struct import_request rq = { .paths = &input,
				     .nr_paths = 1,
				     .format = "exact",
				     .output = path("a.trace"),
				     .complain = note_complaint,
				     .complain_ctx = &said };
	struct import_counts counts = { 0 };

	(void)state;
	write_text("a.txt", "marker(text=\"good\")\n"
			    "nothing like it\n"
			    "marker(text=@00000000000000010000000000000002/5)\n"
			    "marker(text=%00000000000000010000000000000002/5)\n"
			    "blob 00000000000000010000000000000002 \"abc\"\n");
	check(import_files(&rq, &counts, &err));
	assert_true(counts.nr_lines == 5 && counts.nr_events == 2 && counts.nr_not_understood == 3);
	assert_string_equal(buf_str(&said),
			    "2: column 1: unknown call 'nothing'\n"
			    "3: no blob 00000000000000010000000000000002 came before this line\n"
			    "5: the bytes of this blob have another hash\n");
	buf_release(&said);

	/* It is there now, and a strict import leaves nothing behind. */
	assert_int_equal(import_files(&rq, &counts, &err), -EEXIST);
	assert_int_equal(import_text("a.txt", "b.trace", true, &counts), -EBADMSG);
	assert_non_null(strstr(err.text, "a.txt:2: column 1: unknown call 'nothing'"));
	assert_int_not_equal(access(path("b.trace"), F_OK), 0);

	/* Nor does one that shall replace take away what it cannot give back. */
	assert_int_equal(import_text("a.txt", "a.trace", true, &counts), -EBADMSG);
	print_trace("a.trace", NULL, "b.txt");
	write_text("a.txt", "marker(text=\"new\")\n");
	check(import_text("a.txt", "a.trace", true, &counts));
	print_trace("a.trace", NULL, "a.txt");
	expect_text("a.txt", "# reprise exact 1\nstream 1/1 1\n"
			     "1/1 #1 1000+0 marker(text=\"new\") {flags=NO_TIME}\n");
	assert_int_not_equal(access(path("a.trace.part"), F_OK), 0);
}

static void test_probe(void **state)
{
	struct import_counts counts;

	(void)state;
	write_text("a.txt", "hello world\n");
	assert_int_equal(import_text("a.txt", "a.trace", false, &counts), -EOPNOTSUPP);
	write_text("a.txt", "");
	assert_int_equal(import_text("a.txt", "a.trace", false, &counts), -EOPNOTSUPP);
	write_text("a.txt", "# reprise exact 1\n");
	check(import_text("a.txt", "a.trace", false, &counts));
	print_trace("a.trace", NULL, "b.txt");
	expect_text("b.txt", "# reprise exact 1\n");
	assert_null(importer_find("nothing"));
	assert_non_null(importer_find("exact"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_blobs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_generations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written_by_hand, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_probe, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
