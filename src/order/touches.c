/* SPDX-License-Identifier: MIT */
#include "order/touches.h"

#include <assert.h>
#include <stdlib.h>

static void unlink_state(struct state *s)
{
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
}

static void init_state(struct touches *t, struct state *s)
{
	switch (s->kind) {
	case RES_STREAM:
	case RES_LOCKS:
		((struct stream_state *)s)->ranges.budget = &t->budget;
		rw_init(&((struct stream_state *)s)->reads);
		rw_init(&((struct stream_state *)s)->writes);
		rw_init(&((struct stream_state *)s)->closes);
		break;
	case RES_FILE: /* file.c does it */
		break;
	default:
		rw_init(&((struct stage_state *)s)->rw);
		break;
	}
}

void *state_of(struct touches *t, struct res *res, size_t size)
{
	struct state *s = res->order;

	if (s)
		return s;
	s = xcalloc(1, size);
	s->kind = res->kind;
	init_state(t, s);
	s->next = t->all;
	s->prev = &t->all;
	if (t->all)
		t->all->prev = &s->next;
	t->all = s;
	res->order = s;
	return s;
}

static void free_state(struct state *s)
{
	switch (s->kind) {
	case RES_FILE:
		file_release(s);
		break;
	case RES_STREAM:
	case RES_LOCKS:
		ranges_release(&((struct stream_state *)s)->ranges);
		users_release(&((struct stream_state *)s)->ends);
		rw_release(&((struct stream_state *)s)->reads);
		rw_release(&((struct stream_state *)s)->writes);
		rw_release(&((struct stream_state *)s)->closes);
		users_release(&((struct stream_state *)s)->opens);
		break;
	default:
		rw_release(&((struct stage_state *)s)->rw);
		break;
	}
	free(s);
}

void touches_release(struct touches *t)
{
	struct state *s, *next;

	for (s = t->all; s; s = next) {
		next = s->next;
		free_state(s);
	}
	t->all = NULL;
	users_release(&t->changes);
	users_release(&t->syncs);
}

/* A reader may have seen the end of what a pipe will ever hold: it comes after those who closed it. */
static void stream_touch(struct touches *t, const struct touch *touch, const struct users *before,
			 const struct sink *sink)
{
	struct stream_state *s = state_of(t, touch->res, sizeof(*s));

	if (touch->how & TOUCH_READ) {
		sink_ask_all(sink, &s->ends, RULE_sync_wake);
		ranges_take(&s->ranges, touch->from, touch->to, sink, RULE_sync_wake);
	}
	if (touch->how & TOUCH_WRITE)
		ranges_put(&s->ranges, touch->from, touch->to, before);
	if (touch->how & TOUCH_STAGE)
		users_add_all(&s->ends, before);
}

/*
 * An end of a FIFO comes after all that went through it before: who read its end
 * would else wait for another writer. And it goes after all that came before it,
 * else what the FIFO holds would be lost. Who opens does not wait for others who
 * do: they may wait for each other.
 */
static void end_touch(struct stream_state *s, const struct touch *touch, const struct users *self,
		      const struct sink *sink)
{
	sink_ask(sink, &s->reads.writer, RULE_sync_wake);
	sink_ask(sink, &s->writes.writer, RULE_sync_wake);
	if (touch->how & TOUCH_CREATE) {
		sink_ask(sink, &s->closes.writer, RULE_sync_wake);
		users_add_all(&s->opens, self);
	} else {
		sink_ask_all(sink, &s->opens, RULE_sync_wake);
		rw_next(&s->closes, &self->one, sink, RULE_sync_wake);
	}
}

/*
 * By an action, on a stream that a replay has too. A write that overlapped its
 * read may have waited for it, as what does not fit into a pipe does: the read
 * must not wait for the end of that. The pipe itself gives it the bytes in time.
 */
static void real_stream_touch(struct touches *t, const struct touch *touch,
			      const struct order_input *in, const struct users *self,
			      const struct sink *sink)
{
	struct sink starts = *sink;
	struct stream_state *s = state_of(t, touch->res, sizeof(*s));

	if (touch->res->real)
		starts.started_since_ns = in->self.enter_ns + 1;
	if (touch->res->real && touch->how & TOUCH_CHANGE)
		end_touch(s, touch, self, sink);
	/* Without a reader what is written would be lost, without a writer it seems to end. */
	if (touch->res->real && touch->how & (TOUCH_READ | TOUCH_WRITE))
		sink_ask_all(sink, &s->opens, RULE_sync_wake);
	/* Who reads which bytes, and whose are where, through whatever open file. */
	if (touch->res->real && has_rule(t, RULE_offset_seq)) {
		if (touch->how & TOUCH_READ)
			rw_next(&s->reads, &self->one, sink, RULE_offset_seq);
		if (touch->how & TOUCH_WRITE)
			rw_next(&s->writes, &self->one, sink, RULE_offset_seq);
	}
	stream_touch(t, touch, self, &starts);
}

static void locks_touch(struct touches *t, const struct touch *touch, const struct users *before,
			const struct sink *sink)
{
	struct stream_state *s = state_of(t, touch->res, sizeof(*s));
	struct range_user u = { .self = before, .sink = sink, .rule = RULE_sync_wake };

	if (touch->how & TOUCH_WRITE)
		ranges_write(&s->ranges, touch->from, touch->to, &u);
	else if (touch->how & TOUCH_READ)
		ranges_read(&s->ranges, touch->from, touch->to, &u);
}

static void open_touch(struct touches *t, const struct touch *touch, const struct users *self,
		       const struct sink *sink)
{
	struct stage_state *s;

	if (!(touch->how & TOUCH_OFFSET) || !has_rule(t, RULE_offset_seq))
		return;
	s = state_of(t, touch->res, sizeof(*s));
	rw_next(&s->rw, &self->one, sink, RULE_offset_seq);
}

void touches_act(struct touches *t, const struct order_input *in, const struct sink *sink)
{
	struct users self = { .nr = 1, .one = user_from_ref(&in->self) };
	size_t i;

	for (i = 0; i < in->facts->touches.len; i++) {
		const struct touch *touch = &in->facts->touches.items[i];

		switch (touch->res->kind) {
		case RES_FILE:
			file_touch(t, touch, &self, sink);
			break;
		case RES_STORAGE:
			storage_touch(t, &self, sink);
			break;
		case RES_OPEN:
			open_touch(t, touch, &self, sink);
			break;
		case RES_STREAM:
			if (has_rule(t, RULE_sync_wake))
				real_stream_touch(t, touch, in, &self, sink);
			break;
		case RES_LOCKS:
			if (has_rule(t, RULE_sync_wake))
				locks_touch(t, touch, &self, sink);
			break;
		default:
			stage_touch(t, touch, &self, sink);
			break;
		}
	}
}

void touches_watch(struct touches *t, const struct order_input *in, const struct users *before,
		   const struct sink *sink)
{
	size_t i;

	for (i = 0; i < in->facts->touches.len; i++) {
		const struct touch *touch = &in->facts->touches.items[i];

		if (touch->res->kind == RES_STREAM)
			stream_touch(t, touch, before, sink);
		else if (touch->res->kind == RES_LOCKS)
			locks_touch(t, touch, before, sink);
	}
}

void touches_forget(struct touches *t, struct res *res, struct res *heir)
{
	struct state *s = res->order;

	if (!s)
		return;
	/* Only an entry has an heir, and it is the directory that held it. */
	if (heir) {
		assert(res->kind == RES_NAME && heir->kind == RES_FILE);
		file_absorb(t, heir, &((struct stage_state *)s)->rw);
	}
	unlink_state(s);
	free_state(s);
	res->order = NULL;
}
