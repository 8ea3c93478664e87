/* SPDX-License-Identifier: MIT */
/* reprise graph: the order that a plan of this trace would keep, in numbers and as a drawing. */
#include "base/banned.h"
#include "base/json.h"
#include "base/strings.h"
#include "cli/open_trace.h"
#include "cli/order_options.h"
#include "compile/graph.h"

struct graph_cmd_options {
	struct order_choice order;
	uint64_t from_ns, to_ns;
	bool dot, json, quiet;
};

static double parallelism_of_plan(const struct graph_totals *g)
{
	return graph_parallelism(g->call_ns, g->critical_ns);
}

static double parallelism_of_trace(const struct graph_totals *g)
{
	return graph_parallelism(g->call_ns, g->elapsed_ns);
}

/* Of block requests: which way to replay them is true to what made them. */
static void print_arrivals(const struct arrivals_view *v, FILE *out)
{
	static const char *const advice[] = {
		[ARRIVALS_CLOSED] = "they wait for each other: --mode=think follows another device",
		[ARRIVALS_OPEN] =
			"as if they did not wait for each other: --mode=timed keeps their times",
	};

	if (v->kind != ARRIVALS_UNKNOWN)
		fprintf(out,
			"requests found %.2f in flight, the mean is %.2f with a dispersion of %.2f: %s\n",
			v->found, v->in_flight, v->dispersion, advice[v->kind]);
}

static void json_arrivals(const struct arrivals_view *v, struct json *w)
{
	json_key(w, "arrivals");
	json_object_begin(w);
	json_kv_str(w, "kind", arrivals_names[v->kind]);
	json_kv_double(w, "found_in_flight", v->found);
	json_kv_double(w, "mean_in_flight", v->in_flight);
	json_kv_double(w, "dispersion", v->dispersion);
	json_object_end(w);
}

static void print_text(FILE *out, const struct compile_totals *t, const struct graph_totals *g)
{
	const struct histogram *h = &g->edge_length_ns;

	fprintf(out, "%llu actions in %u lanes, %llu edges (%llu asked for, the others implied)\n",
		(unsigned long long)t->plan.nr_actions, t->plan.nr_lanes,
		(unsigned long long)t->plan.nr_edges, (unsigned long long)t->order.nr_asked);
	if (t->nr_enforced)
		fprintf(out, "%llu of the actions are failures that are enforced: not made\n",
			(unsigned long long)t->nr_enforced);
	for (unsigned int i = 0; i < RULE_MAX; i++) {
		if (t->order.by_rule[i])
			fprintf(out, "  %-12s %12llu  %s\n", rule_infos[i].name,
				(unsigned long long)t->order.by_rule[i], rule_infos[i].summary);
	}
	if (h->count)
		fprintf(out, "edge length: mean %.6f s, p50 %.6f s, p99 %.6f s\n",
			histogram_mean(h) / 1e9, (double)histogram_percentile(h, 50) / 1e9,
			(double)histogram_percentile(h, 99) / 1e9);
	fprintf(out, "critical path: %.6f s in %llu calls; all calls: %.6f s; elapsed: %.6f s\n",
		(double)g->critical_ns / 1e9, (unsigned long long)g->critical_actions,
		(double)g->call_ns / 1e9, (double)g->elapsed_ns / 1e9);
	fprintf(out, "parallelism: %.2f in the trace, up to %.2f by the plan\n",
		parallelism_of_trace(g), parallelism_of_plan(g));
	if (t->order.wakes_unknown)
		fprintf(out, "waits that ended with no known waker: %llu\n",
			(unsigned long long)t->order.wakes_unknown);
	if (t->block.nr_held_max)
		fprintf(out, "requests held at a time: %llu\n",
			(unsigned long long)t->block.nr_held_max);
	if (t->block.nr_without_completion)
		fprintf(out, "requests of unknown completion: %llu\n",
			(unsigned long long)t->block.nr_without_completion);
	print_arrivals(&t->block.arrivals, out);
	contradictions_print(&t->model, out);
}

static void print_json(FILE *out, const struct compile_totals *t, const struct graph_totals *g)
{
	const struct histogram *h = &g->edge_length_ns;
	struct json w;

	json_init_file(&w, out, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_u64(&w, "actions", t->plan.nr_actions);
	json_kv_u64(&w, "enforced", t->nr_enforced);
	json_kv_u64(&w, "lanes", t->plan.nr_lanes);
	json_kv_u64(&w, "edges", t->plan.nr_edges);
	json_kv_u64(&w, "edges_asked", t->order.nr_asked);
	json_key(&w, "edges_by_rule");
	json_object_begin(&w);
	for (unsigned int i = 0; i < RULE_MAX; i++) {
		if (t->order.by_rule[i])
			json_kv_u64(&w, rule_infos[i].name, t->order.by_rule[i]);
	}
	json_object_end(&w);
	json_key(&w, "edge_length_ns");
	json_object_begin(&w);
	json_kv_double(&w, "mean", histogram_mean(h));
	json_kv_u64(&w, "p50", histogram_percentile(h, 50));
	json_kv_u64(&w, "p99", histogram_percentile(h, 99));
	json_object_end(&w);
	json_key(&w, "parallelism");
	json_object_begin(&w);
	json_kv_double(&w, "trace", parallelism_of_trace(g));
	json_kv_double(&w, "plan", parallelism_of_plan(g));
	json_object_end(&w);
	json_kv_u64(&w, "critical_path_ns", g->critical_ns);
	json_kv_u64(&w, "critical_path_actions", g->critical_actions);
	json_kv_u64(&w, "call_ns", g->call_ns);
	json_kv_u64(&w, "elapsed_ns", g->elapsed_ns);
	json_kv_u64(&w, "meetings", t->order.nr_meetings);
	json_kv_u64(&w, "wakes_unknown", t->order.wakes_unknown);
	json_kv_u64(&w, "requests_held", t->block.nr_held_max);
	json_kv_u64(&w, "without_completion", t->block.nr_without_completion);
	json_arrivals(&t->block.arrivals, &w);
	contradictions_json(&t->model, &w);
	json_object_end(&w);
	json_release(&w);
}

static int graph_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct graph_cmd_options *o = options;
	struct compile_options compile = { 0 };
	struct buf dot = { 0 };
	struct graph_options gopt = { .dot = o->dot ? &dot : NULL,
				      .from_ns = o->from_ns,
				      .to_ns = o->to_ns };
	struct compile_totals totals;
	struct err err = { "" };
	struct graph *g;
	struct trace *t;
	int r;

	(void)nr_operands;
	if (o->dot && o->json)
		return cli_fail_with(cli, "--dot and --json do not go together");
	r = open_trace(cli, operands[0], &t);
	if (r != CLI_DONE)
		return r;
	r = order_choose(cli, &o->order, t, &compile);
	if (r != CLI_DONE) {
		trace_close(t);
		return r;
	}
	g = graph_new(&gopt);
	compile.progress = cli_progress_begin(cli, "graph", "events", o->quiet);
	r = compile_trace(t, &compile, NULL, graph_observer(g), &totals, &err);
	progress_end(compile.progress);
	if (!r) {
		const struct graph_totals *gt = graph_finish(g);

		if (o->dot)
			fwrite(dot.data, 1, dot.len, cli->out);
		else if (o->json)
			print_json(cli->out, &totals, gt);
		else
			print_text(cli->out, &totals, gt);
	}
	graph_free(g);
	buf_release(&dot);
	return close_trace(cli, t, r, &err);
}

static const struct option_spec graph_specs[] = {
	OPT_ORDER(struct graph_cmd_options, order),
	OPT_FLAG(0, "dot", struct graph_cmd_options, dot,
		 "draw the graph in the language of graphviz, with --from and --to a part of it"),
	OPT_DURATION(0, "from", "TIME", struct graph_cmd_options, from_ns,
		     "draw calls that end at this time after the start, or later"),
	OPT_DURATION(0, "to", "TIME", struct graph_cmd_options, to_ns,
		     "draw calls that begin before this time after the start"),
	OPT_FLAG('j', "json", struct graph_cmd_options, json, "print JSON"),
	OPT_QUIET(struct graph_cmd_options, quiet),
};

const struct command command_graph = {
	.name = "graph",
	.summary = "show which calls must wait for which",
	.operands = "TRACE",
	.options = graph_specs,
	.nr_options = ARRAY_LEN(graph_specs),
	.options_size = sizeof(struct graph_cmd_options),
	.run = graph_run,
};
