/* SPDX-License-Identifier: MIT */
#include "order/arrivals.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/heap.h"

/* Fewer arrivals, or fewer that should have met another, say nothing. */
#define ARRIVALS_MIN 200
#define MEETINGS_MIN 50.0
#define TOGETHER 10 /* closer than such a part of the mean distance */
#define FOUND_MIN 0.8 /* of the mean in flight */
#define FOUND_MAX 1.25
#define DISPERSION_MIN 0.9

const char *const arrivals_names[] = { "unknown", "closed", "open" };

/* What is in flight. */

static void pass(struct arrivals *a, uint64_t to_ns)
{
	double ns;

	if (to_ns <= a->now_ns)
		return;
	while (a->ns_with.len <= a->ends.len)
		VEC_PUSH(&a->ns_with, 0);
	ns = (double)(to_ns - a->now_ns);
	a->ns_with.items[a->ends.len] += ns;
	a->sum += (double)a->ends.len * ns;
	a->now_ns = to_ns;
}

static void advance(struct arrivals *a, uint64_t to_ns)
{
	while (a->ends.len && a->ends.items[0] <= to_ns) {
		pass(a, a->ends.items[0]);
		HEAP_POP(&a->ends, HEAP_LESS);
	}
	pass(a, to_ns);
}

/* Arrivals. */

static bool is_apart(const struct arrivals *a)
{
	return !a->nr ||
	       a->now_ns - a->last_issue_ns >= (a->now_ns - a->first_ns) / a->nr / TOGETHER;
}

void arrivals_add(struct arrivals *a, uint64_t issue_ns, uint64_t end_ns)
{
	if (!a->nr)
		a->first_ns = a->now_ns = a->last_issue_ns = issue_ns;
	advance(a, issue_ns);
	if (is_apart(a)) {
		a->nr_apart++;
		a->found += (double)a->ends.len;
	}
	a->last_issue_ns = a->now_ns;
	a->nr++;
	HEAP_PUSH(&a->ends, end_ns > a->now_ns ? end_ns : a->now_ns, HEAP_LESS);
}

void arrivals_add_unknown(struct arrivals *a)
{
	a->nr_unknown++;
}

static enum arrivals_kind kind_of(const struct arrivals *a, const struct arrivals_view *v)
{
	if (a->nr_apart < ARRIVALS_MIN || a->nr_unknown > a->nr / 10 ||
	    (double)a->nr_apart * v->in_flight < MEETINGS_MIN)
		return ARRIVALS_UNKNOWN;
	if (v->found < FOUND_MIN * v->in_flight || v->dispersion < DISPERSION_MIN)
		return ARRIVALS_CLOSED;
	return v->found > FOUND_MAX * v->in_flight || a->nr_apart < a->nr / 2 ? ARRIVALS_UNKNOWN
									      : ARRIVALS_OPEN;
}

/* So many were in flight for a part of the time, or fewer; between whole numbers by the share of the time. */
static double quantile(const struct arrivals *a, double part)
{
	double left = part * (double)(a->now_ns - a->first_ns);
	size_t i;

	for (i = 0; i < a->ns_with.len; i++) {
		double ns = a->ns_with.items[i];

		if (ns > 0 && left <= ns)
			return (double)i - 0.5 + left / ns;
		left -= ns;
	}
	return (double)i;
}

static double dispersion(const struct arrivals *a, double mean)
{
	/* The 95th percentile of a normal distribution is so many standard deviations up. */
	double deviation = (quantile(a, 0.95) - quantile(a, 0.5)) / 1.645;

	return deviation * deviation / mean;
}

void arrivals_judge(struct arrivals *a, struct arrivals_view *ret)
{
	double elapsed;

	*ret = (struct arrivals_view){ 0 };
	while (a->ends.len)
		advance(a, a->ends.items[0]);
	elapsed = (double)(a->now_ns - a->first_ns);
	if (elapsed <= 0 || a->sum <= 0)
		return;
	ret->in_flight = a->sum / elapsed;
	ret->found = a->found / (double)a->nr_apart;
	ret->dispersion = dispersion(a, ret->in_flight);
	ret->kind = kind_of(a, ret);
}

void arrivals_release(struct arrivals *a)
{
	VEC_RELEASE(&a->ends);
	VEC_RELEASE(&a->ns_with);
}
