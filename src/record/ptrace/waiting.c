/* SPDX-License-Identifier: MIT */
#include "record/ptrace/waiting.h"

#include <sched.h>
#include <sys/wait.h>

#include "base/clock.h"

#define STOPS_PER_TURN 64u
/* Of so many turns, each of the ways that are not the best one gets one. */
#define TURNS_PER_ROUND 24u
#define POLL_NS UINT64_C(30000)
/* A program that computes or sleeps says nothing of how soon a stop is seen. */
#define LONG_NS UINT64_C(200000)

pid_t waiting_look(struct waiting *w, int *ret_status)
{
	pid_t tid = waitpid(-1, ret_status, __WALL | WNOHANG);

	w->nr_in_a_row = tid > 0 ? w->nr_in_a_row + 1 : 0;
	return tid;
}

static pid_t poll_for_any(struct waiting *w, enum waiting_way way, uint64_t from_ns,
			  int *ret_status)
{
	pid_t tid = waiting_look(w, ret_status);

	if (tid || way == WAITING_SLEEP)
		return tid;
	do {
		/* Whoever else could run here shall: the program, above all. */
		(void)sched_yield();
		tid = waiting_look(w, ret_status);
	} while (!tid && way == WAITING_POLL && clock_monotonic_ns() - from_ns < POLL_NS);
	return tid;
}

/* Ways. */

static enum waiting_way best_way(const struct waiting *w)
{
	unsigned int way, best = 0;

	for (way = 1; way < WAITING_NR_WAYS; way++) {
		if (w->cost_ns[way] < w->cost_ns[best])
			best = way;
	}
	return best;
}

/* The first turns of each round are for all ways; what is known of them is not forgotten at once. */
static void next_turn(struct waiting *w)
{
	uint64_t *cost = &w->cost_ns[w->way];

	*cost = *cost ? (*cost + w->sum_ns) / 2 : w->sum_ns;
	w->nr_stops = 0;
	w->sum_ns = 0;
	w->nr_turns++;
	if (w->nr_turns % TURNS_PER_ROUND < WAITING_NR_WAYS)
		w->way = w->nr_turns % TURNS_PER_ROUND;
	else
		w->way = best_way(w);
}

/* Rings. */

/* Less than this at a look, and we need not look so often; twice as much, and we must more often. */
#define RING_FEW_BYTES (UINT64_C(64) << 10)
/* While there is so much at each look, we only look. */
#define RING_BUSY_BYTES (UINT64_C(16) << 10)
#define PAUSE_LEAST_NS UINT64_C(100000)
#define PAUSE_MOST_NS UINT64_C(64000000)
/*
 * When so much comes in so short a time, rings are full before a sleeper is awake again: then we
 * stay awake, and take what has gathered in each of such breaks.
 */
#define FLOOD_SPAN_NS UINT64_C(200000)
#define FLOOD_BYTES (UINT64_C(256) << 10)
#define BREAK_NS UINT64_C(12000)
/* A tracer that was busy with rings so short a time ago needs its CPU for itself. */
#define BUSY_FOR_NS UINT64_C(5000000)

void waiting_set_timer(uint64_t interval_ns, struct itimerval *ret_old)
{
	struct timeval tv = { .tv_sec = (time_t)(interval_ns / 1000000000),
			      .tv_usec = (suseconds_t)(interval_ns % 1000000000 / 1000) };
	struct itimerval timer = { .it_interval = tv, .it_value = tv };

	(void)setitimer(ITIMER_REAL, &timer, ret_old); /* cannot fail with these */
}

/* The timer comes again and again, so it need not be set for each wait, if it comes about as often. */
static void arm(struct waiting *w, uint64_t want_ns)
{
	if (!w->timer_ns)
		w->timer_ns = WAITING_TICK_NS;
	if (w->timer_ns <= want_ns && w->timer_ns >= want_ns / 8)
		return;
	w->timer_ns = want_ns;
	waiting_set_timer(want_ns, NULL);
}

bool waiting_is_busy(const struct waiting *w, uint64_t now_ns)
{
	return now_ns < w->busy_until_ns;
}

bool waiting_must_look(const struct waiting *w, uint64_t now_ns)
{
	return now_ns - w->looked_ns >= w->pause_ns;
}

void waiting_note_stop(struct waiting *w, uint64_t taken_bytes)
{
	if (taken_bytes < 2 * RING_FEW_BYTES)
		return;
	w->looked_ns = 0;
	w->pause_ns = PAUSE_LEAST_NS;
}

void waiting_forget_rings(struct waiting *w)
{
	w->pause_ns = 0;
	w->is_flood = false;
}

static void note_flood(struct waiting *w, uint64_t taken_bytes, uint64_t now_ns)
{
	w->flood_bytes += taken_bytes;
	if (now_ns - w->flood_from_ns < FLOOD_SPAN_NS)
		return;
	/* What came in a longer time may have come slowly. */
	w->is_flood =
		w->flood_bytes >= FLOOD_BYTES && now_ns - w->flood_from_ns < 4 * FLOOD_SPAN_NS;
	w->flood_bytes = 0;
	w->flood_from_ns = now_ns;
}

void waiting_note_rings(struct waiting *w, uint64_t taken_bytes, uint64_t now_ns)
{
	/* How much comes in a pause a look tells that came after one, not amid a rush. */
	bool rested = now_ns - w->looked_ns >= w->pause_ns;

	w->looked_ns = now_ns;
	note_flood(w, taken_bytes, now_ns);
	if (!w->pause_ns)
		w->pause_ns = PAUSE_LEAST_NS;
	if (rested && taken_bytes < RING_FEW_BYTES && w->pause_ns < PAUSE_MOST_NS)
		w->pause_ns *= 2;
	else if (taken_bytes >= 2 * RING_FEW_BYTES)
		w->pause_ns = w->pause_ns / 2 > PAUSE_LEAST_NS ? w->pause_ns / 2 : PAUSE_LEAST_NS;
	if (taken_bytes < RING_BUSY_BYTES)
		return;
	w->busy_until_ns = now_ns + BUSY_FOR_NS;
	arm(w, WAITING_TICK_NS); /* who does not sleep need not be woken */
}

/* The program may be on the other half of our processor. */
static void rest_a_little(void)
{
#ifdef __x86_64__
	unsigned int i;

	for (i = 0; i < 16; i++)
		__builtin_ia32_pause();
#endif
}

bool waiting_is_rushed(const struct waiting *w, uint64_t taken_bytes)
{
	if (taken_bytes >= RING_BUSY_BYTES)
		return true;
	if (!w->is_flood)
		return false;
	/* Whoever else could run here shall. Each look takes a line of its cache from the program. */
	(void)sched_yield();
	while (clock_monotonic_ns() - w->looked_ns < BREAK_NS)
		rest_a_little();
	return true;
}

static bool has_rings(const struct waiting *w)
{
	return w->pause_ns;
}

static enum waiting_way choose_way(const struct waiting *w)
{
	if (w->is_beside)
		return WAITING_YIELD;
	return has_rings(w) ? WAITING_SLEEP : w->way;
}

#define WAIT_LEAST_NS UINT64_C(1000000)

static pid_t sleep_for_any(struct waiting *w, int *ret_status)
{
	uint64_t want_ns = w->pause_ns ? w->pause_ns : WAITING_TICK_NS;
	uint64_t now_ns = w->until_ns ? clock_monotonic_ns() : 0;

	if (w->until_ns > now_ns && w->until_ns - now_ns < want_ns)
		want_ns = w->until_ns - now_ns;
	if (w->most_ns && w->most_ns < want_ns)
		want_ns = w->most_ns;
	arm(w, want_ns > WAIT_LEAST_NS ? want_ns : WAIT_LEAST_NS);
	return waitpid(-1, ret_status, __WALL);
}

pid_t waiting_for_any(struct waiting *w, int *ret_status)
{
	bool is_tried = !w->is_beside && !has_rings(w);
	uint64_t from_ns = clock_monotonic_ns(), took_ns;
	pid_t tid = poll_for_any(w, choose_way(w), from_ns, ret_status);

	w->is_beside = false;
	if (!tid)
		tid = sleep_for_any(w, ret_status);
	if (!is_tried)
		return tid;
	took_ns = clock_monotonic_ns() - from_ns;
	w->sum_ns += took_ns < LONG_NS ? took_ns : LONG_NS;
	if (++w->nr_stops == STOPS_PER_TURN)
		next_turn(w);
	return tid;
}
