/* SPDX-License-Identifier: MIT */
/*
 * Which thread of one trace is which of another: the same one of its process,
 * which is the same one of the trace, in the order of appearance; or the one with
 * the same number. Owned by one thread.
 */
#ifndef REPORT_THREAD_IDS_H
#define REPORT_THREAD_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "trace/reader.h"

/* Who a thread is, whatever numbers it bears: the n-th process, and its n-th thread. */
struct thread_identity {
	uint32_t process, thread;
};

struct thread_ids {
	struct map by_identity; /* stream + 1 */
	uint32_t *order; /* streams by their first event */
	struct thread_identity *identities; /* by stream */
	size_t nr;
};

void thread_ids_init(struct thread_ids *t, struct trace *trace, bool by_tid);
void thread_ids_release(struct thread_ids *t);
/* The stream of t that is `stream` of `other`; false: none is. */
bool thread_ids_find(const struct thread_ids *t, const struct thread_ids *other, uint32_t stream,
		     uint32_t *ret);

#endif
