/* SPDX-License-Identifier: MIT */
/*
 * Calls in a loop, for bench/record: nothing but the call, so that what a
 * recorder adds to each is seen at its largest. Each thread makes N of them.
 *
 *   record_calls getppid|pread|write|open N FILE [THREADS [kept]]
 *
 * kept: and does for each what no recorder can do without, as cheaply as that can be
 * done: when the call began and ended, its arguments and its data go to a ring, which nobody reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SIZE_BYTES 4096
#define FILE_BYTES (1 << 20)
#define THREADS_MAX 64
/* As large as suits caches; a record and its data are at most half of it. */
#define RING_BYTES (1 << 20)

struct load {
	const char *file;
	uint64_t nr;
	bool is_kept;
};

/* Of one thread; without bytes nothing is kept. */
struct ring {
	unsigned char *bytes;
	uint64_t at;
};

struct record {
	uint64_t from, to, nr, args[3], ret, len_bytes;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static struct ring ring_for(const struct load *l)
{
	struct ring r = { .bytes = l->is_kept ? calloc(1, RING_BYTES) : NULL };

	if (l->is_kept && !r.bytes)
		die("calloc");
	return r;
}

static uint64_t counter(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
#endif
}

static uint64_t begin(const struct ring *r)
{
	return r->bytes ? counter() : 0;
}

static void end(struct ring *r, uint64_t from, long nr, int64_t ret, const void *data, size_t len)
{
	struct record rec = { .from = from, .nr = (uint64_t)nr, .ret = (uint64_t)ret };

	if (!r->bytes)
		return;
	rec.to = counter();
	rec.args[0] = (uintptr_t)data;
	rec.args[1] = rec.len_bytes = len;
	if (r->at + sizeof(rec) + len > RING_BYTES)
		r->at = 0;
	memcpy(r->bytes + r->at, &rec, sizeof(rec));
	if (len)
		memcpy(r->bytes + r->at + sizeof(rec), data, len);
	r->at += (sizeof(rec) + len + 63) / 64 * 64;
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
	struct ring r = ring_for(l);
	uint64_t i, from;

	for (i = 0; i < l->nr; i++) {
		from = begin(&r);
		end(&r, from, SYS_getppid, syscall(SYS_getppid), NULL, 0);
	}
	free(r.bytes);
	return NULL;
}

static void *do_pread(void *of)
{
	const struct load *l = of;
	struct ring r = ring_for(l);
	unsigned char buf[SIZE_BYTES];
	int fd = open_file(l);
	uint64_t i, from;

	for (i = 0; i < l->nr; i++) {
		from = begin(&r);
		if (pread(fd, buf, SIZE_BYTES, (off_t)(i * SIZE_BYTES % FILE_BYTES)) != SIZE_BYTES)
			die("pread");
		end(&r, from, SYS_pread64, SIZE_BYTES, buf, SIZE_BYTES);
	}
	free(r.bytes);
	close(fd);
	return NULL;
}

static void *do_write(void *of)
{
	const struct load *l = of;
	struct ring r = ring_for(l);
	unsigned char buf[SIZE_BYTES];
	int fd = open_file(l);
	uint64_t i, from;

	for (i = 0; i < l->nr; i++) {
		if (i * SIZE_BYTES % FILE_BYTES == 0 && lseek(fd, 0, SEEK_SET) < 0)
			die("lseek");
		fill(buf, i);
		from = begin(&r);
		if (write(fd, buf, SIZE_BYTES) != SIZE_BYTES)
			die("write");
		end(&r, from, SYS_write, SIZE_BYTES, buf, SIZE_BYTES);
	}
	free(r.bytes);
	close(fd);
	return NULL;
}

static void *do_open(void *of)
{
	const struct load *l = of;
	struct ring r = ring_for(l);
	uint64_t i, from;

	for (i = 0; i < l->nr; i++) {
		int fd;

		from = begin(&r);
		fd = open(l->file, O_RDONLY);
		if (fd < 0)
			die(l->file);
		end(&r, from, SYS_openat, fd, l->file, strlen(l->file) + 1);
		from = begin(&r);
		end(&r, from, SYS_close, close(fd), NULL, 0);
	}
	free(r.bytes);
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
	if (argc < 4 || argc > 6 || kind == nr_kinds || !nr_threads || nr_threads > THREADS_MAX ||
	    (argc > 5 && strcmp(argv[5], "kept") != 0)) {
		fprintf(stderr,
			"usage: record_calls getppid|pread|write|open N FILE [THREADS [kept]]\n");
		return 2;
	}
	l.nr = strtoull(argv[2], NULL, 10);
	l.file = argv[3];
	l.is_kept = argc > 5;
	make_file(&l);
	run_threads(kinds[kind].run, &l, (unsigned int)nr_threads);
	return 0;
}
