/* SPDX-License-Identifier: MIT */
/* Making data durable. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib.h"

static void files(int fd, int pipe_fd)
{
	expect("fsync(fd=%d) = 0", fd);
	t_ok(sys(fsync, fd));
	expect("fsync(fd=-1) = -1 EBADF");
	t_fails(sys(fsync, -1), EBADF);
	expect("fsync(fd=%d) = -1 EINVAL", pipe_fd);
	t_fails(sys(fsync, pipe_fd), EINVAL);
	expect("fdatasync(fd=%d) = 0", fd);
	t_ok(sys(fdatasync, fd));
	expect("fdatasync(fd=%d) = -1 EINVAL", pipe_fd);
	t_fails(sys(fdatasync, pipe_fd), EINVAL);
	expect("sync_file_range(fd=%d, offset=4096, nbytes=8192, flags=SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE|SYNC_FILE_RANGE_WAIT_AFTER) = 0",
	       fd);
	t_ok(sys(sync_file_range, fd, 4096, 8192,
		 SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
	expect("sync_file_range(fd=%d, offset=-1, nbytes=0, flags=0) = -1 EINVAL", fd);
	t_fails(sys(sync_file_range, fd, -1, 0, 0), EINVAL);
	expect("sync_file_range(fd=%d, offset=0, nbytes=0, flags=0x10) = -1 EINVAL", fd);
	t_fails(sys(sync_file_range, fd, 0, 0, 0x10), EINVAL);
}

static void memory(char *p)
{
	expect("msync(addr=%s, length=4096, flags=MS_SYNC) = 0", addr(p));
	t_ok(sys(msync, p, 4096, MS_SYNC));
	expect("msync(addr=%s, length=4096, flags=MS_ASYNC|MS_INVALIDATE) = 0", addr(p));
	t_ok(sys(msync, p, 4096, MS_ASYNC | MS_INVALIDATE));
	expect("msync(addr=%s, length=1, flags=MS_SYNC) = -1 EINVAL", addr(p + 1));
	t_fails(sys(msync, p + 1, 1, MS_SYNC), EINVAL);
	expect("msync(addr=0, length=4096, flags=MS_SYNC) = -1 ENOMEM");
	t_fails(sys(msync, NULL, 4096, MS_SYNC), ENOMEM);
}

/* Of a small file system of its own: the others of this machine may take long. */
static void file_systems(int fd)
{
	expect("syncfs(fd=%d) = 0", fd);
	t_ok(sys(syncfs, fd));
	expect("syncfs(fd=-1) = -1 EBADF");
	t_fails(sys(syncfs, -1), EBADF);
	expect("sync() = 0");
	t_ok(sys(sync));
}

int main(void)
{
	int fd, pipes[2], memfd;
	char *p;

	t_init();
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	memfd = (int)t_ok(memfd_create("m", 0));
	t_ok(ftruncate(fd, 16384));
	t_ok(pipe(pipes));
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	t_true(p != MAP_FAILED);
	t_begin();
	files(fd, pipes[0]);
	p[0] = 'x';
	memory(p);
	file_systems(memfd);
	t_end();
	return 0;
}
