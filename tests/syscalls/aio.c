/* SPDX-License-Identifier: MIT */
/* The kernel's first kind of asynchronous I/O: what is asked for, and what came of it. */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib.h"

static aio_context_t ctx;

static char *ctx_text(void)
{
	return hex(ctx);
}

static void submit(struct iocb *cb, long nr)
{
	struct iocb *list[4] = { cb, cb + 1, cb + 2, cb + 3 };

	t_is(sys(io_submit, ctx, nr, list), nr);
}

/* Waits for all of them: one at a time, so that their order is known. */
static struct io_event next_event(void)
{
	struct io_event ev;

	t_is(sys(io_getevents, ctx, 1, 1, &ev, NULL), 1);
	return ev;
}

static void setup(void)
{
	expect("io_setup(nr_events=0, ctx_idp=%s) = -1 EINVAL", pointer(&ctx));
	t_fails(sys(io_setup, 0, &ctx), EINVAL);
	t_ok(sys(io_setup, 8, &ctx));
	expect("io_setup(nr_events=8, ctx_idp=[%s]) = 0", ctx_text());
}

static void writes(int fd)
{
	struct iocb cb[2] = { { .aio_data = 0x11,
				.aio_lio_opcode = IOCB_CMD_PWRITE,
				.aio_fildes = (uint32_t)fd,
				.aio_buf = (uintptr_t) "hello",
				.aio_nbytes = 5,
				.aio_offset = 3 },
			      { .aio_data = 0x12,
				.aio_lio_opcode = IOCB_CMD_PWRITEV,
				.aio_fildes = (uint32_t)fd,
				.aio_nbytes = 2,
				.aio_rw_flags = RWF_DSYNC,
				.aio_offset = 8 } };
	struct iovec iov[2] = { { (char *)(uintptr_t) "ab", 2 }, { (char *)(uintptr_t) "cd", 2 } };

	cb[1].aio_buf = (uintptr_t)iov;
	submit(cb, 1);
	expect("io_submit(ctx_id=%s, nr=1, iocbpp=[{obj=%s, aio_data=0x11, aio_lio_opcode=IOCB_CMD_PWRITE, aio_reqprio=0, aio_fildes=%d, aio_nbytes=5, aio_offset=3, aio_rw_flags=0, aio_flags=0, buf=\"hello\"}]) = 1",
	       ctx_text(), addr(&cb[0]), fd);
	(void)next_event();
	expect("io_getevents(ctx_id=%s, min_nr=1, nr=1, events=[{data=0x11, obj=%s, res=5, res2=0, opcode=IOCB_CMD_PWRITE, buf=?}], timeout=NULL) = 1",
	       ctx_text(), addr(&cb[0]));
	submit(cb + 1, 1);
	expect("io_submit(ctx_id=%s, nr=1, iocbpp=[{obj=%s, aio_data=0x12, aio_lio_opcode=IOCB_CMD_PWRITEV, aio_fildes=%d, aio_nbytes=2, aio_offset=8, aio_rw_flags=RWF_DSYNC, iov=[{iov_base=\"ab\", iov_len=2}, {iov_base=\"cd\", iov_len=2}]}]) = 1",
	       ctx_text(), addr(&cb[1]), fd);
	(void)next_event();
	expect("io_getevents(ctx_id=%s, events=[{data=0x12, obj=%s, res=4, opcode=IOCB_CMD_PWRITEV}]) = 1",
	       ctx_text(), addr(&cb[1]));
}

static void reads(int fd)
{
	char a[8], b[3], c[20];
	struct iovec iov[2] = { { b, sizeof(b) }, { c, sizeof(c) } };
	struct iocb cb[2] = { { .aio_data = 0x21,
				.aio_lio_opcode = IOCB_CMD_PREAD,
				.aio_fildes = (uint32_t)fd,
				.aio_buf = (uintptr_t)a,
				.aio_nbytes = sizeof(a),
				.aio_offset = 3 },
			      { .aio_data = 0x22,
				.aio_lio_opcode = IOCB_CMD_PREADV,
				.aio_fildes = (uint32_t)fd,
				.aio_buf = (uintptr_t)iov,
				.aio_nbytes = 2,
				.aio_offset = 0 } };

	submit(cb, 1);
	expect("io_submit(ctx_id=%s, nr=1, iocbpp=[{obj=%s, aio_data=0x21, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=%d, aio_buf=%s, aio_nbytes=8, aio_offset=3, buf=?}]) = 1",
	       ctx_text(), addr(&cb[0]), fd, addr(a));
	(void)next_event();
	expect("io_getevents(ctx_id=%s, events=[{data=0x21, obj=%s, res=8, opcode=IOCB_CMD_PREAD, buf=\"helloabc\"}]) = 1",
	       ctx_text(), addr(&cb[0]));
	submit(cb + 1, 1);
	expect("io_submit(ctx_id=%s, nr=1, iocbpp=[{obj=%s, aio_lio_opcode=IOCB_CMD_PREADV, aio_fildes=%d, aio_nbytes=2, aio_offset=0, iov=[{iov_base=%s, iov_len=3}, {iov_base=%s, iov_len=20}]}]) = 1",
	       ctx_text(), addr(&cb[1]), fd, pointer(b), pointer(c));
	(void)next_event();
	/* In the order of the vectors, up to what was read. */
	expect("io_getevents(ctx_id=%s, events=[{obj=%s, res=12, opcode=IOCB_CMD_PREADV, buf=\"\\x00\\x00\\x00helloabcd\"}]) = 1",
	       ctx_text(), addr(&cb[1]));
}

/* Two at once, and their completions as they come; one of them fails. */
static void several(int fd, int read_only)
{
	struct iocb cb[2] = {
		{ .aio_data = 0x31, .aio_lio_opcode = IOCB_CMD_FDSYNC, .aio_fildes = (uint32_t)fd },
		{ .aio_data = 0x32,
		  .aio_lio_opcode = IOCB_CMD_PREAD,
		  .aio_fildes = (uint32_t)fd,
		  .aio_buf = 0x10,
		  .aio_nbytes = 4 }
	};
	struct iocb bad = { .aio_lio_opcode = IOCB_CMD_PWRITE,
			    .aio_fildes = (uint32_t)read_only,
			    .aio_buf = (uintptr_t) "x",
			    .aio_nbytes = 1 };
	struct io_event ev[4];
	long i;

	submit(cb, 2);
	expect("io_submit(ctx_id=%s, nr=2, iocbpp=[{obj=%s, aio_data=0x31, aio_lio_opcode=IOCB_CMD_FDSYNC, aio_fildes=%d}, {obj=%s, aio_data=0x32, aio_lio_opcode=IOCB_CMD_PREAD, aio_buf=0x10, aio_nbytes=4}]) = 2",
	       ctx_text(), addr(&cb[0]), fd, addr(&cb[1]));
	t_is(sys(io_getevents, ctx, 2, 4, ev, NULL), 2);
	i = ev[0].data == 0x32;
	expect("io_getevents(ctx_id=%s, min_nr=2, nr=4, events=[{data=%s, res=%lld}, {data=%s, res=%lld}], timeout=NULL) = 2",
	       ctx_text(), i ? "0x32" : "0x31", (long long)ev[0].res, i ? "0x31" : "0x32",
	       (long long)ev[1].res);
	expect("io_submit(ctx_id=%s, nr=1, iocbpp=[{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=%d, buf=\"x\"}]) = -1 EBADF",
	       ctx_text(), read_only);
	t_fails(sys(io_submit, ctx, 1, (struct iocb *[]){ &bad }), EBADF);
	expect("io_submit(ctx_id=%s, nr=-1, iocbpp=*) = -1 EINVAL", ctx_text());
	t_fails(sys(io_submit, ctx, -1, NULL), EINVAL);
	expect("io_submit(ctx_id=0x1, nr=1, iocbpp=*) = -1 EINVAL");
	t_fails(sys(io_submit, 1, 1, (struct iocb *[]){ &bad }), EINVAL);
}

static void told_by_eventfd(int fd, int event_fd)
{
	struct iocb cb = { .aio_data = 0x41,
			   .aio_lio_opcode = IOCB_CMD_PWRITE,
			   .aio_fildes = (uint32_t)fd,
			   .aio_buf = (uintptr_t) "zz",
			   .aio_nbytes = 2,
			   .aio_flags = IOCB_FLAG_RESFD,
			   .aio_resfd = (uint32_t)event_fd };
	struct timespec t = { 10, 0 };
	uint64_t mask = 1ULL << (SIGINT - 1);
	struct {
		const uint64_t *mask;
		size_t size;
	} usig = { &mask, 8 };
	struct io_event ev;

	submit(&cb, 1);
	expect("io_submit(ctx_id=%s, nr=1, iocbpp=[{aio_data=0x41, aio_flags=IOCB_FLAG_RESFD, aio_resfd=%d, buf=\"zz\"}]) = 1",
	       ctx_text(), event_fd);
	t_is(sys(io_pgetevents, ctx, 1, 1, &ev, &t, &usig), 1);
	expect("io_pgetevents(ctx_id=%s, min_nr=1, nr=1, events=[{data=0x41, res=2, opcode=IOCB_CMD_PWRITE}], timeout={tv_sec=10, tv_nsec=0}, usig={sigmask=[[INT]], sigsetsize=8}) = 1",
	       ctx_text());
	t = (struct timespec){ 0, 1000000 };
	expect("io_getevents(ctx_id=%s, min_nr=1, nr=1, events=[], timeout={tv_sec=0, tv_nsec=1000000}) = 0",
	       ctx_text());
	t_is(sys(io_getevents, ctx, 1, 1, &ev, &t), 0);
	expect("io_getevents(ctx_id=%s, min_nr=5, nr=1, events=%s, timeout=NULL) = -1 EINVAL",
	       ctx_text(), pointer(&ev));
	t_fails(sys(io_getevents, ctx, 5, 1, &ev, NULL), EINVAL);
	expect("io_pgetevents(ctx_id=0x1, min_nr=0, nr=1, events=%s, timeout=NULL, usig=NULL) = -1 EINVAL",
	       pointer(&ev));
	t_fails(sys(io_pgetevents, 1, 0, 1, &ev, NULL, NULL), EINVAL);
}

/* A poll of a pipe that nobody writes to: it can be taken back. */
static void cancelled(int pipe_fd)
{
	struct iocb cb = { .aio_data = 0x51,
			   .aio_lio_opcode = IOCB_CMD_POLL,
			   .aio_fildes = (uint32_t)pipe_fd,
			   .aio_buf = POLLIN };
	struct io_event ev;
	long r;

	submit(&cb, 1);
	expect("io_submit(ctx_id=%s, nr=1, iocbpp=[{aio_data=0x51, aio_lio_opcode=IOCB_CMD_POLL, aio_fildes=%d, aio_buf=0x1}]) = 1",
	       ctx_text(), pipe_fd);
	r = sys(io_cancel, ctx, &cb, &ev);
	expect("io_cancel(ctx_id=%s, iocb={aio_data=0x51, aio_lio_opcode=IOCB_CMD_POLL}, result=*) = %s",
	       ctx_text(), outcome(r));
	(void)next_event();
	expect("io_getevents(ctx_id=%s, events=[{data=0x51, obj=%s, opcode=IOCB_CMD_POLL}]) = 1",
	       ctx_text(), addr(&cb));
	expect("io_destroy(ctx_id=%s) = 0", ctx_text());
	t_ok(sys(io_destroy, ctx));
	expect("io_destroy(ctx_id=0x1) = -1 EINVAL");
	t_fails(sys(io_destroy, 1), EINVAL);
}

int main(void)
{
	int fd, read_only, event_fd, pipes[2];

	t_init();
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	read_only = (int)t_ok(open("f", O_RDONLY));
	event_fd = (int)t_ok(eventfd(0, 0));
	t_ok(pipe(pipes));
	if (sys(io_setup, 1, &ctx) < 0 && errno == ENOSYS) {
		t_skip("the kernel has no asynchronous I/O of this kind");
		return 0;
	}
	t_ok(sys(io_destroy, ctx));
	ctx = 0;
	t_begin();
	setup();
	writes(fd);
	reads(fd);
	several(fd, read_only);
	told_by_eventfd(fd, event_fd);
	cancelled(pipes[0]);
	t_end();
	return 0;
}
