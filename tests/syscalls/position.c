/* SPDX-License-Identifier: MIT */
/* Offsets, sizes, allocation, advice, what is in the cache. */
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

#include "lib.h"

static void seeks(int fd, int pipe_fd)
{
	expect("lseek(fd=%d, offset=100, whence=SEEK_SET) = 100", fd);
	t_is(sys(lseek, fd, 100, SEEK_SET), 100);
	expect("lseek(fd=%d, offset=-50, whence=SEEK_CUR) = 50", fd);
	t_is(sys(lseek, fd, -50, SEEK_CUR), 50);
	expect("lseek(fd=%d, offset=1099511627776, whence=SEEK_END) = 1099511636776", fd);
	t_is(sys(lseek, fd, 1L << 40, SEEK_END), (1L << 40) + 9000);
	expect("lseek(fd=%d, offset=0, whence=SEEK_DATA) = 0", fd);
	t_is(sys(lseek, fd, 0, SEEK_DATA), 0);
	expect("lseek(fd=%d, offset=0, whence=SEEK_HOLE) = 9000", fd);
	t_is(sys(lseek, fd, 0, SEEK_HOLE), 9000);
	expect("lseek(fd=%d, offset=9000, whence=SEEK_DATA) = -1 ENXIO", fd);
	t_fails(sys(lseek, fd, 9000, SEEK_DATA), ENXIO);
	expect("lseek(fd=%d, offset=-1, whence=SEEK_SET) = -1 EINVAL", fd);
	t_fails(sys(lseek, fd, -1, SEEK_SET), EINVAL);
	expect("lseek(fd=%d, offset=0, whence=77) = -1 EINVAL", fd);
	t_fails(sys(lseek, fd, 0, 77), EINVAL);
	expect("lseek(fd=%d, offset=0, whence=SEEK_CUR) = -1 ESPIPE", pipe_fd);
	t_fails(sys(lseek, pipe_fd, 0, SEEK_CUR), ESPIPE);
	expect("lseek(fd=-1, offset=0, whence=SEEK_CUR) = -1 EBADF");
	t_fails(sys(lseek, -1, 0, SEEK_CUR), EBADF);
}

static void sizes(int fd, int dir)
{
	expect("truncate(path=\"f\", length=5000) = 0");
	t_ok(sys(truncate, "f", 5000));
	expect("truncate(path=\"f\", length=-1) = -1 EINVAL");
	t_fails(sys(truncate, "f", -1), EINVAL);
	expect("truncate(path=\"none\", length=4294967296) = -1 ENOENT");
	t_fails(sys(truncate, "none", 1L << 32), ENOENT);
	expect("truncate(path=\".\", length=0) = -1 EISDIR");
	t_fails(sys(truncate, ".", 0), EISDIR);
	expect("ftruncate(fd=%d, length=4096) = 0", fd);
	t_ok(sys(ftruncate, fd, 4096));
	expect("ftruncate(fd=%d, length=8589934592) = 0", fd);
	t_ok(sys(ftruncate, fd, 1L << 33));
	expect("ftruncate(fd=-1, length=0) = -1 EBADF");
	t_fails(sys(ftruncate, -1, 0), EBADF);
	expect("ftruncate(fd=%d, length=0) = -1 EINVAL", dir);
	t_fails(sys(ftruncate, dir, 0), EINVAL);
	expect("ftruncate(fd=%d, length=16384) = 0", fd);
	t_ok(sys(ftruncate, fd, 16384));
}

static void allocations(int fd)
{
	static const struct {
		int mode;
		const char *text;
	} modes[] = {
		{ 0, "FALLOC_FL_ALLOCATE_RANGE" },
		{ FALLOC_FL_KEEP_SIZE, "FALLOC_FL_KEEP_SIZE" },
		{ FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  "FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE" },
		{ FALLOC_FL_ZERO_RANGE, "FALLOC_FL_ZERO_RANGE" },
		{ FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
		  "FALLOC_FL_KEEP_SIZE|FALLOC_FL_ZERO_RANGE" },
		{ FALLOC_FL_COLLAPSE_RANGE, "FALLOC_FL_COLLAPSE_RANGE" },
		{ FALLOC_FL_INSERT_RANGE, "FALLOC_FL_INSERT_RANGE" },
		{ FALLOC_FL_UNSHARE_RANGE, "FALLOC_FL_UNSHARE_RANGE" },
		{ 0x80, "FALLOC_FL_WRITE_ZEROES" },
		{ FALLOC_FL_PUNCH_HOLE, "FALLOC_FL_PUNCH_HOLE" },
		{ 0x10000, "0x10000" },
	};
	size_t i;
	long r;

	for (i = 0; i < ARRAY_LEN(modes); i++) {
		r = sys(fallocate, fd, modes[i].mode, 4096, 4096);
		expect("fallocate(fd=%d, mode=%s, offset=4096, len=4096) = %s", fd, modes[i].text,
		       outcome(r));
	}
	expect("fallocate(fd=%d, mode=FALLOC_FL_ALLOCATE_RANGE, offset=-1, len=10) = -1 EINVAL",
	       fd);
	t_fails(sys(fallocate, fd, 0, -1, 10), EINVAL);
	expect("fallocate(fd=-1, mode=FALLOC_FL_ALLOCATE_RANGE, offset=0, len=1) = -1 EBADF");
	t_fails(sys(fallocate, -1, 0, 0, 1), EBADF);
}

static void advice(int fd, int pipe_fd)
{
	static const char *const names[] = { "NORMAL",	 "RANDOM",   "SEQUENTIAL",
					     "WILLNEED", "DONTNEED", "NOREUSE" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		expect("fadvise64(fd=%d, offset=%zu, len=4096, advice=POSIX_FADV_%s) = 0", fd, i,
		       names[i]);
		t_ok(sys(fadvise64, fd, i, 4096, i));
	}
	expect("fadvise64(fd=%d, offset=0, len=0, advice=99) = -1 EINVAL", fd);
	t_fails(sys(fadvise64, fd, 0, 0, 99), EINVAL);
	expect("fadvise64(fd=%d, offset=0, len=0, advice=POSIX_FADV_NORMAL) = -1 ESPIPE", pipe_fd);
	t_fails(sys(fadvise64, pipe_fd, 0, 0, 0), ESPIPE);
	expect("readahead(fd=%d, offset=4096, count=8192) = 0", fd);
	t_ok(sys(readahead, fd, 4096, 8192));
	expect("readahead(fd=-1, offset=0, count=1) = -1 EBADF");
	t_fails(sys(readahead, -1, 0, 1), EBADF);
}

static void cached(int fd)
{
	struct {
		uint64_t off, len;
	} range = { 0, 0 };
	struct {
		uint64_t cache, dirty, writeback, evicted, recent;
	} cs = { 0 };
	long r;

	r = sys(cachestat, fd, &range, &cs, 0);
	if (r < 0)
		expect("cachestat(fd=%d, cstat_range={off=0, len=0}, cstat=%s, flags=0) = %s", fd,
		       pointer(&cs), outcome(r));
	else
		expect("cachestat(fd=%d, cstat_range={off=0, len=0}, cstat={nr_cache=%lu, nr_dirty=%lu, nr_writeback=%lu, nr_evicted=%lu, nr_recently_evicted=%lu}, flags=0) = 0",
		       fd, cs.cache, cs.dirty, cs.writeback, cs.evicted, cs.recent);
	range.off = 1;
	r = sys(cachestat, -1, &range, &cs, 5);
	expect("cachestat(fd=-1, cstat_range={off=1, len=0}, cstat=%s, flags=5) = %s", pointer(&cs),
	       outcome(r));
}

int main(void)
{
	char block[9000];
	int fd, dir, pipes[2];

	t_init();
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	dir = (int)t_ok(open(".", O_RDONLY | O_DIRECTORY));
	t_ok(pipe(pipes));
	memset(block, 'b', sizeof(block));
	t_is(write(fd, block, sizeof(block)), sizeof(block));
	t_begin();
	seeks(fd, pipes[0]);
	sizes(fd, dir);
	allocations(fd);
	advice(fd, pipes[0]);
	cached(fd);
	t_end();
	return 0;
}
