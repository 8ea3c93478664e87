/* SPDX-License-Identifier: MIT */
/*
 * usage: uring_files
 * Makes, uses and closes files by requests of an io_uring alone, in the ways in
 * which a descriptor goes from one request to another: by its number, by the
 * ring's own table, by a second descriptor. Exits with 77 if there is no io_uring.
 */
#include <err.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef IORING_FILE_INDEX_ALLOC
#define IORING_FILE_INDEX_ALLOC (~0U)
#endif
#define OP_FIXED_FD_INSTALL 54
#define TABLE 16

static struct io_uring ring;

static struct io_uring_sqe *get(void)
{
	struct io_uring_sqe *s = io_uring_get_sqe(&ring);

	if (!s)
		errx(1, "no room in the ring");
	return s;
}

static int take(void)
{
	struct io_uring_cqe *c;
	int r = io_uring_wait_cqe(&ring, &c), res;

	if (r < 0)
		errx(1, "cannot wait: %s", strerror(-r));
	res = c->res;
	io_uring_cqe_seen(&ring, c);
	return res;
}

static int make(const char *what)
{
	int r = io_uring_submit_and_wait(&ring, 1), res;

	if (r < 0)
		errx(1, "cannot submit: %s", strerror(-r));
	res = take();
	if (res < 0)
		errx(1, "%s: %s", what, strerror(-res));
	return res;
}

static int open_by_request(int dir, const char *name)
{
	io_uring_prep_openat(get(), dir, name, O_RDWR | O_CREAT, 0644);
	return make(name);
}

static void write_and_close(int fd, const char *text)
{
	io_uring_prep_write(get(), fd, text, (unsigned int)strlen(text), 0);
	make("write");
	io_uring_prep_close(get(), fd);
	make("close");
}

static void by_number(void)
{
	struct open_how how = { .flags = O_RDWR | O_CREAT, .mode = 0600 };

	write_and_close(open_by_request(AT_FDCWD, "one"), "hello");
	io_uring_prep_openat2(get(), AT_FDCWD, "two", &how);
	write_and_close(make("two"), "by openat2");
}

/* The completion of the open is taken without a call, so that the next one tells of it. */
static void early(void)
{
	struct io_uring_cqe *c;
	int fd;

	io_uring_prep_openat(get(), AT_FDCWD, "early", O_RDWR | O_CREAT, 0644);
	if (io_uring_submit(&ring) != 1)
		errx(1, "cannot submit");
	while (io_uring_peek_cqe(&ring, &c))
		(void)usleep(1000);
	fd = c->res;
	io_uring_cqe_seen(&ring, c);
	write_and_close(fd, "early");
}

/* Directories by descriptors that requests have opened. */
static void directories(void)
{
	int a, b;

	io_uring_prep_mkdirat(get(), AT_FDCWD, "a", 0755);
	make("a");
	io_uring_prep_mkdirat(get(), AT_FDCWD, "b", 0755);
	make("b");
	io_uring_prep_openat(get(), AT_FDCWD, "a", O_RDONLY | O_DIRECTORY, 0);
	a = make("a");
	io_uring_prep_openat(get(), AT_FDCWD, "b", O_RDONLY | O_DIRECTORY, 0);
	b = make("b");
	write_and_close(open_by_request(a, "f"), "moved");
	io_uring_prep_renameat(get(), a, "f", b, "g", 0);
	make("rename");
	io_uring_prep_linkat(get(), b, "g", a, "h", 0);
	make("link");
	io_uring_prep_symlinkat(get(), "h", a, "s");
	make("symlink");
	io_uring_prep_mkdirat(get(), b, "c", 0700);
	make("mkdir");
	io_uring_prep_linkat(get(), b, "g", b, "gone", 0);
	make("link");
	io_uring_prep_unlinkat(get(), b, "gone", 0);
	make("unlink");
	io_uring_prep_close(get(), a);
	make("close");
	(void)close(b);
}

/* A registered file stays in the table when its descriptor is closed and its number used again. */
static void registered(void)
{
	int fd = open_by_request(AT_FDCWD, "registered"), other;
	struct io_uring_sqe *s;

	if (io_uring_register_files_update(&ring, 1, &fd, 1) != 1)
		errx(1, "cannot register a file");
	(void)close(fd);
	other = open("other", O_RDWR | O_CREAT, 0644);
	s = get();
	io_uring_prep_write(s, 1, "registered", 10, 0);
	s->flags |= IOSQE_FIXED_FILE;
	make("write");
	if (write(other, "other", 5) != 5)
		err(1, "write");
	(void)close(other);
}

/* A chain that opens, writes and closes in the table. */
static void chain(const char *name, unsigned int index)
{
	struct io_uring_sqe *s = get();
	int i, res;

	io_uring_prep_openat_direct(s, AT_FDCWD, name, O_RDWR | O_CREAT, 0644, index);
	s->flags |= IOSQE_IO_LINK;
	s = get();
	io_uring_prep_write(s, (int)index, name, (unsigned int)strlen(name), 0);
	s->flags |= IOSQE_FIXED_FILE | IOSQE_IO_LINK;
	io_uring_prep_close_direct(get(), index);
	if (io_uring_submit_and_wait(&ring, 3) != 3)
		errx(1, "cannot submit a chain");
	for (i = 0; i < 3; i++) {
		res = take();
		if (res < 0)
			errx(1, "chain: %s", strerror(-res));
	}
}

static void in_table(void)
{
	struct io_uring_sqe *s;
	struct open_how how = { .flags = O_RDWR | O_CREAT, .mode = 0644 };
	int index, fd;

	chain("chain", 3);
	chain("again", 3);
	/* The kernel chooses the place. */
	s = get();
	io_uring_prep_openat2(s, AT_FDCWD, "chosen", &how);
	s->file_index = IORING_FILE_INDEX_ALLOC;
	index = make("openat2 direct");
	s = get();
	io_uring_prep_write(s, index, "chosen", 6, 0);
	s->flags |= IOSQE_FIXED_FILE;
	make("write");
	s = get();
	io_uring_prep_rw(OP_FIXED_FD_INSTALL, s, index, NULL, 0, 0);
	s->flags |= IOSQE_FIXED_FILE;
	if (io_uring_submit_and_wait(&ring, 1) != 1)
		errx(1, "cannot submit");
	fd = take(); /* an error of older kernels */
	if (fd >= 0 && pwrite(fd, " installed", 10, 6) != 10)
		err(1, "pwrite");
	if (fd >= 0)
		(void)close(fd);
	s = get();
	io_uring_prep_fallocate(s, index, 0, 0, 100);
	s->flags |= IOSQE_FIXED_FILE;
	make("fallocate");
	io_uring_prep_close_direct(get(), (unsigned int)index);
	make("close direct");
}

int main(void)
{
	int none[TABLE];
	int r = io_uring_queue_init(8, &ring, 0);

	if (r < 0) {
		warnx("no io_uring: %s", strerror(-r));
		return 77;
	}
	memset(none, -1, sizeof(none));
	if (io_uring_register_files(&ring, none, TABLE) < 0)
		errx(1, "cannot register a table");
	by_number();
	early();
	directories();
	registered();
	in_table();
	io_uring_queue_exit(&ring);
	return 0;
}
