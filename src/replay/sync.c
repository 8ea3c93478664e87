/* SPDX-License-Identifier: MIT */
#include "replay/sync.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "replay/ticker.h"

#define NR_SPINS 50
#define YIELDS_MAX 200
#define YIELDERS_MAX 4
#define YIELD_MAX_NS (20 * NS_PER_US) /* a sleep and a wake-up cost as much */
/* After so many waits one that has learned to sleep tries again whether spinning pays: ever rarer. */
#define RETRY_FIRST 64
#define RETRY_LAST 4096

void sync_hub_init(struct sync_hub *h, uint32_t nr_lanes, const _Atomic uint32_t *stop)
{
	cpu_set_t cpus;
	int nr = 1;

	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		nr = CPU_COUNT(&cpus);
	atomic_init(&h->nr_runnable, nr_lanes);
	atomic_init(&h->nr_yielders, 0);
	h->nr_cpus = nr > 0 ? (uint32_t)nr : 1;
	h->stop = stop;
}

void sync_counter_init(struct sync_counter *c)
{
	atomic_init(&c->value, 0);
	atomic_init(&c->wake_at, SYNC_NONE);
	atomic_init(&c->epoch, 0);
}

void sync_futex_wait(const _Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
	struct timespec ts = clock_timespec_from_ns(timeout_ns);

	/* Whatever ends it, the caller looks again. */
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout_ns ? &ts : NULL, NULL, 0);
}

void sync_futex_wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void sync_wake_sleepers(struct sync_counter *c)
{
	atomic_store(&c->wake_at, SYNC_NONE);
	atomic_fetch_add(&c->epoch, 1);
	sync_futex_wake(&c->epoch);
}

void sync_sleep_begin(struct sync_hub *h)
{
	atomic_fetch_sub_explicit(&h->nr_runnable, 1, memory_order_relaxed);
}

void sync_sleep_end(struct sync_hub *h)
{
	atomic_fetch_add_explicit(&h->nr_runnable, 1, memory_order_relaxed);
}

static bool is_stopped(const struct sync_hub *h)
{
	return atomic_load_explicit(h->stop, memory_order_relaxed) != 0;
}

static bool spin(const struct sync_counter *c, uint64_t wanted)
{
	int i;

	for (i = 0; i < NR_SPINS; i++) {
		if (sync_get(c) >= wanted)
			return true;
		ticker_relax();
	}
	return false;
}

/*
 * Few at a time: many yielders only hand the core to each other. And only while
 * the core comes back at once: where others outside of the run want it too, a
 * sleeper that is woken gets it sooner than one that gave it away.
 */
static bool yield(const struct sync_counter *c, uint64_t wanted, uint32_t budget,
		  struct sync_hub *h)
{
	uint64_t begin_ns = clock_monotonic_ns();
	bool reached = false, soon = true;
	uint32_t i;

	if (atomic_fetch_add_explicit(&h->nr_yielders, 1, memory_order_relaxed) < YIELDERS_MAX)
		for (i = 0; i < budget && !reached && soon; i++) {
			(void)sched_yield(); /* cannot fail */
			reached = spin(c, wanted);
			soon = clock_monotonic_ns() - begin_ns < YIELD_MAX_NS;
		}
	atomic_fetch_sub_explicit(&h->nr_yielders, 1, memory_order_relaxed);
	return reached && soon;
}

/* Whether to try before sleeping, and how long: what paid last time is tried longer. */
static bool wait_awake(const struct sync_counter *c, uint64_t wanted, struct sync_waiter *w,
		       struct sync_hub *h)
{
	bool fits = atomic_load_explicit(&h->nr_runnable, memory_order_relaxed) <= h->nr_cpus;
	bool retry = w->nr_waits++ >= w->retry_at;

	if (!fits || (!w->budget && !retry))
		return false;
	if (!w->budget)
		w->budget = YIELDS_MAX / 8;
	if (spin(c, wanted) || yield(c, wanted, w->budget, h)) {
		w->budget = w->budget * 2 < YIELDS_MAX ? w->budget * 2 : YIELDS_MAX;
		w->pause = 0;
		return true;
	}
	w->budget /= 8;
	if (!w->budget) {
		w->pause = w->pause ? w->pause * 2 : RETRY_FIRST;
		if (w->pause > RETRY_LAST)
			w->pause = RETRY_LAST;
		w->retry_at = w->nr_waits + w->pause;
	}
	return false;
}

static void wish(struct sync_counter *c, uint64_t wanted)
{
	uint64_t at = atomic_load(&c->wake_at);

	while (wanted < at && !atomic_compare_exchange_weak(&c->wake_at, &at, wanted))
		;
}

bool sync_wait(struct sync_counter *c, uint64_t wanted, struct sync_waiter *w, struct sync_hub *h)
{
	if (sync_get(c) >= wanted || wait_awake(c, wanted, w, h))
		return true;
	sync_sleep_begin(h);
	for (;;) {
		uint32_t epoch = atomic_load(&c->epoch);

		wish(c, wanted);
		if (atomic_load(&c->value) >= wanted || is_stopped(h))
			break;
		sync_futex_wait(&c->epoch, epoch, 0);
	}
	sync_sleep_end(h);
	return sync_get(c) >= wanted;
}
