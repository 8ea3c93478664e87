/* SPDX-License-Identifier: MIT */
/*
 * Names are told apart by text and generation, everything else by the
 * resource's id: a file has many names in its life, and is called by the first.
 */
#include "compile/series.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/map.h"

struct one {
	char *name;
	VEC(uint64_t) events;
};

/* How many things have borne a path, and whether the last still does. */
struct path_state {
	uint32_t generation;
	bool present;
	struct one *now;
};

struct series {
	struct compile_observer observer;
	VEC(struct one *) all;
	struct map by_id; /* resources that are no names: id -> struct one */
	struct map paths; /* text -> struct path_state */
	struct map absent; /* text and generation before -> struct one */
	struct map numbers; /* fd3 -> how many there have been */
	struct buf text, other;
};

static void add_event(struct one *o, uint64_t number)
{
	if (!o->events.len || o->events.items[o->events.len - 1] != number)
		VEC_PUSH(&o->events, number);
}

static struct one *one_new(struct series *s, const char *name)
{
	struct one *o = xcalloc(1, sizeof(*o));

	o->name = xstrdup(name);
	VEC_PUSH(&s->all, o);
	return o;
}

/* The n-th descriptor of this number, in whatever process. */
static void name_descriptor(struct series *s)
{
	const uint8_t *at = memchr(s->text.data, '@', s->text.len);
	size_t len = at ? (size_t)(at - s->text.data) : s->text.len;
	void **slot = map_slot(&s->numbers, s->text.data, len);
	uintptr_t generation = (uintptr_t)*slot + 1;

	*slot = (void *)generation;
	s->text.len = len;
	buf_printf(&s->text, "@%llu", (unsigned long long)generation);
}

static void touch_by_id(struct series *s, const struct compiled *c, const struct res *res)
{
	void **slot = map_slot(&s->by_id, &res->id, sizeof(res->id));

	if (!*slot) {
		buf_clear(&s->text);
		fsmodel_res_name(c->model, res, &s->text);
		if (res->kind == RES_FD)
			name_descriptor(s);
		*slot = one_new(s, buf_str(&s->text));
	}
	add_event(*slot, c->number);
}

static void touch_thread(struct series *s, const struct compiled *c)
{
	char name[32];
	void **slot;

	snprintf(name, sizeof(name), "thread(%u)", c->ev->tid);
	slot = map_slot(&s->by_id, name, strlen(name));
	if (!*slot)
		*slot = one_new(s, name);
	add_event(*slot, c->number);
}

/* `path` is text; begins: a new generation; ends: nothing bears the name afterwards. */
static void touch_path(struct series *s, uint64_t number, struct buf *path, bool begins, bool ends)
{
	void **slot = map_slot(&s->paths, path->data, path->len);
	struct path_state *p = *slot;
	struct buf name = { 0 };

	if (!p)
		p = *slot = xcalloc(1, sizeof(*p));
	if (!p->now || (begins && !(p->present && !p->now->events.len))) {
		p->generation++;
		buf_puts(&name, "path(");
		buf_put(&name, path->data, path->len);
		buf_printf(&name, ")@%u", p->generation);
		p->now = one_new(s, buf_str(&name));
		buf_release(&name);
	}
	p->present = !ends;
	add_event(p->now, number);
	if (ends)
		p->now = NULL; /* the next touch is another's */
}

struct moved {
	struct series *s;
	const struct compiled *c;
	const struct buf *from, *to;
};

/* A name below a directory that was renamed: its old path ends, its new one begins. */
static void move_below(void *arg, const struct res *name)
{
	struct moved *m = arg;
	struct buf path = { 0 }, old = { 0 };

	if (fsmodel_path(m->c->model, name, &path) && path.len > m->to->len) {
		buf_put(&old, m->from->data, m->from->len);
		buf_put(&old, path.data + m->to->len, path.len - m->to->len);
		if (map_get(&m->s->paths, old.data, old.len))
			touch_path(m->s, m->c->number, &old, false, true);
		touch_path(m->s, m->c->number, &path, true, false);
	}
	buf_release(&path);
	buf_release(&old);
}

/* Nothing is there: what is touched is the absence behind the n-th thing of that name. */
static void touch_absence(struct series *s, uint64_t number)
{
	const struct path_state *p = map_get(&s->paths, s->text.data, s->text.len);
	struct buf name = { 0 };
	void **slot;

	buf_puts(&name, "absent(");
	buf_put(&name, s->text.data, s->text.len);
	buf_printf(&name, ")@%u", p ? p->generation : 0);
	slot = map_slot(&s->absent, name.data, name.len);
	if (!*slot)
		*slot = one_new(s, buf_str(&name));
	add_event(*slot, number);
	buf_release(&name);
}

static bool is_made_too(const struct compiled *c, const struct res *res)
{
	for (size_t i = 0; i < c->facts->touches.len; i++) {
		if (c->facts->touches.items[i].res == res &&
		    (c->facts->touches.items[i].how & TOUCH_CREATE))
			return true;
	}
	return false;
}

static void touch_name(struct series *s, const struct compiled *c, const struct touch *t)
{
	buf_clear(&s->text);
	if (!fsmodel_path(c->model, t->res, &s->text))
		return;
	if (t->how & TOUCH_FAILED) {
		if (!is_made_too(c, t->res))
			touch_absence(s, c->number);
		return;
	}
	touch_path(s, c->number, &s->text, t->how & TOUCH_CREATE, t->how & TOUCH_DELETE);
}

static void see_rename(struct series *s, const struct compiled *c)
{
	const struct res *from = NULL, *to = NULL;
	struct moved m = { .s = s, .c = c, .from = &s->text, .to = &s->other };

	for (size_t i = 0; i < c->facts->touches.len; i++) {
		const struct touch *t = &c->facts->touches.items[i];

		if (t->res->kind != RES_NAME)
			continue;
		if ((t->how & TOUCH_DELETE) && !(t->how & TOUCH_CREATE))
			from = t->res;
		else if (t->how & TOUCH_CREATE)
			to = t->res;
	}
	if (!from || !to)
		return;
	buf_clear(&s->text);
	buf_clear(&s->other);
	if (fsmodel_path(c->model, from, &s->text) && fsmodel_path(c->model, to, &s->other))
		fsmodel_names_below(c->model, to, move_below, &m);
}

static void see_event(struct compile_observer *o, const struct compiled *c)
{
	struct series *s = (struct series *)o;

	if (!c->facts->touches.len)
		return;
	touch_thread(s, c);
	for (size_t i = 0; i < c->facts->touches.len; i++) {
		const struct touch *t = &c->facts->touches.items[i];

		if (t->res->kind != RES_NAME)
			touch_by_id(s, c, t->res);
		else if (!(t->how & TOUCH_WALK)) /* the paper counts the name that is meant */
			touch_name(s, c, t);
	}
	see_rename(s, c);
}

struct series *series_new(void)
{
	struct series *s = xcalloc(1, sizeof(*s));

	s->observer.event = see_event;
	return s;
}

void series_free(struct series *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->all.len; i++) {
		free(s->all.items[i]->name);
		VEC_RELEASE(&s->all.items[i]->events);
		free(s->all.items[i]);
	}
	VEC_RELEASE(&s->all);
	MAP_EACH (&s->paths, e)
		free(e->value);
	map_release(&s->paths);
	map_release(&s->absent);
	map_release(&s->numbers);
	map_release(&s->by_id);
	buf_release(&s->text);
	buf_release(&s->other);
	free(s);
}

struct compile_observer *series_observer(struct series *s)
{
	return &s->observer;
}

size_t series_count(const struct series *s)
{
	return s->all.len;
}

struct series_entry series_get(const struct series *s, size_t n)
{
	const struct one *o = s->all.items[n];

	return (struct series_entry){ .name = o->name,
				      .events = o->events.items,
				      .nr_events = o->events.len };
}
