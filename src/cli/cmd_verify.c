/* SPDX-License-Identifier: MIT */
/* reprise verify: is a directory as the trace says that it was in the end? */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"
#include "base/json.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/open_tree.h"
#include "snapshot/create.h"
#include "snapshot/verify.h"

/* Differences that are listed without -v. */
#define LISTED_DEFAULT 20

struct verify_options {
	bool verbose, owners, times, json, quiet;
	uint64_t jobs;
};

static const struct option_spec verify_specs[] = {
	OPT_FLAG('v', "verbose", struct verify_options, verbose,
		 "list all differences, not only the first 20"),
	OPT_FLAG(0, "owners", struct verify_options, owners, "compare owners too"),
	OPT_FLAG(0, "times", struct verify_options, times, "compare times of modification too"),
	OPT_U64('J', "jobs", "N", struct verify_options, jobs, "work with N threads",
		.default_text = "one for each core"),
	OPT_FLAG('j', "json", struct verify_options, json, "print the result as JSON"),
	OPT_QUIET(struct verify_options, quiet),
};

static volatile sig_atomic_t stopped;

static void on_signal(int signo)
{
	stopped = signo;
}

static void print_json(const struct cli *cli, const char *trace, const char *dir,
		       const struct snapshot_verdict *v)
{
	struct json w;
	size_t i;

	json_init_file(&w, cli->out, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_bytes(&w, "trace", trace, strlen(trace));
	json_kv_bytes(&w, "dir", dir, strlen(dir));
	json_kv_u64(&w, "paths", v->nr_paths);
	json_kv_u64(&w, "differences", v->nr_differences);
	json_key(&w, "differences_by_kind");
	json_object_begin(&w);
	for (i = 0; i < SNAPSHOT_DIFF_MAX; i++)
		json_kv_u64(&w, snapshot_diff_names[i], v->by_kind[i]);
	json_object_end(&w);
	json_kv_u64(&w, "contents", v->nr_contents);
	json_kv_u64(&w, "contents_not_compared", v->nr_contents_skipped);
	json_kv_u64(&w, "paths_not_compared", v->nr_skipped);
	json_kv_u64(&w, "listings", v->nr_listings);
	json_key(&w, "list");
	json_array_begin(&w);
	for (i = 0; i < v->nr_items; i++) {
		const struct snapshot_difference *d = &v->items[i];

		json_object_begin(&w);
		json_kv_bytes(&w, "path", d->path, strlen(d->path));
		json_kv_str(&w, "what", snapshot_diff_names[d->what]);
		json_kv_str(&w, "found", d->found);
		json_kv_str(&w, "recorded", d->recorded);
		json_object_end(&w);
	}
	json_array_end(&w);
	json_object_end(&w);
	json_release(&w);
}

static void print_difference(const struct cli *cli, const struct snapshot_difference *d)
{
	struct buf b = { 0 };

	strings_put_foreign(&b, d->path, strlen(d->path));
	buf_printf(&b, ": %s", snapshot_diff_names[d->what]);
	if (d->found) {
		buf_puts(&b, ": found ");
		strings_put_foreign(&b, d->found, strlen(d->found));
	}
	if (d->recorded) {
		buf_puts(&b, d->found ? ", recorded " : ": recorded ");
		strings_put_foreign(&b, d->recorded, strlen(d->recorded));
	}
	fprintf(cli->out, "%s\n", buf_str(&b));
	buf_release(&b);
}

static void print_text(const struct cli *cli, const char *dir, const struct snapshot_verdict *v)
{
	struct buf b = { 0 };
	size_t i;

	for (i = 0; i < v->nr_items; i++)
		print_difference(cli, &v->items[i]);
	if (v->nr_differences > v->nr_items)
		fprintf(cli->out, "... and %llu more (-v lists them)\n",
			(unsigned long long)(v->nr_differences - v->nr_items));
	buf_printf(&b, "%s: %llu paths and %llu contents compared, %llu differences", dir,
		   (unsigned long long)v->nr_paths, (unsigned long long)v->nr_contents,
		   (unsigned long long)v->nr_differences);
	if (v->nr_skipped || v->nr_contents_skipped)
		buf_printf(&b, "; not comparable: %llu paths, %llu contents",
			   (unsigned long long)v->nr_skipped,
			   (unsigned long long)v->nr_contents_skipped);
	fprintf(cli->out, "%s\n", buf_str(&b));
	buf_release(&b);
}

static int verify_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct verify_options *o = options;
	struct snapshot_verify_options so = {
		.owners = o->owners,
		.times = o->times,
		.jobs = (unsigned int)(o->jobs < SNAPSHOT_JOBS_MAX ? o->jobs : SNAPSHOT_JOBS_MAX),
		.max_listed = o->verbose || o->json ? 0 : LISTED_DEFAULT,
		.stop = &stopped,
	};
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
	struct tree_file file;
	struct snapshot_verdict v;
	struct err err = { "" };
	int r, status;

	(void)nr_operands;
	if (tree_file_open(operands[0], &file, &err) < 0)
		return cli_fail(cli, &err);
	(void)sigemptyset(&sa.sa_mask);
	(void)sigaction(SIGINT, &sa, NULL); /* with these words it cannot fail */
	so.progress = cli_progress_begin(cli, "verify", "paths", o->quiet);
	r = snapshot_verify(&file.source, operands[1], &so, &v, &err);
	progress_end(so.progress);
	status = r < 0 ? cli_fail(cli, &err) : v.nr_differences ? CLI_DIFFERS : CLI_DONE;
	if (r >= 0 && o->json)
		print_json(cli, operands[0], operands[1], &v);
	else if (r >= 0)
		print_text(cli, operands[1], &v);
	snapshot_verdict_release(&v);
	return tree_file_close(cli, &file, status);
}

const struct command command_verify = {
	.name = "verify",
	.summary = "compare a directory with the tree that a trace ended with",
	.operands = "TRACE|PLAN DIR",
	.options = verify_specs,
	.nr_options = ARRAY_LEN(verify_specs),
	.options_size = sizeof(struct verify_options),
	.run = verify_run,
};
