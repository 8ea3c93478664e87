/* SPDX-License-Identifier: MIT */
/*
 * Files and directories: rules file_stage, file_seq and file_range.
 *
 * file_seq is for what is no directory, as in the paper: whether two actions in
 * one directory meet is the business of its names. It subsumes the other two.
 */
#include <stdlib.h>

#include "order/touches.h"

/* What most files do not have. */
struct rare {
	struct users syncs; /* against all that changes the file, but for what overlapped them */
	struct users lists, entries; /* of a directory: these against those */
	/* Of names in this directory that are no longer remembered one by one. */
	struct users name_uses, name_changes;
	struct rw life; /* file_stage, file_seq */
};

struct file_state {
	struct state state;
	struct ranges bytes;
	struct rw size, meta;
	struct rare *rare;
};

static struct file_state *file_of(struct touches *t, struct res *res)
{
	bool fresh = !res->order;
	struct file_state *f = state_of(t, res, sizeof(*f));

	if (fresh) {
		f->bytes.budget = &t->budget;
		rw_init(&f->size);
		rw_init(&f->meta);
	}
	return f;
}

static struct rare *rare_of(struct file_state *f)
{
	if (!f->rare) {
		f->rare = xcalloc(1, sizeof(*f->rare));
		rw_init(&f->rare->life);
	}
	return f->rare;
}

static void touch_rw(struct rw *rw, uint32_t how, uint32_t read, uint32_t write,
		     const struct users *self, const struct sink *sink)
{
	if (how & write)
		rw_write(rw, &self->one, sink, RULE_file_range);
	else if (how & read)
		rw_read(rw, &self->one, sink, RULE_file_range);
}

static void touch_listing(struct file_state *f, uint32_t how, const struct users *self,
			  const struct sink *sink)
{
	struct rare *r = rare_of(f);

	if (how & TOUCH_LIST)
		sink_ask_all(sink, &r->entries, RULE_file_range);
	if (how & TOUCH_ENTRY)
		sink_ask_all(sink, &r->lists, RULE_file_range);
	if (how & TOUCH_LIST)
		users_add(&r->lists, &self->one);
	if (how & TOUCH_ENTRY)
		users_add(&r->entries, &self->one);
}

static struct sink over_when_begun(const struct sink *sink, const struct users *self)
{
	struct sink over = *sink;

	over.only_over = true;
	over.over_by_ns = self->one.enter_ns;
	return over;
}

/*
 * A sync has something to do with what was there when it began. Who wrote while it
 * was made, as those do who wait for the next one of a shared log, neither waits for
 * it nor is waited for.
 */
static void touch_sync(struct file_state *f, const struct touch *touch, const struct users *self,
		       const struct sink *sink)
{
	static const struct users nobody;
	struct sink over = over_when_begun(sink, self);
	struct range_user u = { .self = &nobody, .sink = &over, .rule = RULE_file_range };
	struct rare *r = rare_of(f);

	if (touch->how & TOUCH_READ)
		ranges_read(&f->bytes, touch->from, touch->to, &u);
	sink_ask(&over, &f->size.writer, RULE_file_range);
	sink_ask(&over, &f->meta.writer, RULE_file_range);
	sink_ask_all(&over, &r->entries, RULE_file_range);
	users_add(&r->syncs, &self->one);
}

static void touch_conflicts(struct file_state *f, const struct touch *touch,
			    const struct users *self, const struct sink *sink)
{
	struct range_user u = { .self = self, .sink = sink, .rule = RULE_file_range };
	uint32_t how = touch->how;

	if (how & TOUCH_SYNC) {
		touch_sync(f, touch, self, sink);
		return;
	}
	if (how & TOUCH_STORED && f->rare) {
		struct sink over = over_when_begun(sink, self);

		sink_ask_all(&over, &f->rare->syncs, RULE_file_range);
	}
	if (how & TOUCH_WRITE)
		ranges_write(&f->bytes, touch->from, touch->to, &u);
	else if (how & TOUCH_READ)
		ranges_read(&f->bytes, touch->from, touch->to, &u);
	touch_rw(&f->size, how, TOUCH_SIZE_READ, TOUCH_SIZE_WRITE, self, sink);
	touch_rw(&f->meta, how, TOUCH_META_READ, TOUCH_META_WRITE, self, sink);
	if (how & (TOUCH_LIST | TOUCH_ENTRY))
		touch_listing(f, how, self, sink);
}

static void touch_life(struct touches *t, struct file_state *f, bool seq, uint32_t how,
		       const struct users *self, const struct sink *sink)
{
	if (seq)
		rw_next(&rare_of(f)->life, &self->one, sink, RULE_file_seq);
	else if (has_rule(t, RULE_file_stage) && how & (TOUCH_CREATE | TOUCH_DELETE))
		rw_write(&rare_of(f)->life, &self->one, sink, RULE_file_stage);
	else if (has_rule(t, RULE_file_stage))
		rw_read(&rare_of(f)->life, &self->one, sink, RULE_file_stage);
}

void file_touch(struct touches *t, const struct touch *touch, const struct users *self,
		const struct sink *sink)
{
	bool seq = has_rule(t, RULE_file_seq) && !touch->res->directory;
	struct file_state *f;

	if (!has_rule(t, RULE_file_seq) && !has_rule(t, RULE_file_stage) &&
	    !has_rule(t, RULE_file_range) && !touch->res->order)
		return;
	f = file_of(t, touch->res);
	if (f->rare) {
		sink_ask_all(sink, &f->rare->name_changes, RULE_path_stage);
		if (touch->how & TOUCH_ENTRY)
			sink_ask_all(sink, &f->rare->name_uses, RULE_path_stage);
	}
	touch_life(t, f, seq, touch->how, self, sink);
	if (!has_rule(t, RULE_file_range))
		return;
	if (!seq)
		touch_conflicts(f, touch, self, sink);
	if (touch->how & TOUCH_STORED) {
		sink_ask_all(sink, &t->syncs, RULE_file_range);
		users_add(&t->changes, &self->one);
	}
}

void storage_touch(struct touches *t, const struct users *self, const struct sink *sink)
{
	if (!has_rule(t, RULE_file_range))
		return;
	sink_ask_all(sink, &t->changes, RULE_file_range);
	users_add(&t->syncs, &self->one);
}

void file_absorb(struct touches *t, struct res *dir, const struct rw *name)
{
	struct rare *r = rare_of(file_of(t, dir));

	users_add(&r->name_changes, &name->writer);
	users_add_all(&r->name_uses, &name->readers);
}

void file_release(struct state *state)
{
	struct file_state *f = (struct file_state *)state;

	ranges_release(&f->bytes);
	rw_release(&f->size);
	rw_release(&f->meta);
	if (!f->rare)
		return;
	users_release(&f->rare->syncs);
	users_release(&f->rare->lists);
	users_release(&f->rare->entries);
	users_release(&f->rare->name_uses);
	users_release(&f->rare->name_changes);
	rw_release(&f->rare->life);
	free(f->rare);
}
