/* SPDX-License-Identifier: MIT */
#include "report/fidelity.h"

#include <math.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"

static bool is_compared(const struct row *row)
{
	enum row_class class = row_class(row);

	return row->sort == ROW_CALL || class == C_BLOCK || class == C_MAP;
}

static bool has_times(unsigned int flags)
{
	return !(flags & EVENT_NO_TIME);
}

static bool has_duration(unsigned int flags)
{
	return !(flags & (EVENT_UNFINISHED | EVENT_NO_TIME | EVENT_NO_DURATION));
}

static void add_sums(struct fidelity_sums *s, const struct match_event *ev)
{
	uint64_t ns = clock_sub_ns(ev->exit_ns, ev->enter_ns);

	s->count++;
	if (!has_duration(ev->flags))
		return;
	s->time_ns += ns;
	histogram_add(&s->latency_ns, ns);
}

static void add_event(struct fidelity_side *s, const struct match_event *ev)
{
	if (has_times(ev->flags)) {
		if (!s->nr_timed || ev->enter_ns < s->first_ns)
			s->first_ns = ev->enter_ns;
		if (ev->exit_ns > s->last_ns)
			s->last_ns = ev->exit_ns;
		s->nr_timed++;
	}
	add_sums(&s->classes[row_class(ev->row)], ev);
	if (!(ev->row->class & A_WAITS))
		add_sums(&s->all, ev);
}

static struct match_event describe(const struct event *ev)
{
	return (struct match_event){ .row = ev->row,
				     .flags = ev->flags,
				     .seq = ev->seq,
				     .enter_ns = ev->enter_ns,
				     .exit_ns = ev->exit_ns };
}

static int read_a(struct trace *t, struct fidelity *f, struct progress *progress, struct err *err)
{
	struct trace_query q = { .no_args = true, .progress = progress };
	struct trace_iter *it;
	struct event *ev;
	int r = trace_iter_open(t, &q, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_iter_next(it, &ev, err)) > 0) {
		struct match_event me = describe(ev);

		if (!is_compared(ev->row))
			continue;
		f->a.nr_events++;
		if (!f->paired && !(ev->flags & EVENT_SIMULATED))
			add_event(&f->a, &me);
	}
	trace_iter_close(it);
	return r;
}

static void add_pair(struct fidelity *f, const struct match_event *a, const struct match_event *b)
{
	uint64_t ns_a = clock_sub_ns(a->exit_ns, a->enter_ns);
	uint64_t ns_b = clock_sub_ns(b->exit_ns, b->enter_ns);

	f->nr_matched++;
	if (f->paired) {
		add_event(&f->a, a);
		add_event(&f->b, b);
	}
	if (has_times(b->flags))
		reorder_add(&f->reorder, (struct reorder_key){ a->enter_ns, a->seq }, b->enter_ns);
	if (!has_duration(a->flags) || !has_duration(b->flags) || (b->row->class & A_WAITS))
		return;
	f->nr_pairs_timed++;
	f->abs_error_ns += ns_a > ns_b ? ns_a - ns_b : ns_b - ns_a;
}

static int add_b(struct fidelity *f, struct matcher *m, const struct event *ev, struct err *err)
{
	struct match_event a, b = describe(ev);
	/* Also for what is not compared: its place in the thread is used up. */
	int r = matcher_find(m, ev, &a, err);

	if (r < 0 || !is_compared(ev->row))
		return r;
	f->b.nr_events++;
	f->nr_mismatched += (ev->flags & EVENT_MISMATCHED) != 0;
	if (ev->flags & EVENT_SIMULATED) {
		f->nr_simulated++;
		f->nr_enforced += (ev->flags & EVENT_ENFORCED) != 0;
		return 0;
	}
	if (!f->paired)
		add_event(&f->b, &b);
	if (r > 0)
		add_pair(f, &a, &b);
	return 0;
}

static int read_b(struct trace *t, struct fidelity *f, struct matcher *m, struct progress *progress,
		  struct err *err)
{
	struct trace_query q = { .no_args = true, .progress = progress };
	struct trace_iter *it;
	struct event *ev;
	int r = trace_iter_open(t, &q, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_iter_next(it, &ev, err)) > 0) {
		r = add_b(f, m, ev, err);
		if (r < 0)
			break;
	}
	trace_iter_close(it);
	return r;
}

int fidelity_compare(struct trace *a, struct trace *b, const struct fidelity_options *o,
		     struct fidelity *ret, struct err *err)
{
	struct matcher *m = matcher_new(a, b, o->way);
	int r;

	*ret = (struct fidelity){ .way = matcher_way(m) };
	ret->paired = ret->way == MATCH_ORIGIN;
	progress_set_total(o->progress, trace_nr_events(a) + trace_nr_events(b));
	r = read_a(a, ret, o->progress, err);
	if (r >= 0)
		r = read_b(b, ret, m, o->progress, err);
	matcher_free(m);
	return r;
}

static void release_side(struct fidelity_side *s)
{
	unsigned int i;

	histogram_release(&s->all.latency_ns);
	for (i = 0; i < C_MAX; i++)
		histogram_release(&s->classes[i].latency_ns);
}

void fidelity_release(struct fidelity *f)
{
	release_side(&f->a);
	release_side(&f->b);
	reorder_release(&f->reorder);
}

uint64_t fidelity_elapsed_ns(const struct fidelity_side *s)
{
	return clock_sub_ns(s->last_ns, s->first_ns);
}

double fidelity_concurrency(const struct fidelity_side *s)
{
	uint64_t elapsed_ns = fidelity_elapsed_ns(s);

	return elapsed_ns ? (double)s->all.time_ns / (double)elapsed_ns : 0;
}

double fidelity_error(double a, double b)
{
	return a > 0 || a < 0 ? (b - a) / a : NAN;
}
