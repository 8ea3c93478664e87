/* SPDX-License-Identifier: MIT */
/*
 * usage: meetings_order TRACE
 *
 * Compiles a trace of `meetings` twice, the second time with an order that sees
 * no event before its turn, and counts what happened one after the other in the
 * program and is not ordered by the plan's edges: reads before a meeting with
 * the first read of another thread behind it, and turns that follow each other.
 */
#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "meetings.h"

#define LANES_MAX 16

struct look {
	struct action_ref self;
	int64_t at;
	uint64_t done[LANES_MAX]; /* actions of each lane that are done when it starts */
};

struct lane_looks {
	VEC(struct look) list; /* by number */
};

struct judge {
	struct compile_observer observer;
	struct lane_looks lanes[LANES_MAX];
	VEC(struct look) looks; /* those that say when they were */
};

struct pairs {
	unsigned int all, unordered;
};

static NORETURN void die(const char *why)
{
	fprintf(stderr, "meetings_order: %s\n", why);
	exit(2);
}

static void know(struct look *l, const struct judge *j, const struct action_ref *ref)
{
	const struct look *other;

	if (ref->lane >= LANES_MAX || ref->nr >= j->lanes[ref->lane].list.len)
		die("an edge leads nowhere");
	other = &j->lanes[ref->lane].list.items[ref->nr];
	for (unsigned int i = 0; i < LANES_MAX; i++) {
		if (other->done[i] > l->done[i])
			l->done[i] = other->done[i];
	}
	if (ref->nr + 1 > l->done[ref->lane])
		l->done[ref->lane] = ref->nr + 1;
}

static void see(struct compile_observer *o, const struct compiled *c)
{
	struct judge *j = (struct judge *)o;
	struct look l = { .self = c->self, .at = -1 };
	struct action_ref before = c->self;
	struct lane_looks *lane;

	if (!c->action)
		return;
	if (c->self.lane >= LANES_MAX)
		die("too many lanes");
	lane = &j->lanes[c->self.lane];
	before.nr = lane->list.len - 1;
	if (lane->list.len)
		know(&l, j, &before);
	for (size_t i = 0; i < c->edges->list.len; i++)
		know(&l, j, &c->edges->list.items[i].from);
	/* The number is that of the event's last action. */
	while (lane->list.len <= c->self.nr)
		VEC_PUSH(&lane->list, l);
	if (c->ev->row->id == SC_pread64 && c->ev->outcome.ret == 1) {
		l.at = c->ev->args[3].i;
		VEC_PUSH(&j->looks, l);
	}
}

static void count(struct pairs *p, const struct look *a, const struct look *b)
{
	p->all++;
	p->unordered += b->done[a->self.lane] <= a->self.nr;
}

static struct pairs count_meetings(const struct judge *j)
{
	struct pairs p = { 0 };
	int64_t last_at[LANES_MAX] = { 0 };

	for (size_t i = 0; i < j->looks.len; i++) {
		const struct look *b = &j->looks.items[i];

		if (b->at >= NR_MEETINGS || b->at == last_at[b->self.lane])
			continue;
		last_at[b->self.lane] = b->at;
		for (size_t k = 0; k < i; k++) {
			const struct look *a = &j->looks.items[k];

			if (a->at == b->at - 1 && a->self.lane != b->self.lane)
				count(&p, a, b);
		}
	}
	return p;
}

static struct pairs count_turns(const struct judge *j)
{
	struct pairs p = { 0 };
	const struct look *turns[NR_TURNS] = { 0 };

	for (size_t i = 0; i < j->looks.len; i++) {
		const struct look *l = &j->looks.items[i];

		if (l->at >= TURNS_AT && l->at < TURNS_AT + NR_TURNS)
			turns[l->at - TURNS_AT] = l;
	}
	for (unsigned int i = 1; i < NR_TURNS; i++) {
		if (!turns[i - 1] || !turns[i])
			die("a turn is missing");
		if (turns[i]->self.lane != turns[i - 1]->self.lane)
			count(&p, turns[i - 1], turns[i]);
	}
	return p;
}

static void judge_policy(const char *path, const struct order_policy *policy, const char *name)
{
	struct compile_options o = { .policy = policy, .rules = rules_default };
	struct judge j = { .observer.event = see };
	struct compile_totals totals;
	struct pairs meetings, turns;
	struct trace *t;
	struct err err = { "" };

	if (trace_open(path, 0, &t, &err) < 0 ||
	    compile_trace(t, &o, NULL, &j.observer, &totals, &err) < 0)
		die(err.text);
	meetings = count_meetings(&j);
	turns = count_turns(&j);
	printf("%s meetings %u %u turns %u %u\n", name, meetings.all, meetings.unordered, turns.all,
	       turns.unordered);
	for (unsigned int i = 0; i < LANES_MAX; i++)
		VEC_RELEASE(&j.lanes[i].list);
	VEC_RELEASE(&j.looks);
	trace_close(t);
}

int main(int argc, char **argv)
{
	const struct order_policy *root = order_find("root");
	struct order_policy blind = *root;

	if (argc != 2)
		die("usage: meetings_order TRACE");
	blind.ahead = NULL;
	judge_policy(argv[1], root, "ahead");
	judge_policy(argv[1], &blind, "blind");
	return 0;
}
