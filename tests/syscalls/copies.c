/* SPDX-License-Identifier: MIT */
/* Bytes that go from one descriptor to another and are never in the program. */
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib.h"

static void ranges(int in, int out)
{
	long from = 2, to = 100;

	expect("copy_file_range(fd_in=%d, off_in=NULL, fd_out=%d, off_out=NULL, len=4, flags=0, off_in_after=NULL, off_out_after=NULL) = 4",
	       in, out);
	t_is(sys(copy_file_range, in, NULL, out, NULL, 4, 0), 4);
	expect("copy_file_range(fd_in=%d, off_in=[2], fd_out=%d, off_out=[100], len=1000, flags=0, off_in_after=[10], off_out_after=[108]) = 8",
	       in, out);
	t_is(sys(copy_file_range, in, &from, out, &to, 1000, 0), 8);
	expect("copy_file_range(fd_in=%d, off_in=[10], fd_out=%d, off_out=NULL, len=5, flags=0, off_in_after=[10]) = 0",
	       in, out);
	t_is(sys(copy_file_range, in, &from, out, NULL, 5, 0), 0);
	expect("copy_file_range(fd_in=-1, off_in=[10], fd_out=%d, off_out=NULL, len=5, flags=0, off_in_after=*) = -1 EBADF",
	       out);
	t_fails(sys(copy_file_range, -1, &from, out, NULL, 5, 0), EBADF);
	expect("copy_file_range(fd_in=%d, off_in=NULL, fd_out=%d, off_out=NULL, len=5, flags=1) = -1 EINVAL",
	       in, out);
	t_fails(sys(copy_file_range, in, NULL, out, NULL, 5, 1), EINVAL);
}

static void send(int in, int out)
{
	long from = 3;

	expect("sendfile(out_fd=%d, in_fd=%d, offset=[3], count=4, offset_after=[7]) = 4", out, in);
	t_is(sys(sendfile, out, in, &from, 4), 4);
	expect("lseek(fd=%d, offset=0, whence=SEEK_SET) = 0", in);
	t_is(sys(lseek, in, 0, SEEK_SET), 0);
	expect("sendfile(out_fd=%d, in_fd=%d, offset=NULL, count=100, offset_after=NULL) = 10", out,
	       in);
	t_is(sys(sendfile, out, in, NULL, 100), 10);
	expect("sendfile(out_fd=%d, in_fd=-1, offset=[7], count=100) = -1 EBADF", out);
	t_fails(sys(sendfile, out, -1, &from, 100), EBADF);
	expect("sendfile(out_fd=%d, in_fd=%d, offset=&0x8, count=100) = -1 EFAULT", out, in);
	t_fails(sys(sendfile, out, in, 8, 100), EFAULT);
}

static void splices(int in, int out, const int a[2], const int b[2])
{
	long at = 1, to = 50;

	expect("splice(fd_in=%d, off_in=[1], fd_out=%d, off_out=NULL, len=5, flags=SPLICE_F_MOVE, off_in_after=[6], off_out_after=NULL) = 5",
	       in, a[1]);
	t_is(sys(splice, in, &at, a[1], NULL, 5, SPLICE_F_MOVE), 5);
	expect("tee(fd_in=%d, fd_out=%d, len=100, flags=SPLICE_F_NONBLOCK) = 5", a[0], b[1]);
	t_is(sys(tee, a[0], b[1], 100, SPLICE_F_NONBLOCK), 5);
	expect("splice(fd_in=%d, off_in=NULL, fd_out=%d, off_out=[50], len=100, flags=SPLICE_F_NONBLOCK|SPLICE_F_MORE, off_in_after=NULL, off_out_after=[55]) = 5",
	       a[0], out);
	t_is(sys(splice, a[0], NULL, out, &to, 100, SPLICE_F_NONBLOCK | SPLICE_F_MORE), 5);
	expect("splice(fd_in=%d, off_in=NULL, fd_out=%d, off_out=NULL, len=100, flags=0) = 5", b[0],
	       out);
	t_is(sys(splice, b[0], NULL, out, NULL, 100, 0), 5);
	expect("splice(fd_in=%d, off_in=NULL, fd_out=%d, off_out=NULL, len=100, flags=SPLICE_F_NONBLOCK) = -1 EAGAIN",
	       b[0], out);
	t_fails(sys(splice, b[0], NULL, out, NULL, 100, SPLICE_F_NONBLOCK), EAGAIN);
	expect("splice(fd_in=%d, off_in=NULL, fd_out=%d, off_out=NULL, len=1, flags=0) = -1 EINVAL",
	       in, out);
	t_fails(sys(splice, in, NULL, out, NULL, 1, 0), EINVAL);
	expect("splice(fd_in=%d, off_in=[6], fd_out=%d, off_out=NULL, len=1, flags=0) = -1 ESPIPE",
	       a[0], b[1]);
	t_fails(sys(splice, a[0], &at, b[1], NULL, 1, 0), ESPIPE);
	expect("tee(fd_in=%d, fd_out=%d, len=1, flags=0x100) = -1 EINVAL", a[0], b[1]);
	t_fails(sys(tee, a[0], b[1], 1, 0x100), EINVAL);
}

static void from_memory(const int a[2], int file)
{
	char buf[10];
	struct iovec iov[2] = { { (char *)(uintptr_t) "one", 3 },
				{ (char *)(uintptr_t) "two", 3 } };
	struct iovec into = { buf, sizeof(buf) };

	expect("vmsplice(fd=%d, iov=[{iov_base=\"one\", iov_len=3}, {iov_base=\"two\", iov_len=3}], nr_segs=2, flags=0) = 6",
	       a[1]);
	t_is(sys(vmsplice, a[1], iov, 2, 0), 6);
	/* From a pipe into memory: what was there before is not what is moved. */
	expect("vmsplice(fd=%d, iov=[{iov_base=\"onetwo\", iov_len=10}], nr_segs=1, flags=SPLICE_F_NONBLOCK) = 6",
	       a[0]);
	t_is(sys(vmsplice, a[0], &into, 1, SPLICE_F_NONBLOCK), 6);
	expect("vmsplice(fd=%d, iov=[{iov_base=\"one\", iov_len=3}], nr_segs=1, flags=SPLICE_F_GIFT) = -1 EBADF",
	       file);
	t_fails(sys(vmsplice, file, iov, 1, SPLICE_F_GIFT), EBADF);
}

int main(void)
{
	int in, out, a[2], b[2];

	t_init();
	in = (int)t_ok(open("in", O_RDWR | O_CREAT, 0600));
	out = (int)t_ok(open("out", O_RDWR | O_CREAT, 0600));
	t_ok(pipe(a));
	t_ok(pipe(b));
	t_is(write(in, "0123456789", 10), 10);
	t_ok(lseek(in, 0, SEEK_SET));
	t_begin();
	ranges(in, out);
	send(in, out);
	splices(in, out, a, b);
	from_memory(a, in);
	t_end();
	return 0;
}
