/* SPDX-License-Identifier: MIT */
#include "order/range.h"

#include <stdlib.h>
#include <string.h>

static void piece_release(struct piece *p)
{
	users_release(&p->writers);
	users_release(&p->readers);
}

void ranges_release(struct ranges *r)
{
	uint32_t i;

	for (i = 0; i < r->nr; i++)
		piece_release(&r->pieces[i]);
	for (i = 0; r->past && i < RANGE_PAST_SETS; i++) {
		users_release(&r->past[i].writers);
		users_release(&r->past[i].readers);
	}
	free(r->past);
	free(r->pieces);
	*r = (struct ranges){ 0 };
}

/* The first piece that ends behind pos. */
static uint32_t find(const struct ranges *r, uint64_t pos)
{
	uint32_t low = 0, high = r->nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r->pieces[middle].to <= pos)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A new piece at i that nobody has used. */
static struct piece *insert(struct ranges *r, uint32_t i, uint64_t from, uint64_t to)
{
	if (r->nr == r->cap) {
		r->cap = r->cap ? r->cap * 2 : 1;
		r->pieces = xrealloc(r->pieces, r->cap * sizeof(*r->pieces));
	}
	memmove(r->pieces + i + 1, r->pieces + i, (r->nr - i) * sizeof(*r->pieces));
	r->nr++;
	r->pieces[i] = (struct piece){ .from = from, .to = to, .stamp = r->clock };
	return &r->pieces[i];
}

/* Piece i becomes two that meet at pos. */
static void split(struct ranges *r, uint32_t i, uint64_t pos)
{
	struct piece *upper = insert(r, i + 1, pos, r->pieces[i].to), *lower = upper - 1;

	lower->to = pos;
	upper->stamp = lower->stamp;
	users_copy(&upper->writers, &lower->writers);
	users_copy(&upper->readers, &lower->readers);
}

/* The sets of the past that a range belongs to: so many from the first one on, in a circle. */
static uint32_t past_sets(uint64_t from, uint64_t to, uint32_t *ret_first)
{
	uint64_t first = from / RANGE_PAST_BYTES, last = (to - 1) / RANGE_PAST_BYTES;

	*ret_first = first % RANGE_PAST_SETS;
	return last - first < RANGE_PAST_SETS ? (uint32_t)(last - first) + 1 : RANGE_PAST_SETS;
}

static void to_past(struct ranges *r, struct piece *p)
{
	uint32_t first, nr = past_sets(p->from, p->to, &first), i;

	if (!r->past)
		r->past = xcalloc(RANGE_PAST_SETS, sizeof(*r->past));
	for (i = 0; i < nr; i++) {
		struct past_use *past = &r->past[(first + i) % RANGE_PAST_SETS];

		users_add_all(&past->writers, &p->writers);
		users_add_all(&past->readers, &p->readers);
	}
	piece_release(p);
}

static void ask_past(const struct ranges *r, uint64_t from, uint64_t to, const struct sink *sink,
		     enum rule rule, bool readers_too)
{
	uint32_t first, nr, i;

	if (!r->past)
		return;
	nr = past_sets(from, to, &first);
	for (i = 0; i < nr; i++) {
		const struct past_use *past = &r->past[(first + i) % RANGE_PAST_SETS];

		sink_ask_all(sink, &past->writers, rule);
		if (readers_too)
			sink_ask_all(sink, &past->readers, rule);
	}
}

static bool has_many_users(const struct ranges *r)
{
	uint64_t nr = 0;
	uint32_t i;

	for (i = 0; i < r->nr; i++)
		nr += r->pieces[i].writers.cap + r->pieces[i].readers.cap;
	return r->nr > 1 && nr > RANGE_USERS_MAX;
}

/* What was not used in the last quarter of the time that the pieces span. */
static void drop_old(struct ranges *r)
{
	uint64_t oldest = r->clock, limit;
	uint32_t kept = 0, i;

	for (i = 0; i < r->nr; i++) {
		if (r->pieces[i].stamp < oldest)
			oldest = r->pieces[i].stamp;
	}
	limit = oldest + (r->clock - oldest) / 4 * 3;
	for (i = 0; i < r->nr; i++) {
		if (r->pieces[i].stamp <= limit)
			to_past(r, &r->pieces[i]);
		else
			r->pieces[kept++] = r->pieces[i];
	}
	r->nr = kept;
}

static void keep_small(struct ranges *r)
{
	/* Users are counted now and then only: they stay near their bound. */
	if (r->nr > RANGE_PIECES_MAX || (r->clock % 64 == 0 && has_many_users(r)))
		drop_old(r);
}

static bool same_writer(const struct piece *a, const struct piece *b)
{
	const struct user *u = users_items(&a->writers), *v = users_items(&b->writers);

	return a->writers.nr == b->writers.nr &&
	       (a->writers.nr == 0 || (a->writers.nr == 1 && u->lane == v->lane && u->nr == v->nr));
}

/* Whether the piece is this lane's alone, but for the writer whom a reader has waited for. */
static bool is_run_of(const struct piece *p, const struct users *self, bool write)
{
	const struct users *mine = write ? &p->writers : &p->readers;

	return self->nr == 1 && mine->nr == 1 &&
	       users_items(mine)->lane == users_items(self)->lane && (!write || !p->readers.nr);
}

/*
 * A lane that goes on where it stopped: its piece grows, at the cost of the next
 * one if there is one. Whoever later conflicts with the first bytes of the run
 * waits for the end of the run so far; that costs less than a piece for every
 * read of every file that is read from end to end.
 */
static bool run_on(struct ranges *r, uint64_t from, uint64_t to, const struct users *self,
		   const struct sink *sink, enum rule rule, bool write)
{
	uint32_t i = find(r, from);
	struct piece *p, *next;

	if (i == 0)
		return false;
	p = &r->pieces[i - 1];
	next = i < r->nr && r->pieces[i].from < to ? &r->pieces[i] : NULL;
	if (p->to != from || p->stamp != r->clock || to - p->from > RANGE_RUN_BYTES ||
	    !is_run_of(p, self, write))
		return false;
	if (next && (next->from != from || next->to < to))
		return false;
	if (!write && (next ? next->readers.nr || !same_writer(p, next) : p->writers.nr))
		return false;
	ask_past(r, from, to, sink, rule, write);
	if (next && write) {
		sink_ask_all(sink, &next->writers, rule);
		sink_ask_all(sink, &next->readers, rule);
	}
	p->to = to;
	p->stamp = ++r->clock;
	users_add_all(write ? &p->writers : &p->readers, self);
	if (next && next->to == to) {
		piece_release(next);
		memmove(next, next + 1, (r->nr - i - 1) * sizeof(*next));
		r->nr--;
	} else if (next) {
		next->from = to;
	}
	return true;
}

static void ask_range(const struct ranges *r, uint64_t from, uint64_t to, const struct sink *sink,
		      enum rule rule, bool readers_too)
{
	uint32_t i;

	ask_past(r, from, to, sink, rule, readers_too);
	for (i = find(r, from); i < r->nr && r->pieces[i].from < to; i++) {
		sink_ask_all(sink, &r->pieces[i].writers, rule);
		if (readers_too)
			sink_ask_all(sink, &r->pieces[i].readers, rule);
	}
}

void ranges_read(struct ranges *r, uint64_t from, uint64_t to, const struct users *self,
		 const struct sink *sink, enum rule rule)
{
	uint32_t i;

	if (from >= to || run_on(r, from, to, self, sink, rule, false))
		return;
	if (!self->nr) {
		ask_range(r, from, to, sink, rule, false);
		return;
	}
	ask_past(r, from, to, sink, rule, false);
	r->clock++;
	for (i = find(r, from); from < to; i++) {
		struct piece *p;

		if (i == r->nr || r->pieces[i].from > from) {
			/* Bytes that nobody has used. */
			uint64_t end = i < r->nr && r->pieces[i].from < to ? r->pieces[i].from : to;

			p = insert(r, i, from, end);
		} else if (r->pieces[i].from < from) {
			split(r, i, from);
			continue;
		} else if (r->pieces[i].to > to) {
			split(r, i, to);
		}
		p = &r->pieces[i];
		sink_ask_all(sink, &p->writers, rule);
		users_add_all(&p->readers, self);
		p->stamp = r->clock;
		from = p->to;
	}
	keep_small(r);
}

void ranges_write(struct ranges *r, uint64_t from, uint64_t to, const struct users *self,
		  const struct sink *sink, enum rule rule)
{
	uint32_t first, i;
	struct piece *p;

	if (from >= to || run_on(r, from, to, self, sink, rule, true))
		return;
	if (!self->nr) {
		ask_range(r, from, to, sink, rule, true);
		return;
	}
	ask_past(r, from, to, sink, rule, true);
	r->clock++;
	first = find(r, from);
	if (first < r->nr && r->pieces[first].from < from)
		split(r, first++, from);
	for (i = first; i < r->nr && r->pieces[i].from < to; i++) {
		if (r->pieces[i].to > to)
			split(r, i, to);
		sink_ask_all(sink, &r->pieces[i].writers, rule);
		sink_ask_all(sink, &r->pieces[i].readers, rule);
	}
	/* What was there is replaced by one piece. */
	if (i == first) {
		p = insert(r, first, from, to);
	} else {
		uint32_t n;

		for (n = first; n < i; n++)
			piece_release(&r->pieces[n]);
		memmove(r->pieces + first + 1, r->pieces + i, (r->nr - i) * sizeof(*r->pieces));
		r->nr -= i - first - 1;
		p = &r->pieces[first];
		*p = (struct piece){ .from = from, .to = to, .stamp = r->clock };
	}
	users_add_all(&p->writers, self);
	keep_small(r);
}

void ranges_put(struct ranges *r, uint64_t from, uint64_t to, const struct users *before)
{
	struct piece *p;

	if (from >= to || !before->nr)
		return;
	r->clock++;
	p = r->nr ? &r->pieces[r->nr - 1] : NULL;
	/* Streams only grow. If a model slips, what is not new has both putters. */
	if (p && from < p->to) {
		struct piece again = { .from = from, .to = to < p->to ? to : p->to };

		users_copy(&again.writers, before);
		to_past(r, &again);
		from = again.to;
	}
	if (from < to) {
		p = insert(r, r->nr, from, to);
		users_add_all(&p->writers, before);
	}
	keep_small(r);
}

void ranges_take(const struct ranges *r, uint64_t from, uint64_t to, const struct sink *sink,
		 enum rule rule)
{
	if (from < to)
		ask_range(r, from, to, sink, rule, false);
}
