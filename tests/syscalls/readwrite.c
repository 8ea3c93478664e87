/* SPDX-License-Identifier: MIT */
/* Reading and writing, by one buffer and by vectors. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib.h"

#define MIB ((size_t)1 << 20)

/* Where memory ends: what lies behind the page is not there. */
static char *page_with_edge(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	t_true(page != MAP_FAILED);
	t_ok(munmap(page + 4096, 4096));
	memset(page, 'p', 4096);
	return page;
}

static void one_buffer(int fd)
{
	char buf[100] = "";

	expect("write(fd=%d, buf=\"hello\", count=5) = 5", fd);
	t_is(sys(write, fd, "hello", 5), 5);
	expect("write(fd=%d, buf=\"\", count=0) = 0", fd);
	t_is(sys(write, fd, "hello", 0), 0);
	expect("write(fd=%d, buf=\"\\n\\t\\r\\\"\\\\\\x00\\x7f\\xff\", count=8) = 8", fd);
	t_is(sys(write, fd, "\n\t\r\"\\\0\x7f\xff", 8), 8);
	expect("pwrite64(fd=%d, buf=\"J\", count=1, offset=0) = 1", fd);
	t_is(sys(pwrite64, fd, "J", 1, 0), 1);
	expect("pread64(fd=%d, buf=\"ello\", count=4, offset=1) = 4", fd);
	t_is(sys(pread64, fd, buf, 4, 1), 4);
	expect("pread64(fd=%d, buf=\"Jello\\n\\t\\r\\\"\\\\\\x00\\x7f\\xff\", count=100, offset=0) = 13",
	       fd);
	t_is(sys(pread64, fd, buf, sizeof(buf), 0), 13);
	expect("pread64(fd=%d, buf=\"\", count=100, offset=1000) = 0", fd);
	t_is(sys(pread64, fd, buf, sizeof(buf), 1000), 0);
	expect("read(fd=%d, buf=\"\", count=100) = 0", fd);
	t_is(sys(read, fd, buf, sizeof(buf)), 0);
	/* The offset is beyond 4 GiB. */
	expect("pread64(fd=%d, buf=\"\", count=1, offset=81985529216486895) = %s", fd, "0");
	t_is(sys(pread64, fd, buf, 1, 0x123456789abcdef), 0);
}

static void failing(int fd)
{
	char buf[100];

	expect("read(fd=-1, buf=%s, count=5) = -1 EBADF", pointer(buf));
	t_fails(sys(read, -1, buf, 5), EBADF);
	/* What a failed write was to write is known all the same. */
	expect("write(fd=-1, buf=\"lost\", count=4) = -1 EBADF");
	t_fails(sys(write, -1, "lost", 4), EBADF);
	expect("read(fd=%d, buf=\"\", count=5) = 0", fd);
	t_is(sys(read, fd, 0x10, 5), 0); /* at the end nothing is written */
	expect("pread64(fd=%d, buf=&0x10, count=5, offset=0) = -1 EFAULT", fd);
	t_fails(sys(pread64, fd, 0x10, 5, 0), EFAULT);
	expect("write(fd=%d, buf=&0x10, count=5) = -1 EFAULT", fd);
	t_fails(sys(write, fd, 0x10, 5), EFAULT);
	expect("write(fd=%d, buf=NULL, count=5) = -1 EFAULT", fd);
	t_fails(sys(write, fd, NULL, 5), EFAULT);
	expect("write(fd=%d, buf=NULL, count=0) = 0", fd);
	t_is(sys(write, fd, NULL, 0), 0);
	expect("pwrite64(fd=%d, buf=\"x\", count=1, offset=-1) = -1 EINVAL", fd);
	t_fails(sys(pwrite64, fd, "x", 1, -1), EINVAL);
	expect("pread64(fd=%d, buf=%s, count=1, offset=-5) = -1 EINVAL", fd, pointer(buf));
	t_fails(sys(pread64, fd, buf, 1, -5), EINVAL);
}

/* A pipe takes what fits before the memory ends; a file does so too, page by page. */
static void cut_short(int fd, const char *edge, int pipe_in, int pipe_out)
{
	char buf[200];
	long r;

	r = sys(pwrite64, fd, edge + 4000, 200, 0);
	expect("pwrite64(fd=%d, buf=\"p\"*96/200, count=200, offset=0) = %s", fd, outcome(r));
	/* Longer than the rest of the pipe; the data are what was asked for. */
	expect("write(fd=%d, buf=\"abc\", count=3) = 3", pipe_in);
	t_is(sys(write, pipe_in, "abc", 3), 3);
	expect("read(fd=%d, buf=\"abc\", count=200) = 3", pipe_out);
	t_is(sys(read, pipe_out, buf, sizeof(buf)), 3);
	expect("read(fd=%d, buf=%s, count=200) = -1 EAGAIN", pipe_out, pointer(buf));
	t_fails(sys(read, pipe_out, buf, sizeof(buf)), EAGAIN);
}

/* Around the sizes at which data are kept in another way. */
static void sizes(int fd)
{
	static const size_t lens[] = {
		63, 64, 65, 4096, 65536, MIB - 1, MIB, MIB + 1, 3 * MIB + 7
	};
	char *out = malloc(4 * MIB), *in = malloc(4 * MIB);
	size_t i;

	t_true(out && in);
	t_begin();
	for (i = 0; i < ARRAY_LEN(lens); i++) {
		t_fill(out, lens[i], (unsigned int)i);
		expect("pwrite64(fd=%d, buf=%s, count=%zu, offset=0) = %zu", fd,
		       quote(out, lens[i]), lens[i], lens[i]);
		t_is(sys(pwrite64, fd, out, lens[i], 0), (long)lens[i]);
		expect("pread64(fd=%d, buf=%s, count=%zu, offset=1) = %zu", fd,
		       quote(out + 1, lens[i] - 1), lens[i] - 1, lens[i] - 1);
		t_is(sys(pread64, fd, in, lens[i] - 1, 1), (long)lens[i] - 1);
	}
	/* The same bytes again and again: kept once, there each time. */
	memset(out, 'z', 2 * MIB);
	expect("pwrite64(fd=%d, buf=\"z\"*2097152, count=2097152, offset=0) = 2097152", fd);
	t_is(sys(pwrite64, fd, out, 2 * MIB, 0), 2 * MIB);
	expect("pwrite64(fd=%d, buf=\"z\"*1048576, count=1048576, offset=0) = 1048576", fd);
	t_is(sys(pwrite64, fd, out, MIB, 0), MIB);
	t_end();
	free(out);
	free(in);
}

static void vectors(int fd)
{
	char a[3], b[4], c[100];
	struct iovec out[3] = { { (char *)(uintptr_t) "one", 3 },
				{ (char *)(uintptr_t) "", 0 },
				{ (char *)(uintptr_t) "three", 5 } };
	struct iovec in[3] = { { a, sizeof(a) }, { b, sizeof(b) }, { c, sizeof(c) } };
	char text[] = "abcdef";
	struct iovec overlapping[3] = { { text, 2 }, { text, 6 }, { text + 1, 3 } };

	expect("writev(fd=%d, iov=[{iov_base=\"one\", iov_len=3}, {iov_base=\"\", iov_len=0}, {iov_base=\"three\", iov_len=5}], iovcnt=3) = 8",
	       fd);
	t_is(sys(writev, fd, out, 3), 8);
	expect("lseek(fd=%d, offset=0, whence=SEEK_SET) = 0", fd);
	t_is(sys(lseek, fd, 0, SEEK_SET), 0);
	/* Of a read vector only what was filled is data. */
	expect("readv(fd=%d, iov=[{iov_base=\"one\", iov_len=3}, {iov_base=\"thre\", iov_len=4}, {iov_base=\"e\", iov_len=100}], iovcnt=3) = 8",
	       fd);
	t_is(sys(readv, fd, in, 3), 8);
	expect("preadv(fd=%d, iov=[{iov_base=\"hre\", iov_len=3}, {iov_base=\"e\", iov_len=4}, {iov_base=\"\", iov_len=100}], iovcnt=3, offset=4) = 4",
	       fd);
	t_is(sys(preadv, fd, in, 3, 4, 0), 4);
	expect("pwritev(fd=%d, iov=[{iov_base=\"one\", iov_len=3}, {iov_base=\"\", iov_len=0}], iovcnt=2, offset=8) = 3",
	       fd);
	t_is(sys(pwritev, fd, out, 2, 8, 0), 3);
	expect("pwritev(fd=%d, iov=[{iov_base=\"ab\", iov_len=2}, {iov_base=\"abcdef\", iov_len=6}, {iov_base=\"bcd\", iov_len=3}], iovcnt=3, offset=0) = 11",
	       fd);
	t_is(sys(pwritev, fd, overlapping, 3, 0, 0), 11);
	expect("readv(fd=%d, iov=[], iovcnt=0) = 0", fd);
	t_is(sys(readv, fd, in, 0), 0);
	expect("readv(fd=-1, iov=*, iovcnt=3) = -1 EBADF");
	t_fails(sys(readv, -1, in, 3), EBADF);
	expect("writev(fd=-1, iov=[{iov_base=\"one\", iov_len=3}], iovcnt=1) = -1 EBADF");
	t_fails(sys(writev, -1, out, 1), EBADF);
	expect("writev(fd=%d, iov=*, iovcnt=2000) = -1 EINVAL", fd);
	t_fails(sys(writev, fd, out, 2000), EINVAL);
	expect("writev(fd=%d, iov=&0x10, iovcnt=2) = -1 EFAULT", fd);
	t_fails(sys(writev, fd, 0x10, 2), EFAULT);
	out[1].iov_base = (void *)0x10;
	out[1].iov_len = 4;
	expect("pwritev(fd=%d, iov=[{iov_base=\"one\", iov_len=3}, {iov_base=&0x10, iov_len=4}], iovcnt=2, offset=0) = 3",
	       fd);
	t_is(sys(pwritev, fd, out, 2, 0, 0), 3);
}

static void vectors_with_flags(int fd)
{
	char a[3], b[4];
	struct iovec out[2] = { { (char *)(uintptr_t) "xy", 2 }, { (char *)(uintptr_t) "z", 1 } };
	struct iovec in[2] = { { a, sizeof(a) }, { b, sizeof(b) } };
	long r;

	expect("pwritev2(fd=%d, iov=[{iov_base=\"xy\", iov_len=2}, {iov_base=\"z\", iov_len=1}], iovcnt=2, offset=0, flags=RWF_DSYNC) = 3",
	       fd);
	t_is(sys(pwritev2, fd, out, 2, 0, 0, RWF_DSYNC), 3);
	r = sys(preadv2, fd, in, 2, 0, 0, RWF_NOWAIT);
	if (r == 7)
		expect("preadv2(fd=%d, iov=[{iov_base=%s, iov_len=3}, {iov_base=%s, iov_len=4}], iovcnt=2, offset=0, flags=RWF_NOWAIT) = 7",
		       fd, quote(a, 3), quote(b, 4));
	else
		expect("preadv2(fd=%d, iovcnt=2, offset=0, flags=RWF_NOWAIT) = %s", fd, outcome(r));
	/* -1: at the offset of the open file. */
	expect("pwritev2(fd=%d, iov=[{iov_base=\"xy\", iov_len=2}], iovcnt=1, offset=-1, flags=RWF_SYNC|RWF_APPEND) = 2",
	       fd);
	t_is(sys(pwritev2, fd, out, 1, -1, -1, RWF_SYNC | RWF_APPEND), 2);
	expect("preadv2(fd=%d, iov=*, iovcnt=1, offset=0, flags=0x80000000) = -1 EOPNOTSUPP", fd);
	t_fails(sys(preadv2, fd, in, 1, 0, 0, 0x80000000u), EOPNOTSUPP);
}

/* Many vectors, the most that the kernel takes. */
static void many_vectors(int fd)
{
	static struct iovec iov[1024];
	static char bytes[1024];
	char *want = text("%s", "");
	size_t i;

	memset(bytes, 'v', sizeof(bytes));
	for (i = 0; i < ARRAY_LEN(iov); i++)
		iov[i] = (struct iovec){ bytes + i, 1 };
	for (i = 0; i < 16; i++)
		want = text("%s{iov_base=\"v\", iov_len=1}, ", want);
	for (i = 0; i < 6; i++)
		want = text("%s%s", want, want);
	want[strlen(want) - 2] = 0;
	t_begin();
	expect("pwritev(fd=%d, iov=[%s], iovcnt=1024, offset=0) = 1024", fd, want);
	t_is(sys(pwritev, fd, iov, 1024, 0, 0), 1024);
	expect("preadv(fd=%d, iov=[%s], iovcnt=1024, offset=0) = 1024", fd, want);
	t_is(sys(preadv, fd, iov, 1024, 0, 0), 1024);
	t_end();
}

int main(void)
{
	char *edge;
	int fd, pipes[2];

	t_init();
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	t_ok(pipe2(pipes, O_NONBLOCK));
	edge = page_with_edge();
	t_begin();
	one_buffer(fd);
	failing(fd);
	cut_short(fd, edge, pipes[1], pipes[0]);
	t_end();
	sizes(fd);
	t_ok(ftruncate(fd, 0));
	t_ok(lseek(fd, 0, SEEK_SET));
	t_begin();
	vectors(fd);
	vectors_with_flags(fd);
	t_end();
	many_vectors(fd);
	return 0;
}
