/* SPDX-License-Identifier: MIT */
/* reprise check: is a trace or a plan whole, and what can be saved of a trace that is not. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "plan/plan.h"
#include "trace/check.h"
#include "trace/reader.h"
#include "trace/salvage.h"

struct check_options {
	bool json, quiet, salvage, force;
	unsigned int file_mode;
	const char *output;
};

static const struct option_spec check_specs[] = {
	OPT_FLAG(0, "salvage", struct check_options, salvage,
		 "write what can be read to a new, valid trace"),
	OPT_STRING('o', "output", "FILE", struct check_options, output, "where to, with --salvage"),
	OPT_FLAG('f', "force", struct check_options, force, "replace FILE when it exists"),
	OPT_FILE_MODE(struct check_options, file_mode),
	OPT_FLAG('j', "json", struct check_options, json, "print the result as JSON"),
	OPT_QUIET(struct check_options, quiet),
};

struct count {
	const char *key, *words;
	uint64_t n;
};

#define NR_COUNTS 16

/* All that a check found. */
struct findings {
	struct check_result c;
	struct plan_totals plan; /* of a plan; else zeroes */
};

static void collect(const struct findings *f, struct count ret[NR_COUNTS])
{
	const struct check_result *c = &f->c;
	const struct count counts[NR_COUNTS] = {
		{ "blocks", "blocks", c->nr_blocks },
		{ "bad_blocks", "damaged places", c->nr_bad_blocks },
		{ "bad_bytes", "bytes in them", c->nr_bad_bytes },
		{ "unknown_blocks", "blocks of a later version", c->nr_unknown_blocks },
		{ "events", "events", c->nr_events },
		{ "threads", "threads", c->nr_streams },
		{ "actions", "actions", f->plan.nr_actions },
		{ "lanes", "lanes", f->plan.nr_lanes },
		{ "edges", "edges", f->plan.nr_edges },
		{ "records", "records", c->nr_records },
		{ "blobs", "pieces of data", c->nr_blobs },
		{ "blob_bytes", "bytes in them", c->blob_bytes },
		{ "bad_blobs", "damaged pieces of data", c->nr_bad_blobs },
		{ "dangling", "references to missing data", c->nr_dangling },
		{ "ledger", "ledger entries", c->nr_losses },
		{ "lost", "lost events", c->nr_lost_events },
	};

	memcpy(ret, counts, sizeof(counts));
}

static void print_json(const struct cli *cli, const char *path, const struct findings *f)
{
	const struct check_result *c = &f->c;
	struct count counts[NR_COUNTS];
	struct json w;
	unsigned int i;

	collect(f, counts);
	json_init_file(&w, cli->out, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_bytes(&w, "file", path, strlen(path));
	json_kv_bool(&w, "ok", check_ok(c));
	json_kv_bool(&w, "intact", check_intact(c));
	json_kv_bool(&w, "complete", check_complete(c));
	json_kv_bool(&w, "closed", c->closed);
	for (i = 0; i < NR_COUNTS; i++)
		json_kv_u64(&w, counts[i].key, counts[i].n);
	json_kv_str(&w, "first_fault", c->first_fault.text[0] ? c->first_fault.text : NULL);
	json_object_end(&w);
	json_release(&w);
}

static void print_text(const struct cli *cli, const char *path, const struct findings *f)
{
	const struct check_result *c = &f->c;
	struct count counts[NR_COUNTS];
	unsigned int i;

	collect(f, counts);
	fprintf(cli->out, "%s: %s\n", path,
		check_complete(c) ? "intact and complete"
		: check_ok(c)	  ? "intact, with all events; its ledger says what else is missing"
		: check_intact(c) ? "intact, but its ledger says that something is missing"
				  : "damaged or unfinished");
	for (i = 0; i < NR_COUNTS; i++) {
		if (counts[i].n)
			fprintf(cli->out, "%16llu %s\n", (unsigned long long)counts[i].n,
				counts[i].words);
	}
}

static bool is_plan(const char *path, int open_flags)
{
	struct trace *t;
	bool plan;

	if (trace_open(path, open_flags, &t, NULL) < 0)
		return false; /* whoever reads it next says why */
	plan = plan_is_plan(t);
	trace_close(t);
	return plan;
}

/* Its blocks are good: now what they say. */
static void check_plan(const char *path, struct progress *progress, struct findings *f)
{
	struct err *fault = &f->c.first_fault;
	struct plan *p;
	int r = plan_open(path, &p, fault);

	if (r < 0)
		return;
	f->plan = *plan_totals(p);
	progress_set_total(progress, 2 * f->plan.nr_actions);
	r = plan_check(p, progress, fault);
	if (!r)
		r = plan_check_data(p, progress, fault);
	plan_close(p);
}

static int run_salvage(const struct cli *cli, const struct check_options *o, const char *path)
{
	struct progress *p = cli_progress_begin(cli, "check: salvage", "events", o->quiet);
	struct trace_writer_options writer = { .replace = o->force, .file_mode = o->file_mode };
	struct salvage_result res;
	struct err err = { "" };

	if (is_plan(path, TRACE_SALVAGE)) {
		progress_end(p);
		return cli_fail_with(cli, "%s is a plan: compile it again", path);
	}
	if (trace_salvage(path, o->output, &writer, p, &res, &err) < 0)
		return cli_fail(cli, &err);
	progress_end(p);
	if (o->json) {
		struct json w;

		json_init_file(&w, cli->out, JSON_PRETTY);
		json_object_begin(&w);
		json_kv_bytes(&w, "output", o->output, strlen(o->output));
		json_kv_u64(&w, "events", res.nr_events);
		json_kv_u64(&w, "lost", res.nr_lost_events);
		json_kv_u64(&w, "missing_data", res.nr_missing_data);
		json_object_end(&w);
		json_release(&w);
	} else {
		fprintf(cli->out,
			"%s: %llu events saved, %llu known to be lost, %llu without their data\n",
			o->output, (unsigned long long)res.nr_events,
			(unsigned long long)res.nr_lost_events,
			(unsigned long long)res.nr_missing_data);
	}
	return CLI_DONE;
}

static int check_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct check_options *o = options;
	struct findings f = { 0 };
	struct progress *p;
	struct err err = { "" };

	(void)nr_operands;
	if (o->salvage != !!o->output)
		return cli_fail_with(cli, "--salvage and --output go together");
	if (o->salvage)
		return run_salvage(cli, o, operands[0]);
	p = cli_progress_begin(cli, "check", "events", o->quiet);
	if (trace_check(operands[0], p, &f.c, &err) < 0)
		return cli_fail(cli, &err);
	if (check_intact(&f.c) && is_plan(operands[0], 0))
		check_plan(operands[0], p, &f);
	progress_end(p);
	if (o->json)
		print_json(cli, operands[0], &f);
	else
		print_text(cli, operands[0], &f);
	if (!check_intact(&f.c))
		return cli_fail(cli, &f.c.first_fault);
	return check_ok(&f.c) ? CLI_DONE : CLI_DIFFERS;
}

const struct command command_check = {
	.name = "check",
	.summary = "verify that a trace or plan is whole, or save what can be saved",
	.operands = "TRACE|PLAN",
	.options = check_specs,
	.nr_options = ARRAY_LEN(check_specs),
	.options_size = sizeof(struct check_options),
	.run = check_run,
};
