/* SPDX-License-Identifier: MIT */
/*
 * Calls in a loop, for bench/record: nothing but the call, so that what a
 * recorder adds to each is seen at its largest. Each thread makes N of them.
 *
 *   record_calls getppid|pread|write|open N FILE [THREADS]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE_BYTES 4096
#define FILE_BYTES (1 << 20)
#define THREADS_MAX 64

struct load {
	const char *file;
	uint64_t nr;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* No two blocks are alike, so that a recorder cannot store them once. */
static void fill(unsigned char *p, uint64_t seed)
{
	uint64_t i, x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

	for (i = 0; i < SIZE_BYTES; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(p + i, &x, sizeof(x));
	}
}

/* Each thread has a descriptor of its own: else the kernel's count of its users is what they wait for. */
static int open_file(const struct load *l)
{
	int fd = open(l->file, O_RDWR | O_CREAT, 0600);

	if (fd < 0)
		die(l->file);
	return fd;
}

static void make_file(const struct load *l)
{
	unsigned char buf[SIZE_BYTES];
	int fd = open_file(l);
	uint64_t i;

	for (i = 0; i < FILE_BYTES / SIZE_BYTES; i++) {
		fill(buf, i);
		if (pwrite(fd, buf, SIZE_BYTES, (off_t)(i * SIZE_BYTES)) != SIZE_BYTES)
			die("pwrite");
	}
	close(fd);
}

/* What the kernel answers at once. */
static void *do_getppid(void *of)
{
	const struct load *l = of;
	uint64_t i;

	for (i = 0; i < l->nr; i++)
		(void)syscall(SYS_getppid);
	return NULL;
}

static void *do_pread(void *of)
{
	const struct load *l = of;
	unsigned char buf[SIZE_BYTES];
	int fd = open_file(l);
	uint64_t i;

	for (i = 0; i < l->nr; i++) {
		if (pread(fd, buf, SIZE_BYTES, (off_t)(i * SIZE_BYTES % FILE_BYTES)) != SIZE_BYTES)
			die("pread");
	}
	close(fd);
	return NULL;
}

static void *do_write(void *of)
{
	const struct load *l = of;
	unsigned char buf[SIZE_BYTES];
	int fd = open_file(l);
	uint64_t i;

	for (i = 0; i < l->nr; i++) {
		if (i * SIZE_BYTES % FILE_BYTES == 0 && lseek(fd, 0, SEEK_SET) < 0)
			die("lseek");
		fill(buf, i);
		if (write(fd, buf, SIZE_BYTES) != SIZE_BYTES)
			die("write");
	}
	close(fd);
	return NULL;
}

static void *do_open(void *of)
{
	const struct load *l = of;
	uint64_t i;

	for (i = 0; i < l->nr; i++) {
		int fd = open(l->file, O_RDONLY);

		if (fd < 0)
			die(l->file);
		close(fd);
	}
	return NULL;
}

static const struct {
	const char *name;
	void *(*run)(void *of);
} kinds[] = {
	{ "getppid", do_getppid },
	{ "pread", do_pread },
	{ "write", do_write },
	{ "open", do_open },
};

static void run_threads(void *(*run)(void *of), struct load *l, unsigned int nr_threads)
{
	pthread_t threads[THREADS_MAX];
	unsigned int i;

	if (nr_threads == 1) {
		run(l);
		return;
	}
	for (i = 0; i < nr_threads; i++) {
		errno = pthread_create(&threads[i], NULL, run, l);
		if (errno)
			die("pthread_create");
	}
	for (i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const size_t nr_kinds = sizeof(kinds) / sizeof(kinds[0]);
	unsigned long nr_threads = argc > 4 ? strtoul(argv[4], NULL, 10) : 1;
	size_t kind = 0;
	struct load l;

	while (argc > 3 && kind < nr_kinds && strcmp(argv[1], kinds[kind].name) != 0)
		kind++;
	if (argc < 4 || argc > 5 || kind == nr_kinds || !nr_threads || nr_threads > THREADS_MAX) {
		fprintf(stderr, "usage: record_calls getppid|pread|write|open N FILE [THREADS]\n");
		return 2;
	}
	l.nr = strtoull(argv[2], NULL, 10);
	l.file = argv[3];
	make_file(&l);
	run_threads(kinds[kind].run, &l, (unsigned int)nr_threads);
	return 0;
}
