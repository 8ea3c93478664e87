/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "replay/blk_inside.h"
#include "trace/writer.h"

#define TURN 256
#define SERIES_SPAN_NS NS_PER_MS /* to begin with */

/* In flight over time. */

static void widen(struct blk_series *s)
{
	size_t i;

	for (i = 0; i < BLK_SERIES_POINTS / 2; i++)
		s->busy_ns[i] = s->busy_ns[2 * i] + s->busy_ns[2 * i + 1];
	memset(&s->busy_ns[i], 0, (BLK_SERIES_POINTS - i) * sizeof(s->busy_ns[0]));
	s->span_ns *= 2;
}

static void series_add(struct blk_series *s, uint64_t from_ns, uint64_t to_ns)
{
	if (!s->span_ns)
		s->span_ns = SERIES_SPAN_NS;
	while (to_ns / s->span_ns >= BLK_SERIES_POINTS)
		widen(s);
	while (from_ns < to_ns) {
		uint64_t n = from_ns / s->span_ns, end_ns = (n + 1) * s->span_ns;

		end_ns = end_ns < to_ns ? end_ns : to_ns;
		s->busy_ns[n] += end_ns - from_ns;
		from_ns = end_ns;
	}
}

/* Sums. */

static void count_fate(struct blk_run_result *res, const struct blk_slot *s)
{
	switch ((enum blk_fate)s->fate) {
	case BLK_MAKE:
		res->nr_made++;
		break;
	case BLK_UNWANTED:
		res->nr_unwanted++;
		break;
	case BLK_BEYOND:
		res->nr_beyond++;
		break;
	case BLK_NOT_MADE:
		res->nr_not_made++;
		break;
	}
	res->nr_cut += s->cut;
	res->nr_aligned += s->aligned;
}

static void count_outcome(struct blk_run_result *res, const struct blk_slot *s)
{
	bool moves = blk_ops[s->op].moves != BLK_MOVES_NONE;
	bool failed = s->result < 0;

	if (s->result == -EOPNOTSUPP && !moves && s->op != BLK_FLUSH) {
		res->nr_unsupported++;
		return;
	}
	res->nr_errors += failed;
	res->ops[s->op].nr_errors += failed;
	if (failed && !res->first_error)
		res->first_error = -s->result;
	if (failed != (s->expected_err != 0) ||
	    (!failed && moves && (uint64_t)s->result < s->length_bytes))
		res->nr_differ++;
}

static void add_up(struct blk_run *run, const struct blk_slot *s)
{
	struct blk_run_result *res = run->res;
	struct blk_sums *sums = &res->ops[s->op];

	count_fate(res, s);
	sums->nr++;
	res->nr_done++;
	if (!s->known_end)
		res->nr_without_end++;
	else
		series_add(&res->original, s->issue_ns, s->issue_ns + s->duration_ns);
	if (s->traced_in_flight > res->original_in_flight_max)
		res->original_in_flight_max = s->traced_in_flight;
	spread_add(&res->lateness, clock_sub_ns(s->start_ns, s->ready_ns));
	if (s->fate != BLK_MAKE)
		return;
	count_outcome(res, s);
	sums->nr_made++;
	sums->bytes += s->result > 0 ? (uint64_t)s->result : 0;
	spread_add(&sums->run, s->end_ns - s->start_ns);
	if (s->known_end)
		spread_add(&sums->original, s->duration_ns);
	series_add(&res->run, clock_sub_ns(s->start_ns, run->start_ns),
		   clock_sub_ns(s->end_ns, run->start_ns));
}

/* The trace of the run. */

static int note_devices(struct blk_run *run)
{
	char key[32], value[32];
	int r = trace_feed_meta(run->feed, "level", BLK_LEVEL);

	for (uint32_t i = 0; i < run->nr_devices && !r; i++) {
		(void)snprintf(key, sizeof(key), "block.device.%u", i);
		r = trace_feed_meta(run->feed, key, run->targets[run->target_of[i]].path);
	}
	(void)snprintf(value, sizeof(value), "%llu", (unsigned long long)clock_realtime_ns());
	return r ? r : trace_feed_meta(run->feed, "start_realtime_ns", value);
}

/* Of which trace it is a run (doc/trace-format.md, "Runs"). */
static int note_source(struct blk_run *run)
{
	struct trace *from = plan_data_source(run->plan);
	char nr_events[32];
	int r = trace_feed_meta(run->feed, "recorder", "replay");

	(void)snprintf(nr_events, sizeof(nr_events), "%llu",
		       (unsigned long long)trace_nr_events(from));
	if (!r)
		r = trace_feed_meta(run->feed, "run.sources", "1");
	if (!r)
		r = trace_feed_meta(run->feed, "run.source.0.file", trace_path(from));
	if (!r)
		r = trace_feed_meta(run->feed, "run.source.0.events", nr_events);
	/* Its streams are devices, known by their numbers. */
	return r ? r : trace_feed_meta(run->feed, "run.source.0.streams", "0");
}

int blk_keeper_open(struct blk_run *run, struct err *err)
{
	struct trace_writer_options options = { .replace = run->o->replace,
						.file_mode = run->o->file_mode };
	int r;

	arena_init(&run->arena);
	if (!run->o->output)
		return 0;
	r = trace_writer_open(run->o->output, &options, &run->writer, err);
	if (r < 0)
		return r;
	run->feed = trace_writer_add_feed(run->writer);
	run->streams = xcalloc(run->nr_devices + 1, sizeof(struct trace_stream *));
	return note_source(run) < 0 || note_devices(run) < 0
		       ? err_set(err, -EIO, "cannot write %s", run->o->output)
		       : 0;
}

static int write_event(struct blk_run *run, const struct blk_slot *s, struct err *err)
{
	struct blk_request rq = { .device_no = s->device_no,
				  .op = (enum blk_op)s->op,
				  .flags = s->flags,
				  .offset_bytes = s->offset_bytes,
				  .length_bytes = s->length_bytes,
				  .cpu = -1 };
	struct event ev = { .origin = s->seq, /* of the event that it repeats */
			    .enter_ns = clock_sub_ns(s->start_ns, run->start_ns),
			    .exit_ns = clock_sub_ns(s->end_ns, run->start_ns) };
	int r;

	arena_reset(&run->arena);
	blk_request_put(&rq, &run->arena, &ev);
	ev.outcome =
		(struct outcome){ s->result < 0 ? -1 : s->result, s->result < 0 ? -s->result : 0 };
	if (!run->streams[s->device_no])
		run->streams[s->device_no] =
			trace_feed_open_stream(run->feed, s->device_no + 1, s->device_no + 1);
	r = trace_feed_event(run->feed, run->streams[s->device_no], &ev);
	return r < 0 ? err_set(err, r, "cannot write %s", run->o->output) : 0;
}

int blk_keeper_work(struct blk_run *run, bool *ret_any, struct err *err)
{
	unsigned int i;

	blk_loader_move_tail(run);
	blk_observer_work(run);
	for (i = 0; i < TURN && run->nr_kept < run->window.tail; i++) {
		struct blk_slot *s = blk_slot(&run->window, run->nr_kept);
		int r = 0;

		add_up(run, s);
		blk_observer_take(run, s);
		if (s->end_ns > run->last_end_ns)
			run->last_end_ns = s->end_ns;
		if (run->feed && s->fate == BLK_MAKE)
			r = write_event(run, s, err);
		if (s->data) {
			run->loader.data_bytes -= s->length_bytes;
			free(s->data);
			s->data = NULL;
		}
		run->nr_kept++;
		if (r < 0)
			return r;
	}
	*ret_any = i > 0;
	return 0;
}

int blk_keeper_close(struct blk_run *run, int r, struct err *err)
{
	for (uint32_t i = 0; run->streams && i < run->nr_devices; i++) {
		if (run->streams[i] && trace_feed_close_stream(run->feed, run->streams[i]) < 0 &&
		    !r)
			r = err_set(err, -EIO, "cannot write %s", run->o->output);
	}
	if (run->writer && r < 0)
		trace_writer_abandon(run->writer);
	else if (run->writer)
		r = trace_writer_close(run->writer, err);
	free(run->streams);
	arena_release(&run->arena);
	return r;
}
