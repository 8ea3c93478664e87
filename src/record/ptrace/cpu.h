/* SPDX-License-Identifier: MIT */
/*
 * The processor time of a stopped thread. A process that never had a second
 * thread is asked by its clock (0.4 us, where a recorded call costs 20 and more);
 * the kernel shows no clock of a single thread to other processes, so others are
 * read from /proc, through a descriptor that stays open (1 us). The number of
 * these is limited; for threads beyond it the time is not known. Belongs to the
 * tracer's thread.
 */
#ifndef RECORD_PTRACE_CPU_H
#define RECORD_PTRACE_CPU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of one thread; zeroed at first. */
struct cpu_meter {
	bool has_company; /* its process has, or had, other threads */
	bool is_open, has_failed;
	int fd; /* when open */
};

struct cpu_meters {
	unsigned int nr_open;
};

/* 0: not known. */
uint64_t cpu_read_ns(struct cpu_meters *all, struct cpu_meter *m, pid_t pid, pid_t tid);
/* The thread is gone, or has another number now. */
void cpu_close(struct cpu_meters *all, struct cpu_meter *m);

#endif
