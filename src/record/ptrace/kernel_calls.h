/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own count of the system calls of a thread: a perf event on the tracepoint
 * raw_syscalls:sys_enter. It needs root. While one is open, all threads of the
 * machine take the kernel's slow path into calls.
 */
#ifndef RECORD_PTRACE_KERNEL_CALLS_H
#define RECORD_PTRACE_KERNEL_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* The number of the tracepoint, or -errno and why it cannot be had. */
MUST_CHECK int kernel_calls_find(struct err *err);
/*
 * Counts the calls that the thread makes from now on, those that kernel_calls_counts()
 * leaves out excepted; a descriptor, or -errno. It can be read when the thread has ended, too.
 */
MUST_CHECK int kernel_calls_open(int tracepoint, pid_t tid);
bool kernel_calls_read(int fd, uint64_t *ret);
/* While it is off, calls do not count; the thread is stopped. */
void kernel_calls_turn(int fd, bool on);

/*
 * Whether a call with this row counts: what the agent asks the kernel for itself, unseen
 * by the tracer, does not, nor does restart_syscall, which the kernel makes.
 */
struct row;
bool kernel_calls_counts(const struct row *row);

#endif
