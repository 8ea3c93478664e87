/* SPDX-License-Identifier: MIT */
#include "compile/part.h"

#include <unistd.h>

#include "base/banned.h"

/* Touches that leave something behind. */
#define LASTING                                                                                    \
	(TOUCH_STAGE | TOUCH_WRITE | TOUCH_SIZE_WRITE | TOUCH_META_WRITE | TOUCH_ENTRY |           \
	 TOUCH_OFFSET)

static bool is_at(const struct compile_bound *b, const struct event *ev)
{
	return b->is_event ? ev->seq >= b->at : ev->enter_ns >= b->at;
}

static bool is_set(const struct compile_bound *b)
{
	return b->is_event || b->at;
}

void part_init(struct part *p, const struct compile_options *o)
{
	*p = (struct part){ .begun = !is_set(&o->from) };
}

bool part_is_over(const struct compile_options *o, const struct event *ev)
{
	return is_set(&o->to) && is_at(&o->to, ev);
}

bool part_is_before(struct part *p, const struct compile_options *o, const struct event *ev)
{
	/* Notes of what was found are no beginning: they may stand anywhere. */
	if (!p->begun && ev->row->sort == ROW_CALL && is_at(&o->from, ev)) {
		p->begun = true;
		p->begin_ns = ev->enter_ns;
	}
	return !p->begun;
}

bool part_needs(const struct event *ev, const struct facts *facts)
{
	if (ev->outcome.err)
		return false;
	switch (row_class(ev->row)) {
	case C_MAP:
	case C_LOCK:
	case C_AIO:
		return true;
	default:
		break;
	}
	if (facts->new_handle)
		return true;
	for (size_t i = 0; i < facts->touches.len; i++) {
		if (facts->touches.items[i].how & LASTING)
			return true;
	}
	return false;
}

/* Not of directories, where offsets are the file system's own, nor of what has none. */
static bool reads_at_offset(const struct event *ev, const struct facts *facts)
{
	bool moved = false;

	/* What is read from a pipe is not there any more: no offset stands for that. */
	if (facts->stream)
		return false;
	if (ev->row->result != RESULT_BYTES_READ || ev->outcome.ret < 0 || !facts->fds.len ||
	    facts->fds.items[0].where != &ev->args[0])
		return false;
	for (size_t i = 0; i < facts->touches.len; i++) {
		const struct touch *t = &facts->touches.items[i];

		moved |= t->res->kind == RES_OPEN && (t->how & TOUCH_OFFSET);
	}
	return moved;
}

bool part_make_seek(const struct event *ev, const struct facts *facts, struct action *a)
{
	uint64_t end = facts->offset + (uint64_t)ev->outcome.ret;

	if (!reads_at_offset(ev, facts) || end > INT64_MAX || end < facts->offset)
		return false;
	a->row = row_by_id(SC_lseek);
	a->outcome = (struct outcome){ .ret = (int64_t)end };
	a->args[0] = value_int(facts->fds.items[0].fd ? facts->fds.items[0].fd->slot : -1);
	a->args[1] = value_int((int64_t)end);
	a->args[2] = value_uint(SEEK_SET);
	return true;
}

void part_cut_think(const struct part *p, struct think *t)
{
	if (t->started && t->since_ns < p->begin_ns) {
		t->since_ns = p->begin_ns;
		t->held_ns = 0;
	}
	t->before_ns = t->after_ns = t->wait_ns = 0;
}
