/* SPDX-License-Identifier: MIT */
/*
 * usage: scaled_files create|copy DIR FILES THREADS
 *
 * Like Filebench's createfiles and copyfiles, with direct I/O: threads that share out a number of
 * files, each of 4 to 28 KiB. `create` makes them in DIR/set, a directory for each hundred of
 * them; `copy` copies those to DIR/copy. Its time depends on the storage alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096
#define WIDTH 100 /* files of a directory */
#define BUFFER (1 << 20)

static const char *dir;
static unsigned int nr_files;
static bool copies;
static _Atomic unsigned int next;

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "scaled_files: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put_path(char *out, size_t size, const char *set, unsigned int n)
{
	if (snprintf(out, size, "%s/%s/%u/%u", dir, set, n / WIDTH, n) >= (int)size)
		die("path too long");
}

static int open_file(const char *set, unsigned int n, int flags)
{
	char path[512];
	int fd;

	put_path(path, sizeof(path), set, n);
	fd = open(path, flags | O_DIRECT | O_CLOEXEC, 0644);
	if (fd < 0)
		die(path);
	return fd;
}

static size_t size_of(unsigned int n)
{
	return (size_t)(1 + (n * 2654435761u >> 16) % 7) * BLOCK;
}

static void *work(void *arg)
{
	unsigned int n;
	void *buf;

	(void)arg;
	if (posix_memalign(&buf, BLOCK, BUFFER))
		die("no memory");
	memset(buf, 'x', BUFFER);
	while ((n = atomic_fetch_add(&next, 1)) < nr_files) {
		ssize_t len = (ssize_t)size_of(n);
		int fd;

		if (copies) {
			fd = open_file("set", n, O_RDONLY);
			len = read(fd, buf, BUFFER);
			if (len < 0)
				die("read");
			(void)close(fd);
		}
		fd = open_file(copies ? "copy" : "set", n, O_WRONLY | O_CREAT | O_EXCL);
		if (write(fd, buf, (size_t)len) != len)
			die("write");
		(void)close(fd);
	}
	free(buf);
	return NULL;
}

static void make_dirs(const char *set)
{
	char path[512];

	if (snprintf(path, sizeof(path), "%s/%s", dir, set) >= (int)sizeof(path))
		die("path too long");
	if (mkdir(path, 0755) < 0)
		die(path);
	for (unsigned int n = 0; n < nr_files; n += WIDTH) {
		if (snprintf(path, sizeof(path), "%s/%s/%u", dir, set, n / WIDTH) >=
		    (int)sizeof(path))
			die("path too long");
		if (mkdir(path, 0755) < 0)
			die(path);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[256];
	unsigned int i, nr;

	if (argc != 5 || (strcmp(argv[1], "create") != 0 && strcmp(argv[1], "copy") != 0)) {
		fprintf(stderr, "usage: scaled_files create|copy DIR FILES THREADS\n");
		return 2;
	}
	copies = !strcmp(argv[1], "copy");
	dir = argv[2];
	nr_files = (unsigned int)strtoul(argv[3], NULL, 10);
	nr = (unsigned int)strtoul(argv[4], NULL, 10);
	if (!nr || nr > sizeof(threads) / sizeof(threads[0])) {
		fprintf(stderr, "scaled_files: 1 to 256 threads\n");
		return 2;
	}
	make_dirs(copies ? "copy" : "set");
	for (i = 0; i < nr; i++) {
		errno = pthread_create(&threads[i], NULL, work, NULL);
		if (errno)
			die("cannot start a thread");
	}
	for (i = 0; i < nr; i++)
		(void)pthread_join(threads[i], NULL);
	return 0;
}
