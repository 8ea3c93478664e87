/* SPDX-License-Identifier: MIT */
/*
 * Iterating over events in global order: a heap of streams, ordered by the key
 * of each stream's next event. A stream enters the heap when the order reaches
 * its first block and leaves it with its last event, so memory follows the
 * threads that are alive at a time.
 *
 * Keys do not decrease within a stream: where times do (a clock that jumped, a
 * file that lies), the key stays, and the stream keeps its order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/event_codec.h"
#include "trace/file.h"

/* Our writer's files stay far below; a hostile file shall not take all memory. */
#define LOADED_BYTES_MAX ((uint64_t)1 << 30)
/* Streams are begun before their turn only while no more are open: who asks for it may have waited long. */
#define EARLY_STREAMS_MAX 256

struct source {
	const struct trace_stream_info *info;
	uint32_t block; /* that is loaded */
	struct buf stored, plain;
	uint64_t loaded_bytes;
	struct cursor in;
	uint32_t events_left;
	struct event_state state;
	uint64_t key;
	struct event head; /* the next event; its arguments only if it was loaded ahead */
	struct cursor args;
	uint64_t loaded_at; /* the turn at which it was; 0: it was not */
};

struct trace_iter {
	struct trace *t;
	struct trace_query q;
	uint32_t *pids, *tids; /* owned copies */
	const struct trace_stream_info *
		*waiting; /* streams not begun, sorted by first_ns, descending */
	size_t nr_waiting;
	struct source **heap;
	size_t nr_heap;
	struct source *current; /* whose event was given out last, if it has not gone on since */
	uint64_t loaded_bytes;
	struct event given;
	struct arena arena; /* of the arguments of `given`; but their texts lie in a block: */
	const struct source *giver; /* that of this one; NULL: it has left it */
	struct buf left_stored, left_plain; /* in these */
	uint64_t turn; /* counts events given out */
	VEC(struct event *) pending;
	struct arena ahead; /* of the arguments of heads that were loaded before their turn */
};

static bool has_number(const uint32_t *list, size_t nr, uint32_t v)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (list[i] == v)
			return true;
	}
	return !nr;
}

static bool in_range(const struct trace_query *q, uint64_t first_ns, uint64_t last_ns)
{
	return last_ns >= q->from_ns && (!q->to_ns || first_ns < q->to_ns);
}

/* Sources. */

static void swap_bufs(struct buf *a, struct buf *b)
{
	struct buf c = *a;

	*a = *b;
	*b = c;
}

/* The source needs its block no more; whoever has the event that was given out may. */
static void leave_block(struct trace_iter *it, struct source *s)
{
	if (s != it->giver)
		return;
	swap_bufs(&s->stored, &it->left_stored);
	swap_bufs(&s->plain, &it->left_plain);
	it->giver = NULL;
}

static void free_source(struct trace_iter *it, struct source *s)
{
	leave_block(it, s);
	it->loaded_bytes -= s->loaded_bytes;
	buf_release(&s->stored);
	buf_release(&s->plain);
	free(s);
}

static int load_block(struct trace_iter *it, struct source *s, struct err *err)
{
	const struct block_entry *e = &it->t->blocks.items[s->block];
	struct block_read b = { .stored = &s->stored, .plain = &s->plain };
	struct events_prefix p;
	int r;

	leave_block(it, s);
	r = trace_read_block(it->t, e->offset, &b, err);
	it->loaded_bytes -= s->loaded_bytes;
	s->loaded_bytes = s->stored.cap + s->plain.cap;
	it->loaded_bytes += s->loaded_bytes;
	if (r < 0)
		return r;
	if (it->loaded_bytes > LOADED_BYTES_MAX)
		return trace_fault(it->t, e->offset, -E2BIG, err,
				   "too many threads are alive at once in this trace");
	if (b.header.type != BLOCK_EVENTS || b.header.number != s->info->number ||
	    !events_prefix_get(b.payload, b.len, &p))
		return trace_fault(it->t, e->offset, -EBADMSG, err, "malformed event block");
	s->in = (struct cursor){ b.payload + EVENTS_PREFIX_BYTES, b.payload + b.len };
	s->events_left = p.nr_events;
	s->state = (struct event_state){ .exit_ns = p.base_ns, .seq = p.base_seq };
	return 0;
}

static uint64_t key_of(const struct trace_iter *it, const struct event *ev)
{
	switch (it->q.order) {
	case TRACE_BY_EXIT:
		return ev->exit_ns;
	case TRACE_BY_EFFECT:
		return event_effect_ns(ev);
	case TRACE_BY_ENTER:
		break;
	}
	return ev->enter_ns;
}

/* The next block of the stream that has something in the time range. 1, 0 at the end, -errno. */
static int next_block(struct trace_iter *it, struct source *s, struct err *err)
{
	uint32_t n = s->block == NO_BLOCK ? s->info->first_block : it->t->next_of_stream[s->block];
	int r;

	for (; n != NO_BLOCK; n = it->t->next_of_stream[n]) {
		const struct block_entry *e = &it->t->blocks.items[n];

		s->block = n;
		if (!in_range(&it->q, e->first_ns, e->last_ns))
			continue;
		r = load_block(it, s, err);
		if (!r)
			return 1;
		r = trace_bad_block(it->t, e, r);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The rest of the loaded block is of no use: an error, or (salvaging) something to go on from: 0. */
static int give_up_block(struct trace_iter *it, struct source *s, const char *why, struct err *err)
{
	const struct block_entry *e = &it->t->blocks.items[s->block];
	int r = trace_bad_block(it->t, e, -EBADMSG);

	s->events_left = 0;
	s->in = (struct cursor){ 0 };
	return r < 0 ? trace_fault(it->t, e->offset, r, err, "%s", why) : 0;
}

/* Moves on to the next wanted event. 1, 0 at the end of the stream, -errno. */
static int advance(struct trace_iter *it, struct source *s, struct err *err)
{
	struct event *ev = &s->head;
	uint64_t key;
	int r = 0;

	for (;;) {
		while (!s->events_left) {
			if (cursor_left(&s->in))
				r = give_up_block(it, s, "event block holds more than it says",
						  err);
			if (!r)
				r = next_block(it, s, err);
			if (r <= 0)
				return r;
			r = 0;
		}
		if (!event_get_head(it->t->schema, &s->in, &s->state, ev, &s->args)) {
			r = give_up_block(it, s, "malformed event", err);
			if (r < 0)
				return r;
			continue;
		}
		s->events_left--;
		if (it->q.progress)
			progress_add(it->q.progress, 1);
		if (in_range(&it->q, ev->enter_ns, ev->exit_ns))
			break;
	}
	s->loaded_at = 0;
	key = key_of(it, ev);
	s->key = key > s->key ? key : s->key;
	return 1;
}

static struct source *new_source(const struct trace *t, const struct trace_stream_info *info)
{
	struct source *s = xcalloc(1, sizeof(*s));

	s->info = info;
	s->block = NO_BLOCK;
	s->head.pid = info->pid;
	s->head.tid = info->tid;
	s->head.stream = (uint32_t)(info - t->streams.items);
	return s;
}

/* The heap: heap[0] comes first. */

static bool before(const struct source *a, const struct source *b)
{
	if (a->key != b->key)
		return a->key < b->key;
	if (a->head.seq != b->head.seq)
		return a->head.seq < b->head.seq;
	return a->info->number < b->info->number;
}

static void sift_down(struct trace_iter *it, size_t i)
{
	struct source *s = it->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= it->nr_heap)
			break;
		if (child + 1 < it->nr_heap && before(it->heap[child + 1], it->heap[child]))
			child++;
		if (!before(it->heap[child], s))
			break;
		it->heap[i] = it->heap[child];
		i = child;
	}
	it->heap[i] = s;
}

static void sift_up(struct trace_iter *it, size_t i)
{
	struct source *s = it->heap[i];

	while (i && before(s, it->heap[(i - 1) / 2])) {
		it->heap[i] = it->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	it->heap[i] = s;
}

static void push(struct trace_iter *it, struct source *s)
{
	it->heap[it->nr_heap++] = s;
	sift_up(it, it->nr_heap - 1);
}

static void remove_at(struct trace_iter *it, size_t i)
{
	it->heap[i] = it->heap[--it->nr_heap];
	if (i == it->nr_heap)
		return;
	sift_up(it, i);
	sift_down(it, i);
}

static size_t place_of(const struct trace_iter *it, const struct source *s)
{
	size_t i = 0;

	while (it->heap[i] != s) /* mostly it is the first */
		i++;
	return i;
}

/* Whether the stream's first event may come before what the heap has, or is wanted early. */
static bool is_due(const struct trace_iter *it, const struct trace_stream_info *info,
		   uint64_t until_ns)
{
	return !it->nr_heap || info->first_ns <= it->heap[0]->key ||
	       (info->first_ns <= until_ns && it->nr_heap < EARLY_STREAMS_MAX);
}

static int wake_streams(struct trace_iter *it, uint64_t until_ns, struct err *err)
{
	while (it->nr_waiting) {
		const struct trace_stream_info *info = it->waiting[it->nr_waiting - 1];
		struct source *s;
		int r;

		if (!is_due(it, info, until_ns))
			break;
		it->nr_waiting--;
		s = new_source(it->t, info);
		r = advance(it, s, err);
		if (r <= 0)
			free_source(it, s);
		if (r < 0)
			return r;
		if (r > 0)
			push(it, s);
	}
	return 0;
}

/* Moves a stream on to its next event. */
static int step(struct trace_iter *it, struct source *s, struct err *err)
{
	int r = advance(it, s, err);

	if (r > 0) {
		sift_down(it, place_of(it, s));
		return 0;
	}
	remove_at(it, place_of(it, s));
	free_source(it, s);
	return r;
}

static int step_current(struct trace_iter *it, struct err *err)
{
	struct source *s = it->current;

	it->current = NULL;
	return s ? step(it, s, err) : 0;
}

static void no_args(struct event *ev)
{
	for (unsigned int i = 0; i < ev->row->nr_args; i++)
		ev->args[i].type = VALUE_NONE;
}

int trace_iter_next(struct trace_iter *it, struct event **ret, struct err *err)
{
	struct source *s;
	int r;

	arena_reset(&it->arena);
	arena_reset(&it->ahead);
	it->giver = NULL;
	it->turn++;
	for (;;) {
		r = step_current(it, err);
		if (r >= 0)
			r = wake_streams(it, 0, err);
		if (r < 0)
			return r;
		if (!it->nr_heap)
			return 0;
		s = it->current = it->heap[0];
		memcpy(&it->given, &s->head, offsetof(struct event, args));
		if (it->q.no_args) {
			no_args(&it->given);
			break;
		}
		if (event_get_args(it->t->schema, &s->args, &it->arena, &it->given))
			break;
		r = give_up_block(it, s, "malformed arguments", err);
		if (r < 0)
			return r;
	}
	it->giver = s;
	*ret = &it->given;
	return 1;
}

static struct source *source_of(struct event *head)
{
	return (struct source *)(void *)((char *)head - offsetof(struct source, head));
}

bool trace_iter_load(struct trace_iter *it, struct event *ev)
{
	struct source *s = source_of(ev);
	struct cursor args = s->args; /* they are read again when it is their turn */

	if (s->loaded_at == it->turn)
		return true;
	if (!event_get_args(it->t->schema, &args, &it->ahead, ev))
		return false;
	s->loaded_at = it->turn;
	return true;
}

int trace_iter_ahead(struct trace_iter *it, uint32_t stream, unsigned int class, struct event **ret,
		     struct err *err)
{
	int r = step_current(it, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < it->nr_heap; i++) {
		struct event *head = &it->heap[i]->head;

		if (head->stream != stream)
			continue;
		*ret = head;
		return row_class(head->row) == class && trace_iter_load(it, head);
	}
	return 0;
}

bool trace_iter_overlaps(const struct trace_iter *it, uint64_t until_ns)
{
	for (size_t i = 0; i < it->nr_heap; i++) {
		if (it->heap[i] != it->current && it->heap[i]->head.enter_ns < until_ns)
			return true;
	}
	return it->nr_waiting && it->waiting[it->nr_waiting - 1]->first_ns < until_ns;
}

static int by_turn(const void *a, const void *b)
{
	const struct source *x = source_of(*(struct event *const *)a);
	const struct source *y = source_of(*(struct event *const *)b);

	return before(x, y) ? -1 : before(y, x);
}

int trace_iter_pending(struct trace_iter *it, uint64_t until_ns, struct event *const **ret,
		       size_t *ret_nr, struct err *err)
{
	int r = step_current(it, err);

	if (r >= 0)
		r = wake_streams(it, until_ns, err);
	if (r < 0)
		return r;
	it->pending.len = 0;
	for (size_t i = 0; i < it->nr_heap; i++)
		VEC_PUSH(&it->pending, &it->heap[i]->head);
	if (it->pending.len > 1)
		qsort(it->pending.items, it->pending.len, sizeof(*it->pending.items), by_turn);
	*ret = it->pending.items;
	*ret_nr = it->pending.len;
	return 0;
}

int trace_iter_take(struct trace_iter *it, struct event *ev, struct err *err)
{
	return step(it, source_of(ev), err);
}

static int by_first_descending(const void *a, const void *b)
{
	const struct trace_stream_info *x = *(const struct trace_stream_info *const *)a;
	const struct trace_stream_info *y = *(const struct trace_stream_info *const *)b;

	if (x->first_ns != y->first_ns)
		return x->first_ns > y->first_ns ? -1 : 1;
	return x->number > y->number ? -1 : x->number < y->number;
}

static uint32_t *copy_numbers(const uint32_t *from, size_t nr)
{
	uint32_t *copy = xmalloc(nr * sizeof(*copy));

	if (nr)
		memcpy(copy, from, nr * sizeof(*copy));
	return copy;
}

int trace_iter_open(struct trace *t, const struct trace_query *q, struct trace_iter **ret,
		    struct err *err)
{
	size_t i, nr = q->nr_streams ? q->nr_streams : t->streams.len;
	struct trace_iter *it;

	if (q->to_ns && q->to_ns <= q->from_ns)
		return err_set(err, -EINVAL, "the time range ends before it begins");
	it = xcalloc(1, sizeof(*it));
	it->t = t;
	it->q = *q;
	it->q.pids = it->pids = copy_numbers(q->pids, q->nr_pids);
	it->q.tids = it->tids = copy_numbers(q->tids, q->nr_tids);
	it->waiting = xmalloc(nr * sizeof(*it->waiting));
	arena_init(&it->arena);
	arena_init(&it->ahead);
	for (i = 0; i < nr; i++) {
		uint32_t position = q->nr_streams ? q->streams[i] : (uint32_t)i;
		const struct trace_stream_info *s;

		if (position >= t->streams.len)
			continue;
		s = &t->streams.items[position];
		if (has_number(q->pids, q->nr_pids, s->pid) &&
		    has_number(q->tids, q->nr_tids, s->tid) && in_range(q, s->first_ns, s->last_ns))
			it->waiting[it->nr_waiting++] = s;
	}
	it->q.streams = NULL;
	it->heap = xmalloc(it->nr_waiting * sizeof(*it->heap));
	qsort(it->waiting, it->nr_waiting, sizeof(*it->waiting), by_first_descending);
	*ret = it;
	return 0;
}

void trace_iter_close(struct trace_iter *it)
{
	size_t i;

	if (!it)
		return;
	for (i = 0; i < it->nr_heap; i++)
		free_source(it, it->heap[i]);
	arena_release(&it->arena);
	arena_release(&it->ahead);
	buf_release(&it->left_stored);
	buf_release(&it->left_plain);
	VEC_RELEASE(&it->pending);
	free(it->waiting);
	free(it->heap);
	free(it->pids);
	free(it->tids);
	free(it);
}
