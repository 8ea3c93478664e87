/* SPDX-License-Identifier: MIT */
/*
 * usage: appends HOW NR CALLS
 * NR writers write CALLS records each, of different lengths, to ./log, and look at it in between.
 * HOW: p, processes with O_APPEND; t, threads with O_APPEND; f, threads with one descriptor and
 * O_APPEND; o, processes that share one offset.
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS_MAX 64

static char how;
static int shared, nr_calls;

static void look(int fd, unsigned int chance)
{
	struct stat st;
	char bytes[16];

	switch (chance % 5) {
	case 0:
		(void)!fstat(fd, &st);
		break;
	case 1:
		(void)!stat("log", &st);
		break;
	case 2:
		(void)!lseek(fd, 0, how == 'f' ? SEEK_END : SEEK_CUR);
		break;
	case 3:
		(void)!pread(fd, bytes, sizeof(bytes), (off_t)(chance % 300));
		break;
	default:
		break;
	}
}

static void *writes(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg, seed = me + 1;
	int fd = how == 'f' || how == 'o' ? shared : open("log", O_RDWR | O_APPEND | O_CLOEXEC);

	for (int i = 0; i < nr_calls; i++) {
		char record[64];
		int len = snprintf(record, sizeof(record), "<%u:%d:%.*s>", me, i,
				   (int)(rand_r(&seed) % 20), "--------------------");

		if (write(fd, record, (size_t)len) != len)
			err(1, "log");
		look(fd, (unsigned int)rand_r(&seed));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int nr = argc == 4 ? atoi(argv[2]) : 0;
	pthread_t threads[WRITERS_MAX];

	if (nr < 1 || nr > WRITERS_MAX)
		errx(2, "usage: appends HOW NR CALLS");
	how = argv[1][0];
	nr_calls = atoi(argv[3]);
	shared = open("log", O_RDWR | O_CREAT | O_CLOEXEC | (how == 'o' ? 0 : O_APPEND), 0644);
	if (shared < 0)
		err(1, "log");
	for (int i = 0; i < nr; i++) {
		if (how == 't' || how == 'f') {
			if (pthread_create(&threads[i], NULL, writes, (void *)(uintptr_t)i))
				errx(1, "no thread");
		} else if (!fork()) {
			writes((void *)(uintptr_t)i);
			_exit(0);
		}
	}
	for (int i = 0; i < nr; i++) {
		int status = 0;

		if (how == 't' || how == 'f')
			(void)pthread_join(threads[i], NULL);
		else if (wait(&status) < 0 || status)
			errx(1, "a writer failed");
	}
	return 0;
}
