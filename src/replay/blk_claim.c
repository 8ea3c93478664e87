/* SPDX-License-Identifier: MIT */
#include "replay/blk_claim.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/heap.h"

/* Requests are together when they are closer than both: a time, and a part of the mean distance. */
#define TOGETHER_NS (10 * NS_PER_US)
#define TOGETHER_PART 10
#define BURST 4 /* so many together are no accident */
/* The share of those together, in 1/1024: over about so many requests; more than the second is many. */
#define SHARE_OVER 16
#define SHARE_MANY 307
/* What so many requests have left over is left over. */
#define OVER_AFTER 64

/* The heap. */

static bool ends_before(const struct blk_end *a, const struct blk_end *b)
{
	return a->end_ns < b->end_ns;
}

static struct blk_end take_first(struct blk_claims *c)
{
	struct blk_end first = c->flying.items[0];

	HEAP_POP(&c->flying, ends_before);
	return first;
}

/* Whether more than nr of the heap below `at` had ended; takes what it has found off nr. */
static bool more_ended(const struct blk_claims *c, size_t at, uint64_t by_ns, size_t *nr)
{
	if (at >= c->flying.len || c->flying.items[at].end_ns > by_ns)
		return false;
	if (!*nr)
		return true;
	--*nr;
	return more_ended(c, 2 * at + 1, by_ns, nr) || more_ended(c, 2 * at + 2, by_ns, nr);
}

/* The queue. */

static size_t nr_landed(const struct blk_claims *c)
{
	return c->landed.len - c->from;
}

static void land(struct blk_claims *c, struct blk_end e)
{
	if (e.lets_go && c->nr_promised) {
		c->nr_promised--;
		e.lets_go = false;
	}
	/* Moved when at least as many have left it, else it grows. */
	if (c->from > c->landed.len / 2 && c->landed.len == c->landed.cap) {
		c->landed.len -= c->from;
		memmove(c->landed.items, c->landed.items + c->from,
			c->landed.len * sizeof(c->landed.items[0]));
		c->from = 0;
	}
	c->nr_free += e.lets_go;
	VEC_PUSH(&c->landed, e);
}

static struct blk_end leave(struct blk_claims *c)
{
	struct blk_end e = c->landed.items[c->from++];

	c->nr_free -= e.lets_go;
	return e;
}

/* The oldest that lets one go, and all before it. */
static uint64_t claim(struct blk_claims *c)
{
	struct blk_end e;

	do
		e = leave(c);
	while (!e.lets_go);
	return e.end_ns;
}

static void drop_all(struct blk_claims *c)
{
	while (nr_landed(c))
		(void)leave(c);
}

/* Requests. */

static void note_together(struct blk_claims *c, uint64_t issue_ns)
{
	uint64_t mean_ns = c->nr ? (c->last_ns - c->first_ns) / c->nr : 0;
	uint64_t apart_ns = issue_ns > c->last_ns ? issue_ns - c->last_ns : 0;
	bool together = c->nr && apart_ns < TOGETHER_NS && apart_ns <= mean_ns / TOGETHER_PART;

	if (!c->nr)
		c->first_ns = issue_ns;
	c->nr++;
	c->last_ns = issue_ns > c->last_ns ? issue_ns : c->last_ns;
	c->nr_together = together ? c->nr_together + 1 : 0;
	c->share_together =
		(c->share_together * (SHARE_OVER - 1) + (together ? 1024 : 0)) / SHARE_OVER;
}

static bool is_burst(const struct blk_claims *c)
{
	return c->nr_together + 1 >= BURST;
}

/* They stay until one behind them is claimed: nobody has waited for them. */
static void forget_left_over(struct blk_claims *c)
{
	if (c->nr_free < c->nr_over)
		c->nr_over = c->nr_free;
	if (c->nr % OVER_AFTER)
		return;
	for (size_t i = c->from; c->nr_over; i++) {
		c->nr_over -= c->landed.items[i].lets_go;
		c->nr_free -= c->landed.items[i].lets_go;
		c->landed.items[i].lets_go = false;
	}
	c->nr_over = SIZE_MAX;
}

/* The completion that it follows; last_ns is of the last that it could. */
static uint64_t choose(struct blk_claims *c, uint64_t issue_ns, uint64_t last_ns)
{
	size_t nr_promised = c->nr_promised;

	if (c->share_together > SHARE_MANY || is_burst(c) || !c->flying.len) {
		c->nr_promised = 0;
		drop_all(c);
		return last_ns;
	}
	while (c->nr_free > c->flying.len + 1)
		(void)claim(c);
	if (c->nr_free)
		return claim(c);
	drop_all(c);
	if (more_ended(c, 0, issue_ns, &nr_promised))
		c->nr_promised++;
	return last_ns;
}

uint64_t blk_claims_issue(struct blk_claims *c, uint64_t issue_ns, uint64_t think_ns)
{
	uint64_t last_ns = issue_ns - think_ns, cause_ns;

	note_together(c, issue_ns);
	if (think_ns == BLK_NO_THINK || think_ns > issue_ns)
		return BLK_NO_THINK;
	while (c->flying.len && c->flying.items[0].end_ns <= last_ns)
		land(c, take_first(c));
	cause_ns = choose(c, issue_ns, last_ns);
	forget_left_over(c);
	return issue_ns - cause_ns;
}

void blk_claims_add(struct blk_claims *c, uint64_t end_ns)
{
	HEAP_PUSH(&c->flying, ((struct blk_end){ end_ns, !is_burst(c) }), ends_before);
}

void blk_claims_release(struct blk_claims *c)
{
	VEC_RELEASE(&c->flying);
	VEC_RELEASE(&c->landed);
}
