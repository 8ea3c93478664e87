/* SPDX-License-Identifier: MIT */
/*
 * Calls in a loop, for bench/record: nothing but the call, so that what a
 * recorder adds to each is seen at its largest.
 *
 *   record_calls pread|write|open N FILE
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE_BYTES 4096
#define FILE_BYTES (1 << 20)

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

static void do_pread(int fd, uint64_t nr)
{
	unsigned char buf[SIZE_BYTES];
	uint64_t i;

	for (i = 0; i < FILE_BYTES / SIZE_BYTES; i++) {
		fill(buf, i);
		if (pwrite(fd, buf, SIZE_BYTES, (off_t)(i * SIZE_BYTES)) != SIZE_BYTES)
			die("pwrite");
	}
	for (i = 0; i < nr; i++) {
		if (pread(fd, buf, SIZE_BYTES, (off_t)(i * SIZE_BYTES % FILE_BYTES)) != SIZE_BYTES)
			die("pread");
	}
}

static void do_write(int fd, uint64_t nr)
{
	unsigned char buf[SIZE_BYTES];
	uint64_t i;

	for (i = 0; i < nr; i++) {
		if (i * SIZE_BYTES % FILE_BYTES == 0 && lseek(fd, 0, SEEK_SET) < 0)
			die("lseek");
		fill(buf, i);
		if (write(fd, buf, SIZE_BYTES) != SIZE_BYTES)
			die("write");
	}
}

static void do_open(const char *file, uint64_t nr)
{
	uint64_t i;

	for (i = 0; i < nr; i++) {
		int fd = open(file, O_RDONLY);

		if (fd < 0)
			die(file);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	uint64_t nr;
	int fd;

	if (argc != 4) {
		fprintf(stderr, "usage: record_calls pread|write|open N FILE\n");
		return 2;
	}
	nr = strtoull(argv[2], NULL, 10);
	fd = open(argv[3], O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		die(argv[3]);
	if (!strcmp(argv[1], "pread"))
		do_pread(fd, nr);
	else if (!strcmp(argv[1], "write"))
		do_write(fd, nr);
	else
		do_open(argv[3], nr);
	return 0;
}
