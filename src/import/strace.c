/* SPDX-License-Identifier: MIT */
/*
 * The text that strace prints, of versions 4 to 7 and with any of its options
 * (doc/import-strace.md).
 *
 *   inputs: lines in the order of time  -->  strace_split_line: who, when, what
 *     -->  threads: unfinished calls, broken calls  -->  strace_call_read  -->  sink
 *
 * An event is made when its call ends, as a recorder does, so that their numbers
 * keep the order of the ends. Memory is bounded by what is unfinished.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "import/listing.h"
#include "import/strace_inside.h"

static int put_meta(struct strace *s, struct err *err)
{
	static const char *const clocks[] = { "none", "realtime", "time of day", "relative" };
	struct import_sink *sink = &s->threads.sink;
	struct loss loss = { .kind = LOSS_DATA_TRUNCATED,
			     .count = s->nr_cut,
			     .bytes = s->cut_bytes,
			     .note = "strace printed only the beginning (-s)" };
	char text[32];
	int r = import_sink_meta(sink, "clock", clocks[s->clock], err);

	if (!r && s->clock == STRACE_UNIX_TIME) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)s->first_ns);
		r = import_sink_meta(sink, "start_realtime_ns", text, err);
	}
	if (!r && s->cwd.len)
		r = import_sink_meta(sink, "cwd", buf_str(&s->cwd), err);
	if (!r && s->has_coarse_times)
		r = import_sink_meta(sink, "import.time_precision_ns", "1000000000", err);
	if (!r && s->nr_cut)
		r = import_sink_loss(sink, &loss, err);
	return r;
}

static int read_all(struct strace *s, struct err *err)
{
	struct strace_next next;
	int r;

	while ((r = strace_order_next(&s->order, &next, err)) > 0) {
		s->im->counts.nr_lines += 1 + next.nr_below;
		r = strace_put_line(s, &next, err);
		if (r < 0)
			break;
	}
	return r;
}

/*
 * -y says the current directory wherever AT_FDCWD stands: the first such place,
 * unless the directory was changed before it.
 */
static int find_cwd(struct strace *s, struct err *err)
{
	const char *text, *mark, *stop;
	const uint8_t *first;
	struct strace_text t = { 0 };
	size_t len;
	int r = import_input_open(&s->im->inputs[0], err);

	if (!r)
		r = import_input_peek(&s->im->inputs[0], IMPORT_PROBE_BYTES, &first, &len, err);
	if (r < 0)
		return r;
	text = (const char *)first;
	mark = memmem(text, len, "AT_FDCWD<", 9);
	if (!mark || memmem(text, (size_t)(mark - text), "chdir(", 6))
		return 0;
	stop = memchr(mark, '\n', len - (size_t)(mark - text));
	t.pos = mark + 8;
	t.end = stop ? stop : text + len;
	strace_skip_decoration(&t);
	if (t.path) {
		size_t path_len;
		const uint8_t *path =
			strace_unescape(&s->arena, t.path, t.path + t.path_len, &path_len);

		if (path_len && *path == '/')
			buf_put(&s->cwd, path, path_len);
	}
	return 0;
}

static int read_init(struct import *im, struct err *err)
{
	struct listing listing;
	int r;

	if (!im->init)
		return 0;
	listing_init(&listing);
	r = listing_read(&listing, im, im->init, err);
	listing_release(&listing);
	return r;
}

static int strace_run(struct import *im, struct err *err)
{
	struct strace s = { .im = im };
	struct strace_names *names = strace_names_new();
	struct err unheard;
	int r, closed;

	s.text.names = names;
	arena_init(&s.arena);
	strace_threads_init(&s.threads, im);
	prologue_init(&s.prologue);
	r = import_sink_describe(&s.threads.sink, "strace", err);
	if (!r)
		r = read_init(im, err);
	if (!r)
		r = find_cwd(&s, err);
	if (!r)
		r = strace_order_open(&s.order, im, err);
	if (!r) {
		s.in = &im->inputs[0];
		r = read_all(&s, err);
		if (!r)
			r = strace_put_end(&s, err);
		strace_order_close(&s.order);
	}
	if (!r)
		r = put_meta(&s, err);
	closed = import_sink_close(&s.threads.sink, r ? &unheard : err);
	strace_threads_release(&s.threads);
	prologue_release(&s.prologue);
	arena_release(&s.arena);
	buf_release(&s.joined);
	buf_release(&s.plain);
	buf_release(&s.cwd);
	strace_names_free(names);
	return r ? r : closed;
}

/* Probing: the share of lines, of those that can be seen whole, that look like strace's. */
static int strace_probe(const uint8_t *first, size_t len)
{
	const char *text = (const char *)first, *end = text + len;
	unsigned int nr = 0, nr_good = 0;

	while (text < end && nr < 50) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		const char *stop = eol ? eol : end;
		struct strace_line l;

		strace_split_line(text, (size_t)(stop - text), &l);
		/* The exact form has names for its arguments; a call of strace has a result. */
		if (l.sort != STRACE_EMPTY && l.sort != STRACE_REMARK && l.sort != STRACE_DUMP) {
			nr++;
			nr_good += l.sort != STRACE_UNKNOWN &&
				   (l.sort != STRACE_CALL || l.unfinished || !eol ||
				    memmem(l.body, (size_t)(l.end - l.body), ") ", 2));
		}
		text = eol ? eol + 1 : end;
	}
	return nr && nr_good * 2 > nr ? 50 : 0;
}

const struct importer importer_strace = {
	.name = "strace",
	.summary = "the text that strace prints, with any of its options",
	.probe = strace_probe,
	.reads_init = true,
	.run = strace_run,
};
