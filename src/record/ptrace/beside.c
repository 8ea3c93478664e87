/* SPDX-License-Identifier: MIT */
#include "record/ptrace/beside.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>

/* False: it stays as it is, having no choice, or not ours to move. */
static bool bind_to(int cpu, pid_t tid, cpu_set_t *ret_before, cpu_set_t *ret_now)
{
	if (cpu < 0 || cpu >= CPU_SETSIZE ||
	    sched_getaffinity(tid, sizeof(*ret_before), ret_before) < 0 ||
	    !CPU_ISSET((unsigned int)cpu, ret_before) || CPU_COUNT(ret_before) == 1)
		return false;
	CPU_ZERO(ret_now);
	CPU_SET((unsigned int)cpu, ret_now);
	return sched_setaffinity(tid, sizeof(*ret_now), ret_now) == 0;
}

/* Unless somebody else has said meanwhile where it shall run. */
static void unbind(pid_t tid, const cpu_set_t *before, const cpu_set_t *bound)
{
	cpu_set_t now;

	if (!sched_getaffinity(tid, sizeof(now), &now) && CPU_EQUAL(&now, bound))
		(void)sched_setaffinity(tid, sizeof(*before), before); /* fails when it is gone */
}

long beside_let_go(int request, pid_t tid, int signo)
{
	cpu_set_t before, bound;
	bool is_bound = bind_to(sched_getcpu(), tid, &before, &bound);
	long r = ptrace(request, tid, NULL, (void *)(intptr_t)signo);

	if (is_bound)
		unbind(tid, &before, &bound);
	return r;
}
