/* SPDX-License-Identifier: MIT */
/* The search for the order of overlapping writes, against orders that were made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compile/contest.h"
#include "sample.h"

#define STREAMS_MAX 6
#define NR_MAX 400
#define LEN_MAX 20

struct world {
	struct entrant list[NR_MAX];
	uint64_t truth[NR_MAX]; /* the place of each */
	size_t nr;
	uint64_t from, end;
	uint8_t bytes[NR_MAX * LEN_MAX];
};

/* Calls take effect one after another, at times that lie somewhere in them; each stream makes one at a time. */
static void make_world(struct world *w, struct rng *rng, unsigned int nr_streams, size_t nr)
{
	uint64_t ended_ns[STREAMS_MAX] = { 0 }, number[STREAMS_MAX] = { 0 };

	memset(w, 0, sizeof(*w));
	w->from = w->end = rng_below(rng, 100);
	for (size_t i = 0; i < nr; i++) {
		unsigned int stream = (unsigned int)rng_below(rng, nr_streams);
		uint64_t now_ns = 1000 * (i + 1);
		struct entrant *e = &w->list[w->nr];

		if (ended_ns[stream] >= now_ns)
			continue;
		e->stream = stream;
		e->number = number[stream]++;
		e->enter_ns = now_ns - rng_below(rng, 2500);
		if (e->enter_ns <= ended_ns[stream] || e->enter_ns > now_ns)
			e->enter_ns = ended_ns[stream] + 1;
		e->exit_ns = now_ns + rng_below(rng, 4000);
		ended_ns[stream] = e->exit_ns;
		e->place = CONTEST_ANYWHERE;
		w->truth[w->nr++] = w->end;
		if (!rng_below(rng, 5)) {
			e->place = w->end; /* it only looked */
			continue;
		}
		e->len_bytes = 1 + rng_below(rng, LEN_MAX);
		e->bytes = w->bytes + (w->end - w->from);
		memset(w->bytes + (w->end - w->from), 'a' + (int)stream, (size_t)e->len_bytes);
		w->bytes[w->end - w->from] = (uint8_t)(e->number + 1);
		w->end += e->len_bytes;
	}
}

/* Everybody is where his bytes are, without gaps, behind all that had ended when he began. */
static void assert_possible(const struct world *w, const struct entrant *list)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->nr; i++) {
		const struct entrant *e = &list[i];

		sum += e->len_bytes;
		assert_in_range(e->place, w->from, w->end - e->len_bytes);
		if (e->len_bytes)
			assert_memory_equal(w->bytes + (e->place - w->from), e->bytes,
					    e->len_bytes);
		for (size_t k = 0; k < w->nr; k++) {
			const struct entrant *o = &list[k];

			if (o->exit_ns < e->enter_ns)
				assert_true(o->place + o->len_bytes <= e->place);
			else if (o != e && o->len_bytes && e->len_bytes)
				assert_true(o->place + o->len_bytes <= e->place ||
					    e->place + e->len_bytes <= o->place);
		}
	}
	assert_int_equal(sum, w->end - w->from);
}

static void finds_the_order_of_what_was_seen(void **state)
{
	static struct world w;
	static struct entrant list[NR_MAX];
	struct rng rng = { 1 };

	(void)state;
	for (unsigned int round = 0; round < 300; round++) {
		struct sight sight;

		make_world(&w, &rng, 2 + round % (STREAMS_MAX - 1), 5 + round);
		sight = (struct sight){ .from = w.from,
					.len_bytes = w.end - w.from,
					.bytes = w.bytes };
		memcpy(list, w.list, sizeof(list));
		assert_true(contest_search(list, w.nr, w.from, &sight));
		assert_possible(&w, list);
	}
}

/* Of a byte that nobody wrote no order can be found; and the search has an end. */
static void finds_none_where_none_is(void **state)
{
	static struct world w;
	static uint8_t other[NR_MAX * LEN_MAX];
	struct rng rng = { 2 };

	(void)state;
	for (unsigned int round = 0; round < 20; round++) {
		struct sight sight;

		make_world(&w, &rng, 4, 50);
		memcpy(other, w.bytes, sizeof(other));
		other[rng_below(&rng, w.end - w.from)] = 0xff;
		sight = (struct sight){ .from = w.from,
					.len_bytes = w.end - w.from,
					.bytes = other };
		assert_false(contest_search(w.list, w.nr, w.from, &sight));
	}
}

/* Nothing was seen: in the order in which they ended. */
static void keeps_the_order_of_the_ends(void **state)
{
	struct entrant list[] = {
		{ .stream = 1, .enter_ns = 0, .exit_ns = 90, .len_bytes = 3, .place = UINT64_MAX },
		{ .stream = 2, .enter_ns = 5, .exit_ns = 80, .len_bytes = 4, .place = UINT64_MAX },
		{ .stream = 3, .enter_ns = 7, .exit_ns = 95, .len_bytes = 5, .place = UINT64_MAX },
	};
	const struct sight none = { 0 };

	(void)state;
	assert_true(contest_search(list, 3, 10, &none));
	assert_int_equal(list[1].place, 10);
	assert_int_equal(list[0].place, 14);
	assert_int_equal(list[2].place, 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_order_of_what_was_seen),
		cmocka_unit_test(finds_none_where_none_is),
		cmocka_unit_test(keeps_the_order_of_the_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
