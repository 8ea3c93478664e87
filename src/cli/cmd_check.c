/* SPDX-License-Identifier: MIT */
/* reprise check: is a trace whole, and what can be saved of one that is not. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "trace/check.h"
#include "trace/salvage.h"

struct check_options {
	bool json, quiet, salvage, force;
	const char *output;
};

static const struct option_spec check_specs[] = {
	OPT_FLAG(0, "salvage", struct check_options, salvage,
		 "write what can be read to a new, valid trace"),
	OPT_STRING('o', "output", "FILE", struct check_options, output, "where to, with --salvage"),
	OPT_FLAG('f', "force", struct check_options, force, "replace FILE when it exists"),
	OPT_FLAG('j', "json", struct check_options, json, "print the result as JSON"),
	OPT_QUIET(struct check_options, quiet),
};

struct count {
	const char *key, *words;
	uint64_t n;
};

#define NR_COUNTS 13

static void collect(const struct check_result *c, struct count ret[NR_COUNTS])
{
	const struct count counts[NR_COUNTS] = {
		{ "blocks", "blocks", c->nr_blocks },
		{ "bad_blocks", "damaged places", c->nr_bad_blocks },
		{ "bad_bytes", "bytes in them", c->nr_bad_bytes },
		{ "unknown_blocks", "blocks of a later version", c->nr_unknown_blocks },
		{ "events", "events", c->nr_events },
		{ "threads", "threads", c->nr_streams },
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

static void print_json(const struct cli *cli, const char *path, const struct check_result *c)
{
	struct count counts[NR_COUNTS];
	struct json w;
	unsigned int i;

	collect(c, counts);
	json_init_file(&w, cli->out, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_bytes(&w, "file", path, strlen(path));
	json_kv_bool(&w, "ok", check_ok(c));
	json_kv_bool(&w, "intact", check_intact(c));
	json_kv_bool(&w, "closed", c->closed);
	for (i = 0; i < NR_COUNTS; i++)
		json_kv_u64(&w, counts[i].key, counts[i].n);
	json_kv_str(&w, "first_fault", c->first_fault.text[0] ? c->first_fault.text : NULL);
	json_object_end(&w);
	json_release(&w);
}

static void print_text(const struct cli *cli, const char *path, const struct check_result *c)
{
	struct count counts[NR_COUNTS];
	unsigned int i;

	collect(c, counts);
	fprintf(cli->out, "%s: %s\n", path,
		check_ok(c)	  ? "intact and complete"
		: check_intact(c) ? "intact, but its ledger says that something is missing"
				  : "damaged or unfinished");
	for (i = 0; i < NR_COUNTS; i++) {
		if (counts[i].n)
			fprintf(cli->out, "%16llu %s\n", (unsigned long long)counts[i].n,
				counts[i].words);
	}
}

static int run_salvage(const struct cli *cli, const struct check_options *o, const char *path)
{
	struct progress *p = cli_progress_begin(cli, "check: salvage", "events", o->quiet);
	struct salvage_result res;
	struct err err = { "" };

	if (trace_salvage(path, o->output, o->force, p, &res, &err) < 0)
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
	struct check_result c;
	struct progress *p;
	struct err err = { "" };

	(void)nr_operands;
	if (o->salvage != !!o->output)
		return cli_fail_with(cli, "--salvage and --output go together");
	if (o->salvage)
		return run_salvage(cli, o, operands[0]);
	p = cli_progress_begin(cli, "check", "events", o->quiet);
	if (trace_check(operands[0], p, &c, &err) < 0)
		return cli_fail(cli, &err);
	progress_end(p);
	if (o->json)
		print_json(cli, operands[0], &c);
	else
		print_text(cli, operands[0], &c);
	if (!check_intact(&c))
		return cli_fail(cli, &c.first_fault);
	return check_ok(&c) ? CLI_DONE : CLI_DIFFERS;
}

const struct command command_check = {
	.name = "check",
	.summary = "verify that a trace is whole, or save what can be saved",
	.operands = "TRACE",
	.options = check_specs,
	.nr_options = ARRAY_LEN(check_specs),
	.options_size = sizeof(struct check_options),
	.run = check_run,
};
