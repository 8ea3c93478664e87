/* SPDX-License-Identifier: MIT */
/*
 * Takes the notes of all lanes, so that no lane has to add up or to write. It is
 * woken when a lane's ring of notes is half full: a short run is summed up when
 * it is over.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/banned.h"
#include "replay/inside.h"
#include "replay/run_trace.h"

#define NOTES_BYTES ((uint64_t)20 << 20) /* of all lanes */
#define NOTES_MIN 64
#define SLEEP_NS (500 * NS_PER_MS)

static uint16_t event_flags(const struct note *n)
{
	unsigned int flags = 0;

	if (!(n->flags & NOTE_MADE))
		flags |= EVENT_SIMULATED | EVENT_NO_DURATION;
	if (n->flags & NOTE_ENFORCED)
		flags |= EVENT_ENFORCED;
	if (n->flags & NOTE_STREAM)
		flags |= EVENT_NO_DURATION;
	if (n->flags & NOTE_MISMATCH)
		flags |= EVENT_MISMATCHED;
	if (n->flags & NOTE_RESULT)
		flags |= EVENT_VERIFIED;
	return (uint16_t)flags;
}

/* What the lanes know; run_trace_complete() adds the rest when the run is over. */
static int write_event(struct run *run, struct lane *l, const struct note *n)
{
	const struct row *row = row_by_id(n->row_id);
	struct event ev = { .row = row };
	int r;

	if (!run->feed || (n->flags & NOTE_PLAN) || !row_is_performed(row))
		return 0;
	/* A lane serves one thread after another. */
	if (!l->stream || l->stream_pid != n->pid || l->stream_tid != n->tid) {
		if (l->stream) {
			r = trace_feed_close_stream(run->feed, l->stream);
			if (r < 0)
				return r;
		}
		l->stream = trace_feed_open_stream(run->feed, n->pid, n->tid);
		l->stream_pid = n->pid;
		l->stream_tid = n->tid;
	}
	ev.pid = n->pid;
	ev.tid = n->tid;
	ev.enter_ns = clock_sub_ns(n->enter_ns, run->start_ns);
	ev.exit_ns = clock_sub_ns(n->exit_ns, run->start_ns);
	ev.outcome = (struct outcome){ .ret = n->ret, .err = n->err };
	ev.flags = event_flags(n);
	ev.origin = run_trace_origin((uint32_t)(l->plan - run->plans), n->seq);
	return trace_feed_event(run->feed, l->stream, &ev);
}

static void count_enforced(struct run_result *res, int32_t err)
{
	res->nr_enforced++;
	if (err >= 0 && err < RUN_ERRNO_MAX)
		res->enforced_by_error[err]++;
}

static void add_up(struct run *run, const struct note *n)
{
	struct run_result *res = run->res;
	struct run_call *c = &res->calls[n->row_id];
	uint64_t ns = clock_sub_ns(n->exit_ns, n->enter_ns);

	if (n->flags & NOTE_SETUP) {
		res->nr_setup++;
		res->nr_unbuilt += (n->flags & NOTE_UNBUILT) != 0;
		return;
	}
	c->count++;
	c->errors += n->err != 0;
	c->mismatches += (n->flags & NOTE_MISMATCH) != 0;
	res->edge_wait_ns += n->edge_wait_ns;
	res->nr_unbuilt += (n->flags & NOTE_UNBUILT) != 0;
	if (n->flags & NOTE_TIMED)
		spread_add(&res->lateness, n->late_ns);
	if (n->flags & NOTE_ENFORCED)
		count_enforced(res, n->err);
	else
		res->nr_simulated += !(n->flags & (NOTE_MADE | NOTE_UNBUILT));
	if (!(n->flags & NOTE_MADE))
		return;
	c->made++;
	res->nr_made++;
	/* Most of it is waiting for the other end, which edges stand for here. */
	if (n->flags & NOTE_STREAM)
		return;
	c->run_ns += ns;
	spread_add(&c->run, ns);
	res->call_ns += ns;
	if (n->flags & NOTE_PLAN)
		return;
	c->original_ns += n->original_ns;
	spread_add(&c->original, n->original_ns);
	res->original_call_ns += n->original_ns;
}

static int drain(struct run *run, struct lane *l)
{
	struct notes *n = &l->notes;
	uint64_t head = atomic_load_explicit(&n->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&n->tail, memory_order_relaxed);
	int r = 0;

	if (head == tail)
		return 0;
	for (; tail != head; tail++) {
		const struct note *note = &n->items[tail % n->size];

		add_up(run, note);
		if (!r)
			r = write_event(run, l, note);
	}
	/* Pairs with the lane's store of `full` and its look at `tail`. */
	atomic_store(&n->tail, head);
	if (atomic_load(&n->full)) {
		atomic_store(&n->full, 0);
		sync_futex_wake(&n->full);
	}
	return r;
}

static int drain_all(struct run *run)
{
	uint32_t i;
	int r, first = 0;

	for (i = 0; i < run->nr_lanes; i++) {
		r = drain(run, &run->lanes[i]);
		if (r < 0 && !first) {
			first = r;
			run->feed = NULL; /* the sums go on */
		}
	}
	return first;
}

void *keeper_main(void *arg)
{
	struct run *run = arg;

	while (atomic_load(&run->nr_ended) < run->nr_started) {
		uint32_t seen = bell_look(&run->keeper_bell);
		int r = drain_all(run);

		if (r < 0)
			run_fail(run, r, "cannot write %s", run->o->output);
		if (atomic_load(&run->nr_ended) < run->nr_started)
			bell_wait(&run->keeper_bell, seen, SLEEP_NS);
	}
	return NULL;
}

static int open_output(struct run *run, const char *path, struct err *err)
{
	struct trace_writer_options o = { .replace = run->o->replace,
					  .file_mode = run->o->file_mode };
	int r;

	if (!path)
		return 0;
	r = trace_writer_open(path, &o, &run->writer, err);
	if (r < 0)
		return r;
	run->feed = trace_writer_add_feed(run->writer);
	r = trace_feed_meta(run->feed, "recorder", "replay");
	if (!r) {
		char now[32];

		(void)snprintf(now, sizeof(now), "%llu", (unsigned long long)clock_realtime_ns());
		r = trace_feed_meta(run->feed, "start_realtime_ns", now);
	}
	if (r < 0)
		return err_set(err, r, "cannot write %s", run->o->output);
	return 0;
}

int keeper_prepare(struct run *run, const char *output, struct err *err)
{
	uint64_t share = NOTES_BYTES / sizeof(struct note) / (run->nr_lanes ? run->nr_lanes : 1);
	uint32_t i;

	for (i = 0; i < run->nr_lanes; i++) {
		struct lane *l = &run->lanes[i];
		uint64_t need = plan_lane_nr_actions(l->plan->plan, l->plan_lane) + 1;

		l->notes.size = need < share ? need : share;
		if (l->notes.size < NOTES_MIN)
			l->notes.size = NOTES_MIN;
		l->notes.limit = l->notes.size;
		l->notes.tell_at = l->notes.size / 2;
		l->notes.items =
			mmap(NULL, l->notes.size * sizeof(struct note), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (l->notes.items == MAP_FAILED) {
			l->notes.items = NULL;
			return err_set(err, -errno, "cannot get memory for the notes of lane %u",
				       (unsigned int)i);
		}
	}
	return open_output(run, output, err);
}

int keeper_finish(struct run *run, struct err *err)
{
	struct trace_writer *writer = run->writer;
	int r = drain_all(run);
	uint32_t i;

	for (i = 0; i < run->nr_lanes; i++) {
		struct lane *l = &run->lanes[i];

		if (l->stream && run->feed && !r)
			r = trace_feed_close_stream(run->feed, l->stream);
		l->stream = NULL;
		if (l->notes.items)
			(void)munmap(l->notes.items, l->notes.size * sizeof(struct note));
		l->notes.items = NULL;
	}
	run->writer = NULL;
	run->feed = NULL;
	if (r < 0) {
		trace_writer_abandon(writer);
		return err_set(err, r, "cannot write %s", run->o->output);
	}
	return trace_writer_close(writer, err);
}
