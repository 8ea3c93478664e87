/* SPDX-License-Identifier: MIT */
#include "replay/run_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "plan/plan.h"
#include "replay/inside.h"
#include "replay/run_args.h"
#include "replay/run_found.h"
#include "trace/copy.h"

/* Where a part begins or ends. */
struct bound {
	bool is_set, is_event;
	uint64_t at; /* ns, or the number of an event */
};

struct completion {
	const struct run_trace_options *o;
	struct trace *notes;
	struct map first; /* origin of a stream's first note: stream + 1 */
	struct trace_writer *writer;
	struct trace_feed *feed;
	struct run_args args;
	struct run_founds *founds;
	struct arena arena;
	uint32_t plan; /* whose events are being written */
	uint64_t nr_streams; /* that were written for it */
	struct bound from, to; /* of it, when it is of a part */
	struct err *err;
};

/* The notes of the thread whose events are being gone through, as far as they were met. */
struct thread_notes {
	struct trace_iter *it;
	struct event *next; /* NULL: none, or the next stream has not been found yet */
	bool any;
	uint64_t last_ns;
};

static int find_firsts(struct completion *c)
{
	struct trace_query q = { .no_args = true };
	size_t nr;
	uint8_t *seen;
	struct trace_iter *it;
	struct event *ev;
	int r;

	(void)trace_streams(c->notes, &nr);
	r = trace_iter_open(c->notes, &q, &it, c->err);
	if (r < 0)
		return r;
	seen = xcalloc(nr + 1, 1);
	while ((r = trace_iter_next(it, &ev, c->err)) > 0) {
		if (seen[ev->stream])
			continue;
		seen[ev->stream] = 1;
		*map_slot(&c->first, &ev->origin, sizeof(ev->origin)) =
			(void *)((uintptr_t)ev->stream + 1);
	}
	free(seen);
	trace_iter_close(it);
	return r;
}

static int step_notes(struct completion *c, struct thread_notes *n)
{
	int r = trace_iter_next(n->it, &n->next, c->err);

	if (r > 0)
		return 0;
	n->next = NULL;
	trace_iter_close(n->it);
	n->it = NULL;
	return r;
}

/* 1: n->next is the note of this event; 0: it was not performed. */
static int find_note(struct completion *c, struct thread_notes *n, uint64_t origin)
{
	struct trace_query q = { .nr_streams = 1 };
	uint32_t stream;
	void *found;
	int r;

	if (!n->next) {
		found = map_get(&c->first, &origin, sizeof(origin));
		if (!found)
			return 0;
		stream = (uint32_t)((uintptr_t)found - 1);
		q.streams = &stream;
		r = trace_iter_open(c->notes, &q, &n->it, c->err);
		if (!r)
			r = step_notes(c, n);
		if (r < 0)
			return r;
		n->any = true;
	}
	return n->next && n->next->origin == origin;
}

static void end_notes(struct thread_notes *n)
{
	trace_iter_close(n->it);
	*n = (struct thread_notes){ 0 };
}

static void apply_note(struct event *ev, const struct event *note)
{
	unsigned int flags = ev->flags & ~(unsigned int)(EVENT_NO_TIME | EVENT_NO_DURATION);

	ev->enter_ns = note->enter_ns;
	ev->exit_ns = note->exit_ns;
	ev->flags = (uint16_t)(flags | note->flags);
	if (note->flags & EVENT_SIMULATED)
		return;
	/* Descriptors, addresses and the like are the run's own: they stand for the program's. */
	if (ev->outcome.err || note->outcome.err || check_value_matters(ev->row))
		ev->outcome = note->outcome;
	/* A run makes the file by mknodat(), see make_socket_file(). */
	if (ev->row->id == SC_bind && ev->outcome.err == EEXIST)
		ev->outcome.err = EADDRINUSE;
}

static struct bound read_bound(struct plan *p, const char *key)
{
	struct buf buf = { 0 };
	const char *text = trace_meta(plan_container(p), key, &buf);
	struct bound b = { .is_set = text };

	if (text) {
		b.is_event = *text == '#';
		b.at = strtoull(text + b.is_event, NULL, 10);
	}
	buf_release(&buf);
	return b;
}

static bool is_at(const struct bound *b, const struct event *ev)
{
	return (b->is_event ? ev->seq : ev->enter_ns) >= b->at;
}

/* Nobody was to perform it. */
static bool is_outside(const struct completion *c, const struct event *ev)
{
	return (c->from.is_set && !is_at(&c->from, ev)) || (c->to.is_set && is_at(&c->to, ev));
}

/* An event of the original becomes one of the run. Its values are changed in place. */
static int write_event(struct completion *c, struct trace *from, struct trace_stream *s,
		       struct thread_notes *n, struct event *ev)
{
	uint64_t origin = run_trace_origin(c->plan, ev->seq);
	struct run_found_arg found;
	int r = find_note(c, n, origin);

	if (r < 0)
		return r;
	ev->origin = origin;
	ev->cpu_ns = ev->gap_cpu_ns = 0;
	ev->held_ns = ev->held_before_ns = ev->held_inside_ns = 0;
	if (r) {
		apply_note(ev, n->next);
		n->last_ns = ev->exit_ns;
		r = step_notes(c, n);
		if (r < 0)
			return r;
	} else if (is_outside(c, ev)) {
		return 0;
	} else {
		ev->enter_ns = ev->exit_ns = n->last_ns;
		ev->flags |= EVENT_NO_TIME | EVENT_SIMULATED;
	}
	arena_reset(&c->arena);
	run_founds_look(c->founds, from, c->plan, ev, &c->arena, &found);
	run_args_reduce(&c->args, ev);
	run_founds_put(c->founds, &found, ev, &c->arena);
	r = trace_copy_event(from, c->feed, s, ev, &c->arena, c->err);
	if (r == -EOPNOTSUPP || r == -E2BIG)
		return 0; /* as in the original; the ledger tells of what is too large */
	progress_add(c->o->progress, 1);
	return r < 0 ? r : 0;
}

/* When the thread made its first call in the run: what came before has no time of its own. */
static int find_begin(struct completion *c, struct trace *t, uint32_t stream, uint64_t *ret_ns,
		      bool *ret_found)
{
	struct trace_query q = { .streams = &stream, .nr_streams = 1, .no_args = true };
	struct trace_iter *it;
	struct event *ev;
	void *found = NULL;
	size_t nr;
	int r = trace_iter_open(t, &q, &it, c->err);

	if (r < 0)
		return r;
	while (!found && (r = trace_iter_next(it, &ev, c->err)) > 0) {
		uint64_t origin = run_trace_origin(c->plan, ev->seq);

		found = map_get(&c->first, &origin, sizeof(origin));
	}
	trace_iter_close(it);
	if (r < 0)
		return r;
	*ret_found = found;
	if (found)
		*ret_ns = trace_streams(c->notes, &nr)[(uintptr_t)found - 1].first_ns;
	return 0;
}

static int write_thread(struct completion *c, struct trace *t, uint32_t stream)
{
	struct trace_query q = { .streams = &stream, .nr_streams = 1 };
	struct thread_notes n = { 0 };
	const struct trace_stream_info *info;
	struct trace_stream *s;
	struct trace_iter *it;
	struct event *ev;
	bool performed;
	size_t nr;
	int r = find_begin(c, t, stream, &n.last_ns, &performed);

	if (r >= 0)
		r = run_founds_begin_thread(c->founds, t, stream, c->plan, c->err);
	if (r < 0)
		return r;
	info = &trace_streams(t, &nr)[stream];
	r = trace_iter_open(t, &q, &it, c->err);
	if (r < 0)
		return r;
	s = trace_feed_open_stream(c->feed, info->pid, info->tid);
	while (r >= 0 && (c->o->complete || (performed && (!n.any || n.next)))) {
		r = trace_iter_next(it, &ev, c->err);
		if (r <= 0)
			break;
		r = write_event(c, t, s, &n, ev);
	}
	trace_iter_close(it);
	end_notes(&n);
	c->nr_streams++;
	return r < 0 ? r : trace_feed_close_stream(c->feed, s);
}

static int write_threads(struct completion *c, struct trace *t)
{
	size_t i, nr;
	int r = 0;

	(void)trace_streams(t, &nr);
	for (i = 0; i < nr && r >= 0; i++)
		r = write_thread(c, t, (uint32_t)i);
	return r;
}

/* Without its trace: what the plan says of an action. */

static void event_of_action(const struct action *a, struct event *ret)
{
	*ret = (struct event){ .row = a->row,
			       .flags = a->flags & ACTION_COMPAT ? EVENT_COMPAT : 0,
			       .pid = a->pid,
			       .tid = a->tid,
			       .seq = a->seq,
			       .outcome = a->outcome };
	memcpy(ret->args, a->args, sizeof(ret->args));
	/* A cwd or root has a slot too, which the program never sees. */
	if (!a->outcome.err && a->row->result == RESULT_ZERO)
		ret->outcome.ret = 0;
}

static int write_lane(struct completion *c, struct plan *p, uint32_t lane)
{
	struct thread_notes n = { 0 };
	struct trace_stream *s = NULL;
	const struct action *a;
	struct plan_lane *reader;
	struct event ev = { 0 };
	uint32_t pid = 0, tid = 0;
	int r = plan_lane_open(p, lane, &reader, c->err);

	if (r < 0)
		return r;
	while (r >= 0 && (r = plan_lane_next(reader, &a, c->err)) > 0) {
		if (!row_is_performed(a->row) || !a->seq)
			continue;
		if (!s || pid != a->pid || tid != a->tid) {
			r = s ? trace_feed_close_stream(c->feed, s) : 0;
			if (r < 0)
				break;
			pid = a->pid;
			tid = a->tid;
			s = trace_feed_open_stream(c->feed, pid, tid);
			c->nr_streams++;
			end_notes(&n);
		}
		event_of_action(a, &ev);
		r = write_event(c, plan_data_source(p), s, &n, &ev);
		if (r >= 0 && !c->o->complete && !n.next)
			break;
	}
	end_notes(&n);
	plan_lane_close(reader);
	if (s && r >= 0)
		r = trace_feed_close_stream(c->feed, s);
	return r;
}

static int write_lanes(struct completion *c, struct plan *p)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < plan_totals(p)->nr_lanes && r >= 0; i++)
		r = write_lane(c, p, i);
	return r;
}

/* Metadata. */

PRINTF_LIKE(3, 4)
static int put_meta(struct completion *c, const char *key, const char *fmt, ...)
{
	char value[4096];
	va_list ap;
	int r;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, ap); /* long ones are cut */
	va_end(ap);
	r = trace_feed_meta(c->feed, key, value);
	return r < 0 ? err_set(c->err, r, "cannot write the trace of the run") : 0;
}

static int copy_metadata(struct completion *c)
{
	struct trace_items *it;
	struct item *item;
	int r = trace_items_open(c->notes, BLOCK_META, &it, c->err);

	while (r >= 0 && (r = trace_items_next(it, &item, c->err)) > 0) {
		arena_reset(&c->arena);
		r = trace_copy_item(c->notes, c->feed, item, &c->arena, c->err);
	}
	trace_items_close(it);
	return r;
}

static int put_head(struct completion *c)
{
	struct utsname u;
	int r = copy_metadata(c);

	if (r >= 0 && !uname(&u)) {
		r = put_meta(c, "kernel", "%s %s", u.release, u.version);
		if (!r)
			r = put_meta(c, "arch", "%s", u.machine);
		if (!r)
			r = put_meta(c, "hostname", "%s", u.nodename);
	}
	if (r >= 0)
		r = put_meta(c, "clock", "monotonic");
	if (!r)
		r = put_meta(c, "run.speed", "%s", c->o->speed ? c->o->speed : "");
	if (!r)
		r = put_meta(c, "run.sources", "%u", c->o->nr_plans);
	return r;
}

/* What a reader needs to set the run beside its original. */
static int put_source(struct completion *c, struct trace *t, bool whole)
{
	AUTO_FREE char *path = realpath(trace_path(t), NULL);
	char key[64];
	int r;

	(void)snprintf(key, sizeof(key), "run.source.%u.file", c->plan);
	r = put_meta(c, key, "%s", path ? path : trace_path(t));
	(void)snprintf(key, sizeof(key), "run.source.%u.events", c->plan);
	if (!r)
		r = put_meta(c, key, "%llu", (unsigned long long)trace_nr_events(t));
	(void)snprintf(key, sizeof(key), "run.source.%u.streams", c->plan);
	if (!r)
		r = put_meta(c, key, "%llu", (unsigned long long)c->nr_streams);
	(void)snprintf(key, sizeof(key), "run.source.%u.arguments", c->plan);
	return r ? r : put_meta(c, key, "%s", whole ? "trace" : "plan");
}

static int write_plan(struct completion *c, const char *path)
{
	struct plan *p;
	struct trace *t;
	bool whole;
	int r = plan_open(path, &p, c->err);

	if (r < 0)
		return r;
	c->from = read_bound(p, PLAN_META_PART_FROM);
	c->to = read_bound(p, PLAN_META_PART_TO);
	t = plan_data_source(p);
	whole = t != plan_container(p);
	c->nr_streams = 0;
	r = whole ? write_threads(c, t) : write_lanes(c, p);
	if (r >= 0)
		r = put_source(c, t, whole);
	plan_close(p);
	return r;
}

static int write_all(struct completion *c)
{
	struct loss cut = { .kind = LOSS_NOT_CLOSED,
			    .note = "the run ended before its actions did" };
	int r = find_firsts(c);

	if (r >= 0)
		r = put_head(c);
	for (c->plan = 0; c->plan < c->o->nr_plans && r >= 0; c->plan++)
		r = write_plan(c, c->o->plans[c->plan]);
	if (r >= 0 && !c->o->complete)
		r = trace_feed_loss(c->feed, &cut);
	return r < 0 ? r : 0;
}

static int complete_into(struct completion *c, const char *path, const char *to)
{
	struct trace_writer_options wo = { .replace = true, .file_mode = c->o->file_mode };
	int r = trace_writer_open(to, &wo, &c->writer, c->err);

	if (r < 0)
		return r;
	c->feed = trace_writer_add_feed(c->writer);
	r = write_all(c);
	if (r < 0) {
		trace_writer_abandon(c->writer);
		return r;
	}
	r = trace_writer_close(c->writer, c->err);
	if (!r && rename(to, path) < 0)
		r = err_set(c->err, -errno, "cannot rename %s to %s", to, path);
	return r;
}

int run_trace_complete(const char *path, const struct run_trace_options *o, struct err *err)
{
	struct completion c = { .o = o, .err = err };
	struct buf to = { 0 };
	int r = trace_open(path, 0, &c.notes, err);

	if (r < 0)
		return r;
	arena_init(&c.arena);
	run_args_init(&c.args, &c.arena);
	c.founds = run_founds_new(o->res);
	buf_printf(&to, "%s.part", path);
	r = complete_into(&c, path, buf_str(&to));
	if (r < 0)
		(void)unlink(buf_str(&to)); /* it may not have come to be */
	buf_release(&to);
	run_founds_free(c.founds);
	arena_release(&c.arena);
	map_release(&c.first);
	trace_close(c.notes);
	return r;
}
