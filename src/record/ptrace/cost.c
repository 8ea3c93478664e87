/* SPDX-License-Identifier: MIT */
#include "record/ptrace/cost.h"

#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"

/* Of all threads of a process so far; 0: not known. */
static uint64_t process_cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t id;

	if (clock_getcpuclockid(pid, &id) || clock_gettime(id, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

void cost_begin_trial(struct cost *c, pid_t pid)
{
	c->is_trial = true;
	c->nr_trial_stops = 0;
	c->trial_start_cpu_ns = process_cpu_ns(pid);
}

void cost_end_trial(struct cost *c, pid_t pid, uint64_t now_ns)
{
	if (!c->is_trial || !c->nr_trial_stops)
		return;
	c->is_trial = false;
	c->cpu_before_ns = process_cpu_ns(pid);
	c->stop_cpu_ns = clock_sub_ns(c->cpu_before_ns, c->trial_start_cpu_ns) / c->nr_trial_stops;
	c->nr_switches_before = c->nr_unrecorded_stops;
	c->begun_ns = c->idle_from_ns = now_ns;
}

void cost_enter_active(struct cost *c, uint64_t now_ns)
{
	c->nr_waits++;
	if (!c->nr_active++)
		c->idle_ns += clock_sub_ns(now_ns, c->idle_from_ns);
}

void cost_leave_active(struct cost *c, uint64_t since_ns, uint64_t now_ns)
{
	c->active_ns += clock_sub_ns(now_ns, since_ns);
	if (!--c->nr_active)
		c->idle_from_ns = now_ns;
}

void cost_add_call(struct cost *c, uint64_t duration_ns)
{
	unsigned int n = duration_ns ? 63 - (unsigned int)__builtin_clzll(duration_ns) : 0;

	c->calls[n].nr++;
	c->calls[n].sum_ns += duration_ns;
}

/* The time in calls that gave up the processor. */
static uint64_t blocked_ns(const struct cost *c)
{
	uint64_t left = clock_sub_ns(c->nr_switches, c->nr_stops + c->nr_waits), sum_ns = 0;
	unsigned int n = 64;

	while (left && n--) {
		uint64_t nr = c->calls[n].nr;

		if (nr > left) {
			sum_ns += c->calls[n].sum_ns / nr * left;
			break;
		}
		sum_ns += c->calls[n].sum_ns;
		left -= nr;
	}
	return sum_ns;
}

static uint64_t ns_of(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * NS_PER_S + (uint64_t)tv->tv_usec * NS_PER_US;
}

void cost_end(struct cost *c, const struct rusage *usage, uint64_t now_ns)
{
	c->ended_ns = now_ns;
	c->cpu_ns = ns_of(&usage->ru_utime) + ns_of(&usage->ru_stime);
	/* The child's own before its execve are not the program's. */
	c->nr_switches = clock_sub_ns((uint64_t)usage->ru_nvcsw, c->nr_switches_before);
}

uint64_t cost_slowdown_percent(const struct cost *c)
{
	uint64_t elapsed_ns = clock_sub_ns(c->ended_ns, c->begun_ns);
	uint64_t own_cpu_ns = clock_sub_ns(c->cpu_ns, c->cpu_before_ns);
	double alone_ns =
		(double)(clock_sub_ns(own_cpu_ns, c->nr_stops * c->stop_cpu_ns) + blocked_ns(c));
	double share = c->active_ns ? alone_ns / (double)c->active_ns : 0;
	double untraced_ns = (double)c->idle_ns +
			     (double)clock_sub_ns(elapsed_ns, c->idle_ns) * (share < 1 ? share : 1);

	if (!c->begun_ns || !c->ended_ns || alone_ns <= 0 || untraced_ns <= 0)
		return 0;
	return (uint64_t)((double)elapsed_ns / untraced_ns * 100);
}
