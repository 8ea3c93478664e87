/* SPDX-License-Identifier: MIT */
/*
 * Pipes in every way that programs use them, each with files at its ends, so that
 * what went through them can be seen in the tree. Works in the cwd; fails loudly.
 * usage: pipes [NAME]...: these cases, all without.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "pipes: line %d: %s: %s\n", __LINE__, #what,               \
				strerror(errno));                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define BIG_BYTES (4 << 20)

static char block[BIG_BYTES];

static void fill(unsigned int seed)
{
	size_t i;

	for (i = 0; i < sizeof(block); i++)
		block[i] = (char)((seed = seed * 1103515245 + 12345) >> 16);
}

static int make_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0);
	return fd;
}

static void end_child(void)
{
	int status;

	CHECK(wait(&status) > 0 && status == 0);
}

static void write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		CHECK(done > 0);
		p += done;
		n -= (size_t)done;
	}
}

/* To its end, in pieces of that size. */
static void copy_to(int fd, const char *name, size_t piece)
{
	static char buf[1 << 20];
	int out = make_file(name);
	ssize_t n;

	while ((n = read(fd, buf, piece)) > 0)
		write_all(out, buf, (size_t)n);
	CHECK(n == 0);
	close(out);
}

/* One write that no pipe holds. */
static void big(void)
{
	int p[2];

	CHECK(!pipe(p));
	fill(1);
	if (!fork()) {
		close(p[0]);
		CHECK(write(p[1], block, BIG_BYTES) == BIG_BYTES);
		_exit(0);
	}
	close(p[1]);
	copy_to(p[0], "big", 7001);
	close(p[0]);
	end_child();
}

/* Several write whole records; the reader sees the end when the last has gone. */
static void writers(void)
{
	int p[2], i, k;

	CHECK(!pipe2(p, O_CLOEXEC));
	for (i = 0; i < 3; i++) {
		if (fork())
			continue;
		close(p[0]);
		for (k = 0; k < 60; k++) {
			char line[64];
			int n = snprintf(line, sizeof(line), "writer %d says %d\n", i, k);

			CHECK(write(p[1], line, (size_t)n) == n);
		}
		_exit(0); /* its end is closed by that */
	}
	close(p[1]);
	copy_to(p[0], "writers", 100);
	close(p[0]);
	for (i = 0; i < 3; i++)
		end_child();
}

static void splices(void)
{
	int in = make_file("splice.in"), out = make_file("splice.out"), p[2];
	off_t to = 4096, from = 0;
	ssize_t n;

	fill(2);
	write_all(in, block, 300000);
	CHECK(lseek(in, 0, SEEK_SET) == 0);
	CHECK(!pipe(p));
	while ((n = splice(in, NULL, p[1], NULL, 65536, 0)) > 0)
		while (n > 0) {
			ssize_t done = splice(p[0], NULL, out, NULL, (size_t)n, 0);

			CHECK(done > 0);
			n -= done;
		}
	CHECK(n == 0);
	CHECK(splice(in, &from, p[1], NULL, 1000, 0) == 1000);
	CHECK(splice(p[0], NULL, out, &to, 1000, 0) == 1000);
	CHECK(splice(in, NULL, out, NULL, 1, 0) < 0 && errno == EINVAL);
	close(p[1]);
	CHECK(splice(p[0], NULL, out, NULL, 100, 0) == 0);
	close(p[0]);
	close(in);
	close(out);
}

static void tees(void)
{
	int a = make_file("tee.a"), b = make_file("tee.b"), one[2], two[2];
	ssize_t n;

	CHECK(!pipe(one) && !pipe(two));
	fill(3);
	if (!fork()) {
		close(one[0]);
		write_all(one[1], block, 200000);
		_exit(0);
	}
	close(one[1]);
	while ((n = tee(one[0], two[1], 65536, 0)) > 0) {
		ssize_t left = n, done;

		for (; left; left -= done)
			CHECK((done = splice(one[0], NULL, a, NULL, (size_t)left, 0)) > 0);
		for (left = n; left; left -= done)
			CHECK((done = splice(two[0], NULL, b, NULL, (size_t)left, 0)) > 0);
	}
	CHECK(n == 0);
	close(one[0]);
	close(two[0]);
	close(two[1]);
	close(a);
	close(b);
	end_child();
}

static void vmsplices(void)
{
	struct iovec iov[2] = { { block, 30000 }, { block + 50000, 20000 } };
	int p[2];

	CHECK(!pipe(p));
	fill(4);
	if (!fork()) {
		close(p[1]);
		copy_to(p[0], "vmsplice", 4096);
		_exit(0);
	}
	close(p[0]);
	CHECK(vmsplice(p[1], iov, 2, 0) == 50000);
	close(p[1]);
	end_child();
}

static void sendfiles(void)
{
	int in = make_file("sendfile.in"), p[2];
	off_t from = 1000;
	size_t left = 499000;

	fill(5);
	write_all(in, block, 500000);
	CHECK(!pipe(p));
	if (!fork()) {
		close(p[1]);
		copy_to(p[0], "sendfile", 10000);
		_exit(0);
	}
	close(p[0]);
	while (left) {
		ssize_t n = sendfile(p[1], in, &from, left);

		CHECK(n > 0);
		left -= (size_t)n;
	}
	close(p[1]);
	close(in);
	end_child();
}

/* What fails for reasons of timing: nothing there, no room, nobody to read it. */
static void refusals(void)
{
	char buf[4096] = { 'x' };
	int p[2], n = 0, total = 0;

	CHECK(!pipe2(p, O_NONBLOCK));
	CHECK(read(p[0], buf, 10) < 0 && errno == EAGAIN);
	while (write(p[1], buf, sizeof(buf)) > 0)
		total += (int)sizeof(buf);
	CHECK(errno == EAGAIN);
	CHECK(!ioctl(p[0], FIONREAD, &n) && n == total);
	for (; total; total -= n)
		CHECK((n = (int)read(p[0], buf, sizeof(buf))) > 0);
	CHECK(write(p[1], buf, 0) == 0);
	CHECK(read(p[0], buf, 0) == 0);
	CHECK(lseek(p[0], 0, SEEK_CUR) < 0 && errno == ESPIPE);
	CHECK(pread(p[0], buf, 1, 0) < 0 && errno == ESPIPE);
	CHECK(fcntl(p[1], F_SETPIPE_SZ, 1 << 17) == 1 << 17);
	CHECK(fcntl(p[1], F_GETPIPE_SZ) == 1 << 17);
	CHECK(fcntl(p[1], F_SETFL, 0) == 0 && fcntl(p[1], F_GETFL) == O_WRONLY);
	CHECK(write(p[1], buf, 100) == 100);
	CHECK(read(p[0], buf, 30) == 30);
	close(p[0]);
	CHECK(write(p[1], buf, 1) < 0 && errno == EPIPE);
	close(p[1]);
	CHECK(write(p[1], buf, 1) < 0 && errno == EBADF);
}

static void packets(void)
{
	char buf[100];
	int p[2], out = make_file("packets");
	ssize_t n;

	CHECK(!pipe2(p, O_DIRECT));
	CHECK(write(p[1], "one", 3) == 3 && write(p[1], "second", 6) == 6);
	close(p[1]);
	while ((n = read(p[0], buf, sizeof(buf))) > 0)
		write_all(out, buf, (size_t)n);
	close(p[0]);
	close(out);
}

static void *vectors_thread(void *arg)
{
	struct iovec iov[3] = { { block, 10000 }, { block + 20000, 1 }, { block + 30000, 89999 } };
	int i;

	for (i = 0; i < 4; i++)
		CHECK(writev(*(int *)arg, iov, 3) == 100000);
	close(*(int *)arg);
	return NULL;
}

static void vectors(void)
{
	static char one[3000], two[5000];
	struct iovec iov[2] = { { one, sizeof(one) }, { two, sizeof(two) } };
	int p[2], out = make_file("vectors");
	pthread_t t;
	ssize_t n;

	CHECK(!pipe(p));
	fill(6);
	CHECK(!pthread_create(&t, NULL, vectors_thread, &p[1]));
	while ((n = readv(p[0], iov, 2)) > 0) {
		size_t first = (size_t)n < sizeof(one) ? (size_t)n : sizeof(one);

		write_all(out, one, first);
		write_all(out, two, (size_t)n - first);
	}
	CHECK(n == 0);
	CHECK(!pthread_join(t, NULL));
	close(p[0]);
	close(out);
}

/* Doubled, put elsewhere, opened again by name, given to another program. */
static void ends(void)
{
	char name[64];
	int p[2], q[2], again, copy;

	CHECK(!pipe(p) && !pipe(q));
	if (!fork()) {
		CHECK(dup2(p[0], 0) == 0 && dup2(q[1], 1) == 1);
		close(p[0]);
		close(p[1]);
		close(q[0]);
		close(q[1]);
		execlp("cat", "cat", (char *)NULL);
		_exit(1);
	}
	close(p[0]);
	close(q[1]);
	copy = fcntl(p[1], F_DUPFD_CLOEXEC, 100);
	CHECK(copy >= 100);
	snprintf(name, sizeof(name), "/dev/fd/%d", copy);
	again = open(name, O_WRONLY);
	CHECK(again >= 0);
	CHECK(write(p[1], "a", 1) == 1 && write(copy, "bc", 2) == 2 && write(again, "def", 3) == 3);
	close(p[1]);
	close(again);
	CHECK(write(copy, "ghij\n", 5) == 5);
	close(copy);
	copy_to(q[0], "ends", 1000);
	close(q[0]);
	end_child();
}

static void send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	CHECK(sendmsg(socket, &msg, 0) == 1);
}

static int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd;

	CHECK(recvmsg(socket, &msg, 0) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* A read end that goes through a socket, while there are bytes in the pipe. */
static void passed(void)
{
	int s[2], p[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	if (!fork()) {
		int fd;

		close(s[1]);
		fd = receive_fd(s[0]);
		copy_to(fd, "passed", 1000);
		_exit(0);
	}
	close(s[0]);
	CHECK(!pipe(p));
	CHECK(write(p[1], "before ", 7) == 7);
	send_fd(s[1], p[0]);
	close(p[0]);
	CHECK(write(p[1], "after\n", 6) == 6);
	close(p[1]);
	close(s[1]);
	end_child();
}

/* The writer ends without a word. */
static void killed(void)
{
	int p[2], status;

	CHECK(!pipe(p));
	if (!fork()) {
		CHECK(write(p[1], "last words\n", 11) == 11);
		raise(SIGKILL);
	}
	close(p[1]);
	copy_to(p[0], "killed", 1000);
	close(p[0]);
	CHECK(wait(&status) > 0);
}

/* A reader that goes while there is more to come. */
static void left(void)
{
	char buf[1000];
	int p[2], i;

	CHECK(!pipe(p));
	fill(7);
	if (!fork()) {
		close(p[1]);
		CHECK(read(p[0], buf, sizeof(buf)) == (ssize_t)sizeof(buf));
		_exit(0);
	}
	close(p[0]);
	for (i = 0; i < 10000 && write(p[1], block, sizeof(buf)) > 0; i++)
		;
	close(p[1]);
	end_child();
}

static void *event_thread(void *arg)
{
	uint64_t n = 3;

	CHECK(write(*(int *)arg, &n, sizeof(n)) == sizeof(n));
	return NULL;
}

static void events(void)
{
	char buf[4096] __attribute__((aligned(8)));
	int e = eventfd(2, EFD_CLOEXEC), s = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK), w, wd;
	uint64_t n;
	pthread_t t;

	CHECK(e >= 0 && s >= 0);
	CHECK(!pthread_create(&t, NULL, event_thread, &e));
	CHECK(!pthread_join(t, NULL));
	CHECK(read(e, &n, sizeof(n)) == sizeof(n) && n == 5);
	CHECK(read(s, &n, sizeof(n)) == sizeof(n) && n == 1);
	CHECK(read(s, &n, sizeof(n)) == sizeof(n) && n == 1);
	CHECK(read(s, &n, sizeof(n)) < 0 && errno == EAGAIN);
	close(e);
	close(s);
	CHECK(!mkdir("watched", 0755));
	w = inotify_init1(IN_CLOEXEC);
	CHECK(w >= 0);
	wd = inotify_add_watch(w, "watched", IN_CREATE | IN_DELETE);
	CHECK(wd >= 0);
	CHECK(inotify_add_watch(w, "watched/none", IN_CREATE) < 0 && errno == ENOENT);
	close(make_file("watched/file"));
	CHECK(read(w, buf, sizeof(buf)) > 0);
	CHECK(!inotify_rm_watch(w, wd));
	CHECK(inotify_rm_watch(w, wd) < 0 && errno == EINVAL);
	close(w);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "big", big },		  { "writers", writers },     { "splices", splices },
	{ "tees", tees },	  { "vmsplices", vmsplices }, { "sendfiles", sendfiles },
	{ "refusals", refusals }, { "packets", packets },     { "vectors", vectors },
	{ "ends", ends },	  { "passed", passed },	      { "killed", killed },
	{ "left", left },	  { "events", events },
};

int main(int argc, char **argv)
{
	size_t i;
	int k;

	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (k = argc > 1 ? 1 : 0; k < argc; k++)
			if (argc == 1 || !strcmp(cases[i].name, argv[k]))
				cases[i].run();
	return 0;
}
