/* SPDX-License-Identifier: MIT */
#include "order/range.h"

#include <stdlib.h>
#include <string.h>

static void account(struct ranges *r, uint64_t more, uint64_t less)
{
	r->used_bytes += more - less;
	r->budget->used_bytes += more - less;
}

static uint64_t users_bytes(const struct users *s)
{
	return s->cap * sizeof(struct user);
}

static uint64_t piece_bytes(const struct piece *p)
{
	return sizeof(*p) + users_bytes(&p->writers) + users_bytes(&p->readers);
}

static void add_users(struct ranges *r, struct users *to, const struct users *from)
{
	uint64_t before = users_bytes(to);

	users_add_all(to, from);
	account(r, users_bytes(to), before);
}

static void piece_release(struct ranges *r, struct piece *p)
{
	account(r, 0, piece_bytes(p));
	users_release(&p->writers);
	users_release(&p->readers);
}

static bool piece_goes(void *data, struct piece *p)
{
	piece_release(data, p);
	return true;
}

void ranges_release(struct ranges *r)
{
	uint32_t i;

	pieces_filter(&r->pieces, piece_goes, r);
	pieces_release(&r->pieces);
	for (i = 0; r->past && i < RANGE_PAST_SETS; i++) {
		users_release(&r->past[i].writers);
		users_release(&r->past[i].readers);
	}
	free(r->past);
	*r = (struct ranges){ .budget = r->budget };
}

static struct piece_at insert(struct ranges *r, struct piece_at at, uint64_t from, uint64_t to)
{
	at = pieces_insert(&r->pieces, at, from, to);
	pieces_at(&r->pieces, at)->stamp = r->clock;
	account(r, sizeof(struct piece), 0);
	return at;
}

/* If a piece reaches over pos, it becomes two that meet there. */
static void split(struct ranges *r, uint64_t pos)
{
	struct piece_at at = pieces_find(&r->pieces, pos);
	struct piece *p = pieces_at(&r->pieces, at), lower, *upper;

	if (!p || p->from >= pos)
		return;
	lower = *p;
	p->to = pos;
	upper = pieces_at(&r->pieces, insert(r, pieces_next(&r->pieces, at), pos, lower.to));
	upper->stamp = lower.stamp;
	users_copy(&upper->writers, &lower.writers);
	users_copy(&upper->readers, &lower.readers);
	account(r, users_bytes(&upper->writers) + users_bytes(&upper->readers), 0);
}

/* The sets of the past that a range belongs to: so many from the first one on, in a circle. */
static uint32_t past_sets(uint64_t from, uint64_t to, uint32_t *ret_first)
{
	uint64_t first = from / RANGE_PAST_BYTES, last = (to - 1) / RANGE_PAST_BYTES;

	*ret_first = first % RANGE_PAST_SETS;
	return last - first < RANGE_PAST_SETS ? (uint32_t)(last - first) + 1 : RANGE_PAST_SETS;
}

static void to_past(struct ranges *r, const struct piece *p)
{
	uint32_t first, nr = past_sets(p->from, p->to, &first), i;

	if (!r->past)
		r->past = xcalloc(RANGE_PAST_SETS, sizeof(*r->past));
	for (i = 0; i < nr; i++) {
		struct past_use *past = &r->past[(first + i) % RANGE_PAST_SETS];

		users_add_all(&past->writers, &p->writers);
		users_add_all(&past->readers, &p->readers);
	}
}

static void ask(const struct range_user *u, const struct users *writers,
		const struct users *readers, bool write)
{
	sink_ask_all(u->sink, writers, u->rule);
	if (write)
		sink_ask_all(u->sink, readers, u->rule);
}

static void ask_past(const struct ranges *r, uint64_t from, uint64_t to, const struct range_user *u,
		     bool write)
{
	uint32_t first, nr, i;

	if (!r->past)
		return;
	nr = past_sets(from, to, &first);
	for (i = 0; i < nr; i++) {
		const struct past_use *past = &r->past[(first + i) % RANGE_PAST_SETS];

		ask(u, &past->writers, &past->readers, write);
	}
}

struct forgetting {
	struct ranges *ranges;
	uint64_t limit; /* pieces with this stamp or an older one go */
};

static bool drop_if_old(void *data, struct piece *p)
{
	const struct forgetting *f = data;

	if (p->stamp > f->limit)
		return false;
	to_past(f->ranges, p);
	piece_release(f->ranges, p);
	f->ranges->budget->nr_forgotten++;
	return true;
}

static int by_stamp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* At least half of the pieces, so that the search for them pays. */
static void forget_old(struct ranges *r)
{
	uint64_t *stamps = xmalloc(r->pieces.nr * sizeof(*stamps)), nr = 0;
	struct forgetting f = { .ranges = r };
	struct piece_at at = { 0 };
	const struct piece *p;

	for (; (p = pieces_at(&r->pieces, at)); at = pieces_next(&r->pieces, at))
		stamps[nr++] = p->stamp;
	qsort(stamps, nr, sizeof(*stamps), by_stamp);
	f.limit = stamps[nr / 2];
	free(stamps);
	pieces_filter(&r->pieces, drop_if_old, &f);
}

/* What reads cost is bounded too: they meet a piece again and again, writes only once. */
static bool is_too_much(const struct ranges *r)
{
	return r->used_bytes > r->budget->sure_bytes &&
	       (r->budget->used_bytes > r->budget->max_bytes ||
		r->nr_visits > RANGE_VISITS_MAX + r->clock * RANGE_VISITS_EACH);
}

static void keep_small(struct ranges *r)
{
	if (is_too_much(r))
		forget_old(r);
}

/* Those who use no bytes themselves, as nothing stands for them. */
static void only_ask(struct ranges *r, uint64_t from, uint64_t to, const struct range_user *u,
		     bool write)
{
	struct piece_at at = pieces_find(&r->pieces, from);
	const struct piece *p;

	ask_past(r, from, to, u, write);
	r->clock++;
	for (; (p = pieces_at(&r->pieces, at)) && p->from < to; at = pieces_next(&r->pieces, at)) {
		ask(u, &p->writers, &p->readers, write);
		r->nr_visits++;
	}
	keep_small(r);
}

/* Two neighbours that say the same become one. */
static bool join_with_previous(struct ranges *r, struct piece_at at)
{
	struct piece *p = pieces_at(&r->pieces, at), *previous = p - 1;

	if (at.i == 0 || previous->to != p->from || !users_equal(&previous->writers, &p->writers) ||
	    !users_equal(&previous->readers, &p->readers))
		return false;
	previous->to = p->to;
	previous->stamp = p->stamp;
	piece_release(r, p);
	return true;
}

/* The next piece on the way from `from` to `to`, made if nobody has used those bytes. */
static struct piece_at cover(struct ranges *r, struct piece_at at, uint64_t from, uint64_t to)
{
	const struct piece *p = pieces_at(&r->pieces, at);

	if (p && p->from == from)
		return at;
	return insert(r, at, from, p && p->from < to ? p->from : to);
}

void ranges_read(struct ranges *r, uint64_t from, uint64_t to, const struct range_user *u)
{
	struct piece_at at;
	uint32_t first_block;
	bool joined = false;

	if (from >= to)
		return;
	if (!u->self->nr) {
		only_ask(r, from, to, u, false);
		return;
	}
	ask_past(r, from, to, u, false);
	r->clock++;
	split(r, from);
	split(r, to);
	at = pieces_find(&r->pieces, from);
	first_block = at.block;
	while (from < to) {
		struct piece *p;

		at = cover(r, at, from, to);
		p = pieces_at(&r->pieces, at);
		sink_ask_all(u->sink, &p->writers, u->rule);
		add_users(r, &p->readers, u->self);
		p->stamp = r->clock;
		from = p->to;
		r->nr_visits++;
		if (join_with_previous(r, at)) {
			pieces_erase(&r->pieces, at, 1);
			at.i--;
			joined = true;
		}
		at = pieces_next(&r->pieces, at);
	}
	if (joined)
		pieces_tidy(&r->pieces, first_block, at.block);
	keep_small(r);
}

/* Those from there to `to`: they have been asked, and go. */
static void erase_until(struct ranges *r, struct piece_at first, uint64_t to)
{
	struct piece_at at = first;
	uint64_t nr = 0;
	struct piece *p;

	for (; (p = pieces_at(&r->pieces, at)) && p->from < to; at = pieces_next(&r->pieces, at)) {
		piece_release(r, p);
		nr++;
	}
	if (!nr)
		return;
	pieces_erase(&r->pieces, first, nr);
	pieces_tidy(&r->pieces, first.block, first.block);
}

/* One piece instead of all that are there. */
static struct piece *replace(struct ranges *r, struct piece_at at, uint64_t from, uint64_t to)
{
	struct piece *p = pieces_at(&r->pieces, at);

	if (!p || p->from >= to)
		return pieces_at(&r->pieces, insert(r, at, from, to));
	piece_release(r, p);
	*p = (struct piece){ .from = from, .to = to, .stamp = r->clock };
	account(r, sizeof(*p), 0);
	erase_until(r, pieces_next(&r->pieces, at), to);
	return pieces_at(&r->pieces, pieces_find(&r->pieces, from));
}

void ranges_write(struct ranges *r, uint64_t from, uint64_t to, const struct range_user *u)
{
	struct piece_at first, at;
	struct piece *p;

	if (from >= to)
		return;
	if (!u->self->nr) {
		only_ask(r, from, to, u, true);
		return;
	}
	ask_past(r, from, to, u, true);
	r->clock++;
	split(r, from);
	split(r, to);
	first = at = pieces_find(&r->pieces, from);
	for (; (p = pieces_at(&r->pieces, at)) && p->from < to; at = pieces_next(&r->pieces, at))
		ask(u, &p->writers, &p->readers, true);
	p = replace(r, first, from, to);
	add_users(r, &p->writers, u->self);
	keep_small(r);
}

void ranges_put(struct ranges *r, uint64_t from, uint64_t to, const struct users *self)
{
	struct piece_at at;

	if (from >= to || !self->nr)
		return;
	r->clock++;
	split(r, from);
	split(r, to);
	/* Streams grow at their end, but for the end that a close has put: then both have put it. */
	for (at = pieces_find(&r->pieces, from); from < to; at = pieces_next(&r->pieces, at)) {
		struct piece *p;

		at = cover(r, at, from, to);
		p = pieces_at(&r->pieces, at);
		add_users(r, &p->writers, self);
		p->stamp = r->clock;
		from = p->to;
	}
	keep_small(r);
}

void ranges_take(struct ranges *r, uint64_t from, uint64_t to, const struct sink *sink,
		 enum rule rule)
{
	static const struct users nobody;
	struct range_user u = { .self = &nobody, .sink = sink, .rule = rule };

	if (from >= to)
		return;
	only_ask(r, from, to, &u, false);
	split(r, from);
	erase_until(r, (struct piece_at){ 0 }, from);
}
