/* SPDX-License-Identifier: MIT */
/*
 * turns: two threads read a directory by one descriptor. One gets all entries, the other the end,
 * again and again. They pass the turn on without a call.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_FILES 1000
#define NR_ROUNDS 100

static int dir;
static atomic_int turn, nr_ended;

static void must(long r, const char *what)
{
	if (r < 0) {
		perror(what);
		exit(1);
	}
}

static void *list(void *arg)
{
	int me = arg != NULL;
	char entries[65536];
	long n;

	for (;;) {
		while (atomic_load(&turn) != me)
			sched_yield();
		if (atomic_load(&nr_ended) == NR_ROUNDS)
			break;
		n = syscall(SYS_getdents64, dir, entries, sizeof(entries));
		must(n, "getdents64");
		if (!n) {
			must(lseek(dir, 0, SEEK_SET), "lseek");
			atomic_fetch_add(&nr_ended, 1);
		}
		atomic_store(&turn, !me);
	}
	atomic_store(&turn, !me);
	return NULL;
}

int main(void)
{
	pthread_t other;
	char name[16];
	int i;

	must(mkdir("d", 0755), "d");
	for (i = 0; i < NR_FILES; i++) {
		(void)snprintf(name, sizeof(name), "d/file%d", i);
		must(creat(name, 0644), name);
	}
	dir = open("d", O_RDONLY | O_DIRECTORY);
	must(dir, "d");
	must(-pthread_create(&other, NULL, list, &dir), "pthread_create");
	(void)list(NULL);
	(void)pthread_join(other, NULL);
	return 0;
}
