/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "import/import.h"

/* More are counted, not told. */
#define COMPLAINTS_MAX 10

struct import_options {
	unsigned int format; /* 0: auto, else the importer before it */
	const char *output, *init;
	const char *device, *columns;
	unsigned int time_unit; /* of time_units */
	unsigned int events; /* enum import_events */
	bool force;
	unsigned int file_mode;
	bool strict;
	bool json;
	bool quiet;
};

static const char *const formats[] = {
	"auto",
#define IMPORTER(name) #name,
#include "import/importers.def"
#undef IMPORTER
	NULL,
};

static const char *const time_units[] = { "auto", "ns", "100ns", "us", "ms", "s", NULL };
static const uint64_t time_units_ns[] = { 0, 1, 100, NS_PER_US, NS_PER_MS, NS_PER_S };
static const char *const events_words[] = { "auto", "issue", "queue", NULL };

struct complaints {
	const struct cli *cli;
	unsigned int nr_told;
};

static void tell_complaint(void *ctx, const struct import_complaint *c)
{
	struct complaints *told = ctx;

	if (told->nr_told++ < COMPLAINTS_MAX)
		cli_warn(told->cli, "%s:%llu: %s", c->input, (unsigned long long)c->line_no,
			 c->why);
}

/* The output's name is the input's with ".trace" behind it. */
static int choose_output(const struct import_options *o, const char *input, struct buf *name,
			 struct err *err)
{
	if (o->output)
		buf_puts(name, o->output);
	else if (strcmp(input, "-") != 0)
		buf_printf(name, "%s.trace", input);
	else
		return err_set(err, -EINVAL, "name the output with -o when reading standard input");
	return 0;
}

static void print_counts(const struct cli *cli, const struct import_options *o,
			 const struct import_counts *c, const char *output)
{
	struct json w = { 0 };

	if (!o->json) {
		fprintf(cli->out, "import: %llu lines, %llu events, %llu not understood",
			(unsigned long long)c->nr_lines, (unsigned long long)c->nr_events,
			(unsigned long long)c->nr_not_understood);
		if (c->nr_values_lost)
			fprintf(cli->out, ", %llu values of events neither",
				(unsigned long long)c->nr_values_lost);
		fprintf(cli->out, " -> %s\n", output);
		return;
	}
	json_init_file(&w, cli->out, JSON_COMPACT);
	json_object_begin(&w);
	json_kv_u64(&w, "lines", c->nr_lines);
	json_kv_u64(&w, "events", c->nr_events);
	json_kv_u64(&w, "not_understood", c->nr_not_understood);
	json_kv_u64(&w, "values_not_understood", c->nr_values_lost);
	json_kv_bytes(&w, "output", output, strlen(output));
	json_object_end(&w);
	json_release(&w);
}

static int import_to(const struct cli *cli, const struct import_options *o,
		     struct import_request *rq)
{
	struct complaints told = { .cli = cli };
	struct import_counts counts = { 0 };
	struct err err = { 0 };
	int r;

	rq->format = o->format ? formats[o->format] : NULL;
	rq->init = o->init;
	rq->block = (struct import_block){ .device = o->device,
					   .time_unit_ns = time_units_ns[o->time_unit],
					   .events = (enum import_events)o->events,
					   .columns = o->columns };
	rq->replace = o->force;
	rq->file_mode = o->file_mode;
	rq->strict = o->strict;
	rq->progress = cli_progress_begin(cli, "import", NULL, o->quiet);
	rq->complain = tell_complaint;
	rq->complain_ctx = &told;
	r = import_files(rq, &counts, &err);
	progress_end(rq->progress);
	if (r == -EEXIST)
		return cli_fail_with(cli, "%s is there already; -f replaces it", rq->output);
	if (r < 0)
		return cli_fail(cli, &err);
	print_counts(cli, o, &counts, rq->output);
	if (counts.nr_not_understood)
		return cli_fail_with(cli, "%llu of %llu lines were not understood",
				     (unsigned long long)counts.nr_not_understood,
				     (unsigned long long)counts.nr_lines);
	return CLI_DONE;
}

static int import_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct import_options *o = options;
	struct import_request rq = { .paths = (const char *const *)operands,
				     .nr_paths = (size_t)nr_operands };
	struct buf name = { 0 };
	struct err err = { 0 };
	int status;

	if (choose_output(o, operands[0], &name, &err) < 0) {
		status = cli_fail(cli, &err);
	} else {
		rq.output = buf_str(&name);
		status = import_to(cli, o, &rq);
	}
	buf_release(&name);
	return status;
}

static const struct option_spec import_specs[] = {
	OPT_CHOICE(0, "format", "FORMAT", struct import_options, format, formats,
		   "the format of the inputs"),
	OPT_STRING('o', "output", "FILE", struct import_options, output, "the trace to write",
		   .default_text = "INPUT.trace"),
	OPT_STRING(0, "init", "LISTING", struct import_options, init,
		   "a listing of the files that were there before, for formats that have none"),
	OPT_STRING(
		0, "device", "DEVICE", struct import_options, device,
		"block traces: only this device, by its name or as MAJOR:MINOR; or its name, where "
		"the format tells none"),
	OPT_CHOICE(
		0, "events", "WHICH", struct import_options, events, events_words,
		"block traces that have both: a request begins when it was issued to the device, or "
		"queued"),
	OPT_CHOICE(0, "time-unit", "UNIT", struct import_options, time_unit, time_units,
		   "block traces of columns: the unit of their times"),
	OPT_STRING(
		0, "columns", "LIST", struct import_options, columns,
		"of the format csv: what the columns are, such as time:us,-,op,offset:sectors,length"),
	OPT_FLAG('f', "force", struct import_options, force, "replace an existing trace"),
	OPT_FILE_MODE(struct import_options, file_mode),
	OPT_FLAG(0, "strict", struct import_options, strict,
		 "stop at the first line that is not understood, and write nothing"),
	OPT_FLAG(0, "json", struct import_options, json, "print the counts as JSON"),
	OPT_QUIET(struct import_options, quiet),
};

const struct command command_import = {
	.name = "import",
	.summary = "make a trace from files of another format",
	.operands = "INPUT...",
	.options = import_specs,
	.nr_options = ARRAY_LEN(import_specs),
	.options_size = sizeof(struct import_options),
	.run = import_run,
};
