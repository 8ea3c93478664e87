/* SPDX-License-Identifier: MIT */
/*
 * Who ended whose wait for a futex word. The recorder sees calls, not wakes: a
 * wait that returned and a wake that returned a number are matched by word and
 * time.
 *
 * 1. A wait that ended well was ended by a wake of its word that overlaps it and
 *    woke somebody: those who wait longest are woken first; where not all who
 *    wait are known, by the latest.
 * 2. A wait that found the word changed (EAGAIN) counts as ended by the latest
 *    wake of the word since the thread's previous action.
 * 3. A wake of all is a meeting: what waker and woken did before precedes what
 *    any of them does after.
 *
 * Of each word the last few wakes are kept, and the number of words is bounded:
 * those not used for longest are forgotten.
 */
#ifndef ORDER_FUTEX_H
#define ORDER_FUTEX_H

#include "base/map.h"
#include "order/futex_call.h"
#include "order/threads.h"

#define FUTEX_WORDS_MAX 16384

struct futexes {
	struct threads *threads;
	struct map words; /* struct futex_key -> struct word */
	struct word *newest, *oldest; /* by last use */
	size_t nr_words;
	uint64_t nr_unknown, nr_meetings;
};

void futexes_init(struct futexes *f, struct threads *threads);
void futexes_release(struct futexes *f);

/* A futex call in its turn; what its end has brought goes to the pending of threads. */
void futexes_event(struct futexes *f, struct thread *th, const struct order_input *in,
		   const struct futex_call *call);
/* A call that th is about to make. */
void futexes_ahead(struct futexes *f, struct thread *th, const struct event *ev,
		   const struct futex_call *call);
/* The kernel wakes one who waits for the end of th. */
void futexes_thread_exit(struct futexes *f, struct thread *th, const struct order_input *in);
/* The thread acts: what its last wait was ended by no longer matters to this action. */
void futexes_act(struct thread *th);
void futexes_forget(struct futexes *f, struct thread *th);

#endif
