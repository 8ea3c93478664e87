/* SPDX-License-Identifier: MIT */
/* reprise resources: which calls touched which files, names and descriptors. */
#include <fnmatch.h>
#include <string.h>

#include "base/banned.h"
#include "base/json.h"
#include "base/strings.h"
#include "cli/open_trace.h"
#include "cli/order_options.h"
#include "compile/series.h"

struct resources_options {
	const char *only;
	bool json, quiet;
};

static bool is_wanted(const struct resources_options *o, const char *name)
{
	return !o->only || strstr(name, o->only) || !fnmatch(o->only, name, 0);
}

static void print_text(const struct cli *cli, const struct resources_options *o,
		       const struct series *s)
{
	struct buf name = { 0 };

	for (size_t i = 0; i < series_count(s); i++) {
		struct series_entry e = series_get(s, i);

		if (!is_wanted(o, e.name))
			continue;
		buf_clear(&name);
		strings_put_foreign(&name, e.name, strlen(e.name));
		fprintf(cli->out, "%s", buf_str(&name));
		for (size_t n = 0; n < e.nr_events; n++)
			fprintf(cli->out, "%s%llu", n ? "," : "\t",
				(unsigned long long)e.events[n]);
		fprintf(cli->out, "\n");
	}
	buf_release(&name);
}

static void print_json(const struct cli *cli, const struct resources_options *o,
		       const struct series *s)
{
	struct json w;

	json_init_file(&w, cli->out, JSON_PRETTY);
	json_array_begin(&w);
	for (size_t i = 0; i < series_count(s); i++) {
		struct series_entry e = series_get(s, i);

		if (!is_wanted(o, e.name))
			continue;
		json_object_begin(&w);
		json_kv_bytes(&w, "resource", e.name, strlen(e.name));
		json_key(&w, "events");
		json_array_begin(&w);
		for (size_t n = 0; n < e.nr_events; n++)
			json_u64(&w, e.events[n]);
		json_array_end(&w);
		json_object_end(&w);
	}
	json_array_end(&w);
	json_release(&w);
}

static int resources_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct resources_options *o = options;
	struct compile_options compile = { .policy = order_find("none") };
	struct compile_totals totals;
	struct err err = { "" };
	struct series *s;
	struct trace *t;
	int r;

	(void)nr_operands;
	r = open_trace(cli, operands[0], &t);
	if (r != CLI_DONE)
		return r;
	s = series_new();
	compile.progress = cli_progress_begin(cli, "resources", "events", o->quiet);
	r = compile_trace(t, &compile, NULL, series_observer(s), &totals, &err);
	progress_end(compile.progress);
	if (!r && o->json)
		print_json(cli, o, s);
	else if (!r)
		print_text(cli, o, s);
	series_free(s);
	return close_trace(cli, t, r, &err);
}

static const struct option_spec resources_specs[] = {
	OPT_STRING(0, "only", "TEXT", struct resources_options, only,
		   "only resources whose name contains TEXT or matches it as a glob"),
	OPT_FLAG('j', "json", struct resources_options, json, "print JSON"),
	OPT_QUIET(struct resources_options, quiet),
};

const struct command command_resources = {
	.name = "resources",
	.summary = "list which events touched which resource",
	.operands = "TRACE",
	.options = resources_specs,
	.nr_options = ARRAY_LEN(resources_specs),
	.options_size = sizeof(struct resources_options),
	.run = resources_run,
};
