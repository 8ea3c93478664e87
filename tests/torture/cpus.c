/* SPDX-License-Identifier: MIT */
/* A program that keeps an eye on where it may run: a recorder may move it, but not so that it shows. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

static void must_be(const cpu_set_t *want, const char *who)
{
	cpu_set_t is;

	must(sched_getaffinity(0, sizeof(is), &is), "sched_getaffinity");
	if (!CPU_EQUAL(&is, want)) {
		errno = 0;
		give_up("%s may run on %d CPUs instead of %d", who, CPU_COUNT(&is),
			CPU_COUNT(want));
	}
}

/* As the kernel writes it: words of 32 bits, the highest first. */
static void status_must_be(const cpu_set_t *want)
{
	static const char key[] = "Cpus_allowed:\t";
	int fd = (int)must(open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC), "status");
	char text[4096];
	ssize_t n = must(read(fd, text, sizeof(text) - 1), "read");
	unsigned int nr = 0, bit;
	const char *p;

	text[n] = 0;
	(void)close(fd);
	p = strstr(text, key);
	if (!p)
		give_up("no such line");
	for (p += strlen(key); *p && *p != '\n'; p++) {
		unsigned int digit =
			*p == ',' ? 0 : (unsigned int)(*p > '9' ? *p - 'a' + 10 : *p - '0');

		for (bit = 0; bit < 4; bit++)
			nr += digit >> bit & 1;
	}
	if (nr < (unsigned int)CPU_COUNT(want)) { /* CPUs that are not there may be in it */
		errno = 0;
		give_up("the status speaks of %u CPUs instead of %d", nr, CPU_COUNT(want));
	}
}

static void child(const cpu_set_t *want, bool by_status)
{
	pid_t pid = (pid_t)must(fork(), "fork");
	int status;

	if (!pid) {
		if (by_status)
			status_must_be(want);
		must_be(want, "a child");
		_exit(0);
	}
	must(waitpid(pid, &status, 0), "waitpid");
	if (status)
		exit(99);
}

static void *thread_main(void *p)
{
	must_be(p, "a thread");
	return NULL;
}

static void thread(cpu_set_t *want)
{
	pthread_t t;

	if (pthread_create(&t, NULL, thread_main, want) || pthread_join(t, NULL))
		give_up("thread");
}

/* On the last of its CPUs alone, and then on all again. */
static void stay_on_one(const cpu_set_t *all, unsigned int seed)
{
	cpu_set_t one;
	unsigned int cpu = CPU_SETSIZE - 1;

	while (!CPU_ISSET(cpu, all))
		cpu--;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	must(sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
	must_be(&one, "who has chosen one CPU");
	some_calls("cpus", 3, seed);
	must_be(&one, "who has chosen one CPU");
	must(sched_setaffinity(0, sizeof(*all), all), "sched_setaffinity");
}

struct worker {
	volatile pid_t tid;
	volatile bool end;
};

static void *work(void *p)
{
	struct worker *w = p;

	w->tid = gettid();
	while (!w->end)
		(void)!fchdir(-1); /* fails, and is never the agent's */
	return NULL;
}

/* Another thread is told where to run, at any moment, and shall do so. */
static void place_other(const cpu_set_t *all)
{
	struct worker w = { .tid = 0 };
	unsigned int i, cpu = 0;
	cpu_set_t one, is;
	pthread_t t;

	while (!CPU_ISSET(cpu, all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (pthread_create(&t, NULL, work, &w))
		give_up("thread");
	while (!w.tid)
		(void)usleep(100);
	for (i = 0; i < 300; i++) {
		const cpu_set_t *want = i % 2 ? all : &one;

		must(sched_setaffinity(w.tid, sizeof(*want), want), "sched_setaffinity");
		(void)usleep(100);
		must(sched_getaffinity(w.tid, sizeof(is), &is), "sched_getaffinity");
		if (!CPU_EQUAL(&is, want)) {
			errno = 0;
			give_up("the other thread may run on %d CPUs instead of %d", CPU_COUNT(&is),
				CPU_COUNT(want));
		}
	}
	w.end = true;
	(void)pthread_join(t, NULL);
}

static void *exec_main(void *p)
{
	char **argv = p;

	execv(argv[0], argv);
	give_up("execv");
}

/* cpus-exec PROGRAM WORD...: a thread that is not the first becomes that program. */
int mode_cpus_exec(int argc, char **argv)
{
	pthread_t t;

	(void)argc;
	if (pthread_create(&t, NULL, exec_main, argv) || pthread_join(t, NULL))
		give_up("thread");
	return 0;
}

/* cpus N MANY: N rounds; it may run on so many CPUs. */
int mode_cpus(int argc, char **argv)
{
	unsigned long nr = argc > 0 ? strtoul(argv[0], NULL, 10) : 50, i;
	cpu_set_t want;

	must(sched_getaffinity(0, sizeof(want), &want), "sched_getaffinity");
	if (argc > 1 && CPU_COUNT(&want) != (int)strtol(argv[1], NULL, 10)) {
		errno = 0;
		give_up("%d CPUs instead of %s", CPU_COUNT(&want), argv[1]);
	}
	place_other(&want);
	for (i = 0; i < nr; i++) {
		some_calls("cpus", 2, (unsigned int)i);
		must_be(&want, "the program");
		child(&want, i % 2);
		stay_on_one(&want, (unsigned int)i);
		must_be(&want, "the program");
		if (i >= nr / 2)
			thread(&want);
	}
	status_must_be(&want);
	return 0;
}
