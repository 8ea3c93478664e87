/* SPDX-License-Identifier: MIT */
#include "order/vectors.h"

#include <stdlib.h>
#include <string.h>

/* Changes kept of each lane. */
#define LOG_MIN 16
#define LOG_MAX 512
/* Work for one action; what is left out costs superfluous edges only. */
#define MERGE_BUDGET 256

void vectors_release(struct vectors *v)
{
	size_t i;
	uint32_t c;

	for (i = 0; i < v->lanes.len; i++) {
		struct vector *l = &v->lanes.items[i];

		for (c = 0; c < l->nr_chunks; c++)
			free(l->chunks[c]);
		free(l->chunks);
		free(l->log);
	}
	VEC_RELEASE(&v->lanes);
	free(v->undone);
	free(v->undone_stamp);
	*v = (struct vectors){ 0 };
}

struct vector *vectors_lane(struct vectors *v, uint32_t lane)
{
	while (v->lanes.len <= lane)
		VEC_PUSH(&v->lanes, (struct vector){ 0 });
	if (v->lanes.len > v->undone_cap) {
		size_t cap = v->lanes.cap;

		v->undone = xrealloc(v->undone, cap * sizeof(*v->undone));
		v->undone_stamp = xrealloc(v->undone_stamp, cap * sizeof(*v->undone_stamp));
		memset(v->undone_stamp + v->undone_cap, 0,
		       (cap - v->undone_cap) * sizeof(*v->undone_stamp));
		v->undone_cap = cap;
	}
	return &v->lanes.items[lane];
}

void vectors_begin(struct vectors *v)
{
	v->budget = MERGE_BUDGET;
}

bool vector_covers(const struct vectors *v, uint32_t lane, uint32_t of, uint64_t nr)
{
	const struct vector *l;
	uint32_t c = of / VECTOR_CHUNK;

	if (lane == of || nr == 0)
		return true;
	if (lane >= v->lanes.len)
		return false;
	l = &v->lanes.items[lane];
	return c < l->nr_chunks && l->chunks[c] && l->chunks[c][of % VECTOR_CHUNK] >= nr;
}

static uint64_t *get_chunk(struct vector *l, uint32_t c)
{
	if (c >= l->nr_chunks) {
		l->chunks = xrealloc(l->chunks, (c + 1) * sizeof(*l->chunks));
		memset(l->chunks + l->nr_chunks, 0, (c + 1 - l->nr_chunks) * sizeof(*l->chunks));
		l->nr_chunks = c + 1;
	}
	if (!l->chunks[c])
		l->chunks[c] = xcalloc(VECTOR_CHUNK, sizeof(**l->chunks));
	return l->chunks[c];
}

static void log_grow(struct vector *l, uint32_t cap)
{
	struct vector_change *log = xmalloc(cap * sizeof(*log));
	uint32_t i;

	for (i = 0; i < l->log_len; i++)
		log[i] = l->log[(l->log_first + i) & (l->log_cap - 1)];
	free(l->log);
	l->log = log;
	l->log_cap = cap;
	l->log_first = 0;
}

static void log_change(struct vector *l, struct vector_change change)
{
	l->changed_nr = change.nr;
	if (l->log_len == l->log_cap && l->log_cap < LOG_MAX)
		log_grow(l, l->log_cap ? l->log_cap * 2 : LOG_MIN);
	if (l->log_len == l->log_cap) {
		l->kept_from = l->log[l->log_first].nr + 1;
		l->log_first = (l->log_first + 1) & (l->log_cap - 1);
		l->log_len--;
	}
	l->log[(l->log_first + l->log_len++) & (l->log_cap - 1)] = change;
}

static void raise_entry(struct vector *l, uint64_t at, uint32_t of, uint64_t nr)
{
	uint64_t *place = &get_chunk(l, of / VECTOR_CHUNK)[of % VECTOR_CHUNK];

	if (*place >= nr)
		return;
	log_change(l, (struct vector_change){ .nr = at, .old = *place, .lane = of });
	*place = nr;
}

/* What the lane learnt after its action `known` started, taken back: into v->undone. */
static bool undo(struct vectors *v, const struct vector *from, uint64_t known)
{
	uint32_t i;

	if (known + 1 < from->kept_from)
		return false;
	v->stamp++;
	for (i = from->log_len; i > 0; i--) {
		const struct vector_change *c =
			&from->log[(from->log_first + i - 1) & (from->log_cap - 1)];

		if (c->nr <= known)
			break;
		v->undone[c->lane] = c->old;
		v->undone_stamp[c->lane] = v->stamp;
	}
	return true;
}

static void merge_chunk(struct vectors *v, struct vector *to, uint64_t at, uint32_t lane,
			uint32_t c, const uint64_t *from, bool undone)
{
	const uint64_t *mine = get_chunk(to, c);
	uint32_t i;

	for (i = 0; i < VECTOR_CHUNK; i++) {
		uint32_t of = c * VECTOR_CHUNK + i;
		uint64_t nr = from[i];

		if (nr <= mine[i] || of == lane)
			continue;
		if (undone && v->undone_stamp[of] == v->stamp)
			nr = v->undone[of];
		if (nr > mine[i])
			raise_entry(to, at, of, nr);
	}
}

void vector_learn(struct vectors *v, uint32_t lane, uint64_t at, uint32_t of, uint64_t nr,
		  uint64_t known)
{
	struct vector *to = &v->lanes.items[lane], *from = &v->lanes.items[of];
	bool undone = from->log_len && from->changed_nr > known;
	uint32_t c;

	raise_entry(to, at, of, nr);
	if (undone && !undo(v, from, known))
		return;
	for (c = 0; c < from->nr_chunks; c++) {
		if (!from->chunks[c])
			continue;
		if (!v->budget)
			return;
		v->budget--;
		merge_chunk(v, to, at, lane, c, from->chunks[c], undone);
	}
}
