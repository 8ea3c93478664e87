/* SPDX-License-Identifier: MIT */
/*
 * What `root` remembers of a resource, and how a touch becomes edges.
 *
 *   names, descriptors, handles, maps, open files, aio   one struct rw: who came
 *       last, by stage or by sequence (stage.c)
 *   files        conflicts, by bytes, size, metadata, listing (file.c, range.c)
 *   streams, locks    bytes that are put and taken, ranges that are locked
 *
 * States hang in res->order and in a list, so that those of resources that are
 * alive at the end can be freed without the model.
 */
#ifndef ORDER_TOUCHES_H
#define ORDER_TOUCHES_H

#include "order/range.h"
#include "order/threads.h"
#include "order/users.h"

struct state {
	struct state *next, **prev;
	uint8_t kind; /* of the resource */
};

/* Of what has stages or a sequence. */
struct stage_state {
	struct state state;
	struct rw rw;
};

/* Of RES_STREAM and RES_LOCKS. */
struct stream_state {
	struct state state;
	struct ranges ranges;
	struct users ends; /* who made it, and who closed an end of it */
	struct rw reads, writes; /* of a real stream: the last of each */
	/* Of a FIFO: who opened its ends, and who closed one last. */
	struct users opens;
	struct rw closes;
};

struct touches {
	rule_set rules;
	struct state *all;
	struct range_budget budget;
	struct users changes, syncs; /* of any file; of all that is stored */
};

static inline bool has_rule(const struct touches *t, enum rule rule)
{
	return t->rules >> rule & 1;
}

/* The state of a resource, made when it has none. */
void *state_of(struct touches *t, struct res *res, size_t size);

/* By an action. */
void touches_act(struct touches *t, const struct order_input *in, const struct sink *sink);
/*
 * By an event that will not be made again: only what goes through streams and
 * locks orders others, and `before` is what they learn of.
 */
void touches_watch(struct touches *t, const struct order_input *in, const struct users *before,
		   const struct sink *sink);
void touches_forget(struct touches *t, struct res *res, struct res *heir);
void touches_release(struct touches *t);

/* self is one action in these. */
void stage_touch(struct touches *t, const struct touch *touch, const struct users *self,
		 const struct sink *sink);

void file_touch(struct touches *t, const struct touch *touch, const struct users *self,
		const struct sink *sink);
void file_release(struct state *state);
/* All that was changed is written out. */
void storage_touch(struct touches *t, const struct users *self, const struct sink *sink);
/* A name is no longer remembered by itself; its directory takes over who used and who changed it. */
void file_absorb(struct touches *t, struct res *dir, const struct rw *name);

#endif
