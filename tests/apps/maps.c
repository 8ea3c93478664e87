/* SPDX-License-Identifier: MIT */
/*
 * maps CASE [MIB]: stores through shared maps of files, in the working directory. Each case leaves files
 * that are right only if every store is there, and reads that are right only if each is in time.
 * With MIB, files are that much longer and begin full of data, so that the recorder does not compare them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096L

static long nr = 64; /* pages of a file */
static int is_full;

static long must(long r, const char *what)
{
	if (r < 0) {
		perror(what);
		exit(1);
	}
	return r;
}

static void fill(int fd, long bytes)
{
	static char chunk[1 << 20];
	long at, n;

	memset(chunk, 'f', sizeof(chunk));
	for (at = 0; at < bytes; at += n) {
		n = bytes - at < (long)sizeof(chunk) ? bytes - at : (long)sizeof(chunk);
		must(pwrite(fd, chunk, (size_t)n, at), "pwrite");
	}
}

static int make(const char *name, long bytes)
{
	int fd = (int)must(open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), name);

	must(ftruncate(fd, bytes), "ftruncate");
	if (is_full)
		fill(fd, bytes);
	return fd;
}

static char *map_at(int fd, long bytes, int prot, long offset)
{
	char *p = mmap(NULL, (size_t)bytes, prot, MAP_SHARED, fd, offset);

	must(p == MAP_FAILED ? -1 : 0, "mmap");
	return p;
}

static char *map(int fd, long bytes)
{
	return map_at(fd, bytes, PROT_READ | PROT_WRITE, 0);
}

/* What is there now goes to another file, by calls. */
static void copy(int fd, long offset, long bytes, const char *name)
{
	char *buf = malloc((size_t)bytes);
	int to = (int)must(open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644), name);

	must(pread(fd, buf, (size_t)bytes, offset), "pread");
	must(write(to, buf, (size_t)bytes), "write");
	close(to);
	free(buf);
}

/* Stores before and after reads, writes and truncation of the same file. */
static void mixed(void)
{
	int fd = make("f", nr * PAGE);
	char *p = map(fd, nr * PAGE);

	memset(p + 5000, 'a', 9000);
	copy(fd, 4990, 50, "seen1");
	p[7000] = 'x';
	must(pwrite(fd, "hello", 5, 20000), "pwrite");
	p[20002] = 'Z';
	copy(fd, 20000, 5, "seen2");
	must(ftruncate(fd, 10 * PAGE), "ftruncate");
	must(ftruncate(fd, nr * PAGE), "ftruncate");
	p[50 * PAGE] = 'q';
	must(fsync(fd), "fsync");
	p[0] = '!';
	must(msync(p, PAGE, MS_SYNC), "msync");
	must(munmap(p, nr * PAGE), "munmap");
	copy(fd, 0, nr * PAGE, "seen3");
}

/* A file that held something, mapped in part, with an odd size. */
static void old_file(void)
{
	int fd = (int)must(open("old", O_RDWR), "old");
	char *p = map_at(fd, 4 * PAGE, PROT_READ | PROT_WRITE, 2 * PAGE);

	p[10] ^= 1;
	p[3 * PAGE + 100] = 'e';
	close(fd);
	p[PAGE] = 'c'; /* the descriptor is gone */
}

static void forked(void)
{
	int fd = make("f", nr * PAGE), i;
	char *p = map(fd, nr * PAGE);

	p[0] = 'p';
	for (i = 1; i < 5; i++) {
		if (!must(fork(), "fork")) {
			memset(p + i * 10 * PAGE + 5, '0' + i, 6000);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	p[1] = 'P';
	copy(fd, 0, nr * PAGE, "seen");
}

static void moved(void)
{
	int fd = make("f", 2 * nr * PAGE);
	char *p = map(fd, nr * PAGE), *q;

	p[3] = 'a';
	p = mremap(p, nr * PAGE, 2 * nr * PAGE, MREMAP_MAYMOVE);
	must(p == MAP_FAILED ? -1 : 0, "mremap");
	p[100 * PAGE] = 'b';
	must(munmap(p + 10 * PAGE, 20 * PAGE), "munmap");
	p[40 * PAGE] = 'c';
	/* Something else takes its place. */
	q = mmap(p + 40 * PAGE, 10 * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	must(q == MAP_FAILED ? -1 : 0, "mmap");
	q[0] = 'X';
	p[60 * PAGE] = 'd';
	copy(fd, 0, 2 * nr * PAGE, "seen");
}

static void allowed(void)
{
	int fd = make("f", nr * PAGE);
	char *p = map_at(fd, nr * PAGE, PROT_READ, 0);

	must(pwrite(fd, "before", 6, 0), "pwrite");
	must(mprotect(p, nr * PAGE, PROT_READ | PROT_WRITE), "mprotect");
	p[5] = 'X';
	must(mprotect(p, nr * PAGE, PROT_READ), "mprotect");
	copy(fd, 0, 100, "seen");
}

static void replaced(void)
{
	int fd = make("f", nr * PAGE);
	char *p = map(fd, nr * PAGE);

	p[PAGE] = 'e';
	must(execlp("sh", "sh", "-c", "cat f >seen", (char *)NULL), "sh");
}

static void killed(void)
{
	int fd = make("f", nr * PAGE);
	char *p = map(fd, nr * PAGE);

	if (!must(fork(), "fork")) {
		p[PAGE] = 'k';
		raise(SIGKILL);
	}
	wait(NULL);
	p[2 * PAGE] = 's';
	abort();
}

static void *store_much(void *arg)
{
	char *p = arg;
	long i;

	for (i = 0; i < 20000; i++)
		p[i * 13 % PAGE] = (char)i;
	return NULL;
}

static void threads(void)
{
	int fd = make("f", nr * PAGE), i;
	char *p = map(fd, nr * PAGE), b[16];
	pthread_t t[4];

	for (i = 0; i < 4; i++)
		must(-pthread_create(&t[i], NULL, store_much, p + i * 2 * PAGE), "pthread_create");
	for (i = 0; i < 100; i++)
		must(pread(fd, b, sizeof(b), 40 * PAGE), "pread");
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	copy(fd, 0, 10 * PAGE, "seen");
}

/* Two maps of a file, of which one is made while the other is used; and a descriptor for the same number. */
static void twice(void)
{
	int fd = make("f", nr * PAGE), other;
	char *p = map_at(fd, 10 * PAGE, PROT_READ | PROT_WRITE, 5 * PAGE), *q;

	p[0] = '1';
	q = map(fd, nr * PAGE);
	p[PAGE] = '2';
	q[5 * PAGE + 1] = '3';
	q[30 * PAGE] = '4';
	must(munmap(p, 10 * PAGE), "munmap");
	q[6 * PAGE + 9] = '5';
	other = make("other", 100);
	must(dup2(other, fd), "dup2");
	must(pwrite(fd, "to the other", 12, 0), "pwrite");
	must(dup2((int)must(open("f", O_RDWR), "f"), fd), "dup2");
	q[7] = '6';
	copy(fd, 0, nr * PAGE, "seen");
}

static void in_memory(void)
{
	int fd = (int)must(memfd_create("m", 0), "memfd_create"), to;
	char *p;

	must(ftruncate(fd, 4 * PAGE), "ftruncate");
	p = map(fd, 4 * PAGE);
	memset(p + 100, 'm', 5000);
	to = make("seen", 0);
	must(sendfile(to, fd, NULL, 4 * PAGE), "sendfile");
}

/* Stores and reads in turn, in a map that takes long to compare. */
static void busy(void)
{
	const long pages = 8192;
	int fd = make("f", pages * PAGE), seen = make("seen", 0);
	char *p = map(fd, pages * PAGE), b[16];
	long i;

	for (i = 0; i < 400; i++) {
		memset(p + i * 20 * PAGE + i, 'a' + (int)(i % 26), 8);
		must(pread(fd, b, sizeof(b), i * 20 * PAGE + i), "pread");
		must(write(seen, b, sizeof(b)), "write");
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "mixed", mixed },	{ "old", old_file },	{ "forked", forked },
	{ "moved", moved },	{ "allowed", allowed }, { "replaced", replaced },
	{ "killed", killed },	{ "threads", threads }, { "twice", twice },
	{ "memfd", in_memory }, { "busy", busy },
};

int main(int argc, char **argv)
{
	size_t i;

	is_full = argc > 2;
	if (is_full)
		nr += strtol(argv[2], NULL, 10) * 256;
	for (i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: maps CASE [MIB]\n");
	return 2;
}
