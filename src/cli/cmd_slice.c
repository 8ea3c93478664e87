/* SPDX-License-Identifier: MIT */
/* reprise slice: a part of a trace as a new trace. */
#include <string.h>

#include "base/banned.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/open_trace.h"
#include "report/slice.h"

struct slice_cmd_options {
	struct filter_options filter;
	const char *output;
	bool force, json, quiet;
	unsigned int file_mode;
};

static void print_result(const struct cli *cli, const struct slice_cmd_options *o,
			 const struct slice_result *res)
{
	struct json w;

	if (!o->json) {
		fprintf(cli->out, "%s: %llu events kept, %llu left out", o->output,
			(unsigned long long)res->nr_kept, (unsigned long long)res->nr_left_out);
		if (res->nr_lost)
			fprintf(cli->out, ", %llu of unknown calls lost",
				(unsigned long long)res->nr_lost);
		fprintf(cli->out, "\n");
		return;
	}
	json_init_file(&w, cli->out, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_bytes(&w, "output", o->output, strlen(o->output));
	json_kv_u64(&w, "events", res->nr_kept);
	json_kv_u64(&w, "left_out", res->nr_left_out);
	json_kv_u64(&w, "lost", res->nr_lost);
	json_kv_u64(&w, "missing_data", res->nr_missing_data);
	json_kv_u64(&w, "tree_entries", res->nr_tree_entries);
	json_object_end(&w);
	json_release(&w);
}

static int slice_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct slice_cmd_options *o = options;
	struct slice_options slice = { .output = o->output,
				       .replace = o->force,
				       .file_mode = o->file_mode };
	struct slice_result res;
	struct trace *t;
	struct err err = { "" };
	int r;

	(void)nr_operands;
	if (!o->output)
		return cli_fail_with(cli, "name the new trace with -o");
	if (filter_new(&o->filter, &slice.filter, &err) < 0)
		return cli_fail(cli, &err);
	r = open_trace(cli, operands[0], &t);
	if (r != CLI_DONE) {
		filter_free(slice.filter);
		return r;
	}
	slice.progress = cli_progress_begin(cli, "slice", "events", o->quiet);
	r = slice_trace(t, &slice, &res, &err);
	progress_end(slice.progress);
	if (!r)
		print_result(cli, o, &res);
	filter_free(slice.filter);
	return close_trace(cli, t, r, &err);
}

static const struct option_spec slice_specs[] = {
	OPT_STRING('o', "output", "FILE", struct slice_cmd_options, output,
		   "where the new trace goes"),
	OPT_FLAG('f', "force", struct slice_cmd_options, force, "replace FILE when it exists"),
	OPT_FILE_MODE(struct slice_cmd_options, file_mode),
	OPT_FILTERS(struct slice_cmd_options, filter),
	OPT_FLAG('j', "json", struct slice_cmd_options, json, "print what was done as JSON"),
	OPT_QUIET(struct slice_cmd_options, quiet),
};

const struct command command_slice = {
	.name = "slice",
	.summary = "copy a part of a trace to a new trace",
	.operands = "TRACE",
	.options = slice_specs,
	.nr_options = ARRAY_LEN(slice_specs),
	.options_size = sizeof(struct slice_cmd_options),
	.run = slice_run,
};
