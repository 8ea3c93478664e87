/* SPDX-License-Identifier: MIT */
/* reprise stat: what a trace adds up to. */
#include "base/banned.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/open_trace.h"
#include "compile/compile.h"
#include "report/stats.h"

struct stat_options {
	struct filter_options filter;
	bool json, quiet, no_files;
	uint64_t top;
};

static void print_stats(const struct cli *cli, const struct stat_options *o, const struct stats *s,
			const char *path)
{
	struct stats_print_options print = { .trace_path = path, .top = (size_t)o->top };
	struct json w;

	if (!o->json) {
		stats_print_text(s, &print, cli->out);
		return;
	}
	json_init_file(&w, cli->out, JSON_PRETTY);
	stats_print_json(s, &print, &w);
	json_release(&w);
}

/*
 * What a compilation would infer of the initial tree, where the trace has not all
 * of it. Not of a part of the trace: what that needs, an earlier event may have made.
 */
static int count_inferred(const struct cli *cli, const struct stat_options *o, struct trace *t,
			  struct stats *s, struct err *err)
{
	struct compile_options options = { .policy = order_find("none") };
	struct compile_totals totals;
	int r;

	if (o->no_files || !stats_lacks_tree(s, t) || compile_is_block(t))
		return 0;
	options.progress = cli_progress_begin(cli, "infer", "events", o->quiet);
	r = compile_trace(t, &options, NULL, NULL, &totals, err);
	progress_end(options.progress);
	if (!r)
		stats_set_inferred(s, &totals.inferred);
	return r;
}

static int stat_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct stat_options *o = options;
	struct stats_options collect = { .no_files = o->no_files };
	struct stats *s;
	struct trace *t;
	struct err err = { "" };
	int r;

	(void)nr_operands;
	if (filter_new(&o->filter, &collect.filter, &err) < 0)
		return cli_fail(cli, &err);
	r = open_trace(cli, operands[0], &t);
	if (r != CLI_DONE) {
		filter_free(collect.filter);
		return r;
	}
	collect.progress = cli_progress_begin(cli, "stat", "events", o->quiet);
	s = stats_new();
	r = stats_collect(s, t, &collect, &err);
	progress_end(collect.progress);
	if (!r)
		r = count_inferred(cli, o, t, s, &err);
	/* Also when the reading failed: what came before is worth knowing. */
	print_stats(cli, o, s, operands[0]);
	stats_free(s);
	filter_free(collect.filter);
	return close_trace(cli, t, r, &err);
}

static const struct option_spec stat_specs[] = {
	OPT_FILTERS(struct stat_options, filter),
	OPT_U64('n', "top", "N", struct stat_options, top, "how many files and threads are listed",
		.default_text = "10"),
	OPT_FLAG(
		0, "no-files", struct stat_options, no_files,
		"do not follow descriptors to files: faster, and with --pid, --tid and --from only "
		"that part is read"),
	OPT_FLAG('j', "json", struct stat_options, json, "print JSON"),
	OPT_QUIET(struct stat_options, quiet),
};

const struct command command_stat = {
	.name = "stat",
	.summary = "sum up what a trace holds",
	.operands = "TRACE",
	.options = stat_specs,
	.nr_options = ARRAY_LEN(stat_specs),
	.options_size = sizeof(struct stat_options),
	.defaults = &(const struct stat_options){ .top = 10 },
	.run = stat_run,
};
