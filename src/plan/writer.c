/* SPDX-License-Identifier: MIT */
/*
 * Writing a plan. Each lane has a buffer for its next block:
 *
 *   action --(picked, checked, encoded)--> lane's buffer --(full)--> trace_feed_block()
 *
 * The buffers of all lanes together are bounded, so that a compiler's memory
 * does not grow with the lanes that there ever were; and so are blocks, so that
 * a replay can hold one of every lane.
 */
#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/mem.h"
#include "plan/action_check.h"
#include "plan/action_codec.h"
#include "plan/format.h"
#include "plan/pick.h"
#include "plan/source.h"
#include "trace/copy.h"

/* All lanes together may hold this much; each gets its share, within limits. */
#define LANES_BYTES ((size_t)4 << 20)
#define LANE_MIN_BYTES ((size_t)4 << 10)
#define LANE_MAX_BYTES ((size_t)64 << 10)
/* Where so many lanes are alive that the least share of each is more than that, the fullest go first. */
#define LANES_BYTES_MAX (2 * LANES_BYTES)

struct lane {
	struct events_prefix prefix; /* of the block that is being filled */
	struct action_state *state; /* NULL: the block is empty */
	struct buf bytes;
	uint64_t nr_actions;
	uint64_t nr_needed; /* the highest action that an edge names, and one */
};

struct plan_writer {
	char *path;
	struct trace *from;
	enum plan_data data;
	struct trace_writer *writer;
	struct trace_feed *feed;
	struct schema *schema;
	struct picker picker;
	struct arena arena;
	VEC(struct lane) lanes;
	size_t lane_limit_bytes, buffered_bytes;
	uint32_t nr_slots; /* that actions may name */
	struct plan_totals seen;
	uint64_t nr_missing; /* pieces of data that the trace lacks */
};

/* Lanes. */

static void share_out(struct plan_writer *w)
{
	size_t share = LANES_BYTES / (w->lanes.len ? w->lanes.len : 1);

	if (share < LANE_MIN_BYTES)
		share = LANE_MIN_BYTES;
	w->lane_limit_bytes = share < LANE_MAX_BYTES ? share : LANE_MAX_BYTES;
}

uint32_t plan_writer_add_lane(struct plan_writer *w)
{
	struct lane lane = { 0 };

	VEC_PUSH(&w->lanes, lane);
	share_out(w);
	return (uint32_t)(w->lanes.len - 1);
}

void plan_writer_limit_slots(struct plan_writer *w, uint32_t nr)
{
	w->nr_slots = nr;
}

uint64_t plan_writer_nr_actions(const struct plan_writer *w, uint32_t lane)
{
	return w->lanes.items[lane].nr_actions;
}

static void begin_block(struct lane *l, const struct action *a)
{
	l->prefix = (struct events_prefix){ .pid = a->pid,
					    .tid = a->tid,
					    .first_index = l->nr_actions,
					    .first_ns = a->enter_ns,
					    .base_ns = a->enter_ns,
					    .base_seq = a->seq ? a->seq - 1 : 0 };
	l->state = xmalloc(sizeof(*l->state));
	action_state_begin(l->state, &l->prefix);
	(void)buf_reserve(&l->bytes, EVENTS_PREFIX_BYTES);
	l->bytes.len = EVENTS_PREFIX_BYTES;
}

/* The buffer goes too: a lane that has come to its end shall not keep it. */
static void drop_block(struct lane *l)
{
	buf_release(&l->bytes);
	free(l->state);
	l->state = NULL;
}

static int put_block(struct plan_writer *w, uint64_t lane, const struct events_prefix *p,
		     struct buf *bytes)
{
	const struct block_entry e = { .type = BLOCK_ACTIONS,
				       .number = lane,
				       .pid = p->pid,
				       .tid = p->tid,
				       .nr_events = p->nr_events,
				       .first_index = p->first_index,
				       .first_ns = p->first_ns,
				       .last_ns = p->last_ns };

	events_prefix_put(bytes->data, p);
	return trace_feed_block(w->feed, &e, bytes);
}

static int seal_lane(struct plan_writer *w, struct lane *l)
{
	int r;

	if (!l->state)
		return 0;
	r = put_block(w, (uint64_t)(l - w->lanes.items), &l->prefix, &l->bytes);
	w->buffered_bytes -= l->bytes.len;
	drop_block(l);
	return r;
}

/* Those that hold at least half of the mean: together half of all at least. */
static int seal_fullest(struct plan_writer *w)
{
	size_t i, least = w->buffered_bytes / w->lanes.len / 2;
	int r = 0;

	for (i = 0; i < w->lanes.len && !r; i++) {
		if (w->lanes.items[i].bytes.len >= least)
			r = seal_lane(w, &w->lanes.items[i]);
	}
	return r;
}

static int seal_all(struct plan_writer *w)
{
	size_t i;
	int r = 0;

	for (i = 0; i < w->lanes.len && !r; i++)
		r = seal_lane(w, &w->lanes.items[i]);
	return r;
}

/* Values. */

/* 1 and the bytes in *v; 0 when they are not there; -errno. */
static int load_text(struct plan_writer *w, struct value *v, struct err *err)
{
	const struct data *d = v->data;
	uint64_t i, nr = data_nr_pieces(d), done = 0;
	uint8_t *bytes = arena_alloc(&w->arena, d->kept_bytes);
	struct data *copy;

	for (i = 0; i < nr; i++) {
		const uint8_t *piece;
		struct err why;
		size_t len;
		int r = trace_load_piece(w->from, d, i, &piece, &len, &why);

		if (r < 0 && r != -ENODATA && r != -EBADMSG)
			return err_set(err, r, "%s", why.text);
		if (r != 1) {
			w->nr_missing += r < 0;
			return 0;
		}
		memcpy(bytes + done, piece, len);
		done += len;
	}
	copy = arena_alloc(&w->arena, sizeof(*copy));
	*copy = (struct data){ .len_bytes = d->len_bytes, .kept_bytes = done, .bytes = bytes };
	v->data = copy;
	return 1;
}

/* A text of which nothing can be had but its length. */
static void forget_text(struct plan_writer *w, struct value *v)
{
	struct data *copy = arena_alloc(&w->arena, sizeof(*copy));

	*copy = (struct data){ .len_bytes = v->data->len_bytes };
	v->data = copy;
}

/* Bytes that are not of the trace go into the plan's own store. */
static int store_bytes(struct plan_writer *w, struct value *v, struct err *err)
{
	const struct data *d = v->data;
	uint64_t i, nr = data_nr_pieces(d);
	struct blob_ref *refs = arena_alloc(&w->arena, nr * sizeof(*refs));
	struct data *copy = arena_alloc(&w->arena, sizeof(*copy));

	for (i = 0; i < nr; i++) {
		uint64_t from = i * BLOB_MAX_BYTES, len = d->kept_bytes - from;
		int r = trace_feed_blob(w->feed, d->bytes + from,
					len < BLOB_MAX_BYTES ? len : BLOB_MAX_BYTES, &refs[i]);

		if (r < 0)
			return err_set(err, r, "cannot write %s", w->path);
	}
	*copy = (struct data){ .len_bytes = d->len_bytes, .kept_bytes = d->kept_bytes };
	copy->refs = refs;
	v->data = copy;
	return 0;
}

/* Whether there are bytes of it that nobody has. */
static bool is_partial(const struct data *d)
{
	uint64_t i, nr = d->refs ? data_nr_pieces(d) : 0;

	for (i = 0; i < nr; i++) {
		if (!d->refs[i].blob)
			return true;
	}
	return d->kept_bytes < d->len_bytes;
}

/* Data in the shape that it has in a plan. *partial: not all bytes of it are known. */
static int shape_data(struct plan_writer *w, uint8_t kind, struct value *v, bool *partial,
		      struct err *err)
{
	int r;

	if (kind_is_text(kind) && v->data->kept_bytes <= PLAN_TEXT_MAX) {
		r = v->data->refs ? load_text(w, v, err) : 1;
		if (!r)
			forget_text(w, v);
		return r < 0 ? r : 0;
	}
	if (w->data == PLAN_DATA_OWN && v->data->refs) {
		r = trace_copy_values(w->from, w->feed, v, 1, &w->arena, err);
		w->nr_missing += r == 1;
		*partial = *partial || r == 1;
	} else if (w->data == PLAN_DATA_OWN && v->data->kept_bytes > DATA_INLINE_MAX) {
		r = store_bytes(w, v, err);
	} else {
		r = 0;
	}
	*partial = *partial || is_partial(v->data);
	return r < 0 ? r : 0;
}

static int shape_value(struct plan_writer *w, const struct arg *arg, struct value *v, bool *partial,
		       struct err *err);

static int shape_struct(struct plan_writer *w, uint16_t struct_id, struct value *v, bool *partial,
			struct err *err)
{
	struct value *item = v->fields->items;
	uint64_t left;
	int r = 0;

	/* What completions brought is known by its hashes. */
	if (struct_id == STRUCT_io_event || struct_id == STRUCT_io_uring_cqe)
		return 0;
	for (left = v->fields->present; left && !r; left &= left - 1)
		r = shape_value(w, &struct_descs[struct_id].fields[__builtin_ctzll(left)], item++,
				partial, err);
	return r;
}

static int shape_value(struct plan_writer *w, const struct arg *arg, struct value *v, bool *partial,
		       struct err *err)
{
	uint32_t i;
	int r = 0;

	if (v->type == VALUE_DATA)
		return shape_data(w, arg->kind, v, partial, err);
	if (v->type == VALUE_STRUCT)
		return shape_struct(w, arg->struct_id, v, partial, err);
	if (v->type != VALUE_LIST)
		return 0;
	for (i = 0; i < v->count && !r; i++) {
		struct value *item = &v->items[i];

		if (item->type == VALUE_DATA)
			r = shape_data(w, arg->elem, item, partial, err);
		else if (item->type == VALUE_STRUCT)
			r = shape_struct(w, arg->struct_id, item, partial, err);
	}
	return r;
}

static uint64_t cut_time(uint64_t ns)
{
	return ns < PLAN_TIME_MAX ? ns : PLAN_TIME_MAX;
}

/* The action as it will be stored: values picked and in shape, times within bounds. */
static int prepare(struct plan_writer *w, const struct action *from, struct action *a,
		   struct err *err)
{
	bool partial = false;
	unsigned int i;
	int r = 0;

	memcpy(a, from, offsetof(struct action, args));
	a->edges = from->edges;
	a->nr_edges = from->nr_edges;
	picker_args(&w->picker, from->row, from->args, a->args);
	for (i = 0; !r && i < a->row->nr_args; i++)
		r = shape_value(w, &a->row->args[i], &a->args[i], &partial, err);
	if (r < 0)
		return r;
	if (partial)
		a->flags |= ACTION_PARTIAL_DATA;
	a->enter_ns = cut_time(a->enter_ns);
	a->exit_ns = a->exit_ns < a->enter_ns ? a->enter_ns : cut_time(a->exit_ns);
	a->compute_before_ns = cut_time(a->compute_before_ns);
	a->compute_after_ns = cut_time(a->compute_after_ns);
	a->wait_ns = cut_time(a->wait_ns);
	return 0;
}

/* Actions. */

static int refuse_action(struct plan_writer *w, const struct action *a, struct err *err)
{
	const struct loss loss = { .kind = LOSS_EVENT_TOO_LARGE,
				   .pid = a->pid,
				   .tid = a->tid,
				   .count = 1,
				   .from_ns = a->enter_ns,
				   .to_ns = a->exit_ns,
				   .note = a->row->name };
	/* One that is not made, or that failed, changes nothing. */
	bool is_lost = !a->outcome.err && !(a->flags & ACTION_SIMULATED);
	int r = is_lost ? trace_feed_loss(w->feed, &loss) : 0;

	if (r < 0)
		return err_set(err, r, "cannot write %s", w->path);
	return err_set(err, -E2BIG, "%s: a call of %s is too large", w->path, a->row->name);
}

static void note_action(struct plan_writer *w, struct lane *l, const struct action *a,
			const struct action_needs *needs)
{
	struct plan_totals *t = &w->seen;
	uint32_t i;

	l->prefix.nr_events++;
	if (a->enter_ns < l->prefix.first_ns)
		l->prefix.first_ns = a->enter_ns;
	if (a->exit_ns > l->prefix.last_ns)
		l->prefix.last_ns = a->exit_ns;
	l->nr_actions++;
	t->nr_actions++;
	t->nr_edges += a->nr_edges;
	if (needs->nr_slots > t->nr_slots)
		t->nr_slots = needs->nr_slots;
	if (needs->data_bytes > t->max_data_bytes)
		t->max_data_bytes = needs->data_bytes;
	for (i = 0; i < a->nr_edges; i++) {
		struct lane *to = &w->lanes.items[a->edges[i].lane];

		t->has_started_edges = t->has_started_edges || a->edges[i].started;
		if (a->edges[i].nr >= to->nr_needed)
			to->nr_needed = a->edges[i].nr + 1;
	}
}

static int append_action(struct plan_writer *w, uint32_t lane, const struct action *a,
			 struct err *err)
{
	const struct action_limits limits = { .nr_lanes = (uint32_t)w->lanes.len,
					      .nr_slots = w->nr_slots,
					      .max_data_bytes = PLAN_DATA_MAX,
					      .started_edges = true };
	struct lane *l = &w->lanes.items[lane];
	struct action_needs needs;
	size_t before;
	int r = action_check(a, lane, &limits, &needs, err);

	if (r == -E2BIG)
		return refuse_action(w, a, err);
	if (r < 0)
		return err_wrap(err, -EINVAL, "%s: lane %u: action %llu (%s)", w->path, lane,
				(unsigned long long)l->nr_actions, a->row->name);
	if (!l->state) {
		begin_block(l, a);
		w->buffered_bytes += l->bytes.len;
	}
	before = l->bytes.len;
	r = action_put(w->schema, a, l->state, &l->bytes);
	if (r < 0 && !l->prefix.nr_events) {
		w->buffered_bytes -= l->bytes.len;
		drop_block(l);
	}
	if (r == -E2BIG)
		return refuse_action(w, a, err);
	if (r < 0)
		return err_set(err, r, "%s: cannot store a call of %s", w->path, a->row->name);
	w->buffered_bytes += l->bytes.len - before;
	note_action(w, l, a, &needs);
	if (l->bytes.len >= w->lane_limit_bytes)
		r = seal_lane(w, l);
	if (!r && w->buffered_bytes > LANES_BYTES_MAX)
		r = seal_fullest(w);
	return r < 0 ? err_set(err, r, "cannot write %s", w->path) : 0;
}

int plan_writer_action(struct plan_writer *w, uint32_t lane, const struct action *a,
		       struct err *err)
{
	struct action prepared;
	int r;

	if (lane >= w->lanes.len)
		return err_set(err, -EINVAL, "%s: there is no lane %u", w->path, lane);
	if (lane >= PLAN_LANES_MAX)
		return err_set(err, -EINVAL, "%s: more than %d lanes", w->path, PLAN_LANES_MAX);
	if (row_by_id(a->row->id) != a->row)
		return err_set(err, -EOPNOTSUPP, "%s: call %s is not in the table", w->path,
			       a->row->name);
	arena_reset(&w->arena);
	r = prepare(w, a, &prepared, err);
	return r < 0 ? r : append_action(w, lane, &prepared, err);
}

/* Records. */

static bool is_own_key(const void *key, size_t len)
{
	return (len >= strlen(PLAN_KEY_PREFIX) &&
		!memcmp(key, PLAN_KEY_PREFIX, strlen(PLAN_KEY_PREFIX))) ||
	       (len >= strlen(SOURCE_KEY_PATH) &&
		!memcmp(key, SOURCE_KEY_PATH, strlen(SOURCE_KEY_PATH)));
}

/* Metadata is read without the trace, so its text must be in the plan. */
static int load_meta(struct plan_writer *w, struct item *item, struct err *err)
{
	unsigned int i;
	int r = 1;

	for (i = 0; i < item->row->nr_args && r >= 0; i++) {
		struct value *v = &item->args[i];

		if (v->type == VALUE_DATA && v->data->refs)
			r = load_text(w, v, err);
		if (!r)
			forget_text(w, v);
	}
	return r < 0 ? r : 0;
}

int plan_writer_item(struct plan_writer *w, struct item *item, struct err *err)
{
	int r;

	arena_reset(&w->arena);
	if (item->row->id == REC_meta && item->args[0].type == VALUE_DATA &&
	    item->args[0].data->bytes &&
	    is_own_key(item->args[0].data->bytes, item->args[0].data->kept_bytes))
		return 0;
	if (w->data == PLAN_DATA_OWN) {
		r = trace_copy_item(w->from, w->feed, item, &w->arena, err);
		w->nr_missing += r == 1;
		return r < 0 ? r : 0;
	}
	if (row_by_id(item->row->id) != item->row)
		return err_set(err, -EOPNOTSUPP, "record %s is not in the table", item->row->name);
	r = item->row->id == REC_meta ? load_meta(w, item, err) : 0;
	if (r < 0)
		return r;
	r = trace_feed_item(w->feed, item);
	return r < 0 ? err_set(err, r, "cannot write %s", w->path) : 0;
}

int plan_writer_meta(struct plan_writer *w, const char *key, const char *value)
{
	return is_own_key(key, strlen(key)) ? -EINVAL : trace_feed_meta(w->feed, key, value);
}

/* The whole. */

static void writer_free(struct plan_writer *w)
{
	size_t i;

	for (i = 0; i < w->lanes.len; i++)
		drop_block(&w->lanes.items[i]);
	VEC_RELEASE(&w->lanes);
	arena_release(&w->arena);
	schema_free(w->schema);
	free(w->path);
	free(w);
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int put_own_meta(struct plan_writer *w, const char *key, const char *value, struct err *err)
{
	int r = trace_feed_meta(w->feed, key, value);

	return r < 0 ? err_set(err, r, "cannot write %s", w->path) : 0;
}

static int put_source(struct plan_writer *w, struct err *err)
{
	struct buf text = { 0 };
	int r = source_path(trace_path(w->from), &text, err);

	if (!r)
		r = put_own_meta(w, SOURCE_KEY_PATH, buf_str(&text), err);
	if (!r)
		r = source_id(trace_path(w->from), &text, err);
	if (!r)
		r = put_own_meta(w, SOURCE_KEY_ID, buf_str(&text), err);
	buf_release(&text);
	return r;
}

int plan_writer_open(const char *path, struct trace *from,
		     const struct plan_writer_options *options, struct plan_writer **ret,
		     struct err *err)
{
	const struct trace_writer_options how = { .level = options->level,
						  .replace = options->replace,
						  .existing = options->existing,
						  .file_mode = options->file_mode,
						  .no_blobs = options->data == PLAN_DATA_TRACE };
	struct plan_writer *w;
	int r;

	if (plan_is_plan(from))
		return err_set(err, -EINVAL, "%s is a plan already", trace_path(from));
	if (is_same_file(path, trace_path(from)))
		return err_set(err, -EINVAL, "the plan would replace its trace %s", path);
	w = xcalloc(1, sizeof(*w));
	w->path = xstrdup(path);
	w->from = from;
	w->data = options->data;
	w->nr_slots = PLAN_SLOTS_MAX;
	w->schema = schema_new();
	arena_init(&w->arena);
	picker_init(&w->picker, &w->arena);
	share_out(w);
	r = trace_writer_open(path, &how, &w->writer, err);
	if (r < 0) {
		writer_free(w);
		return r;
	}
	w->feed = trace_writer_add_feed(w->writer);
	if (w->data == PLAN_DATA_TRACE)
		r = put_source(w, err);
	if (r < 0) {
		plan_writer_abandon(w);
		return r;
	}
	*ret = w;
	return 0;
}

void plan_writer_abandon(struct plan_writer *w)
{
	if (!w)
		return;
	trace_writer_abandon(w->writer);
	/* Without its end it is of no use to anybody; there is nothing to be done when that fails. */
	(void)unlink(w->path);
	writer_free(w);
}

static int check_totals(const struct plan_writer *w, const struct plan_totals *totals,
			struct err *err)
{
	size_t i;

	if (w->lanes.len > PLAN_LANES_MAX)
		return err_set(err, -EINVAL, "%s: more than %d lanes", w->path, PLAN_LANES_MAX);
	if (totals->nr_slots < w->seen.nr_slots || totals->nr_slots > PLAN_SLOTS_MAX)
		return err_set(err, -EINVAL, "%s: slot %u is in use, %u are stated", w->path,
			       w->seen.nr_slots, totals->nr_slots);
	for (i = 0; i < w->lanes.len; i++) {
		const struct lane *l = &w->lanes.items[i];

		if (l->nr_needed > l->nr_actions)
			return err_set(
				err, -EINVAL,
				"%s: an edge leads to action %llu of lane %zu, which has %llu",
				w->path, (unsigned long long)l->nr_needed - 1, i,
				(unsigned long long)l->nr_actions);
	}
	return 0;
}

static int put_totals(struct plan_writer *w, const struct plan_totals *totals)
{
	struct plan_totals t = *totals;
	char value[32];
	unsigned int i;
	int r = 0;

	t.elapsed_ns = cut_time(t.elapsed_ns);
	t.first_ns = cut_time(t.first_ns);
	t.nr_actions = w->seen.nr_actions;
	t.nr_lanes = (uint32_t)w->lanes.len;
	t.nr_edges = w->seen.nr_edges;
	t.has_started_edges = w->seen.has_started_edges;
	if (t.max_data_bytes < w->seen.max_data_bytes)
		t.max_data_bytes = w->seen.max_data_bytes;
	if (t.max_data_bytes > PLAN_DATA_MAX)
		t.max_data_bytes = PLAN_DATA_MAX;
	for (i = 0; i < PLAN_NR_KEYS && !r; i++) {
		(void)snprintf(value, sizeof(value), "%llu",
			       (unsigned long long)plan_key_get(&t, (enum plan_key_id)i));
		r = trace_feed_meta(w->feed, plan_keys[i].key, value);
	}
	return r;
}

/* A plan without any action must be known as a plan too. */
static int put_empty_block(struct plan_writer *w)
{
	const struct events_prefix none = { 0 };
	struct buf bytes = { 0 };
	int r;

	(void)buf_reserve(&bytes, EVENTS_PREFIX_BYTES);
	bytes.len = EVENTS_PREFIX_BYTES;
	r = put_block(w, 0, &none, &bytes);
	buf_release(&bytes);
	return r;
}

int plan_writer_close(struct plan_writer *w, const struct plan_totals *totals, struct err *err)
{
	const struct loss missing = { .kind = LOSS_BLOB_MISSING,
				      .count = w->nr_missing,
				      .note = "data that the trace lacks" };
	int r = check_totals(w, totals, err);

	if (r < 0)
		goto out;
	r = w->seen.nr_actions ? seal_all(w) : put_empty_block(w);
	if (!r)
		r = put_totals(w, totals);
	if (!r && w->nr_missing)
		r = trace_feed_loss(w->feed, &missing);
	if (r < 0)
		r = err_set(err, r, "cannot write %s", w->path);
out:
	if (r < 0) {
		plan_writer_abandon(w);
		return r;
	}
	r = trace_writer_close(w->writer, err);
	if (r < 0)
		(void)unlink(w->path); /* the failure to write it is the one to tell */
	writer_free(w);
	return r;
}
