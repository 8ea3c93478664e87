/* SPDX-License-Identifier: MIT */
#include "report/compare.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/banned.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/print.h"
#include "report/thread_ids.h"

/* An event that must outlive the iterator's next step. */
struct held_event {
	struct event ev;
	struct arena arena;
	uint64_t fingerprint;
};

/*
 * One of the two threads that are set side by side. As long as they agree, the
 * window is empty and events are compared where the iterator has them.
 */
struct side {
	struct trace_iter *it; /* NULL: no such thread */
	struct event *current; /* of the iterator; NULL at the end */
	struct held_event window[COMPARE_WINDOW]; /* a ring: what comes before current */
	size_t first, nr;
};

struct comparison {
	struct trace *a, *b;
	const struct compare_options *o;
	struct compare_result *result;
	struct side side_a, side_b;
	uint16_t cost[COMPARE_WINDOW + 1][COMPARE_WINDOW + 1]; /* see find_costs() */
	struct err *err;
};

uint64_t compare_nr_differences(const struct compare_result *c)
{
	uint64_t sum = c->nr_ledger + c->nr_trees;
	unsigned int i;

	for (i = 0; i < DIFFERENCE_MAX; i++)
		sum += c->by_kind[i];
	return sum;
}

/* Holding events. */

static void hold_values(struct arena *a, struct value *values, uint32_t nr);

static void hold_data(struct arena *a, struct value *v)
{
	struct data *d = arena_alloc(a, sizeof(*d));

	*d = *v->data;
	if (d->bytes)
		d->bytes = (const uint8_t *)arena_memdup0(a, d->bytes, (size_t)d->kept_bytes);
	if (d->refs)
		d->refs = (const struct blob_ref *)arena_memdup0(
			a, d->refs, (size_t)data_nr_pieces(d) * sizeof(*d->refs));
	v->data = d;
}

static void hold_value(struct arena *a, struct value *v)
{
	size_t size;

	if (v->type == VALUE_DATA) {
		hold_data(a, v);
	} else if (v->type == VALUE_STRUCT) {
		size = sizeof(*v->fields) + v->count * sizeof(struct value);
		v->fields = (struct fields *)arena_memdup0(a, v->fields, size);
		hold_values(a, v->fields->items, v->count);
	} else if (v->type == VALUE_LIST) {
		size = v->count * sizeof(struct value);
		v->items = (struct value *)arena_memdup0(a, v->items, size);
		hold_values(a, v->items, v->count);
	}
}

static void hold_values(struct arena *a, struct value *values, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		hold_value(a, &values[i]);
}

/* Sides. */

static int side_step(struct side *s, struct err *err)
{
	int r = trace_iter_next(s->it, &s->current, err);

	if (r > 0)
		return 0;
	s->current = NULL;
	return r;
}

static int side_open(struct side *s, struct trace *t, uint32_t stream, struct progress *progress,
		     struct err *err)
{
	struct trace_query q = { .streams = &stream, .nr_streams = 1, .progress = progress };
	int r = trace_iter_open(t, &q, &s->it, err);

	return r < 0 ? r : side_step(s, err);
}

static void side_close(struct side *s)
{
	trace_iter_close(s->it);
	s->it = NULL;
	s->current = NULL;
	s->nr = 0;
}

static void side_release(struct side *s)
{
	size_t i;

	side_close(s);
	for (i = 0; i < COMPARE_WINDOW; i++)
		arena_release(&s->window[i].arena);
}

static struct held_event *side_held(struct side *s, size_t nr)
{
	return &s->window[(s->first + nr) % COMPARE_WINDOW];
}

/* The next event, NULL at the end. */
static const struct event *side_head(struct side *s)
{
	return s->nr ? &side_held(s, 0)->ev : s->current;
}

static int side_drop_head(struct side *s, struct err *err)
{
	if (!s->nr)
		return side_step(s, err);
	s->first = (s->first + 1) % COMPARE_WINDOW;
	s->nr--;
	return 0;
}

static int side_fill(struct side *s, unsigned int ignore, struct err *err)
{
	while (s->nr < COMPARE_WINDOW && s->current) {
		struct held_event *held = side_held(s, s->nr);
		int r;

		arena_reset(&held->arena);
		held->ev = *s->current;
		hold_values(&held->arena, held->ev.args, held->ev.row->nr_args);
		held->fingerprint = compare_fingerprint(&held->ev, ignore);
		s->nr++;
		r = side_step(s, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Differences. */

static void report(struct comparison *c, enum difference how, const char *what,
		   const struct event *a, const struct event *b)
{
	c->result->by_kind[how]++;
	if (c->o->found)
		c->o->found(c->o->ctx, how, what, a, b);
}

static void compare_pair(struct comparison *c, const struct event *a, const struct event *b)
{
	enum difference how;
	const char *what;

	if (compare_events(a, b, c->o->ignore, &how, &what))
		report(c, how, what, a, b);
}

/* One event that happens to be equal is no proof that the threads go on alike; two are. */
static bool meets(struct side *a, struct side *b, size_t i, size_t j)
{
	if (side_held(a, i)->fingerprint != side_held(b, j)->fingerprint)
		return false;
	if (i + 1 == a->nr || j + 1 == b->nr)
		return true;
	return side_held(a, i + 1)->fingerprint == side_held(b, j + 1)->fingerprint;
}

/* The nearest place where both agree again: after *ret_i events of a and *ret_j of b. */
static bool find_meeting(struct side *a, struct side *b, size_t *ret_i, size_t *ret_j)
{
	size_t distance, k;

	for (distance = 1; distance < COMPARE_WINDOW; distance++) {
		/* From the diagonal outwards: changed events are likelier than others. */
		for (k = distance + 1; k-- > 0;) {
			if (distance < a->nr && k < b->nr && meets(a, b, distance, k)) {
				*ret_i = distance;
				*ret_j = k;
				return true;
			}
			if (k < a->nr && distance < b->nr && meets(a, b, k, distance)) {
				*ret_i = k;
				*ret_j = distance;
				return true;
			}
		}
	}
	return false;
}

static int drop_heads(struct side *s, size_t nr, struct err *err)
{
	int r = 0;

	while (nr-- > 0 && !r)
		r = side_drop_head(s, err);
	return r;
}

/*
 * What it costs to set events side by side: nothing when they are equal. The
 * same call with other values costs less than one event gone and one come,
 * another call as much.
 */
enum {
	COST_GAP = 2,
	COST_CHANGED = 3,
	COST_OTHER_CALL = 4,
};

static int pair_cost(struct side *a, struct side *b, size_t i, size_t j)
{
	const struct held_event *x = side_held(a, i), *y = side_held(b, j);

	if (x->fingerprint == y->fingerprint)
		return 0;
	return x->ev.row->id == y->ev.row->id ? COST_CHANGED : COST_OTHER_CALL;
}

/* cost[i][j]: of the cheapest way to set a's events from i on beside b's from j on. */
static void find_costs(struct comparison *c, size_t nr_a, size_t nr_b)
{
	size_t i, j;

	for (i = nr_a + 1; i-- > 0;) {
		for (j = nr_b + 1; j-- > 0;) {
			int best = INT_MAX, other;

			if (i < nr_a && j < nr_b)
				best = c->cost[i + 1][j + 1] +
				       pair_cost(&c->side_a, &c->side_b, i, j);
			other = i < nr_a ? c->cost[i + 1][j] + COST_GAP : INT_MAX;
			best = other < best ? other : best;
			other = j < nr_b ? c->cost[i][j + 1] + COST_GAP : INT_MAX;
			best = other < best ? other : best;
			c->cost[i][j] = (uint16_t)(i == nr_a && j == nr_b ? 0 : best);
		}
	}
}

/* Reports the first nr_a events of a against the first nr_b of b, and goes beyond them. */
static int report_stretch(struct comparison *c, size_t nr_a, size_t nr_b)
{
	struct side *a = &c->side_a, *b = &c->side_b;
	size_t i = 0, j = 0;
	int r;

	find_costs(c, nr_a, nr_b);
	while (i < nr_a || j < nr_b) {
		int cost = c->cost[i][j];

		if (i < nr_a && j < nr_b && cost == c->cost[i + 1][j + 1] + pair_cost(a, b, i, j))
			compare_pair(c, &side_held(a, i++)->ev, &side_held(b, j++)->ev);
		else if (i < nr_a && cost == c->cost[i + 1][j] + COST_GAP)
			report(c, DIFFERENCE_MISSING, NULL, &side_held(a, i++)->ev, NULL);
		else
			report(c, DIFFERENCE_EXTRA, NULL, NULL, &side_held(b, j++)->ev);
	}
	r = drop_heads(a, nr_a, c->err);
	return r < 0 ? r : drop_heads(b, nr_b, c->err);
}

static int compare_apart(struct comparison *c)
{
	struct side *a = &c->side_a, *b = &c->side_b;
	size_t i, j;
	int r = side_fill(a, c->o->ignore, c->err);

	if (!r)
		r = side_fill(b, c->o->ignore, c->err);
	if (r < 0)
		return r;
	if (find_meeting(a, b, &i, &j))
		return report_stretch(c, i, j);
	/* Nothing in sight. Half of it, so that what is ahead is looked at again but seldom. */
	i = a->nr < COMPARE_WINDOW / 2 ? a->nr : COMPARE_WINDOW / 2;
	j = b->nr < COMPARE_WINDOW / 2 ? b->nr : COMPARE_WINDOW / 2;
	return report_stretch(c, i, j);
}

static int compare_threads(struct comparison *c)
{
	struct side *a = &c->side_a, *b = &c->side_b;
	int r = 0;

	while (!r) {
		const struct event *x = side_head(a), *y = side_head(b);
		enum difference how;
		const char *what;

		if (!x && !y)
			break;
		if (x && y && compare_events(x, y, c->o->ignore, &how, &what)) {
			r = compare_apart(c);
			continue;
		}
		if (!y)
			report(c, DIFFERENCE_MISSING, NULL, x, NULL);
		else if (!x)
			report(c, DIFFERENCE_EXTRA, NULL, NULL, y);
		if (x)
			r = side_drop_head(a, c->err);
		if (y && !r)
			r = side_drop_head(b, c->err);
	}
	return r;
}

/* Matching threads. */

static void note_lone_thread(struct comparison *c, struct trace *t, uint32_t stream,
			     const char *where)
{
	size_t nr;
	const struct trace_stream_info *info = &trace_streams(t, &nr)[stream];
	char text[128];

	(void)snprintf(text, sizeof(text), "thread %u/%u with %llu events is only in %s", info->pid,
		       info->tid, (unsigned long long)info->nr_events, where);
	if (c->o->noted)
		c->o->noted(c->o->ctx, text);
}

static int compare_matched(struct comparison *c, uint32_t stream_a, uint32_t stream_b)
{
	int r = side_open(&c->side_a, c->a, stream_a, c->o->progress, c->err);

	if (!r)
		r = side_open(&c->side_b, c->b, stream_b, c->o->progress, c->err);
	if (!r)
		r = compare_threads(c);
	side_close(&c->side_a);
	side_close(&c->side_b);
	return r;
}

static uint64_t nr_events_of(struct trace *t, uint32_t stream)
{
	size_t nr;

	return trace_streams(t, &nr)[stream].nr_events;
}

static void report_lone_threads(struct comparison *c, const struct thread_ids *a,
				const struct thread_ids *b)
{
	size_t i;

	for (i = 0; i < b->nr; i++) {
		uint32_t match, stream = b->order[i];

		if (thread_ids_find(a, b, stream, &match))
			continue;
		c->result->nr_threads_b_only++;
		c->result->by_kind[DIFFERENCE_EXTRA] += nr_events_of(c->b, stream);
		note_lone_thread(c, c->b, stream, "the second trace");
	}
}

static int compare_all_threads(struct comparison *c)
{
	struct thread_ids a, b;
	size_t i;
	int r = 0;

	thread_ids_init(&a, c->a, c->o->by_tid);
	thread_ids_init(&b, c->b, c->o->by_tid);
	for (i = 0; i < a.nr && !r; i++) {
		uint32_t match, stream = a.order[i];

		if (thread_ids_find(&b, &a, stream, &match)) {
			r = compare_matched(c, stream, match);
			continue;
		}
		c->result->nr_threads_a_only++;
		c->result->by_kind[DIFFERENCE_MISSING] += nr_events_of(c->a, stream);
		note_lone_thread(c, c->a, stream, "the first trace");
	}
	if (!r)
		report_lone_threads(c, &a, &b);
	thread_ids_release(&a);
	thread_ids_release(&b);
	return r;
}

/* Ledger and trees: no order, so entries are matched by what they are about. */

struct entry {
	uint64_t fingerprint;
	uint64_t count; /* of a minus of b */
	char *text; /* NULL: the key says it */
};

/* Tree entries are about a path of a tree; those of the ledger about all that they say. */
static void entry_key(const struct item *item, uint64_t fingerprint, struct buf *key)
{
	buf_clear(key);
	if (item->row->id == REC_tree_entry) {
		print_value(key, &item->row->args[0], &item->args[0], &print_exact);
		buf_putc(key, ' ');
		print_value(key, &item->row->args[1], &item->args[1], &print_exact);
	} else {
		buf_printf(key, "%s %016llx", item->row->name, (unsigned long long)fingerprint);
	}
}

static struct entry *entry_new(const struct item *item)
{
	struct entry *e = xcalloc(1, sizeof(*e));
	struct buf text = { 0 };

	if (item->row->id != REC_tree_entry) {
		print_item_line(&text, item);
		e->text = xstrdup(buf_str(&text));
	}
	buf_release(&text);
	return e;
}

static int gather_entries(struct trace *t, enum block_type section, unsigned int ignore,
			  struct map *entries, int64_t step, struct err *err)
{
	struct trace_items *it;
	struct buf key = { 0 };
	struct item *item;
	int r = trace_items_open(t, section, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_items_next(it, &item, err)) == 1) {
		uint64_t fingerprint = compare_fingerprint_item(item, ignore);
		struct entry *e;
		void **slot;

		entry_key(item, fingerprint, &key);
		slot = map_slot(entries, key.data, key.len);
		if (!*slot)
			*slot = entry_new(item);
		e = *slot;
		/* Equal entries cancel out; the sum of prints tells whether they were equal. */
		e->count += (uint64_t)step;
		e->fingerprint += (uint64_t)step * fingerprint;
	}
	buf_release(&key);
	trace_items_close(it);
	return r;
}

static void report_entry(struct comparison *c, const char *what, const char *key,
			 const struct entry *e)
{
	struct buf text = { 0 };

	if (!c->o->noted)
		return;
	buf_printf(&text, "%s: %s ", what, e->text ? e->text : key);
	if (!e->count)
		buf_puts(&text, "differs");
	else
		buf_printf(&text, "is only in the %s trace",
			   (int64_t)e->count > 0 ? "first" : "second");
	c->o->noted(c->o->ctx, buf_str(&text));
	buf_release(&text);
}

static int compare_section(struct comparison *c, enum block_type section, const char *what,
			   uint64_t *ret_nr)
{
	struct map entries = { 0 };
	int r = gather_entries(c->a, section, c->o->ignore, &entries, 1, c->err);

	if (!r)
		r = gather_entries(c->b, section, c->o->ignore, &entries, -1, c->err);
	MAP_EACH (&entries, e) {
		struct entry *entry = e->value;

		if (!r && (entry->count || entry->fingerprint)) {
			++*ret_nr;
			report_entry(c, what, e->key, entry);
		}
		free(entry->text);
		free(entry);
	}
	map_release(&entries);
	return r;
}

int compare_traces(struct trace *a, struct trace *b, const struct compare_options *o,
		   struct compare_result *ret, struct err *err)
{
	struct compare_result result = { .nr_events_a = trace_nr_events(a),
					 .nr_events_b = trace_nr_events(b) };
	struct comparison *c = xcalloc(1, sizeof(*c));
	int r;

	c->a = a;
	c->b = b;
	c->o = o;
	c->result = &result;
	c->err = err;
	progress_set_total(o->progress, result.nr_events_a + result.nr_events_b);
	r = compare_all_threads(c);
	if (!r && o->sections)
		r = compare_section(c, BLOCK_LEDGER, "ledger", &result.nr_ledger);
	if (!r && o->sections)
		r = compare_section(c, BLOCK_TREE, "tree", &result.nr_trees);
	side_release(&c->side_a);
	side_release(&c->side_b);
	free(c);
	*ret = result;
	return r;
}
