/* SPDX-License-Identifier: MIT */
/*
 * Mode think by number, in a world with a clock of its own: a trace is replayed on a device
 * whose requests take what the test says.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "replay/blk_claim.h"
#include "replay/blk_number.h"

#define NR_MAX 256
#define NR_KINDS 3
#define NO_TIME UINT64_MAX

struct request {
	uint64_t issue_ns, took_ns;
	uint32_t kind;
};

struct world {
	struct request rq[NR_MAX];
	size_t nr;
	uint64_t threshold_ns;
	/* What the loader says of each. */
	uint64_t think_ns[NR_MAX];
	struct blk_need needs[NR_MAX][NR_KINDS], follows[NR_MAX][NR_KINDS];
	size_t nr_needs[NR_MAX], nr_follows[NR_MAX];
	/* The run. */
	uint64_t takes_ns[NR_MAX];
	uint64_t start_ns[NR_MAX];
	size_t in_flight_max;
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* By the definition: since the last of those that were complete a threshold before. */
static uint64_t think_of(const struct world *w, size_t i)
{
	uint64_t think = NO_TIME, now = w->rq[i].issue_ns;

	for (size_t k = 0; k < i; k++) {
		uint64_t end = w->rq[k].issue_ns + w->rq[k].took_ns;

		if (end + w->threshold_ns <= now && now - end < think)
			think = now - end;
	}
	return think;
}

static size_t need_up_to(struct blk_needs *needs, uint64_t end_ns, struct blk_need *out)
{
	blk_needs_up_to(needs, end_ns, NR_KINDS);
	if (needs->list.len)
		memcpy(out, needs->list.items, needs->list.len * sizeof(*out));
	return needs->list.len;
}

static void load(struct world *w)
{
	struct blk_claims claims = { 0 };
	struct blk_needs needs, follows;

	blk_needs_init(&needs, NR_KINDS);
	blk_needs_init(&follows, NR_KINDS);
	for (size_t i = 0; i < w->nr; i++) {
		const struct request *rq = &w->rq[i];
		uint64_t last = think_of(w, i), end = rq->issue_ns + rq->took_ns;

		w->think_ns[i] = blk_claims_issue(&claims, rq->issue_ns, last);
		w->nr_needs[i] = w->nr_follows[i] = 0;
		if (last != NO_TIME) {
			w->nr_needs[i] = need_up_to(&needs, rq->issue_ns - last, w->needs[i]);
			w->nr_follows[i] =
				need_up_to(&follows, rq->issue_ns - w->think_ns[i], w->follows[i]);
		}
		blk_claims_add(&claims, end);
		blk_needs_add(&needs, rq->kind, end);
		blk_needs_add(&follows, rq->kind, end);
	}
	blk_needs_release(&needs);
	blk_needs_release(&follows);
	blk_claims_release(&claims);
}

/* When the next is due, or NO_TIME while it waits for others. */
static uint64_t due_of(struct world *w, struct blk_tally *t, struct blk_tally *followed, size_t i)
{
	uint64_t due;

	for (size_t k = 0; k < w->nr_needs[i]; k++) {
		if (!blk_tally_take(t, &w->needs[i][k]))
			return NO_TIME;
	}
	/* What it follows is among what it needs. */
	for (size_t k = 0; k < w->nr_follows[i]; k++)
		assert_true(blk_tally_take(followed, &w->follows[i][k]));
	if (w->think_ns[i] == NO_TIME)
		return w->rq[i].issue_ns;
	due = followed->reached_ns + w->think_ns[i];
	return due > t->reached_ns ? due : t->reached_ns;
}

/* The first of those in flight to be complete; NR_MAX: nothing is in flight. */
static size_t first_end(const struct world *w, const bool *flying, uint64_t *ret_end)
{
	size_t first = NR_MAX;

	for (size_t i = 0; i < w->nr; i++) {
		uint64_t end = w->start_ns[i] + w->takes_ns[i];

		if (flying[i] && (first == NR_MAX || end < *ret_end)) {
			first = i;
			*ret_end = end;
		}
	}
	return first;
}

/* Who is admitted starts when it is due, and not before those before it. */
static void replay(struct world *w)
{
	bool flying[NR_MAX] = { false };
	size_t next = 0, in_flight = 0;
	uint64_t now = 0, due = NO_TIME;
	struct blk_tally t, followed;

	w->in_flight_max = 0;
	blk_tally_init(&t, NR_KINDS);
	blk_tally_init(&followed, NR_KINDS);
	for (;;) {
		uint64_t end = NO_TIME;
		size_t first = first_end(w, flying, &end);

		if (due == NO_TIME && next < w->nr)
			due = due_of(w, &t, &followed, next);
		if (next == w->nr && first == NR_MAX)
			break;
		if (first < NR_MAX && end <= due) {
			flying[first] = false;
			in_flight--;
			now = end > now ? end : now;
			blk_tally_add(&t, w->rq[first].kind, end);
			blk_tally_add(&followed, w->rq[first].kind, end);
			continue;
		}
		assert_true(next < w->nr && due != NO_TIME); /* else it would wait for ever */
		now = due > now ? due : now;
		w->start_ns[next] = now;
		flying[next++] = true;
		due = NO_TIME;
		if (++in_flight > w->in_flight_max)
			w->in_flight_max = in_flight;
	}
	blk_tally_release(&t);
	blk_tally_release(&followed);
}

static size_t traced_in_flight_max(const struct world *w)
{
	size_t max = 0;

	for (size_t i = 0; i < w->nr; i++) {
		size_t n = 0;

		for (size_t k = 0; k <= i; k++)
			n += k == i || w->rq[k].issue_ns + w->rq[k].took_ns + w->threshold_ns >
					       w->rq[i].issue_ns;
		max = n > max ? n : max;
	}
	return max;
}

static void make_random(struct world *w, uint64_t *seed, unsigned int n)
{
	uint64_t gap = 1 + next_random(seed) % 20, length = 1 + next_random(seed) % 100, now = 0;

	w->nr = 1 + next_random(seed) % (n % 10 ? 24 : 64);
	w->threshold_ns = next_random(seed) % 3 ? next_random(seed) % 15 : 0;
	for (size_t i = 0; i < w->nr; i++) {
		now += next_random(seed) % gap;
		w->rq[i] = (struct request){ now, next_random(seed) % length,
					     (uint32_t)(next_random(seed) % NR_KINDS) };
	}
}

/* Where requests take what they took, they are issued when they were. */
static void test_same_device(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	uint64_t seed = 20170301;

	(void)state;
	for (unsigned int n = 0; n < 10000; n++) {
		make_random(w, &seed, n);
		load(w);
		for (size_t i = 0; i < w->nr; i++)
			w->takes_ns[i] = w->rq[i].took_ns;
		replay(w);
		for (size_t i = 0; i < w->nr; i++)
			assert_int_equal(w->start_ns[i], w->rq[i].issue_ns);
	}
	free(w);
}

/* On whatever device: all are issued, and no more are in flight than in the trace. */
static void test_other_device(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	uint64_t seed = 20170302;

	(void)state;
	for (unsigned int n = 0; n < 10000; n++) {
		uint64_t length;

		make_random(w, &seed, n);
		load(w);
		length = 1 + next_random(&seed) % 300;
		for (size_t i = 0; i < w->nr; i++)
			w->takes_ns[i] = next_random(&seed) % length;
		replay(w);
		assert_true(w->in_flight_max <= traced_in_flight_max(w));
	}
	free(w);
}

/* A split write, and the next when all parts of it were complete: the wait for the parts is no think time. */
static void test_parts(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	(void)state;
	w->nr = 8;
	for (size_t i = 0; i < 4; i++) {
		w->rq[i] = (struct request){ 0, 1000 * (i + 1), 0 };
		w->rq[i + 4] = (struct request){ 4100, 1000 * (i + 1), 0 };
		w->takes_ns[i] = w->takes_ns[i + 4] = 100 * (i + 1);
	}
	load(w);
	replay(w);
	for (size_t i = 4; i < 8; i++)
		assert_int_equal(w->start_ns[i], 400 + 100);
	free(w);
}

/*
 * Four threads, each with one request in flight and 10 ns until the next; the disk left
 * one of them waiting for 5000 ns. Where it does not, all four stay at work: of the
 * requests in between none waits for more than one to be complete.
 */
static void test_starved(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	uint64_t ready[4] = { 0, 0, 0, 0 }, end = 0;

	(void)state;
	for (w->nr = 0; w->nr < 200; w->nr++) {
		size_t thread = 0;

		for (size_t i = 1; i < 4; i++)
			thread = ready[i] < ready[thread] ? i : thread;
		w->rq[w->nr] =
			(struct request){ ready[thread], w->nr == 20 ? 5000 : 100 + w->nr % 7, 0 };
		ready[thread] += w->rq[w->nr].took_ns + 10;
		w->takes_ns[w->nr] = 50;
	}
	load(w);
	replay(w);
	for (size_t i = 0; i < w->nr; i++)
		end = w->start_ns[i] + 50 > end ? w->start_ns[i] + 50 : end;
	assert_int_equal(w->in_flight_max, 4);
	/* 50 each, 60 apart, and some time in which the four fall into step. */
	assert_in_range(end, 50 * 60 - 10, 60 * 60);
	free(w);
}

/* One flush for long, and a thread that reads: that the flush takes no time makes no second reader. */
static void test_kinds(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	(void)state;
	w->nr = 50;
	w->rq[0] = (struct request){ 0, 5000, 1 };
	for (size_t i = 1; i < w->nr; i++) {
		w->rq[i] = (struct request){ i * 100, 90, 0 };
		w->takes_ns[i] = 40;
	}
	load(w);
	replay(w);
	for (size_t i = 2; i < w->nr; i++)
		assert_int_equal(w->start_ns[i] - w->start_ns[i - 1], 50);
	free(w);
}

/*
 * Programs of threads in a world with a clock: on a slow device, which gives the trace, and on a
 * fast one; beside the latter the replay. A device has servers, which take some time for each.
 */
struct program {
	size_t nr_threads, nr_at_once; /* a thread waits for so many requests, and thinks */
	uint64_t think_ns; /* on the average */
};

struct servers {
	uint64_t free_ns[8];
	uint64_t seed, service_ns; /* on the average */
};

static uint64_t serve(struct servers *d, uint64_t now)
{
	size_t first = 0;

	for (size_t i = 1; i < ARRAY_LEN(d->free_ns); i++)
		first = d->free_ns[i] < d->free_ns[first] ? i : first;
	if (d->free_ns[first] < now)
		d->free_ns[first] = now;
	return d->free_ns[first] += d->service_ns / 2 + next_random(&d->seed) % d->service_ns;
}

struct figures {
	double per_s, response_ns;
};

static struct figures figures_of(const struct request *rq, size_t nr)
{
	uint64_t end = 0, sum = 0;

	for (size_t i = 0; i < nr; i++) {
		sum += rq[i].took_ns;
		end = rq[i].issue_ns + rq[i].took_ns > end ? rq[i].issue_ns + rq[i].took_ns : end;
	}
	return (struct figures){ (double)nr * 1e9 / (double)end, (double)sum / (double)nr };
}

/* Fills rq in the order of issue. */
static void run_program(const struct program *p, uint64_t service_ns, struct request *rq, size_t nr)
{
	struct servers d = { .seed = 3, .service_ns = service_ns };
	uint64_t ready[64], seed = 4;

	for (size_t i = 0; i < p->nr_threads; i++)
		ready[i] = 1000 + next_random(&seed) % service_ns;
	for (size_t i = 0; i < nr;) {
		size_t thread = 0;
		uint64_t now, last;

		for (size_t k = 1; k < p->nr_threads; k++)
			thread = ready[k] < ready[thread] ? k : thread;
		now = last = ready[thread];
		for (size_t k = 0; k < p->nr_at_once && i < nr; k++) {
			uint64_t end = serve(&d, now);

			rq[i++] = (struct request){ now, end - now, 0 };
			last = end > last ? end : last;
		}
		ready[thread] = last + p->think_ns / 2 + next_random(&seed) % (p->think_ns + 1);
	}
}

/* Mode think: as blk_graph.c, on a device of our own. */
struct thinker {
	uint64_t think, needed, followed;
};

static void think(const struct request *trace, struct thinker *out, size_t nr,
		  uint64_t threshold_ns)
{
	struct blk_claims claims = { 0 };
	struct blk_needs needs, follows;

	blk_needs_init(&needs, 1);
	blk_needs_init(&follows, 1);
	for (size_t i = 0; i < nr; i++) {
		uint64_t last = BLK_NO_THINK, now = trace[i].issue_ns;
		struct blk_need need = { 0 }, follow = { 0 };

		/* Those long ago were complete before. */
		for (size_t k = i > 500 ? i - 500 : 0; k < i; k++) {
			uint64_t end = trace[k].issue_ns + trace[k].took_ns;

			if (end + threshold_ns <= now && now - end < last)
				last = now - end;
		}
		out[i].think = blk_claims_issue(&claims, now, last);
		if (last != BLK_NO_THINK) {
			(void)need_up_to(&needs, now - last, &need);
			(void)need_up_to(&follows, now - out[i].think, &follow);
		}
		out[i].needed = need.nr;
		out[i].followed = follow.nr;
		blk_claims_add(&claims, now + trace[i].took_ns);
		blk_needs_add(&needs, 0, now + trace[i].took_ns);
		blk_needs_add(&follows, 0, now + trace[i].took_ns);
	}
	blk_needs_release(&needs);
	blk_needs_release(&follows);
	blk_claims_release(&claims);
}

struct coming {
	uint64_t at, index;
};

static void put_coming(struct coming *list, size_t *nr, struct coming f)
{
	size_t at = (*nr)++;

	for (; at && list[at - 1].at < f.at; at--)
		list[at] = list[at - 1];
	list[at] = f; /* the first to come is the last */
}

static bool admit(const struct request *rq, struct thinker *t, struct blk_tally *needed,
		  struct blk_tally *followed, uint64_t *ret_at)
{
	struct blk_need need = { .nr = t->needed }, follow = { .nr = t->followed };
	bool enough = blk_tally_take(needed, &need);

	t->needed = need.nr;
	if (!enough)
		return false;
	assert_true(blk_tally_take(followed, &follow));
	*ret_at = rq->issue_ns;
	if (t->think != BLK_NO_THINK)
		*ret_at = followed->reached_ns + t->think;
	if (*ret_at < needed->reached_ns)
		*ret_at = needed->reached_ns;
	return true;
}

static void replay_program(const struct request *trace, struct request *out, size_t nr,
			   uint64_t threshold_ns, uint64_t service_ns)
{
	struct servers d = { .seed = 3, .service_ns = service_ns };
	struct coming *ready = xcalloc(nr + 1, sizeof(*ready));
	struct coming *flying = xcalloc(nr + 1, sizeof(*flying));
	struct thinker *t = xcalloc(nr, sizeof(*t));
	size_t nr_ready = 0, nr_flying = 0, admitted = 0;
	struct blk_tally needed, followed;
	uint64_t at;

	blk_tally_init(&needed, 1);
	blk_tally_init(&followed, 1);
	think(trace, t, nr, threshold_ns);
	for (size_t done = 0; done < nr;) {
		while (admitted < nr &&
		       admit(&trace[admitted], &t[admitted], &needed, &followed, &at))
			put_coming(ready, &nr_ready, (struct coming){ at, admitted++ });
		assert_true(nr_ready || nr_flying);
		if (nr_ready &&
		    (!nr_flying || ready[nr_ready - 1].at <= flying[nr_flying - 1].at)) {
			struct coming f = ready[--nr_ready];
			uint64_t end = serve(&d, f.at);

			out[f.index] = (struct request){ f.at, end - f.at, 0 };
			put_coming(flying, &nr_flying, (struct coming){ end, f.index });
		} else {
			at = flying[--nr_flying].at;
			blk_tally_add(&needed, 0, at);
			blk_tally_add(&followed, 0, at);
			done++;
		}
	}
	blk_tally_release(&needed);
	blk_tally_release(&followed);
	free(ready);
	free(flying);
	free(t);
}

#define PROGRAM_NR 3000

static void check_program(const struct program *p, uint64_t slow_ns, uint64_t fast_ns, double most)
{
	struct request *trace = xcalloc(PROGRAM_NR, sizeof(*trace));
	struct request *real = xcalloc(PROGRAM_NR, sizeof(*real));
	struct request *got = xcalloc(PROGRAM_NR, sizeof(*got));
	struct figures want, is;

	run_program(p, slow_ns, trace, PROGRAM_NR);
	run_program(p, fast_ns, real, PROGRAM_NR);
	replay_program(trace, got, PROGRAM_NR, 10000, fast_ns);
	want = figures_of(real, PROGRAM_NR);
	is = figures_of(got, PROGRAM_NR);
	print_message(
		"%2zu threads, %2zu at once, think %4llu us, service %llu to %llu us: per second %+.1f %%, response %+.1f %%\n",
		p->nr_threads, p->nr_at_once, (unsigned long long)p->think_ns / 1000,
		(unsigned long long)slow_ns / 1000, (unsigned long long)fast_ns / 1000,
		100 * (is.per_s / want.per_s - 1), 100 * (is.response_ns / want.response_ns - 1));
	assert_true(is.per_s > (1 - most) * want.per_s && is.per_s < (1 + most) * want.per_s);
	assert_true(is.response_ns > (1 - most) * want.response_ns &&
		    is.response_ns < (1 + most) * want.response_ns);
	free(trace);
	free(real);
	free(got);
}

/* As in section 5.2 of the paper, without a machine that has other work: within 10 %. */
static void test_programs(void **state)
{
	static const struct program programs[] = {
		{ 1, 1, 100000 },  { 4, 1, 20000 },   { 4, 1, 500000 },	 { 16, 1, 20000 },
		{ 16, 1, 500000 }, { 64, 1, 20000 },  { 64, 1, 500000 }, { 1, 64, 500000 },
		{ 4, 16, 500000 }, { 16, 8, 500000 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		check_program(&programs[i], 1000000, 500000, 0.1);
		check_program(&programs[i], 4000000, 2000000, 0.1);
		check_program(&programs[i], 8000000, 1000000, 0.1);
	}
}

/* More at once than the list may have entries: the rest is left to the next request. */
static void test_limit(void **state)
{
	struct blk_needs needs;

	(void)state;
	blk_needs_init(&needs, 3);
	for (uint32_t i = 0; i < 3; i++)
		blk_needs_add(&needs, i, 10);
	blk_needs_up_to(&needs, 10, 2);
	assert_int_equal(needs.list.len, 2);
	blk_needs_up_to(&needs, 10, 2);
	assert_int_equal(needs.list.len, 1);
	assert_int_equal(needs.list.items[0].nr, 1);
	blk_needs_release(&needs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_device), cmocka_unit_test(test_other_device),
		cmocka_unit_test(test_parts),	    cmocka_unit_test(test_starved),
		cmocka_unit_test(test_kinds),	    cmocka_unit_test(test_limit),
		cmocka_unit_test(test_programs),
	};

	return cmocka_run_group_tests_name("blk_number", tests, NULL, NULL);
}
