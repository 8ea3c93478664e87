/* SPDX-License-Identifier: MIT */
/*
 * How the tracer waits for the next stop. To be put to sleep and woken costs more
 * than a stop itself, but what is better depends on where the kernel lets program
 * and tracer run, on how many CPUs, and on who else wants them:
 *
 *   SLEEP  until we are woken
 *   YIELD  on the program's own CPU: it runs until it has its next stop
 *   POLL   on another CPU that nobody wants: the stop is seen as soon as it is there
 *
 * So the ways are tried in turn, a number of stops each, and the one in which the
 * program's stops came soonest is used, until the others get their next chance. Of
 * a thread that goes on beside us (beside.h) it is known to be YIELD. Among several with an
 * agent it is SLEEP: they run for long, and who has yielded to one of them would not see the stop of
 * another before its time is over.
 *
 * Threads with an agent make few stops, but fill rings. These are looked at
 * again and again, on a CPU of our own if there is one: at once while there is
 * much in them, after a short break without sleep while much comes, else after a
 * pause so long that they do not become full, and that grows while there is nothing. A ring that is full all the same stops its
 * thread, and so wakes us. Belongs to the tracer's thread.
 */
#ifndef RECORD_PTRACE_WAITING_H
#define RECORD_PTRACE_WAITING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

enum waiting_way {
	WAITING_SLEEP,
	WAITING_YIELD,
	WAITING_POLL,
	WAITING_NR_WAYS,
};

/* Zeroed at first. */
struct waiting {
	bool is_beside; /* the thread that was let go last */
	unsigned int nr_in_a_row; /* stops that were there when we looked */
	enum waiting_way way;
	unsigned int nr_stops; /* of this turn */
	unsigned int nr_turns;
	uint64_t sum_ns; /* of this turn */
	uint64_t cost_ns[WAITING_NR_WAYS]; /* of a turn, lately */

	uint64_t most_ns; /* no wait lasts longer; 0: it may */
	uint64_t until_ns; /* no wait lasts longer, on the monotonic clock; 0: it may */
	uint64_t pause_ns; /* between two looks at rings; 0: there are none */
	uint64_t looked_ns; /* at them, the last time */
	uint64_t timer_ns; /* how often it comes; 0: as it was at first */
	uint64_t busy_until_ns; /* with rings: until then the CPU is for us alone */
	uint64_t flood_from_ns, flood_bytes; /* what was in rings since then */
	bool is_flood; /* much, lately */
};

/* A timer wakes the tracer from any wait that often. */
#define WAITING_TICK_NS UINT64_C(250000000)
void waiting_set_timer(uint64_t interval_ns, struct itimerval *ret_old);

/* As waitpid() for any thread, without waiting. */
pid_t waiting_look(struct waiting *w, int *ret_status);
/* As waitpid() for any thread; with rings it ends with EINTR when it is time to look at them. */
pid_t waiting_for_any(struct waiting *w, int *ret_status);
/* Whether rings keep us busy, and nobody else belongs on our CPU. */
bool waiting_is_busy(const struct waiting *w, uint64_t now_ns);
/* Whether it is time to look at the rings. */
bool waiting_must_look(const struct waiting *w, uint64_t now_ns);
/* A stopped thread had so much in its ring: with much we were late, and look at once. */
void waiting_note_stop(struct waiting *w, uint64_t taken_bytes);
/* There are no rings. */
void waiting_forget_rings(struct waiting *w);
/* At a look at the rings, the fullest of them held so much. */
void waiting_note_rings(struct waiting *w, uint64_t taken_bytes, uint64_t now_ns);
/* So much, or so often, that it is better to look again than to wait. May take a short break. */
bool waiting_is_rushed(const struct waiting *w, uint64_t taken_bytes);

#endif
