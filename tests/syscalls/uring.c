/* SPDX-License-Identifier: MIT */
/*
 * io_uring by hand: what each io_uring_enter takes from the submission ring, what
 * became visible in the completion ring by it, with the data. Requests are made
 * one at a time where their order would not be certain.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib.h"

#define ENTRIES 8

struct ring {
	int fd;
	struct io_uring_params params;
	unsigned int *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static struct ring ring;

static const struct t_bit features[] = {
	{ "IORING_FEAT_SINGLE_MMAP", 0x1 },	   { "IORING_FEAT_NODROP", 0x2 },
	{ "IORING_FEAT_SUBMIT_STABLE", 0x4 },	   { "IORING_FEAT_RW_CUR_POS", 0x8 },
	{ "IORING_FEAT_CUR_PERSONALITY", 0x10 },   { "IORING_FEAT_FAST_POLL", 0x20 },
	{ "IORING_FEAT_POLL_32BITS", 0x40 },	   { "IORING_FEAT_SQPOLL_NONFIXED", 0x80 },
	{ "IORING_FEAT_EXT_ARG", 0x100 },	   { "IORING_FEAT_NATIVE_WORKERS", 0x200 },
	{ "IORING_FEAT_RSRC_TAGS", 0x400 },	   { "IORING_FEAT_CQE_SKIP", 0x800 },
	{ "IORING_FEAT_LINKED_FILE", 0x1000 },	   { "IORING_FEAT_REG_REG_RING", 0x2000 },
	{ "IORING_FEAT_RECVSEND_BUNDLE", 0x4000 }, { "IORING_FEAT_MIN_TIMEOUT", 0x8000 },
	{ "IORING_FEAT_RW_ATTR", 0x10000 },	   { "IORING_FEAT_NO_IOWAIT", 0x20000 },
};

/* Setting up. */

static char *params_text(const struct io_uring_params *p, const char *flags)
{
	return text("{flags=%s, sq_thread_cpu=0, sq_thread_idle=0, wq_fd=0, sq_entries=%u, "
		    "cq_entries=%u, features=%s, sq_off={head=%u, tail=%u, ring_mask=%u, "
		    "ring_entries=%u, flags=%u, dropped=%u, array=%u}, cq_off={head=%u, tail=%u, "
		    "ring_mask=%u, ring_entries=%u, overflow=%u, cqes=%u, flags=%u}}",
		    flags, p->sq_entries, p->cq_entries, bits(p->features, features),
		    p->sq_off.head, p->sq_off.tail, p->sq_off.ring_mask, p->sq_off.ring_entries,
		    p->sq_off.flags, p->sq_off.dropped, p->sq_off.array, p->cq_off.head,
		    p->cq_off.tail, p->cq_off.ring_mask, p->cq_off.ring_entries, p->cq_off.overflow,
		    p->cq_off.cqes, p->cq_off.flags);
}

static void setup(void)
{
	struct io_uring_params bad = { .flags = 0x80000000u };

	t_begin();
	expect("io_uring_setup(entries=8, params={flags=0x80000000}) = -1 EINVAL");
	t_fails(sys(io_uring_setup, ENTRIES, &bad), EINVAL);
	expect("io_uring_setup(entries=8, params=NULL) = -1 EFAULT");
	t_fails(sys(io_uring_setup, ENTRIES, NULL), EFAULT);
	ring.params.flags = IORING_SETUP_CLAMP;
	ring.fd = (int)t_ok(sys(io_uring_setup, ENTRIES, &ring.params));
	expect("io_uring_setup(entries=8, params=%s) = %d",
	       params_text(&ring.params, "IORING_SETUP_CLAMP"), ring.fd);
	t_end();
}

static void map_rings(struct ring *r)
{
	const struct io_uring_params *p = &r->params;
	size_t sq_len = p->sq_off.array + p->sq_entries * sizeof(unsigned int);
	size_t cq_len = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	char *sq, *cq;

	sq = mmap(NULL, sq_len, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, cq_len, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, p->sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		       MAP_SHARED, r->fd, IORING_OFF_SQES);
	t_true(sq != MAP_FAILED && cq != MAP_FAILED && (void *)r->sqes != MAP_FAILED);
	r->sq_tail = (unsigned int *)(sq + p->sq_off.tail);
	r->sq_mask = (unsigned int *)(sq + p->sq_off.ring_mask);
	r->sq_array = (unsigned int *)(sq + p->sq_off.array);
	r->cq_head = (unsigned int *)(cq + p->cq_off.head);
	r->cq_tail = (unsigned int *)(cq + p->cq_off.tail);
	r->cq_mask = (unsigned int *)(cq + p->cq_off.ring_mask);
	r->cqes = (struct io_uring_cqe *)(cq + p->cq_off.cqes);
}

/* Requests. */

static struct io_uring_sqe *next_sqe(struct ring *r, int opcode, uint64_t user_data)
{
	unsigned int tail = *r->sq_tail, at = tail & *r->sq_mask;
	struct io_uring_sqe *sqe = &r->sqes[at];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = (uint8_t)opcode;
	sqe->user_data = user_data;
	sqe->fd = -1;
	r->sq_array[at] = at;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	return sqe;
}

/* The result of the oldest completion, which is so taken out of the ring. */
static int next_result(struct ring *r)
{
	unsigned int head = *r->cq_head;
	int res;

	t_true(head != __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE));
	res = r->cqes[head & *r->cq_mask].res;
	__atomic_store_n(r->cq_head, head + 1, __ATOMIC_RELEASE);
	return res;
}

/* Submits one request and waits for it; gives its result. */
static int enter_one(void)
{
	t_is(sys(io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), 1);
	return next_result(&ring);
}

/* That call; `sqe` and `cqe` say what is special about it. */
static void expect_one(const char *op, uint64_t user_data, int res, const char *sqe,
		       const char *cqe)
{
	expect("io_uring_enter(fd=%d, to_submit=1, min_complete=1, flags=IORING_ENTER_GETEVENTS, argp=0, argsz=0, "
	       "sqes=[{opcode=IORING_OP_%s, user_data=%s%s%s}], cqes=[{user_data=%s, res=%d, opcode=IORING_OP_%s%s%s}]) = 1",
	       ring.fd, op, hex(user_data), *sqe ? ", " : "", sqe, hex(user_data), res, op,
	       *cqe ? ", " : "", cqe);
}

static void nothing(void)
{
	int res;

	next_sqe(&ring, IORING_OP_NOP, 0x1001);
	res = enter_one();
	expect_one("NOP", 0x1001, res, "", "");
	/* A request that is refused completes too. */
	next_sqe(&ring, 250, 0x1002);
	t_is(sys(io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), 1);
	res = next_result(&ring);
	expect("io_uring_enter(fd=%d, sqes=[{opcode=250, user_data=0x1002}], cqes=[{user_data=0x1002, res=%d, opcode=250}]) = 1",
	       ring.fd, res);
}

static void data(int fd)
{
	char a[8], b[3], c[10];
	struct iovec out[2] = { { (char *)(uintptr_t) "ab", 2 }, { (char *)(uintptr_t) "cd", 2 } };
	struct iovec in[2] = { { b, sizeof(b) }, { c, sizeof(c) } };
	struct io_uring_sqe *s;

	s = next_sqe(&ring, IORING_OP_WRITE, 0x2001);
	s->fd = fd;
	s->addr = (uintptr_t) "hello";
	s->len = 5;
	s->off = 3;
	t_is(enter_one(), 5);
	expect_one("WRITE", 0x2001, 5, text("fd=%d, off=3, len=5, buf=\"hello\"", fd), "buf=?");
	s = next_sqe(&ring, IORING_OP_READ, 0x2002);
	s->fd = fd;
	s->addr = (uintptr_t)a;
	s->len = sizeof(a);
	s->off = 3;
	t_is(enter_one(), 5);
	expect_one("READ", 0x2002, 5, text("fd=%d, off=3, addr=%s, len=8, buf=?", fd, addr(a)),
		   "buf=\"hello\"");
	s = next_sqe(&ring, IORING_OP_WRITEV, 0x2003);
	s->fd = fd;
	s->addr = (uintptr_t)out;
	s->len = 2;
	s->off = 8;
	t_is(enter_one(), 4);
	expect_one(
		"WRITEV", 0x2003, 4,
		text("fd=%d, off=8, len=2, iov=[{iov_base=\"ab\", iov_len=2}, {iov_base=\"cd\", iov_len=2}]",
		     fd),
		"");
	s = next_sqe(&ring, IORING_OP_READV, 0x2004);
	s->fd = fd;
	s->addr = (uintptr_t)in;
	s->len = 2;
	t_is(enter_one(), 12);
	expect_one(
		"READV", 0x2004, 12,
		text("fd=%d, off=0, len=2, iov=[{iov_base=%s, iov_len=3}, {iov_base=%s, iov_len=10}]",
		     fd, pointer(b), pointer(c)),
		"buf=\"\\x00\\x00\\x00helloabcd\"");
	s = next_sqe(&ring, IORING_OP_READ, 0x2005);
	s->fd = 999;
	s->addr = (uintptr_t)a;
	s->len = sizeof(a);
	t_is(enter_one(), -EBADF);
	expect_one("READ", 0x2005, -EBADF, "fd=999, len=8", "buf=?");
	s = next_sqe(&ring, IORING_OP_FSYNC, 0x2006);
	s->fd = fd;
	s->fsync_flags = IORING_FSYNC_DATASYNC;
	t_is(enter_one(), 0);
	expect_one("FSYNC", 0x2006, 0, text("fd=%d, op_flags=0x1", fd), "");
	s = next_sqe(&ring, IORING_OP_FALLOCATE, 0x2007);
	s->fd = fd;
	s->off = 4096;
	s->addr = 8192; /* the length */
	s->len = 0;
	t_is(enter_one(), 0);
	expect_one("FALLOCATE", 0x2007, 0, text("fd=%d, off=4096, addr=0x2000", fd), "");
}

/* More than an event holds by itself. */
static void much_data(int fd)
{
	static char big[3 << 20];
	struct io_uring_sqe *s;

	t_fill(big, sizeof(big), 9);
	t_begin();
	s = next_sqe(&ring, IORING_OP_WRITE, 0x2101);
	s->fd = fd;
	s->addr = (uintptr_t)big;
	s->len = sizeof(big);
	t_is(enter_one(), sizeof(big));
	expect_one("WRITE", 0x2101, sizeof(big), text("fd=%d, buf=%s", fd, quote(big, sizeof(big))),
		   "");
	s = next_sqe(&ring, IORING_OP_READ, 0x2102);
	s->fd = fd;
	s->addr = (uintptr_t)big;
	s->len = sizeof(big);
	t_is(enter_one(), sizeof(big));
	expect_one("READ", 0x2102, sizeof(big), text("fd=%d", fd),
		   text("buf=%s", quote(big, sizeof(big))));
	t_end();
}

static void names(int dir)
{
	struct open_how_v0 {
		uint64_t flags, mode, resolve;
	} how = { O_RDWR | O_CREAT, 0600, 0 };
	static struct statx stx;
	struct io_uring_sqe *s;
	int fd;

	s = next_sqe(&ring, IORING_OP_OPENAT, 0x3001);
	s->fd = dir;
	s->addr = (uintptr_t) "made";
	s->open_flags = O_RDWR | O_CREAT;
	s->len = 0640;
	fd = enter_one();
	t_true(fd >= 0);
	expect_one("OPENAT", 0x3001, fd, text("fd=%d, path=\"made\", len=416, op_flags=0x42", dir),
		   text("file=%s", file_text(fd)));
	s = next_sqe(&ring, IORING_OP_CLOSE, 0x3002);
	s->fd = fd;
	t_is(enter_one(), 0);
	expect_one("CLOSE", 0x3002, 0, text("fd=%d", fd), "");
	s = next_sqe(&ring, IORING_OP_OPENAT2, 0x3003);
	s->fd = AT_FDCWD;
	s->addr = (uintptr_t) "made2";
	s->off = (uintptr_t)&how;
	s->len = sizeof(how);
	fd = enter_one();
	t_true(fd >= 0);
	expect_one("OPENAT2", 0x3003, fd,
		   "fd=-100, path=\"made2\", how={flags=O_RDWR|O_CREAT, mode=0600, resolve=0}",
		   text("file=%s", file_text(fd)));
	expect("close(fd=%d) = 0", fd);
	t_ok(sys(close, fd));
	s = next_sqe(&ring, IORING_OP_STATX, 0x3004);
	s->fd = dir;
	s->addr = (uintptr_t) "made";
	s->off = (uintptr_t)&stx;
	s->len = STATX_SIZE | STATX_MODE;
	t_is(enter_one(), 0);
	expect_one("STATX", 0x3004, 0, text("fd=%d, path=\"made\"", dir),
		   text("statx={stx_mode=%s, stx_size=%llu, stx_ino=%llu}", mode_text(stx.stx_mode),
			stx.stx_size, stx.stx_ino));
	s = next_sqe(&ring, IORING_OP_OPENAT, 0x3005);
	s->fd = dir;
	s->addr = (uintptr_t) "none";
	t_is(enter_one(), -ENOENT);
	expect_one("OPENAT", 0x3005, -ENOENT, "path=\"none\"", "file=?");
}

static void more_names(int dir)
{
	struct io_uring_sqe *s;

	s = next_sqe(&ring, IORING_OP_MKDIRAT, 0x3101);
	s->fd = dir;
	s->addr = (uintptr_t) "sub";
	s->len = 0700;
	t_is(enter_one(), 0);
	expect_one("MKDIRAT", 0x3101, 0, text("fd=%d, path=\"sub\", len=448", dir), "");
	s = next_sqe(&ring, IORING_OP_RENAMEAT, 0x3102);
	s->fd = dir;
	s->addr = (uintptr_t) "made";
	s->len = (uint32_t)dir;
	s->off = (uintptr_t) "sub/moved";
	t_is(enter_one(), 0);
	expect_one("RENAMEAT", 0x3102, 0,
		   text("fd=%d, path=\"made\", path2=\"sub/moved\", len=%d", dir, dir), "");
	s = next_sqe(&ring, IORING_OP_SYMLINKAT, 0x3103);
	s->fd = dir;
	s->addr = (uintptr_t) "target";
	s->addr2 = (uintptr_t) "link";
	t_is(enter_one(), 0);
	expect_one("SYMLINKAT", 0x3103, 0, text("fd=%d, path=\"target\", path2=\"link\"", dir), "");
	s = next_sqe(&ring, IORING_OP_LINKAT, 0x3104);
	s->fd = dir;
	s->addr = (uintptr_t) "sub/moved";
	s->len = (uint32_t)dir;
	s->addr2 = (uintptr_t) "hard";
	t_is(enter_one(), 0);
	expect_one("LINKAT", 0x3104, 0, text("fd=%d, path=\"sub/moved\", path2=\"hard\"", dir), "");
	s = next_sqe(&ring, IORING_OP_UNLINKAT, 0x3105);
	s->fd = dir;
	s->addr = (uintptr_t) "sub/moved";
	t_is(enter_one(), 0);
	expect_one("UNLINKAT", 0x3105, 0, text("fd=%d, path=\"sub/moved\"", dir), "");
	s = next_sqe(&ring, IORING_OP_UNLINKAT, 0x3106);
	s->fd = dir;
	s->addr = (uintptr_t) "sub";
	s->unlink_flags = AT_REMOVEDIR;
	t_is(enter_one(), 0);
	expect_one("UNLINKAT", 0x3106, 0, text("fd=%d, path=\"sub\", op_flags=0x200", dir), "");
}

static void sockets(const int sv[2])
{
	char buf[10];
	struct io_uring_sqe *s;

	s = next_sqe(&ring, IORING_OP_SEND, 0x4001);
	s->fd = sv[0];
	s->addr = (uintptr_t) "sent";
	s->len = 4;
	t_is(enter_one(), 4);
	expect_one("SEND", 0x4001, 4, text("fd=%d, len=4, buf=\"sent\"", sv[0]), "");
	s = next_sqe(&ring, IORING_OP_RECV, 0x4002);
	s->fd = sv[1];
	s->addr = (uintptr_t)buf;
	s->len = sizeof(buf);
	t_is(enter_one(), 4);
	expect_one("RECV", 0x4002, 4, text("fd=%d, len=10", sv[1]), "buf=\"sent\"");
}

/* Several by one call: linked, so that they complete in order. */
static void linked(int fd)
{
	char buf[4];
	struct io_uring_sqe *s;

	s = next_sqe(&ring, IORING_OP_WRITE, 0x5001);
	s->fd = fd;
	s->flags = IOSQE_IO_LINK;
	s->addr = (uintptr_t) "link";
	s->len = 4;
	s = next_sqe(&ring, IORING_OP_READ, 0x5002);
	s->fd = fd;
	s->flags = IOSQE_ASYNC;
	s->addr = (uintptr_t)buf;
	s->len = 4;
	t_is(sys(io_uring_enter, ring.fd, 2, 2, IORING_ENTER_GETEVENTS, NULL, 0), 2);
	expect("io_uring_enter(fd=%d, to_submit=2, min_complete=2, flags=IORING_ENTER_GETEVENTS, sqes=[{opcode=IORING_OP_WRITE, flags=IOSQE_IO_LINK, user_data=0x5001, buf=\"link\"}, {opcode=IORING_OP_READ, flags=IOSQE_ASYNC, user_data=0x5002}], cqes=[{user_data=0x5001, res=4, opcode=IORING_OP_WRITE}, {user_data=0x5002, res=4, opcode=IORING_OP_READ, buf=\"link\"}]) = 2",
	       ring.fd);
	t_is(next_result(&ring), 4);
	t_is(next_result(&ring), 4);
}

/* A file and a buffer that the ring knows by their numbers. */
static void fixed(int fd)
{
	static char buf[4096];
	struct iovec iov = { buf, sizeof(buf) };
	int files[2] = { -1, fd };
	char *file = file_text(fd);
	struct io_uring_sqe *s;

	strstr(file, ", size=")[0] = 0; /* which may be another when the request is carried out */
	expect("io_uring_register_buffers(fd=%d, arg=[{iov_base=%s, iov_len=4096}], nr_args=1) = 0",
	       ring.fd, addr(buf));
	t_ok(sys(io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &iov, 1));
	expect("io_uring_register_files(fd=%d, arg=[-1, %d], nr_args=2) = 0", ring.fd, fd);
	t_ok(sys(io_uring_register, ring.fd, IORING_REGISTER_FILES, files, 2));
	memcpy(buf, "fixed", 5);
	s = next_sqe(&ring, IORING_OP_WRITE_FIXED, 0x7001);
	s->fd = 1;
	s->flags = IOSQE_FIXED_FILE;
	s->addr = (uintptr_t)buf;
	s->len = 5;
	t_is(enter_one(), 5);
	expect_one(
		"WRITE_FIXED", 0x7001, 5,
		text("fd=1, flags=IOSQE_FIXED_FILE, len=5, buf_index=0, buf=\"fixed\", file=%s, size=?}",
		     file),
		"");
	s = next_sqe(&ring, IORING_OP_READ_FIXED, 0x7002);
	s->fd = 1;
	s->flags = IOSQE_FIXED_FILE;
	s->addr = (uintptr_t)(buf + 100);
	s->len = 3;
	t_is(enter_one(), 3);
	expect_one("READ_FIXED", 0x7002, 3,
		   "fd=1, flags=IOSQE_FIXED_FILE, file={mode=S_IFREG|0600}", "buf=\"fix\"");
}

/* Submitted by one call, waited for by the next. */
static void apart(int pipe_in, int pipe_out)
{
	char buf[10];
	struct io_uring_sqe *s = next_sqe(&ring, IORING_OP_READ, 0x6001);

	s->fd = pipe_out;
	s->addr = (uintptr_t)buf;
	s->len = sizeof(buf);
	s->off = ~0ULL;
	expect("io_uring_enter(fd=%d, to_submit=1, min_complete=0, flags=0, sqes=[{opcode=IORING_OP_READ, fd=%d, off=-1, user_data=0x6001}], cqes=[]) = 1",
	       ring.fd, pipe_out);
	t_is(sys(io_uring_enter, ring.fd, 1, 0, 0, NULL, 0), 1);
	expect("write(fd=%d, buf=\"later\", count=5) = 5", pipe_in);
	t_is(sys(write, pipe_in, "later", 5), 5);
	expect("io_uring_enter(fd=%d, to_submit=0, min_complete=1, flags=IORING_ENTER_GETEVENTS, sqes=[], cqes=[{user_data=0x6001, res=5, opcode=IORING_OP_READ, buf=\"later\"}]) = 0",
	       ring.fd);
	t_is(sys(io_uring_enter, ring.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0), 0);
	t_is(next_result(&ring), 5);
	expect("io_uring_enter(fd=-1, to_submit=1) = -1 EBADF");
	t_fails(sys(io_uring_enter, -1, 1, 0, 0, NULL, 0), EBADF);
	expect("io_uring_enter(fd=%d, to_submit=0, min_complete=0, flags=0x80000000) = -1 EINVAL",
	       ring.fd);
	t_fails(sys(io_uring_enter, ring.fd, 0, 0, 0x80000000u, NULL, 0), EINVAL);
}

int main(void)
{
	int fd, dir, sv[2], pipes[2];
	struct io_uring_params probe = { 0 };
	long r;

	t_init();
	r = syscall(SYS_io_uring_setup, 1, &probe);
	if (r < 0) {
		t_skip("io_uring: %s", strerror(errno));
		return 0;
	}
	t_ok(close((int)r));
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	dir = (int)t_ok(open(".", O_RDONLY | O_DIRECTORY));
	t_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	t_ok(pipe(pipes));
	setup();
	map_rings(&ring);
	t_begin();
	nothing();
	data(fd);
	names(dir);
	more_names(dir);
	sockets(sv);
	linked(fd);
	fixed(fd);
	apart(pipes[1], pipes[0]);
	t_end();
	much_data(fd);
	return 0;
}
