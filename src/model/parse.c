/* SPDX-License-Identifier: MIT */
#include "model/parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "model/parse_inside.h"

struct parser *parser_new(void)
{
	struct parser *p = xcalloc(1, sizeof(*p));
	unsigned int id;

	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);
		void **slot;

		if (!row)
			continue;
		slot = map_slot(row->sort == ROW_RECORD ? &p->records : &p->events, row->name,
				strlen(row->name));
		if (!*slot)
			*slot = (void *)row; /* as row_by_name() finds it */
	}
	return p;
}

void parser_free(struct parser *p)
{
	if (!p)
		return;
	map_release(&p->events);
	map_release(&p->records);
	VEC_RELEASE(&p->stack);
	free(p);
}

/* Arguments. */

static bool next_is_unknown(const struct parser *p)
{
	return scan_next_is(&p->scan, '?') &&
	       (p->scan.pos + 1 == p->scan.end || p->scan.pos[1] != '/');
}

static int parse_arg(struct parser *p, const struct row *row, uint32_t *given, struct value *args)
{
	const char *at;
	unsigned int n = 0;
	int r;

	scan_skip_space(&p->scan);
	at = p->scan.pos;
	r = parse_arg_name(p, row->args, row->nr_args, "argument", &n);
	if (r < 0)
		return r;
	if (*given >> n & 1)
		return scan_bad(&p->scan, at, "argument '%s' given twice", row->args[n].name);
	*given |= (uint32_t)1 << n;
	scan_skip_space(&p->scan);
	/* An argument of any kind may be unknown. */
	if (next_is_unknown(p)) {
		p->scan.pos++;
		return 0;
	}
	return parse_any(p, &row->args[n], &args[n]);
}

/* From the opening parenthesis to the closing one. */
static int parse_args(struct parser *p, const struct row *row, struct value *args)
{
	uint32_t given = 0;
	unsigned int i;
	int r = scan_expect(&p->scan, '(', "'('");

	if (r < 0)
		return r;
	for (i = 0; i < row->nr_args; i++)
		args[i] = (struct value){ .type = VALUE_NONE };
	while (!scan_accept(&p->scan, ')')) {
		if (given) {
			r = scan_expect(&p->scan, ',', "',' or ')'");
			if (r < 0)
				return r;
		}
		r = parse_arg(p, row, &given, args);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Records stand alone; anything may stand in front of an event. */
static int parse_row(struct parser *p, bool alone, const struct row **ret)
{
	struct scan_word w;
	int r = scan_take_word(&p->scan, "the name of a call", &w);

	if (r < 0)
		return r;
	*ret = alone ? map_get(&p->records, w.text, w.len) : NULL;
	if (!*ret)
		*ret = map_get(&p->events, w.text, w.len);
	return *ret ? 0 : scan_bad_word(&p->scan, "call", w);
}

/* Outcomes and what follows them. */

static int parse_result(struct parser *p, const struct row *row, int64_t *ret)
{
	static const struct arg number = { .kind = KIND_LONG };
	static const struct arg open_flags = { .kind = KIND_FLAGS, .set = SET_open_flags };
	static const struct arg mode = { .kind = KIND_MODE };
	const struct arg *a = &number;
	const char *at = p->scan.pos;
	uint64_t v;
	int r;

	if (!scan_next_is(&p->scan, '-') && row->result == RESULT_OPEN_FLAGS)
		a = &open_flags;
	else if (!scan_next_is(&p->scan, '-') && row->result == RESULT_MODE)
		a = &mode;
	r = parse_names(p, a, &v);
	if (r < 0)
		return r;
	if (a != &number && v > INT64_MAX)
		return scan_bad_range(&p->scan, at);
	*ret = (int64_t)v;
	return 0;
}

static int parse_outcome(struct parser *p, struct event *ev)
{
	static const struct arg error = { .kind = KIND_ERRNO };
	const char *at;
	uint64_t v;
	int r;

	scan_skip_space(&p->scan);
	if (scan_accept_here(&p->scan, '?')) {
		ev->flags |= EVENT_UNFINISHED;
		return 0;
	}
	r = parse_result(p, ev->row, &ev->outcome.ret);
	if (r < 0)
		return r;
	scan_skip_space(&p->scan);
	if (p->scan.pos == p->scan.end || *p->scan.pos == '{')
		return 0;
	at = p->scan.pos;
	r = parse_names(p, &error, &v);
	if (r < 0)
		return r;
	if ((int64_t)v < INT32_MIN || (int64_t)v > INT32_MAX)
		return scan_bad_range(&p->scan, at);
	ev->outcome.err = (int32_t)v;
	return 0;
}

static int parse_flags(struct parser *p, uint16_t *flags)
{
	static const struct arg a = { .kind = KIND_FLAGS, .set = SET_event_flags };
	const char *at = p->scan.pos;
	uint64_t v;
	int r = parse_names(p, &a, &v);

	if (r < 0)
		return r;
	if (v > UINT16_MAX)
		return scan_bad_range(&p->scan, at);
	*flags |= (uint16_t)v;
	return 0;
}

static int parse_detail(struct parser *p, struct event *ev)
{
	struct scan_word w;
	int r = scan_take_word(&p->scan, "a detail", &w);

	if (!r)
		r = scan_expect(&p->scan, '=', "'='");
	if (r < 0)
		return r;
	scan_skip_space(&p->scan);
	if (scan_word_is(w, "flags"))
		return parse_flags(p, &ev->flags);
	if (scan_word_is(w, "cpu"))
		return scan_take_unsigned(&p->scan, UINT64_MAX, &ev->cpu_ns);
	if (scan_word_is(w, "held"))
		return scan_take_unsigned(&p->scan, UINT64_MAX, &ev->held_ns);
	if (scan_word_is(w, "held_before"))
		return scan_take_unsigned(&p->scan, UINT64_MAX, &ev->held_before_ns);
	if (scan_word_is(w, "held_inside"))
		return scan_take_unsigned(&p->scan, UINT64_MAX, &ev->held_inside_ns);
	if (scan_word_is(w, "gap_cpu"))
		return scan_take_unsigned(&p->scan, UINT64_MAX, &ev->gap_cpu_ns);
	if (scan_word_is(w, "ppid"))
		return scan_take_u32(&p->scan, &ev->ppid);
	if (scan_word_is(w, "pgid"))
		return scan_take_u32(&p->scan, &ev->pgid);
	if (scan_word_is(w, "origin"))
		return scan_take_unsigned(&p->scan, UINT64_MAX, &ev->origin);
	return scan_bad_word(&p->scan, "detail", w);
}

static int parse_details(struct parser *p, struct event *ev)
{
	int r;

	do {
		r = parse_detail(p, ev);
		if (r < 0)
			return r;
	} while (scan_accept(&p->scan, ','));
	return scan_expect(&p->scan, '}', "',' or '}'");
}

/* The front of a line. */

/* PID, PID/TID or PID/TID@GENERATION; the pid is there already. */
static int parse_thread_rest(struct parser *p, struct line_thread *ret)
{
	int r = 0;

	ret->tid = ret->pid;
	if (scan_accept_here(&p->scan, '/'))
		r = scan_take_u32(&p->scan, &ret->tid);
	if (!r && scan_accept_here(&p->scan, '@'))
		r = scan_take_u32(&p->scan, &ret->generation);
	return r;
}

/* ENTER+DURATION; the entry is there already. */
static int parse_duration(struct parser *p, struct event *ev, uint64_t enter_ns)
{
	const char *at = p->scan.pos;
	struct scan_number n;
	int r;

	if (!scan_accept_here(&p->scan, '+') && !scan_next_is(&p->scan, '-'))
		return scan_bad_expected(&p->scan, "'+' and a duration");
	r = scan_take_number(&p->scan, &n);
	if (r < 0)
		return r;
	if (!scan_signed_fits(&n, INT64_MAX))
		return scan_bad_range(&p->scan, at);
	ev->enter_ns = enter_ns;
	ev->exit_ns = enter_ns + scan_with_sign(&n);
	return 0;
}

static bool next_is_sign(const struct parser *p)
{
	return scan_next_is(&p->scan, '+') || scan_next_is(&p->scan, '-');
}

/* [THREAD] [#SEQ] [ENTER+DURATION], each of which may be missing. */
static int parse_front(struct parser *p, struct line *ret)
{
	const char *at = p->scan.pos;
	uint64_t first;
	int r = 0;

	if (scan_next_is_digit(&p->scan)) {
		r = scan_take_unsigned(&p->scan, UINT64_MAX, &first);
		if (r < 0)
			return r;
		if (next_is_sign(p)) {
			ret->has_time = true;
			return parse_duration(p, &ret->event, first);
		}
		if (first > UINT32_MAX)
			return scan_bad_range(&p->scan, at);
		ret->has_thread = true;
		ret->thread.pid = (uint32_t)first;
		r = parse_thread_rest(p, &ret->thread);
	}
	if (!r && scan_accept(&p->scan, '#')) {
		ret->has_seq = true;
		r = scan_take_unsigned(&p->scan, UINT64_MAX, &ret->event.seq);
	}
	scan_skip_space(&p->scan);
	if (!r && scan_next_is_digit(&p->scan)) {
		ret->has_time = true;
		r = scan_take_unsigned(&p->scan, UINT64_MAX, &first);
		if (!r)
			r = parse_duration(p, &ret->event, first);
	}
	return r;
}

/* Lines. */

static int parse_end(struct parser *p)
{
	scan_skip_space(&p->scan);
	return p->scan.pos == p->scan.end ? 0 : scan_bad_expected(&p->scan, "the end of the line");
}

static int parse_event_rest(struct parser *p, const struct row *row, struct line *ret)
{
	struct event *ev = &ret->event;
	int r;

	ret->type = LINE_EVENT;
	ev->row = row;
	ev->pid = ret->thread.pid;
	ev->tid = ret->thread.tid;
	r = parse_args(p, row, ev->args);
	if (r < 0)
		return r;
	if (scan_accept(&p->scan, '='))
		r = parse_outcome(p, ev);
	else if (row->sort == ROW_CALL)
		r = scan_bad_expected(&p->scan, "'=' and the outcome");
	if (!r && scan_accept(&p->scan, '{'))
		r = parse_details(p, ev);
	return r ? r : parse_end(p);
}

static int parse_item_rest(struct parser *p, const struct row *row, struct line *ret)
{
	int r;

	ret->type = LINE_ITEM;
	ret->item.row = row;
	r = parse_args(p, row, ret->item.args);
	return r ? r : parse_end(p);
}

static int parse_event_or_item(struct parser *p, struct line *ret)
{
	const struct row *row = NULL;
	int r = parse_front(p, ret);

	if (!r)
		r = parse_row(p, !ret->has_thread && !ret->has_seq && !ret->has_time, &row);
	if (r)
		return r;
	return row->sort == ROW_RECORD ? parse_item_rest(p, row, ret)
				       : parse_event_rest(p, row, ret);
}

static int parse_blob(struct parser *p, struct line *ret)
{
	const char *at;
	int r;

	ret->type = LINE_BLOB;
	scan_skip_space(&p->scan);
	r = parse_hash(p, &ret->blob.hash);
	if (r < 0)
		return r;
	scan_skip_space(&p->scan);
	at = p->scan.pos;
	if (!scan_next_is(&p->scan, '"'))
		return scan_bad_expected(&p->scan, "a string");
	r = parse_quoted(p, &ret->blob.bytes, &ret->blob.len);
	if (r < 0)
		return r;
	if (!ret->blob.len || ret->blob.len > BLOB_MAX_BYTES)
		return scan_bad(&p->scan, at, "a blob has 1 to %llu bytes",
				(unsigned long long)BLOB_MAX_BYTES);
	return parse_end(p);
}

static int parse_stream(struct parser *p, struct line *ret)
{
	int r;

	ret->type = LINE_STREAM;
	ret->has_thread = true;
	scan_skip_space(&p->scan);
	r = scan_take_u32(&p->scan, &ret->thread.pid);
	if (!r)
		r = parse_thread_rest(p, &ret->thread);
	scan_skip_space(&p->scan);
	if (!r)
		r = scan_take_unsigned(&p->scan, UINT64_MAX, &ret->nr_events);
	return r ? r : parse_end(p);
}

static void begin(struct parser *p, const char *text, size_t len, struct arena *arena,
		  struct err *err)
{
	p->scan.start = p->scan.pos = text;
	p->scan.end = text + len;
	p->arena = arena;
	p->scan.err = err;
	p->depth = 0;
	p->stack.len = 0;
}

static void clear_line(struct line *ret)
{
	ret->type = LINE_EMPTY;
	ret->has_thread = ret->has_seq = ret->has_time = false;
	ret->thread = (struct line_thread){ 0 };
	ret->nr_events = 0;
	/* The arguments are cleared by parse_args(), as many as the row has. */
	memset(&ret->event, 0, offsetof(struct event, args));
}

int parse_line(struct parser *p, const char *text, size_t len, struct arena *arena,
	       struct line *ret, struct err *err)
{
	struct scan_word w;

	if (len && text[len - 1] == '\r')
		len--;
	begin(p, text, len, arena, err);
	clear_line(ret);
	scan_skip_space(&p->scan);
	if (p->scan.pos == p->scan.end || *p->scan.pos == '#')
		return 0;
	w = scan_peek_word(&p->scan);
	if (scan_word_is(w, "blob") || scan_word_is(w, "stream")) {
		p->scan.pos += w.len;
		return w.len == 4 ? parse_blob(p, ret) : parse_stream(p, ret);
	}
	return parse_event_or_item(p, ret);
}

int parse_value(struct parser *p, const struct arg *a, const char *text, size_t len,
		struct arena *arena, struct value *ret, struct err *err)
{
	int r;

	begin(p, text, len, arena, err);
	r = parse_any(p, a, ret);
	return r ? r : parse_end(p);
}
