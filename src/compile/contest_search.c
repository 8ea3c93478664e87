/* SPDX-License-Identifier: MIT */
/*
 * A depth-first search. At each step those may come next that no other, which is still
 * to come, has ended before; the first to end is tried first. Whoever saw the end of the
 * line where it is now takes its turn at once: that can hinder no other.
 */
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "compile/contest.h"

/* Tries in one search: some for each entrant, and some more. */
#define TRIES_EACH 64
#define TRIES_MORE 100000

/* The entrants of one stream, in their order. */
struct run {
	size_t next, end;
};

struct step {
	size_t run;
	uint64_t pos; /* before it */
	uint64_t key; /* of the one that was taken: its time of exit */
	bool forced; /* there was no choice */
};

struct search {
	struct entrant *list;
	const struct sight *sight;
	struct run *runs;
	size_t nr_runs;
	struct step *steps;
	size_t nr_steps, nr_tries, tries_max;
	uint64_t pos;
};

static int by_stream(const void *a, const void *b)
{
	const struct entrant *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static struct entrant *head_of(const struct search *s, size_t run)
{
	return s->runs[run].next < s->runs[run].end ? &s->list[s->runs[run].next] : NULL;
}

static bool sight_agrees(const struct sight *s, const struct entrant *e, uint64_t pos)
{
	uint64_t i, at;

	if (!s->bytes || !e->bytes || pos >= s->from + s->len_bytes || pos < s->from)
		return true;
	at = pos - s->from;
	for (i = 0; i < e->len_bytes && at + i < s->len_bytes; i++) {
		if ((!s->seen || s->seen[at + i]) && s->bytes[at + i] != e->bytes[i])
			return false;
	}
	return true;
}

static bool may_come(const struct search *s, const struct entrant *e)
{
	return (e->place == CONTEST_ANYWHERE || e->place == s->pos) &&
	       sight_agrees(s->sight, e, s->pos);
}

static void take(struct search *s, size_t run, bool forced)
{
	const struct entrant *e = head_of(s, run);

	s->steps[s->nr_steps++] =
		(struct step){ .run = run, .pos = s->pos, .key = e->exit_ns, .forced = forced };
	s->runs[run].next++;
	s->pos += e->len_bytes;
}

/* The first exit of all that are to come. False: somebody saw the line end where it never will again. */
static bool look(const struct search *s, uint64_t *ret_until)
{
	*ret_until = UINT64_MAX;
	for (size_t i = 0; i < s->nr_runs; i++) {
		const struct entrant *e = head_of(s, i);

		if (!e)
			continue;
		if (e->place != CONTEST_ANYWHERE && e->place < s->pos)
			return false;
		if (e->exit_ns < *ret_until)
			*ret_until = e->exit_ns;
	}
	return true;
}

static bool is_before(const struct search *s, size_t a, size_t b)
{
	uint64_t x = head_of(s, a)->exit_ns, y = head_of(s, b)->exit_ns;

	return x != y ? x < y : a < b;
}

/* The next choice behind (key, run); nr_runs: there is none. */
static size_t choose(const struct search *s, uint64_t until, const struct step *behind)
{
	size_t best = s->nr_runs;

	for (size_t i = 0; i < s->nr_runs; i++) {
		const struct entrant *e = head_of(s, i);

		if (!e || e->enter_ns > until)
			continue;
		if (behind &&
		    (e->exit_ns < behind->key || (e->exit_ns == behind->key && i <= behind->run)))
			continue;
		if ((best == s->nr_runs || is_before(s, i, best)) && may_come(s, e))
			best = i;
	}
	return best;
}

static bool take_looker(struct search *s, uint64_t until)
{
	for (size_t i = 0; i < s->nr_runs; i++) {
		const struct entrant *e = head_of(s, i);

		if (e && !e->len_bytes && e->enter_ns <= until && e->place == s->pos) {
			take(s, i, true);
			return true;
		}
	}
	return false;
}

/* Goes back to the last choice, and to the next one there. */
static bool go_back(struct search *s)
{
	while (s->nr_steps) {
		const struct step last = s->steps[--s->nr_steps];
		uint64_t until;
		size_t run;

		s->runs[last.run].next--;
		s->pos = last.pos;
		if (last.forced)
			continue;
		(void)look(s, &until); /* it was well when the choice was made */
		run = choose(s, until, &last);
		if (run < s->nr_runs) {
			take(s, run, false);
			return true;
		}
	}
	return false;
}

static bool run_search(struct search *s, size_t nr)
{
	while (s->nr_steps < nr) {
		uint64_t until;
		size_t run = s->nr_runs;

		if (s->nr_tries++ >= s->tries_max)
			return false;
		if (look(s, &until)) {
			if (take_looker(s, until))
				continue;
			run = choose(s, until, NULL);
		}
		if (run < s->nr_runs)
			take(s, run, false);
		else if (!go_back(s))
			return false;
	}
	return true;
}

static void find_runs(struct search *s, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (!i || s->list[i].stream != s->list[i - 1].stream)
			s->runs[s->nr_runs++].next = i;
		s->runs[s->nr_runs - 1].end = i + 1;
	}
}

bool contest_search(struct entrant *list, size_t nr, uint64_t from, const struct sight *sight)
{
	struct search s = {
		.list = list, .sight = sight, .pos = from, .tries_max = nr * TRIES_EACH + TRIES_MORE
	};
	bool found;

	qsort(list, nr, sizeof(*list), by_stream);
	s.runs = xcalloc(nr + 1, sizeof(*s.runs));
	s.steps = xcalloc(nr + 1, sizeof(*s.steps));
	find_runs(&s, nr);
	found = run_search(&s, nr);
	if (found) {
		for (size_t i = 0; i < s.nr_runs; i++)
			s.runs[i].next = i ? s.runs[i - 1].end : 0;
		for (size_t i = 0; i < nr; i++)
			list[s.runs[s.steps[i].run].next++].place = s.steps[i].pos;
	}
	free(s.runs);
	free(s.steps);
	return found;
}
