/* SPDX-License-Identifier: MIT */
#include "record/ptrace/cpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Well below the usual limit of 1024 descriptors. */
#define OPEN_MAX_METERS 512u

/* Of the kernel's three clocks of a process, the precise one. */
#define CLOCK_OF_SCHEDULER 2u

static uint64_t process_ns(pid_t pid)
{
	/* As clock_getcpuclockid() makes it, which asks the kernel each time whether it exists. */
	clockid_t id = (clockid_t)(~(unsigned int)pid << 3 | CLOCK_OF_SCHEDULER);
	struct timespec ts;
	uint64_t ns;

	if (clock_gettime(id, &ts) < 0 || clock_ns_from_timespec(&ts, &ns) < 0)
		return 0;
	return ns;
}

static void open_meter(struct cpu_meters *all, struct cpu_meter *m, pid_t pid, pid_t tid)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	if (all->nr_open < OPEN_MAX_METERS)
		m->fd = open(name, O_RDONLY | O_CLOEXEC);
	else
		m->fd = -1;
	m->is_open = m->fd >= 0;
	m->has_failed = !m->is_open;
	all->nr_open += m->is_open;
}

uint64_t cpu_read_ns(struct cpu_meters *all, struct cpu_meter *m, pid_t pid, pid_t tid)
{
	char text[64];
	ssize_t n;

	if (!m->has_company)
		return process_ns(pid);
	if (!m->is_open && !m->has_failed)
		open_meter(all, m, pid, tid);
	if (!m->is_open)
		return 0;
	/* Time on a processor, time in a queue for one, number of turns. */
	n = pread(m->fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = 0;
	return strtoull(text, NULL, 10);
}

void cpu_close(struct cpu_meters *all, struct cpu_meter *m)
{
	if (m->is_open) {
		(void)close(m->fd); /* only read from */
		all->nr_open--;
	}
	*m = (struct cpu_meter){ .has_company = m->has_company };
}
