/* SPDX-License-Identifier: MIT */
/*
 * Core dumps. The kernel writes the memory that the agent shares with us into them, and
 * makes all of it for that: half a gibibyte, nearly all of which was never used. So the process is made to say
 * that it is not to be dumped, when it stops for a signal that will do that and not before: most
 * never do.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "record/agent/inside.h"

static bool dumps_core(int signo)
{
	switch (signo) {
	case SIGQUIT:
	case SIGILL:
	case SIGTRAP:
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGSEGV:
	case SIGXCPU:
	case SIGXFSZ:
	case SIGSYS:
		return true;
	}
	return false;
}

void dump_leave_out(struct tracer *tr, struct tracee *t)
{
	struct remote r = { tr->agent, t, outlive_remote(tr->agent) };
	const struct agent_space *space = t->agent->space;
	unsigned int i;
	siginfo_t si;

	/* An execve that has failed too late ends a process whose memory is gone. */
	if (!dumps_core(t->delivered) || !interrupts_is_deadly(t, t->delivered) ||
	    !agent_is_in(tr, t) || ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) < 0)
		return;
	for (i = 0; i < space->nr_views; i++) /* else the dump is large */
		(void)remote_call(&r, SYS_madvise,
				  (uint64_t[]){ space->views[i].remote,
						slots_view_bytes(&space->views[i]), MADV_DONTDUMP,
						0, 0, 0 });
	/* The stop is another one now; what it is for is still the same. */
	(void)ptrace(PTRACE_SETSIGINFO, t->tid, NULL, &si); /* fails only when it is gone */
}
