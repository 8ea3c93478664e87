/* SPDX-License-Identifier: MIT */
/*
 * Where a thread goes on that was stopped. The kernel likes to wake it on an idle
 * CPU, and to wake that CPU costs more than all that a stop takes otherwise: 50 us
 * and more on a virtual machine. On the tracer's own CPU the thread takes over in the
 * very call that lets it go, and gives the CPU back with its next stop.
 *
 * So it is bound to that CPU for the moment in which it is woken. Then it may run
 * where it could before: the kernel moves it when it runs for long. If it is faster
 * than we are, it runs while it is bound: so whoever calls must know that it
 * does not look then at where it may run, and neither makes a child, which would be bound
 * for ever, nor gets another number.
 */
#ifndef RECORD_PTRACE_BESIDE_H
#define RECORD_PTRACE_BESIDE_H

#include <sys/types.h>

/* As ptrace() with a request that lets a thread go on. */
long beside_let_go(int request, pid_t tid, int signo);

#endif
