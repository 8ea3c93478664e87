/* SPDX-License-Identifier: MIT */
/*
 * Writes the trace that v1.trace is: every type of block, every part of an
 * event, every form of data, struct and list. It stays as it is for as long as
 * the format has version 1; v1.trace itself is made once, before a release.
 *
 * usage: make_v1 FILE
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/attrs.h"
#include "trace/writer.h"

static struct arena arena;
static struct trace_feed *feed;

static void check(int r)
{
	if (r < 0) {
		fprintf(stderr, "make_v1: %s\n", strerror(-r));
		exit(1);
	}
}

static struct value *arg(const struct row *row, struct value *args, const char *name)
{
	struct value *v = args_find(row, args, name);

	if (!v) {
		fprintf(stderr, "make_v1: %s has no %s\n", row->name, name);
		exit(1);
	}
	return v;
}

static struct value bytes_of(char c, size_t len)
{
	char *p = arena_alloc(&arena, len);

	memset(p, c, len);
	return value_bytes(&arena, p, len);
}

/* Bytes of which the first were kept, or none. */
static struct value cut(struct value v, uint64_t len)
{
	v.data->len_bytes = len;
	return v;
}

static struct value hashes(uint64_t len, uint64_t kept)
{
	struct data *d = arena_alloc(&arena, sizeof(*d));
	struct blob_ref *refs;
	uint64_t i;

	*d = (struct data){ .len_bytes = len, .kept_bytes = kept };
	refs = arena_alloc(&arena, data_nr_pieces(d) * sizeof(*refs));
	for (i = 0; i < data_nr_pieces(d); i++)
		refs[i] = (struct blob_ref){ .hash = { i + 1, 0x0123456789abcdef } };
	d->refs = refs;
	return (struct value){ .type = VALUE_DATA, .data = d };
}

/* Events: start_event() and whatever differs from its defaults, then append(). */

static struct event ev;
static uint64_t now_ns = 1000;

static void start_event(unsigned int row_id)
{
	ev = (struct event){ .row = row_by_id(row_id),
			     .enter_ns = now_ns,
			     .exit_ns = now_ns + 250 };
	now_ns += 1000;
}

static void set(const char *name, struct value v)
{
	*arg(ev.row, ev.args, name) = v;
}

static void append(struct trace_stream *s)
{
	check(trace_feed_event(feed, s, &ev));
}

/* A transfer for each form in which data is stored. */
static void append_data(struct trace_stream *s)
{
	const struct value forms[] = {
		{ .type = VALUE_NONE },
		value_addr(0),
		value_addr(0x7ffe1000),
		value_bytes(&arena, "", 0),
		value_bytes(&arena, "hello\n\t\0\377\"\\", 11),
		bytes_of('a', 64),
		bytes_of('b', 65),
		bytes_of('b', 65), /* stored once */
		cut(bytes_of('c', 10), 4096),
		cut(bytes_of('d', 1000), 4096),
		cut(bytes_of('e', 0), 4096),
		hashes(4096, 4096),
		hashes(3 << 20, (1 << 20) + 1),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(forms); i++) {
		start_event(SC_write);
		set("fd", value_int(3));
		set("buf", forms[i]);
		if (forms[i].type == VALUE_DATA) {
			set("count", value_uint(forms[i].data->len_bytes));
			ev.outcome.ret = (int64_t)forms[i].data->len_bytes;
		}
		append(s);
	}
}

static void append_structs(struct trace_stream *s)
{
	struct value msg, iov, words, st = value_struct(&arena, 1 << 1 | 1 << 7 | 1 << 8);
	unsigned int i;

	st.fields->items[0] = value_uint(12345678901234567890u);
	st.fields->items[1] = value_int(INT64_MAX);
	st.fields->items[2] = value_int(INT64_MIN);
	start_event(SC_fstat);
	set("fd", value_int(3));
	set("statbuf", st);
	append(s);
	start_event(SC_fstat);
	set("fd", value_int(-1));
	set("statbuf", value_addr(0x1000));
	ev.outcome = (struct outcome){ .ret = -1, .err = EBADF };
	append(s);

	iov = value_list(&arena, 3);
	for (i = 0; i < iov.count; i++) {
		iov.items[i] = value_struct(&arena, 3);
		iov.items[i].fields->items[0] = bytes_of((char)('x' + (char)i), 10 + 40 * i);
		iov.items[i].fields->items[1] = value_uint(10 + 40 * i);
	}
	msg = value_struct(&arena, 1 << 0 | 1 << 2 | 1 << 3);
	msg.fields->items[0] = value_addr(0);
	msg.fields->items[1] = iov;
	msg.fields->items[2] = value_uint(3);
	start_event(SC_sendmsg);
	set("sockfd", value_int(5));
	set("msg", msg);
	set("flags", value_uint(0));
	ev.outcome.ret = 150;
	append(s);

	words = value_list(&arena, 2);
	words.items[0] = value_str(&arena, "ls");
	words.items[1] = value_str(&arena, "-l");
	start_event(SC_execve);
	set("path", value_str(&arena, "/bin/ls"));
	set("argv", words);
	set("envp", value_list(&arena, 0));
	append(s);
}

/* Every part of an event that is not always there. */
static void append_parts(struct trace_stream *s)
{
	static const uint16_t flags[] = { EVENT_RESTARTED, EVENT_INTERRUPTED, EVENT_COMPAT,
					  EVENT_INJECTED,  EVENT_NO_TIME,     EVENT_NO_DURATION };
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(flags); i++) {
		start_event(SC_close);
		set("fd", value_int((int)i));
		ev.flags = flags[i];
		ev.outcome = (struct outcome){ .ret = -1, .err = i % 2 ? EINTR : 0 };
		ev.cpu_ns = 1000 * i;
		ev.held_ns = i * i;
		ev.ppid = 1 + i / 2;
		ev.pgid = 700;
		ev.origin = 1000000 * i;
		append(s);
	}
	start_event(SC_lseek);
	set("fd", value_int(3));
	set("offset", value_int(-5));
	set("whence", value_int(SEEK_END));
	ev.enter_ns = ev.exit_ns = 500; /* the clock went back */
	append(s);
	start_event(EV_marker);
	set("text", value_str(&arena, "half-way"));
	append(s);
	start_event(SC_exit_group);
	set("status", value_int(1));
	ev.flags = EVENT_UNFINISHED;
	ev.exit_ns = ev.enter_ns;
	append(s);
}

static void append_item(struct item *item)
{
	check(trace_feed_item(feed, item));
}

static void append_tree(int which, const char *path, struct value stat)
{
	struct item item = { .row = row_by_id(REC_tree_entry) };
	struct value xattrs = value_list(&arena, 1);

	xattrs.items[0] = value_struct(&arena, 3);
	xattrs.items[0].fields->items[0] = value_str(&arena, "user.colour");
	xattrs.items[0].fields->items[1] = value_str(&arena, "blue");
	*arg(item.row, item.args, "tree") = value_int(which);
	*arg(item.row, item.args, "path") = value_str(&arena, path);
	*arg(item.row, item.args, "stat") = stat;
	if (stat.type == VALUE_STRUCT) {
		*arg(item.row, item.args, "xattrs") = xattrs;
		*arg(item.row, item.args, "content") = bytes_of('f', 100);
		*arg(item.row, item.args, "hash") = bytes_of('h', 16);
	}
	append_item(&item);
}

static void append_records(void)
{
	const struct loss truncated = {
		.kind = LOSS_DATA_TRUNCATED, .pid = 700, .tid = 701, .bytes = 3096, .note = "limit"
	};
	const struct loss filtered = {
		.kind = LOSS_FILTERED, .count = 5, .from_ns = 1, .to_ns = 9
	};
	struct item mount = { .row = row_by_id(REC_tree_mount) };
	struct value stat = value_struct(&arena, 1 << 0 | 1 << 1 | 1 << 4);

	check(trace_feed_meta(feed, "command", "cp"));
	check(trace_feed_meta(feed, "cwd", "/home/u"));
	check(trace_feed_meta(feed, "start_realtime_ns", "1700000000000000000"));
	check(trace_feed_loss(feed, &truncated));
	check(trace_feed_loss(feed, &filtered));
	stat.fields->items[0] = value_int(1);
	stat.fields->items[1] = value_uint(0644);
	stat.fields->items[2] = value_uint(100);
	append_tree(0, "/home/u/a", stat);
	append_tree(0, "/home/u/gone", (struct value){ .type = VALUE_NONE });
	append_tree(1, "/home/u/a", stat);
	*arg(mount.row, mount.args, "path") = value_str(&arena, "/home");
	*arg(mount.row, mount.args, "type") = value_str(&arena, "ext4");
	append_item(&mount);
}

int main(int argc, char **argv)
{
	const struct trace_writer_options options = { .replace = true };
	struct trace_stream *s[3];
	struct trace_writer *w;
	struct err err;

	if (argc != 2) {
		fprintf(stderr, "usage: make_v1 FILE\n");
		return 2;
	}
	if (trace_writer_open(argv[1], &options, &w, &err) < 0) {
		fprintf(stderr, "make_v1: %s\n", err.text);
		return 1;
	}
	arena_init(&arena);
	feed = trace_writer_add_feed(w);
	append_records();
	s[0] = trace_feed_open_stream(feed, 700, 700);
	s[1] = trace_feed_open_stream(feed, 700, 701);
	append_data(s[0]);
	append_structs(s[1]);
	check(trace_feed_flush(feed)); /* so that threads have several blocks */
	append_data(s[1]);
	check(trace_feed_close_stream(feed, s[1]));
	s[2] = trace_feed_open_stream(feed, 700, 701); /* the tid once more */
	append_parts(s[2]);
	append_structs(s[0]);
	arena_release(&arena);
	if (trace_writer_close(w, &err) < 0) {
		fprintf(stderr, "make_v1: %s\n", err.text);
		return 1;
	}
	return 0;
}
