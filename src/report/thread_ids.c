/* SPDX-License-Identifier: MIT */
#include "report/thread_ids.h"

#include <stdlib.h>

#include "base/banned.h"
#include "base/mem.h"

static int by_first_event(const void *a, const void *b, void *streams)
{
	const struct trace_stream_info *infos = streams;
	const struct trace_stream_info *x = &infos[*(const uint32_t *)a];
	const struct trace_stream_info *y = &infos[*(const uint32_t *)b];

	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static struct thread_identity identify_by_order(struct map *processes, struct map *nr_threads,
						const struct trace_stream_info *info)
{
	void **process = map_slot(processes, &info->pid, sizeof(info->pid));
	void **nr = map_slot(nr_threads, &info->pid, sizeof(info->pid));

	if (!*process)
		*process = (void *)(uintptr_t)processes->nr_live;
	*nr = (void *)((uintptr_t)*nr + 1);
	return (struct thread_identity){ (uint32_t)(uintptr_t)*process, (uint32_t)(uintptr_t)*nr };
}

void thread_ids_init(struct thread_ids *t, struct trace *trace, bool by_tid)
{
	const struct trace_stream_info *infos = trace_streams(trace, &t->nr);
	struct map processes = { 0 }, nr_threads = { 0 };
	size_t i;

	t->by_identity = (struct map){ 0 };
	t->order = xmalloc((t->nr + 1) * sizeof(*t->order));
	t->identities = xmalloc((t->nr + 1) * sizeof(*t->identities));
	for (i = 0; i < t->nr; i++)
		t->order[i] = (uint32_t)i;
	/* The array is only read: the comparison gets it as it must. */
	qsort_r(t->order, t->nr, sizeof(*t->order), by_first_event, (void *)(uintptr_t)infos);
	for (i = 0; i < t->nr; i++) {
		const struct trace_stream_info *info = &infos[t->order[i]];
		struct thread_identity id = identify_by_order(&processes, &nr_threads, info);

		if (by_tid)
			id = (struct thread_identity){ info->tid, info->generation };
		t->identities[t->order[i]] = id;
		*map_slot(&t->by_identity, &id, sizeof(id)) = (void *)((uintptr_t)t->order[i] + 1);
	}
	map_release(&processes);
	map_release(&nr_threads);
}

void thread_ids_release(struct thread_ids *t)
{
	map_release(&t->by_identity);
	free(t->order);
	free(t->identities);
}

bool thread_ids_find(const struct thread_ids *t, const struct thread_ids *other, uint32_t stream,
		     uint32_t *ret)
{
	void *found = map_get(&t->by_identity, &other->identities[stream],
			      sizeof(struct thread_identity));

	if (!found)
		return false;
	*ret = (uint32_t)((uintptr_t)found - 1);
	return true;
}
