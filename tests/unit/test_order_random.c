/* SPDX-License-Identifier: MIT */
/*
 * Random traces: what the order says, by its few edges, against a plain and
 * quadratic reading of the rules.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "order_rig.h"
#include "random_event.h"

#define NR_ACTIONS 90
#define MOST_TOUCHES 3

struct action {
	uint32_t lane;
	uint64_t enter_ns, exit_ns;
	struct touch touches[MOST_TOUCHES];
	unsigned int nr_touches;
};

static struct action actions[RIG_ACTIONS];
static uint64_t put[RIG_RES], taken[RIG_RES]; /* bytes that streams were given, and gave */
static bool must[RIG_ACTIONS][RIG_ACTIONS]; /* closed: must[a][b]: b before a */

static bool has(rule_set rules, enum rule rule)
{
	return rules >> rule & 1;
}

static bool crosses(const struct touch *a, const struct touch *b)
{
	return a->from < a->to && b->from < b->to && a->from < b->to && b->from < a->to;
}

static bool against(uint32_t a, uint32_t b, uint32_t read, uint32_t write)
{
	return (a & write && b & (read | write)) || (b & write && a & (read | write));
}

static bool conflict(const struct touch *a, const struct touch *b)
{
	uint32_t h = a->how, i = b->how;

	return (against(h, i, TOUCH_READ, TOUCH_WRITE) && crosses(a, b)) ||
	       against(h, i, TOUCH_SIZE_READ, TOUCH_SIZE_WRITE) ||
	       against(h, i, TOUCH_META_READ, TOUCH_META_WRITE) ||
	       (h & TOUCH_LIST && i & TOUCH_ENTRY) || (i & TOUCH_LIST && h & TOUCH_ENTRY);
}

static bool syncs(const struct touch *a, const struct touch *b)
{
	return a->res->kind == RES_STORAGE && b->res->kind == RES_FILE && b->how & TOUCH_STORED;
}

/* Whether the rules order two touches, of which a came first. */
static bool ordered(rule_set rules, const struct touch *a, const struct touch *b)
{
	bool stage = (a->how | b->how) & TOUCH_STAGE;

	if (has(rules, RULE_file_range) && (syncs(a, b) || syncs(b, a)))
		return true;
	if (a->res != b->res)
		return false;
	switch (a->res->kind) {
	case RES_NAME:
		return has(rules, RULE_path_seq) || (has(rules, RULE_path_stage) && stage);
	case RES_FD:
		return has(rules, RULE_fd_seq) || (has(rules, RULE_fd_stage) && stage);
	case RES_AIO:
		return has(rules, RULE_aio_seq) || (has(rules, RULE_aio_stage) && stage);
	case RES_OPEN:
		return has(rules, RULE_offset_seq) && a->how & b->how & TOUCH_OFFSET;
	case RES_FILE:
		return (has(rules, RULE_file_range) && conflict(a, b)) ||
		       (has(rules, RULE_file_stage) &&
			(a->how | b->how) & (TOUCH_CREATE | TOUCH_DELETE)) ||
		       (has(rules, RULE_file_seq) && !a->res->directory);
	case RES_STREAM:
		return has(rules, RULE_sync_wake) && a->how & TOUCH_WRITE && b->how & TOUCH_READ &&
		       crosses(a, b);
	case RES_LOCKS:
		return has(rules, RULE_sync_wake) &&
		       against(a->how, b->how, TOUCH_READ, TOUCH_WRITE) && crosses(a, b);
	default:
		return false;
	}
}

static bool direct(rule_set rules, const struct action *a, const struct action *b)
{
	unsigned int i, j;

	for (i = 0; i < a->nr_touches; i++) {
		for (j = 0; j < b->nr_touches; j++) {
			if (ordered(rules, &a->touches[i], &b->touches[j]))
				return true;
		}
	}
	return a->lane == b->lane || has(rules, RULE_program_seq);
}

static bool ended_before(rule_set rules, const struct action *a, const struct action *b)
{
	(void)rules;
	return a->lane == b->lane || a->exit_ns <= b->enter_ns;
}

static void close_plainly(int nr, rule_set rules,
			  bool (*is_direct)(rule_set, const struct action *, const struct action *))
{
	int a, b, c;

	memset(must, 0, sizeof(must));
	for (a = 1; a <= nr; a++) {
		for (b = 1; b < a; b++) {
			if (!is_direct(rules, &actions[b], &actions[a]))
				continue;
			must[a][b] = true;
			for (c = 1; c < b; c++)
				must[a][c] |= must[b][c];
		}
	}
}

static struct touch random_touch(struct random *r)
{
	static const uint8_t kinds[] = { RES_NAME, RES_FD,     RES_AIO,	  RES_OPEN, RES_FILE,
					 RES_FILE, RES_STREAM, RES_LOCKS, RES_NAME };
	bool sync = random_below(r, 40) == 0;
	uint8_t kind = kinds[random_below(r, ARRAY_LEN(kinds))];
	struct touch t = { .res = &rig.res[kind][random_below(r, 3)], .how = TOUCH_USE };
	uint64_t n = t.res->id % RIG_RES;

	if (sync)
		return (struct touch){ .res = &rig.res[RES_STORAGE][0], .how = TOUCH_READ };
	if (kind == RES_FILE || kind == RES_LOCKS) {
		if (n == 0 && kind == RES_FILE)
			t.res->directory = true;
		if (n == 0)
			t.how |= random_below(r, 2) ? TOUCH_LIST : TOUCH_ENTRY;
		else
			t.how |= 1u << (4 + random_below(r, 6));
		t.from = random_below(r, 20) * 10;
		t.to = t.from + random_below(r, 4) * 10 + random_below(r, 2) * 5;
		if (random_below(r, 20) == 0)
			t.to = TOUCH_TO_END;
		if (kind == RES_FILE && n && random_below(r, 10) == 0)
			t.how |= random_below(r, 2) ? TOUCH_CREATE : TOUCH_DELETE;
	} else if (kind == RES_STREAM) {
		t.how |= random_below(r, 2) ? TOUCH_WRITE : TOUCH_READ;
		t.from = t.how & TOUCH_WRITE ? put[n] : taken[n];
		t.to = t.from + 1 + random_below(r, 9);
		/* Now and then somebody only looks, or all close it, which puts its end. */
		if (t.how & TOUCH_WRITE && random_below(r, 10) == 0)
			t.to = TOUCH_TO_END;
		else if (t.how & TOUCH_WRITE)
			put[n] = t.to;
		else if (random_below(r, 4))
			taken[n] = t.to < put[n] ? t.to : put[n];
	} else if (kind == RES_OPEN) {
		t.how |= random_below(r, 2) ? TOUCH_OFFSET : 0;
	} else if (random_below(r, 4) == 0) {
		t.how |= 2u << random_below(r, 3);
	}
	return t;
}

/* Effect order is that of the ends here. */
static void act(struct random *r, int n, unsigned int nr_lanes)
{
	struct action *a = &actions[n];
	struct event ev = { .row = row_by_id(SC_read) };
	unsigned int i;

	*a = (struct action){ .lane = (uint32_t)random_below(r, nr_lanes) };
	a->nr_touches = (unsigned int)random_below(r, MOST_TOUCHES + 1);
	a->exit_ns = (uint64_t)n * 100;
	a->enter_ns = a->exit_ns - random_below(r, 500) % a->exit_ns;
	/* A lane does one thing at a time. */
	if (rig.has_last[a->lane] && rig.last[a->lane].exit_ns > a->enter_ns)
		a->enter_ns = rig.last[a->lane].exit_ns;
	rig.facts.touches.len = 0;
	for (i = 0; i < a->nr_touches; i++) {
		a->touches[i] = random_touch(r);
		VEC_PUSH(&rig.facts.touches, a->touches[i]);
	}
	ev.tid = ev.pid = 1000 + a->lane;
	ev.enter_ns = a->enter_ns;
	ev.exit_ns = a->exit_ns;
	assert_int_equal(rig_event(&ev, a->lane, true), n);
}

static void compare(const char *what, int round, int nr, bool exactly)
{
	int a, b;

	for (a = 1; a <= nr; a++) {
		for (b = 1; b < a; b++) {
			if (must[a][b] && !rig.before[a][b])
				fail_msg("%s, round %d: %d must come before %d and need not", what,
					 round, b, a);
			if (exactly && !must[a][b] && rig.before[a][b])
				fail_msg("%s, round %d: %d need not come before %d and must", what,
					 round, b, a);
		}
	}
}

/* No edge says what others say together. */
static void check_no_more(int round, int nr)
{
	int a, b, c;

	for (a = 1; a <= nr; a++) {
		for (b = 1; b < a; b++) {
			for (c = b + 1; rig.edge[a][b] && c < a; c++) {
				if (must[a][c] && must[c][b])
					fail_msg("round %d: %d comes before %d by way of %d", round,
						 b, a, c);
			}
		}
	}
}

static rule_set random_rules(struct random *r)
{
	rule_set rules = (rule_set)random_u64(r) & ((UINT32_C(1) << RULE_MAX) - 1);

	return rules & ~(UINT32_C(1) << RULE_program_seq);
}

static void test_closure(void **state)
{
	struct random r = { .state = 20131103 };
	uint64_t nr_asked = 0, nr_edges = 0;
	int round, n;

	(void)state;
	for (round = 0; round < 4000; round++) {
		rule_set rules = round % 2 ? rules_default : random_rules(&r);
		unsigned int nr_lanes = 2 + (unsigned int)random_below(&r, round % 10 ? 7 : 50);
		struct order_totals t;

		rig_open("root", rules);
		memset(put, 0, sizeof(put));
		memset(taken, 0, sizeof(taken));
		for (n = 1; n <= NR_ACTIONS; n++)
			act(&r, n, nr_lanes);
		close_plainly(NR_ACTIONS, rules, direct);
		compare("root", round, NR_ACTIONS, true);
		check_no_more(round, NR_ACTIONS);
		t = order_totals(rig.o);
		nr_asked += t.nr_asked;
		nr_edges += t.nr_edges;
		rig_close();
	}
	assert_true(nr_edges < nr_asked);
}

/* Many pieces of one file, in many blocks: exactly, or with edges added when there is no room for them. */
static void try_pieces(struct random *r, uint64_t max_range_bytes, int round)
{
	struct order_options options = { .rules = rules_default,
					 .max_range_bytes = max_range_bytes };
	int nr = RIG_ACTIONS - 1, n;

	rig_open_with("root", &options);
	for (n = 1; n <= nr; n++) {
		struct action *a = &actions[n];
		struct event ev = { .row = row_by_id(SC_read) };
		bool write = random_below(r, 4) == 0;

		*a = (struct action){ .lane = (uint32_t)random_below(r, 8), .nr_touches = 1 };
		a->touches[0] = (struct touch){ .res = &rig.res[RES_FILE][1],
						.how = write ? TOUCH_WRITE : TOUCH_READ,
						.from = random_below(r, 4000) * 10 };
		a->touches[0].to = a->touches[0].from + 1 + random_below(r, 100);
		if (random_below(r, 50) == 0)
			a->touches[0].to += random_below(r, 20000);
		rig.facts.touches.len = 0;
		VEC_PUSH(&rig.facts.touches, a->touches[0]);
		ev.tid = ev.pid = 1000 + a->lane;
		ev.enter_ns = ev.exit_ns = (uint64_t)n;
		(void)rig_event(&ev, a->lane, true);
	}
	close_plainly(nr, rules_default, direct);
	compare("pieces", round, nr, !max_range_bytes);
	assert_true(!max_range_bytes == !order_totals(rig.o).nr_forgotten);
	rig_close();
}

static void test_pieces(void **state)
{
	struct random r = { .state = 17 };
	int round;

	(void)state;
	for (round = 0; round < 20; round++) {
		try_pieces(&r, 0, round);
		try_pieces(&r, 5000, round);
		try_pieces(&r, 1, round);
	}
}

/* One action of a lane on a file; the number of edges that it got. */
static size_t touch_file(uint32_t lane, uint64_t nr, uint32_t how, uint64_t from, uint64_t to)
{
	struct event ev = { .row = row_by_id(SC_read), .tid = 1 + lane };
	struct order_input in = { .ev = &ev, .facts = &rig.facts, .action = true };
	struct touch t = { .res = &rig.res[RES_FILE][1], .how = how, .from = from, .to = to };

	in.self = (struct action_ref){ .lane = lane, .nr = nr };
	rig.facts.touches.len = 0;
	VEC_PUSH(&rig.facts.touches, t);
	return order_event(rig.o, &in)->list.len;
}

/* A file in very many pieces that is read whole again and again: the work is bounded, no order is lost. */
static void test_visits(void **state)
{
	uint64_t nr_pieces = 20000, i, nr = 0;

	(void)state;
	rig_open("root", rules_default);
	for (i = 0; i < nr_pieces; i++)
		(void)touch_file(0, i, TOUCH_WRITE, i * 2, i * 2 + 1);
	for (i = 0; i < 100; i++)
		assert_int_equal(touch_file(1, nr++, TOUCH_READ, 0, TOUCH_TO_END), i == 0);
	assert_int_equal(order_totals(rig.o).nr_forgotten, 0);
	for (i = 0; i < 20000; i++)
		(void)touch_file(1, nr++, TOUCH_READ, 0, TOUCH_TO_END);
	assert_true(order_totals(rig.o).nr_forgotten >= nr_pieces);
	(void)touch_file(2, 0, TOUCH_READ, 0, 1);
	assert_true(order_implied(rig.o, 2, &(struct action_ref){ .lane = 0, .nr = 0 }));
	(void)touch_file(3, 0, TOUCH_WRITE, 0, 1);
	assert_true(order_implied(rig.o, 3, &(struct action_ref){ .lane = 1, .nr = nr - 1 }));
	assert_true(order_implied(rig.o, 3, &(struct action_ref){ .lane = 2, .nr = 0 }));
	rig_close();
}

static void test_overlap(void **state)
{
	struct random r = { .state = 99 };
	int round, n;

	(void)state;
	for (round = 0; round < 500; round++) {
		rig_open("overlap", 0);
		for (n = 1; n <= NR_ACTIONS; n++)
			act(&r, n, 2 + (unsigned int)round % 20);
		close_plainly(NR_ACTIONS, 0, ended_before);
		compare("overlap", round, NR_ACTIONS, true);
		rig_close();
	}
}

/* Like overlap, and one edge more that waits for a start: of the last to begin before. */
static void test_temporal(void **state)
{
	struct random r = { .state = 98 };
	int round, n;

	(void)state;
	for (round = 0; round < 500; round++) {
		struct order_totals t;

		rig_open("temporal", 0);
		for (n = 1; n <= NR_ACTIONS; n++)
			act(&r, n, 2 + (unsigned int)round % 20);
		close_plainly(NR_ACTIONS, 0, ended_before);
		t = order_totals(rig.o);
		assert_int_equal(t.by_rule[RULE_temporal], t.nr_edges);
		rig_close();
	}
	rig_open("temporal", 0);
	(void)rig_line("1 100-200 F1:u");
	(void)rig_line("2 150-300 F2:u"); /* started after 1 started */
	assert_int_equal(rig.nr_edges, 1);
	(void)rig_line("3 400-500 F3:u"); /* after both are done */
	(void)rig_line("1 410-510 F3:u"); /* after 2 is done, and 3 has started */
	rig_claims("temporal", "1|2 1<3 2<3 1<4 2<4 3|4", false);
	assert_int_equal(order_totals(rig.o).by_rule[RULE_temporal], rig.nr_edges);
	rig_close();
}

/* A started edge says more than it seems: all before it in its lane is done, and all that waited for. */
static void test_started(void **state)
{
	struct event ev = { .row = row_by_id(SC_read) };
	struct order_input in = { .ev = &ev, .facts = &rig.facts, .action = true };
	const struct edges *edges;

	(void)state;
	rig_open("temporal", 0);
	(void)rig_line("1 100-200");
	(void)rig_line("2 300-310"); /* after 1 */
	(void)rig_line("2 320-400");
	ev.tid = ev.pid = 1003;
	ev.enter_ns = 350;
	ev.exit_ns = 410;
	in.self = (struct action_ref){ 3, 0, 350, 410 };
	edges = order_event(rig.o, &in);
	/* What it waits for besides is the end of 2's first, of which the start of its second tells. */
	assert_int_equal(edges->list.len, 2);
	assert_false(edges->list.items[0].started);
	assert_int_equal(edges->list.items[0].from.lane, 2);
	assert_int_equal(edges->list.items[0].from.nr, 0);
	assert_true(edges->list.items[1].started);
	assert_int_equal(edges->list.items[1].from.lane, 2);
	assert_int_equal(edges->list.items[1].from.nr, 1);
	assert_true(order_implied(rig.o, 3, &(struct action_ref){ .lane = 1, .nr = 0 }));
	assert_false(order_implied(rig.o, 3, &(struct action_ref){ .lane = 2, .nr = 1 }));
	rig_close();
}

/* Long traces: histories and logs are bounded, and what they forget costs edges, not order. */
static void test_long(void **state)
{
	static const char *const policies[] = { "root", "overlap", "temporal" };
	struct random r = { .state = 5 };
	size_t p;
	int i;

	(void)state;
	for (p = 0; p < ARRAY_LEN(policies); p++) {
		uint64_t nr[40] = { 0 }, last_exit_ns[40] = { 0 };
		struct order_totals t;

		rig_open(policies[p], rules_default);
		for (i = 1; i < 60000; i++) {
			uint32_t lane = (uint32_t)random_below(&r, 40);
			struct event ev = { .row = row_by_id(SC_read),
					    .tid = 1 + lane,
					    .exit_ns = (uint64_t)i * 10 };
			struct order_input in = { .ev = &ev, .facts = &rig.facts, .action = true };
			const struct edges *edges;
			size_t n;

			ev.enter_ns = ev.exit_ns - random_below(&r, 50);
			if (ev.enter_ns < last_exit_ns[lane])
				ev.enter_ns = last_exit_ns[lane];
			/* One that takes very long. */
			if (lane == 0)
				ev.enter_ns = last_exit_ns[0];
			in.self = (struct action_ref){ lane, nr[lane], ev.enter_ns, ev.exit_ns };
			rig.facts.touches.len = 0;
			VEC_PUSH(&rig.facts.touches, random_touch(&r));
			edges = order_event(rig.o, &in);
			assert_true(edges->list.len <= 40);
			for (n = 0; n < edges->list.len; n++)
				assert_true(edges->list.items[n].from.nr <
					    nr[edges->list.items[n].from.lane]);
			nr[lane]++;
			last_exit_ns[lane] = ev.exit_ns;
		}
		t = order_totals(rig.o);
		assert_true(t.nr_edges > 1000 && t.nr_edges <= t.nr_asked);
		rig_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closure),	 cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_visits),	 cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_temporal), cmocka_unit_test(test_started),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, event_text_setup, event_text_teardown);
}
