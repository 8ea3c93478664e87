/* SPDX-License-Identifier: MIT */
/* reprise compare: how alike a trace and others of the same work are. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/open_trace.h"
#include "report/fidelity_print.h"

struct compare_cli_options {
	enum match_way match;
	const char *tolerance;
	bool json, quiet;
};

struct comparing {
	const struct cli *cli;
	const struct compare_cli_options *o;
	struct trace *a;
	const char *name_a;
	double tolerance; /* of the elapsed time; NaN: any */
	struct json json;
	uint32_t nr_printed;
	struct buf rows; /* all of them side by side */
};

static void print(struct comparing *c, const char *name_b, const struct fidelity *f)
{
	struct buf b = { 0 };

	if (c->o->json) {
		json_object_begin(&c->json);
		json_kv_str(&c->json, "b", name_b);
		fidelity_put_json(f, &c->json);
		json_object_end(&c->json);
		return;
	}
	if (c->nr_printed)
		buf_putc(&b, '\n');
	else
		fidelity_put_row_of_a(f, c->name_a, &c->rows);
	c->nr_printed++;
	fidelity_put_row_of_b(f, name_b, &c->rows);
	fidelity_put_text(f, c->name_a, name_b, &b);
	(void)fwrite(b.data, 1, b.len, c->cli->out); /* cli checks the stream at the end */
	buf_release(&b);
}

static bool is_within(const struct comparing *c, const struct fidelity *f)
{
	double error = fidelity_error((double)fidelity_elapsed_ns(&f->a),
				      (double)fidelity_elapsed_ns(&f->b));

	return isnan(c->tolerance) || fabs(error) <= c->tolerance;
}

/* A trace that cannot be read is told of; the others are compared all the same. */
static int compare_with(struct comparing *c, const char *path)
{
	struct fidelity_options fo = { .way = c->o->match };
	struct fidelity *f;
	struct trace *b;
	struct err err = { "" };
	int r, status = open_trace(c->cli, path, &b);

	if (status != CLI_DONE)
		return status;
	f = xcalloc(1, sizeof(*f));
	fo.progress = cli_progress_begin(c->cli, "compare", "events", c->o->quiet);
	r = fidelity_compare(c->a, b, &fo, f, &err);
	progress_end(fo.progress);
	print(c, path, f);
	status = close_trace(c->cli, b, r, &err);
	if (status == CLI_DONE && !is_within(c, f))
		status = CLI_DIFFERS;
	fidelity_release(f);
	free(f);
	return status;
}

static int parse_tolerance(const char *text, double *ret, struct err *err)
{
	char *end;

	*ret = NAN;
	if (!text)
		return 0;
	*ret = strtod(text, &end) / 100;
	if (end == text || (*end && (end[0] != '%' || end[1])) || !(*ret >= 0))
		return err_set(err, -EINVAL, "--tolerance: '%s' is no percentage", text);
	return 0;
}

static int compare_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	struct comparing c = { .cli = cli, .o = options, .name_a = operands[0] };
	struct err err = { "" };
	int i, r, status = CLI_DONE;

	if (parse_tolerance(c.o->tolerance, &c.tolerance, &err) < 0)
		return cli_fail(cli, &err);
	if (open_trace(cli, operands[0], &c.a) != CLI_DONE)
		return CLI_FAILED;
	if (c.o->json) {
		json_init_file(&c.json, cli->out, JSON_PRETTY);
		json_object_begin(&c.json);
		json_kv_str(&c.json, "a", c.name_a);
		json_key(&c.json, "comparisons");
		json_array_begin(&c.json);
	}
	for (i = 1; i < nr_operands; i++) {
		r = compare_with(&c, operands[i]);
		status = r > status ? r : status;
	}
	if (c.o->json) {
		json_array_end(&c.json);
		json_object_end(&c.json);
		json_release(&c.json);
	}
	if (c.nr_printed > 1)
		fprintf(cli->out, "\n%s", buf_str(&c.rows));
	buf_release(&c.rows);
	r = close_trace(cli, c.a, 0, NULL);
	return r > status ? r : status;
}

static const struct option_spec compare_specs[] = {
	OPT_CHOICE('m', "match", "WAY", struct compare_cli_options, match, match_way_names,
		   "which events are the same: those that a run says it repeats (origin), the same "
		   "calls of a thread in their order (order), or none; auto: origin if B is a run "
		   "of A, else order"),
	OPT_STRING(0, "tolerance", "PERCENT", struct compare_cli_options, tolerance,
		   "differ (status 1) when the elapsed times are further apart"),
	OPT_FLAG('j', "json", struct compare_cli_options, json, "print the figures as JSON"),
	OPT_QUIET(struct compare_cli_options, quiet),
};

const struct command command_compare = {
	.name = "compare",
	.summary = "tell how alike a trace and its runs are in time and order",
	.operands = "A B...",
	.options = compare_specs,
	.nr_options = ARRAY_LEN(compare_specs),
	.options_size = sizeof(struct compare_cli_options),
	.run = compare_run,
};
