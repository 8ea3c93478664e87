/* SPDX-License-Identifier: MIT */
/*
 * The block layer's events to requests. By issue: D begins a request, C of the
 * same device and sector ends it. By queue: Q begins one, and C ends all those
 * that were merged into what it completes, which lie one behind the other.
 */
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/map.h"
#include "base/mem.h"
#include "import/block.h"

struct key {
	uint64_t dev, sector;
	uint64_t empty; /* a flush has no place of its own */
};

struct begun {
	struct block_held *held;
	uint64_t bytes;
	struct begun *older; /* of the same key */
	bool requeued;
};

struct block_layer {
	struct block_feed *feed;
	char begins; /* the action */
	struct map begun; /* struct key -> struct begun */
};

struct block_layer *block_layer_new(struct block_feed *feed, enum import_events events)
{
	struct block_layer *l = xcalloc(1, sizeof(*l));

	l->feed = feed;
	l->begins = events == IMPORT_EVENTS_QUEUE ? 'Q' : 'D';
	return l;
}

static struct key key_of(const struct block_layer_event *ev)
{
	return (struct key){ .dev = ev->dev, .sector = ev->sector, .empty = !ev->bytes };
}

static int begin(struct block_layer *l, const struct block_layer_event *ev, struct err *err)
{
	struct key key = key_of(ev);
	struct begun *b = map_get(&l->begun, &key, sizeof(key));
	struct block_held *held = NULL;
	struct block_found found = {
		.rq = { .dev = ev->dev,
			.op = ev->op,
			.flags = ev->flags,
			.offset_bytes = ev->sector * BLK_SECTOR_BYTES,
			.length_bytes = ev->bytes,
			.pid = ev->pid,
			.comm = ev->comm,
			.comm_len = ev->comm_len,
			.cpu = ev->cpu },
		.issue_ns = ev->time_ns,
		.await_end = true,
		.origin = ev->origin,
	};
	int r;

	if (b && b->requeued) {
		b->requeued = false; /* the device gets it again */
		return 0;
	}
	if (ev->sector > UINT64_MAX / BLK_SECTOR_BYTES || !ev->bytes)
		found.rq.offset_bytes = 0; /* of a flush it says nothing */
	/* A write of nothing behind a flush is what the flush of a device looks like from above. */
	if (!ev->bytes && ev->flags & BLK_FLAG_FLUSH) {
		found.rq.op = BLK_FLUSH;
		found.rq.flags &= ~(uint64_t)BLK_FLAG_FLUSH;
	}
	r = block_feed_add(l->feed, &found, &held, err);
	if (r < 0 || !held)
		return r;
	b = xcalloc(1, sizeof(*b));
	*b = (struct begun){ .held = held,
			     .bytes = ev->bytes,
			     .older = map_get(&l->begun, &key, sizeof(key)) };
	*map_slot(&l->begun, &key, sizeof(key)) = b;
	return 0;
}

/* The request of this key that is waiting longest is over; returns its bytes, 0: there is none. */
static uint64_t end_one(struct block_layer *l, const struct key *key,
			const struct block_layer_event *ev)
{
	struct begun *b = map_get(&l->begun, key, sizeof(*key)), **link = &b;
	uint64_t bytes;
	struct begun *oldest;

	if (!b)
		return 0;
	while ((*link)->older)
		link = &(*link)->older;
	oldest = *link;
	*link = NULL;
	if (!b)
		(void)map_remove(&l->begun, key, sizeof(*key));
	bytes = oldest->bytes;
	block_feed_end(oldest->held, ev->time_ns, ev->err);
	free(oldest);
	return bytes;
}

static void end(struct block_layer *l, const struct block_layer_event *ev)
{
	struct key key = key_of(ev);
	uint64_t left = ev->bytes, bytes;

	do {
		bytes = end_one(l, &key, ev);
		key.sector += bytes / BLK_SECTOR_BYTES;
		left = bytes < left ? left - bytes : 0;
	} while (l->begins == 'Q' && bytes && left);
}

int block_layer_event(struct block_layer *l, const struct block_layer_event *ev, struct err *err)
{
	struct key key = key_of(ev);
	struct begun *b;

	if (ev->action == l->begins)
		return begin(l, ev, err);
	if (ev->action == 'C')
		end(l, ev);
	if (ev->action == 'R' && l->begins == 'D') {
		b = map_get(&l->begun, &key, sizeof(key));
		if (b)
			b->requeued = true;
	}
	return 0;
}

void block_layer_free(struct block_layer *l)
{
	if (!l)
		return;
	MAP_EACH (&l->begun, e) {
		struct begun *b = e->value, *older;

		for (; b; b = older) {
			older = b->older;
			block_feed_give_up(b->held);
			free(b);
		}
	}
	map_release(&l->begun);
	free(l);
}
