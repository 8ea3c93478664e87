/* SPDX-License-Identifier: MIT */
/* reprise compile: from a trace to the plan that a replay performs. */
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/strings.h"
#include "cli/open_trace.h"
#include "cli/order_options.h"

struct compile_cmd_options {
	struct order_choice order;
	struct part_choice part;
	const char *output;
	uint64_t max_lanes;
	bool reference, force, verbose, json, quiet;
	unsigned int file_mode;
};

/* The first contradictions of each kind are told one by one. */
#define TOLD_MAX 5

struct teller {
	struct compile_observer observer;
	FILE *out;
	unsigned int told[CONTRADICTION_MAX];
};

static void tell_contradiction(struct compile_observer *o, const struct compiled *c)
{
	struct teller *t = (struct teller *)o;
	enum contradiction kind = c->facts->contradiction;
	struct buf why = { 0 };

	if (kind == CONTRADICTION_NONE || t->told[kind]++ >= TOLD_MAX)
		return;
	strings_put_message(&why, fsmodel_why(c->model));
	fprintf(t->out, "  event %llu, thread %u, %s: %s%s\n", (unsigned long long)c->ev->seq,
		c->ev->tid, c->ev->row->name, buf_str(&why),
		c->facts->repaired ? " (repaired)" : "");
	buf_release(&why);
}

static uint64_t nr_contradictions(const struct compile_totals *t)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < CONTRADICTION_MAX; i++)
		n += t->model.contradictions[i];
	return n;
}

static void print_text(const struct cli *cli, const char *output, const struct compile_totals *t)
{
	fprintf(cli->out,
		"%s: %llu actions of %llu events in %u lanes, %llu edges, %u slots; %llu calls "
		"simulated, %llu waits",
		output, (unsigned long long)t->plan.nr_actions, (unsigned long long)t->nr_events,
		t->plan.nr_lanes, (unsigned long long)t->plan.nr_edges, t->plan.nr_slots,
		(unsigned long long)t->nr_simulated, (unsigned long long)t->nr_waiting);
	if (t->nr_enforced)
		fprintf(cli->out, ", %llu failures enforced", (unsigned long long)t->nr_enforced);
	if (t->nr_setup)
		fprintf(cli->out, ", %llu actions make the state before the part",
			(unsigned long long)t->nr_setup);
	if (t->nr_swapped)
		fprintf(cli->out, ", %llu overlapping calls swapped",
			(unsigned long long)t->nr_swapped);
	if (t->nr_unordered)
		fprintf(cli->out, ", %llu overlapping writes whose order the trace does not show",
			(unsigned long long)t->nr_unordered);
	if (t->nr_unsupported)
		fprintf(cli->out, ", %llu calls cannot be replayed",
			(unsigned long long)t->nr_unsupported);
	if (t->nr_unverifiable)
		fprintf(cli->out, ", %llu reads of bytes that the trace does not tell",
			(unsigned long long)t->nr_unverifiable);
	if (t->nr_unknown_copies)
		fprintf(cli->out, ", %llu copies of such bytes",
			(unsigned long long)t->nr_unknown_copies);
	if (tree_count_all(&t->inferred))
		fprintf(cli->out, ", %llu entries of the initial tree inferred",
			(unsigned long long)tree_count_all(&t->inferred));
	if (t->order.nr_forgotten)
		fprintf(cli->out, ", %llu byte ranges only known roughly",
			(unsigned long long)t->order.nr_forgotten);
	if (nr_contradictions(t))
		fprintf(cli->out, ", %llu contradictions",
			(unsigned long long)nr_contradictions(t));
	fprintf(cli->out, "\n");
}

static void print_json(const struct cli *cli, const char *output, const struct compile_totals *t)
{
	struct json w;

	json_init_file(&w, cli->out, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_bytes(&w, "output", output, strlen(output));
	json_kv_u64(&w, "events", t->nr_events);
	json_kv_u64(&w, "actions", t->plan.nr_actions);
	json_kv_u64(&w, "lanes", t->plan.nr_lanes);
	json_kv_u64(&w, "edges", t->plan.nr_edges);
	json_kv_u64(&w, "slots", t->plan.nr_slots);
	json_kv_u64(&w, "setup", t->nr_setup);
	json_kv_u64(&w, "simulated", t->nr_simulated);
	json_kv_u64(&w, "enforced", t->nr_enforced);
	json_kv_u64(&w, "enforced_requests", t->nr_enforced_requests);
	json_kv_u64(&w, "waiting", t->nr_waiting);
	json_kv_u64(&w, "unsupported", t->nr_unsupported);
	json_kv_u64(&w, "swapped", t->nr_swapped);
	json_kv_u64(&w, "unordered_writes", t->nr_unordered);
	json_kv_u64(&w, "unverifiable", t->nr_unverifiable);
	json_kv_u64(&w, "unknown_copies", t->nr_unknown_copies);
	json_kv_u64(&w, "inferred", tree_count_all(&t->inferred));
	json_kv_u64(&w, "ranges_forgotten", t->order.nr_forgotten);
	json_kv_u64(&w, "elapsed_ns", t->plan.elapsed_ns);
	contradictions_json(&t->model, &w);
	json_object_end(&w);
	json_release(&w);
}

/* app.trace -> app.plan, beside it. */
static char *default_output(const char *trace)
{
	size_t len = strlen(trace), end = strlen(".trace");
	struct buf name = { 0 };
	char *output;

	if (len > end && !strcmp(trace + len - end, ".trace"))
		len -= end;
	buf_put(&name, trace, len);
	buf_puts(&name, ".plan");
	output = xstrdup(buf_str(&name));
	buf_release(&name);
	return output;
}

static int write_plan(const struct cli *cli, const struct compile_cmd_options *o, struct trace *t,
		      const char *output, struct err *err)
{
	struct compile_options compile = { .max_lanes = (uint32_t)o->max_lanes };
	struct plan_writer_options writer = { .replace = o->force,
					      .file_mode = o->file_mode,
					      .data = o->reference ? PLAN_DATA_TRACE
								   : PLAN_DATA_OWN };
	struct teller teller = { .observer.event = tell_contradiction, .out = cli->out };
	struct compile_totals totals;
	struct plan_writer *w;
	int r;

	r = order_choose(cli, &o->order, t, &compile);
	if (r == CLI_DONE)
		r = part_choose(cli, &o->part, &compile);
	if (r != CLI_DONE)
		return r;
	r = plan_writer_open(output, t, &writer, &w, err);
	if (r < 0)
		return r;
	compile.progress = cli_progress_begin(cli, "compile", "events", o->quiet);
	r = compile_trace(t, &compile, w, o->verbose && !o->json ? &teller.observer : NULL, &totals,
			  err);
	progress_end(compile.progress);
	if (r < 0) {
		plan_writer_abandon(w);
		return r;
	}
	r = plan_writer_close(w, &totals.plan, err);
	if (r < 0)
		return r;
	if (o->json)
		print_json(cli, output, &totals);
	else
		print_text(cli, output, &totals);
	if (o->verbose && !o->json)
		contradictions_print(&totals.model, cli->out);
	return CLI_DONE;
}

static int compile_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct compile_cmd_options *o = options;
	char *output = o->output ? xstrdup(o->output) : default_output(operands[0]);
	struct err err = { "" };
	struct trace *t;
	int r;

	(void)nr_operands;
	r = open_trace(cli, operands[0], &t);
	if (r == CLI_DONE) {
		r = write_plan(cli, o, t, output, &err);
		if (r == CLI_FAILED)
			trace_close(t); /* told already */
		else
			r = close_trace(cli, t, r, &err);
	}
	free(output);
	return r;
}

static const struct option_spec compile_specs[] = {
	OPT_STRING('o', "output", "FILE", struct compile_cmd_options, output, "where the plan goes",
		   .default_text = "TRACE with .plan at its end"),
	OPT_FLAG('f', "force", struct compile_cmd_options, force, "replace FILE when it exists"),
	OPT_FILE_MODE(struct compile_cmd_options, file_mode),
	OPT_ORDER(struct compile_cmd_options, order),
	OPT_PART(struct compile_cmd_options, part),
	OPT_FLAG(0, "reference", struct compile_cmd_options, reference,
		 "leave the data in the trace, which the plan then needs"),
	OPT_U64(0, "max-lanes", "N", struct compile_cmd_options, max_lanes,
		"when there are N lanes, threads share those of ended ones although that orders "
		"them",
		.default_text = "1024"),
	OPT_FLAG('v', "verbose", struct compile_cmd_options, verbose,
		 "tell where the trace contradicts the model of the file system"),
	OPT_FLAG('j', "json", struct compile_cmd_options, json, "print what was done as JSON"),
	OPT_QUIET(struct compile_cmd_options, quiet),
};

const struct command command_compile = {
	.name = "compile",
	.summary = "make a plan of a trace: lanes, edges, resources",
	.operands = "TRACE",
	.options = compile_specs,
	.nr_options = ARRAY_LEN(compile_specs),
	.options_size = sizeof(struct compile_cmd_options),
	.run = compile_run,
};
