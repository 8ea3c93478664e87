/* SPDX-License-Identifier: MIT */
/* reprise diff: two traces, event by event. */
#include <string.h>

#include "base/banned.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/event_line.h"
#include "cli/open_trace.h"
#include "model/print.h"
#include "report/compare.h"
#include "report/details.h"
#include "report/run_info.h"

enum diff_way { BY_AUTO, BY_ORDER, BY_TID };

static const char *const ways[] = { "auto", "order", "tid", NULL };

struct diff_options {
	struct option_strings ignore;
	enum diff_way by;
	bool strict, all, json, quiet;
	uint64_t limit;
};

struct diff {
	const struct cli *cli;
	const struct diff_options *o;
	struct trace *a, *b;
	unsigned int ignore; /* enum compare_ignore */
	uint64_t nr_shown;
	struct buf line;
};

static void put_event(struct diff *d, char sign, struct trace *t, const struct event *ev)
{
	buf_printf(&d->line, "%c ", sign);
	event_line_put(t, ev, &d->line);
	buf_putc(&d->line, '\n');
}

static void put_details(struct diff *d, const struct event *a, const struct event *b)
{
	static const char *const words[2] = { "first ", ", second " };
	struct detail_side sides[2] = { { a, d->a }, { b, d->b } };
	struct detail_options o = { .ignore = d->ignore };
	struct details details;
	struct arena arena;
	size_t i;

	arena_init(&arena);
	details_init(&details, &arena);
	details_compare(&details, &sides[0], &sides[1], &o);
	for (i = 0; i < details.list.len; i++) {
		buf_puts(&d->line, "  ");
		detail_put(&details.list.items[i], words, &d->line);
		buf_putc(&d->line, '\n');
	}
	details_release(&details);
	arena_release(&arena);
}

static void flush_line(struct diff *d)
{
	(void)!fwrite(d->line.data, 1, d->line.len,
		      d->cli->out); /* checked when the program ends */
	buf_clear(&d->line);
}

static bool is_shown(struct diff *d)
{
	return !d->o->quiet && !d->o->json && d->nr_shown++ < d->o->limit;
}

static void show_difference(void *ctx, enum difference how, const char *what, const struct event *a,
			    const struct event *b)
{
	struct diff *d = ctx;

	if (!is_shown(d))
		return;
	buf_printf(&d->line, "@ %s", difference_names[how]);
	if (what && how != DIFFERENCE_CALL)
		buf_printf(&d->line, ": %s", what);
	buf_putc(&d->line, '\n');
	if (a)
		put_event(d, '-', d->a, a);
	if (b)
		put_event(d, '+', d->b, b);
	if (a && b && how != DIFFERENCE_CALL)
		put_details(d, a, b);
	flush_line(d);
}

static void show_note(void *ctx, const char *text)
{
	struct diff *d = ctx;

	if (is_shown(d))
		fprintf(d->cli->out, "@ %s\n", text);
}

static void print_json(const struct diff *d, const struct compare_result *c)
{
	struct json w;
	unsigned int i;

	json_init_file(&w, d->cli->out, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_bool(&w, "equal", !compare_nr_differences(c));
	json_kv_u64(&w, "events_a", c->nr_events_a);
	json_kv_u64(&w, "events_b", c->nr_events_b);
	json_kv_u64(&w, "differences", compare_nr_differences(c));
	json_key(&w, "by_kind");
	json_object_begin(&w);
	for (i = 0; i < DIFFERENCE_MAX; i++)
		json_kv_u64(&w, difference_names[i], c->by_kind[i]);
	json_object_end(&w);
	json_kv_u64(&w, "threads_a_only", c->nr_threads_a_only);
	json_kv_u64(&w, "threads_b_only", c->nr_threads_b_only);
	if (d->o->all) {
		json_kv_u64(&w, "ledger", c->nr_ledger);
		json_kv_u64(&w, "trees", c->nr_trees);
	}
	json_object_end(&w);
	json_release(&w);
}

static void print_summary(const struct diff *d, const struct compare_result *c)
{
	uint64_t nr = compare_nr_differences(c);
	FILE *out = d->cli->out;
	const char *before = " (";
	unsigned int i;

	if (d->nr_shown > d->o->limit)
		fprintf(out, "... and %llu more\n",
			(unsigned long long)(d->nr_shown - d->o->limit));
	if (!nr) {
		fprintf(out, "equal: %llu events\n", (unsigned long long)c->nr_events_a);
		return;
	}
	fprintf(out, "%llu differences", (unsigned long long)nr);
	for (i = 0; i < DIFFERENCE_MAX; i++) {
		if (!c->by_kind[i])
			continue;
		fprintf(out, "%s%s %llu", before, difference_names[i],
			(unsigned long long)c->by_kind[i]);
		before = ", ";
	}
	if (c->nr_ledger)
		fprintf(out, "%sledger %llu", before, (unsigned long long)c->nr_ledger);
	before = c->nr_ledger ? ", " : before;
	if (c->nr_trees)
		fprintf(out, "%strees %llu", before, (unsigned long long)c->nr_trees);
	fprintf(out, ") between %llu and %llu events\n", (unsigned long long)c->nr_events_a,
		(unsigned long long)c->nr_events_b);
}

static int choose_ignored(const struct diff_options *o, unsigned int *ret, struct err *err)
{
	size_t i;
	int r = 0;

	*ret = o->strict ? 0 : COMPARE_IGNORE_DEFAULT;
	for (i = 0; i < o->ignore.len && !r; i++)
		r = compare_parse_ignore(o->ignore.items[i], ret, err);
	return r;
}

/* A run has the threads of its original, and does not know all that the calls gave back. */
static bool has_run(struct diff *d)
{
	return run_info_is_run(d->a) || run_info_is_run(d->b);
}

/* The exit status, when both traces were read to their ends. */
static int compare(struct diff *d, struct compare_options *compare, struct err *err, int *ret_r)
{
	struct compare_result result = { 0 };

	compare->ctx = d;
	compare->by_tid = d->o->by == BY_TID || (d->o->by == BY_AUTO && has_run(d));
	compare->sections = d->o->all;
	compare->found = show_difference;
	compare->noted = show_note;
	compare->progress = cli_progress_begin(d->cli, "diff", "events", d->o->quiet);
	if (has_run(d) && !d->o->strict)
		compare->ignore |= IGNORE_UNKNOWN;
	d->ignore = compare->ignore;
	*ret_r = compare_traces(d->a, d->b, compare, &result, err);
	progress_end(compare->progress);
	if (d->o->json)
		print_json(d, &result);
	else if (!d->o->quiet)
		print_summary(d, &result);
	return compare_nr_differences(&result) ? CLI_DIFFERS : CLI_DONE;
}

static int diff_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	struct diff d = { .cli = cli, .o = options };
	struct compare_options options_of_compare = { 0 };
	struct err err = { "" };
	int status, status_a, status_b, r;

	(void)nr_operands;
	if (choose_ignored(d.o, &options_of_compare.ignore, &err) < 0)
		return cli_fail(cli, &err);
	status = open_trace(cli, operands[0], &d.a);
	if (status != CLI_DONE)
		return status;
	status = open_trace(cli, operands[1], &d.b);
	if (status != CLI_DONE) {
		trace_close(d.a);
		return status;
	}
	status = compare(&d, &options_of_compare, &err, &r);
	buf_release(&d.line);
	/* A failure of the reading is one, and is told once. */
	status_a = close_trace(cli, d.a, r, &err);
	if (r < 0) {
		trace_close(d.b);
		return status_a;
	}
	status_b = close_trace(cli, d.b, 0, NULL);
	return status_a == CLI_DONE && status_b == CLI_DONE ? status : CLI_FAILED;
}

static const struct option_spec diff_specs[] = {
	OPT_STRINGS('i', "ignore", "WHAT", struct diff_options, ignore,
		    "values that are no difference: pids, addrs, times, inodes, fds, owners, data, "
		    "unknown (to one of the traces); the first three never are, nor the last "
		    "beside a run, without --strict"),
	OPT_FLAG(0, "strict", struct diff_options, strict,
		 "compare all values; only when and how long events were is no difference"),
	OPT_CHOICE(0, "by", "WAY", struct diff_options, by, ways,
		   "which threads are compared: those that appeared in the same order, or with the "
		   "same number; auto: by number when one is a run, else by order"),
	OPT_FLAG('a', "all", struct diff_options, all, "compare ledger and trees too"),
	OPT_U64('n', "limit", "N", struct diff_options, limit,
		"how many differences are printed; all are counted", .default_text = "20"),
	OPT_FLAG('j', "json", struct diff_options, json, "print the counts as JSON"),
	OPT_FLAG('q', "quiet", struct diff_options, quiet,
		 "print nothing: the exit status tells whether they differ"),
};

const struct command command_diff = {
	.name = "diff",
	.summary = "compare two traces event by event",
	.operands = "A B",
	.options = diff_specs,
	.nr_options = ARRAY_LEN(diff_specs),
	.options_size = sizeof(struct diff_options),
	.defaults = &(const struct diff_options){ .limit = 20 },
	.run = diff_run,
};
