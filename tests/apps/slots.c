/* SPDX-License-Identifier: MIT */
/*
 * Slots of a table, each with its lock: threads make, fill, rename, read and
 * remove what others made. What is replayed without its order goes wrong.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 4, SLOTS = 5, ROUNDS = 60 };

static struct {
	pthread_mutex_t lock;
	unsigned long nr_used;
} slots[SLOTS];

static void step(unsigned int slot, unsigned long nr)
{
	char from[32], to[32], text[64];
	struct stat st;
	int fd;

	snprintf(from, sizeof(from), "slot%u.%lu", slot, nr);
	snprintf(to, sizeof(to), "slot%u.%lu", slot, nr + 1);
	fd = open(from, O_RDWR | O_APPEND);
	if (fd < 0 && nr % 8 == 0)
		fd = open(from, O_RDWR | O_CREAT | O_EXCL, 0644);
	if (fd < 0 || pread(fd, text, sizeof(text), 0) < 0)
		abort();
	if (write(fd, to, 6 + nr % 3) < 0 || fstat(fd, &st) < 0 || close(fd) < 0 ||
	    rename(from, to) < 0)
		abort();
	if (nr % 8 == 7 && unlink(to) < 0)
		abort();
}

static void *work(void *arg)
{
	unsigned int state = (unsigned int)(size_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		unsigned int slot = (unsigned int)rand_r(&state) % SLOTS;

		pthread_mutex_lock(&slots[slot].lock);
		step(slot, slots[slot].nr_used++);
		pthread_mutex_unlock(&slots[slot].lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < SLOTS; i++)
		pthread_mutex_init(&slots[i].lock, NULL);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
