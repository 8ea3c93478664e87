/* SPDX-License-Identifier: MIT */
/*
 * usage: shared_pipes threads|processes [FIFO]
 * Four writers and four readers of one pipe, or of one FIFO that is opened for each of them. First one
 * writer hands out numbers, as to a pool of workers; then all write messages of different lengths,
 * which the readers take in parts.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_EACH 4
#define NR_NUMBERS 300
#define NR_MESSAGES 100

static const char *fifo;
static int ends[2]; /* of the pipe */
static int fds[2 * NR_EACH]; /* of the FIFO */
static bool hand_out; /* one writes */

static void check(bool fine, const char *what)
{
	if (fine)
		return;
	perror(what);
	_exit(1);
}

/* All are open before any is closed: who opens a FIFO alone would wait for ever. */
static void open_all(void)
{
	int keep = open(fifo, O_RDWR);

	check(keep >= 0, "open");
	for (int i = 0; i < 2 * NR_EACH; i++) {
		fds[i] = open(fifo, i < NR_EACH ? O_RDONLY : O_WRONLY);
		check(fds[i] >= 0, "open");
	}
	close(keep);
}

static void close_all_but(int mine)
{
	for (int i = 0; i < 2 * NR_EACH; i++)
		if (i != mine)
			close(fds[i]);
}

static int begin(int end, int number)
{
	return fifo ? fds[number + (end ? NR_EACH : 0)] : ends[end];
}

static void *read_all(void *arg)
{
	int me = *(int *)arg, fd = begin(0, me);
	ssize_t n;

	do {
		char b[256];
		struct iovec v[2] = { { b, 5 }, { b + 5, 90 } };

		if (hand_out)
			n = read(fd, b, sizeof(int));
		else
			n = me & 1 ? readv(fd, v, 2) : read(fd, b, 60);
		check(n >= 0, "read");
	} while (n > 0);
	if (fifo)
		close(fd);
	return NULL;
}

static void *write_all(void *arg)
{
	int me = *(int *)arg, fd = begin(1, me);
	char b[256];

	for (int i = 0; hand_out && !me && i < NR_NUMBERS; i++)
		check(write(fd, &i, sizeof(i)) == sizeof(i), "write");
	for (int i = 0; !hand_out && i < NR_MESSAGES; i++) {
		int n = snprintf(b, sizeof(b), "%d from %d: %*s", i, me, i, "");
		struct iovec v[2] = { { b, 3 }, { b + 3, (size_t)n - 3 } };

		check((i & 1 ? writev(fd, v, 2) : write(fd, b, (size_t)n)) == n, "write");
	}
	if (fifo)
		close(fd);
	return NULL;
}

static void with_threads(void)
{
	pthread_t threads[2 * NR_EACH];
	int numbers[2 * NR_EACH];

	for (int i = 0; i < 2 * NR_EACH; i++) {
		numbers[i] = i % NR_EACH;
		check(!pthread_create(&threads[i], NULL, i < NR_EACH ? read_all : write_all,
				      &numbers[i]),
		      "pthread_create");
	}
	for (int i = NR_EACH; i < 2 * NR_EACH; i++)
		pthread_join(threads[i], NULL);
	if (!fifo)
		close(ends[1]);
	for (int i = 0; i < NR_EACH; i++)
		pthread_join(threads[i], NULL);
	if (!fifo)
		close(ends[0]);
}

static void with_processes(void)
{
	int status;

	for (int i = 0; i < 2 * NR_EACH; i++) {
		int number = i % NR_EACH;

		if (fork())
			continue;
		if (fifo)
			close_all_but(i);
		else
			close(ends[i < NR_EACH]);
		(void)(i < NR_EACH ? read_all : write_all)(&number);
		_exit(0);
	}
	if (fifo) {
		close_all_but(-1);
	} else {
		close(ends[0]);
		close(ends[1]);
	}
	while (wait(&status) > 0)
		check(!status, "a process");
}

int main(int argc, char **argv)
{
	bool threads = argc > 1 && !strcmp(argv[1], "threads");

	fifo = argc > 2 ? argv[2] : NULL;
	for (int i = 0; i < 2; i++) {
		hand_out = !i;
		check(fifo ? i || !mkfifo(fifo, 0600) : !pipe(ends), "pipe");
		if (fifo)
			open_all();
		if (threads)
			with_threads();
		else
			with_processes();
	}
	return 0;
}
