/* SPDX-License-Identifier: MIT */
/*
 * Reading a plan. Its head is the plan's metadata and the index: how many
 * actions each lane has is known before a block is read, so that every edge can
 * be checked against it as it comes. A lane holds one block.
 */
#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/strings.h"
#include "base/varint.h"
#include "plan/action_check.h"
#include "plan/action_codec.h"
#include "plan/format.h"
#include "plan/source.h"

#define NO_BLOCK UINT32_MAX

/* Our writer's files stay far below; a hostile file shall not take all memory. */
#define LOADED_BYTES_MAX ((uint64_t)1 << 30)

/* What became of an asynchronous request: records.def. */
struct request_outcome {
	uint64_t seq;
	uint32_t tid, number;
	int64_t res;
};

struct lane_info {
	uint32_t first_block, last_block; /* NO_BLOCK: it is empty */
};

struct plan {
	struct trace *t;
	struct trace *source; /* NULL: the data is its own */
	struct plan_totals totals;
	struct lane_info *lanes;
	uint64_t *lane_actions;
	uint32_t *next_of_lane; /* for each block of the container: the next one of its lane */
	struct buf stored; /* a block as it is read, before it is unpacked for its lane */
	uint64_t loaded_bytes; /* by all lanes */
	VEC(struct request_outcome) requests; /* sorted */
};

struct plan_lane {
	struct plan *plan;
	uint32_t lane;
	uint32_t block; /* that is loaded; NO_BLOCK: none yet */
	struct buf payload;
	uint64_t loaded_bytes;
	struct cursor in;
	uint32_t left; /* actions of the block */
	uint64_t nr; /* of the next action */
	int failed; /* 0, or why there is no next one */
	struct action_state state;
	struct arena arena;
	struct action_edges edges;
	struct action action;
};

bool plan_is_plan(struct trace *t)
{
	const struct block_entry *e;
	size_t i, nr;

	e = trace_blocks(t, &nr);
	for (i = 0; i < nr; i++) {
		if (e[i].type == BLOCK_ACTIONS)
			return true;
	}
	return false;
}

/* The head. */

struct head {
	uint64_t values[PLAN_NR_KEYS];
	bool found[PLAN_NR_KEYS];
	struct buf source_path, source_id;
};

/* A key or value of the plan's own: it is short, or at least it stands in the record. */
static bool get_text(const struct value *v, struct buf *ret)
{
	if (v->type != VALUE_DATA || !v->data->bytes || v->data->kept_bytes != v->data->len_bytes)
		return false;
	buf_clear(ret);
	buf_put(ret, v->data->bytes, v->data->kept_bytes);
	return !memchr(buf_str(ret), 0, ret->len);
}

static int take_number(struct plan *p, struct head *h, enum plan_key_id id, const char *text,
		       struct err *err)
{
	if (h->found[id])
		return err_set(err, -EBADMSG, "%s: %s is there twice", trace_path(p->t),
			       plan_keys[id].key);
	if (strings_parse_u64(text, &h->values[id]) < 0 || h->values[id] > plan_keys[id].max)
		return err_set(err, -EBADMSG, "%s: %s is '%s'", trace_path(p->t), plan_keys[id].key,
			       text);
	h->found[id] = true;
	return 0;
}

static int take_meta(struct plan *p, struct head *h, const struct item *item, struct err *err)
{
	struct buf key = { 0 }, value = { 0 };
	unsigned int i;
	int r = 0;

	if (item->row->id != REC_meta || !get_text(&item->args[0], &key) ||
	    !get_text(&item->args[1], &value))
		goto out;
	for (i = 0; i < PLAN_NR_KEYS && !r; i++) {
		if (!strcmp(buf_str(&key), plan_keys[i].key))
			r = take_number(p, h, (enum plan_key_id)i, buf_str(&value), err);
	}
	if (!strcmp(buf_str(&key), SOURCE_KEY_PATH) && !h->source_path.len)
		buf_put(&h->source_path, value.data, value.len);
	if (!strcmp(buf_str(&key), SOURCE_KEY_ID) && !h->source_id.len)
		buf_put(&h->source_id, value.data, value.len);
out:
	buf_release(&key);
	buf_release(&value);
	return r;
}

static int compare_requests(const void *x, const void *y)
{
	const struct request_outcome *a = x, *b = y;

	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static void take_request(struct plan *p, const struct item *item)
{
	const struct value *args = item->args;
	unsigned int i;

	for (i = 0; i < item->row->nr_args; i++) {
		if (args[i].type != VALUE_INT)
			return;
	}
	VEC_PUSH(&p->requests, ((struct request_outcome){ .tid = (uint32_t)args[0].u,
							  .seq = args[1].u,
							  .number = (uint32_t)args[2].u,
							  .res = args[3].i }));
}

bool plan_request_outcome(const struct plan *p, const struct action *a, uint32_t number,
			  int64_t *ret)
{
	const struct request_outcome key = { .seq = a->seq, .tid = a->tid, .number = number };
	const struct request_outcome *found =
		p->requests.len ? bsearch(&key, p->requests.items, p->requests.len, sizeof(key),
					  compare_requests)
				: NULL;

	if (!found)
		return false;
	*ret = found->res;
	return true;
}

static int read_head(struct plan *p, struct head *h, struct err *err)
{
	struct trace_items *it = NULL;
	struct item *item;
	unsigned int i;
	int r = trace_items_open(p->t, BLOCK_META, &it, err);

	while (!r && (r = trace_items_next(it, &item, err)) == 1) {
		if (item->row->id == REC_request_outcome)
			take_request(p, item);
		r = take_meta(p, h, item, err);
	}
	trace_items_close(it);
	if (r < 0)
		return r;
	if (p->requests.len)
		qsort(p->requests.items, p->requests.len, sizeof(*p->requests.items),
		      compare_requests);
	for (i = 0; i < PLAN_NR_KEYS; i++) {
		if (!h->found[i])
			return err_set(err, -EBADMSG, "%s: a plan without %s", trace_path(p->t),
				       plan_keys[i].key);
		plan_key_set(&p->totals, (enum plan_key_id)i, h->values[i]);
	}
	if (h->values[PLAN_KEY_VERSION] != PLAN_VERSION)
		return err_set(err, -EOPNOTSUPP,
			       "%s: version %llu of the plan format, this program reads %d",
			       trace_path(p->t), (unsigned long long)h->values[PLAN_KEY_VERSION],
			       PLAN_VERSION);
	return 0;
}

static int open_source(struct plan *p, struct head *h, struct err *err)
{
	if (!h->source_path.len && !h->source_id.len)
		return 0;
	if (!h->source_path.len || !h->source_id.len)
		return err_set(err, -EBADMSG,
			       "%s: path or id of the trace with its data is missing",
			       trace_path(p->t));
	return source_open(trace_path(p->t), buf_str(&h->source_path), buf_str(&h->source_id),
			   &p->source, err);
}

static int bad_index(struct plan *p, const struct block_entry *e, struct err *err)
{
	return err_set(err, -EBADMSG, "%s: offset %llu: block of lane %llu does not fit the others",
		       trace_path(p->t), (unsigned long long)e->offset,
		       (unsigned long long)e->number);
}

/* Chains the blocks of each lane, and counts its actions. */
static int build_lanes(struct plan *p, struct err *err)
{
	const struct block_entry *e;
	uint64_t sum = 0;
	size_t i, nr;

	e = trace_blocks(p->t, &nr);
	p->lanes = xmalloc(p->totals.nr_lanes * sizeof(*p->lanes));
	p->lane_actions = xcalloc(p->totals.nr_lanes, sizeof(*p->lane_actions));
	p->next_of_lane = xmalloc(nr * sizeof(*p->next_of_lane));
	for (i = 0; i < p->totals.nr_lanes; i++)
		p->lanes[i] = (struct lane_info){ NO_BLOCK, NO_BLOCK };
	for (i = 0; i < nr; i++) {
		struct lane_info *l;

		p->next_of_lane[i] = NO_BLOCK;
		/* The one block of a plan without actions. */
		if (e[i].type != BLOCK_ACTIONS || (!p->totals.nr_actions && !e[i].nr_events))
			continue;
		if (e[i].number >= p->totals.nr_lanes || !e[i].nr_events ||
		    e[i].first_index != p->lane_actions[e[i].number])
			return bad_index(p, &e[i], err);
		l = &p->lanes[e[i].number];
		if (l->first_block == NO_BLOCK)
			l->first_block = (uint32_t)i;
		else
			p->next_of_lane[l->last_block] = (uint32_t)i;
		l->last_block = (uint32_t)i;
		p->lane_actions[e[i].number] += e[i].nr_events;
		sum += e[i].nr_events;
	}
	if (sum != p->totals.nr_actions)
		return err_set(err, -EBADMSG, "%s: has %llu actions, should have %llu",
			       trace_path(p->t), (unsigned long long)sum,
			       (unsigned long long)p->totals.nr_actions);
	return 0;
}

static int open_plan(struct plan *p, const char *path, struct err *err)
{
	struct head h = { 0 };
	int r = trace_open(path, 0, &p->t, err);

	if (!r && !plan_is_plan(p->t))
		r = err_set(err, -EINVAL, "%s is no plan", path);
	if (!r && !trace_footer(p->t))
		r = err_set(err, -EBADMSG, "%s: the plan was not finished, or is damaged", path);
	if (!r)
		r = read_head(p, &h, err);
	if (!r)
		r = build_lanes(p, err);
	if (!r)
		r = open_source(p, &h, err);
	buf_release(&h.source_path);
	buf_release(&h.source_id);
	return r;
}

int plan_open(const char *path, struct plan **ret, struct err *err)
{
	struct plan *p = xcalloc(1, sizeof(*p));
	int r = open_plan(p, path, err);

	if (r < 0) {
		plan_close(p);
		return r;
	}
	*ret = p;
	return 0;
}

void plan_close(struct plan *p)
{
	if (!p)
		return;
	trace_close(p->source);
	trace_close(p->t);
	buf_release(&p->stored);
	free(p->lanes);
	free(p->lane_actions);
	VEC_RELEASE(&p->requests);
	free(p->next_of_lane);
	free(p);
}

struct trace *plan_container(struct plan *p)
{
	return p->t;
}

struct trace *plan_data_source(struct plan *p)
{
	return p->source ? p->source : p->t;
}

const struct plan_totals *plan_totals(const struct plan *p)
{
	return &p->totals;
}

uint64_t plan_lane_nr_actions(const struct plan *p, uint32_t lane)
{
	return lane < p->totals.nr_lanes ? p->lane_actions[lane] : 0;
}

/* Lanes. */

int plan_lane_open(struct plan *p, uint32_t lane, struct plan_lane **ret, struct err *err)
{
	struct plan_lane *l;

	if (lane >= p->totals.nr_lanes)
		return err_set(err, -EINVAL, "%s: there is no lane %u", trace_path(p->t), lane);
	l = xcalloc(1, sizeof(*l));
	l->plan = p;
	l->lane = lane;
	l->block = NO_BLOCK;
	arena_init(&l->arena);
	*ret = l;
	return 0;
}

static void unload(struct plan_lane *l)
{
	l->plan->loaded_bytes -= l->loaded_bytes;
	l->loaded_bytes = 0;
	buf_release(&l->payload);
}

void plan_lane_close(struct plan_lane *l)
{
	if (!l)
		return;
	unload(l);
	arena_release(&l->arena);
	VEC_RELEASE(&l->edges.list);
	free(l);
}

static const struct block_entry *entry_of(const struct plan *p, uint32_t block)
{
	size_t nr;

	return &trace_blocks(p->t, &nr)[block];
}

static bool fits_entry(const struct block_read *b, const struct events_prefix *prefix,
		       const struct block_entry *e)
{
	return b->header.type == BLOCK_ACTIONS && b->header.number == e->number &&
	       prefix->nr_events == e->nr_events && prefix->first_index == e->first_index;
}

static int load_block(struct plan_lane *l, const struct block_entry *e, struct err *err)
{
	struct plan *p = l->plan;
	struct block_read b = { .stored = &p->stored, .plain = &l->payload };
	struct events_prefix prefix;
	int r;

	unload(l);
	r = trace_read_block(p->t, e->offset, &b, err);
	if (r < 0)
		return r;
	if (b.payload == p->stored.data) {
		buf_put(&l->payload, b.payload, b.len);
		b.payload = l->payload.data;
	}
	l->loaded_bytes = l->payload.cap;
	p->loaded_bytes += l->loaded_bytes;
	if (p->loaded_bytes > LOADED_BYTES_MAX)
		return err_set(err, -E2BIG, "%s: the blocks of its lanes take too much memory",
			       trace_path(p->t));
	if (!events_prefix_get(b.payload, b.len, &prefix) || !fits_entry(&b, &prefix, e))
		return err_set(err, -EBADMSG, "%s: offset %llu: malformed block of actions",
			       trace_path(p->t), (unsigned long long)e->offset);
	l->in = (struct cursor){ b.payload + EVENTS_PREFIX_BYTES, b.payload + b.len };
	l->left = prefix.nr_events;
	action_state_begin(&l->state, &prefix);
	return 0;
}

/* 1 when there is an action to decode, 0 at the end, -errno. */
static int next_block(struct plan_lane *l, struct err *err)
{
	struct plan *p = l->plan;
	uint32_t next;
	int r;

	if (l->left)
		return 1;
	if (cursor_left(&l->in))
		return err_set(err, -EBADMSG, "%s: offset %llu: block holds more than it says",
			       trace_path(p->t), (unsigned long long)entry_of(p, l->block)->offset);
	next = l->block == NO_BLOCK ? p->lanes[l->lane].first_block : p->next_of_lane[l->block];
	if (next == NO_BLOCK) {
		unload(l);
		return 0;
	}
	l->block = next;
	r = load_block(l, entry_of(p, next), err);
	return r < 0 ? r : 1;
}

bool plan_lane_awaits_prologue(const struct plan *p, uint32_t lane)
{
	return p->totals.has_prologue && lane && p->lane_actions[0];
}

/* The first action of a lane comes after the prologue: an edge that need not be in the file. */
static void await_prologue(struct plan_lane *l)
{
	const struct plan *p = l->plan;
	struct action_edge e = { .lane = 0 };

	if (!plan_lane_awaits_prologue(p, l->lane))
		return;
	e.nr = p->lane_actions[0] - 1;
	VEC_PUSH(&l->edges.list, e);
	l->action.edges = l->edges.list.items;
	l->action.nr_edges++;
}

/* The next action, decoded and checked. 1, 0 at the end, -errno. */
static int read_action(struct plan_lane *l, struct err *err)
{
	struct plan *p = l->plan;
	const struct action_limits limits = { .nr_lanes = p->totals.nr_lanes,
					      .nr_slots = p->totals.nr_slots,
					      .max_data_bytes = p->totals.max_data_bytes,
					      .started_edges = p->totals.has_started_edges,
					      .lane_actions = p->lane_actions };
	struct action_needs needs;
	int r = next_block(l, err);

	if (r <= 0)
		return r;
	arena_reset(&l->arena);
	if (action_get(trace_schema(p->t), &l->in, &l->state, &l->arena, &l->edges, &l->action))
		r = action_check(&l->action, l->lane, &limits, &needs, err);
	else
		r = err_set(err, -EBADMSG, "malformed");
	if (r < 0)
		return err_wrap(err, r == -E2BIG ? -EBADMSG : r, "%s: lane %u: action %llu",
				trace_path(p->t), l->lane, (unsigned long long)l->nr);
	if (!l->nr)
		await_prologue(l);
	l->left--;
	l->nr++;
	return 1;
}

int plan_lane_next(struct plan_lane *l, const struct action **ret, struct err *err)
{
	int r;

	/* Behind a fault there is nothing that could be trusted. */
	if (l->failed)
		return err_set(err, l->failed, "%s: lane %u could not be read",
			       trace_path(l->plan->t), l->lane);
	r = read_action(l, err);
	if (r < 0)
		l->failed = r;
	else if (r)
		*ret = &l->action;
	return r;
}
