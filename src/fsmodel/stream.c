/* SPDX-License-Identifier: MIT */
/* Pipes and eventfds. What goes one way is a stream with two counters. */
#include <errno.h>
#include <fcntl.h>

#include "base/banned.h"
#include "fsmodel/tables.h"

struct stream *stream_new(struct fsmodel *m)
{
	struct stream *s = xcalloc(1, sizeof(*s));

	res_init(m, &s->res, RES_STREAM);
	return s;
}

void stream_list_passing(struct fsmodel *m, struct stream *s)
{
	if (s->prev || m->tables->passing == s)
		return;
	s->next = m->tables->passing;
	if (s->next)
		s->next->prev = s;
	m->tables->passing = s;
}

static void unlist_passing(struct fsmodel *m, struct stream *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else if (m->tables->passing == s)
		m->tables->passing = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->next = s->prev = NULL;
}

static void drop_passed(struct call *c, struct fsmodel *m, struct stream *s)
{
	while (s->passed.len)
		descriptor_unref(c, m, s->passed.items[--s->passed.len].d);
}

void streams_drop_passed(struct fsmodel *m)
{
	struct stream *s;

	while ((s = m->tables->passing)) {
		unlist_passing(m, s);
		s->refs++;
		drop_passed(NULL, m, s);
		stream_unref(NULL, m, s);
	}
}

void stream_unref(struct call *c, struct fsmodel *m, struct stream *s)
{
	if (s->refs > 1) {
		s->refs--;
		return;
	}
	/* Still held: what was passed in it may be an end of it. */
	drop_passed(c, m, s);
	if (--s->refs)
		return;
	if (c)
		touch_use(c, &s->res, TOUCH_DELETE);
	unlist_passing(m, s);
	VEC_RELEASE(&s->passed);
	held_release(&s->held);
	res_bury(m, &s->res, NULL);
}

void stream_attach(struct open_file *o, struct stream *in, struct stream *out)
{
	o->in = in;
	o->out = out;
	if (in) {
		in->refs++;
		in->readers++;
	}
	if (out) {
		out->refs++;
		out->writers++;
	}
}

void stream_attach_fifo(struct call *c, struct open_file *o, struct inode *i)
{
	uint32_t access = o->flags & O_ACCMODE;
	bool reads = access != O_WRONLY, writes = access != O_RDONLY;
	struct stream *s = i->fifo;

	if (o->flags & O_PATH)
		return;
	if (!s) {
		s = i->fifo = stream_new(c->m);
		s->refs++; /* the inode's */
		s->res.real = s->named = true;
	}
	/* Nobody in the trace has the other end. */
	if (c->alone) {
		s->foreign = true;
		s->res.real = false;
	}
	touch_use(c, &s->res, TOUCH_CHANGE | TOUCH_CREATE);
	stream_attach(o, reads ? s : NULL, writes ? s : NULL);
}

void stream_detach(struct call *c, struct fsmodel *m, struct open_file *o)
{
	struct stream *in = o->in, *out = o->out, *any = in ? in : out;

	o->in = o->out = NULL;
	if (c && any && any->named)
		touch_use(c, &any->res, TOUCH_CHANGE | TOUCH_DELETE);
	if (in) {
		in->readers--;
		if (c)
			in->no_readers_ns = c->ev->exit_ns;
		/* What nobody has open holds nothing: a named pipe begins anew. */
		if (!in->readers && (out == in ? in->writers == 1 : !in->writers))
			in->read = in->written;
		held_drop(&in->held, in->read);
		stream_unref(c, m, in);
	}
	if (!out)
		return;
	if (c)
		out->no_writers_ns = c->ev->exit_ns;
	/* Who reads to the end does so after the last writer has gone. */
	if (!--out->writers && !out->readers)
		out->read = out->written;
	if (!out->writers && c && out->refs > 1)
		touch_add(c, &out->res, TOUCH_WRITE, out->written, TOUCH_TO_END);
	stream_unref(c, m, out);
}

void inode_drop_tables(struct fsmodel *m, struct inode *i)
{
	if (i->fifo)
		stream_unref(NULL, m, i->fifo);
	i->fifo = NULL;
	if (i->locks)
		locks_free(m, i->locks);
	i->locks = NULL;
}

void make_pair(struct call *c, struct value *list, struct open_file *const ends[2], bool cloexec)
{
	int n;

	for (n = 0; n < 2; n++) {
		struct value *item = value_item(list, (uint32_t)n);
		int64_t wish = value_int_or(item, -1);
		int32_t number;

		if (!c->m->options.execute && !item) {
			/* An import may lack it: nobody can use what has no number. */
			ends[n]->refs = 1;
			open_file_unref(c, c->m, ends[n]);
			continue;
		}
		number = fd_make(c, ends[n], wish, 0, cloexec);
		if (item && c->m->options.execute)
			*item = value_int(number);
	}
}

/* Pipes. */

static struct outcome ask_pipe(struct call *c)
{
	int64_t flags = c->ev->row->id == SC_pipe2 ? value_int_or(arg_at(c, 1), 0) : 0;

	if (flags & ~(int64_t)(O_CLOEXEC | O_NONBLOCK | O_DIRECT | O_EXCL))
		return fails(EINVAL);
	return succeeds(0);
}

static void apply_pipe(struct call *c)
{
	uint32_t flags = c->ev->row->id == SC_pipe2 ? (uint32_t)value_int_or(arg_at(c, 1), 0) : 0;
	struct stream *s = stream_new(c->m);
	struct open_file *ends[2];

	s->res.real = true;
	touch_use(c, &s->res, TOUCH_CREATE);
	ends[0] = open_file_new(c->m, OBJECT_PIPE, O_RDONLY | (flags & (O_NONBLOCK | O_DIRECT)));
	ends[1] = open_file_new(c->m, OBJECT_PIPE, O_WRONLY | (flags & (O_NONBLOCK | O_DIRECT)));
	stream_attach(ends[0], s, NULL);
	stream_attach(ends[1], NULL, s);
	make_pair(c, arg_at(c, 0), ends, flags & O_CLOEXEC);
}

const struct call_row model_pipe = { ask_pipe, apply_pipe, NULL };
const struct call_row model_pipe2 = { ask_pipe, apply_pipe, NULL };

/* Eventfds: a count, kept as if each write were eight bytes. */

static struct outcome ask_eventfd(struct call *c)
{
	c->any_ret = true;
	return succeeds(0);
}

static void apply_eventfd(struct call *c)
{
	uint32_t flags =
		c->ev->row->id == SC_eventfd2 ? (uint32_t)value_int_or(arg_at(c, 1), 0) : 0;
	struct open_file *o = open_file_new(c->m, OBJECT_EVENTFD, O_RDWR | (flags & O_NONBLOCK));
	struct stream *s = stream_new(c->m);

	s->counter = s->res.real = true;
	s->foreign = flags & 1; /* a semaphore: how often it can be taken is in the data */
	if (value_int_or(arg_at(c, 0), 0))
		s->written = 8;
	touch_use(c, &s->res, TOUCH_CREATE);
	stream_attach(o, s, s);
	fd_make_result(c, o, flags & O_CLOEXEC);
}

const struct call_row model_eventfd = { ask_eventfd, apply_eventfd, NULL };
const struct call_row model_eventfd2 = { ask_eventfd, apply_eventfd, NULL };
