/* SPDX-License-Identifier: MIT */
/*
 * Four threads meet at a barrier again and again, then take turns under a
 * lock. Where a thread reads says when: at the number of the meeting, later at
 * TURNS_AT plus the number of the turn. Who has the lock lets others come and
 * wait, and who had it lets them have it: else a thread takes all its turns at once.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "meetings.h"

static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int fd, turn;

static void look(off_t at)
{
	char byte;

	if (pread(fd, &byte, 1, at) != 1) {
		perror("meetings: pread");
		exit(1);
	}
}

static void *work(void *arg)
{
	int more = *(int *)arg;

	for (int i = 0; i < NR_MEETINGS; i++) {
		for (int k = 0; k <= more; k++)
			look(i);
		pthread_barrier_wait(&barrier);
	}
	for (int i = 0; i < NR_TURNS / NR_THREADS; i++) {
		pthread_mutex_lock(&lock);
		look(TURNS_AT + turn++);
		sched_yield();
		pthread_mutex_unlock(&lock);
		usleep(10);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[NR_THREADS];
	int more[NR_THREADS];

	fd = open("meetings", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, TURNS_AT + NR_TURNS) < 0 ||
	    pthread_barrier_init(&barrier, NULL, NR_THREADS)) {
		perror("meetings");
		return 1;
	}
	for (int i = 0; i < NR_THREADS; i++) {
		more[i] = i;
		if (pthread_create(&threads[i], NULL, work, &more[i])) {
			perror("meetings: pthread_create");
			return 1;
		}
	}
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
