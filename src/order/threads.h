/* SPDX-License-Identifier: MIT */
/*
 * The traced threads as order sees them: what each has done last, and what its
 * next action must wait for. Rule `thread` lives here, for all policies that
 * keep it; so does what a process leaves behind for whoever waits for its end.
 */
#ifndef ORDER_THREADS_H
#define ORDER_THREADS_H

#include "base/map.h"
#include "order/users.h"

struct word;
struct process;

enum waiting_state {
	WAITING_NOT,
	WAITING_AHEAD, /* will end with success, and nobody has ended it yet */
	WAITING_AHEAD_CHANGED, /* will find the word changed (EAGAIN) */
	WAITING_MATCHED, /* either, and who ends it is known */
	WAITING_LATE, /* has ended, and who did it has not been seen yet */
	WAITING_CHANGED, /* found the word changed, and who changed it has not been seen yet */
};

/* A thread's wait for a futex word: of sync.c. */
struct waiting {
	enum waiting_state state;
	struct word *word; /* NULL: in no list */
	struct thread *thread, *next, *prev; /* in the word's list, by enter_ns */
	uint64_t enter_ns, exit_ns;
	uint32_t bitset;
};

struct thread {
	uint32_t tid;
	struct user last;
	uint64_t last_seq; /* of the event that `last` was */
	/* For its next action; both are emptied by it. */
	struct user maker; /* rule thread */
	struct users pending; /* rule sync_wake */
	bool begun; /* rule thread has been applied */
	bool exiting; /* its end has been told to whoever joins it */
	bool let_go; /* it has exec'ed or ended: a vfork of it may return */
	struct users at_let_go;
	uint64_t clear_tid; /* where the kernel wakes at its end; 0: nowhere */
	struct waiting waiting;
	struct process *process;
	struct thread *next_sibling, **prev_sibling; /* threads of a process */
};

/* How many processes that have ended are remembered: whoever waits for an older one finds none. */
#define PROCESSES_ENDED_MAX 16384

struct process {
	uint32_t pid;
	struct thread *threads;
	struct users ended; /* what threads that are gone had done */
	uint64_t space; /* its address space in the keys of futex words; 0: not known */
	struct process *older, *newer; /* of those without threads */
	bool listed;
};

#define THREADS_CACHED 64

struct threads {
	struct map by_tid, by_pid;
	struct thread *cache[THREADS_CACHED];
	struct process *oldest, *newest;
	size_t nr_ended;
};

void threads_init(struct threads *ts);
void threads_release(struct threads *ts);

/* NULL when there is none. */
struct thread *threads_find(struct threads *ts, uint32_t tid);
struct process *threads_find_process(struct threads *ts, uint32_t pid);

/* The thread of the event, made when it is new, with its process and last action as they are before the event. */
struct thread *threads_of(struct threads *ts, const struct order_input *in);
/* Rule thread: what the event says about the beginning of threads. */
void threads_begin(struct threads *ts, struct thread *th, const struct order_input *in);
/* The action is the thread's: its edges from the thread rule and from waits go to the sink. */
void threads_act(struct thread *th, const struct order_input *in, const struct sink *sink);
void threads_end(struct threads *ts, struct thread *th);

/*
 * What has been done when the event happens, as far as others who learn of it
 * must wait for it: the action itself; or the thread's last action and what its
 * next one will wait for. The latter makes waits carry over a thread that does
 * nothing between being woken and waking another.
 */
void thread_before(const struct thread *th, const struct order_input *in, struct users *ret);
/* The same between two events of the thread. */
void thread_done(const struct thread *th, struct users *ret);

#endif
