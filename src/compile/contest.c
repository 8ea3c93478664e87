/* SPDX-License-Identifier: MIT */
#include "compile/contest.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/mem.h"
#include "compile/texts.h"
#include "model/fields.h"
#include "model/tree_stat.h"

/* Bytes of writes and reads that are held at a time; of more it is not known what they were. */
#define HELD_MAX_BYTES ((uint64_t)64 << 20)
/* Of one file, from the first group to the last. */
#define SIGHT_MAX_BYTES ((uint64_t)64 << 20)
/* Entrants of one log that are remembered, and as long as a single stream writes. */
#define ENTRANTS_MAX ((size_t)1 << 20)
#define ALONE_MAX ((size_t)1 << 12)

struct seen {
	uint64_t from, len_bytes;
	uint8_t *bytes;
};

/* A file with writes whose places the kernel chose. */
struct log {
	const struct res *file;
	uint64_t line; /* id of what has the end at which they are put */
	uint64_t from, end; /* of the line: before the first entrant, and behind the last */
	uint32_t writer; /* stream of the first that wrote */
	bool shared; /* others wrote too */
	VEC(struct entrant) list; /* as they ended */
	VEC(struct seen) seen;
};

/* What is known of a stream. */
struct stream_state {
	uint64_t nr_seen; /* events */
	uint64_t file, number; /* its last write that has a place; number: which event that was */
	int64_t fd;
};

struct scout {
	struct compile_observer observer;
	struct trace *trace;
	struct contests *ret;
	struct map logs; /* id of RES_FILE -> struct log */
	struct map lines; /* id of a RES_OPEN -> struct log whose line it is */
	struct map at_end; /* path -> struct log that is there at the end */
	struct stream_state *streams;
	const struct fsmodel *model; /* of the present event */
	uint64_t held_bytes;
};

/* Places. */

struct place_key {
	uint64_t stream, number;
};

uint64_t contests_place(const struct contests *c, uint32_t stream, uint64_t number)
{
	struct place_key key = { stream, number };
	uintptr_t place = (uintptr_t)map_get(&c->places, &key, sizeof(key));

	return place ? place - 1 : CONTEST_ANYWHERE;
}

static void put_place(struct contests *c, const struct entrant *e)
{
	struct place_key key = { e->stream, e->number };

	*map_slot(&c->places, &key, sizeof(key)) = (void *)(uintptr_t)(e->place + 1);
}

void contests_release(struct contests *c)
{
	map_release(&c->places);
}

/* Bytes. */

static void put_data(struct scout *s, const struct data *d, struct buf *out)
{
	const uint8_t *bytes = d->bytes;
	size_t len = (size_t)d->kept_bytes;

	if (bytes) {
		buf_put(out, bytes, len);
		return;
	}
	for (uint64_t i = 0; d->refs && i < data_nr_pieces(d); i++) {
		if (trace_load_piece(s->trace, d, i, &bytes, &len, NULL) <= 0)
			return;
		buf_put(out, bytes, len);
	}
}

/* What the call moved; NULL: the trace does not have all of it. */
static uint8_t *take_bytes(struct scout *s, const struct event *ev, uint64_t len)
{
	struct buf b = { 0 };
	uint8_t *bytes = NULL;

	if (len > HELD_MAX_BYTES || s->held_bytes > HELD_MAX_BYTES - len)
		return NULL;
	for (unsigned int i = 0; i < ev->row->nr_args; i++) {
		const struct value *v = &ev->args[i];

		if (v->type == VALUE_DATA && ev->row->args[i].kind == KIND_BUF)
			put_data(s, v->data, &b);
		for (uint32_t n = 0; v->type == VALUE_LIST && n < v->count; n++) {
			const struct value *base =
				value_field(&v->items[n], FIELD_OF(iovec, iov_base));

			if (base && base->type == VALUE_DATA && b.len < len)
				put_data(s, base->data, &b);
		}
	}
	if (b.len >= len) {
		bytes = (uint8_t *)xmemdup0(b.data, (size_t)len);
		s->held_bytes += len;
	}
	buf_release(&b);
	return bytes;
}

static void give_back(struct scout *s, const uint8_t *bytes, uint64_t len)
{
	if (bytes)
		s->held_bytes -= len;
	free((void *)(uintptr_t)bytes);
}

/* Entrants. */

static void settle(struct scout *s, struct log *l, const struct seen *final, bool is_open);

/* Forgets the first ones. */
static void drop_entrants(struct scout *s, struct log *l, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		give_back(s, l->list.items[i].bytes, l->list.items[i].len_bytes);
		l->from += l->list.items[i].len_bytes;
	}
	l->list.len -= nr;
	if (l->list.len)
		memmove(l->list.items, l->list.items + nr, l->list.len * sizeof(*l->list.items));
}

static struct entrant *enter(struct scout *s, struct log *l, const struct event *ev, uint64_t len)
{
	struct entrant e = { .stream = ev->stream,
			     .number = s->streams[ev->stream].nr_seen,
			     .enter_ns = ev->enter_ns,
			     .exit_ns = ev->exit_ns,
			     .len_bytes = len,
			     .place = CONTEST_ANYWHERE };

	/* Whom another writer overlaps that has not been seen yet is among the last. */
	if (!l->shared && l->list.len >= ALONE_MAX)
		drop_entrants(s, l, l->list.len / 2);
	else if (l->list.len >= ENTRANTS_MAX)
		settle(s, l, NULL, true);
	VEC_PUSH(&l->list, e);
	l->end += len;
	return &l->list.items[l->list.len - 1];
}

/* All that was seen of the bytes of a log's groups. */

static void see(struct sight *s, uint8_t *bytes, uint8_t *seen, const struct seen *what)
{
	uint64_t from = what->from > s->from ? what->from : s->from;
	uint64_t to = what->from + what->len_bytes, end = s->from + s->len_bytes;

	to = to < end ? to : end;
	if (from >= to)
		return;
	memcpy(bytes + (from - s->from), what->bytes + (from - what->from), (size_t)(to - from));
	memset(seen + (from - s->from), 1, (size_t)(to - from));
}

/* What was there at the end comes last: it is what counts. False: there is too much. */
static bool make_sight(const struct log *l, const struct seen *final, struct sight *ret)
{
	uint8_t *bytes, *seen;

	*ret = (struct sight){ .from = l->from, .len_bytes = l->end - l->from };
	if (ret->len_bytes > SIGHT_MAX_BYTES)
		return false;
	bytes = xcalloc(1, (size_t)ret->len_bytes + 1);
	seen = xcalloc(1, (size_t)ret->len_bytes + 1);
	for (size_t i = 0; i < l->seen.len; i++)
		see(ret, bytes, seen, &l->seen.items[i]);
	if (final)
		see(ret, bytes, seen, final);
	ret->bytes = bytes;
	ret->seen = seen;
	return true;
}

static void sight_release(struct sight *s)
{
	free((void *)(uintptr_t)s->bytes);
	free((void *)(uintptr_t)s->seen);
}

static bool is_contested(const struct entrant *list, size_t nr)
{
	const struct entrant *writer = NULL;

	for (size_t i = 0; i < nr; i++) {
		if (writer && list[i].len_bytes && list[i].stream != writer->stream)
			return true;
		writer = list[i].len_bytes ? &list[i] : writer;
	}
	return false;
}

static void settle_group(struct scout *s, struct entrant *list, size_t nr, uint64_t from,
			 const struct sight *sight, bool is_open)
{
	bool found;

	if (!is_contested(list, nr))
		return;
	found = contest_search(list, nr, from, sight);
	for (size_t i = 0; i < nr; i++) {
		if (!list[i].len_bytes)
			continue;
		if (found)
			put_place(s->ret, &list[i]);
		if (!found || is_open)
			s->ret->nr_unordered++;
	}
}

static int by_entry(const void *a, const void *b)
{
	const struct entrant *x = a, *y = b;

	return x->enter_ns < y->enter_ns ? -1 : x->enter_ns > y->enter_ns;
}

/* Each group in turn: nobody in it overlaps anybody outside of it. */
static void settle_groups(struct scout *s, struct log *l, const struct sight *sight, bool is_open)
{
	struct entrant *list = l->list.items;
	uint64_t until_ns = 0, from = l->from, pos = l->from;
	size_t first = 0;

	qsort(list, l->list.len, sizeof(*list), by_entry);
	for (size_t i = 0; i < l->list.len; i++) {
		if (i && list[i].enter_ns > until_ns) {
			settle_group(s, list + first, i - first, from, sight, is_open);
			first = i;
			from = pos;
		}
		if (list[i].exit_ns > until_ns)
			until_ns = list[i].exit_ns;
		pos += list[i].len_bytes;
	}
	settle_group(s, list + first, l->list.len - first, from, sight, is_open);
}

/*
 * No more will be seen of what the log holds so far. is_open: its bytes are still there,
 * and the trace does not tell them, so that the order remains open.
 */
static void settle(struct scout *s, struct log *l, const struct seen *final, bool is_open)
{
	struct sight sight = { 0 };

	if (l->shared && l->list.len) {
		is_open |= !make_sight(l, final, &sight);
		settle_groups(s, l, &sight, is_open);
		sight_release(&sight);
	}
	for (size_t i = 0; i < l->seen.len; i++)
		give_back(s, l->seen.items[i].bytes, l->seen.items[i].len_bytes);
	l->seen.len = 0;
	drop_entrants(s, l, l->list.len);
}

static void log_free(struct log *l)
{
	VEC_RELEASE(&l->list);
	VEC_RELEASE(&l->seen);
	free(l);
}

/* Events. */

static struct log *find_log(const struct scout *s, const struct res *file)
{
	return s->logs.nr_live ? map_get(&s->logs, &file->id, sizeof(file->id)) : NULL;
}

static void add_write(struct scout *s, const struct event *ev, const struct facts *facts,
		      const struct placed *p)
{
	void **slot = map_slot(&s->logs, &p->file->id, sizeof(p->file->id));
	uint64_t len = (uint64_t)ev->outcome.ret;
	struct log *l = *slot;
	struct entrant *e;

	if (!l) {
		l = *slot = xcalloc(1, sizeof(*l));
		l->file = p->file;
		l->writer = ev->stream;
		l->line = p->line->id;
	}
	if (l->line != p->line->id) {
		settle(s, l, NULL, true);
		(void)map_remove(&s->lines, &l->line, sizeof(l->line));
	}
	l->line = p->line->id;
	if (p->line != p->file)
		*map_slot(&s->lines, &l->line, sizeof(l->line)) = l;
	if (!l->list.len)
		l->from = l->end = facts->offset;
	l->shared |= l->writer != ev->stream;
	s->streams[ev->stream].file = p->file->id;
	s->streams[ev->stream].number = s->streams[ev->stream].nr_seen;
	s->streams[ev->stream].fd = ev->args[0].i;
	e = enter(s, l, ev, len);
	e->bytes = take_bytes(s, ev, len);
}

/* Whoever sees the end of the line is an entrant too, without bytes. */
static void add_look(struct scout *s, struct log *l, const struct event *ev, uint64_t place)
{
	enter(s, l, ev, 0)->place = place;
}

static void add_seen(struct scout *s, struct log *l, const struct event *ev, uint64_t from)
{
	uint64_t len = ev->outcome.ret > 0 ? (uint64_t)ev->outcome.ret : 0;
	uint8_t *bytes = len ? take_bytes(s, ev, len) : NULL;

	if (bytes)
		VEC_PUSH(&l->seen, ((struct seen){ from, len, bytes }));
}

/* Asks for the offset right after a write that has a place. */
static bool asks_for_offset(const struct scout *s, const struct event *ev)
{
	const struct stream_state *st = &s->streams[ev->stream];

	return ev->row->id == SC_lseek && ev->args[0].type == VALUE_INT && st->file &&
	       st->number + 1 == st->nr_seen && ev->args[0].i == st->fd &&
	       ev->args[1].type == VALUE_INT && !ev->args[1].i && ev->args[2].type == VALUE_INT &&
	       ev->args[2].i == SEEK_CUR;
}

/* Of an append that tells where it was put; of a shared offset, where that was meanwhile. */
static void see_offset(struct scout *s, struct fsmodel *m, const struct event *ev)
{
	uint64_t file = s->streams[ev->stream].file, offset = (uint64_t)ev->outcome.ret;
	struct log *l = map_get(&s->logs, &file, sizeof(file));

	if (!l)
		return;
	if (l->line != file) {
		add_look(s, l, ev, offset);
		return;
	}
	if (!fsmodel_moves_offset(m, ev))
		return;
	for (size_t i = l->list.len; i; i--) {
		struct entrant *e = &l->list.items[i - 1];

		if (e->stream != ev->stream)
			continue;
		if (offset >= e->len_bytes)
			e->place = offset - e->len_bytes;
		return;
	}
}

/* A write that names its place, or a truncation. */
static void spoil(struct scout *s, struct log *l, const struct touch *touch)
{
	/* Elsewhere in the file, where the line has not got to, or was before. */
	if (touch->to <= l->from || (touch->from >= l->end && l->line != l->file->id))
		return;
	/* Cut off as a whole it will never be seen. */
	settle(s, l, NULL, touch->to < l->end || touch->from > l->from);
}

/* An offset that was set anew, or moved by a read. */
static void leave_line(struct scout *s, const struct res *open, const struct event *ev)
{
	struct log *l;

	if (ev->row->result != RESULT_BYTES_READ &&
	    (ev->row->result != RESULT_OFFSET || fsmodel_only_looks(s->model, ev)))
		return;
	l = map_get(&s->lines, &open->id, sizeof(open->id));
	if (l)
		settle(s, l, NULL, true);
}

static void see_touch(struct scout *s, const struct compiled *c, const struct touch *touch)
{
	const struct event *ev = c->ev;
	struct log *l = touch->res->kind == RES_FILE ? find_log(s, touch->res) : NULL;

	if (touch->res->kind == RES_OPEN && touch->how & TOUCH_OFFSET)
		leave_line(s, touch->res, ev);
	if (!l || !l->shared)
		return;
	if (touch->how & TOUCH_READ && ev->row->result == RESULT_BYTES_READ)
		add_seen(s, l, ev, touch->from);
	if (touch->how & TOUCH_SIZE_READ && c->facts->end != UINT64_MAX && l->line == l->file->id)
		add_look(s, l, ev, c->facts->end);
	if (touch->how & TOUCH_WRITE)
		spoil(s, l, touch);
}

static void see_event(struct compile_observer *o, const struct compiled *c)
{
	struct scout *s = (struct scout *)(void *)o;
	struct event *ev =
		(struct event *)(uintptr_t)c->ev; /* a quiet question leaves it as it is */
	struct fsmodel *m = (struct fsmodel *)(uintptr_t)c->model;
	struct placed p;

	s->model = m;
	if (!ev->outcome.err && fsmodel_placed(m, ev, &p)) {
		add_write(s, ev, c->facts, &p);
	} else if (s->logs.nr_live && !ev->outcome.err) {
		if (asks_for_offset(s, ev))
			see_offset(s, m, ev);
		for (size_t i = 0; i < c->facts->touches.len; i++)
			see_touch(s, c, &c->facts->touches.items[i]);
	}
	s->streams[ev->stream].nr_seen++;
}

static void see_forgotten(struct compile_observer *o, const struct res *res)
{
	struct scout *s = (struct scout *)(void *)o;
	struct log *l = res->kind == RES_FILE && s->logs.nr_live
				? map_remove(&s->logs, &res->id, sizeof(res->id))
				: NULL;

	if (res->kind == RES_OPEN && s->lines.nr_live)
		(void)map_remove(&s->lines, &res->id, sizeof(res->id));
	if (!l)
		return;
	settle(s, l, NULL, false);
	(void)map_remove(&s->lines, &l->line, sizeof(l->line));
	log_free(l);
}

static void see_end(struct compile_observer *o, const struct fsmodel *m)
{
	struct scout *s = (struct scout *)(void *)o;
	struct buf path = { 0 };

	MAP_EACH (&s->logs, e) {
		struct log *l = e->value;

		buf_clear(&path);
		if (!l->shared || !l->list.len)
			continue;
		if (fsmodel_path(m, l->file, &path))
			*map_slot(&s->at_end, path.data, path.len) = l;
		else
			settle(s, l, NULL, false);
	}
	buf_release(&path);
}

/* The final tree. */

/* A hash alone shows that an order is wrong, but not which one is right. */
static void settle_by(struct scout *s, struct log *l, const struct item *entry)
{
	const struct value *content = &entry->args[ENTRY_CONTENT];
	struct buf b = { 0 };
	struct seen final;

	if (content->type == VALUE_DATA && content->data->kept_bytes == l->end)
		put_data(s, content->data, &b);
	final = (struct seen){ .len_bytes = b.len, .bytes = b.data };
	settle(s, l, b.len == l->end ? &final : NULL,
	       b.len != l->end && entry->args[ENTRY_HASH].type == VALUE_DATA);
	buf_release(&b);
}

static int settle_all(struct scout *s, struct err *err)
{
	struct texts texts = { 0 };
	struct trace_items *it;
	struct item *item;
	int r = s->at_end.nr_live ? trace_items_open(s->trace, BLOCK_TREE, &it, err) : 0;

	if (r < 0 || !s->at_end.nr_live)
		return r;
	while ((r = trace_items_next(it, &item, err)) > 0) {
		const struct value *path = &item->args[ENTRY_PATH];
		struct log *l;

		if (item->row->id != REC_tree_entry || item->args[ENTRY_TREE].type != VALUE_INT ||
		    !item->args[ENTRY_TREE].u)
			continue;
		texts_trim(&texts);
		texts_load(&texts, s->trace, item->row, item->args);
		if (path->type != VALUE_DATA || !path->data->bytes)
			continue;
		l = map_get(&s->at_end, path->data->bytes, (size_t)path->data->kept_bytes);
		if (l)
			settle_by(s, l, item);
	}
	trace_items_close(it);
	texts_release(&texts);
	return r;
}

int contests_find(struct trace *t, struct contests *ret, struct err *err)
{
	struct compile_options options = { .policy = order_find("none"), .as_they_ended = true };
	struct scout s = { .observer = { see_event, see_forgotten, see_end },
			   .trace = t,
			   .ret = ret };
	struct compile_totals totals;
	size_t nr_streams;
	int r;

	*ret = (struct contests){ 0 };
	(void)trace_streams(t, &nr_streams);
	s.streams = xcalloc(nr_streams + 1, sizeof(*s.streams));
	r = compile_trace(t, &options, NULL, &s.observer, &totals, err);
	if (r >= 0)
		r = settle_all(&s, err);
	/* Of what is left nothing was recorded at the end. */
	MAP_EACH (&s.logs, e) {
		settle(&s, e->value, NULL, false);
		log_free(e->value);
	}
	map_release(&s.logs);
	map_release(&s.lines);
	map_release(&s.at_end);
	free(s.streams);
	return r;
}
