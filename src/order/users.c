/* SPDX-License-Identifier: MIT */
#include "order/users.h"

#include <stdlib.h>
#include <string.h>

#include "order/threads.h"

/* Room that a set keeps when it is emptied; more is given back. */
#define KEEP_CAP 4

struct user user_from_ref(const struct action_ref *ref)
{
	struct user u = { .lane = ref->lane, .nr = ref->nr, .enter_ns = ref->enter_ns };
	uint64_t took = ref->exit_ns > ref->enter_ns ? ref->exit_ns - ref->enter_ns : 0;

	if (took < USER_TOOK_COARSE)
		u.took = (uint32_t)took;
	else if (took >> 10 < USER_TOOK_COARSE)
		u.took = USER_TOOK_COARSE | (uint32_t)(took >> 10);
	else
		u.took = UINT32_MAX;
	return u;
}

struct action_ref user_to_ref(const struct user *u)
{
	return (struct action_ref){
		.lane = u->lane,
		.nr = u->nr,
		.enter_ns = u->enter_ns,
		.exit_ns = user_exit_ns(u),
	};
}

/* Where the lane is, or would be. */
static uint32_t find(const struct user *items, uint32_t nr, uint32_t lane)
{
	uint32_t low = 0, high = nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (items[middle].lane < lane)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void grow(struct users *s)
{
	uint32_t cap = s->cap ? s->cap * 2 : KEEP_CAP;
	struct user *items;

	if (s->cap) {
		items = xrealloc(s->many, cap * sizeof(*items));
	} else {
		items = xmalloc(cap * sizeof(*items));
		items[0] = s->one;
	}
	s->many = items;
	s->cap = cap;
}

void users_add(struct users *s, const struct user *u)
{
	struct user *items = s->cap ? s->many : &s->one;
	uint32_t at;

	if (!user_is(u))
		return;
	at = find(items, s->nr, u->lane);
	if (at < s->nr && items[at].lane == u->lane) {
		if (u->nr >= items[at].nr)
			items[at] = *u;
		return;
	}
	if (s->nr == (s->cap ? s->cap : 1)) {
		grow(s);
		items = s->many;
	}
	memmove(items + at + 1, items + at, (s->nr - at) * sizeof(*items));
	items[at] = *u;
	s->nr++;
}

void users_add_all(struct users *s, const struct users *from)
{
	const struct user *items = users_items(from);
	uint32_t i;

	for (i = 0; i < from->nr; i++)
		users_add(s, &items[i]);
}

void users_clear(struct users *s)
{
	if (s->cap > KEEP_CAP)
		users_release(s);
	s->nr = 0;
}

void users_release(struct users *s)
{
	if (s->cap)
		free(s->many);
	*s = (struct users){ 0 };
}

void users_copy(struct users *to, const struct users *from)
{
	*to = (struct users){ .nr = from->nr };
	if (from->nr <= 1) {
		to->one = users_items(from)[0];
		return;
	}
	to->cap = from->nr;
	to->many = xmalloc(to->cap * sizeof(*to->many));
	memcpy(to->many, from->many, to->nr * sizeof(*to->many));
}

bool users_equal(const struct users *a, const struct users *b)
{
	const struct user *x = users_items(a), *y = users_items(b);
	uint32_t i;

	if (a->nr != b->nr)
		return false;
	for (i = 0; i < a->nr; i++) {
		if (x[i].lane != y[i].lane || x[i].nr != y[i].nr)
			return false;
	}
	return true;
}

/* The action before it in its lane, which was over when it began. */
static struct user user_before(const struct user *u)
{
	return u->nr ? (struct user){ .nr = u->nr - 1, .enter_ns = u->enter_ns, .lane = u->lane }
		     : user_nobody();
}

static void ask_before(const struct sink *sink, const struct user *u, enum rule rule)
{
	struct sink all = *sink;
	struct user before = user_before(u);

	all.only_over = false;
	if (u->enter_ns <= sink->over_by_ns)
		sink_ask(&all, &before, rule);
}

void sink_ask(const struct sink *sink, const struct user *u, enum rule rule)
{
	if (!user_is(u) || u->lane == sink->lane)
		return;
	if (sink->only_over && user_exit_ns(u) > sink->over_by_ns) {
		ask_before(sink, u, rule);
		return;
	}
	if (sink->out)
		VEC_PUSH(&sink->out->list,
			 ((struct edge){ .from = user_to_ref(u),
					 .rule = (uint8_t)rule,
					 .started = sink->started_since_ns &&
						    user_exit_ns(u) >= sink->started_since_ns }));
	else
		users_add(&sink->thread->pending, u);
}

void sink_ask_all(const struct sink *sink, const struct users *s, enum rule rule)
{
	const struct user *items = users_items(s);
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		sink_ask(sink, &items[i], rule);
}

void rw_release(struct rw *rw)
{
	users_release(&rw->readers);
}

void rw_read(struct rw *rw, const struct user *self, const struct sink *sink, enum rule rule)
{
	sink_ask(sink, &rw->writer, rule);
	users_add(&rw->readers, self);
}

void rw_write(struct rw *rw, const struct user *self, const struct sink *sink, enum rule rule)
{
	/* Readers have waited for the writer, so they say it all; but those of this lane are no edges. */
	sink_ask(sink, &rw->writer, rule);
	sink_ask_all(sink, &rw->readers, rule);
	if (!user_is(self))
		return;
	rw->writer = *self;
	users_clear(&rw->readers);
}

void rw_next(struct rw *rw, const struct user *self, const struct sink *sink, enum rule rule)
{
	sink_ask(sink, &rw->writer, rule);
	if (user_is(self))
		rw->writer = *self;
}
