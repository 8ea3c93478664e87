/* SPDX-License-Identifier: MIT */
#include "replay/predict.h"

#include "base/banned.h"
#include "replay/inside.h"

/* When the edge lets go. */
static uint64_t edge_ns(const struct run *run, const struct run_edge *e)
{
	const struct lane *other = &run->lanes[e->lane];
	uint64_t ns, nr = e->started ? e->nr - 1 : e->nr;

	/* A prologue is over before the clock starts. */
	if ((e->started && !e->nr) || lane_is_prologue(other))
		return 0;
	ns = atomic_load_explicit(&other->predict.ends_ns[nr % PREDICT_KEPT], memory_order_relaxed);
	/* Looked at afterwards: if it is near, that was not overwritten before. */
	atomic_thread_fence(memory_order_acquire);
	return sync_get(&other->done) - nr < PREDICT_KEPT ? ns : 0;
}

void predict_action(struct lane *l, const struct ready *a, uint64_t nr, uint64_t call_ns)
{
	uint64_t ns = clock_add_ns(l->predict.last_ns, a->before_ns);
	uint32_t i;

	for (i = 0; i < a->nr_edges; i++) {
		uint64_t other_ns = edge_ns(l->run, &a->edges[i]);

		if (other_ns > ns)
			ns = other_ns;
	}
	l->predict.last_ns = clock_add_ns(clock_add_ns(ns, a->after_ns), call_ns);
	atomic_store_explicit(&l->predict.ends_ns[nr % PREDICT_KEPT], l->predict.last_ns,
			      memory_order_relaxed);
}
