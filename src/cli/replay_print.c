/* SPDX-License-Identifier: MIT */
#include "cli/replay_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/strings.h"
#include "cli/replay_put.h"
#include "cli/replay_waits.h"
#include "model/vocab.h"
#include "order/order.h"

/* By enum run_end; on JSON. */
const char *const replay_end_words[] = {
	[RUN_COMPLETE] = "complete",   [RUN_INTERRUPTED] = "interrupted", [RUN_STALLED] = "stalled",
	[RUN_MISMATCHED] = "mismatch", [RUN_BROKEN] = "failed",		  [RUN_DIED] = "died",
	[RUN_FULL] = "target full",
};

const char *const replay_phase_words[] = {
	[RUN_LANE_IDLE] = "has not begun",
	[RUN_LANE_EDGE] = "waits for",
	[RUN_LANE_TIME] = "waits for its time",
	[RUN_LANE_CALL] = "is in the call",
	[RUN_LANE_PIPE] = "waits for the other end of a pipe",
	[RUN_LANE_LOAD] = "waits for its next action",
	[RUN_LANE_NOTE] = "waits to take a note",
	[RUN_LANE_ENDED] = "has ended",
};

struct class_sums {
	uint64_t count, made, errors, run_ns, original_ns;
	struct spread run, original;
};

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static double concurrency_of_trace(const struct run_result *res)
{
	return ratio(res->original_call_ns, res->original_elapsed_ns);
}

static double concurrency_of_run(const struct run_result *res)
{
	return ratio(res->call_ns, res->elapsed_ns);
}

static struct class_sums *sum_classes(const struct run_result *res)
{
	struct class_sums *sums = xcalloc(C_MAX, sizeof(*sums));
	unsigned int id;

	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);
		const struct run_call *c = &res->calls[id];
		struct class_sums *s;

		if (!row || !c->count)
			continue;
		s = &sums[row_class(row)];
		s->count += c->count;
		s->made += c->made;
		s->errors += c->errors;
		s->run_ns += c->run_ns;
		s->original_ns += c->original_ns;
		spread_merge(&s->run, &c->run);
		spread_merge(&s->original, &c->original);
	}
	return sums;
}

static void put_error(int32_t err, struct buf *b)
{
	const char *name = errno_name(err);

	if (name)
		buf_puts(b, name);
	else
		buf_printf(b, "error %d", err);
}

static void put_outcome(const struct outcome *o, struct buf *b)
{
	buf_printf(b, "%lld", (long long)o->ret);
	if (o->err) {
		buf_putc(b, ' ');
		put_error(o->err, b);
	}
}

void replay_put_mismatch(const struct run_mismatch *m, const struct mismatch_view *view,
			 struct buf *b)
{
	const struct row *row = row_by_id(m->row_id);
	uint32_t i;

	buf_printf(b, "#%llu %s of %u/%u %s", (unsigned long long)m->seq, row ? row->name : "?",
		   m->pid, m->tid, run_mismatch_words[m->kind]);
	/* The outcomes of a call that gave back other data are equal. */
	if (m->kind != RUN_MISMATCH_OTHER_RESULT) {
		buf_puts(b, ": expected ");
		put_outcome(&m->expected, b);
		buf_puts(b, ", got ");
		put_outcome(&m->got, b);
	}
	if (m->origin)
		buf_printf(b, " (line %llu)", (unsigned long long)m->origin);
	if (view && view->has_event)
		buf_printf(b, "; at %llu.%09llu s", (unsigned long long)(view->enter_ns / NS_PER_S),
			   (unsigned long long)(view->enter_ns % NS_PER_S));
	buf_printf(b, "; action %llu of lane %u", (unsigned long long)m->nr, m->lane);
	for (i = 0; i < m->nr_edges && i < RUN_MISMATCH_EDGES; i++)
		buf_printf(b, "%s%u:%llu%s", i ? ", " : ", after ", m->edges[i].lane,
			   (unsigned long long)m->edges[i].nr,
			   m->edges[i].started ? " started" : "");
	if (m->nr_edges > RUN_MISMATCH_EDGES)
		buf_printf(b, " and %u more", m->nr_edges - RUN_MISMATCH_EDGES);
}

void replay_put_lanes(const struct run_result *res, uint32_t max, struct buf *b)
{
	uint32_t i, shown = 0;

	for (i = 0; i < res->nr_lanes && shown < max; i++) {
		const struct run_lane_state *s = &res->lanes[i];
		uint32_t phase = atomic_load_explicit(&s->phase, memory_order_relaxed);
		const struct row *row =
			row_by_id(atomic_load_explicit(&s->row_id, memory_order_relaxed));

		if (phase == RUN_LANE_ENDED || phase > RUN_LANE_ENDED)
			continue;
		shown++;
		buf_printf(
			b, "lane %u, action %llu (#%llu %s) %s", i,
			(unsigned long long)atomic_load_explicit(&s->nr_done, memory_order_relaxed),
			(unsigned long long)atomic_load_explicit(&s->seq, memory_order_relaxed),
			row ? row->name : "none", replay_phase_words[phase]);
		if (phase == RUN_LANE_EDGE)
			buf_printf(b, " lane %u, action %llu",
				   atomic_load_explicit(&s->edge_lane, memory_order_relaxed),
				   (unsigned long long)atomic_load_explicit(&s->edge_nr,
									    memory_order_relaxed));
		buf_putc(b, '\n');
	}
}

static void put_right(struct buf *b, int width, struct buf *text)
{
	buf_printf(b, "%*s", width, buf_str(text));
	buf_clear(text);
}

/* Time in the calls of a class, its share of all thread-time in calls, and percentiles. */
static void put_times(struct buf *b, uint64_t ns, uint64_t all_ns, const struct spread *s)
{
	static const double percents[] = { 50, 90, 99 };
	struct buf text = { 0 };
	size_t i;

	strings_put_duration(&text, ns);
	put_right(b, 9, &text);
	buf_printf(&text, "%.1f%%", 100 * ratio(ns, all_ns));
	put_right(b, 7, &text);
	for (i = 0; i < ARRAY_LEN(percents); i++) {
		strings_put_duration(&text, spread_percentile(s, percents[i]));
		put_right(b, 9, &text);
	}
	buf_release(&text);
}

static void put_class(const char *name, const struct class_sums *s, const struct run_result *res,
		      struct buf *b)
{
	buf_printf(b, "%-8s%9llu%9llu%8llu |", name, (unsigned long long)s->count,
		   (unsigned long long)s->made, (unsigned long long)s->errors);
	put_times(b, s->original_ns, res->original_call_ns, &s->original);
	buf_puts(b, " |");
	put_times(b, s->run_ns, res->call_ns, &s->run);
	buf_putc(b, '\n');
}

static void put_classes(const struct run_result *res, struct buf *b)
{
	struct class_sums *sums = sum_classes(res);
	unsigned int class;

	buf_printf(b, "\n%-8s%9s%9s%8s |%-43s |%-43s\n", "", "", "", "", " original", " run");
	buf_printf(b, "%-8s%9s%9s%8s |%9s%7s%9s%9s%9s |%9s%7s%9s%9s%9s\n", "class", "actions",
		   "made", "errors", "time", "share", "p50", "p90", "p99", "time", "share", "p50",
		   "p90", "p99");
	for (class = 1; class < C_MAX; class ++) {
		if (sums[class].count)
			put_class(class_names[class], &sums[class], res, b);
	}
	free(sums);
}

static void put_rule(unsigned int rule, struct buf *b)
{
	if (rule < RULE_MAX)
		buf_printf(b, " (%s)", rule_infos[rule].name);
}

/* What the action waited for, and what that waited for. */
static void put_history(const struct history *h, const struct history_action *a, int step,
			struct buf *b)
{
	uint32_t i;

	for (i = 0; i < a->nr_edges && i < HISTORY_EDGES; i++) {
		const struct run_edge *e = &a->edges[i];
		const struct history_action *before = history_find(h, e->lane, e->nr);

		buf_printf(b, "%*safter ", 6 + 2 * step, "");
		if (before && before->line)
			buf_puts(b, before->line);
		else
			buf_printf(b, "action %llu of lane %u", (unsigned long long)e->nr,
				   (unsigned int)e->lane);
		buf_puts(b, e->started ? " started" : "");
		put_rule(e->rule, b);
		buf_putc(b, '\n');
		if (before && step + 1 < HISTORY_STEPS)
			put_history(h, before, step + 1, b);
	}
	if (a->nr_edges > HISTORY_EDGES)
		buf_printf(b, "%*sand %u more\n", 6 + 2 * step, "", a->nr_edges - HISTORY_EDGES);
}

/* Where it happened, and what differs. */
static void put_view(const struct mismatch_view *view, const char *line, struct buf *b)
{
	static const char *const words[2] = { "expected ", ", got " };
	size_t i;

	if (line)
		buf_printf(b, "    %s\n", line);
	if (view && view->note)
		buf_printf(b, "    %s\n", view->note);
	for (i = 0; view && i < view->details.list.len; i++) {
		buf_puts(b, "    ");
		detail_put(&view->details.list.items[i], words, b);
		buf_putc(b, '\n');
	}
}

/* With the paths of its descriptors, if these are known. */
static const char *line_of(const struct mismatch_view *view, const struct history_action *a)
{
	if (view && view->line)
		return view->line;
	return a ? a->line : NULL;
}

static void put_mismatches(const struct run_result *res, const struct replay_print_options *o,
			   struct buf *b)
{
	uint64_t i, nr = atomic_load(&res->nr_mismatches);

	buf_printf(b, "%-22s%llu of %llu verified", "mismatches", (unsigned long long)nr,
		   (unsigned long long)res->nr_verified);
	for (i = 0; i < RUN_MISMATCH_MAX; i++) {
		uint64_t n = atomic_load(&res->mismatches_by_kind[i]);

		if (n)
			buf_printf(b, "; %llu %s", (unsigned long long)n, run_mismatch_words[i]);
	}
	if (res->nr_unverifiable)
		buf_printf(b, "; %llu reads of bytes that the trace does not tell",
			   (unsigned long long)res->nr_unverifiable);
	if (res->nr_unordered)
		buf_printf(b, "; %llu overlapping writes whose order the trace does not show",
			   (unsigned long long)res->nr_unordered);
	buf_putc(b, '\n');
	for (i = 0; i < nr && i < o->top && i < RUN_MISMATCHES_KEPT; i++) {
		const struct run_mismatch *m = &res->mismatches[i];
		const struct history_action *a = history_find(o->history, m->lane, m->nr);

		const struct mismatch_view *view = mismatch_view(o->views, i);

		buf_puts(b, "  ");
		replay_put_mismatch(m, view, b);
		buf_putc(b, '\n');
		put_view(view, line_of(view, a), b);
		if (a)
			put_history(o->history, a, 0, b);
	}
}

/* The actions that were not made, and for enforced failures which errors they had. */
static void put_not_made(const struct run_result *res, struct buf *b)
{
	const char *before = " (";
	unsigned int i;

	if (res->nr_simulated)
		buf_printf(b, "%-22s%llu actions: their recorded outcomes stand\n", "simulated",
			   (unsigned long long)res->nr_simulated);
	if (!res->nr_enforced)
		return;
	buf_printf(b, "%-22s%llu", "enforced", (unsigned long long)res->nr_enforced);
	for (i = 0; i < RUN_ERRNO_MAX; i++) {
		if (!res->enforced_by_error[i])
			continue;
		buf_puts(b, before);
		put_error((int32_t)i, b);
		buf_printf(b, " %llu", (unsigned long long)res->enforced_by_error[i]);
		before = ", ";
	}
	buf_puts(b, "): failed for a reason that only the original had\n");
}

void replay_print_text(const struct run_result *res, const struct replay_print_options *o,
		       FILE *out)
{
	struct buf b = { 0 };

	buf_printf(&b, "%-22s%llu of %llu, %llu made; %s\n", "actions",
		   (unsigned long long)res->nr_done, (unsigned long long)res->nr_actions,
		   (unsigned long long)res->nr_made, replay_end_words[res->end]);
	replay_put_waits(res, o->history, &b);
	put_not_made(res, &b);
	if (res->nr_setup) {
		buf_printf(&b, "%-22s%llu actions before the clock started, ", "state made ready",
			   (unsigned long long)res->nr_setup);
		strings_put_duration(&b, res->setup_ns);
		buf_puts(&b, "\n");
	}
	replay_put_time(&b, "elapsed", res->elapsed_ns);
	replay_put_time(&b, "original elapsed", res->original_elapsed_ns);
	replay_put_time(&b, "predicted elapsed", res->predicted_ns);
	put_mismatches(res, o, &b);
	buf_printf(&b, "%-22s%.2f original, %.2f run", "concurrency", concurrency_of_trace(res),
		   concurrency_of_run(res));
	if (concurrency_of_trace(res) > 0)
		buf_printf(&b, "; %.0f%% kept",
			   100 * concurrency_of_run(res) / concurrency_of_trace(res));
	buf_putc(&b, '\n');
	buf_printf(&b, "%-22s", "thread-time in calls");
	strings_put_duration(&b, res->original_call_ns);
	buf_puts(&b, " original, ");
	strings_put_duration(&b, res->call_ns);
	buf_puts(&b, " run\n");
	replay_put_time(&b, "waited on edges", res->edge_wait_ns);
	replay_put_time(&b, "waited on time", res->deadline_wait_ns);
	if (res->load_wait_ns)
		replay_put_time(&b, "waited on loading", res->load_wait_ns);
	if (res->note_wait_ns)
		replay_put_time(&b, "waited on notes", res->note_wait_ns);
	replay_put_lateness(&b, &res->lateness);
	buf_printf(&b, "%-22s", "peak memory");
	strings_put_bytes(&b, res->peak_memory_bytes);
	buf_putc(&b, '\n');
	if (res->nr_unbuilt)
		buf_printf(&b, "%-22s%llu actions whose arguments the plan lacks\n", "not made",
			   (unsigned long long)res->nr_unbuilt);
	if (res->nr_over_files)
		buf_printf(&b,
			   "%-22s%llu calls: no more than %llu files may be open (ulimit -Hn)\n",
			   "not made", (unsigned long long)res->nr_over_files,
			   (unsigned long long)res->max_files);
	if (res->nr_over_memory) {
		buf_printf(&b, "%-22s%llu times, or in part: it would take more memory than ",
			   "not made", (unsigned long long)res->nr_over_memory);
		strings_put_bytes(&b, res->max_memory_bytes);
		buf_puts(&b, " (--max-memory)\n");
	}
	if (res->nr_fallbacks_direct)
		buf_printf(&b, "%-22s%llu files: the target cannot\n", "opened without DIRECT",
			   (unsigned long long)res->nr_fallbacks_direct);
	if (res->nr_batched)
		buf_printf(&b, "%-22s%llu made together with others: their times are shares\n",
			   "batched reads", (unsigned long long)res->nr_batched);
	if (res->nr_pipes || res->nr_pipes_broken) {
		buf_printf(&b, "%-22s%llu made", "pipes", (unsigned long long)res->nr_pipes);
		if (res->nr_pipes_broken)
			buf_printf(&b, "; %llu came to a standstill and were simulated from there",
				   (unsigned long long)res->nr_pipes_broken);
		buf_putc(&b, '\n');
	}
	if (res->nr_requests || res->nr_requests_enforced || res->nr_requests_left_out) {
		buf_printf(&b, "%-22s%llu made, at most %llu in flight at once", "async requests",
			   (unsigned long long)res->nr_requests,
			   (unsigned long long)res->most_in_flight);
		if (res->nr_requests_by_calls)
			buf_printf(&b, "; %llu by calls that do the same: no io_uring for them",
				   (unsigned long long)res->nr_requests_by_calls);
		if (res->nr_requests_enforced)
			buf_printf(&b, "; %llu failures enforced",
				   (unsigned long long)res->nr_requests_enforced);
		if (res->nr_requests_left_out)
			buf_printf(&b, "; %llu left out: their files are simulated or not open",
				   (unsigned long long)res->nr_requests_left_out);
		buf_putc(&b, '\n');
	}
	if (o->no_copy_reads)
		buf_puts(&b, "large reads were made without copying to user space\n");
	put_classes(res, &b);
	(void)fwrite(b.data, 1, b.len, out); /* cli checks the stream at the end */
	buf_release(&b);
}

static void json_outcome(struct json *w, const char *key, const struct outcome *o)
{
	json_key(w, key);
	json_object_begin(w);
	json_kv_i64(w, "ret", o->ret);
	json_kv_str(w, "error", o->err ? errno_name(o->err) : NULL);
	json_object_end(w);
}

static void json_edges(struct json *w, const struct history *h, const struct run_edge *edges,
		       uint32_t nr, int step)
{
	uint32_t i;

	json_key(w, "edges");
	json_array_begin(w);
	for (i = 0; i < nr; i++) {
		const struct history_action *a = history_find(h, edges[i].lane, edges[i].nr);

		json_object_begin(w);
		json_kv_u64(w, "lane", edges[i].lane);
		json_kv_u64(w, "nr", edges[i].nr);
		json_kv_u64(w, "rule", edges[i].rule);
		json_kv_str(w, "rule_name",
			    edges[i].rule < RULE_MAX ? rule_infos[edges[i].rule].name : NULL);
		json_kv_bool(w, "started", edges[i].started);
		json_kv_str(w, "event", a ? a->line : NULL);
		if (a && step + 1 < HISTORY_STEPS)
			json_edges(w, h, a->edges,
				   a->nr_edges < HISTORY_EDGES ? a->nr_edges : HISTORY_EDGES,
				   step + 1);
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_view(struct json *w, const struct mismatch_view *view,
		      const struct history_action *a)
{
	json_kv_str(w, "event", line_of(view, a));
	json_key(w, "enter_ns");
	if (view && view->has_event)
		json_u64(w, view->enter_ns);
	else
		json_null(w);
	if (view && view->path)
		json_kv_bytes(w, "path", view->path, strlen(view->path));
	else
		json_kv_str(w, "path", NULL);
	json_key(w, "details");
	if (view) {
		details_put_json(&view->details, w);
	} else {
		json_array_begin(w);
		json_array_end(w);
	}
	json_kv_str(w, "note", view ? view->note : NULL);
}

static void json_mismatches(struct json *w, const struct run_result *res,
			    const struct replay_print_options *o)
{
	uint64_t i, nr = atomic_load(&res->nr_mismatches);

	json_key(w, "first_mismatches");
	json_array_begin(w);
	for (i = 0; i < nr && i < o->top && i < RUN_MISMATCHES_KEPT; i++) {
		const struct run_mismatch *m = &res->mismatches[i];
		const struct row *row = row_by_id(m->row_id);
		const struct history_action *a = history_find(o->history, m->lane, m->nr);

		json_object_begin(w);
		json_kv_str(w, "kind", run_mismatch_keys[m->kind]);
		json_kv_str(w, "call", row ? row->name : NULL);
		json_kv_u64(w, "seq", m->seq);
		json_kv_u64(w, "pid", m->pid);
		json_kv_u64(w, "tid", m->tid);
		json_kv_u64(w, "lane", m->lane);
		json_kv_u64(w, "nr", m->nr);
		json_view(w, mismatch_view(o->views, i), a);
		json_outcome(w, "expected", &m->expected);
		json_outcome(w, "got", &m->got);
		json_edges(w, o->history, m->edges,
			   m->nr_edges < RUN_MISMATCH_EDGES ? m->nr_edges : RUN_MISMATCH_EDGES, 0);
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_sums(struct json *w, const char *name, const struct class_sums *s)
{
	json_key(w, name);
	json_object_begin(w);
	json_kv_u64(w, "count", s->count);
	json_kv_u64(w, "made", s->made);
	json_kv_u64(w, "errors", s->errors);
	json_kv_u64(w, "original_ns", s->original_ns);
	json_kv_u64(w, "run_ns", s->run_ns);
	replay_json_spread(w, "original_latency_ns", &s->original);
	replay_json_spread(w, "run_latency_ns", &s->run);
	json_object_end(w);
}

static void json_tables(struct json *w, const struct run_result *res)
{
	struct class_sums *sums = sum_classes(res);
	unsigned int i;

	json_key(w, "classes");
	json_object_begin(w);
	for (i = 1; i < C_MAX; i++)
		if (sums[i].count)
			json_sums(w, class_names[i], &sums[i]);
	json_object_end(w);
	json_key(w, "calls");
	json_object_begin(w);
	for (i = 0; i < ROW_ID_MAX; i++) {
		const struct run_call *c = &res->calls[i];
		const struct row *row = row_by_id(i);

		if (!row || !c->count)
			continue;
		sums[0] = (struct class_sums){ .count = c->count,
					       .made = c->made,
					       .errors = c->errors,
					       .run_ns = c->run_ns,
					       .original_ns = c->original_ns,
					       .run = c->run,
					       .original = c->original };
		json_sums(w, row->name, &sums[0]);
	}
	json_object_end(w);
	free(sums);
}

static void json_enforced(struct json *w, const struct run_result *res)
{
	struct buf key = { 0 };
	unsigned int i;

	json_kv_u64(w, "enforced", res->nr_enforced);
	json_kv_u64(w, "enforced_requests", res->nr_requests_enforced);
	json_key(w, "enforced_by_error");
	json_object_begin(w);
	for (i = 0; i < RUN_ERRNO_MAX; i++) {
		if (!res->enforced_by_error[i])
			continue;
		buf_clear(&key);
		put_error((int32_t)i, &key);
		json_kv_u64(w, buf_str(&key), res->enforced_by_error[i]);
	}
	json_object_end(w);
	buf_release(&key);
}

void replay_print_json(const struct run_result *res, const struct replay_print_options *o,
		       struct json *w)
{
	unsigned int i;

	json_object_begin(w);
	json_kv_str(w, "end", replay_end_words[res->end]);
	json_kv_str(w, "error", res->status < 0 ? res->err.text : NULL);
	json_kv_u64(w, "actions", res->nr_done);
	json_kv_u64(w, "planned_actions", res->nr_actions);
	json_kv_u64(w, "made", res->nr_made);
	json_kv_u64(w, "simulated", res->nr_simulated);
	json_enforced(w, res);
	json_kv_u64(w, "unbuilt", res->nr_unbuilt);
	json_kv_u64(w, "over_files", res->nr_over_files);
	json_kv_u64(w, "max_memory_bytes", res->max_memory_bytes);
	json_kv_u64(w, "over_memory", res->nr_over_memory);
	json_kv_u64(w, "setup_actions", res->nr_setup);
	json_kv_u64(w, "setup_ns", res->setup_ns);
	json_kv_u64(w, "lanes", res->nr_lanes);
	json_kv_u64(w, "verified", res->nr_verified);
	json_kv_u64(w, "verified_results", res->nr_results_verified);
	json_kv_u64(w, "unverifiable_reads", res->nr_unverifiable);
	json_kv_u64(w, "unordered_writes", res->nr_unordered);
	json_kv_u64(w, "mismatches", atomic_load(&res->nr_mismatches));
	json_key(w, "mismatches_by_kind");
	json_object_begin(w);
	for (i = 0; i < RUN_MISMATCH_MAX; i++)
		json_kv_u64(w, run_mismatch_keys[i], atomic_load(&res->mismatches_by_kind[i]));
	json_object_end(w);
	json_mismatches(w, res, o);
	replay_json_waits(w, res, o->history);
	json_kv_u64(w, "elapsed_ns", res->elapsed_ns);
	json_kv_u64(w, "original_elapsed_ns", res->original_elapsed_ns);
	json_kv_u64(w, "predicted_elapsed_ns", res->predicted_ns);
	json_key(w, "concurrency");
	json_object_begin(w);
	json_kv_double(w, "trace", concurrency_of_trace(res));
	json_kv_double(w, "run", concurrency_of_run(res));
	json_object_end(w);
	json_key(w, "thread_time_ns");
	json_object_begin(w);
	json_kv_u64(w, "trace", res->original_call_ns);
	json_kv_u64(w, "run", res->call_ns);
	json_object_end(w);
	json_kv_u64(w, "edge_wait_ns", res->edge_wait_ns);
	json_kv_u64(w, "edge_waits", res->nr_edge_waits);
	json_kv_u64(w, "deadline_wait_ns", res->deadline_wait_ns);
	json_kv_u64(w, "load_wait_ns", res->load_wait_ns);
	json_kv_u64(w, "note_wait_ns", res->note_wait_ns);
	replay_json_spread(w, "lateness_ns", &res->lateness);
	json_kv_u64(w, "cpu_ns", res->cpu_ns);
	json_kv_u64(w, "lane_cpu_ns", res->lane_cpu_ns);
	json_kv_u64(w, "peak_memory_bytes", res->peak_memory_bytes);
	json_kv_u64(w, "opened_without_direct", res->nr_fallbacks_direct);
	json_kv_bool(w, "no_copy_reads", o->no_copy_reads);
	json_kv_u64(w, "batched_reads", res->nr_batched);
	json_key(w, "pipes");
	json_object_begin(w);
	json_kv_u64(w, "made", res->nr_pipes);
	json_kv_u64(w, "broken", res->nr_pipes_broken);
	json_object_end(w);
	json_key(w, "async_requests");
	json_object_begin(w);
	json_kv_u64(w, "made", res->nr_requests);
	json_kv_u64(w, "by_calls", res->nr_requests_by_calls);
	json_kv_u64(w, "left_out", res->nr_requests_left_out);
	json_kv_u64(w, "most_in_flight", res->most_in_flight);
	json_object_end(w);
	json_tables(w, res);
	json_object_end(w);
}
