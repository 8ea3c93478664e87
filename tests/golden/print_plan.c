/* SPDX-License-Identifier: MIT */
/* usage: print_plan PLAN: all that is in a plan, as text. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "model/print.h"
#include "plan/plan.h"

static void must(int r, const struct err *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "print_plan: %s\n", err->text);
	exit(1);
}

static void print_totals(const struct plan_totals *t)
{
	printf("actions %llu, lanes %u, slots %u, edges %llu, elapsed %llu from %llu, data %llu%s%s\n",
	       (unsigned long long)t->nr_actions, t->nr_lanes, t->nr_slots,
	       (unsigned long long)t->nr_edges, (unsigned long long)t->elapsed_ns,
	       (unsigned long long)t->first_ns, (unsigned long long)t->max_data_bytes,
	       t->has_started_edges ? ", started edges" : "", t->has_prologue ? ", prologue" : "");
}

static void print_items(struct plan *p, enum block_type section, struct buf *out)
{
	struct trace_items *it;
	struct item *item;
	struct err err = { "" };
	int r;

	must(trace_items_open(plan_container(p), section, &it, &err), &err);
	while ((r = trace_items_next(it, &item, &err)) > 0) {
		print_item_line(out, item);
		buf_putc(out, '\n');
	}
	must(r, &err);
	trace_items_close(it);
}

static void print_action(const struct action *a, uint64_t nr, struct buf *out)
{
	struct event ev = { .row = a->row,
			    .pid = a->pid,
			    .tid = a->tid,
			    .seq = a->seq,
			    .enter_ns = a->enter_ns,
			    .exit_ns = a->exit_ns,
			    .outcome = a->outcome };

	for (unsigned int i = 0; i < a->row->nr_args; i++)
		ev.args[i] = a->args[i];
	buf_printf(out, " %llu flags=%u origin=%llu think=%llu,%llu,%llu", (unsigned long long)nr,
		   a->flags, (unsigned long long)a->origin,
		   (unsigned long long)a->compute_before_ns,
		   (unsigned long long)a->compute_after_ns, (unsigned long long)a->wait_ns);
	for (uint32_t i = 0; i < a->nr_edges; i++)
		buf_printf(out, " after=%u:%llu/%u%s", a->edges[i].lane,
			   (unsigned long long)a->edges[i].nr, a->edges[i].rule,
			   a->edges[i].started ? "s" : "");
	if (a->flags & ACTION_HAS_RESULT) {
		buf_puts(out, " result=");
		print_hash(out, a->result);
	}
	buf_puts(out, "\n  ");
	print_event_line(out, &ev, 0);
	buf_putc(out, '\n');
}

static void print_lane(struct plan *p, uint32_t lane, struct buf *out)
{
	const struct action *a;
	struct plan_lane *reader;
	struct err err = { "" };
	uint64_t nr = 0;
	int r;

	buf_printf(out, "lane %u%s\n", lane,
		   plan_lane_awaits_prologue(p, lane) ? ", behind the prologue" : "");
	must(plan_lane_open(p, lane, &reader, &err), &err);
	while ((r = plan_lane_next(reader, &a, &err)) > 0)
		print_action(a, nr++, out);
	must(r, &err);
	plan_lane_close(reader);
}

int main(int argc, char **argv)
{
	struct buf out = { 0 };
	struct plan *p;
	struct err err = { "" };

	if (argc != 2)
		return 2;
	must(plan_open(argv[1], &p, &err), &err);
	must(plan_check(p, NULL, &err), &err);
	must(plan_check_data(p, NULL, &err), &err);
	print_totals(plan_totals(p));
	print_items(p, BLOCK_TREE, &out);
	for (uint32_t lane = 0; lane < plan_totals(p)->nr_lanes; lane++)
		print_lane(p, lane, &out);
	fputs(buf_str(&out), stdout);
	buf_release(&out);
	plan_close(p);
	return 0;
}
