/* SPDX-License-Identifier: MIT */
#include "replay/ticker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

#define CALIBRATION_NS (8 * NS_PER_MS)
#define NR_WAKEUPS 40
#define SPIN_MAX_NS (200 * NS_PER_US)

#if defined(__x86_64__)
/* The kernel trusts the counter only when it is the same on all cores and never stops. */
static bool kernel_uses_counter(void)
{
	char name[16] = "";
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");

	if (!f)
		return false;
	if (!fgets(name, sizeof(name), f))
		name[0] = '\0';
	(void)fclose(f); /* opened for reading */
	return !strcmp(name, "tsc\n");
}

/* A reading of both clocks that no interruption tore apart: the narrowest of several. */
static void read_both(uint64_t *ret_ticks, uint64_t *ret_ns)
{
	uint64_t best = UINT64_MAX;
	int i;

	for (i = 0; i < 16; i++) {
		uint64_t before = __rdtsc();
		uint64_t ns = clock_monotonic_ns();
		uint64_t after = __rdtsc();

		if (after - before < best) {
			best = after - before;
			*ret_ticks = before + (after - before) / 2;
			*ret_ns = ns;
		}
	}
}

static void calibrate_counter(struct ticker *t)
{
	uint64_t ticks = 0, ns = 0;

	read_both(&t->base_ticks, &t->base_ns);
	do {
		read_both(&ticks, &ns);
	} while (ns - t->base_ns < CALIBRATION_NS);
	if (ticks <= t->base_ticks)
		return;
	t->mult = (uint64_t)((((unsigned __int128)(ns - t->base_ns)) << 32) /
			     (ticks - t->base_ticks));
	t->counter = t->mult != 0;
}
#endif

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How late a sleep ends: half of them no later than wakeup_ns, nine of ten than spin_ns. */
static void measure_wakeup(struct ticker *t)
{
	uint64_t late[NR_WAKEUPS];
	int i;

	for (i = 0; i < NR_WAKEUPS; i++) {
		uint64_t deadline = clock_monotonic_ns() + 100 * NS_PER_US;
		struct timespec ts = clock_timespec_from_ns(deadline);

		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		late[i] = clock_sub_ns(clock_monotonic_ns(), deadline);
	}
	qsort(late, NR_WAKEUPS, sizeof(late[0]), compare_u64);
	t->wakeup_ns = min_ns(late[NR_WAKEUPS / 2], SPIN_MAX_NS);
	t->spin_ns = min_ns(late[NR_WAKEUPS * 9 / 10], SPIN_MAX_NS);
}

void ticker_init(struct ticker *t)
{
	*t = (struct ticker){ .base_ns = clock_monotonic_ns() };
#if defined(__x86_64__)
	if (kernel_uses_counter())
		calibrate_counter(t);
#endif
	measure_wakeup(t);
}

void ticker_wait_until(const struct ticker *t, uint64_t deadline_ns)
{
	uint64_t now = ticker_now_ns(t);

	/* Twice, so that a sleep is worth its two switches. */
	if (deadline_ns > now && deadline_ns - now > 2 * t->spin_ns) {
		uint64_t until = clock_add_ns(clock_monotonic_ns(), deadline_ns - now - t->spin_ns);
		struct timespec ts = clock_timespec_from_ns(until);

		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
	while (ticker_now_ns(t) < deadline_ns)
		ticker_relax();
}
