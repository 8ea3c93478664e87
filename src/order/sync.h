/* SPDX-License-Identifier: MIT */
/*
 * Rule sync_wake where no resource of the model stands between the two: futex
 * words (futex.c), the end of threads and processes, vfork, wake-ups that a
 * recorder saw. Streams and locks are resources (touches.c).
 */
#ifndef ORDER_SYNC_H
#define ORDER_SYNC_H

#include "order/futex.h"

struct sync {
	struct threads *threads;
	struct futexes futexes;
	uint64_t nr_unknown; /* processes that were waited for and are not known */
};

void sync_init(struct sync *s, struct threads *threads);
void sync_release(struct sync *s);
void sync_event(struct sync *s, struct thread *th, const struct order_input *in);
void sync_ahead(struct sync *s, const struct event *ev);
void sync_thread_end(struct sync *s, struct thread *th);

#endif
