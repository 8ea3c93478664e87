/* SPDX-License-Identifier: MIT */
#include "report/fidelity_print.h"

#include <math.h>
#include <stdio.h>

#include "base/banned.h"
#include "base/distance.h"
#include "base/mem.h"
#include "base/strings.h"

static const char *const way_words[] = {
	[MATCH_AUTO] = "",
	[MATCH_ORIGIN] = "by origin: what the run made again",
	[MATCH_ORDER] = "by thread and order of calls",
	[MATCH_NONE] = "not: distributions only",
};

static void put_cell(struct buf *b, int width, const char *text)
{
	buf_printf(b, "%*s", width, text);
}

static void put_duration(struct buf *b, int width, uint64_t ns)
{
	struct buf text = { 0 };

	strings_put_duration(&text, ns);
	put_cell(b, width, buf_str(&text));
	buf_release(&text);
}

/* As signed percent; what is too large for that as a factor, so that columns stay columns. */
static void put_error(struct buf *b, int width, double error)
{
	char text[32] = "-";

	if (isfinite(error) && error < 100)
		(void)snprintf(text, sizeof(text), "%+.1f%%", error * 100);
	else if (isfinite(error))
		(void)snprintf(text, sizeof(text), error < 99999 ? "x%.0f" : "x%.0e", error + 1);
	put_cell(b, width, text);
}

static double mean_ns(const struct fidelity_sums *s)
{
	return histogram_mean(&s->latency_ns);
}

static void put_percentile(struct buf *b, const struct fidelity_sums *x,
			   const struct fidelity_sums *y, double percent)
{
	uint64_t a = histogram_percentile(&x->latency_ns, percent);
	uint64_t c = histogram_percentile(&y->latency_ns, percent);

	put_duration(b, 10, a);
	put_duration(b, 9, c);
	put_error(b, 9, fidelity_error((double)a, (double)c));
}

static void put_class(struct buf *b, const char *name, const struct fidelity_sums *x,
		      const struct fidelity_sums *y)
{
	double ks = distance_ks(&x->latency_ns, &y->latency_ns);
	double emd = distance_emd(&x->latency_ns, &y->latency_ns);

	buf_printf(b, "%-7s%9llu%9llu", name, (unsigned long long)x->count,
		   (unsigned long long)y->count);
	put_duration(b, 10, x->time_ns);
	put_duration(b, 9, y->time_ns);
	put_error(b, 9, fidelity_error((double)x->time_ns, (double)y->time_ns));
	put_percentile(b, x, y, 50);
	put_percentile(b, x, y, 99);
	if (isfinite(ks)) {
		buf_printf(b, "%6.2f", ks);
		put_duration(b, 9, (uint64_t)emd);
	} else {
		buf_printf(b, "%6s%9s", "-", "-");
	}
	buf_putc(b, '\n');
}

static void put_classes(const struct fidelity *f, struct buf *b)
{
	unsigned int i;

	buf_printf(b, "%-7s%18s%28s%28s%28s%6s%9s\n", "", "events", "time in calls", "latency p50",
		   "latency p99", "KS", "EMD");
	buf_printf(b, "%-7s%9s%9s", "class", "A", "B");
	for (i = 0; i < 3; i++)
		buf_printf(b, "%10s%9s%9s", "A", "B", "error");
	buf_putc(b, '\n');
	for (i = 0; i < C_MAX; i++)
		if (f->a.classes[i].count || f->b.classes[i].count)
			put_class(b, class_names[i], &f->a.classes[i], &f->b.classes[i]);
	put_class(b, "all", &f->a.all, &f->b.all);
}

static void put_matches(const struct fidelity *f, struct buf *b)
{
	buf_printf(b, "%-14s%s\n", "matched", way_words[f->way]);
	buf_printf(b, "%-14s%llu of %llu in A and %llu in B", "", (unsigned long long)f->nr_matched,
		   (unsigned long long)f->a.nr_events, (unsigned long long)f->b.nr_events);
	if (f->nr_simulated)
		buf_printf(b, "; %llu of B were not made again",
			   (unsigned long long)f->nr_simulated);
	if (f->nr_enforced)
		buf_printf(b, ", %llu of these enforced failures",
			   (unsigned long long)f->nr_enforced);
	if (f->nr_mismatched)
		buf_printf(b, "; %llu came out otherwise", (unsigned long long)f->nr_mismatched);
	buf_putc(b, '\n');
}

static void put_order(const struct fidelity *f, struct buf *b)
{
	const struct reorder *r = &f->reorder;

	if (!r->nr)
		return;
	buf_printf(b, "%-14s%llu of %llu, %.2f%%", "reordered", (unsigned long long)r->nr_reordered,
		   (unsigned long long)r->nr, 100 * (double)r->nr_reordered / (double)r->nr);
	if (r->nr_reordered) {
		buf_printf(b, "; extent %llu p50, %llu max%s; late by ",
			   (unsigned long long)histogram_percentile(&r->extents, 50),
			   (unsigned long long)r->extents.max, r->nr_cut ? " or more" : "");
		strings_put_duration(b, histogram_percentile(&r->late_ns, 50));
		buf_puts(b, " p50, ");
		strings_put_duration(b, r->late_ns.max);
		buf_puts(b, " max");
	}
	buf_putc(b, '\n');
}

static void put_untimed(const struct fidelity_side *s, const char *name, struct buf *b)
{
	if (s->all.count && !s->all.latency_ns.count)
		buf_printf(b, "%s has no durations: there is nothing to say of its latencies\n",
			   name);
	else if (s->all.count && !s->nr_timed)
		buf_printf(b, "%s has no times: there is nothing to say of how long it took\n",
			   name);
}

void fidelity_put_text(const struct fidelity *f, const char *name_a, const char *name_b,
		       struct buf *b)
{
	uint64_t elapsed_a = fidelity_elapsed_ns(&f->a), elapsed_b = fidelity_elapsed_ns(&f->b);
	double x = fidelity_concurrency(&f->a), y = fidelity_concurrency(&f->b);

	buf_printf(b, "A: %s\nB: %s\n", name_a, name_b);
	put_matches(f, b);
	buf_printf(b, "%-14s", "elapsed");
	put_duration(b, 9, elapsed_a);
	put_duration(b, 9, elapsed_b);
	put_error(b, 9, fidelity_error((double)elapsed_a, (double)elapsed_b));
	buf_printf(b, "\n%-14s%9.2f%9.2f", "concurrency", x, y);
	put_error(b, 9, fidelity_error(x, y));
	buf_putc(b, '\n');
	if (f->nr_pairs_timed) {
		buf_printf(b, "%-14s", "latency error");
		strings_put_duration(b, f->abs_error_ns / f->nr_pairs_timed);
		buf_printf(b, " mean, of %llu pairs\n", (unsigned long long)f->nr_pairs_timed);
	}
	put_order(f, b);
	put_untimed(&f->a, name_a, b);
	put_untimed(&f->b, name_b, b);
	put_classes(f, b);
}

/* Side by side. */

static void put_row_start(const struct fidelity_side *s, const char *name, struct buf *b)
{
	uint64_t elapsed_ns = fidelity_elapsed_ns(s);

	buf_printf(b, "%-24s", name);
	put_duration(b, 10, elapsed_ns);
	buf_printf(b, "%10.0f", elapsed_ns ? (double)s->nr_timed * 1e9 / (double)elapsed_ns : 0);
	put_duration(b, 10, (uint64_t)mean_ns(&s->all));
	put_duration(b, 10, histogram_percentile(&s->all.latency_ns, 99));
	buf_printf(b, "%9.2f", fidelity_concurrency(s));
}

void fidelity_put_row_of_a(const struct fidelity *f, const char *name_a, struct buf *b)
{
	buf_printf(b, "%-24s%10s%10s%10s%10s%9s%9s%9s%9s%10s\n", "side by side", "elapsed",
		   "events/s", "latency", "p99", "at once", "elapsed", "events/s", "latency",
		   "reordered");
	put_row_start(&f->a, name_a, b);
	buf_putc(b, '\n');
}

void fidelity_put_row_of_b(const struct fidelity *f, const char *name_b, struct buf *b)
{
	double elapsed = fidelity_error((double)fidelity_elapsed_ns(&f->a),
					(double)fidelity_elapsed_ns(&f->b));
	double counts = fidelity_error((double)f->a.nr_timed, (double)f->b.nr_timed);

	put_row_start(&f->b, name_b, b);
	put_error(b, 9, elapsed);
	put_error(b, 9, (1 + counts) / (1 + elapsed) - 1);
	put_error(b, 9, fidelity_error(mean_ns(&f->a.all), mean_ns(&f->b.all)));
	if (f->reorder.nr)
		buf_printf(b, "%9.2f%%",
			   100 * (double)f->reorder.nr_reordered / (double)f->reorder.nr);
	buf_putc(b, '\n');
}

static void json_latency(struct json *w, const char *key, const struct fidelity_sums *s)
{
	json_key(w, key);
	json_object_begin(w);
	json_kv_u64(w, "count", s->count);
	json_kv_u64(w, "time_ns", s->time_ns);
	json_kv_u64(w, "timed", s->latency_ns.count);
	json_kv_double(w, "mean_ns", mean_ns(s));
	json_kv_u64(w, "p50_ns", histogram_percentile(&s->latency_ns, 50));
	json_kv_u64(w, "p90_ns", histogram_percentile(&s->latency_ns, 90));
	json_kv_u64(w, "p99_ns", histogram_percentile(&s->latency_ns, 99));
	json_kv_u64(w, "max_ns", s->latency_ns.max);
	json_object_end(w);
}

static double percentile_error(const struct fidelity_sums *x, const struct fidelity_sums *y,
			       double percent)
{
	return fidelity_error((double)histogram_percentile(&x->latency_ns, percent),
			      (double)histogram_percentile(&y->latency_ns, percent));
}

static void json_class(struct json *w, const char *name, const struct fidelity_sums *x,
		       const struct fidelity_sums *y)
{
	json_key(w, name);
	json_object_begin(w);
	json_latency(w, "a", x);
	json_latency(w, "b", y);
	json_key(w, "error");
	json_object_begin(w);
	json_kv_double(w, "time", fidelity_error((double)x->time_ns, (double)y->time_ns));
	json_kv_double(w, "mean", fidelity_error(mean_ns(x), mean_ns(y)));
	json_kv_double(w, "p50", percentile_error(x, y, 50));
	json_kv_double(w, "p90", percentile_error(x, y, 90));
	json_kv_double(w, "p99", percentile_error(x, y, 99));
	json_object_end(w);
	json_kv_double(w, "ks", distance_ks(&x->latency_ns, &y->latency_ns));
	json_kv_double(w, "emd_ns", distance_emd(&x->latency_ns, &y->latency_ns));
	json_object_end(w);
}

static void json_pair(struct json *w, const char *key, double a, double b)
{
	json_key(w, key);
	json_object_begin(w);
	json_kv_double(w, "a", a);
	json_kv_double(w, "b", b);
	json_kv_double(w, "error", fidelity_error(a, b));
	json_object_end(w);
}

static void json_order(struct json *w, const struct reorder *r)
{
	json_key(w, "reordering");
	json_object_begin(w);
	json_kv_u64(w, "events", r->nr);
	json_kv_u64(w, "reordered", r->nr_reordered);
	json_kv_double(w, "ratio", r->nr ? (double)r->nr_reordered / (double)r->nr : 0);
	json_kv_u64(w, "extent_p50", histogram_percentile(&r->extents, 50));
	json_kv_u64(w, "extent_p99", histogram_percentile(&r->extents, 99));
	json_kv_u64(w, "extent_max", r->extents.max);
	json_kv_u64(w, "extents_cut", r->nr_cut);
	json_kv_u64(w, "late_p50_ns", histogram_percentile(&r->late_ns, 50));
	json_kv_u64(w, "late_max_ns", r->late_ns.max);
	json_object_end(w);
}

void fidelity_put_json(const struct fidelity *f, struct json *w)
{
	unsigned int i;

	json_kv_str(w, "match", match_way_names[f->way]);
	json_kv_u64(w, "events_a", f->a.nr_events);
	json_kv_u64(w, "events_b", f->b.nr_events);
	json_kv_u64(w, "matched", f->nr_matched);
	json_kv_u64(w, "simulated", f->nr_simulated);
	json_kv_u64(w, "enforced", f->nr_enforced);
	json_kv_u64(w, "mismatched", f->nr_mismatched);
	json_kv_u64(w, "timed_a", f->a.nr_timed);
	json_kv_u64(w, "timed_b", f->b.nr_timed);
	json_pair(w, "elapsed_ns", (double)fidelity_elapsed_ns(&f->a),
		  (double)fidelity_elapsed_ns(&f->b));
	json_pair(w, "concurrency", fidelity_concurrency(&f->a), fidelity_concurrency(&f->b));
	json_kv_double(w, "latency_error_ns",
		       f->nr_pairs_timed ? (double)f->abs_error_ns / (double)f->nr_pairs_timed
					 : (double)NAN);
	json_order(w, &f->reorder);
	json_key(w, "classes");
	json_object_begin(w);
	for (i = 0; i < C_MAX; i++)
		if (f->a.classes[i].count || f->b.classes[i].count)
			json_class(w, class_names[i], &f->a.classes[i], &f->b.classes[i]);
	json_class(w, "all", &f->a.all, &f->b.all);
	json_object_end(w);
}
