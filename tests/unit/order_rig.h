/* SPDX-License-Identifier: MIT */
/*
 * Order policies fed by hand. What they answer is kept, and asked as "must this
 * come before that": by edges and by the order of lanes, in any number of steps.
 *
 * A line of a small trace without a model, in effect order; actions are numbered
 * from 1:
 *
 *   T RES...        an action of thread T, which touches resources
 *   T ENTER-EXIT RES...   the same, with times; else they follow from its number
 *   - N1>F2         name 1 is forgotten into directory 2;  - N1>  into nothing
 *
 *   RES   Kn:HOW  or  Kn:HOW[FROM,TO)
 *   K     N name, F file, G directory (F of another number), D descriptor, O open file,
 *         H handle, M map, A aio, S stream, L locks, T all storage
 *   HOW   c create, d delete, x change, r read, w write, s size read, S size written,
 *         m metadata read, M metadata written, l listed, e entry, o offset, f failed,
 *         y made durable, u used
 *
 * Claims: "1<3 2|3": action 1 must come before 3; 2 and 3 are free of each other.
 *
 * For one test program: include it once, after cmocka.h.
 */
#ifndef UNIT_ORDER_RIG_H
#define UNIT_ORDER_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event_text.h"
#include "order/order.h"

#define RIG_ACTIONS 512
#define RIG_LANES 64
#define RIG_KINDS RES_KIND_MAX
#define RIG_RES 64

struct rig {
	struct order *o;
	struct facts facts;
	struct res res[RIG_KINDS][RIG_RES];
	/* Threads of small traces have the lane of their number; others get one as they come. */
	uint32_t tids[RIG_LANES];
	unsigned int nr_lanes;
	uint64_t nr_in_lane[RIG_LANES];
	struct action_ref last[RIG_LANES];
	bool has_last[RIG_LANES];
	/* Actions, from 1. */
	int nr;
	uint32_t lane[RIG_ACTIONS];
	uint64_t seq[RIG_ACTIONS]; /* of its event */
	int at[RIG_LANES][RIG_ACTIONS]; /* lane and number to action */
	bool before[RIG_ACTIONS][RIG_ACTIONS]; /* closed: before[a][b]: b comes before a */
	bool edge[RIG_ACTIONS][RIG_ACTIONS]; /* a waits for b, as the order said */
	size_t nr_edges;
	bool ahead; /* show events ahead, as a reader of a trace can */
};

static struct rig rig;

static void rig_open_with(const char *policy, const struct order_options *options)
{
	const struct order_policy *p = order_find(policy);
	unsigned int kind, i;

	assert_non_null(p);
	memset(&rig, 0, sizeof(rig));
	rig.o = order_new(p, options);
	for (kind = 0; kind < RIG_KINDS; kind++) {
		for (i = 0; i < RIG_RES; i++)
			rig.res[kind][i] = (struct res){ .id = kind * RIG_RES + i,
							 .kind = (uint8_t)kind,
							 .slot = -1 };
	}
}

static void rig_open(const char *policy, rule_set rules)
{
	struct order_options options = { .rules = rules };

	rig_open_with(policy, &options);
}

static void rig_close(void)
{
	order_free(rig.o);
	VEC_RELEASE(&rig.facts.touches);
	rig.o = NULL;
}

/* b and all that comes before it come before a. */
static void rig_close_over(int a, int b)
{
	int i;

	rig.before[a][b] = true;
	for (i = 1; i < b; i++)
		rig.before[a][i] |= rig.before[b][i];
}

/* Gives the event to the order; the number of the action, 0 when it is none. */
static int rig_event(struct event *ev, uint32_t lane, bool action)
{
	struct order_input in = {
		.ev = ev,
		.facts = &rig.facts,
		.self = { lane, rig.nr_in_lane[lane], ev->enter_ns, ev->exit_ns },
		.last = rig.last[lane],
		.has_last = rig.has_last[lane],
		.action = action,
		.lane_of_child = UINT32_MAX,
	};
	const struct edges *edges = order_event(rig.o, &in);
	bool seen[RIG_LANES] = { false };
	int self;
	size_t i;

	if (!action) {
		assert_int_equal(edges->list.len, 0);
		return 0;
	}
	self = ++rig.nr;
	assert_true(self < RIG_ACTIONS);
	rig.lane[self] = lane;
	rig.seq[self] = ev->seq;
	if (rig.nr_in_lane[lane])
		rig_close_over(self, rig.at[lane][rig.nr_in_lane[lane] - 1]);
	for (i = 0; i < edges->list.len; i++) {
		const struct edge *e = &edges->list.items[i];

		assert_true(e->from.lane < RIG_LANES && e->from.lane != lane);
		assert_true(e->from.nr < rig.nr_in_lane[e->from.lane]);
		assert_true(e->rule < RULE_MAX);
		rig.nr_edges++;
		if (e->started)
			continue;
		assert_false(seen[e->from.lane]);
		seen[e->from.lane] = true;
		rig.edge[self][rig.at[e->from.lane][e->from.nr]] = true;
		rig_close_over(self, rig.at[e->from.lane][e->from.nr]);
	}
	rig.at[lane][rig.nr_in_lane[lane]++] = self;
	rig.last[lane] = in.self;
	rig.has_last[lane] = true;
	return self;
}

static uint32_t rig_how(char c)
{
	static const char letters[] = "cdxrwsSmMleofy";
	static const uint32_t hows[] = {
		TOUCH_CREATE,	 TOUCH_DELETE,	   TOUCH_CHANGE,    TOUCH_READ,	      TOUCH_WRITE,
		TOUCH_SIZE_READ, TOUCH_SIZE_WRITE, TOUCH_META_READ, TOUCH_META_WRITE, TOUCH_LIST,
		TOUCH_ENTRY,	 TOUCH_OFFSET,	   TOUCH_FAILED,    TOUCH_SYNC,
	};
	const char *at = strchr(letters, c);

	if (c == 'u')
		return TOUCH_USE;
	assert_true(c && at);
	return TOUCH_USE | hows[at - letters];
}

static struct res *rig_res(const char *text, char **ret_end)
{
	static const char letters[] = ".FNDOHMASLT"; /* enum res_kind */
	bool directory = *text == 'G';
	const char *kind = strchr(letters, directory ? 'F' : *text);
	unsigned long n;

	assert_true(*text && kind);
	n = strtoul(text + 1, ret_end, 10);
	assert_true(n < RIG_RES);
	if (directory)
		rig.res[kind - letters][n].directory = true;
	return &rig.res[kind - letters][n];
}

static void rig_touch(char *text)
{
	struct touch t = { .how = TOUCH_USE };
	char *end;

	t.res = rig_res(text, &end);
	assert_true(*end++ == ':');
	while (*end && *end != '[')
		t.how |= rig_how(*end++);
	if (*end == '[') {
		t.from = strtoull(end + 1, &end, 10);
		assert_true(*end == ',');
		t.to = end[1] == '*' ? TOUCH_TO_END : strtoull(end + 1, &end, 10);
	}
	VEC_PUSH(&rig.facts.touches, t);
}

static void rig_forget(char *text)
{
	struct res *res, *heir = NULL;
	char *end;

	res = rig_res(text, &end);
	assert_true(*end == '>');
	if (end[1])
		heir = rig_res(end + 1, &end);
	order_forget(rig.o, res, heir);
	assert_null(res->order);
}

/* One line of a small trace. */
UNUSED static int rig_line(const char *line)
{
	struct event ev = { .row = row_by_id(SC_read) };
	char text[512], *word, *save = NULL;
	uint32_t lane;

	(void)snprintf(text, sizeof(text), "%s", line);
	word = strtok_r(text, " ", &save);
	assert_non_null(word);
	if (*word == '-') {
		rig_forget(strtok_r(NULL, " ", &save));
		return 0;
	}
	lane = (uint32_t)strtoul(word, NULL, 10);
	assert_true(lane < RIG_LANES);
	ev.tid = ev.pid = 1000 + lane;
	ev.enter_ns = (uint64_t)rig.nr * 100 + 100;
	ev.exit_ns = ev.enter_ns + 50;
	rig.facts.touches.len = 0;
	while ((word = strtok_r(NULL, " ", &save))) {
		if (*word >= '0' && *word <= '9') {
			ev.enter_ns = strtoull(word, &word, 10);
			assert_true(*word == '-');
			ev.exit_ns = strtoull(word + 1, NULL, 10);
		} else {
			rig_touch(word);
		}
	}
	return rig_event(&ev, lane, true);
}

static void rig_claim(const char *what, int a, char relation, int b)
{
	bool ordered;

	assert_true(a > 0 && a <= rig.nr && b > 0 && b <= rig.nr);
	ordered = rig.before[b][a];
	if (relation == '<' && !ordered)
		fail_msg("%s: %d must come before %d and need not", what, a, b);
	if (relation == '|' && (ordered || rig.before[a][b]))
		fail_msg("%s: %d and %d must be free of each other and are not", what, a, b);
}

static int rig_action(unsigned long n, bool by_seq)
{
	int i;

	for (i = 1; by_seq && i <= rig.nr; i++) {
		if (rig.seq[i] == n)
			return i;
	}
	return by_seq ? 0 : (int)n;
}

static void rig_claims(const char *what, const char *claims, bool by_seq)
{
	const char *at = claims;

	while (*at) {
		char *end;
		unsigned long a = strtoul(at, &end, 10), b;
		char relation = *end;

		assert_true(relation == '<' || relation == '|');
		b = strtoul(end + 1, &end, 10);
		rig_claim(what, rig_action(a, by_seq), relation, rig_action(b, by_seq));
		for (at = end; *at == ' '; at++)
			;
	}
}

/* A small trace, its rules, and what must hold. */
struct rig_case {
	const char *name, *rules, *claims;
	const char *lines[16];
};

UNUSED static void rig_run(const struct rig_case *c)
{
	struct err err = { "" };
	rule_set rules;
	size_t i;

	if (rules_parse(c->rules, &rules, &err) < 0)
		fail_msg("%s: %s", c->name, err.text);
	rig_open("root", rules);
	for (i = 0; i < ARRAY_LEN(c->lines) && c->lines[i]; i++)
		(void)rig_line(c->lines[i]);
	rig_claims(c->name, c->claims, false);
	rig_close();
}

/* Traces as exact text: actions are named by their sequence numbers. */

static uint32_t rig_lane_of(uint32_t tid)
{
	unsigned int i;

	for (i = 0; i < rig.nr_lanes; i++) {
		if (rig.tids[i] == tid)
			return i;
	}
	assert_true(i < RIG_LANES);
	rig.tids[rig.nr_lanes++] = tid;
	return i;
}

static bool rig_is_clone(const struct row *row)
{
	return row->id == SC_clone || row->id == SC_clone3 || row->id == SC_fork ||
	       row->id == SC_vfork;
}

static void rig_text_event(struct event *ev)
{
	bool action = ev->row->sort == ROW_CALL && ev->row->replay != SUPPORT_WAITING &&
		      ev->row->replay != SUPPORT_NOTHING;

	rig.facts.touches.len = 0;
	rig.facts.child_tid = 0;
	if (rig_is_clone(ev->row))
		rig.facts.child_tid = (uint32_t)ev->outcome.ret;
	if (ev->row->id == EV_thread_start)
		rig.facts.child_tid = ev->tid;
	(void)rig_event(ev, rig_lane_of(ev->tid), action);
	if (ev->row->id == EV_thread_exit)
		order_thread_end(rig.o, ev->tid);
}

static int rig_by_effect(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	uint64_t s = event_effect_ns(x), t = event_effect_ns(y);

	if (s != t)
		return s < t ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

#define RIG_EVENTS 128

/*
 * Runs the lines, which may stand in any order that suits the reader, in effect
 * order. Once as they come, or with every event shown ahead.
 */
UNUSED static void rig_run_text(const char *what, bool ahead, rule_set rules,
				const char *const *lines, const char *claims)
{
	struct event events[RIG_EVENTS];
	size_t nr = 0, i, j;

	for (; lines[nr]; nr++) {
		assert_true(nr < RIG_EVENTS);
		events[nr] = event_from_text(lines[nr]);
	}
	qsort(events, nr, sizeof(events[0]), rig_by_effect);
	rig_open("root", rules);
	for (i = 0; i < nr; i++) {
		rig_text_event(&events[i]);
		for (j = i + 1; ahead && j < nr && events[j].tid != events[i].tid; j++)
			;
		if (ahead && j < nr)
			order_ahead(rig.o, &events[j]);
	}
	rig_claims(what, claims, true);
}

#endif
