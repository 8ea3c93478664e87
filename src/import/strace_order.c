/* SPDX-License-Identifier: MIT */
#include "import/strace_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"

/* A clock that goes back by more than half a day has passed midnight. */
#define DAY_NS (24 * 3600 * NS_PER_S)

struct strace_source {
	struct import_input *in;
	uint32_t lone_tid;
	bool has_tids, has_times, has_deltas, has_clock; /* -r; any other */
	bool begun, ended;
	/* The line at hand: in the input, or in `kept` when lines were read below it. */
	const char *text;
	size_t len;
	uint64_t line_no, nr_below;
	struct buf kept;
	struct strace_dump dump;
	uint64_t key_ns; /* when: never goes back */
	uint64_t shift_ns;
};

/* What the beginning of an input tells. */

static bool is_number(const char *text, size_t len, uint32_t *ret)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < len && text[i] >= '0' && text[i] <= '9' && v <= UINT32_MAX; i++)
		v = v * 10 + (uint64_t)(text[i] - '0');
	*ret = (uint32_t)v;
	return len && i == len && v && v <= UINT32_MAX;
}

/* F.1234, F.1234.gz: what -ff names its files. */
static bool tid_of_name(const char *name, uint32_t *ret)
{
	const char *dot = strrchr(name, '.');
	size_t len = strlen(name);

	if (dot && is_number(dot + 1, strlen(dot + 1), ret))
		return true;
	if (!dot || dot == name)
		return false;
	len = (size_t)(dot - name);
	for (dot--; dot > name && *dot != '.'; dot--)
		;
	return *dot == '.' && is_number(dot + 1, len - (size_t)(dot + 1 - name), ret);
}

/* The result of a call that returns the caller's own number, or what strace says when it attaches. */
static bool tid_of_line(const struct strace_line *l, const char *text, size_t len, uint32_t *ret)
{
	static const char *const calls[] = { "set_tid_address(", "gettid(", "getpid(" };
	const char *p, *stop;
	size_t i;

	p = memmem(text, len, "Process ", 8);
	if (l->sort == STRACE_REMARK && p) {
		p += 8;
		for (stop = p; stop < text + len && *stop >= '0' && *stop <= '9'; stop++)
			;
		return is_number(p, (size_t)(stop - p), ret);
	}
	if (l->sort != STRACE_CALL || l->unfinished || l->tid)
		return false;
	for (i = 0; i < ARRAY_LEN(calls); i++) {
		size_t name = strlen(calls[i]);

		if ((size_t)(l->end - l->body) < name || memcmp(l->body, calls[i], name) != 0)
			continue;
		p = memmem(l->body, (size_t)(l->end - l->body), "= ", 2);
		if (!p)
			return false;
		for (stop = p += 2; stop < l->end && *stop >= '0' && *stop <= '9'; stop++)
			;
		return is_number(p, (size_t)(stop - p), ret);
	}
	return false;
}

static void look_at(struct strace_source *src, const char *text, size_t len, bool *told)
{
	const char *end = text + len;

	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		const char *stop = eol ? eol : end;
		struct strace_line l;

		strace_split_line(text, (size_t)(stop - text), &l);
		src->has_tids |= l.tid != 0;
		src->has_times |= l.clock != STRACE_NO_TIME && l.sort != STRACE_UNKNOWN;
		src->has_deltas |= l.clock == STRACE_DELTA && l.sort != STRACE_UNKNOWN;
		src->has_clock |= (l.clock == STRACE_UNIX_TIME || l.clock == STRACE_DAY_TIME) &&
				  l.sort != STRACE_UNKNOWN;
		if (!*told && !src->has_tids)
			*told = tid_of_line(&l, text, (size_t)(stop - text), &src->lone_tid);
		text = eol ? eol + 1 : end;
	}
}

static int open_source(struct strace_source *src, struct import_input *in, uint32_t number,
		       struct err *err)
{
	const uint8_t *first;
	bool told;
	size_t len;
	int r = import_input_open(in, err);

	src->in = in;
	if (!r)
		r = import_input_peek(in, IMPORT_PROBE_BYTES, &first, &len, err);
	if (r < 0)
		return r;
	src->lone_tid = number;
	told = tid_of_name(in->name, &src->lone_tid);
	look_at(src, (const char *)first, len, &told);
	return 0;
}

/* Lines of one input. */

static int take_below(struct strace_source *src, struct err *err)
{
	const char *next, *line;
	size_t next_len, len;
	int r;

	src->nr_below = 0;
	strace_dump_clear(&src->dump);
	for (;;) {
		r = import_input_ahead(src->in, 3, &src->text, &next, &next_len, err);
		if (r < 0 || !strace_dump_is_below(next, next_len))
			return r;
		if (!src->nr_below++) {
			buf_clear(&src->kept);
			buf_put(&src->kept, src->text, src->len);
		}
		r = import_input_line(src->in, &line, &len, err);
		if (r < 0)
			return r;
		strace_dump_add(&src->dump, line, len);
		src->text = line; /* for the look ahead; put right below */
	}
}

static void note_key(struct strace_source *src)
{
	struct strace_line l;
	uint64_t ns;

	strace_split_line(src->text, src->len, &l);
	if (l.clock == STRACE_NO_TIME)
		return;
	ns = l.time_ns + (l.clock == STRACE_DELTA ? src->key_ns : src->shift_ns);
	if (l.clock == STRACE_DAY_TIME && ns + DAY_NS / 2 < src->key_ns) {
		src->shift_ns += DAY_NS;
		ns += DAY_NS;
	}
	if (ns > src->key_ns)
		src->key_ns = ns;
}

/* 1: it has a line, 0: it has no more. */
static int advance(struct strace_order *o, struct strace_source *src, struct err *err)
{
	int r = import_input_line(src->in, &src->text, &src->len, err);

	src->begun = true;
	if (r <= 0) {
		src->ended = true;
		import_input_close(src->in);
		return r;
	}
	src->line_no = src->in->line_no;
	r = take_below(src, err);
	if (r < 0)
		return r;
	if (src->nr_below)
		src->text = buf_str(&src->kept);
	if (o->nr_sources > 1 && o->by_time)
		note_key(src);
	return 1;
}

/* The heap. */

static bool is_before(const struct strace_order *o, size_t a, size_t b)
{
	const struct strace_source *x = &o->sources[a], *y = &o->sources[b];

	return x->key_ns != y->key_ns ? x->key_ns < y->key_ns : a < b;
}

static void sift_down(struct strace_order *o, size_t i)
{
	for (;;) {
		size_t child = 2 * i + 1, keep;

		if (child >= o->nr_heap)
			return;
		if (child + 1 < o->nr_heap && is_before(o, o->heap[child + 1], o->heap[child]))
			child++;
		if (is_before(o, o->heap[i], o->heap[child]))
			return;
		keep = o->heap[i];
		o->heap[i] = o->heap[child];
		o->heap[child] = keep;
		i = child;
	}
}

static int fill_heap(struct strace_order *o, struct err *err)
{
	size_t i;

	for (i = 0; i < o->nr_sources; i++) {
		int r = advance(o, &o->sources[i], err);

		if (r < 0)
			return r;
		if (r)
			o->heap[o->nr_heap++] = i;
	}
	for (i = o->nr_heap / 2; i-- > 0;)
		sift_down(o, i);
	return 0;
}

/* Opening and closing. */

static int by_lone_tid(const void *a, const void *b)
{
	const struct strace_source *x = a, *y = b;

	return x->lone_tid < y->lone_tid ? -1 : x->lone_tid > y->lone_tid;
}

/* With -r a line tells the time since the one before it, which may be in another file. */
static int check_times(const struct strace_order *o, const struct strace_source *src,
		       struct err *err)
{
	if (o->nr_sources == 1 || !src->has_deltas || src->has_clock)
		return 0;
	return err_set(err, -EINVAL,
		       "%s: its times are those since the line before, of any file (-r), so that "
		       "several files cannot be merged: trace with -ttt, or import one alone",
		       src->in->name);
}

int strace_order_open(struct strace_order *o, struct import *im, struct err *err)
{
	size_t i;
	int r = 0;

	*o = (struct strace_order){ .im = im, .nr_sources = im->nr_inputs };
	o->sources = xcalloc(o->nr_sources, sizeof(*o->sources));
	o->heap = xcalloc(o->nr_sources, sizeof(*o->heap));
	o->by_time = true;
	for (i = 0; i < o->nr_sources && !r; i++) {
		r = open_source(&o->sources[i], &im->inputs[i], (uint32_t)i + 1, err);
		o->by_time &= o->sources[i].has_times;
		if (!r)
			r = check_times(o, &o->sources[i], err);
	}
	if (!o->by_time)
		qsort(o->sources, o->nr_sources, sizeof(*o->sources), by_lone_tid);
	else if (!r)
		r = fill_heap(o, err);
	if (r < 0)
		strace_order_close(o);
	return r;
}

void strace_order_close(struct strace_order *o)
{
	size_t i;

	for (i = 0; i < o->nr_sources; i++) {
		buf_release(&o->sources[i].kept);
		strace_dump_release(&o->sources[i].dump);
	}
	free(o->sources);
	free(o->heap);
}

/* The next line. */

static struct strace_source *first_not_begun(struct strace_order *o, size_t *nr)
{
	for (; *nr < o->nr_sources; ++*nr) {
		if (!o->sources[*nr].begun)
			return &o->sources[*nr];
	}
	return NULL;
}

/* Without times: that of the child that began last, then of those before it. */
static int next_by_birth(struct strace_order *o, struct strace_source **ret, struct err *err)
{
	size_t nr = 0;

	for (;;) {
		struct strace_source *src =
			o->nr_heap ? &o->sources[o->heap[o->nr_heap - 1]] : NULL;
		int r;

		if (!src) {
			src = first_not_begun(o, &nr);
			if (!src)
				return 0;
			o->heap[o->nr_heap++] = (size_t)(src - o->sources);
		}
		r = advance(o, src, err);
		if (r < 0)
			return r;
		if (r) {
			*ret = src;
			return 1;
		}
		o->nr_heap--;
	}
}

static int next_by_time(struct strace_order *o, struct strace_source **ret, struct err *err)
{
	if (o->current) {
		int r = advance(o, o->current, err);

		if (r < 0)
			return r;
		if (!r)
			o->heap[0] = o->heap[--o->nr_heap];
		sift_down(o, 0);
	}
	if (!o->nr_heap)
		return 0;
	*ret = &o->sources[o->heap[0]];
	return 1;
}

int strace_order_next(struct strace_order *o, struct strace_next *ret, struct err *err)
{
	struct strace_source *src;
	int r = o->by_time ? next_by_time(o, &src, err) : next_by_birth(o, &src, err);

	if (r <= 0)
		return r;
	o->current = src;
	*ret = (struct strace_next){ .in = src->in,
				     .text = src->text,
				     .len = src->len,
				     .line_no = src->line_no,
				     .nr_below = src->nr_below,
				     .dump = &src->dump,
				     .lone_tid = src->lone_tid,
				     .follows = src->has_tids || o->nr_sources > 1 };
	return 1;
}

void strace_order_begin_child(struct strace_order *o, uint32_t tid)
{
	size_t i;

	for (i = 0; i < o->nr_sources && !o->by_time; i++) {
		if (o->sources[i].lone_tid == tid && !o->sources[i].begun) {
			o->sources[i].begun = true;
			o->heap[o->nr_heap++] = i;
			return;
		}
	}
}
