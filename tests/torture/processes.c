/* SPDX-License-Identifier: MIT */
/* Many processes, by every way that makes one. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

#define ALIVE_MAX 150

static void wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			give_up("waitpid");
	}
	if (status) {
		errno = 0;
		give_up("a child ended with %#x", (unsigned int)status);
	}
}

/* processes N: N processes one after another, ten at a time. */
int mode_processes(int argc, char **argv)
{
	unsigned long nr = argc > 0 ? strtoul(argv[0], NULL, 10) : 2000, i;
	pid_t pids[10];

	for (i = 0; i < nr; i++) {
		if (i >= 10)
			wait_for(pids[i % 10]);
		pids[i % 10] = (pid_t)must(fork(), "fork");
		if (!pids[i % 10]) {
			some_calls("shared", 2, (unsigned int)i);
			_exit(0);
		}
	}
	for (i = nr < 10 ? 0 : nr - 10; i < nr; i++)
		wait_for(pids[i % 10]);
	return 0;
}

static __attribute__((noreturn)) void call_without_end(void)
{
	char byte;
	int fd = (int)must(open("/dev/zero", O_RDONLY | O_CLOEXEC), "zero");

	for (;;)
		must(read(fd, &byte, 1), "read");
}

/* crowd N: a process makes some calls while N younger ones make calls all the time. */
int mode_crowd(int argc, char **argv)
{
	unsigned long nr = argc > 0 ? strtoul(argv[0], NULL, 10) : 12, i;
	pid_t *pids = calloc(nr, sizeof(*pids)), worker = (pid_t)must(fork(), "fork");

	if (!worker) {
		usleep(50000);
		some_calls("crowd", 20, 1);
		_exit(0);
	}
	for (i = 0; i < nr; i++) {
		pids[i] = (pid_t)must(fork(), "fork");
		if (!pids[i])
			call_without_end();
	}
	wait_for(worker);
	for (i = 0; i < nr; i++) {
		must(kill(pids[i], SIGKILL), "kill");
		must(waitpid(pids[i], NULL, 0), "waitpid");
	}
	free(pids);
	return 0;
}

/* shared-files: another process has the same descriptors, and opens none: a number that is free stays so. */
int mode_shared_files(int argc, char **argv)
{
	_Atomic int *state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = (int)must(open("/dev/null", O_RDONLY | O_CLOEXEC), "null"), nr_taken = 0, got, i;
	pid_t pid = (pid_t)must(syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0), "clone");

	(void)argc;
	(void)argv;
	if (!pid) {
		while (!*state)
			;
		for (i = 0; i < 200; i++)
			(void)getppid();
		*state = 2;
		_exit(0);
	}
	close(fd);
	for (i = 0; i < 2000 || *state != 2; i++) {
		if (i == 1000)
			*state = 1;
		got = open("/dev/null", O_RDONLY | O_CLOEXEC);
		nr_taken += got != fd;
		nr_taken += close(got) < 0;
	}
	wait_for(pid);
	return nr_taken != 0;
}

static void bomb(unsigned int depth, _Atomic int *alive)
{
	pid_t pids[2] = { 0, 0 };
	int i;

	some_calls("shared", 1, depth);
	for (i = 0; i < 2 && depth; i++) {
		/* Both at once while there is room, else one after the other. */
		if (i && *alive > ALIVE_MAX) {
			wait_for(pids[0]);
			pids[0] = 0;
		}
		++*alive;
		pids[i] = (pid_t)must(fork(), "fork");
		if (!pids[i]) {
			bomb(depth - 1, alive);
			--*alive;
			_exit(0);
		}
	}
	for (i = 0; i < 2; i++) {
		if (pids[i])
			wait_for(pids[i]);
	}
}

/* bomb DEPTH: each process makes two, down to this depth: 2^(DEPTH + 1) - 1 in all. */
int mode_bomb(int argc, char **argv)
{
	_Atomic int *alive = mmap(NULL, sizeof(*alive), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (alive == MAP_FAILED)
		give_up("mmap");
	bomb(argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 8, alive);
	return 0;
}

static void *storm(void *arg)
{
	unsigned long nr = *(unsigned long *)arg;

	while (nr--) {
		pid_t pid = (pid_t)must(vfork(), "vfork");

		if (!pid)
			exec_again("calls", "1");
		wait_for(pid);
	}
	return NULL;
}

/* vfork THREADS N: threads that each vfork and execve N times. */
int mode_vfork(int argc, char **argv)
{
	unsigned long nr_threads = argc > 0 ? strtoul(argv[0], NULL, 10) : 4, i;
	unsigned long nr = argc > 1 ? strtoul(argv[1], NULL, 10) : 50;
	pthread_t t[16];

	if (nr_threads > 16)
		nr_threads = 16;
	for (i = 0; i < nr_threads; i++) {
		errno = pthread_create(&t[i], NULL, storm, &nr);
		if (errno)
			give_up("pthread_create");
	}
	for (i = 0; i < nr_threads; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* daemon MS: the command ends with 3 at once, its grandchild works that much later. */
int mode_daemon(int argc, char **argv)
{
	unsigned long late_ms = argc > 0 ? strtoul(argv[0], NULL, 10) : 300;

	if (must(fork(), "fork"))
		_exit(3);
	must(setsid(), "setsid");
	if (must(fork(), "fork"))
		_exit(4);
	usleep((useconds_t)late_ms * 1000);
	some_calls("calls", 100, 1);
	_exit(5);
}

/* family N: N children that work until they are killed; prints their numbers, waits, ends with 6. */
int mode_family(int argc, char **argv)
{
	unsigned long nr = argc > 0 ? strtoul(argv[0], NULL, 10) : 4, i;

	for (i = 0; i < nr; i++) {
		pid_t pid = (pid_t)must(fork(), "fork");
		char file[32];

		if (!pid) {
			snprintf(file, sizeof(file), "f%lu", i);
			for (;;) {
				some_calls(file, 16, (unsigned int)i);
				usleep(1000);
			}
		}
		printf("%d\n", (int)pid);
	}
	fflush(stdout);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return 6;
}
