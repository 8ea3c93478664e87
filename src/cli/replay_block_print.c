/* SPDX-License-Identifier: MIT */
#include "cli/replay_block_print.h"

#include <string.h>

#include "base/banned.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/strings.h"
#include "cli/replay_put.h"

#define SERIES_SHOWN 16

static double percent_off(double v, double of)
{
	return of > 0 ? 100 * (v - of) / of : 0;
}

static double per_second(uint64_t nr, uint64_t ns)
{
	return ns ? (double)nr * 1e9 / (double)ns : 0;
}

static double iops(const struct blk_run_result *res)
{
	return per_second(res->nr_made, res->elapsed_ns);
}

/* Scaled as the run was. */
static double original_iops(const struct blk_run_result *res)
{
	return per_second(res->nr_requests, res->expected_elapsed_ns);
}

/* All operations together. */
static void sum_ops(const struct blk_run_result *res, struct blk_sums *all)
{
	*all = (struct blk_sums){ 0 };
	for (unsigned int i = 0; i < BLK_OP_MAX; i++) {
		all->nr += res->ops[i].nr;
		all->nr_made += res->ops[i].nr_made;
		all->nr_errors += res->ops[i].nr_errors;
		all->bytes += res->ops[i].bytes;
		spread_merge(&all->run, &res->ops[i].run);
		spread_merge(&all->original, &res->ops[i].original);
	}
}

static void put_sums(struct buf *b, const char *name, const struct blk_sums *s)
{
	static const double percents[] = { 50, 99 };
	const struct spread *spreads[] = { &s->original, &s->run };

	if (!s->nr)
		return;
	buf_printf(b, "  %-13s %9llu %9llu %6llu ", name, (unsigned long long)s->nr,
		   (unsigned long long)s->nr_made, (unsigned long long)s->nr_errors);
	strings_put_bytes(b, s->bytes);
	for (unsigned int k = 0; k < 2; k++) {
		buf_puts(b, k ? " | " : "  ");
		strings_put_duration(b, (uint64_t)replay_mean(spreads[k]));
		for (unsigned int i = 0; i < ARRAY_LEN(percents); i++) {
			buf_puts(b, "  ");
			strings_put_duration(b, spread_percentile(spreads[k], percents[i]));
		}
	}
	if (s->original.count)
		buf_printf(b, " | %+.1f %%",
			   percent_off(replay_mean(&s->run), replay_mean(&s->original)));
	buf_putc(b, '\n');
}

/* Points of a series, brought to the same number and span. */
static double series_at(const struct blk_series *s, uint64_t from_ns, uint64_t to_ns)
{
	double busy = 0;

	for (unsigned int i = 0; s->span_ns && i < BLK_SERIES_POINTS; i++) {
		uint64_t a = i * s->span_ns, b = a + s->span_ns;
		uint64_t lo = a > from_ns ? a : from_ns, hi = b < to_ns ? b : to_ns;

		if (hi > lo)
			busy += (double)s->busy_ns[i] * (double)(hi - lo) / (double)s->span_ns;
	}
	return to_ns > from_ns ? busy / (double)(to_ns - from_ns) : 0;
}

static void put_series(struct buf *b, const char *label, const struct blk_series *s,
		       uint64_t elapsed_ns)
{
	buf_printf(b, "%-22s", label);
	for (uint64_t i = 0; i < SERIES_SHOWN; i++)
		buf_printf(b, " %.1f",
			   series_at(s, elapsed_ns * i / SERIES_SHOWN,
				     elapsed_ns * (i + 1) / SERIES_SHOWN));
	buf_putc(b, '\n');
}

/* What was not as it should have been; a line for each that there is. */
static void put_troubles(struct buf *b, const struct blk_run_result *res)
{
	const struct {
		uint64_t nr;
		const char *words;
	} lines[] = {
		{ res->nr_unwanted, "would have changed the device: not made (--writes)" },
		{ res->nr_beyond, "lie beyond the end of the target: not made (--wrap, --fit)" },
		{ res->nr_not_made, "are empty or of a kind that cannot be made" },
		{ res->nr_unsupported, "are discards or zeroes that the target cannot do" },
		{ res->nr_cut,
		  "were cut to what can be moved at once, or to the size of the target" },
		{ res->nr_aligned, "were widened to whole sectors of the target" },
		{ res->nr_differ, "had another outcome than in the trace" },
		{ res->nr_without_end, "have no known completion in the trace" },
		{ res->nr_parents_lost, "parents were too long ago to be waited for" },
	};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		if (lines[i].nr)
			buf_printf(b, "  %llu %s\n", (unsigned long long)lines[i].nr,
				   lines[i].words);
	}
}

void replay_block_print_text(const struct blk_run_result *res, FILE *out)
{
	struct blk_sums all;
	struct buf b = { 0 };

	sum_ops(res, &all);
	buf_printf(&b, "requests              %llu of %llu, %llu made; %s\n",
		   (unsigned long long)res->nr_done, (unsigned long long)res->nr_requests,
		   (unsigned long long)res->nr_made, res->interrupted ? "interrupted" : "complete");
	put_troubles(&b, res);
	replay_put_time(&b, "elapsed", res->elapsed_ns);
	buf_printf(&b, "%-22s", "original elapsed");
	strings_put_duration(&b, res->expected_elapsed_ns);
	if (!res->interrupted)
		buf_printf(&b, " (%+.2f %%)",
			   percent_off((double)res->elapsed_ns, (double)res->expected_elapsed_ns));
	buf_putc(&b, '\n');
	buf_printf(&b, "%-22s%.0f (%+.2f %%)\n", "IOPS", iops(res),
		   percent_off(iops(res), original_iops(res)));
	buf_printf(&b, "reordered             %llu by submission",
		   (unsigned long long)res->nr_reordered);
	if (res->nr_observed)
		buf_printf(&b, "; %llu (%.2f %%) of %llu at the device",
			   (unsigned long long)res->nr_reordered_device,
			   100 * (double)res->nr_reordered_device / (double)res->nr_observed,
			   (unsigned long long)res->nr_observed);
	buf_putc(&b, '\n');
	buf_printf(&b,
		   "in flight             at most %llu, in the trace %llu; the limit was %llu\n",
		   (unsigned long long)res->in_flight_max,
		   (unsigned long long)res->original_in_flight_max,
		   (unsigned long long)res->limit_max);
	put_series(&b, "  over time, trace", &res->original, res->original_elapsed_ns);
	put_series(&b, "  over time, run", &res->run, res->elapsed_ns);
	replay_put_lateness(&b, &res->lateness);
	replay_put_time(&b, "held up by the limit", res->limit_wait_ns);
	replay_put_time(&b, "held up by loading", res->load_wait_ns);
	buf_printf(&b, "%-22s%u by %s, %.2f us of CPU a request, %.1f requests a call%s%s\n",
		   "submitters", res->nr_submitters, res->engine,
		   res->nr_made ? (double)res->cpu_ns / (double)res->nr_made / 1e3 : 0,
		   res->nr_submits ? (double)res->nr_made / (double)res->nr_submits : 0,
		   res->direct ? "" : "; through the page cache",
		   res->registered || strcmp(res->engine, "io_uring") != 0
			   ? ""
			   : "; buffers or files not registered");
	buf_puts(
		&b,
		"\n  operation      requests      made errors bytes  original: mean p50 p99 | run: "
		"mean p50 p99 | error of the mean\n");
	for (unsigned int i = 0; i < BLK_OP_MAX; i++)
		put_sums(&b, blk_ops[i].name, &res->ops[i]);
	put_sums(&b, "all", &all);
	fwrite(b.data, 1, b.len, out);
	buf_release(&b);
}

static void json_sums(struct json *w, const char *name, const struct blk_sums *s)
{
	json_key(w, name);
	json_object_begin(w);
	json_kv_u64(w, "requests", s->nr);
	json_kv_u64(w, "made", s->nr_made);
	json_kv_u64(w, "errors", s->nr_errors);
	json_kv_u64(w, "bytes", s->bytes);
	replay_json_spread(w, "original_response_ns", &s->original);
	replay_json_spread(w, "run_response_ns", &s->run);
	json_kv_double(w, "response_error_percent",
		       percent_off(replay_mean(&s->run), replay_mean(&s->original)));
	json_object_end(w);
}

static void json_series(struct json *w, const char *name, const struct blk_series *s)
{
	unsigned int last = 0;

	for (unsigned int i = 0; i < BLK_SERIES_POINTS; i++)
		last = s->busy_ns[i] ? i + 1 : last;
	json_key(w, name);
	json_object_begin(w);
	json_kv_u64(w, "span_ns", s->span_ns);
	json_key(w, "mean");
	json_array_begin(w);
	for (unsigned int i = 0; i < last; i++)
		json_double(w, (double)s->busy_ns[i] / (double)s->span_ns);
	json_array_end(w);
	json_object_end(w);
}

static void json_queues(struct json *w, const struct blk_run_result *res)
{
	json_key(w, "queues");
	json_array_begin(w);
	for (uint32_t i = 0; i < res->nr_targets; i++) {
		const struct blk_queue *q = &res->queues[i];

		json_object_begin(w);
		json_kv_bool(w, "known", q->known);
		json_kv_str(w, "scheduler", q->scheduler);
		json_kv_u64(w, "nomerges", q->nomerges);
		json_kv_u64(w, "nr_requests", q->nr_requests);
		json_kv_u64(w, "wanted_nr_requests", q->want_nr_requests);
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_counts(struct json *w, const struct blk_run_result *res)
{
	json_kv_u64(w, "planned_requests", res->nr_requests);
	json_kv_u64(w, "requests", res->nr_done);
	json_kv_u64(w, "made", res->nr_made);
	json_kv_u64(w, "unwanted", res->nr_unwanted);
	json_kv_u64(w, "beyond", res->nr_beyond);
	json_kv_u64(w, "not_made", res->nr_not_made);
	json_kv_u64(w, "cut", res->nr_cut);
	json_kv_u64(w, "aligned", res->nr_aligned);
	json_kv_u64(w, "unsupported", res->nr_unsupported);
	json_kv_u64(w, "errors", res->nr_errors);
	json_kv_u64(w, "first_errno", (uint64_t)res->first_error);
	json_kv_u64(w, "mismatches", res->nr_differ);
	json_kv_u64(w, "without_completion", res->nr_without_end);
	json_kv_u64(w, "parents_lost", res->nr_parents_lost);
	json_kv_u64(w, "reordered", res->nr_reordered);
	json_kv_u64(w, "observed", res->nr_observed);
	json_kv_u64(w, "unobserved", res->nr_unobserved);
	json_kv_u64(w, "reordered_at_device", res->nr_reordered_device);
	json_kv_u64(w, "submits", res->nr_submits);
	json_kv_u64(w, "in_flight_max", res->in_flight_max);
	json_kv_u64(w, "original_in_flight_max", res->original_in_flight_max);
	json_kv_u64(w, "in_flight_limit", res->limit_max);
}

void replay_block_print_json(const struct blk_run_result *res, FILE *out)
{
	struct blk_sums all;
	struct json w;

	sum_ops(res, &all);
	json_init_file(&w, out, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_str(&w, "end", res->interrupted ? "interrupted" : "complete");
	json_counts(&w, res);
	json_kv_u64(&w, "elapsed_ns", res->elapsed_ns);
	json_kv_u64(&w, "original_elapsed_ns", res->original_elapsed_ns);
	json_kv_u64(&w, "expected_elapsed_ns", res->expected_elapsed_ns);
	json_kv_double(&w, "elapsed_error_percent",
		       percent_off((double)res->elapsed_ns, (double)res->expected_elapsed_ns));
	json_kv_double(&w, "iops", iops(res));
	json_kv_double(&w, "original_iops", original_iops(res));
	json_kv_double(&w, "iops_error_percent", percent_off(iops(res), original_iops(res)));
	json_kv_u64(&w, "limit_wait_ns", res->limit_wait_ns);
	json_kv_u64(&w, "load_wait_ns", res->load_wait_ns);
	json_kv_u64(&w, "submitter_cpu_ns", res->cpu_ns);
	json_kv_str(&w, "engine", res->engine);
	json_kv_u64(&w, "submitters", res->nr_submitters);
	json_kv_bool(&w, "direct", res->direct);
	json_kv_bool(&w, "registered", res->registered);
	replay_json_spread(&w, "lateness_ns", &res->lateness);
	json_sums(&w, "all", &all);
	json_key(&w, "operations");
	json_object_begin(&w);
	for (unsigned int i = 0; i < BLK_OP_MAX; i++) {
		if (res->ops[i].nr)
			json_sums(&w, blk_ops[i].name, &res->ops[i]);
	}
	json_object_end(&w);
	json_series(&w, "in_flight", &res->run);
	json_series(&w, "original_in_flight", &res->original);
	json_queues(&w, res);
	json_object_end(&w);
	json_release(&w);
}
