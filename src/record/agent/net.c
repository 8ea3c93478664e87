/* SPDX-License-Identifier: MIT */
/*
 * The net's audit. A call that the tracer sees in a program with an agent was
 * left to it by the agent, at a place that jumps to it; or the net has caught it: it came
 * from a place that was not changed. Those are counted, with where that is and why.
 */
#include "record/agent/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "record/agent/inside.h"

/* A compiler at run time makes new places for ever: beyond so many they are not told apart. */
#define PLACES_MAX 1024u
#define KNOWN_MAX 65536u
#define ELSEWHERE "other places"

struct net_place {
	uint64_t nr_calls;
	const char *why;
};

struct known_key {
	uint64_t space, ip;
};

static const char *const reasons[] = {
	[TEXT_FOREIGN] = "code that no loader has mapped",
	[TEXT_NO_SITE] = "cannot be changed",
	[TEXT_NOT_TAKEN] = "a call that the agent leaves alone",
	[TEXT_UNCHANGED] = "not changed before it was used",
};

static struct net_place *place_named(struct net *n, const char *name, const char *why)
{
	struct net_place *p = map_get(&n->places, name, strlen(name));

	if (!p && n->places.nr_live >= PLACES_MAX) {
		name = ELSEWHERE;
		why = "too many to tell them apart";
		p = map_get(&n->places, name, strlen(name));
	}
	if (!p) {
		p = xcalloc(1, sizeof(*p));
		p->why = why;
		*map_slot(&n->places, name, strlen(name)) = p;
	}
	return p;
}

/* Where an address is may have been asked before; the answer is one per address space. */
static struct net_place *find_place(struct net *n, const struct tracee *t, uint64_t syscall,
				    const char *why)
{
	struct known_key key = { t->space, syscall };
	struct net_place *p = map_get(&n->known, &key, sizeof(key));
	char name[AGENT_PLACE_MAX_BYTES];

	if (p && p->why == why)
		return p;
	agent_texts_name(t, syscall, name);
	p = place_named(n, name, why);
	if (n->known.nr_live < KNOWN_MAX)
		*map_slot(&n->known, &key, sizeof(key)) = p;
	return p;
}

void net_note_call(struct net *n, const struct tracee *t, uint64_t syscall, enum text_state state)
{
	if (state == TEXT_CHANGED) {
		n->nr_left++;
		return;
	}
	n->nr_caught++;
	find_place(n, t, syscall, reasons[state])->nr_calls++;
}

static int by_calls(const void *a, const void *b)
{
	const struct net_place *x = (*(const struct map_entry *const *)a)->value;
	const struct net_place *y = (*(const struct map_entry *const *)b)->value;

	return x->nr_calls > y->nr_calls ? -1 : x->nr_calls < y->nr_calls;
}

/* One per line, those with most calls first. */
void net_put_places(const struct net *n, struct buf *ret)
{
	const struct map_entry **list = xcalloc(n->places.nr_live + 1, sizeof(*list));
	size_t nr = 0, i;

	MAP_EACH (&n->places, e)
		list[nr++] = e;
	qsort(list, nr, sizeof(*list), by_calls);
	for (i = 0; i < nr; i++) {
		const struct net_place *p = list[i]->value;

		buf_printf(ret, "%s%llu from %s: %s", i ? "\n" : "",
			   (unsigned long long)p->nr_calls, list[i]->key, p->why);
	}
	free(list);
}

struct net *net_new(void)
{
	return xcalloc(1, sizeof(struct net));
}

void net_free(struct net *n)
{
	if (!n)
		return;
	MAP_EACH (&n->places, e)
		free(e->value);
	map_release(&n->places);
	map_release(&n->known);
	free(n);
}
