/* SPDX-License-Identifier: MIT */
#include "compile/compile.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "compile/block.h"
#include "compile/emit.h"
#include "compile/inside.h"
#include "model/uring.h"
#include "order/args.h"

static void forget(void *arg, struct res *res, struct res *heir)
{
	struct compiler *c = arg;

	bytes_forget(&c->bytes, res);
	if (c->observer && c->observer->forget)
		c->observer->forget(c->observer, res);
	order_forget(c->order, res, heir);
}

static const uint8_t *load_piece(void *arg, const struct blob_ref *ref, uint64_t len)
{
	const struct compiler *c = arg;
	struct data d = { .len_bytes = len, .kept_bytes = len, .refs = ref };
	const uint8_t *bytes;
	size_t got;

	return trace_load_piece(c->trace, &d, 0, &bytes, &got, NULL) > 0 ? bytes : NULL;
}

/* Trees. */

static bool is_initial(const struct item *item)
{
	return item->row->id == REC_tree_entry && item->args[0].type == VALUE_INT &&
	       item->args[0].u == 0;
}

/* Walks the records of a section; each() returns 0 or -errno. */
static int each_item(struct compiler *c, enum block_type section,
		     int (*each)(struct compiler *c, struct item *item, struct err *err),
		     struct err *err)
{
	struct trace_items *it;
	struct item *item;
	int r = trace_items_open(c->trace, section, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_items_next(it, &item, err)) > 0) {
		r = each(c, item, err);
		if (r < 0)
			break;
	}
	trace_items_close(it);
	return r;
}

static int see_tree(struct compiler *c, struct item *item, struct err *err)
{
	(void)err;
	c->tree_known |= is_initial(item);
	return 0;
}

static int model_tree(struct compiler *c, struct item *item, struct err *err)
{
	(void)err;
	texts_trim(&c->texts);
	texts_load(&c->texts, c->trace, item->row, item->args);
	fsmodel_add_tree(c->model, item);
	return 0;
}

/* Of a part that ends before the trace does nobody recorded what it left. */
static int copy_item(struct compiler *c, struct item *item, struct err *err)
{
	if (item->row->id == REC_tree_entry && !is_initial(item)) {
		if (c->options->to.at)
			return 0;
		/* What files held at the end has told the order of writes; a replay needs its hash alone. */
		item->args[ENTRY_CONTENT].type = VALUE_NONE;
	}
	return plan_writer_item(c->writer, item, err);
}

static int put_inferred(void *arg, const struct item *item)
{
	struct compiler *c = arg;
	struct item copy = *item;

	tree_count_add(&c->totals->inferred, &item->args[ENTRY_STAT]);
	return c->writer ? plan_writer_item(c->writer, &copy, c->err) : 0;
}

/* Threads. */

static struct thread *thread_by_tid(struct compiler *c, int64_t tid)
{
	for (size_t i = 0; i < c->alive.len; i++) {
		if (c->threads[c->alive.items[i]].tid == (uint32_t)tid)
			return &c->threads[c->alive.items[i]];
	}
	return NULL;
}

/* A clone has returned before the first event of the thread that it began: its lane is waiting. */
static uint32_t take_begun(struct compiler *c, uint32_t tid, struct thread *t)
{
	for (size_t i = 0; i < c->begun.len; i++) {
		if (c->begun.items[i].tid == tid) {
			uint32_t lane = c->begun.items[i].lane;

			t->think.after_ns = c->begun.items[i].inherited_ns;
			t->inherited = true;
			c->begun.items[i] = c->begun.items[--c->begun.len];
			return lane;
		}
	}
	return NO_LANE;
}

static uint32_t begin_lane(struct compiler *c, const struct thread *parent)
{
	size_t before = c->lanes.list.len;
	uint32_t lane = lanes_begin(&c->lanes, c->order, parent ? parent->lane : NO_LANE);

	if (c->writer && c->lanes.list.len > before)
		(void)plan_writer_add_lane(c->writer); /* numbered as ours are */
	return lane;
}

static const struct thread *parent_of(struct compiler *c, const struct event *ev)
{
	if (ev->row->id == EV_thread_start && ev->args[0].type == VALUE_INT && ev->args[0].i > 0)
		return thread_by_tid(c, ev->args[0].i);
	return NULL;
}

static struct thread *thread_of(struct compiler *c, const struct event *ev)
{
	struct thread *t = &c->threads[ev->stream];

	if (t->lane == NO_LANE) {
		t->tid = ev->tid;
		t->pid = ev->pid;
		t->lane = take_begun(c, ev->tid, t);
		if (t->lane == NO_LANE)
			t->lane = begin_lane(c, parent_of(c, ev));
		VEC_PUSH(&c->alive, ev->stream);
	}
	return t;
}

/* The thread's last event has passed. */
static void end_thread(struct compiler *c, uint32_t stream)
{
	struct thread *t = &c->threads[stream];

	for (size_t i = 0; i < c->alive.len; i++) {
		if (c->alive.items[i] == stream) {
			c->alive.items[i] = c->alive.items[--c->alive.len];
			break;
		}
	}
	passing_note_end(c, t);
	order_thread_end(c->order, t->tid);
	lanes_end(&c->lanes, t->lane);
}

/* The lane of the thread that the event began, if its own first event has not come yet. */
static uint32_t lane_of_child(struct compiler *c, const struct thread *parent,
			      const struct facts *facts)
{
	struct thread *child;
	struct begun b = { .tid = facts->child_tid };

	if (!facts->child_tid || facts->child_tid == parent->tid)
		return NO_LANE;
	child = thread_by_tid(c, facts->child_tid);
	if (child)
		return child->lane;
	b.lane = begin_lane(c, parent);
	VEC_PUSH(&c->begun, b);
	return b.lane;
}

/* One event. */

/* Whether the event becomes a call of the plan, given that it can. */
static bool is_wanted(const struct compiler *c, const struct event *ev, const struct facts *facts)
{
	return !c->is_setup || part_needs(ev, facts);
}

/* The lane that the event's actions go to. */
static uint32_t lane_of(struct compiler *c, const struct event *ev, struct thread *t)
{
	c->is_setup = part_is_before(&c->part, c->options, ev);
	if (c->is_setup)
		return PROLOGUE_LANE;
	if (!t->in_part && c->part.begin_ns)
		part_cut_think(&c->part, &t->think);
	t->in_part = true;
	return t->lane;
}

static void count_fate(struct compile_totals *t, enum fate fate)
{
	t->nr_simulated += fate == FATE_SIMULATED;
	t->nr_waiting += fate == FATE_WAITING;
	t->nr_unsupported += fate == FATE_UNSUPPORTED;
}

/* A request is a call of its own. */
static void count_requests(struct compile_totals *t, const struct event *ev)
{
	const struct value *sqes = args_find(ev->row, (struct value *)(uintptr_t)ev->args, "sqes");

	for (uint32_t i = 0; sqes && sqes->type == VALUE_LIST && i < sqes->count; i++)
		t->nr_unsupported += uring_is_unsupported(&sqes->items[i]);
}

/* From one file to another, or within one. */
static bool copies_files(const struct event *ev, const struct facts *facts)
{
	bool reads = false, writes = false;

	for (size_t i = 0; i < facts->touches.len && row_class(ev->row) != C_MAP; i++) {
		const struct touch *t = &facts->touches.items[i];

		reads |= t->res->kind == RES_FILE && (t->how & TOUCH_READ);
		writes |= t->res->kind == RES_FILE && (t->how & TOUCH_WRITE);
	}
	return reads && writes;
}

/* It comes before the end of the call that it happened in. */
static void note_miss(struct compiler *c, struct thread *t, const struct event *ev)
{
	t->has_missed = true;
	t->missed_ns = ev->enter_ns;
	c->totals->nr_cache_misses++;
}

/* It makes nothing, but takes the time that passes after the last call that does. */
static bool is_end_of_all(struct compiler *c, const struct event *ev)
{
	if (ev->row->id == EV_thread_start && event_number(ev, "how") == START_LAUNCH)
		c->launched_tid = ev->tid;
	return ev->row->id == SC_exit_group && ev->tid == c->launched_tid && !c->is_setup;
}

static int finish_event(struct compiler *c, struct event *ev, const struct facts *facts,
			struct err *err)
{
	struct thread *t = thread_of(c, ev);
	uint32_t lane_nr = lane_of(c, ev, t);
	enum fate fate = event_fate(c->model, ev, facts);
	struct order_input in = {
		.ev = ev, .facts = facts, .last = t->last, .has_last = t->has_last
	};
	struct compiled view = { .ev = ev, .facts = facts, .model = c->model };
	struct lane *lane;
	int r = 0;

	in.lane_of_child = lane_of_child(c, t, facts);
	lane = &c->lanes.list.items[lane_nr];
	if (is_end_of_all(c, ev))
		fate = FATE_ACTION;
	c->totals->nr_events++;
	c->reads_unknown = bytes_step(&c->bytes, ev, facts);
	c->totals->nr_unknown_copies +=
		c->reads_unknown && copies_files(ev, facts) && !ev->outcome.err;
	count_fate(c->totals, fate);
	if (ev->row->id == SC_io_uring_enter)
		count_requests(c->totals, ev);
	streams_lose(c->model, ev, facts, fate);
	if (ev->row->id == EV_cache_miss)
		note_miss(c, t, ev);
	if (!is_wanted(c, ev, facts))
		fate = FATE_NOTHING;
	steps_plan(c, ev, facts, fate == FATE_ACTION, lane);
	r = ready_found(c, ev, facts, fate == FATE_ACTION, err);
	if (r < 0)
		return r;
	steps_plan_copies(c, facts);
	steps_plan_drops(c, ev, facts, fate == FATE_ACTION);
	/* All of the plan comes after the prologue: of what is in it the order need not know. */
	in.action = c->steps.len > 0 && !c->is_setup;
	in.self = (struct action_ref){ .lane = c->is_setup ? t->lane : lane_nr,
				       .nr = lane->nr_actions + (in.action ? c->steps.len - 1 : 0),
				       .enter_ns = ev->enter_ns,
				       .exit_ns = ev->exit_ns };
	view.edges = order_event(c->order, &in);
	view.number = c->totals->nr_events;
	view.action = in.action;
	view.enforced = in.action && fate == FATE_ACTION && event_is_enforced(c->model, ev, facts);
	c->totals->nr_enforced += view.enforced;
	view.self = in.self;
	view.self.lane = lane_nr;
	if (c->observer)
		c->observer->event(c->observer, &view);
	r = put_request_ends(c, ev, facts, err);
	if (r < 0)
		return r;
	if (in.action) {
		think_arrive(&t->think, ev);
		r = steps_emit(c, &view, t, err);
		think_leave(&t->think, ev);
		t->last = lane->last = in.self;
		t->has_last = lane->has_last = true;
	} else {
		if (c->steps.len)
			r = steps_emit(c, &view, t, err);
		passing_at_start(c, t, ev);
		passing_to_child(c, t, ev);
		think_pass(&t->think, ev, facts);
		passing_to_waiter(c, t, ev);
	}
	if (++c->nr_seen[ev->stream] == c->streams[ev->stream].nr_events)
		end_thread(c, ev->stream);
	return r;
}

/* Who waits or wakes next in the stream is known to the order from now on. */
static int show_ahead(struct compiler *c, uint32_t stream, struct err *err)
{
	struct event *next;
	int r = c->shows_ahead ? window_ahead(c->window, stream, C_WAIT, &next, err) : 0;

	if (r > 0)
		order_ahead(c->order, next);
	return r;
}

int compile_early(struct compiler *c, struct event *ev, const struct facts *facts, struct err *err)
{
	uint32_t stream = ev->stream;
	int r = finish_event(c, ev, facts, err);

	if (r >= 0)
		r = window_take(c->window, ev, err);
	if (r >= 0)
		r = show_ahead(c, stream, err);
	c->totals->nr_swapped++;
	return r < 0 ? r : 0;
}

static int compile_present(struct compiler *c, struct err *err)
{
	struct event *ev = window_present(c->window);
	const struct facts *facts;
	int r = overlap_know_contests(c, err);

	if (r >= 0)
		r = overlap_let_pass(c, err);
	if (r < 0)
		return r;
	facts = overlap_try(c, ev);
	if (!facts)
		r = overlap_swap(c, &facts, err);
	if (r < 0)
		return r;
	if (!facts) {
		c->totals->nr_unordered += !overlap_in_place(c, ev);
		facts = fsmodel_step(c->model, ev);
	}
	r = finish_event(c, ev, facts, err);
	return r < 0 ? r : show_ahead(c, ev->stream, err);
}

static int compile_events(struct compiler *c, struct err *err)
{
	int r = window_open(c->trace, c->options->progress, &c->window, err);

	if (r < 0)
		return r;
	while ((r = window_next(c->window, err)) > 0) {
		const struct event *ev = window_present(c->window);

		if (part_is_over(c->options, ev))
			return 0;
		/* Behind the event with which the first process begins, where there is one. */
		if (!c->knows_start && ev->row->id != EV_thread_start)
			state_at_start(c, ev);
		r = compile_present(c, err);
		if (r < 0)
			return r;
	}
	return r;
}

/* The whole. */

static int open_model(struct compiler *c, struct err *err)
{
	struct fsmodel_options o = { .forget = forget,
				     .forget_arg = c,
				     .loader = { .load = load_piece, .arg = c },
				     .max_absent = c->options->max_absent };
	struct buf text = { 0 };
	const char *uid;
	int r = each_item(c, BLOCK_TREE, see_tree, err);

	if (r < 0)
		return r;
	/* A listing need not have all that was there: the rest is inferred. */
	if (trace_tree_is_partial(c->trace))
		c->tree_known = false;
	o.tree_known = c->tree_known;
	uid = trace_meta(c->trace, "uid", &text);
	o.uid = uid ? (uint32_t)strtoul(uid, NULL, 10) : 0;
	buf_release(&text);
	c->model = fsmodel_new(&o);
	return each_item(c, BLOCK_TREE, model_tree, err);
}

static int copy_records(struct compiler *c, struct err *err)
{
	int r = each_item(c, BLOCK_META, copy_item, err);

	if (r >= 0)
		r = each_item(c, BLOCK_TREE, copy_item, err);
	if (r >= 0)
		r = each_item(c, BLOCK_LEDGER, copy_item, err);
	return r;
}

static int note_bound(struct compiler *c, const char *key, const struct compile_bound *b)
{
	struct buf text = { 0 };
	int r = 0;

	buf_printf(&text, b->is_event ? "#%llu" : "%lluns", (unsigned long long)b->at);
	if (b->at)
		r = plan_writer_meta(c->writer, key, buf_str(&text));
	buf_release(&text);
	return r;
}

static int note_number(struct compiler *c, const char *key, uint64_t number)
{
	struct buf text = { 0 };
	int r;

	buf_printf(&text, "%llu", (unsigned long long)number);
	r = plan_writer_meta(c->writer, key, buf_str(&text));
	buf_release(&text);
	return r;
}

static int note_order(struct compiler *c)
{
	struct buf rules = { 0 };
	int r = plan_writer_meta(c->writer, "order", c->options->policy->name);

	if (!r && c->totals->nr_cache_misses)
		r = plan_writer_meta(c->writer, PLAN_META_CACHE, "known");
	if (!r && c->totals->nr_unverifiable)
		r = note_number(c, PLAN_META_UNVERIFIABLE, c->totals->nr_unverifiable);
	if (!r && c->totals->nr_unordered)
		r = note_number(c, PLAN_META_UNORDERED, c->totals->nr_unordered);
	if (!r && c->totals->nr_enforced_requests)
		r = note_number(c, PLAN_META_ENFORCED, c->totals->nr_enforced_requests);
	if (!r)
		r = note_bound(c, PLAN_META_PART_FROM, &c->options->from);
	if (!r)
		r = note_bound(c, PLAN_META_PART_TO, &c->options->to);
	rules_print(c->options->rules, &rules);
	if (!r)
		r = plan_writer_meta(c->writer, "rules", buf_str(&rules));
	buf_release(&rules);
	return r;
}

static void close_totals(struct compiler *c)
{
	struct compile_totals *t = c->totals;

	t->order = order_totals(c->order);
	t->model = fsmodel_totals(c->model);
	t->plan.nr_lanes = (uint32_t)c->lanes.list.len;
	t->plan.nr_slots = c->slots.nr;
	t->plan.has_prologue = true;
	t->plan.nr_edges = t->order.nr_edges;
	if (t->plan.nr_actions)
		t->plan.elapsed_ns = c->last_ns - t->plan.first_ns;
}

static int compile_all(struct compiler *c, struct err *err)
{
	int r = c->writer ? copy_records(c, err) : 0;

	if (r >= 0)
		r = open_model(c, err);
	if (r >= 0)
		r = compile_events(c, err);
	if (r >= 0 && c->observer && c->observer->end)
		c->observer->end(c->observer, c->model);
	if (r >= 0 && !c->tree_known)
		r = fsmodel_initial_tree(c->model, put_inferred, c);
	c->totals->nr_unordered += c->contests.nr_unordered;
	if (r >= 0 && c->writer)
		r = note_order(c);
	if (r >= 0)
		close_totals(c);
	return r < 0 ? r : 0;
}

static void compiler_release(struct compiler *c)
{
	window_close(c->window);
	contests_release(&c->contests);
	texts_release(&c->texts);
	fsmodel_free(c->model); /* forgets into the order */
	bytes_release(&c->bytes);
	order_free(c->order);
	slots_release(&c->slots);
	VEC_RELEASE(&c->lanes.list);
	VEC_RELEASE(&c->lanes.idle);
	VEC_RELEASE(&c->alive);
	VEC_RELEASE(&c->begun);
	VEC_RELEASE(&c->ended);
	VEC_RELEASE(&c->steps);
	VEC_RELEASE(&c->edges);
	buf_release(&c->path);
	arena_release(&c->arena);
	free(c->threads);
	free(c->nr_seen);
}

int compile_trace(struct trace *t, const struct compile_options *options, struct plan_writer *w,
		  struct compile_observer *observer, struct compile_totals *ret, struct err *err)
{
	struct order_options order = { .rules = options->rules,
				       .max_range_bytes = options->max_range_bytes };
	struct compiler c = { .trace = t, .options = options, .writer = w, .observer = observer };
	int r;

	if (compile_is_block(t))
		return compile_block(t, options, w, observer, ret, err);
	if (options->policy->block)
		return err_set(err, -EINVAL,
			       "the order '%s' is one of block requests; this trace has none",
			       options->policy->name);
	c.totals = ret;
	c.err = err;
	*ret = (struct compile_totals){ 0 };
	c.streams = trace_streams(t, &c.nr_streams);
	c.threads = xcalloc(c.nr_streams + 1, sizeof(*c.threads));
	c.nr_seen = xcalloc(c.nr_streams + 1, sizeof(*c.nr_seen));
	for (size_t i = 0; i < c.nr_streams; i++)
		c.threads[i].lane = NO_LANE;
	c.lanes.max = options->max_lanes;
	c.lanes.one = options->policy->one_lane;
	lanes_init(&c.lanes);
	if (w)
		(void)plan_writer_add_lane(w);
	c.order = order_new(options->policy, &order);
	c.shows_ahead = options->policy->ahead && c.nr_streams > 1;
	part_init(&c.part, options);
	arena_init(&c.arena);
	r = compile_all(&c, err);
	compiler_release(&c);
	return r;
}
