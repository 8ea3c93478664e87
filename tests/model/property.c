/* SPDX-License-Identifier: MIT */
/*
 * What must hold for every program: random ones are run in the model, written as
 * traces, compiled, and their plans performed in the model again, in random
 * orders that the edges allow.
 *
 *   (a) every edge points back in the order of effects
 *   (b) the edges that are kept imply what a naive reading of the rules asks for,
 *       and nothing else
 *   (c) every order that the edges allow gives every action its recorded outcome
 *   (d) with bounds the plan is the same as without any; with very little memory
 *       (a) and (c) hold too, and the edges imply all that they imply with much
 *
 *   property [PROGRAMS [FIRST_SEED]]
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "compile/compile.h"
#include "model/print.h"
#include "plan/plan.h"
#include "program.h"
#include "scratch.h"

#define ORDERS_PER_PROGRAM 4
#define EVENTS_MAX 1024

static void must(int r, const struct err *err)
{
	if (r < 0) {
		printf("# %s\n", err->text);
		abort();
	}
}

/* What the compiler said, event by event. */
struct seen {
	struct action_ref self;
	uint32_t tid;
	struct touch *touches; /* of resources by id: `res` is not valid any more */
	uint64_t *ids;
	uint8_t *kinds;
	size_t nr_touches;
	struct edge *edges;
	size_t nr_edges;
	uint32_t child_tid;
	bool action;
};

struct watcher {
	struct compile_observer observer;
	struct seen seen[EVENTS_MAX];
	size_t nr;
	uint64_t done[64]; /* actions of each lane so far */
	bool forward; /* an edge led to what had not been */
};

static void watch(struct compile_observer *o, const struct compiled *c)
{
	struct watcher *w = (struct watcher *)o;
	struct seen *s = &w->seen[w->nr++];
	size_t n = c->facts->touches.len;

	*s = (struct seen){ .self = c->self, .tid = c->ev->tid, .action = c->action };
	s->child_tid = c->facts->child_tid;
	s->nr_touches = n;
	s->touches = calloc(n + 1, sizeof(*s->touches));
	s->ids = calloc(n + 1, sizeof(*s->ids));
	s->kinds = calloc(n + 1, 1);
	for (size_t i = 0; i < n; i++) {
		s->touches[i] = c->facts->touches.items[i];
		s->ids[i] = s->touches[i].res->id;
		s->kinds[i] = s->touches[i].res->kind;
	}
	s->nr_edges = c->edges->list.len;
	s->edges = calloc(s->nr_edges + 1, sizeof(*s->edges));
	if (s->nr_edges)
		memcpy(s->edges, c->edges->list.items, s->nr_edges * sizeof(*s->edges));
	for (size_t i = 0; i < s->nr_edges; i++) {
		if (s->edges[i].from.nr >= w->done[s->edges[i].from.lane])
			w->forward = true;
	}
	if (c->action)
		w->done[c->self.lane] = c->self.nr + 1;
}

static void watcher_release(struct watcher *w)
{
	for (size_t i = 0; i < w->nr; i++) {
		free(w->seen[i].touches);
		free(w->seen[i].ids);
		free(w->seen[i].kinds);
		free(w->seen[i].edges);
	}
}

/* (b) Reachability as bits: before[j] has bit i when action i must be done before j starts. */

struct reach {
	uint64_t before[EVENTS_MAX][EVENTS_MAX / 64];
};

static bool reach_has(const struct reach *r, size_t i, size_t j)
{
	return r->before[j][i / 64] >> (i % 64) & 1;
}

static void reach_add(struct reach *r, size_t i, size_t j)
{
	if (reach_has(r, i, j))
		return;
	r->before[j][i / 64] |= (uint64_t)1 << (i % 64);
	for (size_t k = 0; k < EVENTS_MAX / 64; k++)
		r->before[j][k] |= r->before[i][k];
}

static bool is_stage_kind(uint8_t kind)
{
	return kind == RES_NAME || kind == RES_FD || kind == RES_HANDLE || kind == RES_MAP;
}

static bool overlap(const struct touch *a, const struct touch *b)
{
	return a->from < b->to && b->from < a->to;
}

static bool either(const struct touch *a, const struct touch *b, uint32_t one, uint32_t other)
{
	return ((a->how & one) && (b->how & other)) || ((b->how & one) && (a->how & other));
}

static bool conflict(uint8_t kind, const struct touch *a, const struct touch *b)
{
	if (is_stage_kind(kind))
		return (a->how | b->how) & TOUCH_STAGE;
	if (kind == RES_OPEN)
		return (a->how & b->how) & TOUCH_OFFSET;
	if (kind != RES_FILE)
		return false;
	if (either(a, b, TOUCH_WRITE, TOUCH_READ | TOUCH_WRITE) && overlap(a, b))
		return true;
	return either(a, b, TOUCH_SIZE_WRITE, TOUCH_SIZE_READ | TOUCH_SIZE_WRITE) ||
	       either(a, b, TOUCH_META_WRITE, TOUCH_META_READ | TOUCH_META_WRITE) ||
	       either(a, b, TOUCH_LIST, TOUCH_ENTRY);
}

static bool syncs(const struct seen *a, size_t i, const struct seen *b, size_t k)
{
	return a->kinds[i] == RES_STORAGE && b->kinds[k] == RES_FILE &&
	       (b->touches[k].how & TOUCH_STORED);
}

static bool conflicts(const struct seen *a, const struct seen *b)
{
	for (size_t i = 0; i < a->nr_touches; i++) {
		for (size_t k = 0; k < b->nr_touches; k++) {
			if (a->ids[i] == b->ids[k] &&
			    conflict(a->kinds[i], &a->touches[i], &b->touches[k]))
				return true;
			if (syncs(a, i, b, k) || syncs(b, k, a, i))
				return true;
		}
	}
	return false;
}

/* Lane order, and that a thread comes after what its maker had done. */
static void reach_given(const struct watcher *w, struct reach *r, size_t j)
{
	for (size_t i = 0; i < j; i++) {
		if (w->seen[i].action && w->seen[i].self.lane == w->seen[j].self.lane)
			reach_add(r, i, j);
	}
}

/* What every earlier action of the maker before the clone, and its makers', is for the thread. */
static void reach_makers(const struct watcher *w, struct reach *r, size_t j, uint32_t tid,
			 size_t until)
{
	for (size_t c = until; c-- > 0;) {
		if (w->seen[c].child_tid != tid || w->seen[c].tid == tid)
			continue;
		for (size_t i = c; i-- > 0;) {
			if (w->seen[i].action && w->seen[i].tid == w->seen[c].tid)
				reach_add(r, i, j);
		}
		reach_makers(w, r, j, w->seen[c].tid, c);
		return;
	}
}

static size_t index_of(const struct watcher *w, const struct action_ref *ref)
{
	for (size_t i = 0; i < w->nr; i++) {
		if (w->seen[i].action && w->seen[i].self.lane == ref->lane &&
		    w->seen[i].self.nr >= ref->nr)
			return i;
	}
	return EVENTS_MAX;
}

static void reach_kept(const struct watcher *w, struct reach *r)
{
	memset(r, 0, sizeof(*r));
	for (size_t j = 0; j < w->nr; j++) {
		if (!w->seen[j].action)
			continue;
		reach_given(w, r, j);
		for (size_t i = 0; i < w->seen[j].nr_edges; i++)
			reach_add(r, index_of(w, &w->seen[j].edges[i].from), j);
	}
}

static void reach_naive(const struct watcher *w, struct reach *r)
{
	memset(r, 0, sizeof(*r));
	for (size_t j = 0; j < w->nr; j++) {
		if (!w->seen[j].action)
			continue;
		reach_given(w, r, j);
		reach_makers(w, r, j, w->seen[j].tid, j);
		for (size_t i = 0; i < j; i++) {
			if (w->seen[i].action && conflicts(&w->seen[i], &w->seen[j]))
				reach_add(r, i, j);
		}
	}
}

/* Whether all that `asked` has is in `kept`. */
static bool reach_covers(const struct watcher *w, const struct reach *kept,
			 const struct reach *asked, const char *what)
{
	for (size_t j = 0; j < w->nr; j++) {
		for (size_t i = 0; i < j; i++) {
			if (!reach_has(asked, i, j) || reach_has(kept, i, j))
				continue;
			printf("# %s: action %zu (lane %u) before %zu (lane %u)\n", what, i + 1,
			       w->seen[i].self.lane, j + 1, w->seen[j].self.lane);
			return false;
		}
	}
	return true;
}

/* (c) A plan in memory, and its performance in the model. */

struct lane_list {
	struct action *actions;
	size_t nr;
};

struct performance {
	struct plan *plan;
	struct lane_list *lanes;
	uint32_t nr_lanes;
	struct arena arena;
};

static void load_lane(struct performance *p, uint32_t lane)
{
	struct lane_list *l = &p->lanes[lane];
	const struct action *a;
	struct plan_lane *reader;
	struct err err = { "" };
	int r;

	l->actions = calloc(plan_lane_nr_actions(p->plan, lane) + 1, sizeof(*l->actions));
	must(plan_lane_open(p->plan, lane, &reader, &err), &err);
	while ((r = plan_lane_next(reader, &a, &err)) > 0) {
		struct action *copy = &l->actions[l->nr++];
		struct action_edge *edges =
			arena_alloc(&p->arena, (a->nr_edges + 1) * sizeof(*edges));

		*copy = *a;
		if (a->nr_edges)
			memcpy(edges, a->edges, a->nr_edges * sizeof(*edges));
		copy->edges = edges;
		for (unsigned int i = 0; i < a->row->nr_args; i++)
			copy->args[i] = value_copy(&p->arena, &a->args[i]);
	}
	must(r, &err);
	plan_lane_close(reader);
}

static void performance_open(struct performance *p, const char *path)
{
	struct err err = { "" };

	memset(p, 0, sizeof(*p));
	arena_init(&p->arena);
	must(plan_open(path, &p->plan, &err), &err);
	must(plan_check(p->plan, NULL, &err), &err);
	p->nr_lanes = plan_totals(p->plan)->nr_lanes;
	p->lanes = calloc(p->nr_lanes + 1, sizeof(*p->lanes));
	for (uint32_t i = 0; i < p->nr_lanes; i++)
		load_lane(p, i);
}

static void performance_close(struct performance *p)
{
	for (uint32_t i = 0; i < p->nr_lanes; i++)
		free(p->lanes[i].actions);
	free(p->lanes);
	plan_close(p->plan);
	arena_release(&p->arena);
}

/* All lanes are threads of one process that share descriptors but not cwd, root and umask. */
static struct fsmodel *stage_open(struct performance *p)
{
	struct fsmodel_options o = { .execute = true, .tree_known = true };
	struct fsmodel *m = fsmodel_new(&o);
	struct event start = { .row = row_by_id(EV_thread_start), .pid = 1, .tid = 1 };
	struct trace_items *it;
	struct item *item;
	struct err err = { "" };

	must(trace_items_open(plan_container(p->plan), BLOCK_TREE, &it, &err), &err);
	while (trace_items_next(it, &item, &err) > 0)
		fsmodel_add_tree(m, item);
	trace_items_close(it);
	start.args[0] = value_int(0);
	start.args[3] = value_int(START_LAUNCH);
	(void)fsmodel_step(m, &start);
	for (uint32_t i = 1; i < p->nr_lanes; i++) {
		struct event ev = { .row = row_by_id(SC_clone), .pid = 1, .tid = 1 };

		ev.outcome.ret = i + 1;
		ev.args[0] = value_uint(CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD);
		(void)fsmodel_step(m, &ev);
	}
	return m;
}

static struct outcome call(struct fsmodel *m, uint32_t lane, unsigned int row,
			   const struct value *args, int64_t wish)
{
	struct event ev = { .row = row_by_id(row), .pid = 1, .tid = lane + 1, .outcome.ret = wish };

	memcpy(ev.args, args, sizeof(ev.args));
	(void)fsmodel_step(m, &ev);
	return ev.outcome;
}

/* What only plans have, by calls. */
static void perform_own(struct fsmodel *m, uint32_t lane, const struct action *a)
{
	struct value args[ROW_ARGS_MAX] = { 0 };

	switch (a->row->id) {
	case EV_plan_handle:
		args[0] = a->args[0];
		args[1] = value_uint(O_PATH | O_DIRECTORY);
		(void)call(m, lane, SC_open, args, a->args[1].i);
		break;
	case EV_plan_cwd:
		args[0] = a->args[0];
		(void)call(m, lane, SC_fchdir, args, -1);
		break;
	case EV_plan_umask:
		args[0] = a->args[0];
		(void)call(m, lane, SC_umask, args, -1);
		break;
	case EV_plan_drop:
		args[0] = a->args[0];
		(void)call(m, lane, SC_close, args, -1);
		break;
	default:
		printf("# no way to perform %s\n", a->row->name);
		abort();
	}
}

static bool makes_handle(const struct row *row)
{
	return row->id == SC_chdir || row->id == SC_fchdir;
}

static bool perform(struct fsmodel *m, uint32_t lane, const struct action *a)
{
	struct value here[ROW_ARGS_MAX] = { 0 };
	struct outcome got;

	if (a->row->sort != ROW_CALL) {
		perform_own(m, lane, a);
		return true;
	}
	got = call(m, lane, a->row->id, a->args,
		   a->row->result == RESULT_NEW_FD ? a->outcome.ret : -1);
	if (makes_handle(a->row) && !got.err && !a->outcome.err) {
		struct arena arena;

		arena_init(&arena);
		here[0] = value_str(&arena, ".");
		here[1] = value_uint(O_PATH | O_DIRECTORY);
		got = call(m, lane, SC_open, here, a->outcome.ret);
		arena_release(&arena);
	}
	if (got.err == a->outcome.err && (got.err || got.ret == a->outcome.ret))
		return true;
	printf("# event %llu, lane %u, %s: %lld (errno %d) instead of %lld (errno %d)\n",
	       (unsigned long long)a->seq, lane, a->row->name, (long long)got.ret, got.err,
	       (long long)a->outcome.ret, a->outcome.err);
	return false;
}

static bool is_ready(const struct action *a, const uint64_t *done)
{
	for (uint32_t i = 0; i < a->nr_edges; i++) {
		if (done[a->edges[i].lane] <= a->edges[i].nr)
			return false;
	}
	return true;
}

/* Some runs prefer one lane for a while: then lanes get far ahead of each other. */
static bool perform_in_random_order(struct performance *p, struct rng *rng)
{
	uint64_t *done = calloc(p->nr_lanes + 1, sizeof(*done));
	struct fsmodel *m = stage_open(p);
	uint64_t left = plan_totals(p->plan)->nr_actions;
	uint32_t favourite = 0;
	bool same = true;

	while (left && same) {
		uint32_t from = rng_below(rng, 4) ? favourite : rng_below(rng, p->nr_lanes), i,
			 lane = 0;

		for (i = 0; i < p->nr_lanes; i++) {
			lane = (from + i) % p->nr_lanes;
			if (done[lane] < p->lanes[lane].nr &&
			    is_ready(&p->lanes[lane].actions[done[lane]], done))
				break;
		}
		if (i == p->nr_lanes) {
			printf("# no lane can go on\n");
			same = false;
			break;
		}
		if (lane != favourite && !rng_below(rng, 3))
			favourite = lane;
		same = perform(m, lane, &p->lanes[lane].actions[done[lane]]);
		done[lane]++;
		left--;
	}
	fsmodel_free(m);
	free(done);
	return same;
}

/* One program. */

/* How much may be remembered; 0: as much as usual. */
static void compile_to(const char *trace, const char *plan, size_t bound, struct watcher *w)
{
	struct compile_options o = { .policy = order_find("root"), .rules = rules_default };
	struct plan_writer_options writer = { .replace = true, .data = PLAN_DATA_TRACE };
	struct compile_totals totals;
	struct plan_writer *pw;
	struct trace *t;
	struct err err = { "" };

	memset(w, 0, sizeof(*w));
	w->observer.event = watch;
	o.max_absent = bound;
	o.max_range_bytes = bound;
	must(trace_open(trace, 0, &t, &err), &err);
	must(plan_writer_open(plan, t, &writer, &pw, &err), &err);
	must(compile_trace(t, &o, pw, &w->observer, &totals, &err), &err);
	must(plan_writer_close(pw, &totals.plan, &err), &err);
	for (unsigned int i = 0; i < CONTRADICTION_MAX; i++) {
		if (totals.model.contradictions[i]) {
			printf("# a contradiction: %s\n", contradiction_names[i]);
			w->forward = true;
		}
	}
	trace_close(t);
}

static bool try_orders(const char *plan, uint64_t seed)
{
	struct rng rng = { .state = seed + 1 };
	struct performance p;
	bool same = true;

	performance_open(&p, plan);
	for (unsigned int i = 0; i < ORDERS_PER_PROGRAM && same; i++)
		same = perform_in_random_order(&p, &rng);
	performance_close(&p);
	return same;
}

static bool same_edges(const struct watcher *a, const struct watcher *b)
{
	size_t i, k;

	for (i = 0; i < a->nr && a->nr == b->nr; i++) {
		const struct seen *x = &a->seen[i], *y = &b->seen[i];

		for (k = 0; k < x->nr_edges && x->nr_edges == y->nr_edges; k++) {
			if (x->edges[k].from.lane != y->edges[k].from.lane ||
			    x->edges[k].from.nr != y->edges[k].from.nr)
				break;
		}
		if (k < x->nr_edges || x->nr_edges != y->nr_edges)
			break;
	}
	if (i == a->nr && a->nr == b->nr)
		return true;
	printf("# event %zu has other edges without bounds\n", i + 1);
	return false;
}

static bool try_little(const char *trace, const char *plan, const struct reach *naive,
		       uint64_t seed)
{
	static struct watcher little;
	static struct reach kept;
	bool good;

	compile_to(trace, plan, 2, &little);
	reach_kept(&little, &kept);
	good = !little.forward && reach_covers(&little, &kept, naive, "lost with little memory") &&
	       try_orders(plan, seed);
	watcher_release(&little);
	return good;
}

static bool try_program(uint64_t seed)
{
	static struct watcher much, all;
	static struct reach kept, naive;
	struct rng rng = { .state = seed * 77 + 5 };
	struct program_options o = { .seed = seed };
	const char *trace = scratch_path("program.trace"), *plan = scratch_path("program.plan");
	bool good;

	o.nr_threads = 1 + rng_below(&rng, 6);
	o.nr_calls = 10 + rng_below(&rng, 150);
	program_write_trace(&o, trace);
	compile_to(trace, plan, 0, &much);
	reach_kept(&much, &kept);
	reach_naive(&much, &naive);
	good = !much.forward && reach_covers(&much, &kept, &naive, "not kept") &&
	       reach_covers(&much, &naive, &kept, "kept without need") && try_orders(plan, seed);
	compile_to(trace, plan, SIZE_MAX, &all);
	good = good && same_edges(&much, &all) && try_little(trace, plan, &naive, seed);
	watcher_release(&all);
	watcher_release(&much);
	if (!good)
		printf("# program with seed %llu: %u threads, %u calls\n", (unsigned long long)seed,
		       o.nr_threads, o.nr_calls);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t nr = argc > 1 ? strtoull(argv[1], NULL, 10) : 300;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, failed = 0;

	printf("1..1\n");
	for (uint64_t i = 0; i < nr && failed < 5; i++)
		failed += !try_program(seed + i);
	printf("%sok 1 - %llu random programs\n", failed ? "not " : "", (unsigned long long)nr);
	return failed != 0;
}
