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
	struct remote r = { t, outlive_remote(tr->agent) };
	siginfo_t si;

	/* An execve that has failed too late ends a process whose memory is gone. */
	if (!dumps_core(t->delivered) || !interrupts_is_deadly(t, t->delivered) ||
	    !agent_is_in(t) || ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &si) < 0)
		return;
	(void)remote_call(&r, SYS_madvise,
			  (uint64_t[]){ t->agent->space->image->remote, WIRE_IMAGE_BYTES,
					MADV_DONTDUMP, 0, 0, 0 }); /* else the dump is large */
	/* The stop is another one now; what it is for is still the same. */
	(void)ptrace(PTRACE_SETSIGINFO, t->tid, NULL, &si); /* fails only when it is gone */
}
