/* SPDX-License-Identifier: MIT */
#include "cli/replay_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/strings.h"
#include "cli/replay_prepare.h"
#include "plan/plan.h"

#define BUNDLE_DEFAULT 64
#define BUNDLE_MAX 4096
#define SERIES_SHOWN 16

const char *const replay_block_modes[] = { "timed", "think", "afap", "load", NULL };

/* Results. */

static double percent_off(double v, double of)
{
	return of > 0 ? 100 * (v - of) / of : 0;
}

static double mean(const struct spread *s)
{
	return s->count ? (double)s->sum / (double)s->count : 0;
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
		strings_put_duration(b, (uint64_t)mean(spreads[k]));
		for (unsigned int i = 0; i < ARRAY_LEN(percents); i++) {
			buf_puts(b, "  ");
			strings_put_duration(b, spread_percentile(spreads[k], percents[i]));
		}
	}
	if (s->original.count)
		buf_printf(b, " | %+.1f %%", percent_off(mean(&s->run), mean(&s->original)));
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

static void put_time(struct buf *b, const char *label, uint64_t ns)
{
	buf_printf(b, "%-22s", label);
	strings_put_duration(b, ns);
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
		{ res->nr_cut, "were cut to what can be moved at once" },
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

static void print_text(FILE *out, const struct blk_run_result *res, double scale)
{
	double original_ns = (double)res->original_elapsed_ns * scale;
	struct blk_sums all;
	struct buf b = { 0 };

	sum_ops(res, &all);
	buf_printf(&b, "requests              %llu of %llu, %llu made; %s\n",
		   (unsigned long long)res->nr_done, (unsigned long long)res->nr_requests,
		   (unsigned long long)res->nr_made, res->interrupted ? "interrupted" : "complete");
	put_troubles(&b, res);
	put_time(&b, "elapsed", res->elapsed_ns);
	buf_printf(&b, "%-22s", "original elapsed");
	strings_put_duration(&b, (uint64_t)original_ns);
	buf_printf(&b, " (%+.2f %%)\n", percent_off((double)res->elapsed_ns, original_ns));
	buf_printf(&b, "IOPS                  %.0f (%+.2f %%)\n",
		   res->elapsed_ns ? (double)res->nr_made * 1e9 / (double)res->elapsed_ns : 0,
		   original_ns > 0 && res->elapsed_ns
			   ? percent_off((double)res->nr_made / (double)res->elapsed_ns,
					 (double)res->nr_done / original_ns)
			   : 0);
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
	buf_puts(&b, "lateness              ");
	strings_put_duration(&b, spread_percentile(&res->lateness, 50));
	buf_puts(&b, " p50, ");
	strings_put_duration(&b, spread_percentile(&res->lateness, 99));
	buf_puts(&b, " p99\n");
	put_time(&b, "held up by the limit", res->limit_wait_ns);
	put_time(&b, "held up by loading", res->load_wait_ns);
	buf_printf(&b, "submitter             %.2f us of CPU a request, %.1f requests a call%s%s\n",
		   res->nr_made ? (double)res->cpu_ns / (double)res->nr_made / 1e3 : 0,
		   res->nr_submits ? (double)res->nr_made / (double)res->nr_submits : 0,
		   res->direct ? "" : "; through the page cache",
		   res->registered ? "" : "; buffers or files not registered");
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

static void json_spread(struct json *w, const char *name, const struct spread *s)
{
	json_key(w, name);
	json_object_begin(w);
	json_kv_u64(w, "count", s->count);
	json_kv_double(w, "mean", mean(s));
	json_kv_u64(w, "p50", spread_percentile(s, 50));
	json_kv_u64(w, "p90", spread_percentile(s, 90));
	json_kv_u64(w, "p99", spread_percentile(s, 99));
	json_kv_u64(w, "max", s->max);
	json_object_end(w);
}

static void json_sums(struct json *w, const char *name, const struct blk_sums *s)
{
	json_key(w, name);
	json_object_begin(w);
	json_kv_u64(w, "requests", s->nr);
	json_kv_u64(w, "made", s->nr_made);
	json_kv_u64(w, "errors", s->nr_errors);
	json_kv_u64(w, "bytes", s->bytes);
	json_spread(w, "original_response_ns", &s->original);
	json_spread(w, "run_response_ns", &s->run);
	json_kv_double(w, "response_error_percent", percent_off(mean(&s->run), mean(&s->original)));
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

static void print_json(FILE *out, const struct blk_run_result *res, double scale)
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
	json_kv_double(
		&w, "elapsed_error_percent",
		percent_off((double)res->elapsed_ns, (double)res->original_elapsed_ns * scale));
	json_kv_u64(&w, "limit_wait_ns", res->limit_wait_ns);
	json_kv_u64(&w, "load_wait_ns", res->load_wait_ns);
	json_kv_u64(&w, "submitter_cpu_ns", res->cpu_ns);
	json_kv_bool(&w, "direct", res->direct);
	json_kv_bool(&w, "registered", res->registered);
	json_spread(&w, "lateness_ns", &res->lateness);
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

/* The run. */

struct watching {
	const struct cli *cli;
	const struct block_replay *o;
	struct progress *progress;
	uint64_t shown;
};

static bool want_stop(void *arg)
{
	struct watching *w = arg;

	return *w->o->stop;
}

static void show_progress(void *arg, uint64_t nr_done, uint64_t nr_requests)
{
	struct watching *w = arg;

	progress_set_total(w->progress, nr_requests);
	progress_add(w->progress, nr_done - w->shown);
	w->shown = nr_done;
}

static void show_note(void *arg, const char *text)
{
	struct watching *w = arg;

	if (!w->o->quiet)
		cli_warn(w->cli, "%s", text);
}

static int status_of(const struct cli *cli, const struct blk_run_result *res)
{
	if (res->interrupted)
		return cli_fail_with(cli, "interrupted");
	return res->nr_differ || res->nr_beyond ? CLI_DIFFERS : CLI_DONE;
}

static int run_plan(const struct cli *cli, const struct blk_run_options *ro,
		    const struct block_replay *o, const struct blk_target_request *targets,
		    uint32_t nr, const char *plan)
{
	struct watching watching = { .cli = cli, .o = o };
	struct blk_run_watcher w = { .arg = &watching,
				     .want_stop = want_stop,
				     .progress = show_progress,
				     .note = show_note };
	struct blk_run_result *res;
	struct err err = { "" };
	int r;

	watching.progress = cli_progress_begin(cli, "replay", "requests", o->quiet);
	r = blk_run_perform(plan, targets, nr, ro, &w, &res, &err);
	progress_end(watching.progress);
	if (r < 0)
		return cli_fail(cli, &err);
	if (o->json)
		print_json(cli->out, res, o->scale);
	else
		print_text(cli->out, res, o->scale);
	r = status_of(cli, res);
	blk_run_result_free(res);
	return r;
}

static int check(const struct cli *cli, const struct block_replay *o, const char *path)
{
	struct progress *progress;
	struct err err = { "" };
	struct plan *p;
	int r = plan_open(path, &p, &err);

	if (r < 0)
		return cli_fail(cli, &err);
	if (!o->no_check) {
		progress = cli_progress_begin(cli, "check", "actions", o->quiet);
		r = plan_check(p, progress, &err);
		progress_end(progress);
	}
	plan_close(p);
	return r < 0 ? cli_fail(cli, &err) : CLI_DONE;
}

static int parse_factor(const char *text, const char *name, double *ret, struct err *err)
{
	char *end;

	*ret = 1;
	if (!text)
		return 0;
	*ret = strtod(text, &end);
	if (end == text || *end || !(*ret >= 0) || *ret > 1e9)
		return err_set(err, -EINVAL, "--%s: '%s' is no factor", name, text);
	return 0;
}

static int fill_options(const struct block_options *b, const struct block_replay *o,
			struct blk_run_options *ro, struct err *err)
{
	if (parse_factor(b->scale_server, "scale-server", &ro->scale_server, err) < 0 ||
	    parse_factor(b->scale_storage, "scale-storage", &ro->scale_storage, err) < 0)
		return -EINVAL;
	if (b->mode != BLK_MODE_THINK && (b->scale_server || b->scale_storage))
		return err_set(err, -EINVAL,
			       "--scale-server and --scale-storage are for --mode=think");
	if (b->wrap && b->fit)
		return err_set(err, -EINVAL, "--wrap and --fit do not go together");
	if (b->compress > 100 || b->dedup > 100)
		return err_set(err, -EINVAL, "--compress and --dedup are percentages");
	if (b->bundle_size > BUNDLE_MAX || b->depth > 32768)
		return err_set(err, -EINVAL, "--bundle-size is at most %u, --depth at most 32768",
			       BUNDLE_MAX);
	if (b->offset_bytes > INT64_MAX / 2)
		return err_set(err, -EINVAL, "--offset is too large");
	ro->scale_server *= o->scale;
	return 0;
}

/* [NAME=]TARGET; a target with an equal sign in it can be written with a slash before. */
static struct blk_target_request *split_targets(const struct block_options *b, char **copies)
{
	struct blk_target_request *t = xcalloc(b->devices.len, sizeof(*t));

	for (size_t i = 0; i < b->devices.len; i++) {
		char *eq, *slash;

		copies[i] = xstrdup(b->devices.items[i]);
		eq = strchr(copies[i], '=');
		slash = strchr(copies[i], '/');
		if (eq && (!slash || eq < slash || copies[i][0] != '/')) {
			*eq = '\0';
			t[i] = (struct blk_target_request){ .path = eq + 1, .device = copies[i] };
		} else {
			t[i].path = copies[i];
		}
	}
	return t;
}

int replay_block(const struct cli *cli, const struct block_options *b, const struct block_replay *o,
		 char *trace)
{
	struct blk_run_options ro = {
		.mode = b->mode,
		.scale = o->scale,
		.depth = (uint32_t)b->depth,
		.bundle_ns = b->bundle_ns,
		.bundle_max = b->bundle_size ? (uint32_t)b->bundle_size : BUNDLE_DEFAULT,
		.place = b->wrap  ? BLK_PLACE_WRAP
			 : b->fit ? BLK_PLACE_FIT
				  : BLK_PLACE_SAME,
		.offset_bytes = b->offset_bytes,
		.writes = b->writes,
		.destroy_data = b->destroy_data,
		.create = b->create,
		.buffered = b->buffered,
		.poll = b->poll,
		.tune = b->tune,
		.observe = b->observe,
		.compress_percent = (uint32_t)b->compress,
		.dedup_percent = (uint32_t)b->dedup,
		.output = o->output,
		.replace = o->force,
	};
	struct prepare_options po = { .order = o->order, .quiet = o->quiet, .stop = o->stop };
	struct blk_target_request *targets;
	struct prepared prepared;
	struct err err = { "" };
	char **copies;
	int r;

	if (fill_options(b, o, &ro, &err) < 0)
		return cli_fail(cli, &err);
	/* Only one mode asks for edges, and they are many where many were in flight. */
	if (b->mode != BLK_MODE_THINK && !po.order.order)
		po.order.order = "none";
	copies = xcalloc(b->devices.len, sizeof(*copies));
	targets = split_targets(b, copies);
	r = prepare_plans(cli, &po, &trace, 1, &prepared);
	if (r == CLI_DONE)
		r = check(cli, o, prepared.plans[0]);
	if (r == CLI_DONE)
		r = run_plan(cli, &ro, o, targets, (uint32_t)b->devices.len, prepared.plans[0]);
	prepared_release(&prepared);
	for (size_t i = 0; i < b->devices.len; i++)
		free(copies[i]);
	free(copies);
	free(targets);
	return r;
}
