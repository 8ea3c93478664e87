/* SPDX-License-Identifier: MIT */
#include "replay/predict.h"

#include "base/banned.h"
#include "replay/inside.h"

/* When the edge lets go. */
static uint64_t edge_ns(const struct run *run, const struct run_edge *e)
{
	const struct lane *other = &run->lanes[e->lane];
	_Atomic uint64_t *kept = e->started ? other->predict.begins_ns : other->predict.ends_ns;
	uint64_t ns;

	/* A prologue is over before the clock starts. */
	if (lane_is_prologue(other))
		return 0;
	ns = atomic_load_explicit(&kept[e->nr % PREDICT_KEPT], memory_order_relaxed);
	/* Looked at afterwards: if it is near, that was not overwritten before. */
	atomic_thread_fence(memory_order_acquire);
	return sync_get(&other->done) < e->nr + PREDICT_KEPT ? ns : 0;
}

void predict_begin(struct lane *l, const struct ready *a, uint64_t nr)
{
	uint64_t ns = clock_add_ns(l->predict.last_ns, a->before_ns);
	uint32_t i;

	for (i = 0; i < a->nr_edges; i++) {
		uint64_t other_ns = edge_ns(l->run, &a->edges[i]);

		if (other_ns > ns)
			ns = other_ns;
	}
	l->predict.last_ns = clock_add_ns(ns, a->after_ns);
	if (l->run->has_started_edges)
		atomic_store_explicit(&l->predict.begins_ns[nr % PREDICT_KEPT], l->predict.last_ns,
				      memory_order_relaxed);
}

void predict_end(struct lane *l, uint64_t nr, uint64_t call_ns)
{
	l->predict.last_ns = clock_add_ns(l->predict.last_ns, call_ns);
	atomic_store_explicit(&l->predict.ends_ns[nr % PREDICT_KEPT], l->predict.last_ns,
			      memory_order_relaxed);
}
