/* SPDX-License-Identifier: MIT */
/*
 * Traces of iBench (Magritte), made with dtrace on macOS: a line when a call is
 * entered and one when it returns.
 *
 *   [TIME ns]; [TID]; [entry|return|comment]; [CALL]; [attribute]; ... [RESULT];
 *
 * The return's attributes and result count, and the entry's time. A result of
 * -1 is a failure whose error nobody wrote down (ERRNO_UNKNOWN). All threads
 * are of one process, for the traces do not tell. Page-ins happen inside of
 * other calls and are no calls; they and comments are left out, and counted.
 *
 * Memory grows with the number of threads, of files that were opened and of the
 * listing's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "import/brackets.h"
#include "import/ibench_calls.h"
#include "import/sink.h"

/* The head of a line, the most attributes, the result. */
#define HEAD_FIELDS 4
#define FIELDS_MAX (HEAD_FIELDS + IBENCH_ATTRS_MAX + 1)
/* The process that all threads are of. */
#define PID 1

/* A call that was entered. */
struct pending {
	const struct ibench_call *call;
	uint64_t enter_ns, origin;
	char *line; /* ours; what is known of a call that never returns */
	size_t len;
};

/* Of open() on macOS (mac_open_flags). */
#define MAC_O_SHLOCK 0x10
#define MAC_O_EXLOCK 0x20
#define MAC_O_LOCKS (MAC_O_SHLOCK | MAC_O_EXLOCK)
#define MAC_O_EVTONLY 0x8000

struct thread {
	uint32_t tid;
	uint64_t last_exit_ns;
	VEC(struct pending) pending;
};

struct ibench {
	struct import *im;
	const struct import_input *in;
	struct arena arena;
	struct map calls; /* name -> struct ibench_call */
	struct map threads; /* uint32_t -> struct thread */
	struct listing places; /* what the listing says, and what is opened */
	struct import_sink sink;
	bool began;
	uint64_t first_ns;
	uint64_t nr_left_out;
};

/* A line in its parts. */
struct parts {
	struct scan_word fields[FIELDS_MAX];
	unsigned int nr;
	uint64_t time_ns;
	uint32_t tid;
	const struct ibench_call *call;
};

static struct thread *find_thread(struct ibench *x, uint32_t tid)
{
	void **slot = map_slot(&x->threads, &tid, sizeof(tid));
	struct thread *t = *slot;

	if (!t) {
		*slot = t = xcalloc(1, sizeof(*t));
		t->tid = tid;
	}
	return t;
}

static struct pending *find_pending(struct thread *t, const struct ibench_call *call)
{
	size_t i;

	for (i = 0; i < t->pending.len; i++)
		if (t->pending.items[i].call == call)
			return &t->pending.items[i];
	return NULL;
}

static void drop_pending(struct thread *t, struct pending *p)
{
	size_t after = t->pending.len - (size_t)(p - t->pending.items) - 1;

	free(p->line);
	memmove(p, p + 1, after * sizeof(*p));
	t->pending.len--;
}

/* Lines. */

static bool is_left_out(const struct parts *p)
{
	return scan_word_is(p->fields[2], "comment") ||
	       scan_word_is(p->fields[3], "hfs_vnop_pagein");
}

static int read_head(struct ibench *x, struct parts *p, struct err *err)
{
	int64_t n;

	if (!ibench_number(p->fields[0], &n) || n < 0)
		return err_set(err, -EBADMSG, "the time is no number");
	p->time_ns = (uint64_t)n;
	if (is_left_out(p))
		return 0;
	if (!ibench_number(p->fields[1], &n) || n < 0 || n > UINT32_MAX)
		return err_set(err, -EBADMSG, "the thread is no number");
	p->tid = (uint32_t)n;
	p->call = ibench_call_find(&x->calls, p->fields[3]);
	if (!p->call)
		return err_set(err, -EBADMSG, "unknown call '%.*s'",
			       p->fields[3].len < 64 ? (int)p->fields[3].len : 64,
			       p->fields[3].text);
	if (p->nr != HEAD_FIELDS + p->call->nr_attrs + 1)
		return err_set(err, -EBADMSG, "%s has %u attributes and a result, not %u fields",
			       p->call->name, p->call->nr_attrs, p->nr - HEAD_FIELDS);
	return 0;
}

static int split(struct ibench *x, const char *line, size_t len, struct parts *p, struct err *err)
{
	int nr = brackets_split(line, len, p->fields, FIELDS_MAX, err);

	if (nr < 0)
		return nr;
	p->nr = (unsigned int)nr;
	if (p->nr < HEAD_FIELDS)
		return err_set(err, -EBADMSG, "fewer than %d fields", HEAD_FIELDS);
	return read_head(x, p, err);
}

/* Events. */

static int read_call(struct ibench *x, const struct parts *p, struct event *ev, struct err *err)
{
	struct ibench_line l = { .call = p->call,
				 .attrs = &p->fields[HEAD_FIELDS],
				 .arena = &x->arena,
				 .places = &x->places };
	int64_t ret;

	if (!(ev->flags & EVENT_UNFINISHED)) {
		if (!ibench_number(p->fields[p->nr - 1], &ret))
			return err_set(err, -EBADMSG, "the result is no number");
		ev->outcome.ret = ret;
		ev->outcome.err = ret == -1 ? ERRNO_UNKNOWN : 0;
	}
	return ibench_call_read(&l, ev, err);
}

/* Threads go on in time, whatever a trace says: calls of one do not overlap. */
static int feed_event(struct ibench *x, struct thread *t, struct event *ev, struct err *err)
{
	if (ev->enter_ns < t->last_exit_ns)
		ev->enter_ns = t->last_exit_ns;
	if (ev->exit_ns < ev->enter_ns)
		ev->exit_ns = ev->enter_ns;
	t->last_exit_ns = ev->exit_ns;
	ev->pid = PID;
	ev->tid = t->tid;
	return import_sink_event(&x->sink, ev, err);
}

static void enter_call(struct thread *t, const struct parts *p, const char *line, size_t len,
		       const struct ibench *x)
{
	struct pending entered = { .call = p->call,
				   .enter_ns = p->time_ns - x->first_ns,
				   .origin = x->in->line_no,
				   .line = xmemdup0(line, len),
				   .len = len };

	VEC_PUSH(&t->pending, entered);
}

/* A call without a return: its thread ended, or the trace did. */
static int give_up_call(struct ibench *x, struct thread *t, struct pending *p, struct err *err)
{
	struct event ev = { .flags = EVENT_UNFINISHED,
			    .enter_ns = p->enter_ns,
			    .exit_ns = p->enter_ns,
			    .origin = p->origin };
	struct parts parts = { 0 };
	int r = split(x, p->line, p->len, &parts, err);

	if (!r)
		r = read_call(x, &parts, &ev, err);
	if (!r)
		r = feed_event(x, t, &ev, err);
	if (r == -EBADMSG)
		r = import_reject_line(x->im, x->in, err);
	drop_pending(t, p);
	return r;
}

/*
 * O_SHLOCK and O_EXLOCK make open() take a lock as flock() does: on Linux that is a
 * second call.
 */
static int feed_lock(struct ibench *x, struct thread *t, const struct event *open, struct err *err)
{
	const uint64_t flags = open->args[1].type == VALUE_INT ? open->args[1].u : 0;
	struct event ev = { .row = row_by_id(SC_flock),
			    .flags = EVENT_NO_DURATION,
			    .enter_ns = open->exit_ns,
			    .exit_ns = open->exit_ns,
			    .origin = open->origin };

	if (open->row->id != SC_mac_open || open->outcome.err || !(flags & MAC_O_LOCKS) ||
	    flags & MAC_O_EVTONLY)
		return 0;
	ev.args[0] = value_int(open->outcome.ret);
	ev.args[1] = value_uint(flags & MAC_O_EXLOCK ? LOCK_EX : LOCK_SH);
	return feed_event(x, t, &ev, err);
}

static int leave_call(struct ibench *x, struct thread *t, const struct parts *p, struct err *err)
{
	struct pending *entered = find_pending(t, p->call);
	struct event ev = { .exit_ns = p->time_ns - x->first_ns, .origin = x->in->line_no };
	int r;

	ev.enter_ns = entered ? entered->enter_ns : ev.exit_ns;
	ev.flags = entered ? 0 : EVENT_NO_DURATION;
	r = read_call(x, p, &ev, err);
	if (entered)
		drop_pending(t, entered);
	if (!r)
		r = feed_event(x, t, &ev, err);
	return r ? r : feed_lock(x, t, &ev, err);
}

static int read_line(struct ibench *x, const char *line, size_t len, struct err *err)
{
	struct parts p = { 0 };
	struct pending *lost;
	struct thread *t;
	int r;

	if (!len)
		return 0;
	arena_reset(&x->arena);
	r = split(x, line, len, &p, err);
	if (r < 0)
		return r;
	if (is_left_out(&p)) {
		x->nr_left_out++;
		return 0;
	}
	if (!x->began) {
		x->began = true;
		x->first_ns = p.time_ns;
	}
	if (p.time_ns < x->first_ns)
		p.time_ns = x->first_ns; /* lines of several processors are not in order */
	t = find_thread(x, p.tid);
	if (scan_word_is(p.fields[2], "return"))
		return leave_call(x, t, &p, err);
	if (!scan_word_is(p.fields[2], "entry"))
		return err_set(err, -EBADMSG, "neither entry nor return");
	lost = find_pending(t, p.call);
	if (lost)
		r = give_up_call(x, t, lost, err);
	enter_call(t, &p, line, len, x);
	return r;
}

static int read_input(struct ibench *x, struct import_input *in, struct err *err)
{
	const char *line;
	size_t len;
	int r = import_input_open(in, err);

	x->in = in;
	while (!r && (r = import_input_line(in, &line, &len, err)) > 0) {
		x->im->counts.nr_lines++;
		r = read_line(x, line, len, err);
		if (r == -EBADMSG)
			r = import_reject_line(x->im, in, err);
	}
	return r;
}

/* The whole. */

static int finish_threads(struct ibench *x, struct err *err)
{
	int r = 0;

	MAP_EACH (&x->threads, e) {
		struct thread *t = e->value;

		while (t->pending.len && !r) {
			arena_reset(&x->arena);
			r = give_up_call(x, t, &t->pending.items[0], err);
		}
	}
	return r;
}

static int tell_left_out(struct ibench *x, struct err *err)
{
	struct loss left_out = { .kind = LOSS_FILTERED,
				 .count = x->nr_left_out,
				 .note = "comments and page-ins of an iBench trace" };

	return x->nr_left_out ? import_sink_loss(&x->sink, &left_out, err) : 0;
}

static void release_thread(struct thread *t)
{
	while (t->pending.len)
		drop_pending(t, &t->pending.items[t->pending.len - 1]);
	VEC_RELEASE(&t->pending);
	free(t);
}

static int read_all(struct ibench *x, struct err *err)
{
	struct import *im = x->im;
	size_t i;
	int r = import_sink_describe(&x->sink, "ibench", err);

	if (!r && im->init)
		r = listing_read(&x->places, im, im->init, err);
	for (i = 0; i < im->nr_inputs && !r; i++)
		r = read_input(x, &im->inputs[i], err);
	if (!r)
		r = finish_threads(x, err);
	return r ? r : tell_left_out(x, err);
}

static int ibench_run(struct import *im, struct err *err)
{
	struct ibench x = { .im = im, .sink = { .im = im } };
	struct err unheard;
	int r, closed;

	arena_init(&x.arena);
	listing_init(&x.places);
	ibench_calls_fill(&x.calls);
	r = read_all(&x, err);
	closed = import_sink_close(&x.sink, r ? &unheard : err);
	MAP_EACH (&x.threads, e)
		release_thread(e->value);
	map_release(&x.threads);
	map_release(&x.calls);
	listing_release(&x.places);
	arena_release(&x.arena);
	return r ? r : closed;
}

static int ibench_probe(const uint8_t *first, size_t len)
{
	const char *line = (const char *)first, *eol = memchr(line, '\n', len);
	struct scan_word fields[FIELDS_MAX];
	int64_t time_ns;
	int nr;

	nr = brackets_split(line, eol ? (size_t)(eol - line) : len, fields, FIELDS_MAX, NULL);
	if (nr < HEAD_FIELDS || !ibench_number(fields[0], &time_ns))
		return 0;
	return scan_word_is(fields[2], "entry") || scan_word_is(fields[2], "return") ||
			       scan_word_is(fields[2], "comment")
		       ? 80
		       : 0;
}

const struct importer importer_ibench = {
	.name = "ibench",
	.summary = "traces of iBench and Magritte, made on macOS",
	.reads_init = true,
	.probe = ibench_probe,
	.run = ibench_run,
};
